"""Standards in one sentence: the dimension of each of its measures, what it is for, and where it applies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.dimension_names import (
    Bound,
    Dimension,
    allows_percent,
    allows_unit,
    bound_of,
    default_bound,
    find_dimensions,
    type_in_unit,
)
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.measures import NUMBER, Measure, find_measures, find_ratios, parse_number
from loaders.zoning.extraction.regulated_subjects import (
    find_building,
    find_building_kind,
    find_other_object,
    find_structure,
    is_trigger,
    is_unrelated,
)
from loaders.zoning.extraction.section_protocol import Section

FOR: Final = re.compile(
    r"\bfor (?:all |each |any |an? |the |every )?(?P<what>(?!purposes\b)(?!up\b"
    r"|(?!dwelling|building)\w+ing\b)[a-z][^.,;:()\n]{2,60}?)(?= shall\b| may\b| in\b| at\b| and\b| provided\b"
    r"| that\b| with\b| is\b| are\b| must\b| of\b|[.,;:()]|$)",
    re.IGNORECASE,
)
"""``for all one-family dwellings``: the use or building that a limit is for."""
LONGEST: Final = 1_200
"""Maximum code points of a sentence. Longer ones are skipped, to bound the time."""
_SENTENCE_END: Final = re.compile(r"(?<!\bsq)(?<!\bft)(?<!\bmin)(?<!\bmax)(?<!\bNo)\.(?= [A-Z(“\"])|;|\.$")
_HEAD: Final = re.compile(r"(?P<head>[A-Z“\"][^.:;\n]{2,70}?)(?:\.| [-–—]) (?=\S)")
_SAYS_AS_VERB: Final = re.compile(r"\b(?:shall|must|is|are|may)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lead:
    """A line or heading that applies to the sentences after it: ``Setbacks shall be as follows:``."""

    type: Dimension
    raw: str
    """The words for the dimension, as recorded."""
    bound: Bound | None
    what: str | None
    """The use or building that the limits are for."""
    label: str = ""
    colon: bool = True
    """Whether it announces the lines after it."""
    about: str = ""
    """Its own words and those of the heading above it."""


def split_clauses(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of sentences in [start, end) of a text, split at semicolons too.

    ``sq.``, ``ft.`` and ``No.`` do not end a sentence.
    """
    at = start
    for stop in _SENTENCE_END.finditer(text, start, end):
        if stop.end() > at:
            yield at, stop.end()
        at = stop.end()
    if at < end:
        yield at, end


def has_verb(words: str) -> bool:
    """Check whether some words are a statement. A heading is not."""
    return _SAYS_AS_VERB.search(words) is not None


def parse_lead(text: str, start: int, end: int, label: str, title: str) -> Lead | None:
    """Parse the last sentence of a line as a lead for the lines after it. None if it names no dimension.

    `title` is the heading above the line.
    """
    begin = max((first for first, _ in split_clauses(text, start, end)), default=start)
    words = text[begin:end]
    named = list(find_dimensions(text, begin, end)) if end - begin <= LONGEST else []
    if not named:
        return None
    what = FOR.search(words)
    general = next((each for each in named if each.type == "setback"), named[0])
    raw, applies = text[general.start : general.end], what["what"] if what else None
    return Lead(general, raw, bound_of(words), applies, label, words.rstrip().endswith(":"), f"{title} {words}")


def parse_head(text: str, start: int, end: int, about: str) -> Lead | None:
    """Parse the heading at the start of a line as a lead for its sentences: ``Lot area. Not less than an acre.``

    `about` is the heading above the line.
    """
    match = _HEAD.match(text, start, end)
    if match is None or has_verb(match["head"]) or any(find_measures(text, *match.span("head"))):
        return None
    named = list(find_dimensions(text, *match.span("head")))
    if not named:
        return None
    return Lead(named[-1], match["head"], bound_of(match["head"]), None, about=f"{about} {match['head']}")


