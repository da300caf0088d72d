"""What is found in the texts of codes, in the commit of the texts.

The findings in a section stand in ``graph/ext/zoning/{municipality}/{section}`` and go with the section, as do the
edges that are promoted from its claims (`kg.provenance.promotion`). A citation is resolved among all sections of the
municipality, stored or about to be. When sections come or go, the sections that cite what came or went are read anew,
and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode, Quad

from kg.provenance import Derived, RecordOrigin
from kg.provenance.reading import text_of
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, select
from kg.vocabulary import BASE, KG, mint
from loaders.extraction.districts import District, districts
from loaders.extraction.resolution import Index
from loaders.zoning.authorities import Authorities
from loaders.zoning.extracting import claims_in, claims_of, rules_of
from loaders.zoning.model import Section
from loaders.zoning.reading import DOMAIN, Reading

SECTIONS: Final = """
SELECT ?section ?number ?title ?kind ?level ?parent ?position WHERE {
  ?section kg:jurisdiction $municipality ; kg:level ?level ; dcterms:title ?title ; eli:type_subdivision ?kind ;
    schema:position ?position
  OPTIONAL { ?section kg:sectionNumber ?number }
  OPTIONAL { ?section dcterms:isPartOf ?parent }
}"""

UNRESOLVED: Final = """
SELECT DISTINCT ?section WHERE {
  ?section kg:jurisdiction $municipality . ?claim rdf:subject ?section ; a kg:CrossReference
  FILTER NOT EXISTS { ?claim rdf:object ?cited }
}"""

CITING: Final = """
SELECT DISTINCT ?section WHERE {
  VALUES ?cited { $cited } ?claim rdf:object ?cited ; a kg:CrossReference ; rdf:subject ?section
}"""

TEXTS: Final = """
SELECT ?section ?text WHERE { VALUES ?section { $sections } ?section schema:text ?text }"""

DISTRICTS: Final = """
SELECT ?code ?name WHERE {
  ?district kg:jurisdiction $municipality ; a kg:ZoningDistrict ; skos:notation ?code ; skos:prefLabel ?name
}"""

NAME: Final = """
SELECT ?name WHERE { $municipality skos:prefLabel ?name }"""

_SOURCES: Final = f"{BASE}graph/src/{DOMAIN}/"
_EXTRACTED: Final = f"{BASE}graph/ext/{DOMAIN}/"
_OWN_NAMES: Final = {"us-dc": ("D.C. Code", "D.C. Official Code")}
"""By which names codes are cited as if they were the law of a state."""
_KNOWN_BY_TABLES: Final = 1.0


@dataclass(slots=True)
class _Code:
    """One municipality's code: the sections of this load, and those that were in the store before it."""

    shared: Authorities
    sections: Mapping[str, Section]
    stored: Mapping[str, Section]
    """Without text."""
    index: Index
    districts: Mapping[str, District]

    @property
    def new(self) -> bool:
        """Whether this load has sections that the store had not."""
        return any(key not in self.stored for key in self.sections)


