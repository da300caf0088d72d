"""What validation found: its results, and what a ``sh:ValidationReport`` says of them. `writing` writes reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyoxigraph import BlankNode, NamedNode, Triple
from pyoxigraph import Literal as RdfLiteral

from kg.shacl.property_paths import Path, to_text, to_triples
from kg.store.protocol import Term
from kg.vocabulary import RDF, SH, XSD

Severity = str
"""The local name of one of SHACL's severities, ``Violation``, ``Warning`` or ``Info``, or the IRI of another one."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a document, which is a path or a URL.

    `line` and `row` count from 1 (`row`: a data row of a table); `offset` counts characters from 0.
    """

    document: str
    line: int | None = None
    offset: int | None = None
    row: int | None = None


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
            else to_text(self.path),
            "value": None if self.value is None else str(self.value),
            "shape": None if self.shape is None else _term_text(self.shape),
            "component": self.component and self.component.value,
            "graph": self.graph and self.graph.value,
            "source": self.source,
            "messages": [{"text": each.value, "language": each.language} for each in self.messages],
            "source_constraint": None if self.source_constraint is None else _term_text(self.source_constraint),
            "details": [each.to_dict() for each in self.details],
        }


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


def build_report_triples(violations: Iterable[Violation]) -> Iterator[Triple]:
    """Yield a ``sh:ValidationReport`` as results come, the verdict last.

    By the standard, data with a result of any severity do not conform (https://www.w3.org/TR/shacl/#validation-report).
    """
    report, conforms = BlankNode(), True
    for violation in violations:
        yield from build_result_triples(report, violation)
        conforms = False
    yield from build_head_triples(report, conforms=conforms)


def build_head_triples(report: BlankNode, *, conforms: bool) -> list[Triple]:
    """Return what is said of a report beside its results."""
    return [
        Triple(report, RDF.type, SH.ValidationReport),
        Triple(report, SH.conforms, RdfLiteral(str(conforms).lower(), datatype=XSD.boolean)),
    ]


def build_result_triples(owner: BlankNode, violation: Violation, predicate: NamedNode = SH.result) -> list[Triple]:
    """Return a result of the report `owner`, or with ``sh:detail`` of another result, with all that belongs to it.

    https://www.w3.org/TR/shacl/#results-validation-result
    """
    result = BlankNode()
    severity = violation.severity
    path, described = to_triples(violation.path) if violation.path is not None else (None, [])
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
        said += build_result_triples(result, detail, SH.detail)
    return said


def _term_text(term: Term) -> str:
    return term.value if isinstance(term, NamedNode) else str(term)
