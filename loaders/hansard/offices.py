"""Recorded names that are of an office or of a crowd, not of a person.

The record prints ``The DEPUTY SPEAKER`` in place of the name of the person who presides, ``Opposition members`` in
place of several, and puts offices next to names: ``Quill, Marigold (The DEPUTY SPEAKER)``. None of these is a name of
the person.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from loaders.hansard.sitting_model import Talker

_CHAIR_ID, _CLERK_ID, _NO_ID = "10000", "10001", "UNKNOWN"
"""Values in place of a person's id: the id of the office (chair, clerk), or of nobody."""
_OFFICE: Final = re.compile(
    r"(?:the |mr\.? |madam |mrs\.? |ms\.? )*(?:(?:acting|deputy|temporary|assistant) )*"
    r"(?:(?P<clerk>clerk)|speaker|president|chair(?:man|woman|person)?)\b(?! of )",
    re.IGNORECASE,
)
_WHOLE: Final = re.compile(r"[\s.,:—–-]*+(?:\(.*|the\s*+)?", re.IGNORECASE | re.DOTALL)
"""What may follow the office where the name is that of the office alone: its holder in brackets."""
_NOBODY: Final = re.compile(
    r"(?:an? |the |some |several |many )?(?:opposition |government |labor |liberal |national |green )?"
    r"(?:hon(?:ou?rable|\.)? )?(?:members?|senators?)(?: interjecting)?\W*",
    re.IGNORECASE,
)
"""Names under which the record puts words that a crowd, or an unrecognized person, called out."""
_INTERJECTING: Final = re.compile(r"(?:(?<![\s,])[\s,]++)?\binterjecting\b[\s.:—–-]*+$", re.IGNORECASE)
_BRACKETS: Final = re.compile(r"(?:(?<!\s)\s++)?\(([^()]*+)\)?\s*+$")
_LAST_THE: Final = re.compile(r"^.*,\s*the\s*$", re.IGNORECASE)
_ROLE: Final = re.compile(
    r"(?:the|mr|madam)\s|.*\b(?:leader|minister|secretary|whip|speaker|president|chair\w*|clerk|treasurer)\b",
    re.IGNORECASE,
)


def office_of(talker: Talker) -> str | None:
    """Return the office under which the record has a person speak: chair or clerk.

    With the id of a person, only a name that is wholly that of the chair is an office.
    """
    name_id = (talker.name_id or "").strip()
    if name_id in ("", _CHAIR_ID, _CLERK_ID, _NO_ID):
        names = [name for name in (talker.name, talker.full_name) if name]
        found = next((match for name in names if (match := _OFFICE.match(name.strip())) is not None), None)
        if name_id == _CLERK_ID or (found is not None and found["clerk"]):
            return "clerk"
        return "chair" if name_id == _CHAIR_ID or found is not None else None
    return "chair" if is_chair(talker.name) else None


@lru_cache(maxsize=4_096)
def is_chair(name: str) -> bool:
    """Whether a name is that of the chair, with or without its holder: ``The SPEAKER``, ``SPEAKER, The``."""
    match = _OFFICE.match(name.strip())
    return match is not None and not match["clerk"] and _WHOLE.fullmatch(name.strip(), match.end()) is not None


def is_office(name: str) -> bool:
    """Whether a name begins with that of an office."""
    return _OFFICE.match(name) is not None


def is_nobody(name: str) -> bool:
    """Whether a name is that of a crowd, or only that of an interjection."""
    return _NOBODY.fullmatch(name.strip()) is not None or _INTERJECTING.search(name) is not None


def identifier_of(talker: Talker) -> str | None:
    """Return the identifier of the speaker, in upper case. For an office it is that of its recorded holder."""
    name_id = (talker.name_id or "").strip().upper()
    if name_id in (_CHAIR_ID, _CLERK_ID, _NO_ID, ""):
        name_id = (talker.holder_id or "").strip().upper()
    return name_id or None


@lru_cache(maxsize=8_192)
def strip_office(name: str) -> str:
    """Return a name of a person without the office next to it; empty if it is the name of an office or of a crowd."""
    name = _INTERJECTING.sub("", name).strip()
    brackets = _BRACKETS.search(name)
    if brackets is not None and _ROLE.match(brackets[1]):
        name = name[: brackets.start()].rstrip()
    return "" if _LAST_THE.match(name) or is_chair(name) or _NOBODY.fullmatch(name) else name
