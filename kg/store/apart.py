"""Long texts are read in a process of their own, and a few at a time.

Whoever cuts a hostile megabyte into tokens does nothing else for seconds, and in this process everybody would wait with
it. What can be told at a glance (`kg.sparql.guard.is_light`) is told here; else a process is started, which may take
`READING_S` seconds and `_MEMORY_BYTES`, gives way to all others, and whose end costs only whoever sent the text.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
_NICENESS: Final = 5
_PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); from kg.store.apart import main; main()"
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
    found: Checked = _read("checked", query, here=guard.is_light(query))
    return found


def form_of(query: str) -> str | None:
    """Return `guard.query_form` of `query`; same errors as `checked`."""
    form: str | None = _read("form", query, here=guard.is_plain(query))
    return form


def clauses_of(query: str) -> tuple[list[Clause], Prologue]:
    """Return the SERVICE clauses of `query`, and its prologue if it has any; same errors as `service.clauses`."""
    found: tuple[list[Clause], Prologue] = _read("clauses", query, here=guard.is_light(query))
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
        output = _output(pickle.dumps((task, arguments)))
    finally:
        _PLACES.release()
    error, value = pickle.loads(output)  # noqa: S301 -- a process of ours wrote it
    if error is not None:
        raise error
    return value


def _output(given: bytes) -> bytes:
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, str(_ROOT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as process:
        try:
            output, _ = process.communicate(given, timeout=READING_S)
        except subprocess.TimeoutExpired:
            raise QueryTimeoutError(
                f"the text could not be read within {READING_S:g} s; make it shorter, or simpler"
            ) from None
        finally:
            process.kill()
    if process.returncode:
        raise QueryMemoryError(
            f"the text could not be read within {_MEMORY_BYTES >> 20} MiB of memory (exit code {process.returncode}); "
            "make it shorter, or simpler"
        )
    return output


def main() -> None:
    """Read one text of this process's standard input, and write what was found, or the error, to standard output."""
    seconds = int(READING_S) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # also when nobody is left to stop it
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    task, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 -- our parent wrote it
    try:
        answer: tuple[QuadciteError | None, Any] = None, _TASKS[task](*arguments)
    except QuadciteError as error:
        answer = error, None
    sys.stdout.buffer.write(pickle.dumps(answer))
