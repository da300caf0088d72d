"""Dates of two calendars: conversion, spans of years, and the comparison of what a text says with what is recorded."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.calendar_dates import (
    CENTURY,
    DAY,
    GREGORIAN_MODEL,
    JULIAN_MODEL,
    compare_dates,
    from_day_number,
    read_time,
    span_years,
    to_day_number,
)
from kg.tools.wikidata.values import parse_date, read_stated_date
from loaders.wikibase.values import to_iso_time

WD = "http://www.wikidata.org/entity/"


@given(st.integers(-5_000_000, 10_000_000), st.sampled_from(["julian", "gregorian"]))
def test_a_day_number_is_one_date_of_each_calendar(number, calendar):
    assert to_day_number(*from_day_number(number, calendar), calendar) == number


@given(st.dates())
def test_gregorian_days_are_those_of_the_standard_library(day):
    assert to_day_number(day.year, day.month, day.day, "gregorian") == day.toordinal() + 1_721_425
    following = day + timedelta(1) if day < date.max else day
    assert (
        to_day_number(following.year, following.month, following.day, "gregorian")
        - to_day_number(day.year, day.month, day.day, "gregorian")
        == (following - day).days
    )


@given(
    st.integers(-4700, 9999).filter(bool),
    st.integers(1, 12),
    st.integers(1, 28),
    st.sampled_from([9, 10, 11]),
    st.sampled_from([JULIAN_MODEL, GREGORIAN_MODEL]),
)
def test_a_time_is_read_as_its_source_wrote_it(year, month, day, precision, model):
    written = f"{'-' if year < 0 else '+'}{abs(year):04d}-{month:02d}-{day:02d}T00:00:00Z"
    lexical = to_iso_time(written, precision, WD + model)
    assert lexical is not None
    found = read_time(lexical, precision, model)
    assert found is not None
    stated = (year if year > 0 else year + 1, month, day)[: precision - 8]
    assert (found.year, found.month, found.day)[: precision - 8] == stated
    assert found.calendar == ("julian" if model == JULIAN_MODEL else "gregorian")
    shown = read_stated_date(found.iso, {9: "year", 10: "month", 11: "day"}[precision], found.calendar)
    assert shown == found


@pytest.mark.parametrize(
    ("lexical", "precision", "model", "shown"),
    [
        ("1066-10-20T00:00:00Z", 11, JULIAN_MODEL, "14 October 1066 (Julian)"),
        ("1066-10-20T00:00:00Z", 11, GREGORIAN_MODEL, "20 October 1066 (Gregorian)"),
        ("-0043-03-13T00:00:00Z", 11, JULIAN_MODEL, "15 March 44 BCE (Julian)"),
        ("1452-04-01T00:00:00Z", 10, JULIAN_MODEL, "April 1452 (Julian)"),
        ("2001-02-03T00:00:00Z", 14, GREGORIAN_MODEL, "3 February 2001"),
        ("0000-01-01T00:00:00Z", 9, GREGORIAN_MODEL, "1 BCE"),
        ("1860-01-01T00:00:00Z", 8, GREGORIAN_MODEL, "1860s"),
        ("1800-01-01T00:00:00Z", 7, GREGORIAN_MODEL, "18th century"),
        ("-0100-01-01T00:00:00Z", 7, JULIAN_MODEL, "1st century BCE"),
        ("1001-01-01T00:00:00Z", 6, GREGORIAN_MODEL, "2nd millennium"),
        ("-13798000000-01-01T00:00:00Z", 3, GREGORIAN_MODEL, "about 13,798,000,000 BCE"),
        ("1452-01-01T00:00:00Z", 9, "Q12345", None),
    ],
)
def test_a_time_is_shown_in_its_calendar_as_far_as_it_is_known(lexical, precision, model, shown):
    found = read_time(lexical, precision, model)
    assert (None if found is None else str(found)) == shown


def test_a_time_without_a_date_is_none():
    assert read_time("+0000-00-00T00:00:00Z", DAY, JULIAN_MODEL, is_date_time=False) is None
    assert span_years(1, 10**CENTURY).last is not None
    with pytest.raises(ValueError, match="year 0"):
        span_years(0, 100)


@pytest.mark.parametrize(
    ("text", "value", "precision", "calendar", "expected"),
    [
        ("25 December 1642", "1642-12-25", "day", "julian", "equal"),
        ("4 January 1643", "1642-12-25", "day", "julian", "equal"),
        ("4 January 1643 (Gregorian)", "1642-12-25", "day", "julian", "equal"),
        ("25 December 1642 (N.S.)", "1642-12-25", "day", "julian", "different"),
        ("5 January 1643", "1642-12-25", "day", "julian", "different"),
        ("1642", "1642-12-25", "day", "julian", "equal"),
        ("1643", "1642-12-25", "day", "julian", "converted"),
        ("December 1642", "1642-12-25", "day", "julian", "equal"),
        ("24 April 1452", "1452-04-15", "day", "julian", "unknown"),  # before there was a Gregorian calendar
        ("14 October 1066", "1066-10-20", "day", None, "equal"),
        ("26 May 1799", "1799-06-06", "day", None, "unknown"),
        ("26 May 1799 Old Style", "1799-06-06", "day", None, "equal"),
        ("1 June 1950", "1950-06-14", "day", None, "different"),
        ("1701", "1700", "year", "julian", "unknown"),  # ten days of it
        ("15 March 44 BC", "-0043-03-15", "day", "julian", "equal"),
        ("15 March 43 B.C.", "-0043-03-15", "day", "julian", "different"),
        ("AD 44", "-0043-03-15", "day", "julian", "different"),
        ("the 1st century BC", "-0043-03-15", "day", "julian", "equal"),
        ("18th century", "1800", "century", None, "equal"),
        ("19th century", "1800", "century", None, "unknown"),  # where it is counted otherwise
        ("17th century", "1800", "century", None, "different"),
        ("1750", "1800", "century", None, "unknown"),
        ("the 1800s", "1805", "year", None, "equal"),
        ("the 1800s", "1850", "year", None, "unknown"),
        ("the 1800s", "1900", "year", None, "different"),
        ("50s BC", "-0054", "year", "julian", "equal"),
        ("before 1500", "1452-04-15", "day", "julian", "equal"),
        ("after 1452", "1452-04-15", "day", "julian", "different"),
    ],
)
def test_a_text_is_compared_in_one_calendar(text, value, precision, calendar, expected):
    claimed, known = parse_date(text), read_stated_date(value, precision, calendar)
    assert claimed is not None
    assert known is not None
    assert compare_dates(claimed, known) == expected


@pytest.mark.parametrize(
    "text", ["31 April 1900", "29 February 1900 (Gregorian)", "30 February 1700", "0 BC", "12", "5s", "before", "0"]
)
def test_what_is_no_date_is_not_read_as_one(text):
    assert parse_date(text) is None
