"""The catalog: each source of each loader as a ``dcat:Dataset`` in ``graph/catalog``, with its records and quads.

A source is a file, a URL, or a person who sends entries with a tool. The catalog follows the differences of each commit
in the same transaction, so loads, deletions and concurrent writers are counted exactly, and nobody else can write the
graph::

    <id/dataset/climate/laws.csv-1f0c...> a dcat:Dataset , void:Dataset ; dcterms:title "climate/laws.csv" ;
      kg:loader "climate" ; dcterms:issued ... ; dcterms:modified ... ; dcat:version "..." ; void:documents 7 ;
      void:triples 912 ; void:subset <...#AssertedGraph> , ... ; prov:wasGeneratedBy <id/run/...> ;
      prov:wasDerivedFrom <id/snapshot/...>
    <...#AssertedGraph> a void:Dataset ; dcterms:type kg:AssertedGraph ; void:triples 800

``void:documents`` counts records, each of which is a graph; one of several files belongs to the first. A graph that is
computed from graphs belongs to their dataset, or to none if they are of several. Graphs that records share belong to
none. ``dcterms:issued`` and ``dcterms:modified`` are the times of the first and the last commit of its data.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import pyoxigraph
from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import CORRECTION, Rule, name_source, timestamp
from kg.sparql.terms import bind
from kg.store.difference import Delta
from kg.store.protocol import Patch
from kg.vocabulary import (
    CATALOG_GRAPH,
    DCAT,
    DCTERMS,
    DERIVED,
    EXTRACTED,
    GENERATED,
    KG,
    PROV,
    PROV_GRAPH,
    RDF,
    SOURCED,
    VOID,
    iri_prefix,
    mint,
)

FAMILIES: Final = {
    SOURCED: KG.AssertedGraph,
    EXTRACTED: KG.ExtractedGraph,
    DERIVED: KG.DerivedGraph,
    GENERATED: KG.GeneratedGraph,
}
"""The families of graphs whose quads are counted, by the start of their names."""

CATALOG: Final = Rule("catalog", "2", "a dataset has the records that were read from its source")

MEANINGS: Final = {
    DCAT.Dataset: "A source that a loader has read: a file, a URL, or a person who sends entries with a tool.",
    VOID.Dataset: "A dataset of the catalog, or the part of one that is in graphs of one class.",
    DCTERMS.title: "The name of the source.",
    DCTERMS.issued: "The time of the first commit of the data.",
    DCTERMS.modified: "The time of the last commit of the data.",
    DCTERMS.type: "The class of the graphs of a part, such as kg:AssertedGraph.",
    DCAT.version: "The revision of the data, if the source states one.",
    VOID.documents: "The number of records of the dataset. Each is a graph.",
    VOID.triples: "The number of quads of the dataset or part.",
    VOID.subset: "The quads of the dataset in graphs of one class.",
    PROV.wasGeneratedBy: "The last run that changed the data.",
    PROV.wasDerivedFrom: "A version of the source that the data were read from.",
}
"""The meanings that other vocabularies' classes and properties have in the catalog."""

_FAMILIES: Final = tuple(FAMILIES)
_SNAPSHOTS: Final = iri_prefix("snapshot")
_DATASETS: Final = iri_prefix("dataset")
_SOURCES: Final = iri_prefix("source")
_SENT: Final = "kg_ingest_"
"""Begins the location of entries that a tool received: name of the tool, municipality, entry."""
_READ: Final = frozenset(
    {PROV.wasDerivedFrom, PROV.wasGeneratedBy, PROV.specializationOf, KG.location, KG.datasetRevision, KG.sha256}
)
"""Properties of graphs and snapshots in ``graph/prov`` that the catalog depends on."""
_HISTORY: Final = frozenset({DCTERMS.title, DCTERMS.issued, DCTERMS.modified, PROV.wasGeneratedBy})
"""Properties of datasets that depend on former commits, with the snapshots that were read."""
COUNT: Final = "SELECT (COUNT(*) AS ?quads) WHERE { GRAPH $graph { ?subject ?property ?value } }"

