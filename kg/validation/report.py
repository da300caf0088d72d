"""What validation found, for people (`str`), for programs (`to_dict`) and as a ``sh:ValidationReport`` (`turtle`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple, serialize
from pyoxigraph import Literal as RdfLiteral

from kg.store.protocol import Term
from kg.vocabulary import PREFIXES, RDF, SH, XSD, curie

Severity = Literal["Violation", "Warning", "Info"]

SHOWN_CHARACTERS = 120
"""How much of a value the text for people shows."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One result of a validation. Only those of severity ``Violation`` make the data unfit."""

    focus: Term | None
    """The node that was checked; None when a file could not be read at all."""
    message: str
    severity: Severity = "Violation"
    path: NamedNode | None = None
    value: Term | None = None
    shape: NamedNode | None = None
    component: NamedNode | None = None
    graph: NamedNode | None = None
    """The named graph that the focus node stands in."""
    source: str | None = None
    """The file that was checked, if it was one."""

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
            "path": self.path and self.path.value,
            "value": None if self.value is None else str(self.value),
            "shape": self.shape and self.shape.value,
            "component": self.component and self.component.value,
            "graph": self.graph and self.graph.value,
            "source": self.source,
        }

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source is not None else ""
        text = f"{self.severity}: {where}{self.message}"
        if self.focus is not None:
            text += f"\n  node   {_shown(self.focus)}"
        if self.path is not None:
            text += f"\n  path   {curie(self.path.value)}"
        if self.value is not None and self.value != self.focus:
            text += f"\n  value  {_shown(self.value)}"
        if self.graph is not None:
            text += f"\n  graph  {self.graph.value}"
        if self.shape is not None:
            text += f"\n  shape  {curie(self.shape.value)}"
        return text


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one validation, and what was checked, in a few words."""

    checked: str
    violations: Sequence[Violation] = ()

    @property
    def conforms(self) -> bool:
        """Whether nothing found makes the data unfit; warnings do not."""
        return not any(violation.blocks for violation in self.violations)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "conforms": self.conforms,
            "checked": self.checked,
            "results": [violation.to_dict() for violation in self.violations],
        }

    def turtle(self) -> str:
        """Return it as a ``sh:ValidationReport`` in Turtle."""
        return report_turtle(self.violations)

    def __str__(self) -> str:
        count = Counter(violation.severity for violation in self.violations)
        found = ", ".join(f"{count[severity]} {severity.lower()}{'s' * (count[severity] != 1)}" for severity in count)
        verdict = "conforms" if self.conforms else "does not conform"
        return "\n".join([*map(str, self.violations), f"{self.checked}: {verdict} ({found or 'nothing found'})"])


def report_turtle(violations: Iterable[Violation]) -> str:
    """Return a ``sh:ValidationReport`` in Turtle."""
    output = BytesIO()
    serialize(report_triples(violations), output, RdfFormat.TURTLE, prefixes=PREFIXES)
    return output.getvalue().decode()


def report_triples(violations: Iterable[Violation]) -> list[Triple]:
    """Return a ``sh:ValidationReport``."""
    violations = list(violations)
    report = BlankNode()
    conforms = not any(violation.blocks for violation in violations)
    triples = [
        Triple(report, RDF.type, SH.ValidationReport),
        Triple(report, SH.conforms, RdfLiteral(str(conforms).lower(), datatype=XSD.boolean)),
    ]
    for violation in violations:
        result = BlankNode()
        triples += [
            Triple(report, SH.result, result),
            Triple(result, RDF.type, SH.ValidationResult),
            Triple(result, SH.resultSeverity, SH[violation.severity]),
            Triple(result, SH.resultMessage, RdfLiteral(violation.message)),
        ]
        triples += [
            Triple(result, predicate, term)
            for predicate, term in (
                (SH.focusNode, violation.focus),
                (SH.resultPath, violation.path),
                (SH.value, violation.value),
                (SH.sourceShape, violation.shape),
                (SH.sourceConstraintComponent, violation.component),
            )
            if term is not None
        ]
    return triples


def _shown(term: Term) -> str:
    text = str(term)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + f"... ({len(text)} characters)"
