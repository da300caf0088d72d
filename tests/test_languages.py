"""Languages by code and name."""

from __future__ import annotations

import pytest

from kg.languages import UNKNOWN, find_primary


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("en-GB", "en"), ("PT", "pt"), ("zh_TW", "zh"), ("cmn-Hans", "zh"), ("nb", "no"), ("nn-NO", "no"), ("iw", "he"),
     ("in", "id"), (None, UNKNOWN), ("", UNKNOWN), ("mul", UNKNOWN), ("zxx", UNKNOWN), ("mis", UNKNOWN)],
)  # fmt: skip
def test_primary_subtag_of_the_language_of_texts(tag: str | None, expected: str) -> None:
    assert find_primary(tag) == expected
