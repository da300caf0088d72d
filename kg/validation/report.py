"""What validation found: for people (`str`), for programs (`to_dict`, `sarif`) and as a ``sh:ValidationReport``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple, serialize
from pyoxigraph import Literal as RdfLiteral

from kg.store.protocol import Term
from kg.validation.paths import Path, shown, triples
from kg.vocabulary import PREFIXES, RDF, SH, XSD, curie

Severity = str
"""The local name of one of SHACL's severities, ``Violation``, ``Warning`` or ``Info``, or the IRI of another one."""

SHOWN_CHARACTERS = 120
"""How much of a value the text for people shows."""

EXAMPLES: Final = 3
"""How many results of one shape and cause the text for people shows."""

MESSAGES: Final = 10
"""How many messages of one shape and cause it shows, where each result has one of its own."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One result of a validation. Only those of severity ``Violation`` make the data unfit."""

    focus: Term | None
    """The node that was checked; None when a file could not be read at all."""
    message: str
    """What is wrong, in English where there is a choice; `messages` has every language."""
    severity: Severity = "Violation"
    path: Path | None = None
    value: Term | None = None
    shape: Term | None = None
    component: NamedNode | None = None
    graph: NamedNode | None = None
    """The named graph that the focus node stands in."""
    source: str | None = None
    """The file that was checked, if it was one."""
    messages: tuple[RdfLiteral, ...] = ()
    source_constraint: NamedNode | BlankNode | None = None
    """The ``sh:sparql`` constraint that found it, if one did."""
    details: tuple[Violation, ...] = ()
    """What a shape found that this one refers to."""

    @property
    def blocks(self) -> bool:
        """Whether it makes the data unfit."""
        return self.severity == "Violation"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types: terms as N-Triples, IRIs of the report's own terms in full."""
        return {
            "severity": self.severity,
            "message": self.message,
            "focus": None if self.focus is None else str(self.focus),
            "path": None
            if self.path is None
            else self.path.value
            if isinstance(self.path, NamedNode)
            else shown(self.path),
            "value": None if self.value is None else str(self.value),
            "shape": None if self.shape is None else _name(self.shape),
            "component": self.component and self.component.value,
            "graph": self.graph and self.graph.value,
            "source": self.source,
            "messages": [{"text": each.value, "language": each.language} for each in self.messages],
            "source_constraint": None if self.source_constraint is None else _name(self.source_constraint),
            "details": [each.to_dict() for each in self.details],
        }

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source is not None else ""
        shape = f"\n  shape  {_short(self.shape)}" if self.shape is not None else ""
        return f"{self.severity}: {where}{self.message}{self.place()}{shape}"

    def place(self) -> str:
        """Return the lines of text that say what it is about."""
        text = ""
        if self.focus is not None:
            text += f"\n  node   {_shown(self.focus)}"
        if self.path is not None:
            text += f"\n  path   {shown(self.path)}"
        if self.value is not None and self.value != self.focus:
            text += f"\n  value  {_shown(self.value)}"
        if self.graph is not None:
            text += f"\n  graph  {self.graph.value}"
        return text


