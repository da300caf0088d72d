"""The one object that every tool receives: the store, the index over it, and the workers that query it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kg.actors import EVERYONE, Actor
from kg.queries.pool import Answer, Cancellation, QueryPool
from kg.search.index_client import EdgeIndex
from kg.search.index_sync import Progress
from kg.search.protocol import SearchIndex
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Store

T = TypeVar("T")

CANCELLATION: Final[ContextVar[Cancellation | None]] = ContextVar("cancellation", default=None)
"""What stops the queries of the call in progress when whoever asked goes away; set by the server."""


CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")
"""Who makes the call in progress, as `QueryPool` tells clients apart; set by the server."""

SENDER: Final[ContextVar[Actor]] = ContextVar("sender", default=EVERYONE)
"""The actor of the call in progress, recorded with what it writes; set by the server and the command line."""

PROGRESS: Final[ContextVar[Progress]] = ContextVar("progress", default=lambda done, total, doing: None)
"""Reports the progress of the call in progress; set by the server and the command line."""


class Memory:
    """What was worked out once and stays true: values by key, the least used forgotten beyond `size`. Thread-safe.

    A key names the state of the data that the value depends on (a content hash, a generation), so nothing goes stale.
    """

    def __init__(self, size: int = 50_000) -> None:
        self.size: Final = size
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any | None:
        """Return the value kept for `key`, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Hashable, value: T) -> T:
        """Keep `value` for `key`, and return it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.size:
                self._values.popitem(last=False)
        return value


@dataclass(slots=True)
class KnowledgeGraph:
    """A data directory that is open: everything that reads or writes the graph goes through here."""

    settings: Settings
    store: Store
    search: SearchIndex
    pool: QueryPool
    raw: QueryPool | None = None
    """Workers for queries that callers write; without them those run where the tools' own do."""
    load: Callable[..., Any] | None = None
    """Loads sources; put here by the composition root, since this package never imports the loaders."""
    mention: Callable[..., Any] | None = None
    """Brings the mentions of concepts in line with texts and concepts; put here by the composition root as well."""
    receive: Callable[..., dict[str, Any]] | None = None
    """Takes in what agents send of codes; put here by the composition root as well."""
    quarantine: Mapping[str, Callable[..., dict[str, Any]]] = field(default_factory=dict, repr=False)
    """``retry`` and ``drop`` of records that a load has kept out; put here by the composition root as well."""
    announce: Callable[[str | None], None] = field(default=lambda address: None, repr=False)
    """Tells whoever finds the data directory locked at which URL this process can be asked."""
    dataset_check: Callable[[], Any] | None = field(default=None, repr=False)
    """Returns what the last check of the dataset shapes found; put here by whoever runs these checks."""
    memory: Memory = field(default_factory=Memory, repr=False)

    @classmethod
    def open(cls, data_dir: Path, settings: Settings) -> Self:
        """Open `data_dir`, making it if it is not there, and hold it until `close`.

        Raises StoreLockedError, StoreVersionError or StoreReadOnlyError when the directory cannot be had.
        """
        store = OxigraphStore(data_dir)
        try:
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
        return cls(settings.model_copy(update={"data_dir": data_dir}), store, search, pool, announce=store.announce)

    @property
    def raw_pool(self) -> QueryPool:
        """The workers for queries that callers write."""
        return self.raw or self.pool

    def query(
        self, query: str, *, limit: int | None = None, timeout_s: float | None = None, raw: bool = False
    ) -> Answer:
        """Run a read-only query in a worker over a snapshot no older than the last commit.

        `raw`: the caller has written it, or what it is made of, and has no more than a caller's share of the workers.
        Raises QuerySyntaxError, QueryForbiddenError, or a QueryLimitError when it was stopped.
        """
        return (self.raw_pool if raw else self.pool).run(
            query,
            client=CALLER.get() if raw else "",
            limit=limit,
            timeout_s=timeout_s,
            at_least=self.store.statistics().generation,
            cancellation=CANCELLATION.get(),
        )

    def close(self) -> None:
        """Stop the workers and the index process, then let go of the data directory."""
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
