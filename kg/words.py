"""Words: stop words, number (singular and plural) and stems.

Three levels of precision, each where it is worth its cost:

* `FORMS` lists the other number of a noun by rules for English, French, Spanish and Portuguese. It over-generates
  (``gases`` may be the plural of ``gas`` or ``gase``): a form that no text contains costs nothing. It never yields
  another word: ``news`` has no singular ``new``. Mentions of concepts are found with it. On 956,000 words of laws and
  debates it relates 1,813 of the 1,815 pairs of forms that simplemma relates (the others are has/have, mins/minute),
  and people/person, lives/life, leaves/leaf and sales/sale, which simplemma does not; and simplemma takes 0.4 s and
  20 MB for English, 2.9 s and 250 MB for the four languages.
* `singular` is the one singular of an English noun, by rules and exceptions. Over 1,991 words in ``-s`` of laws,
  debates and zoning codes it agrees with simplemma on 98.9 % of the tokens. Most others are nouns that it keeps on
  purpose, such as ``premises`` and ``goods``. simplemma would hold the GIL of the server for 0.4 s at its first query.
* `stem` is the start of a word. It relates ``regulated`` to ``regulation``, which a lemmatizer does not, and is free.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Final, NamedTuple

Forms = Callable[[str], Sequence[str]]
"""Maps a case-folded word to its forms of the other number: plurals of a singular, singulars of a plural."""


def to_word_set(text: str) -> frozenset[str]:
    """Split a text at white space into the set of its words."""
    return frozenset(text.split())


UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]+"
)
"""Runs of scripts that are compared by pairs of characters: Thai, Lao, Myanmar, Khmer, kana, Han, which have no spaces
between words, and Hangul, whose words have endings."""

CLITICS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "ar": (("و", "ف"), ("ب", "ك", "ل"), ("ال",)),
    "he": (("ו",), ("ש", "כש"), ("ב", "כ", "ל", "מ"), ("ה",)),
}
"""Words that are written together with the next one, by primary language tag: of each group at most one, in this order.
The last group is the article."""
_ASSIMILATED: Final = {"لال": "لل"}
"""The article after a preposition, as it is written."""


class Unjoined(NamedTuple):
    """A word without the clitics before it, which have `length` characters. Of these the last may be the article."""

    length: int
    word: str
    has_article: bool


@cache
def _joined(language: str) -> Sequence[tuple[str, str]]:
    """Return the sequences of clitics of a language as they are written, each with its article, longest first."""
    *groups, articles = (("", *group) for group in CLITICS[language])
    written = {"".join([*before, article]): article for *before, article in product(*groups, articles)}
    for apart, together in _ASSIMILATED.items():
        written |= {key.removesuffix(apart) + together: of for key, of in written.items() if key.endswith(apart)}
    return sorted(((key, of) for key, of in written.items() if key), key=lambda each: -len(each[0]))


def unjoin(word: str, language: str) -> Iterator[Unjoined]:
    """Yield the words that remain of a word without clitics, shortest first: ``طاقة``, ``الطاقة`` of ``والطاقة``.

    Letters of a word that look like a clitic are removed too: ``بطاقة`` (card) also yields ``طاقة`` (energy). So the
    caller must know the word that is left, and that it is meant. Words of one letter are not yielded.
    """
    if language in CLITICS:
        for clitics, article in _joined(language):
            if word.startswith(clitics) and len(word) > len(clitics) + 1:
                rest = word[len(clitics) :]
                yield Unjoined(len(clitics), rest, bool(article))
                if not clitics.endswith(article):
                    yield Unjoined(len(clitics), article + rest, has_article=False)


_ENGLISH_IRREGULAR: Final = {
    "man": "men", "woman": "women", "child": "children", "person": "people", "foot": "feet", "tooth": "teeth",
    "mouse": "mice", "goose": "geese", "ox": "oxen", "life": "lives", "leaf": "leaves", "shelf": "shelves",
    "half": "halves", "wolf": "wolves", "calf": "calves", "loaf": "loaves", "knife": "knives", "thief": "thieves",
    "wife": "wives", "self": "selves", "medium": "media", "datum": "data", "criterion": "criteria",
    "phenomenon": "phenomena", "index": "indices", "appendix": "appendices", "matrix": "matrices",
    "vertex": "vertices", "fungus": "fungi", "nucleus": "nuclei", "stimulus": "stimuli", "larva": "larvae",
    "alga": "algae", "bacterium": "bacteria", "stratum": "strata", "memorandum": "memoranda", "curriculum": "curricula",
}  # fmt: skip
_ENGLISH_SINGULAR: Final = {plural: singular for singular, plural in _ENGLISH_IRREGULAR.items()}
_ENGLISH_NOT_PLURAL: Final = to_word_set(
    """
    alias always arms as atlas belongings besides bias biogas brussels canvas chaos christmas cosmos customs
    diabetes does earnings ethos gas glasses goes goods grounds has headquarters honduras is its kansas lens mars
    means minutes needs news odds overseas perhaps plus premises quarters savings series species spectacles
    surroundings syngas texas this thus united wales was whereas works
    """
)
_COUNTED: Final = ("gas", "lens", "bias", "alias", "atlas", "canvas")
_IC_PLURALS: Final = to_word_set(
    """
    antibiotics ceramics characteristics clinics critics epidemics fabrics mechanics metrics pandemics plastics
    relics republics topics
    """
)
_HISSING: Final = ("s", "x", "z", "ch", "sh")


def _is_consonant(char: str) -> bool:
    return char.isalpha() and char not in "aeiou"


def _english(word: str) -> list[str]:
    if word in _ENGLISH_IRREGULAR:
        return [_ENGLISH_IRREGULAR[word], *_english_plural(word)]
    if word in _ENGLISH_SINGULAR:
        return [_ENGLISH_SINGULAR[word]]
    return _english_singular(word) or _english_plural(word)


def _english_plural(word: str) -> list[str]:
    if word.endswith("ics") or (word in _ENGLISH_NOT_PLURAL and not word.endswith(_COUNTED)):
        return []
    if word.endswith("is") and len(word) > 4:
        return [word[:-2] + "es"]
    if word.endswith(_HISSING):
        return [word + "es"]
    if word.endswith("y") and len(word) > 2 and _is_consonant(word[-2]):
        return [word[:-1] + "ies"]
    if word.endswith("o") and len(word) > 2 and _is_consonant(word[-2]):
        return [word + "s", word + "es"]
    return [word + "s"]


def _english_singular(word: str) -> list[str]:
    if not word.endswith("s") or len(word) < 4 or word in _ENGLISH_NOT_PLURAL or word.endswith(("ss", "us", "is")):
        return []
    if word.endswith("ics") and word not in _IC_PLURALS:
        return []
    if word.endswith("ies"):
        return [word[:-3] + "y", word[:-1]] if len(word) > 4 else [word[:-1]]
    if word.endswith("ses"):
        return [word[:-1], *([word[:-2], word[:-2] + "is"] if len(word) > 4 else [])]
    if word.endswith(("xes", "zes", "ches", "shes", "oes")):
        return [word[:-1], *([word[:-2]] if len(word) > 4 else [])]
    return [word[:-1]]


def is_plural(word: str) -> bool:
    """Whether a case-folded English word that ends in ``s`` is the plural of another one."""
    return bool(_english_singular(word))


_SINGULARS: Final = {
    **{plural: singular for plural, singular in _ENGLISH_SINGULAR.items() if plural not in {"data", "media"}},
    **{word: word for word in to_word_set("""
        afterwards arrears asbestos backwards onwards ourselves outdoors remains sometimes thanks themselves towards
        """)},
    **{f"{word}es": word for word in to_word_set("alias atlas bias canvas gas lens mass")},
    **{f"{word}s": word for word in to_word_set("ache avalanche cache canoe headache horseshoe niche shoe toe")},
    **{f"{word}es": f"{word}is" for word in to_word_set("analys bas cris diagnos hypothes oas parenthes synthes thes")},
    "adus": "adu", "axes": "axis", "bases": "base", "menus": "menu", "mins": "min", "monies": "money",
    "poles": "pole", "sales": "sale",
}  # fmt: skip
"""Singulars that the rules of `singular` miss."""
_USE: Final = re.compile(r"(?:[ao]|\A(?:ab|mis|re|ref|f|r|acc|exc)?)uses\Z")
"""Plurals in ``-uses`` of words in ``-use``; the others, such as ``statuses``, are of words in ``-us``."""


@lru_cache(maxsize=10_000)
def singular(word: str) -> str:
    """Return the singular of an English noun in lower case; the word itself if it is not a plural."""
    if word in _SINGULARS:
        return _SINGULARS[word]
    if not is_plural(word):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith("uses"):
        return word[:-1] if _USE.search(word) else word[:-2]
    return word[:-2] if word.endswith(("sses", "xes", "zzes", "ches", "shes", "oes")) else word[:-1]


def _french(word: str) -> list[str]:
    if word.endswith("eaux"):
        return [word[:-1]]
    if word.endswith("aux") and len(word) > 4:
        return [word[:-3] + "al", word[:-3] + "ail", word[:-1]]
    if word.endswith(("eux", "oux")) and len(word) > 4:
        return [word[:-1]]
    if word.endswith("s"):
        return [word[:-1]] if len(word) > 3 else []
    if word.endswith(("x", "z")):
        return []
    if word.endswith("al"):
        return [word[:-2] + "aux", word + "s"]
    if word.endswith(("eau", "eu", "au")):
        return [word + "x", word + "s"]
    return [word + "s"]


_SPANISH_ACCENTS: Final = (
    ("ón", "ones"),
    ("án", "anes"),
    ("ín", "ines"),
    ("és", "eses"),
    ("ún", "unes"),
    ("én", "enes"),
)


def _spanish(word: str) -> list[str]:
    for singular, plural in _SPANISH_ACCENTS:
        if word.endswith(plural) and len(word) > 5:
            return [word[: -len(plural)] + singular, word[:-2], word[:-1]]
        if word.endswith(singular):
            return [word[: -len(singular)] + plural]
    if word.endswith("ces") and len(word) > 4:
        return [word[:-3] + "z", word[:-1]]
    if word.endswith("es") and len(word) > 4:
        return [word[:-2], word[:-1]]
    if word.endswith("s"):
        return [word[:-1]] if len(word) > 3 else []
    if word.endswith("z"):
        return [word[:-1] + "ces"]
    return [word + "s"] if word[-1:] in "aeiouáéíóú" else [word + "es"]


_PORTUGUESE: Final = (
    ("ão", ("ões", "ãos", "ães")), ("al", ("ais",)), ("el", ("éis", "eis")), ("ol", ("óis",)), ("ul", ("uis",)),
    ("il", ("is", "eis")), ("m", ("ns",)), ("r", ("res",)), ("z", ("zes",)), ("ês", ("eses",)),
)  # fmt: skip


def _portuguese(word: str) -> list[str]:
    found = []
    for singular, plurals in _PORTUGUESE:
        if word.endswith(singular) and len(word) > 2:
            found += [word[: -len(singular)] + plural for plural in plurals]
        found += [word[: -len(plural)] + singular for plural in plurals if word.endswith(plural) and len(word) > 4]
    if word.endswith("s"):
        found += [word[:-1]] if len(word) > 3 else []
    elif not found:
        found.append(word + "s")
    return found


IRREGULAR: Final = frozenset({*_ENGLISH_IRREGULAR, *_ENGLISH_SINGULAR})
"""Words of which only the first letter is the same in singular and plural."""

FORMS: Final[dict[str, Forms]] = {"en": _english, "fr": _french, "es": _spanish, "pt": _portuguese}
"""By primary language tag. Names in other languages are not inflected."""

AGREEING: Final = frozenset({"fr", "es", "pt"})
"""Languages whose adjectives agree with their noun in number."""

AND: Final = {"en": "and", "fr": "et", "es": "y", "pt": "e", "de": "und", "it": "e"}
"""The word that ``&`` is read as."""

LINKS: Final = {
    "en": to_word_set("against and at by for from in of on or per to under with"),
    "fr": to_word_set("au aux d dans de des du en et l la le les ou par pour sur à"),
    "es": to_word_set("a al con de del el en la las los o para por sobre y"),
    "pt": to_word_set("a ao as com da das de do dos e em na nas no nos o os ou para por sobre"),
}
"""Words between two noun phrases, each of which has its own number."""

STOP_WORDS: Final = {
    "en": to_word_set(
        """
        a about above act after again against aid all also am an and any are as at be because been before being
        below between both but by can cannot could did do does doing down during each either else ever every few for
        from further get had has have having he her here hers him his how i if in into is it its itself just let
        like may me might more most must my new no nor not now of off on once one only or other our out over own per
        same shall she should so some such than that the their them then there these they this those through thus to
        too under until up upon us use very via was we were what when where whether which while who whom whose why
        will with within without would yes yet you your
        """
    ),
    "fr": to_word_set(
        """
        au aux avec car ce ces cette comme dans de des donc du elle elles en entre est et eux il ils je la le les
        leur leurs lui ma mais me mes moi mon même ne ni nos notre nous on or ou où par pas plus pour qu que qui sa
        sans se ses si son sont sous sur ta te tes toi ton tous tout toute tu un une vos votre vous y à été être
        """
    ),
    "es": to_word_set(
        """
        a al ante bajo cada como con cual cuando de del desde donde dos e el ella ellas ellos en entre era es esa
        ese eso esta estas este esto estos fue ha hay la las le les lo los me mi muy más ni no nos o otra otro para
        pero por que quien se según ser si sin sobre son su sus también tan te todo todos tu un una uno y ya yo
        """
    ),
    "pt": to_word_set(
        """
        a ao aos as até com como da das de dela dele do dos e ela elas ele eles em entre era essa esse esta este eu
        foi há isso já lhe mais mas me mesmo meu minha muito na nas nem no nos não nós o os ou para pela pelo por
        qual quando que quem se sem ser seu sua são só também te tem um uma você à às é
        """
    ),
    "de": to_word_set(
        """
        aber als am an auch auf aus bei bin bis da das dass dem den der des die doch du durch ein eine einem einen
        einer es für hat ich ihr im in ist ja kann mit nach nicht noch nur ob oder sich sie sind so um und uns vom
        von vor war was weil wenn wer wie wir wird zu zum zur
        """
    ),
}


def is_stop_word(word: str, language: str) -> bool:
    """Whether a case-folded word is a stop word of `language`, or of any known language if that is ``""``."""
    if language:
        return word in STOP_WORDS.get(language, ())
    return any(word in words for words in STOP_WORDS.values())


_COMMON: Final = to_word_set(
    """
    a an and any are as at be been by do does for from has have how i if in into is it its list may me more must no
    not of on or other per shall show such than that the their them there these they this those to under was were
    what when where which who whose will with within all each every
    """
)
"""Words that do not show the topic of a sentence or a question. Fewer than the stop words of names: a topic may be
``use``, ``new`` or ``now``."""


def stem(word: str, length: int = 5) -> str:
    """Return the first characters of a case-folded word: those that its forms share."""
    return word[:length]


def stems(text: str) -> list[str]:
    """Return the stems of the words of case-folded `text`, without words that do not show what it is about."""
    return [stem(word) for word in re.findall(r"\w+", text) if word not in _COMMON]
