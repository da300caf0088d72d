"""Finds municipalities by name and state, and sections of their codes by number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import Field
from pyoxigraph import NamedNode
from rapidfuzz import fuzz, process

from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import fold
from kg.retrieval.places import Place as Area
from kg.retrieval.places import Places
from kg.retrieval.places import load_places as load_hierarchy
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.retrieval.results import MOST_RESULTS, MOST_SKIPPED
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.vocabulary import iri_prefix, segment
from kg.zoning_summaries.code_tree import CodeTree

NEAR: Final = 5

MUNICIPALITIES: Final = """
SELECT ?municipality ?name WHERE { ?municipality a kg:Municipality ; skos:prefLabel ?name }"""

STATUSES: Final = """
SELECT ?section ?status WHERE { VALUES ?section { $sections } ?section kg:inForceStatus ?status }"""

MunicipalityName = Annotated[str, Field(max_length=200)]
StateName = Annotated[str, Field(max_length=60)]
SectionId = Annotated[str, Field(max_length=2_000, description="Number or IRI")]
PageSize = Annotated[int, Field(ge=1, le=MOST_RESULTS)]
Skipped = Annotated[int, Field(ge=0, le=MOST_SKIPPED)]
"""Results to skip: next_offset of the previous page. Without a description, since many tools have this argument."""

_COMMON: Final = frozenset({"city", "town", "village", "borough", "township", "county", "of", "the", "municipality"})
"""Words in names of municipalities that seldom distinguish them."""
_SECTIONS: Final = iri_prefix("section")
_WORD: Final = re.compile(r"^(?:§+|(?:sections?|secs?|title|chapter|article|part|division)\b\.?)\s*", re.IGNORECASE)
_LABELS: Final = re.compile(r"((?:\([0-9A-Za-z.~-]{1,8}\)){1,16})$")


@dataclass(frozen=True, slots=True)
class Place:
    """A municipality."""

    iri: str
    name: str
    states: tuple[str, ...]
    """Code without the country, and name, of its state, if known: UT and Utah, VIC and Victoria."""
    containing: frozenset[str] = frozenset()
    """IRIs of the places that contain it, and its own."""

    @property
    def key(self) -> str:
        """Key, such as us-ut-quarry-bend."""
        return self.iri.rpartition("/")[2]

    @property
    def short_state(self) -> str:
        """Code of its state without the country, or empty."""
        return min(self.states, key=len, default="")

    @property
    def shown(self) -> str:
        """Name and state."""
        state = max(self.states, key=len, default="")
        return self.name if state == self.name else f"{self.name}, {state}".strip(", ")

    @property
    def quoted(self) -> str:
        """Name and state, for messages."""
        return quoted(self.shown)


@dataclass(frozen=True, slots=True)
class _Places:
    """All municipalities, indexed by their names, and the hierarchy that they are in."""

    hierarchy: Places
    all: Sequence[Place]
    by_key: Mapping[str, Place]
    """By IRI and by key."""
    by_name: Mapping[str, Sequence[Place]]
    """By folded name."""
    by_words: Mapping[str, Sequence[Place]]
    """The same, without the words in `_COMMON`."""


def find_place(reader: Reader, name: str, state: str, argument: str = "municipality") -> Place:
    """Find a municipality by name, with or without its state, by key or by IRI.

    Raises NotFoundError with similar names, and InvalidInputError with the candidates if several match. Both name the
    `argument`.
    """
    wanted, said = clean_text(argument, name, 200), clean_text("state", state, 60)
    town, comma, stated = wanted.rpartition(",")
    places = _load_all(reader)
    outside = places.hierarchy.find(said)

    def find_inside(outer: Iterable[Area], name: str) -> list[Place]:
        """Find the municipalities with this name in the state that are in one of the `outer` places too."""
        named = (places.by_name.get(fold(name), ()), places.by_words.get(_distinct(name), ()))
        inside = ([each for each in group if _is_in(each, outside) and _is_in(each, outer)] for group in named)
        return next((group for group in inside if group), [])

    one = places.by_key.get(wanted.strip("<>"))
    found = [one] if one is not None and (not one.states or _is_in(one, outside)) else find_inside(outside, wanted)
    if comma and not found:
        found = find_inside(places.hierarchy.find(stated), town)
    # A state that is also a municipality (District of Columbia) has no other municipality.
    found = found or [place for area in outside if (place := places.by_key.get(area.code.casefold())) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(f"{quoted(place.name)} ({place.key})" for place in found)
        raise InvalidInputError(
            f"{argument}: {quoted(name)} in {quoted(state)} is ambiguous. Candidates: {several}. Give the name or "
            "key of one."
        )
    names = sorted({place.quoted for place in places.all})
    near = process.extract(f"{name}, {state}", names, scorer=fuzz.WRatio, limit=NEAR)
    names_near = "; ".join(each for each, _, _ in near)
    available = f"Available: {names_near}." if near else "None is loaded. `kg load zoning` loads a code."
    raise NotFoundError(f"{argument}: Unknown municipality {quoted(name)} in {quoted(state)}. {available}")


def _is_in(place: Place, areas: Iterable[Area]) -> bool:
    return any(area.iri in place.containing for area in areas)


def load_places(reader: Reader) -> list[Place]:
    """Load all municipalities, sorted by state and name."""
    places = _load_all(reader)
    return sorted(places.all, key=lambda place: (max(place.states, key=len, default=""), fold(place.name)))


def _load_all(reader: Reader) -> _Places:
    """Load all municipalities. Cached until the next commit."""

    def build(rows: Sequence[Mapping[str, Term]], hierarchy: Places) -> _Places:
        places = [_to_place(iri_of(row["municipality"]), term_text(row["name"]), hierarchy) for row in rows]
        return _index(hierarchy, places)

    named = reader.kept("all municipalities", MUNICIPALITIES, list)
    # With a reader of its own, so that the queries of a result are those about municipalities.
    return reader.derived("all municipalities", build, named, load_hierarchy(Reader(reader.kg)))


def _to_place(iri: str, name: str, hierarchy: Places) -> Place:
    """Describe a municipality with its state, which can contain it indirectly: a county may be between them."""
    place = hierarchy.get(iri)
    above = hierarchy.get_chain(place) if place is not None else ()
    state = next((outer for outer in above if outer.kind == "subdivision"), None)
    states = () if state is None else (state.code.partition("-")[2], state.name)
    return Place(iri, name, states, frozenset((iri, *(outer.iri for outer in above))))


def _index(hierarchy: Places, places: Sequence[Place]) -> _Places:
    known = {place.iri: place for place in places}
    by_name: dict[str, list[Place]] = {}
    by_words: dict[str, list[Place]] = {}
    for place in known.values():
        by_name.setdefault(fold(place.name), []).append(place)
        by_words.setdefault(_distinct(place.name), []).append(place)
    by_key = {name: place for place in known.values() for name in (place.iri, place.key)}
    return _Places(hierarchy, list(known.values()), by_key, by_name, by_words)


def _distinct(name: str) -> str:
    words = fold(name).split()
    return " ".join(word for word in words if word not in _COMMON) or " ".join(words)


def find_section(tree: CodeTree, section_id: str) -> str:
    """Find the IRI of a section by its number, heading or IRI.

    Raises NotFoundError with similar numbers, and InvalidInputError with the candidates if several match.
    """
    given = clean_text("section_id", section_id, 2_000)
    if given.strip("<>") in tree.sections:
        return given.strip("<>")
    own = next(iter(tree.sections), "").rpartition("/")[0]
    number = _WORD.sub("", given).strip() or given
    found = [iri for each in (given, number) if (iri := f"{own}/{segment(each)}") in tree.sections][:1]
    found = found or [iri for iri, each in tree.sections.items() if each.number.casefold() == number.casefold()]
    if len(found) > 1:
        # "Chapter II" is the last part of the key of the chapter that is meant.
        named = [
            iri
            for iri in found
            if get_section_key(iri).rpartition("|")[2].casefold() == " ".join(given.split()).casefold()
        ]
        found = named if len(named) == 1 else found
    found = found or [iri for iri, each in tree.sections.items() if fold(each.title) == fold(given)]
    if len(found) > 1:
        keys = ", ".join(name_or_quote(get_section_key(each)) for each in found[:NEAR])
        raise InvalidInputError(
            f"section_id: {len(found)} sections have the number {name_or_quote(number)}. Give one of {keys}."
        )
    if found:
        return found[0]
    numbers = [each.number for each in tree.sections.values() if each.number]
    like = process.extract(number, numbers, scorer=fuzz.ratio, limit=NEAR)
    near = ", ".join(map(name_or_quote, dict.fromkeys(each for each, _, _ in like)))
    raise NotFoundError(f"section_id: Unknown section {quoted(given)}. Similar: {near}.")


def find_subsection(tree: CodeTree, section_id: str) -> tuple[str, str | None]:
    """Find the IRI of a section, and the labels of a subsection if `section_id` ends in some: ``17.20(a)(1)``.

    Raises the errors of `find_section`.
    """
    given = clean_text("section_id", section_id, 2_000)
    whole, _, part = given.partition("#subsection=")
    if part:
        return find_section(tree, whole), "".join(f"({unquote(label)})" for label in part.strip(">").split("."))
    labels = _LABELS.search(given)
    if labels is None or labels.start() == 0:
        return find_section(tree, given), None
    try:
        return find_section(tree, given), None  # a section number may end in a label
    except NotFoundError:
        return find_section(tree, given[: labels.start()].strip()), labels[1]


def load_statuses(reader: Reader, sections: Iterable[str | None]) -> dict[str, str]:
    """Load the status (repealed, reserved, ...) of those of `sections` that have one, by IRI."""
    wanted = sorted({iri for iri in sections if iri is not None and iri.startswith(_SECTIONS)})
    if not wanted:
        return {}
    query = bind(STATUSES, sections=[NamedNode(iri) for iri in wanted])
    return {iri_of(row["section"]): term_text(row["status"]) for row in reader.rows("status of sections", query)}


def get_section_key(iri: str) -> str:
    """Get the key of a section within its code, from its IRI."""
    return unquote(iri.removeprefix(_SECTIONS).partition("/")[2].partition("#")[0])
