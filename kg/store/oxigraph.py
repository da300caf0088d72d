"""The embedded store: Oxigraph on disk, the only writer of its data directory.

Every write becomes one update string with the difference, run under one lock. So neither another thread nor a crash can
separate reading, comparing, writing and the record of the commit. A commit is on disk when it returns. Each commit that
changes anything has a number, its *generation*, and a node in ``graph/prov``::

    <id/commit/{generation}> a kg:Commit ; kg:generation n ; prov:endedAtTime t ; kg:touched <graph> , ...
    <id/commit/head> kg:generation n ; kg:quadCount q ; kg:graphCount g

So the changes since any generation can be queried (`kg.store.commits`), and the counters are always consistent with the
data, even after a crash.
"""

from __future__ import annotations

import gc
import logging
import math
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Final, Self

import pyoxigraph
from pyoxigraph import NamedNode, Quad, QueryBoolean, QuerySolutions, RdfFormat

from kg.data_directory import DataDirectory
from kg.errors import (
    ForbiddenError,
    InvalidInputError,
    QuadciteError,
    QueryBusyError,
    QuerySyntaxError,
    StoreError,
    WriteUncertainError,
)
from kg.files import get_folder_bytes, is_unwritable
from kg.processes.child import Limits
from kg.sparql.guard import build_syntax_error
from kg.store import bulk_commits, difference, ownership
from kg.store.changes import Changes
from kg.store.commits import HEAD, Head, PreparedCommit, has_touched, load_counters, reduce_patch
from kg.store.consequences import prepare_commit
from kg.store.difference import Delta, Infer
from kg.store.engine import Readers, clearing_frames, has_open, open_engine, require_files, require_space
from kg.store.lock import DirectoryLock
from kg.store.ownership import Hidden, HiddenGraphs
from kg.store.payload_commits import Comparison, compare_payload, write_commit
from kg.store.payloads import Payload
from kg.store.protocol import (
    Commit,
    Content,
    Describe,
    Patch,
    Result,
    Rows,
    Snapshot,
    State,
    Statistics,
    Visibility,
    batched,
    select,
    term_text,
)
from kg.store.snapshots import Made, Snapshots
from kg.store.updates import Outcome, Update
from kg.store.write_ahead_log import WriteAheadLog, judge_logs, keep_logs
from kg.vocabulary import KG, PREFIXES, PROV_GRAPH

_log: Final = logging.getLogger(__name__)
_CONTESTED: Final = 2
"""Attempts to run an update while other writers may commit."""

_MEASURED_EVERY_S: Final = 1.0
_RETRY_S: Final = 0.5
"""Minimum time between two attempts to write again."""
_IDLE_AFTER_TABLES: Final = 15
"""Multiple of `idle_s` after which removals of a commit by table files are flushed: more than a load needs for one."""
_WANTED_S: Final = 2.0
"""Time after a checkpoint during which commits flush, so that the next checkpoint does not have to wait for it."""
_READERS_S: Final = 1.0
"""Time for readers to end, so that another process may open the files."""
_PORTION: Final = 50_000
"""Quads of an inferred graph that are written at once."""
_COUNT: Final = "SELECT (COUNT(*) AS ?quads) (COUNT(DISTINCT ?g) AS ?graphs) WHERE { GRAPH ?g { ?s ?p ?o } }"


