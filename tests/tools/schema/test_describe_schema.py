"""The schema is described in levels, as declared and as measured, within the tokens that the caller has for it."""

from __future__ import annotations

import pytest

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import load_code_lists, load_declared_terms, load_modules, load_shapes
from kg.retrieval.results import tokens_of
from kg.sparql.measured_schema import Schema
from kg.store.protocol import select
from kg.tools.answers import content_of
from kg.tools.schema import describe_schema as describing
from kg.tools.schema import term_index
from kg.tools.schema.describe_schema import STANDARDS, describe_schema
from kg.tools.schema.find_terms import find_terms
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.schema.term_index import describe_foreign
from kg.vocabulary import KG


def test_the_first_level_counts_the_classes_of_each_domain(fixtures):
    described = describe_schema(fixtures)
    classes = {domain.name: {line.name: line.things for line in domain.classes} for domain in described.domains or []}
    assert classes["climate"] == {"kg:Passage": 103, "kg:PolicyDocument": 13, "kg:PolicyFamily": 10}
    assert classes["core"]["kg:Place"] == 9
    assert {"prov:Activity", "prov:SoftwareAgent", "skos:Concept", "wikibase:Item"} <= set(classes["standards"])
    assert described.meta.snapshot == fixtures.store.statistics().generation


def test_domains_of_texts_come_before_classes_of_other_vocabularies(fixtures):
    domains = describe_schema(fixtures, max_tokens=20_000).domains
    names = [domain.name for domain in domains]
    assert STANDARDS in names
    assert names[-1] == STANDARDS


@pytest.mark.parametrize("name", ["kg:Passage", KG.Passage.value, "passage", "Passage", "<" + KG.Passage.value + ">"])
def test_a_class_is_described_by_iri_prefixed_name_or_label(fixtures, name):
    described = describe_schema(fixtures, name)
    assert (described.level, described.iri, described.things) == ("class", KG.Passage.value, 103)
    lines = {line.name: line for line in described.properties or []}
    assert lines["dcterms:isPartOf"].values == "kg:PolicyDocument"
    assert lines["dcterms:isPartOf"].per_thing == "exactly 1; all have it"
    assert lines["kg:pageNumber"].per_thing == "at most 1; 92 of 103 have it"
    assert lines["schema:position"].rule == "at least 0"
    assert lines["kg:textSha256"].rule == "matches ^[0-9a-f]{64}$"
    assert "Text" in (lines["kg:blockType"].codes or [])
    assert lines["kg:blockType"].code_iri == "<https://w3id.org/quadcite/vocab/blockType/CODE>"
    assert all(line.example for line in lines.values())


def test_the_query_of_a_class_and_of_a_property_gives_rows(fixtures):
    for name in ("kg:Passage", "kg:PolicyDocument", "kg:Commit", "kg:blockType", "dcterms:title", "prov:used"):
        described = describe_schema(fixtures, name)
        assert described.query
        assert len(fixtures.query(described.query).result), name


def test_a_property_says_who_uses_it_and_all_its_codes(fixtures):
    described = describe_schema(fixtures, "block type")
    assert described.level == "property"
    assert [(line.name, line.triples) for line in described.used_by or []] == [("kg:Passage", 103)]
    listed = load_code_lists()["https://w3id.org/quadcite/vocab/blockType"]
    assert len(described.codes or []) == len(listed)
    assert any(line.startswith("Google%20Text%20Block: ") for line in described.codes or [])


def test_a_property_names_what_it_specializes(fixtures):
    assert describe_schema(fixtures, "kg:slug").specializes == ["dcterms:identifier"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("kg:Pasage", "kg:Passage"), ("polcy document", "kg:PolicyDocument"), ("dcterms:titel", "dcterms:title")],
)
def test_an_unknown_name_is_an_error_that_names_the_nearest(fixtures, name, near):
    with pytest.raises(NotFoundError, match=near):
        describe_schema(fixtures, name)


def test_an_individual_is_no_schema(fixtures):
    with pytest.raises(NotFoundError, match="individual"):
        describe_schema(fixtures, "https://w3id.org/quadcite/id/place/DJI")


