"""Dates and amounts in questions, and their comparison with the values of claims."""

from __future__ import annotations

import re
from calendar import month_abbr, month_name
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Final

from kg.calendar_dates import PRECISIONS, YEAR, Calendar, Comparison, Date, count_days, span_years
from kg.fuzzy_names import fold

_MONTHS: Final = {
    name.lower(): number for names in (month_name, month_abbr) for number, name in enumerate(names) if name
} | {"sept": 9}
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_PRECISIONS: Final = {name: number for number, name in PRECISIONS.items()}
_BC: Final = r"b\.?\s?c\.?(?:\s?e\.?)?"
_ERA: Final = re.compile(
    rf"^(?:a\.?\s?d\.?\s+(?P<ad>.+)|(?P<dated>.*?[\ds])\s*(?:(?P<bc>{_BC})|(?:a\.?\s?d|c\.?\s?e)\.?)"
    rf"|(?P<span>.*(?:century|millennium))\s+(?:(?P<bcs>{_BC})|(?:a\.?\s?d|c\.?\s?e)\.?))$",
    re.IGNORECASE,
)
_CALENDAR: Final = re.compile(
    r"(?<![\s,(\[])[\s,(\[]++(?:in\s+the\s+|by\s+the\s+)?(?:(?P<old>old[\s-]style|o\.?\s?s\.?|julian(?:\s+calendar)?)"
    r"|new[\s-]style|n\.?\s?s\.?|(?:proleptic\s+)?gregorian(?:\s+calendar)?)[)\]]?$",
    re.IGNORECASE,
)
_SIDE: Final = re.compile(
    r"(?:(?P<before>before|prior to|earlier than)|after|later than)\s++(?P<rest>.+)", re.IGNORECASE
)
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>-?\d{4,5})-(?P<month>\d{1,2})-(?P<day>\d{1,2})",
        r"(?P<year>-?\d{4})-(?P<month>\d{2})",
        rf"(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<name>{_MONTH})\.?,?\s+(?P<year>\d{{1,4}})",
        rf"(?P<name>{_MONTH})\.?\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{1,4}})",
        rf"(?P<name>{_MONTH})\.?,?\s+(?:of\s+)?(?P<year>\d{{1,4}})",
        r"(?:the\s+)?(?P<decade>\d{1,3}0)'?s",
        r"(?:the\s+)?(?P<count>\d{1,2})(?:st|nd|rd|th)\s+(?P<span>century|millennium)",
        r"(?:the\s+year\s+|year\s+)?(?P<year>-\d{4}|\d{1,4})",
    )
)
_AT_END: Final = re.compile(
    r"(?:,\s*+)?\b(?:as\s+of|at\s+the\s+end\s+of|at\s+the\s+start\s+of|in|on|by|during|around|at|for|since)\s++(?P<date>.{1,80}?)[\s?.!]*+$",
    re.IGNORECASE,
)
_AT_START: Final = re.compile(
    r"^\s*+(?:as\s+of|in|on|during|at\s+the\s+end\s+of)\s++(?P<date>[^,]{3,30}?),?\s++(?=(?:what|which|who|how|where|the|was|is|were|are)\b)",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(
    r"(?:(?P<about>about|around|some|approximately|roughly|nearly|almost|ca\.?|c\.)\s+)?"
    r"(?P<digits>\d{1,3}(?:[,\u00a0\u202f ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:\s*(?P<scale>thousand|million|billion|bn)\b)?"
    r"(?:\s*(?P<unit>[^\d\s].{0,30}))?",
    re.IGNORECASE,
)
_SCALES: Final = {"thousand": 3, "million": 6, "billion": 9, "bn": 9}

ROUNDED: Final = Decimal("0.01")
"""Largest share by which a rounded number differs from the exact one."""

UNITS: Final = {
    "Q712226": ("km2", "square kilometre", "square kilometres", "square kilometer", "square kilometers", "sq km"),
    "Q25343": ("m2", "square metre", "square metres", "square meter", "square meters", "sq m"),
    "Q35852": ("hectare", "hectares", "ha"),
    "Q232291": ("square mile", "square miles", "sq mi", "mi2"),
    "Q11573": ("m", "metre", "metres", "meter", "meters"),
    "Q174728": ("cm", "centimetre", "centimetres", "centimeter", "centimeters"),
    "Q828224": ("km", "kilometre", "kilometres", "kilometer", "kilometers"),
    "Q253276": ("mile", "miles", "mi"),
    "Q3710": ("foot", "feet", "ft"),
    "Q11570": ("kg", "kilogram", "kilograms"),
    "Q7727": ("minute", "minutes", "min"),
    "Q577": ("year", "years"),
}
"""Items of common units, by what texts call them."""
_BY_NAME: Final = {fold(name): unit for unit, names in UNITS.items() for name in names}


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, with the item of its unit if it has one that is known."""

    number: Decimal
    digits: int
    """Zeros at its end, which can be the result of rounding."""
    unit: str | None = None
    unknown_unit: str | None = None
    about: bool = False
    """Whether the text states that it is not exact."""


def parse_date(text: str) -> Date | None:
    """Parse the whole of `text` as a date, with its era and calendar if it names them; None if it is none.

    A number of fewer than three digits is a year only with an era or a month.
    """
    stripped = text.strip().rstrip("?!,").strip()
    if (side := _SIDE.fullmatch(stripped)) is not None:
        date = parse_date(side["rest"])
        return (date and date.side is None and replace(date, side="before" if side["before"] else "after")) or None
    named = _CALENDAR.search(stripped)
    if named is not None:
        stripped = stripped[: named.start()]
    era = _ERA.match(stripped)
    if era is not None:
        stripped = era["ad"] or era["dated"] or era["span"]
    stripped = stripped.rstrip(".,").strip()
    is_bc = era is not None and bool(era["bc"] or era["bcs"])
    for pattern in _DATES:
        match = pattern.fullmatch(stripped)
        if match is not None:
            date = _to_date(match.groupdict(), is_bc=is_bc, has_era=era is not None)
            if date is None or named is None:
                return date
            dated = replace(date, calendar="julian" if named["old"] else "gregorian")
            return dated if _is_day(dated) else None
    return None


def _to_date(found: Mapping[str, str | None], *, is_bc: bool, has_era: bool) -> Date | None:
    sign = -1 if is_bc else 1
    if span := found.get("span"):
        size = 100 if span.lower() == "century" else 1000
        count = int(found["count"] or 0)
        return span_years(sign * (count * size - size // 2), size) if count else None
    if found.get("decade"):
        first = int(found["decade"] or 0)
        if not first or (first < 100 and not has_era):
            return None
        years = span_years(sign * first, 10)
        # The 1800s are ten years or a hundred.
        return replace(years, loose=years.year - 90 if is_bc else years.year + 99) if first % 100 == 0 else years
    digits = found["year"] or ""
    year = int(digits)
    name, month, day = found.get("name"), found.get("month"), found.get("day")
    number = _MONTHS[name.lower().rstrip(".")] if name else int(month) if month else None
    if is_bc:
        if year <= 0:
            return None
        year = 1 - year  # as in XSD 1.1, where 1 BCE is 0000
    elif not has_era and not day and len(digits) < 3:
        return None
    date = Date(year, number, int(day) if day else None)
    return date if _is_day(date) and (year or is_bc or len(digits) == 4) else None


def _is_day(date: Date) -> bool:
    """Whether there is such a date in its calendar, or in any if it names none."""
    if date.month is None:
        return True
    if not 1 <= date.month <= 12:
        return False
    return date.day is None or 1 <= date.day <= count_days(date.year, date.month, date.calendar or "julian")


def split_date(question: str) -> tuple[str, Date] | None:
    """Split a date off the end or the start of a question: "population of X in 2011". None if it has none there."""
    for match in _AT_END.finditer(question):
        # The last preposition before the date, as in "born in Ulm in 1879".
        for inner in (match, *_AT_END.finditer(question, match.start() + 1)):
            if (date := parse_date(inner["date"])) is not None:
                return question[: inner.start()].rstrip(" ,"), date
    start = _AT_START.match(question)
    if start is not None and (date := parse_date(start["date"])) is not None:
        return question[start.end() :], date
    return None


def parse_amount(text: str) -> Amount | None:
    """Parse the whole of `text` as an amount: ``330,000``, ``1.5 million``, ``258.8 km²``; None if it is none."""
    match = _NUMBER.fullmatch(text.strip().rstrip("?.!").strip())
    if match is None:
        return None
    try:
        plain = Decimal(re.sub(r"[,\s]", "", match["digits"]))
    except InvalidOperation:
        return None
    number = plain * (10 ** _SCALES[match["scale"].lower()] if match["scale"] else 1)
    zeros = _count_zeros(number) if number == number.to_integral_value() else 0
    unit = (match["unit"] or "").strip()
    known = _BY_NAME.get(fold(unit.replace("²", "2"))) if unit else None
    return Amount(number, zeros, known, None if known or not unit else unit, match["about"] is not None)


def _count_zeros(number: Decimal) -> int:
    digits = str(int(number))
    return len(digits) - len(digits.rstrip("0")) if number else 0


def read_stated_date(value: str, precision: str | None, calendar: str | None) -> Date | None:
    """Read the time of a claim, as `kg.tools.wikidata.claims` shows it. None for a time that has no date."""
    level = _PRECISIONS.get(precision or "")
    parts = value.removeprefix("-").split("-")
    if level is None or len(parts) != max(1, level - YEAR + 1) or not all(part.isdecimal() for part in parts):
        return None
    year = -int(parts[0]) if value.startswith("-") else int(parts[0])
    used: Calendar = "julian" if calendar == "julian" else "gregorian"
    if level < YEAR:
        return replace(span_years(year or -1, 10 ** (YEAR - level)), calendar=used)
    month, day = (*(int(part) for part in parts[1:]), None, None)[:2]
    return Date(year, month, day, calendar=used)


def compare_amounts(
    claimed: Amount, amount: str, unit: str | None, lower: str | None = None, upper: str | None = None
) -> Comparison:
    """Compare an amount that a text claims with that of a claim. A rounded number equals what it is rounded from."""
    if claimed.unknown_unit is not None or (claimed.unit is not None and claimed.unit != unit):
        return "unknown"
    known = Decimal(amount)
    if claimed.number == known:
        return "equal"
    if lower is not None and upper is not None and Decimal(lower) <= claimed.number <= Decimal(upper):
        return "equal"
    # "334,000" for 334,002, with two digits that are not zero at least; "about 5,000" for 4,971.
    distance = abs(claimed.number - known)
    rounds = claimed.digits >= 1 and claimed.number >= 10 ** (claimed.digits + 1)
    if (rounds and distance * 2 <= Decimal(10) ** claimed.digits) or (claimed.about and distance <= abs(known) / 10):
        return "equal" if distance <= ROUNDED * abs(known) else "unknown"
    exponent = claimed.number.as_tuple().exponent
    step = Decimal(1).scaleb(min(0, exponent if isinstance(exponent, int) else 0))
    return "equal" if claimed.number == known.quantize(step) else "different"
