"""Derived graphs of codes: the findings in their texts, committed together with the texts.

The findings of a section are in ``graph/ext/zoning/{municipality}/{section}`` and are removed with the section, as are
the edges promoted from its claims (`kg.provenance.promotion`). A citation is resolved among all sections of the
municipality, stored or in the current load. Its districts are those named by its sections or stated by its tables. When
sections or districts are added or removed, only the sections that cite or name them are extracted again. The
readings of a section (`loaders.zoning.graph.readings`) are part of each extraction of the same text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.findings import Reviewed, apply_reviews, get_shared_graph
from kg.provenance.load_records import Derived, RecordOrigin
from kg.provenance.promotion import Verdicts
from kg.sparql.terms import bind
from kg.store.protocol import Commit, Store, named_node, select, term_text
from kg.vocabulary import EXTRACTED, KG, SKOS, SOURCED, mint
from kg.zoning_summaries.stored_summaries import find_withdrawn
from loaders.zoning.extraction.districts import District, DistrictList, find_whole_list, plain_name
from loaders.zoning.extraction.permission_matrices import is_legend
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.graph.authorities import Authorities, merge, state_of
from loaders.zoning.graph.readings import Reading, build_read_rules, get_reading_graph, load_readings
from loaders.zoning.graph.rule_quads import Rules
from loaders.zoning.graph.stated_districts import Stated, find_stated, load_stated
from loaders.zoning.graph.stored_codes import Code, Codes, has_sections
from loaders.zoning.graph.text_findings import build_claims, build_places, build_rules, find_near
from loaders.zoning.readers.code_model import DOMAIN, Section

NAME: Final = """
SELECT ?name WHERE { $municipality skos:prefLabel ?name }"""

STATING: Final = """
SELECT DISTINCT ?graph WHERE { GRAPH ?graph { ?rule ?property $node } FILTER(STRSTARTS(STR(?graph), $sources)) }"""

_OF_RULES: Final = (mint("graph", "ref", "district").value + "/", mint("graph", "ref", "landuse").value + "/")
_SOURCES: Final = f"{SOURCED}{DOMAIN}/"
_EXTRACTED: Final = f"{EXTRACTED}{DOMAIN}/"


def load_name(store: Store, municipality: NamedNode) -> str | None:
    """Load the name of a municipality; None for one that no source describes."""
    rows = select(store.query_sources, bind(NAME, municipality=municipality))
    return next((term_text(row["name"]) for row in rows), None)


@dataclass(slots=True)
class CodesRead:
    """The codes of the current load, by key of the municipality."""

    sections: dict[str, dict[str, Section]] = field(default_factory=dict)
    """Sections by key."""
    municipalities: dict[str, Authorities] = field(default_factory=dict)


@dataclass(slots=True)
class _Work:
    """The code of one municipality, before and after this load."""

    shared: Authorities
    stored: Code
    own: Mapping[str, Section]
    """Sections of this load."""
    code: Code
    stated: Stated
    districts: Mapping[str, District]
    """The districts used in the last extraction."""
    readings: Mapping[str, Sequence[Reading]]
    """Readings of sections, by key."""
    scopes: Mapping[str, Sequence[Scope]] = field(default_factory=dict)
    """Scopes of the sections, as used in the last extraction."""
    listed: DistrictList | None = None
    """The list of all districts, as used in the last extraction."""
    unstated: Set[str] = frozenset()
    """Codes of districts that tables stated before the last change and no longer state."""
    done: set[str] = field(default_factory=set)
    """Keys of the sections that this load has processed."""

    def known(self) -> Mapping[str, District]:
        """Merge the districts named by sections with those stated by tables."""
        return self.stated.merge(self.code.districts)

    def find_places(self) -> Set[str]:
        """Find again where the sections apply and which one lists all districts; return the keys of those that
        changed."""
        scopes, listed = self.code.find_scopes(self.districts), find_whole_list(self.districts, self.code.sections)
        changed = {key for key, each in scopes.items() if self.scopes.get(key) != each}
        if listed != self.listed:
            changed |= {each.section for each in (listed, self.listed) if each is not None}
        self.scopes, self.listed = scopes, listed
        return changed

    def get_section(self, key: str) -> Section | None:
        """Get a section as of now: a section that this load has not processed yet is still as stored."""
        return self.own.get(key) if key in self.done else self.stored.sections.get(key)

    def find_affected(self, before: Mapping[str, District], headed: Iterable[str] = ()) -> set[str]:
        """Find the sections whose findings may differ with the current districts.

        The findings of a section depend on its text, on the codes and names of districts in it, and on the headings
        above it. `headed` are the sections whose headings have changed.
        """
        found = {below for key in headed for below in self.code.index.below(key)}
        if several := find_changed_districts(before, self.districts):
            said = build_name_test(several)
            for key, section in self.code.sections.items():
                if said(section.title):
                    found.update(self.code.index.below(key))
                elif said(section.text):
                    found.add(key)
        return found


class Findings:
    """Builds the derived graphs of the sections in each commit of one load."""

    def __init__(self, reading: CodesRead, codes: Codes | None = None) -> None:
        self.reading: Final = reading
        self.codes: Final = codes or Codes()
        self._works: dict[str, _Work] = {}
        self._named: dict[NamedNode, str] = {}
        """Labels in the shared graphs written or read so far."""

        self._verdicts = Verdicts()

        self._outdated: set[tuple[NamedNode, str]] = set()
        """Graphs of districts, each with the label that the stored sections give it."""

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Build the findings in the sections of these graphs, and in those that cite or name a changed one.

        Summaries of removed sections are removed in the same commit.
        """
        self._verdicts = Verdicts.load(store.query)
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
            for found in self._derive_sections(store, name, graphs[name], tables[name], replace):
                self._add(made, found, store, replace)
            for graph, quads, source in self._find_unstated(name):
                if graph not in replace:
                    self._named[graph] = _label_in(quads)
                    made[graph] = quads, RecordOrigin("", (), (source,))
        return {**made, **find_withdrawn(store, replace)}

    def derive_again(self, store: Store, name: str, readings: Mapping[str, Sequence[Reading]]) -> Derived:
        """Build the findings of stored sections again, by key, each with these readings in place of the stored ones.

        A reading of another text, and one of a section that is gone, is left out.
        """
        self._verdicts = Verdicts.load(store.query)
        work = self._load_work(store, name)
        work.readings = {**work.readings, **readings}
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
        for key in readings:
            if (section := work.stored.sections.get(key)) is not None:
                source = mint("graph", "src", DOMAIN, name, key)
                self._add(made, self._extract(section, source, work, name), store, {})
        return made

    def _add(
        self,
        made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]],
        found: _Found,
        store: Store,
        replace: Mapping[NamedNode, Sequence[Quad]],
    ) -> None:
        """Add the findings of a section, and the shared graphs that change with them."""
        sources = (found.source,) if found.reading is None else (found.source, found.reading)
        made[found.graph] = found.quads, RecordOrigin("", (), (*sources, *self._verdicts.on(found.reviewed)))
        for graph, quads in found.shared.items():
            stating: Sequence[NamedNode] = ()
            if graph in replace:
                # A source's own label takes precedence over one found in text.
                said = made[graph][0] if graph in made else replace[graph]
                quads = merge(quads, said)
                if set(quads) == set(said):  # the text adds nothing, so the graph remains the source's
                    continue
                stating = _find_stating(store, replace, named_node(quads[0].subject))
            elif not self._must_write(store, graph, quads):
                continue
            elif (others := _find_other_facts(store.graph(graph), quads)) and (
                stating := _find_stating(store, replace, named_node(quads[0].subject))
            ):
                quads = [*quads, *others]
            made[graph] = quads, RecordOrigin("", (), (found.source, *stating))

    def cache_codes(self, commit: Commit) -> None:
        """Cache the codes as of `commit`, the commit of the last `derive`."""
        for work in self._works.values():
            if work.own.keys() <= work.done:
                self.codes.keep(work.code, work.own.keys(), commit)

    def _must_write(self, store: Store, graph: NamedNode, quads: Sequence[Quad]) -> bool:
        """Whether a shared graph must be written: it is new, or its label is to change.

        The label of a district comes from the best place that names it. Of several spellings of a land use the first in
        code point order is used, so that the result does not depend on the order of loading.
        """
        name, known = _label_in(quads), self._named.get(graph)
        if known is None and (stored := store.graph(graph)):
            known = self._named[graph] = _label_in(stored)
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

    def _derive_sections(
        self,
        store: Store,
        name: str,
        graphs: Mapping[str, NamedNode],
        tables: Mapping[str, frozenset[str]],
        replace: Mapping[NamedNode, Sequence[Quad]],
    ) -> Iterator[_Found]:
        gone = {key for key, graph in graphs.items() if not replace[graph]}
        first = name not in self._works
        work = self._works.get(name) or self._works.setdefault(name, self._load_work(store, name))
        before, districts, stated = work.code, work.districts, work.stated
        if gone:
            work.code = before.copy()
            for key in gone:
                work.code.drop(key)
        if tables:
            work.stated = stated.replace_codes(tables, replace)
            work.unstated = stated.districts.keys() - work.stated.districts.keys()
        rescoped: Set[str] = frozenset()
        if first or gone or tables:
            work.districts = work.known()
            rescoped = work.find_places()
        for key, graph in graphs.items():
            section = work.own.get(key)
            readings = work.readings.get(key, ())
            if readings and (section is None or key in gone or not any(each.is_of(section) for each in readings)):
                yield _Found(get_reading_graph(name, key), graph)
            if key in gone or section is None:
                yield _Found(_extracted(graph), graph)
                continue
            found = self._extract(section, graph, work, name)
            work.code.set_citations(
                key, {term_text(quad.object) for quad in found.quads if quad.predicate == KG.rawCitation}
            )
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
            again |= work.stored.find_citing(work.code, moved) | work.find_affected(districts, headed)
        elif not first and (gone or tables):
            again |= work.find_affected(districts)
        again |= rescoped
        again |= find_keyed(before, gone) | find_keyed(work.code, gone)
        if first and work.stored.sections:
            changed = [key for key, each in work.own.items() if _words(each) != _words(work.stored.sections.get(key))]
            again |= find_keyed(work.stored, changed) | find_keyed(work.code, changed)
        if gone:
            again |= before.find_citing(work.code, gone)
            again |= {below for key in gone for below in work.code.index.below(key)}
        for key in sorted(again - graphs.keys()):
            if (section := work.get_section(key)) is not None:
                yield self._extract(section, mint("graph", "src", DOMAIN, name, key), work, name)

    def _find_unstated(self, name: str) -> Iterator[tuple[NamedNode, Sequence[Quad], NamedNode]]:
        """Yield the graphs of districts that sections name and that no table states any more."""
        work = self._works[name]
        for code in sorted(work.unstated):
            district = work.code.districts.get(code)
            if district is not None and not self._is_rejected(name, code):
                shared, graph = work.shared.copy(), mint("graph", "ref", "district", name, code)
                shared.district(code, district.name or None)
                yield graph, shared.graphs[graph], mint("graph", "src", DOMAIN, name, district.section)

    def _is_rejected(self, name: str, code: str) -> bool:
        """Check whether a person rejected that a section names a district."""
        namings = self._verdicts.namings.get(mint("district", name, code).value, ())
        return not self._verdicts.rejected.keys().isdisjoint(namings)

    def _extract(self, section: Section, graph: NamedNode, work: _Work, name: str) -> _Found:
        """Extract the findings of one section."""
        shared, own, code, state = work.shared.copy(), _extracted(graph), work.code, state_of(name)
        readings = [each for each in work.readings.get(section.key, ()) if each.is_of(section)]
        above = code.above(section.key)
        quads = build_rules(
            section, shared, own, work.districts, code.index, above, state, work.scopes.get(section.key)
        )
        quads += build_read_rules(section, readings, shared, own, work.districts, quads)
        quads += build_claims(section.text, section.key, shared, own, code.index, state)
        places = Rules(own, shared, work.districts)
        quads += build_places(section, work.scopes.get(section.key, ()), work.listed, places)
        read = get_reading_graph(name, section.key) if readings else None
        found = apply_reviews(quads, self._verdicts, lambda node: shared.graphs.get(get_shared_graph(node), ()))
        graphs = _select_needed(shared.graphs, found) if found.by else shared.graphs
        return _Found(own, graph, found.quads, graphs, read, found.by)

    def _load_work(self, store: Store, name: str) -> _Work:
        own = self.reading.sections.get(name, {})
        municipality = mint("municipality", name)
        shared = self.reading.municipalities.get(name)
        if shared is None:
            shared = Authorities(load_name(store, municipality) or name, state_of(name))
        stored = self.codes.load(store, name)
        if stored.sections:
            code = stored.copy()
            for section in own.values():
                code.put(section)
        else:
            code = Code.empty(name)
            code.fill(own.values())
        work = _Work(shared, stored, own, stored, load_stated(store, name), {}, load_readings(store, name))
        work.districts = work.known()
        work.find_places()
        work.code = code
        return work


