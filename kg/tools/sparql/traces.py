"""Traces of the counts and absences of a query result: the SPARQL that lists the evidence of each."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.notes import NoteText
from kg.retrieval.token_budget import Lean
from kg.sparql.measured_schema import Schema
from kg.sparql.parser import parse
from kg.sparql.terms import bind
from kg.sparql.tracing import MOST_CHARACTERS, Absence, Count, Row, find_absences, find_counts

_MOST_GRAPHS: Final = 10
_ALL: Final = "all graphs"
_EXISTS: Final = "ASK { GRAPH $graph {} }"


class Trace(Lean):
    """The evidence of a count or an absence."""

    of: str = Field(description="Column and aggregate, or the pattern that was not found")
    sparql: str | None = Field(None, description="Lists the counted rows; of an absence: has no rows")
    reason: NoteText | None = Field(None, description="Why there is no such query")


def build_traces(query: str, row: Row) -> list[Trace]:
    """Build the traces of a row of the result of `query`: of its counts, then of the patterns that were not found."""
    if len(query) > MOST_CHARACTERS:
        return []
    counts = [count for count in find_counts(query) if row.get(count.column) is not None]
    return [
        *(_build_trace(f"?{count.column} {count.expression}", count, row) for count in counts),
        *(_build_trace(absence.pattern, absence, row) for absence in find_absences(query)),
    ]


def _build_trace(name: str, traced: Count | Absence, row: Row) -> Trace:
    try:
        return Trace(of=name, sparql=traced.compile(row))
    except InvalidInputError as error:
        return Trace(of=name, reason=str(error))


def find_searched(kg: KnowledgeGraph, query: str, schema: Schema, generation: int) -> dict[str, int] | None:
    """Count the graphs that `query` searched: those that it names (0: unknown), else all with content, by family.

    Returns None if it searched another generation than the newest, or is not understood.
    """
    parsed = parse(query)
    if parsed is None or generation != kg.store.statistics().generation:
        return None
    named = list(dict.fromkeys(node.value for node in parsed.graphs if node.kind == "iri"))
    if named and (parsed.dataset or all(pattern.graph in parsed.graphs for pattern in parsed.patterns)):
        return {name: _exists(kg, name) for name in named[:_MOST_GRAPHS]}
    if schema.generation != generation or not schema.holdings:
        return {_ALL: kg.store.statistics().graphs}
    return {name: family.graphs for name, family in sorted(schema.holdings.items()) if family.graphs}


def _exists(kg: KnowledgeGraph, graph: str) -> int:
    return int(kg.query(bind(_EXISTS, graph=NamedNode(graph)), all_graphs=True).result is True)
