"""Turns of schema 2.2: the words of several talkers in one body of ``p`` and ``span``.

A paragraph begins with the name of a new talker, marked by the class of a ``span`` or the type of an ``a`` ("Mr
EXAMPLE (Fictown—Minister for Tides) (09:05):"). This head names the talker and is not part of the text. The elements
``interjection`` and ``continue`` of the turn identify these talkers in the same order. Their own ``talk.text`` is
empty, repeats words of the body, or contains words that the body lacks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, cast

from lxml.etree import Element, _Element

from loaders.hansard.bold_names import BoldName, describe_open, read_bold_name
from loaders.hansard.paragraphs import clock, get_paragraphs, get_run
from loaders.hansard.sitting_model import Talker, UtteranceKind
from loaders.hansard.turn_builder import Talk, Turn, talk_of

_HEAD: Final = re.compile(r"(?:HPS-)?(Member|Office|General)(I?)(Speech|Question|Answer|Continuation|Interjecting)")
_QUALIFIERS: Final = re.compile(r"\s*((?:\((?:[^()]|\([^()]*\))*\)\s*)*)(:?)\s*")
_OPENING: Final = re.compile(r"HPS-\w*JobDate")
_TRANSPARENT: Final = frozenset(("talk.text", "body", "div"))
_GROUP: Final = re.compile(r"\(((?:[^()]++|\([^()]*+\))*+)\)")
_TIME: Final = re.compile(r"\s*\d{1,2}[:.]\d\d\s*")
OFFICES: Final = frozenset(("10000", "10001"))
"""Ids of the chair and the clerk. They identify the office, not the person."""


class Head(NamedTuple):
    """The name at the beginning of a paragraph, and the words after it."""

    family: str
    kind: str
    name: str
    name_id: str | None
    fields: dict[str, str]
    text: str


@dataclass(slots=True)
class Part:
    """An ``interjection`` or ``continue`` of a turn."""

    kind: UtteranceKind
    talk: Talk | None
    element: _Element
    used: bool = False


def fill(
    turn: Turn,
    element: _Element,
    senate: bool,
    openings: Sequence[str],
    warn: Callable[[str], None],
    begin_by_form: Callable[[Turn, BoldName, _Element], None],
) -> list[str]:
    """Add the words of a turn's bodies to it, and return the paragraphs after them that belong to no turn.

    ``openings``: the texts at the beginnings of the day's sittings, which are dropped where a body runs into them.
    ``begin_by_form`` starts the words of a talker whom only the form of a paragraph names.
    """
    parts = [
        Part("interjection" if child.tag == "interjection" else "continuation", _talk(child, senate), child)
        for child in element.iterchildren("interjection", "continue")
    ]
    worded = any(_own(part) for part in parts)
    said: Counter[str] = Counter()
    after: list[str] | None = None
    first = True
    for block in blocks(element.iterchildren("talk.text")):
        if after is None and _opens(block.get("class")):
            after = []
        if after is not None:
            after += (text for text in get_paragraphs(block) if text not in openings)
            continue
        texts = get_paragraphs(block)
        if worded:
            said.update(texts)
        head = _head(block, texts)
        if head is None:
            if not first and block.tag == "p" and (name := read_bold_name(block)) is not None:
                begin_by_form(turn, name, block)
                turn.add(texts.pop(0))
            before = turn.kind
            for text in texts:
                turn.proceed(text)
            if turn.kind == "unattributed" and before != turn.kind:
                warn(describe_open([cast("int | None", block.sourceline) or 0]))
            continue
        if head.family == "General" or head.kind == "":
            turn.remark(texts[0])
        else:
            _begin(turn, head, parts, senate, first, warn, block)
            if head.text:
                turn.add(head.text)
        first = False
        for text in texts[1:]:
            turn.add(text)
    _remainder(turn, parts, said, senate, warn)
    return after or []


def _talk(element: _Element, senate: bool) -> Talk | None:
    start = next(element.iterchildren("talk.start"), None)
    return None if start is None else talk_of(start, senate)


def _begin(
    turn: Turn, head: Head, parts: list[Part], senate: bool, first: bool, warn: Callable[[str], None], block: _Element
) -> None:
    """Start the words of a new talker, whom a head names."""
    if first and (head.kind == "turn" or turn.kind != "turn"):
        turn.named(_completed(turn.floor, head, senate))
        return
    if head.kind == "turn":
        if head.name_id != turn.floor.talker.name_id:
            warn(f"line {block.sourceline}: words of {head.name} inside the speech of another person")
        turn.begin("continuation", _completed(None, head, senate))
        return
    kind: UtteranceKind = "continuation" if head.kind == "continuation" else "interjection"
    part = next((part for part in parts if not part.used and part.kind == kind and _is_of(part, head)), None)
    if part is not None:
        part.used = True
    turn.begin(kind, _completed(part.talk if part else None, head, senate))


def _is_of(part: Part, head: Head) -> bool:
    """Whether an element may belong to a head: the same person, or the chair."""
    name_id = part.talk.talker.name_id if part.talk else None
    if head.name_id is None or name_id is None:
        return (name_id in OFFICES) == (head.family == "Office") or name_id is None
    return name_id == head.name_id or (head.family == "Office" and name_id in OFFICES)


def _completed(talk: Talk | None, head: Head, senate: bool) -> Talk:
    """Combine the data of an element and of the head about a talker."""
    talker = talk.talker if talk else Talker(head.name, name_id=None if head.family == "Office" else head.name_id)
    seat, office = head.fields.get("electorate"), head.family == "Office"
    return Talk(
        Talker(
            head.name,
            talker.full_name,
            talker.name_id,
            talker.electorate or (None if senate else seat),
            talker.party,
            talker.state or (seat if senate else None),
            talker.role or head.fields.get("role"),
            talker.in_government,
            talker.first_speech,
            head.name_id if office and head.name_id != talker.name_id else None,
        ),
        (talk.time if talk else None) or clock(head.fields.get("time")),
        talk.page if talk else None,
    )


def _head(block: _Element, texts: list[str]) -> Head | None:
    """Return the name that a paragraph begins with, or None."""
    if block.tag != "p" or not texts or (mark := _mark(block)) is None:
        return None
    element, match = mark
    name = " ".join(get_paragraphs(element))
    if not texts[0].startswith(name):
        return None
    rest, kind = texts[0][len(name) :], match[3].lower()
    kind = "" if match[2] else "turn" if kind in ("speech", "question", "answer") else kind
    fields: dict[str, str] = {}
    qualified = None if name.endswith(":") else _QUALIFIERS.match(rest)
    if (
        qualified
        and qualified[1]
        and (qualified[2] or any(_TIME.fullmatch(group) for group in _GROUP.findall(qualified[1])))
    ):
        rest = rest[qualified.end() :]
        for group in map(str.strip, _GROUP.findall(qualified[1])):
            if _TIME.fullmatch(group):
                fields["time"] = group
            elif match[1] == "Member":
                fields |= _seat(group, block)
            else:
                name = f"{name} ({group})"
    return Head(match[1], kind, name.rstrip(": "), _id(element), fields, rest.lstrip(":").lstrip())


def _seat(group: str, block: _Element) -> dict[str, str]:
    """Return seat and office from the first brackets after a name: "Fictown—Minister for Tides", or one of the two."""
    classes = {span.get("class") for span in block.iter("span")}
    seat, _, role = group.partition("—")
    if "HPS-MinisterialTitles" in classes and "HPS-Electorate" not in classes:
        seat, role = "", group
    return {key: text for key, text in (("electorate", seat.strip()), ("role", role.strip())) if text}


def _mark(block: _Element) -> tuple[_Element, re.Match[str]] | None:
    """Return the element that names a talker at the beginning of a paragraph, or None."""
    element = block
    while not (element.text and not element.text.isspace()):
        for child in element:
            match = _label(child.get("type") if child.tag == "a" else child.get("class"))
            if match is not None and get_run(child).strip():
                return child, match
            if (child.text and not child.text.isspace()) or (len(child) and get_run(child).strip()):
                element = child
                break
            if child.tail and not child.tail.isspace():
                return None
        else:
            return None
    return None


@cache
def _opens(label: str | None) -> bool:
    """Whether a paragraph of this class is the first of a sitting."""
    return label is not None and _OPENING.fullmatch(label) is not None


@cache
def _label(label: str | None) -> re.Match[str] | None:
    """Return the talker's role that the class or type of an element states."""
    return _HEAD.fullmatch(label) if label else None


