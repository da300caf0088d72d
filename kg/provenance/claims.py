"""The claims behind a triple: their confidence, method, reviews, and the words in the text that they rest on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, NamedNode

from kg.provenance.promotion import is_promoted, parse_confidence
from kg.provenance.reader import Records, first_text, load_description, load_run
from kg.provenance.superclasses import is_premise
from kg.sparql.terms import bind
from kg.store.ownership import CURATED
from kg.store.protocol import Query, Term, named_node, select, term_text
from kg.vocabulary import EXTRACTED, KG, OA, PROV, RDF, RDFS, SOURCED, curie

if TYPE_CHECKING:
    from kg.provenance.explanation import Source

MAX_CLAIMS: Final = 50
"""Maximum claims of one triple. Truncation is reported."""
MAX_SPANS: Final = 10
"""Maximum spans of text of one node."""

CLAIMS_OF: Final = """
SELECT DISTINCT ?claim ?graph WHERE {
  GRAPH ?graph { ?claim rdf:subject $subject ; rdf:predicate $predicate ; rdf:object $object }
  FILTER(STRSTARTS(STR(?graph), $prefix))
} ORDER BY ?graph ?claim LIMIT $most"""

MENTIONS_OF: Final = """
SELECT DISTINCT ?claim ?graph WHERE {
  GRAPH ?graph { ?claim oa:hasSource $subject ; kg:object $object ; kg:matchType ?type }
  FILTER(STRSTARTS(STR(?graph), $prefix))
} ORDER BY ?graph ?claim LIMIT $most"""

ABOUT: Final = """
SELECT ?property ?value WHERE {
  GRAPH $graph { $node ?property ?value }
  FILTER(?property IN (
    rdf:subject, rdf:predicate, rdf:object, kg:confidence, kg:method, kg:matchType, kg:start, kg:end, oa:hasSource
  ))
}"""

SPANS: Final = """
SELECT DISTINCT ?unit ?start ?end ?words WHERE {
  GRAPH $graph { $node kg:evidence ?span . ?span oa:hasSource ?unit ; kg:start ?start ; kg:end ?end ; oa:exact ?words }
} ORDER BY ?unit ?start ?end LIMIT $most"""

TEXT: Final = """
SELECT ?graph ?text WHERE { GRAPH ?graph { $unit schema:text ?text } }"""

# What agrees where a document or a family is a law.
AGREEING: Final = """
SELECT DISTINCT ?thing ?property ?value ?graph WHERE {
  VALUES (?thing ?property) {
    ($subject dcterms:title) ($subject kg:jurisdiction) ($subject eli:date_document)
    ($law dcterms:identifier) ($law kg:jurisdiction)
  }
  GRAPH ?graph { ?thing ?property ?value }
}"""

REVIEWS: Final = """
SELECT DISTINCT ?graph ?verdict ?agent WHERE {
  GRAPH ?graph { ?review ?verdict $claim }
  FILTER(?verdict IN (kg:accepts, kg:rejects) && STRSTARTS(STR(?graph), $prefix))
  OPTIONAL { GRAPH ?graph { ?review prov:wasAttributedTo ?agent } }
} ORDER BY ?graph ?verdict ?agent"""


@dataclass(frozen=True, slots=True)
class Words:
    """Words that a statement was extracted from: the code points `start` to `end` of the text of `unit`."""

    unit: str
    start: int
    end: int
    text: str
    """The words as recorded with the statement; those of the stored text if none are recorded."""
    verified: bool | None
    """Whether the stored text has these words at these offsets; None if no text of `unit` is stored."""
    graph: str | None
    """The graph that contains the text."""

    def __str__(self) -> str:
        state = {True: "verified", False: "THE STORED TEXT DIFFERS", None: "no text is stored"}[self.verified]
        return f"{self.text} ({self.start}-{self.end} of {self.unit}: {state})"


@dataclass(frozen=True, slots=True)
class Review:
    """A verdict of a person on a claim."""

    verdict: str
    """``accepted`` or ``rejected``."""
    graph: str
    by: tuple[str, ...]
    """Who gave it; everybody who wrote to that graph, if it does not say that."""

    def __str__(self) -> str:
        return f"{self.verdict} in {self.graph} by {', '.join(self.by) or 'unknown'}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement extracted from text, and whether its triple is an edge because of it."""

    iri: str
    graph: str
    confidence: float | None
    method: str | None
    match_type: str | None
    """For a mention: whether the label or an alias matched."""
    live: bool
    """Whether it supports the edge: not rejected, and accepted or of sufficient confidence. A mention always does."""
    reviews: tuple[Review, ...]
    words: tuple[Words, ...]
    premises: tuple[str, ...] = ()
    """For a law that a document or family is: the statements that agree, each with its graph."""
    run: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    extracted_at: str | None = None
    """End of the run."""
    sources: tuple[Source, ...] = ()
    """The files of the text."""


