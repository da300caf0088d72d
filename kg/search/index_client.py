"""The embedded search index: Qdrant Edge in a process of its own, which this client starts, fills and restarts."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from pydantic import SecretStr

from kg import errors
from kg.errors import IndexUnavailableError, InvalidInputError, ModelError
from kg.processes import child
from kg.processes.child import Child, ChildGoneError, ChildLateError
from kg.processes.leases import Leases
from kg.search.protocol import (
    Candidate,
    Codes,
    Conditions,
    Counts,
    GraphUnits,
    IndexedUnit,
    IndexStatus,
    Mode,
    Ranking,
    UnitKind,
)
from kg.settings import Settings

log = logging.getLogger(__name__)

_ATTEMPTS = 4
_UNITS_PER_MESSAGE = 200
_CHARACTERS_PER_MESSAGE = 1_000_000
_UNITS_PER_REPLACEMENT = 2_000
_GRAPHS_PER_REPLACEMENT = 200
_POLL_S = 0.1
_CLOSING_S = 60.0

TIMEOUT_S: Final = {
    "status": 2.0, "rank": 5.0, "rerank": 1.0, "count": 5.0, "load_codes": 5.0, "embed": 30.0, "state": 60.0,
    "await_embedder": 70.0,
}  # fmt: skip
"""Maximum seconds for an answer of the process by operation; `rerank` adds its own limit."""

WRITE_TIMEOUT_S: Final = 120.0
"""Maximum seconds of one write, which may wait for others."""

COPY_TIMEOUT_S: Final = 600.0
"""Maximum seconds of a copy of the index."""

OPENING_S: Final = 120.0
"""Maximum seconds for the process to open the folder."""

FIRST_WAIT_S: Final = 30.0
"""Maximum seconds that a read waits for the first start, and the first search for the embedding model.

