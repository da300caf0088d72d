"""The words that a question shares with passages, and its pairs of adjacent words. Pure functions.

BM25 counts words one by one. A passage with the question's words next to each other, as the question has them, is more
often about the same topic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress, pairwise, zip_longest
from typing import Final, TypeVar

from kg.fuzzy_names import fold
from kg.search.analyzers import ENGLISH, PLAIN, find_field, get_analyzer
from kg.search.tokenization import normalize, split_query, split_text
from kg.words import STOP_WORDS, singular, stem

STEM: Final = 6
_MOST_WORDS: Final = 64
"""Words of a question that are compared: a longer one has enough of them."""
_MOST_STEMS: Final = 50_000
"""Words whose stems are held."""
_MOST_FIRSTS: Final = 20_000
"""Words of a field from which on their dimensions are no longer held."""
_MOST_CHARACTERS: Final = 20_000
"""Characters of a passage that are compared."""
_STOP_WORDS: Final = STOP_WORDS["en"]
_WORD: Final = re.compile(r"\w+")
_QUOTED: Final = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]{3,})["\u201c\u201d]')
_IDENTIFIER: Final = re.compile(r"(?<!\w)(?:\d\w*+(?:[.-]\d\w*+){2,}+|[a-z]++-?\d{2}\w*+)")
"""Numbers of several parts, such as ``61-3-115``, and letters with numbers, such as ``hb1234``."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """The shares (0 to 1) of a question's pairs and words in one passage; rare words weigh more.

    `words` is 1 for a passage with a phrase that the question has in quotes, or with an identifier of the question.
    """

    pairs: float
    words: float


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """The parts of a question that are compared."""

    words: frozenset[str]
    """Stems of the words that carry its topic."""
    pairs: frozenset[tuple[str, str]]
    """Pairs of stems of words that follow each other, with the words that carry no topic: ``the loss``, ``loss of``."""
    exact: tuple[re.Pattern[str], ...] = ()
    """Phrases in quotes and identifiers."""
    spoken: tuple[str, ...] = ()
    """All words, in order."""

    def measure(self, texts: Sequence[str], languages: Sequence[str | None] = ()) -> list[Overlap]:
        """Measure the overlap with each of `texts`. How rare a word is, is measured in these texts.

        The words of a text are compared by its language (BCP 47), if it is given, as in the index.
        """
        found: list[tuple[frozenset[str], float, bool]] = []
        wanted = self.words.union(*self.pairs)
        pairs: AbstractSet[tuple[str, str]]
        for text, language in zip_longest(texts, languages):
            beginning = text[:_MOST_CHARACTERS]
            field = find_field(language)
            if field in (ENGLISH, PLAIN):
                words, wholes = split_text(beginning)
                stems, pairs = _find_both([*map(_STEMS.__getitem__, words)], wanted, self.pairs)
                having = self.words.intersection(chain(stems, map(_STEMS.__getitem__, wholes)))
            else:
                having, pairs = self._compare(beginning, field)
            plain = normalize(beginning) if self.exact else ""
            exact = any(pattern.search(plain) for pattern in self.exact)
            found.append((having, len(pairs) / len(self.pairs) if self.pairs else 0.0, exact))
        shares = find_shares(self.words, [words for words, _, _ in found])
        return [Overlap(pairs, 1.0 if exact else share) for (_, pairs, exact), share in zip(found, shares, strict=True)]

    def _compare(self, text: str, field: str) -> tuple[frozenset[str], AbstractSet[tuple[str, str]]]:
        """Compare with a text of a field that has a stemmer of its own: words and pairs that it has, as in English."""
        words, wholes = split_text(text)
        firsts = _get_firsts(field)
        own, neighbours = _stem_words(self.spoken, field)
        found, pairs = _find_both([*map(firsts.__getitem__, words)], own.keys(), neighbours.keys())
        further = [*filter(firsts.further.__contains__, words), *wholes]
        found.update(chain.from_iterable(map(get_analyzer(field).list_dimensions, further)))
        return (
            self.words.intersection(chain.from_iterable(map(own.__getitem__, found & own.keys()))),
            {*chain.from_iterable(map(neighbours.__getitem__, pairs))},
        )


_Stem = TypeVar("_Stem", bound=Hashable)


def _find_both(
    stems: Sequence[_Stem], wanted: AbstractSet[_Stem], pairs: AbstractSet[tuple[_Stem, _Stem]]
) -> tuple[set[_Stem], set[tuple[_Stem, _Stem]]]:
    """Find the stems of a text that are wanted, and pairs of them. Few are, so no pair of two others is looked up."""
    marks = bytes(map(wanted.__contains__, stems))
    both: set[tuple[_Stem, _Stem]] = set()
    at = marks.find(b"\1\1")
    while at >= 0:
        both.add((stems[at], stems[at + 1]))
        at = marks.find(b"\1\1", at + 1)
    return {*compress(stems, marks)}, both & pairs


_Dimension = int | str
"""The dimension of a word in a field, or a stop word."""


@lru_cache(maxsize=256)
def _stem_words(
    words: tuple[str, ...], field: str
) -> tuple[Mapping[_Dimension, set[str]], Mapping[tuple[_Dimension, _Dimension], set[tuple[str, str]]]]:
    """Find the stems of a question's words, and of its pairs of words, that each dimension or pair of a field means."""
    find = get_analyzer(field).list_dimensions
    own: list[tuple[str, _Dimension]] = [(to_stem(word), (find(word) or (word,))[0]) for word in words]
    stems: dict[_Dimension, set[str]] = {}
    pairs: dict[tuple[_Dimension, _Dimension], set[tuple[str, str]]] = {}
    for stem_, dimension in own:
        stems.setdefault(dimension, set()).add(stem_)
    for (one, low), (other, high) in pairwise(own):
        if one != other:
            pairs.setdefault((low, high), set()).add((one, other))
    return stems, pairs