_SAYS: Final = re.compile(
    r"\b(?:shall|must|is|are|be|may|required?|requirements?|minimum|maximum|min|max|least|exceed|than|limited)\b",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"\b(?:except|unless|if|when|where|whichever|(?<!\bbe )(?<!\bis )(?<!\bare )(?<!\bas )provided|so long as"
    r"|measured)\b[^.;\n]+"
    r"|\b(?:from|to|within|adjacent to|abutting|between) [^.,;\n]+",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"\b(?:within|every|for each|per|above|below|between|by|beyond|spaced|measured|than every|radius of|distance of"
    r"|(?:clusters?|groups?|rows?|series) of) (?:an? |the )?$|= ?$"
    r"|\b(?:that|which|who) (?:are|is|has|have) [^,]{0,30}$"
    r"|\b(?:provided|if|when|unless|except(?! that)|whichever|so long as)\b[^,;]*$",
    re.IGNORECASE,
)
"""Words before a measure that is not a limit, but states where or when a limit applies."""
_ITEM: Final = re.compile(r"(?:[(A-Za-z0-9)]{1,4}[.)]? )?(?P<what>[A-Z][A-Za-z /&-]{2,60}?)(?:,|:| -| –) ")
_HIGH: Final = re.compile(r"\)? (?:in (?:\w+ )?height|high|tall)\b")
_OR: Final = re.compile(r"\)?,? ?(?:or|nor|and|/)(?: more than| less than)? ?", re.IGNORECASE)
_INSIDE: Final = re.compile(
    r"\b(?:within|in|into|inside|behind)(?: (?:an?|the|any|each|every|all|required|minimum))* $", re.IGNORECASE
)
"""Words before a yard that only state where something is."""
_OF_LENGTH: Final = re.compile(r"\b(?:depth|width|frontage|height|length|dimensions?)\b", re.IGNORECASE)
_NO_USE: Final = re.compile(
    r"(?:at least|every|each|up to|more|less|one|two|three|four|five|six|seven|eight|nine|ten|\d+)(?![\w-])|.* $",
    re.IGNORECASE,
)
_RATIO: Final = re.compile(r"floor[ -]area ratio|\bF\.?A\.?R\b", re.IGNORECASE)
_TOTAL_OF: Final = re.compile(r"\b(?:total|combined|in the aggregate|both sides)\b", re.IGNORECASE)
_SUM: Final = re.compile(r"\b(?:total|totall?ing|combined|aggregate|sum)\b[^.;]{0,40}$", re.IGNORECASE)
_OR_LESS: Final = re.compile(r"\bor (?:less|fewer|smaller|more|larger|greater)\b", re.IGNORECASE)
"""Words that belong only to the number before them."""
_BEHIND: Final = re.compile(r"[ -](?:minimum|maximum|min|max|or (?:less|more|greater|larger|fewer))\b")
"""Words directly after a measure that state its bound."""
_SHARE_OF: Final = re.compile(r"(?:\)| \(\d+%\))? of [^.,;:()\n]{2,60}?(?=[.,;:()\n]|$| shall| or | and )")
"""``10 percent of the depth of the lot``: the percentage alone has no meaning."""
_RATE_OF: Final = re.compile(
    rf"\)?(?: (?:shall be|is|are|must be))?(?: (?:required|provided))? (?:per|for each|for every) (?P<count>{NUMBER})"
    r" ?[^.,;:()\n]{2,60}?(?= shall\b| is\b| are\b| must\b| may\b|[.,;:()\n]|$)",
    re.IGNORECASE,
)
"""``one space is required for every three homes``: the number of spaces alone has no meaning."""
_PER: Final = re.compile(
    r"\)?(?: (?:shall be|is|are|must be))?(?: (?:required|provided))? per (?P<what>[a-z][a-z -]{2,40}?)"
    r"(?= shall\b| is\b| are\b| must\b| may\b| within\b| in\b| at\b| and\b| plus\b|[.,;:()\n]|$)",
    re.IGNORECASE,
)
"""``two spaces per dwelling unit``: without it, they would be for all units together."""
_PAUSE: Final = re.compile(r"[,;]")
_OF_WHAT: Final = re.compile(
    r" of (?:an? |any |the |all |each )?(?P<what>[a-z][a-z -]{2,40}?)(?= is\b| shall\b| are\b| must\b"
    r"| may\b| within\b)"
)
_BEFORE: Final = 120
"""Code points before a measure that are searched for words of a condition."""
_BEFORE_IT: Final = re.compile(r" (?:on|from|at|to|for) (?:the |each |any |all )?$")
_NEAR: Final = 40
"""Code points after a measure that are searched for its dimension: ``25-foot rear setback``."""
_BESIDE: Final = 12
"""Code points after a measure that are searched for its bound."""
_TOTAL: Final = 24
"""Code points after a measure that are searched for words of a total of both sides."""
_OF_LOT: Final = re.compile(
    r"\)? of (?:the |a |any |each |every )?(?:total |gross |net )*"
    r"(?:area of (?:the |a |any |each )?)?(?:lot|site|parcel)\b"
)
_SHARES: Final = {
    "impervious": "impervious-coverage",
    "landscap": "open-space",
    "open space": "open-space",
    "cover": "lot-coverage",
    "occup": "lot-coverage",
}
"""The dimension of a share of a lot, by the first of these words in its sentence."""
_OF_UNIT: Final = {
    "storey": ("building-height",),
    "dwelling-per-acre": ("density",),
    "space": ("parking",),
}
"""Dimensions implied by a unit."""


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard. Its value, with its unit, is at the offsets [start, end) of the section's text."""

    districts: Sequence[str]
    """Codes of its districts. Empty if neither the sentence nor its section is about a district."""
    type: str
    """lot-area, lot-width, lot-depth, lot-frontage, front-setback, side-setback, street-side-setback, rear-setback,
    setback, building-height, building-storeys, lot-coverage, impervious-coverage, open-space, density, floor-area,
    floor-area-ratio, width, parking, project-area."""
    raw_type: str
    """The words for the type, as recorded."""
    bound: Bound
    raw: str
    """The value, verbatim: ``thirty-five (35) feet``, ``10% of lot depth``."""
    value: Decimal | None
    """None if the value is not one number in one unit."""
    unit: str | None
    """See `measures`. None without a value."""
    applies_to: str | None
    """The use or kind of building that it is for, verbatim, if stated."""
    conditions: Sequence[str]
    """Verbatim: notes, and text after "except", "if", "when"."""
    start: int
    end: int
    confidence: float
    method: str
    """sentence, list, table."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence [start, end) of a text, or a line of a list, with its context."""

    text: str
    start: int
    end: int
    lead: Lead | None
    about: str
    """The heading above it, and the words of its lead."""
    districts: Sequence[str]
    known: Mapping[str, District]
    measures: Sequence[Measure]
    dimensions: Sequence[Dimension]
    says: bool
    """Whether it contains words of a rule."""

    def before(self, place: int) -> int:
        """The end of the measure before the one at `place`."""
        return self.measures[place - 1].end if place else self.start

    def after(self, place: int) -> int:
        """The start of the measure after the one at `place`."""
        return self.measures[place + 1].start if place + 1 < len(self.measures) else self.end

    @property
    def is_bare(self) -> bool:
        """Whether it contains only measures."""
        edges = [self.start, *(edge for each in self.measures for edge in (each.start, each.end)), self.end]
        between = (self.text[at:stop] for at, stop in zip(edges[::2], edges[1::2], strict=True))
        return not any(map(str.isalpha, "".join(between)))


