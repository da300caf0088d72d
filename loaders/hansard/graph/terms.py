"""The terms of members that stored registers list: read for the graphs that depend on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode, Quad

from kg.partial_dates import Period, find_period
from kg.store.protocol import Store, Term, named_node, select, term_text
from kg.vocabulary import BASE, KG, ORG, SCHEMA, SOURCED
from loaders.model import find_quads

REGISTERED: Final = f"{SOURCED}members/"
"""The graphs of the records of registers."""
_CHAMBER: Final = f"{BASE}id/chamber/"
_PARTY: Final = f"{BASE}id/party/"
_READ: Final = frozenset(
    (
        ORG.member,
        ORG.organization,
        SCHEMA.startDate,
        SCHEMA.endDate,
        KG.memberAsRecorded,
        KG.represents,
        KG.representedState,
    )
)

TERMS: Final = """
SELECT ?graph ?term ?property ?value WHERE {
  ?term schema:startDate ?start
  GRAPH ?graph { ?term ?property ?value }
  FILTER(?property IN (org:member, org:organization, schema:startDate, schema:endDate, kg:memberAsRecorded,
                       kg:represents, kg:representedState))
}"""


@dataclass(frozen=True, slots=True)
class RegisteredTerm:
    """A term in a chamber, with the parties of the same record."""

    person: NamedNode
    chamber: NamedNode
    period: Period
    names: Sequence[str]
    parties: Sequence[NamedNode]
    area: NamedNode | None
    state: NamedNode | None
    graph: NamedNode

    def covers(self, day: str) -> bool:
        """Whether the term certainly includes `day`: not if its first or last date is only a year that includes it."""
        return self.period.covers(day)

    def may_cover(self, day: str) -> bool:
        """Whether the term may include `day`."""
        return self.period.may_cover(day)


def is_registered(graph: NamedNode) -> bool:
    """Whether `graph` is a record of a register."""
    return graph.value.startswith(REGISTERED)


def load_terms(store: Store) -> list[RegisteredTerm]:
    """Load the terms of all stored registers."""
    by_graph: dict[NamedNode, list[tuple[Term, NamedNode, Term]]] = defaultdict(list)
    for row in select(store.query_sources, TERMS):
        if is_registered(graph := named_node(row["graph"])):
            by_graph[graph].append((row["term"], named_node(row["property"]), row["value"]))
    return [term for graph, said in by_graph.items() for term in _build_terms(graph, said)]


def find_terms(graph: NamedNode, quads: Iterable[Quad]) -> Sequence[RegisteredTerm]:
    """Find the terms among the quads of a record of a register."""
    return _build_terms(graph, [(quad.subject, quad.predicate, quad.object) for quad in find_quads(quads, _READ)])


def _build_terms(graph: NamedNode, said: Iterable[tuple[Term, NamedNode, Term]]) -> list[RegisteredTerm]:
    nodes: dict[Term, Mapping[NamedNode, list[Term]]] = defaultdict(lambda: defaultdict(list))
    for subject, name, value in said:
        nodes[subject][name].append(value)
    seats: list[Mapping[NamedNode, list[Term]]] = []
    parties: list[NamedNode] = []
    for values in nodes.values():
        organization = named_node(values[ORG.organization][0])
        if organization.value.startswith(_CHAMBER):
            seats.append(values)
        elif organization.value.startswith(_PARTY):
            parties.append(organization)
    return [
        RegisteredTerm(
            named_node(values[ORG.member][0]),
            named_node(values[ORG.organization][0]),
            find_period(
                term_text(values[SCHEMA.startDate][0]),
                term_text(values[SCHEMA.endDate][0]) if values[SCHEMA.endDate] else None,
            ),
            tuple(sorted(map(term_text, values[KG.memberAsRecorded]))),
            tuple(sorted(parties, key=str)),
            _node(values[KG.represents]),
            _node(values[KG.representedState]),
            graph,
        )
        for values in seats
    ]


def _node(values: Sequence[Term]) -> NamedNode | None:
    return named_node(values[0]) if values else None


class Register:
    """The terms of all stored registers, as after the commits of one load."""

    def __init__(self) -> None:
        self.terms: list[RegisteredTerm] = []
        self._by_person: dict[NamedNode, list[RegisteredTerm]] = {}
        self._is_loaded = False

    def update(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Collection[RegisteredTerm]:
        """Update the terms to those after a commit; return those that come, go or change."""
        graphs = [graph for graph in replace if is_registered(graph)]
        if self._is_loaded and not graphs:
            return ()
        if not self._is_loaded:
            self.terms, self._is_loaded = load_terms(store), True
        before = {term for term in self.terms if term.graph in replace} if graphs else set()
        after = [term for graph in graphs for term in find_terms(graph, replace[graph])]
        self.terms = [*(term for term in self.terms if term.graph not in replace), *after]
        self._by_person = defaultdict(list)
        for term in self.terms:
            self._by_person[term.person].append(term)
        return before ^ set(after)

    def find(self, person: NamedNode, chamber: NamedNode, day: str) -> Sequence[RegisteredTerm]:
        """Find the terms of a person in a chamber on a day."""
        terms = self._by_person.get(person, ())
        return [term for term in terms if term.chamber == chamber and term.covers(day)]
