"""Divisions: votes by name, and the question that was put before one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from lxml.etree import _Element

from loaders.hansard.paragraphs import clock, get_paragraphs, to_line
from loaders.hansard.sitting_model import Division, Vote, VoteValue
from loaders.readers.cells import parse_digits

_SIDES: Final[dict[str, VoteValue]] = {"ayes": "aye", "noes": "no", "pairs": "pair"}
_LATEST: Final = 12
"""Paragraphs before a division in which its question is sought."""
_IS_PUT: Final = re.compile(r"\b[Qq]uestion\b[^.?!]{0,80}?\bis,?(?: now,?)?[\s—–:-]*+(?=[Tt]hat\b|$)")
"""Words of the chair: ``The question now is that``."""
_LINE: Final = re.compile(
    r"(?:[A-Z][a-z]+ ){0,2}(?:[Qq]uestion|[Mm]otions?|[Aa]mendments?)\b[^.?!]{0,100}?\bput\b"
    r"(?:\W*|(?P<inline>\W*(?=that\b).*))"
)
"""A line of the record: ``Question put:``, ``Motion (by Mr ABEL) put``, ``Question put, that ...``."""
_INLINE: Final = re.compile(r"\b[Qq]uestion\W{1,5}(?=[Tt]hat\b)")
_PUT: Final = re.compile(r"(?<=[\s.,—–-])put\b")
"""The parts of a line that has the question: ``Question - That the clause be agreed to - put.``"""
_MOVE: Final = re.compile(r"\bI (?:now |therefore |also )?move[\s:,—–-]*+(?=[Tt]hat\b|\Z)")
"""The last words of a member: ``I move that the question be now put.``, or ``I move:`` before the motion."""
_THAT: Final = re.compile(r"[\W_]*+(?=[Tt]hat\b)")
_ITEM: Final = re.compile(r"[\W_]*+(?:\(?[A-Za-z0-9]{1,4}[.)]|and\b|or\b)")
_END: Final = re.compile(r"(?<!\bNo)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bDr)(?<!\bHon)(?<!\b[A-Z])[.?!](?=\s|$)")
_TELLER: Final = re.compile(r"(?:(?<!\s)\s++)?(?:\*|\(\s*+tellers?\s*+\))\s*+$", re.IGNORECASE)


def parse_division(element: _Element, path: tuple[int, ...], ordinal: int) -> tuple[Division, list[str]]:
    """Return a division, and the other paragraphs of its element ("Majority 9", the next action).

    A teller is marked by an asterisk or by the word; the name is kept without the mark.
    """
    header: list[str] = []
    beside: list[str] = []
    result: list[str] = []
    votes: list[Vote] = []
    counts: dict[VoteValue, int] = {}
    recorded = None
    for part in _parts(element):
        tag = part.tag
        if tag in _SIDES:
            value = _SIDES[tag]
            votes += _votes(part, value)
            if (count := _count(part)) is not None:
                counts[value] = count
        elif tag == "division.result":
            result += get_paragraphs(part)
        elif tag == "time.stamp":
            recorded = recorded or clock(to_line(part))
        else:
            (beside if votes or counts else header).extend(get_paragraphs(part))
    before = "\n".join(header)
    division = Division(
        path,
        before,
        votes,
        counts.get("aye"),
        counts.get("no"),
        "\n".join(result) or None,
        ordinal,
        recorded or clock(before),
    )
    return division, beside


def find_question(text: str, is_of_chair: Callable[[int], bool]) -> tuple[int, int] | None:
    """Find the question that the end of a text puts: its code points [start, end), or None.

    It follows a line of the record ("Question put:") or is in words of the chair: ``is_of_chair`` determines it for an
    offset. Only the last paragraphs are searched, the latest first. Without either it is the motion with which the text
    ends.
    """
    lines: list[tuple[int, str]] = []
    place = 0
    for line in text.rstrip().split("\n"):
        lines.append((place, line))
        place += len(line) + 1
    for number in range(len(lines) - 1, max(-1, len(lines) - 1 - _LATEST), -1):
        start, line = lines[number]
        if (found := _INLINE.search(line)) is not None and (end := _PUT.search(line, found.end())) is not None:
            return _trim(text, start + found.end(), start + end.start())
        if (put := _LINE.fullmatch(line)) is not None:
            if put["inline"] and (that := _THAT.match(line, put.start("inline"))) is not None:
                return _trim(text, start + that.end(), start + len(line))
            return _find_moved(text, lines, number)
        for said in reversed(list(_IS_PUT.finditer(line)) if is_of_chair(start) else []):
            if said.end() < len(line):
                end = _END.search(line, said.end())
                return _trim(text, start + said.end(), start + (end.start() if end else len(line)))
            return _find_moved(text, lines, number)
    return _find_last_moved(text, lines)


def _find_last_moved(text: str, lines: list[tuple[int, str]]) -> tuple[int, int] | None:
    """Find the motion with which a text ends: that of the last paragraph, or in the one before it."""
    start, line = lines[-1]
    if (moved := _MOVE.search(line)) is not None and moved.end() < len(line):
        return _trim(text, start + moved.end(), start + len(line))
    if len(lines) > 1 and (that := _THAT.match(line)) is not None and _MOVE.search(lines[-2][1]) is not None:
        return _trim(text, start + that.end(), start + len(line))
    return None


def _find_moved(text: str, lines: list[tuple[int, str]], number: int) -> tuple[int, int] | None:
    """Find the question of a line that puts it: the paragraph after it and its items, else the one before it."""
    for first in (number + 1, number - 1):
        if 0 <= first < len(lines) and (that := _THAT.match(lines[first][1])) is not None:
            last = first
            while first > number and last + 1 < len(lines) and _ITEM.match(lines[last + 1][1]):
                last += 1
            return _trim(text, lines[first][0] + that.end(), lines[last][0] + len(lines[last][1]))
    return None


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out what follows the last word, but not a closing bracket or quotation mark."""
    return start, start + len(text[start:end].rstrip(" .,;:—–-\t"))


def _parts(element: _Element) -> Iterator[_Element]:
    """Yield the parts of a division, including those in its header and data."""
    for child in element:
        if child.tag == "division.data" or (child.tag == "division.header" and child.find("time.stamp") is not None):
            yield from _parts(child)
        else:
            yield child


def _count(side: _Element) -> int | None:
    recorded = next((to_line(child) for child in side.iterchildren("num.votes")), side.get("numvotes", "")).strip()
    return parse_digits(recorded)


def _votes(side: _Element, value: VoteValue) -> Iterator[Vote]:
    """Yield the names of a side, from ``name`` elements or from the cells of a table."""
    for name in side.iter("name", "entry", "td"):
        if text := to_line(name):
            bare = _TELLER.sub("", text)
            yield Vote(value, bare, bare != text, _identifier(name))


def _identifier(name: _Element) -> str | None:
    """Return the id of the voter: ``nameid``, or ``id`` in older files. The ``id`` of a cell is that of the cell."""
    return name.get("nameid") or (name.get("id") if name.tag == "name" else None)
