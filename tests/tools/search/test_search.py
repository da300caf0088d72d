"""What search promises: exactly the passages that the filters allow, in one order, page by page, with origins."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kg.errors import IndexUnavailableError, InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval import filters, hybrid_search
from kg.retrieval.asked import Asked
from kg.retrieval.reader import recording
from kg.retrieval.results import SearchFilters
from kg.search.protocol import Ranking
from kg.store.protocol import Rows
from kg.tools.climate.families import family_overview
from kg.tools.search.passages import search
from tests.examples import dear

CODES = ("DJI", "BRA", "ZAF", "XAA")
TAGS = ("en", "en-GB", "fr", "pt")


def allowed(made, wanted: SearchFilters) -> list:
    """Brute force: the passages that `wanted` allows."""

    def speaks(passage) -> bool:
        spoken = (passage.language,) if passage.language else passage.languages
        return any(tag == want or tag.startswith(f"{want}-") for tag in spoken for want in wanted.language)

    return [
        passage
        for passage in made
        if (not wanted.iso3 or set(wanted.iso3) & set(passage.places))
        and (not wanted.corpus_type or passage.corpus in wanted.corpus_type)
        and (not wanted.family_slug or passage.family in wanted.family_slug)
        and (not wanted.language or speaks(passage))
    ]


def expected(kg: KnowledgeGraph, made, query: str, wanted: SearchFilters) -> list[str]:
    """Brute force: the ids in the promised order."""
    passages = allowed(made, wanted)
    passages.sort(
        key=lambda p: (
            -kg.search.score(query, p.iri),
            tuple(-ord(c) for c in p.date) if p.date else (1,),
            f"Family {p.family}",
            p.title,
            p.position,
            p.iri,
        )
    )
    taken: dict[str, int] = {}
    ids = []
    for passage in passages:
        taken[passage.document] = taken.get(passage.document, 0) + 1
        if taken[passage.document] <= (wanted.max_passages_per_doc or len(passages)):
            ids.append(passage.iri)
    return ids


def pages(kg: KnowledgeGraph, query: str, wanted: SearchFilters, limit: int) -> list[str]:
    ids: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = search(kg, query, wanted, limit=limit, offset=offset)
        ids += [hit.id for hit in page.results]
        offset = page.next_offset
    return ids


FILTERS = st.builds(
    SearchFilters,
    iso3=st.lists(st.sampled_from(CODES), max_size=2, unique=True),
    language=st.lists(st.sampled_from(TAGS), max_size=2, unique=True),
    corpus_type=st.lists(st.sampled_from(["Laws and Policies", "Litigation", "Reports"]), max_size=2, unique=True),
    family_slug=st.lists(st.sampled_from(["family-0", "family-3"]), max_size=2, unique=True),
    max_passages_per_doc=st.none() | st.integers(1, 3),
)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=dear(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FILTERS, limit=st.integers(5, 60))
def test_pages_of_a_narrow_search_are_the_brute_force_order(kg, made, wanted, limit):
    assert pages(kg, "geothermal licence", wanted, limit) == expected(kg, made, "geothermal licence", wanted)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Retrieval whose thresholds are so low that every search of the made-up graph is wide."""
    monkeypatch.setattr(hybrid_search, "NARROW", 0)
    monkeypatch.setattr(hybrid_search, "FIRST_BLOCK", 8)
    monkeypatch.setattr(hybrid_search, "MANY_DOCUMENTS", hybrid_search.MANY_DOCUMENTS)  # so that it is put back
    return hybrid_search


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=dear(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FILTERS, limit=st.integers(5, 60), many=st.sampled_from([0, 1000]))
def test_pages_of_a_wide_search_hold_each_allowed_passage_once(kg, made, wide, wanted, limit, many):
    wide.MANY_DOCUMENTS = many
    ids = pages(kg, "geothermal licence", wanted, limit)
    assert len(ids) == len(set(ids))
    if wanted.max_passages_per_doc is None:
        assert set(ids) == {passage.iri for passage in allowed(made, wanted)}
    else:
        assert len(ids) == len(expected(kg, made, "geothermal licence", wanted))


