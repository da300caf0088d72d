"""The life of a record: read, skipped if unchanged, checked, committed with its provenance, indexed, reported."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import load_records, promotion
from kg.provenance.load_records import Agent, Derived, RecordOrigin, RowsOf, Run, SourceFile, format_rows
from kg.search import index_sync
from kg.search.index_sync import Progress, UnitFacts, build_units
from kg.search.protocol import GraphUnits
from kg.shacl.gate import RecordGate
from kg.shacl.report import Violation
from kg.sparql.terms import bind
from kg.store.difference import content_sha256
from kg.store.protocol import Commit, GraphChange, Store, select
from kg.text import line
from kg.vocabulary import BASE, DCTERMS, KG, mint
from loaders.mentions.graph.refresh import refresh as refresh_mentions
from loaders.model import Notice, Rejection, Snapshot, SourceDocument, SourceGraph, Withdrawal, graph_of, quads
from loaders.quarantine import CORRECTION, Quarantine
from loaders.readers import excerpts
from loaders.readers.locations import FORMATS, Fetch, File, Located, find

log = logging.getLogger(__name__)

BATCH_QUADS: Final = 50_000
"""Quads that are checked, committed and indexed together; a larger record goes alone."""

SHOWN_WARNINGS: Final = 20
_KEPT_WARNINGS: Final = 1_000

Item = SourceDocument | SourceGraph | Rejection | Withdrawal | Notice
Options = Mapping[str, str]
"""What whoever loads says of the files: ``base``, the Wikibase that they are of, by name or address; ``chamber`` and
``date``, of speeches that do not say them; ``municipality`` and ``state`` of a code, and ``mapping``, the file by which
tables of districts are read.
"""

Derive = Callable[[Store, Mapping[NamedNode, Sequence[Quad]]], Derived]


@dataclass(frozen=True, slots=True)
class Loader:
    """What loads a source. A new `version` makes every record be read anew."""

    domain: str
    version: str
    read: Callable[[Sequence[File]], Iterator[Item]]
    formats: Sequence[str] = FORMATS
    """Endings of the files that it reads."""
    config: Mapping[str, str] = field(default_factory=dict)
    """What a run says of how it was configured."""
    derive: Derive | None = None
    """Of graphs that are about to be replaced, the derived ones that go with them in the same commit."""
    afterwards: Callable[[Store], Sequence[str]] | None = None
    """What is unusual in the store after a load, in words."""
    fetches: Mapping[str, Fetch] = field(default_factory=dict)
    """What fetches its locations that are no files, by how they start: ``sparql`` for ``sparql:URL@FILE``."""
    cut: excerpts.Cut = excerpts.cut
    """What keeps the rows of rejected records."""
    said: Options = field(default_factory=dict)
    """The options that whoever loads gave, where a record in quarantine takes them for another try."""
    exclusive: bool = False
    """Whether a record that is read from two sources which differ stays as the first has it, and of the other is
    rejected; what says the same again is passed over.
    """
    merge: Callable[[Sequence[Quad], Sequence[Quad]], Sequence[Quad]] | None = None
    """What a graph that records share says once more is said of it; without it the last that is said holds."""

    @property
    def agent(self) -> Agent:
        """How provenance names it."""
        return Agent(f"loaders.{self.domain}", self.version)


@dataclass(slots=True)
class LoadReport:
    """What a load did. `run` is the IRI of its run in ``graph/prov``, None when nothing had to be committed."""

    source: str
    run: str | None = None
    loaded: int = 0
    skipped: int = 0
    removed: int = 0
    text_units: int = 0
    """Text units of the records loaded."""
    mentions: int = 0
    """Mentions of concepts in the texts that were searched: those that are new, or hold a new name."""
    quads_added: int = 0
    quads_removed: int = 0
    pending_vectors: int = 0
    seconds: float = 0.0
    rejections: list[Rejection] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What was unusual, in words; of very many the first."""
    layouts: list[str] = field(default_factory=list)
    """Of each file read, its layout, in words."""

    @property
    def rejected(self) -> int:
        """Records (and files) that could not be loaded."""
        return len(self.rejections)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``kg load --json`` prints."""
        return {
            "source": self.source,
            "run": self.run,
            "loaded": self.loaded,
            "skipped": self.skipped,
            "rejected": self.rejected,
            "removed": self.removed,
            "text_units": self.text_units,
            "mentions": self.mentions,
            "quads_added": self.quads_added,
            "quads_removed": self.quads_removed,
            "pending_vectors": self.pending_vectors,
            "seconds": round(self.seconds, 3),
            "rejections": [{"record": each.record, "reason": each.reason} for each in self.rejections],
        }


HOMES: Final = """
SELECT DISTINCT ?thing ?graph WHERE { VALUES ?thing { $things } GRAPH ?graph { ?thing a ?class } }"""


class Identities:
    """Knows where the things are described that a load would describe: in the store, or in a record of this load."""

    def __init__(self, store: Store, known: Mapping[NamedNode, tuple[str, str]]) -> None:
        self.store: Final = store
        self.known: Final = known
        self.described: dict[NamedNode, tuple[NamedNode, str]] = {}
        """Of the documents of this load, the graph of each and where it was read."""

    def refusal(self, document: SourceDocument | SourceGraph) -> str | None:
        """Return why a record that says something new is kept out, None where it is not."""
        graph = graph_of(document)
        if (other := self._other_source(graph, document)) is not None:
            return (
                f"{other} has a record with the same identifier {document.iri.value} that says something else, and it "
                f"stays; to have this one instead, remove that from there and load it with --prune"
            )
        parents = [unit.parent for unit in document.units if unit.parent is not None]
        things = dict.fromkeys([document.iri, *parents])
        for thing, home, place in self._homes([*things]):
            if home != graph:
                return f"{thing.value} is part of another record already, {home.value}, read from {place}"
        where = standing(document)
        self.described |= dict.fromkeys(things, (graph, where))
        return None

    def _other_source(self, graph: NamedNode, document: SourceDocument | SourceGraph) -> str | None:
        if graph not in self.known or self.known[graph][0] == document.source_sha256:
            return None
        ours = {origin.snapshot.source for origin in document.origins}
        theirs = load_records.load_locations(self.store, [graph]).get(graph, set())
        # A person's correction of a record gives way to the source, once that has it right.
        corrected = any(f"{CORRECTION}{place} rows" in each for each in theirs for place in ours)
        return None if ours & theirs or corrected else ", ".join(sorted(theirs)) or "what was loaded before"

    def _homes(self, things: list[NamedNode]) -> list[tuple[NamedNode, NamedNode, str]]:
        found = [(thing, *self.described[thing]) for thing in things if thing in self.described]
        for thing, graph in select(self.store.query, bind(HOMES, things=things)).rows:
            if isinstance(thing, NamedNode) and isinstance(graph, NamedNode):
                places = (
                    load_records.load_locations(self.store, [graph]).get(graph, set()) if graph in self.known else set()
                )
                found.append((thing, graph, ", ".join(sorted(places)) or "elsewhere"))
        return found


def named(document: SourceDocument | SourceGraph) -> str:
    """Return what a record is called where it is spoken of."""
    return document.iri.value.removeprefix("cpr://doc/").removeprefix(BASE + "id/")


def standing(document: SourceDocument | SourceGraph) -> str:
    """Return where a record stands, in words."""
    places = [
        (f"row {format_rows(sorted(set(origin.rows)))} of " if origin.rows else "") + origin.snapshot.source
        for origin in document.origins
    ]
    return " and ".join(places)


def load(
    kg: KnowledgeGraph,
    loader: Loader,
    locations: Sequence[str],
    *,
    prune: bool = False,
    on_progress: Progress | None = None,
    gate: bool = True,
    index: bool = True,
) -> LoadReport:
    """Load the records that `loader` reads from `locations` and report the outcome.

    Unchanged records are skipped. Records that violate their shapes or cannot be read are quarantined; neither stops
    the load. `prune` removes the records that an earlier load read from these locations and that are gone. Without
    `gate` no record is validated; without `index` none is indexed (for benchmarks, or when the index is healed later).

    Raises SourceError if a named file cannot be read.
    """
    located = find(locations, kg.settings, loader.formats, loader.fetches)
    return Loading(kg, loader, located, on_progress, gate, index).run(prune)


@dataclass(slots=True)
class _Batch:
    documents: dict[NamedNode, SourceDocument | SourceGraph] = field(default_factory=dict)
    candidates: dict[NamedNode, list[Quad]] = field(default_factory=dict)
    size: int = 0

    def add(self, graph: NamedNode, document: SourceDocument | SourceGraph, candidate: list[Quad]) -> None:
        self.documents[graph] = document
        self.candidates[graph] = candidate
        self.size += len(candidate)


class Loading:
    """One invocation: what it knows at the start, the batch being filled, and the report being written."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        loader: Loader,
        located: Located,
        on_progress: Progress | None,
        gate: bool = True,
        index: bool = True,
        config: Mapping[str, str] | None = None,
        graphs: Sequence[NamedNode] | None = None,
    ) -> None:
        """`graphs` are those that the load may write, if known in advance."""
        self.kg = kg
        self.loader = loader
        self.located = located
        self.on_progress = on_progress
        self.gate = _gate() if gate else None
        self.index = index
        self.report = LoadReport(loader.domain, warnings=list(located.warnings))
        sources = [_source_file(file.snapshot) for file in located.files]
        self.prov_run: Final = Run(loader.agent, {"source": loader.domain, **loader.config, **(config or {})}, sources)
        self.quarantine = Quarantine(kg.settings.data_dir, self.loader.domain, self.loader.cut)
        self.known = (
            load_records.load_versions(kg.store, self.loader.domain)
            if graphs is None
            else load_records.load_versions_of(kg.store, graphs)
        )
        self.identities: Final = Identities(kg.store, self.known)
        self.seen: dict[NamedNode, tuple[str, str]] = {}
        """The graphs of this load, each with the hash of its record and where that stands."""
        self.batch = _Batch()
        self.started = time.perf_counter()
        self.shape_warnings: Counter[str] = Counter()
        self.rows = 0
        self.expected_rows: int | None = None
        self.indexer = ThreadPoolExecutor(1, "indexing")
        self.indexing: Future[None] | None = None

    def run(self, prune: bool) -> LoadReport:
        """Take all that there is in the files."""
        with self.indexer, closing(self.loader.read(self.located.files)) as items:  # type: ignore[type-var]
            for item in items:
                if isinstance(item, SourceDocument | SourceGraph):
                    self.take(item)
                elif isinstance(item, Rejection):
                    self.reject(item)
                elif isinstance(item, Withdrawal):
                    self.withdraw(item)
                else:
                    self.note(item)
            self.commit()
            self.await_indexing()
        if prune:
            self.prune()
        self.report.warnings += self.quarantine.keep_rows({file.snapshot: file.path for file in self.located.files})
        unread = self.unread()
        self.quarantine.settle({file.snapshot.source for file in self.located.files} - unread)
        return self.finish()

    def finish(self) -> LoadReport:
        """Bring the index in line and complete the report."""
        report = self.report
        if self.index:
            self.align()
            report.pending_vectors = self.kg.search.status().pending_vectors
            report.mentions = refresh_mentions(self.kg, on_progress=self.on_progress).mentions
        if self.loader.afterwards is not None and report.run is not None:
            report.warnings += self.loader.afterwards(self.kg.store)
        report.seconds = time.perf_counter() - self.started
        report.warnings += [
            message + (f" ({count} times)" if count > 1 else "") for message, count in self.shape_warnings.items()
        ]
        self.tell()
        return report

    def align(self) -> None:
        """Bring the index in line with the store."""
        index_sync.heal(self.kg.store, self.kg.search)

    def note(self, notice: Notice) -> None:
        """Take down what the loader has to say."""
        if notice.warning:
            self.report.warnings.append(notice.text)
        elif notice.expected_rows is not None:
            self.expected_rows = notice.expected_rows
        else:
            self.report.layouts.append(notice.text)
            log.info("%s", line(notice.text))

    def withdraw(self, withdrawal: Withdrawal) -> None:
        """Remove a record of which the source says that it is no more."""
        graph = mint("graph", "src", self.loader.domain, *withdrawal.key)
        self.commit()
        self.report.layouts.append(f"{withdrawal.record} is no more")
        # What comes after this is compared with what is left, also where it is the same record again.
        if self.known.pop(graph, None) is not None or graph in self.seen:
            gone = self.change({graph: ()}, {}).removed > 0
            if self.index:
                self.await_indexing()
                self.kg.search.remove([graph.value])
            self.report.removed += gone
        self.quarantine.clear(graph)

    def take(self, document: SourceDocument | SourceGraph) -> None:
        """Put a document into the batch, unless it is there already or has not changed."""
        graph = graph_of(document)
        self.rows += len({row for origin in document.origins for row in origin.rows}) or 1
        if graph in self.seen:
            self.again(document, *self.seen[graph])
            return
        self.seen[graph] = document.source_sha256, standing(document)
        if self.known.get(graph) == (document.source_sha256, self.loader.version):
            self.report.skipped += 1
            self.is_in(graph)
            self.progress()
            return
        if self.loader.exclusive and (reason := self.identities.refusal(document)) is not None:
            self.reject(Rejection(named(document), reason, document.origins, document.key, document.context))
            return
        if len(self.report.warnings) < _KEPT_WARNINGS:
            self.report.warnings += document.warnings
        candidate = quads(document)
        if self.batch.size + len(candidate) > BATCH_QUADS:
            self.commit()
        self.batch.add(graph, document, candidate)

    def again(self, document: SourceDocument | SourceGraph, digest: str, place: str) -> None:
        """Pass over or reject a record whose identifier this load has met before."""
        if self.loader.exclusive and digest == document.source_sha256:
            self.report.skipped += 1
            self.progress()
            return
        reason = f"{standing} has the same identifier {document.iri.value}, and stays; records are never merged"
        if self.loader.exclusive:
            reason = (
                f"{standing(document)}: the same identifier {document.iri.value} has another record, in {place}, "
                f"and they differ; they are never merged"
            )
        self.reject(Rejection(" ".join(document.key), reason, document.origins, context=document.context))

    def is_in(self, graph: NamedNode) -> None:
        """Note that a record is in the store as its source has it."""
        self.quarantine.clear(graph)

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Keep a record out, and describe it in the quarantine."""
        self.report.rejections.append(rejection)
        graph = mint("graph", "src", self.loader.domain, *rejection.key) if rejection.key else None
        if graph is not None:
            self.seen.setdefault(graph, ("", rejection.source or ""))
        self.quarantine.put(graph, rejection, self.prov_run, violations, self.loader.said)

    def commit(self) -> None:
        """Check, commit and index the batch."""
        batch, self.batch = self.batch, _Batch()
        if not batch.documents:
            return
        shared = self.shared(batch)
        for graph, violations in self.violations(batch, shared).items():
            document = batch.documents.pop(graph)
            del batch.candidates[graph]
            rejection = Rejection(
                named(document),
                "; ".join(dict.fromkeys(violation.message for violation in violations if violation.blocks)),
                document.origins,
                document.key,
                document.context,
            )
            self.reject(rejection, violations)
        used = {graph for document in batch.documents.values() for graph in document.shared}
        shared = {graph: candidate for graph, candidate in shared.items() if graph in used}
        commit = self.write(batch, shared)
        hashes = {change.graph: change.content_sha256 for change in commit.changes}
        for graph, document in batch.documents.items():
            self.is_in(graph)
            if graph in hashes:
                self.report.loaded += 1
                self.report.text_units += len(document.units)
            else:
                self.report.skipped += 1
        if self.index:
            self.await_indexing()
            committed = {
                graph: (digest, document)
                for graph, document in batch.documents.items()
                if (digest := hashes.get(graph)) is not None
                and (isinstance(document, SourceDocument) or document.units)
            }
            self.indexing = self.indexer.submit(self.put_in_index, committed)
        self.progress()

    def put_in_index(self, committed: Mapping[NamedNode, tuple[str, SourceDocument | SourceGraph]]) -> None:
        """Index one batch: in a thread of its own, since the index process works while the next one is committed."""
        self.kg.search.replace(
            {
                graph.value: GraphUnits(digest, _indexed(graph, document))
                for graph, (digest, document) in committed.items()
            }
        )

    def await_indexing(self) -> None:
        """Wait until the batch before is indexed, or raise what went wrong with it; healing would make up for it."""
        indexing, self.indexing = self.indexing, None
        if indexing is not None:
            indexing.result()

    def shared(self, batch: _Batch) -> dict[NamedNode, Sequence[Quad]]:
        """The shared graphs to write: those that say more than what is stored, or something else."""
        wanted: dict[NamedNode, Sequence[Quad]] = {}
        merge = self.loader.merge
        for document in batch.documents.values():
            for graph, candidate in document.shared.items():
                if merge is not None and graph not in wanted:
                    wanted[graph] = list(self.kg.store.graph(graph))
                if not set(candidate) <= set(wanted.get(graph, ())):
                    wanted[graph] = candidate if merge is None else merge(wanted[graph], candidate)
        return {
            graph: candidate
            for graph, candidate in wanted.items()
            if not set(candidate) <= set(self.kg.store.graph(graph))
        }

    def violations(
        self, batch: _Batch, shared: dict[NamedNode, Sequence[Quad]]
    ) -> dict[NamedNode, Sequence[Violation]]:
        """What keeps records out, by graph: their own faults, and those of the shared graphs that they bring."""
        if self.gate is None:
            return {}
        found = self.gate.check({**batch.candidates, **shared})
        blocking: dict[NamedNode, Sequence[Violation]] = {}
        for graph, document in batch.documents.items():
            violations = [
                violation
                for each in (graph, *(name for name in document.shared if name in shared))
                for violation in found.get(each, ())
            ]
            self.shape_warnings.update(violation.message for violation in violations if not violation.blocks)
            if any(violation.blocks for violation in violations):
                blocking[graph] = violations
        return blocking

    def write(self, batch: _Batch, shared: dict[NamedNode, Sequence[Quad]]) -> Commit:
        """Commit the records of a batch and the graphs that they share."""
        records = {graph: _origin(document) for graph, document in batch.documents.items()}
        for document in batch.documents.values():
            for graph in document.shared.keys() & shared.keys():
                records.setdefault(graph, _origin(document, rows=False))
        return self.change({**shared, **batch.candidates}, records)

    def change(self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]) -> Commit:
        """Commit graphs with their provenance, and what is derived from them."""
        if self.loader.derive is not None:
            for graph, (derived, origin) in self.loader.derive(self.kg.store, replace).items():
                replace[graph] = derived
                records[graph] = origin
        described = promotion.build_load_patch(self.prov_run, self.kg.store, replace, records)
        commit = self.kg.store.commit(replace, lambda changes: described([*changes, *self.restated(replace, changes)]))
        if any(change.content_sha256 is not None for change in commit.changes):
            self.report.run = self.prov_run.iri.value
        self.report.quads_added += commit.added
        self.report.quads_removed += commit.removed
        return commit

    def restated(
        self, replace: Mapping[NamedNode, Sequence[Quad]], changes: Sequence[GraphChange]
    ) -> list[GraphChange]:
        """The graphs that say what they did when an earlier version made them, so that they are not made again."""
        earlier = {graph for graph, (_, version) in self.known.items() if version != self.loader.version}
        same = (earlier & replace.keys()) - {change.graph for change in changes}
        return [
            GraphChange(graph, frozenset(), frozenset(), content_sha256(self.kg.store.graph(graph)))
            for graph in sorted(same, key=str)
        ]

    def unread(self) -> set[str | None]:
        """The files that could not be read, or not all records of which are known."""
        return {rejection.source for rejection in self.report.rejections if rejection.key is None}

    def prune(self) -> None:
        """Remove the records that came from these locations and are not there any more."""
        unread = self.unread()
        self.quarantine.prune(self.seen, lambda place: self.located.covers(place) and place not in unread)
        gone = [graph for graph in self.known if graph not in self.seen]
        for start in range(0, len(gone), 500):
            part = gone[start : start + 500]
            locations = load_records.load_locations(self.kg.store, part)
            removed = [
                graph
                for graph in part
                # A file that could not be read may still hold the record.
                if (places := locations.get(graph))
                and all(self.located.covers(place) for place in places)
                and not places & unread
            ]
            if removed:
                self.change(dict.fromkeys(removed, ()), {})
                if self.index:
                    self.kg.search.remove([graph.value for graph in removed])
                self.report.removed += len(removed)
                for graph in removed:
                    self.quarantine.clear(graph)

    def progress(self) -> None:
        """Say how far it is."""
        if self.on_progress is not None:
            self.on_progress(self.rows, self.expected_rows, f"loading {self.report.source}")

    def tell(self) -> None:
        """Say the first warnings in the log, and how many more there are."""
        for warning in self.report.warnings[:SHOWN_WARNINGS]:
            log.warning("%s", line(warning))
        if (more := len(self.report.warnings) - SHOWN_WARNINGS) > 0:
            log.warning("and %d more warnings", more)


@cache
def _gate() -> RecordGate:
    """The gate with the shapes that ship, which take a second to read."""
    return RecordGate()


def _origin(document: SourceDocument | SourceGraph, *, rows: bool = True) -> RecordOrigin:
    return RecordOrigin(
        document.source_sha256,
        [RowsOf(_source_file(origin.snapshot), origin.rows if rows else ()) for origin in document.origins],
    )


@lru_cache(maxsize=1_024)
def _source_file(snapshot: Snapshot) -> SourceFile:
    return SourceFile(snapshot.sha256, snapshot.source, snapshot.revision, snapshot.read_at, snapshot.sent_by)


def _indexed(graph: NamedNode, document: SourceDocument | SourceGraph) -> list[Any]:
    block_type, start, title = KG.blockType, KG.start, DCTERMS.title
    if isinstance(document, SourceDocument):
        titles = {document.iri.value: document.title}
    else:
        named = ((quad.subject, quad.object) for quad in document.quads if quad.predicate == title)
        titles = {
            thing.value: name.value
            for thing, name in named
            if isinstance(thing, NamedNode) and isinstance(name, Literal)
        }
    facts = (
        UnitFacts(
            unit.iri.value,
            (unit.parent or unit.iri).value,
            unit.position,
            unit.text,
            next((value.value for predicate, value in unit.properties if predicate == block_type), None),
            unit.language,
            any(predicate == start for predicate, _ in unit.properties),
        )
        for unit in document.units
    )
    return build_units(graph.value, titles, facts)