@pytest.mark.parametrize("name", [None, "kg:PolicyDocument", "kg:Passage", "dcterms:title"])
@pytest.mark.parametrize("max_tokens", [300, 500, 900, 2_000])
def test_pages_within_the_budget_make_up_the_whole(fixtures: KnowledgeGraph, name, max_tokens):
    def listed(described):
        if described.domains is not None:
            return [line.name for domain in described.domains for line in domain.classes]
        return [line.name for line in described.properties or described.used_by or []]

    whole = describe_schema(fixtures, name, max_tokens=50_000)
    assert whole.next_offset is None
    seen, offset, pages = [], 0, 0
    while offset is not None:
        page = describe_schema(fixtures, name, max_tokens=max_tokens, offset=offset)
        if len(listed(page)) > 1:
            assert tokens_of(content_of(page)) <= max_tokens
        seen += listed(page)
        offset = page.next_offset
        pages += 1
        assert (offset is None) == (page.meta.completeness == "complete")
        assert (offset is None) == (not any("to max_tokens" in note for note in page.notes))
    assert seen == listed(whole)
    assert pages > 1 or max_tokens > 500 or name == "dcterms:title"


def test_the_shapes_and_the_ontology_are_read_whole():
    of_document = load_shapes()[KG.PolicyDocument.value]
    assert of_document.closed
    assert (of_document.pattern or "").startswith("^cpr://doc/")
    assert of_document.properties[KG.corpusType.value].scheme == "https://w3id.org/quadcite/vocab/corpusType"
    assert of_document.properties["http://purl.org/dc/terms/title"].cardinality == "at most 1, a warning where missing"
    assert next(iter(load_modules())) == "core"


def test_a_class_that_the_ontology_lacks_is_said_to_be_of_its_vocabulary():
    assert describe_foreign("http://wikiba.se/ontology#Item", "item") == "item, as wikibase: defines it"
    assert describe_foreign("https://x.example/Thing", "thing") == "thing, as another vocabulary defines it"
    own = describe_foreign("https://wb.example/prop/novalue/P16", "p16")
    assert own == describe_foreign("http://www.wikidata.org/prop/novalue/P16", "p16")
    assert own == "items with a statement that they have no value of P16"


def test_a_schema_that_is_not_measured_yet_makes_no_statement_on_use(fixtures, monkeypatch):
    schema = Schema(0, 0, {}, {}, load_declared_terms())
    monkeypatch.setattr(describing, "get_term_index", lambda kg: term_index._build_index(kg, schema))
    described = describe_schema(fixtures, "kg:Passage", max_tokens=20_000)
    assert described.things is None
    assert not any("used" in line.per_thing or "have it" in line.per_thing for line in described.properties or [])
    assert any("measured" in note for note in described.notes)
    assert not any("without instances" in note for note in describe_schema(fixtures).notes)
    assert describe_schema(fixtures, "kg:jurisdiction").triples is None


def test_a_property_of_graphs_that_are_not_measured_is_not_said_to_be_unused(fixtures):
    described = describe_schema(fixtures, "kg:about")
    assert (described.triples, described.things) == (None, None)
    assert described.query
    [found] = [term for term in find_terms(fixtures, "kg:about").terms if term.iri == KG.about.value]
    assert found.uses is None


def test_datasets_of_the_catalog_are_described_and_found(joined: KnowledgeGraph) -> None:
    described = describe_schema(joined, "dcat:Dataset", max_tokens=6_000)
    query = "SELECT ?dataset WHERE { GRAPH <https://w3id.org/quadcite/graph/catalog> { ?dataset a dcat:Dataset } }"
    datasets = len(select(joined.store.query, query))
    assert described.things == datasets > 3
    lines = {line.name: line for line in described.properties or ()}
    assert lines.keys() >= {
        "dcterms:title", "kg:loader", "void:documents", "void:triples", "void:subset", "dcterms:issued",
    }  # fmt: skip
    assert all(line.about for line in lines.values())
    assert described.query is not None
    assert len(select(joined.store.query, described.query)) == min(10, datasets)
    domains = describe_schema(joined, max_tokens=20_000).domains or []
    assert any(line.name == "dcat:Dataset" for domain in domains for line in domain.classes)
    assert describe_schema(joined, "void:documents").triples == datasets
    found = find_terms(joined, "dataset", kind="class").terms
    assert ("dcat:Dataset", datasets) in {(term.curie, term.uses) for term in found}
    assert find_terms(joined, "number of records of a dataset", kind="property").terms[0].curie == "void:documents"


def test_counts_of_content_leave_the_catalog_out(joined: KnowledgeGraph) -> None:
    schema = get_schema(joined, newest=True)
    assert "catalog" not in schema.graphs
    of_content = {name for family in schema.holdings.values() for name in family.properties}
    assert schema.triples == sum(schema.properties[name].triples for name in of_content)
