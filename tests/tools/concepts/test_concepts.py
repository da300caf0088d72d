"""What the tools of the concept store promise: the right concept for a name or id, and every link of it once."""

from __future__ import annotations

import json
import time

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts, plain_id
from kg.tools.catalog.health import health
from kg.tools.catalog.resources import list_resources
from kg.tools.concepts.find import concept_find, concept_properties
from kg.tools.concepts.neighbors import EDGES_READ, concept_neighbors
from kg.vocabulary import KG, OWL, RDF, RDFS, SKOS, WIKIBASE, mint
from tests.tools.made_up import TOPICS, open_graph
from tests.tools.made_up import WIKIBASE as BASE

WIKIDATA = "http://www.wikidata.org/"
ENGLISH = "en"


@pytest.fixture
def topical(corpus) -> KnowledgeGraph:
    return open_graph(corpus, concepts=True)


def add(kg: KnowledgeGraph, *quads: Quad) -> None:
    kg.store.inner.extend(quads)
    kg.store.generation += 1


def entity(local: str, wikibase: str = BASE) -> NamedNode:
    return NamedNode(f"{wikibase}entity/{local}")


def item(qid: str, label: str, wikibase: str = WIKIDATA) -> list[Quad]:
    """An item of another Wikibase, which is a concept itself."""
    node, graph = NamedNode(f"{wikibase}entity/{qid}"), mint("graph", "src", "wikibase", "other", qid)
    return [
        Quad(node, RDF.type, WIKIBASE.Item, graph),
        Quad(node, RDF.type, SKOS.Concept, graph),
        Quad(node, SKOS.prefLabel, Literal(label, language=ENGLISH), graph),
    ]


@pytest.mark.parametrize(
    ("text", "qid", "matched"),
    [
        ("solar power", "Q1010", None),
        ("Solar Energy", "Q1010", "solar energy"),
        ("energia eolica", "Q1011", "energia eólica"),
        ("geothermel energy", "Q1012", None),
        ("PV", "Q1010", "PV"),
    ],
)
def test_a_concept_is_found_by_any_of_its_names(fixtures, text, qid, matched):
    found = concept_find(fixtures, q=text).concepts
    assert (found[0].qid, found[0].matched) == (qid, matched)
    assert found[0].score == max(concept.score or 0 for concept in found)


def test_a_concept_comes_with_its_names_definition_and_hierarchy(fixtures):
    [solar] = concept_find(fixtures, qid="Q1010").concepts
    assert solar.preferred_label == "solar power"
    assert {"solar energy", "energia solar"} <= set(solar.aliases)
    assert solar.description == "Electricity or heat from sunlight."
    assert [(link.qid, link.label) for link in solar.broader or ()] == [("Q1009", "renewable energy")]
    assert [(link.qid, link.label) for link in solar.narrower or ()] == [("Q1016", "rooftop solar")]


@pytest.mark.parametrize("q", ["Q1010", " cpr://concept/Q1010", f"<{BASE}entity/Q1010>"])
def test_an_id_in_place_of_a_name_is_taken_as_the_id(fixtures, q):
    [solar] = concept_find(fixtures, q=q).concepts
    assert (solar.preferred_label, solar.score) == ("solar power", None)


def test_a_prefixed_name_is_the_iri_that_it_stands_for():
    assert plain_id("wd:Q42") == "http://www.wikidata.org/entity/Q42"
    assert plain_id("skos://Q42") == "skos://Q42"
    assert plain_id("<cpr://concept/Q42>") == "cpr://concept/Q42"


def test_what_is_unknown_is_not_sent(fixtures):
    [shown] = json.loads(concept_find(fixtures, qid="Q1016").model_dump_json())["concepts"]
    assert not {"narrower", "instance_of", "matched", "score"} & shown.keys()


