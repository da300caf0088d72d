"""Parsing of numbers with units in text: in digits, in words, in both, with fractions, as ranges.

Units are local names in QUDT (FT, FT2, AC, PERCENT, IN, MI, M, M2, DEG), or our own names for units that QUDT lacks:
dwelling-per-acre, dwelling, storey, space. Anything but one number in one unit has no value and is stored as recorded.

The parsers of numbers are our own: text2num knows neither fractions, nor ``thirty-five (35)``, nor offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

_SMALL: Final = {
    word: number
    for number, word in enumerate(
        re.findall(
            r"\w+",
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen",
        )
    )
}
_TENS: Final = {
    word: 10 * tens
    for tens, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_LARGE: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_HALF, _QUARTER, _THIRD = Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)
_PARTS: Final = {
    "one-half": _HALF, "one half": _HALF, "a half": _HALF, "half": _HALF, "one-quarter": _QUARTER,
    "one quarter": _QUARTER, "one-fourth": _QUARTER, "one fourth": _QUARTER, "three-quarters": 3 * _QUARTER,
    "three quarters": 3 * _QUARTER, "three-fourths": 3 * _QUARTER, "three fourths": 3 * _QUARTER, "one-third": _THIRD,
    "one third": _THIRD, "two-thirds": 2 * _THIRD, "two thirds": 2 * _THIRD,
}  # fmt: skip
_GLYPHS: Final = {
    "½": Fraction(1, 2),
    "¼": Fraction(1, 4),
    "¾": Fraction(3, 4),
    "⅓": Fraction(1, 3),
    "⅔": Fraction(2, 3),
    "⅛": Fraction(1, 8),
}

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
    rf"(?<![\w.,/§$-])(?P<first>{NUMBER})(?:(?P<to> ?[-–—] ?| to "
    rf"| through )(?P<last>{NUMBER}))?(?: ?\)|[ -])?(?:{_UNIT})",
    re.IGNORECASE,
)
_HINTS: Final = (
    "feet", "foot", "ft", "acre", "ac.", " ac", "/ac", "%", "percent", "per cent", "inch", " m", "stor", "space",
    "stall", "unit", "dwelling", "mile", "sf", "s.f", "sq", "met", "m2", "m²", "degree", "°", "'", "’", "′", "″",
    "home", "du",
)  # fmt: skip
"""Substrings of the units. Text without any of them is skipped, since the full pattern is slow."""
_NUMBER_ONLY: Final = re.compile(rf"(?P<first>{NUMBER})(?:(?P<to> ?[-–—] ?| to )(?P<last>{NUMBER}))?", re.IGNORECASE)
_UNIT_ONLY: Final = re.compile(_UNIT, re.IGNORECASE)
_BEGINS: Final = re.compile(rf"(?<![\w.,/§$-])(?=[\d.½¼¾⅓⅔⅛]|(?:{_WORD})\b)", re.IGNORECASE)
_PER_ACRES: Final = re.compile(rf" (?:per|for each|for every) (?P<acres>{NUMBER}) acres?\b", re.IGNORECASE)
_MORE: Final = re.compile(rf",? ?(?:and )?{NUMBER} ?(?:inch(?:es)?\b|″)", re.IGNORECASE)

_RATIO: Final = re.compile(
    r"(?<![\w.,/:§-])(?<!section )(?P<number>\d{0,2}\.\d{1,3}|\d{1,2})(?P<one> ?: ?1(?:\.0)?)?"
    r"(?![\w%:/-]"
    r"|\.\d|,\d| ?%| [a-z]+s\b| percent)",
    re.IGNORECASE,
)
_SAID: Final = re.compile(
    r"^(?:(?:min(?:imum|\.)?|max(?:imum|\.)?|at least|up to|not (?:less|more) than)(?: of)? )"
    r"|,? (?:min(?:imum|\.)?|max(?:imum|\.)?)$",
    re.IGNORECASE,
)
"""Words that a cell may contain in addition to its measure."""
_AGAIN: Final = re.compile(
    rf"(?: ?\( ?(?:approximately |about )?(?:{NUMBER}|[\d,. ]{{2,16}}) ?(?:[\"″]|{_UNIT})(?: ?\.)? ?\))+", re.IGNORECASE
)
"""``twenty feet (20')``, ``one acre (0.4 hectares)`` repeat the measure, also with a space in the number."""
_THOUSANDS: Final = re.compile(r"(?<![\w.,/§$-])\d{1,3}(?:,\d{3})*,\d{1,2} $")
"""The beginning of a number that is broken before its last digits: ``87,1 20``."""
_BEFORE: Final = re.compile(r"(?P<words>(?:[a-z]+[ -]{1,3}){1,9})\( ?$", re.IGNORECASE)
"""Words before a bracket: ``one and one half (1½ acres)``."""
_RUN: Final = re.compile(
    rf"(?:(?P<part>{'|'.join(re.sub('[ -]', '', part) for part in _PARTS)})"
    rf"|(?P<word>{'|'.join(sorted((*_SMALL, *_TENS, *_LARGE), key=len, reverse=True))})|and|a)",
    re.IGNORECASE,
)
_SPACED: Final = {re.sub("[ -]", "", part): part for part in reversed(_PARTS)}
_UNIT_BEFORE: Final = re.compile(rf"(?:{_UNIT})[ -]?$", re.IGNORECASE)
_RUNS: Final = re.compile(rf"(?:{_RUN.pattern.replace('?P<part>', '?:').replace('?P<word>', '?:')})++", re.IGNORECASE)


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
    high: Decimal | None = None
    """Upper end of a range."""
    shared: bool = False
    """Whether its unit is that of the measure after it: ``22`` in ``22 and 35 feet``."""


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
        at = match.end()
        unit = _unit_of(match)
        more = _MORE.match(text, at, stop) if unit == "FT" else None
        at = more.end() if more else at
        first, last = _value(match["first"], unit), parse_number(match["last"]) if match["last"] else None
        value = None if more or match["last"] else first
        mended = _mend(text, start, match, value, unit)
        closed = at + 1 if mended and text[mended[0] : match.start()].endswith("(") and text[at : at + 1] == ")" else at
        again = _AGAIN.match(text, closed, stop)
        at = again.end() if again else closed
        if mended is not None:
            begin, value, unit = mended
            if unit == "dwelling" and value is not None and (acres := _PER_ACRES.match(text, at, stop)):
                at, unit, of = acres.end(), "dwelling-per-acre", parse_number(acres["acres"])
                value = value / of if of else None
            yield Measure(begin, at, text[begin:at], value, unit, last)


def _mend(
    text: str, start: int, match: re.Match[str], value: Decimal | None, unit: str
) -> tuple[int, Decimal | None, str] | None:
    """Find the start, value and unit of a measure that the words before it may begin. None for a piece of a number.

    ``87,1 20 sq. ft.`` is one number; ``one and one half (1½ acres)`` is one measure.
    """
    at = match.start()
    if text[max(start, at - 2) : at].endswith(("0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "6 ", "7 ", "8 ", "9 ", ", ")):
        broken = _THOUSANDS.search(text, max(start, at - 16), at)
        if broken is not None and match["first"].isdecimal():
            whole = re.fullmatch(r"\d{1,3}(?:,\d{3})+", broken[0].strip() + match["first"])
            return (broken.start(), parse_number(whole[0]), unit) if whole and not match["last"] else None
        cut = text[at - 2].isdecimal() or re.search(r"\d, $", text[max(start, at - 3) : at])
        three = text[at - 2] != "," or re.match(r"\d{3}(?!\d)", match["first"])
        return None if cut and three and text[at].isdecimal() else (at, value, unit)
    words = _BEFORE.search(text, max(start, at - 90), at)
    if words is None:
        return at, value, unit
    of = _UNIT_BEFORE.search(words["words"])
    told = words["words"][: of.start()] if of else words["words"]
    if not told.strip():
        return at, value, unit  # the unit of a number in digits: "15 ft (20 ft on corner lots)"
    given = _number_at_end(told)
    if given is None:
        return None if of else (at, value, unit)
    number = given[1]
    if of is None:
        return (words.start() + given[0], value, unit) if number == value else None
    return words.start() + given[0], number, _unit_of(of)


def _number_at_end(words: str) -> tuple[int, Decimal | None] | None:
    """Parse the number that some words end with, also if one is broken: ``of two hundred s eventy-five ``."""
    for first in re.finditer(r"(?:^|(?<=[ -]))[a-z]", words, re.IGNORECASE):
        letters = re.sub(r"[ -]", "", words[first.start() :])
        if _RUNS.fullmatch(letters) and not re.match(r"(?:and|a[ -])", words[first.start() :], re.IGNORECASE):
            parts = [part[0].casefold() for part in _RUN.finditer(letters)]
            return first.start(), parse_number(" ".join(_SPACED.get(part, part) for part in parts))
    return None


def find_ratios(text: str, start: int, end: int, given: Sequence[Measure]) -> Iterator[Measure]:
    """Yield the numbers without a unit in [start, end) of a text, except those inside the measures `given`."""
    for match in _RATIO.finditer(text, start, end):
        if not any(each.start <= match.start() < each.end for each in given):
            yield Measure(*match.span(), match[0], Decimal(match["number"]), "UNITLESS")


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
    if match := _MEASURE.fullmatch(_AGAIN.sub("", _SAID.sub("", words))):
        first = _value(match["first"], _unit_of(match))
        last = parse_number(match["last"]) if match["last"] else None
        return Measure(0, len(words), words, None if match["last"] else first, _unit_of(match), last)
    bare = _NUMBER_ONLY.fullmatch(_SAID.sub("", words)) if unit is not None else None
    if bare is None or unit is None:
        return None
    last = parse_number(bare["last"]) if bare["last"] else None
    return Measure(0, len(words), words, None if bare["last"] else parse_number(bare["first"]), unit, last)


def find_unit(words: str) -> str | None:
    """Find the last unit in some words: FT2 in ``Lot Area (sq. ft.)``."""
    found = [
        match for match in _UNIT_ONLY.finditer(words) if match.start() == 0 or not words[match.start() - 1].isalnum()
    ]
    return _unit_of(found[-1]) if found else None


def _value(words: str, unit: str) -> Decimal | None:
    """Parse a number in a unit. A share such as a third is rounded: ``33 1/3%`` is 33.3333."""
    value = parse_number(words)
    exact = _parse_exactly(words) if value is None and unit == "PERCENT" else None
    return value if exact is None else Decimal(round(exact * 10_000)) / 10_000


def parse_number(words: str) -> Decimal | None:
    """Parse a number: ``6,000``, ``2 1/2``, ``thirty-five (35)``, ``one and one-half``. None if it is not a finite
    decimal, and for two different ones in digits: ``35 (10.7)``."""
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
    if re.fullmatch(_DIGITS, before) and _parse_digits(before) != _parse_digits(told):
        return None
    return _parse_digits(told) if re.fullmatch(_DIGITS, told) else _parse_words(told)


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