def _id(element: _Element) -> str | None:
    return (element.get("href") or None) if element.tag == "a" else None


def blocks(elements: Iterable[_Element]) -> list[_Element]:
    """Return the paragraphs and tables within elements that only contain them."""
    found: list[_Element] = []
    for element in elements:
        _gather(element, found)
    return found


def _gather(element: _Element, found: list[_Element]) -> None:
    tag = element.tag
    if tag in _TRANSPARENT or ((tag == "p" or tag == "a") and _holds(element)):
        _loose(element.text, found)
        for child in element:
            _gather(child, found)
            _loose(child.tail, found)
    else:
        found.append(element)


def _loose(text: str | None, found: list[_Element]) -> None:
    """Add a paragraph of words outside any paragraph element."""
    if text and not text.isspace():
        paragraph = Element("p")
        paragraph.text = text
        found.append(paragraph)


def _holds(element: _Element) -> bool:
    """Whether an element, itself a paragraph by its name, contains paragraphs."""
    for child in element:
        tag = child.tag
        if tag == "p" or (tag == "a" and _holds(child)):
            return True
    return False


def _own(part: Part) -> list[_Element]:
    """Return the paragraphs directly in the element of another talker."""
    return blocks(part.element.iterchildren("talk.text"))


def _remainder(turn: Turn, parts: list[Part], said: Counter[str], senate: bool, warn: Callable[[str], None]) -> None:
    """Append the text of the other talkers' elements that the body of the turn lacks."""
    for part in parts:
        new = []
        for block in _own(part):
            texts = get_paragraphs(block)
            if texts and all(said[text] > 0 for text in texts):
                said.subtract(texts)
            elif texts:
                new.append((_head(block, texts), texts))
        if part.used and not new:
            continue
        head = new[0][0] if new else None
        turn.begin(part.kind, _completed(part.talk, head, senate) if head else part.talk)
        if not new:
            warn(f"line {part.element.sourceline}: a talker is named, but has no words")
        for mark, texts in new:
            for text in ([mark.text] if mark else texts[:1]) + texts[1:]:
                if text:
                    turn.add(text)
