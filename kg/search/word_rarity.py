"""The weights of the words of a query in the fields of texts, by their rarity there. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kg.search.analyzers import find_field, get_analyzer
from kg.search.tokenization import find_words, split_query

Words = Mapping[str, tuple[Sequence[int], Sequence[float]]]
"""Words, as dimensions, and their weights, by field."""


def weigh(
    text: str,
    language: str | None,
    asked: Words,
    counted: Mapping[str, tuple[int, Sequence[int]]],
) -> Words:
    """Weigh the words of a query in a language (None: unsure), as analyzed for each field, by their rarity.

    `counted` are the texts of each field and those with each of its words. In a field of another language a word is at
    most as rare as in that of the query. Names are rare in both. Common words of the query are rare in the other
    one: a fragment in the language of the query would be its best text. In a query with capitals, words in small
    letters are no names, and do not count there at all.
    """
    rarities = {
        name: {word: _rate(counted[name][0], having) for word, having in zip(words, counted[name][1], strict=True)}
        for name, (words, _) in asked.items()
    }
    own = None if language is None else find_field(language)
    if own is not None and len(asked) > 1:
        common = _find_common(text)
        limits = own in asked and counted[own][0] > 0
        for token in split_query(text):
            most = math.inf
            if token in common:
                most = 0.0
            elif limits:
                most = max((rarities[own].get(word, 0.0) for word in _analyze(own, token)), default=0.0)
            for name in asked.keys() - {own}:
                for word in _analyze(name, token):
                    rarities[name][word] = min(rarities[name].get(word, 0.0), most)
    weighed = {
        name: {
            word: value * rarities[name][word]
            for word, value, having in zip(words, values, counted[name][1], strict=True)
            if having and rarities[name][word]
        }
        for name, (words, values) in asked.items()
    }
    return {name: ([*words], [*words.values()]) for name, words in weighed.items() if words}


def _find_common(text: str) -> frozenset[str]:
    """Find the words in small letters of a text with capitals."""
    if not any(map(str.isupper, text)):
        return frozenset()
    words = [(text[start], word) for start, _, word in find_words(text)]
    names = {word for first, word in words if not first.islower() or any(map(str.isdecimal, word))}
    return frozenset(word for _, word in words if word not in names)


def _analyze(field: str, word: str) -> Sequence[int]:
    return get_analyzer(field).list_dimensions(word)


def _rate(texts: int, having: int) -> float:
    """Compute the rarity of a word that some of the texts have."""
    return math.log1p((texts - having + 0.5) / (having + 0.5))
