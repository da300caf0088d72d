"""Lists within a line: ``single-family dwellings; parks; and schools``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_LABEL: Final = re.compile(r"(?:\([A-Za-z0-9]{1,3}\)|\d{1,2}[.)]) (?=\S)")
_SEMICOLON: Final = re.compile(r"; ?(?:(?:and|or|and/or) )?")
_COMMA: Final = re.compile(r",? (?:and|or) (?=[^,]*$)|, ?")
_SAYS: Final = re.compile(
    r"\b(?:is|are|was|were|be|has|have|shall|must|may|will|can|does|do|means?|includes?|applies|apply)\b", re.IGNORECASE
)
_NO_ITEM: Final = re.compile(
    r"(?:(?:all|any|other)(?: other| such)?(?: permitted)? uses?(?: (?:permitted|allowed|listed)\b|$)"
    r"|same|those|these|this|that|such|see|as|uses?|none|no|not|the|only|provided|subject|if|when|where|except"
    r"|unless|but|and provided|minimum|maximum|including|must|up to|for|in|with|each|one|at least"
    r"|sections?|chapters?|articles?|tables?)\b|[^A-Za-z]|[A-Za-z]{1,4}-?\d|.{0,2}$|[^:=]*[:=]",
    re.IGNORECASE,
)
"""With what a use does not begin, but a condition or a reference to other uses."""
_JOINED: Final = re.compile(r" (?:of|for|in|on|with|from|at|by|to|within|without) ")
_CONDITION: Final = re.compile(
    r"\b(?:provided|subject|if|when|where|which|that|but|including|such as|except|other than|unless|limited|not|and|or"
    r"|see|section|per|accessory to)\b|[()]",
    re.IGNORECASE,
)
_PLURAL: Final = re.compile(r"[a-z]{2,}(?<![su])s|agriculture|forestry|horticulture|farming", re.IGNORECASE)
_SINGULAR: Final = frozenset(("business", "retail", "bus", "sales"))
_WORDS: Final = 5
_WORDS_OF_LONG: Final = 40

Span = tuple[int, int]


def items(words: str) -> Sequence[Span]:
    """Return where the uses of a list in some words stand: between semicolons, or between commas where all are plain.

    None are returned for what may as well be a sentence, or one use with its condition.
    """
    stop = len(words.rstrip(" .;"))
    words = words[:stop]
    start = stop - len(words.lstrip())
    if not words or words.endswith(":") or re.search(r"\. (?=[A-Z])", words):
        return []
    if ";" not in words:
        return list(parts(words)) or ([(start, stop)] if _is_plain(words[start:]) else [])
    found = list(_between(words, _SEMICOLON))
    sound = all(_may_be_use(words[start:end]) for start, end in found)
    return found if sound and len(found) > 1 else []


def parts(words: str) -> Iterator[Span]:
    """Yield where the members of an enumeration by commas stand, if all are plain nouns in the plural."""
    found = list(_between(words, _COMMA)) if "," in words else []
    if len(found) > 1 and all(_is_plain(words[start:end]) for start, end in found):
        yield from found


def alternatives(words: str) -> Sequence[Span]:
    """Return where the uses of a line of a list stand that has several, between semicolons; else none."""
    stop = len(words.rstrip(" .;"))
    found = list(_between(words[:stop], _SEMICOLON)) if ";" in words[:stop] else []
    return found if len(found) > 1 and all(_is_plain(words[start:end]) for start, end in found) else []


def _between(words: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    at = 0
    for start, end in [*((match.start(), match.end()) for match in pattern.finditer(words)), (len(words), len(words))]:
        first = at + len(words[at:start]) - len(words[at:start].lstrip())
        label = _LABEL.match(words, first, start)
        first = label.end() if label else first
        if words[first:start].strip():
            yield first, first + len(words[first:start].rstrip())
        at = end


def _may_be_use(words: str) -> bool:
    return len(words.split()) <= _WORDS_OF_LONG and not _NO_ITEM.match(words) and not _SAYS.search(words)


def _is_plain(words: str) -> bool:
    """Whether some words are a noun of few words in the plural, with nothing that a condition may be."""
    names = _JOINED.split(words, maxsplit=1)[0].split()
    last = names[-1].casefold() if names else ""
    return (
        len(words.split()) <= _WORDS
        and _may_be_use(words)
        and not _CONDITION.search(words)
        and _PLURAL.fullmatch(last.split("-")[-1]) is not None
        and last not in _SINGULAR
    )
