"""The open knowledge graph that every tool receives: the store, its search index, and the query workers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, Self, TypeVar

from kg.access.actors import EVERYONE, Actor
from kg.access.audit import AuditLog
from kg.access.limits import bound_rows
from kg.access.policies import Policies
from kg.connectors.client import Connectors
from kg.errors import GoneError, QueryLimitError, StoreError
from kg.ingestion import FolderWatcher, Ingestion
from kg.load_log import LoadLog
from kg.load_queue import LoadQueue
from kg.processes.child import never
from kg.provenance.shipped import infer_graphs, write_shipped_graphs
from kg.queries.pool import Answer, Cancellation, QueryPool
from kg.search.index_client import EdgeIndex
from kg.search.index_sync import Progress
from kg.search.protocol import SearchIndex
from kg.search.reranker import Reranker, open_reranker
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Result, State, Store

T = TypeVar("T")

CANCELLATION: Final[ContextVar[Cancellation | None]] = ContextVar("cancellation", default=None)
"""Cancels the queries of the current call when its client disconnects; set by the server."""

CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")
"""The client of the current call, by which `QueryPool` shares its workers; set by the server."""

SENDER: Final[ContextVar[Actor]] = ContextVar("sender", default=EVERYONE)
"""The actor of the current call, recorded with what it writes; set by the server and the command line."""

PROGRESS: Final[ContextVar[Progress]] = ContextVar("progress", default=lambda done, total, doing: None)
"""Reports the progress of the current call; set by the server and the command line."""


class Lease:
    """The one state of the store that a call reads: taken with its first query, held until the call has ended."""

    def __init__(self, take: Callable[[], State]) -> None:
        self._take: Final = take
        self._taking: Final = threading.Lock()  # held while a state is taken, which may wait for a commit
        self._lock: Final = threading.Lock()  # held only briefly: a call is ended from the event loop
        self._state: State | None = None
        self._has_ended = False
        self.remarks: Final[dict[str, None]] = {}
        """Notes on data of other states that the call used."""

    def get(self) -> State:
        """Get the state. Raises QueryLimitError if the call has ended, and the errors of the store."""
        with self._taking:
            if self._state is None and not self._has_ended:
                self._keep(self._take())
            if (held := self._state) is None:
                raise QueryLimitError("The call has ended.")
            return held

    def _keep(self, taken: State) -> None:
        with self._lock:
            if not self._has_ended:
                self._state = taken
                return
        taken.release()

    def renew(self) -> None:
        """Release the state: the next query of the call takes the newest."""
        with self._taking:
            self._release()

    def end(self) -> None:
        """Release the state; no further query of the call can run. Does not wait for one that is being taken."""
        self._has_ended = True
        self._release()

    def _release(self) -> None:
        with self._lock:
            held, self._state = self._state, None
        if held is not None:
            held.release()


_LEASES: Final[ContextVar[Mapping[int, Lease]]] = ContextVar("leases", default=MappingProxyType({}))
"""The lease of the current call, by the id of its graph."""


def read_newest() -> None:
    """Have the current call read the newest state from here on.

    For calls that write: each commit of a load, of a user graph and of summaries calls it, so that the call reads what
    it wrote; so does work that takes long before it begins, since it must hold no state.
    """
    for lease in _LEASES.get().values():
        lease.renew()


class Memory:
    """A thread-safe cache of computed values that evicts the least recently used ones beyond `size`, the total weight.

    Keys include the state of the data that the value depends on (a content hash, a generation), so no value is stale.
    """

    def __init__(self, size: int = 50_000) -> None:
        self.size: Final = size
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any | None:
        """Get the value of `key`, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def keep(self, key: Hashable, value: T, weight: int = 1) -> T:
        """Store `value` for `key`, and return it. A value heavier than `size` is not stored."""
        with self._lock:
            self._weight -= self._values.pop(key, (None, 0))[1]
            if weight > self.size:
                return value
            self._values[key] = value, weight
            self._weight += weight
            while self._weight > self.size:
                self._weight -= self._values.popitem(last=False)[1][1]
        return value

    def drop(self, key: Hashable) -> None:
        """Remove the value of `key`, if there is one."""
        with self._lock:
            self._weight -= self._values.pop(key, (None, 0))[1]


class Confined(Protocol):
    """Does work of the loaders in another process; arguments and results depend on `name`."""

    def __call__(self, kg: KnowledgeGraph, name: str, *given: Any, **options: Any) -> Any:
        """Do one of `loaders.dispatch.WORK`."""


