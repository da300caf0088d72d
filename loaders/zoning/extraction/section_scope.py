"""Where the text of a section applies: in districts, in a class of them, in all, in the whole town, or unknown.

The scopes of a section partition its text. The heading path of the section gives the first one. A heading line inside
the text (a line of a few words without a verb, that is neither an item nor a cell) ends it: the rest applies where that
heading states. Text out of pages has headings of higher levels in it that were not recognized as such. One of these,
and one that cannot be placed, also ends the scope of the sections that follow in document order, until a heading of
its rank or above names a district. Where the number of a section contradicts the level that contains it, nothing is
known.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from loaders.readers.headings import RANKS, SECTION, parse_heading
from loaders.zoning.extraction.citation_resolution import Index
from loaders.zoning.extraction.districts import (
    CODE,
    OTHER_KIND,
    District,
    codes_in_title,
    find_line_starts,
    find_named,
    plain_name,
    strip_elsewhere,
)
from loaders.zoning.extraction.permission_levels import INHERITED
from loaders.zoning.readers.code_model import Section
from loaders.zoning.readers.outline import find_label_end, parse_keys

Kind = Literal["districts", "class", "all", "town", "none"]

_KIND_OF_PLACE: Final = r"(?:districts?|zones?)"
_STEM: Final = (
    r"(?:non-?)?(?:residen|business|commerc|industr|manufactur|agricultur|overlay|office|retail|institution"
    r"|multi-?(?:ple[ -])?famil|single-?famil)[a-z]*"
)
_CLASS: Final = re.compile(
    rf"(?i)\b(?P<stems>{_STEM}(?:(?:, |,? and |,? or |/| & | ){_STEM}){{0,4}})(?: (?:zoning|use))? {_KIND_OF_PLACE}\b",
)
_WHOLE_NAME: Final = re.compile(r"(?i)(?:the )?([A-Za-z][\w/&' -]{2,60}) (?:district|zone|districts|zones)\.?$")
_ONE_NAME: Final = re.compile(r"(?:The )?[A-Z][a-zA-Z]+ (?:District|DISTRICT|Zone|ZONE)\.?")
_EACH_STEM: Final = re.compile(_STEM, re.IGNORECASE)
_EVERYWHERE: Final = re.compile(
    rf"(?i)\b(?:all|any|every|each) (?:of the )?(?:other )?(?:zoning |use )?{_KIND_OF_PLACE}\b"
)
_UNKNOWN: Final = re.compile(
    rf"(?i)(?:the )?(?:(?-i:{CODE})\b.*|(?:\S+ ){{0,3}}?(?:in|within|for) (?:the|an?"
    rf"|any) (?-i:[A-Z]).*)\b{_KIND_OF_PLACE}"
    r"\b.*|(?:the )?(?:(?!(?:of|the|in|for|to|against|by|with|from|on|at|outside)\b)[\w/'’&.-]+,? ){1,6}"
    rf"{_KIND_OF_PLACE}(?: regulations)?",
)
_GENERAL: Final = re.compile(
    r"(?i)\b(?:zoning|use|special|regulations?|establish\w*|general|provisions?|purposes?|standards?|requirements?|permitted"
    r"|uses?|and|of|by|in|for|within|types?|list|schedules?|table|summary|maps?|boundar\w*|rules?|interpret\w*|intent"
    r"|classif\w*|conditional|density|height|area|yards?|other|various|an?|these|this|each|division|into|creation|overlay"
    r"|base|supplement\w*|additional|development|land|municip\w*|town|city|village|county|designat\w*|names?)\b",
)
"""Words that do not distinguish one district from another: ``Uses permitted in districts`` names none."""
_VERB: Final = re.compile(
    r"(?i)\b(?:shall|must|may|will|can|should|is|are|be|been|was|were|has|have|had|do|does|means?|includes?|including|appl(?:y|ies)"
    r"|abuts?|adjoins?|requires?|provided|see|unless|if|when|where|which|that)\b",
)
_PAGE: Final = re.compile(r"\d{1,4}[A-Z]? (?=[A-Z])")
_LEVEL: Final = re.compile(r"(?i)(?:article|chapter|part|title|appendix|division|subchapter)\b")
_OPENING: Final = re.compile(
    rf"(?im)^(?:with)?in (?:(?:the|an?|any|all|each|every|both) )?(?:[\w/&'’().-]+,? ){{1,12}}?{_KIND_OF_PLACE}\b",
)
_STATED: Final = re.compile(
    r"(?i)\b(?:these|the following|this section'?s?)(?: \w+){0,3} (?:appl(?:y|ies)|shall apply)"
    r" (?P<where>(?:in|to|within) [^.:\n]{4,200})",
)
_PLACE: Final = re.compile(r"(?i)\b(?:districts?|zones?|overlay|zoning)\b")
_CODE_FIRST: Final = re.compile(rf"[“\"(]?{CODE}\b")
_FILLER: Final = re.compile(rf"(?i)in|the|an?|within|and|or|for|uses?|of|all|any|each|both|zon\w+|{_STEM}")
_CLASS_FIRST: Final = re.compile(
    rf"(?i)(?:in |within |for )?(?:(?:the|an?|any|all|each|every|other|of the) )*(?:{_STEM}[ ,/&]*(?:and |or )?)*"
    rf"(?:(?:zoning|use) )?{_KIND_OF_PLACE}(?:(?: ?[-–—:,] | \().*)?[.:]?",
)
_BEFORE_CLASS: Final = re.compile(r"(?i)[-–—:,] |\b(?:in|within|for) ")
"""Marks before a place that is a part of a heading: ``Temporary uses - all districts``."""
_SENTENCE_END: Final = re.compile(r"[.:](?= |$)")
_LONGEST: Final = 110
"""Maximum characters of a heading line."""
_START_OF_TEXT: Final = 400
_SHARE: Final = 0.6
"""Minimum share of the sections with the number of the level that contains them, in a code that numbers them so."""
_FEWEST: Final = 5
_UNPLACED: Final = -1
_LOWEST: Final = 100
"""Rank of a section, below all levels."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where the text in [start, end) of a section applies."""

    kind: Kind
    """districts, a named class of districts, all districts, the town (no heading names a district), or none: not
    known."""
    codes: tuple[str, ...]
    """The known districts that are meant, by code."""
    start: int
    end: int


