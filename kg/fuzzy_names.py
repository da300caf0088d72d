"""Names that resemble a text: misspelt, in another word order, or in part. Pure, on rapidfuzz.

`Names` searches all names for each text. An index would only pay beyond some hundred thousand names: among 100,000 a
search takes 40 to 100 ms, and building a trigram index takes 3 s.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process

COMPARED: Final = 100
"""Names that each of the two fast measures proposes for the exact one."""
MOST_SIMILAR: Final = 2 * COMPARED
"""The names that a search finds at most, of which a page is shown: their order depends on how many are found."""
LEAST_WORD: Final = 75
"""Percentage of letters in common from which a word counts as another one misspelt."""


class Match(NamedTuple):
    """A name that resembles the text: the similarity from 0 to 1, the number of its owner, and the name."""

    score: float
    number: int
    name: str


_RAISED: Final = "\u00b9\u00b2\u00b3\u00bc-\u00be\u2070\u2074-\u2079\u2150-\u215f"
_BESIDE: Final = re.compile(rf"(?<=\d)(?=[{_RAISED}])|(?<=[{_RAISED}])(?=\d)")


def separate_raised(text: str) -> str:
    """Separate raised digits and fractions from the number next to them, where compatibility forms would join them."""
    return text if text.isascii() else _BESIDE.sub(" ", text)


def fold(text: str) -> str:
    """Normalize `text` for comparison: no case, accents, punctuation or repeated spaces."""
    plain = unicodedata.normalize("NFKD", separate_raised(text).casefold())
    plain = unicodedata.normalize("NFKD", plain.casefold())  # a decomposed letter can be a capital: U+A7F2
    kept = "".join(letter if letter.isalnum() else " " for letter in plain if not unicodedata.combining(letter))
    return " ".join(kept.split())


def nearest(text: str, known: Iterable[str], most: int, *, least: float = 0) -> list[str]:
    """Find at most `most` of `known` with a letter-by-letter similarity of at least `least` percent, best first."""
    found = process.extract(text, list(known), scorer=fuzz.ratio, limit=most, score_cutoff=least)
    return [name for name, _, _ in found]


class Names:
    """Names with the numbers of their owners. An owner can have several names."""

    def __init__(self, names: Sequence[tuple[int, str]]) -> None:
        self._names: Final = names
        self._folded: Final = [fold(name) for _, name in names]

    def nearest(self, text: str, most: int) -> list[Match]:
        """Find at most `most` owners with a name that resembles `text`, best first, each with its best name."""
        wanted = fold(text)
        if not wanted:
            return []
        # By letters for short names and misspellings, by whole words for parts of long names.
        positions = {
            position
            for scorer in (fuzz.ratio, fuzz.token_set_ratio)
            for _, _, position in process.extract(wanted, self._folded, scorer=scorer, limit=COMPARED)
        }
        best: dict[int, Match] = {}
        for position in sorted(positions):
            score = similarity(wanted, self._folded[position])
            owner, name = self._names[position]
            if score and (owner not in best or score > best[owner].score):
                best[owner] = Match(score, owner, name)
        return sorted(best.values(), key=lambda found: (-found.score, len(found.name), found.name))[:most]


def similarity(wanted: str, name: str) -> float:
    """Compare two folded names, letter by letter or word by word in any order: 0 to 1."""
    if wanted == name:
        return 1.0
    words, others = wanted.split(), name.split()
    found = [max((_ratio(word, other) for other in others), default=0.0) for word in words]
    by_words = sum(found) / len(found) if found else 0.0
    # Where the name has every word, the score grows with the share of the name that they make up.
    covered = min(1.0, len(wanted) / max(1, len(name)))
    return max(0.97 * _ratio(wanted, name), by_words**2 * (0.75 + 0.2 * covered))


def _ratio(one: str, other: str) -> float:
    if one != other and other.startswith(one) and len(one) > 2:
        return 0.9
    return fuzz.ratio(one, other, score_cutoff=LEAST_WORD) / 100
