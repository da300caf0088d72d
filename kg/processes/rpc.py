"""Remote procedure calls to a child process: several at a time, each with a deadline; it is restarted when it dies.

Requests and answers are frames of JSON with a number. `Connection` is the side that asks, `serve` the one that answers.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeVar

from pydantic_core import PydanticSerializationError, from_json, to_json

from kg import errors
from kg.errors import IndexUnavailableError, InvalidInputError, QuadciteError
from kg.files import is_unwritable
from kg.processes import confine, frames
from kg.processes.child import Child, ChildGoneError, ChildLateError
from kg.processes.leases import Leases

log = logging.getLogger(__name__)

ATTEMPTS: Final = 4
_CLOSING_S: Final = 60.0

OPENING_S: Final = 120.0
"""Maximum seconds for the process to open the folder."""

SILENT_S: Final = 8.0
"""Seconds without any answer or any work, although calls wait, after which the process is killed."""

BUSY_S: Final = 60.0
"""Seconds without any answer after which it is killed although it works: Qdrant Edge holds the GIL while it opens a
large shard, and no ping is answered then."""

SUSPECT_S: Final = 0.25
"""Maximum seconds for a read after another one was late and nothing was answered since."""

_PAUSE_S: Final = 2.0
"""Seconds after a failure to open in which reads do not start another process."""

_SILENT: Final = "it did not answer"
_ENDING_S: Final = 2.0
_PING_S: Final = 2.0
_WORK_S: Final = 0.01
"""Processor time that counts as work: threads of an idle process wake up for some microseconds."""

LONG_S: Final = 120.0
"""Maximum seconds for an answer to other operations, such as a write, which may wait for others."""

T = TypeVar("T")


class RestartedProcess:
    """A process that starts at the first request, and again when it has died or was killed because it did not answer.

    A subclass gives the command, the first request and the limits. Requests block, each up to its deadline, and are
    safe from any thread.
    """

    name = "process"
    """What messages call it."""
    timeouts: Mapping[str, float] = {}
    """Maximum seconds for an answer by operation; by default `LONG_S`."""
    reads: Collection[str] = ()
    """Operations that, if they have a time limit, give up soon while the process answers nothing, see `SUSPECT_S`."""
    _inherited: Sequence[int] = ()
    """Descriptors of files that the process has open too, until it ends."""

    def __init__(self) -> None:
        self.calls: Final[Leases[Future[Any]]] = Leases()
        """Calls that wait for an answer, each in a thread that gives it up at its deadline."""
        self._starting = threading.Lock()
        self._connection: Connection | None = None
        self._opening: Future[Connection] | None = None
        self._opened_once = False
        self._failed: tuple[float, str] | None = None
        """Time of the last failure to open, by the monotonic clock, and its message."""
        self._closed = False

    def _build_command(self) -> Sequence[str]:
        raise NotImplementedError

    def _open(self, connection: Connection) -> None:
        """Send the first request."""
        raise NotImplementedError

    def _retry(self, work: Callable[[Connection], T], wait_s: float = OPENING_S, attempts: int = ATTEMPTS) -> T:
        """Run `work`, which must be safe to run twice, on a live process, waiting `wait_s` for its start."""
        how = "stopped"
        for _ in range(attempts):
            connection = self._connect(wait_s)
            try:
                return work(connection)
            except ChildGoneError:
                self._discard(connection)
                how = connection.ended or how
                if not self._closed:
                    log.warning("The %s has died (%s). Restarting it.", self.name, how)
        times = "again" if attempts == 1 else f"{attempts} times in a row"
        raise IndexUnavailableError(
            f"The {self.name} died {times} ({how}). Its messages are on standard error. The next request starts it "
            "again, and the graphs that the index lacks are indexed again from the store: there is nothing to delete. "
            "If it dies at every start, look first for too little memory or disk. Then stop the program, delete the "
            "folder of the index and run `kg reindex`: the index is derived data."
        )

    def _require_rest(self) -> None:
        """Raise IndexUnavailableError for a while after it could not be started: reads do not start another one."""
        failed = self._failed
        if failed is not None and time.monotonic() < failed[0] + _PAUSE_S:
            raise IndexUnavailableError(failed[1])

    def _connect(self, wait_s: float = OPENING_S) -> Connection:
        with self._starting:
            if self._closed:
                raise IndexUnavailableError(f"The {self.name} is closed.")
            if self._connection is not None:
                return self._connection
            if self._opening is None:
                self._opening = Future()
                threading.Thread(target=self._start, args=[self._opening], name="opening", daemon=True).start()
            opening = self._opening
        try:
            return opening.result(wait_s)
        except TimeoutError:
            raise IndexUnavailableError(f"The {self.name} is being started.") from None
        except IndexUnavailableError as error:
            raise IndexUnavailableError(str(error)) from error

    def _start(self, opening: Future[Connection]) -> None:
        """Start the process and send the first request, in a thread that no caller waits for beyond its deadline."""
        try:
            connection = Connection(
                self._build_command(), self.calls, self.name, self.timeouts, self.reads, self._inherited
            )
            try:
                self._open(connection)
            except IndexUnavailableError:
                connection.stop()
                raise
            except ChildGoneError:
                # Damage can end the process instead of raising: the next start counts that, and builds a new index.
                connection.await_end()
                log.warning("The %s died while it was started (%s).", self.name, connection.ended)
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

    def _discard(self, connection: Connection) -> None:
        with self._starting:
            if self._connection is connection:
                self._connection = None
        connection.await_end()
        connection.stop()

    def _end(self) -> None:
        """Have the process finish its writes, and wait for its end."""
        with self._starting:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was sent."""

    answer: Future[Any]
    begun: float
    limit_s: float


