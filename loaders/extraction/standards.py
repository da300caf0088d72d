"""Dimensional standards in sentences: how large, high, dense or far from a line a code lets things be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from loaders.extraction import districts as naming
from loaders.extraction.dimensions import (
    Bound,
    Dimension,
    bound_of,
    dimensions,
    of_unit,
    takes,
    takes_percent,
    usual_bound,
)
from loaders.extraction.districts import District
from loaders.extraction.measures import Measure, measures, ratios
from loaders.extraction.permissions import follows, label_end
from loaders.extraction.sections import Section
from loaders.extraction.subjects import building, of_building, structure, thing, trigger, unrelated

_SENTENCE_END: Final = re.compile(r"(?<!\bsq)(?<!\bft)(?<!\bmin)(?<!\bmax)(?<!\bNo)\.(?= [A-Z(“\"])|;|\.$")
_SAYS: Final = re.compile(
    r"\b(?:shall|must|is|are|be|may|required?|requirements?|minimum|maximum|min|max|least|exceed|than|limited)\b",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"\b(?:except|unless|if|when|where|whichever|provided|so long as|measured)\b[^.;\n]+"
    r"|\b(?:from|to|within|adjacent to|abutting|between) [^.,;\n]+",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"\b(?:within|every|per|above|below|between|by|beyond|spaced|measured|than every|radius of|distance of"
    r"|(?:clusters?|groups?|rows?|series) of) (?:an? |the )?$|= ?$"
    r"|\b(?:that|which|who) (?:are|is|has|have) [^,]{0,30}$"
    r"|\b(?:provided|if|when|unless|except(?! that)|whichever|so long as)\b[^,;]*$",
    re.IGNORECASE,
)
"""What stands before a measure that is no limit itself: it says where or when the limit holds."""
_FOR: Final = re.compile(
    r"\bfor (?:all |each |any |an? |the |every )?(?P<what>(?!purposes\b)(?!up\b"
    r"|(?!dwelling|building)\w+ing\b)[a-z][^.,;:()\n]{2,60}?)(?= shall\b| may\b| in\b| at\b| and\b| provided\b"
    r"| that\b| with\b| is\b| are\b| must\b| of\b|[.,;:()]|$)",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(r"(?:[(A-Za-z0-9)]{1,4}[.)]? )?(?P<what>[A-Z][A-Za-z /&-]{2,60}?)(?:,|:| -| –) ")
_HEAD: Final = re.compile(r"(?P<head>[A-Z“\"][^.:;\n]{2,70}?)(?:\.| [-–—]) (?=\S)")
_HIGH: Final = re.compile(r"\)? (?:in (?:\w+ )?height|high|tall)\b")
_DEFINES: Final = re.compile(r"\b(?:definitions?|terms defined|defined terms|words and phrases)\b", re.IGNORECASE)
_OR: Final = re.compile(r"\)?,? ?(?:or|nor|and|/)(?: more than| less than)? ?", re.IGNORECASE)
_SAYS_AS_VERB: Final = re.compile(r"\b(?:shall|must|is|are|may)\b", re.IGNORECASE)
_INSIDE: Final = re.compile(
    r"\b(?:within|in|into|inside|behind)(?: (?:an?|the|any|each|every|all|required|minimum))* $", re.IGNORECASE
)
"""What stands before a yard that says only where something is."""
_OF_LENGTH: Final = re.compile(r"\b(?:depth|width|frontage|height|length|dimensions?)\b", re.IGNORECASE)
_NO_USE: Final = re.compile(
    r"(?:at least|every|each|up to|more|less|one|two|three|four|five|six|seven|eight|nine|ten|\d+)(?![\w-])|.* $",
    re.IGNORECASE,
)
_RATIO: Final = re.compile(r"floor[ -]area ratio|\bF\.?A\.?R\b", re.IGNORECASE)
_GOES_ON: Final = re.compile(r" ?(?:(?:or|and) )?(?:\w+ )?(?:\w+ )?\(?\d|" r" ?(?:[a-z]+[ -]){0,3}\(\d", re.IGNORECASE)
_TOGETHER: Final = re.compile(r"\b(?:total|combined|in the aggregate|both sides)\b", re.IGNORECASE)
_SUM: Final = re.compile(r"\b(?:total|totall?ing|combined|aggregate|sum)\b[^.;]{0,40}$", re.IGNORECASE)
_OR_LESS: Final = re.compile(r"\bor (?:less|fewer|smaller|more|larger|greater)\b", re.IGNORECASE)
"""Words that go with the number before them alone."""
_PAUSE: Final = re.compile(r"[,;]")
_BRIEF: Final = 16
"""Words at most of a line that is what the heading of its section says."""
_SHORT: Final = 8
"""Words at most of a heading within a text."""
_OF_WHAT: Final = re.compile(
    r" of (?:an? |any |the |all |each )?(?P<what>[a-z][a-z -]{2,40}?)(?= is\b| shall\b| are\b| must\b"
    r"| may\b| within\b)"
)
_LONGEST: Final = 1_200
_BEFORE: Final = 120
_BEFORE_IT: Final = re.compile(r" (?:on|from|at|to|for) (?:the |each |any |all )?$")
_NEAR: Final = 40
"""Code points after a measure in which the dimension that it is of may stand: ``25-foot rear setback``."""


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard; the code points [start, end) of the section's text are its value, with its unit."""

    districts: Sequence[str]
    """Codes of the districts that it is for; none where neither it nor its section is of any."""
    type: str
    """lot-area, lot-width, lot-depth, lot-frontage, front-setback, side-setback, street-side-setback, rear-setback,
    setback, building-height, building-storeys, lot-coverage, impervious-coverage, open-space, density, floor-area,
    floor-area-ratio, width, parking, project-area."""
    raw_type: str
    """The words for it, as recorded."""
    bound: Bound
    raw: str
    """The value, verbatim: ``thirty-five (35) feet``, ``10% of lot depth``."""
    value: Decimal | None
    """None for what is not one number in one unit."""
    unit: str | None
    """See `measures`; None without a value."""
    applies_to: str | None
    """The use or kind of building that it is for, verbatim, where the text says."""
    conditions: Sequence[str]
    """Verbatim: notes, and what follows with "except", "if", "when"."""
    start: int
    end: int
    confidence: float
    method: str
    """sentence, list, table."""


