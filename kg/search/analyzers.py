"""Analysis of texts for BM25 by language: the field of the index that a text is in, with its stop words and stemmer.

A field is a sparse vector: the weight of each word of a text by BM25, without the rarity of the word, which the index
multiplies at a query. The length of texts is compared with a fixed one, so a weight depends on the text alone.

A field has one analyzer, so each language with a stemmer has a field of its own. English texts, and those of unknown
language, are in `ENGLISH`. Texts of a language without a stemmer are in `PLAIN`, where words match as they are, apart
from case and accents. A query is analyzed for each field that the index has.

BM25 on 12,988 English passages with 3,837 German and Galician ones (`tests.benchmarks.corpora`, two parliaments):

==================================== ============== ============= ===============
one field for all, or one for each    nDCG@10, en    MRR@10, de    MRR@10, gl
==================================== ============== ============= ===============
English alone                         0.6594
a field for each language             0.6594         0.804         0.627
one field, stemmed as English         0.6565         0.762         0.696
one field, German stemmed before      0.6563         0.796         0.696
==================================== ============== ============= ===============

Words of another language are rare in a common field, so they count for more than they should. A search of three fields
takes 10.5 ms of processor time where one takes 7.0 ms.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import qdrant_edge as qe

from kg.fuzzy_names import fold
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

_UNKNOWN: Final = frozenset(("", "und", "mul", "zxx"))
"""Tags that name no language (BCP 47); the first is that of a text without one."""
STEMMERS: Final = {
    "ar": "Arabic", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "fi": "Finnish",
    "fr": "French", "hu": "Hungarian", "hy": "Armenian", "it": "Italian", "nl": "Dutch", "no": "Norwegian",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "ta": "Tamil", "tr": "Turkish",
}  # fmt: skip
"""The languages with a Snowball stemmer in Qdrant Edge, by primary subtag."""
_SAME: Final = {"nb": "no", "nn": "no"}
"""Languages that share a stemmer, and so a field."""


def find_field(language: str | None) -> str:
    """Return the field for a text in `language` (BCP 47), None if it is unknown."""
    primary = (language or "").partition("-")[0].casefold()
    primary = _SAME.get(primary, primary)
    if primary in _UNKNOWN or primary == "en":
        return ENGLISH
    return f"{ENGLISH}_{primary}" if primary in STEMMERS else PLAIN


def find_language(field: str) -> str | None:
    """Return the language (primary subtag) of the texts of a field; None for `PLAIN`, which has several."""
    found = get_stemmer(field)
    return None if found is None else found[0]


def is_foreign(language: str | None) -> bool:
    """Whether a text in `language` is known to be in another language than English."""
    return find_field(language) != ENGLISH


@cache
def get_analyzer(field: str) -> qe.Bm25:
    """Get the analyzer of a field: texts and queries as sparse vectors of their words."""
    stop_words: qe.Stopwords = qe.StopwordsSet()
    stemmer: qe.StemmingAlgorithm = qe.DisabledStemmer()
    if (found := get_stemmer(field)) is not None:
        language, name = found
        stemmer = qe.SnowballParams(getattr(qe.SnowballLanguage, name))
        known = getattr(qe.Language, name, None)
        own = {form for word in STOP_WORDS.get(language, ()) for form in (word, fold(word))}
        stop_words = qe.Language.English if language == "en" else qe.StopwordsSet({known} if known else set(), own)
    return qe.Bm25(
        qe.Bm25Config(
            k=K,
            b=B,
            avg_len=MEAN_WORDS,
            # Multilingual would split Chinese and Thai, but costs 0.015 nDCG@10 in English; `to_searchable` splits them
            tokenizer=qe.TokenizerType.Word,
            lowercase=True,
            ascii_folding=True,
            stopwords=stop_words,
            stemmer=stemmer,
        )
    )


def get_stemmer(field: str) -> tuple[str, str] | None:
    """Return the primary subtag of the language of a field, and the name of its stemmer; None for `PLAIN`."""
    language = "en" if field == ENGLISH else field.removeprefix(f"{ENGLISH}_")
    return None if field == PLAIN else (language, STEMMERS[language])
