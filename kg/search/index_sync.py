"""Synchronization of the search index with the store: units are built from graphs, differences are repaired.

The prelude of a unit (document title and nearest heading above it; of a chunk of a file its path, section and last two
headings; of a section of a code all headings above it and its own) and its names (who speaks, the place) are computed
only here, so that a load (`LoadedGraphs`) and a repair (`repair_index`) give the same index. For a piece of running
text, the prelude is embedded too: for 24 instead of 20 of 30 questions about 1,733 speeches the answer is among the
first ten. It is embedded with a section, too, whose text rarely names its district or topic: for 57 instead of 52 of 66
questions about three codes the section that governs is among the first five.

Texts that people add to documents of sources are left out: they are no results, and must not change the order of
others. The state of a graph in the index names the texts that are left out, so that it changes with the sources.

The language of a unit, by which its words are stemmed, is the stated one of the unit or its document, else the derived
one (`loaders.languages`), unless that is English or unknown. A short unit whose stated language its document is not in
(`find_strays`) is in the language of the document: sources detect languages, and "Article 4: Composition" in French is
English to them, "NPRC:" Hawaiian. Its codes are the stated ones.

The codes of a unit, by which results are counted, are those that its graph states of it and its document, and what is
derived where the graph states none: the language, and the party and state of a speaker. A party may follow from the
speeches of another graph, and change with a commit that leaves this graph as it is. So the state of a graph in the
index has a hash of the graphs of parties and states derived from it: a change of these is repaired like a change of
texts, also after a crash.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.languages import find_strays
from kg.search.analyzers import is_foreign
from kg.search.protocol import GraphUnits, IndexedUnit, SearchIndex, get_kind
from kg.sparql.terms import bind
from kg.store.ownership import CURATED, USER, find_described, is_user_graph
from kg.store.protocol import FOREIGN, Store, batched, preference, select, term_text
from kg.text import HEADING_SEPARATOR, to_number
from kg.vocabulary import (
    DCTERMS,
    DERIVED,
    ELI,
    KG,
    PROV_GRAPH,
    RDF,
    RDFS,
    SCHEMA,
    SKOS,
    SOURCED,
    iri_prefix,
    mint,
    sha256,
)

HEADINGS: Final = frozenset(mint("code", "blockType", code).value for code in ("Title", "title", "sectionHeading"))
"""Block types whose text is the heading of the following units."""

_SHOWN: Final = 150
"""Characters of the prelude that are embedded with a piece: the first one or two of a list of bills."""

_FORMAT: Final = "6"
"""Version of the indexed fields of a unit. Graphs that were indexed with another one are indexed again."""

HELD: Final = 8_000_000
"""Characters of text units that a load keeps to index them again, not counting the last graph."""

DERIVED_LANGUAGE: Final = f"{DERIVED}language/"
"""The graphs of derived languages."""
DERIVED_PARTY: Final = f"{DERIVED}party/"
"""The graphs of derived parties of speakers. Each is derived from the graphs of the speeches that it is about."""
DERIVED_STATE: Final = f"{DERIVED}seat/"
"""The graphs of derived states of speakers. Each is derived from the graphs of the speeches that it is about."""
DERIVED_CODES: Final = {
    SCHEMA.inLanguage: DERIVED_LANGUAGE,
    KG.party: DERIVED_PARTY,
    KG.state: DERIVED_STATE,
}
"""Properties that are derived where a source does not state them, each with the graphs that have it."""

_SECTIONS: Final = iri_prefix("section")
_YEAR: Final = re.compile(r"[0-9]{4}(?![0-9])")

_GRAPHS_AT_ONCE: Final = 50
_THINGS_AT_ONCE: Final = 20_000
_UNITS_AT_ONCE: Final = 5_000
_ATTEMPTS: Final = 3

_NOTHING: Final[Mapping[str, Collection[str]]] = {}
_NO_LANGUAGES: Final[Mapping[str, str]] = {}
_NO_CODES: Final[Mapping[str, Mapping[str, Collection[str]]]] = {}
_NO_CODE: Final[Mapping[str, Collection[str]]] = {}

Progress = Callable[[int, int | None, str], None]
"""Called with the number of finished items, the total if known, and the current activity."""


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """A text unit in the store.

    `block_type` is the IRI of its block type. `parent` is the IRI of its document, or its own if it has none. `is_cut`:
    it is a piece of running text, with offsets.
    """

    iri: str
    parent: str
    position: int
    text: str
    block_type: str | None = None
    language: str | None = None
    is_cut: bool = False


DOMAINS: Final[Mapping[str, str]] = {
    KG.PolicyDocument.value: "climate",
    KG.Speech.value: "parliament",
    KG.Debate.value: "parliament",
    KG.Sitting.value: "parliament",
    KG.CodeSection.value: "zoning",
    KG.File.value: "files",
}
"""The domain by the class of a document."""
CODED: Final[Mapping[NamedNode, str]] = {
    RDF.type: "domain",
    KG.jurisdiction: "place",
    KG.state: "state",
    SCHEMA.inLanguage: "languages",
    KG.corpusType: "type",
    ELI.date_document: "year",
    DCTERMS.date: "year",
    KG.party: "party",
    KG.chamber: "chamber",
}
"""The field of the codes by the property that has their values."""
_SPEAKERS_AND_PLACES: Final = (KG.speaker, KG.jurisdiction)
SHOWN_PROPERTIES: Final = frozenset(
    (DCTERMS.title, SCHEMA.inLanguage, KG.speakerAsRecorded, KG.path, KG.breadcrumb, *_SPEAKERS_AND_PLACES, *CODED)
)
"""The properties of documents and units that the index shows."""

DerivedCodes = Mapping[str, Mapping[NamedNode, Sequence[str]]]
"""Derived values by the IRI of a document or unit and by property."""


@dataclass(slots=True)
class GraphFacts:
    """The text units of one graph, and what it states about them and their documents, as far as the index shows it."""

    units: list[UnitFacts] = field(default_factory=list)
    shown: dict[NamedNode, dict[str, list[str]]] = field(
        default_factory=lambda: {name: defaultdict(list) for name in SHOWN_PROPERTIES}
    )
    """The values of each property by the IRI of the document or unit."""
    derived: DerivedCodes = field(default_factory=dict)

    def add(self, subject: NamedNode, predicate: NamedNode, value: NamedNode | Literal) -> None:
        """Add a statement of the graph, unless the index does not show it."""
        if predicate in SHOWN_PROPERTIES:
            self.shown[predicate][subject.value].append(value.value)

    def find_named(self) -> set[str]:
        """Find the IRIs of the speakers and places, and of the sections that contain the sections."""
        above = {unit.parent for unit in self.units if unit.iri.startswith(_SECTIONS)}
        return above.union(*(nodes for name in _SPEAKERS_AND_PLACES for nodes in self.shown[name].values()))

    def build_units(self, graph: str, known: Mapping[str, Collection[str]]) -> list[IndexedUnit]:
        """Build the index units of the graph. `known` has the names of speakers and places, and headings, by IRI."""
        titles = {unit.parent: "".join(known.get(unit.parent, ())) for unit in self.units if _is_section(unit)}
        titles |= {iri: values[-1] for iri, values in self.shown[DCTERMS.title].items()}
        paths = {iri: values[-1] for iri, values in self.shown[KG.path].items()}
        crumbs = {iri: values[-1] for iri, values in self.shown[KG.breadcrumb].items()}
        names = {iri: set(values) for iri, values in self.shown[KG.speakerAsRecorded].items()}
        for name in _SPEAKERS_AND_PLACES:
            for iri, nodes in self.shown[name].items():
                names.setdefault(iri, set()).update(*(known.get(node, ()) for node in nodes))
        units = {fact.iri for fact in self.units}
        if paths:
            places = {
                fact.iri: _build_place(titles.get(fact.parent, ""), path, crumbs.get(fact.iri, ""))
                for fact in self.units
                if (path := paths.get(fact.parent)) is not None
            }
            titles = {iri: title for iri, title in titles.items() if iri not in paths} | places
        things = dict.fromkeys(iri for fact in self.units for iri in (fact.parent, fact.iri))
        languages = {
            iri: language
            for iri in things
            for language in self.derived.get(iri, {}).get(SCHEMA.inLanguage, ())
            if is_foreign(language)
        }
        for iri, values in self.shown[SCHEMA.inLanguage].items():
            # A document in several languages does not say which of them a passage is in.
            if iri not in units and len(set(values)) == 1:
                languages[iri] = values[0]
        codes = {iri: self._find_codes(iri) for iri in things}
        return build_units(graph, titles, self.units, names, languages, codes)

    def _find_codes(self, iri: str) -> dict[str, set[str]]:
        """Find the codes of a unit or document: stated ones, else derived ones."""
        found: dict[str, set[str]] = {}
        derived = self.derived.get(iri, {})
        for name, field_name in CODED.items():
            values = self.shown[name].get(iri) or derived.get(name, ())
            if codes := {code for value in values if (code := to_code(field_name, value))}:
                found.setdefault(field_name, set()).update(codes)
        return found


def to_code(field_name: str, value: str) -> str | None:
    """Convert the value of a property of `CODED` to a code, or None if it is none."""
    if field_name == "domain":
        return DOMAINS.get(value)
    if field_name == "year":
        return value[:4] if _YEAR.match(value) else None
    return value or None


@dataclass(frozen=True, slots=True)
class IndexRepair:
    """The numbers of graphs that were indexed again and removed."""

    replaced: int = 0
    removed: int = 0


def build_units(
    graph: str,
    titles: Mapping[str, str],
    facts: Iterable[UnitFacts],
    names: Mapping[str, Collection[str]] = _NOTHING,
    languages: Mapping[str, str] = _NO_LANGUAGES,
    codes: Mapping[str, Mapping[str, Collection[str]]] = _NO_CODES,
) -> list[IndexedUnit]:
    """Build the index units of one graph: nearest heading above, title, names and language.

    `titles`, `names`, `languages` and `codes` are by IRI of document or unit.
    """
    units = []
    headings: dict[str, str] = {}
    ordered = sorted(facts, key=lambda fact: (fact.parent, fact.position, fact.iri))
    strays = find_strays(((fact.iri, fact.parent, fact.language, len(fact.text)) for fact in ordered), languages)
    for fact in ordered:
        own = titles.get(fact.iri, "") if fact.iri != fact.parent else ""
        parts = (titles.get(fact.parent, ""), own, headings.get(fact.parent, ""))
        prelude = "\n".join(part for part in parts if part)
        if fact.is_cut and len(prelude) > _SHOWN:
            prelude = prelude[:_SHOWN].rpartition(" ")[0] or prelude[:_SHOWN]
        about = "\n".join(sorted({*names.get(fact.parent, ()), *names.get(fact.iri, ())}))
        language = strays.get(fact.iri) or fact.language or languages.get(fact.iri) or languages.get(fact.parent)
        of_document, of_unit = codes.get(fact.parent, _NO_CODE), codes.get(fact.iri, _NO_CODE)
        counted = {name: sorted(values) for name, values in {**of_unit, **of_document}.items()}
        if own_languages := ({fact.language} if fact.language else of_unit.get("languages")):
            counted["languages"] = sorted(own_languages)
        units.append(
            IndexedUnit(
                fact.iri,
                graph,
                fact.parent,
                fact.text,
                prelude,
                language,
                fact.is_cut or _is_section(fact),
                about,
                dict(sorted(counted.items())),
            )
        )
        if fact.block_type in HEADINGS:
            headings[fact.parent] = fact.text
    return units


def _is_section(fact: UnitFacts) -> bool:
    return fact.iri.startswith(_SECTIONS)


def _build_place(title: str, path: str, breadcrumb: str) -> str:
    """Build the prelude of a chunk of a file: path, section and last two headings, and the title if it is none."""
    headings = breadcrumb.split(HEADING_SEPARATOR) if breadcrumb else []
    shown = [*headings[:1], *headings[1:][-2:]]
    return HEADING_SEPARATOR.join(part for part in (path, *([] if title in headings else [title]), *shown) if part)


HASHES: Final = """
SELECT ?graph ?hash WHERE {
  GRAPH $prov { ?graph kg:contentSha256 ?hash } BIND(STR(?graph) AS ?name)
  FILTER(STRSTARTS(?name, $sources) || STRSTARTS(?name, $user) || STRSTARTS(?name, $curated))
}"""
"""The hashes of the graphs in the families that contain text units."""

ENTITIES: Final = """
SELECT ?graph ?entity ?class ?property ?value WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?entity a ?class . ?entity ?property ?value }
  FILTER(?class IN (wikibase:Item, wikibase:Property) &&
         ?property IN (rdfs:label, skos:altLabel, schema:description))
}"""
"""The items and properties of Wikibases with their names and descriptions."""

# With OPTIONAL inside GRAPH the engine reads the whole store.
UNITS: Final = """
SELECT ?graph ?unit ?parent ?position ?text ?type ?language ?start WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?unit schema:text ?text ; schema:position ?position }
  OPTIONAL { GRAPH ?graph { ?unit dcterms:isPartOf ?parent } }
  OPTIONAL { GRAPH ?graph { ?unit kg:blockType ?type } }
  OPTIONAL { GRAPH ?graph { ?unit schema:inLanguage ?language } }
  OPTIONAL { GRAPH ?graph { ?unit kg:start ?start } }
}"""

WRITTEN_UNITS: Final = """
SELECT ?graph ?unit ?parent WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?unit schema:text ?text } OPTIONAL { GRAPH ?graph { ?unit dcterms:isPartOf ?parent } }
}"""

DERIVED_VALUES: Final = """
SELECT ?thing ?value WHERE {
  VALUES ?thing { $things } GRAPH ?graph { ?thing $property ?value } FILTER(STRSTARTS(STR(?graph), $family))
}"""

DERIVED_FROM: Final = """
SELECT ?graph ?derived ?hash WHERE {
  VALUES ?graph { $graphs }
  GRAPH $prov { ?derived prov:wasDerivedFrom ?graph ; kg:contentSha256 ?hash }
  FILTER(STRSTARTS(STR(?derived), $party) || STRSTARTS(STR(?derived), $state))
}"""
"""The graphs of parties and states that are derived from some graphs, with their hashes."""

DERIVED_FROM_ANY: Final = """
SELECT ?graph ?derived ?hash WHERE {
  GRAPH $prov { ?derived kg:contentSha256 ?hash ; prov:wasDerivedFrom ?graph }
  FILTER(STRSTARTS(STR(?derived), $party) || STRSTARTS(STR(?derived), $state))
}"""
"""The same of all graphs, in a third of the time."""

VALUES_OF: Final = """
SELECT ?graph ?node ?value WHERE {
  VALUES ?graph { $graphs }
  GRAPH ?graph { ?node $property ?value }
}"""

GRAPHS_WITH: Final = """
SELECT DISTINCT ?graph ?hash WHERE {
  VALUES ?value { $nodes } VALUES ?property { $properties } GRAPH ?graph { ?node ?property ?value }
  GRAPH $prov { ?graph kg:contentSha256 ?hash }
}"""

NAMES: Final = """
SELECT DISTINCT ?named ?name WHERE {
  { VALUES ?named { $nodes } GRAPH ?from { ?named foaf:name ?name } }
  UNION { VALUES ?named { $nodes } GRAPH ?from { ?named skos:prefLabel ?name } }
  FILTER(LANG(?name) IN ("", "en") && !STRSTARTS(STR(?from), $user) && !STRSTARTS(STR(?from), $curated))
}"""
"""Names of persons and places, which are described in other graphs than the text; not as users state them."""


def repair_index(
    store: Store,
    search: SearchIndex,
    *,
    full: bool = False,
    stop: threading.Event | None = None,
    on_progress: Progress | None = None,
) -> IndexRepair:
    """Repair every difference between the index and the store.

    A graph that is missing in the index, or has another content hash, is indexed again; one that is missing in the
    store is removed. With `full`, every graph is indexed again. `stop` ends it early, between two batches. Commits in
    the meantime are handled by another pass.
    """
    replaced = removed = 0
    for attempt in range(_ATTEMPTS):
        # The index first: a graph committed between the two calls is then missing in the index, not superfluous.
        indexed = search.state()
        stored, left_out = _load_states(store)
        superfluous = [graph for graph in indexed if graph not in stored]
        if superfluous:
            search.remove(superfluous)
            removed += len(superfluous)
        everything = full and attempt == 0
        wanted = [graph for graph, digest in stored.items() if everything or indexed.get(graph) != digest]
        done = 0
        for start in range(0, len(wanted), _GRAPHS_AT_ONCE):
            if stop is not None and stop.is_set():
                return IndexRepair(replaced + done, removed)
            # Few graphs at once, so that a rebuild holds the units of these only.
            units = _load_units(store, wanted[start : start + _GRAPHS_AT_ONCE], left_out)
            # A graph without text is not in the index.
            units = {graph: found for graph, found in units.items() if found or graph in indexed}
            for batch in _build_batches(units, stored):
                if not everything:
                    search.note_missing(len(wanted) - start)
                search.replace(batch)
                done += len(batch)
            if on_progress is not None:
                on_progress(min(start + _GRAPHS_AT_ONCE, len(wanted)), len(wanted), "indexing")
        replaced += done
        if not done:
            break
    search.note_missing(0)
    return IndexRepair(replaced, removed)


def find_differences(store: Store, search: SearchIndex) -> tuple[list[str], list[str]]:
    """Find the graphs with text that the index lacks or has in another state, and those that only the index has."""
    indexed = search.state()
    stored, left_out = _load_states(store)
    differing = [graph for graph, digest in stored.items() if indexed.get(graph) != digest]
    missing: list[str] = []
    for portion in batched(differing, _GRAPHS_AT_ONCE):
        units = _load_units(store, portion, left_out)
        missing += [graph for graph, found in units.items() if found or graph in indexed]
    return missing, [graph for graph in indexed if graph not in stored]


def refresh(store: Store, search: SearchIndex, graphs: Mapping[str, str], emptied: Sequence[str] = ()) -> None:
    """Update the index after a commit changed `graphs`, given with their content hashes.

    `emptied` are graphs that have no text units any more, or were deleted.
    """
    left_out = _find_left_out(store, graphs)
    states = find_states(store, graphs, left_out)
    units = _load_units(store, list(graphs), left_out) if graphs else {}
    removed = [*emptied, *(graph for graph in left_out if not units[graph] and graph not in emptied)]
    if removed:
        search.remove(removed)
    for batch in _build_batches({graph: found for graph, found in units.items() if found}, states):
        search.replace(batch)


HEADINGS_ABOVE: Final = """
SELECT ?section ?level ?title WHERE {
  VALUES ?section { $sections } ?section dcterms:isPartOf* ?above . ?above kg:level ?level ; dcterms:title ?title
}"""

BELOW: Final = """
SELECT DISTINCT ?graph ?hash WHERE {
  VALUES ?above { $sections } ?section dcterms:isPartOf+ ?above
  GRAPH ?graph { ?section schema:text ?text } GRAPH $prov { ?graph kg:contentSha256 ?hash }
}"""


class LoadedGraphs:
    """Indexes the graphs of one load as they are committed, from their records instead of from the store.

    The names of speakers and places, and the headings above sections, are those in the store. Where a later commit of
    the load changes one, the graphs that show it are indexed again by `finish`: from their records too, as far as these
    have at most `HELD` characters. Sections below those of the load, which are not of the load, are indexed again too.
    Where a later commit changes the party or state of a speaker in a graph, `repair_index` indexes it again.
    """

    def __init__(self, store: Store, search: SearchIndex) -> None:
        self._store: Final = store
        self._search: Final = search
        self._known: Final[dict[str, set[str]]] = {}
        """The names of each speaker and place, as last read."""
        self._changed: Final[set[str]] = set()
        """Speakers and places whose names changed after they were first read."""
        self._held: Final[dict[str, tuple[str, GraphFacts]]] = {}
        """The first graphs of this load that show a speaker or place, with their states."""
        self._left = HELD
        self._loaded: Final[dict[str, set[str]]] = {}
        """The sections of codes by the graph of this load."""
        self._lock: Final = threading.Lock()

    def replace(self, graphs: Mapping[str, tuple[str, GraphFacts]]) -> None:
        """Index graphs that are committed, each given with its state after the commit (`find_states`).

        Threads may call it at the same time, for different graphs.
        """
        named = {graph: facts.find_named() for graph, (_, facts) in graphs.items()}
        with self._lock:
            self._read_names(set().union(*named.values()))
            for graph, (_, facts) in graphs.items():
                if sections := {node for node in facts.shown[DCTERMS.title] if node.startswith(_SECTIONS)}:
                    self._loaded[graph] = sections
            for graph, (state, facts) in graphs.items():
                if named[graph] and self._left > 0:
                    self._held[graph] = state, facts
                    self._left -= sum(len(unit.text) for unit in facts.units)
        self._search.replace(
            {
                graph: GraphUnits(state, facts.build_units(graph, self._known))
                for graph, (state, facts) in graphs.items()
            }
        )

    def finish(self) -> None:
        """Index the graphs again whose speakers and places have other names since."""
        self._read_names(self._known)
        changed = [NamedNode(node) for node in sorted(self._changed)]
        query = bind(GRAPHS_WITH, nodes=changed, properties=[*_SPEAKERS_AND_PLACES, DCTERMS.isPartOf], prov=PROV_GRAPH)
        rows = list(_select(self._store, query)) if changed else []
        if sections := [NamedNode(iri) for iri in sorted(set().union(*self._loaded.values()))]:
            below = _select(self._store, bind(BELOW, sections=sections, prov=PROV_GRAPH))
            rows += [row for row in below if row["graph"].value not in self._loaded]
        for portion in batched(rows, _GRAPHS_AT_ONCE):
            part = {row["graph"].value: row["hash"].value for row in portion}
            states = find_states(self._store, part)
            units = {
                graph: held[1].build_units(graph, self._known)
                for graph, state in states.items()
                if (held := self._held.get(graph)) is not None and held[0] == state
            }
            for batch in _build_batches(units, states):
                self._search.replace(batch)
            refresh(self._store, self._search, {graph: part[graph] for graph in part.keys() - units.keys()})
        self._changed.clear()

    def _read_names(self, nodes: Iterable[str]) -> None:
        found = _load_names(self._store, nodes)
        self._changed.update(node for node, names in found.items() if self._known.get(node, names) != names)
        self._known.update(found)


def _load_states(store: Store) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Load the state that the index must have of each graph, and the text units that it leaves out."""
    families = {"sources": Literal(SOURCED), "user": Literal(USER), "curated": Literal(CURATED)}
    hashes = {
        row["graph"].value: row["hash"].value for row in _select(store, bind(HASHES, prov=PROV_GRAPH, **families))
    }
    left_out = _find_left_out(store, hashes)
    derived = _find_derived(store, bind(DERIVED_FROM_ANY, prov=PROV_GRAPH, **_DERIVED_ROOTS))
    return _build_states(hashes, left_out, derived), left_out


