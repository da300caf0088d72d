"""Memberships of chambers and parties, as far as speeches show them: graphs derived in the commit of the speeches.

A membership lasts from the first to the last day on which the person spoke there, and links to the two speeches. Only
these two are compared when more speeches are added; all of a person's speeches are read again only when speeches are
removed or replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select, term_text
from kg.vocabulary import BASE, DCTERMS, KG, ORG, PROV, RDF, SOURCED, XSD, mint
from loaders.model import find_quads

MEMBERSHIP: Final = Rule("membership", "1", "who spoke in which chamber and for which party, first and last")

OUTERMOST: Final = """
SELECT DISTINCT ?person ?organization ?date ?speech ?graph WHERE {
  VALUES ?person { $persons }
  ?membership org:member ?person ; org:organization ?organization ; prov:wasDerivedFrom ?speech .
  GRAPH ?graph { ?speech dcterms:date ?date }
}"""

ALL: Final = """
SELECT DISTINCT ?person ?organization ?date ?speech ?graph WHERE {
  VALUES ?person { $persons }
  GRAPH ?graph { ?speech kg:speaker ?person ; dcterms:date ?date ; kg:chamber|kg:party ?organization }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

HEARD: Final = """
SELECT DISTINCT ?person WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?speech kg:speaker ?person ; dcterms:date ?date }
}"""

_READ: Final = frozenset((KG.chamber, KG.party, KG.speaker, DCTERMS.date))


class Sighting(NamedTuple):
    """A speech that shows a membership of its speaker. Ordered by day."""

    date: str
    speech: str
    graph: NamedNode


Sightings = dict[NamedNode, dict[NamedNode, list[Sighting]]]
"""By person and organization."""


class Memberships:
    """The memberships that speeches below ``graph/src/{domain}/`` show."""

    def __init__(self, domain: str) -> None:
        self.sources: Final = f"{SOURCED}{domain}/"

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Return the membership graphs that change with a commit of speeches, one per person, each with its sources."""
        graphs = [graph for graph in replace if graph.value.startswith(self.sources)]
        seen: Sightings = defaultdict(lambda: defaultdict(list))
        for graph in graphs:
            _collect(seen, replace[graph], graph)
        before = {named_node(row["person"]) for row in select(store.query_sources, bind(HEARD, graphs=graphs))}
        queries = (
            bind(ALL, persons=list(before), prefix=Literal(self.sources)),
            bind(OUTERMOST, persons=list(seen.keys() - before)),
        )
        for row in chain.from_iterable(select(store.query_sources, query) for query in queries):
            if (graph := named_node(row["graph"])) not in replace:
                sighting = Sighting(term_text(row["date"]), named_node(row["speech"]).value, graph)
                seen[named_node(row["person"])][named_node(row["organization"])].append(sighting)
        return {_graph_of(person): _written(person, seen.get(person, {})) for person in {*before, *seen}}


def _collect(seen: Sightings, quads: Iterable[Quad], graph: NamedNode) -> None:
    """Add the sightings in the speeches among `quads`."""
    speakers: dict[object, NamedNode] = {}
    days: dict[object, str] = {}
    places: list[tuple[NamedNode, NamedNode]] = []
    for subject, predicate, value, _ in find_quads(quads, _READ):
        if predicate == KG.speaker:
            speakers[subject] = value
        elif predicate == DCTERMS.date:
            days[subject] = value.value
        else:
            places.append((subject, value))
    for speech, organization in places:
        if speech in speakers and speech in days:
            seen[speakers[speech]][organization].append(Sighting(days[speech], speech.value, graph))


def _written(person: NamedNode, seen: Mapping[NamedNode, Sequence[Sighting]]) -> tuple[Sequence[Quad], RecordOrigin]:
    graph, key = _graph_of(person), _key(person)
    quads: list[Quad] = []
    sources: dict[str, NamedNode] = {}
    for organization, sightings in seen.items():
        first, last = min(sightings), max(sightings)
        node = mint("membership", key, *organization.value.removeprefix(f"{BASE}id/").split("/"))
        quads += [
            Quad(node, RDF.type, ORG.Membership, graph),
            Quad(node, ORG.member, person, graph),
            Quad(node, ORG.organization, organization, graph),
            Quad(node, KG.firstSeen, Literal(first.date, datatype=XSD.date), graph),
            Quad(node, KG.lastSeen, Literal(last.date, datatype=XSD.date), graph),
            *(Quad(node, PROV.wasDerivedFrom, NamedNode(iri), graph) for iri in {first.speech, last.speech}),
        ]
        sources |= {each.graph.value: each.graph for each in (first, last)}
    return quads, RecordOrigin("", (), [sources[name] for name in sorted(sources)], MEMBERSHIP)


def _key(person: NamedNode) -> str:
    return unquote(person.value.rpartition("/")[2])


def _graph_of(person: NamedNode) -> NamedNode:
    return mint("graph", "der", "membership", _key(person))