def test_pages_of_concepts_fit_together(fixtures):
    whole = [concept.qid for concept in concept_find(fixtures, q="energy", limit=50).concepts]
    assert len(whole) > 4
    pages, offset = [], 0
    while offset is not None:
        page = concept_find(fixtures, q="energy", limit=2, offset=offset)
        pages += [concept.qid for concept in page.concepts]
        offset = page.next_offset
    assert pages == whole


def test_what_an_item_is_comes_from_the_property_that_is_called_instance_of(topical):
    graph = mint("graph", "src", "wikibase", "climate", "P5")
    item_of = entity("P5")
    add(
        topical,
        Quad(item_of, RDF.type, WIKIBASE.Property, graph),
        Quad(item_of, RDFS.label, Literal("instance of", language=ENGLISH), graph),
        Quad(
            NamedNode(f"{BASE}entity/Q1010"),
            NamedNode(f"{BASE}prop/direct/P5"),
            NamedNode(f"{BASE}entity/Q1001"),
            graph,
        ),
    )
    [solar] = concept_find(topical, qid="Q1010").concepts
    assert [(link.qid, link.label) for link in solar.instance_of or ()] == [("Q1001", "climate topic")]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, InvalidInputError, "either q"),
        ({"q": "solar", "qid": "Q1010"}, InvalidInputError, "not both"),
        ({"qid": "P2"}, InvalidInputError, "P2 is a property, not an item"),
        ({"qid": f"{BASE}entity/P2"}, InvalidInputError, "P2 is a property, not an item"),
        ({"qid": "L7"}, InvalidInputError, "L7 is not an item"),
        ({"qid": "geothermal"}, InvalidInputError, r"Similar: Q1012 \('geothermal energy'\)"),
        ({"qid": "Q10110"}, NotFoundError, r"Similar: .*Q1011 \('wind power'\)"),
        ({"qid": "http://www.wikidata.org/entity/Q42"}, NotFoundError, "Unknown concept"),
        ({"qid": "wd:Q1010"}, NotFoundError, r"Similar: Q1010 \('solar power'\)"),
        ({"qid": '> } # "'}, InvalidInputError, "is not a QID"),
    ],
)
def test_an_error_names_what_would_be_valid(fixtures, arguments, error, says):
    with pytest.raises(error, match=says):
        concept_find(fixtures, **arguments)


def test_a_name_that_nothing_has_is_no_error_but_a_hint(fixtures, kg):
    assert "No similar name found" in concept_find(fixtures, q="xyzzy").notes[0]
    assert "No concepts are loaded" in concept_find(kg, q="solar").notes[0]


def test_an_entity_and_its_concept_are_one(fixtures):
    [found] = concept_find(fixtures, qid=f"<{BASE}entity/Q1010>").concepts
    assert found.qid == "Q1010"
    assert concept_find(fixtures, qid="cpr://concept/Q1010").concepts == [found]


def test_a_qid_is_that_of_the_climate_concept_store_first(topical):
    add(topical, *item("Q1010", "another thing"), *item("Q77", "a thing of Wikidata"))
    assert concept_find(topical, qid="Q1010").concepts[0].preferred_label == "solar topic"
    [other] = concept_find(topical, qid=f"{WIKIDATA}entity/Q1010").concepts
    assert (other.qid, other.preferred_label) == (f"{WIKIDATA}entity/Q1010", "another thing")
    [alone] = concept_find(topical, qid="Q77").concepts
    assert alone.qid == f"{WIKIDATA}entity/Q77"
    add(topical, *item("Q77", "a thing of our own", "https://wikibase.example/"))
    load_concepts(topical, fresh=True)
    several = r"more than one Wikibase.*wikibase\.example/entity/Q77 \('a thing of o"
    with pytest.raises(InvalidInputError, match=several):
        concept_find(topical, qid="Q77")


def test_an_item_that_was_merged_is_the_one_it_was_merged_into(topical):
    graph = mint("graph", "src", "wikibase", "climate", "Q5")
    add(topical, Quad(NamedNode(f"{BASE}entity/Q5"), OWL.sameAs, NamedNode(f"{BASE}entity/Q1010"), graph))
    found = concept_find(topical, qid="Q5")
    assert [concept.qid for concept in found.concepts] == ["Q1010"]
    assert found.notes == ["Q5 has the id Q1010 in this graph."]


