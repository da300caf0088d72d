"""A quad that follows from claims or rules is explained down to the words, the file and the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import Explanation, explain_iri, explain_triple
from kg.store.protocol import select, term_text
from kg.tools import commands
from kg.tools.claims.review import REVIEWS, review_claim
from kg.vocabulary import KG, SCHEMA, SKOS
from tests.conftest import load_once
from tests.folders import open_graph

EDGES = """
SELECT ?s ?p ?o ?g WHERE {
  GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), "https://w3id.org/quadcite/graph/der/promote/"))
} ORDER BY ?s ?p ?o"""

UNPROMOTED = """
SELECT ?claim ?s ?p ?o WHERE {
  ?claim a kg:CrossReference ; rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o ; kg:confidence ?c FILTER(?c < 0.7)
} LIMIT 1"""


@pytest.fixture
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = load_once(tmp_path_factory, "zoning")
    with open_graph(folder) as opened:
        yield opened


def first_edge(kg: KnowledgeGraph) -> tuple[NamedNode, NamedNode, NamedNode]:
    row = next(iter(select(kg.store.query, EDGES)))
    assert isinstance(row["s"], NamedNode)
    assert isinstance(row["p"], NamedNode)
    assert isinstance(row["o"], NamedNode)
    return row["s"], row["p"], row["o"]


def text_of(kg: KnowledgeGraph, unit: str) -> str:
    [row] = select(kg.store.query, f"SELECT ?text WHERE {{ <{unit}> schema:text ?text }}")
    return term_text(row["text"])


def check_chain(kg: KnowledgeGraph, why: Explanation, file: str) -> None:
    """Check that each claim has its words in the stored text, and the text its file."""
    assert why.claims
    for claim in why.claims:
        assert claim.graph.startswith("https://w3id.org/quadcite/graph/ext/")
        assert claim.confidence is not None
        assert claim.method
        assert claim.run
        assert claim.agent
        for words in claim.words:
            assert words.verified
            assert text_of(kg, words.unit)[words.start : words.end] == words.text
        assert all(source.sha256 and source.locations for source in claim.sources)
        assert any(location.endswith(file) for source in claim.sources for location in source.locations)
        # A source in JSON has neither rows nor lines.
        assert all(source.row or source.lines or source.locations[0].endswith(".json") for source in claim.sources)


def test_every_promoted_edge_is_explained_by_rule_claims_words_and_file(code: KnowledgeGraph) -> None:
    rows = list(select(code.store.query, EDGES))
    assert rows
    for row in rows:
        [why] = explain_triple(code.store.query, row["s"], row["p"], row["o"])  # type: ignore[arg-type]
        assert (why.kind, why.rule is not None and why.rule.iri.endswith("/promote@1")) == ("derived", True)
        assert why.rule is not None
        assert why.rule.threshold == "0.7"
        assert all(claim.live and claim.words for claim in why.claims)
        check_chain(code, why, ".json" if "upper-feign" in why.about else ".html")


def test_the_command_prints_the_chain_of_an_edge(code: KnowledgeGraph) -> None:
    found = commands.why(code, triple=[str(term) for term in first_edge(code)])
    [claim] = found["explanations"][0]["claims"]
    assert claim["words"][0]["verified"] is True
    for part in (claim["iri"], claim["words"][0]["text"], claim["sources"][0]["sha256"], "promote@1", "verified"):
        assert part in found["text"]


def test_an_accepted_claim_names_the_review_and_a_rejected_one_does_not_count(code: KnowledgeGraph) -> None:
    row = next(iter(select(code.store.query, UNPROMOTED)), None)
    if row is None:
        claim, edge = explain_triple(code.store.query, *first_edge(code))[0].claims[0].iri, first_edge(code)
    else:
        claim, edge = term_text(row["claim"]), (row["s"], row["p"], row["o"])  # type: ignore[assignment]
    review_claim(code, claim, "accept")
    [why] = explain_triple(code.store.query, *edge)
    [found] = why.claims
    assert [(review.verdict, review.graph) for review in found.reviews] == [("accepted", REVIEWS.value)]
    assert found.reviews[0].by
    assert found.live
    review_claim(code, claim, "reject")
    [node] = explain_iri(code.store.query, NamedNode(claim))
    assert [each.live for each in node.claims] == [False]
    assert {review.verdict for review in node.claims[0].reviews} == {"accepted", "rejected"}
    assert "does not count" in str(node)


def test_words_that_the_stored_text_does_not_have_are_not_verified(code: KnowledgeGraph) -> None:
    edge = first_edge(code)
    [why] = explain_triple(code.store.query, *edge)
    unit, graph = why.claims[0].words[0].unit, NamedNode(why.claims[0].words[0].graph or "")
    kept = [quad for quad in code.store.graph(graph) if quad.predicate != SCHEMA.text or quad.subject.value != unit]  # type: ignore[union-attr]
    code.store.commit({graph: [*kept, Quad(NamedNode(unit), SCHEMA.text, Literal("Other words."), graph)]})
    [again] = explain_triple(code.store.query, *edge)
    assert [words.verified for words in again.claims[0].words] == [False]
    assert "DIFFERS" in str(again)


def test_a_mention_is_explained_by_its_words_and_row(fixtures: KnowledgeGraph) -> None:
    query = "SELECT ?s ?o WHERE { ?s kg:mentions ?o } ORDER BY ?s LIMIT 5"
    rows = list(select(fixtures.store.query, query))
    assert len(rows) == 5
    for row in rows:
        [why] = explain_triple(fixtures.store.query, row["s"], KG.mentions, row["o"])  # type: ignore[arg-type]
        assert why.kind == "extracted"
        assert all(claim.live and claim.match_type for claim in why.claims)
        [source] = {source for claim in why.claims for source in claim.sources}
        assert source.row is not None
        check_chain(fixtures, why, source.locations[0].rpartition("/")[2])
        [node] = explain_iri(fixtures.store.query, NamedNode(why.claims[0].iri))
        assert node.claims == why.claims[:1]


def derived_graph(kg: KnowledgeGraph, family: str) -> NamedNode:
    prefix = f"https://w3id.org/quadcite/graph/der/{family}/"
    query = f'SELECT ?g WHERE {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(STRSTARTS(STR(?g), "{prefix}")) }} ORDER BY ?g LIMIT 1'
    [row] = select(kg.store.query, query)
    assert isinstance(row["g"], NamedNode)
    return row["g"]


def test_a_view_of_a_concept_is_explained_by_its_rule_and_the_file_behind_it(fixtures: KnowledgeGraph) -> None:
    graph = derived_graph(fixtures, "skos")
    label = next(quad for quad in fixtures.store.graph(graph) if quad.predicate == SKOS.prefLabel)
    [why] = explain_triple(fixtures.store.query, *label.triple)  # type: ignore[arg-type]
    assert why.rule is not None
    assert why.rule.iri.endswith("/skos@1")
    [source] = why.sources
    assert "/graph/src/" in source.locations[0]
    assert source.origin[0].locations[0].endswith("concepts.json")
    assert why.claims == ()


def test_a_membership_is_explained_by_its_rule_and_all_its_speeches(parliament: KnowledgeGraph) -> None:
    graphs = [graph for graph in parliament.store.graphs() if "/graph/der/membership/" in graph.value]
    assert graphs
    for graph in graphs:
        [why] = explain_iri(parliament.store.query, graph)[-1:]
        assert why.rule is not None
        assert why.rule.iri.endswith("/membership@1")
        assert why.sources
        assert all(source.origin and source.origin[0].sha256 for source in why.sources)
        assert all(source.origin[0].locations[0] in str(why) for source in why.sources)
