"""Names that are similar to those of concepts are proposed as alignments, which only a person can accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyoxigraph import Literal, Store, Triple

from kg.access.actors import HOLDER
from kg.errors import InvalidInputError, ModelError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.provenance.promotion import THRESHOLD
from kg.retrieval.text_vectors import word_vectors
from kg.search.protocol import IndexStatus
from kg.shacl.data_graph import DataGraph
from kg.shacl.shapes import Shapes
from kg.sparql.terms import bind
from kg.store.protocol import select, term_text
from kg.tools.claims.review import REVIEWS
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, KG, RDF, SKOS, mint
from loaders.mentions.graph.proposals import CONFIDENCE, METHOD, ProposalReport, propose_alignments
from loaders.mentions.graph.refresh import refresh
from tests.loaders.mentions.test_alignments import claims, edges, name_of, put, put_concept, put_use

MODEL = "words/1024"
CLAIM = """
SELECT ?claim ?similarity ?model ?confidence ?method ?graph WHERE {
  GRAPH ?graph {
    ?claim kg:similarity ?similarity ; kg:model ?model ; kg:confidence ?confidence ; kg:method ?method
  }
}"""


class SharedWords:
    """A search index whose embeddings count shared words."""

    def __init__(self, search: Any, model: str | None = MODEL) -> None:
        self.search = search
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.search, name)

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        return None if self.model is None else word_vectors(texts).tolist()

    def status(self) -> IndexStatus:
        return replace(self.search.status(), model=f"{self.model or 'none'},the-second-one")


@pytest.fixture
def graph(kg: KnowledgeGraph) -> KnowledgeGraph:
    kg.search = SharedWords(kg.search)  # type: ignore[assignment]
    put_use(kg, "Tidal power plant")
    put_concept(kg, "Q1", (SKOS.prefLabel, "tidal power", "en"))
    refresh(kg)
    return kg


def propose(kg: KnowledgeGraph, least: float = 0.7) -> ProposalReport:
    return propose_alignments(kg, least=least)


def review(kg: KnowledgeGraph, verdict: Any) -> None:
    [row] = select(kg.store.query, bind(CLAIM))
    UserGraphs(kg).post(REVIEWS, [Triple(REVIEWS, verdict, row["claim"])], HOLDER)


def test_similar_name_is_proposed_with_its_score_model_and_rule(graph: KnowledgeGraph) -> None:
    assert claims(graph) == {}
    report = propose(graph)
    assert (report.proposals, report.names, report.concepts, report.model) == (1, 1, 1, MODEL)
    [row] = select(graph.store.query, bind(CLAIM))
    assert (term_text(row["similarity"]), term_text(row["model"]), term_text(row["method"])) == ("0.816", MODEL, METHOD)
    assert term_text(row["graph"]).endswith("graph/ext/proposal/municipality/us-ut-nowhere")
    assert claims(graph) == {("tidal%20power%20plant", "Q1"): float(CONFIDENCE)}
    again = propose(graph)
    assert (again.quads_added, again.quads_removed) == (0, 0)


@pytest.mark.parametrize("least", [0.0, 0.8])
def test_proposal_of_any_similarity_is_promoted_by_no_load(graph: KnowledgeGraph, least: float) -> None:
    put_use(graph, "Power tidal")  # the same words: a similarity of 1
    propose(graph, least)
    refresh(graph, full=True)
    assert float(CONFIDENCE) < THRESHOLD
    assert edges(graph) == set()
    assert len(claims(graph)) == 2


def test_name_of_a_concept_and_rejected_names_are_not_proposed(graph: KnowledgeGraph) -> None:
    put_use(graph, "Power station")
    put_use(graph, "Tidal pool")
    put_concept(graph, "Q2", (SKOS.prefLabel, "power station", "en"), (SKOS.prefLabel, "station", "fr"))
    put_concept(graph, "Q3", (SKOS.prefLabel, "tidal basin pool", "en"), (KG.negativeLabel, "tidal pool", "en"))
    refresh(graph)
    propose(graph)
    assert claims(graph) == {("power%20station", "Q2"): 0.95, ("tidal%20power%20plant", "Q1"): 0.5}


def test_names_and_concepts_in_other_languages_are_not_compared(kg: KnowledgeGraph) -> None:
    kg.search = SharedWords(kg.search)  # type: ignore[assignment]
    put_use(kg, "Tidal power plant")
    put_concept(kg, "Q1", (SKOS.prefLabel, "tidal power", "tr"))
    propose(kg)
    assert claims(kg) == {}


def test_accepted_proposal_is_an_edge_and_stays_one(graph: KnowledgeGraph) -> None:
    propose(graph)
    review(graph, KG.accepts)
    assert edges(graph) == {("tidal%20power%20plant", "Q1")}
    propose(graph, least=0.99)
    refresh(graph, full=True)
    assert edges(graph) == {("tidal%20power%20plant", "Q1")}
    [why] = explain_triple(
        graph.store.query, mint("landuse", "us-ut-nowhere", "tidal power plant"), SKOS.closeMatch, mint("concept", "Q1")
    )
    [claim] = why.claims
    assert (claim.method, claim.live, [found.verdict for found in claim.reviews]) == (METHOD, True, ["accepted"])
    assert claim.reviews[0].by


def test_rejected_proposal_never_becomes_an_edge(graph: KnowledgeGraph) -> None:
    propose(graph)
    review(graph, KG.rejects)
    propose(graph)
    review(graph, KG.accepts)
    propose(graph, least=0.0)
    assert edges(graph) == set()


def test_proposal_ends_with_its_name_or_concept(graph: KnowledgeGraph) -> None:
    propose(graph)
    put(graph, mint("graph", "src", "zoning", "us-ut-nowhere", "Tidal power plant"))
    refresh(graph)
    assert claims(graph) == {}
    assert not [name for name in graph.store.graphs() if "landuse" in name.value or "proposal" in name.value]
    put_use(graph, "Tidal power plant")
    refresh(graph)
    propose(graph)
    assert len(claims(graph)) == 1
    put_concept(graph, "Q1")
    refresh(graph)
    assert claims(graph) == {}


def test_exact_name_takes_the_place_of_proposals_even_accepted_ones(graph: KnowledgeGraph) -> None:
    propose(graph)
    review(graph, KG.accepts)
    put_concept(graph, "Q1", (SKOS.prefLabel, "tidal power", "en"), (SKOS.altLabel, "tidal power plant", "en"))
    refresh(graph)
    assert claims(graph) == {("tidal%20power%20plant", "Q1"): 0.85}
    assert edges(graph) == {("tidal%20power%20plant", "Q1")}
    promoted = [
        quad for name in graph.store.graphs() for quad in graph.store.graph(name) if quad.predicate == SKOS.closeMatch
    ]
    assert len(promoted) == 1


def test_topic_of_a_proposal_is_described_once(graph: KnowledgeGraph) -> None:
    home, document = mint("graph", "src", "climate", "d1"), mint("document", "d1")
    put(graph, home, (document, RDF.type, KG.PolicyDocument), (document, KG.keyword, Literal("Tidal power plants")))
    speech = mint("speech", "s1")
    put(
        graph, mint("graph", "src", "hansard", "s1"), (speech, RDF.type, KG.Speech),
        (speech, KG.jurisdiction, mint("place", "AUS")), (speech, DCTERMS.subject, Literal("tidal_power_plants")),
    )  # fmt: skip
    refresh(graph)
    propose(graph)
    topic = mint("code", "topic", "tidal power plants")
    query = bind("SELECT ?graph ?words WHERE { GRAPH ?graph { $topic kg:topicAsRecorded ?words } }", topic=topic)
    rows = list(select(graph.store.query, query))
    assert sorted(term_text(row["words"]) for row in rows) == ["Tidal power plants", "tidal_power_plants"]
    assert {name_of(row["graph"]) for row in rows} == {"topics"}
    put_concept(graph, "Q2", (SKOS.prefLabel, "tidal power plant", "en"))
    refresh(graph)
    assert {term_text(row["graph"]).split("/")[-2] for row in select(graph.store.query, query)} == {"alignment"}


def test_proposals_need_a_model_whose_threshold_is_known(graph: KnowledgeGraph) -> None:
    with pytest.raises(InvalidInputError, match=MODEL):
        propose_alignments(graph)
    graph.search.model = None  # type: ignore[attr-defined]
    with pytest.raises(ModelError):
        propose(graph)
    assert claims(graph) == {}


def test_store_with_proposals_conforms_to_its_shapes(graph: KnowledgeGraph) -> None:
    propose(graph)
    with graph.store.snapshot(graph.store.statistics().generation) as snapshot:
        found = Shapes.load_dataset().validate(DataGraph.from_store(Store.read_only(str(snapshot.path))))
    assert [each.message for each in found if "lignment" in each.message] == []
