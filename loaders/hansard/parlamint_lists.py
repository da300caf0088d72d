"""People and organizations of a corpus, from lists and from headers of components."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from lxml.etree import _Element

from kg.text import join_first, quoted
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
HOUSES: Final = ("parla.lower", "parla.upper")
_LISTED: Final = 5
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
    wrong_dates: Sequence[str] = ()
    """Its dates that cannot be read. So it is unknown when the affiliation holds."""

    @property
    def is_undated(self) -> bool:
        """Whether the list states no day at all."""
        return not (self.first or self.last or self.wrong_dates)

    def covers(self, day: date) -> bool:
        """Whether the affiliation certainly includes a day: not without a first day, nor in the year of a change."""
        text = day.isoformat()
        first, last = self.first, self.last
        if self.wrong_dates or first is None or not (text[: len(first)] > first or text == first):
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
    unread: int = 0
    """Number of affiliations that name no organization."""


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
    houses: frozenset[str] = frozenset()
    """The houses of a parliament that it is: lower, upper."""


@dataclass(slots=True)
class Lists:
    """The people and organizations of one corpus."""

    people: dict[str, Person] = field(default_factory=dict)
    organizations: dict[str, Organization] = field(default_factory=dict)
    places: dict[str, Origin] = field(default_factory=dict)
    """Where each person of a list is described; people of headers have no place."""
    houses: set[str] = field(default_factory=set)
    """The houses whose meetings the root of the corpus lists."""

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
        """Find the affiliation with the one group of a person on a day, else with the one party. None if several.

        The only affiliation of its role that a person has holds on all days if the list states none.
        """
        for role in (GROUP, PARTY):
            listed = [each for each in person.affiliations if self.role_of(each.organization) == role]
            held = [each for each in listed if each.covers(day)] or [each for each in listed if each.is_undated]
            if held:
                those = listed if held[0].is_undated else held
                return held[0] if len({each.organization for each in those}) == 1 else None
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
    stated = list(children(element, "affiliation"))
    return Person(
        identifier,
        tuple(filter(None, map(get_words, children(main, "surname")))) if main is not None else (),
        tuple(filter(None, map(get_words, children(main, "forename")))) if main is not None else (),
        forms[0][0] if forms else None,
        tuple(dict.fromkeys(name for name, _ in forms[1:] if name != forms[0][0])),
        tuple(affiliations := [each for each in map(_parse_affiliation, stated) if each is not None]),
        len(stated) - len(affiliations),
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
    dates = {name: element.get(name) for name in ("from", "to", "when")}
    wrong = [f"{name}={quoted(text)}" for name, text in dates.items() if text and _day(text) is None]
    first, last = (_day(dates[name]) or _day(dates["when"]) for name in ("from", "to"))
    if first is not None and last is not None and last < first[: len(last)]:
        wrong.append(f"from={quoted(first)} to={quoted(last)}")
    return Affiliation(
        role, organizations[0], first, last, office or next((text for _, text in offices if text), None), tuple(wrong)
    )


def describe_unread(people: Sequence[Person]) -> Iterator[str]:
    """Describe the affiliations of a list that are not read, or not their dates."""
    wrong = [(person.id, text) for person in people for held in person.affiliations for text in held.wrong_dates]
    if wrong:
        listed = join_first([f"{person} {text}" for person, text in wrong], _LISTED)
        yield (
            f"{len(wrong)} date{'s' * (len(wrong) > 1)} of affiliations cannot be read, or end before they begin: "
            f"{listed}. It is unknown when they hold, so no party follows from them"
        )
    if count := sum(person.unread for person in people):
        yield f"{count} affiliation{'s' * (count > 1)} without one organization (ref): left out"


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
        find_houses(element),
    )


def find_houses(element: _Element) -> frozenset[str]:
    """Find the houses that an organization or a meeting is of, by its ``ana``: lower, upper."""
    return frozenset(each.removeprefix("parla.") for each in get_refs(element, "ana") if each in HOUSES)


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
