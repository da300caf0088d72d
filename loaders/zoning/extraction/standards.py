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
    DimensionLabel,
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
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.section_scope import Places, Scope, is_place
from loaders.zoning.extraction.table_standards import find_in_tables
from loaders.zoning.extraction.use_items import HISTORY_NOTE, VERB, sentences_of
from loaders.zoning.readers.code_model import Section

_OTHER: Final = re.compile(
    r"(?i)\b(?:signs?|signage|billboards?|fenc\w+|walls?|hedges?|parking|loading|drive\w*|aisles?|garages?|accessory|pools?"
    r"|towers?|antennas?|wireless|telecommunication\w*|landscap\w+|buffers?|screening|trees?|streets? (?:standards"
    r"|design)|sidewalks?|alleys?"
    r"|lighting|machines?|solar|wind|mobile homes?|manufactured homes?|recreational|vehicles?|kennels?"
    r"|animals?|chickens?|poles?"
    r"|nonconform\w+|definitions?|home occupations?|sheds?|decks?|porch\w*|projections?|encroach\w*|exceptions?"
    r"|storage|utilit\w+"
    r"|subdivision\w*|parks?|outdoor|temporary|flood\w*|riparian|slopes?|wetlands?|noise|monuments?"
    r"|visibility|pumps?|canop\w+|stormwater)\b",
)
"""Subjects other than the lot, its yards and its main building."""
_STANDARDS: Final = re.compile(
    r"(?i)\b(?:bulk|dimension\w*|area|yards?|heights?|setbacks?|lots?|coverage|density|intensity|standards?|requirements?"
    r"|regulations?|districts?|zones?|development|site|building|general|provisions)\b|^$",
)
_GENERIC: Final = re.compile(
    r"(?i)(?:\W|\b(?:bulk|dimension(?:s|al)?|area|yards?|heights?|setbacks?|lots?|coverage|density|intensity|standards?"
    r"|requirements?"
    r"|regulations?|restrictions|limitations|development|site|building|general|provisions|minimum|maximum|and|or"
    r"|the|of|for|placement|space|size|following|shall|apply|are|as follows|limits?|open|main|principal|location"
    r"|required|residential|an?|buildings?|in|district|zone|this|all|any|each|no|every|such|land|parcels?|uses|structures?)\b)+",
)
_PLACE: Final = re.compile(
    r"(?i)\b(?:in|within|for|of) (?:(?:the|an?|any|all|each|this) )?(?:[\w./&-]+,? ){0,9}?(?:districts?|zones?)\b"
)
_OF_BUILDINGS: Final = re.compile(
    r"(?i)(?:in )?(?:all |an? |any |each |the )?(?P<what>(?:[\w-]+ ){0,5}(?:dwellings?"
    r"|houses|developments?|buildings?|uses))",
)
_FOR: Final = re.compile(r"(?i)^(?:for |in the case of )(?:an? |all |any |each |the )?(?P<what>[^:;]{2,80}?)[:,]? *$")
_OF_SOME: Final = re.compile(r"(?i)\bfor (?:an? |all |any |each |the )?(?P<what>.{2,80})$")
"""The part of a title that restricts it: ``Standards for lots recorded before 1960``."""
_AFTER: Final = re.compile(
    r"[ .;,]*$|[ .,;]*(?:\(? ?(?:minimum|maximum|min\.?|max\.?) ?\)?|in (?:height|width|depth|area)|or (?:more|less"
    r"|greater))[ .;,]*$"
    r"|[.;]?(?: ?\(?(?:minimum|maximum|min\.?|max\.?)\)?)? ?(?P<case>(?:[,;(.] ?|(?:on|for|if|when|where|at|from"
    r"|measured|provided|except|unless|plus|minus|or|and|abutting|adjacent|along|to|in any|in the|with|each)\b).*)$",
    re.I | re.S,
)
_OF: Final = re.compile(r"(?i) ?(?:of|per|/|for (?:each|every)|times|x|by \d)\b")
_OF_LOT: Final = re.compile(r"(?i) ?of (?:the )?(?:total |gross |net )?(?:lot|site|parcel)(?: area)?\b")
_BOUND_LAST: Final = re.compile(
    r"(?i)\b(?:not (?:less|more|greater) than|at least|no (?:less|more) than|not to exceed|up to)\W*$"
)
_USES: Final = re.compile(r"(?i)\b(?:permitted|special|conditional|other|principal) uses?\b")
_BOUND_FIRST: Final = re.compile(r"(?i)^(?:(?:minimum|maximum|or (?:less|more)),? ?)+")
_NOTE: Final = re.compile(r"[(\[]?(\d{1,2}|[*†‡]{1,3})[)\]]?")
_STOREYS: Final = re.compile(r"(?i)[ ,]*(?:or|and|/|\() ?$")
_PARTS: Final = re.compile(r"(?<=[a-z)%])[.;] (?=[A-Z])(?<!sq\. )")
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
    # "M-1 Light Manufacturing District" is not about lights.
    names = re.compile("|".join(re.escape(each.name) for each in known.values() if each.name) or "(?!)", re.I)
    title = section.title.strip(" .:")
    about = _STANDARDS.search(title) or codes_in_title(title, known)
    if about and not any(_OTHER.search(names.sub(" ", each)) for each in (title, *(one.title for one in above))):
        group = title if parse_label(title) is not None else ""
        of = _OF_SOME.search(title)
        what = of["what"] if of and not (codes_in_title(title, known) or is_place(of["what"], known)) else ""
        path = _Path(group, None if _GENERIC.fullmatch(f"{what} ") else what)
        yield from _read_lines(section, known, places, parse_lines(section, places.starts), path)


