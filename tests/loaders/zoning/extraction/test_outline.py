"""The lines before a place of a text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loaders.zoning.extraction.outline import get_lines_before


@given(text=st.text(alphabet="ab \n\t", max_size=30), data=st.data(), count=st.integers(1, 4))
def test_lines_before_a_place_are_the_last_of_the_text_before_it(text: str, data: st.DataObject, count: int) -> None:
    at = data.draw(st.integers(0, len(text)))
    assert get_lines_before(text, at, count) == text[:at].rstrip().split("\n")[-count:]
