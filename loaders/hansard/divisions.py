"""Divisions: votes by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml.etree import _Element

from loaders.hansard.paragraphs import clock, get_paragraphs, to_line
from loaders.hansard.sitting_model import Division, Vote, VoteValue
from loaders.readers.cells import parse_digits

_SIDES: Final[dict[str, VoteValue]] = {"ayes": "aye", "noes": "no", "pairs": "pair"}
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
