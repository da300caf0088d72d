"""The outline of a code by its numbers and labels: headings, labelled parts such as (a)(1)(A), and lines as a tree.

A line that starts with a number may be a heading, a measure ("1.5 Acres"), a reference wrapped onto a line of its own
("Section 14.3") or a row of a list. Numbers of headings ascend through the text, and start again after a table of
contents or below the next level. The selection of headings with the highest sum of weights is found by dynamic
programming over all candidates (the longest increasing subsequence with weights and restarts), in O(n log n) for n
candidates.

In the tree, a labelled line is below the nearest one before it with another style of label: ``(1)`` is below ``(a)``,
and ``(b)`` is not. A wrapped line is part of the one before it: it begins in the middle of a sentence or of a bracket.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import inf
from typing import Final, NamedTuple

from loaders.readers.html_tree import list_label
from loaders.zoning.readers.code_model import Section, Subsection

RESTART: Final = 1.5
"""Cost of a restart of the numbers. Two headings in a row outweigh it, a single line does not."""
_SUCCESSOR: Final = 0.5
"""Additional weight of a number that is the one before plus one."""

Key = tuple[tuple[int, str], ...]
"""A number as its components, in the order of headings: 5.10 follows 5.9, and 12A is between 12 and 13."""
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
_BARE: Final = re.compile(r"[A-Za-z0-9]{1,5}")
_ALIKE: Final = str.maketrans(string.ascii_letters, "a" * 26 + "A" * 26)
_LINE: Final = re.compile(r"[^\n]+")
_UNFINISHED: Final = re.compile(r"(?:[,(]|\b(?:and|or|of|the|a|an|to|in|for|with|by|on|from))$")
_ANNOUNCES: Final = re.compile(r"(?i)\b(?:following|follows|below)\b")
_WORDS_OF_NOTE: Final = 20
_LONGEST: Final = 4_000
"""Code points of a line whose brackets are counted."""


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
