"""Queries that are asked ahead, several at a time: the store lets other threads run while it evaluates one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from kg.store.protocol import Term
from kg.validation.compiler import Query

Row = tuple[Term, ...]

KEPT_ROWS: Final = 1000
"""Rows that are kept of a query that was asked ahead; one that has more is asked again when they are wanted."""
_THREADS: Final = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


def ask_ahead(queries: Sequence[Query], rows: Callable[[str], Iterator[Row]]) -> Mapping[str, Sequence[Row]]:
    """Return all rows of each query by its text, but for queries that have many; `rows` asks one.

    Most queries over sound data have none, and looking for them is all that takes time.
    """
    if _THREADS == 1:
        return {}

    def found(query: Query) -> Sequence[Row] | None:
        if query.probe and not any(True for _ in rows(query.probe)):
            return ()
        first = list(islice(rows(query.text), KEPT_ROWS + 1))
        return first if len(first) <= KEPT_ROWS else None

    with ThreadPoolExecutor(_THREADS) as threads:
        answers = zip(queries, threads.map(found, queries), strict=True)
        return {query.text: answer for query, answer in answers if answer is not None}
