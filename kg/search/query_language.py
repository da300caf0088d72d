"""The language of a query, from its letters and from the words of the index. Pure, apart from the detector's model.

Two witnesses are multiplied: the probabilities of py3langid, and for each word the share of the texts of a language
that have it. Names do not count in the second: a word with a capital is not looked up. What stays below `LEAST` is
unsure, and the query is compared with texts of all languages.

Measured with an index of English, Spanish, German, Russian, Chinese, Polish, Bulgarian, Danish and Galician texts, with
one of English texts alone, and without counts. Right and wrong; the others are unsure:

============================================= ============ ============ ============
queries                                         nine         English      no counts
============================================= ============ ============ ============
1,490 XQuAD questions, five languages          .983  0      .906  0      .888  0
the same in lower case, without accents        .995  0      .872  .001   .863  .001
800 questions and claims in English            .993  0      .993  0      .978  0
2 and 3 words of English texts                 .870 .955 0  .905 .960 0  .15  .32  0
1 word of an English text                      .065  0      .070  0      0     0
2 and 3 words of the other texts               .74  .89     .31  .47     .31   .47
\\                                             .007 .004    .001 0       0     0
48 names, codes and international words        0     0      0     0      0     0
============================================= ============ ============ ============

A language that the index does not have can be taken for a near relative: where Spanish is the only one except English,
.34 of two Galician words are Spanish, which most of them are too. Of stemmed words English and French ones fall
together (``taxe carbone``), so they weigh less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kg.search.analyzers import PLAIN, find_language, get_analyzer
from kg.search.tokenization import normalize
from kg.words import UNSPACED, to_word_set

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

Counts = Callable[[Sequence[str]], Mapping[str, tuple[int, Sequence[int]]]]
"""Counts words in the index: by field, the number of its texts, and the number of those with each word."""

LEAST: Final = 0.9
"""Minimum probability of a language."""
_COMMON: Final = 0.05
"""Share of the texts of a language that has a word above which it counts as such; also that of stop words."""
_CHANCE: Final = 0.0005
"""Share of the texts of an unknown language that has a word, and with `_FEW` the prior of a known one."""
_FEW: Final = 200
_MOST: Final = 50.0
"""How many times likelier than by chance one word makes a language."""
_MOST_STEMMED: Final = 8.0
"""The same of a word that the analyzer of the language changes: another language's word may have the same stem."""
_WORDS: Final = 16
"""Words that are looked up."""
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_NOT_LATIN: Final = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
LANGUAGES: Final = to_word_set(
    """
    ar az be bg bn ca cs cy da de el en es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk km ko lo lt lv mk ml mr
    my ne nl no pl pt ro ru sk sl sq sr sv sw ta te th tr uk ur uz vi zh
    """
)
"""The languages that a query can be in. Regional relatives, such as Venetian, would take the probability of these."""


def detect_query_language(text: str, counts: Counts | None = None) -> str | None:
    """Detect the language of a query (BCP 47 primary subtag); None if it is not sure."""
    if not _WORD.search(text):
        return None
    likely = {language: math.log(max(float(share), 1e-9)) for language, share in _identifier().rank(text)}
    words = [word for word in _WORD.findall(text) if not word[0].isupper() and not UNSPACED.search(word)]
    words = list(dict.fromkeys(words))[:_WORDS]
    if words and counts is not None:
        normal = [*map(normalize, words)]
        plain = [*map(get_analyzer(PLAIN).list_dimensions, normal)]
        for field, (texts, having) in counts(words).items():
            language = find_language(field)
            if language in likely:
                own = map(get_analyzer(field).list_dimensions, normal)
                likely[language] += sum(
                    _weigh(texts, number, is_stop_word=not of_field, is_stemmed=of_field[:1] != as_it_is)
                    for number, of_field, as_it_is in zip(having, own, plain, strict=True)
                )
    best = max(likely, key=likely.__getitem__)
    whole = sum(math.exp(each - likely[best]) for each in likely.values())
    return best if 1 / whole >= LEAST else None


def is_latin(text: str) -> bool:
    """Whether all letters of a text are Latin."""
    return _NOT_LATIN.search(text) is None


def _weigh(texts: int, having: int, *, is_stop_word: bool, is_stemmed: bool) -> float:
    """Weigh a word as evidence for a language, of whose texts it is in some: the logarithm of the ratio to chance."""
    share = _COMMON if is_stop_word else min((having + _FEW * _CHANCE) / (texts + _FEW), _COMMON)
    most = math.log(_MOST_STEMMED if is_stemmed and not is_stop_word else _MOST)
    return max(-math.log(_MOST), min(most, math.log(share / _CHANCE)))


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    # The model takes half a second to load and 90 MB, so that a process that answers no query does not load it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(sorted(LANGUAGES))
    return identifier
