"""Facts of a Hansard file, counted straight from its characters: no tree, no parser, nothing of the loader.

``python -m tests.loaders.hansard.facts FILE...`` prints them. An interjection is an element of that name; a talker is
an element ``talker``; a vote is a name in a division. What the markup of schema 2.2 says of talkers in the text alone
is not counted.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from html import unescape
from pathlib import Path
from typing import NamedTuple

WORD = re.compile(r"\w+")
INLINE = re.compile(r"</?(?:inline|span|a|font)\b[^>]*>")
TAG = re.compile(r"<[^>]*>")


class Facts(NamedTuple):
    speeches: int
    questions: int
    answers: int
    interjections: int
    talkers: int
    divisions: int
    votes: int


def source(path: Path) -> str:
    """The characters of a file from its root element on, with the names of elements in lower case."""
    text = path.read_bytes().decode("utf-8-sig")
    text = text[re.search(r"<hansard\b", text, re.IGNORECASE).start() :]  # type: ignore[union-attr]
    text = re.sub(r"</?[A-Z][A-Z.0-9]*", lambda tag: tag[0].lower(), text)
    return text.replace("<interject ", "<interjection ").replace("</interject>", "</interjection>")


def without(text: str, *elements: str) -> str:
    """The characters but those of some elements, which do not nest in themselves."""
    for element in elements:
        name = re.escape(element)
        text = re.sub(rf"<{name}\b(?![.\w])[^>]*/>|<{name}\b(?![.\w])[^>]*>.*?</{name}>", " ", text, flags=re.DOTALL)
    return text


def inside(text: str, element: str) -> list[str]:
    """What stands in each element of a name that does not nest in itself."""
    name = re.escape(element)
    return re.findall(rf"<{name}\b(?![.\w])(?:\s[^>]*[^/>])?>(.*?)</{name}>", text, flags=re.DOTALL)


def counted(path: Path) -> Facts:
    text = source(path)

    def count(element: str) -> int:
        return len(re.findall(rf"<{element}[\s>]", text))

    sides = [side for element in ("ayes", "noes", "pairs") for side in inside(text, element)]
    votes = [name for side in sides for cell in ("name", "entry") for name in inside(side, cell) if name.strip()]
    return Facts(
        count("speech"),
        count("question"),
        count("answer"),
        count("interjection"),
        count("talker"),
        count("division"),
        len(votes),
    )


def words(text: str) -> Counter[str]:
    """The words of characters, each where one element or paragraph ends being cut from the next."""
    return Counter(WORD.findall(unescape(TAG.sub(" ", INLINE.sub("", text)))))


def talkers(path: Path) -> Counter[tuple[str, str]]:
    """Who speaks, by the id and the page, of each element ``talker``."""
    found: Counter[tuple[str, str]] = Counter()
    for talker in inside(source(path), "talker"):
        number = inside(talker, "name.id") or re.findall(r'nameid="([^"]*)"', talker, re.IGNORECASE)
        page = [value for value in inside(talker, "page.no") if value.strip() != "0"]
        found[(number[0].strip() if number else "", page[0].strip() if page else "")] += 1
    return found


def record(path: Path) -> str:
    """The characters of a file that are the record's words, by these rules:

    1. not what describes the file, a talker, a debate or petition (ids, pages, kinds, times, counts of signatures)
    2. not the titles of sides in a division, nor the mark of a teller
    3. not a date that the head says already
    4. the label of a list item is a word of it
    5. schema 2.2: not seat, office and time in the head of a paragraph (the name is one of the words)
    6. schema 2.2: not a heading in the text, which repeats the title of the debate
    7. schema 2.2: not the opening of the next sitting where the body of a speech runs into it
    8. not a title that its sub-debate repeats
    """
    text = re.sub(r'<item label="([^"]*)">', r"<item> \1 ", source(path))
    for element, parts in (
        ("petitioninfo", ("names", "name.ids", "no.signed")),
        ("motionnospeech", ("name", "electorate", "role")),
    ):
        text = re.sub(
            rf"<{element}>.*?</{element}>", lambda found, parts=parts: without(found[0], *parts), text, flags=re.S
        )
    text = without(text, "session.header", "talker", "page.no", "type", "id.no", "num.votes", "time.stamp")
    text = re.sub(r"<(ayes|noes|pairs)\b[^>]*>\s*<title>.*?</title>", " ", text, flags=re.DOTALL)
    text = re.sub(r"\s*(?:\*|\([Tt]eller\))(?=</)", "", text)
    text = re.sub(r"<day.start>\d{4}-\d\d-\d\d</day.start>", " ", text)
    text = re.sub(r'<p class="HPS-\w*JobDate"(?:(?!</body>).)*</body>\s*</talk.text>', "</talk.text>", text, flags=re.S)
    text = re.sub(r'<p class="HPS-\w*Debate".*?</p>', " ", text, flags=re.DOTALL)
    groups = r"((?:(?:\s|</?span[^>]*>)*\((?:[^()]|\([^()]*\))*\))+)"
    text = re.sub(r'("HPS-Member(?:Speech|Question|Answer)"[^>]*>[^<]*</span>\s*</a>)' + groups, r"\1", text)
    mark = r"(?:\s|<[^>]*>)*"
    text = re.sub(rf"\({mark}\d\d?{mark}:{mark}\d\d{mark}\)(?={mark}:)", " ", text)
    return re.sub(r"(</subdebateinfo>)(?:\s*<title>.*?</title>)+", r"\1", text, flags=re.DOTALL)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(argument, *(f"{name}={value}" for name, value in counted(Path(argument))._asdict().items()))
