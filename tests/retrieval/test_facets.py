"""Counts by facet: the codes in the index and the filters in SPARQL give the same numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kg.errors import IndexUnavailableError, InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.asked import Asked
from kg.retrieval.facets import name_places
from kg.retrieval.filters import compile_scope
from kg.retrieval.hybrid_search import list_units
from kg.retrieval.places import Place, Places
from kg.retrieval.reader import Reader
from kg.retrieval.results import FACETS, FacetName, SearchFilters
from kg.search.index_client import EdgeIndex
from kg.search.protocol import Ranking, SearchIndex
from kg.search.relevance import CALIBRATIONS
from kg.settings import Settings
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.search.passages import search
from kg.vocabulary import KG, mint
from tests.conftest import load_once
from tests.retrieval import judged_index
from tests.retrieval.judged_index import MODEL


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures of all domains with vectors whose cosines are judged."""
    folder = load_once(tmp_path_factory, "joined")
    settings = Settings(data_dir=folder, models_dir=folder.with_name("models"), model=MODEL, _env_file=None)  # type: ignore[call-arg]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EdgeIndex, "command", (sys.executable, "-m", judged_index.__name__))
        patched.setitem(CALIBRATIONS, MODEL, judged_index.LIMITS)  # type: ignore[arg-type]
        with KnowledgeGraph.open(folder, settings) as graph:
            graph.search.wait()
            yield graph


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
    found = search(joined, "flood", must=["flood"], limit=200, facets=["domain", "place", "concept"])
    counted = found.facets
    assert counted is not None
    assert not counted.more
    assert counted.passages == len(found.results) > 0
    assert counted.documents is not None
    assert 0 < counted.documents <= counted.passages
    for value in counted.values["domain"]:
        filters = SearchFilters.model_validate({"domain": [value.value]})
        narrowed = search(joined, "flood", must=["flood"], filters=filters, limit=200, facets=["domain"])
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
    name = "post_filter" if query else "filters"
    counted = search(joined, query, facets=["domain", "language"], **{name: filters}).facets  # type: ignore[arg-type]
    assert counted is not None
    assert counted.passages == chosen.passages
    assert counted.values["domain"] == everything.values["domain"]
    assert counted.values["language"] != everything.values["language"]
    # With a second filter, the first facet counts what passes that one.
    language = counted.values["language"][0]
    both = filters.model_copy(update={"language": [language.value]})
    narrowed = search(joined, query, facets=["domain"], **{name: both}).facets  # type: ignore[arg-type]
    only = SearchFilters(language=[language.value])
    alone = search(joined, query, facets=["domain"], **{name: only}).facets  # type: ignore[arg-type]
    assert narrowed is not None
    assert alone is not None
    assert narrowed.values == alone.values


@pytest.mark.parametrize(
    ("filters", "post_filter", "names"),
    [
        (SearchFilters(domain=["climate"]), SearchFilters(domain=["zoning"]), ["domain"]),
        (SearchFilters(iso3=["BRA"]), SearchFilters(place=["KEN"]), ["iso3", "place"]),
    ],
)
def test_filters_that_are_given_twice_are_named(
    joined: KnowledgeGraph, filters: SearchFilters, post_filter: SearchFilters, names: list[str]
) -> None:
    with pytest.raises(InvalidInputError) as raised:
        search(joined, "flood", filters=filters, post_filter=post_filter)
    assert all(name in str(raised.value).split() for name in names)


@pytest.mark.parametrize("query", ["\0", "\u200b", "\u00ad \u2060"])
def test_a_query_without_a_visible_character_is_refused(joined: KnowledgeGraph, query: str) -> None:
    with pytest.raises(InvalidInputError):
        search(joined, query)


def test_counts_state_what_is_counted(joined: KnowledgeGraph) -> None:
    without_model = search(joined, "flood insurance", limit=1, facets=["domain"]).facets
    by_words = search(joined, "flood insurance", limit=1, must=["flood"], facets=["domain"]).facets
    plain = search(joined, facets=["domain"]).facets
    assert without_model is not None
    assert by_words is not None
    assert plain is not None
    assert (without_model.by, by_words.by, plain.by) == ("query_words", "words", "filters")
    alone = search(joined, "flood", limit=1, facets=["domain"]).facets
    assert alone is not None
    assert alone.with_words is not None
    having = [hit for hit in search(joined, "flood", limit=200).results if "flood" in hit.snippet.casefold()]
    assert 0 < len(having) <= alone.with_words <= alone.passages
    assert plain.with_words is None


