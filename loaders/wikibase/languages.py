"""Language codes of Wikibase as the BCP 47 tags that it publishes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pyoxigraph import Literal

PUBLISHED: Final = {
    "simple": "en-simple", "be-x-old": "be-tarask", "als": "gsw", "bat-smg": "sgs", "fiu-vro": "vro", "roa-rup": "rup",
    "zh-classical": "lzh", "zh-min-nan": "nan", "zh-yue": "yue", "cbk-zam": "cbk-x-zam", "eml": "egl",
    "map-bms": "jv-x-bms", "mo": "ro-Cyrl-MD", "nrm": "fr-x-nrm", "roa-tara": "nap-x-tara", "de-formal": "de-x-formal",
    "es-formal": "es-x-formal", "hu-formal": "hu-x-formal", "nl-informal": "nl-x-informal", "crh-cyrl": "crh-Cyrl",
    "crh-latn": "crh-Latn", "kk-cn": "kk-Arab-CN", "sr-ec": "sr-Cyrl", "sr-el": "sr-Latn", "no": "nb", "bh": "bho",
}  # fmt: skip
"""Codes of MediaWiki that are no BCP 47 tags, or mean something else there."""

UNDETERMINED: Final = "und"


@lru_cache(4096)
def is_tag(code: str) -> bool:
    """Say whether a code is well formed as BCP 47 has it."""
    try:
        Literal("", language=code)
    except ValueError:
        return False
    return True


@lru_cache(4096)
def language_tag(code: str) -> str | None:
    """Return the tag of a Wikibase language code in lower case, None where it is not a language code at all."""
    tag = PUBLISHED.get(code.casefold(), code).lower()
    return tag if is_tag(tag) else None


def tagged(text: str, code: str) -> tuple[Literal, str | None]:
    """Return a text with its language, and what is wrong with the code where it is none: then it is ``und``."""
    tag = language_tag(code)
    if tag is None:
        return Literal(text, language=UNDETERMINED), f"{code!r} is no language tag; its texts are marked 'und'"
    return Literal(text, language=tag), None