class Findings:
    """Makes the graphs that go with those of sections that are about to be committed, for one load."""

    def __init__(self, reading: Reading) -> None:
        self.reading: Final = reading
        self._codes: dict[str, _Code] = {}
        self._said: set[NamedNode] = set()
        """Shared graphs that were written, or found in the store."""

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Return the findings in the sections of these graphs, and in those that cite what comes or goes with them."""
        graphs: dict[str, dict[str, NamedNode]] = defaultdict(dict)
        for graph in replace:
            name, _, section = graph.value.removeprefix(_SOURCES).partition("/")
            if graph.value.startswith(_SOURCES) and section and "/" not in section:
                graphs[name][unquote(section)] = graph
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
        for name, own in graphs.items():
            for found in self._found(store, name, own, replace):
                made[found.graph] = found.quads, RecordOrigin("", (), (found.source,))
                for graph, quads in found.shared.items():
                    if graph not in self._said and graph not in replace and not store.graph(graph):
                        made[graph] = quads, RecordOrigin("", (), (found.source,))
                    self._said.add(graph)
        return made

    def _found(
        self, store: Store, name: str, graphs: Mapping[str, NamedNode], replace: Mapping[NamedNode, Sequence[Quad]]
    ) -> Iterator[_Found]:
        gone = {key for key, graph in graphs.items() if not replace[graph]}
        first = name not in self._codes
        code = self._codes.get(name) or self._codes.setdefault(name, self._code(store, name))
        for key, graph in graphs.items():
            section = code.sections.get(key)
            if key in gone or section is None:
                yield _Found(_extracted(graph), graph)
                continue
            shared, own = code.shared.fresh(), _extracted(graph)
            quads = rules_of(section, shared, own, code.districts)
            quads += claims_of(section.text, key, shared, own, code.index, _state(name))
            yield _Found(own, graph, quads, shared.graphs)
        again: set[str] = set()
        if first and code.new and code.stored:
            again |= _keys(store, bind(UNRESOLVED, municipality=code.shared.iri), name)
        if gone:
            cited = [code.shared.section(key) for key in gone]
            again |= _keys(store, bind(CITING, cited=cited), name)
        if again := again - graphs.keys():
            yield from self._again(store, name, code, again, gone)

    def _again(self, store: Store, name: str, code: _Code, keys: set[str], gone: set[str]) -> Iterator[_Found]:
        """Yield the findings in sections that did not change themselves, with their citations resolved anew."""
        index = code.index
        if gone:
            left = {key: section for key, section in {**code.stored, **code.sections}.items() if key not in gone}
            index = _index(name, left.values())
        for row in select(store.query, bind(TEXTS, sections=[code.shared.section(key) for key in sorted(keys)])):
            key, text = _key(row["section"], name), text_of(row["text"])
            graph = mint("graph", "src", DOMAIN, name, key)
            own, shared = _extracted(graph), code.shared.fresh()
            quads = without_claims(store.graph(own)) + claims_of(text, key, shared, own, index, _state(name))
            yield _Found(own, graph, quads, shared.graphs)

    def _code(self, store: Store, name: str) -> _Code:
        sections = self.reading.sections.get(name, {})
        municipality = mint("municipality", name)
        shared = self.reading.municipalities.get(name)
        if shared is None:
            said = [text_of(row["name"]) for row in select(store.query, bind(NAME, municipality=municipality))]
            shared = Authorities(said[0] if said else name, _state(name))
        stored = stored_sections(store, name)
        everything = {**stored, **sections}
        known = {
            code: District(code, text_of(row["name"]), "", None, None, _KNOWN_BY_TABLES, "stored")
            for row in select(store.query, bind(DISTRICTS, municipality=municipality))
            for code in [text_of(row["code"])]
        }
        return _Code(
            shared, sections, stored, _index(name, everything.values()), {**known, **districts(everything.values())}
        )


def stored_sections(store: Store, name: str) -> dict[str, Section]:
    """Return the sections of the municipality with this key that are stored, by their keys, without text."""
    rows = select(store.query, bind(SECTIONS, municipality=mint("municipality", name)))
    return {section.key: section for row in rows for section in [_light(row, name)]}


@dataclass(frozen=True, slots=True)
class _Found:
    """What is found in one section."""

    graph: NamedNode
    source: NamedNode
    quads: Sequence[Quad] = ()
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)


def without_claims(quads: Iterable[Quad]) -> list[Quad]:
    """Return quads of a graph of findings but for its claims, and the spans that only these rest on."""
    quads = list(quads)
    claims = claims_in(quads)
    spans = {quad.object for quad in quads if quad.predicate == KG.evidence and quad.subject in claims}
    spans -= {quad.object for quad in quads if quad.predicate == KG.evidence and quad.subject not in claims}
    return [quad for quad in quads if quad.subject not in claims and quad.subject not in spans]


def _index(name: str, sections: Iterable[Section]) -> Index:
    return Index(sections, codes=_OWN_NAMES.get(name, ()))


def _extracted(graph: NamedNode) -> NamedNode:
    return NamedNode(_EXTRACTED + graph.value.removeprefix(_SOURCES))


def _state(name: str) -> str:
    """The two letters of the state in the key of a municipality."""
    return name.split("-")[1].upper()


def _key(section: Term, name: str) -> str:
    return (
        unquote(section.value.removeprefix(mint("section", name).value + "/")) if isinstance(section, NamedNode) else ""
    )


def _keys(store: Store, query: str, name: str) -> set[str]:
    return {_key(row["section"], name) for row in select(store.query, query)}


def _light(row: Mapping[str, Term], name: str) -> Section:
    parent = row.get("parent")
    return Section(
        _key(row["section"], name),
        text_of(row["number"]) if "number" in row else "",
        text_of(row["title"]),
        unquote(text_of(row["kind"]).rpartition("/")[2]),
        int(text_of(row["level"])),
        None if parent is None else _key(parent, name),
        int(text_of(row["position"])),
    )
