"""Updating the citations of a store after policy families have changed, or with a new version of the scanner.

Citations are written in the commit of their record, with the families that were known before its load. After a load,
`refresh` searches the stored texts for the titles of families that are new, renamed or gone, and redoes the records
with one. The state of derivations has the families that all records were searched for. If a later commit has changed
families, the load that did so was killed before its search, and the next load repeats that.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.engine import choose, commit_derived
from kg.derivations.protocol import Outcome, Progress
from kg.derivations.state import State
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Derived, RecordOrigin
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, named_node, select, select_each, term_text
from kg.vocabulary import DCTERMS, SOURCED, iri_prefix, mint
from loaders.citations import jurisdictions
from loaders.citations.family_names import FamilyNames, find_needle, is_distinctive
from loaders.citations.graph import CITATIONS, FAMILY_GRAPHS, WITH_TEXT, CitationEngine
from loaders.citations.graph.family_laws import FamilyLaws
from loaders.citations.graph.texts import Record, derive_citations

BATCH_QUADS: Final = 50_000
NEEDLES: Final = 500
"""Maximum changed titles for a search by words. Beyond it all texts are read."""

FAMILIES: Final = """
SELECT ?family ?title WHERE { GRAPH ?graph { ?family a kg:PolicyFamily ; dcterms:title ?title }
  FILTER(STRSTARTS(STR(?graph), $shared)) }"""

PLACES: Final = """
SELECT DISTINCT ?family ?place WHERE { GRAPH ?graph { ?document eli:is_member_of ?family ; kg:jurisdiction ?place }
  FILTER(STRSTARTS(STR(?graph), $sources)) }"""

# Not with their places: with OPTIONAL inside GRAPH the engine reads the whole store.
WITH_DOCUMENTS: Final = """
SELECT DISTINCT ?family WHERE { GRAPH ?graph { ?document eli:is_member_of ?family }
  FILTER(STRSTARTS(STR(?graph), $sources)) }"""

TEXT_GRAPHS: Final = f"SELECT ?graph WHERE {WITH_TEXT}"
"""The graphs of records with texts: one look into each. Reading a million texts takes twelve times as long."""

HOLDING: Final = """
SELECT ?graph ?text WHERE {
  GRAPH ?graph { ?unit schema:text ?text } FILTER(REGEX(?text, $pattern) && STRSTARTS(STR(?graph), $sources))
}"""

EXISTS: Final = "ASK { GRAPH $graph { ?subject ?property ?value } }"

TEXTS: Final = """
SELECT ?graph ?text WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?unit schema:text ?text } }"""

WITH_FAMILY: Final = """
SELECT DISTINCT ?graph WHERE {
  VALUES ?family { $families } GRAPH ?graph { ?claim rdf:object ?family } FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

_PLACES: Final = iri_prefix("place")

Families = Mapping[str, tuple[str, tuple[str, ...]]]
"""Title and jurisdictions of each family, by IRI."""


def load_families(store: Store) -> Families:
    """Load the families of the store that have documents, as its sources describe them.

    A text that cites a family keeps its graph after its last document is removed, until the text is searched again.
    """
    titles: dict[str, str] = {}
    shared = Literal(mint("graph", "ref").value + "/")
    for row in select(store.query, bind(FAMILIES, shared=shared)):
        family, title = named_node(row["family"]).value, term_text(row["title"])
        titles[family] = min(title, titles.get(family, title))
    keys: dict[str, set[str]] = defaultdict(set)
    for row in select(store.query, bind(PLACES, sources=Literal(SOURCED))) if titles else ():
        keys[named_node(row["family"]).value] |= _keys_of([named_node(row["place"]).value])
    if titles.keys() - keys.keys():
        rows = select(store.query, bind(WITH_DOCUMENTS, sources=Literal(SOURCED)))
        titles = {family: titles[family] for row in rows if (family := named_node(row["family"]).value) in titles}
    return {family: (title, tuple(sorted(keys[family]))) for family, title in titles.items()}


def load_text_graphs(store: Store) -> list[NamedNode]:
    """Load the names of the graphs of records with texts."""
    rows = select(store.query, TEXT_GRAPHS)
    return sorted((named_node(row["graph"]) for row in rows), key=str)


class Citations:
    """The citations of a store, for one load."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg: Final = kg
        self._store: Final = kg.store
        with State(kg.settings.data_dir) as state:
            engine = CitationEngine(kg, state, CITATIONS)
            known, _ = engine.load_known()
            self._is_empty: Final = not engine.is_used()
            """Whether the store has no texts."""
            is_changing = known is not None and engine.find_touched(known) != set()
        said: Any = {"families": (), "titled": {}} if known is None else json.loads(known.compared)
        self._searched_for: Final[Families] = {family: (title, tuple(keys)) for family, title, keys in said["families"]}
        """The families that all records were searched for."""
        # With families but no texts, the known families are lost: the texts of this load are searched again after it.
        self._is_complete: Final = known is not None or (self._is_empty and not load_families(kg.store))
        """Whether these are known. Of a store without texts and families, there are none."""
        self._is_changing: Final = is_changing
        """Whether a load that may have changed families was killed before its search."""
        self._families: dict[str, tuple[str, tuple[str, ...]]] = dict(self._searched_for)
        """The families as far as known: those before this load, and those in its commits so far."""
        self._names = FamilyNames(self._families)
        self._changes: Final[dict[str, int]] = {}
        """The families that this load adds, or gives a further jurisdiction, with the number of the last change."""
        self._searched: Final[dict[NamedNode, int]] = {}
        """The records of this load, with the number of changes that each was searched after."""
        self._number = 0
        self._laws: Final = FamilyLaws(kg.store, said["titled"])
        self._changes_families = is_changing
        """Whether this load, or a killed one before it, may have added, changed or removed a family."""
        self._knows_families = self._is_complete and not is_changing
        """Whether the families of the store are the known ones: nothing was renamed, replaced or removed."""
        if self._is_empty and self._is_complete:  # else the next load would search all texts
            self._save({})

    def _save(self, families: Families) -> None:
        """Record that all records were searched for these families."""
        said = {
            "families": [(family, title, keys) for family, (title, keys) in sorted(families.items())],
            "titled": self._laws.get_titled(),
        }
        with State(self._kg.settings.data_dir) as state:
            CitationEngine(self._kg, state, CITATIONS).save(json.dumps(said).encode())

    def derive(self, store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
        """Build the graphs of citations that change with a commit, except those that it has already."""
        records: dict[NamedNode, Record | None] = {}
        for graph, quads in replace.items():
            if graph.value.startswith(SOURCED):
                records[graph] = Record.of(quads) if quads else None
        if any(record is None or record.families for record in records.values()):
            self._changes_families = True
        self._knows_families = self._knows_families and not self._has_any(records)
        self._add_families(replace, records)
        self._searched.update(dict.fromkeys(records, self._number))
        derived = derive_citations(store, records, self._names)
        made = self._laws.derive(replace, records, derived)
        return {graph: found for graph, found in made.items() if graph not in replace}

    def _has_any(self, graphs: Iterable[NamedNode]) -> bool:
        """Return whether the store has any of these graphs, without reading them."""
        return any(bool(self._store.query(bind(EXISTS, graph=graph))) for graph in graphs)

    def _add_families(
        self, replace: Mapping[NamedNode, Sequence[Quad]], records: Mapping[NamedNode, Record | None]
    ) -> None:
        """Add the families in a commit, so that the texts of their load need not be searched again."""
        titles = {
            quad.subject.value: quad.object.value
            for graph, quads in replace.items()
            if graph.value.startswith(FAMILY_GRAPHS)
            for quad in quads
            if quad.predicate == DCTERMS.title
            and isinstance(quad.subject, NamedNode)
            and isinstance(quad.object, Literal)
        }
        keys: dict[str, set[str]] = {family: set() for family in titles}
        for record in filter(None, records.values()):
            for document, families in record.families.items():
                for family in families:
                    keys.setdefault(family, set()).update(_keys_of(record.places.get(document, ())))
        changed: dict[str, tuple[str, tuple[str, ...]]] = {}
        for family, found in keys.items():
            title, known = self._families.get(family, (titles.get(family), ()))
            if title is None or titles.get(family, title) != title:
                self._knows_families = False
            if title is not None and (family not in self._families or not found.issubset(known)):
                changed[family] = title, tuple(sorted(found.union(known)))
        if changed:
            self._number += 1
            self._changes.update(dict.fromkeys(changed, self._number))
            self._families |= changed
            self._names = FamilyNames(self._families)

    def refresh(self, on_progress: Progress | None = None, *, full: bool = False) -> Outcome:
        """Redo the records whose citations may differ with the current families, or all."""
        store, before, outcome = self._store, self._searched_for, Outcome()
        is_complete = self._is_complete and not full
        if is_complete and not self._changes_families:
            self._save(before)
            return outcome
        families = self._families if self._knows_families and not full else load_families(store)
        if not is_complete:
            graphs = load_text_graphs(store)
        elif families == before:
            graphs = []
        elif self._knows_families or (families == self._families and not self._is_changing):
            graphs = self._find_unsearched()
        else:
            graphs = self._find_affected(before, families)
        if graphs:
            _redo(store, graphs, FamilyNames(families), outcome, on_progress)
        if self._is_changing or not is_complete:
            # The laws that families are.
            others = self._laws.remove_others(families)
            made = {**others, **self._laws.derive({}, {}, {}, map(NamedNode, families))}
            if made:
                run = CITATIONS.start({"families": "all"})
                outcome.add(run, commit_derived(store, run, made))
        self._save(families)
        return outcome

    def find_differing(self, most: int) -> list[NamedNode]:
        """Find the citations of up to `most` records again; return the graphs that the store has in another state."""
        records = {graph: Record.of(self._store.graph(graph)) for graph in choose(load_text_graphs(self._store), most)}
        made = derive_citations(self._store, records, self._names)
        return [
            graph
            for graph, (quads, _) in made.items()
            if graph.value.startswith(CITATIONS.writes) and set(quads) != set(self._store.graph(graph))
        ]

    def _find_unsearched(self) -> list[NamedNode]:
        """Find the records with the title of a family that this load added or changed after they were searched."""
        # Of an empty store all records are of this load; others were searched before its first change.
        first = min(self._searched.values(), default=0) if self._is_empty else 0
        last: dict[str, int] = {}
        for family, number in self._changes.items():
            title = " ".join(self._families[family][0].split())
            if number > first and is_distinctive(title):
                last[title] = max(number, last.get(title, 0))
        if not last:
            return []
        names = FamilyNames({title: (title, ()) for title in last})
        current = {graph for graph, number in self._searched.items() if number == self._number}
        found = {
            graph
            for graph, text in _find_texts(self._store, last, current)
            if any(last[title] > self._searched.get(graph, 0) for title in names.find_titles(text))
        }
        return sorted(found, key=str)

    def _find_affected(self, before: Families, after: Families) -> list[NamedNode]:
        """Find the records that cite a changed family, or contain an old or a new title."""
        store = self._store
        changed = sorted(family for family in {**before, **after} if before.get(family) != after.get(family))
        found: set[NamedNode] = set()
        families, prefix = map(NamedNode, changed), Literal(CITATIONS.writes)
        for row in select_each(store.query, WITH_FAMILY, "families", families, prefix=prefix):
            found.add(NamedNode(SOURCED + named_node(row["graph"]).value.removeprefix(CITATIONS.writes)))
        said = {table[family][0] for table in (before, after) for family in changed if family in table}
        titles = {" ".join(title.split()) for title in said if is_distinctive(title)}
        if titles:
            names = FamilyNames({title: (title, ()) for title in titles})
            for graph, text in _find_texts(store, titles, found):
                if graph not in found and any(names.find_titles(text)):
                    found.add(graph)
        return sorted(found, key=str)


def _find_texts(store: Store, titles: Collection[str], known: Collection[NamedNode]) -> Iterator[tuple[NamedNode, str]]:
    """Yield the texts of records that may contain one of these titles, with their graphs, except the `known` ones."""
    words = sorted({find_needle(title) for title in titles})
    if len(words) <= NEEDLES:
        pattern = Literal("|".join(re.escape(word) for word in words))
        rows: Iterable[dict[str, Term]] = select(store.query, bind(HOLDING, pattern=pattern, sources=Literal(SOURCED)))
    else:
        others = (graph for graph in load_text_graphs(store) if graph not in known)
        rows = select_each(store.query, TEXTS, "graphs", others)
    yield from ((graph, term_text(row["text"])) for row in rows if (graph := named_node(row["graph"])) not in known)


def _keys_of(places: Iterable[str]) -> set[str]:
    """Get the keys of the jurisdictions among the IRIs of places."""
    codes = (unquote(place.removeprefix(_PLACES)) for place in places if place.startswith(_PLACES))
    return {key for code in codes if (key := jurisdictions.key_of(code)) is not None}


def _redo(
    store: Store, graphs: Sequence[NamedNode], names: FamilyNames, outcome: Outcome, on_progress: Progress | None
) -> None:
    """Find the citations of stored records again, and commit them in batches."""
    run = CITATIONS.start({"families": "all"})
    batch: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for done, graph in enumerate(graphs, start=1):
        for made, found in derive_citations(store, {graph: Record.of(store.graph(graph))}, names).items():
            batch.setdefault(made, found)
        outcome.graphs += 1
        if batch and (done == len(graphs) or sum(len(quads) for quads, _ in batch.values()) >= BATCH_QUADS):
            outcome.add(run, commit_derived(store, run, batch))
            batch = {}
        if on_progress is not None:
            on_progress(done, len(graphs), "finding citations")
