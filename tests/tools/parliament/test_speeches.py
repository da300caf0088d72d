"""What `get_speech` promises: the whole text, checked on every call, what is recorded of it, and what was around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, Quad

from kg.errors import InvalidInputError, NotFoundError, StoreDamagedError
from kg.retrieval.attribution import REMARK, UNNAMED, other_voice
from kg.retrieval.speech_records import Speech, join_text
from kg.tools.answers import content_of
from kg.tools.calls import SHARED
from kg.tools.catalog.resources import list_resources
from kg.tools.concepts.mentions import concept_mentions
from kg.tools.parliament.search import search_speeches
from kg.tools.parliament.speeches import CONTEXT_CHARACTERS, get_speech
from kg.tools.registry import TOOLS
from kg.tools.search import research
from kg.tools.search.passages import fetch, search
from kg.vocabulary import KG, OA, RDF, SCHEMA, SKOS, mint, mint_mention, mint_span, sha256
from loaders.hansard.parties import CHAMBERS
from tests.tools.made_up_speeches import Said, Speeches, day, open_speeches, table

GET = next(tool for tool in TOOLS if tool.name == "get_speech")


@pytest.fixture(scope="module")
def speeches() -> Speeches:
    return open_speeches([*table(), *day()])


@pytest.fixture
def few() -> Speeches:
    return open_speeches(table(4))


def test_every_speech_comes_back_word_for_word_with_what_is_recorded_of_it(speeches):
    for said in speeches.said:
        one = get_speech(speeches.kg, said.speech_id)
        assert one.full_text == said.text
        assert one.word_count == len(said.text.split())
        assert (one.title, one.date, one.hansard_reference) == (said.title, said.date, said.reference)
        assert (one.party, one.state) == (said.party_recorded or "", said.state or "")
        assert (one.chamber, one.electorate, one.source_url) == (CHAMBERS[said.chamber], said.electorate, said.url)
        assert sorted(one.topic_tags) == sorted(said.topics)
        assert one.record.total_chunks == len(said.chunks())
        assert one.record.text_sha256 == sha256(said.text)
        assert one.provenance.sha256


def test_the_fields_of_the_specification_are_there_even_where_they_are_null(speeches):
    assert [name for name in GET.arguments.model_fields if name not in SHARED] == ["speech_id", "include_context"]
    content = content_of(get_speech(speeches.kg, "2024-05-06-senate-1"))
    assert set(content) >= {
        "speech_id", "title", "speaker", "party", "chamber", "electorate", "state", "date", "hansard_reference",
        "topic_tags", "full_text", "word_count", "source_url", "context_before", "context_after",
    }  # fmt: skip
    assert content["electorate"] is content["source_url"] is content["context_before"] is None


def test_context_is_what_was_said_just_before_and_after_in_the_debate(speeches):
    first, second, third = (get_speech(speeches.kg, f"2024-05-06-senate-{n}", True) for n in (1, 2, 3))
    assert (first.context_before, third.context_after) == (None, None)
    assert second.context_before == first.full_text
    assert second.context_after == third.full_text
    assert third.context_before == "I take that remark about animals as a compliment."
    assert (second.record.before, second.record.after) == ("2024-05-06-senate-1", "2024-05-06-senate-3")
    opening = speeches["2024-05-06-senate-2"].utterances[0][2]
    assert len(opening) > CONTEXT_CHARACTERS
    assert opening.startswith(first.context_after)
    assert CONTEXT_CHARACTERS - 20 < len(first.context_after) <= CONTEXT_CHARACTERS
    assert any("context_after is truncated" in note for note in first.notes)


def test_a_speech_of_a_table_without_order_has_no_context_and_says_so(speeches):
    one = get_speech(speeches.kg, "fictional-0001", include_context=True)
    assert one.context_before is one.context_after is None
    assert any("order" in note for note in one.notes)


def test_speeches_of_a_day_that_have_an_order_and_no_debate_are_around_one_another():
    said = [
        Said(f"s{n}", None, "A", None, None, "au-senate", None, "2023-05-05", (), (("turn", "A", f"text {n}"),),
             position=n)
        for n in (3, 1, 2)
    ]  # fmt: skip
    one = get_speech(open_speeches(said).kg, "s2", include_context=True)
    assert (one.context_before, one.context_after) == ("text 1", "text 3")


@pytest.mark.parametrize("name", ["fictional-0001", "<{}>", "{}", "{}#char=0,20"])
def test_an_iri_of_a_speech_or_of_a_part_of_it_names_it(speeches, name):
    assert get_speech(speeches.kg, name.format(speeches["fictional-0001"].iri.value)).speech_id == "fictional-0001"


def test_an_unknown_id_names_the_nearest(speeches):
    said = r"Unknown speech 'fictional-001'. Similar: 'fictional-0001', 'fictional-0010'"
    with pytest.raises(NotFoundError, match=said):
        get_speech(speeches.kg, "fictional-001")
    with pytest.raises(InvalidInputError, match="speech_id is empty"):
        get_speech(speeches.kg, " ")
    with pytest.raises(NotFoundError, match="No speeches are loaded"):
        get_speech(open_speeches([]).kg, "x")


def changed(speeches: Speeches, position: int, words: str | None) -> None:
    """Change or remove the words of one chunk of fictional-0002 in the store."""
    said = speeches["fictional-0002"]
    start, end = said.chunks()[position]
    graph = mint("graph", "src", "hansard", "speech", said.speech_id)
    chunk = mint_span(said.iri, start, end)
    store = speeches.kg.store.inner  # type: ignore[attr-defined]
    for quad in list(store.quads_for_pattern(chunk, SCHEMA.text, None, graph)):
        store.remove(quad)
    if words is not None:
        store.add(Quad(chunk, SCHEMA.text, Literal(words), graph))


@pytest.mark.parametrize("change", [lambda text: text.replace("e", "3"), lambda text: text[:-1] + "x", lambda _: None])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_words_that_are_not_those_loaded_are_an_error_that_names_the_speech(few, position, change):
    speeches = few
    said = speeches["fictional-0002"]
    assert len(said.chunks()) > 2
    start, end = said.chunks()[position]
    get_speech(speeches.kg, "fictional-0002")
    changed(speeches, position, change(said.text[start:end]))
    with pytest.raises(StoreDamagedError, match="fictional-0002"):
        get_speech(speeches.kg, "fictional-0002")
    assert get_speech(speeches.kg, "fictional-0003").full_text == speeches["fictional-0003"].text


@given(st.text(alphabet="ab\n\U0001f600", min_size=1, max_size=60), st.data())
def test_overlapping_pieces_give_back_any_part_of_a_text(text, data):
    pieces, at = [], 0
    while at < len(text):
        start = data.draw(st.integers(max(0, at - 5), at))
        end = data.draw(st.integers(at + 1, len(text)))
        pieces.append((start, text[start:end]))
        at = end
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    speech = Speech("x", "g", {}, {})
    assert join_text(speech, data.draw(st.permutations(pieces)), start, end) == text[start:end]


def test_the_generic_tools_cite_a_speech_by_speaker_day_and_reference(speeches):
    said = speeches["2024-05-06-senate-2"]
    citation = f"Senator DI FANE, 2024-05-06, {said.reference}"
    hit = next(
        hit for hit in search(speeches.kg, "walrus ferry", limit=200).results if hit.id.startswith(said.iri.value)
    )
    assert hit.title == f"Fictional Ferries Bill ({citation})"
    read = fetch(speeches.kg, id=hit.id)
    assert read.text == said.text[slice(*map(int, hit.id.rpartition("=")[2].split(",")))]
    assert read.evidence[0].document.citation == read.metadata["citation"] == citation
    assert read.evidence[0].document.slug == said.speech_id
    whole = fetch(speeches.kg, id=said.iri.value, limit=5)
    assert whole.text == said.text
    assert whole.meta.total == len(said.chunks())
    assert fetch(speeches.kg, ids=[f"{said.iri.value}0"]).not_found[0].hint.startswith("Similar: '2024-05-06-senate-2")


def test_the_words_of_another_are_cited_as_his_or_hers(speeches):
    said = speeches["2024-05-06-senate-2"]
    words = "Zebras do not swim across any harbour, Senator."
    citation = f"Senator O'TARN in the speech of Senator DI FANE, 2024-05-06, {said.reference}"
    hit = search(speeches.kg, words, limit=1).results[0]
    assert (hit.snippet, hit.title) == (words, f"Fictional Ferries Bill ({citation})")
    assert fetch(speeches.kg, ids=[hit.id]).evidence[0].document.citation == citation
    assert research.search(speeches.kg, words).results[0].title == hit.title
    read = get_speech(speeches.kg, said.speech_id)
    assert [(read.full_text[each.start : each.end].strip(), each.said_by) for each in read.record.others] == [
        (text, name) for kind, name, text in said.utterances if kind == "interjection"
    ]


@pytest.mark.parametrize(
    ("kind", "name", "person", "expected"),
    [
        ("turn", "Ms QUILL", "urn:q", None),
        ("continuation", "Ms Quill", "urn:q", None),
        ("continuation", "Ms Quill", None, None),
        ("continuation", "Mr FEIGN", None, "Mr FEIGN"),
        ("continuation", "Ms QUILL", "urn:other", "Ms QUILL"),
        ("continuation", None, None, None),
        ("interjection", "Mr Feign", "urn:f", "Mr Feign"),
        ("interjection", None, None, UNNAMED),
        ("remark", None, None, REMARK),
    ],
)
def test_who_said_an_utterance_goes_by_its_type_and_by_the_person(kind, name, person, expected):
    assert other_voice(mint("code", "utteranceType", kind).value, name, person, "Ms QUILL", "urn:q") == expected


def test_the_deep_research_pair_cites_speeches_too(speeches):
    hit = research.search(speeches.kg, "walrus").results[0]
    assert hit.title.startswith("Fictional Ferries Bill (Senator DI FANE, 2024-05-06, Senate Hansard")
    read = research.fetch(speeches.kg, hit.id)
    assert "walrus" in read.text
    assert read.title == hit.title
    assert read.metadata["citation"] in read.title


def test_mentions_of_concepts_in_speeches_are_cited():
    said = day()
    concept, view = mint("concept", "Q77"), mint("graph", "der", "skos", "climate", "Q77")
    chunk = mint_span(said[0].iri, *said[0].chunks()[0])
    start = said[0].text.index("ferries")
    mention, found = mint_mention(chunk, start, start + 7, concept), mint("graph", "ext", "mentions", "hansard", "x")
    more = [
        Quad(concept, RDF.type, SKOS.Concept, view),
        Quad(concept, SKOS.prefLabel, Literal("ferries", language="en"), view),
        Quad(chunk, KG.mentions, concept, found),
        Quad(mention, OA.hasSource, chunk, found),
        Quad(mention, KG.object, concept, found),
        Quad(mention, KG.start, Literal(start), found),
        Quad(mention, KG.end, Literal(start + 7), found),
        Quad(mention, KG.matchType, Literal("label"), found),
    ]
    [evidence] = concept_mentions(open_speeches(said, more).kg, ["Q77"], iso3=["AUS"]).evidence
    assert evidence.document.citation == f"Senator O'TARN, 2024-05-06, {said[0].reference}"
    assert evidence.concept_matches[0].words == ["ferries"]


def test_what_speeches_can_be_filtered_by_is_listed(speeches):
    held = {each.title: each for each in list_resources(speeches.kg).resources}
    assert held["Filter topics of speeches: values in use"].values == ["renewable_energy", "schools", "water"]
    assert held["Filter chamber of speeches: values in use"].values == ["House of Representatives", "Senate"]
    assert held["Filter state of speeches: values in use"].values == ["NSW", "QLD", "VIC"]
    assert "Australian Greens" in held["Filter party of speeches: values in use"].values
    assert held["Speeches"].count == len(speeches.said)


@pytest.mark.long
def test_a_speech_of_40_000_words_is_read_whole():
    text = " ".join(f"word{number}" for number in range(40_000))
    said = Said("long", None, "A", None, None, "au-senate", None, "2024-01-01", (), (("turn", "A", text),))
    speeches = open_speeches([said])
    assert get_speech(speeches.kg, "long").word_count == 40_000
    [result] = search_speeches(speeches.kg, "word30000").results
    assert "word30000" in result.excerpt
    assert result.excerpt == text[result.evidence.start : result.evidence.end]


def test_utterances_are_not_passages(speeches):
    hits = search(speeches.kg, "compliment remark walrus", limit=200)
    assert not any("utterance" in hit.id for hit in hits.results)
    assert hits.meta.completeness == "complete"


def test_what_has_no_page_or_is_no_iri_is_told(speeches):
    missing = fetch(
        speeches.kg, ids=["https://w3id.org/quadcite/id/debate/au-senate/2024-05-06/1", "https://w3id.org/"]
    )
    assert missing.not_found[0].hint.startswith("It is a debate")
