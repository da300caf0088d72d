"""Variants of a concept's name: the token sequences by which a text may contain it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Final, Literal, NamedTuple

from kg.languages import UNKNOWN, find_primary
from kg.words import AGREEING, AND, FORMS, LINKS, is_plural, is_stop_word
from loaders.mentions.tokens import count_words, find_compounds, fold, join_compound, normalize, tokenize

Kind = Literal["label", "alias", "negative"]
"""The preferred name, an alternative name, or words that are not a name although they look like one."""

MAX_WORDS: Final = 20
"""Maximum words of a name. Longer ones are sentences, which other texts do not repeat."""
MAX_ACRONYM: Final = 8
"""Maximum characters of an acronym. Longer words in capitals are emphasis."""

_MAX_PHRASES: Final = 3
Exact = tuple[str | None, ...] | None

AMPERSAND: Final = "&"
_LETTERS_AND_DIGITS: Final = re.compile(r"([A-Za-z]{1,6})(\d+)([a-z]?)")
_APOSTROPHE: Final = re.compile(r"(?<=\w)['\u2019](?=\w|\s)")
_CONSONANTS: Final = re.compile(r"[^aeiouyAEIOUY\W\d_]{3}")


class Label(NamedTuple):
    """A name of `concept` in `language` (BCP 47; None or ``mul`` is every language)."""

    concept: str
    text: str
    language: str | None
    kind: Kind


class Pattern(NamedTuple):
    """A sequence of folded tokens. Where `exact` has a string, the token must equal it, including case."""

    words: tuple[str, ...]
    exact: tuple[str | None, ...] | None = None


@lru_cache(maxsize=4096)
def primary_language(tag: str | None) -> str:
    """Return the primary language of a BCP 47 tag as `find_primary`, "" for None and for tags of no single language."""
    language = find_primary(tag)
    return "" if language == UNKNOWN else language


def fold_token(token: str, language: str) -> str:
    """Fold a token for comparison; ``&`` becomes the word for it in `language`."""
    return AND.get(language, token) if token == AMPERSAND else fold(token)


def unfit_reason(label: str, language: str) -> str | None:
    """Return the reason for not searching texts for this name, None if they are searched."""
    found = tokenize(label)
    words = [word for word in map(normalize, found) if any(map(str.isalnum, word))]
    if count_words(found) > MAX_WORDS:
        return f"has more than {MAX_WORDS} words"
    if not any(char.isalpha() for word in words for char in word):
        return "has no letter"
    if sum(map(len, words)) < 2:
        return "is one character"
    if all(is_stop_word(fold(word), language) and not word.isupper() for word in words):
        return "consists of stop words"
    if len(words) == 1 and len(words[0]) == 2 and words[0].islower() and words[0].isascii():
        return "is a word of two letters"
    return None


def is_acronym(word: str) -> bool:
    """Whether the case of a word is significant: ``GHG``, ``NDCs``, ``CO2``, ``kWh``, ``Fe``; not ``Energy``."""
    if word.lower() == word or not word.isalnum():
        return False
    if not word.isascii():
        return word.isupper() and 1 < len(word) <= MAX_ACRONYM
    if word.isupper() or (word[-1] == "s" and word[:-1].isupper()):
        return 1 < len(word.rstrip("s")) <= MAX_ACRONYM
    return len(word) <= 2 or (len(word) <= MAX_ACRONYM + 2 and not word[1:].islower() and word[1:].lower() != word[1:])


def is_pronounceable(words: Sequence[str]) -> bool:
    """Whether capitals may be ordinary words: ``ACT``, ``WHO``, but not ``GHG`` or ``CO2``."""
    text = " ".join(words)
    return not _CONSONANTS.search(text) and bool(re.search("[AEIOUYaeiouy]", text)) and not re.search(r"\d", text)


def build_patterns(label: str, language: str) -> Iterator[Pattern]:
    """Yield the token sequences of a name and its variants, without duplicates, the name first.

    Variants have the other number, modifiers in the singular (in English: ``emission trading`` for ``emissions
    trading``), compounds as one word, or a space in ``CO2``. A hyphen, a dash, an apostrophe or a line break between
    two words does not change the tokens.
    """
    spellings = _spellings(label)
    several = len(spellings) > 1
    seen: set[Pattern] = set()
    for spelling in spellings:
        words = tuple([fold_token(token, language) for token in spelling])
        exact = _exact(spelling)
        for pattern in (Pattern(words, exact), *_inflect(words, exact, language)):
            if not several:
                yield pattern
            elif pattern not in seen:
                seen.add(pattern)
                yield pattern


def _spellings(label: str) -> list[list[str]]:
    """Return the tokens of a name, and those of its other spellings."""
    spellings = [tokenize(label)]
    joined = label
    for start, end in reversed(list(find_compounds(label))):
        joined = joined[:start] + join_compound(joined[start:end]) + joined[end:]
    for other in (joined, _APOSTROPHE.sub("", label)):
        if other != label:
            spellings.append(tokenize(other))
    if any(map(str.isdigit, label)):
        apart = [part for token in spellings[0] for part in _apart(normalize(token))]
        if len(apart) != len(spellings[0]):
            spellings.append(apart)
    return spellings


def _apart(token: str) -> list[str]:
    found = _LETTERS_AND_DIGITS.fullmatch(token)
    return [part for part in found.groups() if part] if found and is_acronym(token) else [token]


def _exact(found: Sequence[str]) -> Exact:
    """Return the required spelling of each token whose case is significant, None if there is none."""
    if all(map(str.islower, found)):
        return None
    words = [normalize(token) for token in found]
    cased = [word for word in words if word.lower() != word.upper()]
    if len(cased) > 1 and all(map(str.isupper, cased)) and any(len(word) > 5 for word in cased):
        return None
    exact = tuple(word if is_acronym(word) or (len(word) == 1 and "A" <= word <= "Z") else None for word in words)
    return exact if any(exact) else None


def _inflect(words: tuple[str, ...], exact: Exact, language: str) -> Iterator[Pattern]:
    """Yield the patterns with the other number of some noun."""
    options: list[list[dict[int, tuple[str, str | None]]]] = []
    groups = [
        {number: found for number in phrase if (found := _other_number(words, exact, number, language))}
        for phrase in _phrases(words, language)
    ]
    if language == "en" and len(words) > 1:
        groups += _modifiers(words, exact)
    for others in groups:
        if others:
            ways = max(map(len, others.values()))
            options.append(
                [{}, *({at: found[min(way, len(found) - 1)] for at, found in others.items()} for way in range(ways))]
            )
    for choice in product(*options):
        changes = {number: form for change in choice for number, form in change.items()}
        if changes:
            changed, capitals = list(words), list(exact or [None] * len(words))
            for number, form in changes.items():
                changed[number], capitals[number] = form
            yield Pattern(tuple(changed), tuple(capitals) if any(capitals) else None)


def _phrases(words: Sequence[str], language: str) -> list[list[int]]:
    """Return the indices of the words that show the number of each noun phrase; of many phrases, the first and last."""
    links = LINKS.get(language, frozenset())
    phrases: list[list[int]] = [[]]
    for number, word in enumerate(words):
        if word in links:
            phrases.append([])
        elif word.isalnum():
            phrases[-1].append(number)
    found = [phrase if language in AGREEING else phrase[-1:] for phrase in phrases if phrase]
    return found if len(found) <= _MAX_PHRASES else [found[0], found[-1]]


def _modifiers(words: Sequence[str], exact: Exact) -> list[dict[int, Sequence[tuple[str, str | None]]]]:
    """Return the singulars of plurals before another noun: ``emission`` trading for ``emissions`` trading."""
    found: list[dict[int, Sequence[tuple[str, str | None]]]] = []
    links = LINKS["en"]
    for number, (word, following) in enumerate(pairwise(words)):
        capitals = exact[number] if exact else None
        plural = capitals[-1] == "s" if capitals else word[-1:] == "s" and is_plural(word)
        if plural and following not in links:
            found.append({number: _other_number(words, exact, number, "en")})
    return found[:_MAX_PHRASES]


def _other_number(words: Sequence[str], exact: Exact, number: int, language: str) -> Sequence[tuple[str, str | None]]:
    word, capitals = words[number], exact[number] if exact else None
    if capitals is not None:
        if capitals[-1] == "s" and capitals[:-1].isupper():
            return [(word[:-1], capitals[:-1])] if len(capitals) > 2 else []
        return [(word + "s", capitals + "s")] if capitals[-1].isupper() and len(capitals) > 1 else []
    forms = FORMS.get(language)
    if forms is None or len(word) < 3 or not word.isalpha():
        return []
    return [(form, None) for form in forms(word)]
