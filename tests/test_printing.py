"""Text of anybody does nothing to a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.cli import output
from kg.text import line, printable


@given(st.text())
def test_no_control_character_is_printed_and_all_else_is(text: str) -> None:
    shown = printable(text)
    assert not [char for char in shown if unicodedata.category(char) == "Cc" and char not in "\t\n"]
    assert not [char for char in shown if unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF"}]
    if text.isprintable():
        assert shown == text


def test_an_escape_stays_readable() -> None:
    assert printable("a\x1b[2Jb\u202ec\td\n") == "a\\u001b[2Jb\\u202ec\td\n"


@given(st.text(), st.integers(1, 9))
def test_a_line_is_one_and_says_what_it_lacks(text: str, longest: int) -> None:
    assert len(line(text).splitlines()) <= 1
    assert line(text, longest).endswith(f"({len(text):,} characters)") or len(text) <= longest
    if text.isprintable():
        assert line(text, len(text)) == text


def test_the_values_of_records_end_no_line_of_a_warning() -> None:
    assert (
        line("a district\nkg: all is well\t\x1b[2J", 30) == "a district\\nkg: all is well\\t\\u001b[2… (31 characters)"
    )


@pytest.mark.parametrize(("terminal", "shown"), [(True, "\\u001b[2J\n"), (False, "\x1b[2J\n")])
def test_only_a_terminal_is_spared(
    terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    output.put("\x1b[2J")
    assert capsys.readouterr().out == shown