def load_claims_of(
    query: Query, subject: NamedNode, predicate: NamedNode, object_: NamedNode | Literal
) -> tuple[list[Claim], bool]:
    """Load the claims that state a triple, at most `MAX_CLAIMS`, and whether there are more.

    For ``kg:mentions`` the claims are the mentions.
    """
    asked = build_claims_query(subject, predicate, object_)
    found = [(named_node(row["claim"]), named_node(row["graph"])) for row in select(query, asked)]
    expect_claims(query, found[:MAX_CLAIMS])
    claims = [load_claim(query, claim, graph) for claim, graph in found[:MAX_CLAIMS]]
    return [claim for claim in claims if claim is not None], len(found) > MAX_CLAIMS


def build_claims_query(subject: NamedNode, predicate: NamedNode, object_: NamedNode | Literal) -> str:
    """Build the query for the claims that state a triple."""
    # One more than are returned, which shows whether there are more.
    terms = {"subject": subject, "object": object_, "prefix": Literal(EXTRACTED), "most": MAX_CLAIMS + 1}
    if predicate == KG.mentions:
        return bind(MENTIONS_OF, **terms)
    return bind(CLAIMS_OF, predicate=predicate, **terms)


def expect_claims(query: Query, claims: Sequence[tuple[NamedNode, NamedNode]]) -> None:
    """Load in few requests what `load_claim` reads of nodes, each given with its graph, if `query` keeps it."""
    if not isinstance(query, Records) or not claims:
        return
    query.load({graph for _, graph in claims})
    asked = [build_queries(node, graph) for node, graph in claims]
    query.run(text for texts in asked for text in texts)
    units = {named_node(row["unit"]) for _, spans, _ in asked for row in select(query, spans)}
    units |= {
        named_node(row["value"])
        for about, _, _ in asked
        for row in select(query, about)
        if row["property"] == OA.hasSource
    }
    query.run(bind(TEXT, unit=unit) for unit in sorted(units, key=str))


def build_queries(node: NamedNode, graph: NamedNode) -> tuple[str, str, str]:
    """Build the queries for the properties, the words and the reviews of a node of a graph."""
    return (
        bind(ABOUT, node=node, graph=graph),
        bind(SPANS, node=node, graph=graph, most=MAX_SPANS),
        bind(REVIEWS, claim=node, prefix=Literal(CURATED)),
    )


def load_claim(query: Query, node: NamedNode, graph: NamedNode) -> Claim | None:
    """Load the claim or mention `node` of `graph`, without its sources. None for other nodes and other graphs."""
    if not graph.value.startswith(EXTRACTED):
        return None
    said: defaultdict[NamedNode, list[Term]] = defaultdict(list)
    for row in select(query, bind(ABOUT, node=node, graph=graph)):
        said[named_node(row["property"])].append(row["value"])
    is_mention = KG.matchType in said and OA.hasSource in said
    if not is_mention and RDF.predicate not in said:
        return None
    described = load_description(query, graph)
    # The method and confidence of mentions are those of their graph.
    confidence = next(iter([*said[KG.confidence], *described[KG.confidence]]), None)
    method = first_text(said, KG.method) or first_text(described, KG.method)
    reviews = load_reviews(query, node)
    verdicts = {review.verdict for review in reviews}
    run = load_run(query, described)
    return Claim(
        iri=node.value,
        graph=graph.value,
        confidence=None if confidence is None else float(parse_confidence(confidence)),
        method=method,
        match_type=first_text(said, KG.matchType),
        live=is_mention or is_promoted(confidence, accepted="accepted" in verdicts, rejected="rejected" in verdicts),
        reviews=reviews,
        words=_load_mentioned(query, said) if is_mention else load_words(query, node, graph),
        premises=_load_agreeing(query, said) if KG.isLaw in said[RDF.predicate] else (),
        run=run.iri,
        agent=run.agent,
        agent_version=run.agent_version,
        extracted_at=first_text(run.description, PROV.endedAtTime),
    )


