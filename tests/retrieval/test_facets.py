"""Counts by facet: the codes in the index and the filters in SPARQL give the same numbers."""

from __future__ import annotations

from typing import Any

import pytest

from kg.errors import IndexUnavailableError, InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.asked import Asked
from kg.retrieval.filters import compile_scope
from kg.retrieval.hybrid_search import list_units
from kg.retrieval.reader import Reader
from kg.retrieval.results import FACETS, FacetCounts, FacetName, SearchFilters
from kg.search.protocol import Ranking, SearchIndex
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.search.passages import search
from kg.vocabulary import KG

"""The filter of a facet, if it has another name."""


def filters_of(facet: str, value: str) -> SearchFilters:
    return SearchFilters.model_validate({facet: [value]})


def count_in_store(graph: KnowledgeGraph, filters: SearchFilters) -> tuple[int, int]:
    scope, _ = compile_scope(Reader(graph), filters)
    units = list_units(Reader(graph), scope, 5_000)
    return len(units), len({document.partition("#lang=")[0] for document in units.values()})


@pytest.mark.parametrize("facet", FACETS)
def test_the_index_counts_what_the_filter_finds(joined: KnowledgeGraph, facet: FacetName) -> None:
    counted = search(joined, facets=[facet]).facets
    assert counted is not None
    assert counted.values[facet]
    for value in counted.values[facet][:8]:
        filters = filters_of(facet, value.value)
        passages, documents = count_in_store(joined, filters)
        assert (value.value, value.passages) == (value.value, passages)
        within = search(joined, filters=filters, facets=["domain"]).facets
        assert within is not None
        assert (within.passages, within.documents) == (passages, documents)
        if facet != "domain":  # which leaves its own filter out
            assert sum(each.passages for each in within.values["domain"]) <= passages


def test_every_passage_of_a_source_is_in_a_domain(joined: KnowledgeGraph) -> None:
    counted = search(joined, facets=["domain"]).facets
    assert counted is not None
    assert sum(each.passages for each in counted.values["domain"]) == counted.passages
    query = """
SELECT (COUNT(?unit) AS ?units) { VALUES ?kind { $kinds } ?unit schema:text ?text ; dcterms:isPartOf/a ?kind }"""
    [row] = Reader(joined).rows("texts between speeches", bind(query, kinds=[KG.Sitting, KG.Debate]))
    assert int(term_text(row["units"])) > 0


def test_a_query_counts_its_results_and_their_documents(joined: KnowledgeGraph) -> None:
    found = search(joined, "flood", limit=200, facets=["domain", "place", "concept"])
    counted = found.facets
    assert counted is not None
    assert not counted.more
    assert counted.passages == len(found.results) > 0
    assert counted.documents is not None
    assert 0 < counted.documents <= counted.passages
    for value in counted.values["domain"]:
        filters = SearchFilters.model_validate({"domain": [value.value]})
        narrowed = search(joined, "flood", filters=filters, limit=200, facets=["domain"])
        assert narrowed.facets is not None
        assert len(narrowed.results) == narrowed.facets.passages == value.passages


@pytest.mark.parametrize(
    "given",
    [
        {"year": [2030], "place": ["BRA"]},
        {"party": ["Australian Greens"]},
        {"chamber": ["au-senate"], "language": ["en"]},
        {"concept": ["Q1007"], "domain": ["climate"]},
        {"district": ["us-ut-quarry-bend/R-1"]},
        {"topic": ["Energy"]},
    ],
)
def test_filters_together_count_as_the_store_does(joined: KnowledgeGraph, given: dict[str, list[str]]) -> None:
    filters = SearchFilters.model_validate(given)
    try:
        passages, _ = count_in_store(joined, filters)
    except QuadciteError:
        pytest.skip("the fixtures have no such value")
    counted = search(joined, filters=filters, facets=["domain"]).facets
    assert counted is not None
    assert counted.passages == passages > 0


@pytest.mark.parametrize("query", ["", "flood"])
def test_the_counts_of_a_facet_leave_its_own_filter_out(joined: KnowledgeGraph, query: str) -> None:
    everything = search(joined, query, facets=["domain", "language"]).facets
    assert everything is not None
    chosen = everything.values["domain"][0]
    filters = SearchFilters.model_validate({"domain": [chosen.value]})
    counted = search(joined, query, filters=filters, facets=["domain", "language"]).facets
    assert counted is not None
    assert counted.passages == chosen.passages
    assert counted.values["domain"] == everything.values["domain"]
    assert counted.values["language"] != everything.values["language"]
    # With a second filter, the first facet counts what passes that one.
    language = counted.values["language"][0]
    both = filters.model_copy(update={"language": [language.value]})
    narrowed = search(joined, query, filters=both, facets=["domain"]).facets
    alone = search(joined, query, filters=SearchFilters(language=[language.value]), facets=["domain"]).facets
    assert narrowed is not None
    assert alone is not None
    assert narrowed.values == alone.values


def test_a_ranking_that_was_begun_in_advance_is_counted_once(
    joined: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask() -> FacetCounts | None:
        return search(joined, "flood", filters=SearchFilters(domain=["climate"]), facets=["domain", "year"]).facets

    expected = ask()
    asked: list[object] = []
    rank = type(joined.search).rank

    def count(index: SearchIndex, *given: Any, **named: Any) -> Ranking:
        asked.append(named.get("codes"))
        ranking: Ranking = rank(index, *given, **named)  # type: ignore[arg-type]
        return ranking

    monkeypatch.setattr(type(joined.search), "rank", count)
    monkeypatch.setattr("kg.retrieval.hybrid_search.NARROW", 1)  # the fixtures have fewer passages than are listed
    assert ask() == expected
    assert sum(not codes for codes in asked) == 1


def test_a_ranking_that_was_begun_in_advance_raises_its_error(
    joined: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Ranking:
        raise IndexUnavailableError("closed")

    asked = Asked("flood")
    with monkeypatch.context() as patched:
        patched.setattr(type(joined.search), "rank", fail)
        asked.begin(joined.search, limit=5, codes=(), counted=3)
        with pytest.raises(IndexUnavailableError):
            asked.rank(joined.search, limit=5, counted=3)
    assert asked.rank(joined.search, limit=5, counted=3).candidates, "asked again"


def test_more_passages_than_are_listed_are_counted_exactly(
    joined: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = SearchFilters(topic=["Energy"])
    whole = search(joined, filters=filters, facets=["domain"])
    monkeypatch.setattr("kg.retrieval.facets.MOST_LISTED", 2)
    cut = search(joined, filters=filters, facets=["domain"])
    assert whole.facets is not None
    assert cut.facets is not None
    assert cut.facets.passages == whole.facets.passages > 2
    assert cut.facets.documents == whole.facets.documents
    assert sum(each.passages for each in cut.facets.values["domain"]) == 2
    assert len(cut.notes) > len(whole.notes)


def test_without_words_only_counts_can_be_asked_for(joined: KnowledgeGraph) -> None:
    with pytest.raises(InvalidInputError):
        search(joined, "  ")
    assert search(joined, facets=["domain"]).results == []


def test_the_most_results_are_counted_and_said_to_be_more(
    joined: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("kg.retrieval.facets", "kg.tools.search.passages"):
        monkeypatch.setattr(f"{module}.MOST_COUNTED", 3)
    for filters in (None, SearchFilters(domain=["climate"]), SearchFilters(topic=["Energy"])):
        counted = search(joined, "energy", filters=filters, facets=["domain"]).facets
        assert counted is not None
        assert (counted.passages, counted.more) == (3, True)
