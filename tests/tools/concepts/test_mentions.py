"""What `concept_mentions` promises: every passage that mentions a concept, with its words, in an order that is told."""

from __future__ import annotations

from collections import Counter

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.retrieval.results import SearchFilters
from kg.tools.concepts.mentions import concept_mentions
from kg.tools.search.passages import fetch, search
from tests.tools.made_up import TOPICS, open_graph

NESTED = """
SELECT ?concept (COUNT(DISTINCT ?mention) AS ?count) WHERE {
  ?mention <https://w3id.org/quadcite/ns#nestedIn> ?longer ; <https://w3id.org/quadcite/ns#object> ?concept
} GROUP BY ?concept"""

WORD = {qid: word for qid, (word, _) in TOPICS.items()}


@pytest.fixture
def topical(corpus):
    return open_graph(corpus, concepts=True)


def everything(kg, qids, **options):
    """All evidence, page by page."""
    found, offset = [], 0
    while offset is not None:
        page = concept_mentions(kg, qids, limit=200, offset=offset, **options)
        found += page.evidence
        offset = page.next_offset
    assert (page.meta.total, page.meta.completeness) == (len(found), "complete")
    return found


def expected(made, qids, places=None):
    """Passages with their scores, worked out from the words alone."""
    scores = {}
    for passage in made:
        counts = Counter(passage.text.split())
        score = sum(1 - 0.5 ** counts[WORD[qid]] for qid in qids) / len(qids)
        if score and (places is None or set(places) & set(passage.places)):
            scores[passage.iri] = round(score, 4)
    return scores


@pytest.mark.parametrize("qids", [["Q1012"], ["Q1012", "Q1010"], ["Q1030", "Q1010", "Q1012"]])
@pytest.mark.parametrize("places", [None, ["BRA"], ["DJI", "ZAF"]])
def test_all_that_mention_are_found_with_their_score(topical, made, qids, places):
    found = everything(topical, qids, iso3=places)
    assert {evidence.id: evidence.score for evidence in found} == expected(made, qids, places)


def test_the_words_stand_at_the_offsets(topical):
    found = concept_mentions(topical, ["Q1012", "Q1010"], limit=200).evidence
    assert found
    for evidence in found:
        assert evidence.concept_matches
        for match in evidence.concept_matches:
            assert match.words == [evidence.passage.text[start:end] for start, end in match.offsets]
            assert set(match.words) == {WORD[match.qid]}
            assert (match.label, match.match_type) == (f"{WORD[match.qid]} topic", "alias")


def test_the_order_is_score_then_date_then_family_title_and_index(topical, made):
    by_iri = {passage.iri: passage for passage in made}

    def key(evidence):
        passage = by_iri[evidence.id]
        newest = tuple(-ord(c) for c in passage.date) if passage.date else (1,)
        return -evidence.score, newest, f"Family {passage.family}", passage.title, passage.position

    found = everything(topical, ["Q1012", "Q1010"])
    assert len(found) > 200
    assert [key(evidence) for evidence in found] == sorted(key(evidence) for evidence in found)


def test_pages_fit_together(topical):
    whole = [evidence.id for evidence in concept_mentions(topical, ["Q1012"], limit=200).evidence]
    pages, offset = [], 0
    while offset is not None:
        page = concept_mentions(topical, ["Q1012"], limit=7, offset=offset)
        pages += [evidence.id for evidence in page.evidence]
        offset = page.next_offset
    assert pages == whole


def test_pages_of_passages_that_tie_fit_together(topical):
    whole = [evidence.id for evidence in everything(topical, ["Q1012", "Q1010"])]
    for offset in (0, 3, 50, len(whole) - 2):
        page = concept_mentions(topical, ["Q1012", "Q1010"], limit=4, offset=offset).evidence
        assert [evidence.id for evidence in page] == whole[offset : offset + 4]


def test_narrower_concepts_count_as_the_one_they_are_under_even_in_a_circle(topical, made):
    assert concept_mentions(topical, ["Q1009"]).evidence == []
    found = everything(topical, ["Q1009"], narrower=True)
    # Q1001 is below Q1012, so that all are below each other.
    words = set(WORD.values())
    assert {e.id for e in found} == {p.iri for p in made if words & set(p.text.split())}
    assert {match.qid for e in found for match in e.concept_matches} == {"Q1010", "Q1012", "Q1030"}


def test_a_hierarchy_that_is_too_wide_is_cut_and_said_to_be(topical, monkeypatch):
    monkeypatch.setattr("kg.tools.concepts.mentions.NARROWER_READ", 2)
    found = concept_mentions(topical, ["Q1012"], narrower=True)
    assert "Name one of them" in found.notes[0]
    assert (found.meta.completeness, found.meta.total) == ("truncated", None)
    assert any(match.qid == "Q1012" for match in found.evidence[0].concept_matches)


def test_nothing_found_says_what_to_do(topical):
    found = concept_mentions(topical, ["Q1009"])
    assert "narrower=true" in found.notes[0]
    with pytest.raises(NotFoundError, match="Available:"):
        concept_mentions(topical, ["Q1012"], iso3=["XXX"])


