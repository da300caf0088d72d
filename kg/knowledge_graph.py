"""The one object that every tool receives: the store, the index over it, and the workers that query it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kg.search.edge import EdgeIndex
from kg.search.protocol import SearchIndex
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Store
from kg.store.sandbox import Answer, QueryPool


@dataclass(slots=True)
class KnowledgeGraph:
    """A data directory that is open: everything that reads or writes the graph goes through here."""

    settings: Settings
    store: Store
    search: SearchIndex
    pool: QueryPool
    load: Callable[..., Any] | None = None
    """Loads sources; put here by the composition root, since this package never imports the loaders."""

    @classmethod
    def open(cls, data_dir: Path, settings: Settings) -> Self:
        """Open `data_dir`, making it if it is not there, and hold it until `close`.

        Raises StoreLockedError, StoreVersionError or StoreReadOnlyError when it cannot be had.
        """
        store = OxigraphStore(data_dir)
        try:
            search = EdgeIndex(data_dir / "index", settings)
            pool = QueryPool(store, settings)
        except BaseException:
            store.close()
            raise
        return cls(settings, store, search, pool)

    def query(self, query: str, *, limit: int | None = None, timeout_s: float | None = None) -> Answer:
        """Run a read-only query in a worker over a snapshot no older than the last commit.

        Raises QuerySyntaxError, QueryForbiddenError, or a QueryLimitError when it was stopped.
        """
        return self.pool.run(query, limit=limit, timeout_s=timeout_s, at_least=self.store.statistics().generation)

    def close(self) -> None:
        """Stop the workers and the index process, then let go of the data directory."""
        self.pool.close()
        self.search.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