After a restart a read waits as long as for an answer, and a search half as long for the model."""

SILENT_S: Final = 8.0
"""Seconds without any answer or any work, although calls wait, after which the process is killed."""

BUSY_S: Final = 60.0
"""Seconds without any answer after which it is killed although it works: Qdrant Edge holds the GIL while it opens a
large shard, and no ping is answered then."""

SUSPECT_S: Final = 0.25
"""Maximum seconds for a read after another one was late and nothing was answered since."""

_PAUSE_S: Final = 2.0
"""Seconds after a failure to open in which reads do not start another process."""

_PING_S: Final = 2.0
_WORK_S: Final = 0.01
"""Processor time that counts as work: threads of an idle process wake up for some microseconds."""
_FIRST_STATUS_S: Final = 10.0
_READS: Final = frozenset(("status", "rank", "rerank", "embed", "count", "load_codes"))

_T = TypeVar("_T")


class EdgeIndex:
    """A SearchIndex in `path`. The process starts at the first call, and is restarted when it has died or is stopped.

    Calls block, each up to its deadline, and are safe from any thread. IndexUnavailableError means that the process
    cannot be started (another one has locked the folder, or it cannot be written), keeps dying, or did not answer in
    time. A process that answers nothing, not even a ping, is killed: after `SILENT_S` if it takes no processor time,
    after `BUSY_S` if it does.
    """

    command: ClassVar[Sequence[str]] = child.command("kg.search.index_process")

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._settings = settings
        self._starting = threading.Lock()
        self._writing = threading.Lock()
        self._connection: _Connection | None = None
        self._opening: Future[_Connection] | None = None
        self._opened_once = False
        self._has_ranked = False
        self._failed: tuple[float, str] | None = None
        """Time of the last failure to open, by the monotonic clock, and its message."""
        self._known = IndexStatus(0, 0, 0, settings.model)
        """The counts as last read."""
        self.calls: Final[Leases[Future[Any]]] = Leases()
        """Calls that wait for an answer, each in a thread that gives it up at its deadline."""
        self._missing = 0
        """Graphs of the store that the index lacks, as noted last."""
        self._closed = False

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        """Replace the units of these graphs; the new ones are searchable by text on return."""
        with self._writing:
            for part in _split_replacement(graphs):
                self._retry(partial(_replace, part=part))

    def remove(self, graphs: Iterable[str]) -> None:
        """Delete all units of these graphs."""
        with self._writing:
            for part in _split_list(list(graphs), _GRAPHS_PER_REPLACEMENT):
                self._retry(partial(_remove, graphs=part))

    def state(self) -> dict[str, str]:
        """Return the content hash of each graph in the index; a graph with an interrupted replacement has none."""
        state: dict[str, str] = self._retry(lambda connection: connection.call("state"))
        return state

    def rank(
        self,
        query: str,
        *,
        units: Sequence[str] | None = None,
        parents: Sequence[str] | None = None,
        limit: int,
        mode: Mode = "hybrid",
        must: Sequence[str] = (),
        codes: Conditions = (),
        counted: int = 0,
        kind: UnitKind = "text",
    ) -> Ranking:
        """Return the best `limit` units of a kind for `query` by fused score (or by `mode`), equal scores by IRI.

        With `units`, each of these is scored (0 if it is not in the index) and the ranking is exhaustive. Otherwise the
        index searches as deep as needed for the first `limit` to be exact, so a shorter page is the beginning of a
        longer one; the ranking is exhaustive if nothing is left beyond `limit`.

        With `must`, only units with all of these words are ranked, in their text, title or names; words match as in
        a query: in any form (`tariff` matches `Tariffs`), without accents. A stop word matches nothing. With `codes`,
        only units that meet these conditions. With `counted`, so many of the units that match come with their codes.
        """
        if limit < 1:
            raise InvalidInputError(f"Invalid limit {limit}. It must be at least 1.")
        if units is not None and parents is not None:
            raise InvalidInputError("Give units or parents, not both.")
        return self._rank(
            query=query,
            units=None if units is None else list(units),
            parents=None if parents is None else list(parents),
            limit=limit,
            mode=mode,
            must=list(must),
            codes=_to_lists(codes),
            counted=counted,
            kind=kind,
        )

    def _rank(self, **arguments: Any) -> Ranking:
        # The first one waits for the embedding model, but not as long as this side waits for the answer.
        limit_s = TIMEOUT_S["rank"] if self._has_ranked else FIRST_WAIT_S
        until = time.monotonic() + limit_s / 2
        found = self._ask("rank", limit_s, until=until, **arguments)
        self._has_ranked = True
        candidates = tuple(Candidate(*fields) for fields in found["candidates"])
        incomplete = self._describe_missing(found["lost"])
        return Ranking(
            candidates,
            found["exhaustive"] and incomplete is None,
            found["model"],
            found["pending"],
            found["units"],
            incomplete=incomplete,
            counted={iri: found["codes"][number] for iri, number in found["counted"]},
            near=found["near"],
        )

    def _describe_missing(self, lost: int) -> str | None:
        """Describe the missing graphs and shards; `lost` is the number of shards that could not be opened."""
        if self._missing:
            return (
                f"the search index lacks {self._missing:,} graphs of the store, or has them in an older state. They "
                "are being indexed."
            )
        if lost:
            return (
                f"{lost} shard(s) of the search index were missing or unreadable. Their texts are indexed again when "
                "the index is compared with the store: by a running server, or by `kg reindex`."
            )
        return None

    def note_missing(self, graphs: int) -> None:
        """Note how many graphs of the store the index lacks; see `SearchIndex.note_missing`."""
        self._missing = graphs
        if not graphs:
            with self._writing:
                self._retry(lambda connection: connection.call("note_complete"))

    def count(self, fields: Sequence[str], codes: Conditions = ()) -> Counts:
        """Count the units that meet `codes`, exactly, and by each value of `fields`."""
        found = self._ask("count", fields=list(fields), codes=_to_lists(codes))
        return Counts(**found)

    def load_codes(self, units: Sequence[str]) -> Mapping[str, Codes]:
        """Return the codes of those of `units` that are in the index, with their ``parent``."""
        found: dict[str, Codes] = self._ask("load_codes", units=list(units))
        return found

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        """Return a unit vector for each of a few hundred short texts, or None if no vectors are being computed."""
        vectors: list[list[float]] | None = self._ask("embed", texts=list(texts))
        return vectors

    def rerank(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Score texts by the cross-encoder in `Settings.reranker_path`. Raises ModelError if that takes longer."""
        until = time.monotonic() + seconds  # the clock of all processes
        timeout_s = seconds + TIMEOUT_S["rerank"]
        scores: list[float] = self._ask("rerank", timeout_s, query=query, texts=list(texts), until=until)
        return scores

    def status(self) -> IndexStatus:
        """Return counts, or without an answer those of the last one and the problem; never waits for work.

        A process that answers other calls meanwhile is busy and has no problem.
        """
        begun = time.monotonic()
        try:
            self._known = self._load_status()
        except IndexUnavailableError as error:
            connection = self._connection
            if connection is None or connection.heard < begun:
                return replace(self._known, problem=str(error))
        return self._known

    def wait(self, progress: Callable[[IndexStatus], None] | None = None) -> None:
        """Block until no vector is pending, or raise ModelError when none can be made."""
        # Until the embedder is open, it is unknown whether the stored vectors are of its model.
        self._retry(lambda connection: connection.call("await_embedder"))
        while True:
            status = self._load_status()
            if progress is not None:
                progress(status)
            if not status.pending_vectors:
                return
            if status.embedder_error is not None:
                raise ModelError(status.embedder_error)
            time.sleep(_POLL_S)

    def copy(self, target: Path) -> dict[str, str]:
        """Copy the files of the index into a new folder, between two writes; return the SHA-256 of the bytes read.

        Raises IndexUnavailableError.
        """
        with self._writing:
            connection = self._connect()
            try:
                read: dict[str, str] = connection.call("copy", COPY_TIMEOUT_S, target=str(target))
            except ChildGoneError:
                self._discard(connection)
                raise IndexUnavailableError(f"The index process of {self._path} died while it copied.") from None
            return read

    def close(self) -> None:
        """Stop the index process after its acknowledged writes are safe."""
        with self._writing:
            with self._starting:
                self._closed = True
                connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _load_status(self) -> IndexStatus:
        found = self._ask("status", first_wait_s=_FIRST_STATUS_S)
        return IndexStatus(**found["status"], incomplete=self._describe_missing(found["lost"]))

    def _ask(
        self, operation: str, timeout_s: float | None = None, first_wait_s: float = FIRST_WAIT_S, **arguments: Any
    ) -> Any:
        """Run an operation that reads, within `timeout_s` and as long again for a restart of the process."""
        limit_s = TIMEOUT_S[operation] if timeout_s is None else timeout_s
        wait_s = limit_s if self._opened_once else max(limit_s, first_wait_s)
        failed = self._failed
        if failed is not None and time.monotonic() < failed[0] + _PAUSE_S:
            raise IndexUnavailableError(failed[1])
        return self._retry(lambda connection: connection.call(operation, limit_s, **arguments), wait_s)

    def _retry(self, work: Callable[[_Connection], _T], wait_s: float = OPENING_S) -> _T:
        """Run `work`, which must be safe to run twice, on a live process, waiting `wait_s` for its start."""
        for _ in range(_ATTEMPTS):
            connection = self._connect(wait_s)
            try:
                return work(connection)
            except ChildGoneError:
                self._discard(connection)
                if not self._closed:
                    log.warning("The index process of %s has died. Restarting it.", self._path)
        raise IndexUnavailableError(
            f"The index process of {self._path} died {_ATTEMPTS} times in a row. Its messages are on standard error. "
            "The index is derived data: stop the program, delete that folder and run `kg reindex` to rebuild it."
        )

    def _connect(self, wait_s: float = OPENING_S) -> _Connection:
        with self._starting:
            if self._closed:
                raise IndexUnavailableError(f"The search index in {self._path} is closed.")
            if self._connection is not None:
                return self._connection
            if self._opening is None:
                self._opening = Future()
                threading.Thread(target=self._open, args=[self._opening], name="index-opening", daemon=True).start()
            opening = self._opening
        try:
            return opening.result(wait_s)
        except TimeoutError:
            raise IndexUnavailableError(f"The search index in {self._path} is being opened.") from None
        except IndexUnavailableError as error:
            raise IndexUnavailableError(str(error)) from error

    def _open(self, opening: Future[_Connection]) -> None:
        """Start the process and have it open the folder, in a thread that no caller waits for beyond its deadline."""
        try:
            connection = self._start()
        except Exception as error:  # noqa: BLE001 -- the callers raise it
            with self._starting:
                self._opening, self._failed = None, (time.monotonic(), str(error))
            opening.set_exception(error)
            return
        with self._starting:
            self._opening, self._failed, self._opened_once = None, None, connection.opened
            closed = self._closed
            if not closed:
                self._connection = connection
        if closed:
            connection.stop()
        opening.set_result(connection)

    def _start(self) -> _Connection:
        connection = _Connection(self.command, self.calls)
        try:
            connection.call("open", OPENING_S, folder=str(self._path), settings=self._model_settings())
        except IndexUnavailableError:
            connection.stop()
            raise
        except ChildGoneError:
            # Damage can end the process instead of raising: the next start counts that, and builds a new index.
            log.warning("The index process of %s died while it opened the folder.", self._path)
        return connection

    def _discard(self, connection: _Connection) -> None:
        with self._starting:
            if self._connection is connection:
                self._connection = None
        connection.stop()

    def _model_settings(self) -> dict[str, Any]:
        """Collect the settings of the process, with secrets: it inherits the environment, but not arguments."""
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else _to_json(value)
            for name, value in self._settings
            if name.startswith(("model", "embedding", "reranker_path")) and value is not None
        }


