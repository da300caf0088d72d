"""The states of members of the House, which records give as electorates: graphs derived in the commit of the speeches.

Each sitting day has one graph, with ``kg:state`` of the speeches for which the electorate determines it on that day
(`loaders.hansard.electorates`). A speech with a recorded state has none there. Neither has a speaker who is recorded on
that day for electorates in several states: one of them is an error of the record, and which one is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select, term_text
from kg.vocabulary import DCTERMS, KG, SOURCED, XSD, mint
from loaders.hansard.electorates import find_state
from loaders.model import find_quads

SEAT: Final = Rule("seat", "1", "the state of the electorate that a speaker sat for on that day")

DAYS: Final = """
SELECT DISTINCT ?date WHERE {
  VALUES ?graph { $graphs } GRAPH ?graph { ?speech kg:electorate ?electorate ; dcterms:date ?date }
}"""

SEATS: Final = """
SELECT DISTINCT ?speech ?graph ?date ?electorate ?person ?state WHERE {
  VALUES ?date { $dates }
  GRAPH ?graph {
    ?speech dcterms:date ?date ; kg:electorate ?electorate
    OPTIONAL { ?speech kg:speaker ?person }
    OPTIONAL { ?speech kg:state ?state }
  }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

_READ: Final = frozenset((DCTERMS.date, KG.electorate, KG.speaker, KG.state))


class _Seat(NamedTuple):
    """The electorate of a speech, as recorded."""

    speech: str
    graph: NamedNode
    electorate: str
    person: str | None
    has_state: bool


class Seats:
    """The states of the speakers in the speeches below ``graph/src/{domain}/``."""

    def __init__(self, domain: str) -> None:
        self.sources: Final = f"{SOURCED}{domain}/"

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Return the graphs of the days whose speeches change with a commit, each with its sources."""
        graphs = [graph for graph in replace if graph.value.startswith(self.sources)]
        by_day: dict[str, list[_Seat]] = defaultdict(list)
        for graph in graphs:
            _collect(by_day, replace[graph], graph)
        before = (term_text(row["date"]) for row in select(store.query, bind(DAYS, graphs=graphs)))
        days = sorted({*by_day, *before})
        if not days:
            return {}
        dates = [Literal(day, datatype=XSD.date) for day in days]
        for row in select(store.query, bind(SEATS, dates=dates, prefix=Literal(self.sources))):
            if (graph := named_node(row["graph"])) not in replace:
                person = named_node(row["person"]).value if "person" in row else None
                electorate, speech = named_node(row["electorate"]).value, named_node(row["speech"]).value
                seat = _Seat(speech, graph, electorate, person, "state" in row)
                by_day[term_text(row["date"])].append(seat)
        return {_graph_of(day): _written(day, by_day[day]) for day in days}


def _collect(by_day: dict[str, list[_Seat]], quads: Iterable[Quad], graph: NamedNode) -> None:
    """Add the seats in the speeches among `quads`."""
    said: dict[NamedNode, dict[object, str]] = defaultdict(dict)
    for subject, predicate, value, _ in find_quads(quads, _READ):
        said[subject][predicate] = value.value
    for speech, values in said.items():
        electorate, day = values.get(KG.electorate), values.get(DCTERMS.date)
        if electorate is not None and day is not None:
            seat = _Seat(speech.value, graph, electorate, values.get(KG.speaker), KG.state in values)
            by_day[day].append(seat)


def _written(day: str, seats: Sequence[_Seat]) -> tuple[Sequence[Quad], RecordOrigin]:
    graph = _graph_of(day)
    states = {each: find_state(each.rpartition("/")[2], int(day[:4])) for each in {seat.electorate for seat in seats}}
    by_person: dict[str, set[NamedNode | None]] = defaultdict(set)
    for seat in seats:
        if seat.person is not None:
            by_person[seat.person].add(states[seat.electorate])
    quads: list[Quad] = []
    sources: dict[str, NamedNode] = {}
    for seat in sorted(seats, key=lambda seat: seat.speech):
        state = states[seat.electorate]
        if state is None or seat.has_state or (seat.person is not None and len(by_person[seat.person]) > 1):
            continue
        quads.append(Quad(NamedNode(seat.speech), KG.state, state, graph))
        sources[seat.graph.value] = seat.graph
    return quads, RecordOrigin("", (), [sources[name] for name in sorted(sources)], SEAT)


def _graph_of(day: str) -> NamedNode:
    return mint("graph", "der", "seat", day)
