"""Labelled parts of a section, such as (a)(1)(A), recognized by the labels at the start of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from loaders.zoning.readers.code_model import Subsection

_LABEL: Final = re.compile(
    r"\(([0-9]{1,3}[A-Za-z]?|[A-Za-z]{1,6}(?:-[0-9A-Za-z]{1,3})?)\)\s*|([0-9]{1,3}|[A-Za-z]{1,5})([.)])(?:\s+|$)"
)
_STARTS: Final = frozenset("(0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_DEEPEST: Final = 30
"""Maximum depth of labels. Deeper labels are text of the innermost part."""
_LARGEST_GAP: Final = 3
"""Labels that may be missing in a sequence before the next one no longer continues it."""


def _roman(number: int) -> str:
    tens, ones = divmod(number, 10)
    return ("", "x", "xx", "xxx", "xl", "l")[tens] + ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")[ones]


_ROMAN: Final = {_roman(number): number for number in range(1, 60)}

Meaning = tuple[str, float]
"""A label in a sequence: which sequence, and the place in it. An inserted label (1A, a-1) is between two places."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a numbered list whose markup gives its label, with its offsets."""

    path: tuple[str, ...]
    """Labels of the lists that contain it, outermost first."""
    start: int
    end: int


@dataclass(slots=True)
class _Open:
    style: str
    place: float
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


def find_meanings(label: str, mark: str) -> Sequence[Meaning]:
    """Find the possible meanings of a label: ``i`` is the ninth letter, or one in Roman numerals."""
    bare, inserted = label, 0.0
    if (match := re.fullmatch(r"([0-9]+)[A-Za-z]|([A-Za-z]+)-[0-9A-Za-z]+", label)) is not None:
        bare, inserted = match[1] or match[2], 0.5
    if bare.isdigit():
        return [(mark + "1", int(bare) + inserted)]
    case = "a" if bare.islower() else "A" if bare.isupper() else ""
    found = []
    lower = bare.lower()
    if case and len(set(lower)) == 1 and len(lower) <= 3:
        found.append((mark + case, 26 * (len(lower) - 1) + ord(lower[0]) - 96 + inserted))
    if case and lower in _ROMAN:
        found.append((mark + ("i" if case == "a" else "I"), _ROMAN[lower] + inserted))
    return found


def _tokens(lines: Sequence[tuple[int, str]]) -> Iterator[_Token]:
    led = False
    for start, line in lines:
        before, led = led, line[-1] == ":"
        if line[0] not in _STARTS:
            continue
        at = 0
        # (a)(1) at the start of a line are two labels.
        while (match := _LABEL.match(line, at)) is not None:
            label = match[1] or match[2]
            found = find_meanings(label, "(" if match[1] else match[3])
            if not found:
                break
            yield _Token(start + at, at == 0, label, found, before)
            at = match.end()


def find_parts(lines: Sequence[tuple[int, str]], end: int, items: Sequence[Item] = ()) -> Sequence[Subsection]:
    """Find the labelled parts of a text of length `end` from its non-empty lines, each with its offset.

    A part ends at the next label of its own level or of a higher one. A label that neither continues nor starts a
    sequence is ignored. Do not pass lines of tables.
    """
    tokens = list(_tokens(lines))
    if items:
        covered = [(item.start, item.end) for item in items if len(item.path) == 1]
        tokens = [token for token in tokens if not any(first <= token.start < last for first, last in covered)]
    if not tokens and not items:
        return ()
    stack: list[_Open] = []
    found: list[tuple[tuple[str, ...], int, int]] = []
    waiting = sorted(items, key=lambda item: (item.start, -item.end))[::-1]

    def close(depth: int, at: int) -> None:
        found.extend((each.path, each.start, at) for each in stack[depth:])
        del stack[depth:]

    def give(until: int) -> None:
        while waiting and waiting[-1].start < until:
            item = waiting.pop()
            found.append(((stack[-1].path if stack else ()) + item.path, item.start, item.end))

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
    return make_unique(
        Subsection(path, start, last) for path, start, last in sorted(found, key=lambda x: (x[1], -x[2]))
    )


def _place(token: _Token, following: _Token | None, stack: Sequence[_Open]) -> tuple[int, Meaning] | None:
    """Find the depth and the meaning of a label. None if it is not a label here."""
    styles = [each.style for each in stack]
    going: list[tuple[int, Meaning]] = []
    opening = None
    for reading in token.meanings:
        style, place = reading
        if style in styles:
            depth = len(styles) - 1 - styles[::-1].index(style)
            if stack[depth].place < place <= stack[depth].place + 1:
                going.append((depth, reading))
        elif place < 2:
            opening = (len(stack), reading)
    if going:
        best = max(going, key=lambda each: each[0])
        if opening is not None and following is not None and (opening[1][0], 2) in following.meanings:
            return opening
        return best
    if opening is not None:
        return opening
    if token.led and styles and token.meanings[0][0] != styles[-1] and token.meanings[0][1] < 2:
        return len(styles), token.meanings[0]
    for style, place in token.meanings:
        if style in styles:
            depth = len(styles) - 1 - styles[::-1].index(style)
            last = stack[depth].place
            if place < 2 or place == last or last < place <= last + _LARGEST_GAP:
                return depth, (style, place)
        elif place == 2 and not stack:
            return 0, (style, place)
    return None


def make_unique(subsections: Iterator[Subsection]) -> Sequence[Subsection]:
    """Make paths unique, for subsections in text order: a path that recurs gets ``~2``."""
    seen: dict[tuple[str, ...], int] = {}
    given: list[Subsection] = []
    renamed: list[tuple[Subsection, tuple[str, ...], tuple[str, ...]]] = []
    for each in subsections:
        path = each.path
        # Everything below a renamed part gets the new name in its path too.
        while renamed and each.start >= renamed[-1][0].end:
            renamed.pop()
        for outer, old, new in renamed:
            if path[: len(old)] == old and each.start >= outer.start:
                path = new + path[len(old) :]
        count = seen[path] = seen.get(path, 0) + 1
        if count > 1:
            new = (*path[:-1], f"{path[-1]}~{count}")
            renamed.append((each, path, new))
            path = new
        given.append(each if path == each.path else Subsection(path, each.start, each.end, each.heading))
    return given
