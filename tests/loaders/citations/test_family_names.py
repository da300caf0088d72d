"""Policy families cited by their titles."""

from __future__ import annotations

import pytest

from loaders.citations.family_names import FamilyNames, is_distinctive

RIVERS = "Mossgrove Rivers Accord"
FAMILIES = FamilyNames(
    {
        "f:rivers": (RIVERS, ("ken",)),
        "f:common": ("National Energy Policy", ("ken",)),
        "f:one": ("Quillpoint Harbour Plan", ("ken",)),
        "f:two": ("Quillpoint Harbour Plan", ("fji",)),
    }
)


def found(text: str, jurisdiction: str | None = "ken", own: tuple[str, ...] = ()) -> list[tuple[str, str, bool]]:
    return [
        (each.family, text[each.start : each.end], each.confidence >= 0.7)
        for each in FAMILIES.find(text, jurisdiction, own)
    ]


def test_exact_title_is_found_over_a_line_break() -> None:
    text = "as the Mossgrove\nRivers Accord says"
    assert found(text) == [("f:rivers", "Mossgrove\nRivers Accord", True)]


@pytest.mark.parametrize(
    "text",
    [
        "a national energy policy, and the National Energy Policy",
        "the mossgrove rivers accord",
        "the Mossgrove Rivers Accords",
        "the Upper Mossgrove Rivers Accord",
        "the Mossgrove Rivers Accord 1999",
    ],
)
def test_common_titles_and_other_titles_are_not_found(text: str) -> None:
    assert found(text) == []


def test_family_of_the_same_country_is_chosen() -> None:
    assert found("the Quillpoint Harbour Plan", "fji") == [("f:two", "Quillpoint Harbour Plan", True)]
    assert found("the Quillpoint Harbour Plan", "bra") == []


def test_family_of_another_country_is_below_promotion() -> None:
    assert found(f"the {RIVERS}", "bra") == [("f:rivers", RIVERS, False)]


def test_document_does_not_cite_its_own_family() -> None:
    assert found(f"the {RIVERS}", own=("f:rivers",)) == []


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        (RIVERS, True),
        ("National Climate Change Policy", False),
        ("Energy Act", False),
        ("Renewable Energy Act 2011", False),
        ("Mossgrove Energy Act 2011", True),
    ],
)
def test_title_needs_two_words_of_its_own(title: str, expected: bool) -> None:
    assert is_distinctive(title) is expected
