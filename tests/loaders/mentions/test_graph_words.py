"""A filter has all words of its text, and few others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loaders.mentions.graph.concept_names import find_needles
from loaders.mentions.graph_words import filter_of, may_have
from loaders.mentions.label_variants import Label
from loaders.mentions.matcher import Matcher

NAMES = ("solar panels", "bio-fuel", "R&D", "CO2", "policies", "énergie", "水力", "emissions trading", "U.S.A.")
TEXTS = st.lists(st.sampled_from((*NAMES, "policy", "emission", "solar", "panel", " ", "-\n", "&", ".")), max_size=8)


@given(TEXTS.map("".join), st.sampled_from(NAMES))
def test_where_a_name_is_found_the_filter_has_its_words(text: str, name: str) -> None:
    if Matcher([Label("c", name, "en", "label")]).find(text, ["en"]):
        assert may_have(filter_of([text]), [[word] for word in find_needles([(name, "en")], ["en"])])


def test_most_words_that_a_text_lacks_are_not_in_its_filter() -> None:
    held = filter_of([" ".join(f"word{number}" for number in range(5_000))])
    assert may_have(held, [["word7"]])
    assert may_have(held, [["none", "word7"], ["word7", "word8"]])
    assert sum(not may_have(held, [[f"other{number}"]]) for number in range(100)) >= 97
    assert not may_have(filter_of([""]), [["word7"]])
