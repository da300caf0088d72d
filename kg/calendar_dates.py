"""Dates of the Julian and the Gregorian calendar as far as they are known, and times of Wikibase as such dates.

Years are astronomical, as in XSD 1.1 and ISO 8601: 1 BCE is 0 and 44 BCE is -43. Both calendars are proleptic. Days are
compared by their Julian day number, which is the same in both. Conversion: E. G. Richards, Calendars, in Explanatory
Supplement to the Astronomical Almanac, 3rd edition, 15.11.3.
"""

from __future__ import annotations

import calendar as english
import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from kg.text import ordinal

Calendar = Literal["julian", "gregorian"]
JULIAN_MODEL: Final = "Q1985786"
GREGORIAN_MODEL: Final = "Q1985727"
"""The items of Wikidata for the two calendars, which every Wikibase names."""

MILLENNIUM, CENTURY, DECADE, YEAR, MONTH, DAY = 6, 7, 8, 9, 10, 11
"""Precisions of Wikibase. Those below a millennium are powers of ten; those above a day are times of a day."""
PRECISIONS: Final = {
    0: "billion years", 1: "hundred million years", 2: "ten million years", 3: "million years",
    4: "hundred thousand years", 5: "ten thousand years", 6: "millennium", 7: "century", 8: "decade", 9: "year",
    10: "month", 11: "day",
}  # fmt: skip
"""The names of precisions."""

_FIRST_GREGORIAN: Final = 2_299_161
"""The day number of 15 October 1582."""
_LAST_JULIAN: Final = 2_424_516
"""The day number of 1 January 1926: since then no country dates by the Julian calendar (Turkey was the last)."""
_TIME: Final = re.compile(r"(?P<year>[+-]?[0-9]+)-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})(?:T.*)?", re.DOTALL)


def to_day_number(year: int, month: int, day: int, calendar: Calendar) -> int:
    """Return the Julian day number of a date."""
    shift = (14 - month) // 12
    years, months = year + 4800 - shift, month + 12 * shift - 3
    number = day + (153 * months + 2) // 5 + 365 * years + years // 4
    return number - 32083 if calendar == "julian" else number - years // 100 + years // 400 - 32045