def _read_lines(
    section: Section, known: Mapping[str, District], places: Places, lines: Sequence[Line], path: _Path
) -> Iterator[Standard]:
    text, current = section.text, path
    for line in lines:
        note = HISTORY_NOTE.search(text, line.body, line.end)
        words = text[line.body : note.start() if note else line.end].rstrip()
        if line.breaks:
            current = path
        holds = current if not line.label else path
        found: list[Standard] = []
        if holds.told and len(words) <= _LONGEST:
            first, last = line.body, line.body + len(words)
            scope = places.at(line.start)
            # "ASF: 10 units per acre" in another district is about dwellings of that name.
            codes = [code for code in parse_leading_codes(words, known)[0] or scope if code in (scope or known)]
            for end in [*(part.start() for part in _PARTS.finditer(text, first, last)), last] if codes else []:
                if end == last or any(find_measures(text, first, end)):  # not "Building coverage. Forty percent"
                    found += _read_line(text, first, end, holds, codes)
                    first = end + 2
        yield from found
        general = not line.label and _GENERIC.fullmatch(words) is not None and parse_label(words) is None
        below = holds if found else _parse_head(words, path if general else holds, known)
        heads = words.endswith(":") or (len(words.split()) <= _HEAD_WORDS and not VERB.search(words))
        if heads and not (line.label or found or line.below):
            current = below
        if line.below:
            yield from _read_lines(section, known, places, line.below, below)


def _parse_head(words: str, path: _Path, known: Mapping[str, District]) -> _Path:
    """Parse a line without a value as the heading of the lines below it."""
    words = " ".join(words.split())
    said = sentences_of(words)[-1]
    head = re.split(r"(?<=[a-z)]{2})[.:](?: |$)", said, maxsplit=1)[0].strip(" .:")
    if verb := VERB.search(head):
        subject = _PLACE.sub(" ", head[: verb.start()]).strip(" ,")
        if not _OTHER.search(subject) and _GENERIC.fullmatch(f"{subject} "):
            return path
        of = _OF_BUILDINGS.fullmatch(subject)
        return replace(path, what=of["what"]) if of else replace(path, told=False)
    if _OTHER.search(head):
        return replace(path, told=False)
    if parse_label(head) is not None:
        return replace(path, group=head)
    if parse_label(head, path.group) is not None:
        return replace(path, group=f"{head} {path.group}")
    if is_place(words, known) or _GENERIC.fullmatch(head):
        return path
    if _USES.search(head):
        return replace(path, what=head)
    return replace(path, told=False)


def _read_line(text: str, start: int, end: int, path: _Path, codes: Sequence[str]) -> Iterator[Standard]:
    """Read one line [start, end)."""
    given = list(find_measures(text, start, end))
    before = text[start : given[0].start].strip() if given else ""
    if not given or VERB.search(before) or len(before.split()) > _BEFORE or _OTHER.search(before):
        return
    label, what = _find_label(before, path)
    if label is None or not allows_unit(label.type, given[0].unit):
        return
    told, alternatives = given[:1], ""
    after = text[given[0].end : end]
    if share := _OF_LOT.match(after):
        after = after[share.end() :]
    elif (
        len(given) > 1
        and _STOREYS.fullmatch(text[given[0].end : given[1].start])
        and given[0].unit != given[1].unit
        and allows_unit(label.type, given[1].unit)
    ):
        told = given[:2]
        if re.search(r"(?i)\bor\b", text[given[0].end : given[1].start]):
            alternatives = text[given[0].start : given[1].end]
        after = text[given[1].end : end].lstrip(" )")
    rest = None if _OF.match(after) else _AFTER.match(after)
    if rest is None:
        return
    behind = _BOUND_FIRST.sub("", (rest["case"] or "").strip(" ,;.("))
    if (note := _NOTE.fullmatch(behind)) and (
        said := re.search(rf"^\(?{re.escape(note[1])}[.)]? +(\S[^\n]*)", text[end:], re.M)
    ):
        behind = said[1]
    if what is None and (of := _FOR.match(behind)) and not any(find_measures(behind)):
        what, behind = of["what"], ""
    conditions = [each for each in (label.case, alternatives, behind) if each and re.search(r"[^\W\d]", each)]
    bound = bound_of(f"{before} {after[:_NEAR]}") or label.bound
    for each in told:
        if each.value is not None:
            yield Standard(
                tuple(codes), type_in_unit(label.type, each.unit), before.strip(" :.") or path.group, bound,
                text[each.start : each.end], each.value, each.unit, what, conditions, each.start, each.end, "label",
            )  # fmt: skip


def _find_label(before: str, path: _Path) -> tuple[DimensionLabel | None, str | None]:
    """Find the dimension that the words before a value, and the headings above, name, and the use."""
    words = _BOUND_LAST.sub("", before.strip(" :–—-.")).strip(" :–—-.,")
    words = re.sub(r"(?i)^(?:an?|the)\b ", "", words)
    group = parse_label(path.group) if path.group else None
    if group is not None and (of := _FOR.match(words)):
        return group, of["what"]
    if words and (own := parse_label(words, path.group)) is not None:
        return own, path.what
    return (None, None) if words else (group, path.what)
