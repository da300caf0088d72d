"""Dates that may be known only to the month or the year: ``1994``, ``1994-03``, ``1994-03-26``."""

from __future__ import annotations

import re
from calendar import monthrange
from typing import Final, NamedTuple

_DATE: Final = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
LAST: Final = "9999-12-31"
"""The last day of a period that has not ended. Days are ISO dates, which sort as text."""


class Period(NamedTuple):
    """A period by days: those that it may include, and those that it certainly includes.

    ``first`` is after ``last`` if it certainly includes none.
    """

    earliest: str
    first: str
    last: str
    latest: str

    def covers(self, day: str) -> bool:
        """Whether it certainly includes a day."""
        return self.first <= day <= self.last

    def may_cover(self, day: str) -> bool:
        """Whether it may include a day."""
        return self.earliest <= day <= self.latest


def find_bounds(text: str) -> tuple[str, str]:
    """Find the first and the last day that a date may be. Raises ValueError for another form."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not YYYY, YYYY-MM or YYYY-MM-DD")
    year, month, day = match.groups()
    if day is not None:
        return text, text
    if month is not None:
        return f"{text}-01", f"{text}-{monthrange(int(year), int(month))[1]:02}"
    return f"{year}-01-01", f"{year}-12-31"


def find_period(first: str, last: str | None) -> Period:
    """Find the period from one date to another; without `last` it has not ended. Raises ValueError."""
    earliest, sure = find_bounds(first)
    ended, latest = (LAST, LAST) if last is None else find_bounds(last)
    return Period(earliest, sure, ended, latest)
