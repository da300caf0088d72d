"""Foreign text run in a process of its own: it may hang, eat memory or crash, and costs whoever gave it an error."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kg.errors import (
    InvalidInputError,
    QueryForbiddenError,
    QueryLimitError,
    QueryMemoryError,
    QuerySyntaxError,
    QueryTimeoutError,
    StoreError,
)
from kg.processes import task as errand
from kg.vocabulary import PREFIXES

MAX_BYTES: Final = 256 << 20
"""What may come out of one process, as N-Quads, unless its caller says less."""

_POSITION: Final = re.compile(
    r"(?:Parser error )?(?:at line \d+ (?:between columns \d+ and \d+|column \d+)"
    r"|between line \d+ column \d+ and line \d+ column \d+): |\s*\(line \d+\)$"
)
_UNDECLARED: Final = re.compile(r"[Pp]refix (\w+):? has not been declared")
_BY_CODE: Final = {
    error.code: error
    for error in (InvalidInputError, QuerySyntaxError, QueryForbiddenError, QueryLimitError, QueryMemoryError)
}

OnCancel = Callable[[Callable[[], object] | None], object]
"""Is told what stops a process when whoever waits for it goes away, and with None that it has ended."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process may take."""

    timeout_s: float = 10.0
    memory_bytes: int = 512 << 20
    max_bytes: int = MAX_BYTES


class TooLargeError(InvalidInputError):
    """What comes out is larger than the limits allow."""


class SyntaxFaultError(InvalidInputError):
    """The text breaks its grammar.

    `place` is line and column in words, as far as the parser told them, `fault` what it says beside: with how one of
    our own prefixes is declared, where that is what lacks.
    """

    def __init__(self, message: str, line: int | None, column: int | None) -> None:
        self.place = "" if line is None else f"line {line}" if column is None else f"line {line}, column {column}"
        self.fault = _POSITION.sub("", message)
        prefix = _UNDECLARED.search(message)
        if prefix and prefix[1] in PREFIXES:
            self.fault += f"; add @prefix {prefix[1]}: <{PREFIXES[prefix[1]]}> ."
        super().__init__(f"{self.place}: {self.fault}" if self.place else self.fault)


@contextmanager
def confined(
    task: str,
    data: bytes,
    settings: Mapping[str, Any],
    limits: Limits,
    *,
    what: str,
    folder: Path | None = None,
    program: str = errand.__file__,
    on_cancel: OnCancel = lambda stop: None,
) -> Iterator[Path]:
    """Run one errand and give the folder with what came out; it goes at the end of the block.

    `what` names the text in errors, `folder` is where the working folder is made, `program` is a script that keeps to
    `kg.processes.task`, and `on_cancel` that of a `Cancellation`. Raises SyntaxFaultError, TooLargeError,
    InvalidInputError, QueryTimeoutError, QueryMemoryError, QueryLimitError (cancelled), or StoreError.
    """
    with tempfile.TemporaryDirectory(prefix=f"{task}-", dir=folder, ignore_cleanup_errors=True) as name:
        options = {
            **settings,
            "task": task,
            "folder": name,
            "timeout_s": limits.timeout_s,
            "memory_bytes": limits.memory_bytes,
            "max_bytes": limits.max_bytes,
        }
        reply = _reply([program, json.dumps(options)], data, limits, what, on_cancel)
        if reply:
            raise _error(reply, what)
        yield Path(name)


def _reply(command: list[str], data: bytes, limits: Limits, what: str, on_cancel: OnCancel) -> dict[str, Any]:
    stopped = threading.Event()
    with subprocess.Popen(
        [sys.executable, "-I", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as process:

        def stop() -> None:
            stopped.set()
            process.kill()

        on_cancel(stop)
        try:
            output, _ = process.communicate(data, timeout=limits.timeout_s)
        except subprocess.TimeoutExpired:
            raise QueryTimeoutError(
                f"{what} ran for more than {limits.timeout_s:g} s and was stopped; nothing has changed"
            ) from None
        finally:
            process.kill()
            on_cancel(None)
    if stopped.is_set():
        raise QueryLimitError(f"{what} was stopped, since nobody waits for it")
    if process.returncode or not output:
        raise QueryMemoryError(
            f"{what} ended its process (exit code {process.returncode}): it needs more than the "
            f"{limits.memory_bytes >> 20} MiB that it may take, or is nested too deeply; nothing has changed"
        )
    reply = json.loads(output)
    if not isinstance(reply, dict):
        raise StoreError(f"{what} was answered with {str(reply)[:100]}")
    return reply


def _error(reply: Mapping[str, Any], what: str) -> Exception:
    message = reply["message"]
    match reply["kind"]:
        case "syntax" if reply["line"] is None and "update" in what:
            return QuerySyntaxError(f"not a SPARQL update: {message}")
        case "syntax":
            return SyntaxFaultError(message, reply["line"], reply["column"])
        case "size":
            return TooLargeError(f"{what} is too large: {message}")
        case "raised":
            return _BY_CODE[reply["code"]](message)
        case "invalid":
            return InvalidInputError(f"{what} cannot be used: {message}")
        case _:
            return StoreError(f"{what} cannot be run: {message}")
