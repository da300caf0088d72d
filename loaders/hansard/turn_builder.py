"""The text of a turn while it is built, with the speaker of each part."""

from __future__ import annotations

import re
from datetime import time
from typing import Final, NamedTuple

from lxml.etree import _Element

from loaders.hansard.paragraphs import EDGES, clock, to_line
from loaders.hansard.sitting_model import Talker, Utterance, UtteranceKind

_REMARK: Final = re.compile(r"[^.?!:;]{1,80}\binterjecting[\s—–-]*")
_NAMES: Final = {"metadata": "name.metadata"}
_BRACKETED: Final = frozenset(("electorate", "role"))
_FLAGS: Final = {"1": True, "0": False}


class Talk(NamedTuple):
    """The head of some words: speaker, time and page."""

    talker: Talker
    time: time | None = None
    page: str | None = None


class Turn:
    """The text of an unfinished turn. The speaker who has the floor continues after interruptions."""

    def __init__(self, floor: Talk, kind: UtteranceKind = "turn") -> None:
        self.speaker = floor.talker
        self.floor = floor
        self.kind = kind
        self._paragraphs: list[str] = []
        self._length = 0
        self._begun: list[tuple[UtteranceKind, Talk | None, int]] = [(kind, floor, 0)]

    def begin(self, kind: UtteranceKind, talk: Talk | None = None) -> None:
        """Start words of another speaker, or of the same one after an interruption."""
        self.kind = kind
        if kind == "continuation" and talk is not None:
            self.floor = talk
        self._begun.append((kind, talk, self._length))

    def named(self, talk: Talk) -> None:
        """Add details about the first speaker."""
        self.floor, self.speaker = talk, talk.talker
        self._begun[0] = (self._begun[0][0], talk, 0)

    def add(self, paragraph: str) -> None:
        """Append a paragraph to the current speaker's words."""
        self._paragraphs.append(paragraph)
        self._length += len(paragraph) + 1

    def resume(self, paragraph: str) -> None:
        """Append a paragraph without a name: a remark of the record, or words of the speaker who has the floor."""
        if "interjecting" in paragraph and _REMARK.fullmatch(paragraph):
            self.begin("remark")
        elif self.kind in ("interjection", "remark"):
            self.kind = "continuation"
            self._begun.append(("continuation", Talk(self.floor.talker), self._length))
        self.add(paragraph)

    def remark(self, paragraph: str) -> None:
        """Append words of the record without a speaker."""
        if self.kind != "remark":
            self.begin("remark")
        self.add(paragraph)

    def finished(self) -> tuple[str, list[Utterance]]:
        """Return the text and its utterances, which cover it completely."""
        text = "\n".join(self._paragraphs)
        starts = [min(start, len(text)) for _, _, start in self._begun]
        utterances = [
            Utterance(kind, start, end, talk.talker, talk.time, talk.page) if talk else Utterance(kind, start, end)
            for (kind, talk, _), start, end in zip(self._begun, starts, [*starts[1:], len(text)], strict=True)
        ]
        return text, utterances


def talk_of(element: _Element, senate: bool) -> Talk | None:
    """Return the talker in an element with a ``talker``, or None. ``senate``: seats are those of a State."""
    talker = element if element.tag in ("talker", "presenter") else next(element.iterchildren("talker"), None)
    if talker is None:
        return None
    found: dict[str, str] = {}
    for field in talker:
        tag = field.tag
        if tag == "name" and (number := field.get("nameid")):
            found.setdefault("name.id", number)
        if value := to_line(field) if len(field) else (field.text or "").strip(EDGES):
            if tag == "name":
                tag = _NAMES.get(field.get("role", ""), "name.display")
            elif tag in _BRACKETED:
                value = value.strip("()—–- ")
            found.setdefault(tag, value)
    get = found.get
    name_id, full_name, seat, page = get("name.id"), get("name.metadata"), get("electorate"), get("page.no")
    talker_of = Talker(
        get("name.display") or full_name or name_id or "",
        full_name,
        name_id,
        None if senate else seat,
        get("party"),
        seat if senate else None,
        get("role"),
        _FLAGS.get(get("in.gov", "")),
        _FLAGS.get(get("first.speech", "")),
    )
    return Talk(talker_of, clock(get("time.stamp")), page if page != "0" else None)
