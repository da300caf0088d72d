"""Graphs shared by sections and tables: municipalities, districts, land uses, laws, codes of code lists.

Each has its own graph. A municipality is identified by state and name. A district is identified by its code in the
municipality, exactly as recorded: R1-H and R1 H are different. A land use is identified by its name in lower case.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.iso3166 import find_area, find_areas
from kg.text import quoted
from kg.vocabulary import BASE, KG, RDF, SKOS, mint
from loaders.citations.graph.claims import build_law, build_law_places, describe
from loaders.citations.statutes import Law
from loaders.readers.cells import to_slug
from loaders.readers.places import build_place_graphs

_COUNTRY: Final = "USA"
_SHOWN: Final = 5
_COUNTIES: Final = frozenset({"county", "parish", "borough"})
_ONE_VALUE: Final = (SKOS.prefLabel, KG.category, KG.within)
_CODES: Final = BASE + "vocab/"


def state_code(state: str) -> str:
    """Parse a state: the two letters of one of the United States (``UT``), else the code of ISO 3166-2 (``AU-VIC``).

    One of the United States may also be given by name or by its code of ISO 3166-2. Names of other states are not
    accepted, since many of them are names of counties or towns elsewhere. Raises RecordError for an unknown state.
    """
    given = " ".join(state.split())
    named = find_areas(given)
    area = find_area(given if "-" in given else f"US-{given}") or next(
        (each for each in named if each.within == _COUNTRY), None
    )
    if area is None or area.within is None:
        known = [f"{each.code} ({each.name})" for each in named if each.within is not None][:_SHOWN]
        hint = f" Similar: {', '.join(known)}." if known else ""
        raise RecordError(
            f"Unknown state {quoted(state)}. Use the two letters or the name of a state of the United States, as in "
            f"UT, or a code of ISO 3166-2 for another country, as in AU-VIC.{hint}"
        )
    return area.code.removeprefix("US-")


def state_of(key: str) -> str:
    """Get the state, as `state_code` does, from the key of a municipality."""
    country, _, rest = key.partition("-")
    part = rest.partition("-")[0].upper()
    return part if country == "us" else f"{country.upper()}-{part}"


def _area_code(state: str) -> str:
    """Get the code of ISO 3166-2 of a state."""
    return state if "-" in state else f"US-{state}"


def municipality_key(name: str, state: str) -> str:
    """Build the identifier of a municipality: ``us-ut-example-city``, ``us-dc``, ``au-vic-example-shire``.

    Raises RecordError for a name without a letter or an unknown state.
    """
    code = state_code(state)
    if code == "DC":
        return "us-dc"
    if not re.search(r"\w", name):
        raise RecordError("The municipality has no name.")
    return f"{_area_code(code).lower()}-{to_slug(name)}"


def merge(stored: Sequence[Quad], said: Sequence[Quad]) -> Sequence[Quad]:
    """Merge `said` into a shared graph: everything, but one label and category per node, and the county of a
    municipality, if any record has one, in place of its state.

    A label other than the code itself takes precedence, then the latest. Of labels that differ only in capitals, as
    with land uses, the first in code point order is used.
    """
    quads = dict.fromkeys([*said, *stored])
    named: dict[tuple[object, NamedNode], list[Quad]] = defaultdict(list)
    for quad in quads:
        if quad.predicate in _ONE_VALUE:
            named[quad.subject, quad.predicate].append(quad)
    notations = {quad.subject: _text(quad) for quad in quads if quad.predicate == SKOS.notation}

    def rank(quad: Quad) -> tuple[int, str]:
        # The county comes before its state, and the latest label first. The code is used only without another label.
        if isinstance(quad.object, NamedNode):
            return -len(quad.object.value), ""
        name, notation = _text(quad), notations.get(quad.subject, "")
        return name == notation, name if name.casefold() == notation.casefold() else ""

    for several in named.values():
        for quad in sorted(several, key=rank)[1:]:
            del quads[quad]
    return list(quads)


def _text(quad: Quad) -> str:
    return quad.object.value if isinstance(quad.object, Literal) else ""


def _county(name: str, state: str) -> tuple[NamedNode, Mapping[NamedNode, Sequence[Quad]]]:
    """Build the graph of a county, which ISO 3166 does not list: ``id/place/US-CT-hartford-county``."""
    words, area = name.split(), _area_code(state)
    is_named = "-" in state or words[-1].casefold() in _COUNTIES
    label = " ".join(words if is_named else [*words, "County"])
    code = f"{area}-{to_slug(label)}"
    iri, graph = mint("place", code), mint("graph", "ref", "place", code)
    said = (
        (RDF.type, KG.Place), (SKOS.notation, code), (SKOS.prefLabel, Literal(label, language="en")),
        (KG.within, mint("place", area)),
    )  # fmt: skip
    return iri, {graph: describe(iri, graph, said)}


class Authorities:
    """Builds the shared graphs for records of one municipality. `graphs` are those of the nodes requested so far."""

    def __init__(self, name: str, state: str, county: str | None = None) -> None:
        """Raises RecordError for an invalid name or state."""
        self.key: Final = municipality_key(name, state)
        self.name: Final = " ".join(name.split())
        self.state: Final = state_code(state)
        self.iri: Final = mint("municipality", self.key)
        self.graphs: dict[NamedNode, Sequence[Quad]] = {}
        self._said: set[tuple[NamedNode, str | None, str | None]] = set()
        area = _area_code(self.state)
        place, outer = mint("place", area), build_place_graphs(area)
        if county is not None and to_slug(county):
            place, around = _county(county, self.state)
            outer = {**outer, **around}
        graph, label = mint("graph", "ref", "municipality", self.key), Literal(self.name, language="en")
        own = (RDF.type, KG.Municipality), (SKOS.prefLabel, label), (KG.within, place)
        self.own: Final[dict[NamedNode, Sequence[Quad]]] = {**outer, graph: describe(self.iri, graph, own)}
        self.graphs.update(self.own)

    def copy(self) -> Authorities:
        """Copy for another record, without the graphs requested so far."""
        other = object.__new__(Authorities)
        other.__dict__.update(self.__dict__, graphs=dict(self.own), _said=set())
        return other

    def section(self, key: str) -> NamedNode:
        """Get the IRI of a section."""
        return mint("section", self.key, key)

    def district(self, code: str, name: str | None = None, category: str | None = None) -> NamedNode:
        """Add a district and get its IRI; its label is the code if it has no name. Raises RecordError for an empty
        code."""
        if not code.strip():
            raise RecordError("The district has no code.")
        iri = mint("district", self.key, code)
        self._add(iri, mint("graph", "ref", "district", self.key, code), KG.ZoningDistrict, code, name, category)
        return iri

    def land_use(self, name: str, category: str | None = None) -> NamedNode:
        """Add a land use and get its IRI. Raises RecordError for an empty name."""
        label = " ".join(name.split())
        if not label:
            raise RecordError("The land use has no name.")
        key = label.casefold()
        iri = mint("landuse", self.key, key)
        self._add(iri, mint("graph", "ref", "landuse", self.key, key), KG.LandUse, key, label, category)
        return iri

    def law(self, law: Law) -> NamedNode:
        """Add a law outside the code and get its IRI."""
        iri, graph, quads = build_law(law)
        self.graphs[graph] = quads
        for place, described in build_law_places(quads).items():
            self.graphs.setdefault(place, described)
        return iri

    def code(self, scheme: str, code: str, known: Collection[str]) -> NamedNode:
        """Get the IRI of a code in a code list. A code that the ontology does not describe gets a graph of its own."""
        iri = mint("code", scheme, code)
        if code not in known:
            graph = mint("graph", "ref", "code", scheme, code)
            said = (
                (RDF.type, SKOS.Concept), (SKOS.inScheme, NamedNode(_CODES + scheme)), (SKOS.notation, code),
                (SKOS.prefLabel, Literal(code, language="en")),
            )  # fmt: skip
            self.graphs[graph] = describe(iri, graph, said)
        return iri

    def _add(
        self, iri: NamedNode, graph: NamedNode, kind: NamedNode, notation: str, name: str | None, category: str | None
    ) -> None:
        if (iri, name, category) in self._said:
            return
        self._said.add((iri, name, category))
        said = describe(
            iri,
            graph,
            [
                (RDF.type, kind),
                (SKOS.notation, notation),
                (SKOS.prefLabel, name or notation),
                (KG.jurisdiction, self.iri),
                (KG.category, category or None),
            ],
        )
        self.graphs[graph] = merge(self.graphs[graph], said) if graph in self.graphs else said
