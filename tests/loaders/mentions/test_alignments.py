"""Land uses, topics and definitions that have the name of a concept are aligned with it, by claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg import bundle
from kg.access.actors import HOLDER
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.sparql.terms import bind
from kg.store.protocol import select, term_text
from kg.tools.claims.review import REVIEWS
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, KG, RDF, SKOS, mint
from kg.words import singular
from loaders.mentions.graph.refresh import refresh
from loaders.sources import load

CLAIMS = """
SELECT ?claim ?subject ?predicate ?object ?confidence WHERE {
  ?claim a kg:Alignment ; rdf:subject ?subject ; rdf:predicate ?predicate ; rdf:object ?object ;
    kg:confidence ?confidence
}"""

EDGES = """
SELECT ?subject ?object WHERE { { ?subject skos:closeMatch ?object } UNION { ?subject kg:definesConcept ?object } }"""

ALLOWED_BY_LAW_AND_CODE = """
SELECT DISTINCT ?use ?level ?title WHERE {
  ?permission kg:landUse ?u ; kg:permissionLevel ?level . ?u skos:prefLabel ?use ; skos:closeMatch ?concept .
  ?passage a kg:Passage ; kg:mentions ?concept ; dcterms:isPartOf ?document . ?document dcterms:title ?title
}"""

DEFINED_TWICE = """
SELECT DISTINCT ?concept ?theirs ?ours WHERE {
  ?definition kg:definesConcept ?concept ; skos:definition ?ours . ?concept skos:definition ?theirs
}"""

DEBATED = """
SELECT DISTINCT ?speech ?concept WHERE {
  ?speech dcterms:subject ?words . ?topic kg:topicAsRecorded ?words ; skos:closeMatch ?concept
}"""

TOWN = mint("municipality", "us-ut-nowhere")


def put_use(kg: KnowledgeGraph, name: str, town: NamedNode = TOWN) -> NamedNode:
    use = mint("landuse", town.value.rpartition("/")[2], name.casefold())
    graph = mint("graph", "ref", "landuse", town.value.rpartition("/")[2], name.casefold())
    put(kg, graph, (use, RDF.type, KG.LandUse), (use, SKOS.prefLabel, Literal(name)), (use, KG.jurisdiction, town))
    # A shared graph is kept while a record refers to it.
    source = mint("graph", "src", "zoning", "us-ut-nowhere", name)
    put(kg, source, (mint("permission", name), KG.landUse, use))
    return use


def put_concept(kg: KnowledgeGraph, qid: str, *names: tuple[NamedNode, str, str]) -> NamedNode:
    concept, graph = mint("concept", qid), mint("graph", "der", "skos", "climate", qid)
    said = [(concept, kind, Literal(name, language=language)) for kind, name, language in names]
    put(kg, graph, *([(concept, RDF.type, SKOS.Concept), *said] if names else ()))
    return concept


def put(kg: KnowledgeGraph, graph: NamedNode, *triples: tuple[Any, NamedNode, Any]) -> None:
    kg.store.commit({graph: [Quad(*triple, graph) for triple in triples]})


def claims(kg: KnowledgeGraph) -> dict[tuple[str, str], float]:
    return {
        (name_of(row["subject"]), name_of(row["object"])): float(term_text(row["confidence"]))
        for row in select(kg.store.query, bind(CLAIMS))
    }


def edges(kg: KnowledgeGraph) -> set[tuple[str, str]]:
    return {(name_of(row["subject"]), name_of(row["object"])) for row in select(kg.store.query, bind(EDGES))}


def name_of(term: object) -> str:
    return term_text(term).rpartition("/")[2]  # type: ignore[arg-type]


def test_names_in_the_language_of_the_place_align_and_no_others(kg: KnowledgeGraph) -> None:
    for name in ("Four", "Solar farms", "Boats", "Boat sales"):
        put_use(kg, name)
    put_concept(kg, "Q1", (SKOS.prefLabel, "four", "tr"))
    put_concept(kg, "Q2", (SKOS.prefLabel, "solar plant", "en"), (SKOS.altLabel, "solar farm", "en"))
    put_concept(kg, "Q3", (SKOS.prefLabel, "boat", "en"))
    refresh(kg)
    assert claims(kg) == {("solar%20farms", "Q2"): 0.85, ("boats", "Q3"): 0.95}
    assert edges(kg) == set(claims(kg))


def test_name_of_several_concepts_of_a_wikibase_waits_for_a_person(kg: KnowledgeGraph) -> None:
    put_use(kg, "Bank")
    put_concept(kg, "Q1", (SKOS.prefLabel, "bank", "en"))
    refresh(kg)
    assert edges(kg) == {("bank", "Q1")}
    put_concept(kg, "Q2", (SKOS.altLabel, "bank", "en"))
    refresh(kg)
    assert claims(kg) == {("bank", "Q1"): 0.5, ("bank", "Q2"): 0.5}
    assert edges(kg) == set()
    rows = select(kg.store.query, bind(CLAIMS))
    verdicts = {name_of(row["object"]): row["claim"] for row in rows}
    UserGraphs(kg).post(REVIEWS, [Triple(REVIEWS, KG.accepts, verdicts["Q1"])], HOLDER)
    assert edges(kg) == {("bank", "Q1")}
    refresh(kg, full=True)
    assert edges(kg) == {("bank", "Q1")}


def test_rejected_alignment_stays_rejected(kg: KnowledgeGraph) -> None:
    put_use(kg, "Bank")
    put_concept(kg, "Q1", (SKOS.prefLabel, "bank", "en"))
    refresh(kg)
    [row] = select(kg.store.query, bind(CLAIMS))
    UserGraphs(kg).post(REVIEWS, [Triple(REVIEWS, KG.rejects, row["claim"])], HOLDER)
    assert edges(kg) == set()
    put_use(kg, "Boat")
    put_concept(kg, "Q2", (SKOS.prefLabel, "boat", "en"))
    refresh(kg)
    assert edges(kg) == {("boat", "Q2")}


def test_a_full_search_repairs_what_is_wrong_and_alignments_go_with_their_concept(kg: KnowledgeGraph) -> None:
    put_use(kg, "Boat")
    put_concept(kg, "Q1", (SKOS.prefLabel, "boat", "en"))
    refresh(kg)
    generation = kg.store.statistics().generation
    assert refresh(kg, full=True).quads_added == 0
    assert kg.store.statistics().generation == generation
    graph = mint("graph", "ext", "alignment", "municipality", "us-ut-nowhere")
    right = kg.store.graph(graph)
    kg.store.commit({graph: right[:1]})
    refresh(kg, full=True)
    assert set(kg.store.graph(graph)) == set(right)
    put_concept(kg, "Q1")
    refresh(kg)
    assert claims(kg) == {}


def test_topic_has_the_words_of_its_documents(kg: KnowledgeGraph) -> None:
    graph = mint("graph", "src", "hansard", "s1")
    speech, place = mint("speech", "s1"), mint("place", "AUS")
    words = [(speech, DCTERMS.subject, Literal(name)) for name in ("tidal_power", "Tidal Power", "Nothing")]
    put(kg, graph, (speech, RDF.type, KG.Speech), (speech, KG.jurisdiction, place), *words)
    put_concept(kg, "Q1", (SKOS.prefLabel, "tidal power", "en"))
    refresh(kg)
    assert claims(kg) == {("tidal%20power", "Q1"): 0.95}
    assert [name_of(row["concept"]) for row in select(kg.store.query, bind(DEBATED))] == ["Q1"]


def test_topics_of_policies_align_in_english_whatever_the_place(kg: KnowledgeGraph) -> None:
    graph, document = mint("graph", "src", "climate", "d1"), mint("document", "d1")
    said = [(KG.sector, "Tidal power"), (KG.keyword, "four"), (KG.hazard, "Tidal power"), (KG.instrument, "boats")]
    put(
        kg, graph, (document, RDF.type, KG.PolicyDocument), (document, KG.jurisdiction, mint("place", "TUR")),
        *((document, predicate, Literal(words)) for predicate, words in said),
    )  # fmt: skip
    put_concept(kg, "Q1", (SKOS.prefLabel, "tidal power", "en"))
    put_concept(kg, "Q2", (SKOS.prefLabel, "four", "tr"))
    put_concept(kg, "Q3", (SKOS.altLabel, "boat", "en"))
    refresh(kg)
    assert claims(kg) == {("tidal%20power", "Q1"): 0.95, ("boats", "Q3"): 0.85}
    assert edges(kg) == set(claims(kg))


def test_words_of_users_are_not_aligned(kg: KnowledgeGraph) -> None:
    use, graph = mint("landuse", "us-ut-nowhere", "boat"), mint("graph", "user", "mine")
    put(kg, graph, (use, RDF.type, KG.LandUse), (use, SKOS.prefLabel, Literal("Boat")), (use, KG.jurisdiction, TOWN))
    put_concept(kg, "Q1", (SKOS.prefLabel, "boat", "en"))
    refresh(kg)
    assert claims(kg) == {}


@pytest.fixture
def everything(kg: KnowledgeGraph) -> KnowledgeGraph:
    for source in ("climate", "hansard", "zoning"):
        load(kg, source, [str(bundle.folder("fixtures") / source)])
    load(kg, "wikibase", [str(bundle.folder("fixtures") / "wikibase")], base="climate")
    return kg


def test_questions_over_all_domains_have_answers_on_the_fixtures(everything: KnowledgeGraph) -> None:
    kg = everything
    assert {name_of(row["concept"]) for row in select(kg.store.query, bind(DEFINED_TWICE))} == {
        "Q1064",
        "Q1065",
        "Q1068",
    }
    assert {"Q1009", "Q1046"} <= {name_of(row["concept"]) for row in select(kg.store.query, bind(DEBATED))}
    [row, *_] = select(kg.store.query, bind(EDGES))
    predicate = KG.definesConcept if "/definition/" in term_text(row["subject"]) else SKOS.closeMatch
    [why] = explain_triple(kg.store.query, row["subject"], predicate, row["object"])  # type: ignore[arg-type]
    assert [(claim.confidence, claim.method) for claim in why.claims] == [(0.95, "label-equality")]
    # A law of the fixtures mentions forests: a code with that use joins it.
    put_use(kg, "Forests")
    refresh(kg)
    put(
        kg,
        mint("graph", "src", "zoning", "us-ut-nowhere", "table"),
        (mint("permission", "1"), KG.landUse, mint("landuse", "us-ut-nowhere", "forests")),
        (mint("permission", "1"), KG.permissionLevel, mint("code", "permissionLevel", "byRight")),
    )
    assert select(kg.store.query, bind(ALLOWED_BY_LAW_AND_CODE)).rows


def test_names_that_align_in_real_data_are_equal_but_for_their_number(everything: KnowledgeGraph, shared: Path) -> None:
    kg = everything
    folder = shared / "data" / "zoning"
    load(kg, "zoning", [str(folder / "spanish-fork")], municipality="Nowhere", state="UT")
    rows = select(
        kg.store.query,
        bind("""
        SELECT ?thing ?own ?concept WHERE {
          { ?thing skos:closeMatch ?concept } UNION { ?thing kg:definesConcept ?concept }
          ?thing skos:prefLabel ?own
        }"""),
    )
    assert len(rows) > 3
    for row in rows:
        names = select(
            kg.store.query,
            bind("SELECT ?name WHERE { $concept skos:prefLabel|skos:altLabel ?name FILTER(LANG(?name) = 'en') }",
                 concept=row["concept"]),  # type: ignore[arg-type]
        )  # fmt: skip
        assert plain(term_text(row["own"])) in {plain(term_text(each["name"])) for each in names}


def plain(name: str) -> str:
    return " ".join(singular(word) for word in name.casefold().replace("-", " ").split())
