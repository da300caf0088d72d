"""Loading: read records, skip the unchanged, validate, commit with provenance, index, report.

A `Loader` holds all that depends on the source; this module knows no domain (`loaders.sources` does).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode, Quad

from kg.derivations import protocol as derivations
from kg.derivations.with_record import Graphs, Steps, WithRecord
from kg.ingestion import Outcome
from kg.interruption import sweep_temporary_folders
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import findings, load_records, permissions, promotion
from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.provenance.record_age import Age, find_age, load_ages
from kg.provenance.source_paths import SourcePaths
from kg.search import index_sync
from kg.search.index_sync import DERIVED_LANGUAGE, DerivedCodes, LoadedGraphs, Progress
from kg.shacl.gate import RecordGate
from kg.shacl.report import Violation
from kg.store.difference import content_sha256
from kg.store.ownership import is_shared_graph, is_user_graph
from kg.store.protocol import Commit, GraphChange, Patch, Store
from kg.text import list_first, name_or_quote, quoted, to_single_line
from kg.vocabulary import SOURCED, mint, parts_of
from loaders.batches import Batch, collect_rarely, split, switch_often
from loaders.citations.graph.refresh import Citations
from loaders.indexed_facts import find_derived, find_facts
from loaders.languages.graph.text_languages import derive_languages
from loaders.load_report import LoadReport, Older
from loaders.mentions.graph.refresh import refresh as refresh_mentions
from loaders.model import (
    Notice,
    Origin,
    Rejection,
    SourceDocument,
    SourceGraph,
    Withdrawal,
    graph_name,
    to_quads,
)
from loaders.quarantine import Quarantine
from loaders.readers import excerpts
from loaders.readers.locations import Fetch, File, Located, Unread, find_files, find_in_folder
from loaders.record_identities import Identities, build_origin, build_source_file, display_name, location_text
from loaders.with_record import LANGUAGES

log = logging.getLogger(__name__)

INDEXERS: Final = 2
"""Threads that index: while the index writes the units of one, the other builds those of the next part of a batch."""

PROGRESS_S: Final = 1.0
"""Seconds between two reports of progress while a batch is read."""

AHEAD_QUADS: Final = 5_000
"""Quads of the records that are read together to find their identifiers in the store."""

SHOWN_WARNINGS: Final = 20
_KEPT_WARNINGS: Final = 1_000

Item = SourceDocument | SourceGraph | Rejection | Withdrawal | Notice
Options = Mapping[str, str]
"""Options of a load: ``base``, the name or URL of the Wikibase of the entities; ``chamber`` and ``date`` of speeches
whose files lack them, and ``jurisdiction``, the country or region of their parliament; ``municipality`` and ``state``
of a code; ``mapping``, the TOML file for tables of districts or members; ``collection``, the name of a collection of
files, and ``tags``, tags for them, separated by commas.
"""


@dataclass(frozen=True, slots=True)
class Loader:
    """How to load a source. A new `version` reads every record again."""

    domain: str
    version: str
    read: Callable[[Sequence[File]], Iterator[Item]]
    formats: Sequence[str] = ()
    """Extensions of the files that it reads."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Configuration that the provenance of a run records."""
    derivations: Sequence[WithRecord] = ()
    """The steps of its commits, between the languages of the texts and the citations in them, in this order."""
    prepare: Callable[[KnowledgeGraph], None] | None = None
    """Reads what it needs to know of the store before a load."""
    load_freed: Callable[[KnowledgeGraph, LoadReport], None] | None = None
    """Loads the records that were left out because of others that the load has changed; adds them to the report."""
    refresh: Callable[[KnowledgeGraph, str, Progress | None], None] | None = None
    """Computes the derivations that follow a load of its domain, once the records are committed and indexed."""
    find_warnings: Callable[[Store], Sequence[str]] | None = None
    """Finds unusual data in the store after a load."""
    fetchers: Mapping[str, Fetch] = field(default_factory=dict)
    """Functions that fetch locations which are not files, by scheme: ``sparql`` for ``sparql:URL@FILE``."""
    cut: excerpts.Cut = excerpts.cut
    """Copies the rows of rejected records to the quarantine."""
    options: Options = field(default_factory=dict)
    """Options to store with quarantined records, for a retry."""
    exclusive: bool = False
    """Whether a record keeps its first source: the same record from another source is rejected if it differs, and
    skipped if it is equal.
    """
    cites: bool = True
    """Whether its texts are searched for citations of laws."""
    merge: Callable[[Sequence[Quad], Sequence[Quad]], Sequence[Quad]] | None = None
    """Merges new quads into a shared graph. Without it they replace the graph."""
    whole: Collection[str] = ()
    """Extensions of the files that it reads into memory as a whole, so that their size is limited."""
    lenient: bool = False
    """Whether a file of a folder that cannot be read is rejected alone. Else it ends the load."""
    refuse: Callable[[File | Unread], Unread | None] | None = None
    """Returns why the path of a file must not be stored; None if it may be."""
    name: str = ""
    """The name of the source under which it was asked for, if not that of its domain."""
    counted: bool = False
    """Whether `KnowledgeGraph.ingestion` counts its records, which are files: their collection and path are the key."""

    @property
    def agent(self) -> Agent:
        """The agent in provenance."""
        return Agent(f"loaders.{self.domain}", self.version)


