"""Labelled parts of a section, such as (a)(1)(A), recognized by the labels at the start of lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from loaders.zoning.readers.code_model import Subsection
from loaders.zoning.readers.heading_sequences import parse_roman

_LABEL: Final = re.compile(
    r"\(([0-9]{1,3}[A-Za-z]?|[A-Za-z]{1,6}(?:-[0-9A-Za-z]{1,3})?)\)\s*|([0-9]{1,3}|[A-Za-z]{1,5})([.)])(?:\s+|$)"
)
_LINE_LABEL: Final = re.compile(
    r"(?:(?:\([A-Za-z0-9-]{1,5}\)|\d{1,3}(?:[.-]\d{1,4}){1,5}[A-Za-z]?\.?(?= )"
    r"|(?:[A-Za-z0-9]{1,2}|[ivx]{3}|[IVX]{3}|\d{3})[.)]|[•◦▪*·–-]) ?){1,3}(?=\S)"
)
_DEEPEST: Final = 30
"""Maximum depth of labels. Deeper labels are text of the innermost part."""
_LARGEST_GAP: Final = 3
"""Labels that may be missing in a sequence before the next one no longer continues it."""


Meaning = tuple[str, int]
"""A label in a sequence: which sequence, and the place in it. An inserted label (1A) has that of the one before."""


@dataclass(slots=True)
class _Open:
    style: str
    place: int
    path: tuple[str, ...]
    start: int


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    first: bool
    label: str
    meanings: Sequence[Meaning]
    led: bool
    """Whether the line before it ends with a colon and so announces it."""


def find_label_end(text: str, start: int, end: int) -> int:
    """Find the end of the label at the start of the line [start, end)."""
    label = _LINE_LABEL.match(text, start, end)
    return label.end() if label else start


def find_meanings(label: str, mark: str) -> Sequence[Meaning]:
    """Find the possible meanings of a label: ``i`` is the ninth letter, or one in Roman numerals."""
    match = re.fullmatch(r"([0-9]+)[A-Za-z]|([A-Za-z]+)-[0-9A-Za-z]+", label)
    bare = label if match is None else match[1] or match[2]
    if bare.isdigit():
        return [(mark + "1", int(bare))]
    case = "a" if bare.islower() else "A" if bare.isupper() else ""
    found = []
    lower = bare.lower()
    if case and len(set(lower)) == 1 and len(lower) <= 3:
        found.append((mark + case, 26 * (len(lower) - 1) + ord(lower[0]) - 96))
    if case and (roman := parse_roman(lower)) is not None:
        found.append((mark + ("i" if case == "a" else "I"), roman))
    return found


def _tokens(lines: Sequence[tuple[int, str]]) -> Iterator[_Token]:
    led = False
    for start, line in lines:
        before, led = led, line[-1] == ":"
        at = 0
        # (a)(1) at the start of a line are two labels.
        while (match := _LABEL.match(line, at)) is not None:
            label = match[1] or match[2]
            found = find_meanings(label, "(" if match[1] else match[3])
            if not found:
                break
            yield _Token(start + at, at == 0, label, found, before)
            at = match.end()


def find_parts(lines: Sequence[tuple[int, str]], end: int, items: Sequence[Subsection] = ()) -> Sequence[Subsection]:
    """Find the labelled parts of a text of length `end` from its non-empty lines, each with its offset.

    A part ends at the next label of its own level or of a higher one. A label that neither continues nor starts a
    sequence is ignored. Do not pass lines of tables. `items` are the parts whose markup gives their labels.
    """
    tokens = list(_tokens(lines))
    if items:
        covered = [(item.start, item.end) for item in items if len(item.path) == 1]
        tokens = [token for token in tokens if not any(first <= token.start < last for first, last in covered)]
    if not tokens and not items:
        return ()
    stack: list[_Open] = []
    found: list[Subsection] = []
    waiting = sorted(items, key=lambda item: (item.start, len(item.path)))[::-1]

    def close(depth: int, at: int) -> None:
        found.extend(Subsection(each.path, each.start, at) for each in stack[depth:])
        del stack[depth:]

    def give(until: int) -> None:
        while waiting and waiting[-1].start < until:
            item = waiting.pop()
            found.append(replace(item, path=(stack[-1].path if stack else ()) + item.path))

    for token, following in zip_longest(tokens, tokens[1:]):
        give(token.start)
        placed = _place(token, following, stack)
        if placed is None or placed[0] >= _DEEPEST:
            continue
        depth, (style, place) = placed
        close(depth, token.start - 1 if token.first and token.start else token.start)
        stack.append(_Open(style, place, ((stack[-1].path if stack else ()) + (token.label,)), token.start))
    give(end + 1)
    close(0, end)
    return _make_unique(sorted(found, key=lambda part: (part.start, -part.end)))


def _place(token: _Token, following: _Token | None, stack: Sequence[_Open]) -> tuple[int, Meaning] | None:
    """Find the depth and the meaning of a label. None if it is not a label here."""
    depths = {each.style: depth for depth, each in enumerate(stack)}
    going = [
        (depths[style], (style, place))
        for style, place in token.meanings
        if style in depths and place == stack[depths[style]].place + 1
    ]
    opening = next((each for each in token.meanings if each[0] not in depths and each[1] < 2), None)
    if opening is not None and (not going or (following is not None and (opening[0], 2) in following.meanings)):
        return len(stack), opening
    if going:
        return max(going, key=lambda each: each[0])
    first = token.meanings[0]
    if token.led and stack and first[0] != stack[-1].style and first[1] < 2:
        return len(stack), first
    for style, place in token.meanings:
        if style in depths:
            if place < 2 or 0 <= place - stack[depths[style]].place <= _LARGEST_GAP:
                return depths[style], (style, place)
        elif place == 2 and not stack:
            return 0, (style, place)
    return None


def _make_unique(subsections: Iterable[Subsection]) -> Sequence[Subsection]:
    """Make paths unique, for subsections in text order: a path that recurs gets ``~2``."""
    seen: Counter[tuple[str, ...]] = Counter()
    given: list[Subsection] = []
    # Everything below a renamed part gets the new name in its path too.
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    for each in subsections:
        outer, last = each.path[:-1], each.path[-1]
        path = (*names.get(outer, outer), last)
        seen[path] += 1
        if seen[path] > 1:
            path = (*path[:-1], f"{last}~{seen[path]}")
        names[each.path] = path
        given.append(replace(each, path=path))
    return given