class _Connection:
    """A running index process: any thread sends requests, one thread hands out the replies."""

    def __init__(self, command: Sequence[str], calls: Leases[Future[Any]]) -> None:
        self._alive = True
        self.opened = False
        """Whether it has answered."""
        self._late = False
        """Whether a call was late and nothing was answered since it began."""
        self.heard = time.monotonic()
        """When it answered last."""
        self._ids = itertools.count()
        self._sending = threading.Lock()
        self._calls = calls
        self._waiting: dict[int, tuple[Future[Any], float]] = {}
        """Calls without an answer, also those that were given up, and their times."""
        started: Future[Child] = Future()
        # Linux kills the process when the thread that started it ends, so that thread must last as long: the reader.
        self._reader = threading.Thread(target=self._read, args=(command, started), name="index-replies", daemon=True)
        self._reader.start()
        self.child = started.result()

    def call(self, operation: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Run one operation and return its result or raise its error; ChildGoneError if the process has ended.

        Raises IndexUnavailableError if there is no answer within `timeout_s`, by default that of the operation.
        """
        limit_s = TIMEOUT_S.get(operation, WRITE_TIMEOUT_S) if timeout_s is None else timeout_s
        if self._late and operation in _READS:
            limit_s = min(limit_s, SUSPECT_S)
        begun = time.monotonic()
        deadline = begun + limit_s
        answer: Future[Any] = Future()
        number = next(self._ids)
        request = {"id": number, "operation": operation, "arguments": arguments}
        try:
            message = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError as error:
            surrogate = f"U+{ord(error.object[error.start]):04X}"
            raise InvalidInputError(f"The text contains a lone surrogate ({surrogate}), not a character.") from None
        self._calls.take(answer, deadline)
        try:
            self._send(number, message, answer, deadline)
            return answer.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            self._late = self.heard < begun
            raise IndexUnavailableError(
                f"The search index did not answer within {limit_s:g} s. It is restarted if it does not answer at all."
            ) from None
        finally:
            self._calls.release(answer)

    def _send(self, number: int, message: bytes, answer: Future[Any], deadline: float) -> None:
        """Send a request. Raises TimeoutError if another one is being sent until the deadline."""
        if not self._sending.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise TimeoutError
        try:
            if not self._alive:
                raise ChildGoneError
            self._waiting[number] = answer, time.monotonic()
            try:
                # Not up to the deadline: half a request would be the begin of the next one. If the process is stopped,
                # the reader kills it, which ends the sending.
                self.child.send(b"Q", message)
            except ChildGoneError:
                self._waiting.pop(number, None)
                raise
        finally:
            self._sending.release()

    def close(self) -> None:
        """Have the process finish its writes, and wait for its end."""
        try:
            self.call("close", _CLOSING_S)
        except (ChildGoneError, IndexUnavailableError):
            log.warning("The index process ended before it was closed.")
        else:
            self._reader.join(_CLOSING_S)
        self.stop()

    def stop(self) -> None:
        """Kill the process if it still runs; every waiting call raises ChildGoneError."""
        self.child.kill()
        self._reader.join()

    def _read(self, command: Sequence[str], started: Future[Child]) -> None:
        try:
            process = Child(command, stderr=None)
        except OSError as error:
            started.set_exception(IndexUnavailableError(f"The index process cannot be started: {error}"))
            return
        started.set_result(process)
        with suppress(ChildGoneError):
            while True:
                reply = json.loads(self._await_frame(process))
                self.heard, self._late = time.monotonic(), False
                answer, _ = self._waiting.pop(reply["id"], (None, 0.0))
                if answer is None:  # of a ping
                    continue
                self.opened = True
                if "error" in reply:
                    name, message = reply["error"]
                    answer.set_exception(getattr(errors, name)(message))
                else:
                    answer.set_result(reply["result"])
        process.kill()  # so that a sender that waits for room in its pipe gives up the lock
        with self._sending:
            self._alive = False
            waiting, self._waiting = self._waiting, {}
            process.end()
        for answer, _ in waiting.values():
            answer.set_exception(ChildGoneError())

    def _await_frame(self, process: Child) -> bytes:
        """Wait for the next reply, with pings while calls wait. Raises ChildGoneError if there is none for too long."""
        worked, seen = time.monotonic(), process.get_processor_s() or 0.0
        while (frame := process.poll_frame()) is None:
            try:
                process.wait_readable(time.monotonic() + _PING_S)
            except ChildLateError:
                if (used := process.get_processor_s() or 0.0) >= seen + _WORK_S:
                    worked, seen = time.monotonic(), used
                waiting = list(self._waiting.values())
                if not self.opened or not waiting:
                    continue
                now = time.monotonic()
                silent_s = now - max(self.heard, min(since for _, since in waiting))
                idle_s = min(silent_s, now - worked)
                if idle_s > SILENT_S or silent_s > BUSY_S:
                    log.warning("The index process has not answered for %.0f s. It is killed.", silent_s)
                    raise ChildGoneError from None
                self._ping(process)
        return frame[1]

    def _ping(self, process: Child) -> None:
        """Ask for a sign of life, unless a request is being sent: the process does not read, or reads that one."""
        if self._sending.acquire(blocking=False):
            try:
                with suppress(ChildLateError):  # a full pipe; a message of this size is written whole or not at all
                    process.send(b"Q", b'{"id":-1,"operation":"ping","arguments":{}}', time.monotonic())
            finally:
                self._sending.release()


def _replace(connection: _Connection, part: Mapping[str, GraphUnits]) -> None:
    """Replace a few graphs, in messages so small that writing one does not block the other threads."""
    connection.call("begin", graphs=list(part))
    batch: list[list[Any]] = []
    characters = 0
    for graph, content in part.items():
        for unit in content.units:
            batch.append(_to_fields(unit, graph))
            characters += len(unit.text) + len(unit.prelude) + len(unit.names)
            if len(batch) == _UNITS_PER_MESSAGE or characters >= _CHARACTERS_PER_MESSAGE:
                connection.call("put", units=batch)
                batch, characters = [], 0
    if batch:
        connection.call("put", units=batch)
    connection.call("finish", hashes={graph: content.content_sha256 for graph, content in part.items()})


def _remove(connection: _Connection, graphs: Sequence[str]) -> None:
    connection.call("remove", graphs=list(graphs))


def _to_lists(conditions: Conditions) -> list[dict[str, list[str]]]:
    return [{name: list(values) for name, values in condition.items()} for condition in conditions]


def _to_fields(unit: IndexedUnit, graph: str) -> list[Any]:
    if unit.graph != graph:
        raise InvalidInputError(f"The unit {unit.iri} is in graph {unit.graph}, but was given for {graph}.")
    return [
        unit.iri,
        unit.graph,
        unit.parent,
        unit.text,
        unit.prelude,
        unit.language,
        unit.in_context,
        unit.names,
        unit.in_parts,
        {name: list(values) for name, values in unit.codes.items()},
    ]


def _split_replacement(graphs: Mapping[str, GraphUnits]) -> Iterator[dict[str, GraphUnits]]:
    """Split a replacement into parts, begun and finished one by one: few enough graphs to repeat after a crash."""
    part: dict[str, GraphUnits] = {}
    units = 0
    for graph, content in graphs.items():
        part[graph] = content
        units += len(content.units)
        if units >= _UNITS_PER_REPLACEMENT or len(part) == _GRAPHS_PER_REPLACEMENT:
            yield part
            part, units = {}, 0
    if part:
        yield part


def _split_list(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _to_json(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else str(value)
