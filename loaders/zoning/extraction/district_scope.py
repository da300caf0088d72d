"""The districts that part of a sentence applies in: ``75 feet in the AO District and 60 feet in the RE District``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from loaders.zoning.extraction.districts import District, find_places

_NOT_THERE: Final = re.compile(
    r"\b(?:boundar\w+|lines?|edges?|limits?|next to|abut\w*|adjoin\w*|adjacent to|border\w*|near\w*|feet|along|from"
    r"|(?:other than|except|outside)(?: in)?) (?:of |to |from )?(?:(?:the|an?|any|each) )?"
    r"(?:(?!in\b|within\b)[\w./-]+,? ){0,8}?(?:districts?|zones?)\b",
    re.IGNORECASE,
)
"""Places next to a limit, or places that it does not apply in."""
_STEM: Final = r"(residen|business|commercial|industrial|manufactur|agricultur)\w*"
_OF_KIND: Final = re.compile(
    rf"\b(?:in|within) (?:(?:the|an?|any|each|every|all) )?{_STEM} (?:and {_STEM} )?"
    r"(?:zoning )?(?:districts?|zones?)\b",
    re.IGNORECASE,
)
_OVERLAY: Final = re.compile(r"\b(?i:in|within) (?i:the|an?|any) (?P<code>[A-Z][\w-]*) (?i:overlay)\b")
_SCOPE: Final = re.compile(
    r"\b(?:these|the following|this section'?s?)(?: \w+){0,3} (?:appl(?:y|ies)|shall apply)"
    r" (?:in|to|within) [^.:\n]{4,200}",
    re.IGNORECASE,
)
_UNKNOWN: Final = re.compile(
    rf"\b(?i:in|within) (?:the|an?|any) (?:[A-Z][\w-]*|{_STEM})(?:(?:,| and| or)* [A-Z][\w-]*)* "
    r"(?i:zones?|districts?|overlay)\b"
)
"""Districts that are named and not known."""


def find_scope(text: str, start: int, end: int, known: Mapping[str, District]) -> Sequence[str] | None:
    """Find the districts that [start, end) of a text names: by code, or by kind, such as ``in any residence district``.

    None if it names no place, and empty if it applies in all districts.
    """
    if end <= start:
        return None
    words = _NOT_THERE.sub(lambda match: " " * len(match[0]), text[start:end])
    codes = find_places(words, 0, len(words), known)
    if codes is None:
        codes = [match["code"] for match in _OVERLAY.finditer(words) if match["code"] in known] or None
    if match := _OF_KIND.search(words):
        stems = [stem.casefold() for stem in match.groups() if stem]
        alike = [code for code, each in known.items() if any(stem in each.name.casefold() for stem in stems)]
        return [*dict.fromkeys((*alike, *(codes or ())))] or None
    return codes


def names_unknown(text: str, start: int, end: int) -> bool:
    """Check whether [start, end) of a text names a district by code or kind, which may be an unknown one."""
    return _UNKNOWN.search(text, start, end) is not None


def find_stated_scope(text: str, known: Mapping[str, District]) -> Sequence[str]:
    """Find the stated districts of a text: ``These standards apply in the RL and RM Districts:``."""
    match = _SCOPE.search(text)
    return (find_scope(text, *match.span(), known) or ()) if match else ()
