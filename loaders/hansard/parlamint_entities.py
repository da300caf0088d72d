"""Shared graphs of a corpus: its place, chambers, parties, other organizations, people and roles.

All of them come from the lists of the corpus. What no list describes keeps its identifier as its name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.iso3166 import find_areas
from kg.vocabulary import DCTERMS, FOAF, KG, ORG, RDF, SCHEMA, SKOS, XSD, mint
from loaders.hansard.parlamint_lists import GROUP, PARLIAMENT, PARTY, Lists, Name, Organization, Person
from loaders.readers.places import build_place_graphs

ROLES: Final = frozenset(("member", "head", "deputyHead", "minister", "deputyMinister", "secretary", "replacement"))
"""The codes of roles in the ontology. Others get a graph of their own."""

_KINDS: Final = {PARLIAMENT: "chamber", PARTY: "party", GROUP: "party"}


class Entities:
    """The entities that the records of one corpus share, with the graphs of those that were used."""

    def __init__(self, code: str, country: str | None, lists: Lists) -> None:
        self.code: Final = code
        self.lists: Final = lists
        self.graphs: dict[NamedNode, Sequence[Quad]] = {}
        self.used: set[Person | Organization] = set()
        """The people and organizations of the lists that were used."""
        place = find_place_code(code)
        self.jurisdiction: Final = mint("place", place)
        self.graphs |= build_place_graphs(place, country if place == code and "-" not in code else None)

    def find_chamber(self, references: Sequence[str], house: tuple[str, str | None] | None = None) -> str:
        """Find the chamber that a meeting refers to, by itself or by a term; else the only one of the corpus.

        `house` is the house that meets, with its name: where the lists have one parliament for two, each is a chamber.
        """
        found = self._find_parliament(references)
        if house is None:
            return found
        of_house = [
            each.id for each in self.lists.organizations.values() if each.role == PARLIAMENT and house[0] in each.houses
        ]
        listed = self.lists.organizations.get(found)
        own: Collection[str] = listed.houses if listed is not None else ()
        if own == {house[0]}:
            return found
        if len(of_house) == 1 and of_house != [found]:
            return of_house[0]
        if listed is not None and not own and len(self.lists.houses) < 2:
            return found  # the corpus has one house
        key = f"{found}.{house[0]}"
        self.lists.organizations.setdefault(
            key, Organization(key, PARLIAMENT, (Name(house[1] or f"{house[0]} house", None if house[1] else "en"),))
        )
        return key

    def _find_parliament(self, references: Sequence[str]) -> str:
        known = {each.id for each in self.lists.organizations.values() if each.role == PARLIAMENT}
        of_terms = {
            event: each.id for each in self.lists.organizations.values() if each.id in known for event in each.events
        }
        found = next((of_terms.get(each, each) for each in references if each in known or each in of_terms), None)
        if found is not None:
            return found
        return next(iter(known)) if len(known) == 1 else next(iter(references), PARLIAMENT)

    def organization(self, identifier: str, role: str | None = None) -> NamedNode:
        """Return an organization; `role` is that of one that no list describes."""
        listed = self.lists.organizations.get(identifier)
        role = listed.role if listed is not None else role or self.lists.role_of(identifier)
        key = f"{self.code}.{identifier}"
        if role == PARLIAMENT:
            iri, graph, kind = mint("chamber", key), mint("graph", "ref", "chamber", key), KG.Chamber
        elif role in _KINDS:
            iri, graph, kind = mint("party", key), mint("graph", "ref", "party", key), KG.Party
        else:
            iri, graph, kind = mint("organization", key), mint("graph", "ref", "organization", key), ORG.Organization
        if graph in self.graphs:
            return iri
        if listed is not None:
            self.used.add(listed)
        said = [Quad(iri, RDF.type, kind, graph)]
        labels: dict[str | None, str] = {}
        for name in listed.names if listed is not None else ():
            label = Literal(name.text, language=name.language) if name.language else Literal(name.text)
            predicate = SKOS.altLabel if name.language in labels else SKOS.prefLabel
            labels.setdefault(name.language, name.text)
            said.append(Quad(iri, predicate, label, graph))
        if not labels:
            said.append(Quad(iri, SKOS.prefLabel, Literal(identifier.rpartition(".")[2] or identifier), graph))
        said += [Quad(iri, SKOS.notation, Literal(name), graph) for name in (listed.short_names if listed else ())]
        if kind == KG.Chamber:
            said.append(Quad(iri, KG.jurisdiction, self.jurisdiction, graph))
        elif kind == KG.Party and listed is not None:
            for predicate, day in ((SCHEMA.foundingDate, listed.founded), (SCHEMA.dissolutionDate, listed.ended)):
                if day is not None:
                    said.append(Quad(iri, predicate, Literal(day[:4], datatype=XSD.gYear), graph))
        self.graphs[graph] = said
        return iri

    def person(self, identifier: str) -> NamedNode:
        """Return a person, who has no name if no list describes them."""
        key = person_key(self.code, identifier)
        iri, graph = mint("person", key), mint("graph", "ref", "person", key)
        if graph in self.graphs:
            return iri
        said = [
            Quad(iri, RDF.type, FOAF.Person, graph),
            Quad(iri, KG.identityStatus, mint("code", "identityStatus", "identified"), graph),
            Quad(iri, DCTERMS.identifier, Literal(identifier), graph),
        ]
        person = self.lists.people.get(identifier)
        if person is not None:
            self.used.add(person)
            if person.name:
                said.append(Quad(iri, FOAF.name, Literal(person.name), graph))
            said += [Quad(iri, SKOS.altLabel, Literal(name), graph) for name in person.other_names]
        self.graphs[graph] = said
        return iri

    def role(self, role: str) -> NamedNode:
        """Return the code of a role in an organization."""
        iri = mint("code", "membershipRole", role)
        if role not in ROLES:
            graph = mint("graph", "ref", "code", "membershipRole", role)
            self.graphs[graph] = [
                Quad(iri, RDF.type, SKOS.Concept, graph),
                Quad(iri, SKOS.inScheme, mint("code", "membershipRole"), graph),
                Quad(iri, SKOS.notation, Literal(role), graph),
                Quad(iri, SKOS.prefLabel, Literal(role, language="en"), graph),
            ]
        return iri


def person_key(code: str, identifier: str) -> str:
    """Return the key of a person, also in the names of graphs. The code of a corpus contains no dot."""
    return f"{code}.{identifier}"


@lru_cache(maxsize=64)
def find_place_code(code: str) -> str:
    """Return the place of a corpus: alpha-3 of a country, ISO 3166-2 of a region, else the code of the corpus."""
    found = (
        area.code for area in find_areas(code) if area.code == code or (area.short == code and area.within is None)
    )
    return next(found, code)
