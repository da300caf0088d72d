"""Languages by code and name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.languages import UNKNOWN, find_primary, parse_language


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("en-GB", "en"), ("PT", "pt"), ("zh_TW", "zh"), ("cmn-Hans", "zh"), ("nb", "no"), ("nn-NO", "no"), ("iw", "he"),
     ("in", "id"), (None, UNKNOWN), ("", UNKNOWN), ("mul", UNKNOWN), ("zxx", UNKNOWN), ("mis", UNKNOWN)],
)  # fmt: skip
def test_primary_subtag_of_the_language_of_texts(tag: str | None, expected: str) -> None:
    assert find_primary(tag) == expected


@pytest.mark.parametrize(
    ("text", "tag"),
    [("English", "en"), ("chinese", "zh"), ("Castilian", "es"), ("Farsi", "fa"), ("Lao", "lo"), ("Inglés", "en"),
     ("Norwegian Bokmål", "nb"), ("русский", "ru"), ("zh-cn", "zh-CN"), ("ZH_hant_tw", "zh-Hant-TW"), ("hu", "hu"),
     ("iw", "he"), ("haw", "haw"), ("eng", "en"), (" en ", "en"), ("Klingonese of Qo", None), ("english please", None),
     ("French; English", None), ("Germany", None), ("Unknown", None), ("xx", None), ("a", None), ("", None),
     ("x" * 9, None), ("en\x00", None), ("<script>alert(1)</script>", None)],
)  # fmt: skip
def test_languages_by_code_and_name(text: str, tag: str | None) -> None:
    assert parse_language(text) == tag


@given(st.sampled_from(["en", "zh-CN", "sr-Latn", "pt-BR", "haw", "de-AT-1996", "es-419"]), st.booleans())
def test_a_canonical_tag_stays_as_it_is_in_any_case(tag: str, upper: bool) -> None:
    assert parse_language(tag.upper() if upper else tag.lower()) == tag


@given(st.text(max_size=40) | st.from_regex(r"[A-Za-z]{1,9}([-_][A-Za-z0-9]{1,9}){0,4}", fullmatch=True))
def test_any_text_is_a_tag_or_none(text: str) -> None:
    tag = parse_language(text)
    assert tag is None or parse_language(tag) == tag
