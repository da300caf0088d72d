from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import RecordError
from loaders.readers.cells import parse_boolean, parse_integer, parse_items, parse_web_address, present, to_slug


@pytest.mark.parametrize("text", [None, "", " ", "nan", "NaN", "None", "null", "[]", "<NA>"])
def test_marks_of_absence_are_absent(text: str | None) -> None:
    assert present(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["BRA", "ZAF"]', ["BRA", "ZAF"]),
        ("['BRA', 'ZAF']", ["BRA", "ZAF"]),
        ("['BRA' 'ZAF']", ["BRA", "ZAF"]),
        ("[BRA, ZAF]", ["BRA", "ZAF"]),
        ("BRA;ZAF", ["BRA", "ZAF"]),
        ("BRA | ZAF", ["BRA", "ZAF"]),
        ("Norwegian Bokmål", ["Norwegian Bokmål"]),
        ('["BRA", null]', ["BRA"]),
        ("[]", []),
        (None, []),
    ],
)
def test_lists_are_read_in_every_notation(text: str | None, expected: list[str]) -> None:
    assert parse_items(text) == expected


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1)))
def test_a_json_list_gives_its_items_stripped_and_without_marks_of_absence(listed: list[str]) -> None:
    assert parse_items(json.dumps(listed)) == [item.strip() for item in listed if present(item)]


@pytest.mark.parametrize(("text", "number"), [("3", 3), (" 3.0 ", 3), ("-1", -1), ("+7", 7)])
def test_whole_numbers_may_be_written_as_floats(text: str, number: int) -> None:
    assert parse_integer(text) == number


@pytest.mark.parametrize("text", ["3.5", "three", "", "1e3", "0x1"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(RecordError, match="not a whole number"):
        parse_integer(text)


@pytest.mark.parametrize("text", ["1" * 19, "-" + "9" * 5000, "9" * 5000 + ".0"])
def test_a_number_that_no_engine_can_compute_with_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(RecordError, match="too large") as caught:
        parse_integer(text)
    assert len(str(caught.value)) < 200


def test_truth_is_yes_no_or_refused() -> None:
    assert [parse_boolean(text) for text in ("True", "1", "false", None, "nan")] == [True, True, False, False, False]
    with pytest.raises(RecordError, match="'perhaps' is not true or false"):
        parse_boolean("perhaps")


def test_addresses_become_iris() -> None:
    site = "https://laws.example"
    assert parse_web_address("https://e.org/a b|c", site) == "https://e.org/a%20b%7Cc"
    assert parse_web_address('<a href="/nz/x">X</a>', site) == "https://laws.example/nz/x"
    assert parse_web_address("ftp://e.org/", site) is None
    assert parse_web_address("see annex", site) is None


def test_a_slug_from_a_title_is_never_empty() -> None:
    assert to_slug("Climate Change Act (2008)") == "climate-change-act-2008"
    assert to_slug("!!!") == "untitled"
