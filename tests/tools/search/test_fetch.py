"""What fetch promises: the exact words with everything needed to cite them, and a hint for what is not there."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.retrieval.results import FEWEST_TOKENS, SearchResult
from kg.tools.mounts import RESEARCH
from kg.tools.registry import get
from kg.tools.search import passages, research
from kg.tools.search.passages import fetch, search
from kg.vocabulary import mint
from tests.tools.made_up import quads_of


@pytest.fixture
def versions(kg, corpus):
    """A graph with one more document, of which there is an original and a translation."""
    original = [
        replace(
            p,
            slug="two-faced",
            document=mint("document", "two-faced").value,
            languages=("fr",),
            language=None,
            iri=mint("passage", "two-faced", str(p.position)).value,
        )
        for p in corpus[0]
    ]
    translated = [
        replace(
            p,
            document=mint("document", "two-faced", lang="en").value,
            languages=("en",),
            text="in English",
            iri=mint("passage", "two-faced", str(p.position), lang="en").value,
        )
        for p in original
    ]
    kg.store.inner.extend(quads_of(original))
    kg.store.inner.extend(quads_of(translated))
    return kg


def test_evidence_has_the_exact_words_in_the_order_asked_for(kg, made):
    chosen = [made[9], made[2], made[40]]
    evidence = fetch(kg, ids=[passage.iri for passage in chosen]).evidence
    assert [(item.id, item.passage.text) for item in evidence] == [(p.iri, p.text) for p in chosen]


def test_evidence_has_the_shape_of_the_specification(kg, made):
    passage = made[1]
    (evidence,) = fetch(kg, ids=[passage.iri]).model_dump(mode="json")["evidence"]
    assert evidence == {
        "id": passage.iri,
        "document": {
            "slug": passage.slug,
            "document_id": f"MADE.{passage.slug}",
            "title": passage.title,
            "family_title": f"Family {passage.family}",
            "geographies": sorted(passage.places),
            "languages": sorted(passage.languages),
            "url": f"https://app.climatepolicyradar.org/documents/{passage.slug}",
        },
        "passage": {"index": 1, "page_number": 1, "type": "Text", "text": passage.text},
        "concept_matches": [],
        "score": None,
        "provenance": {
            "graph": f"https://w3id.org/quadcite/graph/src/climate/{passage.slug}",
            "source": "made-up.parquet",
            "sha256": "ab" * 32,
            "row": 2,
            "revision": None,
        },
    }


def test_both_forms_of_a_passage_with_a_translation_are_found(versions):
    plain, translated = fetch(versions, ids=["cpr://doc/two-faced#p=0", "cpr://doc/two-faced#p=0&lang=en"]).evidence
    assert plain.id == "cpr://doc/two-faced#p=0"
    assert plain.document.languages == ["fr"]
    assert (translated.id, translated.passage.text) == ("cpr://doc/two-faced#p=0&lang=en", "in English")


def test_the_language_of_an_original_leads_to_the_plain_passage(versions):
    found = fetch(versions, ids=["cpr://doc/two-faced#p=0&lang=fr", "cpr://doc/two-faced#p=0&lang=pt"])
    assert [evidence.id for evidence in found.evidence] == ["cpr://doc/two-faced#p=0"]
    assert [missing.id for missing in found.not_found] == ["cpr://doc/two-faced#p=0&lang=pt"]
    assert "has the id 'cpr://doc/two-faced#p=0' in" in found.notes[0]


def test_a_document_gives_its_passages_in_order_page_by_page(kg, corpus):
    document = max(corpus, key=len)
    first = fetch(kg, id=document[0].document, limit=3)
    rest = fetch(kg, id=document[0].document, limit=200, offset=first.next_offset or 0)
    assert [item.id for item in [*first.evidence, *rest.evidence]] == [passage.iri for passage in document]
    assert first.text == "\n\n".join(passage.text for passage in document[:3])
    assert first.next_offset == 3
    assert rest.next_offset is None


def test_a_family_gives_the_passages_of_all_its_documents(kg, made):
    found = fetch(kg, id="cpr://family/family-1", limit=200)
    members = {passage.iri for passage in made if passage.family == "family-1"}
    assert found.meta.total == len(members)
    assert found.title == "Family family-1"
    assert {item.id for item in found.evidence} == members


def test_one_id_satisfies_the_deep_research_contract(kg, made):
    one = fetch(kg, id=made[0].iri)
    assert (one.id, one.text) == (made[0].iri, made[0].text)
    assert one.title
    assert one.url
    assert one.metadata is not None
    assert one.metadata["row"] == "1"
    assert all(isinstance(value, str) and value for value in one.metadata.values())


def test_the_research_pair_gives_the_same_words(kg):
    hit = research.search(kg, "geothermal").results[0]
    document = research.fetch(kg, hit.id)
    assert (document.id, document.title, document.url) == (hit.id, hit.title, hit.url)
    assert document.text == fetch(kg, ids=[hit.id]).evidence[0].passage.text


def test_a_research_id_begins_a_long_text_at_the_words_that_were_found(kg, monkeypatch):
    hit = search(kg, "geothermal", limit=1).results[0]
    for start, ending in ((0, ""), (40, ""), (9_000, "&from=9000")):
        found = SearchResult(results=[hit.model_copy(update={"start": start, "end": start + 200})])
        monkeypatch.setattr(passages, "search", Mock(return_value=found))
        assert research.search(kg, "geothermal").results[0].id == hit.id + ending


def test_a_long_document_is_cut_at_whole_passages_and_says_so(kg, corpus, monkeypatch):
    document = max(corpus, key=len)
    monkeypatch.setattr(passages, "TEXT_CHARACTERS", len(document[0].text) + len(document[1].text) + 5)
    found = fetch(kg, id=document[0].document)
    assert found.text == f"{document[0].text}\n\n{document[1].text}"
    assert "first 2 passages" in found.notes[0]


def test_of_many_ids_the_unknown_are_listed_with_a_hint(kg, made):
    slug = made[0].slug
    found = fetch(kg, ids=[made[0].iri, f"cpr://doc/{slug}#p=999", "cpr://doc/act-0_b2", "https://example.org/"])
    hints = {missing.id: missing.hint for missing in found.not_found}
    assert [evidence.id for evidence in found.evidence] == [made[0].iri]
    assert f"cpr://doc/{slug}#p=0" in hints[f"cpr://doc/{slug}#p=999"]
    assert f"cpr://doc/{slug}" in hints["cpr://doc/act-0_b2"]
    assert "cpr://doc/{slug}#p={index}" in hints["https://example.org/"]


def test_many_unknown_ids_do_not_cost_many_queries(kg):
    found = fetch(kg, ids=[f"cpr://doc/none-{number}#p=1" for number in range(200)])
    assert len(found.not_found) == 200
    assert all("search" in missing.hint or "near" in missing.hint for missing in found.not_found)
    assert len(kg.pool.asked) < 60


def test_a_hint_names_each_document_once(pair):
    [missing] = fetch(pair, ids=["cpr://doc/two-face"]).not_found
    assert missing.hint == "Similar: 'cpr://doc/two-faced'."


def test_a_concept_is_not_fetched_but_asked_about(kg):
    [missing] = fetch(kg, ids=["cpr://concept/Q1010"]).not_found
    assert "concept_mentions" in missing.hint


def test_a_single_unknown_id_is_an_error_with_a_hint(kg, made):
    with pytest.raises(NotFoundError, match=made[0].slug):
        fetch(kg, id=f"cpr://doc/{made[0].slug}#p=999")


@pytest.mark.parametrize(
    "name",
    [
        "cpr://doc/x#p=1> } #",
        "cpr://doc/a b|c#p=1",
        "cpr://doc/#p=1",
        "cpr://doc/x#p=-1",
        "cpr://doc/x#p=" + "9" * 400,
        "cpr://family/",
        'cpr://family/"} DROP ALL',
        "cpr://doc/\ud800#p=1",
        "cpr://doc/x#p=1&lang=en> } #",
        "",
        "http://[",
        "x" * 2_000,
    ],
)
def test_an_odd_id_is_not_found_and_changes_nothing(kg, name):
    before = kg.store.statistics()
    found = fetch(kg, ids=[name])
    assert ([missing.id for missing in found.not_found], found.evidence) == ([name], [])
    assert kg.store.statistics() == before


@pytest.mark.parametrize(
    "arguments",
    [{}, {"ids": ["a"], "id": "a"}, {"ids": []}, {"ids": [str(n) for n in range(201)]}, {"ids": ["a"], "limit": 201}],
)
def test_ids_are_one_or_a_list_of_at_most_200(kg, arguments):
    with pytest.raises(InvalidInputError):
        fetch(kg, **arguments)


def test_the_parts_of_a_research_document_are_its_text(kg, corpus):
    document = max(corpus, key=len)
    tool = replace(get("fetch", RESEARCH), max_tokens=FEWEST_TOKENS)
    read, following, parts = "", document[0].document, 0
    while following is not None:
        answer = tool.answer(kg, {"id": following})
        assert (answer.content["id"], answer.content.get("text_from", 0)) == (following, len(read))
        read += answer.content["text"]
        following = answer.content["metadata"].get("next_id")
        assert (following is None) == (answer.meta["completeness"] == "complete")
        parts += 1
    assert read == "\n\n".join(passage.text for passage in document)
    assert parts > 1
    with pytest.raises(NotFoundError):
        research.fetch(kg, research.build_part_id(document[0].document, 10**6))


def test_a_page_of_one_passage_with_its_neighbours_goes_on(kg, corpus):
    document = max(corpus, key=len)
    pages = [fetch(kg, id=document[2].iri, neighbours=2, limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [item.id for page in pages for item in page.evidence] == [passage.iri for passage in document[:5]]
    assert [page.next_offset for page in pages] == [2, 4, None]
    assert {page.text for page in pages} == {document[2].text}