def _find_other_facts(stored: Iterable[Quad], quads: Iterable[Quad]) -> list[Quad]:
    """Find the properties in a stored shared graph that `quads` lack, as the category that a table gives a use."""
    known = {quad.predicate for quad in quads}
    return [quad for quad in stored if quad.predicate not in known]


def _find_stating(store: Store, replace: Mapping[NamedNode, Sequence[Quad]], node: NamedNode) -> list[NamedNode]:
    """Find the graphs of sources that state a rule about `node`, as they will be after the commit of `replace`."""
    rows = select(store.query_sources, bind(STATING, node=node, sources=Literal(_SOURCES)))
    stored = {named_node(row["graph"]) for row in rows} - replace.keys()
    given = {
        graph
        for graph, quads in replace.items()
        if graph.value.startswith(_SOURCES) and any(quad.object == node for quad in quads)
    }
    return sorted(stored | given, key=str)


def _label_in(quads: Iterable[Quad]) -> str:
    return next((term_text(quad.object) for quad in quads if quad.predicate == SKOS.prefLabel), "")


def find_keyed(code: Code, keys: Iterable[str]) -> set[str]:
    """Find the sections with tables whose letters the sections `keys` of a code may explain."""
    legends = [key for key in keys if (section := code.sections.get(key)) is not None and is_legend(section)]
    return {each.key for key in legends for each in find_near(code.sections[key], code.index) if each.tables}