def find_states(
    store: Store, hashes: Mapping[str, str], left_out: Mapping[str, Collection[str]] = _NOTHING
) -> dict[str, str]:
    """Find the states that the index must have of graphs, given with their content hashes."""
    if not hashes:
        return {}
    graphs = [NamedNode(graph) for graph in hashes]
    derived = _find_derived(store, bind(DERIVED_FROM, graphs=graphs, prov=PROV_GRAPH, **_DERIVED_ROOTS))
    return _build_states(hashes, left_out, derived)


_DERIVED_ROOTS: Final = {"party": Literal(DERIVED_PARTY), "state": Literal(DERIVED_STATE)}


def _find_derived(store: Store, query: str) -> dict[str, int]:
    """Find one hash of all graphs of parties and states that are derived from a graph, by graph."""
    found: dict[str, int] = defaultdict(int)
    of_one: dict[str, int] = {}
    for row in _select(store, query):
        derived = f"{row['derived'].value} {row['hash'].value}"
        if derived not in of_one:
            of_one[derived] = int(sha256(derived)[:16], 16)
        # One number for each graph: there may be millions of them, and of rows. The order of rows does not matter.
        found[row["graph"].value] ^= of_one[derived]
    return found


def _build_states(
    hashes: Mapping[str, str], left_out: Mapping[str, Collection[str]], derived: Mapping[str, int]
) -> dict[str, str]:
    """Build the states that the index keeps of graphs.

    A state has the hash of the content, that of the units that are left out, and that of the graphs derived from it.
    """
    states = {}
    for graph, content in hashes.items():
        parts = [content, _FORMAT]
        if graph in left_out:
            parts.append(sha256("\n".join(sorted(left_out[graph])))[:16])
        if graph in derived:
            parts.append(f"derived-{derived[graph]:016x}")
        states[graph] = "/".join(parts)
    return states


