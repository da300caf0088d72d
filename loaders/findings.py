"""What is found in the texts of codes, in the commit of the texts.

The findings in a section stand in ``graph/ext/zoning/{municipality}/{section}`` and go with the section, as do the
edges that are promoted from its claims (`kg.provenance.promotion`). A citation is resolved among all sections of the
municipality, stored or about to be. When sections come or go, the sections that cite what came or went are read anew,
and nothing else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode, Quad

from kg.provenance import Derived, RecordOrigin
from kg.provenance.reading import text_of
from kg.sparql.terms import bind
from kg.store.protocol import Store, select
from kg.vocabulary import BASE, KG, SKOS, mint
from loaders.extraction.districts import District, districts, named_in, plain_name
from loaders.extraction.resolution import Index
from loaders.stored import key_of, whole_sections
from loaders.zoning.authorities import Authorities
from loaders.zoning.extracting import claims_of, rules_of
from loaders.zoning.model import Section
from loaders.zoning.reading import DOMAIN, Reading

UNRESOLVED: Final = """
SELECT DISTINCT ?section WHERE {
  ?section kg:jurisdiction $municipality . ?claim rdf:subject ?section ; a kg:CrossReference
  FILTER NOT EXISTS { ?claim rdf:object ?cited }
}"""

CITING: Final = """
SELECT DISTINCT ?section WHERE {
  VALUES ?cited { $cited } ?claim rdf:object ?cited ; a kg:CrossReference ; rdf:subject ?section
}"""

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
    index: Index
    stated: Mapping[str, District]
    """The districts that are stored, whatever says so."""
    districts: Mapping[str, District]

    @property
    def new(self) -> bool:
        """Whether this load has sections that the store had not."""
        return any(key not in self.stored for key in self.sections)

    done: set[str] = field(default_factory=set)
    """Keys of the sections that this load has come to."""

    @property
    def everything(self) -> dict[str, Section]:
        """All sections, as this load leaves them."""
        return {**self.stored, **self.sections}

    def standing(self, key: str) -> Section | None:
        """The section with this key as it stands before what this load has not come to yet."""
        return self.sections.get(key) if key in self.done else self.stored.get(key)

    def above(self, key: str) -> Sequence[Section]:
        """The sections that the one with this key is part of, from the inside."""
        found = [self.sections.get(each) or self.stored.get(each) for each in self.index.above(key)[1:]]
        return [each for each in found if each is not None]

    def touched(self, before: Mapping[str, District]) -> set[str]:
        """Return the keys of the sections that with other districts than these, and under other headings, say more.

        What a section says depends, beside its own words, on the codes and names of districts that stand in them and
        on the headings above it.
        """
        said = naming(districts_changed(before, self.districts))
        headed = {key for key, each in self.sections.items() if not _same_heading(each, self.stored.get(key))}
        found: set[str] = set()
        for key, section in self.everything.items():
            above = self.above(key)
            words = "\n".join((section.title, section.text, *(each.title for each in above)))
            if said(words) or any(each.key in headed for each in above):
                found.add(key)
        return found

    def without(self, gone: Set[str], name: str) -> _Code:
        """The code once these sections are gone."""
        sections = {key: section for key, section in self.sections.items() if key not in gone}
        stored = {key: section for key, section in self.stored.items() if key not in gone}
        left = {**stored, **sections}
        lost = (found for key in gone for each in (self.stored, self.sections) if (found := each.get(key)))
        named = self.districts
        if any(district for section in lost for district in named_in(section)):
            named = {**self.stated, **districts(left.values())}
        return replace(self, sections=sections, stored=stored, index=_index(name, left.values()), districts=named)


class Findings:
    """Makes the graphs that go with those of sections that are about to be committed, for one load."""

    def __init__(self, reading: Reading) -> None:
        self.reading: Final = reading
        self._codes: dict[str, _Code] = {}
        self._named: dict[NamedNode, str] = {}
        """What shared graphs that were written, or found in the store, call the thing that they are about."""

        self._outdated: set[tuple[NamedNode, str]] = set()
        """The graphs of districts, with the names that the sections that are stored give them."""

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
                    if graph not in replace and self._says_more(store, graph, quads):
                        made[graph] = quads, RecordOrigin("", (), (found.source,))
        return made

    def _says_more(self, store: Store, graph: NamedNode, quads: Sequence[Quad]) -> bool:
        """Whether what a shared graph is to say is written: if it is new, or has the name that is to stand.

        The name of a district is the one that its code says most with. Of several spellings of a land use the first in
        the order of characters stands, so that it is the same whatever is read first.
        """
        name, known = _name(quads), self._named.get(graph)
        if known is None and (stored := store.graph(graph)):
            known = self._named[graph] = _name(stored)
        if known is not None and known != name:
            district = any(quad.object == KG.ZoningDistrict for quad in quads)
            codes = {text_of(quad.object) for quad in quads if quad.predicate == SKOS.notation}
            outdated = (known in codes or (graph, known) in self._outdated) if district else name < known
            if not outdated:
                return False
        elif known is not None:
            return False
        self._named[graph] = name
        return True

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
            yield self._read(section, graph, code, name)
            code.done.add(key)
        again: set[str] = set()
        if first and code.stored:
            self._outdated |= {
                (mint("graph", "ref", "district", name, each.code), each.name or each.code)
                for each in districts(code.stored.values()).values()
            }
            again |= code.touched({**code.stated, **districts(code.stored.values())})
            if code.new:
                again |= _keys(store, bind(UNRESOLVED, municipality=code.shared.iri), name)
        if gone:
            before, code = code.districts, code.without(gone, name)
            self._codes[name] = code
            if before is not code.districts:
                again |= code.touched(before)
            cited = [code.shared.section(key) for key in gone]
            again |= _keys(store, bind(CITING, cited=cited), name)
        for key in sorted(again - graphs.keys()):
            if (section := code.standing(key)) is not None:
                yield self._read(section, mint("graph", "src", DOMAIN, name, key), code, name)

    def _read(self, section: Section, graph: NamedNode, code: _Code, name: str) -> _Found:
        """What is found in a section of a code."""
        shared, own, state = code.shared.fresh(), _extracted(graph), _state(name)
        quads = rules_of(section, shared, own, code.districts, code.index, code.above(section.key), state)
        quads += claims_of(section.text, section.key, shared, own, code.index, state)
        return _Found(own, graph, quads, shared.graphs)

    def _code(self, store: Store, name: str) -> _Code:
        sections = self.reading.sections.get(name, {})
        municipality = mint("municipality", name)
        shared = self.reading.municipalities.get(name)
        if shared is None:
            said = [text_of(row["name"]) for row in select(store.query, bind(NAME, municipality=municipality))]
            shared = Authorities(said[0] if said else name, _state(name))
        stored = whole_sections(store, name)
        everything = {**stored, **sections}
        stated = {
            code: District(code, text_of(row["name"]), "", None, None, _KNOWN_BY_TABLES, "stored")
            for row in select(store.query, bind(DISTRICTS, municipality=municipality))
            for code in [text_of(row["code"])]
        }
        index, found = _index(name, everything.values()), districts(everything.values())
        return _Code(shared, sections, stored, index, stated, {**stated, **found})


def _name(quads: Iterable[Quad]) -> str:
    return next((text_of(quad.object) for quad in quads if quad.predicate == SKOS.prefLabel), "")


def districts_changed(before: Mapping[str, District], after: Mapping[str, District]) -> Sequence[District]:
    """Return the districts, as they were and as they are, that came, went or have another name."""
    codes = [
        code
        for code in {**before, **after}
        if (one := before.get(code)) is None or (other := after.get(code)) is None or one.name != other.name
    ]
    return [each for code in codes for known in (before, after) if (each := known.get(code)) is not None]


def naming(several: Sequence[District]) -> Callable[[str], bool]:
    """Return what tells whether words have the code of one of the districts in them, or its name."""
    words = {district.code for district in several} | {plain for each in several if (plain := plain_name(each.name))}
    if not words:
        return lambda _: False
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(words)))})(?![\w-])", re.IGNORECASE)
    return lambda text: pattern.search(" ".join(text.split(" "))) is not None


def _same_heading(one: Section, other: Section | None) -> bool:
    return other is not None and (one.title, one.parent) == (other.title, other.parent)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is found in one section."""

    graph: NamedNode
    source: NamedNode
    quads: Sequence[Quad] = ()
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)


def _index(name: str, sections: Iterable[Section]) -> Index:
    return Index(sections, codes=_OWN_NAMES.get(name, ()))


def _extracted(graph: NamedNode) -> NamedNode:
    return NamedNode(_EXTRACTED + graph.value.removeprefix(_SOURCES))


def _state(name: str) -> str:
    """The two letters of the state in the key of a municipality."""
    return name.split("-")[1].upper()


def _keys(store: Store, query: str, name: str) -> set[str]:
    return {key_of(row["section"], name) for row in select(store.query, query)}
