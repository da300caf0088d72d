"""What is found in the texts of codes, in the commit of the texts.

The findings in a section stand in ``graph/ext/zoning/{municipality}/{section}`` and go with the section, as do the
edges that are promoted from its claims (`kg.provenance.promotion`). A citation is resolved among all sections of the
municipality, stored or about to be, and its districts are those that its sections name or its tables state. When
sections or districts come or go, the sections that cite or name what came or went are read anew, and nothing else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin
from kg.sparql.terms import bind
from kg.store.protocol import Commit, Store, select, term_text
from kg.vocabulary import EXTRACTED, KG, SKOS, SOURCED, mint
from kg.zoning_summaries.stored_summaries import find_withdrawn
from loaders.zoning.extraction.districts import District, plain_name
from loaders.zoning.graph.authorities import Authorities, merge
from loaders.zoning.graph.stated_districts import Stated, find_stated, load_stated
from loaders.zoning.graph.stored_codes import Code, Codes, has_sections, state_of
from loaders.zoning.graph.text_findings import build_claims, build_rules
from loaders.zoning.readers.code_model import DOMAIN, Section

NAME: Final = """
SELECT ?name WHERE { $municipality skos:prefLabel ?name }"""

_SOURCES: Final = f"{SOURCED}{DOMAIN}/"
_EXTRACTED: Final = f"{EXTRACTED}{DOMAIN}/"


@dataclass(slots=True)
class CodesRead:
    """The codes that the current load has read, by key of the municipality."""

    sections: dict[str, dict[str, Section]] = field(default_factory=dict)
    """Sections by key."""
    municipalities: dict[str, Authorities] = field(default_factory=dict)


@dataclass(slots=True)
class _Work:
    """One municipality's code: as it was before this load, and as the load leaves it."""

    shared: Authorities
    stored: Code
    own: Mapping[str, Section]
    """The sections of this load."""
    code: Code
    stated: Stated
    districts: Mapping[str, District]
    """Those that the text was read with last."""
    unstated: Set[str] = frozenset()
    """Codes of those that tables have stated until the last change."""
    done: set[str] = field(default_factory=set)
    """Keys of the sections that this load has come to."""

    def known(self) -> Mapping[str, District]:
        """The districts that there are, by what sections name and tables state."""
        found = self.code.districts
        return {
            **self.stated.districts,
            **{code: self.stated.with_name(district) for code, district in found.items()},
        }

    def standing(self, key: str) -> Section | None:
        """The section with this key as it stands before what this load has not come to yet."""
        return self.own.get(key) if key in self.done else self.stored.sections.get(key)

    def touched(self, before: Mapping[str, District], headed: Iterable[str] = ()) -> set[str]:
        """Return the keys of the sections that may say more, or less, with other districts than these.

        What a section says depends, beside its own words, on the codes and names of districts that stand in them and
        on the headings above it, of which those of the sections `headed` have changed.
        """
        found = {below for key in headed for below in self.code.index.below(key)}
        if several := districts_changed(before, self.districts):
            said = naming(several)
            for key, section in self.code.sections.items():
                if said(section.title):
                    found.update(self.code.index.below(key))
                elif said(section.text):
                    found.add(key)
        return found