def find_changed_districts(before: Mapping[str, District], after: Mapping[str, District]) -> Sequence[District]:
    """Find the districts that were added, removed or renamed, in their old and new versions."""
    codes = [
        code
        for code in {**before, **after}
        if (one := before.get(code)) is None or (other := after.get(code)) is None or one.name != other.name
    ]
    return [each for code in codes for known in (before, after) if (each := known.get(code)) is not None]


def build_name_test(several: Sequence[District]) -> Callable[[str], bool]:
    """Build a predicate: whether a text contains the code or the name of one of the districts."""
    words = {district.code for district in several} | {plain for each in several if (plain := plain_name(each.name))}
    if not words:
        return lambda _: False
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(words)))})(?![\w-])", re.IGNORECASE)
    return lambda text: pattern.search(text) is not None


def _heading(section: Section | None) -> object:
    """The properties of a section that the findings below it depend on."""
    return section and (section.title, section.parent, section.kind, section.number)


def _words(section: Section | None) -> object:
    """The properties of a section that the meaning of the letters in tables near it depends on."""
    return section and (section.title, section.text, section.parent, section.order)


def _place(section: Section | None) -> object:
    """The properties of a section that citations resolve by."""
    return section and (section.parent, section.kind, section.number, section.order)


@dataclass(frozen=True, slots=True)
class _Found:
    """The findings of one section."""

    graph: NamedNode
    source: NamedNode
    quads: Sequence[Quad] = ()
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    reading: NamedNode | None = None
    """The graph of the reading of the section by a model."""
    reviewed: frozenset[NamedNode] = frozenset()
    """The claims whose reviews decided about any of the quads."""


def _select_needed(shared: Mapping[NamedNode, Sequence[Quad]], found: Reviewed) -> dict[NamedNode, Sequence[Quad]]:
    """Select the shared graphs without those of districts and uses that only rejected findings name."""
    named = {get_shared_graph(quad.object) for quad in found.quads if isinstance(quad.object, NamedNode)}
    return {graph: quads for graph, quads in shared.items() if graph in named or not graph.value.startswith(_OF_RULES)}


def _extracted(graph: NamedNode) -> NamedNode:
    return NamedNode(_EXTRACTED + graph.value.removeprefix(_SOURCES))
