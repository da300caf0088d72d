"""Loads into an open graph, one at a time, by the loaders."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kg.errors import ModelError, QueryLimitError
from kg.knowledge_graph import CANCELLATION, KnowledgeGraph, read_newest
from kg.search.index_sync import Progress
from loaders.dispatch import call

_running: Final = threading.Lock()
"""Two loads at the same time would read the same records twice. Changes of the quarantine take the lock too."""

ANSWER_AFTER_S: Final = 25.0
"""Seconds after which a tool that takes long answers, and pauses or goes on: clients of MCP give up after 30 s or more,
and see no progress until then."""
_LOOK_S: Final = 0.5
"""Seconds between two looks whether a call that waits was cancelled."""


@contextmanager
def exclusive_load(on_progress: Progress, is_stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Hold the lock for loads; while another load holds it, wait and report that.

    Raises QueryLimitError if the call is cancelled meanwhile, or `is_stopped`: its caller expects no write after that.
    """
    cancellation = CANCELLATION.get()
    if not _running.acquire(blocking=False):
        on_progress(0, None, "waiting for another load to end")
        while not _running.acquire(timeout=_LOOK_S):
            if is_stopped() or (cancellation is not None and cancellation.cancelled):
                raise QueryLimitError("The call was stopped while it waited for a load to end. Nothing was written.")
    try:
        read_newest()
        yield
    finally:
        read_newest()
        _running.release()


def load(
    kg: KnowledgeGraph,
    on_progress: Progress,
    *,
    source: str,
    paths: Sequence[str],
    prune: bool,
    wait: bool,
    replace_newer: bool = False,
    **options: str | None,
) -> dict[str, Any]:
    """Load a source as ``kg load`` does.

    The result has the ``report``, the ``warnings`` and ``layouts``, and in ``failure`` why the embeddings that were
    waited for could not be made, or None.
    """
    with kg.loads.recording(source, paths, on_progress) as (progress, keep):
        with exclusive_load(progress):
            report = call(
                kg, "load", source, list(paths), prune=prune, replace_newer=replace_newer, on_progress=progress,
                **options,
            )  # fmt: skip
        keep(report.to_dict())
        failure = None
        if wait:
            try:
                wait_for_embeddings(kg, progress)
            except ModelError as error:  # the load is committed; only its embeddings are missing
                failure = str(error)
        report.pending_vectors = kg.search.status().pending_vectors
    return {
        "report": report.to_dict(),
        "warnings": report.warnings,
        "layouts": report.layouts,
        "failure": failure,
    }


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def receive(kg: KnowledgeGraph, **sent: Any) -> dict[str, Any]:
    """Store entries of a zoning code that an agent sends (`loaders.zoning.graph.ingest`).

    Raises InvalidInputError for an impossible municipality, and QueryLimitError if another load runs for
    `ANSWER_AFTER_S`.
    """
    with exclusive_load(lambda done, total, doing: None, _after(ANSWER_AFTER_S)):
        received: dict[str, Any] = call(kg, "receive", **sent)
        return received


def store_remote(kg: KnowledgeGraph, *given: Any, seconds: float, **options: Any) -> Any:
    """Store entities that a remote server describes (`loaders.wikibase.graph.remote_entities`).

    Raises QueryLimitError if another load runs for `seconds`.
    """
    with exclusive_load(lambda done, total, doing: None, _after(seconds)):
        return call(kg, "store_remote", *given, **options)


def wait_for_embeddings(kg: KnowledgeGraph, on_progress: Progress) -> None:
    """Wait until no embedding is pending. Raises ModelError when none can be made."""
    kg.search.wait(lambda now: on_progress(now.vectors, now.vectors + now.pending_vectors, "making vectors"))
