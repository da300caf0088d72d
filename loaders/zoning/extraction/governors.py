"""The words before a measure: the noun phrase that governs it, and the item of a list."""

from __future__ import annotations

import re
from typing import Final

from loaders.zoning.extraction.clauses import BREAK, LABEL
from loaders.zoning.extraction.dimension_names import find_dimensions, find_heads, split_bound
from loaders.zoning.extraction.regulated_subjects import is_pronoun

_NOUN_PHRASE: Final = re.compile(r"\s*(?:an?|one|two|the|each|every|\d+)\b", re.IGNORECASE)


def find_item(words: str) -> str | None:
    """Get the item of a list that a label begins with: ``Gravel pits, but not within``."""
    parts = re.split(r"[,:]| [-–—] | but ", LABEL.sub("", words.strip()))
    name = re.sub(r"^for (?:an? )?", "", parts[0].strip(" •"), flags=re.IGNORECASE)
    plain = (
        len(parts) > 1
        and not name.startswith("plus ")
        and name[:1].isalpha()
        and not any(map(str.isdigit, name))
        and not any(find_dimensions(name))
    )
    return name if plain else None


def split_governor(phrase: str, *, label: bool, first: bool) -> tuple[str, re.Match[str] | None]:
    """Split the words before a measure into the noun phrase that governs it and the words of its bound."""
    cuts = list(BREAK.finditer(phrase))
    governor, compared = split_bound(phrase[cuts[-1].end() :] if cuts else phrase)
    if (not governor or is_pronoun(governor)) and first and cuts and (label or _NOUN_PHRASE.match(phrase)):
        governor, _ = split_bound(phrase[: cuts[-1].start()].rpartition(",")[2] + " ")
    if label:
        governor = LABEL.sub("", governor).rpartition(":")[2].strip()
        whole = LABEL.sub("", split_bound(phrase)[0])
        # "Lot coverage by all buildings and structures"
        governor = whole if find_heads(whole, label=True) and not any(find_dimensions(governor)) else governor
    return governor, compared
