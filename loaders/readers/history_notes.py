"""Recognition of notes on the history of a section by their words: ``(Ord. No. 12-09, Amended 08/04/2009)``."""

from __future__ import annotations

import re
from typing import Final

_ACTS: Final = (
    r"(?:amended|adopted|added|enacted|re-?enacted|repealed|renumbered|created|recodified|readopted|revised|deleted"
    r"|editorially amended|codified|passed|transferred|replaced|established)"
)
_SOURCES: Final = (
    r"(?:(?:prior|former)\s+code|(?:\d{4}\s+)?code(?:\s+of)?\s+\d{4}|code\s+\d{4}|\d{4}\s+code|ord(?:inance)?s?\b\.?,?"
    r"|res(?:olution)?s?\b\.?|l\.l\.|local\s+law|p\.a\.|laws?\s+\d{4}|acts?\s+\d{4}|comp\.?\s+ords?|chart(?:er)?\b|stat\.)"
)
_CLAUSE: Final = rf"(?:am(?:en)?d?\.?\s+|§§?\s*[\d., ()A-Za-z-]{{1,30}},\s+)?{_SOURCES}"
"""A source, also after an abbreviated act or the section of the ordinance: "Am. Ord. 12", "§ 2, Ord. 12"."""
_BRACKETED: Final = re.compile(rf"[(\[]\s*(?:{_CLAUSE}|{_ACTS}\b)", re.IGNORECASE)
_ACTED: Final = re.compile(rf"{_ACTS}\s+(?:by|per|and\s+\w+\s+by)\s+{_SOURCES}", re.IGNORECASE)
_HEADED: Final = re.compile(r"history\s*:\s*\S", re.IGNORECASE)
_DIGIT: Final = re.compile(r"\d")
_LOOSE: Final = re.compile(rf"(?:{_ACTS}\b|{_SOURCES})[^\n]*\d", re.IGNORECASE)
_HEADING: Final = re.compile(r"(?:legislative\s+|ordinance\s+|amendment\s+)?history\s*+(?::\s*+)?", re.IGNORECASE)
_DATED: Final = r"(?=[^()\[\]]{0,80}(?:\d{1,2}[-/]\d{1,2}[-/]\d{2}|(?:19|20)\d\d))"
"""A date or year within the bracket. Without one "(added to the height)" would be a note."""
_STARTS: Final = rf"\s*(?:{_CLAUSE}|{_ACTS}\b{_DATED})"
_LAST: Final = re.compile(
    rf"(?<=[.;:!?”\"'’)\]])\s*(?P<note>\({_STARTS}(?:[^()]|\([^()]*\))*\)|\[{_STARTS}[^\[\]]*\]"
    rf"|history\s*:\s*{_CLAUSE}[^\n]*)$",
    re.IGNORECASE,
)
_UNCLOSED: Final = re.compile(rf"[(\[]{_STARTS}(?:[^()\[\]]|\([^()]*\))*$", re.IGNORECASE)
_LONGEST_LAST: Final = 1_000
"""Maximum characters of a note after the last sentence of a line."""
ANNOTATION: Final = r"(?:Editor['’]s [Nn]otes?|(?:Cross|State [Ll]aw|Charter|Code|Legal) [Rr]eferences?)\s?[—–]"
"""Start of a note added by the publisher of a code."""
_ANNOTATION: Final = re.compile(rf"(?P<kind>{ANNOTATION})\s*\S")
LONGEST: Final = 5_000
"""Maximum characters of a note. A note may list all ordinances that changed a section."""

_FIRST: Final = frozenset("([aAcCdDeEhHpPrRtT")


def is_note(line: str) -> bool:
    """Check whether all of `line` is a note on the history of a section, anywhere in the section."""
    if line[:1] not in _FIRST or len(line) > LONGEST:
        return False
    # Only the start is matched: one expression for the whole line takes quadratic time.
    if (start := _BRACKETED.match(line)) is not None:
        closed = line.removesuffix(".").rstrip().endswith((")", "]"))
        return closed and _DIGIT.search(line, start.end()) is not None
    if _ACTED.match(line) is not None:
        return True
    start = _HEADED.match(line)
    return start is not None and _DIGIT.search(line, start.end()) is not None


def is_note_below(line: str) -> bool:
    """Check whether `line` is a note below the heading "History", where fewer marks suffice."""
    return len(line) <= LONGEST and (is_note(line) or _LOOSE.match(line) is not None)


def annotation_kind(line: str) -> str | None:
    """Get the kind of a publisher's note, such as ``Editor's note``. None for other lines."""
    match = _ANNOTATION.match(line)
    return None if match is None else match["kind"].rstrip("—– ")


def is_heading(line: str) -> bool:
    """Check whether `line` is only the heading of such notes."""
    return len(line) < 30 and line[:1] in "hHlLoOaA" and _HEADING.fullmatch(line) is not None


def split_last(line: str) -> tuple[str, str | None]:
    """Split a line into the text and the notes after its last sentence, which may be None."""
    text = line
    while _DIGIT.search(text, max(0, len(text) - _LONGEST_LAST)) is not None:
        match = _LAST.search(text, max(0, len(text) - _LONGEST_LAST))
        if match is None or match.start() == 0:
            break
        text = text[: match.start()]
    return (line, None) if text is line else (text.rstrip(), line[len(text) :].lstrip())


def is_within_note(text: str) -> bool:
    """Check whether `text` ends within a note in brackets, so that the next line continues it."""
    return ("(" in text or "[" in text) and _UNCLOSED.search(text) is not None
