"""Stems of words by language: the part that the forms of a word share. Pure functions.

Snowball has stemmers for most languages (PyStemmer). A stem loses its accents afterwards, since questions are often
typed without them; the stem of the word without its accents is another one of a text, where they differ. Related
languages share a stemmer. The others have rules without a dictionary, measured on pairs of forms of the same word (8 to
20 words each, such as law, tax and school) and on speeches: the reciprocal rank of the second half of a speech for six
words of its first half.

===================== ===== ===== ===== ===== ===== ===== ===== ===== ===== =============== ===============
pairs found              pl    cs    sk    uk    bg    hr    sl    lv    gl  rank, pl        rank, bg
===================== ===== ===== ===== ===== ===== ===== ===== ===== ===== =============== ===============
words as they are       .02   .02   0     0     0     0     0     .05   0              .196            .163
first 5 characters      .80   .56   .47   .54   .60   .57   .41   .74   .91            .229            .212
first 6 characters      .53   .34   .26   .32   .51   .33   .27   .55   .58            .225            .210
`_cut_ending`           .77   .82   .78   .94   .88   1.0   1.0   .70                  .235            .212
Snowball, own           .84   .96                                                      .228
Snowball, relative                  .67   .38   .40   .88   .60   .95   .62                            .190
===================== ===== ===== ===== ===== ===== ===== ===== ===== ===== =============== ===============

On twenty questions about Galician speeches, MRR at 10: .66 for words as they are, .71 and .73 by the Spanish and the
Portuguese stemmer, .67 by `_cut_ending`, and .77 by `_cut_number`.

Arabic and Hebrew words are written with the article, prepositions and conjunctions before them. Snowball's Arabic
stemmer keeps ``wal-``, and cuts a word with the article more than one without it. Here the article is cut, and an
ending as by the light stemmer of Larkey, Ballesteros and Connell (light10). Another clitic may be a letter of the word,
so that a text has the stems with and without it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from threading import get_ident
from typing import Final

import Stemmer

from kg.words import unjoin

_SNOWBALL: Final = {
    "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "eo": "esperanto",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr": "turkish",
    "yi": "yiddish",
    # relatives
    "bs": "serbian", "hr": "serbian", "lv": "lithuanian", "ms": "indonesian",
}  # fmt: skip
_FOLDED_FIRST: Final = frozenset(("lv",))
"""Languages whose accents the stemmer of their relative does not know."""
_LETTERS: Final = str.maketrans(
    {"æ": "ae", "ð": "d", "ø": "o", "đ": "d", "ħ": "h", "ı": "i", "ł": "l", "œ": "oe", "ß": "ss", "þ": "th", "ё": "е"}
)
_ACCENTED: Final = re.compile("[A-Za-z\u0370-\u03ff][\u0300-\u036f]+")
_LONG: Final = 6
_ENDING: Final = re.compile(
    "(?<=...)[{vowel}](?:[{consonant}]?[{vowel}]|[{consonant}]|[{vowel}][{consonant}])?$".format(
        vowel="aeiouyаеиоуыэюяїєіъь", consonant="ghjmtvвгймтх"
    )
)
"""An ending of case, number, gender or article: a vowel, and up to two letters of which one is a vowel."""
_FLEETING: Final = re.compile("(?<=[a-zа-яіїє]{2}[^aeiouyаеиоуыэюяїєіъ])(?:[eеъ](?=[ckltrклтрць]$)|[oо](?=[kк]$))")
"""A vowel at the end of the stem of a Slavic word that only some of its forms have: ``podatek``, ``podatku``."""
_MARKS: Final = re.compile("[\u0591-\u05c7\u064b-\u065f\u0670]+")
"""Vowels and other points of Hebrew and Arabic, which most texts are written without."""
_LEAST_LETTERS: Final = 3
"""Letters of a word that what looks like a clitic is removed from."""
_NUMBER: Final = re.compile("(?<=....)(?:[aeo]?s|[aeo])$")
_SCRIPTS: Final = {re.compile("[\u0620-\u06d3]"): "ar", re.compile("[\u05d0-\u05ea]"): "he"}
"""Languages by the letters of their words."""
_LAM: Final = "ل"
"""The preposition of Arabic that the article is joined to as this letter, also before a word that begins with it."""
_ARABIC: Final = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ة": "ه", "ـ": None})
_ARABIC_ENDING: Final = re.compile("(?<=..)(?:ها|ان|ات|ون|ين|يه|ه|ي)$")
_HEBREW_ENDING: Final = re.compile("(?<=...)(?:ים|ות|ה|ת)$")


def has_stemmer(language: str) -> bool:
    """Whether words of a language (primary subtag) are stemmed."""
    return language in _SNOWBALL or language in _RULES


def fold_accents(word: str) -> str:
    """Remove the accents of Latin and Greek letters, and spell letters such as ``ł`` and ``ß`` with plain ones."""
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFD", word.translate(_LETTERS))
    return unicodedata.normalize("NFC", _ACCENTED.sub(lambda found: found[0][0], plain))


def list_stems(word: str, language: str | None) -> Iterator[str]:
    """Yield the stem of a word in lower case by which it is searched, and then the others of a text with it.

    Without a language, or a stemmer for it, the stem is the word without accents. English texts, and those of unknown
    language among them, have Arabic and Hebrew words as texts in these languages.
    """
    if language == "en" and not word.isascii():
        language = next((each for letter, each in _SCRIPTS.items() if letter.match(word)), language)
    if language in _RULES:
        yield from _RULES[language](word)
        return
    if language not in _SNOWBALL:
        yield fold_accents(word)
        return
    plain = fold_accents(word)
    stem = _get_snowball(_SNOWBALL[language], get_ident()).stemWord
    for form in (plain,) if plain == word or language in _FOLDED_FIRST else (word, plain):
        found = fold_accents(stem(form))
        yield _FLEETING.sub("", found) if language == "pl" else found


@lru_cache(maxsize=256)
def _get_snowball(name: str, thread: int) -> Stemmer.Stemmer:
    """Get a stemmer of a thread: it keeps its state between calls."""
    return Stemmer.Stemmer(name, maxCacheSize=0)


def _cut_ending(word: str) -> Iterator[str]:
    """Cut up to two endings of a Slavic word, and the letters after the sixth."""
    yield _FLEETING.sub("", _ENDING.sub("", _ENDING.sub("", fold_accents(word))))[:_LONG]


def _cut_number(word: str) -> Iterator[str]:
    """Cut the endings of number and gender of a Romance language."""
    yield _NUMBER.sub("", fold_accents(word))


def _stem_arabic(word: str) -> Iterator[str]:
    return _stem_joined(_MARKS.sub("", word).translate(_ARABIC), "ar", _ARABIC_ENDING)


def _stem_hebrew(word: str) -> Iterator[str]:
    return _stem_joined(_MARKS.sub("", word), "he", _HEBREW_ENDING)


def _stem_joined(word: str, language: str, ending: re.Pattern[str]) -> Iterator[str]:
    """Cut the article, with the clitics before it, and an ending; then also other letters that look like clitics."""
    for each in (word, *(rest.word for rest in unjoin(word, language) if len(rest.word) >= _LEAST_LETTERS)):
        rests = [rest.word for rest in unjoin(each, language) if rest.has_article and len(rest.word) >= _LEAST_LETTERS]
        yield ending.sub("", rests[0] if rests else each)
        if rests and rests[0].startswith(_LAM) and len(rests[0]) > _LEAST_LETTERS:
            yield ending.sub("", rests[0][1:])  # the query may be the same word after a preposition: للجنة


_RULES: Final[dict[str | None, Callable[[str], Iterator[str]]]] = {
    **dict.fromkeys(("be", "bg", "mk", "sk", "sl", "uk"), _cut_ending),
    "ar": _stem_arabic,
    "gl": _cut_number,
    "he": _stem_hebrew,
}
