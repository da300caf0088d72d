"""The people who speak in each chamber, from when to when, under which names: read for graphs that depend on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, named_node, select, term_text
from kg.vocabulary import BASE, FOAF, KG, ORG, SKOS, mint

SPEAKERS: Final = """
SELECT ?graph ?person ?chamber ?first ?last WHERE {
  ?membership kg:firstSeen ?first
  GRAPH ?graph { ?membership org:member ?person ; org:organization ?chamber ; kg:lastSeen ?last }
  FILTER(STRSTARTS(STR(?chamber), $chambers))
}"""

NAMES: Final = """
SELECT ?person ?name WHERE { ?person kg:identityStatus ?status ; foaf:name|skos:altLabel ?name }"""

_CHAMBERS: Final = f"{BASE}id/chamber/"
_PEOPLE: Final = f"{BASE}graph/ref/person/"


class Seen(NamedTuple):
    """The first and the last day on which a person spoke in a chamber."""

    person: NamedNode
    chamber: NamedNode
    first: str
    last: str
    graph: NamedNode
    """The graph of the membership."""


class Speakers:
    """The people who spoke, as after the commits of one load. Read from the store when they are first needed."""

    def __init__(self) -> None:
        self.changed: dict[NamedNode, tuple[set[Seen], set[Seen], bool]] = {}
        """For each graph of memberships that changes in the current commit, or whose person gets other names: the
        memberships before and after it, and whether there are other names.
        """
        self._seen: dict[NamedNode, set[Seen]] | None = None
        self._names: dict[NamedNode, tuple[str, ...]] = {}
        self._commit: tuple[Store, Mapping[NamedNode, Sequence[Quad]], Derived] | None = None

    def update(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]], memberships: Derived) -> None:
        """Begin a commit that replaces these graphs and memberships."""
        self._commit = store, replace, memberships
        renamed = {mint("graph", "der", "membership", _key(graph)) for graph in replace if _is_person(graph)}
        self.changed = {}
        for graph in {*memberships, *renamed}:
            before = set(_find_seen(graph, store.graph(graph)))
            after = set(_find_seen(graph, memberships[graph][0])) if graph in memberships else before
            if graph in renamed or before != after:
                self.changed[graph] = before, after, graph in renamed
        if self._seen is not None:
            self._apply()

    @property
    def seen(self) -> Mapping[NamedNode, set[Seen]]:
        """By graph of memberships, as after the commit."""
        self._load()
        return self._seen or {}

    def names_of(self, person: NamedNode) -> tuple[str, ...]:
        """Return all names of a person, as after the commit."""
        self._load()
        return self._names.get(person, ())

    def _load(self) -> None:
        if self._seen is not None or self._commit is None:
            return
        store, _, _ = self._commit
        self._seen = defaultdict(set)
        for row in select(store.query_sources, bind(SPEAKERS, chambers=Literal(_CHAMBERS))):
            graph = named_node(row["graph"])
            first, last = term_text(row["first"]), term_text(row["last"])
            seen = Seen(named_node(row["person"]), named_node(row["chamber"]), first, last, graph)
            self._seen[graph].add(seen)
        names: dict[NamedNode, set[str]] = defaultdict(set)
        for row in select(store.query_sources, NAMES):
            names[named_node(row["person"])].add(term_text(row["name"]))
        self._names = {person: tuple(sorted(each)) for person, each in names.items()}
        self._apply()

    def _apply(self) -> None:
        """Apply the commit to the speakers, if they are loaded."""
        if self._seen is None or self._commit is None:
            return
        _, replace, _ = self._commit
        for graph, (_, after, _) in self.changed.items():
            self._seen[graph] = after
        for graph in filter(_is_person, replace):
            names: dict[NamedNode, set[str]] = defaultdict(set)
            for quad in replace[graph]:
                if quad.predicate in (FOAF.name, SKOS.altLabel):
                    names[named_node(quad.subject)].add(term_text(quad.object))
            self._names |= {person: tuple(sorted(each)) for person, each in names.items()}


def _is_person(graph: NamedNode) -> bool:
    return graph.value.startswith(_PEOPLE)


def _key(graph: NamedNode) -> str:
    return unquote(graph.value.rpartition("/")[2])


def _find_seen(graph: NamedNode, quads: Iterable[Quad]) -> Iterator[Seen]:
    """Find the memberships of chambers among the quads of a derived graph."""
    nodes: dict[Term, dict[NamedNode, Term]] = defaultdict(dict)
    for quad in quads:
        nodes[quad.subject][quad.predicate] = quad.object
    for said in nodes.values():
        if (organization := named_node(said[ORG.organization])).value.startswith(_CHAMBERS):
            first, last = term_text(said[KG.firstSeen]), term_text(said[KG.lastSeen])
            yield Seen(named_node(said[ORG.member]), organization, first, last, graph)
