"""Readings of a question or statement: the item, the properties, the value that is claimed, and the date.

A question is read by the forms of `question_forms`, each of which covers all of its words. What no form covers has no
reading: the tools then say that the question is not covered, and guess nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kg.calendar_dates import Date
from kg.fuzzy_names import fold
from kg.tools.wikidata.question_forms import SUBJECT, Form, Relation, get_forms, get_relations_by_name
from kg.tools.wikidata.values import parse_amount, parse_date, split_date

How = Literal["form", "name", "meaning"]
"""How the property was found: by a reviewed form, by its name, or by the meaning of the words."""

WORDS: Final = 60
"""Maximum number of words of a question that is read."""
_LONGEST_NAME: Final = 12
_WORD: Final = re.compile(r"[^\W_]+(?:[.,](?=\d)\d+)*|°|²")
_POSSESSIVE: Final = re.compile(r"(?<=\w)['\u2019`]s\b")
_SIGN: Final = re.compile(r"(?<!\S)-\Z")
"""The sign of a year before Christ, as in -0043, which belongs to no word."""
_ASKING: Final = frozenset(("what", "who", "where", "when", "how", "which"))
_NEGATIONS: Final = frozenset(
    ("not", "never", "no", "nor", "neither", "without", "except", "isn", "wasn", "didn", "doesn", "aren", "weren",
     "hasn", "haven", "don", "cannot", "nobody", "none", "false", "untrue")
)  # fmt: skip
_NO_NAME: Final = frozenset(
    ("is", "was", "are", "were", "be", "been", "do", "does", "did", "has", "had", "have", "born", "it", "he", "she",
     "they", "this", "that", "there", "and", "or", "if", "because", "than")
)  # fmt: skip
"""Words that no name of a property has in a question that is read right."""
_PRESENT: Final = frozenset(("is", "are", "has", "does", "do", "lies", "lives", "have", "currently", "now", "today"))
_PAST: Final = frozenset(("was", "were", "had", "did"))


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question, folded, with its place."""

    text: str
    start: int
    end: int
    shown: str
    """The word as forms write it: ``'s`` for a possessive."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand a question."""

    subject: str
    """The words that name the item."""
    properties: tuple[str, ...]
    how: How
    value: str | None = None
    """The words that name the claimed value; None for a question that asks for it."""
    date: Date | None = None
    """The time that the question names."""
    phrase: str | None = None
    """The words that name the property, if it was found by its name."""


@dataclass(frozen=True, slots=True)
class Understood:
    """All readings of a question, the best first, and reasons if there is none."""

    text: str
    readings: Sequence[Reading]
    subjects: Sequence[str]
    """Words that some form takes for the name of an item, if no reading has one that is known."""
    phrases: Sequence[str]
    """Words that some form takes for the name of a property, of an item that is known."""
    problem: str | None = None
    """Why it was not read."""
    present: bool = False
    """Whether it is about the present."""


FindProperties = Callable[[str], tuple[Sequence[tuple[str, ...]], How]]
"""Finds the properties with a name: alternatives, each of properties that are tried in turn."""


def read_question(text: str, is_name: Callable[[str], bool], find_properties: FindProperties) -> Understood:
    """Read a question or statement. `is_name` determines whether folded words are a name of an item."""
    words = split_words(text)
    if len(words) > WORDS:
        return Understood(text, (), (), (), f"It has more than {WORDS} words. Ask one question at a time.")
    shown = {word.shown for word in words}
    present = bool(shown & _PRESENT) and not shown & _PAST
    variants: list[tuple[str, Date | None]] = [(text, None)]
    if (split := split_date(text)) is not None:
        variants.append(split)
    readings: dict[Reading, tuple[int, ...]] = {}
    subjects: dict[str, None] = {}
    phrases: dict[str, None] = {}
    negated = False
    known: str | None = None
    for part, date in variants:
        own = split_words(part)
        for low, high in find_spans(own, is_name):
            rest = [word.shown for word in (*own[:low], *own[high:])]
            if _NEGATIONS & set(rest) or "n't" in part.casefold():
                negated = True
                continue
            name = " ".join(word.text for word in own[low:high])
            for reading, specific in _match(part, own, low, high, date, find_properties, phrases):
                order = (-specific, -(high - low), 0 if date is None else 1)
                readings.setdefault(_named(reading, name), order)
            known = known or name
        if not readings and known is None:
            subjects |= dict.fromkeys(_find_subjects(own, part))
    ordered = sorted(readings, key=lambda reading: readings[reading])
    problem = "It denies something. Only statements and questions without a negation are checked." if negated else None
    return Understood(text, ordered, list(subjects), list(phrases), None if ordered else problem, present)


def _named(reading: Reading, name: str) -> Reading:
    return Reading(name, reading.properties, reading.how, reading.value, reading.date, reading.phrase)


