"""Text as tokens, with offsets into the verbatim text.

A token is a word, one character of a script without spaces (Han, Hiragana, Thai, Lao, Khmer, Myanmar), or one other
character. White space, apostrophes, and hyphens or en dashes between two words are not tokens: ``low-carbon``,
``low carbon`` and the same with a line break have equal tokens. Offsets are those of tokens in the verbatim text, so
folding for comparison does not shift them.
"""

from __future__ import annotations

import re
import string
import unicodedata
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

_IGNORED: Final = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
"""Soft hyphen, joiners, direction marks and variation selectors: ignored within words."""
_POINTS: Final = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]"
)
"""Vowel signs of Arabic and Hebrew, and tatweel: few texts write them."""
_ALEFS: Final = str.maketrans("أإآٱ", "اااا")
"""Forms of the alef, which many texts write without its sign."""
_APOSTROPHES: Final = "'`\u00b4\u02bc\u2018\u2019\u201b\u2032\uff07"
_HYPHENS: Final = "\\-\u2010\u2011"
_JOINING: Final = _HYPHENS + "\u2012\u2013\u2212\ufe63\uff0d"
_RAISED: Final = "\u00b2\u00b3\u00b9\u2070\u2074-\u207f"
"""Superscripts are separate tokens, since a footnote mark is not part of the preceding word."""
_UNSPACED: Final = (
    "\u0e01-\u0e33\u0e40-\u0e46\u0e81-\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3"
    "\u2e80-\u2fdf\u3005-\u3007\u3041-\u3096\u309d-\u309f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_CHARACTER: Final = re.compile(f"[{_UNSPACED}]")
_CHARACTERS_A_WORD: Final = 3
"""Characters of a script without spaces that count as a word. Words of Thai have some four, of Chinese two."""
_PUNCTUATION: Final = "".join(set(string.punctuation) - set("-'`"))
_DOTTED: Final = re.compile(r"\.[0-9A-Za-z]\.")
_LONGEST: Final = 200
"""Maximum characters of a compound, so that text without spaces is not read repeatedly."""
_OTHER_SCRIPTS: Final = "\U00010000-\U0001efff"


def _ranges(wanted: Callable[[str], bool]) -> str:
    """Build the inside of a regular expression's character class with the `wanted` characters of the basic plane."""
    found: list[list[int]] = []
    for code in range(0x80, 0x10000):
        if wanted(chr(code)):
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    raised = re.compile(f"[{_RAISED}]")
    ignored, apostrophe = re.compile(f"[{_IGNORED}]"), re.compile(f"[{_APOSTROPHES}]")

    def in_words(char: str) -> bool:
        if _CHARACTER.match(char) or raised.match(char) or apostrophe.match(char):
            return False
        return unicodedata.category(char)[0] in "LMN" or ignored.match(char) is not None

    marks = _ranges(lambda char: unicodedata.category(char)[0] == "M" or ignored.match(char) is not None)
    letters = f"0-9A-Za-z{_ranges(in_words)}{_OTHER_SCRIPTS}"
    word = f"[{letters}]+"
    known = f"{letters}{_UNSPACED}{_JOINING}{_APOSTROPHES}"
    token = re.compile(
        f"{word}|[{_UNSPACED}][{marks}]*|[^\\s{known}]"
        f"|(?<![{letters}])[{_JOINING}]|[\u2012\u2013\u2212\ufe63\uff0d](?![{letters}])"
        f"|[{_HYPHENS}](?!\\s*[{letters}])"
    )
    compound = re.compile(
        f"(?<![{letters}]){word}+(?:(?:[{_HYPHENS}]\\s*+|(?<=\u00ad)\\s++){word}+)+"
        f"|(?<![{letters}])(?:(?![{_IGNORED}])[{letters}]\\.){{2,}}[{letters}]?(?![{letters}])"
    )
    joint = re.compile(f"[{_HYPHENS}]\\s*[{letters}]|\u00ad\\s|\\.[{letters}]\\.")
    return token, compound, joint, re.compile(f"(?:[{_IGNORED}]++[\\s{_HYPHENS}]*+)++")


def count_words(found: Sequence[str]) -> int:
    """Count the words of the tokens of a text; in a script without spaces, by its characters."""
    characters = sum(not token.isascii() and _CHARACTER.match(token) is not None for token in found)
    return len(found) - characters + -(-characters // _CHARACTERS_A_WORD)


Span = tuple[int, int]
"""Offsets: ``text[start:end]``."""


def tokenize(text: str) -> list[str]:
    """Split a text into its tokens, verbatim and in order."""
    if text.isascii() and "-" not in text:
        spaced = text.replace("\n", " ")
        if spaced.isprintable():  # most text: three times as fast as the pattern, with the same result
            for mark in _PUNCTUATION:
                if mark in spaced:
                    spaced = spaced.replace(mark, f" {mark} ")
            return spaced.replace("'", " ").replace("`", " ").split()
    return _patterns()[0].findall(text)


def token_spans(text: str, found: Sequence[str], count: int) -> list[Span]:
    """Return the offsets of the first `count` of the tokens `found` of `text`.

    No character between two tokens can begin a token, so each token starts at its first occurrence after the last.
    """
    spans = []
    end = 0
    for token in found[:count]:
        start = text.index(token, end)
        end = start + len(token)
        spans.append((start, end))
    return spans


def trim(text: str, start: int, end: int) -> Span:
    """Trim ignored characters (joiners, direction marks) from the edges of ``text[start:end]``.

    A hyphen next to such a character is trimmed too.
    """
    edges = _patterns()[3]
    if edge := edges.match(text, start, end):
        start = edge.end()
    reversed_ = text[start:end][::-1]
    if edge := edges.match(reversed_):
        end -= edge.end()
    return start, end


def find_compounds(text: str) -> Iterator[Span]:
    """Yield the offsets of words that may be one word: hyphenated, broken at a line end, or dotted (``U.S.A.``)."""
    if text.isascii() and "-" not in text and not _DOTTED.search(text):
        return
    _, compound, joint, _ = _patterns()
    place = joint.search(text)
    while place is not None:
        # The compound around the joint begins after the last white space before it.
        start, first = place.start(), max(0, place.start() - _LONGEST)
        while start > first and not text[start - 1].isspace():
            start -= 1
        found = compound.search(text, start, min(place.end() + _LONGEST, len(text)))
        if found is None:
            place = joint.search(text, place.end())
            continue
        if found.end() > place.start():
            yield found.span()
        place = joint.search(text, max(found.end() - 1, place.end()))


def join_compound(text: str) -> str:
    """Join a compound into a single word."""
    return "".join(char for char in text if unicodedata.category(char) != "Pd" and char != "." and not char.isspace())


def normalize(token: str) -> str:
    """Return the NFKC form of a token without ignored characters; the case is kept."""
    if token.isascii():
        return token
    return unicodedata.normalize("NFKC", _patterns()[3].sub("", token))


def fold(token: str) -> str:
    """Return the form of a token for comparison, independent of case, ligatures, composition and vowel signs."""
    if token.isascii():
        return token.lower()
    folded = unicodedata.normalize("NFKC", normalize(token).casefold())
    return _POINTS.sub("", folded).translate(_ALEFS) if folded >= "\u0590" else folded


class DisjointSpans:
    """Spans that do not overlap, in the order of their places. To add one takes no longer if there are many."""

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def add(self, start: int, end: int) -> bool:
        """Add a span that is not empty, if it overlaps no other; return whether it was added."""
        at = bisect(self._spans, (start, end))
        if at < len(self._spans) and self._spans[at][0] < end:
            return False
        if at and self._spans[at - 1][1] > start:
            return False
        self._spans.insert(at, (start, end))
        return True
