"""Which parliament a table is of, and the shared graphs of any other than Australia's.

No parliament is assumed. A table names its own by a column (``jurisdiction``, ``country``, ``iso3country``, ...), by
the option ``--jurisdiction``, or by its header, where that is one of Australia's own schemas. Parties, electorates,
states and offices have their Australian meaning for Australia's parliament only: elsewhere they are kept as recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.iso3166 import find_areas
from kg.vocabulary import KG, RDF, SKOS, mint, sha256
from loaders.hansard import parties
from loaders.hansard.authorities import describe_person, describe_unknown
from loaders.hansard.offices import is_chair, is_nobody, office_of
from loaders.hansard.parlamint_entities import Entities
from loaders.hansard.parlamint_lists import PARLIAMENT, Lists, Name, Organization, Person
from loaders.hansard.sitting_model import Talker
from loaders.readers.cells import quote, to_slug

AUSTRALIAN: Final = "AU"
"""The code of Australia's parliament."""
NAMING: Final = (
    "Add a column 'jurisdiction' with its country or region (AUS, NZL, GB-SCT), or give the option jurisdiction."
)
_SCHEMAS: Final = (frozenset({"hansardreference", "state"}), frozenset({"senateflag", "nameid"}))
"""Columns, without case and punctuation, that only Australia's schemas of speeches have together."""
_ID: Final = "speechid"
_REGISTERS: Final = (frozenset({"stateterritory", "dateofelection"}), frozenset({"aphid"}))
"""The same of registers of members."""


def find_code(text: str) -> str:
    """Return the code of the parliament of a country or region, such as AU, NZ or GB-SCT.

    Names of parliaments may follow the country: ``NZ-House of Representatives``. Raises RecordError for others.
    """
    for form in (text, text.partition("-")[0], text.partition(" ")[0]):
        found = {area.short if area.within is None else area.code for area in find_areas(form.strip())}
        if len(found) == 1:
            return found.pop()
    raise RecordError(f"{quote(text)} is not a country or region. Use a code of ISO 3166, such as AUS, NZL or GB-SCT.")


def is_australian(columns: Collection[str], states: Collection[str], *, register: bool = False) -> bool:
    """Whether a header is that of a schema of Australia's parliament. `columns` are without case and punctuation.

    The `states` in the rows must agree: each is a state of Australia. Without other signs there is at least one.
    """
    if any(needed <= set(columns) for needed in (_REGISTERS if register else _SCHEMAS[1:])):
        return True
    known = [parties.state(form) is not None for form in states if not parties.is_nothing(form)]
    return all(known) and (bool(known) if register else _SCHEMAS[0] <= set(columns) and (bool(known) or _ID in columns))


class Parliament:
    """The shared graphs of one chamber of a parliament other than Australia's, as `Authorities` has Australia's.

    `known_parties` are by recorded form; without any, all parties are kept as recorded.
    """

    def __init__(
        self, code: str, chamber: Organization, known_parties: Mapping[str, Organization] | None = None
    ) -> None:
        self.code: Final = code
        self.unknown: dict[str, dict[str, None]] = {}
        self._parties: Final = known_parties
        listed = {each.id: each for each in (chamber, *(known_parties or {}).values())}
        self._entities: Final = Entities(code, None, Lists(organizations=listed))
        self.chamber: Final = self._entities.organization(chamber.id)

    @classmethod
    def of_chamber(cls, code: str, form: str) -> Parliament:
        """Open the chamber with this name."""
        return cls(code, Organization(to_slug(form), PARLIAMENT, (Name(" ".join(form.split()), None),)))

    @property
    def jurisdiction(self) -> NamedNode:
        """The country or region."""
        return self._entities.jurisdiction

    @property
    def graphs(self) -> dict[NamedNode, Sequence[Quad]]:
        """The graphs of the entities that were used."""
        return self._entities.graphs

    def warnings(self) -> Iterator[str]:
        """Yield a warning for the forms that stay as recorded."""
        for kind, forms in self.unknown.items():
            yield describe_unknown(kind, forms)

    def office(self, talker: Talker) -> str | None:
        """Return the office under which a person speaks, by its English name. Identifiers are of people."""
        if talker.name_id:
            return "chair" if is_chair(talker.name) else None
        return office_of(talker)

    def person(self, talker: Talker) -> NamedNode | None:
        """Return the person who speaks, or None for an office, a crowd or an unknown person."""
        name = talker.full_name or talker.name
        identifier = (talker.name_id or "").strip()
        if identifier:
            return self.registered([] if self.office(talker) else [name], identifier)
        if self.office(talker) is not None or is_nobody(name) or not name.strip():
            return None
        told_apart = f"{' '.join(name.casefold().split())}\n{self.chamber.value}"
        return self.registered([name], None, f"name-{to_slug(name)}-{sha256(told_apart)[:8]}")

    def registered(self, names: Sequence[str], identifier: str | None, key: str = "") -> NamedNode:
        """Return the person whom a source lists, by the identifier in it, else by a `key` of its own."""
        if identifier is not None:
            person = Person(identifier, name=next(iter(names), None), other_names=tuple(names[1:]))
            self._entities.lists.people[identifier] = person
            return self._entities.person(identifier)
        iri, graph, said = describe_person(f"{self.code}.{key}", "unverified", names)
        self.graphs[graph] = said
        return iri

    def state(self, form: str) -> NamedNode | None:
        """Note the form and return None: states of other countries are not known."""
        if self._parties is not None:
            self.unknown.setdefault("state", {})[form] = None
        return None

    def electorate(self, form: str) -> tuple[NamedNode, str]:
        """Return the electorate and its name."""
        key = self.code.casefold(), to_slug(form)
        iri, graph = mint("electorate", *key), mint("graph", "ref", "electorate", *key)
        self.graphs[graph] = [
            Quad(iri, RDF.type, KG.Electorate, graph),
            Quad(iri, SKOS.prefLabel, Literal(form), graph),
            Quad(iri, KG.within, self.jurisdiction, graph),
        ]
        return iri, form

    def party(self, form: str) -> NamedNode | None:
        """Return the party of a recorded form. An unknown form is noted where some are known."""
        found = None if self._parties is None else self._parties.get(form.casefold())
        if found is None:
            if self._parties is not None:
                self.unknown.setdefault("party", {})[form] = None
            return None
        return self._entities.organization(found.id)
