"""Chunks: the text whole, nothing cut that fits, and sentences where they end."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loaders.readers.chunks import OVERLAP, SIZE, Span, split_chunks

WORDS = st.sampled_from(
    ["tide", "harbour", "Mr.", "Senator", "p.m.", "No.", "é", "e\u0301", "a\u00a0b", "“so”", "—", "W. A.", "x" * 60]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=25).map(lambda words: " ".join(words) + ".")
PROSE = st.lists(SENTENCES, max_size=20).map(" ".join) | st.lists(SENTENCES, max_size=20).map("\n".join)
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
TEXTS = PROSE | ANYTHING | st.lists(PROSE | ANYTHING, max_size=4).map("".join)


def laid(text: str, spans: list[Span]) -> str:
    """The text that chunks give when each is laid at its offset; a hole stays a hole."""
    found = ["\0"] * len(text)
    for start, end in spans:
        found[start:end] = text[start:end]
    return "".join(found)


@given(TEXTS, st.integers(1, 120), st.integers(0, 60))
@example("a" * 100 + "\u0301" * 100, 10, 5)
def test_chunks_laid_at_their_offsets_give_back_any_text(text: str, size: int, overlap: int) -> None:
    found = list(split_chunks(text, size=size, overlap=overlap))
    assert laid(text, found) == text
    assert all(0 < end - start <= size for start, end in found)
    for (_, end), (start, _) in pairwise(found):
        assert end - overlap <= start <= end
    assert all(a < b and c < d for (a, c), (b, d) in pairwise(found))


@given(TEXTS)
def test_a_text_that_fits_is_one_chunk(text: str) -> None:
    text = text[:SIZE]
    assert list(split_chunks(text)) == ([(0, len(text))] if text else [])


@given(PROSE, st.integers(80, 300))
def test_no_word_is_cut_and_the_space_stays_before_the_cut(text: str, size: int) -> None:
    for start, _ in list(split_chunks(text, size=size, overlap=size // 4))[1:]:
        assert text[start - 1].isspace()
        assert not text[start].isspace()


@given(ANYTHING, st.integers(2, 40))
@example("00\u0300", 2)
def test_a_mark_stays_with_the_letter_that_it_stands_on(text: str, size: int) -> None:
    for start, end in split_chunks(text, size=size, overlap=0):
        if end < len(text) and unicodedata.category(text[end])[0] == "M" and not text[end - 1].isspace():
            assert all(unicodedata.category(each)[0] == "M" for each in text[start + 1 : end])


@given(st.lists(ANYTHING.filter(bool), max_size=6))
def test_no_chunk_stands_in_two_spans(texts: list[str]) -> None:
    text, spans = "", []
    for each in texts:
        spans.append((len(text), len(text) + len(each)))
        text += each
    found = list(split_chunks(text, spans, size=50, overlap=20))
    assert laid(text, found) == text
    assert all(any(a <= start and end <= b for a, b in spans) for start, end in found)


TRAPS = [
    "Mr. Harbourmaster rose at 4.13 p.m. to speak.",
    "The hon. member for St. Elsewhere moved amendment No. 5 of Dr. Q. R. Tidewater.",
    "He said\u00a0so at 9\u00a0a.m. sharp.",
    "“Is it so?” she asked.",
    "The cafe\u0301 in the harbour closed.",
]


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("space", [" ", "\u00a0", "\n"])
def test_a_sentence_that_fits_is_never_cut(trap: str, space: str) -> None:
    filler = "A plain sentence of the record stands here."
    text = space.join([filler, trap] * 60)
    ends = {0}
    for sentence in [filler, trap] * 60:
        ends.add(max(ends) + len(sentence) + 1)
    found = list(split_chunks(text))
    assert len(found) > 3
    assert {start for start, _ in found} <= ends
    assert {end for _, end in found[:-1]} <= ends


def test_neighbours_share_whole_sentences_up_to_the_overlap() -> None:
    text = " ".join(f"Sentence number {number} says a little of the tide." for number in range(200))
    found = list(split_chunks(text))
    assert all(SIZE - 60 < end - start <= SIZE for start, end in found[:-1])
    assert all(OVERLAP - 60 < end - start <= OVERLAP for (_, end), (start, _) in pairwise(found))


def test_an_endless_sentence_is_cut_between_its_words_and_overlaps() -> None:
    text = "tide " * 5_000
    found = list(split_chunks(text))
    assert laid(text, found) == text
    assert all(start % 5 == 0 for start, _ in found)
    assert all(OVERLAP - 5 < end - start <= OVERLAP for (_, end), (start, _) in pairwise(found))


def test_lines_are_cut_before_words_where_no_sentence_ends() -> None:
    text = "\n".join(f"item {number:03} of a list without an end" for number in range(100))
    assert all(start == 0 or text[start - 1] == "\n" for start, _ in split_chunks(text))


def test_space_without_end_is_passed_once() -> None:
    class Counted(str):
        looked = 0

        def isspace(self) -> bool:
            Counted.looked += 1
            return super().isspace()

        def __getitem__(self, key: Any) -> Counted:
            return Counted(super().__getitem__(key))

    text = "\n" * 3_000 + "One word."
    spans = list(split_chunks(Counted(text)))
    assert laid(text, spans) == text
    assert Counted.looked < 2 * len(text)
