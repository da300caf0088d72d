"""The words before a measure: the noun phrase that governs it, its bound, and the item of a list."""

from __future__ import annotations

import re
from typing import Final, Literal

from loaders.zoning.extraction.clauses import BREAK, LABEL, Clause
from loaders.zoning.extraction.dimension_names import (
    Bound,
    find_dimensions,
    find_heads,
    find_kind_behind,
    split_bound,
)
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


def find_bound(
    clause: Clause,
    compared: re.Match[str] | None,
    behind: str,
    *,
    in_subject: bool,
    carried: Bound | Literal["none"] | None,
) -> Bound | Literal["none"] | None:
    """Find the bound of a measure: None if no words state it, ``none`` if it is not a limit.

    `compared` are the words of a bound before the measure, `behind` those after it. `carried` is the bound of the
    measure before it that it may have too; ``none`` without one.
    """
    if compared is None:
        if re.match(r"\)?[ -]max", behind):
            return "max"
        if carried != "none":
            return carried
        if re.search(r"exceeds?$", clause.verb_words) and not in_subject:
            return "max" if clause.negated else "none"
        if clause.permits and clause.verb_words.endswith(" be") and find_kind_behind(behind)[0] == "building-height":
            return "max"
        return "none" if (clause.permits or clause.negated) and not in_subject else None
    if compared["bare"]:
        return "none"
    if compared["least"]:
        return "none" if clause.permits and not in_subject else "min"
    if compared["most"]:
        return "none" if clause.negated else "max"
    if not (compared["no"] or clause.negated):
        return "none"
    return "min" if compared["less"] else "max"