@dataclass(slots=True)
class _Meaning:
    """The meaning of a measure."""

    kinds: Sequence[tuple[str, str]]
    """Types of dimensions, each with the words for it."""
    listed: bool = False
    """Whether the types come from the lead and not from the sentence."""
    what: str | None = None
    """The use or building that it is for."""


def find_limits(
    section: Section, start: int, end: int, lead: Lead | None, around: Sequence[str], known: Mapping[str, District]
) -> Iterator[Standard]:
    """Yield the standards in the sentence, or line of a list, [start, end) of a section.

    `lead` applies to the sentence. `around` are its districts if it names none. `known` are the districts of the code.
    """
    text = section.text
    if end - start > LONGEST:
        return
    given = list(find_measures(text, start, end))
    if _RATIO.search(text, start, end) or (lead is not None and lead.type.type == "floor-area-ratio"):
        given = sorted([*given, *find_ratios(text, start, end, given)], key=lambda each: each.start)
    if not given:
        return
    where = naming.find_places(text, start, end, known)
    sentence = _Sentence(
        text,
        start,
        end,
        lead,
        lead.about if lead else section.title,
        around if where is None else where,
        known,
        given,
        list(find_dimensions(text, start, end)),
        bool(_SAYS.search(text, start, end)),
    )
    if sentence.is_bare and (len(given) > 1 or (lead is not None and not lead.colon)):
        return  # a table row whose columns were lost
    for place in range(len(given)):
        yield from _of_measure(sentence, place)


