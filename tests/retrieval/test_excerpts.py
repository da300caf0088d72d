"""An excerpt stands around the words that were looked for, and cuts no word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.retrieval.excerpts import best_window, cut_excerpt, find_words, trim_to_words, window
from kg.search.parts import split_parts

TEXTS = st.text(alphabet="ab \n\u00e9\U0001f600", max_size=120)


@given(TEXTS, st.integers(0, 120), st.integers(0, 120))
def test_bounds_move_inwards_to_words(text, one, other):
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    first, last = trim_to_words(text, start, end)
    assert start <= first <= last <= end
    if text[start:end].split() and (first, last) != (start, end):
        assert text[first:last] == text[first:last].strip()
        assert first == 0 or first == start or text[first - 1].isspace()
        assert last == len(text) or last == end or text[last].isspace()


def test_one_very_long_word_is_left_as_it_is():
    assert trim_to_words("x" * 100, 20, 60) == (20, 60)


@given(st.integers(0, 50), st.integers(0, 400), st.integers(0, 400), st.integers(0, 60), st.integers(1, 120))
def test_a_window_is_as_wide_as_it_may_be_and_within_bounds(low, size, first, length, width):
    high = low + size
    first = min(max(low, first), high)
    start, end = window(low, high, first, min(high, first + length), width)
    assert low <= start <= end <= high
    assert end - start == min(width, size)


def test_the_middle_of_the_match_is_the_middle_of_the_window():
    assert window(0, 1_000, 480, 520, 100) == (450, 550)
    assert window(0, 1_000, 10, 20, 100) == (0, 100)
    assert window(0, 1_000, 990, 1_000, 100) == (900, 1_000)


def test_different_words_weigh_more_than_one_word_again_and_again():
    text = "solar solar solar solar" + " x" * 40 + " solar panels on every roof"
    place = best_window(text, "solar panels roof", 60)
    assert place is not None
    assert text[slice(*place)] == "solar panels on every roof"


def test_forms_of_a_word_match_and_nothing_is_found_where_there_is_nothing():
    assert best_window("About harbours and ferries", "harbour ferry", 100) == (6, 26)
    assert best_window("About harbours", "zebra", 100) is None
    assert best_window("", "zebra", 100) is None


@given(TEXTS, TEXTS, st.integers(1, 60))
def test_what_is_found_fits_unless_it_is_one_long_word(text, query, width):
    place = best_window(text, query, width)
    if place is not None:
        start, end = place
        assert 0 <= start < end <= len(text)
        assert end - start <= width or not any(letter.isspace() for letter in text[start:end])


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("The calen\u00addar of \ufb01nance", "calendar finance", ["calen\u00addar", "\ufb01nance"]),
        ("a loan of 1,250,000 dollars", "1250000", ["1,250,000"]),
        ("for exam-\nple only", "example", ["exam-\nple"]),
        ("la educaci\u00f3n p\u00fablica", "educacion", ["educaci\u00f3n"]),
        ("\u61c9\u5c0d\u6c17\u5019\u5909\u52d5", "\u6c17\u5019", ["\u6c17\u5019"]),
        ("of the law", "the of", []),
    ],
)
def test_words_are_marked_as_the_index_compares_them(text: str, query: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end in find_words(text, query)] == marked


@given(st.text(max_size=900), st.text(max_size=60), st.integers(2, 300))
def test_an_excerpt_is_one_short_line_of_the_text_at_its_offsets(text, query, most):
    found = cut_excerpt(text, query, most)
    assert len(found.words) <= most
    words = " ".join(text[found.start : found.end].split())
    assert found.words in (words, f"…{words}", f"{words}…", f"…{words}…")


LONG = (
    "# Wells\n\n" + "Lorem 😀 ipsum. " * 150 + "\n## Deep\n\n" + "Dolor café sit. " * 150
    + "Geothermal licences are granted by the minister. " + "Amet elit. " * 150
)  # fmt: skip


def test_an_excerpt_shows_the_words_asked_for_and_the_headings_above():
    found = cut_excerpt(LONG, "licence for geothermal use")
    assert "Geothermal licences" in found.words
    assert found.headings == ("Wells", "Deep")
    assert "Geothermal licences" in LONG[found.start : found.end]


def test_an_excerpt_is_of_the_part_that_ranked_the_text():
    part = split_parts(LONG)[1]
    found = cut_excerpt(LONG, "licence for geothermal use", span=(part.start, part.end))
    assert part.start <= found.start < found.end <= part.end
    assert found.headings == ("Wells",)
    gone = cut_excerpt(LONG, "licence for geothermal use", span=(1, 20))  # of an earlier text
    assert "Geothermal licences" in gone.words


def test_an_excerpt_of_one_long_word_cuts_no_mark_off():
    found = cut_excerpt("กิ่" * 500, "x", 100)
    assert found.words.strip("…")[0] == "ก"
    assert ("กิ่" * 500)[found.end] == "ก"
