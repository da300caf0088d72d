"""Words next to a citation that name another part of the law: notes of a section, appendices of a part."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from loaders.citations.number_lists import Member
from loaders.citations.statutes import Law

_REACH: Final = 40
"""Code points before a citation that are searched for such words."""
_NOTE: Final = re.compile(r",? (?:\([Nn]otes?\)|(?:[Nn]otes?\b|nts?\.)(?! (?:that|how|the|an?|\d)\b))")
"""The notes that are printed after a section of a code, which are other law than the section: ``§ 1983 note``."""
_NOTE_BEFORE: Final = re.compile(r"\b[Nn]otes? (?:to|under|following) $")
_APPENDIX_NAME: Final = r"(?P<name>[IVXL]{1,6}|[A-Z]{1,2}(?:-\d{1,2})?|\d{1,2})"
_APPENDIX_OF_PART: Final = re.compile(
    rf",? (?:(?P<appendix>[Aa]ppendix|[Aa]pp\.)|[Ss]upplement|[Ss]upp\.) {_APPENDIX_NAME}(?![\w-])"
)
_APPENDIX_BEFORE: Final = re.compile(
    rf"\b(?:(?P<appendix>[Aa]ppendix|[Aa]pp\.)|[Ss]upplement|[Ss]upp\.) {_APPENDIX_NAME} (?:to|of) $"
)
_ET_SEQ: Final = re.compile(r",? et\.?,? ?seq\b\.?")


def find_note(text: str, end: int) -> int | None:
    """Find the end of the words after a section that make it a note: ``1983 note``."""
    note = _NOTE.match(text, end)
    return note.end() if note else None


def add_suffixes(text: str, members: list[Member], laws: list[Law], end: int) -> int:
    """Add the words that make a citation of another part of a law: notes of a section, the appendix of a part. Returns
    the end of the last.
    """
    start = members[0].start
    is_section = bool(members[-1].number) and f" Part {members[-1].number}" not in laws[-1].citation
    if not is_section:
        if (after := _APPENDIX_OF_PART.match(text, end)) is not None:
            laws[-1] = replace(laws[-1], citation=f"{laws[-1].citation}, {_name_appendix(after)}")
            members[-1] = replace(members[-1], end=after.end())
        elif before := _APPENDIX_BEFORE.search(text, max(0, start - _REACH), start):
            laws[0] = replace(laws[0], citation=f"{laws[0].citation}, {_name_appendix(before)}")
            members[0] = replace(members[0], start=before.start())
        return max(end, members[-1].end)
    if (after := _NOTE.match(text, end)) is not None:
        laws[-1] = replace(laws[-1], citation=f"{laws[-1].citation} note")
        members[-1] = replace(members[-1], end=after.end(), labels=())
    elif before := _NOTE_BEFORE.search(text, max(0, start - _REACH), start):
        laws[0] = replace(laws[0], citation=f"{laws[0].citation} note")
        members[0] = replace(members[0], start=before.start(), labels=())
    elif (after := _ET_SEQ.match(text, end)) is not None:
        members[-1] = replace(members[-1], end=after.end())
    return max(end, members[-1].end)


def _name_appendix(words: re.Match[str]) -> str:
    return f"{'Appendix' if words['appendix'] else 'Supplement'} {words['name']}"
