"""Terms are found by IRI, name, code, misspelling and meaning, each with what a query needs."""

from __future__ import annotations

import threading

import pytest

from kg.errors import QueryTimeoutError
from kg.knowledge_graph import KnowledgeGraph
from kg.tools.schema import schema_measurement
from kg.tools.schema.find_terms import find_terms
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.schema.term_index import get_term_index
from kg.vocabulary import KG, mint
from tests.tools.schema.waits import record_waits


@pytest.fixture
def fixtures(fixtures: KnowledgeGraph) -> KnowledgeGraph:
    """The fixtures with their schema measured: `find_terms` does not wait for that, and has no counts before it."""
    assert get_schema(fixtures, 60.0).generation
    return fixtures


def first(kg: KnowledgeGraph, text: str, **arguments: object):
    return find_terms(kg, text, **arguments).terms[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "iri", "kind"),
    [
        ("passage", KG.Passage.value, "class"),
        ("passge", KG.Passage.value, "class"),
        ("kg:Passage", KG.Passage.value, "class"),
        ("<https://w3id.org/quadcite/ns#Passage>", KG.Passage.value, "class"),
        ("country", KG.Place.value, "class"),
        ("law", KG.PolicyDocument.value, "class"),
        ("PolicyDocument", KG.PolicyDocument.value, "class"),
        ("corpusType", KG.corpusType.value, "property"),
        ("is part of", "http://purl.org/dc/terms/isPartOf", "property"),
        ("Djibouti", mint("place", "DJI").value, "individual"),
        ("djibuti", mint("place", "DJI").value, "individual"),
        ("DJI", mint("place", "DJI").value, "individual"),
        ("section heading", mint("code", "blockType", "sectionHeading").value, "individual"),
    ],
)
def test_a_term_is_found_by_any_of_its_names(fixtures, text, iri, kind):
    found = first(fixtures, text)
    assert (found.iri, found.kind) == (iri, kind)
    assert found.context


def test_families_are_found_by_words_of_their_title(fixtures):
    found = find_terms(fixtures, "solar", kind="individual").terms
    families = {"Fictional Solar Road Map", "Fictional Geothermal and Solar Levy Act"}
    assert families | {"solar power", "rooftop solar"} == {term.label for term in found}


def test_uses_are_counted(fixtures):
    assert first(fixtures, "passage").uses == 103
    assert first(fixtures, "DJI").uses == 2
    assert first(fixtures, "kg:CuratedGraph").uses == 0


def test_a_kind_restricts_and_pages_fit_together(fixtures):
    everything = find_terms(fixtures, "document", kind="property", limit=50)
    assert {term.kind for term in everything.terms} == {"property"}
    pages, offset = [], 0
    while offset is not None:
        page = find_terms(fixtures, "document", kind="property", limit=2, offset=offset)
        pages += page.terms
        offset = page.next_offset
    assert [term.iri for term in pages] == [term.iri for term in everything.terms]


def test_without_a_model_words_of_the_definition_count_and_the_answer_says_so(fixtures):
    found = find_terms(fixtures, "authorities issued", kind="property")
    assert found.terms[0].iri == KG.jurisdiction.value
    assert found.terms[0].matched == "meaning"
    assert any("kg models pull" in note for note in found.notes)


def test_with_a_model_terms_are_found_by_what_they_mean(fixtures, monkeypatch):
    def embed(texts):
        return [[1.0, 0.0] if "jurisdiction" in text or "nation" in text else [0.0, 1.0] for text in texts]

    monkeypatch.setattr(fixtures.search, "embed", embed)
    monkeypatch.setattr(
        fixtures.memory, "get", lambda key, get=fixtures.memory.get: None if key[0] == "vectors" else get(key)
    )
    found = find_terms(fixtures, "which nation", kind="property")
    assert found.terms[0].iri == KG.jurisdiction.value
    assert not found.notes


def test_nothing_like_it_says_what_to_do_instead(fixtures):
    found = find_terms(fixtures, "xyzzyxyzzy")
    assert not found.terms
    assert any("search" in note for note in found.notes)


def test_the_names_are_read_once_for_a_state_of_the_graph(fixtures):
    assert get_term_index(fixtures) is get_term_index(fixtures)


def test_a_country_is_both_a_class_and_a_property(fixtures):
    assert [term.curie for term in find_terms(fixtures, "country").terms][:2] == ["kg:Place", "kg:jurisdiction"]


def test_names_are_found_before_the_schema_is_measured(receiving, monkeypatch):
    measured = threading.Event()

    def measure(kg):
        measured.wait(90)
        raise QueryTimeoutError("stopped")

    monkeypatch.setattr(schema_measurement, "measure_schema", measure)
    monkeypatch.setattr(receiving.search, "embed", lambda texts: None, raising=False)
    place = mint("place", "ATL")
    receiving.store.update(
        f'INSERT DATA {{ GRAPH <http://x.org/g> {{ {place} a kg:Place ; skos:prefLabel "Atlantis"@en }} }}'
    )
    waits = record_waits(monkeypatch)
    found = find_terms(receiving, "atlantis")
    measured.set()
    assert set(waits) <= {0}
    assert [term.iri for term in found.terms] == [place.value]
    assert any("measured" in note for note in found.notes)
