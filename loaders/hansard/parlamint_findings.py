"""What follows from the lists of a corpus for one sitting: parties on the day, and who called out.

The party of a speaker is the group, else the party, with which the list affiliates the person on that day, or without
any date as the only one; none if there are several, or if the day is uncertain. A name in a note is that of a person if
exactly one member of the chamber on that day has it: all surnames or the first one, with all given names or none, after
titles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal, NamedTuple

from pyoxigraph import NamedNode

from kg.vocabulary import KG, mint
from loaders.hansard.parlamint_entities import Entities, person_key
from loaders.hansard.parlamint_lists import Lists, Person
from loaders.hansard.person_names import fold_name, have_same_script

Rule = Literal["party", "party/undated", "caller"]
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_SEATED: Final = frozenset(("member", "replacement", "head", "deputyHead"))
"""Roles of those who sit in a chamber; guests do not."""


class Spoke(NamedTuple):
    """A speech and its speaker."""

    speech: NamedNode
    person: str


class Called(NamedTuple):
    """An interjection with the name in the note, and the speaker who had the floor."""

    utterance: NamedNode
    name: str
    floor: str | None


class Finding(NamedTuple):
    """A statement that follows from the lists, with the graph that describes the person."""

    rule: Rule
    subject: NamedNode
    predicate: NamedNode
    value: NamedNode
    source: NamedNode


@dataclass(slots=True)
class Occasions:
    """The speeches and interjections of one sitting."""

    domain: str
    day: date
    chamber: str
    """Identifier of the chamber within the corpus."""
    entities: Entities
    lists: Lists
    spoke: list[Spoke] = field(default_factory=list)
    called: list[Called] = field(default_factory=list)

    def find_all(self) -> list[Finding]:
        """Find the parties of the speakers and the people who called out."""
        return [*self._find_parties(), *self._find_callers()]

    def _find_parties(self) -> Iterator[Finding]:
        for speech, identifier in self.spoke:
            person = self.lists.people.get(identifier)
            held = self.lists.party_of(person, self.day) if person is not None else None
            if held is not None:
                party = self.entities.organization(held.organization)
                rule: Rule = "party/undated" if held.is_undated else "party"
                yield Finding(rule, speech, KG.party, party, self._describing(identifier))

    def _find_callers(self) -> Iterator[Finding]:
        members = [person for person in self.lists.people.values() if self._is_member(person)] if self.called else []
        for utterance, name, floor in self.called:
            person = find_person(name, members)
            # Nobody calls out in the own speech: another person of that name did, whom the list lacks.
            if person is not None and person.id != floor:
                found = self.entities.person(person.id)
                yield Finding("caller", utterance, KG.speaker, found, self._describing(person.id))

    def _is_member(self, person: Person) -> bool:
        return any(
            held.organization == self.chamber and held.role in _SEATED and held.covers(self.day)
            for held in person.affiliations
        )

    def _describing(self, person: str) -> NamedNode:
        """Return the graph with the affiliations of a person."""
        code = self.entities.code
        if person in self.lists.places:
            return mint("graph", "src", self.domain, "parlamint", code, "person", person)
        return mint("graph", "ref", "membership", person_key(code, person))


def find_person(name: str, people: Iterable[Person]) -> Person | None:
    """Find the one person whom a name with titles can denote; None if there are several or none."""
    words = name.split()
    found = [person for person in people if any(_ends_with(words, form) for form in _forms(person))]
    return found[0] if len(found) == 1 else None


def names_another(note: str, person: Person, people: Iterable[Person]) -> bool:
    """Whether the note before a turn names another of the people than the one to whom the turn refers.

    A note without any listed name, such as that of an office, names nobody.
    """
    said = _words(note)
    own = {word for form in (person.name, *person.other_names) if form for word in _words(form)}
    if own & said or not _is_comparable(note, person):
        return False
    return any(
        (surnames := {word for name in each.surnames for word in _words(name)}) and surnames <= said
        for each in people
        if each.id != person.id
    )


def _is_comparable(note: str, person: Person) -> bool:
    """Whether a name of the person is in a script of the note."""
    return any(have_same_script(note, form) for form in (person.name, *person.other_names) if form)


def _words(text: str) -> set[str]:
    return {fold_name(word) for word in _WORD.findall(text)}


def _forms(person: Person) -> set[tuple[str, ...]]:
    """Return the forms of a name: the surnames, or the first of several, with all given names or none."""
    surnames, given = (
        [fold_name(word) for each in parts for word in each.split()] for parts in (person.surnames, person.forenames)
    )
    if not surnames:
        return set()
    lasts = {tuple(surnames), tuple(fold_name(word) for word in person.surnames[0].split())}
    return {form for last in lasts for form in (last, (*given, *last))}


def _ends_with(words: Sequence[str], form: Sequence[str]) -> bool:
    """Whether a name ends with `form`, after nothing but titles: abbreviated, or in lower case, or one letter."""
    titles, rest = words[: -len(form)], words[-len(form) :]
    return [fold_name(word) for word in rest] == list(form) and all(
        title.endswith(".") or title.islower() or len(title) == 1 for title in titles
    )
