"""What is taken from a law reads as a sentence where it stands alone, and is its words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kg.zoning_summaries.sentence_selection import (
    LEFT_OUT,
    LONGEST,
    find_key_sentences,
    shorten,
    split_sentences,
)
from tests.examples import dear


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(a) The dog barks. The cat sits. All is well.", ["(a) The dog barks.", "The cat sits.", "All is well."]),
        ("1. (b) It barks. It bites.", ["1. (b) It barks.", "It bites."]),
        ("Under Code Ann. § 58-56-1 et seq. It is so.", ["Under Code Ann. § 58-56-1 et seq.", "It is so."]),
        ("It is [§ 2-1 et seq.] (the “Act”). That holds.", ["It is [§ 2-1 et seq.] (the “Act”).", "That holds."]),
        ("It costs 5.5 dollars. Ten days after, it is free.", ["It costs 5.5 dollars.", "Ten days after, it is free."]),
        ("One line\nand another", ["One line", "and another"]),
        ("", []),
        (" \n \n", []),
    ],
)
def test_a_text_falls_into_its_sentences(text: str, found: list[str]) -> None:
    assert list(split_sentences(text)) == found


@given(st.text(alphabet="aA .;:(§1)\n“é\u2028'", max_size=200))
@hypothesis_settings(max_examples=dear(300))
def test_no_character_but_blanks_is_lost_or_made_up(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
    assert all(each == each.strip() and each for each in split_sentences(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # Headings that run into the text, items and leads alone, and fragments give way to sentences.
        ("Owner Inspections. The owner shall inspect it.", ["The owner shall inspect it."]),
        ("General requirements.\nA dock shall be of wood.", ["A dock shall be of wood."]),
        ("A dock is allowed.\nThe following are not:\nPiers.\nRafts.", ["A dock is allowed."]),
        ("A dock is allowed.\nof wood or of stone in the river.", ["A dock is allowed."]),
        ("Wood | 5 ft. | no\nA dock is allowed.", ["A dock is allowed."]),
        # A list is one sentence with what leads to it.
        (
            "(a) A dock shall have:\n(1) A rail;\n(2) a light; and\n(3) a ring.\n(b) It is free to all.",
            ["A dock shall have: A rail; a light; and a ring.", "It is free to all."],
        ),
        # What may begin a sentence does.
        ("To the extent that it is wet, it is a dock.", ["To the extent that it is wet, it is a dock."]),
        ("Is it a dock?", ["Is it a dock?"]),
        # Where there is nothing else, what there is stands.
        ("Repealed.", ["Repealed."]),
        ("wood | 5\nstone | 6", []),
        ("wood and stone;\n(b) clay;", ["wood and stone; clay;"]),
        ("It is so.\nThese are not allowed:\nPiers of wood or of stone.", ["It is so."]),
        ("12 | 5", []),
    ],
)
def test_what_can_stand_alone_is_taken_and_the_rest_only_in_its_absence(text: str, found: list[str]) -> None:
    assert find_key_sentences(text) == found


def test_a_whole_sentence_is_cut_only_where_there_is_no_shorter_one() -> None:
    long = f"A dock shall be {'very ' * 200}long."
    assert find_key_sentences(f"{long}\nA pier is short.") == ["A pier is short."]
    [cut] = find_key_sentences(long)
    assert cut.endswith(LEFT_OUT)
    assert len(cut) <= LONGEST + len(LEFT_OUT)
    assert find_key_sentences(f"{cut}\nA pier is short.") == ["A pier is short."]
    assert shorten("short") == "short"


def test_a_list_without_an_end_is_no_endless_work() -> None:
    lines = "The following are docks:\n" * 20_000
    began = time.monotonic()
    assert find_key_sentences(lines) == ["The following are docks:"]
    find_key_sentences("A dock is one of these:\n" + "wood;\n" * 50_000)
    assert time.monotonic() - began < 20
