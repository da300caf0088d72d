"""Definitions of terms in a section: quoted, as ``X means ...``, or in a list of terms and meanings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loaders.zoning.readers.code_model import Section

_LABEL: Final = re.compile(
    r"(?:(?:\([A-Za-z0-9-]{1,6}\) ?){1,4}|(?:[A-Za-z]\.?|(?P<twice>[A-Za-z])(?P=twice)\.) (?=[A-Z“\"])"
    r"|\d{1,3}\.? (?=[A-Za-z“\"]))"
)
_DEFINING: Final = re.compile(r"(?i)\b(?:definitions?|defined|meanings?|glossary|terms)\b")
_DEFINITIONS: Final = re.compile(r"(?i)\b(?:definitions?|glossary)\b")
_OPENING: Final = re.compile(
    r"(?:(?:\([A-Za-z0-9]{1,4}\) ?)*|[A-Za-z0-9]\. )(?:Definitions?[.:]"
    r"|(?:.{0,200}?\b(?:following (?:words|terms|definitions)|the terms?:|(?:words|terms) and phrases)\b))"
)
_QUOTED: Final = re.compile(r"[“\"]([^“”\"\n]{1,120})[”\"]")
_MORE: Final = re.compile(r",? ?(?:or|and|,) ?(?:the )?(?=[“\"])")
_VERB: Final = re.compile(
    r"(?:,? (?:when used|as used|for (?:the )?purposes? of|with respect to|in|of"
    r"|also)\b[^,.;:\n]{0,80},?)?(?:[.,:—–-] ?| )?"
    r"(?P<verb>(?P<plain>(?:shall |will )?(?:mean|means)(?: and (?:includes?|refers to))?:?"
    r"|(?:is|are) (?:hereby )?defined (?:as|to mean):?)"
    r"|(?:shall (?:have|be|include|refer)|has|have|includes?|refers? to|is|are|does not include)\b)(?= |\n|$)"
)
_SUBJECT: Final = re.compile(
    r"(?:The term |the term |A |An "
    r"|The )?(?P<term>[A-Z][^\n.:;“”\"]{1,80}?)[.:,]? (?P<verb>(?:shall )?means?)(?= (?!of\b|for\b|to\b))"
)
_HEADED: Final = re.compile(r"(?P<term>[A-Z0-9][^\n.:]{1,80})(?:[.:](?: [—–-])?|[—–]| [—–-]) +(?=\S)")
_BETWEEN: Final = re.compile(r"[”\"],? (?:or|and) [“\"]")
"""Between two terms on a line of their own: ``Review Committee" or "RC``."""
_ITEM: Final = re.compile(r"[(a-z0-9•–-]|[A-Z][\w /-]{2,40} [—–-] ")
_GOES_ON: Final = re.compile(r"(?:The (?:following|term)|This|These|Such|It|They)\b(?! (?:section|article|chapter)\b)")
"""Start of a line that continues the meaning above it."""
_THE_TERM: Final = re.compile(r"[Tt]he (?:terms?|words?|phrases?) ")
_SAYS: Final = re.compile(
    r"(?i)\b(?:shall|is|are|was|may|must|will|means|has|have|can|if|which|that|who|when|where|this|these|it|he|they)\b",
)
_NO_TERM: Final = frozenset({"a", "an", "any", "by", "other", "as", "additional", "express", "to", "all", "such"})
"""Words before "means" where it is a noun, or where the sentence is about something else."""
_QUOTES: Final = "“”\"‘’' "
_LONGEST_TERM: Final = 100
_WORDS: Final = 12
_LISTED: Final = 3
"""Number of terms on lines of their own that make a section a list of them. Then ``Front. The line ...`` is part of a
meaning."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A term and its meaning, each at offsets of the section's text."""

    term: str
    term_start: int
    term_end: int
    text: str
    """The meaning, verbatim, without the verb ``means``."""
    start: int
    end: int
    confidence: float
    method: str
    """Form of the definition: quoted, means, headed (``Term. Meaning``), list (the term on a line of its own)."""


@dataclass(frozen=True, slots=True)
class _Found:
    terms: tuple[tuple[int, int], ...]
    start: int
    """Offset of the meaning."""
    line: int
    """Number of the line with the terms."""
    confidence: float
    method: str


CUT: Final = 0.1
"""The confidence of a meaning that ends with a colon: its list is not in the text. Of nine, none was right."""


def find_definitions(section: Section, above: Sequence[Section] = ()) -> Sequence[Definition]:
    """Find the definitions of a section, in text order. `above` are its ancestors."""
    text = section.text
    lines = list(_lines(text))
    found = list(_all(section, lines, defining=any(_DEFINITIONS.search(each.title) for each in above)))
    result = []
    for place, each in enumerate(found):
        after = each.line + (each.method == "list")
        following = next((next_ for next_ in found[place + 1 : place + 9] if next_.line > after), None)
        end = _end(text, lines, each, len(text) if following is None else lines[following.line][0])
        said = text[each.start : end]
        sure = CUT if said.rstrip().endswith(":") else each.confidence
        result += [
            Definition(text[start:stop], start, stop, said, each.start, end, sure, each.method)
            for start, stop in each.terms
        ]
    return [each for each in result if each.term.strip() and each.text.strip()]


