"""Results of a validation, as values and as the triples of a ``sh:ValidationReport``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyoxigraph import BlankNode, NamedNode, Triple
from pyoxigraph import Literal as RdfLiteral

from kg.shacl.property_paths import Path, to_text, to_triples
from kg.store.protocol import Term
from kg.vocabulary import RDF, SH, XSD

Severity = str
"""The local name of a SHACL severity (``Violation``, ``Warning``, ``Info``), or the IRI of another severity."""


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
    """A result of a validation. Data conform unless they have a result of severity ``Violation``."""

    focus: Term | None
    """The checked node; None for a syntax error."""
    message: str
    """The message, in English if available; `messages` has all languages."""
    severity: Severity = "Violation"
    path: Path | None = None
    value: Term | None = None
    shape: Term | None = None
    component: NamedNode | None = None
    graph: NamedNode | None = None
    """The named graph of the focus node."""
    source: str | None = None
    """The checked file, if any."""
    messages: tuple[RdfLiteral, ...] = ()
    source_constraint: NamedNode | BlankNode | None = None
    """The ``sh:sparql`` constraint of the result, if any."""
    details: tuple[Violation, ...] = ()
    """The results of the nested shape of ``sh:node``."""

    @property
    def blocks(self) -> bool:
        """Whether the data do not conform because of it."""
        return self.severity == "Violation"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types: terms of the data as N-Triples, shapes and components as plain IRIs."""
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


def build_report_triples(violations: Iterable[Violation]) -> Iterator[Triple]:
    """Yield a ``sh:ValidationReport`` as results arrive, ``sh:conforms`` last.

    In the standard, data with a result of any severity do not conform (https://www.w3.org/TR/shacl/#validation-report).
    """
    report, conforms = BlankNode(), True
    for violation in violations:
        yield from build_result_triples(report, violation)
        conforms = False
    yield from build_head_triples(report, conforms=conforms)


def build_head_triples(report: BlankNode, *, conforms: bool) -> list[Triple]:
    """Build the triples of a report except its results."""
    return [
        Triple(report, RDF.type, SH.ValidationReport),
        Triple(report, SH.conforms, RdfLiteral(str(conforms).lower(), datatype=XSD.boolean)),
    ]


def build_result_triples(owner: BlankNode, violation: Violation, predicate: NamedNode = SH.result) -> list[Triple]:
    """Build the triples of a result of the report `owner`, or with ``sh:detail`` of the result `owner`.

    https://www.w3.org/TR/shacl/#results-validation-result
    """
    result = BlankNode()
    severity = violation.severity
    path, described = to_triples(violation.path) if violation.path is not None else (None, [])
    built = [
        Triple(owner, predicate, result),
        Triple(result, RDF.type, SH.ValidationResult),
        Triple(result, SH.resultSeverity, NamedNode(severity) if ":" in severity else SH[severity]),
        *(Triple(result, SH.resultMessage, each) for each in violation.messages or (RdfLiteral(violation.message),)),
    ]
    built += [
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
    built += described
    for detail in violation.details:
        built += build_result_triples(result, detail, SH.detail)
    return built


def _term_text(term: Term) -> str:
    return term.value if isinstance(term, NamedNode) else str(term)
