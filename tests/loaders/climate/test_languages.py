from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.climate.documents import language_tag


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("English", "en"),
        ("chinese", "zh"),
        ("Castilian", "es"),
        ("Farsi", "fa"),
        ("Lao", "lo"),
        ("Norwegian Bokmål", "nb"),
        ("zh-cn", "zh-CN"),
        ("ZH_hant_tw", "zh-Hant-TW"),
        ("hu", "hu"),
        ("iw", "he"),
        ("haw", "haw"),
        ("eng", "en"),
        ("Klingonese of Qo", None),
        ("english please", None),
        ("French; English", None),
        ("xx", None),
        ("a", None),
        ("", None),
        ("x" * 9, None),
    ],
)
def test_languages_become_bcp_47_tags(text: str, tag: str | None) -> None:
    assert language_tag(text) == tag


@given(st.sampled_from(["en", "zh-CN", "sr-Latn", "pt-BR", "haw", "de-AT-1996", "es-419"]), st.booleans())
def test_a_canonical_tag_stays_as_it_is_in_any_case(tag: str, upper: bool) -> None:
    assert language_tag(tag.upper() if upper else tag.lower()) == tag