def test_a_wide_search_asks_deeper_until_the_page_is_full(kg, made, wide):
    wide.MANY_DOCUMENTS = 0
    rare = SearchFilters(iso3=["XAA"])
    found = search(kg, "geothermal licence", rare, limit=20)
    assert {hit.id for hit in found.results} <= {passage.iri for passage in allowed(made, rare)}
    assert len(found.results) == 20
    assert max(limit for units, _, limit in kg.search.ranked if units is None) > 8


def test_a_wide_search_says_that_it_is_approximate_and_gives_no_total(kg, wide):
    found = search(kg, "geothermal", limit=3)
    assert (found.meta.completeness, found.meta.total, found.next_offset) == ("approximate", None, 3)


def test_a_narrow_search_is_complete_and_knows_its_total(kg, made):
    found = search(kg, "geothermal", SearchFilters(iso3=["DJI"]), limit=3)
    total = len(allowed(made, SearchFilters(iso3=["DJI"])))
    assert (found.meta.completeness, found.meta.total, found.meta.snapshot) == ("complete", total, 1)


def test_a_search_over_passages_without_a_vector_says_that_it_is_not_final(kg, made, monkeypatch):
    rank = kg.search.rank
    waiting = next(passage for passage in made if "DJI" in passage.places)

    def half_embedded(*args, **kwargs):
        ranking = rank(*args, **kwargs)
        candidates = [replace(one, cosine=None) if one.iri == waiting.iri else one for one in ranking.candidates]
        return Ranking(candidates, ranking.exhaustive, pending=1)

    monkeypatch.setattr(kg.search, "rank", half_embedded)
    found = search(kg, "geothermal", SearchFilters(iso3=["DJI"]), limit=3)
    assert (found.meta.completeness, found.meta.total, found.next_offset) == ("approximate", None, 3)
    assert "1 of the passages considered have no embedding" in found.notes[0]
    other = next(passage.family for passage in made if passage.family != waiting.family)
    others = search(kg, "geothermal", SearchFilters(family_slug=[other]), limit=3)
    assert (others.meta.completeness, others.notes) == ("complete", [])


@pytest.mark.parametrize("narrow", [0, 1_000])
def test_a_translation_counts_as_the_document_that_it_is_of(pair, monkeypatch, narrow):
    monkeypatch.setattr(hybrid_search, "NARROW", narrow)
    found = search(pair, "English français", SearchFilters(max_passages_per_doc=1))
    assert len(found.results) == found.meta.total == 1
    assert len(search(pair, "English français").results) == 2


def test_a_search_that_gives_up_says_so(kg, wide, monkeypatch):
    monkeypatch.setattr(wide, "DEEPEST", 8)
    wide.MANY_DOCUMENTS = 0
    found = search(kg, "geothermal licence", SearchFilters(iso3=["XAA"]), limit=50)
    assert found.meta.completeness == "truncated"
    assert "Narrow" in found.notes[0]


def test_a_page_beyond_the_last_says_so(kg):
    (beyond,) = search(kg, "solar", offset=10_000).notes
    assert "offset 10000" in beyond


def test_a_hit_says_where_it_comes_from_down_to_the_row(kg, made):
    rows = {passage.iri: row for row, passage in enumerate(made, start=1)}
    found = search(kg, "solar forest", limit=20)
    assert found.results
    for hit in found.results:
        assert hit.provenance.row == rows[hit.id]
        assert hit.provenance.source == "made-up.parquet"
        assert len(hit.provenance.sha256 or "") == 64
        assert hit.provenance.graph.endswith(hit.id.removeprefix("cpr://doc/").partition("#")[0])
        assert hit.url.startswith("https://app.climatepolicyradar.org/documents/")
        assert hit.title