def load(
    kg: KnowledgeGraph,
    loader: Loader,
    locations: Sequence[str],
    *,
    prune: bool = False,
    on_progress: Progress | None = None,
    gate: bool = True,
    index: bool = True,
    replace_newer: bool = False,
    root: Path | None = None,
) -> LoadReport:
    """Load the records that `loader` reads from `locations` and report the outcome.

    Unchanged records are skipped. Records that violate their shapes or cannot be read are quarantined; neither stops
    the load. A record that is older than the stored one, by revision or time of modification, is skipped and reported,
    unless `replace_newer`. `prune` removes the records that an earlier load read from these locations and that are
    gone. Without `gate` no record is validated; without `index` none is indexed (for benchmarks, or when the index is
    repaired later). With `root`, `locations` are files in that folder, and their records are those of a load of it.

    Raises SourceError if a named file cannot be read.
    """
    sweep_temporary_folders()
    if root is not None:
        located = find_in_folder(root, map(Path, locations), kg.settings, loader.formats)
    else:
        located = find_files(locations, kg.settings, loader.formats, loader.fetchers, lenient=loader.lenient)
    return Loading(kg, loader, located, on_progress, gate, index, replace_newer=replace_newer).run(prune)


class Loading:
    """One load: the state of the store at its start, the current batch, and the report."""

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
        replace_newer: bool = False,
    ) -> None:
        """`graphs` are those that the load may write, if known in advance."""
        self.replace_newer: Final = replace_newer
        self.kg = kg
        self.loader = loader
        self.located = located
        self.on_progress = on_progress
        self.gate = _bundled_gate() if gate else None
        self.index = index
        if loader.refuse is not None:
            located = located.refuse(loader.refuse)
            self.located = located
        self.report = LoadReport(loader.name or loader.domain, warnings=list(located.warnings), unread=located.other)
        sources = [build_source_file(file.snapshot) for file in located.files]
        given = {name: load_records.name_source(value) for name, value in loader.config.items()}
        self.prov_run: Final = Run(loader.agent, {"source": loader.domain, **given, **(config or {})}, sources)
        self.quarantine = Quarantine(kg.settings.directory.quarantine, self.loader.domain, self.loader.cut)
        self.known = (
            load_records.load_versions(kg.store, self.loader.domain)
            if graphs is None
            else load_records.load_versions_of(kg.store, graphs)
        )
        self.author: Final = permissions.get_author()
        self.attributed: Final = permissions.find_attributed(kg.store)
        """The graphs that callers of tools wrote."""
        self.taken: Final[set[NamedNode]] = set()
        """Those of them that this load of the operator has found too: they are the operator's at its end."""
        self.citations: Final = Citations(kg) if loader.cites else None
        self.cited = False
        """Whether the citations follow from all records of this load."""
        self.paths: Final = SourcePaths(kg.settings.data_dir)
        self.identities: Final = Identities(kg.store, self.known, self.paths)
        self.seen: dict[NamedNode, tuple[str, str]] = {}
        """The graphs of this load, with the hash and the location of the record of each."""
        self.batch = Batch()
        self.quads = 0
        """Quads of the records of former batches."""
        steps = [WithRecord(derive_languages, LANGUAGES), *loader.derivations]
        if self.citations is not None:
            steps.append(WithRecord(self.citations.derive))
        self.steps: Final = Steps(kg, f"{SOURCED}{loader.domain}/", steps)
        self.derived: DerivedCodes = {}
        """The codes and languages that the last commit derived."""
        self.started = time.perf_counter()
        self.reported = time.monotonic()
        """When progress was last reported."""
        self.shape_warnings: Counter[str] = Counter()
        self._layout: str | None = None
        self._alike = 0
        self.rows = 0
        self.expected_rows: int | None = None
        self.indexer = ThreadPoolExecutor(INDEXERS, "indexing")
        self.indexing: Sequence[Future[None]] = ()
        """The parts of the last batch, which may be indexed already."""
        self.indexed: Final = LoadedGraphs(kg.store, kg.search)

    @collect_rarely()
    @switch_often()
    def run(self, prune: bool) -> LoadReport:
        """Load all records of the files."""
        for each in self.located.unread:
            self.reject(Rejection(each.name, each.reason, unopened=each.place))
        files = self.reject_large_files()
        if self.loader.prepare is not None:
            self.loader.prepare(self.kg)
        with self.indexer, closing(self.loader.read(files)) as items:  # type: ignore[type-var]
            try:
                for item in self.read_ahead(items):
                    if isinstance(item, SourceDocument | SourceGraph):
                        self.add(item)
                    elif isinstance(item, Rejection):
                        self.reject(item)
                    elif isinstance(item, Withdrawal):
                        self.withdraw(item)
                    else:
                        self.add_notice(item)
                self.commit()
            finally:  # also of a load that fails: a file may be gone later
                self.report.warnings += self.quarantine.keep_rows(self.located.files)
            if not prune:
                self.refresh_citations()  # while the last batch is indexed
            self.wait_for_indexing()
        self.end_layouts()
        if prune:
            self.prune()
        if self.loader.counted:
            self.kg.ingestion.record_load(self.report.loaded, time.perf_counter() - self.started)
        unread = self.unread_sources()
        read = {file.snapshot.source for file in self.located.files}
        # A file that these locations no longer contain has no error any more.
        self.quarantine.remove_fixed(
            lambda source: source not in unread and (source in read or self.located.covers(source))
        )
        return self.finish()

    def read_ahead(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items in their order; of small records, read several and find their identifiers together."""
        if not self.loader.exclusive:
            yield from items
            return
        waiting: list[Item] = []
        size = 0
        for item in items:
            waiting.append(item)
            size += _estimate_quads(item) if isinstance(item, SourceDocument | SourceGraph) else 0
            if size > AHEAD_QUADS or isinstance(item, Withdrawal):
                yield from self.release(waiting)
                waiting, size = [], 0
        yield from self.release(waiting)

    def release(self, items: Sequence[Item]) -> Iterator[Item]:
        """Find the identifiers of records that may be loaded, then yield the items."""
        documents = [item for item in items if isinstance(item, SourceDocument | SourceGraph)]
        self.identities.read_ahead(each for each in documents if not self.is_unchanged(graph_name(each), each))
        yield from items
        self.identities.stored = {}

    def is_unchanged(self, graph: NamedNode, document: SourceDocument | SourceGraph) -> bool:
        """Whether the store has a record as it is, from this version of the loader, with all that follows from it."""
        same = self.known.get(graph) == (document.source_sha256, self.loader.version)
        return same and not self.steps.needs_source(graph)

    def reject_large_files(self) -> list[File]:
        """Reject the files that are too large to be read as a whole; return the others."""
        most = self.kg.settings.max_whole_file_mb
        kept = []
        for file in self.located.files:
            try:
                size = file.path.stat().st_size if file.path.suffix.lower() in self.loader.whole else 0
            except OSError:
                size = 0  # the loader reports it
            if size <= most << 20:
                kept.append(file)
                continue
            reason = (
                f"{file.path}: the file has {size:,} bytes, and files of its format are read as a whole. Split it, "
                f"or set QUADCITE_MAX_WHOLE_FILE_MB, which is {most}."
            )
            self.reject(Rejection(file.path.name, reason, (Origin(file.snapshot),)))
        return kept

    def finish(self) -> LoadReport:
        """Update the index, the citations and the mentions, and complete the report."""
        report = self.report
        permissions.take_over(self.kg.store, self.taken)
        if self.author is None:
            self.derive_due(derivations.Outcome(), self.on_progress)
        self.refresh_citations()
        if self.index:
            self.indexed.finish()
            self.repair_index()
            if self.loader.load_freed is not None:
                self.loader.load_freed(self.kg, report)
            report.pending_vectors = self.kg.search.status().pending_vectors
            report.mentions = refresh_mentions(self.kg, on_progress=self.on_progress).mentions
            if self.loader.refresh is not None:
                self.loader.refresh(self.kg, self.loader.domain, self.on_progress)
        if self.loader.find_warnings is not None and report.run is not None:
            report.warnings += self.loader.find_warnings(self.kg.store)
        report.warnings += [
            f"Skipped {name_or_quote(each.record)}: {each.reason}" for each in report.older[:_KEPT_WARNINGS]
        ]
        report.warnings += [
            f"{quoted(graph)}: {count:,} statement{'s' * (count != 1)} moved to graphs of this load, which state the "
            "same. kg why explains them."
            for graph, count in report.ceded.items()
        ]
        report.warnings += [
            f"{quoted(graph)}: {count:,} statement{'s' * (count != 1)} returned to it, since the source no longer "
            "states them."
            for graph, count in report.returned.items()
        ]
        report.seconds = time.perf_counter() - self.started
        report.warnings += [
            message + (f" ({count} times)" if count > 1 else "") for message, count in self.shape_warnings.items()
        ]
        self.log_warnings()
        return report

    def derive_due(self, outcome: derivations.Outcome, on_progress: Progress | None, only: str | None = None) -> None:
        """Compute due outputs from the stored graphs of this source, of `only` this derivation."""

        def commit(
            stored: Graphs, made: dict[NamedNode, Sequence[Quad]], origins: dict[NamedNode, RecordOrigin]
        ) -> None:
            done = self.commit_derived(made, origins)
            outcome.add(self.prov_run, done)
            languages = [change for change in done.changes if change.graph.value.startswith(DERIVED_LANGUAGE)]
            told = {quad.subject for change in languages for quad in (*change.added, *change.removed)}
            if told:  # the repair of the index adds these records again
                changed = [graph for graph, quads in stored.items() if any(quad.subject in told for quad in quads)]
                self.kg.search.remove([graph.value for graph in changed])

        self.steps.derive_due(commit, outcome, on_progress, only)
        if only is not None and outcome.added + outcome.removed:
            self.repair_index()

    def refresh_citations(self) -> None:
        """Find the citations that follow from the records of this load, if that was not done."""
        if self.citations is not None and not self.cited:
            self.citations.refresh(self.on_progress)
            self.cited = True

    def repair_index(self) -> None:
        """Update the index to the state of the store."""
        index_sync.repair_index(self.kg.store, self.kg.search)

    def add_notice(self, notice: Notice) -> None:
        """Add a notice of the loader to the report."""
        if notice.warning:
            self.report.warnings.append(notice.text)
        elif notice.expected_rows is not None:
            self.expected_rows = notice.expected_rows
        else:
            self.add_layout(notice.text)

    def add_layout(self, text: str) -> None:
        """Add the layout of a file to the report. Of files with the same layout in a row, the first is named."""
        _, colon, layout = text.partition(": ")
        if colon and layout == self._layout:
            self._alike += 1
            return
        self.end_layouts()
        self._layout = layout if colon else None
        self.report.layouts.append(text)
        log.info("%s", to_single_line(text))

    def end_layouts(self) -> None:
        """Report how many files had the same layout as the last one."""
        if self._alike:
            text = f"{self._alike} more file{'s' if self._alike > 1 else ''}: {self._layout}"
            self.report.layouts.append(text)
            log.info("%s", to_single_line(text))
        self._alike = 0

    def withdraw(self, withdrawal: Withdrawal) -> None:
        """Remove a record that its source marks as deleted."""
        graph = mint("graph", "src", self.loader.domain, *withdrawal.key)
        if graph in self.known or graph in self.seen:
            self.commit()
        self.count("removed" if withdrawal.reason is None else "duplicate", withdrawal.key, withdrawal.reason or "")
        if withdrawal.reason is None:
            self.report.layouts.append(f"{withdrawal.record} was deleted in its source")
        else:
            self.report.skipped += 1
            if len(self.report.warnings) < _KEPT_WARNINGS:
                self.report.warnings.append(f"Skipped {name_or_quote(withdrawal.record)}: {withdrawal.reason}")
        # The source may contain the record again later, which then counts as new.
        if self.known.pop(graph, None) is not None or graph in self.seen:
            gone = self.commit_graphs({graph: ()}, {}).removed > 0
            if self.index:
                self.wait_for_indexing()
                self.kg.search.remove([graph.value])
            self.report.removed += gone
        self.quarantine.clear(graph)

    def add(self, document: SourceDocument | SourceGraph) -> None:
        """Add a record to the batch, unless it is a duplicate, unchanged or in conflict with another."""
        graph = graph_name(document)
        self.rows += len({row for origin in document.origins for row in origin.rows}) or 1
        if graph in self.seen:
            self.handle_duplicate(document, *self.seen[graph])
            return
        self.seen[graph] = document.source_sha256, location_text(document)
        if self.is_unchanged(graph, document):
            self.report.skipped += 1
            self.count("unchanged", document.key)
            self.mark_stored(graph)
            self.take(document)
            self.report_progress()
            return
        if self.loader.exclusive and (reason := self.identities.find_conflict(document)) is not None:
            self.reject(Rejection(display_name(document), reason, document.origins, document.key, document.context))
            return
        if len(self.report.warnings) < _KEPT_WARNINGS:
            self.report.warnings += document.warnings
        candidate = to_quads(document)
        if not self.batch.accepts(candidate, self.quads):
            self.commit()
        self.batch.add(graph, document, candidate)
        if time.monotonic() - self.reported >= PROGRESS_S:
            self.report_progress()

    def handle_duplicate(self, document: SourceDocument | SourceGraph, digest: str, place: str) -> None:
        """Skip or reject a record whose identifier occurred before in this load, at `place` with the hash `digest`."""
        if self.loader.exclusive and digest == document.source_sha256:
            self.report.skipped += 1
            self.report_progress()
            return
        reason = (
            f"Identifier {document.iri.value} at {location_text(document)} belongs to another record, at {place}. "
            f"The record that was read first counts; records are never merged."
        )
        self.reject(Rejection(" ".join(document.key), reason, document.origins, context=document.context))

    def mark_stored(self, graph: NamedNode) -> None:
        """Remove a record from the quarantine: the store contains it as its source does."""
        self.quarantine.clear(graph)

    def take(self, document: SourceDocument | SourceGraph) -> None:
        """Note a record of a caller of a tool that the operator has loaded too."""
        if self.author is None and self.attributed:
            self.taken.update(self.attributed & {graph_name(document), *document.shared})

    def reject(self, rejection: Rejection, violations: Sequence[Violation] = ()) -> None:
        """Report a record as rejected, and quarantine it."""
        self.report.rejections.append(rejection)
        self.count("rejected", rejection.key or ("", rejection.record), rejection.reason)
        graph = mint("graph", "src", self.loader.domain, *rejection.key) if rejection.key else None
        if graph is not None:
            self.seen.setdefault(graph, ("", location_text(rejection)))
        self.quarantine.put(graph, rejection, self.prov_run, violations, self.loader.options)

    def commit(self) -> None:
        """Validate, commit and index the batch."""
        batch, self.batch = self.batch, Batch()
        if not batch.documents:
            return
        self.quads += batch.size
        self.paths.add({origin.snapshot.source for each in batch.documents.values() for origin in each.origins})
        undated = self.skip_older(batch)
        shared = self.changed_shared_graphs(batch)
        for graph, violations in self.blocking_violations(batch, shared).items():
            document = batch.documents.pop(graph)
            del batch.candidates[graph]
            rejection = Rejection(
                display_name(document),
                "; ".join(dict.fromkeys(violation.message for violation in violations if violation.blocks)),
                document.origins,
                document.key,
                document.context,
            )
            self.reject(rejection, violations)
        used = {graph for document in batch.documents.values() for graph in document.shared}
        shared = {graph: candidate for graph, candidate in shared.items() if graph in used}
        commit = self.commit_batch(batch, shared)
        hashes = {change.graph: change.content_sha256 for change in commit.changes}
        self.warn_of_shrinking(batch, commit, undated)
        for graph, document in batch.documents.items():
            self.mark_stored(graph)
            self.take(document)
            self.count("loaded" if graph in hashes else "unchanged", document.key)
            if graph in hashes:
                self.report.loaded += 1
                self.report.text_units += len(document.units)
                if isinstance(document, SourceDocument) and document.redacted:
                    self.report.redacted[display_name(document)] = dict(document.redacted)
            else:
                self.report.skipped += 1
        if self.index:
            committed = {
                graph.value: document
                for graph, document in batch.documents.items()
                if hashes.get(graph) is not None and (isinstance(document, SourceDocument) or document.units)
            }
            # Before the next commit, which may change derived parties and states.
            digests = {graph.value: digest for graph, digest in hashes.items() if digest and graph.value in committed}
            states = index_sync.find_states(self.kg.store, digests)
            before = self.indexing
            self.indexing = [
                self.indexer.submit(self.index_records, part, states, self.derived) for part in split(committed)
            ]
            for future in before:  # so that one batch is indexed and one waits, at most
                future.result()
        self.report_progress()

    def skip_older(self, batch: Batch) -> set[NamedNode]:
        """Take the records out of the batch that are older than the stored ones; return those of unknown order.

        A record without texts from a catalog is taken out too, if the stored one has texts, which are of other files.
        """
        changed = [graph for graph in batch.documents if graph in self.known]
        ages = {graph: find_age(batch.candidates[graph]) for graph in changed}
        stored = load_ages(self.kg.store, [graph for graph, age in ages.items() if age != Age()])
        reasons = {
            graph: f"The stored record is newer ({before}) than this one ({ages[graph]})."
            for graph, before in stored.items()
            if ages[graph].is_older(before)
        }
        documents = [document for graph in changed if (document := batch.documents[graph]) and not document.units]
        reasons |= self.identities.find_texts([each for each in documents if isinstance(each, SourceDocument)])
        for graph, reason in reasons.items() if not self.replace_newer else ():
            document = batch.documents.pop(graph)
            del batch.candidates[graph]
            self.report.skipped += 1
            self.report.older.append(
                Older(display_name(document), f"{reason} To replace it, load with --replace-newer.")
            )
        return {graph for graph in changed if not ages[graph].is_comparable(stored.get(graph, Age()))}

    def warn_of_shrinking(self, batch: Batch, commit: Commit, undated: Collection[NamedNode]) -> None:
        """Warn of records that lost more than half of their quads, where no revision shows that they are newer."""
        for change in commit.changes:
            if change.graph in undated and change.graph in batch.documents:
                after = len(set(batch.candidates[change.graph]))
                before = after - len(change.added) + len(change.removed)
                if 2 * after < before and len(self.report.warnings) < _KEPT_WARNINGS:
                    name = display_name(batch.documents[change.graph])
                    self.report.warnings.append(
                        f"{name_or_quote(name)} shrank from {before:,} to {after:,} quads. Which record is newer is "
                        "unknown: they have no revisions or times of modification to compare."
                    )

    def index_records(
        self,
        committed: Mapping[str, SourceDocument | SourceGraph],
        states: Mapping[str, str],
        derived: DerivedCodes,
    ) -> None:
        """Index a part of a batch. Runs in one of the `INDEXERS`, so that the next batch is committed meanwhile."""
        self.indexed.replace(
            {graph: (states[graph], find_facts(document, derived)) for graph, document in committed.items()}
        )

    def wait_for_indexing(self) -> None:
        """Wait until the previous batch is indexed. Raises the errors of its indexing; `repair_index` repairs it."""
        indexing, self.indexing = self.indexing, ()
        for future in indexing:
            future.result()

    def changed_shared_graphs(self, batch: Batch) -> dict[NamedNode, Sequence[Quad]]:
        """Compute the shared graphs that contain more than the store, or something else."""
        stored: dict[NamedNode, Sequence[Quad]] = {}
        wanted: dict[NamedNode, Sequence[Quad]] = {}
        merge = self.loader.merge
        for document in batch.documents.values():
            for graph, candidate in document.shared.items():
                if graph not in stored:
                    stored[graph] = self.kg.store.graph(graph)
                    wanted[graph] = stored[graph] if merge is not None else ()
                if not wanted[graph] or not set(candidate) <= set(wanted[graph]):
                    wanted[graph] = candidate if merge is None else merge(wanted[graph], candidate)
        return {
            graph: candidate
            for graph, candidate in wanted.items()
            if candidate and (not stored[graph] or not set(candidate) <= set(stored[graph]))
        }

    def blocking_violations(
        self, batch: Batch, shared: dict[NamedNode, Sequence[Quad]]
    ) -> dict[NamedNode, Sequence[Violation]]:
        """Find the violations that reject records, by graph: their own, and those of their shared graphs."""
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

    def commit_batch(self, batch: Batch, shared: dict[NamedNode, Sequence[Quad]]) -> Commit:
        """Commit the records of a batch and their shared graphs."""
        records = {graph: build_origin(document, self.author) for graph, document in batch.documents.items()}
        for document in batch.documents.values():
            for graph in document.shared.keys() & shared.keys():
                records.setdefault(graph, build_origin(document, self.author, rows=False))
        return self.commit_graphs({**shared, **batch.candidates}, records)

    def commit_graphs(self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]) -> Commit:
        """Commit graphs with their provenance and their derived graphs."""
        given = list(replace)
        invalidated = self.steps.derive(replace, records)
        self.derived = find_derived(replace)
        commit = self.commit_derived(replace, records, invalidated)
        self.steps.record(given)
        return commit

    def commit_derived(
        self,
        replace: dict[NamedNode, Sequence[Quad]],
        records: dict[NamedNode, RecordOrigin],
        invalidated: Collection[NamedNode] = (),
    ) -> Commit:
        """Commit graphs with their provenance."""
        if self.author is not None:
            self.keep_shared(replace, records)
        began = time.perf_counter()
        described = promotion.build_load_patch(self.prov_run, self.kg.store, replace, records, invalidated)

        def describe(changes: Sequence[GraphChange]) -> Patch:
            permissions.check_changes(self.kg.store, changes)
            return described([*changes, *self.confirmed(replace, changes)])

        commit = findings.commit_reviewed(self.kg.store, replace, describe)
        if self.loader.counted:
            self.kg.ingestion.record_commit(time.perf_counter() - began)
        if any(change.content_sha256 is not None for change in commit.changes):
            self.report.run = self.prov_run.iri.value
        self.report.quads_added += commit.added
        self.report.quads_removed += commit.removed
        for change in commit.changes:
            if is_user_graph(change.graph) and change.removed:
                self.report.ceded[change.graph.value] += len(change.removed)
            if is_user_graph(change.graph) and change.added:
                self.report.returned[change.graph.value] += len(change.added)
        return commit

    def keep_shared(self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]) -> None:
        """Leave shared graphs that are the operator's as they are: only the scope ``admin`` changes them."""
        held = [graph for graph in replace if is_shared_graph(graph) and graph not in self.attributed]
        for graph in held:
            if stored := set(self.kg.store.graph(graph)):
                if not stored >= set(replace[graph]):
                    self.report.warnings.append(
                        f"{quoted(graph.value)}: Its description stays as it is. Changing it requires the scope admin."
                    )
                del replace[graph]
                records.pop(graph, None)

    def confirmed(
        self, replace: Mapping[NamedNode, Sequence[Quad]], changes: Sequence[GraphChange]
    ) -> list[GraphChange]:
        """Return the graphs that an earlier version of the loader made, and this one makes equal, as empty changes.

        They record the new version in provenance, so that the next load skips these records.
        """
        earlier = {graph for graph, (_, version) in self.known.items() if version != self.loader.version}
        same = (earlier & replace.keys()) - {change.graph for change in changes}
        return [
            GraphChange(graph, frozenset(), frozenset(), content_sha256(self.kg.store.graph(graph)))
            for graph in sorted(same, key=str)
        ]

    def unread_sources(self) -> set[str | None]:
        """Return the files that could not be read completely."""
        unread = {rejection.source for rejection in self.report.rejections if rejection.key is None}
        return unread | {each.source for each in self.located.unread}

    def prune(self) -> None:
        """Remove the records that these locations contained in an earlier load and no longer contain."""
        unread = self.unread_sources()
        self.quarantine.prune(self.seen, lambda place: self.located.covers(place) and place not in unread)
        gone = [graph for graph in self.known if graph not in self.seen]
        for start in range(0, len(gone), 500):
            part = gone[start : start + 500]
            sources = load_records.load_sources(self.kg.store, part)
            removed = [
                graph
                for graph in part
                # A file that could not be read may still contain the record.
                if (places := {self.paths.get(source) or name for source, name in sources.get(graph, {}).items()})
                and all(self.located.covers(place) for place in places)
                and not places & unread
            ]
            if removed:
                self.commit_graphs(dict.fromkeys(removed, ()), {})
                if self.index:
                    self.kg.search.remove([graph.value for graph in removed])
                self.report.removed += len(removed)
                for graph in removed:
                    self.quarantine.clear(graph)
                    self.count("removed", parts_of(graph.value, SOURCED)[1:])

    def count(self, outcome: Outcome, key: Sequence[str], reason: str = "") -> None:
        """Count the outcome of a file in the status of the ingestion."""
        if self.loader.counted:
            self.kg.ingestion.record_file(outcome, "/".join(key[1:]), key[0], reason)

    def report_progress(self) -> None:
        """Report the rows read so far."""
        self.reported = time.monotonic()
        if self.on_progress is not None:
            self.on_progress(self.rows, self.expected_rows, f"loading {self.report.source}")

    def log_warnings(self) -> None:
        """Log the first warnings, and how many more there are."""
        for warning in list_first(self.report.warnings, SHOWN_WARNINGS, "warnings"):
            log.warning("%s", to_single_line(warning))


@cache
def _bundled_gate() -> RecordGate:
    """Return the gate with the bundled shapes, which take a second to parse."""
    return RecordGate()


def _estimate_quads(document: SourceDocument | SourceGraph) -> int:
    own = document.properties if isinstance(document, SourceDocument) else document.quads
    return len(own) + 7 * len(document.units)