def _find_left_out(store: Store, graphs: Iterable[str]) -> dict[str, set[str]]:
    """Find the text units in graphs of users that sources describe, or that are part of what sources describe."""
    written = [node for graph in graphs if is_user_graph(node := NamedNode(graph))]
    rows = list(_select(store, bind(WRITTEN_UNITS, graphs=written))) if written else []
    nodes = {term for row in rows for term in (row["unit"], row.get("parent")) if isinstance(term, NamedNode)}
    described = find_described(store.query_sources, nodes)
    left_out: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["unit"] in described or row.get("parent") in described:
            left_out[row["graph"].value].add(row["unit"].value)
    return left_out


def _build_batches(
    units: Mapping[str, list[IndexedUnit]], hashes: Mapping[str, str]
) -> Iterator[dict[str, GraphUnits]]:
    batch: dict[str, GraphUnits] = {}
    size = 0
    for graph, found in units.items():
        batch[graph] = GraphUnits(hashes[graph], found)
        size += len(found)
        if size >= _UNITS_AT_ONCE:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch


def _load_units(
    store: Store, graphs: Sequence[str], left_out: Mapping[str, Collection[str]]
) -> dict[str, list[IndexedUnit]]:
    entities = [graph for graph in graphs if get_kind(graph) == "entity"]
    found = _load_entities(store, entities) if entities else {}
    if texts := [graph for graph in graphs if graph not in found]:
        found |= _load_text_units(store, texts, left_out)
    return found