def test_codes_and_corpus_types_are_found_whatever_their_case(kg, made):
    found = search(kg, "solar", SearchFilters(iso3=["dji"], corpus_type=["laws AND policies"]), limit=200)
    wanted = SearchFilters(iso3=["DJI"], corpus_type=["Laws and Policies"])
    assert {hit.id for hit in found.results} == {passage.iri for passage in allowed(made, wanted)}


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ({"iso3": ["DJX"]}, "DJI"),
        ({"language": ["xx"]}, "en-GB"),
        ({"corpus_type": ["Law"]}, "Laws and Policies"),
        ({"family_slug": ["family-9"]}, "family-"),
    ],
)
def test_a_filter_without_a_known_value_is_an_error_that_names_near_ones(kg, wrong, near):
    with pytest.raises(NotFoundError, match=re.escape(near)):
        search(kg, "solar", SearchFilters(**wrong))


@pytest.mark.parametrize(
    ("given", "tag"),
    [("French", "fr"), ("français", "fr"), ("fra", "fr"), ("FR", "fr"), ("Portuguese", "pt"), ("pt-BR", "pt")],
)
def test_language_is_given_by_code_or_name(kg, made, given, tag):
    found = search(kg, "solar", SearchFilters(language=[given]), limit=200)
    assert {hit.id for hit in found.results} == {each.iri for each in allowed(made, SearchFilters(language=[tag]))}
    assert any(given in note for note in found.notes) == (given == "pt-BR")


def test_a_value_that_no_document_has_takes_nothing_from_the_others(kg):
    alone = search(kg, "solar", SearchFilters(iso3=["DJI"]))
    both = search(kg, "solar", SearchFilters(iso3=["DJI", "DJX"]))
    assert alone.results
    assert [hit.id for hit in both.results] == [hit.id for hit in alone.results]
    assert "'DJX'" in both.notes[0]


def test_a_value_that_arrived_after_the_values_were_kept_is_found(kg):
    search(kg, "solar", SearchFilters(iso3=["DJI"]))
    kg.store.update(
        "INSERT DATA { GRAPH <https://w3id.org/quadcite/graph/src/climate/new> {"
        " <cpr://doc/new> a kg:PolicyDocument ; kg:jurisdiction <https://w3id.org/quadcite/id/place/ISL> } }"
    )
    found = search(kg, "solar", SearchFilters(iso3=["isl"]))
    assert found.results == []
    assert any("without the filter iso3" in note for note in found.notes)


def test_hits_name_the_language_of_the_passage_or_the_single_one_of_its_document(kg, made):
    spoken = {each.iri: each.language or (each.languages[0] if len(each.languages) == 1 else None) for each in made}
    hits = search(kg, "solar levy", limit=200).results
    assert {hit.language for hit in hits} > {"fr"}
    assert {hit.id: hit.language for hit in hits} == {hit.id: spoken[hit.id] for hit in hits}


def test_a_language_tag_that_arrived_after_the_tags_were_kept_is_covered(kg):
    family_overview(kg, language=["en"])
    kg.store.update(
        "INSERT DATA { GRAPH <https://w3id.org/quadcite/graph/src/climate/new> { <cpr://doc/new> a kg:PolicyDocument ;"
        ' kg:slug "new" ; schema:inLanguage "en-ZA" ; eli:is_member_of <cpr://family/new> .'
        ' <cpr://family/new> a kg:PolicyFamily ; dcterms:title "A fictional family that is new" } }'
    )
    families = family_overview(kg, language=["en"], limit=200).families
    assert "A fictional family that is new" in {family.family_title for family in families}


def test_concepts_are_accepted_and_said_to_have_no_effect(kg, made):
    found = search(kg, "solar", SearchFilters(concept_qids=["Q1167"]), limit=200)
    assert "no concepts are loaded" in found.notes[0]
    assert "Q1167" in found.notes[0]
    assert found.meta.total == len(made)


@pytest.mark.parametrize("qid", ["q1167", "Q0", "Q1 } #", "1167", "Q", "Q" + "1" * 40])
def test_what_is_no_qid_is_refused(kg, qid):
    with pytest.raises(InvalidInputError, match="QID"):
        search(kg, "solar", SearchFilters(concept_qids=[qid]))


