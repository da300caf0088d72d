"""What the sections and tables of municipalities share: municipalities, districts, land uses, laws, codes of lists.

Each has a graph of its own. A municipality is known by its state and name, a district by the code that its
municipality gives it, exactly as recorded: R1-H and R1 H are two. A land use is known by its name in lower case.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.vocabulary import BASE, DCTERMS, KG, RDF, SKOS, mint
from loaders.readers.cells import slug_from
from loaders.zoning.extraction import statutes

STATES: Final = {letters.upper(): name for name, letters in statutes.STATES.items()} | {
    "AS": "American Samoa", "GU": "Guam", "MP": "Northern Mariana Islands", "PR": "Puerto Rico",
    "VI": "United States Virgin Islands",
}  # fmt: skip
"""States, the District and the territories of the United States, by their two letters."""

_BY_NAME: Final = {name.casefold(): code for code, name in STATES.items()}
_USA: Final = mint("place", "USA")
_ONE_VALUE: Final = (SKOS.prefLabel, KG.category)
_CODES: Final = BASE + "vocab/"


def state_code(state: str) -> str:
    """Return the two letters of a state that is given by them or by its name. Raises RecordError for no state."""
    given = " ".join(state.split())
    code = given.upper() if given.upper() in STATES else _BY_NAME.get(given.casefold())
    if code is None:
        raise RecordError(f"{state!r} is no state of the United States: give two letters, as in UT, or the name")
    return code


def municipality_key(name: str, state: str) -> str:
    """Return what a municipality is called in identifiers: ``us-ut-example-city``, ``us-dc``.

    Raises RecordError for a name without a letter, or no state.
    """
    code = state_code(state)
    if code == "DC":
        return "us-dc"
    if not re.search(r"\w", name):
        raise RecordError("the municipality has no name")
    return f"us-{code.lower()}-{slug_from(name)}"


def merge(stored: Sequence[Quad], said: Sequence[Quad]) -> Sequence[Quad]:
    """Return what a shared graph says once `said` is added: everything, but one name of each thing.

    A name other than the code itself comes first, then the one that is said last; of names that differ in capitals
    alone, as those of a land use, the first in the order of characters.
    """
    quads = dict.fromkeys([*said, *stored])
    named: dict[tuple[object, NamedNode], list[Quad]] = defaultdict(list)
    for quad in quads:
        if quad.predicate in _ONE_VALUE:
            named[quad.subject, quad.predicate].append(quad)
    notations = {quad.subject: _text(quad) for quad in quads if quad.predicate == SKOS.notation}
    for several in named.values():
        # What is said last comes first; the code itself is a name only where there is no other.
        for quad in sorted(several, key=lambda quad: _preference(_text(quad), notations.get(quad.subject, "")))[1:]:
            del quads[quad]
    return list(quads)


def _preference(name: str, notation: str) -> tuple[bool, str]:
    return name == notation, name if name.casefold() == notation.casefold() else ""


def _text(quad: Quad) -> str:
    return quad.object.value if isinstance(quad.object, Literal) else ""


@cache
def _place(state: str) -> tuple[NamedNode, tuple[tuple[NamedNode, Sequence[Quad]], ...]]:
    country, code = mint("graph", "ref", "place", "USA"), f"US-{state}"
    iri, graph = mint("place", code), mint("graph", "ref", "place", code)
    return iri, (
        (country, (Quad(_USA, RDF.type, KG.Place, country), Quad(_USA, SKOS.notation, Literal("USA"), country))),
        (
            graph,
            (
                Quad(iri, RDF.type, KG.Place, graph),
                Quad(iri, SKOS.notation, Literal(code), graph),
                Quad(iri, SKOS.prefLabel, Literal(STATES[state], language="en"), graph),
                Quad(iri, KG.within, _USA, graph),
            ),
        ),
    )


class Authorities:
    """The shared graphs of one municipality's records. `graphs` are those of the things asked for so far."""

    def __init__(self, name: str, state: str) -> None:
        """Raises RecordError for a name or state that there is not."""
        self.key: Final = municipality_key(name, state)
        self.name: Final = " ".join(name.split())
        self.state: Final = state_code(state)
        self.iri: Final = mint("municipality", self.key)
        self.graphs: dict[NamedNode, Sequence[Quad]] = {}
        self._said: set[tuple[NamedNode, str | None, str | None]] = set()
        place, described = _place(self.state)
        graph = mint("graph", "ref", "municipality", self.key)
        self.own: Final[dict[NamedNode, Sequence[Quad]]] = {
            **dict(described),
            graph: (
                Quad(self.iri, RDF.type, KG.Municipality, graph),
                Quad(self.iri, SKOS.prefLabel, Literal(self.name, language="en"), graph),
                Quad(self.iri, KG.within, place, graph),
            ),
        }
        self.graphs.update(self.own)

    def fresh(self) -> Authorities:
        """Return the same for another record, without what was asked for."""
        other = object.__new__(Authorities)
        other.__dict__.update(self.__dict__, graphs=dict(self.own), _said=set())
        return other

    def section(self, key: str) -> NamedNode:
        """Return the section with this key."""
        return mint("section", self.key, key)

    def district(self, code: str, name: str | None = None, category: str | None = None) -> NamedNode:
        """Return the district with this code; without a name it is called by it. Raises RecordError for none."""
        if not code.strip():
            raise RecordError("the district has no code")
        iri = mint("district", self.key, code)
        self._add(iri, mint("graph", "ref", "district", self.key, code), KG.ZoningDistrict, code, name, category)
        return iri

    def land_use(self, name: str, category: str | None = None) -> NamedNode:
        """Return the land use with this name. Raises RecordError for none."""
        label = " ".join(name.split())
        if not label:
            raise RecordError("the land use has no name")
        key = label.casefold()
        iri = mint("landuse", self.key, key)
        self._add(iri, mint("graph", "ref", "landuse", self.key, key), KG.LandUse, key, label, category)
        return iri

    def law(self, jurisdiction: str, scheme: str, citation: str, kind: str) -> NamedNode:
        """Return a law beside the code: of ``us`` or a state (``us-ut``), by its normalised citation."""
        iri = mint("law", jurisdiction, scheme, citation)
        graph = mint("graph", "ref", "law", jurisdiction, scheme, citation)
        self.graphs[graph] = (
            Quad(iri, RDF.type, KG.ExternalLaw, graph),
            Quad(iri, DCTERMS.identifier, Literal(citation), graph),
            Quad(iri, KG.lawType, mint("code", "lawType", kind), graph),
        )
        return iri

    def code(self, scheme: str, code: str, known: frozenset[str]) -> NamedNode:
        """Return a code of a list; what the ontology does not describe gets a graph of its own."""
        iri = mint("code", scheme, code)
        if code not in known:
            graph = mint("graph", "ref", "code", scheme, code)
            self.graphs[graph] = (
                Quad(iri, RDF.type, SKOS.Concept, graph),
                Quad(iri, SKOS.inScheme, NamedNode(_CODES + scheme), graph),
                Quad(iri, SKOS.notation, Literal(code), graph),
                Quad(iri, SKOS.prefLabel, Literal(code, language="en"), graph),
            )
        return iri

    def _add(
        self, iri: NamedNode, graph: NamedNode, kind: NamedNode, notation: str, name: str | None, category: str | None
    ) -> None:
        if (iri, name, category) in self._said:
            return
        self._said.add((iri, name, category))
        said = [
            Quad(iri, RDF.type, kind, graph),
            Quad(iri, SKOS.notation, Literal(notation), graph),
            Quad(iri, SKOS.prefLabel, Literal(name or notation), graph),
            Quad(iri, KG.jurisdiction, self.iri, graph),
        ]
        if category:
            said.append(Quad(iri, KG.category, Literal(category), graph))
        self.graphs[graph] = merge(self.graphs[graph], said) if graph in self.graphs else said
