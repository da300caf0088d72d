"""The loads that clients and schedules submit, run by a server while it is up."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kg.errors import QueryLimitError
from kg.knowledge_graph import CANCELLATION, PROGRESS, KnowledgeGraph
from kg.load_queue import LoadQueue, QueuedLoad
from kg.load_schedule import Schedule, scheduling
from kg.queries.pool import Cancellation
from kg.search.index_sync import Progress
from kg.tools import commands

log = logging.getLogger(__name__)


@contextlib.contextmanager
def running_loads(kg: KnowledgeGraph, schedules: Sequence[Schedule]) -> Iterator[None]:
    """Run the loads that clients and schedules submit, until the block ends."""

    def run(load: QueuedLoad, progress: Progress, cancellation: Cancellation) -> dict[str, Any]:
        def report(done: int, total: int | None, doing: str) -> None:
            if cancellation.cancelled:
                raise QueryLimitError("The load was cancelled. The committed records remain.")
            progress(done, total, doing)

        tokens = PROGRESS.set(report), CANCELLATION.set(cancellation)
        try:
            done = commands.load(kg, load.source, [*load.locations], load.prune, options=dict(load.options))
        finally:
            PROGRESS.reset(tokens[0])
            CANCELLATION.reset(tokens[1])
        result: dict[str, Any] = done["report"]
        log.info("Load %d of %s: %s", load.number, load.label or load.source, _summarize(result))
        return result

    if kg.store.problem is not None:  # a disk that cannot be written
        yield
        return
    queue = LoadQueue(kg.settings.data_dir)
    with queue.working(run), scheduling(queue, schedules):
        kg.queue = queue
        try:
            yield
        finally:
            kg.queue = None


def _summarize(report: Mapping[str, Any]) -> str:
    changes = {name: report[name] for name in ("loaded", "removed", "rejected") if report[name]}
    return ", ".join(f"{number:,} {name}" for name, number in changes.items()) or "nothing changed"