def split_words(text: str) -> list[Word]:
    """Split a text into words, folded, with their places."""
    spaced = _POSSESSIVE.sub(lambda match: " s" if match[0] else "", text)
    possessive = {match.start() + 1 for match in _POSSESSIVE.finditer(text)}
    words: list[Word] = []
    for match in _WORD.finditer(spaced):
        folded = fold(match[0]).replace(" ", "") if not match[0][0].isdigit() else match[0]
        if not folded:
            continue
        shown = folded
        if match.start() in possessive and folded == "s":
            shown = "is" if words and words[-1].shown in _ASKING else "'s"
        words.append(Word(folded, match.start(), match.end(), shown))
    return words


def find_spans(words: Sequence[Word], is_name: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Find the runs of words that are a name of an item, the longest first."""
    found = [
        (low, high)
        for low in range(len(words))
        for high in range(low + 1, min(len(words), low + _LONGEST_NAME) + 1)
        if is_name(" ".join(word.text for word in words[low:high]))
    ]
    return sorted(found, key=lambda span: (span[0] - span[1], span[0]))


def _match(
    text: str,
    words: Sequence[Word],
    low: int,
    high: int,
    date: Date | None,
    find_properties: FindProperties,
    phrases: dict[str, None],
) -> Iterator[tuple[Reading, int]]:
    """Match the forms with the words around the item. Yields readings with how specific each is."""
    units = [*words[:low], Word(SUBJECT, words[low].start, words[high - 1].end, SUBJECT), *words[high:]]
    joined = "".join(f"{unit.shown} " for unit in units)
    for form in get_forms():
        match = form.pattern.fullmatch(joined)
        if match is None:
            continue
        if not _ASKING.isdisjoint(f"{match.groupdict().get('v') or ''} {match.groupdict().get('p') or ''}".split()):
            continue
        slots = {name: _slice(text, units, joined, match.span(name)) for name in match.groupdict() if match[name]}
        value = slots.get("v")
        if value is not None and form.relation is not None and not _fits(value, form.relation):
            continue
        if form.relation is not None:
            yield Reading("", form.relation.properties, "form", value, date), _weigh(form, match)
            continue
        phrase = _folded(slots["p"])
        if not _NO_NAME.isdisjoint(phrase.split()):
            continue
        alternatives, how = find_properties(phrase)
        if not alternatives:
            phrases[slots["p"]] = None
        for properties in alternatives:
            yield Reading("", properties, how, value, date, slots["p"]), 10 if how == "name" else 5


def _fits(value: str, relation: Relation) -> bool:
    """Whether a claimed value can be one of the relation: a date is the value of relations that have dates only."""
    if relation.kind == "date":
        return parse_date(value) is not None
    if relation.kind == "quantity":
        return parse_amount(value) is not None
    return relation.kind == "text" or parse_date(value) is None


def _weigh(form: Form, match: re.Match[str]) -> int:
    """Weigh a form by the words that it states itself; a value leaves them open."""
    open_words = len((match.groupdict().get("v") or "").split())
    kind = form.relation.kind if form.relation is not None else "text"
    return 100 - open_words + (1 if kind == "date" else 0)


def _slice(text: str, units: Sequence[Word], joined: str, span: tuple[int, int]) -> str:
    first = joined[: span[0]].count(" ")
    last = joined[: span[1]].count(" ") - 1
    start = units[first].start
    if _SIGN.search(text, 0, start):
        start -= 1
    return text[start : units[last].end].strip()


def _folded(text: str) -> str:
    return " ".join(word.text for word in split_words(text))


def _find_subjects(words: Sequence[Word], text: str) -> Iterable[str]:
    """Find the words that a reviewed form takes for the item, if any words can be one."""
    joined = "".join(f"{word.shown} " for word in words)
    for form in get_forms():
        if form.relation is None and "'s" not in joined and " of " not in joined:
            continue
        match = form.free.fullmatch(joined)
        if match is not None and _ASKING.isdisjoint(match["s"].split()):
            yield _slice(text, words, joined, match.span("s"))


def find_reviewed(name: str) -> list[Relation]:
    """Find the reviewed relations with a folded name, in singular or plural."""
    by_name = get_relations_by_name()
    return list(by_name.get(name) or by_name.get(name.removesuffix("s")) or ())


def merge_names(reviewed: Sequence[Relation], named: Mapping[str, bool]) -> list[tuple[str, ...]]:
    """Merge the relations with a name with the properties that have it as a label (True) or an alias.

    A label is preferred to aliases, which are left out where a reviewed relation has the name.
    """
    found = [relation.properties for relation in reviewed]
    known = {pid for properties in found for pid in properties}
    labels = [pid for pid, is_label in named.items() if is_label]
    for pid in labels or (() if reviewed else named):
        if pid not in known:
            found.append((pid,))
    return found
