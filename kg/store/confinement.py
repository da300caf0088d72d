"""Foreign text run in a process of its own: it may hang, eat memory or crash, and costs whoever gave it an error."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kg.errors import InvalidInputError, QueryMemoryError, QuerySyntaxError, QueryTimeoutError, StoreError
from kg.store import errand

MAX_BYTES: Final = 256 << 20
"""What may come out of one process, as N-Quads, unless its caller says less."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process may take."""

    timeout_s: float = 10.0
    memory_bytes: int = 512 << 20
    max_bytes: int = MAX_BYTES


class TooLargeError(InvalidInputError):
    """What comes out is larger than the limits allow."""


class SyntaxFaultError(InvalidInputError):
    """The text breaks its grammar; line and column where the parser told them."""

    def __init__(self, message: str, line: int | None, column: int | None) -> None:
        where = "" if line is None else f"line {line}, column {column}: " if column is not None else f"line {line}: "
        super().__init__(where + message)


@contextmanager
def confined(
    task: str, data: bytes, settings: Mapping[str, Any], limits: Limits, *, what: str, folder: Path | None = None
) -> Iterator[Path]:
    """Run one errand of `kg.store.errand` and give the folder with what came out; it goes at the end of the block.

    `what` names the text in errors, `folder` is where the working folder is made. Raises SyntaxFaultError,
    TooLargeError, InvalidInputError, QueryTimeoutError, QueryMemoryError, or StoreError.
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
        reply = _reply(options, data, limits, what)
        if reply:
            raise _error(reply, what)
        yield Path(name)


def _reply(options: Mapping[str, Any], data: bytes, limits: Limits, what: str) -> dict[str, Any]:
    with subprocess.Popen(
        [sys.executable, "-I", errand.__file__, json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as process:
        try:
            output, _ = process.communicate(data, timeout=limits.timeout_s)
        except subprocess.TimeoutExpired:
            raise QueryTimeoutError(
                f"{what} ran for more than {limits.timeout_s:g} s and was stopped; nothing has changed"
            ) from None
        finally:
            process.kill()
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
        case "invalid":
            return InvalidInputError(f"{what} cannot be used: {message}")
        case _:
            return StoreError(f"{what} cannot be run: {message}")