def _all(section: Section, lines: Sequence[tuple[int, int]], *, defining: bool) -> Iterator[_Found]:
    """Yield the definitions. With `defining`, the section is below a heading of definitions: all quoted terms count."""
    text = section.text
    whole = bool(_DEFINING.search(section.title))
    within = whole
    closes = len(text)
    meaning, listed = -1, 0
    for number, (start, end) in enumerate(lines):
        if number == meaning:
            continue
        if not whole and within and start >= closes:
            within = False
        if not within and _OPENING.match(text, start, min(end, start + 300)):
            within, closes = True, _closes(section, start)
            if text[start:end].rstrip().endswith(":"):
                continue
        body = _after_label(text, start, end)
        if not within:
            if defining and (quoted := _in_line(text, body, end, number, within=False)):
                yield quoted
            continue
        found = _in_line(text, body, end, number, within=True)
        if found is not None and found.method == "headed" and listed >= _LISTED:
            found = None
        if found is None and whole:  # "Definition." in the text of another section lists no lines
            found = _own_line(text, lines, number)
            if found is not None:
                meaning, listed = number + 1, listed + 1
        if found is not None:
            yield found


def _closes(section: Section, start: int) -> int:
    """Find the end of the definitions opened by the line at `start`: the end of its subsection."""
    around = [each for each in section.subsections if each.start <= start < each.end]
    return min((each.end for each in around), default=len(section.text))


def _in_line(text: str, start: int, end: int, line: int, *, within: bool) -> _Found | None:
    """Parse a line that starts with its term. Outside of definitions, it must be quoted, with a verb."""
    term = _THE_TERM.match(text, start, end)
    at = term.end() if term else start
    terms: list[tuple[int, int]] = []
    while (quoted := _QUOTED.match(text, at, end)) and len(terms) < _WORDS:
        terms.append(quoted.span(1))
        at = quoted.end()
        more = _MORE.match(text, at, end)
        if more is None:
            break
        at = more.end()
    if terms:
        verb = _VERB.match(text, at, end)
        if verb is not None:
            meaning = verb.end() if verb["plain"] else verb.start("verb")
            return _Found(
                tuple(terms), _strip(text, meaning, end, " ,:")[0], line, 0.95 if verb["plain"] else 0.85, "quoted"
            )
        if within:
            return _Found(tuple(terms), _strip(text, at, end, " .:,—–-")[0], line, 0.85, "quoted")
    if terms or not within:
        return None
    if subject := _SUBJECT.match(text, start, end):
        span = subject.span("term")
        words = text[slice(*span)].split()
        if len(words) <= _WORDS and words[-1].lower() not in _NO_TERM and not _SAYS.search(text, *span):
            return _Found((span,), _strip(text, subject.end(), end, " ,:")[0], line, 0.9, "means")
    if headed := _HEADED.match(text, start, end):
        span = headed.span("term")
        said = text[slice(*span)]
        if len(said.split()) <= _WORDS - 2 and not _DEFINING.search(said) and not _SAYS.search(text, *span):
            return _Found((_strip(text, *span, _QUOTES),), headed.end(), line, 0.75, "headed")
    return None


def _own_line(text: str, lines: Sequence[tuple[int, int]], number: int) -> _Found | None:
    """Parse a term on a line of its own, with its meaning on the next line."""
    start, end = lines[number]
    if number + 1 == len(lines) or end - start > _LONGEST_TERM or not _is_term(text, start, end):
        return None
    breaks = list(_BETWEEN.finditer(text, start, end))
    spans = zip([start, *(each.end() for each in breaks)], [*(each.start() for each in breaks), end], strict=True)
    return _Found(tuple(_strip(text, *span, _QUOTES) for span in spans), lines[number + 1][0], number, 0.9, "list")


def _is_term(text: str, start: int, end: int) -> bool:
    words = text[start:end].rstrip()
    short = 0 < len(words) <= _LONGEST_TERM and len(words.split()) <= _WORDS
    if not short or words[-1] in ".;,:" or words.endswith((" or", " and")):
        return False
    return (words[0].isupper() or words[0].isdigit() or words[0] in "“\"'‘") and not _LABEL.match(words + " A")


def _end(text: str, lines: Sequence[tuple[int, int]], found: _Found, limit: int) -> int:
    """Find the end of a meaning: that of its line, and of the items and sentences that continue it up to `limit`."""
    last = found.line + (found.method == "list")
    listing = False
    for number in range(last + 1, len(lines)):
        first, stop = lines[number]
        before = text[lines[number - 1][0] : first].rstrip()[-1:]
        listing = listing or before in (":", "—", "–")
        goes_on = found.method in ("headed", "list") and _GOES_ON.match(text, first, stop)
        if first >= limit or not (goes_on or (listing and (before != "." or _ITEM.match(text, first, stop)))):
            break
        last = number
    return min(lines[last][1], limit)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"[^\n]+", text):
        yield match.span()


def _after_label(text: str, start: int, end: int) -> int:
    match = _LABEL.match(text, start, end)
    return match.end() if match else start


def _strip(text: str, start: int, end: int, characters: str) -> tuple[int, int]:
    """Strip characters from both ends of [start, end)."""
    words = text[start:end]
    return start + len(words) - len(words.lstrip(characters)), start + len(words.rstrip(characters))
