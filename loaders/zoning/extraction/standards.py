"""Dimensional standards: how large, high, dense or far from a line a code allows something to be.

They are in tables (`table_standards`) and in label lines: ``Minimum lot area: 7,500 square feet``, ``A minimum lot
width of 60 feet``. The label of a line, or of the heading above it, is the whole name of a dimension. Its subject, from
the headings above it too, is the lot, its yards or its main building. Sentences are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loaders.zoning.extraction.dimensions import (
    STOREY,
    Bound,
    Standard,
    allows_unit,
    bound_of,
    parse_label,
    type_in_unit,
)
from loaders.zoning.extraction.districts import (
    District,
    codes_in_title,
    parse_leading_codes,
)
from loaders.zoning.extraction.lines import Line, parse_lines
from loaders.zoning.extraction.measures import Measure, find_measures, find_ratios
from loaders.zoning.extraction.section_scope import Places, Scope, is_place
from loaders.zoning.extraction.table_standards import find_in_tables
from loaders.zoning.extraction.use_items import split_sentences
from loaders.zoning.readers.code_model import Section

_OTHER: Final = re.compile(
    r"\b(?:signs?|signage|billboards?|fenc\w+|walls?|hedges?|parking|loading|drive\w*|aisles?|garages?|accessory"
    r"|pools?"
    r"|towers?|antennas?|wireless|telecommunication\w*|landscap\w+|buffers?|screening|trees?|streets? (?:standards"
    r"|design)|sidewalks?|alleys?"
    r"|lighting|machines?|solar|wind|mobile homes?|manufactured homes?|recreational|vehicles?|kennels?"
    r"|animals?|chickens?|poles?"
    r"|nonconform\w+|definitions?|home occupations?|sheds?|decks?|porch\w*|projections?|encroach\w*|exceptions?"
    r"|storage|utilit\w+"
    r"|subdivision\w*|definitions?|parks?|outdoor|temporary|flood\w*|riparian|slopes?|wetlands?|noise|monuments?"
    r"|visibility|pumps?|canop\w+|stormwater)\b",
    re.I,
)
"""Subjects other than the lot, its yards and its main building."""
_STANDARDS: Final = re.compile(
    r"\b(?:bulk|dimension\w*|area|yards?|heights?|setbacks?|lots?|coverage|density|intensity|standards?|requirements?"
    r"|regulations?|districts?|zones?|development|site|building|general|provisions)\b|^$",
    re.I,
)
_GENERIC: Final = re.compile(
    r"(?:\W|\b(?:bulk|dimension(?:s|al)?|area|yards?|heights?|setbacks?|lots?|coverage|density|intensity|standards?"
    r"|requirements?"
    r"|regulations?|restrictions|limitations|development|site|building|general|provisions|minimum|maximum|and|or"
    r"|the|of|for|placement|space|size|following|shall|apply|are|as follows|limits?|open|main|principal|location"
    r"|required|residential|in|district|zone|this|all|any|each|no|every|such|land|parcels?|uses|structures?)\b)+",
    re.I,
)
_PLACE: Final = re.compile(
    r"\b(?:in|within|for|of) (?:(?:the|an?|any|all|each|this) )?(?:[\w./&-]+,? ){0,9}?(?:districts?|zones?)\b", re.I
)
_OF_BUILDINGS: Final = re.compile(
    r"(?:in )?(?:all |an? |any |each |the )?(?P<what>(?:[\w-]+ ){0,5}(?:dwellings?"
    r"|houses|developments?|buildings?|uses))",
    re.I,
)
_VERB: Final = re.compile(
    r"\b(?:shall|must|may|will|can|is|are|be|has|have|applies|apply|means|requires?|exceeds?)\b", re.I
)
_FOR: Final = re.compile(r"^(?:for |in the case of )(?:an? |all |any |each |the )?(?P<what>[^:;]{2,80}?)[:,]? *$", re.I)
_MAIN: Final = re.compile(
    r"(?:(?:principal|main|primary|all|the|permitted) ?)*(?:buildings?|structures?|dwellings?|uses?"
    r"|lots?)?(?: and structures)?",
    re.I,
)
_AFTER: Final = re.compile(
    r"[ .;,]*$|[ .,;]*(?:\(? ?(?:minimum|maximum|min\.?|max\.?) ?\)?|in (?:height|width|depth|area)|or (?:more|less"
    r"|greater))[ .;,]*$"
    r"|[.;]?(?: ?\(?(?:minimum|maximum|min\.?|max\.?)\)?)? ?(?P<case>(?:[,;(.] ?|(?:on|for|if|when|where|at|from"
    r"|measured|provided|except|unless|plus|minus|or"
    r"|and|abutting|adjacent|along|to|in any|in the|with|each)\b).*)$",
    re.I | re.S,
)
_OF: Final = re.compile(r" ?(?:of|per|/|for (?:each|every)|times|x|by \d)\b", re.I)
_OF_LOT: Final = re.compile(r" ?of (?:the )?(?:total |gross |net )?(?:lot|site|parcel)(?: area)?\b", re.I)
_BOUND_FIRST: Final = re.compile(r"^(?:(?:minimum|maximum|or (?:less|more)),? ?)+", re.I)
_NOTE: Final = re.compile(r"[(\[]?(\d{1,2}|[*†‡]{1,3})[)\]]?")
_STOREYS: Final = re.compile(r"[ ,]*(?:or|and|/|\() ?$", re.I)
_HISTORY: Final = re.compile(r" ?[(\[](?:Ord\b|Ordinance|Added|Amended|Prior code)[^\n]{0,400}+$")
_PARTS: Final = re.compile(r"(?<=[a-z)%])[.;] (?=[A-Z])(?<!sq\. )(?<!ft\. (?=[a-z]))")
"""The end of one label and value before the next: ``Front: 30 feet. Side: 10 feet.``"""
_LONGEST: Final = 600
_HEAD_WORDS: Final = 8
_NEAR: Final = 30
"""Code points after a value that may state its bound."""
_BEFORE: Final = 14
"""Maximum words before the value."""


@dataclass(frozen=True, slots=True)
class _Path:
    """The words of the headings above a line."""

    group: str = ""
    """The words of the heading that names a dimension."""
    what: str | None = None
    """The use that the lines are for."""
    told: bool = True
    """Whether its lines are standards: the headings are about lots, yards and main buildings."""


def find_standards(
    section: Section,
    known: Mapping[str, District],
    above: Sequence[Section] = (),
    scopes: Sequence[Scope] | None = None,
) -> Sequence[Standard]:
    """Find the standards that a section sets: in label lines, then in tables.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first.
    `scopes` are those of the section.
    """
    places = Places(section, known, above, scopes)
    return [*_find_in_lines(section, known, above, places), *find_in_tables(section, known, places)]


def _find_in_lines(
    section: Section, known: Mapping[str, District], above: Sequence[Section], places: Places
) -> Iterator[Standard]:
    """Yield the standards in the label lines of a section."""
    titles = [section.title, *(each.title for each in above)]
    if (
        not known
        or any(_OTHER.search(_strip_names(title, known)) for title in titles)
        or not (_STANDARDS.search(section.title) or codes_in_title(section.title, known))
    ):
        return
    title = section.title.strip(" .:")
    group = title if parse_label(title) is not None else ""
    yield from _read_lines(section, known, places, parse_lines(section, places.starts), _Path(group))


def _strip_names(title: str, known: Mapping[str, District]) -> str:
    """Strip the names of districts from a heading: ``M-1 Light Manufacturing District`` is not about lights."""
    for each in known.values():
        if each.name and each.name.casefold() in title.casefold():
            title = re.sub(re.escape(each.name), " ", title, flags=re.IGNORECASE)
    return title


def _read_lines(
    section: Section, known: Mapping[str, District], places: Places, lines: Sequence[Line], path: _Path
) -> Iterator[Standard]:
    text, current = section.text, path
    for line in lines:
        note = _HISTORY.search(text, line.body, line.end)
        end = note.start() if note else line.end
        words = text[line.body : end].rstrip()
        if line.breaks:
            current = path
        holds = current if not line.label else path
        read = False
        if holds.told and len(words) <= _LONGEST:
            first, at = line.body, line.body + len(words)
            named, stop = parse_leading_codes(words, known)
            if named and words[stop : stop + 1] in (":", " ") and any(len(code) > 1 for code in named):
                first += stop + 1
            codes = named or places.at(line.start)
            for part in [*_PARTS.finditer(text, first, at), None] if codes else []:
                stop_of_part = part.start() if part else at
                if part and not any(find_measures(text, first, stop_of_part)):
                    continue  # "Building coverage. Forty percent"
                for each in _read_line(text, first, stop_of_part, holds, codes):
                    read = True
                    yield each
                first = part.end() if part else at
        headed = bool(line.below) or words.endswith(":")
        general = not line.label and _GENERIC.fullmatch(words) is not None and parse_label(words) is None
        below = holds if read else _parse_head(words, path if general else holds, known, headed=headed)
        heads = words.endswith(":") or (len(words.split()) <= _HEAD_WORDS and not _VERB.search(words))
        if not line.label and not read and not line.below and heads:
            current = below
        if line.below:
            yield from _read_lines(section, known, places, line.below, below)


def _is_general(subject: str) -> bool:
    """Whether the subject of a lead is all lots and buildings of a district: ``In the R-1 District, structures``."""
    rest = _PLACE.sub(" ", subject)
    return bool(_GENERIC.fullmatch(f"{rest} ")) and not _OTHER.search(subject)


def _parse_head(words: str, path: _Path, known: Mapping[str, District], *, headed: bool) -> _Path:
    """Parse a line without a value as the heading of the lines below it."""
    *_, last = split_sentences(words, 0, len(words)) if headed else [(0, len(words))]
    said = words[slice(*last)].strip() if _VERB.search(words, *last) else words
    head = re.split(r"(?<=[a-z)]{2})[.:](?: |$)", said, maxsplit=1)[0].strip(" .:")
    if (verb := _VERB.search(head)) and headed and _is_general(head[: verb.start()]):
        return path
    if verb and headed and (of := _OF_BUILDINGS.fullmatch(_PLACE.sub(" ", head[: verb.start()]).strip(" ,"))):
        return replace(path, what=of["what"]) if not _OTHER.search(of["what"]) else replace(path, told=False)
    if verb:
        lead = re.sub(r"\b(?:shall be|are|is|must be)\b.*$", "", head)
        return (
            path
            if headed and _GENERIC.fullmatch(head)
            else replace(
                path, told=path.told and parse_label(lead) is not None, group=lead if parse_label(lead) else path.group
            )
        )
    if _OTHER.search(head):
        return replace(path, told=False)
    if parse_label(head, path.group) is not None or parse_label(head) is not None:
        return replace(path, group=head if parse_label(head) else f"{head} {path.group}")
    if is_place(words, known):
        return path
    if re.search(r"\b(?:permitted|special|conditional|other|principal) uses?\b", head, re.I):
        return replace(path, what=head)
    if _GENERIC.fullmatch(head):
        return path
    if match := _FOR.match(head):
        return replace(path, what=match["what"])
    return replace(path, told=False)


def _read_line(text: str, start: int, end: int, path: _Path, codes: Sequence[str]) -> Iterator[Standard]:
    """Read one line [start, end)."""
    given = list(find_measures(text, start, end))
    ratio = re.match(r"(?:(?:max|min)(?:imum|\.)? )?(?:floor area ratio|f\.?a\.?r\.?)\b", text[start:end], re.I)
    if ratio and not given:
        given = list(find_ratios(text, start, end, []))
    if not given:
        return
    first = given[0]
    before = text[start : first.start].strip()
    if _VERB.search(before) or len(before.split()) > _BEFORE or _OTHER.search(before):
        return
    after = text[first.end : end]
    label, what, case = _find_label(before, path)
    if label is None:
        return
    type_, bound = label
    if not allows_unit(type_, first.unit) or first.value is None:
        return
    if first.unit == "PERCENT" and _OF.match(after) and not _OF_LOT.match(after):
        return
    if share := _OF_LOT.match(after):
        after = after[share.end() :]
    second: Measure | None = None
    if (
        type_ == "building-height"
        and len(given) > 1
        and _STOREYS.fullmatch(text[first.end : given[1].start])
        and {first.unit, given[1].unit} & {STOREY}
        and first.unit != given[1].unit
    ):
        second = given[1]
        after = text[second.end : end].lstrip(" )")
    elif _OF.match(after):
        return
    rest = _AFTER.match(after)
    if rest is None:
        return
    behind = _BOUND_FIRST.sub("", (rest["case"] or "").strip(" ,;.("))
    if (note := _NOTE.fullmatch(behind)) and (
        said := re.search(rf"^\(?{re.escape(note[1])}[.)]? +(\S[^\n]*)", text[end:], re.M)
    ):
        behind = said[1]
    if what is None and (of := _FOR.match(behind)) and not any(find_measures(behind)):
        what, behind = of["what"], ""
    conditions = [each for each in (case, behind) if each and re.search(r"[^\W\d]", each)]
    bound = bound_of(after[:_NEAR]) or bound_of(before) or bound
    for each in (first, second):
        if each is not None and each.value is not None:
            yield Standard(
                tuple(codes), type_in_unit(type_, each.unit), before.strip(" :.") or path.group, bound,
                text[each.start : each.end], each.value, each.unit, what, conditions, each.start, each.end, "label",
            )  # fmt: skip


def _find_label(before: str, path: _Path) -> tuple[tuple[str, Bound] | None, str | None, str | None]:
    """Find the dimension that the words before a value, and the headings above, name; the use; and the case."""
    words = re.sub(
        r"\b(?:not (?:less|more|greater) than|at least|no (?:less|more) than|not to exceed|up to)\W*$",
        "",
        before.strip(" :–—-."),
        flags=re.I,
    ).strip(" :–—-.,")
    words = re.sub(r"^(?:an?|the)\b ", "", words, flags=re.I)
    group = parse_label(path.group) if path.group else None
    if group is not None and (of := _FOR.match(words)):
        return (group.type, group.bound), of["what"], group.case
    if words and (own := parse_label(words, path.group)) is not None:
        return (own.type, own.bound), path.what, own.case
    if (split := re.match(r"(?P<head>[^.:]{3,60})[.:] (?P<rest>.+)$", words)) and (
        own := parse_label(split["head"], path.group)
    ):
        of = _FOR.match(split["rest"])
        return ((own.type, own.bound), of["what"], own.case) if of else (None, None, None)
    if group is None:
        return None, None, None
    if not words or _MAIN.fullmatch(words):
        return (group.type, group.bound), path.what or (words or None), group.case
    return None, None, None
