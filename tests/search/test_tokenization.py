"""Words as they are compared: numbers in any grouping, words in pieces, and characters that are not shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.search.tokenization import find_words, split_query, split_text

MILLION = (
    "1250000", "1,250,000", "1.250.000", "1 250 000", "1\u202f250\u202f000", "1'250'000", "12,50,000",
    "\u0661\u066c\u0662\u0665\u0660\u066c\u0660\u0660\u0660", "\uff11\uff12\uff15\uff10\uff10\uff10\uff10",
)  # fmt: skip


@pytest.mark.parametrize("written", MILLION)
def test_number_is_found_in_any_grouping(written: str) -> None:
    words, wholes = split_text(f"a loan of {written} in all")
    assert split_query(written) == ["1250000"]
    assert "1250000" in {*words, *wholes}


@pytest.mark.parametrize(
    ("text", "words", "wholes"),
    [
        ("3.5 or 1.25", ["3", "5", "or", "1", "25"], []),
        ("192.168.100.1", ["192", "168", "100", "1"], []),
        ("in 2019 250 people", ["in", "2019", "250", "people"], []),
        ("calen\u00addar, \ufb01nance\ufeff, co\u200bop", ["calendar", "finance", "coop"], []),
        ("the calen-\n  dar", ["the", "calen", "dar"], ["calendar"]),
        ("low-income", ["low", "income"], ["lowincome"]),
        ("state-of-the-art", ["state", "of", "the", "art"], []),
        ("10\u00b2 m\u00b2", ["10", "2", "m2"], []),
        ("\u6c17\u5019\u5909 law", ["\u6c17\u5019", "\u5019\u5909", "law"], []),
        ("\uc815\ubd80\ub294", ["\uc815\ubd80", "\ubd80\ub294"], []),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", ["\u0939\u093f\u0928\u094d\u0926\u0940"], []),
    ],
)
def test_text_has_its_words_and_the_wholes_of_those_in_pieces(text: str, words: list[str], wholes: list[str]) -> None:
    assert split_text(text) == (words, wholes)


@pytest.mark.parametrize("query", ["low-income", "1.250", "12 500", "3.5"])
def test_query_has_the_pieces_where_they_may_be_words_of_their_own(query: str) -> None:
    assert split_query(query) == split_text(query)[0]


@given(st.text(st.sampled_from("ab1,. -\n\u00ad\u00df\ufb01\u0301\u0915\u094d\u6c17\uc815\u0661\u00b2")))
def test_words_found_in_a_text_are_those_that_it_is_split_into(text: str) -> None:
    words, _ = split_text(text)
    found = list(find_words(text))
    assert {word for _, _, word in found} >= set(words)
    assert all(0 <= start < end <= len(text) for start, end, _ in found)
