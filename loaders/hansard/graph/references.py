"""The Hansard references of speeches and sittings whose source has none: graphs derived in the commit of the records.

A reference follows from chamber, date and page: ``House Hansard, 21 Oct 2024, p. 42``. Each sitting day has one graph
with ``kg:hansardReference`` of the records of that day that have none of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, named_node, select, term_text
from kg.vocabulary import BASE, DCTERMS, KG, RDF, SOURCED, XSD, mint
from loaders.hansard.speech_records import format_citation
from loaders.model import find_quads

REFERENCE: Final = Rule("citation", "1", "a Hansard reference from chamber, date and page, where the source has none")

DAYS: Final = """
SELECT DISTINCT ?date WHERE {
  VALUES ?graph { $graphs } GRAPH ?graph { ?record kg:chamber ?chamber ; dcterms:date ?date }
}"""

# One property per row: with OPTIONAL inside GRAPH the engine reads the whole store.
RECORDS: Final = """
SELECT DISTINCT ?record ?graph ?property ?value WHERE {
  VALUES ?date { $dates } GRAPH ?graph { ?record dcterms:date ?date ; kg:chamber ?chamber ; ?property ?value }
  FILTER(?property IN (rdf:type, dcterms:date, kg:chamber, kg:pageNumber, kg:hansardReference))
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

_AUSTRALIAN: Final = f"{BASE}id/chamber/au-"
_READ: Final = frozenset((RDF.type, DCTERMS.date, KG.chamber, KG.pageNumber, KG.hansardReference))
_REFERENCED: Final = frozenset((KG.Speech, KG.Sitting))


class _Record(NamedTuple):
    """A speech or sitting without a reference of its own."""

    iri: NamedNode
    graph: NamedNode
    reference: str


class References:
    """The references of the records below ``graph/src/{domain}/`` that have none."""

    def __init__(self, domain: str) -> None:
        self.sources: Final = f"{SOURCED}{domain}/"

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Return the graphs of the days whose records change with a commit, each with its sources."""
        graphs = [graph for graph in replace if graph.value.startswith(self.sources)]
        by_day: dict[str, list[_Record]] = defaultdict(list)
        days: set[str] = set()
        for graph in graphs:
            quads = find_quads(replace[graph], _READ)
            rows = ((quad.subject, quad.predicate, quad.object) for quad in quads)
            days |= _collect(by_day, graph, rows)
        days |= {term_text(row["date"]) for row in select(store.query_sources, bind(DAYS, graphs=graphs))}
        # A day whose records all have references needs no graph.
        days = {day for day in days if day in by_day or store.graph(_graph_of(day))}
        if not days:
            return {}
        dates = [Literal(day, datatype=XSD.date) for day in sorted(days)]
        others: dict[NamedNode, list[tuple[Term, Term, Term]]] = defaultdict(list)
        for row in select(store.query_sources, bind(RECORDS, dates=dates, prefix=Literal(self.sources))):
            if (graph := named_node(row["graph"])) not in replace:
                others[graph].append((row["record"], row["property"], row["value"]))
        for graph, said in others.items():
            _collect(by_day, graph, said)
        return {_graph_of(day): _written(day, by_day.get(day, ())) for day in sorted(days)}


def _collect(by_day: dict[str, list[_Record]], graph: NamedNode, said: Iterable[tuple[Term, Term, Term]]) -> set[str]:
    """Add the records of `graph` without a reference; return the days of all its records."""
    records: dict[Term, dict[Term, list[Term]]] = defaultdict(lambda: defaultdict(list))
    for subject, name, value in said:
        records[subject][name].append(value)
    days = set()
    for iri, values in records.items():
        if not values[DCTERMS.date] or not values[KG.chamber] or _REFERENCED.isdisjoint(values[RDF.type]):
            continue
        day = term_text(values[DCTERMS.date][0])
        days.add(day)
        if not values[KG.hansardReference]:
            paged = values[KG.pageNumber] and KG.Sitting not in values[RDF.type]  # a sitting has many pages
            page = term_text(values[KG.pageNumber][0]) if paged else None
            chamber = named_node(values[KG.chamber][0])
            if not chamber.value.startswith(_AUSTRALIAN):  # the citations of other parliaments have other forms
                continue
            text = format_citation(chamber, date.fromisoformat(day), page)
            by_day[day].append(_Record(named_node(iri), graph, text))
    return days


def _written(day: str, records: Sequence[_Record]) -> tuple[Sequence[Quad], RecordOrigin]:
    graph = _graph_of(day)
    quads = [Quad(record.iri, KG.hansardReference, Literal(record.reference), graph) for record in records]
    sources = sorted({record.graph for record in records}, key=lambda graph: graph.value)
    return quads, RecordOrigin("", (), sources, REFERENCE)


def _graph_of(day: str) -> NamedNode:
    return mint("graph", "der", "citation", day)
