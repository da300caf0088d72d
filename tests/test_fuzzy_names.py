"""Names are found although they are misspelt, the nearest first."""

from __future__ import annotations

import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.fuzzy_names import Names, fold, similarity

WORDS = ["passage", "policy document", "policy family", "page number", "block type", "Côte d'Ivoire", "BRA", "Brazil"]
NAMES = Names(list(enumerate(WORDS)))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("passage", "passage"),
        ("PASSAGE", "passage"),
        ("pasage", "passage"),
        ("polcy documnet", "policy document"),
        ("family policy", "policy family"),
        ("cote d ivoire", "Côte d'Ivoire"),
        ("blocktype", "block type"),
        ("bra", "BRA"),
        ("brasil", "Brazil"),
    ],
)
def test_the_nearest_name_comes_first(text, name):
    assert NAMES.nearest(text, 3)[0].name == name


def test_a_thing_of_several_names_is_found_once_by_its_best():
    names = Names([(0, "passage"), (0, "passages"), (1, "passport")])
    found = names.nearest("passages", 5)
    assert (found[0].number, found[0].name) == (0, "passages")
    assert len({item.number for item in found}) == len(found)


@given(st.text(max_size=40))
def test_every_text_can_be_looked_for(text):
    found = NAMES.nearest(text, 4)
    assert all(0 <= item.score <= 1 for item in found)
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)


@given(st.text(max_size=40))
def test_a_name_is_most_like_itself_and_folding_is_done_once(text):
    assert fold(fold(text)) == fold(text)
    if fold(text):
        assert similarity(fold(text), fold(text)) == 1.0
        assert Names([(0, text), (1, "entirely different")]).nearest(text, 1)[0].number == 0


@pytest.mark.measures_processor_time
def test_one_of_tens_of_thousands_of_names_is_found_without_comparing_each_in_python():
    chance = random.Random(5)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(4, 9))) for _ in range(8_000)]
    many = [(number, " ".join(chance.sample(words, 4))) for number in range(40_000)]
    names = Names(many)
    number, name = many[31_415]
    misspelt = name[:3] + name[4:]
    began = time.thread_time()
    found = [names.nearest(misspelt, 5)[0].number for _ in range(3)]
    asked = (time.thread_time() - began) / 3
    began = time.thread_time()
    for _, other in many[:2_000]:
        similarity(fold(misspelt), fold(other))
    scanned = (time.thread_time() - began) * len(many) / 2_000
    assert found == [number] * 3
    assert asked < scanned / 5
