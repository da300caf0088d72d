"""The guard's checks of query texts; those of long texts run in a child process, a few at a time.

To tokenize a hostile megabyte takes seconds, and one regular expression can hold the GIL for most of one (measured: 3 s
and 0.7 s), and every request would wait for it here. So only what `guard.is_cheap_to_check` accepts is checked in this
process. A child has `READING_S` seconds for a text and `_MEMORY_BYTES`, runs at a lower priority, and stays for the
next text.
"""

from __future__ import annotations

import atexit
import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kg.errors import (
    InvalidInputError,
    QuadciteError,
    QueryBusyError,
    QueryMemoryError,
    QuerySyntaxError,
    QueryTimeoutError,
)
from kg.processes import confine, frames
from kg.processes.child import Child, ChildGoneError, ChildLateError, command
from kg.sparql import guard, service
from kg.sparql.guard import Form, Star
from kg.sparql.lexer import escape_inner_dots
from kg.sparql.service import Clause, Prologue

READING_S: Final = 5.0
"""Seconds to check one text, and seconds to wait for a free place."""
AT_ONCE: Final = 2
"""Texts that are checked at the same time."""
MAX_TOKENS: Final = 20_000
"""Tokens of one SERVICE clause."""
_MEMORY_BYTES: Final = 512 << 20
_NICENESS: Final = 5
# The kind of an answer shows whether the process takes another text.
_STAYS: Final = b"S"
_ENDS: Final = b"E"
_PLACES: Final = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Checked:
    """A query that may run: its text for the engine, its form, whether it names its dataset with FROM, and the ``*`` of
    its SELECT."""

    text: str

    form: Form | None
    names_dataset: bool
    star: Star | None = None


def check(query: str) -> Checked:
    """Check `query` with the guard. Raises what `guard.check_query` raises, and QueryTimeoutError, QueryMemoryError or
    QueryBusyError when the text cannot be checked within the limits.
    """
    checked: Checked = _run("check", query, here=guard.is_cheap_to_check(query))
    return checked


def find_form(query: str) -> str | None:
    """Run `guard.query_form`; same errors as `check`."""
    form: str | None = _run("form", query, here=guard.is_plain(query))
    return form


def find_clauses(query: str) -> tuple[list[Clause], Prologue]:
    """Find the SERVICE clauses of `query`, and its prologue if it has any.

    Raises what `service.find_clauses` raises, and the errors of the limits as `check` does.
    """
    found: tuple[list[Clause], Prologue] = _run("clauses", query, here=guard.is_cheap_to_check(query))
    return found


def build_syntax_error(query: str, message: str) -> QuerySyntaxError:
    """Run `guard.build_syntax_error`; beyond the limits, the error contains the parser's `message` alone."""
    try:
        error: QuerySyntaxError = _run("syntax_error", query, message, here=len(query) < guard.CHEAP_CHARS)
    except QuadciteError:
        return QuerySyntaxError(f"Invalid SPARQL: {message[:1_000]}")
    return error


def _check(query: str) -> Checked:
    form = guard.check_query(query)
    text = escape_inner_dots(query)
    return Checked(text, form, guard.has_dataset_clause(query), guard.find_star(text))


def _find_clauses(query: str) -> tuple[list[Clause], Prologue]:
    found = service.find_clauses(query)
    if (most := max((len(clause.tokens) for clause in found), default=0)) > MAX_TOKENS:
        raise InvalidInputError(
            f"A SERVICE clause has {most:,} tokens. The maximum is {MAX_TOKENS:,}. Split the clause."
        )
    return found, service.parse_prologue(query) if found else Prologue("", None, {})


_TASKS: Final[Mapping[str, Callable[..., Any]]] = {
    "check": _check,
    "form": guard.query_form,
    "clauses": _find_clauses,
    "syntax_error": guard.build_syntax_error,
}


def _run(task: str, *arguments: str, here: bool) -> Any:
    if here:
        return _TASKS[task](*arguments)
    if not _PLACES.acquire(timeout=READING_S):
        raise QueryBusyError(f"Too many long texts are being checked ({AT_ONCE} at a time). Try again in a second.")
    try:
        answer = _ask(pickle.dumps((task, arguments)))
    finally:
        _PLACES.release()
    error, value = pickle.loads(answer)  # noqa: S301 -- a process of ours wrote it
    if error is not None:
        raise error
    return value


_IDLE: Final[list[Child]] = []


@atexit.register
def _end_idle() -> None:
    while _IDLE:
        _IDLE.pop().end()


def _ask(request: bytes) -> bytes:
    """Send a request to a child and return its answer; an idle child that has died is replaced."""
    try:
        child, fresh = _IDLE.pop(), False
    except IndexError:
        child, fresh = Child(command(__name__)), True
    deadline = time.monotonic() + READING_S
    kind = _ENDS
    try:
        child.send(b"Q", request, deadline)
        kind, answer = child.receive(deadline)
        return answer
    except ChildLateError:
        raise QueryTimeoutError(
            f"The text could not be checked within {READING_S:g} s. Make it shorter or simpler."
        ) from None
    except ChildGoneError:
        if fresh:
            raise QueryMemoryError(
                f"The text could not be checked within {_MEMORY_BYTES >> 20} MiB of memory (exit code {child.end()}). "
                "Make it shorter or simpler."
            ) from None
    finally:
        if kind == _STAYS:
            _IDLE.append(child)
        else:
            child.end()
    return _ask(request)


def main() -> None:
    """Check the texts that arrive on standard input, until it ends."""
    requests, answers = confine.take_pipes()
    confine.confine(memory_bytes=_MEMORY_BYTES, niceness=_NICENESS)
    confine.die_with_pipe(requests.fileno())
    while (request := frames.read(requests)) is not None:
        task, arguments = pickle.loads(request[1])  # noqa: S301 -- our parent wrote it
        answer: tuple[QuadciteError | None, Any]
        try:
            answer = None, _TASKS[task](*arguments)
        except QuadciteError as error:
            answer = error, None
        kind = _ENDS if confine.holds_more_than(_MEMORY_BYTES // 2) else _STAYS
        confine.write_all(answers, frames.encode(kind, pickle.dumps(answer)))
    os._exit(0)
