"""Places as one hierarchy: municipality, state, country. Every place filter finds its places here.

The hierarchy is that of the store (``kg:within``), completed by ISO 3166 for places that the store does not describe.
It is small: it is loaded once per generation, and queries get the places inside a place as VALUES, since ``kg:within*``
inside a join is slow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode

from kg import iso3166
from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import fold, nearest
from kg.iso3166 import Area
from kg.retrieval.notes import SEE_RESOURCES
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.vocabulary import BASE, KG, SKOS, iri_prefix, mint

PLACES: Final = """
SELECT DISTINCT ?place ?graph ?property ?value WHERE {
  { ?place a kg:Place } UNION { ?place a kg:Municipality }
  GRAPH ?graph { ?place ?property ?value }
  FILTER(?property IN (skos:prefLabel, skos:altLabel, skos:notation, kg:within))
}"""

IN_USE: Final = """
SELECT ?place ?role WHERE {
  {
    VALUES ?place { $places }
    FILTER EXISTS { ?thing kg:jurisdiction ?place FILTER NOT EXISTS { ?thing kg:lawType ?type } }
    BIND("jurisdiction" AS ?role)
  }
  UNION { VALUES ?place { $places } FILTER EXISTS { ?speech kg:state ?place } BIND("state" AS ?role) }
}"""

SHOWN: Final = 8
"""Maximum number of places in a message."""
TEXT_CHARACTERS: Final = 300
CODE_CHARACTERS: Final = 6
"""Maximum length of a code of ISO 3166, of which one letter may be wrong."""

_LEAST_CODE: Final = 60
"""Least similarity of a suggested code, in percent: one of three letters may be wrong."""
_LEAST_NAME: Final = 70
"""Least similarity of a suggested name of a place in the store, in percent."""
_LEAST_UNUSED: Final = 75
"""Least similarity of a suggested name of another place of ISO 3166, in percent."""

_PLACE: Final = iri_prefix("place")
_MUNICIPALITY: Final = iri_prefix("municipality")
_COMMON: Final = frozenset({"city", "town", "village", "borough", "township", "of", "the", "municipality"})
"""Words that names of municipalities may lack."""
_NO_PLACES: Final = (BASE + "graph/der/", BASE + "graph/ext/", BASE + "graph/gen/")
"""Graphs that texts and models can determine: what they state of places does not move them."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the store or of ISO 3166."""

    iri: str
    code: str
    """Code of the source or of ISO 3166 (USA, US-UT), or the key of a municipality (us-ut-quarry-bend)."""
    names: Sequence[str]
    """All names, the label first; none for a place without a name."""
    within: Sequence[str]
    """IRIs of the places that contain it directly."""

    @property
    def name(self) -> str:
        """Its label, else its code."""
        return self.names[0] if self.names else self.code

    @property
    def kind(self) -> str:
        """``municipality``, ``subdivision`` or ``country``; ``area`` for a code that is not of ISO 3166."""
        if self.iri.startswith(_MUNICIPALITY):
            return "municipality"
        area = iso3166.find_area(self.code)
        return "area" if area is None else "subdivision" if area.within else "country"


@dataclass(frozen=True, slots=True)
class InUse:
    """The places in use: jurisdictions of records, and states of speakers. A law that is only cited is not a record."""

    jurisdictions: frozenset[str]
    states: frozenset[str]