Place = tuple[Kind, tuple[str, ...]]
_TOWN: Final[Place] = ("town", ())
_UNKNOWN_PLACE: Final[Place] = ("none", ())


@dataclass(frozen=True, slots=True)
class _Line:
    """A heading line in a text."""

    number: int
    start: int
    rank: int | None
    """That of the level it names. None for a heading within the section."""
    place: Place
    level: bool
    """It has the word and the number of a level: ARTICLE XXI."""
    named: bool
    """Its words are a place."""


def get_scope(scopes: Sequence[Scope], offset: int) -> Scope:
    """Get the scope at an offset of a text. Unknown outside of all."""
    return next((each for each in scopes if each.start <= offset < each.end), Scope("none", (), offset, offset))


class Places:
    """The districts of a section, by offset. `scopes` are those of the section, if they have been found before."""

    def __init__(
        self,
        section: Section,
        known: Mapping[str, District],
        above: Sequence[Section],
        scopes: Sequence[Scope] | None = None,
    ) -> None:
        self._scopes: Final = find_scopes(section, known, above) if scopes is None else scopes
        self._all: Final = tuple(known)

    @property
    def starts(self) -> frozenset[int]:
        """Offsets where the districts change."""
        return frozenset(each.start for each in self._scopes if each.start)

    def at(self, offset: int) -> Sequence[str]:
        """Get the codes of the districts that apply at an offset. Empty if they are not known."""
        scope = get_scope(self._scopes, offset)
        return self._all if scope.kind == "all" else scope.codes if scope.kind in ("districts", "class") else ()


def parse_scope(words: str, known: Mapping[str, District]) -> Place | None:
    """Find where a heading, or the lead of a list, states that it applies. None if it names no place.

    A district that is not known gives the kind none.
    """
    said = strip_elsewhere(words)
    if codes := codes_in_title(said, known):
        return "districts", tuple(codes)
    for name in (*said.split(": ")[1:2], *_WHOLE_NAME.findall(said)):
        codes = find_named(name, known) if _GENERAL.sub("", plain_name(name)).strip() else ()
        # "Office District" may be one district. "Business Districts" and "a residential district" are of a class.
        is_class = _EACH_STEM.fullmatch(plain_name(name)) and not (len(codes) == 1 and _ONE_NAME.fullmatch(said))
        if codes and not is_class:
            return ("districts" if len(codes) == 1 else "class"), tuple(codes)
    if (found := _CLASS.search(said)) is not None:
        rest = said[found.end() :]
        return "class", () if rest.startswith(":") else tuple(_find_class(found["stems"], known))
    if (every := _EVERYWHERE.search(said)) is not None:
        return ("class" if "other" in every[0].casefold() else "all"), ()
    return _UNKNOWN_PLACE if _names_unknown(said) else None


