"""Entities that speeches share: people, parties, chambers, places, electorates and bills, each in its own graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.text import join_first
from kg.vocabulary import DCTERMS, FOAF, KG, RDF, SKOS, mint, sha256
from loaders.hansard import parties
from loaders.hansard.electorates import find_state
from loaders.hansard.identifiers import Identifiers
from loaders.hansard.offices import identifier_of, is_nobody, is_office, office_of, strip_office
from loaders.hansard.sitting_model import Talker
from loaders.readers.cells import quote, to_slug

AUSTRALIA: Final = mint("place", "AUS")

_LISTED: Final = 12
"""Maximum number of unknown forms of a kind that a warning lists; further ones are counted."""
_AFFILIATIONS: Final = mint("graph", "ref", "membership").value + "/"
_IDENTIFIED: Final = "aph-"
_PERSON: Final = mint("person", _IDENTIFIED).value
_NAMES: Final = (FOAF.name, SKOS.altLabel)
_ONE_VALUE: Final = (FOAF.name, SKOS.prefLabel, DCTERMS.title)


def merge_quads(
    stored: Sequence[Quad], said: Sequence[Quad], is_identified: Callable[[Talker], bool] = lambda talker: True
) -> Sequence[Quad]:
    """Merge the quads of a record into a shared graph, with one name per entity.

    Stored names that are no longer known for the identifier of a person, as `is_identified` determines, are left out.

    Other names of a person become alternative labels of the fullest. The result does not depend on the order in which
    records are read. Affiliations that a component of a corpus lists replace those of an earlier one.
    """
    if said and said[0].graph_name.value.startswith(_AFFILIATIONS):  # type: ignore[union-attr]
        return said
    stored = [quad for quad in stored if (talker := _to_talker(quad)) is None or is_identified(talker)]
    quads = dict.fromkeys(kept for quad in (*stored, *said) if (kept := _without_office(quad)) and not _is_id(quad))
    names: dict[tuple[object, NamedNode, str | None], list[Quad]] = defaultdict(list)
    for quad in quads:
        if quad.predicate in _ONE_VALUE and isinstance(quad.object, Literal):
            names[quad.subject, quad.predicate, quad.object.language].append(quad)
    for (_, predicate, _), several in names.items():
        several.sort(key=lambda quad: _fullness(quad.object.value), reverse=True)  # type: ignore[union-attr]
        for quad in several[1:]:
            del quads[quad]
            if predicate == FOAF.name:
                quads[Quad(quad.subject, SKOS.altLabel, quad.object, quad.graph_name)] = None
    chosen = {(quad.subject, quad.object) for quad in quads if quad.predicate in _ONE_VALUE}
    return [quad for quad in quads if quad.predicate != SKOS.altLabel or (quad.subject, quad.object) not in chosen]


def add_registered(identifiers: Identifiers, said: Sequence[Quad]) -> None:
    """Add the names that a register has for the identifiers of people."""
    for talker in filter(None, map(_to_talker, said)):
        identifiers.add_registered(talker.name_id or "", talker.name)


def _to_talker(quad: Quad) -> Talker | None:
    """Return the identifier and the name that a quad gives a person; None for another quad."""
    if quad.predicate not in _NAMES or not isinstance(quad.subject, NamedNode) or not isinstance(quad.object, Literal):
        return None
    key = quad.subject.value.removeprefix(_PERSON)
    return Talker(quad.object.value, None, key) if key != quad.subject.value else None


def _is_id(quad: Quad) -> bool:
    """Whether a name is the id of the person: up to version 5 the loader wrote it where it knew no name."""
    name = quad.object.value if quad.predicate == FOAF.name and isinstance(quad.object, Literal) else ""
    return bool(name) and quad.subject == mint("person", f"{_IDENTIFIED}{name}")


def _without_office(quad: Quad) -> Quad | None:
    """Return a name of a person without the office that versions before 8 left in it; None if it was only that."""
    if quad.predicate not in _NAMES or not isinstance(quad.object, Literal) or quad.object.language:
        return quad
    name = strip_office(quad.object.value)
    if name == quad.object.value:
        return quad
    return Quad(quad.subject, quad.predicate, Literal(name), quad.graph_name) if name else None


def _fullness(name: str) -> tuple[bool, bool, int, str]:
    """Sort key of names: family name first with a comma, then those not all in capitals, then the longest."""
    return "," in name, name != name.upper(), len(name), name


@cache
def _described(kind: str, thing: NamedNode) -> tuple[NamedNode, Sequence[Quad]]:
    key = thing.value.rpartition("/")[2]
    graph = mint("graph", "ref", kind, key)
    return graph, [Quad(said.subject, said.predicate, said.object, graph) for said in parties.describe(thing)]


def describe_unknown(kind: str, forms: Iterable[str]) -> str:
    """Describe the recorded forms of a kind, such as party or state, that have no known meaning."""
    listed = join_first([quote(form) for form in forms], _LISTED)
    return f"{kind} {listed}: no known {kind}, so it is kept as recorded only"


def describe_person(
    key: str, status: str, names: Sequence[str], identifier: str | None = None
) -> tuple[NamedNode, NamedNode, list[Quad]]:
    """Describe a person: the IRI, the graph and its quads."""
    iri, graph = mint("person", key), mint("graph", "ref", "person", key)
    said = [
        Quad(iri, RDF.type, FOAF.Person, graph),
        Quad(iri, KG.identityStatus, mint("code", "identityStatus", status), graph),
        *(Quad(iri, FOAF.name, Literal(name), graph) for name in names),
    ]
    if identifier:
        said.append(Quad(iri, DCTERMS.identifier, Literal(identifier), graph))
    return iri, graph, said


class Authorities:
    """The shared graphs that the records of one chamber of Australia's parliament and one day use, and the recorded
    forms without a known meaning.

    `is_identified` determines whether the identifier of a talker is that of the person whom the record names.
    """

    jurisdiction: Final = AUSTRALIA

    def __init__(
        self, chamber: NamedNode, on: date, is_identified: Callable[[Talker], bool] = lambda talker: True
    ) -> None:
        self.chamber: Final = chamber
        self.on: Final = on
        self._is_identified: Final = is_identified
        self.graphs: dict[NamedNode, Sequence[Quad]] = {}
        self.unknown: dict[str, dict[str, None]] = defaultdict(dict)
        """Recorded forms without a known meaning, by kind."""
        self._people: dict[Talker, NamedNode | None] = {}
        self._known("place", AUSTRALIA)
        self._known("chamber", chamber)

    def warnings(self) -> Iterator[str]:
        """Yield a warning for the forms that stay as recorded."""
        for kind, forms in self.unknown.items():
            yield describe_unknown(kind, forms)

    def office(self, talker: Talker) -> str | None:
        """Return the office under which a person speaks: chair or clerk."""
        return office_of(talker)

    def person(self, talker: Talker) -> NamedNode | None:
        """Return the person who speaks, or None for an office, a crowd, an unknown person, or another's identifier."""
        name_id = identifier_of(talker)
        if name_id is None and (office_of(talker) is not None or is_nobody(talker.name)):
            return None
        if name_id is None and not (talker.full_name or talker.name).strip():
            return None
        if talker not in self._people:
            if name_id and not self._is_identified(talker):
                self._people[talker] = None
            else:
                self._people[talker] = self._identified(name_id, talker) if name_id else self._named(talker)
        return self._people[talker]

    def voter(self, name: str, name_id: str | None) -> NamedNode | None:
        """Return the person who votes in a division, or None where the source gives only part of a name."""
        return self.person(Talker(name, name_id=name_id)) if name_id else None

    def registered(self, names: Sequence[str], identifier: str | None, key: str = "") -> NamedNode:
        """Return the person whom a register lists, by `identifier` of the parliament, else by a `key` of its own."""
        if identifier is None:
            return self._person(key, "unverified", names)
        return self._person(f"{_IDENTIFIED}{identifier}", "identified", names, identifier)

    def _identified(self, name_id: str, talker: Talker) -> NamedNode:
        forms = [talker.full_name] if office_of(talker) is not None else [talker.full_name, talker.name]
        names = [name for form in forms if form and not is_office(form) and (name := strip_office(form))]
        return self._person(f"{_IDENTIFIED}{name_id}", "identified", names, name_id)

    def _named(self, talker: Talker) -> NamedNode:
        name = talker.full_name or talker.name
        state = parties.state(talker.state or "")
        told_apart = [" ".join(name.casefold().split()), self.chamber.value, state.value if state else ""]
        return self._person(f"name-{to_slug(name)}-{sha256(chr(10).join(told_apart))[:8]}", "unverified", [name])

    def _person(self, key: str, status: str, names: Sequence[str], identifier: str | None = None) -> NamedNode:
        iri, graph, said = describe_person(key, status, names, identifier)
        self.graphs[graph] = merge_quads(self.graphs.get(graph, ()), said)
        return iri

    def party(self, form: str) -> NamedNode | None:
        """Return the party that a form means on the day. An unknown form is noted."""
        return self._found("party", form, parties.party(form, self.on))

    def state(self, form: str, *, certain: bool = True) -> NamedNode | None:
        """Return the state that a form means. An unknown form is noted where it is `certain` that it names a state."""
        found = parties.state(form)
        if found is None and not certain:
            return None
        return self._found("state", form, found)

    def electorate(self, form: str) -> tuple[NamedNode, str] | None:
        """Return the named electorate and its name, or None."""
        name = parties.electorate(form)
        if name is None:
            return None
        if (state := find_state(name, self.on.year)) is not None:
            self._known("place", state)  # graphs derived from the electorate refer to it
        slug = to_slug(name)
        iri, graph = mint("electorate", "au", slug), mint("graph", "ref", "electorate", "au", slug)
        self._add(
            graph,
            Quad(iri, RDF.type, KG.Electorate, graph),
            Quad(iri, SKOS.prefLabel, Literal(name, language="en"), graph),
            Quad(iri, KG.within, AUSTRALIA, graph),
        )
        return iri, name

    def bill(self, title: str, number: str | None = None) -> NamedNode:
        """Return the bill with this title. `number` is its number in the register of the parliament."""
        slug = to_slug(title)
        iri, graph = mint("bill", "au", slug), mint("graph", "ref", "bill", "au", slug)
        self._add(
            graph,
            Quad(iri, RDF.type, KG.Bill, graph),
            Quad(iri, DCTERMS.title, Literal(" ".join(title.split())), graph),
            Quad(iri, KG.jurisdiction, AUSTRALIA, graph),
            *((Quad(iri, DCTERMS.identifier, Literal(number), graph),) if number else ()),
        )
        return iri

    def venue(self, form: str) -> NamedNode | None:
        """Return the part of the chamber that met apart. An unknown one is noted."""
        found = parties.venue(form)
        if found is None:
            self.unknown["venue"][form] = None
            return None
        return self._known("chamber", found)

    def _found(self, kind: str, form: str, found: NamedNode | None) -> NamedNode | None:
        if found is None:
            if not parties.is_nothing(form):
                self.unknown[kind][form] = None
            return None
        return self._known("place" if kind == "state" else kind, found)

    def _known(self, kind: str, thing: NamedNode) -> NamedNode:
        graph, said = _described(kind, thing)
        self.graphs[graph] = said
        return thing

    def _add(self, graph: NamedNode, *said: Quad) -> None:
        self.graphs[graph] = merge_quads(self.graphs[graph], said) if graph in self.graphs else said
