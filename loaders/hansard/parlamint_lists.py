"""People and organizations of a corpus, from lists and from headers of components."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from lxml.etree import _Element

from loaders.hansard.parlamint_tei import (
    children,
    descendants,
    find_first,
    get_refs,
    get_words,
    id_of,
    language_of,
)
from loaders.model import Origin

PARLIAMENT: Final = "parliament"
GROUP: Final = "parliamentaryGroup"
PARTY: Final = "politicalParty"
_BY_PREFIX: Final = {"party": PARTY, PARTY: PARTY, GROUP: GROUP}
"""Roles of organizations that no list describes, by the first part of their identifiers."""
_DAY: Final = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T.*)?)?)?")


@dataclass(frozen=True, slots=True)
class Name:
    """A name with its language."""

    text: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Affiliation:
    """A person in an organization. Days are as stated: ``2016``, ``2016-10`` or ``2016-10-21``."""

    role: str
    organization: str
    """The identifier of the organization within the corpus."""
    first: str | None = None
    last: str | None = None
    office: str | None = None
    """The name of the office, as the list writes it."""

    def covers(self, day: date) -> bool:
        """Whether the affiliation certainly includes a day: not without a first day, nor in the year of a change."""
        text = day.isoformat()
        first, last = self.first, self.last
        if first is None or not (text[: len(first)] > first or text == first):
            return False
        return last is None or text[: len(last)] < last or text == last


@dataclass(frozen=True, slots=True)
class Person:
    """A person of a corpus."""

    id: str
    surnames: Sequence[str] = ()
    forenames: Sequence[str] = ()
    name: str | None = None
    other_names: Sequence[str] = ()
    affiliations: Sequence[Affiliation] = ()


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization of a corpus: a parliament, a party, a group, a government, or another one."""

    id: str
    role: str
    names: Sequence[Name] = ()
    short_names: Sequence[str] = ()
    founded: str | None = None
    ended: str | None = None
    events: Sequence[str] = ()
    """The identifiers of its terms or governments."""


@dataclass(slots=True)
class Lists:
    """The people and organizations of one corpus."""

    people: dict[str, Person] = field(default_factory=dict)
    organizations: dict[str, Organization] = field(default_factory=dict)
    places: dict[str, Origin] = field(default_factory=dict)
    """Where each person of a list is described; people of headers have no place."""

    def add_people(self, people: Iterable[Person], origins: Mapping[str, Origin] | None = None) -> None:
        """Add people. The first description of a person counts."""
        for person in people:
            if person.id not in self.people:
                self.people[person.id] = person
                if origins is not None:
                    self.places[person.id] = origins[person.id]

    def add_organizations(self, organizations: Iterable[Organization]) -> None:
        """Add organizations. The first description of one counts."""
        for organization in organizations:
            self.organizations.setdefault(organization.id, organization)

    def role_of(self, organization: str) -> str:
        """Return the role of an organization: as listed, else by its identifier, else ``organization``."""
        known = self.organizations.get(organization)
        return known.role if known is not None else _BY_PREFIX.get(organization.partition(".")[0], "organization")

    def party_of(self, person: Person, day: date) -> Affiliation | None:
        """Find the affiliation with the one group of a person on a day, else with the one party. None if several."""
        for role in (GROUP, PARTY):
            held = [
                each for each in person.affiliations if self.role_of(each.organization) == role and each.covers(day)
            ]
            if held:
                return held[0] if len({each.organization for each in held}) == 1 else None
        return None


def parse_people(elements: Iterable[_Element]) -> list[Person]:
    """Parse elements ``person``, without those that have no identifier."""
    return [found for each in elements if (found := parse_person(each)) is not None]


def parse_organizations(elements: Iterable[_Element]) -> list[Organization]:
    """Parse elements ``org``, without those that have no identifier."""
    return [found for each in elements if (found := parse_organization(each)) is not None]


def parse_person(element: _Element) -> Person | None:
    """Parse a ``person``; None without an identifier."""
    identifier = id_of(element)
    if identifier is None:
        return None
    forms = [(_build_name(each), each) for each in children(element, "persName")]
    forms = [(name, each) for name, each in forms if name]
    # A name with an end is an earlier one; names may also be in several scripts, and the language of the list is first.
    forms.sort(key=lambda form: (form[1].get("to") is not None, language_of(form[1]) != language_of(element)))
    main = forms[0][1] if forms else None
    return Person(
        identifier,
        tuple(filter(None, map(get_words, children(main, "surname")))) if main is not None else (),
        tuple(filter(None, map(get_words, children(main, "forename")))) if main is not None else (),
        forms[0][0] if forms else None,
        tuple(dict.fromkeys(name for name, _ in forms[1:] if name != forms[0][0])),
        tuple(found for each in children(element, "affiliation") if (found := _parse_affiliation(each)) is not None),
    )


def _build_name(element: _Element) -> str:
    """Build a name in the order in which it is spoken. Titles are left out."""
    parts = {
        tag: [get_words(each) for each in children(element, tag)]
        for tag in ("forename", "nameLink", "surname", "addName")
    }
    words = [word for tag in ("forename", "nameLink", "surname", "addName") for word in parts[tag] if word]
    return " ".join(words) or get_words(element)


def _parse_affiliation(element: _Element) -> Affiliation | None:
    organizations = get_refs(element, "ref")
    if len(organizations) != 1:
        return None
    offices = [(language_of(each), get_words(each)) for each in children(element, "roleName", "orgName")]
    spoken = language_of(element.getparent()) if element.getparent() is not None else None  # type: ignore[arg-type]
    office = next((text for language, text in offices if text and language == spoken), None)
    role = (element.get("role") or "member").strip() or "member"
    return Affiliation(
        role,
        organizations[0],
        _day(element.get("from")) or _day(element.get("when")),
        _day(element.get("to")) or _day(element.get("when")),
        office or next((text for _, text in offices if text), None),
    )


def parse_organization(element: _Element) -> Organization | None:
    """Parse an ``org``; None without an identifier."""
    identifier = id_of(element)
    if identifier is None:
        return None
    full = [each for each in children(element, "orgName") if each.get("full") in (None, "yes")]
    short = [each for each in children(element, "orgName") if each.get("full") not in (None, "yes")]
    existence = find_first(element, "event")
    return Organization(
        identifier,
        element.get("role") or "organization",
        tuple(Name(text, language_of(each)) for each in full if (text := get_words(each))),
        tuple(dict.fromkeys(text for each in short if (text := get_words(each)))),
        _day(existence.get("from")) if existence is not None else None,
        _day(existence.get("to")) if existence is not None else None,
        tuple(found for each in descendants(element, "event") if (found := id_of(each)) is not None),
    )


def _day(text: str | None) -> str | None:
    """Return a day, month or year as stated; None for another form or a day that does not exist."""
    match = _DAY.fullmatch(text.strip()) if text else None
    if match is None:
        return None
    try:
        date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None
    return "-".join(part for part in match.groups() if part)