def _load_entities(store: Store, graphs: Sequence[str]) -> dict[str, list[IndexedUnit]]:
    """Load the items and properties of Wikibases: the names and descriptions of each are its text."""
    said: dict[tuple[str, str], dict[str, list[Literal]]] = defaultdict(lambda: defaultdict(list))
    for row in _select(store, bind(ENTITIES, graphs=[NamedNode(graph) for graph in graphs])):
        if isinstance(row["value"], Literal):
            said[row["graph"].value, row["entity"].value][row["property"].value].append(row["value"])
    found: dict[str, list[IndexedUnit]] = {graph: [] for graph in graphs}
    for (graph, iri), values in said.items():
        found[graph].append(build_entity(graph, iri, *(values.get(name.value, ()) for name in _ENTITY_TEXTS)))
    return found


_ENTITY_TEXTS: Final = (RDFS.label, SKOS.altLabel, SCHEMA.description)
_NAMES_CHARACTERS: Final = 4_000
"""Maximum characters of the names of an entity in other languages than English: some have 300."""


def build_entity(
    graph: str, iri: str, labels: Sequence[Literal], aliases: Sequence[Literal], descriptions: Sequence[Literal]
) -> IndexedUnit:
    """Build the index unit of an entity: English names with the description, and apart the names of other languages."""
    names = [*sorted(labels, key=preference), *sorted(aliases, key=preference)]
    own = list(dict.fromkeys(name.value for name in names if preference(name)[0] < FOREIGN)) or [
        name.value for name in names[:1]
    ]
    about = min(descriptions, key=preference).value if descriptions else ""
    others = "\n".join(dict.fromkeys(name.value for name in names if name.value not in own))
    text = f"{', '.join(own)}: {about}" if about else ", ".join(own)
    kind = re.match(r".*/entity/[A-Z]", iri)
    return IndexedUnit(iri, graph, kind[0] if kind else iri, text, names=others[:_NAMES_CHARACTERS])