class Findings:
    """Makes the graphs that go with those of sections that are about to be committed, for one load."""

    def __init__(self, reading: CodesRead, codes: Codes | None = None) -> None:
        self.reading: Final = reading
        self.codes: Final = codes or Codes()
        self._works: dict[str, _Work] = {}
        self._named: dict[NamedNode, str] = {}
        """What shared graphs that were written, or found in the store, call the thing that they are about."""

        self._outdated: set[tuple[NamedNode, str]] = set()
        """The graphs of districts, with the names that the sections that are stored give them."""

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Build the findings in the sections of these graphs, and in those that cite or name what comes or goes.

        Summaries of removed sections are removed in the same commit.
        """
        graphs: dict[str, dict[str, NamedNode]] = defaultdict(dict)
        tables: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        for graph in replace:
            name, _, section = graph.value.removeprefix(_SOURCES).partition("/")
            if graph.value.startswith(_SOURCES) and section and "/" not in section:
                graphs[name][unquote(section)] = graph
            elif graph.value.startswith(_SOURCES):
                for place, codes in find_stated(replace[graph], store.graph(graph)).items():
                    tables[place][graph.value] = codes
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
        for name in {**graphs, **tables}:
            if name not in graphs and not self.reading.sections.get(name) and not has_sections(store, name):
                continue
            for found in self._found(store, name, graphs[name], tables[name], replace):
                made[found.graph] = found.quads, RecordOrigin("", (), (found.source,))
                for graph, quads in found.shared.items():
                    if graph in replace:
                        # What a source says of a thing comes before what text calls it.
                        quads = merge(quads, made[graph][0] if graph in made else replace[graph])
                    if graph in replace or self._says_more(store, graph, quads):
                        made[graph] = quads, RecordOrigin("", (), (found.source,))
            for graph, quads, source in self._unstated(name):
                if graph not in replace:
                    self._named[graph] = _name(quads)
                    made[graph] = quads, RecordOrigin("", (), (source,))
        return {**made, **find_withdrawn(store, replace)}

    def settled(self, commit: Commit) -> None:
        """Keep the codes as they stand after `commit`, the one of what was derived last."""
        for work in self._works.values():
            if work.own.keys() <= work.done:
                self.codes.committed(work.code, work.own.keys(), commit)

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
            codes = {term_text(quad.object) for quad in quads if quad.predicate == SKOS.notation}
            outdated = (known in codes or (graph, known) in self._outdated) if district else name < known
            if not outdated:
                return False
        elif known is not None:
            return False
        self._named[graph] = name
        return True

    def _found(
        self,
        store: Store,
        name: str,
        graphs: Mapping[str, NamedNode],
        tables: Mapping[str, frozenset[str]],
        replace: Mapping[NamedNode, Sequence[Quad]],
    ) -> Iterator[_Found]:
        gone = {key for key, graph in graphs.items() if not replace[graph]}
        first = name not in self._works
        work = self._works.get(name) or self._works.setdefault(name, self._work(store, name))
        before, districts, stated = work.code, work.districts, work.stated
        if gone:
            work.code = before.copy()
            for key in gone:
                work.code.drop(key)
        if tables:
            work.stated = stated.replaced(tables, replace)
            work.unstated = stated.districts.keys() - work.stated.districts.keys()
        if first or gone or tables:
            work.districts = work.known()
        for key, graph in graphs.items():
            section = work.own.get(key)
            if key in gone or section is None:
                yield _Found(_extracted(graph), graph)
                continue
            found = self._read(section, graph, work, name)
            work.code.cites(key, {term_text(quad.object) for quad in found.quads if quad.predicate == KG.rawCitation})
            work.done.add(key)
            yield found
        again: set[str] = set()
        if first and work.stored.sections:
            self._outdated |= {
                (mint("graph", "ref", "district", name, each.code), each.name or each.code)
                for each in work.stored.districts.values()
            }
            moved = [key for key, each in work.own.items() if _place(each) != _place(work.stored.sections.get(key))]
            headed = [
                key for key, each in work.own.items() if _heading(each) != _heading(work.stored.sections.get(key))
            ]
            again |= work.stored.citing_any(work.code, moved) | work.touched(districts, headed)
        elif not first and (gone or tables):
            again |= work.touched(districts)
        if gone:
            again |= before.citing_any(work.code, gone)
            again |= {below for key in gone for below in work.code.index.below(key)}
        for key in sorted(again - graphs.keys()):
            if (section := work.standing(key)) is not None:
                yield self._read(section, mint("graph", "src", DOMAIN, name, key), work, name)

    def _unstated(self, name: str) -> Iterator[tuple[NamedNode, Sequence[Quad], NamedNode]]:
        """Yield what the graphs of districts that no table states any more, and sections name, are to say."""
        work = self._works[name]
        for code in sorted(work.unstated):
            if (district := work.code.districts.get(code)) is not None:
                shared, graph = work.shared.fresh(), mint("graph", "ref", "district", name, code)
                shared.district(code, district.name or None)
                yield graph, shared.graphs[graph], mint("graph", "src", DOMAIN, name, district.section)

    def _read(self, section: Section, graph: NamedNode, work: _Work, name: str) -> _Found:
        """What is found in a section of a code."""
        shared, own, code, state = work.shared.fresh(), _extracted(graph), work.code, state_of(name)
        quads = build_rules(section, shared, own, work.districts, code.index, code.above(section.key), state)
        quads += build_claims(section.text, section.key, shared, own, code.index, state)
        return _Found(own, graph, quads, shared.graphs)

    def _work(self, store: Store, name: str) -> _Work:
        own = self.reading.sections.get(name, {})
        municipality = mint("municipality", name)
        shared = self.reading.municipalities.get(name)
        if shared is None:
            said = [term_text(row["name"]) for row in select(store.query, bind(NAME, municipality=municipality))]
            shared = Authorities(said[0] if said else name, state_of(name))
        stored = self.codes.stored(store, name)
        if stored.sections:
            code = stored.copy()
            for section in own.values():
                code.put(section)
        else:
            code = Code.of(name)
            code.fill(own.values())
        work = _Work(shared, stored, own, stored, load_stated(store, name), {})
        work.districts, work.code = work.known(), code
        return work


def _name(quads: Iterable[Quad]) -> str:
    return next((term_text(quad.object) for quad in quads if quad.predicate == SKOS.prefLabel), "")


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
    return lambda text: pattern.search(text) is not None


def _heading(section: Section | None) -> object:
    """What a section says of those below it."""
    return section and (section.title, section.parent, section.kind, section.number)


def _place(section: Section | None) -> object:
    """What citations find a section by."""
    return section and (section.parent, section.kind, section.number, section.order)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is found in one section."""

    graph: NamedNode
    source: NamedNode
    quads: Sequence[Quad] = ()
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)


def _extracted(graph: NamedNode) -> NamedNode:
    return NamedNode(_EXTRACTED + graph.value.removeprefix(_SOURCES))