Cause = tuple[str | None, Term | None, NamedNode | None, Path | None, Severity]
"""What results have in common that one constraint of one shape found in one file."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one validation, and what was checked, in a few words."""

    checked: str
    violations: Sequence[Violation] = ()
    by_pyshacl: Mapping[str, str] = field(default_factory=dict)
    """The shapes that no query could do, so that pySHACL ran them, each with the reason."""

    @property
    def conforms(self) -> bool:
        """Whether nothing found makes the data unfit; warnings do not."""
        return not any(violation.blocks for violation in self.violations)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "conforms": self.conforms,
            "checked": self.checked,
            "by_pyshacl": dict(self.by_pyshacl),
            "results": [violation.to_dict() for violation in self.violations],
        }

    def turtle(self) -> str:
        """Return it as a ``sh:ValidationReport`` in Turtle."""
        return report_turtle(self.violations)

    def __str__(self) -> str:
        count = Counter(violation.severity for violation in self.violations)
        found = ", ".join(f"{count[severity]} {severity.lower()}{'s' * (count[severity] != 1)}" for severity in count)
        verdict = "conforms" if self.conforms else "does not conform"
        others = [f"run by pySHACL: {curie(shape)}, since {reason}" for shape, reason in self.by_pyshacl.items()]
        return "\n".join([*self._groups(), *others, f"{self.checked}: {verdict} ({found or 'nothing found'})"])

    def _groups(self) -> Iterable[str]:
        """Yield what was found by file, shape and cause: the most frequent first, with a few examples each.

        A shape whose message says something else of each node has `MESSAGES` of them; the others are counted.
        """
        groups: dict[object, list[Violation]] = {}
        for each in self.violations:
            groups.setdefault((_cause(each), each.message), []).append(each)
        shown_of: Counter[Cause] = Counter()
        left_out: Counter[Cause] = Counter()
        for alike in sorted(groups.values(), key=lambda group: (not group[0].blocks, -len(group))):
            cause = _cause(alike[0])
            shown_of[cause] += 1
            if shown_of[cause] > MESSAGES:
                left_out[cause] += len(alike)
            elif len(alike) == 1:
                yield str(alike[0])
            else:
                yield from _alike(alike)
        for (source, shape, *_), count in left_out.items():
            where = f"{source}: " if source is not None else ""
            about = f" of {_short(shape)}" if shape is not None else ""
            yield f"{where}{count} more results{about}, with other messages"


def _cause(violation: Violation) -> Cause:
    return violation.source, violation.shape, violation.component, violation.path, violation.severity


def _alike(alike: Sequence[Violation]) -> Iterable[str]:
    """Yield results that say the same: their number, and a few of them."""
    first = alike[0]
    where = f"{first.source}: " if first.source is not None else ""
    shape = f"\n  shape  {_short(first.shape)}" if first.shape is not None else ""
    yield f"{len(alike)} x {first.severity}: {where}{first.message}{shape}"
    yield from (f"  -{each.place()[2:]}".replace("\n", "\n  ") for each in alike[:EXAMPLES] if each.place())
    if len(alike) > EXAMPLES:
        yield f"  - and {len(alike) - EXAMPLES} more"


def report_turtle(violations: Iterable[Violation]) -> str:
    """Return a ``sh:ValidationReport`` in Turtle."""
    output = BytesIO()
    serialize(report_triples(violations), output, RdfFormat.TURTLE, prefixes=PREFIXES)
    return output.getvalue().decode()


def report_triples(violations: Iterable[Violation]) -> list[Triple]:
    """Return a ``sh:ValidationReport``: by the standard, data with a result of any severity do not conform.

    https://www.w3.org/TR/shacl/#validation-report
    """
    violations = list(violations)
    report = BlankNode()
    said = [
        Triple(report, RDF.type, SH.ValidationReport),
        Triple(report, SH.conforms, RdfLiteral(str(not violations).lower(), datatype=XSD.boolean)),
    ]
    for violation in violations:
        said += _result_triples(report, SH.result, violation)
    return said


def _result_triples(owner: BlankNode, predicate: NamedNode, violation: Violation) -> list[Triple]:
    result = BlankNode()
    severity = violation.severity
    path, described = triples(violation.path) if violation.path is not None else (None, [])
    said = [
        Triple(owner, predicate, result),
        Triple(result, RDF.type, SH.ValidationResult),
        Triple(result, SH.resultSeverity, NamedNode(severity) if ":" in severity else SH[severity]),
        *(Triple(result, SH.resultMessage, each) for each in violation.messages or (RdfLiteral(violation.message),)),
    ]
    said += [
        Triple(result, predicate, term)
        for predicate, term in (
            (SH.focusNode, violation.focus),
            (SH.resultPath, path),
            (SH.value, violation.value),
            (SH.sourceShape, violation.shape),
            (SH.sourceConstraint, violation.source_constraint),
            (SH.sourceConstraintComponent, violation.component),
        )
        if term is not None
    ]
    said += described
    for detail in violation.details:
        said += _result_triples(result, SH.detail, detail)
    return said


def _name(term: Term) -> str:
    return term.value if isinstance(term, NamedNode) else str(term)


def _short(term: Term) -> str:
    return curie(term.value) if isinstance(term, NamedNode) else str(term)


def _shown(term: Term) -> str:
    text = str(term)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + f"... ({len(text)} characters)"
