"""Languages by code and by name: tags (BCP 47), and names in English. The tables of langcodes load at first use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

UNKNOWN: Final = "und"
"""The primary subtag of a text whose language is not known."""
WORDLESS: Final = "zxx"
"""That of a text without a letter or digit: no linguistic content."""
_NO_LANGUAGE: Final = frozenset(("", "mis", "mul", UNKNOWN, WORDLESS))
"""Tags that name no single language."""
_SAME: Final = {"cmn": "zh", "iw": "he", "in": "id", "nb": "no", "nn": "no"}
"""Languages whose texts are searched as those of another one, and old codes."""
SHORT: Final = 200
"""Characters below which a text is not in another language than its document."""
_LITTLE: Final = 0.1
"""Share of the text of a document that is little."""
_NAMES: Final = "und/name_to_language"
"""The table of names in all languages."""


def find_primary(tag: str | None) -> str:
    """Return the primary subtag (BCP 47) of the language as which texts with a tag are searched and compared.

    It is in lower case, ``no`` for both forms of Norwegian, and `UNKNOWN` if the tag names no single language.
    """
    primary = (tag or "").replace("_", "-").partition("-")[0].casefold()
    return UNKNOWN if primary in _NO_LANGUAGE else _SAME.get(primary, primary)


@lru_cache(maxsize=4096)
def parse_language(text: str) -> str | None:
    """Return the BCP 47 tag of a language, given by its code (``deu``, ``pt_BR``) or its name in any language.

    None for other text.
    """
    import langcodes
    from language_data import names

    try:
        tag = langcodes.Language.get(text.strip())
        if tag.language is not None and tag.is_valid():
            return tag.to_tag()
    except ValueError:
        pass
    name = names.normalize_name(text)
    if len(name) < 2 or not text.isprintable():  # some languages have names of one letter
        return None
    code = names.name_to_code("language", name)
    # It also finds a name that the text only begins with: "Germany" would be German.
    return langcodes.standardize_tag(code) if code is not None and name in names.TRIES[_NAMES] else None


@lru_cache(maxsize=4096)
def name_language(tag: str) -> str:
    """Name a language in English by its tag (BCP 47); other tags name themselves."""
    import langcodes

    try:
        return langcodes.Language.get(tag).display_name()
    except ValueError:
        return tag


def find_strays(
    texts: Iterable[tuple[str, str, str | None, int]], stated: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Find the short texts in a language that their document is not in, with the language of most of the document.

    Each text has an id, the id of its document, its language, and its length in characters. A document is not in a
    language that little of its text has, nor in one that less of it has than the language that is `stated` for it.
    """
    lengths: defaultdict[str, Counter[str]] = defaultdict(Counter)
    short: list[tuple[str, str, str]] = []
    for text, document, language, length in texts:
        if language is not None:
            lengths[document][language] += length
            if length < SHORT:
                short.append((text, document, language))
    strays: dict[str, str] = {}
    for text, document, language in short:
        whole = lengths[document]
        if whole[language] < max(_LITTLE * whole.total(), whole[stated.get(document, language)]):
            strays[text] = max(sorted(whole), key=whole.__getitem__)
    return strays