def _of_measure(sentence: _Sentence, place: int) -> Iterator[Standard]:
    """Yield the standards with a measure of the sentence as their value."""
    text, each = sentence.text, sentence.measures[place]
    before, after = sentence.before(place), sentence.after(place)
    lead_in = text[sentence.start : each.start]
    if (
        _ASIDE.search(text, max(before, each.start - _BEFORE), each.start)
        or is_trigger(text, sentence.start, each.start)
        or _exception(sentence, each.start)
    ):
        return
    reading = _find_meaning(sentence, place)
    together = _TOTAL_OF.search(text, each.end, min(after, each.end + _TOTAL)) or _SUM.search(text, before, each.start)
    for type_, raw_type in reading.kinds:
        if together and type_.endswith("-setback"):
            continue  # a total of both sides
        if each.unit == "PERCENT" and not allows_percent(type_) and not _OF_LENGTH.search(text, each.end, after):
            continue
        if type_ == "building-height" and reading.what is None:
            reading.what = find_structure(lead_in, raw_type)
        if type_.endswith("setback") and reading.what is None:
            reading.what = find_other_object(lead_in, raw_type)
        if type_ == "lot-width" and (told := find_building(lead_in, raw_type)) is not None:
            type_, reading.what = "width", reading.what or told
        if allows_unit(type_, each.unit) and not is_unrelated(
            type_, raw_type, lead_in, text[each.start : sentence.end], sentence.about, bool(sentence.districts)
        ):
            yield _build_standard(sentence, place, type_, raw_type, reading)


def _find_meaning(sentence: _Sentence, place: int) -> _Meaning:
    """Find the meaning of a measure: from the sentence, from its lead, or implied by the unit."""
    text, lead, each = sentence.text, sentence.lead, sentence.measures[place]
    found = _named_with(sentence, place)
    reading = _Meaning([(one.type, text[one.start : one.end]) for one in found])
    if lead is not None:
        sides = (one.type for one in (*found, *sentence.dimensions) if one.type.endswith("-setback"))
        side = next(sides, None) if lead.type.type == "setback" else None
        if side is not None:
            words = text[sentence.start : each.start].strip(" ,")
            reading = _Meaning([(side, f"{lead.raw} {words}")], listed=True)
        elif (not found or not sentence.says) and allows_unit(lead.type.type, each.unit):
            reading = _Meaning([(lead.type.type, lead.raw)], listed=True)
        if reading.listed:
            item = _ITEM.match(text, sentence.start, sentence.end)
            own = item["what"] if item and not side and not any(find_dimensions(item["what"])) else None
            reading.what = own or lead.what
    if not reading.kinds and sentence.says and each.unit == "PERCENT" and (share := _share(sentence, each.end)):
        reading.kinds = [(share, each.raw)]
    if not reading.kinds and (sentence.says or lead):
        reading.kinds = [(type_, each.raw) for type_ in _OF_UNIT.get(each.unit, ()) if _implied(sentence, each)]
    return reading


def _named_with(sentence: _Sentence, place: int) -> Sequence[Dimension]:
    """Find the dimensions of a measure in its sentence. An alternative has those of the other measure."""
    if not (sentence.says or sentence.lead):
        return ()
    found = _dimensions(sentence, place)
    last = place + 1 == len(sentence.measures)
    if found or last or not sentence.says:
        return found
    if not _OR.fullmatch(sentence.text, sentence.measures[place].end, sentence.after(place)):
        return ()
    unit = sentence.measures[place].unit
    return [one for one in _dimensions(sentence, place + 1) if allows_unit(one.type, unit)]


def _exception(sentence: _Sentence, at: int) -> bool:
    """Whether a measure belongs to an exception without a dimension: ``except that a steeple may be 50``."""
    excepted = sentence.text.rfind("except that", sentence.start, at)
    return excepted >= 0 and not any(excepted < one.start < at for one in sentence.dimensions)


def _share(sentence: _Sentence, at: int) -> str | None:
    """Find the dimension of a share of a lot: ``40 percent of the lot may be covered by buildings``."""
    if not _OF_LOT.match(sentence.text, at, sentence.end):
        return None
    words = sentence.text[sentence.start : sentence.end].casefold()
    return next((type_ for stem, type_ in _SHARES.items() if stem in words), None)


def _implied(sentence: _Sentence, each: Measure) -> bool:
    """Whether a measure without a dimension has the one that its unit implies."""
    if each.unit == "space":
        return "parking" in each.raw.casefold() or "parking" in sentence.about.casefold()
    return each.unit == "dwelling-per-acre" or bound_of(sentence.text[sentence.start : sentence.end]) == "max"


