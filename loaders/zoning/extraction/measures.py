"""Parsing of numbers with units in text: in digits, in words, in both, with fractions, as ranges.

Units are local names in QUDT (FT, FT2, AC, PERCENT, IN, MI, M, M2, DEG), or our own names for units that QUDT lacks:
dwelling-per-acre, dwelling, storey, space. Anything but one number in one unit has no value and is stored as recorded.

The parsers of numbers are our own: text2num knows neither fractions, nor ``thirty-five (35)``, nor offsets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

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
