"""Items and properties in the index: found by words of any language and by spelling, and apart from texts."""

from __future__ import annotations

import pytest

from kg.retrieval.reader import Reader
from kg.tools.wikidata.names import load_property_names
from kg.tools.wikidata.search import find_meant_properties, vector_search_items, vector_search_properties


@pytest.mark.parametrize(
    ("query", "qid"),
    [
        ("Ilsabet Varrow", "Q900000001"),
        ("ilsabet varow", "Q900000001"),
        ("harbour town in Orlavia", "Q900000002"),
        ("Marroíque", "Q900000002"),  # its name in Portuguese
        ("operator of lighthouses", "Q900000012"),
    ],
)
def test_an_item_is_found_by_name_spelling_and_description(wikidata, query, qid):
    assert vector_search_items(wikidata, query, limit=3).entities[0].qid == qid


@pytest.mark.parametrize(
    ("query", "pid"), [("lantern colour", "P900000001"), ("keel lenght", "P900000002"), ("place of birth", "P19")]
)
def test_a_property_is_found_by_name_and_spelling(wikidata, query, pid):
    assert vector_search_properties(wikidata, query, limit=3).entities[0].qid == pid


def test_nonsense_finds_nothing(wikidata):
    result = vector_search_items(wikidata, "zzyzx qwertz")
    assert result.entities == []
    assert result.notes


def test_entities_are_no_units_of_texts(wikidata):
    status = wikidata.search.status()
    assert (status.units, status.entities) == (0, 18)
    assert not wikidata.search.rank("Ilsabet Varrow", limit=5).candidates
    assert wikidata.search.rank("Ilsabet Varrow", limit=5, kind="entity").candidates


def test_words_that_select_one_of_several_values_have_no_property(wikidata):
    names = load_property_names(Reader(wikidata))
    assert find_meant_properties(wikidata, names, "second wife", []) == []
