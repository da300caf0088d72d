"""Dates and amounts in questions, and their comparison with the values of claims."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

from kg.fuzzy_names import fold

Comparison = Literal["equal", "different", "unknown"]
"""`unknown`: the claim is less exact, or not comparable."""

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sep sept", "october oct", "november nov", "december dec",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ERA: Final = r"(?:\s*(?P<bc>bc|bce|b\.c\.|b\.c\.e\.)|\s*(?:ad|ce|a\.d\.))?"
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>-?\d{4,5})-(?P<month>\d{1,2})-(?P<day>\d{1,2})",
        r"(?P<year>\d{4})-(?P<month>\d{2})",
        rf"(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<name>{_MONTH})\.?,?\s+(?P<year>\d{{1,4}}){_ERA}",
        rf"(?P<name>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{3,4}}){_ERA}",
        rf"(?P<name>{_MONTH})\.?,?\s+(?P<year>\d{{3,4}}){_ERA}",
        r"(?:the\s+)?(?P<decade>\d{3}0)'?s",
        rf"(?:the\s+year\s+|year\s+)?(?P<year>\d{{3,4}}){_ERA}",
        r"(?:the\s+year\s+|year\s+)?(?P<year>\d{1,4})\s*(?P<bc>bc|bce|b\.c\.|b\.c\.e\.)",
    )
)
_AT_END: Final = re.compile(
    r"(?:,\s*)?\b(?:as\s+of|at\s+the\s+end\s+of|at\s+the\s+start\s+of|in|on|by|during|around|at|for|since)\s+(?P<date>.+?)[\s?.!]*$",
    re.IGNORECASE,
)
_AT_START: Final = re.compile(
    r"^\s*(?:as\s+of|in|on|during|at\s+the\s+end\s+of)\s+(?P<date>[^,]{3,30}?),?\s+(?=(?:what|which|who|how|where|the|was|is|were|are)\b)",
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
class Date:
    """A date as far as it is known. A decade has its first year."""

    year: int
    month: int | None = None
    day: int | None = None
    decade: bool = False

    @property
    def parts(self) -> tuple[int, ...]:
        """Year, month and day as far as known."""
        known = (self.year, self.month, self.day)
        return tuple(part for part in known if part is not None)

    def __str__(self) -> str:
        if self.decade:
            return f"{self.year}s"
        return "-".join(f"{part:04}" if number == 0 else f"{part:02}" for number, part in enumerate(self.parts))

    def bounds(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Get the first and the last day that it can be, as numbers that sort."""
        last = self.year + 9 if self.decade else self.year
        return (self.year, self.month or 1, self.day or 1), (last, self.month or 12, self.day or 31)


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
    """Parse the whole of `text` as a date; None if it is none."""
    stripped = text.strip().rstrip("?.!,").strip()
    for pattern in _DATES:
        match = pattern.fullmatch(stripped)
        if match is None:
            continue
        found = match.groupdict()
        if found.get("decade"):
            return Date(int(found["decade"]), decade=True)
        year = int(found["year"])
        if found.get("bc"):
            year = 1 - year  # as in XSD 1.1, where 1 BCE is 0000
        name, month, day = found.get("name"), found.get("month"), found.get("day")
        number = _MONTHS[name.lower().rstrip(".")] if name else int(month) if month else None
        if (number is not None and not 1 <= number <= 12) or (day and not 1 <= int(day) <= 31):
            return None
        return Date(year, number, int(day) if day else None)
    return None


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


def parse_claimed_date(text: str, precision: str | None) -> Date | None:
    """Parse the time of a claim, as `kg.tools.wikidata.claims` shows it. None if it is coarser than a decade."""
    if precision not in ("day", "month", "year", "decade"):
        return None
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.removeprefix("-").split("-")]
    year = sign * parts[0]
    if precision == "decade":
        return Date(year // 10 * 10, decade=True)
    month, day = (*parts[1:3], None, None)[:2]
    return Date(year, month, day)


def compare_dates(claimed: Date, known: Date, *, julian: bool = False) -> Comparison:
    """Compare the date that a text claims with that of a claim, which may be known less exactly."""
    low, high = claimed.bounds()
    first, last = known.bounds()
    if high < first or last < low:
        # Days of the Julian calendar are stored as Gregorian ones, up to 13 days later.
        near = julian and claimed.day is not None and abs(claimed.year - known.year) <= 1
        return "unknown" if near else "different"
    return "equal" if low <= first and last <= high else "unknown"


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
