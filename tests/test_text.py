"""Escaping of untrusted text for terminals, numbers in texts, and the ends of sentences."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kg.cli import output
from kg.text import (
    escape_controls,
    find_sentence_ends,
    list_first,
    name_or_quote,
    quoted,
    to_number,
    to_single_line,
)
from tests.examples import dear


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("A dock is wet. A kiln is hot.", ["A dock is wet.", "A kiln is hot."]),
        ("Mr. Ash came at 5 p.m. and left.", ["Mr. Ash came at 5 p.m. and left."]),
        ("A “dock” 🐓 is wet. “Kilns” are hot.", ["A “dock” 🐓 is wet.", "“Kilns” are hot."]),
        ("Élan is wet. Über is hot.", ["Élan is wet.", "Über is hot."]),
        ("See Code Ann. § 4-1. It holds.", ["See Code Ann. § 4-1.", "It holds."]),
        ("Docks. — A dock is wet.", ["Docks. — A dock is wet."]),
    ],
)
def test_sentences_end_where_they_are_seen_to(text: str, parts: list[str]) -> None:
    edges = [0, *find_sentence_ends(text), len(text)]
    assert [part for start, end in pairwise(edges) if (part := text[start:end].strip())] == parts


@given(st.text(alphabet="aA .!?:(§1)\n“é—\u2028🐓ß'", max_size=200))
@hypothesis_settings(max_examples=dear(200))
def test_ends_are_places_of_the_text_in_order(text: str) -> None:
    ends = list(find_sentence_ends(text))
    assert ends == sorted(ends)
    assert all(0 < end <= len(text) for end in ends)


@given(st.text())
def test_no_control_character_is_printed_and_all_else_is(text: str) -> None:
    shown = escape_controls(text)
    assert not [char for char in shown if unicodedata.category(char) == "Cc" and char not in "\t\n"]
    assert not [char for char in shown if unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF"}]
    if text.isprintable():
        assert shown == text


def test_an_escape_stays_readable() -> None:
    assert escape_controls("a\x1b[2Jb\u202ec\td\n") == "a\\u001b[2Jb\\u202ec\td\n"


@given(st.text(), st.integers(1, 9))
def test_a_line_is_one_and_says_what_it_lacks(text: str, longest: int) -> None:
    assert len(to_single_line(text).splitlines()) <= 1
    assert to_single_line(text, longest).endswith(f"({len(text):,} characters)") or len(text) <= longest
    if text.isprintable():
        assert to_single_line(text, len(text)) == text


def test_the_values_of_records_end_no_line_of_a_warning() -> None:
    assert (
        to_single_line("a district\nkg: all is well\t\x1b[2J", 30)
        == "a district\\nkg: all is well\\t\\u001b[2… (31 characters)"
    )


@pytest.mark.parametrize(("terminal", "shown"), [(True, "\\u001b[2J\n"), (False, "\x1b[2J\n")])
def test_only_a_terminal_is_spared(
    terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    output.put("\x1b[2J")
    assert capsys.readouterr().out == shown


@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_a_number_is_read(number: int) -> None:
    assert to_number(str(number)) == number


@pytest.mark.parametrize("text", ["", "-", "1.5", "first", " 1", "+1", "1_0", "\u0663", "--1", "9" * 5_000])
def test_any_other_text_is_no_number(text: str) -> None:
    assert to_number(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R-1", "'R-1'"),
        ("it's\na \x1b[31m`line`\u202e", '"it\'s\\na \\x1b[31m`line`\\u202e"'),
        ("x" * 80, f"'{'x' * 80}'"),
        ("x" * 81, f"'{'x' * 80}…'"),
        ("'\"" * 50, "'" + "\\'\"" * 40 + "…'"),
        ("\ud800", "'\\ud800'"),
    ],
)
def test_a_quotation_is_one_line_in_quotes_of_at_most_80_characters(text: str, expected: str) -> None:
    assert quoted(text) == expected


@pytest.mark.parametrize("name", ["R-1", "17.70.010(a)", "§5"])
def test_a_short_code_is_named_without_quotes(name: str) -> None:
    assert name_or_quote(name) == name
    assert name_or_quote(f"{name} now") == f"'{name} now'"


@pytest.mark.parametrize(("most", "listed"), [(3, ["a", "b", "c"]), (2, ["a", "b", "1 more notes"])])
def test_a_list_that_is_cut_says_how_many_are_missing(most: int, listed: list[str]) -> None:
    assert list_first(["a", "b", "c"], most, "notes") == listed
