"""Numbers with units in all forms used by codes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.zoning.extraction.measures import find_measures, find_units, parse_measure, parse_number
from tests.examples import dear


@pytest.mark.parametrize(
    ("text", "raw", "value", "unit"),
    [
        ("lots of 6,000 square feet.", "6,000 square feet", "6000", "FT2"),
        ("be thirty-five (35) feet high", "thirty-five (35) feet", "35", "FT"),
        ("be thirty-five feet high", "thirty-five feet", "35", "FT"),
        ("have 2 1/2 stories", "2 1/2 stories", "2.5", "storey"),
        ("have 2½ stories", "2½ stories", "2.5", "storey"),
        ("two and one-half (2.5) spaces", "two and one-half (2.5) spaces", "2.5", "space"),
        ("one and one-half acres", "one and one-half acres", "1.5", "AC"),
        ("a 25-foot yard", "25-foot", "25", "FT"),
        ("of 12' each", "12'", "12", "FT"),
        ("twenty feet (20’) from", "twenty feet (20’)", "20", "FT"),
        ("fifty percent (50%) of", "fifty percent (50%)", "50", "PERCENT"),
        ("18 dwelling units per acre", "18 dwelling units per acre", "18", "dwelling-per-acre"),
        ("five gross contiguous acres", "five gross contiguous acres", "5", "AC"),
        ("six hundred sixty feet", "six hundred sixty feet", "660", "FT"),
        ("80,000 sf", "80,000 sf", "80000", "FT2"),
        (".5 units/acre", ".5 units/acre", "0.5", "dwelling-per-acre"),
        ("a 15-25' yard", "15-25'", None, "FT"),
        ("two-thirds acre", "two-thirds acre", None, "AC"),
        ("41 feet six (6) inches", "41 feet six (6) inches", None, "FT"),
    ],
)
def test_each_way_to_write_a_measure(text: str, raw: str, value: str | None, unit: str) -> None:
    (found,) = find_measures(text)
    assert (found.raw, found.value, found.unit) == (raw, Decimal(value) if value else None, unit)
    assert text[found.start : found.end] == raw


@pytest.mark.parametrize(
    "text", ["for $35 feet", "§ 15.3.24 feet away", "on foot", "half the lot", "15 days", "R-1-6 acre"]
)
def test_what_is_no_measure_is_none(text: str) -> None:
    assert [each.raw for each in find_measures(text)] == []


def test_a_cell_takes_the_unit_of_its_header() -> None:
    assert find_units("Lot area (sq. ft.)") == {"FT2"}
    found = parse_measure("6,000", "FT2")
    assert found is not None
    assert (found.value, found.unit) == (Decimal(6000), "FT2")
    assert parse_measure("10% of lot depth", "FT") is None
    assert parse_measure("6,000") is None


@given(st.integers(0, 999_999))
def test_a_number_with_separators_is_the_number(value: int) -> None:
    assert parse_number(f"{value:,}") == value


@given(st.text(alphabet="0123456789.,-/ ½()fteoansqur'%", max_size=60))
@settings(max_examples=dear(200))
def test_whatever_the_text_measures_stand_in_it(text: str) -> None:
    for each in find_measures(text):
        assert text[each.start : each.end] == each.raw


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("three (3) acres (130,6 80 sq. ft.) (1.2 ha) per inn", [("3", "AC")]),
        ("an area of 14,5 00 square feet", []),
        ("an area of 1 4 feet", []),
        ("Two and one half (2½ acres)", [("2.5", "AC")]),
        ("12,000 s q. ft. (1,114 sq. m .)", [("12000", "FT2")]),
    ],
)
def test_a_broken_number_is_left_out(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(str(each.value), each.unit) for each in find_measures(text)] == expected