def _dimensions(sentence: _Sentence, place: int) -> Sequence[Dimension]:
    """Find the dimensions of a measure: those directly after it, else the last one before it in the sentence."""
    text, each, after = sentence.text, sentence.measures[place], sentence.after(place)
    behind = [
        one
        for one in sentence.dimensions
        if each.end <= one.start <= min(after, each.end + _NEAR) and allows_unit(one.type, each.unit)
    ]
    ahead = [
        one
        for one in sentence.dimensions
        if one.end <= each.start
        and allows_unit(one.type, each.unit)
        and not (one.type.endswith("-setback") and _INSIDE.search(text, max(0, one.start - _BEFORE), one.start))
    ]
    if (high := _HIGH.match(text, each.end)) and each.unit in ("FT", "M", "storey"):
        return [Dimension(*high.span(), "building-height")]
    sides = [one for one in behind if one.type.endswith("-setback")]
    if behind and ("-" in each.raw or text[each.end : each.end + 9].strip().startswith(("minimum", "maximum"))):
        return (sides or behind)[-1:] if sides else behind[:1]
    if not ahead:
        return behind[:1] if behind and behind[0].type != "lot-area" else ()
    last = ahead[-1]
    if sides and any(one.type == "setback" for one in ahead):
        # "Setbacks shall be five feet on the side and 25 feet on the front and rear": the sides follow each measure.
        of_last = last.type.endswith("-setback") and _BEFORE_IT.search(text, sentence.before(place), last.start)
        return sides if last.type == "setback" or of_last else [last]
    return [last]


def _build_standard(sentence: _Sentence, place: int, type_: str, raw_type: str, reading: _Meaning) -> Standard:
    text, each = sentence.text, sentence.measures[place]
    stop, value = each.end, each.value
    if (
        each.unit == "space"
        and (rate := _RATE_OF.match(text, each.end, sentence.end))
        and parse_number(rate["count"]) != 1
    ):
        stop, value = rate.end(), None
    if each.unit == "PERCENT" and not allows_percent(type_):
        share = _SHARE_OF.match(text, each.end, sentence.end)
        stop, value = share.end() if share else each.end, None
    condition = _CONDITION.search(text, stop, sentence.end)
    if condition and condition.start() > sentence.after(place):
        condition = None
    return Standard(
        tuple(sentence.districts),
        type_in_unit(type_, each.unit),
        raw_type,
        _bound(sentence, place, reading.listed) or default_bound(type_),
        text[each.start : stop],
        value,
        each.unit if value is not None else None,
        reading.what
        or _applies_to(sentence, place, stop, raw_type, reading.listed)
        or find_building_kind(text, sentence.start, each.start, each.end, sentence.end),
        [condition[0].strip(" .,")] if condition else [],
        each.start,
        stop,
        0.75 if reading.listed else 0.8,
        "list" if reading.listed else "sentence",
    )


def _bound(sentence: _Sentence, place: int, listed: bool) -> Bound | None:
    """Find the bound of a measure in the words around it. Nearer words take precedence."""
    text, each = sentence.text, sentence.measures[place]
    behind = _BEHIND.match(text[each.end : each.end + _BESIDE])
    trail = text[each.end : min(sentence.after(place), each.end + _NEAR)]
    return (
        (bound_of(behind[0]) if behind else None)
        or bound_of(text[sentence.before(place) : each.start])
        or bound_of(re.split(r"[,;]", trail)[0])
        or bound_of(_OR_LESS.sub("", text[sentence.start : each.start]))
        or (sentence.lead.bound if sentence.lead and listed else None)
    )


def _applies_to(sentence: _Sentence, place: int, stop: int, raw_type: str, listed: bool) -> str | None:
    """Find the use or building that a measure is for: ``for a duplex``, ``lot width of a corner lot``."""
    text, at, after = sentence.text, sentence.measures[place].start, max(stop, sentence.after(place))
    pause = _PAUSE.search(text, stop, after)
    said = FOR.search(text, stop, pause.start() if pause else after)
    if said is None and sentence.measures[place].unit == "space":
        said = _PER.match(text, sentence.measures[place].end, sentence.end)
    if said is None and not listed:
        said = FOR.search(text, sentence.start, at)
    if said and not _NO_USE.match(said["what"]) and not naming.find_codes(said["what"], sentence.known):
        return said["what"]
    if raw_type not in text[sentence.before(place) : at]:
        return None
    of = _OF_WHAT.match(text, text.find(raw_type, sentence.start, at) + len(raw_type), at)
    return of["what"] if of else None