class Places:
    """The places of the store, and those of ISO 3166."""

    def __init__(self, stored: Mapping[str, Place]) -> None:
        self.stored: Final = stored
        self._parts: Final[dict[str, dict[str, None]]] = defaultdict(dict)
        self._by_name: Final[dict[str, dict[str, None]]] = defaultdict(dict)
        self._by_words: Final[dict[str, dict[str, None]]] = defaultdict(dict)
        self._by_exact_code: Final = {place.code: iri for iri, place in stored.items()}
        self._by_code: Final = {place.code.casefold(): iri for iri, place in stored.items()}
        for iri, place in stored.items():
            # With the places between them and their country that the store does not describe.
            for inner in (place, *self.get_chain(place)):
                for outer in self._above(inner):
                    self._parts[outer][inner.iri] = None
            for name in place.names:
                if key := fold(name):
                    self._by_name[key][iri] = None
                    if iri.startswith(_MUNICIPALITY):
                        self._by_words[_without_common_words(key)][iri] = None

    def _above(self, place: Place) -> Sequence[str]:
        """Get the IRIs of the places that contain `place` directly, by ISO 3166 if the store has none."""
        area = None if place.within or place.kind == "municipality" else iso3166.find_area(place.code)
        return [mint("place", area.within).value] if area is not None and area.within else place.within

    def get(self, iri: str) -> Place | None:
        """Get the place with this IRI."""
        if iri in self.stored or not iri.startswith(_PLACE):
            return self.stored.get(iri)
        area = iso3166.find_area(code := unquote(iri.removeprefix(_PLACE)))
        return _of_area(area) if area is not None and area.code == code else None

    def find_by_code(self, code: str) -> Place | None:
        """Get the place with this code, in any case."""
        iri = self._find_code(code)
        return self.stored[iri] if iri is not None else self.get(mint("place", code).value)

    def _find_code(self, code: str) -> str | None:
        """Find the IRI of the place of the store with this code, in any case if none has it as it is written.

        The District of Columbia is US-DC, and its municipality us-dc.
        """
        return self._by_exact_code.get(code) or self._by_code.get(code.casefold())

    def name_of(self, code: str) -> str:
        """Get the name of the place with this code, else the code."""
        place = self.find_by_code(code)
        return code if place is None else place.name

    def get_chain(self, place: Place) -> Sequence[Place]:
        """Get the places that contain `place`, the smallest first."""
        found: dict[str, Place] = {}
        queue = [*self._above(place)]
        for iri in queue:
            if iri != place.iri and iri not in found and (outer := self.get(iri)) is not None:
                found[iri] = outer
                queue += self._above(outer)
        return [*found.values()]

    def get_parts(self, iri: str) -> Sequence[str]:
        """Get the IRIs of the places directly inside a place that the store has, or has parts of."""
        return [*self._parts.get(iri, ())]

    def get_all_parts(self, iri: str) -> Sequence[str]:
        """Get a place and all places inside it that the store has, at any depth."""
        found = [iri]
        seen = {iri}
        for outer in found:
            fresh = [part for part in self.get_parts(outer) if part not in seen]
            seen.update(fresh)
            found += fresh
        return found

    def find(self, text: str) -> list[Place]:
        """Find the places that `text` denotes: several if it is ambiguous, none if it is unknown.

        `text` is an IRI, a code, a name, or a name and a place that contains it: ``Sandy, Utah``. A name of a country
        and of a part of it (Djibouti, Guatemala) denotes the country.
        """
        found = self._find(text)
        iris = {place.iri for place in found}
        return [
            place
            for place in found
            if place.kind != "subdivision" or iris.isdisjoint(outer.iri for outer in self.get_chain(place))
        ]

    def _find(self, text: str) -> list[Place]:
        """Find the places that `text` denotes, a country and a part of it with the same name too."""
        given = text.strip().strip("<>").strip()
        if (place := self.get(given)) is not None:
            return [place]
        if (iri := self._find_code(given)) is not None:
            return [self.stored[iri]]
        areas = iso3166.find_areas(given)
        key = fold(given)
        iris = dict.fromkeys([*(mint("place", area.code).value for area in areas), *self._by_name.get(key, ())])
        if not iris:
            iris = dict(self._by_words.get(_without_common_words(key), {}))
        found = [place for iri in iris if (place := self.get(iri)) is not None]
        return self._without_same(found) if found else self._find_qualified(given)

    def _find_qualified(self, text: str) -> list[Place]:
        name, comma, outer = text.rpartition(",")
        if not comma or not name.strip() or not outer.strip():
            return []
        outside = {each.iri for each in self.find(outer)}
        inside = [place for place in self._find(name) if outside & {each.iri for each in self.get_chain(place)}]
        # "Georgia, USA" is the state, not a town in one of the states.
        return [place for place in inside if not outside.isdisjoint(self._above(place))] or inside

    def _without_same(self, found: Sequence[Place]) -> list[Place]:
        """Keep one of the places that are one area in ISO 3166: one in the store, if any is."""
        kept: list[Place] = []
        for place in sorted(found, key=lambda place: (place.kind == "municipality", place.iri not in self.stored)):
            # The District of Columbia is a subdivision and its own municipality.
            if not any(iso3166.is_same_area(place.code.upper(), other.code.upper()) for other in kept):
                kept.append(place)
        return kept

    def show(self, place: Place) -> str:
        """Format a place for messages: ``Utah, United States (US-UT)``."""
        names = ", ".join([place.name, *(outer.name for outer in self.get_chain(place))])
        return f"{name_or_quote(names)} ({name_or_quote(place.code)})"

    def find_similar(self, text: str, preferred: Collection[str]) -> list[str]:
        """Find places with names or codes similar to `text`, formatted for messages, those in `preferred` first."""
        owners: dict[str, str] = {}
        for iri in sorted(self.stored, key=lambda iri: iri not in preferred):
            place = self.stored[iri]
            for name in (*place.names, place.code):
                owners.setdefault(fold(name), iri)
        least = _LEAST_CODE if len(fold(text)) <= CODE_CHARACTERS else _LEAST_NAME
        own = [owners[name] for name in nearest(fold(text), owners, SHOWN, least=least)]
        names = {fold(name): area for area in iso3166.load_areas().values() for name in area.names}
        others = [mint("place", names[name].code).value for name in nearest(fold(text), names, 3, least=_LEAST_UNUSED)]
        found = (self.get(iri) for iri in dict.fromkeys([*own, *others]))
        return [self.show(place) for place in found if place is not None][:SHOWN]


