"""Child processes: started, asked, killed at a deadline, and what their end means as an error.

A child that stalls, exhausts memory or crashes costs only the caller whose text it handles: an error. A child
limits itself by `kg.processes.confine`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import kg
from kg import interruption
from kg.errors import (
    InvalidInputError,
    PayloadTooLargeError,
    QueryForbiddenError,
    QueryLimitError,
    QueryMemoryError,
    QuerySyntaxError,
    QueryTimeoutError,
    StoreError,
)
from kg.processes import frames, task
from kg.processes.frames import Frame
from kg.text import to_single_line
from kg.vocabulary import PREFIXES

_ROOT: Final = str(Path(kg.__file__).parents[1])
_START: Final = (
    "import sys; from importlib import import_module; sys.path.append(sys.argv.pop(1)); "
    "import_module(sys.argv.pop(1)).main()"
)
_PIPE_BYTES: Final = 1_048_576
_READ_BYTES: Final = 1 << 18
_JOINED_BYTES: Final = 65_536
_ENDING_S: Final = 1.0
_CPU_CLOCK: Final = 2
"""The clock of a process on Linux is named by its inverted number and this one, as clock_getcpuclockid(3) does."""

_POSITION: Final = re.compile(
    r"(?:Parser error )?(?:at line \d+ (?:between columns \d+ and \d+|column \d+)"
    r"|between line \d+ column \d+ and line \d+ column \d+): |(?:(?<!\s)\s++)?\(line \d+\)$"
)
_UNDECLARED: Final = re.compile(r"[Pp]refix (\w+):? has not been declared")
_MESSAGE_CHARACTERS: Final = 500
_BY_CODE: Final = {
    error.code: error
    for error in (
        InvalidInputError,
        PayloadTooLargeError,
        QuerySyntaxError,
        QueryForbiddenError,
        QueryLimitError,
        QueryMemoryError,
    )
}

OnCancel = Callable[[Callable[[], object]], Callable[[], object]]
"""Has the function that stops a process called when its caller goes away, until the returned one is called."""


def never(stop: Callable[[], object]) -> Callable[[], object]:
    """Never call `stop`: the caller does not go away."""
    return lambda: None


class ChildGoneError(Exception):
    """The child's pipes closed before its answer was complete."""


class ChildLateError(ChildGoneError):
    """The child did not answer before the deadline."""


def command(module: str, *arguments: str) -> list[str]:
    """Build the command that runs `main()` of a module of Quadcite, with `arguments` in ``sys.argv[1:]``.

    The interpreter is isolated (-I): no module of the working folder can shadow one of ours.
    """
    return [sys.executable, "-I", "-c", _START, _ROOT, module, *arguments]