def test_a_post_filter_takes_one_more_ranking(joined: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    rank = type(joined.search).rank

    def count(index: SearchIndex, *given: Any, **named: Any) -> Ranking:
        if named.get("mode") != "bm25":  # the passages with all words are counted by words alone
            asked.append(named.get("codes"))
        ranking: Ranking = rank(index, *given, **named)  # type: ignore[arg-type]
        return ranking

    monkeypatch.setattr(type(joined.search), "rank", count)
    monkeypatch.setattr("kg.retrieval.hybrid_search.NARROW", 1)  # the fixtures have fewer passages than are listed
    for module in ("kg.retrieval.facets", "kg.tools.search.passages"):
        monkeypatch.setattr(f"{module}.MOST_COUNTED", 3)
    chosen = SearchFilters(domain=["climate"], language=["en"])
    assert search(joined, "flood", post_filter=chosen, facets=["domain", "language", "year"]).facets is not None
    assert sorted(bool(codes) for codes in asked) == [False, True]


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


QUERIES = (
    "flood",
    *(pytest.param(each, marks=pytest.mark.long) for each in ("energy targets", "housing", "cambio climático")),
    pytest.param("speech of the minister on schools", marks=pytest.mark.long),
)
SIZES = [
    pytest.param(1_000, 7, id="more than counted", marks=pytest.mark.long),
    pytest.param(3, 1_000, id="wide"),
    pytest.param(3, 7, id="wide, more than counted"),
    pytest.param(1_000, 1_000, id="all counted"),
]
"""Passages that are listed by SPARQL, and results that are counted."""


def read_all(graph: KnowledgeGraph, query: str, chosen: SearchFilters, **filters: Any) -> list[str]:
    """The ids of all results, page by page."""
    ids: list[str] = []
    offset: int | None = 0
    while offset is not None:
        found = search(graph, query, limit=200, offset=offset, post_filter=chosen, filters=SearchFilters(**filters))
        ids += [hit.id for hit in found.results]
        offset = found.next_offset
    assert len(ids) == len(set(ids))
    return ids


def check_numbers(graph: KnowledgeGraph, query: str, chosen: SearchFilters) -> tuple[int, int]:
    """Compare each number of each facet with the list that its value leads to. Returns how many are exact, and not."""
    counted = search(graph, query, post_filter=chosen, facets=list(FACETS)).facets
    assert counted is not None
    listed = read_all(graph, query, chosen)
    assert counted.more or counted.passages == len(listed)
    exact = least = 0
    for facet in FACETS:
        for value in [*counted.values[facet][:3], *counted.values[facet][3:][-1:]]:
            narrowed = SearchFilters.model_validate({**chosen.model_dump(), facet: [value.value]})
            of_value = search(graph, query, post_filter=narrowed, facets=["domain"]).facets
            assert of_value is not None
            passages = read_all(graph, query, narrowed)
            documents = read_all(graph, query, narrowed, max_passages_per_doc=1)
            found = len(passages), len(documents)
            said = value.passages, value.documents or 0
            where = query, chosen, facet, value, found
            if value.more:
                least += 1
                assert said[0] <= found[0], where
                assert said[1] <= found[1], where
                assert of_value.more or of_value.passages == found[0], where
            else:
                exact += 1
                assert said == found, where
                assert (of_value.passages, of_value.documents, of_value.more) == (*found, False), where
    return exact, least


@pytest.mark.long
@pytest.mark.parametrize(("narrow", "most"), SIZES)
@pytest.mark.parametrize("query", QUERIES)
def test_each_number_is_that_of_the_list_with_its_value(
    judged: KnowledgeGraph, query: str, narrow: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kg.retrieval.hybrid_search.NARROW", narrow)
    for module in ("kg.retrieval.facets", "kg.tools.search.passages"):
        monkeypatch.setattr(f"{module}.MOST_COUNTED", most)
    exact, least = check_numbers(judged, query, SearchFilters())
    assert exact + least
    if query == "flood":
        assert exact if most == 1_000 else least
    everything = search(judged, query, facets=["domain", "language"]).facets
    assert everything is not None
    for chosen in (
        SearchFilters(domain=[everything.values["domain"][-1].value]),  # type: ignore[list-item]
        SearchFilters(domain=[everything.values["domain"][0].value], language=["en"]),  # type: ignore[list-item]
    ):
        check_numbers(judged, query, chosen)


def test_a_post_filter_changes_no_judgment_of_a_passage(judged: KnowledgeGraph) -> None:
    whole = {hit.id for hit in search(judged, "flood", limit=200).results}
    assert whole
    for domain in ("climate", "parliament", "zoning", "files"):
        chosen = SearchFilters(domain=[domain])
        assert set(read_all(judged, "flood", chosen)) <= whole
    for chosen in (SearchFilters(), SearchFilters(language=["en"])):
        nonsense = search(judged, "qwxyz zzzz", post_filter=chosen, facets=list(FACETS))
        assert nonsense.results == []
        assert nonsense.facets is not None
        assert not any(nonsense.facets.values.values())


@pytest.mark.parametrize(
    ("filters", "post_filter"),
    [
        (SearchFilters(), SearchFilters(concept_qids=["Q1007"])),
        (SearchFilters(), SearchFilters(max_passages_per_doc=1)),
        (SearchFilters(concept_qids=["Q1007"]), SearchFilters(language=["en"])),
        (SearchFilters(domain=["climate"]), SearchFilters(domain=["zoning"])),
    ],
)
def test_what_does_not_apply_to_results_is_refused(
    joined: KnowledgeGraph, filters: SearchFilters, post_filter: SearchFilters
) -> None:
    with pytest.raises(InvalidInputError):
        search(joined, "flood", filters=filters, post_filter=post_filter)
    with pytest.raises(InvalidInputError):
        search(joined, facets=["domain"], post_filter=SearchFilters(language=["en"]))


def test_municipalities_that_share_a_name_are_named_by_what_they_are_in() -> None:
    def town(state: str, name: str, *within: str) -> Place:
        iri = mint("municipality", f"us-{state}-{name.lower()}").value
        return Place(iri, f"us-{state}-{name.lower()}", [name], [mint("place", each).value for each in within])

    towns = [town("ct", "Clinton", "US-CT"), town("ny", "Clinton", "US-NY"), town("ct", "Avon", "US-CT")]
    district = mint("place", "US-DC").value
    capital = Place(mint("municipality", "us-dc").value, "us-dc", ["District of Columbia"], [district])
    places = Places({place.iri: place for place in (*towns, capital)})
    named = name_places(places, [*places.stored, district])
    assert [*named.values()] == [
        "Clinton (Connecticut)",
        "Clinton (New York)",
        "Avon",
        "District of Columbia (municipality)",
        "District of Columbia",
    ]
