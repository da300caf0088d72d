"""Names that may be names of concepts: of land uses, definitions and topics, and the nodes of topics.

Topics are the subjects (``dcterms:subject``) of speeches and the sectors, keywords and other topics of policies, which
are plain words. One that is aligned gets a node, ``vocab/topic/{topic}``, whose ``kg:topicAsRecorded`` are those words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad

from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Store, select
from kg.vocabulary import BASE, KG, RDF, SKOS, SOURCED, mint
from loaders.languages.detection import UNDETERMINED
from loaders.languages.jurisdictions import find_language

DEFINITIONS: Final = """
SELECT ?thing ?name ?place ?graph WHERE {
  GRAPH ?graph { ?thing a kg:Definition ; skos:prefLabel ?name ; kg:jurisdiction ?place }
}"""

# Only uses that some rule is about: the claim itself must not keep the graph of a use that is otherwise unused.
LAND_USES: Final = """
SELECT DISTINCT ?thing ?name ?place ?graph WHERE {
  ?rule kg:landUse ?thing . GRAPH ?graph { ?thing a kg:LandUse ; skos:prefLabel ?name ; kg:jurisdiction ?place }
}"""

SUBJECTS: Final = """
SELECT DISTINCT ?name ?place ?graph WHERE {
  { SELECT DISTINCT ?name ?place (MIN(?home) AS ?graph) WHERE {
    GRAPH ?home { ?document dcterms:subject ?name ; kg:jurisdiction ?place }
    FILTER(STRSTARTS(STR(?home), $sources))
  } GROUP BY ?name ?place }
}"""

# Their publisher writes them in English, for documents of all countries.
POLICY_TOPICS: Final = """
SELECT ?name (MIN(?home) AS ?graph) WHERE {
  VALUES ?property { kg:sector kg:response kg:keyword kg:instrument kg:hazard kg:framework }
  GRAPH ?home { ?document ?property ?name }
  FILTER(STRSTARTS(STR(?home), $sources))
} GROUP BY ?name"""

_THINGS: Final = f"{BASE}id/"
_PUBLISHED_IN: Final = "en"
"""The language of the topics of policies, for documents in any language."""


class Named(NamedTuple):
    """A name that may be that of a concept: of a node, or the words of a topic (`thing` is None)."""

    name: str
    language: str
    place: NamedNode | None
    """The jurisdiction of a node, or of the documents of a topic; None for a topic of documents of any."""
    graph: NamedNode
    """The graph that states the name."""
    predicate: NamedNode
    thing: NamedNode | None = None

    @property
    def plain(self) -> str:
        """The name without underscores and surplus blanks."""
        return " ".join(self.name.replace("_", " ").split())

    @property
    def node(self) -> NamedNode:
        """The node that has the name, or that of the topic."""
        return self.thing or mint("code", "topic", self.plain.casefold())

    @property
    def unit(self) -> str:
        """The last part of the names of the graphs of its claims."""
        return "topics" if self.thing is None or self.place is None else self.place.value.removeprefix(_THINGS)


def load_named(store: Store) -> Iterator[Named]:
    """Load the names of land uses, definitions and topics, with their languages."""
    for query, predicate in ((LAND_USES, SKOS.closeMatch), (DEFINITIONS, KG.definesConcept)):
        for row in select(store.query, bind(query)):
            yield from _named(row, predicate)
    for query in (SUBJECTS, POLICY_TOPICS):
        for row in select(store.query, bind(query, sources=Literal(SOURCED))):
            yield from _named(row, SKOS.closeMatch)


def _named(row: Mapping[str, object], predicate: NamedNode) -> Iterator[Named]:
    name, place, graph, thing = row.get("name"), row.get("place"), row.get("graph"), row.get("thing")
    if not isinstance(name, Literal) or not isinstance(graph, NamedNode) or is_user_graph(graph):
        return
    if not isinstance(place, NamedNode | None) or not isinstance(thing, NamedNode | None):
        return
    language = name.language or (_PUBLISHED_IN if place is None else find_language(place) or UNDETERMINED)
    yield Named(name.value, language, place, graph, predicate, thing)


def describe_topic(each: Named, graph: NamedNode) -> Iterator[Quad]:
    """Yield the description of the node of a topic; none for other names, whose nodes their sources describe."""
    if each.thing is None:
        yield Quad(each.node, RDF.type, SKOS.Concept, graph)
        yield Quad(each.node, SKOS.inScheme, mint("code", "topic"), graph)
        language = None if each.language == UNDETERMINED else each.language
        yield Quad(each.node, SKOS.prefLabel, Literal(each.plain.casefold(), language=language), graph)
        yield Quad(each.node, KG.topicAsRecorded, Literal(each.name), graph)