class Connection:
    """A running process: any thread sends requests, one thread hands out the answers."""

    def __init__(
        self,
        command: Sequence[str],
        calls: Leases[Future[Any]],
        name: str,
        timeouts: Mapping[str, float],
        reads: Collection[str],
        inherited: Sequence[int] = (),
    ) -> None:
        self._name, self._timeouts, self._reads = name, timeouts, reads
        self._alive = True
        self.opened = False
        """Whether it has answered."""
        self.ended: str | None = None
        """How it ended, once it has."""
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
        self._reader = threading.Thread(
            target=self._read, args=(command, inherited, started), name="replies", daemon=True
        )
        self._reader.start()
        self.child = started.result()

    def call(self, operation: str, timeout_s: float | None = None, **arguments: Any) -> Any:
        """Run one operation and return its result or raise its error; ChildGoneError if the process has ended.

        Raises IndexUnavailableError if there is no answer within `timeout_s`, by default that of the operation.
        """
        return self.wait(self.begin(operation, timeout_s, **arguments))

    def begin(self, operation: str, timeout_s: float | None = None, **arguments: Any) -> Call:
        """Send a request, for whose answer the caller has to `wait`. Raises as `call`."""
        limit_s = self._timeouts.get(operation, LONG_S) if timeout_s is None else timeout_s
        if self._late and operation in self._reads and timeout_s is not None:
            limit_s = min(limit_s, SUSPECT_S)
        call = Call(Future(), time.monotonic(), limit_s)
        deadline = call.begun + limit_s
        number = next(self._ids)
        request = {"id": number, "operation": operation, "arguments": arguments}
        try:
            message = _encode(request)
        except UnicodeEncodeError as error:
            surrogate = f"U+{ord(error.object[error.start]):04X}"
            raise InvalidInputError(f"The text contains a lone surrogate ({surrogate}), not a character.") from None
        self._calls.take(call.answer, deadline)
        try:
            self._send(number, message, call.answer, deadline)
        except TimeoutError:
            self._calls.release(call.answer)
            raise self._note_late(call) from None
        except BaseException:
            self._calls.release(call.answer)
            raise
        return call

    def wait(self, call: Call) -> Any:
        """Wait for the answer to a request until its deadline. Raises as `call`."""
        try:
            return call.answer.result(max(0.0, call.begun + call.limit_s - time.monotonic()))
        except TimeoutError:
            raise self._note_late(call) from None
        finally:
            self._calls.release(call.answer)

    def _note_late(self, call: Call) -> IndexUnavailableError:
        self._late = self.heard < call.begun
        return IndexUnavailableError(
            f"The {self._name} did not answer within {call.limit_s:g} s. It is restarted if it does not answer at all."
        )

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
            log.warning("The %s ended before it was closed.", self._name)
        else:
            self._reader.join(_CLOSING_S)
        self.stop()

    def await_end(self) -> None:
        """Wait for the end of a process that a call has found gone, to learn how it ended."""
        self._reader.join(_ENDING_S)

    def stop(self) -> None:
        """Kill the process if it still runs; every waiting call raises ChildGoneError."""
        self.ended = self.ended or "stopped"
        self.child.kill()
        self._reader.join()

    def _read(self, command: Sequence[str], inherited: Sequence[int], started: Future[Child]) -> None:
        try:
            process = Child(command, stderr=None, inherited=inherited)
        except OSError as error:
            started.set_exception(IndexUnavailableError(f"The {self._name} cannot be started: {error}"))
            return
        started.set_result(process)
        with suppress(ChildGoneError):
            while True:
                reply = from_json(self._await_frame(process))
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
        self.ended = self.ended or process.describe_end()
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
                    log.warning("The %s has not answered for %.0f s. It is killed.", self._name, silent_s)
                    self.ended = _SILENT
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


def read(requests: BinaryIO) -> dict[str, Any] | None:
    """Read a request; None when nobody can send another one."""
    frame = frames.read(requests)
    found: dict[str, Any] | None = None if frame is None else from_json(frame[1])
    return found


def _encode(message: Mapping[str, Any]) -> bytes:
    """Encode a message as JSON, in a third of the time of the standard library. Raises UnicodeEncodeError."""
    try:
        return to_json(message)
    except PydanticSerializationError:  # does not say at which character
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


class Answers:
    """The answers of this process, which any thread sends through the pipe `answers`."""

    def __init__(self, answers: int) -> None:
        self._answers, self._sending = answers, threading.Lock()

    def send(self, request: Mapping[str, Any], run: Callable[..., Any]) -> None:
        """Run the operation of a request, and send its result or error."""
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            reply["result"] = run(**request["arguments"])
        except QuadciteError as error:
            reply["error"] = [type(error).__name__, str(error)]
        except Exception as error:  # Qdrant Edge raises plain Exception; the client gets it, the process continues
            # The message of a full disk is enough.
            log.error(
                "The search index failed at %r: %s", request["operation"], error, exc_info=not is_unwritable(error)
            )
            reply["error"] = [IndexUnavailableError.__name__, f"The search index failed: {error}"]
        with self._sending, suppress(BrokenPipeError):  # of a client that is gone, whose requests have ended too
            confine.write_all(self._answers, frames.encode(b"R", _encode(reply)))


def serve(
    requests: BinaryIO,
    answers: Answers,
    operations: Mapping[str, Callable[..., Any]],
    pools: Mapping[str, Executor],
    others: Executor,
) -> None:
    """Answer requests until the client closes or is gone, by the threads of each operation, or those of the others."""
    while (request := read(requests)) is not None:
        name = request["operation"]
        if name == "ping":  # here, so that it is answered however busy the threads are
            answers.send(request, lambda: None)
            continue
        pools.get(name, others).submit(answers.send, request, operations[name])
        if name == "close":
            break