def load_places(reader: Reader) -> Places:
    """Load the hierarchy of places. Cached until the next commit."""
    return reader.kept("places", PLACES, _read_places, declared=("place",))


def load_places_in_use(reader: Reader) -> InUse:
    """Load which places of the store are in use. Cached until the next commit."""
    return _load_in_use(reader, sorted(load_places(reader).stored))


def find_place(reader: Reader, argument: str, text: str) -> Place:
    """Find the place that `text` denotes.

    Raises NotFoundError with similar places, and InvalidInputError with the choices for an ambiguous name.
    """
    wanted = clean_text(argument, text, TEXT_CHARACTERS)
    places = load_places(reader)
    found = places.find(wanted)
    if len(found) == 1:
        return found[0]
    in_use = load_places_in_use(reader)
    preferred = in_use.jurisdictions | in_use.states
    if found:
        choices = "; ".join(places.show(place) for place in found[:SHOWN])
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise InvalidInputError(
            f"{argument}: The name {quoted(text)} is ambiguous: {choices}{more}. Give the code in parentheses."
        )
    similar = places.find_similar(wanted, preferred)
    hint = f"Similar: {'; '.join(similar)}." if similar else _available(places, preferred)
    raise NotFoundError(f"{argument}: Unknown place {quoted(text)}. {hint}")


@dataclass(frozen=True, slots=True)
class Territory:
    """Some places with all places inside them, as far as records have them."""

    jurisdictions: Sequence[NamedNode]
    """Those that records have as their jurisdiction."""
    states: Sequence[NamedNode]
    """Those whose members' speeches count: states without their country, whose parliament the speeches are of."""
    empty: Sequence[str]
    """Messages about places without records."""


def load_territory(reader: Reader, argument: str, places: Iterable[Place]) -> Territory:
    """Load the places inside `places` that records have."""
    hierarchy, in_use = load_places(reader), load_places_in_use(reader)
    wanted = {place.iri: place for place in places}
    # Records may be of a place that the store does not describe, such as a country with nothing but its code.
    others = _load_in_use(reader, sorted(wanted.keys() - hierarchy.stored.keys()))
    jurisdictions_in_use = in_use.jurisdictions | others.jurisdictions
    states_in_use = in_use.states | others.states
    jurisdictions: dict[str, None] = {}
    states: dict[str, None] = {}
    empty: list[str] = []
    for iri, place in wanted.items():
        inside = hierarchy.get_all_parts(iri)
        own = [each for each in inside if each in jurisdictions_in_use]
        own_states = [each for each in inside if each in states_in_use]
        jurisdictions |= dict.fromkeys(own)
        states |= dict.fromkeys(own_states)
        if not own and not own_states:
            available = _available(hierarchy, in_use.jurisdictions)
            empty.append(f"{argument}: Nothing is loaded for {hierarchy.show(place)}. {available}")
    # A speech has the country of its parliament as its jurisdiction.
    alone = [iri for iri in states if not _has_country(hierarchy, iri, jurisdictions)]
    return Territory([NamedNode(iri) for iri in jurisdictions], [NamedNode(iri) for iri in alone], empty)


