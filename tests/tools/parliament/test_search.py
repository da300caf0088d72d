"""What `search_speeches` promises: the seed's fields, filters that all hold, one result a speech, words verbatim."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, Quad

from kg.errors import InvalidInputError, NotFoundError
from kg.retrieval.excerpts import EXCERPT_CHARACTERS
from kg.tools.calls import SHARED
from kg.tools.parliament.search import search_speeches
from kg.tools.registry import TOOLS
from kg.vocabulary import KG, RDF, SKOS, mint, mint_span
from loaders.hansard.parties import CHAMBERS
from tests.examples import spread
from tests.tools.made_up_speeches import Speeches, day, open_speeches, table

DEBATE = {"date_from": "2024-05-06", "date_to": "2024-05-06"}
QUERY = "solar ferry harbour tides levy"
SEARCH = next(tool for tool in TOOLS if tool.name == "search_speeches")


@pytest.fixture(scope="module")
def speeches() -> Speeches:
    return open_speeches([*table(), *day()])


@pytest.fixture(scope="module")
def many() -> Speeches:
    """More chunks than are listed and scored one by one, so that the index proposes."""
    return open_speeches(table(900, seed=5))


def found(speeches: Speeches, **filters) -> list[str]:
    return [result.speech_id for result in search_speeches(speeches.kg, QUERY, top_k=50, **filters).results]


def test_a_result_has_the_fields_of_the_specification_and_where_it_is_quoted_from(speeches):
    fields = {
        "speech_id": str, "speaker": str, "party": str, "chamber": str, "date": str, "title": str, "excerpt": str,
        "relevance_score": float, "hansard_reference": str, "topic_tags": list, "source_url": (str, type(None)),
        "chunk_index": int, "total_chunks": int,
    }  # fmt: skip
    assert [name for name in SEARCH.arguments.model_fields if name not in SHARED] == [
        "query", "speaker", "party", "chamber", "date_from", "date_to", "topics", "state", "top_k",
        "offset", "must", "min_score", "neighbours",
    ]  # fmt: skip
    for result in search_speeches(speeches.kg, QUERY).model_dump(mode="json")["results"]:
        assert {name: isinstance(result[name], kind) for name, kind in fields.items()} == dict.fromkeys(fields, True)
        said = speeches[result["speech_id"]]
        assert (result["date"], result["title"], result["source_url"]) == (said.date, said.title, said.url)
        assert (result["party"], result["chamber"]) == (said.party_recorded or "", CHAMBERS[said.chamber])
        assert (result["hansard_reference"], sorted(result["topic_tags"])) == (said.reference, sorted(said.topics))
        start, end = said.chunks()[result["chunk_index"]]
        assert result["total_chunks"] == len(said.chunks())
        assert result["evidence"]["id"] == mint_span(said.iri, start, end).value
        assert result["evidence"]["provenance"]["sha256"]


FILTERS = [
    ({}, lambda said: True),
    ({"speaker": "Jane Quill"}, lambda said: said.person == "aph-AAA"),
    ({"speaker": "Quill"}, lambda said: said.person in ("aph-AAA", "aph-BBB")),
    ({"speaker": "the president"}, lambda said: said.recorded == "The PRESIDENT"),
    ({"party": "ALP"}, lambda said: said.party == "labor"),
    ({"party": "liberal"}, lambda said: said.party == "liberal"),
    ({"party": "Tidal Reform"}, lambda said: said.party_recorded == "Tidal Reform"),
    ({"chamber": "Senate"}, lambda said: said.chamber == "au-senate"),
    ({"chamber": "house of representatives"}, lambda said: said.chamber == "au-representatives"),
    ({"state": "Victoria"}, lambda said: said.state == "VIC"),
    ({"date_from": "2024-01-01"}, lambda said: said.date >= "2024-01-01"),
    ({"date_to": "2023-06-30"}, lambda said: said.date <= "2023-06-30"),
    ({"date_from": "2023-06-30", "date_to": "2024-02-01"}, lambda said: "2023-06-30" <= said.date <= "2024-02-01"),
    ({"topics": ["Water"]}, lambda said: "water" in said.topics),
    ({"topics": ["renewable energy", "schools"]}, lambda said: {"renewable_energy", "schools"} & set(said.topics)),
    (
        {"party": "Labor", "chamber": "House", "state": "nsw", "topics": ["water"], "date_from": "2023-03-01"},
        lambda said: said.party == "labor" and "water" in said.topics and said.date >= "2023-03-01",
    ),
]


@pytest.mark.parametrize(("filters", "holds"), FILTERS, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_every_speech_that_passes_all_filters_is_found_and_no_other(speeches, filters, holds):
    expected = {said.speech_id for said in speeches.said if holds(said)}
    assert expected
    assert set(found(speeches, **filters)) == expected if len(expected) < 50 else len(found(speeches, **filters)) == 50
    assert set(found(speeches, **filters)) <= expected


@pytest.mark.long
@pytest.mark.parametrize(("filters", "holds"), FILTERS, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_the_same_holds_where_the_index_proposes(many, filters, holds):
    expected = {said.speech_id for said in many.said if holds(said)}
    ids = found(many, **filters)
    assert set(ids) <= expected
    assert len(ids) == min(50, len(expected))


@pytest.mark.parametrize("top_k", [1, 7, 50])
def test_each_speech_comes_once_best_first_by_a_score_from_0_to_1(speeches, many, top_k):
    for graph in (speeches, many):
        results = search_speeches(graph.kg, QUERY, top_k=top_k).results
        scores = [result.relevance_score for result in results]
        assert len({result.speech_id for result in results}) == len(results) == top_k
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_an_excerpt_is_verbatim_on_word_boundaries_and_as_long_as_it_may_be(speeches):
    for result in search_speeches(speeches.kg, QUERY, top_k=50).results:
        text, at = speeches[result.speech_id].text, result.evidence
        assert result.excerpt == text[at.start : at.end]
        assert len(result.excerpt) <= EXCERPT_CHARACTERS
        assert at.start == 0 or text[at.start - 1].isspace()
        assert at.end == len(text) or text[at.end].isspace()
        assert len(result.excerpt) > min(len(text), EXCERPT_CHARACTERS) - 20


def test_the_match_stands_in_the_middle_of_a_long_text(speeches):
    result = search_speeches(speeches.kg, "walrus", **DEBATE).results[0]
    text = speeches[result.speech_id].text
    assert abs(text.index("walrus") - (result.evidence.start + result.evidence.end) / 2) < 20
    assert len(result.excerpt) > EXCERPT_CHARACTERS - 20


def test_the_words_of_another_are_not_given_as_those_of_the_speaker(speeches):
    result = search_speeches(speeches.kg, "zebras swim across harbour", **DEBATE).results[0]
    assert (result.speech_id, result.speaker) == ("2024-05-06-senate-2", "Senator O'TARN")
    assert (result.in_speech_of, result.party) == ("Mara Di Fane", "")
    assert result.excerpt == "Zebras do not swim across any harbour, Senator."
    other = search_speeches(speeches.kg, "bay winter walrus", **DEBATE).results[0]
    assert (other.speaker, other.in_speech_of) == ("Mara Di Fane", None)
    assert "Zebras" not in other.excerpt


def test_a_name_that_is_not_exact_is_told(speeches):
    def notes(**filters):
        return search_speeches(speeches.kg, QUERY, **filters).notes

    assert notes(speaker="Jane Quill") == []
    [left_out] = notes(party="Greens")
    assert left_out.startswith("party: 18 speeches")
    [note] = notes(speaker="quill")
    assert "'Quill, Jane, MP' (aph-AAA)" in note
    assert "'Quill, Harold, MP' (aph-BBB)" in note
    [note, other] = notes(party="queensland")
    assert other == left_out
    assert "'Liberal National Party of Queensland' (lnp)" in note


@pytest.mark.parametrize(
    ("filters", "error", "says"),
    [
        ({"speaker": "Jane Quilp"}, NotFoundError, "Similar: 'Quill, Jane, MP'"),
        ({"party": "Grens"}, NotFoundError, "Similar: 'Australian Greens'"),
        ({"topics": ["renewable_enrgy"]}, NotFoundError, "Similar: 'renewable_energy'"),
        ({"chamber": "Lords"}, NotFoundError, "Available: House of Representatives, Senate"),
        ({"state": "Utah"}, NotFoundError, "ACT, NSW, NT, QLD, SA, TAS, VIC, WA"),
        ({"date_from": "15/10/2024"}, InvalidInputError, "date_from: '15/10/2024' is not a day"),
        ({"date_to": "2024-02-30"}, InvalidInputError, "date_to: '2024-02-30' is not a day"),
        ({"date_from": "2024-2-3"}, InvalidInputError, "YYYY-MM-DD"),
        ({"date_from": "2024-05-02", "date_to": "2024-05-01"}, InvalidInputError, "is after date_to"),
        ({"speaker": "  "}, InvalidInputError, "speaker is empty"),
        ({"top_k": 0}, InvalidInputError, "top_k"),
        ({"top_k": 51}, InvalidInputError, "top_k.*50"),
        ({"query": " "}, InvalidInputError, "query"),
        ({"query": ""}, InvalidInputError, "query"),
        ({"colour": "red"}, InvalidInputError, "colour"),
        ({"topics": {"tag": "water"}}, InvalidInputError, "topics.*list"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_an_error_that_says_what_can(speeches, filters, error, says):
    with pytest.raises(error, match=says):
        SEARCH.call(speeches.kg, {"query": QUERY, **filters})


def test_one_unknown_topic_among_known_ones_is_told(speeches):
    answer = search_speeches(speeches.kg, QUERY, topics=["water", "nonsense"], top_k=50)
    assert {result.speech_id for result in answer.results} == set(found(speeches, topics=["water"]))
    assert any("No speech has 'nonsense'" in note for note in answer.notes)


def test_topics_mean_mentions_where_a_speech_has_no_tags():
    said = table()
    concept, view = mint("concept", "Q77"), mint("graph", "der", "skos", "climate", "Q77")
    more = [
        Quad(concept, RDF.type, SKOS.Concept, view),
        Quad(concept, SKOS.prefLabel, Literal("seawater", language="en"), view),
        Quad(concept, SKOS.altLabel, Literal("Water", language="en"), view),
    ]
    mentioning = set()
    for each in said[::3]:
        chunk = mint_span(each.iri, *each.chunks()[-1])
        more.append(Quad(chunk, KG.mentions, concept, mint("graph", "ext", "mentions", "hansard", each.speech_id)))
        mentioning.add(each.speech_id)
    speeches = open_speeches(said, more)
    untagged = {each.speech_id for each in said if not each.topics} & mentioning
    assert untagged
    assert mentioning - untagged
    assert set(found(speeches, topics=["seawater"])) == untagged
    assert set(found(speeches, topics=["water"])) == untagged | {e.speech_id for e in said if "water" in e.topics}


def test_filters_that_leave_nothing_are_named(speeches):
    answer = search_speeches(speeches.kg, QUERY, chamber="House", state="QLD")
    assert answer.results == []
    assert any("without the filter chamber or state" in note for note in answer.notes)


@pytest.mark.parametrize(
    "filters", spread([DEBATE, {}, {"party": "Greens"}, {"topics": ["water"], "chamber": "Senate"}], 2), ids=str
)
@pytest.mark.parametrize("top_k", spread([7, 50], 1))
@pytest.mark.long
def test_pages_repeat_and_omit_no_speech(speeches, many, filters, top_k):
    for graph in (speeches, many):
        first = search_speeches(graph.kg, QUERY, top_k=top_k, **filters)
        ids, offset = [result.speech_id for result in first.results], first.next_offset
        while offset is not None and offset < 200:
            page = search_speeches(graph.kg, QUERY, top_k=top_k, offset=offset, **filters)
            ids += [result.speech_id for result in page.results]
            assert page.covers == first.covers
            assert page.next_offset in (None, offset + top_k)
            offset = page.next_offset
        assert len(set(ids)) == len(ids)
        assert bool(ids) == bool(found(graph, **filters))
        if offset is None:
            whole = search_speeches(graph.kg, QUERY, top_k=50, **filters)
            assert set(found(graph, **filters)) <= set(ids)
            assert len(ids) == whole.meta.total or whole.meta.total is None
        assert search_speeches(graph.kg, QUERY, top_k=top_k, offset=50_000, **filters).results == []


def test_an_answer_shows_the_query_that_selected_it(speeches):
    answer = search_speeches(speeches.kg, QUERY, party="Greens", chamber="House")
    rows = speeches.kg.query(answer.meta.sparql[0].sparql).result
    assert {result.evidence.speech for result in answer.results} <= {row["document"].value for row in rows}


def test_filters_that_leave_more_than_can_be_listed_hold_all_the_same(many, monkeypatch):
    monkeypatch.setattr("kg.retrieval.hybrid_search.MANY_DOCUMENTS", 5)
    results = search_speeches(many.kg, QUERY, party="Greens", topics=["water"], top_k=50).results
    assert len(results) == 50
    assert all(
        (said.party, "water" in said.topics) == ("greens", True) for said in (many[r.speech_id] for r in results)
    )
    assert [r.relevance_score for r in results] == sorted((r.relevance_score for r in results), reverse=True)
