"""Ten speeches of three eras beside their sources: what was read there by eye, and the words by another reader.

The eras are those of the files: digitized volumes (1920), SGML (1990), and XML that has all in elements (2003) or whose
text is a word processor's (2014, 2015). The other reader knows tags and names of classes, and has no tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.parliament.speeches import SpeechDetail, get_speech
from loaders.sources import load
from tests.folders import open_graph
from tests.loaders.hansard import facts


@dataclass(frozen=True)
class Read:
    """What a person finds in a file: the speech with this id is its `number`-th element of a name, and says this."""

    id: str
    element: str
    number: int
    person: str
    recorded: str
    page: str
    debate: str
    interjections: int = 0
    besides: dict[str, Any] = field(default_factory=dict)


SENATE, HOUSE = {"chamber": "Senate"}, {"chamber": "House of Representatives"}
SPEECHES = [
    Read("1920-04-28-senate-19", "speech", 8, "K5R", "Senator SENIOR", "1525", "IMMIGRATION BILL", 4,
         SENATE | {"state": "SA", "speech_type": "speech", "party": "", "first_speech": False}),
    Read("1920-04-28-senate-21", "speech", 10, "KKZ", "Senator GARDINER", "1527", "IMMIGRATION BILL", 3,
         SENATE | {"state": "NSW", "speech_type": "speech", "in_government": False}),
    Read("1990-12-05-senate-42", "speech", 41, "NJ4", "Senator TATE", "4995",
         "COMMUNITY SERVICES AND HEALTH LEGISLATION AMENDMENT BILL 1990 / In Committee", 3,
         SENATE | {"state": "TAS", "party": "ALP", "time": "12:06:00", "in_government": True}),
    Read("1990-12-05-senate-106", "answer", 24, "4F4", "Senator BUTTON", "5013",
         "QUESTIONS WITHOUT NOTICE / INFORMATION TECHNOLOGY", 0,
         SENATE | {"state": "VIC", "speech_type": "answer", "answers": "1990-12-05-senate-105"}),
    Read("1990-12-05-senate-137", "speech", 77, "XI4", "Senator REYNOLDS", "5037", "INTER-PARLIAMENTARY UNION", 0,
         SENATE | {"state": "QLD", "party": "ALP", "speaker": "Reynolds Sen The Hon M."}),
    Read("2003-05-28-representatives-43", "question", 13, "83Z", "Mrs IRWIN", "15210",
         "QUESTIONS WITHOUT NOTICE / Education: University Fees", 6,
         HOUSE | {"electorate": "Fowler", "party": "ALP", "time": "15:04:00", "speech_type": "question"}),
    Read("2003-05-28-representatives-120", "speech", 72, "BNL", "Mr ORGAN", "15372",
         "NATIONAL HANDGUN BUYBACK BILL 2003 / Second Reading", 0,
         HOUSE | {"electorate": "Cunningham", "party": "AG", "speaker": "Organ, Michael, MP"}),
    Read("2014-07-09-senate-72", "answer", 13, "N26", "Senator ABETZ", "4523",
         "QUESTIONS WITHOUT NOTICE / Building Industry", 10,
         SENATE | {"state": "TAS", "time": "14:17:00", "answers": "2014-07-09-senate-71", "in_government": None}),
    Read("2014-07-09-senate-154", "speech", 87, "J7Q", "Senator BACK", "4578",
         "COMMITTEES / School Funding Select Committee / Report", 4, SENATE | {"state": "WA", "party": "LP"}),
    Read("2015-02-26-representatives-141", "speech", 98, "217266", "Mrs PRENTICE", "92",
         "CONSTITUENCY STATEMENTS / Papua New Guinea", 0,
         HOUSE | {"electorate": "Ryan", "time": "10:10:00", "speech_type": "speech"}),
]  # fmt: skip

NAMES = "(?:Member(?:Speech|Question|Answer|Interjecting|Continuation)|(?:Office|General)Interjecting)"


def day_of(read: Read, shared: Path) -> Path:
    return shared / "data" / "hansard" / f"{read.id[:4]}.xml"


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("days")
    with open_graph(folder / "data") as opened:
        files = sorted({str(day_of(read, shared)) for read in SPEECHES})
        assert load(opened, "hansard", files, index=False).rejections == []
        yield opened


def words_of(characters: str) -> list[str]:
    return facts.WORD.findall(characters)


def in_file(path: Path, element: str, number: int) -> list[str]:
    """The words of an element without those of its talkers: in elements, or in the heads of paragraphs."""
    text = facts.source(path)
    start = [found.start() for found in re.finditer(rf"<{element}[\s>]", text)][number - 1]
    found = facts.without(text[start : text.index(f"</{element}>", start)], "talker")
    found = re.sub(rf'<span class="HPS-{NAMES}">[^<]*</span>', " ", found)
    found = re.sub(r'<span class="HPS-(?:Electorate|Time|MinisterialTitles)">[^<]*</span>', " ", found)
    return words_of(unescape(facts.TAG.sub(" ", facts.INLINE.sub("", found))))


def said(speech: SpeechDetail) -> dict[str, Any]:
    return {**speech.record.model_dump(), **speech.model_dump(exclude={"record"})}


@pytest.mark.parametrize("read", SPEECHES, ids=lambda read: read.id)
def test_a_speech_is_what_the_file_shows(kg: KnowledgeGraph, shared: Path, read: Read) -> None:
    speech = get_speech(kg, read.id)
    found = {"in_government": None, **said(speech)}
    chamber = "House" if read.besides["chamber"].startswith("House") else "Senate"
    assert speech.record.speaker_id == f"https://w3id.org/quadcite/id/person/aph-{read.person}"
    assert found["speaker_as_recorded"] == read.recorded
    assert found["debate"] == read.debate
    assert found["page"] == read.page
    assert speech.hansard_reference.startswith(f"{chamber} Hansard, ")
    assert speech.hansard_reference.endswith(f" {read.id[:4]}, p. {read.page}")
    assert found["interjections"] == read.interjections
    assert {name: found[name] for name in read.besides} == read.besides


@pytest.mark.parametrize("read", SPEECHES, ids=lambda read: read.id)
def test_a_speech_has_the_words_of_the_file_in_their_order(kg: KnowledgeGraph, shared: Path, read: Read) -> None:
    assert words_of(get_speech(kg, read.id).full_text) == in_file(day_of(read, shared), read.element, read.number)
