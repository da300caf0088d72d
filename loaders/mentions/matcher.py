"""A matcher that finds many names in a text in one pass.

Each token of a text is encoded as one character (`_Vocabulary`), and an Aho-Corasick automaton over these finds all
names at once. So names begin and end at word boundaries, and the automaton reads a tenth of the characters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick

from kg.errors import InvalidInputError
from kg.words import AGREEING, AND, CLITICS, IRREGULAR, LINKS, Unjoined, unjoin
from loaders.mentions.label_variants import (
    AMPERSAND,
    MAX_WORDS,
    Kind,
    Label,
    build_patterns,
    fold_token,
    is_pronounceable,
    primary_language,
    unfit_reason,
)
from loaders.mentions.tokens import (
    DisjointSpans,
    Span,
    find_compounds,
    fold,
    join_compound,
    normalize,
    token_spans,
    tokenize,
    trim,
)

_PLAIN: Final = re.compile("[A-Za-z ]*")
_UNKNOWN: Final = "\x01"
_FIRST: Final = 2
_LAST: Final = 0x10FFFF
_CACHED_TOKENS: Final = 300_000
_COMPARED: Final = 100
"""Maximum characters of the beginnings of words that are compared: all beginnings of a long word take its square."""
_SHORTEST: Final = 3
"""Minimum letters of a word after a clitic."""
_SHORTEST_ALONE: Final = 5
"""Minimum letters of a name of one word after a clitic that may be a part of it."""
_DENYING: Final = frozenset({"non", "anti"})
"""Prefixes that negate a name after a hyphen: ``non-renewable``."""


class Match(NamedTuple):
    """``text[start:end]`` names `concept`. Offsets are in code points, zero-based, end-exclusive.

    `within` has the offsets of a longer name, of another concept, that contains these words.
    """

    start: int
    end: int
    concept: str
    kind: Kind
    within: Span | None = None


class _Entry(NamedTuple):
    concept: str
    kind: Kind
    exact: tuple[str | None, ...] | None


class Matcher:
    """Finds a set of names in texts.

    `confusable` maps concepts to others that they must not be confused with. `unfit` contains the names that are not
    searched for, with the reasons. The automaton of a language is built for the first text in it.
    """

    def __init__(self, labels: Iterable[Label], confusable: Mapping[str, Collection[str]] | None = None) -> None:
        self.unfit: Final[list[tuple[Label, str]]] = []
        self._confusable: Final = confusable or {}
        self._by_language: Final[dict[str, list[Label]]] = defaultdict(list)
        self._automata: Final[dict[str, _Automaton]] = {}
        self._searching: Final[dict[tuple[str, ...], list[_Automaton]]] = {}
        for label in labels:
            language = primary_language(label.language)
            if reason := unfit_reason(label.text, language):
                self.unfit.append((label, reason))
            else:
                self._by_language[language].append(label)

    def find(self, text: str, languages: Collection[str] = ()) -> list[Match]:
        """Find the mentions in `text`, in order: of overlapping names of one concept the longest.

        The mentions of a concept depend on its own names alone, and on the concepts that it must not be confused with.
        One whose words are part of a longer name of another concept has that name's offsets in `within`.
        Names in `languages` (BCP 47, compared by primary language) and names without a language are searched for;
        without `languages`, or in an undetermined one, only names without a language.
        """
        found: list[Match] = []
        for automaton in self._searching.get(tuple(languages)) or self._automata_for(languages):
            found += automaton.find(text)
        if not found or (len(found) == 1 and found[0].kind != "negative"):
            return found
        return _mark_nested(_keep_longest(self._drop_suppressed(found)))

    def _automata_for(self, languages: Collection[str]) -> list[_Automaton]:
        wanted = {primary_language(tag) for tag in languages}
        known = {language if language in self._by_language else "" for language in wanted} or {""}
        for language in known - self._automata.keys():
            own = self._by_language.get(language, []) if language else []
            self._automata[language] = _Automaton([*own, *self._by_language.get("", [])], language)
        found = self._searching[tuple(languages)] = [self._automata[language] for language in sorted(known)]
        return found

    def _drop_suppressed(self, found: Sequence[Match]) -> list[Match]:
        """Return the matches that no negative name of their concept and no name of a confusable concept covers.

        A match covers another if it overlaps and is at least as long. If both concepts have the same name, the one
        with it as preferred name keeps it; both do if each is confusable with the other.
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
    """Yield the folded words that a name in `text` may consist of, with repetitions."""
    for word in map(fold, tokenize(text)):
        if word == AMPERSAND:
            yield from AND.values()
        else:
            yield word
            if not word.isascii():
                yield from (each.word for language in CLITICS for each in unjoin(word, language))
    for start, end in find_compounds(text):
        yield fold(join_compound(text[start:end]))