def from_day_number(number: int, calendar: Calendar) -> tuple[int, int, int]:
    """Return the year, month and day of a Julian day number."""
    centuries = 0
    rest = number + 32082
    if calendar == "gregorian":
        rest = number + 32044
        centuries = (4 * rest + 3) // 146097
        rest -= 146097 * centuries // 4
    years = (4 * rest + 3) // 1461
    rest -= 1461 * years // 4
    months = (5 * rest + 2) // 153
    year = 100 * centuries + years - 4800 + months // 10
    return year, months + 3 - 12 * (months // 10), rest - (153 * months + 2) // 5 + 1


def count_days(year: int, month: int, calendar: Calendar) -> int:
    """Return the number of days of a month."""
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return to_day_number(*following, 1, calendar) - to_day_number(year, month, 1, calendar)


def default_calendar(day_number: int) -> Calendar:
    """Return the calendar in which histories write a day without naming one: the Julian one before 15 October 1582."""
    return "julian" if day_number < _FIRST_GREGORIAN else "gregorian"


@dataclass(frozen=True, slots=True)
class Date:
    """A date as far as it is known: a day, month or year, or the years from `year` to `last`."""

    year: int
    month: int | None = None
    day: int | None = None
    last: int | None = None
    """The last year of a decade, a century or another span."""
    calendar: Calendar | None = None
    """None if it is not named."""
    span: str | None = None
    """The name of a span of years: 1860s, 18th century."""
    loose: int | None = None
    """The last year that a span has if it is counted otherwise: 1899 for a century that is written 1800."""
    side: Literal["before", "after"] | None = None
    """Whether it is all the time before or after."""

    def bounds(self, calendar: Calendar | None = None) -> tuple[float, float]:
        """Return the numbers of its first and last day, in its own calendar, else in `calendar` or the usual one.

        An open end is infinite.
        """
        used = self.calendar or calendar or self.usual
        last = self.year if self.last is None else self.last
        end = self.month or 12
        first = to_day_number(self.year, self.month or 1, self.day or 1, used)
        final = to_day_number(last, end, self.day or count_days(last, end, used), used)
        if self.side is not None:
            return (float("-inf"), first - 1) if self.side == "before" else (final + 1, float("inf"))
        return first, final

    def widen(self) -> Date:
        """Return the date with all the years that its span can mean."""
        if self.loose is None or self.last is None:
            return self
        return replace(self, year=min(self.year, self.loose), last=max(self.last, self.loose))

    @property
    def usual(self) -> Calendar:
        """The calendar in which a text means it that names none."""
        return default_calendar(to_day_number(self.year, self.month or 1, self.day or 1, "gregorian"))

    @property
    def iso(self) -> str:
        """The date as ISO 8601 writes it as far as it is known, in its own calendar: ``1066-10-14``, ``-0043``."""
        year = f"{'-' if self.year < 0 else ''}{abs(self.year):04d}"
        return year + "".join(f"-{part:02d}" for part in (self.month, self.day) if part is not None)

    def __str__(self) -> str:
        shown = self.span
        if shown is None:
            parts = (self.day, None if self.month is None else english.month_name[self.month], _name_year(self.year))
            shown = " ".join(str(part) for part in parts if part is not None)
        if self.calendar is not None and self.month is not None and (self.calendar, self.usual) != ("gregorian",) * 2:
            shown += f" ({self.calendar.capitalize()})"
        return f"{self.side} {shown}" if self.side else shown

    def name_with_calendar(self) -> str:
        """Name the date with its calendar, also where that is the usual one: ``4 January 1643 (Gregorian)``."""
        shown = str(self)
        return shown if self.calendar is None or shown.endswith(")") else f"{shown} ({self.calendar.capitalize()})"

    def convert(self, calendar: Calendar) -> Date:
        """Convert a day to another calendar. A less exact date has no equivalent and is returned as is."""
        if self.day is None or self.month is None or self.calendar is None or self.calendar == calendar:
            return self
        number = to_day_number(self.year, self.month, self.day, self.calendar)
        return Date(*from_day_number(number, calendar), calendar=calendar)


def _name_year(year: int) -> str:
    return str(year) if year > 0 else f"{1 - year} BCE"


def read_time(lexical: str, precision: int, model: str, *, is_date_time: bool = True) -> Date | None:
    """Read a ``wikibase:timeValue`` as its source states it: in the calendar `model`, as far as it is known.

    The published RDF has days of the Julian calendar as days of the Gregorian one, and names the original calendar;
    this converts them back. `is_date_time` is whether the literal is an ``xsd:dateTime``: Wikibase writes a time that
    has no such form, as one in a year 0, as text. None for such a time, and for another calendar.
    """
    match = _TIME.fullmatch(lexical)
    if match is None or not is_date_time or model not in (JULIAN_MODEL, GREGORIAN_MODEL, ""):
        return None
    calendar: Calendar = "julian" if model == JULIAN_MODEL else "gregorian"
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    if precision >= DAY:
        stated = Date(year, month, day, calendar="gregorian")
        return stated.convert("julian") if calendar == "julian" else stated
    if precision == MONTH:
        return Date(year, month, calendar=calendar)
    if precision == YEAR:
        return Date(year, calendar=calendar)
    # Years of lower precision are not shifted: -0100 is the 1st century BCE.
    return replace(span_years(year or -1, 10 ** (YEAR - precision)), calendar=calendar)


def span_years(written: int, size: int) -> Date:
    """Return the span of `size` years that is written as one of its years, -100 for 100 BCE, as Wikibase shows it.

    A decade is that of its digits; centuries and millennia are counted from the year 1. A longer span is the time
    within `size` years. Raises ValueError for the year 0.
    """
    if written == 0:
        raise ValueError("there is no year 0 before or after Christ")
    years, era = abs(written), " BCE" if written < 0 else ""
    loose: int | None = None
    if size == 10:
        low, high, name = years // 10 * 10, years // 10 * 10 + 9, f"{years // 10 * 10}s{era}"
    elif size in (100, 1000):
        count = -(-years // size)
        low, high = (count - 1) * size + 1, count * size
        name = f"{ordinal(count)} {'century' if size == 100 else 'millennium'}{era}"
        loose = years + size - 1 if years == high else None
    else:
        # The span can lie on both sides of the year.
        year = written if written > 0 else written + 1
        return Date(year - size, last=year + size, span=f"about {years:,}{era}")
    low = max(low, 1)
    if written > 0:
        return Date(low, last=high, span=name, loose=loose)
    return Date(1 - high, last=1 - low, span=name, loose=None if loose is None else 1 - loose)


Comparison = Literal["equal", "converted", "different", "unknown"]
"""`converted`: equal in a calendar that the text does not name; `unknown`: one of them is less exact."""


def compare_dates(claimed: Date, known: Date) -> Comparison:
    """Compare the date of a text with a recorded one, which can be known less exactly.

    A text that names no calendar can mean that of the record, or the usual one of its time; where both were in use,
    and where proleptic dates are possible, it is not different if it is equal in the other one.
    """
    own = known.calendar or known.usual
    if claimed.calendar is not None:
        return _compare(claimed, known, own)
    found = _compare(claimed, known, own)
    if found != "different":
        return found
    other: Calendar = "gregorian" if own == "julian" else "julian"
    converted = _compare(claimed, known, other)
    if converted == "different":
        return found
    if claimed.usual == other:
        return ("equal" if claimed.day else "converted") if converted == "equal" else "unknown"
    return "unknown" if converted == "equal" and claimed.bounds(other)[0] < _LAST_JULIAN else found


def _compare(claimed: Date, known: Date, calendar: Calendar) -> Literal["equal", "different", "unknown"]:
    low, high = claimed.bounds(calendar)
    first, last = known.bounds()
    if low <= first and last <= high:
        return "equal"
    low, high = claimed.widen().bounds(calendar)
    first, last = known.widen().bounds()
    return "different" if high < first or last < low else "unknown"