@dataclass(frozen=True, slots=True)
class _List:
    """The line ``Setbacks shall be as follows:``, whose words hold for those after it."""

    type: Dimension | None
    raw: str
    bound: Bound | None
    what: str | None
    label: str = ""
    colon: bool = True
    """Whether it says itself that others follow."""
    about: str = ""
    """Its words, and those of the heading that it stands under itself."""


def standards(section: Section, known: Mapping[str, District], above: Sequence[Section] = ()) -> Sequence[Standard]:
    """Return the standards that the sentences of a section set, in its order; those of tables are in `schedules`.

    `known` are the districts of the code, and `above` the sections that this one is part of, from the inside.
    """
    if _DEFINES.search(section.title):
        return []
    text = section.text
    around = tuple(naming.of_section(section, known, above))
    tables = [(table.start, table.end) for table in section.tables]
    own = {start: [code for code in codes if code in known] for start, _, codes in naming.starts(text)}
    found: list[Standard] = []
    listed: _List | None = None
    titled = _list(f"{section.title}:", 0, len(section.title) + 1, "", "")
    place, place_label = None, ""
    for line in re.finditer(r"[^\n]+", text):
        start, end = line.span()
        if any(first <= start < last for first, last in tables):
            continue
        body = label_end(text, start, end)
        label, words = text[start:body].strip(), text[body:end].rstrip()
        if place is not None and follows(label, place_label):
            place = None
        if listed is not None and follows(label, listed.label):
            listed = None
        if headed := naming.headed(words, known):
            place, place_label = tuple(headed), label
        codes = tuple(own.get(start, ()))
        if not codes and not headed:
            first, stop = naming.leading(words, known)
            codes = (
                tuple(first)
                if words[stop : stop + 1] in (":", ",", ".", " ") and len(first[0:1]) and any(map(_long, first))
                else ()
            )
        codes = codes or place or around
        heads = words.endswith(":") or (
            len(words.split()) <= _SHORT and not _SAYS_AS_VERB.search(words) and not any(measures(text, start, end))
        )
        head = None if heads else _head(text, body, end, listed.about if listed else section.title)
        brief = len(words.split()) <= _BRIEF and not _SAYS_AS_VERB.search(words)
        holds = None if heads else head or listed or (titled if brief else None)
        read: list[Standard] = []
        for sentence in _sentences(text, body, end):
            goes_on = read and text[sentence[0] - 1 : sentence[0]] == ";" and _GOES_ON.match(text, *sentence)
            kept = _goes_on(read[-1], about=words) if goes_on else holds
            read += _read(section, *sentence, kept, codes, known)
        if heads:
            listed = _list(text, start, end, label, section.title)
        elif not read:
            listed = None
        found += read
    return found


def _goes_on(last: Standard, about: str) -> _List:
    """What holds for the measure after a semicolon: ``Maximum height: two stories; 35 feet``."""
    type_ = "building-height" if last.type == "building-storeys" else last.type
    return _List(Dimension(last.start, last.end, type_), last.raw_type, last.bound, last.applies_to, about=about)


def _long(code: str) -> bool:
    return len(code) > 1


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for stop in _SENTENCE_END.finditer(text, start, end):
        if stop.end() > at:
            yield at, stop.end()
        at = stop.end()
    if at < end:
        yield at, end