def _load_text_units(
    store: Store, graphs: Sequence[str], left_out: Mapping[str, Collection[str]]
) -> dict[str, list[IndexedUnit]]:
    nodes = [NamedNode(graph) for graph in graphs]
    facts = {graph: GraphFacts() for graph in graphs}
    for name in SHOWN_PROPERTIES:
        for row in _select(store, bind(VALUES_OF, graphs=nodes, property=name)):
            facts[row["graph"].value].shown[name][row["node"].value].append(row["value"].value)
    for row in _select(store, bind(UNITS, graphs=nodes)):
        position, parent = to_number(row["position"].value), row.get("parent", row["unit"])
        # No shape constrains the text units of people.
        if position is None or not isinstance(parent, NamedNode):
            continue
        if row["unit"].value in left_out.get(row["graph"].value, ()):
            continue
        kind, language = row.get("type"), row.get("language")
        facts[row["graph"].value].units.append(
            UnitFacts(
                row["unit"].value,
                parent.value,
                position,
                row["text"].value,
                None if kind is None else kind.value,
                None if language is None else language.value,
                "start" in row,
            )
        )
    _load_derived(store, facts.values())
    known = _load_names(store, {node for found in facts.values() for node in found.find_named()})
    return {graph: found.build_units(graph, known) for graph, found in facts.items()}