def test_the_sparql_shown_gives_the_rows_that_were_used(kg):
    with recording() as ran:
        found = search(kg, "solar", SearchFilters(iso3=["BRA"], language=["fr"]), limit=200)
    assert ran
    assert [statement.sparql for statement in ran] == [query.strip() for query in kg.pool.asked[-len(ran) :]]
    rows = kg.store.query(found.meta.sparql[0].sparql)
    assert isinstance(rows, Rows)
    assert {row["unit"].value for row in rows} == {hit.id for hit in found.results}


def test_the_same_request_gives_the_same_answer(kg):
    first = search(kg, "levy", SearchFilters(language=["en"]), limit=30)
    assert search(kg, "levy", SearchFilters(language=["en"]), limit=30) == first


HOSTILE = (
    '"] } } ; DROP ALL #',
    "x> } UNION { ?s ?p ?o } #",
    "$places ?unit \\u0022 '''",
    "DJI\n} INSERT DATA { <a:a> <a:a> <a:a> }",
    "\x00\u2028\uffff",
    "%00%2F..%2F",
)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: {"iso3": [text[:32]]},
        lambda text: {"language": [text]},
        lambda text: {"corpus_type": [text]},
        lambda text: {"family_slug": [text]},
        lambda text: {"concept_qids": [text]},
    ],
)
def test_a_filter_is_data_whatever_it_says(kg, text: str, wrap: Callable[[str], dict[str, list[str]]]):
    before = kg.store.statistics()
    filters = wrap(text)
    with pytest.raises(InvalidInputError if "concept_qids" in filters else NotFoundError):
        search(kg, "solar", SearchFilters(**filters))
    assert kg.store.statistics() == before


@pytest.mark.parametrize("text", HOSTILE)
def test_a_query_is_words_whatever_it_says(kg, text, made):
    if any(character.isalnum() for character in text):
        assert search(kg, text, limit=1).meta.total == len(made)
    else:
        with pytest.raises(InvalidInputError):
            search(kg, text, limit=1)
    assert not any(text in query for query in kg.pool.asked)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"query": "  \n "}, "empty"),
        ({"query": "x" * 2_001}, "2,001"),
        ({"query": "a\ud800b"}, "surrogate"),
        ({"query": " § "}, "no letters or digits"),
        ({"query": "?! …"}, "no letters or digits"),
        ({"query": "wind", "must": ["?"]}, r"must: '\?' has no letters"),
        ({"query": "solar", "limit": 0}, "limit is 0"),
        ({"query": "solar", "limit": 201}, "from 1 to 200"),
        ({"query": "solar", "offset": -1}, "offset is -1"),
    ],
)
def test_odd_arguments_are_refused_with_what_would_be_valid(kg, arguments, says):
    with pytest.raises(InvalidInputError, match=says):
        search(kg, **arguments)


def test_an_answer_by_words_states_why_meaning_was_not_compared(kg, monkeypatch):
    rank = Asked.rank

    def fail(self, index, *, mode="hybrid", **asked):
        if mode != "bm25":
            raise IndexUnavailableError("It takes too long.")
        return rank(self, index, mode=mode, **asked)

    monkeypatch.setattr(Asked, "rank", fail)
    found = search(kg, "qwxzvbnm")
    assert any("It takes too long." in note for note in found.notes)


@pytest.mark.parametrize("query", ["§ 12-3", "§ solar", "12", "水", "ق"])
def test_a_query_with_a_letter_or_digit_is_searched(kg, query):
    assert search(kg, query, limit=1).meta


def test_the_scope_is_compiled_without_asking_the_store():
    scope = filters.Scope((filters.JURISDICTION,), terms={"places": [filters.mint("place", "DJI")]})
    assert " ".join(scope.compile(hybrid_search.DOCUMENTS_IN_SCOPE, most=3).split()) == (
        "SELECT DISTINCT ?document WHERE { VALUES ?place { <https://w3id.org/quadcite/id/place/DJI> } "
        "?document kg:jurisdiction ?place . } LIMIT 3"
    )


def test_a_page_beyond_the_results_does_not_advise_other_filters(kg):
    beyond = search(kg, "solar", SearchFilters(iso3=["BRA"]), offset=5_000)
    assert beyond.results == []
    assert "5000" in beyond.notes[0]
    assert "Widen" not in beyond.notes[0]