def _find_class(stems: str, known: Mapping[str, District]) -> Iterator[str]:
    """Yield the codes of the districts whose group, or name if there are no groups, is of one of these kinds."""
    kinds = [each[0].casefold()[:7] for each in _EACH_STEM.finditer(stems)]
    grouped = any(kind in district.group.casefold() for kind in kinds for district in known.values())
    for code, district in known.items():
        name = (district.group if grouped else district.name).casefold()
        overlay = "overlay" in f"{district.name} {district.group}".casefold() and "overlay" not in kinds
        if any(kind in name for kind in kinds) and not overlay:
            yield code


def _names_unknown(words: str) -> bool:
    match = None if OTHER_KIND.search(words) else _UNKNOWN.fullmatch(words.strip(" .:"))
    return match is not None and bool(re.search(r"\w", _GENERAL.sub("", plain_name(words))))


Carried = tuple[int, Place]
"""The rank of a heading line in the text of an earlier section, and the place of the sections after it."""
Memo = dict[str, tuple[Section, object, tuple[Sequence[Scope], Carried | None]]]
"""Scopes found before with the same districts, by key of the section, each with the section and its surroundings."""


def find_code_scopes(
    sections: Iterable[Section], known: Mapping[str, District], memo: Memo | None = None
) -> dict[str, Sequence[Scope]]:
    """Find the scopes of all sections of a code, given in document order, by key.

    Only the sections that are not in `memo`, or whose surroundings differ, are read again. The others are added to it.
    """
    given, memo = list(sections), {} if memo is None else memo
    index = Index(given)
    contradicted = _find_contradicted(given, index)
    found: dict[str, Sequence[Scope]] = {}
    carried: Carried | None = None
    titles: dict[str, Place | None] = {}
    for section in given:
        above = [index.sections[key] for key in index.above(section.key)[1:]]
        titles[section.key] = own = parse_scope(section.title, known)
        if carried is not None and _rank(section) <= carried[0]:
            carried = None
        place = _find_place(section, above, titles, known)
        if own is None and (carried is not None or section.key in contradicted):
            place = _UNKNOWN_PLACE if carried is None else carried[1]
        over = next((_rank(each) for each in above if each.kind != SECTION), _LOWEST)
        inherited = next((outer for each in above if (outer := titles.get(each.key)) is not None), _TOWN)
        around = place, over, inherited
        earlier = memo.get(section.key)
        if earlier is None or earlier[0] is not section or earlier[1] != around:
            earlier = memo[section.key] = section, around, _partition(section, place, known, over, inherited)
        found[section.key], after = earlier[2]
        carried = after or carried
    return found


def find_scopes(section: Section, known: Mapping[str, District], above: Sequence[Section]) -> Sequence[Scope]:
    """Find the scopes of one section with these ancestors, innermost first."""
    titles = {each.key: parse_scope(each.title, known) for each in (section, *above)}
    return _partition(section, _find_place(section, above, titles, known), known)[0]


def _rank(section: Section) -> int:
    return RANKS.get(section.kind, _LOWEST)


def _find_place(
    section: Section, above: Sequence[Section], titles: Mapping[str, Place | None], known: Mapping[str, District]
) -> Place:
    """Find where a section applies by its heading path, and by its first words."""
    if leading := _find_leading(section.text, known):
        return "districts", leading
    path = next((place for each in (section, *above) if (place := titles.get(each.key)) is not None), None)
    start = section.text[:_START_OF_TEXT]
    openings = {each.start(): parse_scope(each[0], known) for each in _OPENING.finditer(section.text)}
    first = openings.get(0)  # not of a labelled part, which is about itself only
    if first is not None and len({*openings.values()}) > 1 and (path is None or path[0] != "districts"):
        return _UNKNOWN_PLACE  # each paragraph is about another place
    if first is None and path is None and (stated := _STATED.search(start)) is not None:
        first = parse_scope(stated["where"], known)
    if path is None or first is None or first[0] == "none":
        return path or first or _TOWN
    if path[0] == "districts" and first[0] == "districts":
        return first if set(first[1]) <= set(path[1]) else path
    return first if first[0] == "districts" else path