def filter_possible(labels: Iterable[Label], texts: Iterable[str]) -> Iterator[Label]:
    """Yield the labels that `texts` may contain. For few texts these are few, which makes the automaton small.

    Singular and plural of a word are equal but for the last three letters; those of an irregular one in the first.
    """
    whole = set(AND.values())
    for text in texts:
        whole.update(words_of(text))
    beginnings = {word[:length] for word in whole for length in range(1, min(len(word), _COMPARED) + 1)}
    for label in labels:
        language = primary_language(label.language)
        words = label.text.lower().split()
        if not _PLAIN.fullmatch(label.text):
            words = [fold(token) for token in tokenize(label.text)][:1]
        elif language and language not in AGREEING and LINKS.get(language, whole).isdisjoint(words):
            if not whole.issuperset(word for word in words[:-1] if not word.endswith("s")):
                continue
            words = [word for word in words[:-1] if word.endswith("s")] + words[-1:]
        if all(
            word[: 1 if word in IRREGULAR else min(max(len(word) - 3, 1), _COMPARED)] in beginnings for word in words
        ):
            yield label


def _keep_longest(found: Sequence[Match]) -> list[Match]:
    """Return, for each concept, the matches that do not overlap a longer one, or an earlier one of equal length."""
    kept: dict[str, DisjointSpans] = defaultdict(DisjointSpans)
    # Of a label and an alias with equal words, the label.
    ordered = sorted(found, key=lambda match: (match.start - match.end, match.start, match.kind != "label"))
    return [match for match in ordered if kept[match.concept].add(match.start, match.end)]


def _mark_nested(kept: Iterable[Match]) -> list[Match]:
    """Sort the matches, and give those that are part of a longer one its offsets."""
    marked: list[Match] = []
    longest: Span = (0, 0)
    for match in sorted(kept, key=lambda match: (match.start, -match.end, match.concept)):
        span = match.start, match.end
        if match.end > longest[1]:
            longest = span
        marked.append(match if span == longest else match._replace(within=longest))
    return sorted(marked)


