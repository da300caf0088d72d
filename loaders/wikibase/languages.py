"""Language codes of Wikibase as the BCP 47 tags that it publishes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pyoxigraph import Literal

from kg.text import quoted

PUBLISHED: Final = {
    "simple": "en-simple", "be-x-old": "be-tarask", "als": "gsw", "bat-smg": "sgs", "fiu-vro": "vro", "roa-rup": "rup",
    "zh-classical": "lzh", "zh-min-nan": "nan", "zh-yue": "yue", "cbk-zam": "cbk-x-zam", "eml": "egl",
    "map-bms": "jv-x-bms", "mo": "ro-Cyrl-MD", "nrm": "fr-x-nrm", "roa-tara": "nap-x-tara", "de-formal": "de-x-formal",
    "es-formal": "es-x-formal", "hu-formal": "hu-x-formal", "nl-informal": "nl-x-informal", "crh-cyrl": "crh-Cyrl",
    "crh-latn": "crh-Latn", "kk-cn": "kk-Arab-CN", "sr-ec": "sr-Cyrl", "sr-el": "sr-Latn", "no": "nb", "bh": "bho",
}  # fmt: skip
"""Codes of MediaWiki that are not BCP 47 tags, or have another meaning there."""

UNDETERMINED: Final = "und"


def is_tag(code: str) -> bool:
    """Return whether a code is a well-formed BCP 47 tag."""
    try:
        Literal("", language=code)
    except ValueError:
        return False
    return True


@lru_cache(4096)
def to_language_tag(code: str) -> str | None:
    """Return the tag of a Wikibase language code in lower case, None where it is not a language code at all."""
    tag = PUBLISHED.get(code.casefold(), code).lower()
    return tag if is_tag(tag) else None


def to_literal(text: str, code: str) -> tuple[Literal, str | None]:
    """Return a text with its language tag, and a warning if the code is invalid: the tag is then ``und``."""
    tag = to_language_tag(code)
    if tag is None:
        return Literal(text, language=UNDETERMINED), f"{quoted(code)} is not a language tag. Its texts are marked 'und'"
    return Literal(text, language=tag), None
