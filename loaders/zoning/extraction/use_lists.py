"""Lists of uses in a line, split into their members: ``barns; sheds; and any use permitted in the R-1 District``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from loaders.zoning.extraction.clauses import has_verb

Span = tuple[int, int]

INHERITED: Final = re.compile(
    r"(?:(?:any|all|the|those|every) )?(?:other )?(?:of the )?(?:principal |accessory |land )?uses? "
    r"(?:that (?:is|are) )?"
    r"(?:permitted|allowed|listed)(?: (?:by right|outright|as of right))? (?:in|within) "
    r"(?P<of>(?:(?:the )?(?-i:[A-Z])[\w-]{0,8}(?:, (?:and |or )?| and | or )){0,20}[^.;:,]{1,80}?)"
    r"(?=,? (?:except|excluding|other than|but|provided|is|are|may|shall|subject)\b|[.;,]|$)",
    re.IGNORECASE,
)
"""``any use permitted in the C-1 District``"""
_LABEL: Final = re.compile(r"(?:\([A-Za-z0-9]{1,3}\)|\d{1,2}[.)]) (?=\S)")
_SEMICOLON: Final = re.compile(r"; ?(?:(?:and|or|and/or) )?")
_COMMA: Final = re.compile(r",? (?:and|or) (?=[^,]{0,300}$)|, ?")
_NO_ITEM: Final = re.compile(
    r"(?:(?:all|any|other)(?: other| such)?(?: permitted)? uses?(?: (?:permitted|allowed|listed)\b|$)"
    r"|same|those|these|this|that|such|see|as|uses?|none|no|not|the(?! \w+(?: (?:and|or) \w+)? of\b)|only|provided"
    r"|subject|if|when|where"
    r"|except|unless|but|and provided|minimum|maximum|including|must|up to|for|in|with|each|one (?:of|per|for|space)"
    r"|at least|sections?|chapters?|articles?|tables?)\b|[^A-Za-z]|[A-Za-z]{1,4}-?\d|.{0,2}$|[^:=]*[:=]",
    re.IGNORECASE,
)
"""Starts of list members that are not uses, but conditions or references to other uses."""
_PREPOSITION: Final = re.compile(r" (?:of|for|in|on|with|from|at|by|to|within|without) ")
_CONDITION: Final = re.compile(
    r"\b(?:provided|subject|if|when|where|which|that|but|including|such as|except|other than|unless|limited|not|and|or"
    r"|see|section|per|accessory to)\b|[()]",
    re.IGNORECASE,
)
PLURAL: Final = re.compile(r"[a-z]{2,}(?<![su])s|agriculture|forestry|horticulture|farming", re.IGNORECASE)
_DESCRIBED: Final = re.compile(r" (?:which|that) (?:are|is|have|has) ")
_SINGULAR: Final = frozenset(("business", "retail", "bus", "sales"))
_WORDS_OF_ITEM: Final = 5
_WORDS_OF_LONG: Final = 40


def split_list(words: str) -> Sequence[Span]:
    """Split a list into uses: at semicolons, or at commas if all members are plain.

    Empty for words that may be a sentence, or one use with its condition.
    """
    stop = len(words.rstrip(" .;"))
    words = words[:stop]
    start = stop - len(words.lstrip())
    if not words or words.endswith(":") or re.search(r"\. (?=[A-Z])", words):
        return []
    if ";" not in words:
        return list(split_enumeration(words)) or ([(start, stop)] if _is_plain(words[start:]) else [])
    found = list(_split_spans(words, _SEMICOLON))
    sound = all(INHERITED.match(words, *span) or _may_be_use(words[slice(*span)]) for span in found)
    return found if sound and len(found) > 1 else []


def split_enumeration(words: str) -> Iterator[Span]:
    """Split an enumeration at commas, if all members are plain plural nouns."""
    found = list(_split_spans(words, _COMMA)) if "," in words else []
    if len(found) > 1 and all(_is_plain(words[start:end]) for start, end in found):
        yield from found


def split_alternatives(words: str) -> Sequence[Span]:
    """Split a line of a list that contains several uses at semicolons. Empty if it contains one."""
    stop = len(words.rstrip(" .;"))
    found = list(_split_spans(words[:stop], _SEMICOLON)) if ";" in words[:stop] else []
    if len(found) > 1 and all(_is_plain(words[start:end]) for start, end in found):
        return found
    # "Masts on roofs, painted like them; or hidden masts which are in a tower"
    last = found[-1] if len(found) == 2 and "; or " in words[:stop] else None
    name = _DESCRIBED.split(words[slice(*last)], maxsplit=1)[0] if last else ""
    return found if last and name != words[slice(*last)] and len(name.split()) > 1 and _is_plain(name) else []


def _split_spans(words: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    at = 0
    for start, end in [*((match.start(), match.end()) for match in pattern.finditer(words)), (len(words), len(words))]:
        first = at + len(words[at:start]) - len(words[at:start].lstrip())
        label = _LABEL.match(words, first, start)
        first = label.end() if label else first
        if words[first:start].strip():
            yield first, first + len(words[first:start].rstrip())
        at = end


def _may_be_use(words: str) -> bool:
    return len(words.split()) <= _WORDS_OF_LONG and not _NO_ITEM.match(words) and not has_verb(words)


def _is_plain(words: str) -> bool:
    """Whether some words are a short plural noun without anything that may be a condition."""
    names = _PREPOSITION.split(words, maxsplit=1)[0].split()
    last = names[-1].casefold() if names else ""
    return (
        len(words.split()) <= _WORDS_OF_ITEM
        and _may_be_use(words)
        and not _CONDITION.search(words)
        and PLURAL.fullmatch(last.split("-")[-1]) is not None
        and last not in _SINGULAR
    )


_VACANT: Final = re.compile(
    r"[(\[]?(?:reserved|repealed|deleted|omitted|none|vacant|n/a|not applicable)\b[^a-z]*", re.IGNORECASE
)
"""A placeholder for an item that is not in force."""
_REFERS: Final = re.compile(
    r"(?:(?:all|any|other|the|those|these) )*(?:uses?|items?|activities|land uses)?,? ?"
    r"(?:as |that are |which are )?(?:listed|specified|enumerated|described|identified|set forth|shown|provided)"
    r" (?:in|on|under|by|within|above|below)\b",
    re.IGNORECASE,
)
"""An item that only refers to uses elsewhere: ``As listed in Table 3``."""


def states_no_use(words: str) -> bool:
    """Whether a line of a list is reserved, or only refers to uses elsewhere."""
    refers = _REFERS.match(words) and not has_verb(words) and words[-1:] != ":" and not INHERITED.match(words)
    return bool(refers or _VACANT.fullmatch(words))
