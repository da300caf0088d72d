"""Whose words a result quotes: with a filter by speaker, party or office, and in speeches of others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.attribution import UNNAMED
from kg.retrieval.reader import Reader
from kg.retrieval.speech_records import load_speeches, load_utterances
from kg.store.protocol import term_text
from kg.tools.parliament.search import search_speeches
from kg.tools.parliament.speakers import list_speakers, speech_stats
from kg.tools.parliament.speeches import get_speech
from kg.tools.search import research
from kg.tools.search.passages import fetch, search
from loaders.sources import load
from tests.folders import open_graph

CHUNKS = """SELECT ?c ?s ?from ?to ?v {
  ?c a kg:SpeechChunk ; dcterms:isPartOf ?s ; kg:start ?from ; kg:end ?to OPTIONAL { ?c kg:otherVoice ?v }
}"""


def talk(number: str, full: str, shown: str, text: str, more: str = "") -> str:
    names = f'<name role="metadata">{full}</name><name role="display">{shown}</name><name.id>{number}</name.id>'
    return f"<talk.start><talker>{names}{more}</talker><para>—{text}</para></talk.start>"


def day(on: str, *speeches: str) -> str:
    header = f"<session.header><date>{on}</date><chamber>REPS</chamber></session.header>"
    info = "<debateinfo><title>Kelp Levy</title><page.no>7</page.no></debateinfo>"
    debate = f"<debate>{info}{''.join(speeches)}</debate>"
    return f'<hansard version="2.1">{header}<chamber.xscript>{debate}</chamber.xscript></hansard>'


ABEL = ("A1", "Abel, Ada, MP", "Ms ABEL")
BOON = ("B2", "Boon, Ben, MP", "Mr BOON")
CHAIR = ("C3", "Crane, Cato (The SPEAKER)", "The SPEAKER")
FIRST = day(
    "2001-05-08",
    f"<speech>{talk(*ABEL, 'The kelp levy feeds the harbour towns.', '<party>ALP</party>')}"
    f"<interjection>{talk('B2', 'Boon, Ben, MP', 'Mr Boon', 'The kelp levy is a swindle!')}</interjection>"
    f"<continue>{talk(*ABEL, 'The kelp levy is no swindle.')}</continue>"
    f"<interjection>{talk(*CHAIR, 'Order! The kelp levy is before the House.')}</interjection>"
    "<para><inline font-weight='bold'>Government members</inline>—Kelp for ever!</para>"
    "<para>I thank the kelp growers.</para></speech>",
    f"<speech>{talk(*BOON, 'I oppose the kelp levy with all my heart.', '<party>LP</party>')}</speech>",
)
LATER = day(
    "2007-05-08",
    f"<speech>{talk('C3', 'Crane, Cato, MP', 'Mr CRANE', 'From the back bench I praise the kelp levy.')}</speech>",
    f"<speech>{talk('D4', 'Dunn, Dora (The DEPUTY SPEAKER)', 'The DEPUTY SPEAKER', 'No kelp today.')}</speech>",
)


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("words")
    (folder / "first.xml").write_text(FIRST)
    (folder / "later.xml").write_text(LATER)
    with open_graph(folder / "data") as opened:
        load(opened, "hansard", [str(folder / "first.xml"), str(folder / "later.xml")])
        yield opened


def quoted(kg: KnowledgeGraph, **filters: str) -> set[tuple[str, str]]:
    found = search_speeches(kg, "kelp levy swindle", top_k=20, **filters)
    return {(each.speaker, each.excerpt) for each in found.results}


def test_speaker_filter_quotes_only_that_person_also_in_speeches_of_others(kg):
    assert quoted(kg, speaker="Boon") == {
        ("Boon, Ben, MP", "—The kelp levy is a swindle!"),
        ("Boon, Ben, MP", "—I oppose the kelp levy with all my heart."),
    }
    [only] = search_speeches(kg, "swindle", speaker="Boon", top_k=1).results
    assert (only.speaker, only.in_speech_of, only.speech_id) == (
        "Boon, Ben, MP",
        "Abel, Ada, MP",
        "2001-05-08-representatives-1",
    )
    [own] = search_speeches(kg, "swindle", speaker="Ms Abel").results
    assert (own.excerpt, own.in_speech_of) == ("—The kelp levy is no swindle.", None)


def test_party_filter_quotes_interjections_of_members_by_derived_party(kg):
    found = {each.excerpt: each for each in search_speeches(kg, "kelp levy swindle", party="Liberal").results}
    assert set(found) == {"—The kelp levy is a swindle!", "—I oppose the kelp levy with all my heart."}
    call = found["—The kelp levy is a swindle!"]
    assert (call.party, call.derived_party) == ("", "Liberal Party of Australia")
    assert {speaker for speaker, _ in quoted(kg, party="ALP")} == {"Abel, Ada, MP"}


def test_office_filter_finds_the_turns_of_the_chair_and_not_the_later_speeches_of_the_person(kg):
    assert quoted(kg, speaker="The SPEAKER") == {("Crane, Cato, MP", "—Order! The kelp levy is before the House.")}
    assert quoted(kg, speaker="mr speaker") == quoted(kg, speaker="The SPEAKER")
    assert {speaker for speaker, _ in quoted(kg, speaker="deputy speaker")} == {"Dunn, Dora"}
    assert len(quoted(kg, speaker="Crane")) == 2


def test_person_who_presides_keeps_one_name(kg):
    by_id = {each.id.rpartition("/")[2]: each for each in list_speakers(kg).speakers if each.id}
    assert {key: each.name for key, each in by_id.items()} == {
        "aph-A1": "Abel, Ada, MP", "aph-B2": "Boon, Ben, MP", "aph-C3": "Crane, Cato, MP", "aph-D4": "Dunn, Dora",
    }  # fmt: skip
    assert [each.name for each in list_speakers(kg, query="the deputy speaker").speakers] == ["Dunn, Dora"]


def test_words_of_a_crowd_are_of_nobody_and_marked(kg):
    [found] = search_speeches(kg, "kelp for ever", speaker="Government members").results
    assert (found.speaker, found.in_speech_of, found.party) == ("Government members", "Abel, Ada, MP", "")
    assert found.attributed_by_form
    others = {each.said_by: each for each in get_speech(kg, "2001-05-08-representatives-1").record.others}
    assert {"Government members", "Mr Boon", "The SPEAKER", UNNAMED} == set(others)  # the last words name nobody
    assert others["Government members"].by_form
    assert not others["Mr Boon"].by_form


def test_search_and_fetch_name_who_said_the_words(kg):
    hit = next(each for each in search(kg, "swindle kelp").results if "is a swindle" in each.snippet)
    assert hit.said_by == "Mr Boon"
    assert fetch(kg, ids=[hit.id]).evidence[0].said_by == "Mr Boon"
    assert research.fetch(kg, id=hit.id).metadata["said_by"] == "Mr Boon"
    title = next(each.title for each in research.search(kg, "swindle kelp").results if each.id == hit.id)
    assert "Mr Boon in the speech of Ms ABEL" in title


def test_speech_stats_count_interjections_made(kg):
    groups = {each.label: each for each in speech_stats(kg, group_by="speaker").groups}
    assert (groups["Boon, Ben, MP"].interjections, groups["Boon, Ben, MP"].interjections_made) == (0, 1)
    assert (groups["Abel, Ada, MP"].interjections, groups["Abel, Ada, MP"].interjections_made) == (3, 0)
    assert groups["Crane, Cato, MP"].interjections_made == 1
    parties = {each.label: each.interjections_made for each in speech_stats(kg).groups}
    assert parties["Liberal Party of Australia"] == 1
    assert speech_stats(kg, speaker="Boon").totals.interjections_made == 1


def test_stored_voices_of_chunks_are_those_of_the_utterances(kg):
    rows = kg.query(CHUNKS).result
    reader = Reader(kg)
    speeches = load_speeches(reader, sorted({row["s"].value for row in rows}))
    utterances = load_utterances(reader, list(speeches))
    for row in rows:
        start, end = int(term_text(row["from"])), int(term_text(row["to"]))
        of = next(each for each in utterances[row["s"].value] if each.start <= start and end <= each.end)
        assert (speeches[row["s"].value].other_voice(of) is None) == ("v" not in row)
