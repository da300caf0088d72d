"""A report as SARIF 2.1.0, which code hosts show beside the lines that it is about.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from pyoxigraph import NamedNode

from kg import __version__
from kg.validation.paths import shown
from kg.validation.report import Report, Violation
from kg.vocabulary import SH, curie

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {"Violation": "error", "Warning": "warning", "Info": "note"}


@dataclass(frozen=True, slots=True)
class Location:
    """Where in a document something stands. `line` counts from 1; `offset` counts characters from 0."""

    document: str
    line: int | None = None
    offset: int | None = None


def from_source(violation: Violation) -> Location | None:
    """Return the file that was checked."""
    return None if violation.source is None else Location(violation.source)


def sarif(report: Report, locate: Callable[[Violation], Location | None] = from_source) -> dict[str, Any]:
    """Return `report` as SARIF, as JSON types. `locate` says which document a result is about, and where in it."""
    rules: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    results = []
    for violation in report.violations:
        name = _rule(violation)
        if name not in rules:
            rules[name] = {
                "id": name,
                "shortDescription": {"text": violation.message or name},
                "defaultConfiguration": {"level": _LEVELS.get(violation.severity, "error")},
            }
            places[name] = len(places)
            if isinstance(violation.shape, NamedNode) and violation.shape.value.startswith(("http:", "https:")):
                rules[name]["helpUri"] = violation.shape.value
        results.append(_result(violation, name, places[name], locate(violation)))
    driver = {"name": "Quadcite", "version": __version__, "rules": list(rules.values())}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _rule(violation: Violation) -> str:
    """Return the name of the rule that was broken: the shape, or what it is about where it has no name."""
    if isinstance(violation.shape, NamedNode):
        return curie(violation.shape.value).strip("<>")
    if violation.component is None:
        return "syntax"
    constraint = violation.component.value.removeprefix(SH.iri).removesuffix("ConstraintComponent")
    return constraint if violation.path is None else f"{constraint} of {shown(violation.path)}"


def _result(violation: Violation, rule: str, index: int, location: Location | None) -> dict[str, Any]:
    text = violation.message
    about = [("node", violation.focus), ("value", violation.value if violation.value != violation.focus else None)]
    said = [f"{name} {term}" for name, term in about if term is not None]
    if violation.path is not None:
        said.insert(1, f"path {shown(violation.path)}")
    place: dict[str, Any] = {}
    if location is not None:
        place["physicalLocation"] = _physical(location)
    if violation.focus is not None:
        place["logicalLocations"] = [{"fullyQualifiedName": str(violation.focus), "kind": "resource"}]
    same = "\n".join(
        str(part) for part in (rule, violation.component, violation.focus, violation.path, violation.value)
    )
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": _LEVELS.get(violation.severity, "error"),
        "message": {"text": "\n".join([text, *said])},
        **({"locations": [place]} if place else {}),
        "partialFingerprints": {"result/v1": hashlib.sha256(same.encode()).hexdigest()},
    }


def _physical(location: Location) -> dict[str, Any]:
    path = PurePath(location.document)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/:#?&=%")
    found: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    region = {"startLine": location.line, "charOffset": location.offset}
    if region := {name: at for name, at in region.items() if at is not None}:
        found["region"] = region
    return found
