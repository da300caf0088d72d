"""What the overviews of countries promise: counts that a plain count of the passages gives too."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from kg.errors import NotFoundError
from kg.tools.climate.families import family_overview
from kg.tools.climate.jurisdictions import compare_jurisdictions, jurisdiction_overview
from tests.tools.made_up import TOPICS, open_graph


@pytest.fixture
def topical(corpus):
    return open_graph(corpus, concepts=True)


def documents_by(made, place, values):
    found = defaultdict(set)
    for passage in made:
        if place in passage.places:
            for value in values(passage):
                found[value].add(passage.document)
    return {value: len(documents) for value, documents in found.items()}


def passages_by_topic(made, place):
    here = [set(passage.text.split()) for passage in made if place in passage.places]
    counts = {qid: sum(word in words for words in here) for qid, (word, _) in TOPICS.items()}
    return {qid: count for qid, count in counts.items() if count}


@pytest.mark.parametrize("place", ["BRA", "DJI", "ZAF", "XAA"])
def test_a_country_is_counted_by_corpus_type_language_and_concept(topical, made, place):
    found = jurisdiction_overview(topical, place.lower())
    assert found.iso3 == place
    assert {each.corpus_type: each.documents for each in found.corpus_types} == documents_by(
        made, place, lambda passage: [passage.corpus]
    )
    assert {each.language: each.documents for each in found.languages} == documents_by(
        made, place, lambda passage: passage.languages
    )
    assert {top.qid: top.passages for top in found.top_concepts} == passages_by_topic(made, place)
    assert found.documents == len({passage.document for passage in made if place in passage.places})
    assert found.families == len({passage.family for passage in made if place in passage.places})


def test_what_is_most_comes_first_and_concepts_come_in_pages(topical):
    whole = jurisdiction_overview(topical, "BRA").top_concepts
    assert [top.passages for top in whole] == sorted((top.passages for top in whole), reverse=True)
    first = jurisdiction_overview(topical, "BRA", limit=2)
    assert first.next_offset == 2
    assert first.top_concepts + jurisdiction_overview(topical, "BRA", offset=2).top_concepts == whole


def test_a_translation_is_no_further_document(pair):
    found = jurisdiction_overview(pair, "BRA" if "BRA" in str(pair.store.inner) else family_place(pair))
    assert found.documents == 1
    assert Counter({each.language: each.documents for each in found.languages}) == {"en": 1, "fr": 1}
    assert "kg load wikibase" in found.notes[0]


def family_place(kg) -> str:
    rows = kg.store.query("SELECT ?code { ?place a kg:Place ; skos:notation ?code }").rows
    return rows[0][0].value


@pytest.mark.parametrize("by", ["corpus_type", "language", "concept"])
def test_two_countries_side_by_side_are_the_counts_of_each(topical, made, by):
    found = compare_jurisdictions(topical, "BRA", "DJI", by=by)
    values = {"corpus_type": lambda p: [p.corpus], "language": lambda p: p.languages}
    expected = [
        passages_by_topic(made, place) if by == "concept" else documents_by(made, place, values[by])
        for place in ("BRA", "DJI")
    ]
    names = found.qids if by == "concept" else found.bins
    assert dict(zip(names, zip(found.a, found.b, strict=True), strict=True)) == {
        name: (expected[0].get(name, 0), expected[1].get(name, 0)) for name in expected[0] | expected[1]
    }
    totals = [a + b for a, b in zip(found.a, found.b, strict=True)]
    assert totals == sorted(totals, reverse=True)
    assert found.counted == ("passages" if by == "concept" else "documents")


def test_bins_come_in_pages(topical):
    whole = compare_jurisdictions(topical, "BRA", "DJI", by="language")
    pages, offset = [], 0
    while offset is not None:
        page = compare_jurisdictions(topical, "BRA", "DJI", by="language", limit=1, offset=offset)
        pages += zip(page.bins, page.a, page.b, strict=True)
        offset = page.next_offset
    assert pages == list(zip(whole.bins, whole.a, whole.b, strict=True))


@pytest.mark.parametrize("code", ["XXX", "Brasil", "} #"])
def test_a_country_that_is_not_there_is_an_error_with_those_that_are(topical, code):
    with pytest.raises(NotFoundError, match=r"iso3: Unknown place .*BRA"):
        jurisdiction_overview(topical, code)
    with pytest.raises(NotFoundError, match="iso3_b"):
        compare_jurisdictions(topical, "BRA", code)


def test_families_are_shown_with_the_concepts_that_they_mention(topical, made):
    found = family_overview(topical, iso3=["BRA"], top_concepts=2)
    for family in found.families:
        of = [p for p in made if f"cpr://family/{p.family}" == family.id and "BRA" in p.places]
        counts = {qid: sum(word in p.text.split() for p in of) for qid, (word, _) in TOPICS.items()}
        assert [top.passages for top in family.top_concepts] == sorted(counts.values(), reverse=True)[:2]
        assert all(top.passages == counts[top.qid] for top in family.top_concepts)
    assert all(not family.top_concepts for family in family_overview(topical).families)


def test_a_country_without_mentions_differs_from_a_graph_without_concepts(topical):
    topical.store.update("DELETE WHERE { GRAPH ?g { ?unit kg:mentions ?concept } }")
    without = [jurisdiction_overview(topical, "BRA"), compare_jurisdictions(topical, "BRA", "DJI", by="concept")]
    for found in without:
        [note] = found.notes
        assert "kg load wikibase" not in note
        assert f"{len(TOPICS)} loaded concepts" in note
