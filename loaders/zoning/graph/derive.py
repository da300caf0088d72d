"""Derived graphs of codes: the findings in their texts, committed together with the texts.

The findings of a section are in ``graph/ext/zoning/{municipality}/{section}`` and are removed with the section, as are
the edges promoted from its claims (`kg.provenance.promotion`). A citation is resolved among all sections of the
municipality, stored or in the current load. Its districts are those named by its sections or stated by its tables. When
sections or districts are added or removed, only the sections that cite or name them are extracted again. The
readings of a section (`loaders.zoning.graph.readings`) are part of each extraction of the same text.

The subject of a claim about a citation is the citing section. A claim whose target is unknown is stored with the words
of the citation.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final, TypeVar
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.findings import Reviewed, apply_reviews, get_shared_graph
from kg.provenance.load_records import Derived, RecordOrigin
from kg.provenance.permissions import get_author
from kg.provenance.promotion import Verdicts
from kg.sparql.terms import bind
from kg.store.protocol import Commit, Store, named_node, select, term_text
from kg.vocabulary import DCTERMS, ELI, EXTRACTED, KG, RDF, SKOS, SOURCED, iri_prefix, mint, mint_naming, mint_part
from loaders.citations.graph.claims import Claims, Evidence
from loaders.citations.relationships import find_relationships
from loaders.citations.section_citations import (
    THIS,
    UNRESOLVED,
    UNRESOLVED_WITHOUT_SEPARATOR,
    WITHOUT_SEPARATOR,
    find_citations,
)
from loaders.zoning.extraction.citation_resolution import Index, resolve, resolve_range, resolve_words
from loaders.zoning.extraction.definitions import Definition
from loaders.zoning.extraction.districts import (
    District,
    DistrictList,
    find_in_section,
    find_whole_list,
    plain_name,
)
from loaders.zoning.extraction.facts import find_facts
from loaders.zoning.extraction.measures import Standard
from loaders.zoning.extraction.permission_levels import UsePermission
from loaders.zoning.extraction.permission_matrices import is_legend
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.graph.authorities import Authorities, merge, state_of
from loaders.zoning.graph.readings import Reading, build_read_rules, get_reader, get_reading_graph, load_readings
from loaders.zoning.graph.rule_quads import UNNAMED, Rules, unit
from loaders.zoning.graph.stored_codes import Code, Codes, load_stated, merge_districts
from loaders.zoning.readers.code_model import DOMAIN, Section

NAME: Final = """
SELECT ?name WHERE { $municipality skos:prefLabel ?name }"""

STATING: Final = """
SELECT DISTINCT ?graph WHERE { GRAPH ?graph { ?rule ?property $node } FILTER(STRSTARTS(STR(?graph), $sources)) }"""

GENERATED_FROM: Final = """
SELECT ?graph ?section WHERE {
  VALUES ?section { $sections } GRAPH ?graph { ?generated kg:summaryOf|kg:readingOf ?section }
}"""

T = TypeVar("T")

MAX_QUADS: Final = {"definitions": 15_000, "permissions": 50_000, "standards": 55_000, "citations": 15_000}
"""Quads of a section, of its rules or of its citations, after which no more findings of a kind are read from it. A
definition has about 13, a permission and a standard 15 to 20, and each quad takes 4 kB while it is committed."""

WHOLE_LIST: Final = 0.95
"""Confidence that a list read whole, with all districts that the code names, has all districts."""
_MOST_SCOPES: Final = 1_000
"""Scopes of a section after which the rest is unknown."""
_NEAR: Final = 5
"""Maximum distance of a table to the section that explains its letters, in sections."""
_log: Final = logging.getLogger(__name__)
_OF_RULES: Final = (mint("graph", "ref", "district").value + "/", mint("graph", "ref", "landuse").value + "/")
_SOURCES: Final = f"{SOURCED}{DOMAIN}/"
_Graphs = Mapping[NamedNode, Sequence[Quad]]
_Made = dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]]
_SECTIONS: Final = iri_prefix("section")
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

    name: str
    shared: Authorities
    stored: Code
    own: Mapping[str, Section]
    """Sections of this load."""
    code: Code
    stated: Mapping[str, District]
    """The districts that tables state."""
    districts: Mapping[str, District]
    """The districts used in the last extraction."""
    readings: Mapping[str, Sequence[Reading]]
    """Readings of sections, by key."""
    scopes: Mapping[str, Sequence[Scope]] = field(default_factory=dict)
    """Scopes of the sections, as used in the last extraction."""
    listed: DistrictList | None = None
    """The list of all districts, as used in the last extraction."""
    done: set[str] = field(default_factory=set)
    """Keys of the sections that this load has processed."""

    def find_places(self) -> Set[str]:
        """Find again where the sections apply and which one lists all districts; return the keys of those that
        changed."""
        scopes, listed = self.code.find_scopes(self.districts), find_whole_list(self.districts, self.code.sections)
        changed = {key for key, each in scopes.items() if self.scopes.get(key) != each}
        if listed != self.listed:
            changed |= {each.section for each in (listed, self.listed) if each is not None}
        self.scopes, self.listed = scopes, listed
        return changed

    def list_changed(self) -> list[str]:
        """List the sections of this load that are new, or differ from the stored ones."""
        get, stored = attrgetter("parent", "kind", "number", "order", "title", "text"), self.stored.sections
        return [key for key, each in self.own.items() if key not in stored or get(each) != get(stored[key])]

    def find_affected(self, before: Mapping[str, District]) -> set[str]:
        """Find the sections whose findings may differ with the current districts.

        The findings of a section depend on the codes and names of districts in its text and in the headings above it.
        """
        named = {(each.code, each.name) for each in before.values()}
        changed = named ^ {(each.code, each.name) for each in self.districts.values()}
        words = {code for code, _ in changed} | {plain_name(name) for _, name in changed} - {""}
        if not words:
            return set()
        pattern = rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(words)))})(?![\w-])"
        says = re.compile(pattern, re.IGNORECASE).search
        sections = self.code.sections.values()
        return self.find_below(each.key for each in sections if says(f"{each.title}\n{each.text}"))

    def find_below(self, keys: Iterable[str]) -> set[str]:
        """Find the sections with these keys and those below them."""
        return {below for key in keys for below in self.code.index.below(key)}


class Findings:
    """Builds the derived graphs of the sections in each commit of one load."""

    def __init__(self, loaded: CodesRead, codes: Codes | None = None) -> None:
        self.loaded: Final = loaded
        self.codes: Final = codes or Codes()
        self._works: dict[str, _Work] = {}
        self._named: dict[NamedNode, str] = {}
        """Labels in the shared graphs written or read so far."""
        self._verdicts = Verdicts()
        self._unstated: dict[NamedNode, NamedNode] = {}
        """Graphs of districts that tables no longer state, each with the source of the section that names it best."""

    def derive(self, store: Store, replace: _Graphs) -> Derived:
        """Build the findings in the sections of these graphs, and in those that cite or name a changed one.

        Summaries and readings of removed sections are removed in the same commit.
        """
        self._verdicts = Verdicts.load(store.query)
        graphs: dict[str, dict[str, NamedNode]] = defaultdict(dict)
        tables: set[str] = set()
        for graph in replace:
            if graph.value.startswith(_SOURCES):
                name, _, section = graph.value.removeprefix(_SOURCES).partition("/")
                sections = graphs[name]
                if "/" in section:
                    tables.add(name)
                else:
                    sections[unquote(section)] = graph
        made: _Made = {}
        for name, sections in graphs.items():
            first = name not in self._works
            work = self._works.get(name) or self._works.setdefault(name, self._load_work(store, name))
            if work.own or work.stored.sections or sections:
                for found in self._derive_sections(store, work, first, sections, name in tables, replace):
                    self._add(made, work, found, store, replace)
        return {**made, **_find_generated(store, replace)}

    def derive_again(self, store: Store, name: str, readings: Mapping[str, Sequence[Reading]]) -> Derived:
        """Build the findings of stored sections again, by key, each with these readings in place of the stored ones.

        A reading of another text, and one of a section that is gone, is left out.
        """
        self._verdicts = Verdicts.load(store.query)
        work = self._load_work(store, name)
        work.readings = {**work.readings, **readings}
        made: _Made = {}
        for key in readings:
            if (section := work.stored.sections.get(key)) is not None:
                source = mint("graph", "src", DOMAIN, name, key)
                self._add(made, work, self._extract(section, source, work), store, {})
        return made

    def _add(self, made: _Made, work: _Work, found: _Found, store: Store, replace: _Graphs) -> None:
        """Add the findings of a section, and the shared graphs that change with them."""
        sources = (found.source, *found.readings, *self._verdicts.on(found.reviewed))
        made[found.graph] = found.quads, RecordOrigin("", (), sources)
        for graph, quads in found.shared.items():
            stating: Sequence[NamedNode] = ()
            if graph in replace:
                # A source's own label takes precedence over one found in text.
                said = made[graph][0] if graph in made else replace[graph]
                quads = merge(quads, said)
                if set(quads) == set(said):  # the text adds nothing, so the graph remains the source's
                    continue
                stating = _find_stating(store, replace, named_node(quads[0].subject))
            elif not self._must_write(store, work, graph, quads, found.source):
                continue
            else:
                # Properties that the text lacks, as the category that a table gives a use.
                known = {quad.predicate for quad in quads}
                others = [quad for quad in store.graph(graph) if quad.predicate not in known]
                stating = _find_stating(store, replace, named_node(quads[0].subject)) if others else ()
                quads = [*quads, *others] if stating else quads
            made[graph] = quads, RecordOrigin("", (), (found.source, *stating))

    def cache_codes(self, commit: Commit) -> None:
        """Cache the codes as of `commit`, the commit of the last `derive`."""
        for work in self._works.values():
            if work.own.keys() <= work.done:
                self.codes.keep(work.code, commit)

    def _must_write(
        self, store: Store, work: _Work, graph: NamedNode, quads: Sequence[Quad], source: NamedNode
    ) -> bool:
        """Whether a shared graph must be written: it is new, or its label or its source is to change.

        The label of a district that no table states comes from the best place that names it. Of several spellings of a
        land use the first in code point order is used, so that the result does not depend on the order of loading.
        """
        name, known = _label_in(quads), self._named.get(graph)
        if known is None and (stored := store.graph(graph)):
            known = self._named[graph] = _label_in(stored)
        if known is not None:
            codes = {term_text(quad.object) for quad in quads if quad.predicate == SKOS.notation}
            is_district = any(quad.object == KG.ZoningDistrict for quad in quads)
            outdated = known in codes or codes.isdisjoint(work.stated) if is_district else name < known
            if self._unstated.get(graph) != source and (known == name or not outdated):
                return False
        self._named[graph] = name
        return True

    def _derive_sections(
        self,
        store: Store,
        work: _Work,
        first: bool,
        graphs: Mapping[str, NamedNode],
        has_tables: bool,
        replace: _Graphs,
    ) -> Iterator[_Found]:
        gone, author = {key for key, graph in graphs.items() if not replace[graph]}, get_author()
        before, districts, stated = work.code, work.districts, work.stated
        again: set[str] = set()
        if gone:
            work.code = before.copy()
            for key in gone:
                work.code.drop(key)
        if has_tables:
            work.stated = load_stated(store, work.name, replace)
        if first or gone or has_tables:
            work.districts = merge_districts(work.stated, work.code.districts)
            again |= work.find_places() | work.find_affected(districts)
        for code, district in work.code.districts.items() if has_tables else ():
            if code in stated and code not in work.stated:
                again.add(district.section)
                source = mint("graph", "src", DOMAIN, work.name, district.section)
                self._unstated[mint("graph", "ref", "district", work.name, code)] = source
        for key, graph in graphs.items():
            # A section that is derived again is one of the store.
            section = None if key in gone else work.own.get(key) or work.code.sections.get(key)
            for reading in work.readings.get(key, ()):
                # Those of others that a caller without the scope `admin` may not remove have no effect.
                is_own = author is None or reading.reader == get_reader(author)
                if section is not None and is_own and not reading.is_of(section):
                    yield _Found(get_reading_graph(work.name, key, reading.reader), graph)
            if section is None:
                yield _Found(_extracted(graph), graph)
                continue
            found = self._extract(section, graph, work)
            work.code.set_citations(
                key, {term_text(quad.object) for quad in found.quads if quad.predicate == KG.rawCitation}
            )
            work.done.add(key)
            yield found
        changed = gone.union(work.list_changed() if first else ())
        old = work.stored if first else before
        again |= old.find_citing(work.code, changed) | work.find_below(changed)
        again |= _find_keyed(old, changed) | _find_keyed(work.code, changed)
        for key in sorted(again - graphs.keys()):
            # A section that this load has not processed yet is still as stored.
            section = (work.own if key in work.done else work.stored.sections).get(key)
            if section is not None:
                yield self._extract(section, mint("graph", "src", DOMAIN, work.name, key), work)

    def _extract(self, section: Section, graph: NamedNode, work: _Work) -> _Found:
        """Extract the findings of one section."""
        shared, own = work.shared.copy(), _extracted(graph)
        readings = [each for each in work.readings.get(section.key, ()) if each.is_of(section)]
        rules = Rules(own, shared, work.districts)
        build_rules(rules, section, work)
        build_places(rules, section, work.scopes.get(section.key, ()), work.listed)
        quads = [
            *rules.quads,
            *build_read_rules(section, readings, shared, own, work.districts, rules.quads),
            *build_claims(section.text, section.key, shared, own, work.code.index, state_of(work.name)),
        ]
        read = [get_reading_graph(work.name, section.key, each.reader) for each in readings]
        found = apply_reviews(quads, self._verdicts, lambda node: shared.graphs.get(get_shared_graph(node), ()))
        graphs = _select_needed(shared.graphs, found) if found.by else shared.graphs
        return _Found(own, graph, found.quads, graphs, read, found.by)

    def _load_work(self, store: Store, name: str) -> _Work:
        own = self.loaded.sections.get(name, {})
        municipality = mint("municipality", name)
        shared = self.loaded.municipalities.get(name)
        if shared is None:
            shared = Authorities(load_name(store, municipality) or name, state_of(name))
        stored = self.codes.load(store, name)
        work = _Work(name, shared, stored, own, stored, load_stated(store, name, {}), {}, load_readings(store, name))
        work.districts = merge_districts(work.stated, stored.districts)
        work.find_places()
        if own:
            work.code = stored.copy()
            for section in own.values():
                work.code.put(section)
        return work


def _find_generated(store: Store, replace: _Graphs) -> Derived:
    """Find the summaries and readings of sections whose graphs are about to be removed, each with its empty graph."""
    removed = [graph for graph, quads in replace.items() if not quads and graph.value.startswith(_SOURCES)]
    sources = {NamedNode(_SECTIONS + graph.value.removeprefix(_SOURCES)): graph for graph in removed}
    rows = select(store.query_sources, bind(GENERATED_FROM, sections=list(sources))) if removed else ()
    return {
        named_node(row["graph"]): ((), RecordOrigin("", (), (sources[named_node(row["section"])],))) for row in rows
    }


def _find_stating(store: Store, replace: _Graphs, node: NamedNode) -> list[NamedNode]:
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


def _find_keyed(code: Code, keys: Iterable[str]) -> set[str]:
    """Find the sections with tables whose letters the sections `keys` of a code may explain."""
    several = (each for key in keys if (each := code.sections.get(key)) is not None and is_legend(each))
    return {each.key for legend in several for each in find_near(legend, code.index) if each.tables}


@dataclass(frozen=True, slots=True)
class _Found:
    """The findings of one section."""

    graph: NamedNode
    source: NamedNode
    quads: Sequence[Quad] = ()
    shared: _Graphs = field(default_factory=dict)
    readings: Sequence[NamedNode] = ()
    """The graphs of the readings of the section."""
    reviewed: frozenset[NamedNode] = frozenset()
    """The claims whose reviews decided about any of the quads."""


def _select_needed(shared: _Graphs, found: Reviewed) -> dict[NamedNode, Sequence[Quad]]:
    """Select the shared graphs without those of districts and uses that only rejected findings name."""
    named = {get_shared_graph(quad.object) for quad in found.quads if isinstance(quad.object, NamedNode)}
    return {graph: quads for graph, quads in shared.items() if graph in named or not graph.value.startswith(_OF_RULES)}


def _extracted(graph: NamedNode) -> NamedNode:
    return NamedNode(_EXTRACTED + graph.value.removeprefix(_SOURCES))


def find_legends(section: Section, index: Index) -> Sequence[Section]:
    """Find the sections near one with tables that may explain the letters of these tables."""
    return [each for each in find_near(section, index) if is_legend(each)] if section.tables else []


def find_near(section: Section, index: Index) -> Iterator[Section]:
    """Yield the sections with the same parent at most some places before or after one."""
    return (each for each in index.siblings(section.key) if abs(each.order - section.order) <= _NEAR)


def _bounded(found: Iterable[T], kind: str, section: str, quads: Sequence[Quad]) -> Iterator[T]:
    """Yield findings of a section of one kind as long as `quads` are not too many."""
    for number, each in enumerate(found):
        if len(quads) >= MAX_QUADS[kind]:
            _log.warning("Section %s has too many %s. Only the first %d are read.", section, kind, number)
            return
        yield each


def build_rules(rules: Rules, section: Section, work: _Work) -> None:
    """Add the namings of districts, the definitions, permissions and standards found in a section of a code."""
    shared, iri, index = rules.shared, rules.shared.section(section.key), work.code.index
    known, above, legends = work.districts, work.code.above(section.key), find_legends(section, index)
    facts = find_facts(section, known, above, legends, work.scopes.get(section.key))

    def cite(found: District | UsePermission | Standard | Definition) -> list[Evidence]:
        start, end = found.start or 0, found.end or 0
        return [Evidence(iri, start, end, section.text[start:end], found.confidence, found.method)]

    for place in find_in_section(section):
        # A district named in a heading only may be another name of one with a code. The best place is to be reviewed.
        best = known.get(place.code)
        if best and (best.section, best.start, best.method) == (place.section, place.start, place.method):
            district = rules.district(place.code)
            naming = (RDF.type, KG.DistrictNaming), (KG.namesDistrict, district), (KG.definedIn, iri)
            rules.add_node(mint_naming(district, section.key), naming, cite(place))
    for term in _bounded(facts.definitions, "definitions", section.key, rules.quads):
        said = replace(term, start=term.term_start, end=max(term.term_end, term.end))
        rules.add_rule("definition", cite(said), prefLabel=term.term, definition=term.text, definedIn=iri)
    for permission in _bounded(facts.permissions, "permissions", section.key, rules.quads):
        review = permission.review and resolve_words(permission.review, index, section.key, state_of(work.name))
        rules.add_rule(
            "permission",
            cite(permission),
            district=rules.district(permission.district),
            landUse=shared.land_use(permission.use),
            rawLevel=permission.raw_level,
            permissionLevel=permission.level,
            condition=tuple(permission.conditions),
            reviewSection=shared.section(review) if review else None,
            definedIn=iri,
            recordedIn=permission.group or None,
        )
    for standard in _bounded(facts.standards, "standards", section.key, rules.quads):
        for code in standard.districts:
            rules.add_rule(
                "standard",
                cite(standard),
                (standard.value, None if standard.unit is None else unit(standard.unit)),
                district=rules.district(code),
                standardType=standard.type or UNNAMED,
                rawValue=standard.raw,
                bound=standard.bound,
                appliesTo=standard.applies_to,
                condition=tuple(standard.conditions),
                definedIn=iri,
                recordedIn=standard.raw_type,
            )


def build_places(rules: Rules, section: Section, scopes: Sequence[Scope], listed: DistrictList | None) -> None:
    """Add the scopes of a section with text, and the list of all districts if it is in this section."""
    iri = rules.shared.section(section.key)
    if len(scopes) > _MOST_SCOPES:
        scopes = [*scopes[:_MOST_SCOPES], Scope("none", (), scopes[_MOST_SCOPES].start, scopes[-1].end)]
    for number, scope in enumerate(scopes if section.text else ()):
        rules.add_node(
            mint_part(iri, "scope", number),
            [
                (RDF.type, KG.SectionScope),
                (DCTERMS.isPartOf, iri),
                (KG.start, scope.start),
                (KG.end, scope.end),
                (KG.scopeKind, scope.kind),
                *((KG.appliesIn, rules.district(code)) for code in scope.codes),
            ],
        )
    if listed is not None and listed.section == section.key:
        words = section.text[listed.start : listed.end]
        rules.add_node(
            mint_part(iri, "district-list", 0),
            [
                (RDF.type, KG.DistrictList),
                (KG.jurisdiction, rules.shared.iri),
                (KG.definedIn, iri),
                *((KG.listsDistrict, rules.district(code)) for code in sorted(listed.codes)),
            ],
            [Evidence(iri, listed.start, listed.end, words, WHOLE_LIST, "list")],
        )


def build_claims(text: str, key: str, shared: Authorities, graph: NamedNode, index: Index, state: str) -> list[Quad]:
    """Build the claims about the citations in the section `key`, in a code with the sections of `index`."""
    own, section = index.sections.get(key), shared.section(key)
    cited_in = find_citations(text, state, own.number if own is not None else "")
    claims = Claims(graph, text, section)
    relationships = find_relationships(text, cited_in) if cited_in else ()
    for relationship in _bounded(relationships, "citations", key, claims.quads):
        citation, plain = relationship.citation, relationship.property == "cites"
        ranges = citation.through is not None
        keys = resolve_range(citation, index, key) if ranges else [resolve(citation, index, key)]
        targets: Sequence[NamedNode | None] = [shared.section(each) for each in keys if each is not None]
        if not targets and citation.law is not None:
            targets = [shared.law(citation.law)]
        # "This chapter" of a code without chapters, and "subsection 1 above", have no target to look for.
        is_own = bool(citation.levels) and citation.levels[-1][1] == THIS
        for target in targets or (() if is_own else (None,)):
            confidence = citation.confidence if plain else min(citation.confidence, relationship.confidence)
            if target is None and citation.internal:
                bare = citation.confidence == WITHOUT_SEPARATOR
                confidence = min(confidence, UNRESOLVED_WITHOUT_SEPARATOR if bare else UNRESOLVED)
            words, method = text[citation.start : citation.end], f"{citation.method}, {relationship.method}"
            if target != section:
                claims.add(
                    Evidence(section, citation.start, citation.end, words, confidence, method),
                    target,
                    citation.raw,
                    predicate=ELI.cites if plain else KG[relationship.property],
                    type_=relationship.type,
                    context=relationship.context,
                )
    return claims.quads
