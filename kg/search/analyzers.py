"""Analysis of texts for BM25 by language: the field of the index that a text is in, with its stop words and stemmer.

A field is a sparse vector: the weight of each word of a text by BM25, without the rarity of the word, which the index
multiplies at a query. The length of texts is compared with a fixed one, so a weight depends on the text alone.

A field has one analyzer, so each language with a stemmer (`kg.search.stemmers`) has a field of its own. English texts,
and those of unknown language, are in `ENGLISH`. Texts of a language without a stemmer are in `PLAIN`, where words match
as they are, apart from case and accents. A query is analyzed for each field that the index has.

In a common field, words of another language are rare, so they count for more than they should: nDCG@10 of BM25 on
12,988 English passages is 0.6594, and 0.6565 with 3,837 German and Galician ones in the same field. A search of three
fields takes 10.5 ms of processor time where one takes 7.0 ms.

The analysis is that of `kg.search.tokenization` and `kg.search.stemmers`, not the one of Qdrant Edge, which has 18
stemmers and sees neither broken words nor numbers in groups. On 800 questions and 531 claims in English, nDCG@10 of
BM25 is .6931 and .3431 (.6923 and .3431 by Qdrant Edge). A text takes 55 microseconds (22).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final
from zlib import crc32

import qdrant_edge as qe

from kg.languages import UNKNOWN, find_primary
from kg.search.stemmers import fold_accents, has_stemmer, list_stems
from kg.search.tokenization import split_query, split_text
from kg.words import STOP_WORDS

ENGLISH: Final = "search"
PLAIN: Final = "search_plain"

K: Final = 0.9
B: Final = 0.4
"""nDCG@10 on regulation passages, fused: 0.706, and 0.698 with the usual k 1.2, b 0.75."""
MEAN_WORDS: Final = 18.0
"""Length of a text, in words without stop words, at which its length neither raises nor lowers its score.

nDCG@10 of BM25 alone on 800 questions about regulations and 266 claims about climate (`tests.benchmarks.corpora`), and
with the mean length of the texts in the index:

======== ====== ====== ====== ====== ====== ====== ==============
length        8     12     16     22     30     60  mean of index
======== ====== ====== ====== ====== ====== ====== ==============
obliqa    0.667  0.683  0.690  0.688  0.681  0.660          0.676
climate   0.366  0.357  0.351  0.344  0.335  0.327          0.347
======== ====== ====== ====== ====== ====== ====== ==============
"""

_STOP_WORDS: Final = {
    "ar": "Arabic", "az": "Azerbaijani", "bn": "Bengali", "ca": "Catalan", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "eu": "Basque", "fi": "Finnish", "fr": "French", "he": "Hebrew",
    "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sl": "Slovene", "sv": "Swedish", "tr": "Turkish",
}  # fmt: skip
"""The languages whose stop words Qdrant Edge has, by primary subtag."""
_MOST_WORDS: Final = 50_000
"""Words whose dimensions are held by field: some 10 MB."""


def find_field(language: str | None) -> str:
    """Return the field for a text in `language` (BCP 47), None if it is unknown."""
    primary = find_primary(language)
    if primary in (UNKNOWN, "en"):
        return ENGLISH
    return f"{ENGLISH}_{primary}" if has_stemmer(primary) else PLAIN


def find_language(field: str) -> str | None:
    """Return the language (primary subtag) of the texts of a field; None for `PLAIN`, which has several."""
    if field == PLAIN:
        return None
    return "en" if field == ENGLISH else field.removeprefix(f"{ENGLISH}_")


def is_foreign(language: str | None) -> bool:
    """Whether a text in `language` is known to be in another language than English."""
    return find_field(language) != ENGLISH


class Analyzer:
    """The analyzer of a field: texts and queries as sparse vectors of their words, of which each is a dimension."""

    def __init__(self, field: str) -> None:
        self.list_dimensions: Final[Callable[[str], Sequence[int]]] = _Dimensions(find_language(field)).__getitem__
        """Lists the dimensions of a normalized word: first that by which it is searched. None for a stop word."""

    def embed_document(self, text: str) -> qe.SparseVector:
        """Weigh the words of a text by BM25. Wholes of words in pieces, and further stems, do not make it longer."""
        words, wholes = split_text(text)
        find = self.list_dimensions
        found = [dimensions for word in words if (dimensions := find(word))]
        counts: dict[int, int] = Counter([dimensions[0] for dimensions in found])
        others = {each for dimensions in found if len(dimensions) > 1 for each in dimensions}
        others.update(each for whole in wholes for each in find(whole))
        norm = K * (1 - B + B * len(found) / MEAN_WORDS)
        weights = {each: count * (K + 1) / (count + norm) for each, count in counts.items()}
        weights |= dict.fromkeys(others - counts.keys(), (K + 1) / (1 + norm))
        indices = sorted(weights)
        return qe.SparseVector(indices, [*map(weights.__getitem__, indices)])

    def embed_query(self, text: str) -> qe.SparseVector:
        """Weigh the words of a query: each counts once."""
        found = filter(None, map(self.list_dimensions, split_query(text)))
        indices = sorted({first for first, *_ in found})
        return qe.SparseVector(indices, [1.0] * len(indices))


class _Dimensions(dict[str, tuple[int, ...]]):
    """The dimensions of words in a language: that by which it is searched first. None for a stop word."""

    def __init__(self, language: str | None) -> None:
        super().__init__()
        self._language: Final = language
        own = STOP_WORDS.get(language or "", frozenset()) if language != "en" else frozenset()
        self._stop_words: Final = own.union(map(fold_accents, own))
        name = _STOP_WORDS.get(language or "")
        # The lists of Qdrant Edge cannot be read: a stop word is one of which its analyzer leaves nothing.
        self._known: Final = qe.Bm25(
            qe.Bm25Config(
                tokenizer=qe.TokenizerType.Whitespace,
                ascii_folding=False,
                stopwords=qe.StopwordsSet() if name is None else getattr(qe.Language, name),
                stemmer=qe.DisabledStemmer(),
            )
        )

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= _MOST_WORDS:
            self.clear()
        is_stop_word = word in self._stop_words or not self._known.embed_query(word).indices
        stems = () if is_stop_word else list_stems(word, self._language)
        found = self[word] = tuple(dict.fromkeys(crc32(each.encode()) for each in stems))
        return found


@cache
def get_analyzer(field: str) -> Analyzer:
    """Get the analyzer of a field."""
    return Analyzer(field)