@pytest.mark.parametrize(
    ("qids", "error", "says"),
    [
        (["Q77"], NotFoundError, "Similar:"),
        (["P2"], InvalidInputError, "a property, not an item"),
        (["solr"], InvalidInputError, "Q1010"),
    ],
)
def test_an_error_names_what_would_be_valid(topical, qids, error, says):
    with pytest.raises(error, match=says):
        concept_mentions(topical, qids)


def test_more_passages_than_are_put_in_order_are_announced(topical, monkeypatch):
    monkeypatch.setattr("kg.tools.concepts.mentions.CONSIDERED", 5)
    found = concept_mentions(topical, ["Q1012"], limit=200)
    assert (len(found.evidence), found.meta.completeness, found.meta.total) == (5, "truncated", None)
    assert "More than 5" in found.notes[0]
    # Six counts of mentions are more than are looked at, even if fewer passages have them.
    found = concept_mentions(topical, ["Q1012", "Q1010", "Q1030"], limit=200)
    assert len(found.evidence) <= 5
    assert (found.meta.completeness, found.meta.total) == ("truncated", None)
    in_brazil = concept_mentions(topical, ["Q1012"], iso3=["BRA"], limit=200)
    assert (len(in_brazil.evidence), in_brazil.meta.completeness) == (5, "truncated")


def test_the_fixtures_are_mentioned_in_two_languages(fixtures):
    found = concept_mentions(fixtures, ["Q1013"], narrower=True, limit=200).evidence
    words = {word for evidence in found for match in evidence.concept_matches for word in match.words}
    assert "hydropower" in words
    assert {evidence.document.languages[0] for evidence in found} >= {"en"}
    english = concept_mentions(fixtures, ["Q1013"], language=["en"], limit=200).evidence
    assert {evidence.id for evidence in english} <= {evidence.id for evidence in found}


def test_names_within_longer_names_count_unless_left_out(fixtures):
    rows = list(fixtures.store.query(NESTED))
    assert rows
    for concept, count in {row["concept"].value: int(row["count"].value) for row in rows}.items():
        every = concept_mentions(fixtures, [concept], limit=200)
        longest = concept_mentions(fixtures, [concept], limit=200, nested=False)
        assert offsets(every) - offsets(longest) == count


def offsets(found):
    return sum(len(match.offsets) for evidence in found.evidence for match in evidence.concept_matches)


def test_fetched_evidence_names_the_concepts_that_it_mentions(topical, made):
    passage = next(p for p in made if {"solar", "geothermal"} <= set(p.text.split()))
    [evidence] = fetch(topical, id=passage.iri).evidence
    assert {"Q1010", "Q1012"} <= {match.qid for match in evidence.concept_matches}
    starts = [match.offsets[0][0] for match in evidence.concept_matches]
    assert starts == sorted(starts)


def test_search_puts_first_what_mentions_a_concept(topical, made):
    found = search(topical, "tariff licence", SearchFilters(concept_qids=["Q1012"]), limit=200)
    mentioning = [("geothermal" in p.text.split()) for hit in found.results for p in made if p.iri == hit.id]
    assert mentioning == sorted(mentioning, reverse=True)
    assert sum(mentioning) == sum("geothermal" in p.text.split() for p in made)
    assert [hit.score for hit in found.results] == sorted((hit.score for hit in found.results), reverse=True)
    assert "concept_qids" not in " ".join(found.notes)


def test_search_with_concepts_has_pages_that_fit_together(topical):
    filters = SearchFilters(concept_qids=["Q1012", "Q1010"], iso3=["BRA"])
    whole = [hit.id for hit in search(topical, "levy", filters, limit=200).results]
    pages, offset = [], 0
    while offset is not None:
        page = search(topical, "levy", filters, limit=9, offset=offset)
        pages += [hit.id for hit in page.results]
        offset = page.next_offset
    assert pages == whole
    assert len(set(whole)) == len(whole) > 9


@pytest.mark.parametrize("narrow", [1, 40, 100_000])
def test_search_finds_the_same_first_page_however_many_are_listed(topical, monkeypatch, narrow):
    filters = SearchFilters(concept_qids=["Q1012"])
    expected = {hit.id for hit in search(topical, "geothermal", filters, limit=20).results}
    monkeypatch.setattr("kg.retrieval.hybrid_search.NARROW", narrow)
    topical.memory = type(topical.memory)()
    found = search(topical, "geothermal", filters, limit=20)
    assert all("geothermal" in topical.search.units[hit.id][1] for hit in found.results)
    assert len(found.results) == len(expected) == 20


def test_an_unknown_concept_of_a_search_names_the_nearest(topical, made):
    with pytest.raises(NotFoundError, match=r"concept_qids: .*Q1012 \('geothermal topic'\)"):
        search(topical, "solar", SearchFilters(concept_qids=["Q10120"]), limit=200)
    found = search(topical, "solar", SearchFilters(concept_qids=["Q10120", "Q1012"]), limit=200)
    assert "Q1012 ('geothermal topic')" in found.notes[0]
    assert found.meta.total == len(made)