def test_the_codes_of_code_lists_are_no_concepts(fixtures):
    assert all(iri.startswith("cpr://concept/") for iri in load_concepts(fixtures).by_iri)
    counts = {resource.title: resource.count for resource in list_resources(fixtures).resources}
    assert counts["Concepts"] == len(load_concepts(fixtures)) == 72
    assert health(fixtures).concepts.startswith("72 concepts")


def test_a_concept_that_has_just_come_is_found(topical):
    assert concept_find(topical, q="tidal").concepts == []
    add(topical, *item("Q9", "tidal power"))
    assert [concept.preferred_label for concept in concept_find(topical, q="tidal").concepts] == ["tidal power"]
    add(topical, *item("Q10", "wave power"))
    assert concept_find(topical, qid="Q10").concepts[0].preferred_label == "wave power"


def test_properties_are_counted_in_all_and_of_one(topical):
    [broader] = concept_properties(topical).properties
    assert (broader.pid, broader.propLabel, broader.count) == ("P2", "subconcept of", len(TOPICS))
    assert broader.iri == f"{BASE}prop/direct/P2"
    [own] = concept_properties(topical, qid="Q1010").properties
    assert (own.pid, own.count) == ("P2", 1)


def test_properties_come_most_used_first_in_pages(fixtures):
    whole = concept_properties(fixtures).properties
    assert [used.count for used in whole] == sorted((used.count for used in whole), reverse=True)
    first = concept_properties(fixtures, limit=3)
    assert first.next_offset == 3
    assert first.properties + concept_properties(fixtures, offset=3).properties == whole


def links(found) -> set[tuple[str, str, str]]:
    return {(edge.subject_qid, edge.predicate_pid, edge.object_qid) for edge in found.edges}


ABOVE = {(qid, "P2", above) for qid, (_, above) in TOPICS.items()}


@pytest.mark.parametrize("direction", ["both", "out", "in"])
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("qid", TOPICS)
def test_links_are_those_that_a_walk_finds(topical, qid, direction, hops):
    near, expected = {qid}, set()
    for _ in range(hops):
        step = {
            edge
            for edge in ABOVE
            if (direction != "in" and edge[0] in near) or (direction != "out" and edge[2] in near)
        }
        expected |= step
        near = near | {end for edge in step for end in (edge[0], edge[2])}
    found = concept_neighbors(topical, qid, direction=direction, hops=hops)
    assert links(found) == expected
    assert len(found.edges) == len(expected) == found.meta.total == sum(used.count for used in found.by_predicate)
    assert [edge.hop for edge in found.edges] == sorted(edge.hop for edge in found.edges)


def test_an_edge_has_names_and_counts_of_passages(topical, made):
    [edge] = concept_neighbors(topical, "Q1012", direction="out", counts=True).edges
    assert (edge.labels.subject, edge.labels.predicate, edge.labels.object) == (
        "geothermal topic", "subconcept of", "renewable topic")  # fmt: skip
    assert edge.counts is not None
    assert (edge.counts.subject, edge.counts.object) == (sum("geothermal" in p.text for p in made), 0)


def test_predicates_restrict_what_is_followed(fixtures):
    found = concept_neighbors(fixtures, "Q1009", predicates=["P2"], direction="in")
    assert {edge.predicate_pid for edge in found.edges} == {"P2"}
    by_iri = concept_neighbors(fixtures, "Q1009", predicates=[f"{BASE}prop/direct/P2"], direction="in")
    assert links(by_iri) == links(found)
    assert concept_neighbors(fixtures, "Q1009", predicates=["P999"]).notes