class OxigraphStore:
    """An open and locked data directory. `address` is the URL of this process's server, shown to other processes.

    Memory tables are flushed after `flush_quads` written quads, and after `idle_s` seconds without a write, or later if
    the last commits were written as table files. That bounds memory, and the log to replay after a crash. While
    snapshots are requested, each commit flushes: a snapshot needs a flush, and its caller would wait for it.

    Each commit also writes the changes of graphs that `infer` computes.

    If the engine cannot write (a full disk), it refuses all further writes, also when there is room again. The store
    then reads from the files, `problem` has the reason, and the next write, or a thread every `idle_s`, opens the
    engine again. With `reads` it also opens a directory that cannot be written now. `folder` is that of the files, if
    it is not the usual one.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        address: str | None = None,
        flush_quads: int = 300_000,
        idle_s: float = 2.0,
        infer: Infer | None = None,
        reads: bool = False,
        folder: Path | None = None,
    ) -> None:
        self.directory: Final = DataDirectory(data_dir)
        self._infer: Final = infer
        self._flush_quads: Final = flush_quads
        self._idle_s: Final = idle_s
        self._folder = folder or self.directory.store
        self._write_lock = threading.Lock()
        self._turn = threading.Lock()  # acquired before the write lock by commits, but not by checkpoints
        self._updating = threading.Lock()
        self._readers: Final = Readers()
        self._writer: int | None = None
        self._unflushed = 0
        self._has_removals = False
        """Whether the log has removals of a commit by table files."""
        self._last_write = 0.0
        self._last_checkpoint = -math.inf
        self._log: Final = WriteAheadLog(self._folder)
        self._bytes = 0
        self._measured = -math.inf
        self._closing = threading.Event()
        self._address = address
        self._problem: str | None = None
        self._tried = -math.inf
        self._reads: Final = reads
        self._lock: Final = DirectoryLock(data_dir, address, reads=reads)
        self._store: pyoxigraph.Store | None = None
        try:
            self._store = self._open()
            self._head = self._load_head()
            if self._problem is None:
                judge_logs(self.directory, self._head.generation)
                self._log.acknowledge(self._head.generation)
            self._changes: Final = Changes(self._head.generation)
            self._hidden_graphs: HiddenGraphs | None = None  # loaded with the first commit or query of a tool
            self._snapshots: Final = Snapshots(
                self.directory.snapshots,
                self._checkpoint,
                lambda: self._head.generation,
                live=self._get_live,
            )
        except BaseException:
            self._store = None
            self._lock.release()
            raise
        self._flusher = threading.Thread(target=self._flush_when_idle, name="store-flush", daemon=True)
        self._flusher.start()

    def _get_live(self) -> tuple[Path, Visibility] | None:
        """Get the folder of the store as a checkpoint, while nothing can be written."""
        return (self._folder, self._get_visibility()) if self._problem is not None else None

    def _open(self) -> pyoxigraph.Store:
        if self.directory.replica.exists():
            raise StoreError(
                f"{self.directory.path} is the data directory of a replica. Serve it by `kg replica`, or make it one "
                "that takes writes: `kg replica --promote`."
            )
        require_files(self.directory)
        self._unkept_logs = keep_logs(self.directory)
        bulk_commits.remove_files(self.directory)
        try:
            store = open_engine(self._folder)
            bulk_commits.finish_commit(store, self.directory)
            return store
        except (OSError, ValueError, RuntimeError) as error:
            if self._reads and isinstance(error, OSError):
                with suppress(OSError, RuntimeError):
                    reading = pyoxigraph.Store.read_only(str(self._folder))
                    self._refuse(error)
                    return reading
            raise StoreError(
                f"Cannot open {self._folder}: {error}. If it is damaged, restore the data directory from a backup, or "
                "load the sources into a new one."
            ) from error

    @property
    def damaged_logs(self) -> list[Path]:
        """The write-ahead logs that were damaged at a start, until they are removed: commits may be lost."""
        return [*self._unkept_logs, *self.directory.find(DataDirectory.damaged_logs)]

    @property
    def problem(self) -> str | None:
        """Why writes are refused, such as a full disk, or None. Reads go on."""
        return self._problem

    def require_writable(self) -> None:
        """Raise StoreError if writes are refused now. Opens the engine again if the cause may be gone."""
        if self._problem is not None:
            with self._writing():
                pass

    def _refuse(self, error: Exception) -> None:
        self._problem = f"{self._folder} cannot be written: {error}"
        self._tried = -math.inf
        _log.warning("Writes are refused until the cause is gone: %s", self._problem)

    def _read_only(self, error: Exception) -> None:
        """Go on with reading after the engine failed to write. Call it under the write lock."""
        if self._problem is not None or self._store is None:
            return
        try:
            # All that was acknowledged is in the files. The engine does not write any more after an error.
            self._store = pyoxigraph.Store.read_only(str(self._folder))
        except (OSError, RuntimeError) as unreadable:
            _log.warning("Cannot read %s: %s", self._folder, unreadable)  # the engine that fails still reads
            return
        self._hidden_graphs = None
        self._refuse(error)

    def _recover(self) -> None:
        """Open the engine for writing again. Call it under the write lock. Raises StoreError if it is not possible."""
        if time.monotonic() - self._tried >= _RETRY_S:
            self._tried = time.monotonic()
            gc.collect()  # an error in a cycle may refer to the engine that failed, which locks the files
            try:
                store = pyoxigraph.Store(self._folder)
                bulk_commits.finish_commit(store, self.directory)
            except (OSError, RuntimeError) as error:
                self._problem = f"{self._folder} cannot be written: {error}"
            else:
                self._store, self._problem, self._hidden_graphs = store, None, None
                self._log.reset()
                self._head = self._load_head()
                self._changes.forget(self._head.generation)
                _log.warning("%s can be written again.", self._folder)
                if self._lock.problem is not None:
                    with suppress(OSError):
                        self.announce(self._address)
                return
        raise StoreError(
            f"Writes are refused: {self._problem}. Free disk space, or remove the cause; no restart is needed."
        )

    def _load_head(self) -> Head:
        """Load the counters of the last commit; count the quads if there was none."""
        store = self._opened()
        with self._engine_errors():
            if (unfinished := bulk_commits.find_unfinished_head(store, self.directory)) is not None:
                return unfinished
            held = load_counters(store)
        if held:
            try:
                return Head(held[KG.generation], held[KG.quadCount], held[KG.graphCount])
            except KeyError as error:
                raise StoreError(f"{self._folder} is damaged: {HEAD} has no {error}.") from None
        [quads, graphs] = [int(term_text(term)) for term in select(self.query, _COUNT).rows[0]]
        return Head(0, quads, graphs)

    @contextmanager
    def _reading(self) -> Iterator[pyoxigraph.Store]:
        """Provide the engine to a reader, who keeps nothing of it after the block."""
        with self._readers.enter():
            yield self._opened()

    def _opened(self) -> pyoxigraph.Store:
        store = self._store
        if store is None:
            raise StoreError(f"The store in {self.directory.path} is closed.")
        return store

    # Reading

    @clearing_frames()
    def query(self, query: str, *, limit: int | None = None) -> Result:
        """Run a trusted query in this process over the union of all graphs, with `PREFIXES` declared.

        It must not sort or count large parts of the store: over a damaged block that takes memory without bound. Raises
        QuerySyntaxError.
        """
        try:
            with self._reading() as store:
                found = store.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
                if isinstance(found, QueryBoolean):
                    return bool(found)
                if not isinstance(found, QuerySolutions):
                    return list(found if limit is None else islice(found, limit))
                variables = tuple(variable.value for variable in found.variables)
                rows = [tuple(solution) for solution in (found if limit is None else islice(found, limit + 1))]
        except SyntaxError as error:
            raise build_syntax_error(query, str(error)) from error
        except UnicodeEncodeError as error:
            raise QuerySyntaxError(f"Invalid SPARQL: lone surrogate at position {error.start}.") from None
        except (OSError, RuntimeError) as error:
            raise StoreError(f"The query failed: {error}") from error
        if limit is not None and len(rows) > limit:
            return Rows(variables, rows[:limit], truncated=True)
        return Rows(variables, rows)

    def query_sources(self, query: str, *, limit: int | None = None) -> Result:
        """Run a trusted query like `query`, over all graphs except hidden ones (`Visibility`)."""
        return self.query(self._get_visibility().exclude(query), limit=limit)

    def _get_visibility(self) -> Hidden:
        hidden = self._get_hidden_graphs()
        if hidden.has_unknown_properties:
            with self._engine_errors(), self._reading() as store:
                hidden.load_properties(store)
        return hidden.get_state()

    def find_invalidated_graphs(self) -> list[NamedNode]:
        """Find the invalidated graphs (`Patch`) that no commit has removed yet."""
        return sorted(self._get_hidden_graphs().invalidated, key=lambda graph: graph.value)

    def find_last_change(self, reads: AbstractSet[str] | None, *, users: bool = False) -> int:
        """Find the last generation that changed statements with these properties (`graph_exclusion.find_reads`).

        With `users`, statements in user graphs count too. Commits before the store was opened count as changing all.
        """
        return self._changes.find_last(reads, users=users)

    def find_last_change_of(self, subject: str) -> int:
        """Find the last generation that changed statements about the node with an IRI, in any graph."""
        return self._changes.find_last_of(subject)

    def _get_hidden_graphs(self) -> HiddenGraphs:
        found = self._hidden_graphs
        if found is not None:
            return found
        if self._writer == threading.get_ident():  # called by `describe`: this thread has the lock already
            found = self._hidden_graphs = HiddenGraphs(self._opened())
            return found
        with self._write_lock, self._engine_errors():
            found = self._hidden_graphs = self._hidden_graphs or HiddenGraphs(self._opened())
            return found

    def graph(self, graph: NamedNode) -> list[Quad]:
        """Load the quads of one named graph."""
        with self._engine_errors(), self._reading() as store:
            # Loads ask for the former graph of every new record, which the engine answers by name ten times as fast.
            return list(store.quads_for_pattern(None, None, None, graph)) if store.contains_named_graph(graph) else []

    def count(self, graph: NamedNode) -> int:
        """Count the quads of one named graph."""
        with self._engine_errors(), self._reading() as store:
            if not store.contains_named_graph(graph):
                return 0
            return sum(1 for _ in store.quads_for_pattern(None, None, None, graph))

    def contains(self, quad: Quad) -> bool:
        """Return whether the store contains `quad`."""
        with self._engine_errors(), self._reading() as store:
            return quad in store

    def graphs(self) -> list[NamedNode]:
        """Return the names of all graphs; none is empty."""
        with self._engine_errors(), self._reading() as store:
            return [name for name in store.named_graphs() if isinstance(name, NamedNode)]

    def dump(self, output: IO[bytes], media_type: RdfFormat, graph: NamedNode | None = None) -> None:
        """Write all quads, or those of one graph.

        Raises InvalidInputError for all quads in a format without named graphs.
        """
        if graph is None and not media_type.supports_datasets:
            raise InvalidInputError(f"{media_type.name} supports a single graph. Specify it, or use N-Quads or TriG.")
        try:
            with self._reading() as store:
                store.dump(output, media_type, from_graph=graph)
        except RuntimeError as error:  # but no OSError: that may be an error of `output`
            raise StoreError(f"Cannot read {self._folder}: {error}") from error

    def statistics(self) -> Statistics:
        """Get the counters, and the size of the store's files at most a second ago."""
        head, now = self._head, time.monotonic()
        if now - self._measured >= _MEASURED_EVERY_S:
            self._bytes, self._measured = get_folder_bytes(self._folder), now
        return Statistics(head.generation, head.quads, head.graphs, self._bytes)

    def snapshot(self, at_least: int = 0, *, exactly: int | None = None) -> Snapshot:
        """Get a checkpoint of generation `at_least` or later, or the existing one of `exactly`; the caller releases it.

        Under write load one is created at most every half second, unless `at_least` requires a newer one. Raises
        InvalidInputError for a generation that does not exist, and GoneError for one without a checkpoint.
        """
        self._opened()
        self._get_visibility()  # loads the properties in graphs that were invalidated since
        return self._snapshots.take(at_least, exactly)

    def pin(self, exactly: int | None = None) -> State:
        """Get the newest generation, or that of `exactly`, without writing a checkpoint; the caller releases it.

        While it is held, the next commit writes its checkpoint first. Raises the errors of `snapshot`.
        """
        self._opened()
        return self._snapshots.pin(exactly, self._get_visibility)

    # Writing

    @clearing_frames()
    def commit(
        self,
        replace: Mapping[NamedNode, Iterable[Quad]],
        describe: Describe | None = None,
    ) -> Commit:
        """Set the content of each graph in `replace` (empty: remove the graph), in one atomic step.

        Only the difference to the stored graph is written. `describe` is called under the write lock with the changes,
        and returns the accompanying changes of ``graph/prov`` and of derived graphs; they are part of the same step.
        Graphs below ``graph/ref/`` that lose their last reference are removed too, with their description in
        ``graph/prov``, and are among the changes, unless `replace` contains them.

        Raises InvalidInputError, before anything is written, for blank nodes, for quads of another graph, and for
        ``graph/prov`` in `replace`.
        """
        if PROV_GRAPH in replace:
            raise InvalidInputError(f"{PROV_GRAPH} cannot be replaced. Use `describe` to change it.")
        candidates = difference.canonical_graphs(replace)
        with self._committing() as store:
            deltas = difference.compare_all(store, candidates) + ownership.find_ceded_graphs(store, candidates)
            deltas += self._load_hidden_graphs(store).find_restored(candidates, deltas)
            if deltas:
                return self._write(store, deltas, candidates.keys(), describe)
            return Commit(self._head.generation)

    @clearing_frames()
    def extend(
        self,
        graph: NamedNode,
        quads: Iterable[Quad],
        describe: Describe | None = None,
    ) -> Commit:
        """Add `quads` to the current content of `graph`, in one atomic step. Otherwise like `commit`."""
        if graph == PROV_GRAPH:
            raise InvalidInputError(f"{PROV_GRAPH} cannot be extended. Use `describe` to change it.")
        added = difference.canonical_statements(graph, quads)
        with self._committing() as store:
            held = difference.load_statements(store, graph)
            if delta := difference.compare(graph, held, held | added):
                return self._write(store, [delta], [graph], describe)
            return Commit(self._head.generation)

    @clearing_frames()
    def write_payload(
        self,
        payload: Payload,
        describe: Describe | None = None,
        check: Callable[[Content], None] = lambda content: None,
        *,
        keep: bool = False,
    ) -> tuple[Commit, int]:
        """Replace the content of the payload's graph by it, or add it (`keep`), in one atomic step.

        Returns the commit and the former number of quads. Like `commit`, for any size: other processes do the work
        (`kg.store.payload_commits`). `check` may raise; it is called without the write lock, and again if the graph has
        changed meanwhile. The quads of the changes can be read by `describe`, and not later.
        """
        folder, graph = self.directory.snapshots, payload.graph
        for is_last in (*[False] * _CONTESTED, True):
            with (
                self._turn if is_last else nullcontext(),  # block other writers, so that the payload cannot starve
                self.snapshot(self._head.generation) as seen,
                compare_payload(payload, seen.path, folder, keep=keep) as found,
            ):
                check(found.content)
                with nullcontext() if is_last else self._turn:
                    if (commit := self._commit_comparison(found, seen.generation, describe)) is not None:
                        return commit, found.content.before
        raise QueryBusyError(f"{graph} changes all the time. Try again.")

    def _commit_comparison(self, found: Comparison, seen: int, describe: Describe | None) -> Commit | None:
        """Commit a difference from generation `seen`, unless the graph has changed. The caller blocks other writers."""
        with self.snapshot(self._head.generation) as checkpoint, self._writing():
            graph, current = found.graph, self._head.generation
            if has_touched(self._opened(), {graph}, seen, current):
                return None
            deltas = [] if found.delta is None else [found.delta]
            if not found.content.after and not deltas:
                deltas = ownership.find_ceded_graphs(self._opened(), {graph: {}})
            if not deltas:
                return Commit(current)
            if seen != current:
                deltas = [replace(delta, is_repeated=True) for delta in deltas]
            prepared = self._prepare(self._opened(), deltas, [graph], describe)
            write = partial(self._write_elsewhere, checkpoint=checkpoint.path, folder=found.folder)
            return self._finish(prepared, self._write_here if checkpoint.is_live else write)

    @clearing_frames()
    def update(
        self,
        update: str,
        *,
        default_graphs: Sequence[NamedNode] = (),
        named_graphs: Sequence[NamedNode] = (),
        limits: Limits | None = None,
        describe: Describe | None = None,
    ) -> Commit:
        """Run one SPARQL Update atomically, as a commit.

        It runs on a copy of a snapshot, in a confined process within `limits`, while others may write. The difference
        that it makes there is then committed here. If the graphs that it reads or writes have changed since, it runs
        again, and the third time with all other writers blocked. The difference is computed for the graphs whose IRIs
        are in the text, so an update with graphs that depend on the data is refused: a variable after GRAPH in a
        template, ``CLEAR ALL``, ``DROP NAMED``. All quads are in named graphs: INSERT without GRAPH or WITH is refused,
        and WHERE matches named graphs through GRAPH, WITH or USING, or the given ones. Blank nodes become IRIs
        (`kg.store.skolem`). `describe` is that of `commit`; with it, changes to ``graph/prov`` are refused.

        Raises QuerySyntaxError, QueryForbiddenError for SERVICE and LOAD, InvalidInputError for the above and for
        changes to commit records, a QueryLimitError, and the errors of `describe`.
        """
        prepared = Update(update, default_graphs, named_graphs)
        limits = limits or Limits()
        if not self._updating.acquire(timeout=limits.timeout_s):
            raise QueryBusyError(f"Other updates have been running for {limits.timeout_s:g} s. Try again.")
        try:
            for _ in range(_CONTESTED):
                outcome, seen = self._run(prepared, limits)
                with self._committing() as store:
                    if not prepared.is_outdated(store, seen, self._head.generation):
                        return self._apply(store, outcome, describe)
            with self._turn:  # block other writers, so that the update cannot starve
                outcome, _ = self._run(prepared, limits)
                with self._writing() as store:
                    return self._apply(store, outcome, describe)
        finally:
            self._updating.release()

    def refill(self, graph: NamedNode, build: Callable[[pyoxigraph.Store], Iterator[Quad]]) -> None:
        """Replace the content of an inferred graph by what `build` yields, in portions and not as a commit.

        For a graph of any size that no commit record covers. After a crash the graph is incomplete; run it again.
        """
        with self._committing() as store:
            store.remove_graph(graph)
            for portion in batched(build(store), _PORTION):
                store.bulk_extend(portion)  # a third of the time of a transaction
            self._log.sync()
            self._flush(store)

    def infer_again(self, compare: Callable[[pyoxigraph.Store], Delta | None]) -> tuple[int, int]:
        """Commit the difference that `compare` finds in an inferred graph; return the quads added and removed."""
        with self._committing() as store:
            delta = compare(store)
            if delta is None:
                return 0, 0
            self._write(store, [delta], [delta.graph], None)
        return len(delta.added), len(delta.removed)

    def commit_provenance(self, patch: Patch) -> Commit:
        """Change ``graph/prov`` alone, as a commit."""
        with self._committing() as store:
            patched = reduce_patch(store, patch)
            if not patched.added and not patched.removed:
                return Commit(self._head.generation)
            return self._write(store, [], [], lambda _: patch)

    def patch_provenance(self, patch: Patch) -> None:
        """Change ``graph/prov`` as a later version writes it, in one atomic step that no commit records.

        Records of commits can be changed too. For data whose removal would be recorded with the data in it.
        """
        with self._committing() as store:
            old = self._head
            remove = [quad for quad in patch.remove - patch.add if quad in store]
            add = [quad for quad in patch.add if quad not in store]
            head = Head(old.generation, old.quads - len(remove) + len(add), old.graphs)
            out = difference.canonical_statements(PROV_GRAPH, [*remove, *old.as_quads()])
            into = difference.canonical_statements(PROV_GRAPH, [*add, *head.as_quads()])
            with self._snapshots.changing():
                store.update(difference.build_update({PROV_GRAPH: out}, (), {PROV_GRAPH: into}))
                self._log.sync()
                self._head = head

    def _run(self, update: Update, limits: Limits) -> tuple[Outcome, int]:
        """Run `update` on a snapshot of the current generation; return the outcome and that generation."""
        with self.snapshot(self._head.generation) as snapshot:
            return update.run(snapshot, self.directory.snapshots, limits), snapshot.generation

    def _apply(self, store: pyoxigraph.Store, outcome: Outcome, describe: Describe | None) -> Commit:
        deltas = outcome.deltas(store)
        patch = Patch()
        for delta in [delta for delta in deltas if delta.graph == PROV_GRAPH]:
            if describe is not None:
                raise ForbiddenError(f"{PROV_GRAPH} is read-only. The store writes it with every commit.")
            patch = Patch(frozenset(delta.removed.values()), frozenset(delta.added.values()))
            deltas.remove(delta)
        if not deltas and not patch.add and not patch.remove:
            return Commit(self._head.generation)
        return self._write(store, deltas, [delta.graph for delta in deltas], describe or (lambda _: patch))

    def _write(
        self, store: pyoxigraph.Store, deltas: list[Delta], kept: Collection[NamedNode], describe: Describe | None
    ) -> Commit:
        """Write the difference and its consequences as one transaction; return when it is on disk."""
        return self._finish(self._prepare(store, deltas, kept, describe), self._write_here)

    def _prepare(
        self, store: pyoxigraph.Store, deltas: list[Delta], kept: Collection[NamedNode], describe: Describe | None
    ) -> PreparedCommit:
        return prepare_commit(store, self._head, self._load_hidden_graphs(store), deltas, kept, describe, self._infer)

    def _load_hidden_graphs(self, store: pyoxigraph.Store) -> HiddenGraphs:
        """Load the hidden graphs, once. Call it under the write lock."""
        self._hidden_graphs = self._hidden_graphs or HiddenGraphs(store)
        return self._hidden_graphs

    def _finish(self, prepared: PreparedCommit, write: Callable[[PreparedCommit], None]) -> Commit:
        # No reference to the engine here: `write` may have to close it.
        from kg.observability import observe_commit  # here: the import is slow, and most processes write nothing

        try:
            with observe_commit(), self._snapshots.changing():
                write(prepared)
                self._changes.follow(prepared)
                self._head = prepared.head
                if self._hidden_graphs is not None:
                    self._hidden_graphs.follow(prepared.deltas, prepared.invalidated)
            self._log.acknowledge(prepared.head.generation)
        except BaseException as error:  # also an interrupt, which may come after the engine has written
            # Whether the engine has written is unknown, so both are read again.
            self._hidden_graphs = None
            if isinstance(error, (OSError, RuntimeError)):
                self._read_only(error)
            head = self._load_head()
            self._changes.forget(head.generation)
            self._head = head
            if isinstance(error, (OSError, RuntimeError)):
                if self._head == prepared.head:
                    raise WriteUncertainError(
                        f"The write is in {self._folder}, as generation {self._head.generation}, but a power failure "
                        f"may remove it: {error}. Read the data before you repeat it."
                    ) from error
                raise StoreError(f"Cannot write the commit to {self._folder}: {error}. Nothing was written.") from error
            raise
        self._last_write = time.monotonic()
        if self._unflushed >= self._flush_quads or self._last_write - self._last_checkpoint < _WANTED_S:
            self._flush(self._opened())
        return Commit(prepared.head.generation, prepared.changes)

    def _write_here(self, prepared: PreparedCommit) -> None:
        if bulk_commits.is_bulk(prepared):
            # Its few removals wait in the log: a flush would wait for merges of files, and the next commit for it.
            bulk_commits.write_bulk(self._opened(), self._log, self.directory, prepared)
            self._has_removals = True
            return
        if dropped := bulk_commits.find_dropped(prepared):
            bulk_commits.write_removals(self._opened(), self._log, self.directory, prepared, dropped)
        else:
            self._opened().update(difference.build_update(prepared.remove, prepared.drop, prepared.add))
            self._log.sync()
        self._unflushed += sum(map(len, prepared.remove.values())) + sum(map(len, prepared.add.values()))

    def _write_elsewhere(self, prepared: PreparedCommit, checkpoint: Path, folder: Path) -> None:
        """Write from a process of its own, whose memory is returned. Meanwhile, readers read `checkpoint`."""
        update = difference.generate_update(prepared.remove, prepared.drop, prepared.add)
        if not self._exchange(pyoxigraph.Store.read_only(str(checkpoint))):
            _log.warning("Readers kept the engine busy for %g s, so a large commit is written by it.", _READERS_S)
            self._write_here(prepared)
            return
        failed: QuadciteError | None = None
        try:
            write_commit(update, self._folder, folder)
        except QuadciteError as error:
            failed = error
        finally:
            self._note_flushed()
            self._log.reset()
            try:
                self._store = pyoxigraph.Store(self._folder)
            except (OSError, RuntimeError) as error:
                self._read_only(error)
        if failed is not None:
            if self._load_head() != prepared.head:
                raise failed
            self._log.sync()

    def _exchange(self, store: pyoxigraph.Store) -> bool:
        """Replace the engine as soon as no thread reads from it, which closes it. Return whether that was possible."""
        with self._readers.wait_for_end(_READERS_S) as ended:
            if ended:
                self._store = store
        if ended and has_open(self._folder / "LOCK"):
            gc.collect()  # an error in a cycle may refer to the engine
        return ended

    @contextmanager
    def _committing(self) -> Iterator[pyoxigraph.Store]:
        """Hold the write lock, after waiting for an update that blocks other writers."""
        if self._writer == threading.get_ident():
            raise StoreError("Nested commit. `describe` may only read.")
        with self._turn, self._writing() as store:
            yield store

    @contextmanager
    def _writing(self) -> Iterator[pyoxigraph.Store]:
        """Hold the write lock."""
        with self._write_lock:
            self._writer = threading.get_ident()
            try:
                if self._problem is not None:
                    self._opened()
                    self._recover()
                with self._engine_errors():
                    yield self._opened()
            finally:
                self._writer = None

    @contextmanager
    def _engine_errors(self) -> Iterator[None]:
        """Convert errors of the engine, usually about a damaged block, to StoreError."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            raise StoreError(
                f"Cannot read or write {self._folder}: {error}. If it is damaged, restore the data directory from a "
                "backup, or load the sources into a new one."
            ) from error

    def _flush(self, store: pyoxigraph.Store) -> None:
        """Move committed quads from memory and log into tables. A failure loses no committed data."""
        try:
            require_space(self._folder, self._unflushed)
            store.flush()
        except (OSError, RuntimeError) as error:
            _log.warning("Cannot flush %s: %s", self._folder, error)
            if isinstance(error, OSError):
                self._read_only(error)
        else:
            self._note_flushed()

    def _note_flushed(self) -> None:
        self._unflushed, self._has_removals = 0, False

    def _flush_when_idle(self) -> None:
        while not self._closing.wait(self._idle_s):
            if self._problem is not None:
                with suppress(StoreError):
                    self.require_writable()
            elif self._unflushed or self._has_removals:
                idle_s = self._idle_s * (1 if self._unflushed else _IDLE_AFTER_TABLES)
                with self._write_lock:
                    if self._store is not None and time.monotonic() - self._last_write >= idle_s:
                        self._flush(self._store)

    def _checkpoint(self, folder: Path, wait: bool, made: Made) -> None:
        """Write a checkpoint to ``folder/{generation}`` and call `made`; without `wait` do nothing during a write."""
        is_writer = self._writer == threading.get_ident()
        if not is_writer and not self._write_lock.acquire(blocking=wait):
            return
        try:
            generation = self._head.generation
            path = folder / str(generation)
            if path.exists():  # a commit that failed wrote it while this thread waited
                return
            try:
                folder.mkdir(exist_ok=True)
                require_space(self._folder, self._unflushed)
                self._opened().backup(path)
            except (OSError, RuntimeError) as error:
                shutil.rmtree(path, ignore_errors=True)
                shutil.rmtree(path.with_name(f"{path.name}.tmp"), ignore_errors=True)
                if isinstance(error, OSError):
                    self._read_only(error)
                raise StoreError(f"Cannot write a checkpoint to {path}: {error}") from error
            self._note_flushed()
            self._last_checkpoint = time.monotonic()
            made(generation, self._load_hidden_graphs(self._opened()).get_state())
        finally:
            if not is_writer:
                self._write_lock.release()

    def announce(self, address: str | None) -> None:
        """Publish the URL of this process's server to processes that find the directory locked."""
        self._address = address
        try:
            self._lock.announce(address)
        except OSError as error:
            if not (self._reads and is_unwritable(error)):
                raise
            _log.warning("Commands do not find this server: its lock file cannot be written: %s", error.strerror)

    def close(self) -> None:
        """Flush and release the data directory; what cannot be flushed is in the log. A second call does nothing."""
        self._closing.set()
        with self._write_lock:
            store, self._store = self._store, None
            if store is None:
                return
            try:
                self._snapshots.close()
                if self._problem is None:
                    store.flush()
            except (OSError, RuntimeError) as error:
                _log.warning("Cannot flush %s: %s", self._folder, error)
            finally:
                del store  # closes the files, before another process may lock them
                self._lock.release()
        self._flusher.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