_DEPTH: Final = 4
"""Steps from a computed graph to the record that it was computed from."""


def find_affected_datasets(
    store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch
) -> tuple[set[Quad], set[Quad]]:
    """Find the descriptions before and after a commit, which is not written yet, of the datasets that it affects."""
    commit = _Commit(store, deltas, patch)
    commit.tally()
    held: set[Quad] = set()
    wanted: set[Quad] = set()
    for dataset in sorted(commit.get_touched(), key=str):
        before = _load_description(store, dataset)
        held |= before
        wanted |= commit.describe(dataset, before)
    return held, wanted


def build_catalog(store: pyoxigraph.Store) -> Iterator[Quad]:
    """Yield the content of `CATALOG_GRAPH` for the whole store. What only commits know is kept, such as their times."""
    deltas = []
    for graph in list(store.named_graphs()):
        if isinstance(graph, NamedNode) and graph.value.startswith(_FAMILIES):
            deltas.append(Delta(graph, {}, {}, ""))
    commit = _Commit(store, deltas, Patch(), is_first=True)
    commit.tally()
    for dataset in sorted(commit.get_touched(), key=str):
        held = _load_description(store, dataset)
        yield from commit.describe(dataset, {quad for quad in held if _is_history(store, quad)})


def find_source(location: str) -> str:
    """Find the source of a snapshot by its location: the file that it corrects, a tool with the municipality it was
    called for, else the file or URL itself.
    """
    if location.startswith(_SENT):
        return " ".join(location.split(" ")[:2])
    corrected = location.rpartition(CORRECTION)[2]
    return corrected if corrected == location else corrected.rpartition(" row")[0] or corrected


def _is_history(store: pyoxigraph.Store, said: Quad) -> bool:
    """Whether a quad of a description depends on former commits, such as a snapshot that the store still has."""
    if said.predicate == PROV.wasDerivedFrom and isinstance(said.object, NamedNode):
        return any(store.quads_for_pattern(said.object, KG.sha256, None, PROV_GRAPH))
    return said.predicate in _HISTORY


def _count(store: pyoxigraph.Store, graph: NamedNode) -> int:
    """Count the quads of a graph, in the engine: a large graph takes ten times as long to read."""
    rows = cast(pyoxigraph.QuerySolutions, store.query(bind(COUNT, graph=graph)))
    return next(int(row[0].value) for row in rows if isinstance(row[0], Literal))


def _load_description(store: pyoxigraph.Store, dataset: NamedNode) -> set[Quad]:
    """Load the quads of a dataset and of its parts."""
    found = set(store.quads_for_pattern(dataset, None, None, CATALOG_GRAPH))
    for part in {quad.object for quad in found if quad.predicate == VOID.subset}:
        if isinstance(part, NamedNode):
            found.update(store.quads_for_pattern(part, None, None, CATALOG_GRAPH))
    return found


