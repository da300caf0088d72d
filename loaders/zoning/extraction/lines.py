"""The lines of a section as a tree: a labelled line is below the one that its label belongs under.

A wrapped line is part of the one before it: it begins in the middle of a sentence or of a bracket.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from loaders.zoning.extraction.outline import Frame, Outline, find_label_end, is_next
from loaders.zoning.readers.code_model import Section

_LINE: Final = re.compile(r"[^\n]+")
_UNFINISHED: Final = re.compile(r"(?:[,(]|\b(?:and|or|of|the|a|an|to|in|for|with|by|on|from))$")
_ANNOUNCES: Final = re.compile(r"\b(?:following|follows|below)\b", re.I)
_WORDS_OF_NOTE: Final = 20
_LONGEST: Final = 4_000
"""Code points of a line whose brackets are counted."""


@dataclass(slots=True)
class Line:
    """A line [start, end) of a section, and the lines below it."""

    start: int
    body: int
    """End of its label."""
    end: int
    label: str
    breaks: bool = False
    """A table, or the heading of other districts, is before it."""
    below: list[Line] = field(default_factory=list)

    @property
    def stop(self) -> int:
        """End of the last line below it."""
        return self.below[-1].stop if self.below else self.end


def parse_lines(section: Section, breaks: Set[int] = frozenset()) -> Sequence[Line]:
    """Parse the lines of a section outside of its tables into a tree. `breaks` are offsets that end all lists."""
    text = section.text
    tables = [(table.start, table.end) for table in section.tables]
    outline = Outline[Line]()
    lines: list[Line] = []
    latest: Line | None = None
    aside: list[Frame[Line]] = []
    """The lines above a note within a list."""
    table = 0
    broken = False
    for match in _LINE.finditer(text):
        start, end = (
            match.start() + len(match[0]) - len(match[0].lstrip()),
            match.end() - len(match[0]) + len(match[0].rstrip()),
        )
        while table < len(tables) and tables[table][1] <= start:
            table, broken = table + 1, True
        if start >= end or (table < len(tables) and tables[table][0] <= start):
            continue
        body = find_label_end(text, start, end)
        label = text[start:body].strip()
        if broken or (match.start() in breaks and not label):
            outline.leave()  # A labelled line, "(2) In the R-2 District:", stays below those that its label is below.
        if broken or match.start() in breaks:
            broken, latest = True, None
        if latest is not None and not label and _goes_on(text, latest, start):
            latest.end = end
            continue
        if label:
            if aside and is_next(label, aside[-1].label):
                outline.frames[:] = aside  # a note between two items of a list
            outline.enter(label)
        elif outline.frames and outline.frames[-1].label:
            aside = list(outline.frames) if _is_note(text, start, end) else []
            outline.leave()
        elif outline.frames:
            outline.frames.clear()
        latest = Line(start, body, end, label, broken)
        broken = False
        (outline.frames[-1].value.below if outline.frames else lines).append(latest)
        outline.push(label, latest)
    return lines


def _is_note(text: str, start: int, end: int) -> bool:
    """Whether a line without a label is a long sentence that announces nothing."""
    words = text[start:end]
    return len(words.split()) >= _WORDS_OF_NOTE and words[-1:] == "." and not _ANNOUNCES.search(words)


def _goes_on(text: str, line: Line, start: int) -> bool:
    """Whether the text at `start` continues a line: it begins with a small letter, or within a bracket."""
    said = text[max(line.start, line.end - _LONGEST) : line.end]
    if text[start].islower() and not said.endswith((".", ":", ";")):
        return bool(line.label) or not text[line.body].islower()
    return said.count("(") > said.count(")") or bool(_UNFINISHED.search(said))
