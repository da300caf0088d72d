"""Text utilities: escape control characters for a terminal, shorten and sort lists, read numbers, and find the ends of
sentences.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

_UNPRINTED: Final = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")
_BREAKS: Final = re.compile(r"[\t\n\u2028\u2029]")

HEADING_SEPARATOR: Final = " \u2022 "
"""Separator of the headings that a chunk of a file is below."""

MAX_LINE_CHARS: Final = 1_000
"""Maximum length of a printed line of untrusted text."""

MAX_QUOTED_CHARS: Final = 80
"""Maximum characters of foreign text in a message of the server."""
_CODE: Final = re.compile(r"(?!.*[A-Za-z]{4})[A-Za-z0-9§(][A-Za-z0-9.,:/()&+#=§-]{0,23}")
"""A name that cannot carry a sentence: it is short and has no word."""
_QUOTATION: Final = re.compile(
    r"""(?<![\w=])(?:'(?:[^'\\]|\\.?)*+(?:'|$)|"(?=[^"]*')(?:[^"\\]|\\.?)*+(?:"|$))""", re.DOTALL
)
"""What `quoted` writes, also if it was cut. Python's double quotes are only around a text with a single one."""
_PLACE: Final = re.compile(r"\[([1-9][0-9]{0,4})\]")

_DIGITS: Final = 18
"""Maximum number of digits of a number: fewer than 64 bits have."""


def escape_controls(text: str) -> str:
    """Escape terminal control characters and bidirectional controls in `text`, except tabs and line feeds."""
    return _UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def quoted(text: object) -> str:
    """Quote foreign text in a message of the server: at most `MAX_QUOTED_CHARS` characters, on one line, in quotes.

    Control characters, line breaks and quotes are escaped as in Python.
    """
    whole = str(text)
    shown = repr(whole[:MAX_QUOTED_CHARS])
    return shown if len(whole) <= MAX_QUOTED_CHARS else f"{shown[:-1]}…{shown[-1]}"


def name_or_quote(name: str) -> str:
    """Return a name that is a short code, such as R-1 or 17.12.010, as it is, and quote any other."""
    return name if _CODE.fullmatch(name) else quoted(name)


def lift_quotations(text: str, names: list[str]) -> str:
    """Replace what `quoted` quotes in a text of the server by ``[1]``, ``[2]``, ...: its places in `names`.

    Names that are not in the list yet are added.
    """

    def lift(found: re.Match[str]) -> str:
        try:
            name = str(ast.literal_eval(found[0]))
        except (SyntaxError, ValueError):  # a cut quotation
            name = found[0].strip("'\"")
        if name not in names:
            names.append(name)
        return f"[{names.index(name) + 1}]"

    return _QUOTATION.sub(lift, text)


def put_quotations(text: str, names: Sequence[str]) -> str:
    """Put the names that `lift_quotations` lifted out of `text` back as quotations."""

    def put(found: re.Match[str]) -> str:
        return quoted(names[int(found[1]) - 1]) if int(found[1]) <= len(names) else found[0]

    return _PLACE.sub(put, text)


def to_single_line(text: str, longest: int = MAX_LINE_CHARS) -> str:
    """Escape `text` to one line that is safe to print, truncated to `longest` characters with a note of its length."""
    shown = _BREAKS.sub(lambda found: _escape(found[0]), escape_controls(text[:longest]))
    return shown if len(text) <= longest else f"{shown}… ({len(text):,} characters)"


def _escape(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t"}.get(character) or f"\\u{ord(character):04x}"


def list_first(texts: Sequence[str], most: int, what: str) -> list[str]:
    """List the first `most` of some texts, and the number of the others: ``3 more warnings``."""
    more = len(texts) - most
    return [*texts[:most], *([f"{more:,} more {what}"] if more > 0 else [])]


def join_first(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join at most `most` names, and state how many more there are: ``a, b and 3 more``."""
    more = len(names) - most
    return separator.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def list_or(names: Sequence[str]) -> str:
    """List names as alternatives: ``a, b or c``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def describe_unread(counts: Mapping[str, int], endings: Iterable[str]) -> str:
    """Describe the files that are not read, by the ends of their names, where files with other `endings` are."""
    found = ", ".join(f"{ending or 'no ending'} ({counts[ending]:,})" for ending in sorted(counts))
    return f"Files of formats that are not read: {found}. Read are {', '.join(sorted(endings))}."


def ordinal(number: int) -> str:
    """Write a number as an English ordinal: ``1st``, ``12th``, ``22nd``."""
    return f"{number}{'th' if number % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Build a sort key that compares numbers in texts by their values: R-2 comes before R-10."""
    parts = re.findall(r"\d+|\D+", text.casefold())
    return tuple((0, len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (1, 0, part) for part in parts)


_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_QUOTES: Final = {0x2018: "'", 0x2019: "'", 0x201A: "'", 0x201B: "'", 0x201C: '"', 0x201D: '"', 0x201E: '"'}
_STOPS: Final = {0x2026: ".", 0x3002: ".", 0xFF01: "!", 0xFF1F: "?"}


def to_number(text: str) -> int | None:
    """Read a whole number of at most 18 digits; None for any other text."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS else None


def find_sentence_ends(text: str) -> Iterator[int]:
    """Yield the offsets in `text` at which a sentence ends, in order; the end of the last one may be missing.

    sentencex knows abbreviations such as "Mr." and "p.m.".
    """
    # sentencex gets an ASCII copy with one character for each, since it mishandles multi-byte characters. So its
    # offsets are code points, in every case.
    plain = text if text.isascii() else _BEYOND_ASCII.sub(lambda match: _ascii(match[0]), text)
    import sentencex  # here, since it takes 0.1 s and most importers of this module only print lines

    for found in sentencex.get_sentence_boundaries("en", plain):
        yield found["end_index"]


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    """Return the ASCII character that is equivalent to this one for finding sentences."""
    code, category = ord(character), unicodedata.category(character)
    known = _QUOTES.get(code) or _STOPS.get(code)
    if known is not None:
        return known
    if character.isspace():
        return " "
    if character.isupper():
        return "E"
    if character.isalpha() or category[0] == "M":
        return "e"
    # A comma for dashes, section signs and so on, because no sentence begins with any of them.
    return "1" if category == "Nd" else ","