class _Commit:
    """The datasets of the graphs that one commit changes, and what changes in each."""

    def __init__(
        self, store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch, *, is_first: bool = False
    ) -> None:
        self._store = store
        self._is_first = is_first
        self._deltas = {delta.graph: delta for delta in deltas if delta.graph.value.startswith(_FAMILIES)}
        self._new = {graph for graph in self._deltas if not is_first and not store.contains_named_graph(graph)}
        """Graphs that the commit creates, of which the store has no description."""
        self._sources: dict[bool, dict[Any, set[Any]]] = {True: defaultdict(set), False: defaultdict(set)}
        """What graphs are derived from: added and removed by the commit."""
        self._runs: dict[Any, Any] = {}
        self._said: dict[tuple[Any, NamedNode], set[Any]] = defaultdict(set)
        """Properties of snapshots that the commit adds."""
        self._gone: set[Any] = set()
        """Snapshots that the commit removes."""
        self._members: dict[tuple[Any, bool], NamedNode | None] = {}
        self._datasets: dict[tuple[Any, str], NamedNode | None] = {}
        self._titles: dict[NamedNode, str] = {}
        self._triples: dict[NamedNode, Counter[NamedNode]] = defaultdict(Counter)
        self._records: Counter[NamedNode] = Counter()
        self._snapshots: dict[NamedNode, set[Any]] = defaultdict(set)
        self._of_run: dict[NamedNode, Any] = {}
        self._read(patch)

    def _read(self, patch: Patch) -> None:
        kept: set[Any] = set()
        for quad in patch.add:
            if (predicate := quad.predicate) not in _READ:
                continue
            if predicate == PROV.wasDerivedFrom:
                self._sources[True][quad.subject].add(quad.object)
            elif predicate == PROV.wasGeneratedBy:
                self._runs[quad.subject] = quad.object
            elif predicate == KG.sha256:
                kept.add(quad.subject)
            else:
                self._said[quad.subject, predicate].add(quad.object)
        for quad in patch.remove:
            if quad.predicate == PROV.wasDerivedFrom:
                self._sources[False][quad.subject].add(quad.object)
            elif quad.predicate == KG.sha256 and quad.subject not in kept:
                self._gone.add(quad.subject)

    def get_touched(self) -> set[NamedNode]:
        """Get the datasets whose description may change."""
        found = {*self._triples, *self._records, *self._snapshots}
        for snapshot in self._gone:
            for quad in self._store.quads_for_pattern(None, PROV.wasDerivedFrom, snapshot, CATALOG_GRAPH):
                if isinstance(quad.subject, NamedNode):
                    found.add(quad.subject)
        return found

    def tally(self) -> None:
        """Count the changes of each dataset."""
        moved = {
            graph
            for sources in self._sources.values()
            for graph in sources
            if isinstance(graph, NamedNode) and graph.value.startswith(_FAMILIES)
        }
        queue = [*{*self._deltas, *moved}]
        seen = set(queue)
        for graph in queue:
            before, after = self._get_dataset(graph, False), self._get_dataset(graph, True)
            self._tally_graph(graph, before, after)
            if before == after or self._is_first:
                continue
            # The graphs computed from it move with it.
            for quad in self._store.quads_for_pattern(None, PROV.wasDerivedFrom, graph, PROV_GRAPH):
                computed = quad.subject
                if isinstance(computed, NamedNode) and computed.value.startswith(_FAMILIES) and computed not in seen:
                    seen.add(computed)
                    queue.append(computed)

    def _tally_graph(self, graph: NamedNode, before: NamedNode | None, after: NamedNode | None) -> None:
        delta = self._deltas.get(graph)
        family = next(kind for start, kind in FAMILIES.items() if graph.value.startswith(start))
        change = len(delta.added) - len(delta.removed) if delta is not None else 0
        existed = not self._is_first and graph not in self._new and self._store.contains_named_graph(graph)
        exists = delta.content_sha256 is not None if delta is not None else existed
        is_record = family == KG.AssertedGraph
        if before == after and before is not None:
            self._triples[before][family] += change
            self._records[before] += (exists - existed) * is_record
        elif before is not None or after is not None:
            if delta is not None and delta.content_sha256 is None:
                size = len(delta.removed)
            elif graph in self._new:
                size = 0
            else:
                size = _count(self._store, graph)
            if before is not None and existed:
                self._triples[before][family] -= size
                self._records[before] -= is_record
            if after is not None and exists:
                self._triples[after][family] += size + change
                self._records[after] += is_record
        if after is not None and is_record and exists:
            self._snapshots[after].update(self._get_snapshots(graph, True))
            if graph in self._runs:
                self._of_run[after] = self._runs[graph]

    def _get_sources(self, graph: NamedNode, is_after: bool) -> set[Any]:
        found: set[Any] = set()
        if graph not in self._new:
            held = self._store.quads_for_pattern(graph, PROV.wasDerivedFrom, None, PROV_GRAPH)
            found.update(quad.object for quad in held)
        if is_after:
            found -= self._sources[False].get(graph, set())
            found |= self._sources[True].get(graph, set())
        return found

    def _get_snapshots(self, graph: NamedNode, is_after: bool) -> list[NamedNode]:
        found = self._get_sources(graph, is_after)
        return sorted(
            (each for each in found if isinstance(each, NamedNode) and each.value.startswith(_SNAPSHOTS)), key=str
        )

    def _get_dataset(self, graph: NamedNode, is_after: bool, depth: int = 0) -> NamedNode | None:
        """Get the dataset of a graph before or after the commit."""
        if self._is_first and not is_after:
            return None
        key = graph, is_after
        if key not in self._members:
            self._members[key] = self._find_dataset(graph, is_after, depth)
        return self._members[key]

    def _find_dataset(self, graph: NamedNode, is_after: bool, depth: int) -> NamedNode | None:
        if graph.value.startswith(SOURCED):
            domain = graph.value.removeprefix(SOURCED).partition("/")[0]
            snapshots = self._get_snapshots(graph, is_after)
            return self._get_dataset_of(snapshots[0], domain) if snapshots else None
        if depth == _DEPTH:
            return None
        found = {
            self._get_dataset(each, is_after, depth + 1)
            for each in self._get_sources(graph, is_after)
            if isinstance(each, NamedNode) and each.value.startswith(_FAMILIES)
        }
        return found.pop() if len(found) == 1 else None

    def _get_dataset_of(self, snapshot: NamedNode, domain: str) -> NamedNode | None:
        """Get the dataset that a snapshot is of, for one loader: the catalogued one, else that of its location."""
        key = snapshot, domain
        if key not in self._datasets:
            self._datasets[key] = self._find_dataset_of(snapshot, domain)
        return self._datasets[key]

    def _find_dataset_of(self, snapshot: NamedNode, domain: str) -> NamedNode | None:
        start = f"{_DATASETS}{domain}/"
        held = self._store.quads_for_pattern(None, PROV.wasDerivedFrom, snapshot, CATALOG_GRAPH)
        described = {quad.subject for quad in held if isinstance(quad.subject, NamedNode)}
        described = {dataset for dataset in described if dataset.value.startswith(start)}
        said, sources = self._get_said(snapshot, KG.location), self._get_said(snapshot, PROV.specializationOf)
        own = [NamedNode(start + source.removeprefix(_SOURCES)) for source in sources]
        # The dataset of a file has the snapshots of all files that its records are in.
        if found := described.intersection(own):
            return min(found, key=str)
        name = find_source(said[0]) if said and own else None
        if name is not None and name == said[0]:
            dataset = own[0]
        elif described:
            return min(described, key=str)
        elif name is None:
            return None
        else:
            dataset = self._find_titled(name, start) or mint("dataset", domain, name)
        self._titles.setdefault(dataset, name_source(name))
        return dataset

    def _find_titled(self, title: str, start: str) -> NamedNode | None:
        """Find the dataset of the file that a correction names; None if several or no files have that name."""
        held = self._store.quads_for_pattern(None, DCTERMS.title, Literal(title), CATALOG_GRAPH)
        found = [quad.subject for quad in held if isinstance(quad.subject, NamedNode)]
        found = [each for each in found if each.value.startswith(start)]
        return found[0] if len(found) == 1 else None

    def _get_said(self, snapshot: NamedNode, predicate: NamedNode) -> list[str]:
        stored = {quad.object for quad in self._store.quads_for_pattern(snapshot, predicate, None, PROV_GRAPH)}
        found = stored | self._said.get((snapshot, predicate), set())
        return sorted(term.value for term in found if isinstance(term, Literal | NamedNode))

    def describe(self, dataset: NamedNode, before: set[Quad]) -> set[Quad]:
        """Build the description of a dataset after the commit; nothing for one without records and quads."""
        own = {quad.predicate: quad.object for quad in before if quad.subject == dataset}
        records = _to_int(own.get(VOID.documents)) + self._records[dataset]
        triples = Counter(_read_counts(before, dataset))
        triples.update(self._triples.get(dataset, {}))
        if records <= 0 and not any(triples.values()):
            return set()
        now = timestamp(datetime.now(UTC))
        modified = own.get(DCTERMS.modified) if self._is_first else None
        snapshots = {quad.object for quad in before if quad.predicate == PROV.wasDerivedFrom} - self._gone
        snapshots |= self._snapshots.get(dataset, set()) - self._gone
        run = self._of_run.get(dataset) or own.get(PROV.wasGeneratedBy) or self._load_run(snapshots)
        said: list[tuple[NamedNode, Any]] = [
            (RDF.type, DCAT.Dataset),
            (RDF.type, VOID.Dataset),
            (DCTERMS.title, own.get(DCTERMS.title) or Literal(self._titles.get(dataset, dataset.value))),
            (KG.loader, Literal(dataset.value.removeprefix(_DATASETS).partition("/")[0])),
            (DCTERMS.issued, own.get(DCTERMS.issued) or self._load_first_read(snapshots) or now),
            (DCTERMS.modified, modified or now),
            (VOID.documents, Literal(records)),
            (VOID.triples, Literal(sum(triples.values()))),
            *((PROV.wasDerivedFrom, snapshot) for snapshot in snapshots),
            *((DCAT.version, Literal(each)) for each in self._find_versions(snapshots)),
        ]
        if run is not None:
            said.append((PROV.wasGeneratedBy, run))
        found = {Quad(dataset, predicate, value, CATALOG_GRAPH) for predicate, value in said}
        for family, count in triples.items():
            if count:
                part = _mint_part(dataset, family)
                found |= {
                    Quad(dataset, VOID.subset, part, CATALOG_GRAPH),
                    Quad(part, RDF.type, VOID.Dataset, CATALOG_GRAPH),
                    Quad(part, DCTERMS.type, family, CATALOG_GRAPH),
                    Quad(part, VOID.triples, Literal(count), CATALOG_GRAPH),
                }
        return found

    def _find_versions(self, snapshots: Iterable[Any]) -> set[str]:
        """Find the revisions that the source states of its data."""
        return {each for snapshot in snapshots for each in self._get_said(snapshot, KG.datasetRevision)}

    def _load_run(self, snapshots: Iterable[Any]) -> Any | None:
        """Load a run that read one of `snapshots`."""
        runs = {
            quad.subject
            for snapshot in snapshots
            for quad in self._store.quads_for_pattern(None, PROV.used, snapshot, PROV_GRAPH)
        }
        return min(runs, key=str, default=None)

    def _load_first_read(self, snapshots: Iterable[Any]) -> Any | None:
        """Load when the first of `snapshots` was read, for data older than the catalog."""
        times = {
            quad.object
            for snapshot in (snapshots if self._is_first else ())
            for quad in self._store.quads_for_pattern(snapshot, KG.retrievedAt, None, PROV_GRAPH)
        }
        return min(times, key=str, default=None)


def _mint_part(dataset: NamedNode, family: NamedNode) -> NamedNode:
    return NamedNode(f"{dataset.value}#{family.value.removeprefix(KG.iri)}")


def _read_counts(description: Iterable[Quad], dataset: NamedNode) -> Mapping[NamedNode, int]:
    """Read the numbers of quads by family from the description of a dataset."""
    counts = {
        quad.subject: _to_int(quad.object)
        for quad in description
        if quad.predicate == VOID.triples and quad.subject != dataset
    }
    return {family: counts[part] for family in FAMILIES.values() if (part := _mint_part(dataset, family)) in counts}


def _to_int(term: Any) -> int:
    return int(term.value) if isinstance(term, Literal) else 0