def _has_country(places: Places, iri: str, jurisdictions: Collection[str]) -> bool:
    place = places.get(iri)
    return place is not None and any(outer.iri in jurisdictions for outer in places.get_chain(place))


def _load_in_use(reader: Reader, iris: Sequence[str]) -> InUse:
    if not iris:
        return InUse(frozenset(), frozenset())

    def read(rows: Sequence[Mapping[str, Term]]) -> InUse:
        by_role: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            by_role[term_text(row["role"])].add(iri_of(row["place"]))
        return InUse(frozenset(by_role["jurisdiction"]), frozenset(by_role["state"]))

    return reader.kept("places in use", bind(IN_USE, places=[NamedNode(iri) for iri in iris]), read)


_Said = dict[str, dict[str, dict[str, None]]]


def _read_places(rows: Sequence[dict[str, Term]]) -> Places:
    said: _Said = defaultdict(lambda: defaultdict(dict))
    declared: _Said = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        iri = iri_of(row["place"])
        if iri.startswith((_PLACE, _MUNICIPALITY)) and not iri_of(row["graph"]).startswith(_NO_PLACES):
            found = declared if is_user_graph(row["graph"]) else said
            found[iri][iri_of(row["property"])][term_text(row["value"])] = None
    stored = {iri: _read_place(iri, values) for iri, values in sorted(said.items())}
    return Places(stored | _read_declared(declared, stored.values()))


def _read_declared(said: _Said, stored: Collection[Place]) -> dict[str, Place]:
    """Read the places that people declare. They take no code or name of a place of sources or of ISO 3166, and change
    nothing about one of ISO 3166.
    """
    taken = {fold(name) for place in stored for name in (place.code, *place.names)}
    named = (SKOS.prefLabel.value, SKOS.altLabel.value, SKOS.notation.value)
    found = {}
    for iri, values in sorted(said.items()):
        key = unquote(iri.rpartition("/")[2])
        if iri.startswith(_PLACE) and iso3166.find_area(key) is not None:
            continue
        own = {
            name: [text for text in texts if name not in named or not (fold(text) in taken or iso3166.find_areas(text))]
            for name, texts in values.items()
        }
        if fold(key) not in taken:
            found[iri] = _read_place(iri, own)
    return found


def _read_place(iri: str, said: Mapping[str, Iterable[str]]) -> Place:
    names = [name for key in (SKOS.prefLabel, SKOS.altLabel) for name in sorted(said.get(key.value, ()))]
    code = next(iter(said.get(SKOS.notation.value, ())), unquote(iri.rpartition("/")[2]))
    area = iso3166.find_area(code) if iri.startswith(_PLACE) else None
    if area is not None:
        # Labels of earlier loads have the name in another language in brackets.
        names = [part for name in names for part in iso3166.split_names(name)] + [*area.names]
    return Place(iri, code, tuple(dict.fromkeys(names)), tuple(sorted(said.get(KG.within.value, ()))))


def _of_area(area: Area) -> Place:
    above = () if area.within is None else (mint("place", area.within).value,)
    return Place(mint("place", area.code).value, area.code, area.names, above)


def _available(places: Places, iris: Collection[str]) -> str:
    """Name the outermost of `iris`, and the countries that contain the others."""
    outermost: dict[str, Place] = {}
    for iri in iris:
        if (place := places.get(iri)) is not None:
            outer = [place, *places.get_chain(place)][-1]
            outermost[outer.iri] = outer
    names = sorted(f"{name_or_quote(place.name)} ({name_or_quote(place.code)})" for place in outermost.values())
    more = f" and {len(names) - SHOWN} more{SEE_RESOURCES}" if len(names) > SHOWN else ""
    return f"Available: {', '.join(names[:SHOWN])}{more}." if names else "No place has records."


def _without_common_words(name: str) -> str:
    words = name.split()
    return " ".join(word for word in words if word not in _COMMON) or name