def load_words(query: Query, node: NamedNode, graph: NamedNode) -> tuple[Words, ...]:
    """Load the words that `node` of `graph` rests on, at most `MAX_SPANS`, compared with the stored text."""
    texts: dict[NamedNode, tuple[NamedNode, str] | None] = {}
    found = []
    for row in select(query, bind(SPANS, node=node, graph=graph, most=MAX_SPANS)):
        unit, words = named_node(row["unit"]), term_text(row["words"])
        start, end = int(term_text(row["start"])), int(term_text(row["end"]))
        if unit not in texts:
            texts[unit] = load_text(query, unit)
        text = texts[unit]
        verified = None if text is None else 0 <= start < end and text[1][start:end] == words
        found.append(Words(unit.value, start, end, words, verified, None if text is None else text[0].value))
    return tuple(found)


def load_text(query: Query, unit: NamedNode) -> tuple[NamedNode, str] | None:
    """Load the text of `unit` with its graph: that of a source if there is one."""
    rows = [(named_node(row["graph"]), term_text(row["text"])) for row in select(query, bind(TEXT, unit=unit))]
    return min(rows, key=lambda row: (not row[0].value.startswith(SOURCED), row[0].value), default=None)


def _load_mentioned(query: Query, said: Mapping[NamedNode, list[Term]]) -> tuple[Words, ...]:
    """Load the words of a mention, which records offsets only."""
    start, end = (int(first_text(said, name) or 0) for name in (KG.start, KG.end))
    unit = named_node(said[OA.hasSource][0])
    text = load_text(query, unit)
    if text is None:
        return (Words(unit.value, start, end, "", None, None),)
    return (Words(unit.value, start, end, text[1][start:end], 0 <= start < end <= len(text[1]), text[0].value),)


def _load_agreeing(query: Query, said: Mapping[NamedNode, list[Term]]) -> tuple[str, ...]:
    """Load the statements from which it follows that a document or family is a law."""
    subject, law = named_node(said[RDF.subject][0]), named_node(said[RDF.object][0])
    found = {
        f"{row['thing']} {curie(named_node(row['property']).value)} {row['value']} in {named_node(row['graph']).value}"
        for row in select(query, bind(AGREEING, subject=subject, law=law))
        if is_premise(row["graph"])
    }
    return tuple(sorted(found))


def load_reviews(query: Query, claim: NamedNode) -> tuple[Review, ...]:
    """Load the reviews of a claim or a finding."""
    found = []
    for row in select(query, bind(REVIEWS, claim=claim, prefix=Literal(CURATED))):
        graph = named_node(row["graph"])
        verdict = "accepted" if row["verdict"] == KG.accepts else "rejected"
        found.append(Review(verdict, graph.value, _load_reviewers(query, graph, row.get("agent"))))
    return tuple(found)


def _load_reviewers(query: Query, graph: NamedNode, agent: Term | None) -> tuple[str, ...]:
    if agent is None:
        return load_writers(query, graph)
    return (first_text(load_description(query, named_node(agent)), RDFS.label) or named_node(agent).value,)


def load_writers(query: Query, graph: NamedNode) -> tuple[str, ...]:
    """Load the names of everybody whose write is in `graph`, sorted."""
    names: set[str] = set()
    for run in load_description(query, graph)[PROV.wasGeneratedBy]:
        for agent in load_description(query, named_node(run))[PROV.wasAssociatedWith]:
            names.add(first_text(load_description(query, named_node(agent)), RDFS.label) or named_node(agent).value)
    return tuple(sorted(names))