class _Firsts(dict[str, _Dimension]):
    """The dimensions by which words are searched in a field, computed at first use. That of a stop word is itself."""

    def __init__(self, field: str) -> None:
        super().__init__()
        self._find: Final = get_analyzer(field).list_dimensions
        self.further: Final[set[str]] = set()
        """Those of the words that have several."""

    def __missing__(self, word: str) -> _Dimension:
        dimensions = self._find(word)
        if len(dimensions) > 1:
            self.further.add(word)
        found = self[word] = dimensions[0] if dimensions else word
        return found


_FIRSTS: Final[dict[str, _Firsts]] = {}


def _get_firsts(field: str) -> _Firsts:
    known = _FIRSTS.get(field)
    if known is None or len(known) >= _MOST_FIRSTS:
        known = _FIRSTS[field] = _Firsts(field)
    return known


def find_shares(wanted: AbstractSet[str], having: Sequence[AbstractSet[str]]) -> list[float]:
    """Find the share of the words `wanted` in each of some sets of words, from 0 to 1.

    Rare words weigh more. How rare a word is, is measured in these sets.
    """
    counts = Counter(word for words in having for word in words)
    # sorted, since a sum of floats depends on their order, and that of a set differs between processes
    weights = {word: math.log(1 + len(having) / (0.5 + counts[word])) for word in sorted(wanted)}
    whole = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in sorted(wanted & words)) / whole for words in having]


def _compute_stem(word: str) -> str:
    plain = word if word.isascii() else fold(word) or word
    return stem(singular(plain), STEM)


class _Stems(dict[str, str]):
    """The stems of words, computed at first use: two thirds of the time of a cached function, which keeps an order."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        found = self[word] = _compute_stem(word)
        return found


_STEMS: Final = _Stems()


def to_stem(word: str) -> str:
    """Return the letters of a word that its forms share: the first ones, without accents, of the singular."""
    return _STEMS[word]


@lru_cache(maxsize=256)
def parse_question(text: str) -> QuestionWords:
    """Parse a question into its words, pairs of words, phrases in quotes and identifiers."""
    plain = normalize(text)
    words = split_query(text)[:_MOST_WORDS]
    exact = [*_QUOTED.findall(plain), *_IDENTIFIER.findall(plain)]
    patterns = [r"\W+".join(map(re.escape, parts)) for phrase in exact if (parts := _WORD.findall(phrase))]
    return QuestionWords(
        frozenset(to_stem(word) for word in words if word not in _STOP_WORDS and (len(word) > 1 or word.isdecimal())),
        frozenset((one, other) for one, other in pairwise(map(to_stem, words)) if one != other),
        tuple(re.compile(rf"(?<!\w){pattern}(?!\w)") for pattern in patterns),
        tuple(words),
    )


NO_WORDS: Final = QuestionWords(frozenset(), frozenset())
