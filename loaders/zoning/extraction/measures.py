"""Parsing of numbers with units in text, and the dimensions that a code limits, with the labels that name them.

Units are local names in QUDT (FT, FT2, AC, PERCENT, IN, MI, M, M2, DEG), or our own names for units that QUDT lacks:
dwelling-per-acre, dwelling, storey, space. Anything but one number in one unit has no value and is stored as recorded.
The parsers of numbers are our own: text2num knows neither fractions, nor ``thirty-five (35)``, nor offsets.

A label names a dimension only if it is the name of one as a whole, without its bound, its unit, and the case that it is
for. ``To other lot line`` and ``2 1/2 story building`` name none; others are ``Minimum lot area (sq. ft.)``, or
``Front`` below ``Setbacks``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal

_FIRST: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_SMALL: Final = {word: number for number, word in enumerate(re.findall(r"\w+", _FIRST))}
_TENS: Final = {
    word: 10 * tens
    for tens, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_LARGE: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_PARTS: Final = {
    f"{count}{gap}{name}{'s' if times > 1 else ''}": Fraction(times, parts)
    for name, parts in {"half": 2, "quarter": 4, "fourth": 4, "third": 3}.items()
    for count, times in {"a": 1, "one": 1, "two": 2, "three": 3}.items()
    for gap in "- "
} | {"half": Fraction(1, 2)}
_GLYPHS: Final = {glyph: Fraction(unicodedata.numeric(glyph)).limit_denominator(8) for glyph in "½¼¾⅓⅔⅛"}
_DIGITS: Final = (
    r"(?:(?:\d{1,3}(?:,\d{3}){1,3}|\d{1,9})(?:\.\d{1,4})?(?:(?:[ -](?:[1-9]/[2-9]|\d{1,2}/1[0-6])(?!\d))| ?[½¼¾⅓⅔⅛])?"
    r"|\.\d{1,4}|(?:1/[2-5]|2/3|3/4)(?![\d/])|[½¼¾⅓⅔⅛])"
)
_WORD: Final = "|".join([*_PARTS, *sorted((*_SMALL, *_TENS, *_LARGE), key=len, reverse=True)])
_WORDS: Final = rf"(?:(?>{_WORD})(?:(?:[ -]|,? and (?:a )?)(?>{_WORD})){{0,8}})\b"
NUMBER: Final = rf"(?:{_WORDS}(?: ?\( ?{_DIGITS} ?%?\))?|{_DIGITS}(?: ?\({_DIGITS}\))?)"
_UNITS: Final = (
    ("dwelling-per-acre", r"(?:(?:dwelling|residential|housing|living)[ -])?(?:units?|dwellings?|homes) ?(?:per|/"
        r"|an) ?(?:gross |net )?(?:acre|ac\b)|du ?/ ?ac(?:re)?\b"),
    ("FT2", r"(?:gross |net )?(?:square[ -](?:feet|foot)|s ?q ?\.? ?(?:feet|foot|f ?t\b\.?)|s\.f\.|sf\b|ft2\b|ft²)"),
    ("AC", r"(?:(?:gross|net|contiguous|buildable),? ){0,4}(?:acres?\b(?: s\b)?|ac\b\.?)"),
    ("MI2", r"square miles?\b"),
    ("M2", r"square met(?:er|re)s?\b|m²|m2\b|s ?q ?\.? ?m\b\.?|s ?q ?\.? ?met(?:er|re)s?\b"),
    ("FT", r"(?:(?:linear|lineal|horizontal|vertical) )?(?:feet\b|foot\b|ft\b\.?)|['′’](?![\w'’])"),
    ("IN", r"inch(?:es)?\b|″"),
    ("MI", r"miles?\b"),
    ("M", r"met(?:er|re)s?\b|(?-i:m)\b ?\.?(?= ?\)|[,;.]|$| or\b)"),
    ("HA", r"hectares?\b|ha\b\.?(?=\))"),
    ("PERCENT", r"percent\b(?: ?\(?\d{1,3}(?:\.\d+| \d/\d|[½¼¾⅓⅔⅛])?%\)?)?|per cent\b|%"),
    ("storey", r"stor(?:y|ies|eys?)\b"),
    ("space", r"(?:(?:off-street|additional|guest|covered|parking) ){0,4}(?:parking )?(?:spaces?|stalls?)\b"),
    ("dwelling", r"(?:dwelling |residential |housing )?(?:units?\b|dwellings?\b)"),
    ("DEG", r"degrees?\b|°"),
)  # fmt: skip
_UNIT: Final = "|".join(f"(?P<u{place}>{pattern})" for place, (_, pattern) in enumerate(_UNITS))
_MEASURE: Final = re.compile(
    rf"(?i)(?<![\w.,/§$-])(?P<first>{NUMBER})(?:(?P<to> ?[-–—] ?| to "
    rf"| through )(?P<last>{NUMBER}))?(?: ?\)|[ -])?(?:{_UNIT})",
)
_HINTS: Final = (
    "feet", "foot", "ft", "acre", "ac.", " ac", "/ac", "%", "percent", "per cent", "inch", " m", "stor", "space",
    "stall", "unit", "dwelling", "mile", "sf", "s.f", "sq", "met", "m2", "m²", "degree", "°", "'", "’", "′", "″",
    "home", "du",
)  # fmt: skip
"""Substrings of the units. Text without any of them is skipped, since the full pattern is slow."""
_NUMBER_ONLY: Final = re.compile(rf"(?i)(?P<first>{NUMBER})(?:(?P<to> ?[-–—] ?| to )(?P<last>{NUMBER}))?")
_UNIT_ONLY: Final = re.compile(_UNIT, re.IGNORECASE)
_BEGINS: Final = re.compile(rf"(?i)(?<![\w.,/§$-])(?=[\d.½¼¾⅓⅔⅛]|(?:{_WORD})\b)")
_MORE: Final = re.compile(rf"(?i),? ?(?:and )?{NUMBER} ?(?:inch(?:es)?\b|″)")

_SAID: Final = re.compile(
    r"(?i)^(?:(?:min(?:imum|\.)?|max(?:imum|\.)?|at least|up to|not (?:less|more) than)(?: of)? )"
    r"|,? (?:min(?:imum|\.)?|max(?:imum|\.)?)$",
)
"""Words that a cell may contain in addition to its measure."""
_BROKEN: Final = re.compile(r"\d,? $")
"""Before a number that is the end of one broken by a space: ``87,1 20 sq. ft.``"""
_AGAIN: Final = re.compile(
    rf"(?i)(?: ?\( ?(?:approximately |about )?(?:{NUMBER}|[\d,. ]{{2,16}}) ?(?:[\"″]|{_UNIT})(?: ?\.)? ?\))+"
)
"""``twenty feet (20')``, ``one acre (0.4 hectares)`` repeat the measure, also with a space in the number."""
Bound = Literal["min", "max"]
STOREY: Final = "storey"
"""The unit of heights given as a number of storeys."""
_LENGTH: Final = frozenset({"FT", "M"})
_AREA: Final = frozenset({"FT2", "AC", "M2"})
_SHARE: Final = frozenset({"PERCENT"})

_LOT: Final = r"(?:(?:zoning|building|individual) )?(?:lot|parcel|site|plot|building site)"
_OF_LOT: Final = r"of (?:the |a |each )?(?:lot|parcel)s?"
_BUILDING: Final = (
    r"(?:(?:all|any|the|principal|main|primary|and|or|a|an|of|permitted|new) )*"
    r"(?:buildings?|structures?|dwellings?|residences?)(?:(?: and|/| or) (?:buildings?|structures?))?"
)
_YARD: Final = (
    r"(?:(?: building| principal building)?(?: yards?| set ?backs?)+(?: (?:line|depth|width|distance|area"
    r"|requirements?|set ?backs?))?|(?: lot| property) lines?(?: set ?backs?)?)"
)
_BACK: Final = r"set ?backs?,? (?:from |of )?(?:the )?"
_KINDS: Final[Mapping[str, tuple[Set[str], Bound, str]]] = {
    "lot-area-per-unit": (_AREA, "min", rf"(?:{_LOT} |land )?(?:area|size) (?:per|for each) (?:dwelling )?"
        r"(?:unit|family|dwelling)(?: unit)?"),
    "lot-area": (_AREA, "min", rf"(?:net |gross )?{_LOT} (?:area|size)s?|(?:area|size) {_OF_LOT}"
        rf"|(?:area|size) per (?:lot|parcel)|{_LOT} square footage"),
    "lot-width": (_LENGTH, "min", rf"{_LOT} width|width {_OF_LOT}"),
    "lot-depth": (_LENGTH, "min", rf"{_LOT} depth|depth {_OF_LOT}"),
    "lot-frontage": (_LENGTH, "min", rf"(?:(?:{_LOT}|(?:public )?(?:street|road)) )?frontage"
        rf"(?: (?:on|along) (?:a |the )?(?:public )?(?:street|road)| {_OF_LOT})?|lot width and frontage"),
    "street-side-setback": (_LENGTH, "min", r"(?:street[ -]side|side[ -]street|corner[ -]side|exterior[ -]side"
        r"|side[ -]corner|side \(?(?:corner(?: lot)?|street|(?:abutting|adjacent to|on) (?:a )?street)\)?"
        rf"|flanking street|corner(?: lot)?)(?: side)?{_YARD}|side yards? (?:abutting|adjacent to|adjoining|along"
        r"|facing|on)(?: a| the)? (?:side )?street"),
    "front-setback": (_LENGTH, "min", rf"front{_YARD}|(?:depth of )?front yards?"
        rf"|{_BACK}front(?: (?:lot|property) line)?"),
    "side-setback": (_LENGTH, "min", rf"(?:interior |inside )?(?:each )?sides?{_YARD}"
        rf"|{_BACK}(?:interior )?side(?: (?:lot|property) line)?|width of side yards?"),
    "rear-setback": (_LENGTH, "min", rf"rear{_YARD}|depth of rear yards?|{_BACK}rear(?: (?:lot|property) line)?"),
    "setback": (_LENGTH, "min", r"(?:building |yard |lot line )?set ?backs?(?: (?:line|depth|distance|requirements?))?"
        r"|yards?(?: set ?backs?| requirements?)?"),
    "building-height": (_LENGTH | {STOREY}, "max", rf"(?:{_BUILDING} )?heights?"
        rf"(?: limits?| limitations?| regulations?| requirements?)?|height (?:of|for) {_BUILDING}"),
    "building-storeys": (frozenset({STOREY}), "max", r"(?:number of |height in )?stories"),
    "impervious-coverage": (_AREA | _SHARE | {"UNITLESS"}, "max", r"(?:lot )?impervious(?: surfaces?)?(?: lot)?"
        r"(?: (?:coverage|cover|ratio|area))?"),
    "lot-coverage": (_AREA | _SHARE, "max", rf"(?:{_LOT}|building|structure|lot building|ground|gross lot)? ?coverage"
        rf"(?: (?:by|of|for) {_BUILDING}| ratio| of (?:the )?lot)?|percentage of lot coverage"
        rf"|lot (?:area )?covered by {_BUILDING}"),
    "open-space": (_AREA | _SHARE, "min", r"(?:common |usable )?open space(?: area| ratio)?"),
    "density": (frozenset({"dwelling-per-acre", "dwelling"}), "max", r"(?:residential |dwelling |gross |net |base "
        r"|housing )*densit(?:y|ies)(?: per (?:gross |net )?acre)?|(?:dwelling )?units per (?:gross |net )?acre"),
    "floor-area-ratio": (_SHARE | {"UNITLESS"}, "max", r"floor[ -]area ratio(?: \(?f\.?a\.?r\.?\)?)?|f\.?a\.?r\.?"),
    "unit-size": (_AREA, "min", r"(?:dwelling )?unit (?:area|size|floor area)s?|dwelling (?:area|size)s?"
        r"|(?:floor|living) area per (?:dwelling )?(?:unit|family)"
        r"|(?:gross |livable |habitable )?(?:floor|living) area (?:of|for) (?:a |each )?dwelling(?: unit)?s?"),
    "floor-area": (_AREA, "min", r"(?:finished |gross |habitable |livable |net |total |ground |first )*"
        r"(?:floor|living) (?:area|space)s?|building (?:floor area|size)s?"),
    "building-separation": (_LENGTH, "min", r"(?:building|structure) separation|(?:distance|space|separation|spacing)"
        r" between (?:main |principal |adjacent )?(?:buildings|structures)"),
    "project-area": (_AREA, "min", r"(?:project|development|district|tract|zoning district) (?:area|size)"),
    "parking": (frozenset({"space"}), "min", r"(?:off-street |required )?parking(?: spaces?)?"),
}  # fmt: skip
"""The units, the bound where no word states it, and the names of each dimension."""
_NAMES: Final = {type_: re.compile(names, re.IGNORECASE) for type_, (_, _, names) in _KINDS.items()}
_BELOW: Final = (
    (re.compile(r"(?i)yards?|set ?backs?"), "{} setback"),
    (re.compile(r"(?i)\b(?:lot|parcel|site)s?\b"), "lot {}"),
)
"""Words of a group, and the full name of a dimension with the label below it."""
_LEAST: Final = re.compile(
    r"(?i)\bminimum|\bmin\b|\bat least|\bno(?:t)? less than|\bnot be (?:less|smaller|closer"
    r"|lower) than|\bor (?:more|larger|greater)\b"
    r"|\bno (?:closer|smaller|less|fewer) than|\bmore than\b(?!.{0,30}\bprohibited)"
    r"|\b(?:no|not|nor|neither)\b[^.;]{0,120}\b(?:less|smaller|narrower|fewer|lower|closer|nearer|shorter) than",
)
_MOST: Final = re.compile(
    r"(?i)\bmaximum|\bmax\b|\bexceed|\bno(?:t)? (?:be )?(?:more|greater|higher|taller|larger"
    r"|farther) than|\bat most|\bup to"
    r"|\b(?:no|not|nor|neither)\b[^.;]{0,120}\b(?:more|greater|larger|higher|taller|wider|in excess) (?:than|of)"
    r"|\bor (?:less|fewer|smaller)\b|\blimited to|\blesser of",
)
_BOUND: Final = re.compile(
    r"(?i)\b(?:min(?:imum)?s?|max(?:imum)?s?|required|requirements?|allowable|allowed|permitted|least|at least"
    r"|not less than|no less than|not more than|standards?|regulations?)\b\.?",
)
_LABEL_UNIT: Final = re.compile(
    r"(?i)[(\[]? ?\b(?:in |as )?(?:an? )?(?:sq(?:uare|\.)? ?(?:feet|foot|ft\b\.?|m(?:et(?:er|re)s)?\b\.?)|linear feet"
    r"|feet|foot|ft\b\.?|acres?"
    r"|percent(?:age)?(?: of lot(?: area)?)?|stories|storeys|met(?:er|re)s|units? ?(?:per|/) ?acre|du/ac(?:re)?"
    r"|s\.?f\b\.?)(?: ?[)\]]|(?=$|[ ,;/]))|\(%\)|%(?: of lot(?: area)?)?|\(m2?\)|\(['’′]\)",
)
_CASE: Final = re.compile(
    r"(?i)\((?P<inside>[^()]{2,80})\)|(?:[,;:] ?|[ ])(?P<case>(?:w/ ?|with |without |at |from |to |for "
    r"|on |in |by |if |when |where |abutting |adjacent |adjoining |along |facing |per |each |both |total |one "
    r"|combined |corner |interior |attached |detached |either |next to |between |all |any |principal|accessory|main"
    r"|measured |beyond ).*)$",
)
_ENDS: Final = re.compile(r"(?i)^(?:(?:of|the|an?|is|be|not) ){1,4}|(?: (?:of|the|an?|is|be|not)){1,4}$")
"""Words around the name of a dimension that are not part of it."""
_MARKS: Final = re.compile(r"^(?:\([A-Za-z0-9]{1,3}\)|[A-Za-z0-9]{1,2}[.)]) (?=\S)|[*†‡]+|[¹²³⁴⁵⁶⁷⁸⁹]+")
"""The label of an item, and marks of notes."""
_NO_CASE: Final = re.compile(r"(?i)\bratio|height|area|width|depth|yard|setback|coverage|front|rear|side|lot\b")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its unit, at the offsets [start, end) of a text."""

    start: int
    end: int
    raw: str
    """Verbatim."""
    value: Decimal | None
    """None for a range, for feet with inches, and for a number that is not a finite decimal, such as a third."""
    unit: str


def find_measures(text: str, start: int = 0, end: int | None = None) -> Iterator[Measure]:
    """Yield the numbers with units in [start, end) of `text`."""
    stop = len(text) if end is None else end
    words = text[start:stop].casefold()
    if not any(hint in words for hint in _HINTS):
        return
    at = start
    while begins := _BEGINS.search(text, at, stop):
        match = _MEASURE.match(text, begins.start(), stop)
        if match is None:
            at = _after(text, begins.start(), stop)
            continue
        unit = _unit_of(match)
        more = _MORE.match(text, match.end(), stop) if unit == "FT" else None
        at = more.end() if more else match.end()
        again = _AGAIN.match(text, at, stop)
        at = again.end() if again else at
        if not _BROKEN.search(text, max(start, match.start() - 4), match.start()):
            value = None if more or match["last"] else _value(match["first"], unit)
            yield Measure(match.start(), at, text[match.start() : at], value, unit)


def _after(text: str, at: int, stop: int) -> int:
    """Find the offset to continue from after a number without a unit."""
    match = _NUMBER_ONLY.match(text, at, stop)
    if match is None:
        return at + 1
    # "two 20-foot lots": the number before the range mark is finished; the one after it may have a unit.
    return match.end("first") if match["to"] is None else match.start("to") + len(match["to"])


def parse_measure(text: str, unit: str | None = None) -> Measure | None:
    """Parse all of `text` as one measure. A bare number gets the given `unit`. None for other text."""
    words = text.strip()
    match = _MEASURE.fullmatch(_AGAIN.sub("", _SAID.sub("", words)))
    if match is None and unit is not None:
        match = _NUMBER_ONLY.fullmatch(_SAID.sub("", words))
    elif match is not None:
        unit = _unit_of(match)
    if match is None or unit is None:
        return None
    return Measure(0, len(words), words, None if match["last"] else _value(match["first"], unit), unit)


def find_units(words: str) -> Set[str]:
    """Find the units in some words: FT2 in ``Lot Area (sq. ft.)``."""
    matches = _UNIT_ONLY.finditer(words)
    return {_unit_of(match) for match in matches if match.start() == 0 or not words[match.start() - 1].isalnum()}


def _value(words: str, unit: str) -> Decimal | None:
    """Parse a number in a unit. A share such as a third is rounded: ``33 1/3%`` is 33.3333."""
    value = parse_number(words)
    exact = _parse_exactly(words) if value is None and unit == "PERCENT" else None
    return value if exact is None else Decimal(round(exact * 10_000)) / 10_000


def parse_number(words: str) -> Decimal | None:
    """Parse a number: ``6,000``, ``2 1/2``, ``thirty-five (35)``, ``one and one-half``. None if it is not a finite
    decimal, and for two different ones: ``35 (10.7)``."""
    exact = _parse_exactly(words)
    if exact is None:
        return None
    denominator = exact.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return Decimal(exact.numerator) / Decimal(exact.denominator) if denominator == 1 else None


def _parse_exactly(words: str) -> Fraction | None:
    inside = re.search(rf"\( ?({_DIGITS}) ?%?\)", words)
    told = inside[1] if inside else words
    before = words[: inside.start()].strip() if inside else ""
    first, last = (
        _parse_digits(each) if re.fullmatch(_DIGITS, each) else _parse_words(each) for each in (before or told, told)
    )
    return last if first == last else None


def _parse_digits(words: str) -> Fraction | None:
    total = Fraction(0)
    for glyph, part in _GLYPHS.items():
        if glyph in words:
            total, words = total + part, words.replace(glyph, "")
    for each in re.split(r"[ -]", words.replace(",", "").strip()):
        numerator, slash, denominator = each.partition("/")
        if slash and int(denominator) == 0:
            return None
        total += Fraction(int(numerator), int(denominator)) if slash else Fraction(each or "0")
    return total


def _parse_words(words: str) -> Fraction | None:
    words = " ".join(words.casefold().replace(",", " ").split())
    total, group = Fraction(0), Fraction(0)
    for name, part in _PARTS.items():
        before, found, after = words.rpartition(name)
        if found and not after.strip():
            total, words = part, before
            break
    known = 0
    for word in re.split(r"[ -]+", words):
        if word in _SMALL or word in _TENS:
            group += _SMALL.get(word, _TENS.get(word, 0))
        elif word == "hundred":
            group = (group or Fraction(1)) * 100
        elif word in _LARGE:
            total, group = total + (group or Fraction(1)) * _LARGE[word], Fraction(0)
        elif word not in ("and", "a", ""):
            return None
        known += 1
    return total + group if known else None


def _unit_of(match: re.Match[str]) -> str:
    return next(name for place, (name, _) in enumerate(_UNITS) if match[f"u{place}"] is not None)


@dataclass(frozen=True, slots=True)
class DimensionLabel:
    """The dimension that a label names."""

    type: str
    bound: Bound
    unit: str | None
    """The unit that it states for its values."""
    case: str | None
    """The rest of the label, verbatim: the use that the dimension is for, or where it is measured."""


def allows_unit(type_: str, unit: str) -> bool:
    """Check whether a dimension can have a unit. A percentage is a value of coverage, but not in ``10% of depth``."""
    return unit in _KINDS[type_][0]


def type_in_unit(type_: str, unit: str | None) -> str:
    """Get the type of a dimension in a unit: a height in storeys is the number of storeys."""
    return "building-storeys" if type_ == "building-height" and unit == STOREY else type_


def bound_of(words: str) -> Bound | None:
    """Parse the words before or after a measure into its bound. The last such word decides; None if there is none."""
    least = max((match.end() for match in _LEAST.finditer(words)), default=-1)
    most = max((match.end() for match in _MOST.finditer(words)), default=-1)
    if least == most:
        return None
    return "min" if least > most else "max"


def find_type(name: str) -> str | None:
    """Find the dimension of a whole name: ``Lot area``. None for any other words."""
    return next((type_ for type_, names in _NAMES.items() if name and names.fullmatch(name)), None)


def parse_label(words: str, group: str = "") -> DimensionLabel | None:
    """Parse a whole label as a dimension, with that of the `group` it is in. None for any other words."""
    name, case = _parse_name(words)
    type_ = find_type(name)
    if type_ is None and name:
        full = (form.format(name) for of, form in _BELOW if of.search(group))
        type_ = next((found for each in full if (found := find_type(each)) is not None), None)
    if type_ is None and group:
        type_, case = find_type(_parse_name(group)[0]), words.strip(" .:,;")
        if type_ in ("setback", "parking") or _NO_CASE.search(case):
            return None
    if type_ is None:
        return None
    named = [{unit for unit in find_units(each) if allows_unit(type_, unit)} for each in (words, group)]
    units = named[0] or named[1]  # of "feet/stories", a value must name its own
    if type_ == "floor-area-ratio":
        units = {"UNITLESS"}
    elif type_ == "density" and re.search(r"(?i)\bacre", f"{words} {group}"):
        units = {"dwelling-per-acre"}
    bound = bound_of(words) or bound_of(group) or _KINDS[type_][1]
    return DimensionLabel(type_, bound, next(iter(units)) if len(units) == 1 else None, case or None)


def _parse_name(words: str) -> tuple[str, str]:
    """Parse a label into the name of its dimension, without bound and unit, and the case that it is for."""
    plain, case = _MARKS.sub("", words.strip()), ""
    for rest in (_BOUND, _LABEL_UNIT, _ENDS):
        plain = " ".join(rest.sub(" ", _BOUND.sub(" ", plain)).split()).strip(" ,:;.-–—/")
        if rest is not _LABEL_UNIT and find_type(plain):
            return plain, ""
    case = " ".join(each["inside"] or each["case"] for each in _CASE.finditer(plain)).strip(" ,:;")
    return " ".join(_CASE.sub(" ", plain).split()).strip(" ,:;.-–—/"), case


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard. Its value, with its unit, is at the offsets [start, end) of the section's text."""

    districts: Sequence[str]
    """Codes of its districts."""
    type: str | None
    """One of the types of the ontology: lot-area, front-setback, building-height. None for a cell that is recorded as
    its words: only its headers say what it limits."""
    raw_type: str
    """The words for the type, as recorded. Of a cell, the words of its headers."""
    bound: Bound | None
    raw: str
    """The value, verbatim: ``thirty-five (35) feet``, ``10% of lot depth``."""
    value: Decimal | None
    """None if the value is not one number in one unit."""
    unit: str | None
    """See `measures`. None without a value."""
    applies_to: str | None
    """The use or kind of building that it is for, verbatim, if stated."""
    conditions: Sequence[str]
    """Verbatim: notes, and cases."""
    start: int
    end: int
    method: str
    """table, label, raw."""

    @property
    def confidence(self) -> float:
        """The share of standards of its form that are right, as measured on codes as they come."""
        return 0.98 if self.method == "table" else 0.97