@dataclass(slots=True)
class KnowledgeGraph:
    """An open data directory. All reads and writes of the graph go through it.

    A server sets `confined`; the process that watches folders sets `watcher`.
    """

    settings: Settings
    store: Store
    search: SearchIndex
    pool: QueryPool
    raw: QueryPool | None = None
    """Workers for queries written by callers; without them, `pool` runs these too."""
    reranker: Reranker | None = None
    """Orders the first passages of a search again, if the settings name a reranker."""
    connectors: Connectors = field(default_factory=Connectors)
    """The remote MCP servers of the settings."""
    confined: Confined | None = field(default=None, repr=False)
    """Runs work of the loaders in another process (`loaders.dispatch.call`); None: it runs in this one."""
    audit: AuditLog | None = None
    """The audit log of the data directory, unless the settings turn it off."""
    announce: Callable[[str | None], None] = field(default=lambda address: None, repr=False)
    """Publishes the URL of this process to processes that find the data directory locked."""
    policies: Policies | None = field(default=None, repr=False)
    """The policies that decide about requests (`kg.tools.decisions.get_policies`); None: nobody has sent one yet."""
    audience: frozenset[str] | None = field(default=None, repr=False)
    """The graphs of a view (`kg.tools.audiences`), which has these alone; None: this is the whole graph."""
    dataset_check: Callable[[], Any] | None = field(default=None, repr=False)
    """Returns the result of the last check of the dataset shapes; set by the process that runs these checks."""
    backup_state: Callable[[], Any] | None = field(default=None, repr=False)
    """Returns the state of the backups; set by the process that writes them by itself."""
    replica_state: Callable[[], Any] | None = field(default=None, repr=False)
    """Returns the state of a replica; None: the graph is not a replica."""
    ingestion: Ingestion = field(default_factory=Ingestion, repr=False)
    """The state of the files that are loaded while they change."""
    loads: LoadLog = field(default_factory=LoadLog, repr=False)
    """The loads of this process."""
    queue: LoadQueue | None = field(default=None, repr=False)
    """The loads that clients submitted; set by a server, which runs them."""
    watcher: FolderWatcher | None = field(default=None, repr=False)
    """Watches folders. Closed with the graph."""
    memory: Memory = field(default_factory=Memory, repr=False)
    unindexed: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set after a commit that the index did not take. A server then repairs the index, and clears it."""

    @classmethod
    def open(
        cls, data_dir: Path, settings: Settings, *, reads: bool = False, replica: OxigraphStore | None = None
    ) -> Self:
        """Open `data_dir`, creating it if missing, and lock it until `close`.

        The ontology, code lists and shapes of this version are written into the store unless they are there. With
        `reads`, a directory that cannot be written now is opened too, to be read.

        Raises StoreLockedError, StoreVersionError or StoreReadOnlyError, and InvalidInputError for an invalid manifest
        of connectors.
        """
        connectors = Connectors.from_settings(settings)
        store = replica or OxigraphStore(data_dir, infer=infer_graphs, reads=reads)
        try:
            try:
                if replica is None:
                    write_shipped_graphs(store)
            except StoreError:
                if not reads or store.problem is None:
                    raise
            search = EdgeIndex(store.directory.index, settings)
        except BaseException:
            store.close()
            raise
        try:
            pool = QueryPool(store, settings)
        except BaseException:
            search.close()
            store.close()
            raise
        own = settings.model_copy(update={"data_dir": data_dir})
        reranker = open_reranker(own, search.rerank)
        audit = AuditLog.from_settings(own)
        return cls(
            own, store, search, pool, reranker=reranker, connectors=connectors, audit=audit, announce=store.announce
        )

    @property
    def raw_pool(self) -> QueryPool:
        """The workers for queries written by callers."""
        return self.raw or self.pool

    def query(
        self,
        query: str,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        raw: bool = False,
        all_graphs: bool = False,
    ) -> Answer:
        """Run a read-only query in a worker, on the state that the call reads (`reading`), or else on the newest.

        It does not read graphs that people write (``graph/user/``, ``graph/cur/``), so that no statement of a user is
        taken for that of a source; except with `all_graphs`, and with `raw`: the caller wrote the query or parts of it,
        so the limits per client apply. Raises QuerySyntaxError, QueryForbiddenError, or a QueryLimitError if it was
        stopped.
        """
        with self.reading() as lease:
            state = lease.get()
            return (self.raw_pool if raw else self.pool).run(
                query if raw or all_graphs else state.visibility.exclude(query),
                client=CALLER.get() if raw else "",
                limit=bound_rows(limit, self.settings.max_rows) if raw else limit,
                timeout_s=timeout_s,
                exactly=state.generation,
                cancellation=CANCELLATION.get(),
            )

    def ask(self, query: str) -> Result:
        """Run a query of this project like `query`, also over the graphs that people write; return its result."""
        return self.query(query, all_graphs=True).result

    def ask_sources(self, query: str) -> Result:
        """Run a query of this project; return its result."""
        return self.query(query).result

    @contextmanager
    def reading(self, exactly: int | None = None, *, or_newest: bool = False) -> Iterator[Lease]:
        """Read one state in the block: the newest when it reads first, or that of generation `exactly`; with
        `or_newest`, the newest if that one is not kept any more.

        A block within another reads the state of that one, also in threads with a copy of its context. The state is
        kept until the outermost block or the call has ended: at its deadline, or when its client disconnects. Raises
        GoneError and InvalidInputError, with the first query, for a generation that does not exist any more or yet.
        """
        if (held := _LEASES.get().get(id(self))) is not None and exactly is None:
            yield held
            return

        def take() -> State:
            try:
                return self.pool.lease(exactly)
            except GoneError:
                if not or_newest:
                    raise
            return self.pool.lease()

        lease = Lease(take)
        cancellation = CANCELLATION.get()
        on_cancel = never if cancellation is None else cancellation.on_cancel
        forget = on_cancel(lease.end)
        token = _LEASES.set({**_LEASES.get(), id(self): lease})
        try:
            yield lease
        finally:
            _LEASES.reset(token)
            forget()
            lease.end()

    @property
    def state(self) -> State:
        """The state that the call reads. Only within `reading`."""
        return _LEASES.get()[id(self)].get()

    @property
    def generation(self) -> int:
        """The generation of the state that the call reads; outside of `reading`, the newest."""
        lease = _LEASES.get().get(id(self))
        return self.store.statistics().generation if lease is None else lease.get().generation

    def close(self) -> None:
        """Stop watching, the workers and the index process, then release the data directory."""
        try:
            if self.watcher is not None:
                self.watcher.close()
        finally:
            try:
                self.pool.close()
            finally:
                try:
                    self.search.close()
                finally:
                    if self.audit is not None:
                        self.audit.close()
                    self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
