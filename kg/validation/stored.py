"""The records of a store, checked graph by graph as the gate of a load does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyoxigraph import NamedNode, Quad, Store

from kg.validation.gate import BATCH_QUADS, RecordGate
from kg.validation.incremental import touched_since
from kg.validation.report import Violation
from kg.vocabulary import BASE, SOURCED

SOURCE_GRAPHS: Final = (SOURCED, BASE + "graph/ref/")
"""Where the records stand that record shapes are for."""


def record_graphs(store: Store, since: int | None = None) -> list[NamedNode]:
    """Return the names of the graphs of records, in order; graphs of other kinds are passed over.

    `since`: only those that commits after this generation touched and that are still there.

    Raises InvalidInputError for a generation that does not exist.
    """
    names = store.named_graphs() if since is None else filter(store.contains_named_graph, touched_since(store, since))
    found = [name for name in names if isinstance(name, NamedNode) and name.value.startswith(SOURCE_GRAPHS)]
    return sorted(found, key=lambda name: name.value)


def record_results(store: Store, graphs: Iterable[NamedNode], gate: RecordGate) -> Iterator[Violation]:
    """Check each of `graphs` by itself, some at a time, and yield the results in their order."""
    batch: dict[NamedNode, list[Quad]] = {}
    size = 0
    for name in graphs:
        batch[name] = list(store.quads_for_pattern(None, None, None, name))
        size += len(batch[name])
        if size >= BATCH_QUADS:
            yield from _checked(batch, gate)
            batch.clear()
            size = 0
    yield from _checked(batch, gate)


def _checked(batch: dict[NamedNode, list[Quad]], gate: RecordGate) -> Iterator[Violation]:
    results = gate.check(batch)
    for name in batch:
        yield from results.get(name, ())
