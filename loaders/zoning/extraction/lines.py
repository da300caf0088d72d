"""The lines of a section as a tree: a labelled line is below the nearest one before it with another style of label.

``(1)`` is below ``(a)``, and ``(b)`` is not. A wrapped line is part of the one before it: it begins in the middle of a
sentence or of a bracket.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from loaders.zoning.readers.code_model import Section
from loaders.zoning.readers.outline import find_label_end

_BARE: Final = re.compile(r"[A-Za-z0-9]{1,5}")
_ALIKE: Final = str.maketrans(string.ascii_letters, "a" * 26 + "A" * 26)
_LINE: Final = re.compile(r"[^\n]+")
_UNFINISHED: Final = re.compile(r"(?:[,(]|\b(?:and|or|of|the|a|an|to|in|for|with|by|on|from))$")
_ANNOUNCES: Final = re.compile(r"(?i)\b(?:following|follows|below)\b")
_WORDS_OF_NOTE: Final = 20
_LONGEST: Final = 4_000
"""Code points of a line whose brackets are counted."""


def _style(label: str) -> str:
    """The style of a label without its letter or number: ``(a)`` equals ``(b)``, but not ``(1)`` or ``i.``"""
    return re.sub(r"[ivx]+|[a-z]{2,}", "#", re.sub(r"\d+", "1", label)).translate(_ALIKE)


def _is_next(label: str, before: str) -> bool:
    """Check whether a label follows another: ``(b)`` follows ``(a)``, ``2.`` follows ``1.``"""
    last, this = _BARE.search(before), _BARE.search(label)
    if last is None or this is None or _BARE.sub("", before) != _BARE.sub("", label):
        return False
    return len(last[0]) == len(this[0]) == 1 and ord(this[0]) == ord(last[0]) + 1


@dataclass(slots=True)
class Line:
    """A line [start, end) of a section, and the lines below it."""

    text: str
    """That of the section."""
    start: int
    body: int
    """End of its label."""
    end: int
    label: str
    breaks: bool = False
    """A table, or the heading of other districts, is before it."""
    below: list[Line] = field(default_factory=list)

    @property
    def words(self) -> str:
        """Its words after its label."""
        return self.text[self.body : self.end]

    @property
    def stop(self) -> int:
        """End of the last line below it."""
        return self.below[-1].stop if self.below else self.end


def parse_lines(section: Section, breaks: Set[int] = frozenset()) -> Sequence[Line]:
    """Parse the lines of a section outside of its tables into a tree. `breaks` are offsets that end all lists."""
    text = section.text
    tables = [(table.start, table.end) for table in section.tables]
    lines: list[Line] = []
    latest: Line | None = None
    above: list[Line] = []
    """The lines that the current one is below, outermost first."""
    aside: list[Line] = []
    """The lines above a note within a list."""
    table = 0
    broken = False
    for match in _LINE.finditer(text):
        start = match.end() - len(match[0].lstrip())
        end = match.start() + len(match[0].rstrip())
        while table < len(tables) and tables[table][1] <= start:
            table, broken = table + 1, True
        if start >= end or (table < len(tables) and tables[table][0] <= start):
            continue
        body = find_label_end(text, start, end)
        label = text[start:body].strip()
        # A labelled line, "(2) In the R-2 District:", stays below those that its label is below.
        leaves = broken or (match.start() in breaks and not label)
        if broken or match.start() in breaks:
            broken, latest = True, None
        if latest is not None and not label and _goes_on(latest, start):
            latest.end = end
            continue
        if label and aside and _is_next(label, aside[-1].label):
            above = aside  # a note between two items of a list
        elif not label and above and above[-1].label:
            aside = above if _is_note(text, start, end) and not leaves else []
        if leaves or not label:
            above = []
        if label:
            style = _style(label)
            same = (at for at, each in enumerate(above) if style == _style(each.label) or _is_next(label, each.label))
            above = above[: next(same, len(above))]
        latest = Line(text, start, body, end, label, broken)
        broken = False
        (above[-1].below if above else lines).append(latest)
        above = [*above, latest]
    return lines


def _is_note(text: str, start: int, end: int) -> bool:
    """Whether a line without a label is a long sentence that announces nothing."""
    words = text[start:end]
    return len(words.split()) >= _WORDS_OF_NOTE and words[-1:] == "." and not _ANNOUNCES.search(words)


def _goes_on(line: Line, start: int) -> bool:
    """Whether the text at `start` continues a line: it begins with a small letter, or within a bracket."""
    said = line.text[max(line.start, line.end - _LONGEST) : line.end]
    if line.text[start].islower() and not said.endswith((".", ":", ";")):
        return bool(line.label) or not line.words[0].islower()
    return said.count("(") > said.count(")") or bool(_UNFINISHED.search(said))