def _list(text: str, start: int, end: int, label: str, title: str) -> _List | None:
    """What the last sentence of a line that heads others says of those after it."""
    begin = max((first for first, _ in _sentences(text, start, end)), default=start)
    words = text[begin:end]
    named = list(dimensions(text, begin, end)) if end - begin <= _LONGEST else []
    if not named:
        return None
    what = _FOR.search(words)
    general = next((each for each in named if each.type == "setback"), named[0])
    raw, applies = text[general.start : general.end], what["what"] if what else None
    return _List(general, raw, bound_of(words), applies, label, words.rstrip().endswith(":"), f"{title} {words}")


def _head(text: str, start: int, end: int, about: str) -> _List | None:
    """What the heading that a line begins with says of its sentences: ``Lot area. Not less than an acre.``"""
    match = _HEAD.match(text, start, end)
    if match is None or _SAYS_AS_VERB.search(match["head"]) or any(measures(text, *match.span("head"))):
        return None
    named = list(dimensions(text, *match.span("head")))
    return (
        _List(named[-1], match["head"], bound_of(match["head"]), None, "", True, f"{about} {match['head']}")
        if named
        else None
    )


def _read(
    section: Section, start: int, end: int, listed: _List | None, around: Sequence[str], known: Mapping[str, District]
) -> Iterator[Standard]:
    """The standards that one sentence, or one line of a list, sets."""
    text = section.text
    if end - start > _LONGEST:
        return
    given = list(measures(text, start, end))
    ratio = _RATIO.search(text, start, end) or (
        listed is not None and listed.type is not None and listed.type.type == "floor-area-ratio"
    )
    if ratio:
        given = sorted([*given, *ratios(text, start, end, given)], key=lambda each: each.start)
    if not given:
        return
    named = list(dimensions(text, start, end))
    said = bool(_SAYS.search(text, start, end))
    item = _ITEM.match(text, start, end)
    where = naming.placed(text, start, end, known)
    districts = around if where is None else where
    about = listed.about if listed else section.title
    if len(given) > 1 and not _words_beside(text, start, end, given):
        return  # a row of a table whose columns are lost
    if listed is not None and not listed.colon and len(given) == 1 and not _words_beside(text, start, end, given):
        return
    for place, each in enumerate(given):
        before = given[place - 1].end if place else start
        after = given[place + 1].start if place + 1 < len(given) else end
        if _ASIDE.search(text, max(before, each.start - _BEFORE), each.start) or trigger(text, start, each.start):
            continue
        found = _dimensions(text, each, named, before, after) if said or listed else ()
        if not found and said and place + 1 < len(given) and _OR.fullmatch(text, each.end, after):
            following = given[place + 2].start if place + 2 < len(given) else end
            found = [
                one
                for one in _dimensions(text, given[place + 1], named, each.end, following)
                if takes(one.type, each.unit)
            ]
        kinds = [(one.type, text[one.start : one.end]) for one in found]
        method, what = "sentence", None
        if listed is not None and listed.type is not None:
            sides = [one.type for one in (*found, *named) if one.type.endswith("-setback")]
            side = sides[0] if sides else None
            if listed.type.type == "setback" and side is not None:
                kinds, method = [(side, f"{listed.raw} {text[start : each.start].strip(' ,')}")], "list"
            elif (not found or not said) and takes(listed.type.type, each.unit):
                kinds, method = [(listed.type.type, listed.raw)], "list"
            if method == "list":
                own = item["what"] if item and not side and not any(dimensions(item["what"])) else None
                what = own or listed.what
        if _exception(text, start, each.start, named):
            continue
        if not kinds and said and each.unit == "PERCENT" and (share := _share(text, start, each.end, end)):
            kinds = [(share, each.raw)]
        if not kinds and (said or listed):
            kinds = [
                (type_, each.raw) for type_ in _OF_UNIT.get(each.unit, ()) if _implied(each, text[start:end], about)
            ]
        together = _TOGETHER.search(text, each.end, min(after, each.end + 24)) or _SUM.search(text, before, each.start)
        for type_, raw_type in kinds:
            if together and type_.endswith("-setback"):
                continue  # of both sides
            if each.unit == "PERCENT" and not takes_percent(type_) and not _OF_LENGTH.search(text, each.end, after):
                continue
            if type_ == "building-height" and what is None:
                what = structure(text[start : each.start], raw_type)
            if type_.endswith("setback") and what is None:
                what = thing(text[start : each.start], raw_type)
            if type_ == "lot-width" and (told := of_building(text[start : each.start], raw_type)) is not None:
                type_, what = "width", what or told
            if takes(type_, each.unit) and not unrelated(
                type_, raw_type, text[start : each.start], text[each.start : end], about, bool(districts)
            ):
                yield _standard(
                    text, (start, end), (before, after), each, type_, raw_type, method, what, listed, districts, known
                )


