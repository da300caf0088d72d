"""Real sitting days: the counts of the characters are the parser's, and every word comes out exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from loaders.hansard.sitting_model import Sitting, Utterance
from loaders.hansard.sitting_xml import parse_sitting
from tests.loaders.hansard import facts

DAYS = ("1920", "1990", "1998", "2001", "2003", "2006", "2008", "2012", "2014", "2015")
BODIES = ("2012", "2014", "2015")


@pytest.fixture(params=DAYS)
def path(request: pytest.FixtureRequest, shared: Path) -> Path:
    found: Path = shared / "data" / "hansard" / f"{request.param}.xml"
    return found


@cache
def sitting(path: Path) -> Sitting:
    return parse_sitting(path.read_bytes(), path.name)


def test_the_counts_are_those_of_the_file(path: Path) -> None:
    """Speeches, questions, answers, interjections, talkers, divisions and votes, by a script that shares no code."""
    day = sitting(path)
    kinds = Counter(speech.kind for speech in day.speeches)
    found = facts.Facts(
        speeches=kinds["speech"],
        questions=kinds["question"] + kinds["writtenQuestion"],
        answers=kinds["answer"] + kinds["writtenAnswer"],
        interjections=sum(talk.kind == "interjection" for talk in talks_of(day)),
        talkers=sum(talkers_of(day).values()),
        divisions=len(day.divisions),
        votes=sum(len(division.votes) for division in day.divisions),
    )
    assert found == facts.counted(path)


def talks_of(day: Sitting) -> Iterator[Utterance]:
    """The words for which the file names a talker: not those with which whoever has the floor goes on unnamed."""
    for speech in day.speeches:
        seen: set[int] = set()
        for utterance in speech.utterances:
            if utterance.talker is not None and not utterance.by_form and id(utterance.talker) not in seen:
                seen.add(id(utterance.talker))
                yield utterance


def talkers_of(day: Sitting) -> Counter[tuple[str, str]]:
    """Ids and pages (which SGML has elsewhere) of who speaks or presents a petition, but for the movers of motions."""
    moved = {id(speech.talker) for speech in day.speeches if speech.kind == "motion"}
    talks = [talk for talk in talks_of(day) if id(talk.talker) not in moved]
    if day.schema_version is None:
        return Counter((talk.talker.name_id or "", "") for talk in talks if talk.talker)
    found = Counter((talk.talker.name_id or "", talk.page or "") for talk in talks if talk.talker)
    found.update((presenter.name_id or "", "") for debate in day.debates for presenter in debate.presenters)
    return found


def test_each_talker_is_found(path: Path) -> None:
    assert talkers_of(sitting(path)) == facts.talkers(path)


def words_of(day: Sitting) -> Counter[str]:
    """All words that a sitting has for the record: not those of talkers, which have a test of their own."""
    texts: list[str | None] = [speech.text for speech in day.speeches]
    texts += [procedure.text for procedure in day.procedures]
    texts += [debate.title for debate in day.debates]
    for division in day.divisions:
        texts += [division.header, division.result, *(vote.name for vote in division.votes)]
    if day.schema_version == "2.2":
        texts += [talk.talker.name for talk in talks_of(day) if talk.talker]
    return Counter(word for text in texts if text for word in facts.WORD.findall(text))


def test_every_word_comes_out_once(path: Path) -> None:
    """The words of the file are those of the sitting, each as often, but for what `hansard_facts.record` leaves out."""
    day = sitting(path)
    found = words_of(day)
    cognate = Counter(
        word
        for debate in day.debates
        for bill in debate.bills
        if debate.title and bill not in debate.title
        for word in facts.WORD.findall(bill)
    )
    expected = facts.words(facts.record(path)) - cognate
    assert (expected - found, found - expected) == (Counter(), Counter())
