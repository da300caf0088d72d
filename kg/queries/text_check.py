"""Long texts are read in a process of their own, and a few at a time.

Whoever cuts a hostile megabyte into tokens does nothing else for seconds, and in this process everybody would wait with
it. What can be told at a glance (`kg.sparql.guard.is_cheap_to_check`) is told here; else a process is asked, which may
take `READING_S` seconds for it and `_MEMORY_BYTES`, gives way to all others, and whose end costs only whoever sent the
text. It stays for the next text.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import resource
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import kg
from kg.errors import (
    InvalidInputError,
    QuadciteError,
    QueryBusyError,
    QueryMemoryError,
    QuerySyntaxError,
    QueryTimeoutError,
)
from kg.sparql import guard, service
from kg.sparql.guard import Form
from kg.sparql.service import Clause, Prologue

READING_S: Final = 5.0
"""Seconds that one text may take to be read, and to wait for its turn."""
AT_ONCE: Final = 2
"""Texts that are read at the same time."""
MAX_TOKENS: Final = 20_000
"""Tokens of one SERVICE clause."""
_MEMORY_BYTES: Final = 512 << 20
_CPU_S: Final = 20
"""Seconds of computing after which a process is replaced."""
_NICENESS: Final = 5
_SIZE: Final = struct.Struct("=Q")
# A pickle ends where it says; what follows tells whether the process takes another text.
_STAYS: Final = b"+"
_ENDS: Final = b"-"
_PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); from kg.queries.text_check import main; main()"
_ROOT: Final = Path(kg.__file__).parents[1]
_PLACES: Final = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Checked:
    """A query that may run: its form, and whether it says with FROM what it is asked of."""

    form: Form | None
    names_dataset: bool


def checked(query: str) -> Checked:
    """Return what the guard knows of `query`. Raises what `guard.check_query` raises, and when the text cannot be read
    within the limits QueryTimeoutError, QueryMemoryError or QueryBusyError.
    """
    found: Checked = _read("checked", query, here=guard.is_cheap_to_check(query))
    return found


def form_of(query: str) -> str | None:
    """Return `guard.query_form` of `query`; same errors as `checked`."""
    form: str | None = _read("form", query, here=guard.is_plain(query))
    return form


def clauses_of(query: str) -> tuple[list[Clause], Prologue]:
    """Return the SERVICE clauses of `query`, and its prologue if it has any; same errors as `service.clauses`."""
    found: tuple[list[Clause], Prologue] = _read("clauses", query, here=guard.is_cheap_to_check(query))
    return found


def syntax_error(query: str, message: str) -> QuerySyntaxError:
    """Return `guard.syntax_error`, or as much of it as can be told within the limits."""
    try:
        error: QuerySyntaxError = _read("syntax_error", query, message, here=len(query) < guard.LIGHT)
    except QuadciteError:
        return QuerySyntaxError(f"not SPARQL: {message[:1_000]}")
    return error


def _checked(query: str) -> Checked:
    return Checked(guard.check_query(query), guard.names_dataset(query))


def _clauses(query: str) -> tuple[list[Clause], Prologue]:
    found = service.clauses(query)
    if (most := max((len(clause.tokens) for clause in found), default=0)) > MAX_TOKENS:
        raise InvalidInputError(f"a SERVICE clause has {most:,} words and signs, and at most {MAX_TOKENS:,} are taken")
    return found, service.prologue_of(query) if found else Prologue("", None, {})


_TASKS: Final[Mapping[str, Callable[..., Any]]] = {
    "checked": _checked,
    "form": guard.query_form,
    "clauses": _clauses,
    "syntax_error": guard.syntax_error,
}


def _read(task: str, *arguments: str, here: bool) -> Any:
    if here:
        return _TASKS[task](*arguments)
    if not _PLACES.acquire(timeout=READING_S):
        raise QueryBusyError("other long texts are read already, a few at a time; try again in a second")
    try:
        output = _answer(pickle.dumps((task, arguments)))
    finally:
        _PLACES.release()
    error, value = pickle.loads(output)  # noqa: S301 -- a process of ours wrote it
    if error is not None:
        raise error
    return value


class _Reader:
    """One process that reads text after text."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM, str(_ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self.late = False

    def ask(self, given: bytes) -> bytes | None:
        """Return what is answered, or None if the process ended instead, as it does when it is `late`."""
        assert self._process.stdin is not None  # noqa: S101 -- PIPE above
        assert self._process.stdout is not None  # noqa: S101 -- PIPE above
        deadline = threading.Timer(READING_S, self._give_up)
        deadline.daemon = True
        deadline.start()
        try:
            self._process.stdin.write(_SIZE.pack(len(given)) + given)
            self._process.stdin.flush()
            return _frame(self._process.stdout)
        except OSError:
            return None
        finally:
            deadline.cancel()

    def _give_up(self) -> None:
        self.late = True
        self._process.kill()

    def end(self) -> int:
        """Kill the process, wait for its end and return its exit code."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):  # what it has not taken
            self._process.__exit__(None, None, None)
        return self._process.returncode


_IDLE: Final[list[_Reader]] = []


@atexit.register
def _end_idle() -> None:
    while _IDLE:
        _IDLE.pop().end()


def _answer(given: bytes) -> bytes:
    """Return what a reader answers; one that had been idle and is not there any more is replaced."""
    try:
        reader, fresh = _IDLE.pop(), False
    except IndexError:
        reader, fresh = _Reader(), True
    output = reader.ask(given)
    if output is not None and not reader.late:
        if output.endswith(_STAYS):
            _IDLE.append(reader)
        else:
            reader.end()
        return output
    code = reader.end()
    if reader.late:
        raise QueryTimeoutError(f"the text could not be read within {READING_S:g} s; make it shorter, or simpler")
    if not fresh:
        return _answer(given)
    raise QueryMemoryError(
        f"the text could not be read within {_MEMORY_BYTES >> 20} MiB of memory (exit code {code}); make it shorter, "
        "or simpler"
    )


def _frame(source: IO[bytes]) -> bytes | None:
    head = source.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    [size] = _SIZE.unpack(head)
    data = source.read(size)
    return data if len(data) == size else None


def _is_large() -> bool:
    """Return whether this process holds half of what it may (False where the system does not tell)."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() > _MEMORY_BYTES // 2
    return False


def main() -> None:
    """Read the texts of this process's standard input, and write what was found, or the error, to standard output."""
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S + int(READING_S), _CPU_S + int(READING_S)))  # also as an orphan
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    while (given := _frame(sys.stdin.buffer)) is not None:
        task, arguments = pickle.loads(given)  # noqa: S301 -- our parent wrote it
        answer: tuple[QuadciteError | None, Any]
        try:
            answer = None, _TASKS[task](*arguments)
        except QuadciteError as error:
            answer = error, None
        output = pickle.dumps(answer) + (_ENDS if _is_large() or time.process_time() > _CPU_S else _STAYS)
        sys.stdout.buffer.write(_SIZE.pack(len(output)) + output)
        sys.stdout.buffer.flush()
