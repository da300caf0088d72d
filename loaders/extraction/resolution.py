"""Which section of a code a citation is of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from loaders.extraction.citations import THIS, Citation, citations
from loaders.extraction.sections import Section, Subsection

_SECTION: Final = "section"
_TRAILING: Final = re.compile(r"[.\-–]+$")


class Index:
    """The sections of a municipality's code, by what citations call them. Sections come in document order."""

    def __init__(self, sections: Iterable[Section], *, codes: Iterable[str] = ()) -> None:
        """Index `sections`; `codes` are the names that the code itself is cited by, as of the law of a state.

        So citations of ``D.C. Official Code § 8-101`` are of the code for which that is one of the `codes`.
        """
        self.own = frozenset(codes)
        self.sections = list(sections)
        self.place = {section.key: place for place, section in enumerate(self.sections)}
        self.parents = {section.key: section.parent for section in self.sections}
        self.kinds = {section.key: section.kind for section in self.sections}
        self._numbered: dict[str, list[str]] = defaultdict(list)
        self._named: dict[tuple[str, str], list[str]] = defaultdict(list)
        for section in self.sections:
            number = _folded(section.number)
            if not number:
                continue
            if section.kind == _SECTION:
                self._numbered[number].append(section.key)
            self._named[section.kind, number].append(section.key)
            last = re.split(r"[.\-]", number)[-1]
            if section.kind != _SECTION and last != number:
                self._named[section.kind, last].append(section.key)

    def above(self, key: str | None) -> Sequence[str]:
        """Return the keys of a section and of all that it is part of, from the inside."""
        found: list[str] = []
        while key is not None and key in self.parents and key not in found:
            found.append(key)
            key = self.parents[key]
        return found

    def within(self, kind: str, number: str, scopes: Sequence[str]) -> str | None:
        """Return the one section of a kind and number that is part of the innermost of `scopes` that has any.

        None where that has several, or none has one. Without scopes, it is the one of the whole code.
        """
        found = self._numbered.get(number) if kind == _SECTION else None
        found = found or self._named.get((kind, number))
        if not found:
            return None
        placed = "." in number or "-" in number
        if len(found) == 1 and (placed or not scopes or scopes[-1] in self.above(found[0])):
            return found[0]
        for scope in scopes:
            inside = [key for key in found if scope in self.above(key)]
            if inside:
                return inside[0] if len(inside) == 1 else None
        return None


def resolve(citation: Citation, index: Index, here: str | None = None) -> str | None:
    """Return the key of the section that a citation in the section `here` is of; None where `index` has none."""
    if citation.of is not None:
        return None
    if citation.law is not None:
        name, _, number = citation.law.citation.partition(" § ")
        return index.within(_SECTION, _folded(number), ()) if name in index.own else None
    above = index.above(here)
    scopes: Sequence[str] = above
    found: str | None = None
    for kind, number in citation.levels:
        if number == THIS:
            found = next((key for key in above if index.kinds[key] == kind), None)
        elif kind == _SECTION:
            # Sections count through the whole code, so that their number alone says which it is.
            found = index.within(kind, _folded(number), scopes) or index.within(kind, _folded(number), ())
        elif kind == "title":
            found = index.within(kind, _folded(number), ())
        else:
            found = index.within(kind, _folded(number), scopes)
        if found is None and kind != _SECTION and citation.levels[-1][0] != _SECTION:
            return None
        scopes = [found] if found is not None else scopes
    return found


def cited(words: str, index: Index, here: str | None = None, state: str | None = None) -> str | None:
    """Return the key of the section that some words in the section `here` cite first; None where `index` has none."""
    return next((key for each in citations(words, state) if (key := resolve(each, index, here)) is not None), None)


def members(citation: Citation, index: Index, here: str | None = None) -> Sequence[str]:
    """Return the keys of the sections that a citation is of: for the first end of a range, all up to its last."""
    first = resolve(citation, index, here)
    if first is None:
        return ()
    if citation.through is None or citation.through.startswith("("):
        return (first,)
    kind, _ = citation.levels[-1] if citation.levels else (_SECTION, "")
    last = index.within(kind, _folded(citation.through), index.above(here)) or index.within(
        kind, _folded(citation.through), ()
    )
    if last is None or index.place[last] < index.place[first]:
        return (first,)
    between = index.sections[index.place[first] : index.place[last] + 1]
    return tuple(section.key for section in between if section.kind == kind)


def subsection(citation: Citation, section: Section, at: int | None = None) -> Subsection | None:
    """Return the subsection of `section`, which `citation` is of, that its labels name.

    `at` is where the citation stands, if in that section itself: what ``paragraph (1)`` names is in the same one.
    """
    if not citation.labels:
        return None
    wanted = tuple(citation.labels)
    known = {tuple(each.path): each for each in section.subsections}
    if wanted in known:
        return known[wanted]
    if at is None:
        return None
    around = [each for each in section.subsections if each.start <= at < each.end]
    for outer in sorted(around, key=lambda each: each.start - each.end, reverse=True):
        for depth in range(len(outer.path), 0, -1):
            if found := known.get((*outer.path[:depth], *wanted)):
                return found
    return None


def _folded(number: str) -> str:
    return _TRAILING.sub("", number.replace("–", "-").casefold())