@pytest.mark.parametrize(
    ("predicate", "says"), [("Q5", "Q5 is an item"), ("broader", "is not a property"), ("", "is not")]
)
def test_a_predicate_that_is_none_is_refused(fixtures, predicate, says):
    with pytest.raises(InvalidInputError, match=says):
        concept_neighbors(fixtures, "Q1009", predicates=[predicate])


def test_pages_of_links_fit_together(fixtures):
    whole = concept_neighbors(fixtures, "Q1001", hops=2, limit=200).edges
    pages, offset = [], 0
    while offset is not None:
        page = concept_neighbors(fixtures, "Q1001", hops=2, limit=7, offset=offset)
        pages += page.edges
        offset = page.next_offset
    assert pages == whole
    assert len(whole) > 7


def test_concepts_without_a_wikibase_are_linked_by_their_hierarchy(topical):
    graph = mint("graph", "ref", "thesaurus")
    tree, leaf = NamedNode("https://thesaurus.example/tree"), NamedNode("https://thesaurus.example/leaf")
    add(
        topical,
        *(Quad(node, RDF.type, SKOS.Concept, graph) for node in (tree, leaf)),
        Quad(leaf, SKOS.broader, tree, graph),
    )
    found = concept_neighbors(topical, tree.value)
    assert links(found) == {(leaf.value, "skos:broader", tree.value)}
    assert concept_neighbors(topical, tree.value, predicates=["skos:narrower"]).edges == []


def test_a_hub_is_cut_and_said_to_be(topical):
    graph, hub = mint("graph", "src", "wikibase", "climate", "many"), NamedNode(f"{BASE}entity/Q1030")
    direct = NamedNode(f"{BASE}prop/direct/P2")
    add(topical, *(Quad(NamedNode(f"{BASE}entity/Q{n}"), direct, hub, graph) for n in range(5_000, 5_010 + EDGES_READ)))
    began = time.monotonic()
    found = concept_neighbors(topical, "Q1030", hops=2, limit=10)
    assert time.monotonic() - began < 5
    assert found.meta.completeness == "truncated"
    assert "Name predicates" in " ".join(found.notes)
    assert len(found.edges) == 10


def test_links_of_another_wikibase_say_what_their_ids_belong_to(topical):
    direct, graph = NamedNode(f"{WIKIDATA}prop/direct/P279"), mint("graph", "src", "wikibase", "wikidata", "Q7")
    end = NamedNode(f"{WIKIDATA}entity/Q8")
    add(topical, *item("Q7", "wave"), Quad(NamedNode(f"{WIKIDATA}entity/Q7"), direct, end, graph))
    found = concept_neighbors(topical, "Q7")
    assert links(found) == {("Q7", "P279", "Q8")}
    assert found.entity_base == f"{WIKIDATA}entity/"
    assert found.edges[0].labels.object is None
    assert concept_neighbors(topical, "Q1010").entity_base is None


def test_properties_are_no_neighbours(topical):
    graph, direct = mint("graph", "src", "wikibase", "climate", "P2"), NamedNode(f"{BASE}prop/direct/P9")
    add(
        topical,
        Quad(entity("P2"), direct, entity("Q1010"), graph),
        Quad(entity("Q1010"), direct, entity("P2"), graph),
        Quad(entity("Q1010"), direct, Literal("Q1012"), graph),
    )
    for predicates in (None, ["P9", "P2"]):
        found = concept_neighbors(topical, "Q1010", predicates=predicates)
        assert links(found) == {edge for edge in ABOVE if "Q1010" in edge}


def test_english_names_come_before_those_in_other_languages(fixtures):
    [solar] = concept_find(fixtures, qid="Q1010").concepts
    assert solar.aliases == ["PV", "photovoltaics", "solar energy", "energia solar", "fotovoltaica"]


def test_mentions_of_a_concept_are_no_links_of_it(topical):
    assert all(edge.predicate_pid.startswith("P") for edge in concept_neighbors(topical, "Q1010", direction="in").edges)
    assert KG.mentions.value not in concept_neighbors(topical, "Q1010").model_dump_json()
