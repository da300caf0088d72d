"""Results as SARIF 2.1.0, which code hosts show next to the lines of files.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from pyoxigraph import BlankNode, NamedNode

from kg import __version__
from kg.shacl.property_paths import to_text
from kg.shacl.report import Location, Violation
from kg.store.protocol import Term
from kg.vocabulary import SH, curie

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

RULES: Final = 10_000
"""Most rules that are named by path. Beyond them, a shape that is a blank node is named by its component only."""

_LEVELS: Final = {"Violation": "error", "Warning": "warning", "Info": "note"}
_URL: Final = re.compile(r"hub:|sparql:|[A-Za-z][A-Za-z0-9+.\-]*://")
_LOOSE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LINK: Final = re.compile(r"\[(?=[^\[\]]*\]\()")


class Rules:
    """The rules of a SARIF log: the shapes of results, in the order in which they were found."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Any]] = {}
        self._places: dict[str, int] = {}

    def result(self, violation: Violation, location: Location | None) -> dict[str, Any]:
        """Build a SARIF result, as JSON types."""
        name = self._name(violation)
        if name not in self._found:
            self._places[name] = len(self._places)
            self._found[name] = _build_rule(name, violation)
        return _build_result(violation, name, self._places[name], location)

    def _name(self, violation: Violation) -> str:
        """Return the name of a rule: the shape, or for a blank node its component and path."""
        if isinstance(violation.shape, NamedNode):
            return curie(violation.shape.value).strip("<>")
        if violation.component is None:
            return "syntax"
        constraint = _component_name(violation.component)
        if violation.path is None or violation.component == SH.ClosedConstraintComponent:
            return constraint
        name = f"{constraint} of {to_text(violation.path)}"
        return name if name in self._found or len(self._found) < RULES else constraint

    def run(self, checked: str, conforms: bool, by_pyshacl: Mapping[str, str]) -> dict[str, Any]:
        """Build the SARIF run, without its results."""
        driver = {
            "name": "Quadcite",
            "version": __version__,
            "informationUri": "https://w3id.org/quadcite/",
            "rules": list(self._found.values()),
        }
        notes = [
            {"level": "note", "message": {"text": escape_message(f"{curie(shape)} was run by pySHACL: {reason}")}}
            for shape, reason in by_pyshacl.items()
        ]
        return {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": True, **({"toolExecutionNotifications": notes} if notes else {})}],
            "properties": {"checked": checked, "conforms": conforms},
        }


def escape_message(text: str) -> str:
    """Escape placeholders and links in `text`, which SARIF would interpret (sections 3.11.5, 3.11.6)."""
    return _LINK.sub(r"\\[", text.replace("{", "{{").replace("}", "}}"))


def _component_name(component: NamedNode) -> str:
    name = component.value.removeprefix(SH.iri)
    return name.removesuffix("ConstraintComponent") if name != component.value else curie(name).strip("<>")


def _build_rule(name: str, violation: Violation) -> dict[str, Any]:
    text = escape_message(violation.message or name)
    about = f"the shape {name}" if isinstance(violation.shape, NamedNode) else name
    if violation.component is not None:
        about += f" (constraint component {curie(violation.component.value).strip('<>')})"
    rule: dict[str, Any] = {
        "id": name,
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {"text": escape_message(f"Found by {about}.")},
        "defaultConfiguration": {"level": _get_level(violation)},
    }
    if isinstance(violation.shape, NamedNode) and violation.shape.value.startswith(("http:", "https:")):
        rule["helpUri"] = _to_url(violation.shape.value)
    return rule


def _get_level(violation: Violation) -> str:
    return _LEVELS.get(violation.severity, "warning")


def _build_result(violation: Violation, rule: str, index: int, location: Location | None) -> dict[str, Any]:
    about = [("node", violation.focus), ("value", violation.value if violation.value != violation.focus else None)]
    lines = [f"{name} {term}" for name, term in about if term is not None]
    if violation.path is not None:
        lines.insert(1 if violation.focus is not None else 0, f"path {to_text(violation.path)}")
    if location is not None and location.row is not None:
        lines.append(f"row {location.row} of {location.document}")
    found: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": index,
        "level": _get_level(violation),
        "message": {"text": escape_message("\n".join([violation.message, *lines]))},
    }
    if place := _build_location(violation, location):
        found["locations"] = [place]
    found["partialFingerprints"] = {"result/v1": _compute_fingerprint(violation, rule)}
    if ":" in violation.severity:
        found["properties"] = {"severity": violation.severity}
    return found


def _build_location(violation: Violation, location: Location | None) -> dict[str, Any]:
    place: dict[str, Any] = {}
    if location is not None:
        place["physicalLocation"] = _build_physical_location(location)
    named: Sequence[tuple[str, Term | None]] = (("resource", violation.focus), ("graph", violation.graph))
    logical = [{"fullyQualifiedName": str(term), "kind": kind} for kind, term in named if term is not None]
    if location is not None and location.row is not None:
        logical.append({"name": f"row {location.row}", "kind": "row"})
    if logical:
        place["logicalLocations"] = logical
    return place


def _compute_fingerprint(violation: Violation, rule: str) -> str:
    """Hash the parts of a result that are the same in the next run; labels of blank nodes are not."""
    terms = violation.component, violation.focus, violation.path, violation.value
    same = [rule, *("_:" if isinstance(term, BlankNode) else str(term) for term in terms)]
    return hashlib.sha256("\n".join(same).encode("utf-8", "surrogatepass")).hexdigest()


def _build_physical_location(location: Location) -> dict[str, Any]:
    found: dict[str, Any] = {"artifactLocation": {"uri": to_uri(location.document)}}
    region = {"startLine": location.line, "charOffset": location.offset}
    if region := {name: at for name, at in region.items() if at is not None}:
        found["region"] = region
    return found


def to_uri(document: str) -> str:
    """Return the URI of a path or URL; for a relative path, a relative reference."""
    if _URL.match(document):
        return _to_url(document)
    path = PurePath(document)
    root = "file://" if path.is_absolute() else ""
    return root + quote(os.fsencode(path.as_posix()), safe="/")


def _to_url(iri: str) -> str:
    return quote(_LOOSE_PERCENT.sub("%25", iri).encode("utf-8", "surrogatepass"), safe="%:/?#[]@!$&'()*+,;=~")
