"""The filter `topic` leaves the documents under a sector, keyword or tag, in the words of their source."""

from __future__ import annotations

import pytest

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import SearchFilters
from kg.tools.search.passages import search

POLICY = "cpr://doc/fictional-rooftop-energy-act-2023_au01"


def documents(kg: KnowledgeGraph, *topics: str, query: str = "energy grant flood home") -> set[str]:
    found = search(kg, query, SearchFilters(topic=list(topics)), limit=200, min_score=0)
    return {hit.id.partition("#")[0] for hit in found.results}


def test_topic_leaves_the_documents_that_have_it_in_any_case(joined: KnowledgeGraph) -> None:
    found = documents(joined, "RENEWABLE energy")
    assert POLICY in found
    speeches = found - {POLICY}
    assert speeches
    assert all("/id/speech/" in each for each in speeches)
    assert documents(joined, "Accessory dwelling units") == {"cpr://doc/fictional-clean-homes-act_us01"}


def test_topics_are_alternatives(joined: KnowledgeGraph) -> None:
    both = documents(joined, "grants", "accessory dwelling units")
    assert both == {POLICY, "cpr://doc/fictional-clean-homes-act_us01"}


def test_unknown_topic_is_an_error_that_names_known_ones(joined: KnowledgeGraph) -> None:
    with pytest.raises(NotFoundError, match=r"(?i)renewable.energy"):
        documents(joined, "renewable enrgy")
    found = search(joined, "grant", SearchFilters(topic=["grants", "no such topic"]), limit=5)
    assert any("no such topic" in note for note in found.notes)
    assert found.results