class Child:
    """A process that exchanges frames with this one. One thread may send while another receives; any may `kill`.

    Deadlines are times of the monotonic clock. `inherited` are descriptors that the process has open too.
    """

    def __init__(
        self, command: Sequence[str], *, stderr: int | None = subprocess.DEVNULL, inherited: Sequence[int] = ()
    ) -> None:
        self.process: Final = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            process_group=0,
            pass_fds=inherited,
        )
        assert self.process.stdin is not None  # noqa: S101 -- PIPE above
        assert self.process.stdout is not None  # noqa: S101 -- PIPE above
        self._requests: Final = self.process.stdin.fileno()
        self.answers: Final = self.process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self.answers, False)
        with contextlib.suppress(AttributeError, OSError):  # Linux has it, and bounds the size of a user's pipes
            fcntl.fcntl(self.answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._buffer = bytearray()

    def send(self, kind: bytes, payload: bytes, deadline: float = math.inf) -> None:
        """Write one frame; blocks while the pipe is full. Raises ChildGoneError, ChildLateError."""
        header = frames.HEADER.pack(kind, len(payload))
        # A large payload is not copied, a small one goes out in one call.
        for part in (header + payload,) if len(payload) < _JOINED_BYTES else (header, payload):
            rest = memoryview(part)
            while rest:
                try:
                    rest = rest[os.write(self._requests, rest) :]
                except BlockingIOError:
                    _wait(self._requests, select.POLLOUT, deadline)
                except BrokenPipeError:
                    raise ChildGoneError from None

    def poll_frame(self) -> Frame | None:
        """Return the next frame, or None while it is incomplete. Raises ChildGoneError at the end."""
        while (frame := pop_frame(self._buffer)) is None:
            try:
                piece = os.read(self.answers, _READ_BYTES)
            except BlockingIOError:
                return None
            if not piece:
                raise ChildGoneError
            self._buffer += piece
        return frame

    def wait_readable(self, deadline: float = math.inf) -> None:
        """Block until more of an answer, or the end, can be read. Raises ChildLateError."""
        _wait(self.answers, select.POLLIN, deadline)

    def receive(self, deadline: float = math.inf) -> Frame:
        """Wait for the next frame and return it. Raises ChildGoneError, ChildLateError."""
        while (frame := self.poll_frame()) is None:
            self.wait_readable(deadline)
        return frame

    def get_processor_s(self) -> float | None:
        """Get the seconds of processor time that the process has used; None where the system does not report it."""
        try:
            return time.clock_gettime((~self.process.pid << 3) | _CPU_CLOCK)
        except OSError:
            return None

    def kill(self) -> None:
        """Kill the process, from any thread."""
        self.process.kill()

    def describe_end(self) -> str | None:
        """Describe how a process ended whose pipes are closed; None if it still runs a second later."""
        try:
            code = self.process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return None
        if code == -signal.SIGKILL:
            return "killed, as the system does when memory is short"
        if code == -signal.SIGBUS:
            return "ended by SIGBUS, as when a disk is full or a file is damaged"
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def end(self) -> int:
        """Kill the process, wait for its end, close its pipes; return its exit code."""
        self.process.kill()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        return code


def pop_frame(buffer: bytearray) -> Frame | None:
    """Remove the first frame from `buffer` and return it; None while it is incomplete."""
    if len(buffer) < frames.HEADER.size:
        return None
    kind, size = frames.HEADER.unpack_from(buffer)
    end = frames.HEADER.size + size
    if len(buffer) < end:
        return None
    with memoryview(buffer) as view:
        payload = bytes(view[frames.HEADER.size : end])
    del buffer[:end]
    return kind, payload


def _wait(descriptor: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    left_ms = None if deadline == math.inf else max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(left_ms):
        raise ChildLateError


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one process; `max_bytes` is those of its output (of a graph: as N-Quads), `max_quads` of its input."""

    timeout_s: float = 10.0
    memory_bytes: int = 512 << 20
    max_bytes: int = 256 << 20
    max_quads: int | None = None


_REMOTE_CONTEXT: Final = "No LoadDocumentCallback"
"""A part of the message of the JSON-LD parser for a context that is an IRI."""


class SyntaxFaultError(InvalidInputError):
    """The text breaks its grammar.

    `place` is the line and column in words, if the parser reports them. `fault` is the rest of its message, followed by
    the declaration to add if a predefined prefix is not declared.
    """

    def __init__(self, message: str, line: int | None, column: int | None) -> None:
        self.place = "" if line is None else f"line {line}" if column is None else f"line {line}, column {column}"
        message = to_single_line(message, _MESSAGE_CHARACTERS)  # the parser quotes a token of any length
        self.fault = _POSITION.sub("", message)
        if _REMOTE_CONTEXT in message:
            self.fault = "it refers to a remote @context, which is not fetched. Write the context into the document"
        prefix = _UNDECLARED.search(message)
        if prefix and prefix[1] in PREFIXES:
            self.fault += f"; add @prefix {prefix[1]}: <{PREFIXES[prefix[1]]}> ."
        super().__init__(f"{self.place}: {self.fault}" if self.place else self.fault)


@contextlib.contextmanager
def run_task(
    name: str,
    data: bytes,
    settings: Mapping[str, Any],
    limits: Limits,
    *,
    what: str,
    folder: Path | None = None,
    module: str = task.__name__,
    on_cancel: OnCancel = never,
) -> Iterator[Path]:
    """Run one task in a process of its own and yield the folder with its output, which is deleted after the block.

    `what` names the text in errors, `folder` is where the working folder is created (by default, a temporary one that
    the next process removes if this one is killed), `module` one whose `main` calls that of `kg.processes.task`, and
    `on_cancel` that of a `Cancellation`. Raises SyntaxFaultError, PayloadTooLargeError, InvalidInputError,
    QueryTimeoutError, QueryMemoryError, QueryLimitError (cancelled), or StoreError.
    """
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(interruption.temporary_folder())
        working = stack.enter_context(
            tempfile.TemporaryDirectory(prefix=f"{name}-", dir=folder, ignore_cleanup_errors=True)
        )
        options = {
            **settings,
            "task": name,
            "folder": working,
            "timeout_s": limits.timeout_s,
            "memory_bytes": limits.memory_bytes,
            "max_bytes": limits.max_bytes,
            "max_quads": limits.max_quads,
        }
        reply = _ask_once(module, json.dumps(options).encode(), data, limits, what, on_cancel)
        if reply:
            raise _error(reply, what)
        yield Path(working)


def _ask_once(
    module: str, options: bytes, data: bytes, limits: Limits, what: str, on_cancel: OnCancel
) -> dict[str, Any]:
    stopped = threading.Event()
    deadline = time.monotonic() + limits.timeout_s
    child = Child(command(module))

    def stop() -> None:
        stopped.set()
        child.kill()

    answer = b""
    forget = on_cancel(stop)
    try:
        child.send(b"S", options, deadline)
        child.send(b"D", data, deadline)
        _, answer = child.receive(deadline)
    except ChildLateError:
        raise QueryTimeoutError(
            f"{_capitalized(what)} was stopped at its deadline of {limits.timeout_s:g} s. Nothing has changed."
        ) from None
    except ChildGoneError:
        pass
    finally:
        code = child.end()
        forget()
    if stopped.is_set():
        raise QueryLimitError(f"{_capitalized(what)} was cancelled.")
    if not answer:
        raise QueryMemoryError(
            f"{_capitalized(what)} ended its process (exit code {code}): it needs more than "
            f"{limits.memory_bytes >> 20} MiB of memory, or is nested too deeply. Nothing has changed."
        )
    reply: dict[str, Any] = json.loads(answer)
    return reply


def _error(reply: Mapping[str, Any], what: str) -> Exception:
    message = reply["message"]
    match reply["kind"]:
        case "syntax" if reply["line"] is None and "update" in what:
            return QuerySyntaxError(f"Not a SPARQL update: {message}")
        case "syntax":
            return SyntaxFaultError(message, reply["line"], reply["column"])
        case "size":
            return PayloadTooLargeError(f"{_capitalized(what)} is too large: {message}.")
        case "raised":
            return _BY_CODE[reply["code"]](message)
        case "invalid":
            return InvalidInputError(f"{_capitalized(what)} cannot be used: {message}")
        case _:
            return StoreError(f"{_capitalized(what)} cannot be run: {message}")


def _capitalized(what: str) -> str:
    return what[0].upper() + what[1:]
