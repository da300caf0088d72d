"""Selection of the headings of a code from the lines that look like headings: those whose numbers ascend.

A line that starts with a number may be a heading, a measure ("1.5 Acres"), a reference wrapped onto a line of its own
("Section 14.3") or a row of a list. Numbers of headings ascend through the text, and start again after a table of
contents or below the next level. The selection with the highest sum of weights is found by dynamic programming over
all candidates (the longest increasing subsequence with weights and restarts), in O(n log n) for n candidates.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence, Set
from math import inf
from typing import Final, NamedTuple

from loaders.readers.html_tree import list_label

RESTART: Final = 1.5
"""Cost of a restart of the numbers. Two headings in a row outweigh it, a single line does not."""
_SUCCESSOR: Final = 0.5
"""Additional weight of a number that is the one before plus one."""

Key = tuple[tuple[int, str], ...]
"""A number as its components, in the order of headings: 5.10 follows 5.9, and 12A is between 12 and 13."""


class Candidate(NamedTuple):
    """A line that looks like a heading."""

    key: Key
    weight: float
    free: bool = False
    """Whether its number may start again without cost, since a higher level starts between it and the one before."""


_ROMAN: Final = {list_label("i", number): number for number in range(1, 400)}


def parse_roman(number: str) -> int | None:
    """Parse a Roman numeral below 400. None if it is none."""
    return _ROMAN.get(number.lower())


def parse_keys(numbers: Iterable[str]) -> list[Key | None]:
    """Parse the numbers of one kind of heading. None for a number of another form.

    A component of letters is a Roman numeral if all components of letters at its place are: IV.B.2, but B.4 and C.1.
    """
    given = [re.split(r"[.\-:\s]+", number) for number in numbers]
    letters = {
        place for parts in given for place, part in enumerate(parts) if part.isalpha() and parse_roman(part) is None
    }
    return [_parse_key(parts, letters) for parts in given]


def _parse_key(parts: Sequence[str], letters: Set[int]) -> Key | None:
    key = []
    for place, part in enumerate(parts):
        match = re.fullmatch(r"(\d{1,9})([A-Za-z]{0,2})", part)
        if match is not None:
            key.append((int(match[1]), match[2].upper()))
        elif place not in letters and (value := parse_roman(part)) is not None:
            key.append((value, ""))
        elif part.isalpha() and len(part) <= 2:
            key.append((26 * (len(part) - 1) + ord(part[0].upper()) - 64, part[1:].upper()))
        else:
            return None
    return tuple(key)


def select_ascending(candidates: Sequence[Candidate]) -> list[int]:
    """Select the candidates with the highest sum of weights whose numbers ascend, and return their places in order."""
    keys: list[Key] = []
    sums: list[tuple[float, int]] = []
    """The best sum up to each of `keys`, with the place where it ends. Both ascend."""
    at_key: dict[Key, tuple[float, int]] = {}
    before: list[int] = []
    nothing = highest = free = (0.0, -1)
    for place, each in enumerate(candidates):
        if each.free:
            free = highest
        number, letters = each.key[-1]
        previous = at_key.get((*each.key[:-1], (number - 1, letters)), (-inf, -1))
        rank = bisect_left(keys, each.key)
        total, earlier = max(
            (highest[0] - RESTART, highest[1]),
            free,
            nothing,
            sums[rank - 1] if rank else nothing,
            (previous[0] + _SUCCESSOR, previous[1]),
            key=lambda one: one[0],
        )
        found = total + each.weight, place
        before.append(earlier)
        highest = max(highest, found, key=lambda one: one[0])
        at_key[each.key] = max(at_key.get(each.key, nothing), found, key=lambda one: one[0])
        end = rank + (keys[rank : rank + 1] == [each.key])
        if end == 0 or sums[end - 1][0] < found[0]:
            while end < len(sums) and sums[end][0] < found[0]:
                end += 1
            keys[rank:end], sums[rank:end] = [each.key], [found]
    chosen = []
    place = highest[1]
    while place >= 0:
        chosen.append(place)
        place = before[place]
    return chosen[::-1]