def _find_leading(text: str, known: Mapping[str, District]) -> tuple[str, ...]:
    """Find the districts of the first lines in a row that start with their codes: ``R-1, R-2: These districts``."""
    codes: dict[str, None] = {}
    at = 0
    for start, _, named in find_line_starts(text):
        own = [code for code in named if code in known]
        if start != at or not own:
            break
        codes.update(dict.fromkeys(own))
        at = text.find("\n", at) + 1
    return tuple(codes)


def _find_contradicted(sections: Sequence[Section], index: Index) -> set[str]:
    """Find the sections whose numbers contradict the level that contains them: 21.1 in article XX."""
    leads: dict[str, bool] = {}
    numbers = {each.key: each.number for each in sections if each.number}
    keys = dict(zip(numbers, parse_keys(numbers.values()), strict=True))
    for section in sections:
        key = keys.get(section.key)
        above = index.above(section.key)[1:]
        over = [keys[each] for each in above if index.sections[each].kind != SECTION and keys.get(each)]
        if section.kind == SECTION and key is not None and len(key) > 1 and over:
            leads[section.key] = any(each is not None and key[: len(each)] == each for each in over)
    fits = Counter(leads.values())
    if len(leads) < _FEWEST or fits[True] < _SHARE * len(leads):
        return set()
    return {key for key, fit in leads.items() if not fit}


def _partition(
    section: Section, place: Place, known: Mapping[str, District], over: int = _LOWEST, inherited: Place = _TOWN
) -> tuple[Sequence[Scope], Carried | None]:
    """Divide a text at its heading lines and at its labelled parts about districts.

    `over` is the rank of the level that contains the section, which a heading that cannot be placed may have, and
    `inherited` where that level applies. Return also the meaning of its last heading line for the sections after it.
    """
    text = section.text
    lines = _find_lines(section, place, known, over, inherited)
    ends = [*(each.start for each in lines[1:]), len(text)]
    marks = [(0, len(text), place), *((line.start, end, line.place) for line, end in zip(lines, ends, strict=False))]
    marks += _find_parts(section, place, lines, known)
    cuts = sorted({at for start, end, _ in marks for at in (start, end)})
    owners = [place] * len(cuts)
    for start, end, where in marks:
        inside = slice(bisect_left(cuts, start), bisect_left(cuts, end))
        owners[inside] = [where] * len(owners[inside])
    scopes: list[Scope] = []
    for (start, end), (kind, codes) in zip(pairwise(cuts), owners, strict=False):
        if scopes and ((scopes[-1].kind, scopes[-1].codes) == (kind, codes) or text[start:end] == "\n"):
            scopes[-1] = replace(scopes[-1], end=end)
        else:
            scopes.append(Scope(kind, codes, start, end))
    carried = [(each.rank, each.place) for each in lines if each.rank is not None]
    return scopes or [Scope(*place, 0, 0)], carried[-1] if carried else None


def _find_lines(
    section: Section, place: Place, known: Mapping[str, District], over: int, inherited: Place
) -> Sequence[_Line]:
    """Find the heading lines in a text. Several in a row are a list, except a title below the name of its level."""
    text = section.text
    apart = [(table.start, table.end) for table in section.tables]
    apart.sort(reverse=True)
    covered = 0
    found: list[_Line] = []
    lines = [*re.finditer(r"[^\n]+", text)]
    for number, line in enumerate(lines):
        while apart and apart[-1][0] < line.end():
            covered = max(covered, apart.pop()[1])
        if len(line[0]) > _LONGEST or line.start() < covered:
            continue
        below = bool(found) and found[-1].number == number - 1 and found[-1].level
        trailing = number + 1 == len(lines)
        within = _TOWN if below else inherited if trailing else place
        if (heading := _parse_line(line[0], within, known, trailing=trailing)) is not None:
            rank, where = heading
            named = parse_scope(line[0].rstrip(".:"), known) is not None
            level = rank not in (None, _UNPLACED)
            found.append(_Line(number, line.start(), over if rank == _UNPLACED else rank, where, level, named))
    kept: list[_Line] = []
    for at, each in enumerate(found):
        near = [other for other in found[max(at - 1, 0) : at + 2] if abs(other.number - each.number) == 1]
        if each.level or not (each.named and any(other.named and not other.level for other in near)):
            kept.append(each)
    return kept


