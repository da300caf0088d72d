"""The tools `submit_load`, `load_status` and `cancel_load`: loads in the queue of the server, one at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Final

from pydantic import Field

from kg.access.actors import ADMIN
from kg.errors import InvalidInputError, StoreError
from kg.knowledge_graph import CANCELLATION, PROGRESS, SENDER, KnowledgeGraph
from kg.load_queue import ENDED, LoadQueue, QueuedLoad, State
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader
from kg.retrieval.results import Layout, Lean, Limit, Offset, Result
from kg.text import list_or, quoted
from loaders.load_options import EARLIER_NAMES, SOURCES, list_options

MOST_LOCATIONS: Final = 1_000
WAIT_S: Final = 25
"""Maximum seconds of a call that waits for a load: clients of MCP give up after 30 s or more."""
_LOOK_S: Final = 0.5
SHOWN: Final = 8
"""Maximum locations of a load that are listed."""

COUNTS: Final = ("loaded", "skipped", "removed", "rejected", "quads_added", "quads_removed", "pending_vectors")

Location = Annotated[str, Field(min_length=1, max_length=4_000)]
LoadNumber = Annotated[int, Field(ge=1, description="Number of the load, from submit_load")]


class Load(Lean):
    """A load in the queue."""

    number: int
    source: str
    locations: list[str] | None = Field(None, description=f"The first {SHOWN} ones; for the scope admin")
    state: State
    submitted: datetime
    submitted_by: str
    schedule: str | None = Field(None, description="The schedule that submitted it")
    began: datetime | None = None
    ended: datetime | None = None
    doing: str | None = Field(None, description="The step in progress")
    done: int | None = Field(None, description="Units of this step that are done")
    total: int | None = Field(None, description="Units of this step, if known")
    counts: dict[str, int] | None = Field(None, description="Records by outcome, once the load is done")
    error: NoteText | None = None


class Loads(Result):
    """Loads, the newest first."""

    layout: ClassVar[Layout] = Layout(paged=("loads",))

    loads: list[Load]


def submit_load(
    kg: KnowledgeGraph,
    source: Annotated[str, Field(max_length=40, description=f"One of {', '.join(SOURCES)}")],
    locations: Annotated[
        list[Location],
        Field(min_length=1, max_length=MOST_LOCATIONS, description="Files, folders or patterns on the server"),
    ],
    prune: Annotated[bool, Field(description="Remove stored records that are no longer at the locations")] = False,
    options: Annotated[
        dict[Annotated[str, Field(max_length=40)], Annotated[str, Field(max_length=400)]] | None,
        Field(max_length=10, description="Options of the source, as of `kg load`: chamber, collection, ..."),
    ] = None,
) -> Loads:
    """Add a load to the queue of the server, and return its number at once.

    Use for loads that take long, or from several clients: one runs at a time, in the order of submission, also after a
    restart. Needs the scope admin. Returns the load: number, state.
    Example: submit_load(source="climate", locations=["laws.csv"]).
    Next: `load_status` with its number, `cancel_load`.
    """
    name, given = check_source(source, options or {})
    load = _get_queue(kg).submit(name, locations, client=SENDER.get().name, prune=prune, options=given)
    return Reader(kg).finish(Loads(loads=[_describe(load)]))


def check_source(source: str, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Check the name of a source and those of its options, and return the present name and the options.

    Raises InvalidInputError with those that exist.
    """
    name = EARLIER_NAMES.get(source, source)
    if name not in SOURCES:
        raise InvalidInputError(f"Unknown source {quoted(source)}. Available: {list_or(SOURCES)}.")
    known = list_options(name)
    if unknown := sorted(options.keys() - set(known)):
        raise InvalidInputError(
            f"Unknown options of {name}: {', '.join(map(quoted, unknown))}. Available: {', '.join(known) or 'none'}."
        )
    return name, dict(options)


def load_status(
    kg: KnowledgeGraph,
    number: Annotated[LoadNumber | None, Field(description="Number of one load; absent: the newest loads")] = None,
    wait_s: Annotated[int, Field(ge=0, le=WAIT_S, description="Seconds to wait for the end of the load `number`")] = 0,
    limit: Limit = 10,
    offset: Offset = 0,
) -> Loads:
    """Report loads of the queue: state, progress, counts of records, error.

    Use to follow a load after submit_load, or to see what waits. wait_s lets the call wait for the end of one load.
    Returns loads, the newest first. The scope admin also reads locations and errors.
    Example: load_status(number=3, wait_s=20).
    Next: `cancel_load`; `list_resources` once it is done.
    """
    queue = _get_queue(kg)
    if number is not None:
        return Reader(kg).finish(Loads(loads=[_describe(_await(queue, number, wait_s))]))
    found = queue.list(offset + limit + 1)[offset:]
    result = Loads(loads=[_describe(each) for each in found[:limit]])
    return Reader(kg).finish(result, next_offset=offset + limit if len(found) > limit else None)


def cancel_load(kg: KnowledgeGraph, number: LoadNumber) -> Loads:
    """Cancel a load that waits or runs. Stored records remain; a later load of the same files completes it.

    Use for a load that was submitted by mistake. Needs the scope admin. Returns the load, whose state is cancelled once
    it has stopped.
    Example: cancel_load(number=3).
    Next: `load_status`.
    """
    return Reader(kg).finish(Loads(loads=[_describe(_get_queue(kg).cancel(number))]))


def _get_queue(kg: KnowledgeGraph) -> LoadQueue:
    if kg.queue is None:
        raise StoreError("Loads are queued by a server. Start one with `kg serve`, or load with `kg load`.")
    return kg.queue


def _await(queue: LoadQueue, number: int, seconds: float) -> QueuedLoad:
    """Wait for the end of a load, and report its progress as that of this call."""
    cancellation, end = CANCELLATION.get(), time.monotonic() + seconds
    load = queue.get(number)
    while load.state not in ENDED and (left := end - time.monotonic()) > 0:
        if cancellation is not None and cancellation.cancelled:
            break
        load = queue.wait(number, load, min(left, _LOOK_S))
        PROGRESS.get()(load.done, load.total, load.doing or load.state)
    return load


def _describe(load: QueuedLoad) -> Load:
    runs = load.state == "running"
    # Locations and errors have paths of the server, and parts of files that could not be read.
    sees_paths = ADMIN in SENDER.get().scopes
    return Load(
        number=load.number,
        source=load.source,
        locations=[*load.locations[:SHOWN]] if sees_paths else None,
        state=load.state,
        submitted=load.submitted,
        submitted_by=load.client,
        schedule=load.label or None,
        began=load.began,
        ended=load.ended,
        doing=load.doing or None if runs else None,
        done=load.done if runs else None,
        total=load.total if runs else None,
        counts=None if load.report is None else {name: load.report[name] for name in COUNTS if name in load.report},
        error=load.error if load.error is None or sees_paths else "Senders with the scope admin read the reason.",
    )
