"""Languages as BCP 47 tags, from tags (``zh_cn``, ``iw``) or English names (``Chinese``), by langcodes."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def language_tag(text: str) -> str | None:
    """Return the canonical BCP 47 tag of a language tag or an English name of a language, None if `text` is neither."""
    import langcodes  # its tables take time to load, and few files state languages
    from language_data import names

    text = text.strip()
    if len(text) < 2:  # some languages have names of one letter, which in a table is an abbreviation
        return None
    try:
        tag = langcodes.Language.get(text)  # before the names: ``hu`` is also the name of another language
        if tag.language is not None and tag.is_valid():
            return tag.to_tag()
    except ValueError:
        pass
    code = names.name_to_code("language", text, "en")
    # It also finds a name that the text only begins with, so that "French; English" would be French.
    exact = code is not None and names.normalize_name(text) in names.TRIES["en/name_to_language"]
    return langcodes.standardize_tag(code) if exact else None
