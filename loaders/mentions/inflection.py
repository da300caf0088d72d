"""Number and stop words, for the languages in which names are inflected: English, French, Spanish, Portuguese.

Both directions over-generate (``gases`` may be the plural of ``gas`` and of ``gase``): a form that no text has costs
nothing. What must not be made is another word: ``news`` has no singular ``new``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

Forms = Callable[[str], Sequence[str]]
"""From a folded word to the other number's forms of it: plurals of a singular, singulars of a plural."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
_ENGLISH_NOT_PLURAL: Final = _words(
    """
    alias always arms as atlas belongings besides bias biogas brussels canvas chaos christmas cosmos customs
    diabetes does earnings ethos gas glasses goes goods grounds has headquarters honduras is its kansas lens mars
    means minutes needs news odds overseas perhaps plus premises quarters savings series species spectacles
    surroundings syngas texas this thus united wales was whereas works
    """
)
_COUNTED: Final = ("gas", "lens", "bias", "alias", "atlas", "canvas")
_IC_PLURALS: Final = _words(
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
    """Say whether a folded English word that ends in ``s`` is the plural of another one."""
    return bool(_english_singular(word))


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
"""Words whose other number may have no more than the first letter in common with them."""

FORMS: Final[dict[str, Forms]] = {"en": _english, "fr": _french, "es": _spanish, "pt": _portuguese}
"""By primary language tag. Names in other languages are looked for as they are given."""

AGREEING: Final = frozenset({"fr", "es", "pt"})
"""Languages whose adjectives are in the plural with their noun."""

AND: Final = {"en": "and", "fr": "et", "es": "y", "pt": "e", "de": "und", "it": "e"}
"""What ``&`` is read as."""

LINKS: Final = {
    "en": _words("against and at by for from in of on or per to under with"),
    "fr": _words("au aux d dans de des du en et l la le les ou par pour sur à"),
    "es": _words("a al con de del el en la las los o para por sobre y"),
    "pt": _words("a ao as com da das de do dos e em na nas no nos o os ou para por sobre"),
}
"""Words that end one noun phrase and begin another: on each side, the noun has its own number."""

STOP_WORDS: Final = {
    "en": _words(
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
    "fr": _words(
        """
        au aux avec car ce ces cette comme dans de des donc du elle elles en entre est et eux il ils je la le les
        leur leurs lui ma mais me mes moi mon même ne ni nos notre nous on or ou où par pas plus pour qu que qui sa
        sans se ses si son sont sous sur ta te tes toi ton tous tout toute tu un une vos votre vous y à été être
        """
    ),
    "es": _words(
        """
        a al ante bajo cada como con cual cuando de del desde donde dos e el ella ellas ellos en entre era es esa
        ese eso esta estas este esto estos fue ha hay la las le les lo los me mi muy más ni no nos o otra otro para
        pero por que quien se según ser si sin sobre son su sus también tan te todo todos tu un una uno y ya yo
        """
    ),
    "pt": _words(
        """
        a ao aos as até com como da das de dela dele do dos e ela elas ele eles em entre era essa esse esta este eu
        foi há isso já lhe mais mas me mesmo meu minha muito na nas nem no nos não nós o os ou para pela pelo por
        qual quando que quem se sem ser seu sua são só também te tem um uma você à às é
        """
    ),
    "de": _words(
        """
        aber als am an auch auf aus bei bin bis da das dass dem den der des die doch du durch ein eine einem einen
        einer es für hat ich ihr im in ist ja kann mit nach nicht noch nur ob oder sich sie sind so um und uns vom
        von vor war was weil wenn wer wie wir wird zu zum zur
        """
    ),
}


def is_stop_word(word: str, language: str) -> bool:
    """Say whether a folded word has no meaning of its own in a language, or, where it is "", in any known one."""
    if language:
        return word in STOP_WORDS.get(language, ())
    return any(word in words for words in STOP_WORDS.values())