def _parse_line(
    line: str, place: Place, known: Mapping[str, District], *, trailing: bool
) -> tuple[int | None, Place] | None:
    """Parse a line as a heading: the rank of the level that it names, and where the rest applies.

    One at the end of a text (`trailing`) is the heading of the sections that follow.
    """
    words = line[page.end() :] if (page := _PAGE.match(line)) is not None and _LEVEL.match(line, page.end()) else line
    if find_label_end(words, 0, len(words)) or " | " in words or _VERB.search(words) or words[-1] in ";,":
        return None
    level = parse_heading(words) if _LEVEL.match(words) else None
    if level is not None and level.kind in RANKS and (words.isupper() or level.title or words == line):
        return RANKS[level.kind], parse_scope(level.title, known) or _UNKNOWN_PLACE
    upper = words.isupper() and (trailing or " " in words)
    if not (upper or _PLACE.search(words) or _CODE_FIRST.match(words)):
        return None
    where = parse_scope(words.rstrip(".:"), known)
    if where is None:
        if not (upper and (trailing or _PLACE.search(words))):
            return None
        return _UNPLACED, ("town" if place[0] == "town" else "none", ())
    if where[0] == "none" and place[0] == "town" and not (upper or _CODE_FIRST.match(words)):
        return None  # a term, as "Buffer zone"
    if not _is_heading_of(words, where, known):
        return None
    if trailing:
        return _UNPLACED, where
    if place[0] in ("town", "class", "all") or (where[1] and set(where[1]) <= set(place[1])):
        return None, where
    # A heading about another district than the section: the section may have ended before it.
    return _UNPLACED, _UNKNOWN_PLACE


def is_place(words: str, known: Mapping[str, District]) -> bool:
    """Whether some words are the heading of a place and nothing else."""
    where = parse_scope(words.rstrip(".:"), known)
    return where is not None and _is_heading_of(words, where, known)


def _is_heading_of(words: str, where: Place, known: Mapping[str, District], *, labelled: bool = False) -> bool:
    """Whether a line is the heading of a place and nothing else: ``R-1 District``, ``In the R-1 and R-2 Districts:``.

    With a label, the words may come after others: ``5. Parking - residential districts``, ``(a) Uses in the R-1 Zone``.
    """
    if where[0] != "districts":
        starts = [0, *(mark.end() for mark in _BEFORE_CLASS.finditer(words) if labelled)]
        return where[0] == "none" or any(_CLASS_FIRST.fullmatch(words, start) for start in starts)
    rest = re.sub(r"^[^.:]*\b(?:in|within|for) (?:the |any |all |an? )?", "", words) if labelled else words
    for code in where[1]:
        rest = re.sub(rf"(?<![\w-]){re.escape(code)}(?![\w-])", " ", rest)
    names = {word for code in where[1] for word in re.findall(r"[a-z]+", plain_name(known[code].name))}
    left = [word for word in re.findall(r"[a-z]+", plain_name(rest)) if word not in names]
    return all(_FILLER.fullmatch(word) for word in left)


def _find_parts(
    section: Section, place: Place, lines: Sequence[_Line], known: Mapping[str, District]
) -> Iterator[tuple[int, int, Place]]:
    """Yield the labelled parts whose first words are a heading about districts: ``(b) R-2 District. Uses are``."""
    text = section.text
    listed = {each.start for each in known.values() if each.section == section.key and each.end}
    starts = [each.start for each in lines]
    for part in section.subsections:
        if part.start in listed:
            continue
        end_of_line = text.find("\n", part.start, part.end)
        line = text[find_label_end(text, part.start, part.end) : part.end if end_of_line < 0 else end_of_line]
        stop = _SENTENCE_END.search(line[: _LONGEST + 1])
        if stop is None and len(line) > _LONGEST:
            continue
        words = line[: stop.end()] if stop else line
        if not words or _VERB.search(words) or INHERITED.match(words):
            continue
        where = parse_scope(words.rstrip(".:"), known)
        if where is None or where[0] == "none" or not _is_heading_of(words, where, known, labelled=True):
            continue
        after = bisect_right(starts, part.start)
        end = starts[after] if after < len(starts) else len(text)
        if place[0] == "districts" and not (where[1] and set(where[1]) <= set(place[1])):
            where = "none", ()
        yield part.start, min(part.end, end), where
