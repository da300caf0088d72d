"""The open knowledge graph that every tool receives: the store, its search index, and the query workers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kg.actors import EVERYONE, Actor
from kg.connectors.client import Connectors
from kg.errors import StoreError
from kg.ingestion import FolderWatcher, Ingestion
from kg.load_log import LoadLog
from kg.provenance.shipped import infer_graphs, write_shipped_graphs
from kg.queries.pool import Answer, Cancellation, QueryPool
from kg.search.index_client import EdgeIndex
from kg.search.index_sync import Progress
from kg.search.protocol import SearchIndex
from kg.search.reranker import Reranker, open_reranker
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Store

T = TypeVar("T")

CANCELLATION: Final[ContextVar[Cancellation | None]] = ContextVar("cancellation", default=None)
"""Cancels the queries of the current call when its client disconnects; set by the server."""

CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")
"""The client of the current call, by which `QueryPool` shares its workers; set by the server."""

SENDER: Final[ContextVar[Actor]] = ContextVar("sender", default=EVERYONE)
"""The actor of the current call, recorded with what it writes; set by the server and the command line."""

PROGRESS: Final[ContextVar[Progress]] = ContextVar("progress", default=lambda done, total, doing: None)
"""Reports the progress of the current call; set by the server and the command line."""


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


@dataclass(slots=True)
class KnowledgeGraph:
    """An open data directory. All reads and writes of the graph go through it.

    The composition root sets `load`, `mention`, `align`, `extract`, `find_entities`, `receive`, `store_remote`,
    `quarantine` and `watcher`, since this package never imports loaders.
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
    load: Callable[..., Any] | None = None
    """Loads sources."""
    mention: Callable[..., Any] | None = None
    """Updates the mentions of concepts after changes of texts or concepts."""
    align: Callable[..., Any] | None = None
    """Proposes alignments of names with concepts, by the embedding model."""
    extract: Callable[..., Any] | None = None
    """Asks a chat model about sections of codes that the rules of extraction are unsure of."""
    find_entities: Callable[..., Any] | None = None
    """Finds the entities and relations of files that have changed."""
    receive: Callable[..., dict[str, Any]] | None = None
    """Ingests entries of zoning codes sent by agents."""
    store_remote: Callable[..., Any] | None = None
    """Stores entities of Wikidata from the answers of a remote server."""
    quarantine: Mapping[str, Callable[..., dict[str, Any]]] = field(default_factory=dict, repr=False)
    """``list``, ``retry`` and ``drop`` of quarantined records."""
    announce: Callable[[str | None], None] = field(default=lambda address: None, repr=False)
    """Publishes the URL of this process to processes that find the data directory locked."""
    dataset_check: Callable[[], Any] | None = field(default=None, repr=False)
    """Returns the result of the last check of the dataset shapes; set by the process that runs these checks."""
    ingestion: Ingestion = field(default_factory=Ingestion, repr=False)
    """The state of the files that are loaded while they change."""
    loads: LoadLog = field(default_factory=LoadLog, repr=False)
    """The loads of this process."""
    watcher: FolderWatcher | None = field(default=None, repr=False)
    """Watches folders; set by the composition root. Closed with the graph."""
    memory: Memory = field(default_factory=Memory, repr=False)
    unindexed: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set after a commit that the index did not take. A server then repairs the index, and clears it."""

    @classmethod
    def open(cls, data_dir: Path, settings: Settings, *, reads: bool = False) -> Self:
        """Open `data_dir`, creating it if missing, and lock it until `close`.

        The ontology, code lists and shapes of this version are written into the store unless they are there. With
        `reads`, a directory that cannot be written now is opened too, to be read.

        Raises StoreLockedError, StoreVersionError or StoreReadOnlyError, and InvalidInputError for an invalid manifest
        of connectors.
        """
        connectors = Connectors.from_settings(settings)
        store = OxigraphStore(data_dir, infer=infer_graphs, reads=reads)
        try:
            try:
                write_shipped_graphs(store)
            except StoreError:
                if not reads or store.problem is None:
                    raise
            search = EdgeIndex(data_dir / "index", settings)
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
        return cls(own, store, search, pool, reranker=reranker, connectors=connectors, announce=store.announce)

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
        """Run a read-only query in a worker over a snapshot no older than the last commit.

        It does not read graphs that people write (``graph/user/``, ``graph/cur/``), so that no statement of a user is
        taken for that of a source; except with `all_graphs`, and with `raw`: the caller wrote the query or parts of it,
        so the limits per client apply. Raises QuerySyntaxError, QueryForbiddenError, or a QueryLimitError if it was
        stopped.
        """
        reads_all = raw or all_graphs
        while True:
            version = None if reads_all else self.store.hidden_graphs_version()
            answer = (self.raw_pool if raw else self.pool).run(
                query if reads_all else self.store.exclude_hidden_graphs(query),
                client=CALLER.get() if raw else "",
                limit=limit,
                timeout_s=timeout_s,
                at_least=self.store.statistics().generation,
                cancellation=CANCELLATION.get(),
            )
            # A graph that a user has written in the meantime was perhaps read.
            if reads_all or self.store.hidden_graphs_version() == version:
                return answer

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
                    self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
