"""The affiliations of the people of a corpus: dated and typed memberships.

People of a list are one record each, with the row of the list. People whom only the headers of components describe,
each component again, are shared graphs: the component that is read last counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import KG, ORG, RDF, SCHEMA, XSD, mint, sha256
from loaders.hansard.parlamint_entities import Entities, person_key
from loaders.hansard.parlamint_lists import Affiliation, Person
from loaders.model import Origin, SourceGraph

_TYPES: Final = {4: XSD.gYear, 7: XSD.gYearMonth, 10: XSD.date}
_UNSAFE: Final = re.compile(r"\s+")


def build_person_record(domain: str, entities: Entities, person: Person, origin: Origin) -> SourceGraph | None:
    """Build the record of a person of a list; None without affiliations. `origin` is the row of the person."""
    if not person.affiliations:
        return None
    key = ("parlamint", entities.code, "person", person.id)
    quads = build_memberships(entities, person, mint("graph", "src", domain, *key))
    iri = mint("membership", person_key(entities.code, person.id))
    told = sorted(entities.used, key=lambda each: each.id)
    return SourceGraph(domain, key, iri, quads, (origin,), sha256(repr((person, told))), entities.graphs, (), (origin,))


def build_memberships(entities: Entities, person: Person, graph: NamedNode) -> list[Quad]:
    """Build the memberships of a person."""
    member, key = entities.person(person.id), person_key(entities.code, person.id)
    quads: list[Quad] = []
    taken: dict[tuple[str, ...], int] = {}
    for held in dict.fromkeys(person.affiliations):
        organization = entities.organization(held.organization)
        parts = (*_path(organization), _UNSAFE.sub("-", held.role), held.first or "undated")
        number = taken[parts] = taken.get(parts, 0) + 1
        node = mint("membership", key, *parts, *((str(number),) if number > 1 else ()))
        quads += [
            Quad(node, RDF.type, ORG.Membership, graph),
            Quad(node, ORG.member, member, graph),
            Quad(node, ORG.organization, organization, graph),
            Quad(node, ORG.role, entities.role(held.role), graph),
            *(Quad(node, predicate, value, graph) for predicate, value in _dated(held)),
        ]
        if held.office:
            quads.append(Quad(node, KG.affiliationAsRecorded, Literal(held.office), graph))
    return quads


def _dated(held: Affiliation) -> Iterator[tuple[NamedNode, Literal]]:
    for predicate, day in ((SCHEMA.startDate, held.first), (SCHEMA.endDate, held.last)):
        if day is not None:
            yield predicate, Literal(day, datatype=_TYPES[len(day)])


def _path(organization: NamedNode) -> Sequence[str]:
    kind, _, name = organization.value.rpartition("/id/")[2].partition("/")
    return kind, name
