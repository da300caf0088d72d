"""Why a statement is in the graph, as explanations and as a chain from it to claims, words, files and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import pyoxigraph
from pyoxigraph import BlankNode, NamedNode, RdfFormat
from pyoxigraph import Literal as Text
from pyoxigraph import Triple as QuotedTriple

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.claims import Claim, Review, Words
from kg.provenance.explanation import Explanation, Source, explain_iri, explain_triple
from kg.retrieval.reader import Reader
from kg.sparql.terms import bind
from kg.text import quoted
from kg.vocabulary import BASE, KG

NodeKind = Literal["statement", "graph", "claim", "rule", "review", "words", "text", "file", "run", "person"]

STATED: Final = """
SELECT ?subject ?predicate ?object WHERE {
  { $claim rdf:subject ?subject ; rdf:predicate ?predicate ; rdf:object ?object }
  UNION { $claim oa:hasSource ?subject ; kg:object ?object BIND($mentions AS ?predicate) }
} LIMIT 1"""

WORDS_SHOWN: Final = 160
"""Characters of a label."""

_GRAPHS: Final = BASE + "graph/"

Triple = tuple[NamedNode, NamedNode, NamedNode | Text]


@dataclass(frozen=True, slots=True)
class ChainNode:
    """A step of a chain."""

    id: str
    kind: NodeKind
    label: str
    iri: str | None = None
    """The IRI that its page shows."""
    detail: str = ""
    span: tuple[int, int] | None = None
    """Of words: their place in the text `iri`."""
    good: bool | None = None
    """Of words: whether the stored text has them. Of a claim or review: whether it supports the statement."""


@dataclass(frozen=True, slots=True)
class ChainEdge:
    """A relation between two steps, from the statement to its sources."""

    source: str
    target: str
    label: str


@dataclass(slots=True)
class Chain:
    """The steps between a statement and its sources, each once."""

    nodes: dict[str, ChainNode] = field(default_factory=dict)
    edges: dict[tuple[str, str], ChainEdge] = field(default_factory=dict)

    def add(self, node: ChainNode, above: str | None = None, label: str = "") -> str:
        """Add a step below another one, and return its id."""
        self.nodes.setdefault(node.id, node)
        if above is not None and above != node.id:
            self.edges.setdefault((above, node.id), ChainEdge(above, node.id, label))
        return node.id


def parse_triple(texts: Sequence[str]) -> Triple:
    """Parse three N-Triples terms. Raises InvalidInputError."""
    try:
        (quad,) = pyoxigraph.parse(" ".join(texts) + " .", RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as error:
        raise InvalidInputError(f"{quoted(' '.join(texts))} is not one triple in N-Triples: {error}.") from None
    subject, predicate, value = quad.subject, quad.predicate, quad.object
    if isinstance(subject, BlankNode | QuotedTriple) or isinstance(value, BlankNode | QuotedTriple):
        raise InvalidInputError("A triple to explain must not contain blank nodes or triple terms.")
    return subject, predicate, value


def explain(kg: KnowledgeGraph, about: NamedNode | Triple) -> list[Explanation]:
    """Explain an IRI or a triple, graph by graph, also graphs of users. Raises NotFoundError."""
    return explain_iri(kg.ask, about) if isinstance(about, NamedNode) else explain_triple(kg.ask, *about)


def load_statement(kg: KnowledgeGraph, claim: NamedNode) -> Triple | None:
    """Load the triple that a claim states, or that a mention is evidence of. None for other nodes."""
    rows = Reader(kg).rows("what it states", bind(STATED, claim=claim, mentions=KG.mentions), all_graphs=True)
    for row in rows:
        subject, predicate, value = row["subject"], row["predicate"], row["object"]
        if isinstance(subject, NamedNode) and isinstance(predicate, NamedNode) and isinstance(value, NamedNode | Text):
            return subject, predicate, value
    return None


def build_chain(explanations: Sequence[Explanation], about: str, iri: str | None) -> Chain:
    """Build the chain of explanations of `about`, which is described in words and has the page of `iri`."""
    chain = Chain()
    root = chain.add(ChainNode("about", "statement", _cut(about), iri))
    for each in explanations:
        _add_explanation(chain, root, each)
    return chain


def _add_explanation(chain: Chain, root: str, each: Explanation) -> None:
    graph = chain.add(
        ChainNode(f"graph {each.graph}", "graph", each.graph.removeprefix(BASE), each.graph, each.kind),
        root,
        "in graph",
    )
    for claim in each.claims:
        _add_claim(chain, graph, claim)
    if each.rule is not None:
        label = each.rule.label or each.rule.iri.rpartition("/")[2]
        chain.add(ChainNode(f"rule {each.rule.iri}", "rule", _cut(label), each.rule.iri), graph, "computed by")
    for words in each.words:
        _add_words(chain, graph, words)
    for review in each.reviews:
        _add_review(chain, graph, review)
    if each.run is not None:
        _add_run(chain, graph, each.run, each.agent, each.agent_version, each.loaded_at)
    _add_sources(chain, graph, each.sources)
    for ceded in each.also_stated:
        chain.add(
            ChainNode(f"user {ceded.by}", "person", ", ".join(ceded.sent_by) or "a user", ceded.by),
            root,
            "also said by",
        )


def _add_claim(chain: Chain, above: str, claim: Claim) -> None:
    sure = "" if claim.confidence is None else f"confidence {claim.confidence:g}"
    facts = ", ".join(fact for fact in (sure, claim.method, "" if claim.live else "does not count") if fact)
    label = (
        f"{claim.method or 'claim'}, {claim.confidence:g}" if claim.confidence is not None else claim.method or "claim"
    )
    node = chain.add(
        ChainNode(f"claim {claim.iri}", "claim", label, claim.iri, facts, good=claim.live), above, "from claim"
    )
    for words in claim.words:
        _add_words(chain, node, words, claim.sources)
    if not claim.words:
        _add_sources(chain, node, claim.sources)
    for review in claim.reviews:
        _add_review(chain, node, review)
    if claim.run is not None:
        _add_run(chain, node, claim.run, claim.agent, claim.agent_version, claim.extracted_at)


def _add_words(chain: Chain, above: str, words: Words, sources: Sequence[Source] = ()) -> None:
    place = f"characters {words.start}–{words.end}"
    node = chain.add(
        ChainNode(
            f"words {words.unit} {words.start} {words.end}",
            "words",
            f"“{_cut(words.text)}”" if words.text else place,
            words.unit,
            place,
            (words.start, words.end),
            words.verified,
        ),
        above,
        "in words",
    )
    _add_sources(chain, node, sources)


def _add_review(chain: Chain, above: str, review: Review) -> None:
    by = ", ".join(review.by) or "somebody"
    node = ChainNode(
        f"review {above} {review.verdict} {review.graph} {by}",
        "review",
        f"{review.verdict} by {by}",
        review.graph,
        good=review.verdict == "accepted",
    )
    chain.add(node, above, "reviewed")


def _add_run(chain: Chain, above: str, run: str, agent: str | None, version: str | None, at: str | None) -> None:
    name = " ".join(part for part in (agent, version) if part) or "a run"
    chain.add(ChainNode(f"run {run}", "run", name, run, at or ""), above, "written by")


def _add_sources(chain: Chain, above: str, sources: Sequence[Source]) -> None:
    for source in sources:
        location = source.locations[0] if source.locations else ""
        if location.startswith(_GRAPHS):
            node = chain.add(
                ChainNode(f"graph {location}", "graph", location.removeprefix(_GRAPHS), location),
                above,
                "computed from",
            )
            _add_sources(chain, node, source.origin)
            continue
        place = _place_of(source)
        name = location.rpartition("/")[2] or location or "a file at an unknown location"
        node = chain.add(
            ChainNode(f"file {source.sha256} {place}", "file", ", ".join(filter(None, (name, place))), None, location),
            above,
            "read from",
        )
        if source.sent_by:
            chain.add(ChainNode(f"person {source.sent_by}", "person", source.sent_by), node, "sent by")


def _place_of(source: Source) -> str:
    """Word the place in a file: its row, lines or pages."""
    if source.row is not None:
        return f"row {source.row:,}"
    if source.lines is not None:
        return f"lines {source.lines}"
    if source.pages is not None:
        return f"pages {source.pages}"
    return f"rows {source.rows}" if source.rows is not None and len(source.rows) < 20 else ""


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WORDS_SHOWN else line[:WORDS_SHOWN].rstrip() + "…"
