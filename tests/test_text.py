"""Sentences end where readers of English see it, counted in code points whatever the characters are."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kg.text import sentence_ends


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
    edges = [0, *sentence_ends(text), len(text)]
    assert [part for start, end in pairwise(edges) if (part := text[start:end].strip())] == parts


@given(st.text(alphabet="aA .!?:(§1)\n“é—\u2028🐓ß'", max_size=200))
@hypothesis_settings(max_examples=200, deadline=None)
def test_ends_are_places_of_the_text_in_order(text: str) -> None:
    ends = list(sentence_ends(text))
    assert ends == sorted(ends)
    assert all(0 < end <= len(text) for end in ends)