class _Vocabulary(dict[str, str]):
    """Maps tokens, as in the text, to the character that encodes their folded form."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language: Final = language
        self._characters: Final[dict[str, str]] = {}

    def learn(self, word: str) -> str:
        """Return the character of a folded word; a new word gets a new one."""
        character = self._characters.get(word)
        if character is None:
            code = len(self._characters) + _FIRST
            code += 0x800 * (code >= 0xD800)  # surrogates cannot be used as characters
            if code > _LAST:
                raise InvalidInputError(f"The names have more than {_LAST:,} different words. Use fewer names.")
            character = self._characters[word] = chr(code)
        return character

    def knows(self, token: str) -> bool:
        """Whether some name contains this token."""
        return self[token] != _UNKNOWN

    def __missing__(self, token: str) -> str:
        if len(self) >= _CACHED_TOKENS:
            self.clear()
        character = self[token] = self._characters.get(fold_token(token, self._language), _UNKNOWN)
        return character


class _Reading(NamedTuple):
    """A token without its clitics: the character that encodes it, its offset in the token, its letters.

    `is_name` is whether it may be a name alone.
    """

    character: str
    start: int
    letters: int
    is_name: bool


class _Readings(dict[str, Sequence[_Reading]]):
    """Maps tokens, as in the text, to what they may be without clitics, if some name contains it.

    Letters of a word may look like clitics: ``بطاقة`` is a card, and also "with energy". So a name of one word has at
    least five letters after them, and no name has the word with them. After an article of two letters, three letters
    are enough.
    """

    def __init__(self, language: str, vocabulary: _Vocabulary) -> None:
        super().__init__()
        self._language: Final = language
        self._vocabulary: Final = vocabulary
        [self._article] = CLITICS[language][-1]

    def __missing__(self, token: str) -> Sequence[_Reading]:
        if len(self) >= _CACHED_TOKENS:
            self.clear()
        folded = fold(token)
        found = [
            _Reading(self._vocabulary[each.word], start, len(each.word), self._may_be_name(folded, each))
            for each in unjoin(folded, self._language)
            if self._vocabulary.knows(each.word) and (start := _find_offset(token, each.length)) is not None
        ]
        self[token] = found
        return found

    def get_bare(self, token: str) -> str:
        """Return the character of a token without its article, of the token itself if no name contains that."""
        word = fold(token).removeprefix(self._article)
        return self._vocabulary[word if self._vocabulary.knows(word) else token]

    def _may_be_name(self, token: str, found: Unjoined) -> bool:
        if found.word[0].isascii():
            return True
        if len(self._article) > 1 and (found.has_article or found.word.startswith(self._article)):
            return len(found.word.removeprefix(self._article)) >= _SHORTEST
        return len(found.word) >= _SHORTEST_ALONE and not self._vocabulary.knows(token)


def _find_offset(token: str, length: int) -> int | None:
    """Find where a token continues after the letters that are the first `length` of its folded form."""
    sizes = [len(fold(token[:end])) for end in range(1, len(token) + 1)]
    return next((end for end, size in enumerate(sizes, 1) if size == length and sizes[end : end + 1] != [length]), None)


class _Automaton:
    """The automaton for the names of one language and those without a language."""

    def __init__(self, labels: Sequence[Label], language: str) -> None:
        self._vocabulary: Final = _Vocabulary(language)
        self._readings: Final = _Readings(language, self._vocabulary) if language in CLITICS else None
        self._entries: Final[list[list[_Entry]]] = []
        numbers: dict[str, int] = {}
        learn = self._vocabulary.learn
        for label in labels:
            for words, exact in build_patterns(label.text, language):
                key = "".join(map(learn, words))
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = len(self._entries)
                    self._entries.append([])
                self._entries[number].append(_Entry(label.concept, label.kind, exact))
        self._automaton: Final = AhoCorasick(list(numbers), store_patterns=False) if numbers else None

    def find(self, text: str) -> list[Match]:
        """Find all names in `text`, including overlapping and negative ones."""
        found = self._read(text, tokenize(text), None)
        known = [
            span for span in find_compounds(text) if self._vocabulary.knows(join_compound(text[span[0] : span[1]]))
        ]
        if known:
            spans, verbatim = _join_compounds(text, known)
            found += [match for match in self._read(text, verbatim, spans) if match not in found]
        if self._readings is not None and not text.isascii():
            found += [match for match in self._read_unjoined(text, self._readings) if match not in found]
        return found

    def _read_unjoined(self, text: str, readings: _Readings) -> Iterator[Match]:
        """Yield the names whose first word has clitics before it, or whose other words have an article."""
        if self._automaton is None:
            return
        verbatim = tokenize(text)
        joined = "".join(map(self._vocabulary.__getitem__, verbatim))
        bare = "".join(map(readings.get_bare, verbatim))
        spans = token_spans(text, verbatim, len(verbatim))
        for first, token in enumerate(verbatim):
            rest = slice(first + 1, first + MAX_WORDS)
            for character, start, letters, is_name in (*readings[token], _Reading(joined[first], 0, len(token), False)):
                if character == _UNKNOWN:
                    continue
                for following in dict.fromkeys((joined[rest], bare[rest])):
                    for number, begin, end in self._automaton.find_matches_as_indexes(
                        character + following, overlapping=True
                    ):
                        if begin == 0 and (is_name if end == 1 else letters >= _SHORTEST):
                            words = [token[start:], *verbatim[first + 1 : first + end]]
                            place = trim(text, spans[first][0] + start, spans[first + end - 1][1])
                            yield from self._build_matches(number, words, place, text)

    def _build_matches(self, number: int, words: Sequence[str], place: Span, text: str) -> Iterator[Match]:
        for concept, kind, exact in self._entries[number]:
            if exact is None or _has_required_case(words, exact, text):
                yield Match(*place, concept, kind)

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
            place = spans[first][0], spans[end - 1][1]
            found += self._build_matches(number, verbatim[first:end], place if plain else trim(text, *place), text)
        return found


def _join_compounds(text: str, known: Sequence[Span]) -> tuple[list[Span], list[str]]:
    """Return the spans and the tokens of `text` with each compound in `known` as one token."""
    found = tokenize(text)
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
    return spans, [join_compound(text[start:end]) if (start, end) in words else text[start:end] for start, end in spans]


def _has_required_case(found: Sequence[str], exact: Sequence[str | None], text: str) -> bool:
    """Whether tokens have the required case.

    In a text entirely in capitals the case is not significant: there, possible words do not match acronyms.
    """
    pairs = [(normalize(token), form) for token, form in zip(found, exact, strict=True) if form is not None]
    if not text.isupper():
        return all(token == form for token, form in pairs)
    if not all(token == form.upper() for token, form in pairs):
        return False
    return len(tokenize(text)) == len(found) or not is_pronounceable([form for _, form in pairs])
