"""Tokens stand where their offsets say, whatever text is made of."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loaders.mentions import tokens as words
from loaders.mentions.tokens import DisjointSpans, find_compounds, fold, join_compound, normalize, token_spans, tokenize

ODD = "a Bß-–—'’\u00ad\u200b\n\t.²₂ﬁé\u0301İ水ก้ア_\x00(,:;&"
TEXT = st.text(st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TEXT)
@example("renew-\nable low- carbon")
def test_each_token_stands_at_its_span(text: str) -> None:
    found = tokenize(text)
    spans = token_spans(text, found, len(found))
    assert [text[start:end] for start, end in spans] == found
    assert spans == sorted(spans)
    assert [place.span() for place in words._patterns()[0].finditer(text)] == spans


@given(st.text(st.sampled_from("ab9 .,'`()&\n\t\r\x0b\x1c/+"), max_size=40))
def test_the_short_cut_for_plain_text_gives_the_same_tokens(text: str) -> None:
    assert tokenize(text) == words._patterns()[0].findall(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("low-carbon low–carbon low\ncarbon", ["low", "carbon"] * 3),
        ("solar – energy", ["solar", "–", "energy"]),
        ("solar—energy", ["solar", "—", "energy"]),
        ("- item", ["-", "item"]),
        ("l’énergie, d'eau", ["l", "énergie", ",", "d", "eau"]),
        ("footnote² and CO₂", ["footnote", "²", "and", "CO₂"]),
        ("e\u0301tude", ["e\u0301tude"]),
        ("soft\u00adhyphen", ["soft\u00adhyphen"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("再生エネルギー", ["再", "生", "エネルギー"]),
        ("snake_case", ["snake", "_", "case"]),
    ],
)
def test_what_a_token_is(text: str, expected: list[str]) -> None:
    assert tokenize(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("of renew-\n able kinds", ["renewable"]),
        ("bio-fuel and wind-solar-hydro", ["biofuel", "windsolarhydro"]),
        ("the U.S.A. and the e.g. case", ["USA", "eg"]),
        ("re\u00ad\nnew", ["re\u00adnew"]),
        ("no compound - here. None", []),
    ],
)
def test_what_may_be_one_word_is_found(text: str, expected: list[str]) -> None:
    assert [join_compound(text[start:end]) for start, end in find_compounds(text)] == expected


@given(TEXT)
def test_compounds_begin_and_end_with_tokens(text: str) -> None:
    found = tokenize(text)
    spans = token_spans(text, found, len(found))
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    for start, end in find_compounds(text):
        assert start in starts
        assert end in ends


@pytest.mark.parametrize(
    "token", ["Énergie", "e\u0301nergie".replace("e\u0301", "é"), "ÉNERGIE", "é\u00adnergie", "E\u0301nergie"]
)
def test_case_composition_and_soft_hyphens_do_not_tell_tokens_apart(token: str) -> None:
    assert fold(token) == "énergie"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_folding_twice_is_folding_once(token: str) -> None:
    assert fold(fold(token)) == fold(token)
    assert unicodedata.is_normalized("NFKC", normalize(token))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8))))
def test_spans_are_added_if_they_overlap_none(given_spans: list[tuple[int, int]]) -> None:
    spans, kept = DisjointSpans(), list[tuple[int, int]]()
    for start, length in given_spans:
        end = start + length
        is_free = not any(start < other_end and other < end for other, other_end in kept)
        assert spans.add(start, end) == is_free
        if is_free:
            kept.append((start, end))