def _load_derived(store: Store, facts: Collection[GraphFacts]) -> None:
    """Load the derived languages and codes of units and their documents."""
    things = {iri for found in facts for unit in found.units for iri in (unit.iri, unit.parent)}
    derived: dict[str, dict[NamedNode, list[str]]] = defaultdict(lambda: defaultdict(list))
    for portion in batched(sorted(things), _THINGS_AT_ONCE):
        nodes = [NamedNode(iri) for iri in portion]
        for name, family in DERIVED_CODES.items():
            for row in _select(store, bind(DERIVED_VALUES, things=nodes, property=name, family=Literal(family))):
                derived[row["thing"].value][name].append(row["value"].value)
    for found in facts:
        found.derived = derived


def _load_names(store: Store, nodes: Iterable[str]) -> dict[str, set[str]]:
    """Load the names of speakers and places, and the headings above sections with their own, from the top."""
    known: dict[str, set[str]] = {node: set() for node in sorted(nodes)}
    if known:
        query = bind(NAMES, nodes=[NamedNode(iri) for iri in known], user=Literal(USER), curated=Literal(CURATED))
        for row in _select(store, query):
            known[row["named"].value].add(row["name"].value)
    if sections := [NamedNode(iri) for iri in known if iri.startswith(_SECTIONS)]:
        headings: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for above in select(store.query_sources, bind(HEADINGS_ABOVE, sections=sections)):
            section, level, title = (term_text(above[name]) for name in ("section", "level", "title"))
            headings[section].append((to_number(level) or 0, title))
        known |= {iri: {"\n".join(title for _, title in sorted(found))} for iri, found in headings.items()}
    return known


def _select(store: Store, query: str) -> Iterator[Mapping[str, NamedNode | Literal]]:
    for row in select(store.query, query):
        yield {name: term for name, term in row.items() if isinstance(term, NamedNode | Literal)}
