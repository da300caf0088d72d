"""Validation in a child process, for data and shapes that come from outside.

The process has a deadline, a memory limit, no sockets, and writes one file of bounded size: if it stalls, runs
out of memory or crashes, only its caller gets an error. Few run at a time, and clients take turns.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final, Literal

from kg.errors import QueryBusyError, QueryTimeoutError
from kg.observability import observe_validation
from kg.processes.admission import FairQueue
from kg.processes.child import Limits, OnCancel, never, run_task
from kg.processes.leases import Leases
from kg.shacl import child

Suite = Literal["record", "open-record", "dataset"]
"""The shapes that ship with Quadcite: for records, closed or open, and for the whole store."""


@dataclass(frozen=True, slots=True)
class Document:
    """An RDF document. Relative IRIs are resolved against `base_iri`; errors use `name`."""

    data: bytes
    media_type: str = "text/turtle"
    base_iri: str = "urn:x-pasted:data"
    name: str = "data"


@dataclass(frozen=True, slots=True)
class Stored:
    """One graph of a checkpoint of a store, or the union of all its graphs."""

    snapshot: Path
    graph: str | None = None


@dataclass(frozen=True, slots=True)
class TripleFiles:
    """Files of N-Triples, as one graph."""

    paths: Sequence[Path]


@dataclass(frozen=True, slots=True)
class Job:
    """One validation.

    `form` is the format of the report: ``text``, ``json``, ``sarif``, the media type of an RDF format, or ``summary``,
    the JSON of `report_summary.summarize` with `examples` of each group. `checked` names the validated data in a few
    words. `focus` limits the focus nodes to these, unless it is empty. `most` is the number of results of each severity
    in the report, without it all.
    """

    data: Document | Stored | TripleFiles
    shapes: Document | Suite
    form: str
    checked: str
    examples: int = 3
    focus: tuple[str, ...] = ()
    most: int | None = None


class ReportFile(FileIO):
    """An open report. Its reader may be gone before it is complete, so it closes itself."""

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a validation. `report` is the open file of the report, which its reader closes."""

    report: ReportFile
    conforms: bool
    """Whether no result has the severity ``Violation``."""
    counts: Mapping[str, int]
    """Results by severity."""
    looked: bool
    """Whether a target of the shapes selected any node."""
    notes: Sequence[str]
    """Remarks on the meaning of the shapes."""
    by_pyshacl: Mapping[str, str]


def validate_isolated(
    job: Job,
    limits: Limits,
    *,
    on_cancel: OnCancel = never,
    folder: Path | None = None,
    module: str = child.__name__,
) -> Outcome:
    """Run `job` in a process, with its files in `folder`.

    `module` is a module whose `main` calls that of `kg.shacl.child`, and may locate the sources of results.

    Raises InvalidInputError for data or shapes that cannot be used (with line and column, or the shape, the term and
    the rule), QueryForbiddenError for SERVICE and its like in shapes, QueryTimeoutError, QueryMemoryError, and
    QueryLimitError where the report is too large or the job is cancelled.
    """
    data = job.data.data if isinstance(job.data, Document) else b""
    shapes = job.shapes.data if isinstance(job.shapes, Document) else b""
    settings: dict[str, Any] = {
        "data": _describe(job.data),
        "shapes": _describe(job.shapes) if isinstance(job.shapes, Document) else job.shapes,
        "sizes": [len(data), len(shapes)],
        "form": job.form,
        "checked": job.checked,
        "examples": job.examples,
        "focus": job.focus,
        "most": job.most,
    }
    try:
        with (
            observe_validation(),
            run_task(
                "validation",
                data + shapes,
                settings,
                limits,
                what="the validation",
                folder=folder,
                module=module,
                on_cancel=on_cancel,
            ) as made,
        ):
            verdict = json.loads((made / child.VERDICT).read_bytes())
            # The folder is deleted; the open file remains until it is closed.
            report = ReportFile(made / child.REPORT)
    except QueryTimeoutError:
        raise QueryTimeoutError(
            f"The validation was stopped at its deadline of {limits.timeout_s:g} s. Validate one graph, use fewer "
            "shapes, or run `kg validate`, which has no deadline."
        ) from None
    return Outcome(report, **verdict)


def _describe(part: Document | Stored | TripleFiles) -> dict[str, Any]:
    if isinstance(part, TripleFiles):
        return {"files": list(map(str, part.paths))}
    if isinstance(part, Stored):
        return {"snapshot": str(part.snapshot), "graph": part.graph}
    return {"media_type": part.media_type, "base_iri": part.base_iri, "name": part.name}


class Places:
    """Places for validations: `at_once` at a time, `per_client` of one client, of which `waiting` more may wait.

    `queue` may wait in total. Thread-safe.
    """

    def __init__(self, at_once: int = 2, per_client: int = 1, waiting: int = 3, queue: int = 16) -> None:
        self.running: Final[Leases[threading.Event]] = Leases()
        """Validations that have a place. Their processes end by the limits of the job."""
        self._lock = threading.Lock()
        self._queue: FairQueue[threading.Event] = FairQueue(
            "validations", places=at_once, per_client=per_client, client_queue=waiting, queue=queue
        )

    @contextmanager
    def take(self, client: str, patience_s: float, seconds: float = math.inf) -> Iterator[None]:
        """Hold a place for the block, which ends within `seconds`; wait for one for at most `patience_s`.

        Raises ClientBusyError and QueryBusyError where too many wait, and QueryBusyError where none is free in time.
        """
        turn = threading.Event()
        with self._lock:
            if self._queue.occupy(client):
                turn.set()
            else:
                self._queue.wait(client, turn)
        try:
            if not turn.wait(patience_s):
                raise QueryBusyError(f"No place for a validation was free within {patience_s:g} s. Try again later.")
            self.running.take(turn, time.monotonic() + seconds, client=client)
            yield
        finally:
            self.running.release(turn)
            with self._lock:
                if not self._queue.withdraw(client, turn):  # not waiting any more: it has a place
                    self._queue.release(client)
                while (following := self._queue.next()) is not None:
                    following.set()


PLACES: Final = Places()
"""The places of this server process."""
