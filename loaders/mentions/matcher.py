"""Finding the names of many things in text, in one pass.

The tokens of a text become one character each (`_Vocabulary`), and an Aho-Corasick automaton over these finds every
name at once: a name begins and ends where words do, and the automaton sees a tenth of the characters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick

from kg.errors import InvalidInputError
from kg.words import AGREEING, AND, IRREGULAR, LINKS
from loaders.mentions.label_variants import AMPERSAND, Kind, Label, folded, is_pronounceable, patterns, primary, unfit
from loaders.mentions.tokens import Span, bare, closed, compounds, fold, token_spans, tokens, trimmed

_PLAIN: Final = re.compile("[A-Za-z ]*")
_UNKNOWN: Final = "\x01"
_FIRST: Final = 2
_LAST: Final = 0x10FFFF
_CACHED_TOKENS: Final = 300_000
_DENYING: Final = frozenset({"non", "anti"})
"""What is joined to a name by a hyphen and makes it another thing: ``non-renewable``."""


class Match(NamedTuple):
    """``text[start:end]`` names `concept`. Offsets count Unicode code points, from 0; the end is exclusive."""

    start: int
    end: int
    concept: str
    kind: Kind


class _Entry(NamedTuple):
    concept: str
    kind: Kind
    exact: tuple[str | None, ...] | None


class Matcher:
    """A set of names, ready to be found.

    `confusable` says of concepts which others they are not to be confused with. `unfit` holds the names that text is
    not searched for, each with the reason. The automaton of a language is made when the first text in it comes.
    """

    def __init__(self, labels: Iterable[Label], confusable: Mapping[str, Collection[str]] | None = None) -> None:
        self.unfit: Final[list[tuple[Label, str]]] = []
        self._confusable: Final = confusable or {}
        self._by_language: Final[dict[str, list[Label]]] = defaultdict(list)
        self._automata: Final[dict[str, _Automaton]] = {}
        self._searching: Final[dict[tuple[str, ...], list[_Automaton]]] = {}
        for label in labels:
            language = primary(label.language)
            if reason := unfit(label.text, language):
                self.unfit.append((label, reason))
            else:
                self._by_language[language].append(label)

    def find(self, text: str, languages: Collection[str] = ()) -> list[Match]:
        """Return what `text` names, in order; the longest name where several overlap, all things that have it.

        Names count in `languages` (BCP 47, compared by their primary language), and those of no language in every text.
        Where no language is given, as of a text whose language nobody recorded, names of all languages count.
        """
        found: list[Match] = []
        for automaton in self._searching.get(tuple(languages)) or self._automata_for(languages):
            found += automaton.find(text)
        if not found or (len(found) == 1 and found[0].kind != "negative"):
            return found
        return _longest(self._unsuppressed(found))

    def _automata_for(self, languages: Collection[str]) -> list[_Automaton]:
        wanted = {primary(tag) for tag in languages} - {""} or (self._by_language.keys() - {""})
        known = {language if language in self._by_language else "" for language in wanted} or {""}
        for language in known - self._automata.keys():
            own = self._by_language.get(language, []) if language else []
            self._automata[language] = _Automaton([*own, *self._by_language.get("", [])], language)
        found = self._searching[tuple(languages)] = [self._automata[language] for language in sorted(known)]
        return found

    def _unsuppressed(self, found: Sequence[Match]) -> list[Match]:
        """Return what no negative name of the same concept, and no name of one it is confusable with, covers.

        What covers overlaps and is as long or longer. Where both concepts have the very same name, the one that has it
        as its label keeps it, and both if each says not to be confused with the other.
        """
        kept = [match for match in found if match.kind != "negative"]
        rivals = [match for match in found if match.kind == "negative"]
        if self._confusable:
            rivals += kept
        return [match for match in kept if not any(self._suppresses(rival, match) for rival in rivals)]

    def _suppresses(self, rival: Match, match: Match) -> bool:
        if rival.end <= match.start or match.end <= rival.start or rival.end - rival.start < match.end - match.start:
            return False
        if rival.kind == "negative":
            return rival.concept == match.concept
        if rival.concept not in self._confusable.get(match.concept, ()):
            return False
        if (rival.start, rival.end) != (match.start, match.end) or rival.kind == match.kind:
            mutual = match.concept in self._confusable.get(rival.concept, ())
            return not mutual or rival.end - rival.start > match.end - match.start
        return rival.kind == "label"


def words_of(text: str) -> Iterator[str]:
    """Yield the folded words that a name in `text` may consist of; some more than once."""
    for word in map(fold, tokens(text)):
        if word == AMPERSAND:
            yield from AND.values()
        else:
            yield word
    for start, end in compounds(text):
        yield fold(closed(text[start:end]))


def possible(labels: Iterable[Label], texts: Iterable[str]) -> Iterator[Label]:
    """Yield those of `labels` that may stand in `texts`: of few texts, few, and only these need an automaton.

    Whatever the number of a word, all but its last three letters stay, or its first in an irregular one.
    """
    whole = set(AND.values())
    for text in texts:
        whole.update(words_of(text))
    beginnings = {word[:length] for word in whole for length in range(1, len(word) + 1)}
    for label in labels:
        language = primary(label.language)
        words = label.text.lower().split()
        if not _PLAIN.fullmatch(label.text):
            words = [fold(token) for token in tokens(label.text)][:1]
        elif language and language not in AGREEING and LINKS.get(language, whole).isdisjoint(words):
            if not whole.issuperset(word for word in words[:-1] if not word.endswith("s")):
                continue
            words = [word for word in words[:-1] if word.endswith("s")] + words[-1:]
        if all(word[: 1 if word in IRREGULAR else max(len(word) - 3, 1)] in beginnings for word in words):
            yield label


def _longest(found: Sequence[Match]) -> list[Match]:
    """Return the matches of which none overlaps a longer one, or one as long before it; of one concept the best."""
    taken: list[tuple[int, int]] = []
    best: dict[tuple[int, int, str], Match] = {}
    for match in sorted(found, key=lambda match: (match.start - match.end, match.start)):
        span = match.start, match.end
        if any(start < span[1] and span[0] < end and (start, end) != span for start, end in taken):
            continue
        if span not in taken:
            taken.append(span)
        key = (*span, match.concept)
        if key not in best or match.kind == "label":
            best[key] = match
    return sorted(best.values())


class _Vocabulary(dict[str, str]):
    """Spans, as they stand in text, each as the one character that stands for its folded form."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language: Final = language
        self._characters: Final[dict[str, str]] = {}

    def learn(self, word: str) -> str:
        """Return the character of a folded word, which it gets here if it has none."""
        character = self._characters.get(word)
        if character is None:
            code = len(self._characters) + _FIRST
            code += 0x800 * (code >= 0xD800)  # surrogates are no characters
            if code > _LAST:
                raise InvalidInputError(f"the names hold more than {_LAST:,} different words; search for fewer at once")
            character = self._characters[word] = chr(code)
        return character

    def knows(self, token: str) -> bool:
        """Say whether some name has this token."""
        return self[token] != _UNKNOWN

    def __missing__(self, token: str) -> str:
        if len(self) >= _CACHED_TOKENS:
            self.clear()
        character = self[token] = self._characters.get(folded(token, self._language), _UNKNOWN)
        return character