def _exception(text: str, start: int, at: int, named: Sequence[Dimension]) -> bool:
    """Whether a measure is that of an exception that names no dimension: ``except that a steeple may be 50``."""
    excepted = text.rfind("except that", start, at)
    return excepted >= 0 and not any(excepted < one.start < at for one in named)


def _share(text: str, start: int, at: int, end: int) -> str | None:
    """Of which part of a lot a sentence gives the share: ``40 percent of the lot may be covered by buildings``."""
    if not _OF_LOT.match(text, at, end):
        return None
    words = text[start:end].casefold()
    return next((type_ for stem, type_ in _SHARES.items() if stem in words), None)


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
"""What a share of a lot is of, by the first of these words that its sentence has."""


def _words_beside(text: str, start: int, end: int, given: Sequence[Measure]) -> bool:
    """Whether a line says more than its measures."""
    edges = [start, *(edge for each in given for edge in (each.start, each.end)), end]
    return any(map(str.isalpha, "".join(text[at:stop] for at, stop in zip(edges[::2], edges[1::2], strict=True))))


_OF_UNIT: Final = {
    "storey": ("building-height",),
    "dwelling-per-acre": ("density",),
    "space": ("parking",),
}
"""Dimensions that a unit implies."""


def _implied(each: Measure, sentence: str, about: str) -> bool:
    """Whether a measure without a dimension is of the one that its unit implies."""
    if each.unit == "space":
        return "parking" in each.raw.casefold() or "parking" in about.casefold()
    return each.unit == "dwelling-per-acre" or bound_of(sentence) == "max"


def _dimensions(text: str, each: Measure, named: Sequence[Dimension], before: int, after: int) -> Sequence[Dimension]:
    """What a measure is of: what stands right behind it, else the last dimension before it in the sentence."""
    behind = [
        one for one in named if each.end <= one.start <= min(after, each.end + _NEAR) and takes(one.type, each.unit)
    ]
    ahead = [
        one
        for one in named
        if one.end <= each.start
        and takes(one.type, each.unit)
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
    general = any(one.type == "setback" for one in ahead)
    if (
        general
        and sides
        and (last.type == "setback" or (last.type.endswith("-setback") and _BEFORE_IT.search(text, before, last.start)))
    ):
        # "Setbacks shall be five feet on the side and 25 feet on the front and rear": each is followed by its sides.
        return sides
    return [last]


def _standard(
    text: str,
    sentence: tuple[int, int],
    between: tuple[int, int],
    each: Measure,
    type_: str,
    raw_type: str,
    method: str,
    what: str | None,
    listed: _List | None,
    districts: Sequence[str],
    known: Mapping[str, District],
) -> Standard:
    start, end = sentence
    before, after = between
    lead = text[max(before, start) : each.start]
    trail = text[each.end : min(after, each.end + _NEAR)]
    behind = re.match(
        r"[ -](?:minimum|maximum|min|max|or (?:less|more|greater|larger|fewer))\b", text[each.end : each.end + 12]
    )
    bound = (
        (bound_of(behind[0]) if behind else None)
        or bound_of(lead)
        or bound_of(re.split(r"[,;]", trail)[0])
        or bound_of(_OR_LESS.sub("", text[start : each.start]))
    )
    bound = bound or (listed.bound if listed and method == "list" else None) or usual_bound(type_)
    stop, value, unit = each.end, each.value, each.unit
    if unit == "PERCENT" and not takes_percent(type_):
        share = re.match(
            r"(?:\)| \(\d+%\))? of [^.,;:()\n]{2,60}?(?=[.,;:()\n]|$| shall| or | and )", text[each.end : end]
        )
        stop, value = each.end + (share.end() if share else 0), None
    condition = _CONDITION.search(text, stop, end)
    if condition and condition.start() > after:
        condition = None
    pause = _PAUSE.search(text, stop, max(stop, after))
    said = _FOR.search(text, stop, pause.start() if pause else max(stop, after)) or (
        _FOR.search(text, start, each.start) if method == "sentence" else None
    )
    if said and (_NO_USE.match(said["what"]) or naming.named(said["what"], known)):
        said = None
    of = (
        _OF_WHAT.match(text, text.find(raw_type, start, each.start) + len(raw_type), each.start)
        if raw_type in lead
        else None
    )
    return Standard(
        tuple(districts),
        of_unit(type_, unit),
        raw_type,
        bound,
        text[each.start : stop],
        value,
        unit if value is not None else None,
        what
        or (said["what"] if said else of["what"] if of else None)
        or building(text, start, each.start, each.end, end),
        [condition[0].strip(" .,")] if condition else [],
        each.start,
        stop,
        0.8 if method == "sentence" else 0.75,
        method,
    )
