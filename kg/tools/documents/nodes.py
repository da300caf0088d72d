"""Names and types of the nodes that texts of files mention: entities, concepts, laws, people, places, texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from kg.ontology import load_code_lists
from kg.retrieval.display_titles import build_display_title
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, preference
from kg.vocabulary import BASE, DCTERMS, FOAF, KG, RDF, SKOS, iri_prefix

# Each property by itself: with a variable, the engine reads all relations of a node too.
_OF_THINGS: Final = """{ VALUES ?thing { ?THINGS } ?thing $property ?value BIND($property AS ?property) }"""

TYPES: Final[Mapping[str, str]] = {
    KG.ExternalLaw.value: "Law",
    KG.PolicyFamily.value: "Policy",
    KG.PolicyDocument.value: "Policy",
    KG.CodeSection.value: "Section",
    KG.Municipality.value: "Place",
    KG.Place.value: "Place",
    FOAF.Person.value: "Person",
    KG.File.value: "File",
    KG.Chunk.value: "Text",
    SKOS.Concept.value: "Concept",
}
"""Types of nodes that are not entities of files, by class; the first that fits."""

FILES: Final = iri_prefix("file")
_NAMES: Final = (SKOS.prefLabel, FOAF.name, DCTERMS.title, DCTERMS.identifier, KG.sectionNumber)
_ENTITY_TYPES: Final = BASE + "vocab/entityType"


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its name and type."""

    iri: str
    name: str
    type: str


def load_nodes(reader: Reader, iris: Iterable[str]) -> dict[str, Node]:
    """Load names and types by IRI, cached until the next commit. A text is named by the path of its file."""
    return reader.kept_by_iri("node", sorted(set(iris)), lambda missing: _load_nodes(reader, missing))


def _load_nodes(reader: Reader, wanted: Sequence[str]) -> dict[str, Node]:
    said: dict[str, dict[NamedNode, list[Term]]] = {iri: defaultdict(list) for iri in wanted}
    things = bind("$things", things=[NamedNode(iri) for iri in wanted])  # once, for all parts
    parts = [bind(_OF_THINGS, property=name).replace("?THINGS", things) for name in (RDF.type, KG.entityType, *_NAMES)]
    query = f"SELECT ?thing ?property ?value WHERE {{ {' UNION '.join(parts)} }}"
    for row in reader.rows("names and types", query):
        said[iri_of(row["thing"])][NamedNode(iri_of(row["property"]))].append(row["value"])
    return {iri: Node(iri, _name(iri, said[iri]), _type(said[iri])) for iri in wanted}


def get_path(file: str) -> str:
    """Get the path of a file from its IRI or that of its text: its collection, and its path in that."""
    return unquote(file.partition("#")[0].removeprefix(FILES))


def list_types() -> Mapping[str, str]:
    """List the names of the types of entities by the last part of their IRI, such as ``api``."""
    return {code.iri.rpartition("/")[2]: code.label for code in load_code_lists().get(_ENTITY_TYPES, ())}


def _name(iri: str, said: Mapping[NamedNode, list[Term]]) -> str:
    if iri.startswith(FILES):
        return get_path(iri)
    for name in _NAMES:
        texts = [term for term in said.get(name, ()) if isinstance(term, Literal)]
        if texts:
            return min(texts, key=preference).value
    return build_display_title(iri)


def _type(said: Mapping[NamedNode, list[Term]]) -> str:
    for term in said.get(KG.entityType, ()):
        code = iri_of(term).rpartition("/")[2]
        return list_types().get(code, code)
    classes = {iri_of(term) for term in said.get(RDF.type, ()) if isinstance(term, NamedNode)}
    return next((name for kind, name in TYPES.items() if kind in classes), "Other")
