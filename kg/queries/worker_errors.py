"""Errors that a worker reported, and how it ended, as errors of the query. Pure."""

from __future__ import annotations

import signal
from typing import Any

from kg.errors import (
    InvalidInputError,
    QueryBusyError,
    QueryForbiddenError,
    QueryLimitError,
    QueryMemoryError,
    QueryTimeoutError,
    StoreError,
)
from kg.queries.text_check import build_syntax_error
from kg.settings import Settings


class KilledError(QueryMemoryError):
    """The worker was killed by another process: usually by the system, for lack of memory."""


def build_reported_error(error: dict[str, Any], query: str, settings: Settings) -> Exception:
    """Build the error that a worker reported about `query`."""
    kind, message = error["kind"], error["message"]
    if kind == "syntax":
        return build_syntax_error(query, message)
    if kind == "memory":
        return _memory_error("", settings)
    if kind == "store":
        return StoreError(f"The snapshot cannot be read: {message}")
    if kind == "request":
        return QueryForbiddenError(f"Forbidden request to another server: {message}")
    return InvalidInputError(f"The query cannot be evaluated: {message}")


def build_stop_error(reason: str | None, code: int, timeout_s: float, settings: Settings) -> QueryLimitError:
    """Build the error of a query that was stopped for `reason`, or whose worker ended with exit code `code`."""
    if reason == "timeout":
        return QueryTimeoutError(
            f"The query was stopped at its deadline of {timeout_s:g} s (setting QUADCITE_QUERY_TIMEOUT_S: "
            f"{settings.query_timeout_s:g} s). Restrict it further, or ask for less."
        )
    if reason == "cancelled":
        return QueryLimitError("The query was cancelled.")
    if reason == "closed":
        return QueryLimitError("The server is stopping.")
    if reason == "crowded":
        return QueryBusyError(
            "The query ran long and was stopped for shorter ones: too many long queries run and wait (settings "
            "QUADCITE_QUERY_LONG_WORKERS, QUADCITE_QUERY_QUEUE). Try again in a few seconds."
        )
    if code == -signal.SIGSEGV:
        return QueryMemoryError("The query is nested too deeply to be evaluated. Remove some of its levels.")
    if code == -signal.SIGKILL:
        return KilledError("The query's worker was killed by the system, which does so when memory runs out.")
    if code != -signal.SIGABRT:
        return QueryLimitError(f"The query's worker failed (exit code {code}). This is a bug in Quadcite.")
    return _memory_error(f" and was stopped (exit code {code})", settings)


def _memory_error(end: str, settings: Settings) -> QueryMemoryError:
    return QueryMemoryError(
        f"The query needed more than the {settings.query_memory_mb} MiB of memory that a worker has (setting "
        f"QUADCITE_QUERY_MEMORY_MB){end}. Group, sort or collect fewer rows."
    )