class _Automaton:
    """The names of one language, with those of no language."""

    def __init__(self, labels: Sequence[Label], language: str) -> None:
        self._vocabulary: Final = _Vocabulary(language)
        self._entries: Final[list[list[_Entry]]] = []
        numbers: dict[str, int] = {}
        learn = self._vocabulary.learn
        for label in labels:
            for words, exact in patterns(label.text, language):
                key = "".join(map(learn, words))
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = len(self._entries)
                    self._entries.append([])
                self._entries[number].append(_Entry(label.concept, label.kind, exact))
        self._automaton: Final = AhoCorasick(list(numbers), store_patterns=False) if numbers else None

    def find(self, text: str) -> list[Match]:
        """Return every name in `text`, overlapping ones too, and the negative ones."""
        found = self._read(text, tokens(text), None)
        known = [span for span in compounds(text) if self._vocabulary.knows(closed(text[span[0] : span[1]]))]
        if known:
            spans, verbatim = _joined(text, known)
            found += [match for match in self._read(text, verbatim, spans) if match not in found]
        return found

    def _read(self, text: str, verbatim: Sequence[str], spans: Sequence[Span] | None) -> list[Match]:
        found: list[Match] = []
        if self._automaton is None:
            return found
        encoded = "".join(map(self._vocabulary.__getitem__, verbatim))
        hits = self._automaton.find_matches_as_indexes(encoded, overlapping=True)
        if not hits:
            return found
        if spans is None:
            spans = token_spans(text, verbatim, hits[-1][2])  # they come in the order of their ends
        plain = text.isascii()
        for number, first, end in hits:
            if first and fold(verbatim[first - 1]) in _DENYING and not text[spans[first - 1][1]].isspace():
                continue
            for concept, kind, exact in self._entries[number]:
                if exact is None or _is_written(verbatim[first:end], exact, text):
                    place = spans[first][0], spans[end - 1][1]
                    found.append(Match(*(place if plain else trimmed(text, *place)), concept, kind))
        return found


def _joined(text: str, known: Sequence[Span]) -> tuple[list[Span], list[str]]:
    """Return the tokens of `text` where each compound in `known` is one, and these as they are compared."""
    found = tokens(text)
    spans: list[Span] = []
    rest = iter(known)
    compound = next(rest, None)
    for span in token_spans(text, found, len(found)):
        while compound is not None and compound[1] <= span[0]:
            compound = next(rest, None)
        if compound is None or span[0] < compound[0]:
            spans.append(span)
        elif not spans or spans[-1] != compound:
            spans.append(compound)
    words = set(known)
    return spans, [closed(text[start:end]) if (start, end) in words else text[start:end] for start, end in spans]


def _is_written(found: Sequence[str], exact: Sequence[str | None], text: str) -> bool:
    """Say whether tokens have the capitals that they need.

    In text that is all capitals these tell nothing: there, what may as well be a word is not taken for an acronym.
    """
    pairs = [(bare(token), form) for token, form in zip(found, exact, strict=True) if form is not None]
    if not text.isupper():
        return all(token == form for token, form in pairs)
    if not all(token == form.upper() for token, form in pairs):
        return False
    return len(tokens(text)) == len(found) or not is_pronounceable([form for _, form in pairs])
