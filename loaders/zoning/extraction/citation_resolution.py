"""Resolution of citations to the sections of a code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from loaders.citations.number_lists import separator_of
from loaders.citations.section_citations import THIS, Citation, find_citations
from loaders.readers.html_tree import list_label
from loaders.zoning.readers.code_model import Section
from loaders.zoning.readers.outline import parse_roman

_SECTION: Final = "section"
_NUMBERS: Final = re.compile(r"\w+(?:[.-]\w+)*(?::(?=\d)\w+(?:[.-]\w+)*)?")
_PIECES: Final = 8
_RESTARTING: Final = 2
"""Digits of numbers that may restart in each article or chapter."""
_PARAGRAPH: Final = re.compile(r"(\d+(?:[.-]\d+)+)[a-z]")
_LETTERED: Final = re.compile(r"([ivxl]+)[.-]([a-z])(?:[.-]\w+)*")


class Index:
    """Index of the sections of a municipality's code by the numbers in citations, independent of their order."""

    def __init__(self, sections: Iterable[Section] = (), *, codes: Iterable[str] = ()) -> None:
        """Index `sections`. `codes` are the names by which the code is cited as if it were the law of a state.

        For example, ``D.C. Official Code § 8-101`` is in the code with that name among its `codes`.
        """
        self.own = frozenset(codes)
        self.sections = {section.key: section for section in sections}

    def copy(self) -> Index:
        """Copy the index so that it can be changed independently."""
        return Index(self.sections.values(), codes=self.own)

    def put(self, section: Section) -> None:
        """Add a section, or replace the one with its key."""
        self.sections[section.key] = section
        self._forget()

    def drop(self, key: str) -> None:
        """Remove a section, if it exists."""
        self.sections.pop(key, None)
        self._forget()

    def _forget(self) -> None:
        """Drop the lookups over the sections, after a change."""
        self.__dict__ = {"own": self.own, "sections": self.sections}

    @cached_property
    def _parts(self) -> Mapping[str | None, Sequence[str]]:
        parts = defaultdict[str | None, list[str]](list)
        for key, section in self.sections.items():
            parts[section.parent].append(key)
        return parts

    @cached_property
    def _numbered(self) -> Mapping[tuple[str, str], Sequence[str]]:
        numbered = defaultdict[tuple[str, str], list[str]](list)
        for key, section in self.sections.items():
            for name in _names(section):
                numbered[name].append(key)
        return numbered

    def below(self, key: str) -> Iterator[str]:
        """Yield a key and the keys of all its descendants, even if the section itself does not exist."""
        found, stack = {key}, [key]
        while stack:
            each = stack.pop()
            yield each
            stack += (new := [part for part in self._parts.get(each, ()) if part not in found])
            found.update(new)

    def siblings(self, key: str) -> Iterator[Section]:
        """Yield the other sections with the same parent."""
        parent = self.sections[key].parent if key in self.sections else None
        yield from (self.sections[each] for each in self._parts.get(parent, ()) if each != key)

    def between(self, first: str, last: str) -> Sequence[str]:
        """Get the keys of the sections from one to another in document order. Empty if the last comes before the first.

        Siblings are sorted by their order, then by key.
        """
        # Sections that are their own ancestors have no position.
        return list(self.places)[self.places.get(first, 0) : self.places.get(last, -1) + 1]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Positions in document order, by key in this order."""
        places: dict[str, int] = {}
        stack = self._in_order(key for key, each in self.sections.items() if each.parent not in self.sections)
        while stack:
            places[key := stack.pop()] = len(places)
            stack += self._in_order(self._parts.get(key, ()))
        return places

    def _in_order(self, keys: Iterable[str]) -> list[str]:
        return sorted(keys, key=lambda key: (self.sections[key].order, key), reverse=True)

    def above(self, key: str | None) -> Sequence[str]:
        """Get the key of a section and the keys of its ancestors, innermost first."""
        found: list[str] = []
        while key is not None and key in self.sections and key not in found:
            found.append(key)
            key = self.sections[key].parent
        return found

    def within(self, kind: str, number: str, scopes: Sequence[str]) -> str | None:
        """Find the section of a kind and number in the innermost of `scopes` that contains any.

        None if that contains several, or no scope contains one. Without scopes, the whole code is searched.
        """
        found = self._numbered.get((kind, number))
        if not found:
            return None
        if len(found) == 1 and (_is_placed(number) or not scopes or scopes[-1] in self.above(found[0])):
            return found[0]
        for scope in scopes:
            inside = [key for key in found if scope in self.above(key)]
            if inside:
                return inside[0] if len(inside) == 1 else None
        # A level at the top of the code, next to the one that contains the citation: "Article II" in article XV.
        top = [key for key in found if self.sections[key].parent is None]
        return top[0] if len(top) == 1 and scopes and self.sections[scopes[-1]].kind == kind else None

    @cached_property
    def has_letters(self) -> bool:
        """Whether any section has the number of a paragraph: 5.10D."""
        return any(kind == _SECTION and _PARAGRAPH.fullmatch(number) for kind, number in self._numbered)

    @cached_property
    def restarts(self) -> bool:
        """Whether the numbers of sections begin again in some level: several sections have the lowest short number."""
        short = [number for kind, number in self._numbered if kind == _SECTION and not _is_placed(number)]
        digits = [each for each in short if each.isdecimal()]
        others = [each for each in short if not each.isdecimal()]
        lowest = [min(several, key=key) for several, key in ((digits, int), (others, str)) if several]
        return any(len(self._numbered[_SECTION, number]) > 1 for number in lowest)

    @property
    def in_city_code(self) -> bool:
        """Whether the levels at the top are titles or chapters, as those of the code of a municipality are.

        An ordinance with articles of its own is cited apart from that code, whose chapters may have the same numbers.
        """
        return any(self.sections[key].kind in ("title", "chapter") for key in self._parts.get(None, ()))


def resolve(citation: Citation, index: Index, here: str | None = None) -> str | None:
    """Find the section that a citation in the section `here` cites. None if it is not in `index`."""
    if citation.of is not None or (citation.of_city and not index.in_city_code):
        return None
    if citation.law is not None:
        name, _, number = citation.law.citation.partition(" § ")
        return index.within(_SECTION, _folded(number), ()) if name in index.own else None
    above = index.above(here)
    scopes: Sequence[str] = above
    found: str | None = None
    for kind, number in citation.levels:
        if number == THIS:
            found = next((key for key in above if index.sections[key].kind == kind), None)
        else:
            within, found = found, _find_level(kind, number, index, scopes)
            if found is None and len(citation.levels) == 1 and kind == _SECTION and number.isdecimal():
                found = None if index.restarts or index.in_city_code else index.within(kind, number, ())
            # Paragraph B of an article that has no sections with letters.
            found = found or (within if kind == _SECTION and number.isalpha() else None)
        if found is None and (citation.levels[-1][0] != _SECTION or not _is_placed(citation.levels[-1][1])):
            return None
        scopes = [found] if found is not None else scopes
    return found


def _is_placed(number: str) -> bool:
    """Whether a number identifies a section in the whole code: 5.10, 602. Others restart in each article or chapter."""
    return bool(separator_of(number)) or (number.isdigit() and len(number) > _RESTARTING)


def _find_level(kind: str, number: str, index: Index, scopes: Sequence[str]) -> str | None:
    """Find a level or section by its number in `scopes`, and by the other ways to write it."""
    number = _folded(number)
    if kind == "title":
        return index.within(kind, number, ())
    found = index.within(kind, number, scopes)
    if kind == _SECTION:
        if _is_placed(number) or not scopes:
            found = found or index.within(kind, number, ()) or _find_paragraph(number, index)
        return found or _find_lettered(number, index, scopes)
    if found is None and separator_of(number):
        return index.within(_SECTION, number, ())  # "Article 6.4.2"
    return found or next((key for each in _to_numerals(number) if (key := index.within(kind, each, scopes))), None)


def _find_paragraph(number: str, index: Index) -> str | None:
    """Find the section of a paragraph, as 5.10 of ``5.10D``, in a code without such numbers."""
    match = _PARAGRAPH.fullmatch(number)
    return None if match is None or index.has_letters else index.within(_SECTION, match[1], ())


def _find_lettered(number: str, index: Index, scopes: Sequence[str]) -> str | None:
    """Find section A of article IV for ``IV.A``, or IV itself where A is its paragraph."""
    match = _LETTERED.fullmatch(number)
    for kind in ("article", _SECTION, "chapter", "part") if match else ():
        if match and (level := index.within(kind, match[1], scopes) or index.within(kind, match[1], ())) is not None:
            below = index.within(_SECTION, match[2], [level])
            return below or (level if kind == _SECTION else None)
    return None


def _to_numerals(number: str) -> Iterator[str]:
    """Yield the number of a level in the other numerals: ``5`` as ``v``."""
    if (value := parse_roman(number)) is not None:
        yield str(value)
    elif number.isdigit():
        yield list_label("i", int(number))


def resolve_words(words: str, index: Index, here: str | None = None, state: str | None = None) -> str | None:
    """Find the section that some words in the section `here` cite first. None if it is not in `index`."""
    return next((key for each in find_citations(words, state) if (key := resolve(each, index, here)) is not None), None)


def resolve_range(citation: Citation, index: Index, here: str | None = None) -> Sequence[str]:
    """Find the sections that a citation cites. For the first end of a range, all sections up to its last."""
    first = resolve(citation, index, here)
    if first is None:
        return ()
    if citation.through is None or citation.through.startswith("("):
        return (first,)
    kind, _ = citation.levels[-1] if citation.levels else (_SECTION, "")
    last = index.within(kind, _folded(citation.through), index.above(here)) or index.within(
        kind, _folded(citation.through), ()
    )
    between = index.between(first, last) if last is not None else ()
    return tuple(each for each in between if index.sections[each].kind == kind) or (first,)


def _names(section: Section) -> Sequence[tuple[str, str]]:
    """The kind of a section with each number that it may be cited by."""
    number = _folded(section.number)
    last = re.split(r"[.\-]", number)[-1]
    bare = section.kind != _SECTION and last != number
    return [(section.kind, each) for each in ((number, last) if bare else (number,)) if number]


def numbers_of(section: Section) -> frozenset[str]:
    """Get the numbers in citations of a section, a subset of `numbers_in` of their words."""
    return frozenset(number for _, number in _names(section))


def numbers_in(words: str) -> frozenset[str]:
    """Find everything in the words of a citation that may be the number of a section."""
    found: set[str] = set()
    title = ""
    for match in _NUMBERS.finditer(_folded(words)):
        before, colon, _ = match[0].rpartition(":")
        title = before + colon or title
        # A colon may be part of a number or end the words before it. In a list the part before it may be given once.
        for whole in {match[0], *match[0].split(":"), title + match[0]}:
            # A hyphen may be part of a number or separate two: 10-101-10-110.
            pieces = whole.split("-")[:_PIECES]
            places = range(len(pieces))
            found.update("-".join(pieces[at : end + 1]) for at in places for end in places[at:])
    for each in [_folded(each) for each in found]:
        found.update((each, *_to_numerals(each)))
        if lettered := _LETTERED.fullmatch(each):
            found.update((lettered[1], lettered[2]))
        if paragraph := _PARAGRAPH.fullmatch(each):
            found.add(paragraph[1])
    return frozenset(found)


def _folded(number: str) -> str:
    return number.replace("–", "-").casefold().rstrip(".-")
