"""Places as shared graphs: a place by its code, and the places that contain it, up to the country."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.iso3166 import find_area
from kg.vocabulary import BASE, KG, RDF, SKOS, mint

_GRAPHS: Final = BASE + "graph/ref/place/"


@lru_cache(maxsize=4_096)
def build_place_graphs(code: str, name: str | None = None) -> Mapping[NamedNode, Sequence[Quad]]:
    """Build the graphs of the place with `code` and of the places that contain it, its own graph first.

    A place of ISO 3166 has the label of ISO 3166; a different `name`, the name in the source, is an alternative label.
    Any other place has `name` as its label, if given, and is within no known place.
    """
    iri, graph = mint("place", code), mint("graph", "ref", "place", code)
    said = [Quad(iri, RDF.type, KG.Place, graph), Quad(iri, SKOS.notation, Literal(code), graph)]
    area = find_area(code)
    label = name if area is None or area.code != code else area.name
    if label is not None:
        said.append(Quad(iri, SKOS.prefLabel, Literal(label, language="en"), graph))
    if name is not None and name != label:
        said.append(Quad(iri, SKOS.altLabel, Literal(name, language="en"), graph))
    if area is None or area.code != code or area.within is None:
        return {graph: tuple(said)}
    said.append(Quad(iri, KG.within, mint("place", area.within), graph))
    return {graph: tuple(said), **build_place_graphs(area.within)}


def merge_place(stored: Sequence[Quad], said: Sequence[Quad]) -> Sequence[Quad]:
    """Merge the quads of a record into the graph of a place: all of them, with the label of `said`, if it has one.

    The quads of any other graph replace it.
    """
    if not said or not said[0].graph_name.value.startswith(_GRAPHS):  # type: ignore[union-attr]
        return said
    labels = {quad.object for quad in said if quad.predicate == SKOS.prefLabel}
    kept = [quad for quad in stored if not labels or quad.predicate != SKOS.prefLabel]
    return list(dict.fromkeys([*said, *(quad for quad in kept if quad.object not in labels)]))
