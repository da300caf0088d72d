"""`kg:about` is inferred from mentions and alignments, complete, and follows every change of its premises."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad

from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.provenance.shipped import infer_graphs
from kg.provenance.topics import infer_all_topics
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import select
from kg.tools.search.related import related
from kg.user_graphs import UserGraphs
from kg.vocabulary import ABOUT_GRAPH, DERIVED, EXTRACTED, KG, RDF, SKOS, SOURCED, UNCOUNTED_GRAPHS, mint
from tests.folders import open_graph

ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))
ENERGY, RENEWABLE, SOLAR, ROOFTOP = (mint("concept", f"Q{number}") for number in (1020, 1009, 1010, 1016))

CLOSURE = """
SELECT DISTINCT ?unit ?concept WHERE {
  { ?unit kg:mentions ?own MINUS { ?own a kg:Entity } }
  UNION { ?definition kg:definedIn ?unit ; kg:definesConcept ?own }
  UNION { ?rule kg:definedIn ?unit ; kg:landUse/skos:closeMatch ?own }
  ?own skos:broader* ?concept
}"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OxigraphStore]:
    with OxigraphStore(tmp_path / "data", infer=infer_graphs) as opened:
        yield opened


def topics(store: OxigraphStore) -> set[tuple[str, str]]:
    found = store.graph(ABOUT_GRAPH)
    assert set(found) == set(infer_all_topics(store._opened()))
    return {(str(quad.subject), str(quad.object)) for quad in found}


def test_topics_equal_the_closure_computed_by_a_query(joined: KnowledgeGraph) -> None:
    wanted = {(str(row["unit"]), str(row["concept"])) for row in select(joined.store.query, CLOSURE)}
    stored = {(str(quad.subject), str(quad.object)) for quad in joined.store.graph(ABOUT_GRAPH)}
    assert len(wanted) > 100
    assert stored == wanted


def test_topics_are_a_graph_apart_from_content(joined: KnowledgeGraph) -> None:
    assert ABOUT_GRAPH in UNCOUNTED_GRAPHS
    counted = joined.store.statistics().quads
    inferred = len(joined.store.graph(ABOUT_GRAPH))
    assert inferred / counted < 0.12


def test_a_text_is_about_broader_concepts_and_why_shows_the_words(joined: KnowledgeGraph) -> None:
    unit = NamedNode("cpr://doc/fictional-rooftop-energy-act-2023_au01#p=2")
    [found] = explain_triple(joined.store.query, unit, KG.about, ENERGY)
    assert (found.graph, found.kind) == (ABOUT_GRAPH.value, "inferred")
    assert "about@1" in found.configuration["rule"]
    assert {words.text for claim in found.claims for words in claim.words} == {"renewable energy", "energy"}
    assert found.sources
    assert all(source.row is not None for claim in found.claims for source in claim.sources)


def test_related_finds_texts_on_a_narrower_concept(joined: KnowledgeGraph) -> None:
    """Texts that name rooftop solar only are on renewable energy too."""
    concept = "cpr://concept/Q1009"
    query = f"SELECT ?unit WHERE {{ ?unit kg:about <{concept}> ; a kg:CodeSection }}"
    named = f"SELECT ?unit WHERE {{ ?unit kg:mentions <{concept}> ; a kg:CodeSection }}"
    found = related(joined, concept, limit=20).totals
    assert found["zoning"] == len(select(joined.store.query, query)) >= len(select(joined.store.query, named))


def test_topics_follow_every_change_of_their_premises(store: OxigraphStore) -> None:
    """Random changes of mentions, hierarchy, alignments and rules: the graph equals a new inference over all data."""
    rng = random.Random(7)
    concepts = [mint("concept", f"Q{number}") for number in range(8)]
    units = [NamedNode(f"cpr://doc/x#p={number}") for number in range(5)]
    uses = [mint("landuse", "us-ut-x", f"use {number}") for number in range(3)]
    rules = [mint("permission", str(number)) for number in range(4)]
    mentions, skos = NamedNode(f"{EXTRACTED}mentions/climate/x"), NamedNode(f"{DERIVED}skos/climate/x")
    promoted, recorded = NamedNode(f"{DERIVED}promote/alignment/x"), NamedNode(f"{SOURCED}zoning/x/y")
    seen = set()
    for _ in range(120):
        graph = rng.choice([mentions, skos, promoted, recorded])
        quads = []
        for _ in range(rng.randrange(6)):
            first, second = rng.choice(concepts), rng.choice(concepts)
            unit, rule, use = rng.choice(units), rng.choice(rules), rng.choice(uses)
            quads += {
                mentions: [Quad(unit, KG.mentions, first, graph)],
                skos: [
                    Quad(first, rng.choice([SKOS.broader, SKOS.broader, SKOS.exactMatch]), second, graph),
                    Quad(second, RDF.type, SKOS.Concept, graph),
                ],
                promoted: [Quad(use, SKOS.closeMatch, first, graph), Quad(rule, KG.definesConcept, second, graph)],
                recorded: [Quad(rule, KG.definedIn, unit, graph), Quad(rule, KG.landUse, use, graph)],
            }[graph]
        store.commit({graph: quads})
        seen.add(len(topics(store)))
    assert len(seen) > 10


def test_a_commit_of_two_premises_is_inferred_once(store: OxigraphStore) -> None:
    mentions, skos = NamedNode(f"{EXTRACTED}mentions/climate/x"), NamedNode(f"{DERIVED}skos/climate/x")
    unit = NamedNode("cpr://doc/x#p=0")
    store.commit(
        {mentions: [Quad(unit, KG.mentions, SOLAR, mentions)], skos: [Quad(SOLAR, SKOS.broader, RENEWABLE, skos)]}
    )
    assert topics(store) == {(str(unit), str(SOLAR)), (str(unit), str(RENEWABLE))}
    store.commit({mentions: ()})
    assert topics(store) == set()


def test_nothing_is_about_what_people_write(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:
        notes, unit = mint("graph", "user", "notes"), NamedNode("cpr://doc/x#p=0")
        skos, mentions = NamedNode(f"{DERIVED}skos/climate/x"), NamedNode(f"{EXTRACTED}mentions/climate/x")
        text = f"INSERT DATA {{ GRAPH {notes} {{ {unit} {KG.mentions} {ROOFTOP} . {SOLAR} {SKOS.broader} {ENERGY} }} }}"
        UserGraphs(kg).update(text, (), (), ADA)
        assert kg.store.graph(ABOUT_GRAPH) == []
        kg.store.commit(
            {mentions: [Quad(unit, KG.mentions, SOLAR, mentions)], skos: [Quad(SOLAR, RDF.type, SKOS.Concept, skos)]}
        )
        assert [quad.object for quad in kg.store.graph(ABOUT_GRAPH)] == [SOLAR]


def test_a_store_without_topics_gets_them_at_open(tmp_path: Path) -> None:
    mentions, unit = NamedNode(f"{EXTRACTED}mentions/climate/x"), NamedNode("cpr://doc/x#p=0")
    with OxigraphStore(tmp_path / "data") as store:
        store.commit({mentions: [Quad(unit, KG.mentions, SOLAR, mentions)]})
    with open_graph(tmp_path / "data") as kg:
        assert kg.store.graph(ABOUT_GRAPH) == [Quad(unit, KG.about, SOLAR, ABOUT_GRAPH)]
