"""What a worker replies, or how it ends, as a result or an error of ours. Pure."""

from __future__ import annotations

import signal
from typing import Any

from pyoxigraph import QueryResultsFormat, RdfFormat, Triple, parse, parse_query_results

from kg.errors import (
    InvalidInputError,
    QueryForbiddenError,
    QueryLimitError,
    QueryMemoryError,
    QueryTimeoutError,
    StoreError,
)
from kg.queries.text_check import build_syntax_error
from kg.settings import Settings
from kg.store.protocol import Result, Rows


class KilledError(QueryMemoryError):
    """Something else than this process killed the worker: as a rule, the system for want of memory."""


def parse_result(kind: str, pieces: list[bytes], *, truncated: bool) -> Result:
    """Return the finished result whose bytes a worker sent: SELECT as TSV, graphs as N-Triples."""
    data = b"".join(pieces)
    if kind == "solutions":
        solutions = parse_query_results(data, format=QueryResultsFormat.TSV)
        variables = tuple(variable.value for variable in solutions.variables)  # type: ignore[union-attr]
        return Rows(variables, [tuple(row) for row in solutions], truncated)  # type: ignore[union-attr]
    if kind == "boolean":
        return data.strip() == b"true"
    return [Triple(quad.subject, quad.predicate, quad.object) for quad in parse(data, format=RdfFormat.N_TRIPLES)]


def build_reported_error(error: dict[str, Any], query: str, settings: Settings) -> Exception:
    """Return the error that a worker reported, as ours."""
    kind, message = error["kind"], error["message"]
    if kind == "syntax":
        return build_syntax_error(query, message)
    if kind == "memory":
        return QueryMemoryError(
            f"the query needed more than the {settings.query_memory_mb} MiB of memory that a worker has (setting "
            "QUADCITE_QUERY_MEMORY_MB)"
        )
    if kind == "store":
        return StoreError(f"the snapshot cannot be read: {message}")
    if kind == "request":
        return QueryForbiddenError(f"the query asked for another server, which is never done here: {message}")
    return InvalidInputError(f"the query cannot be evaluated: {message}")


def build_stop_error(reason: str | None, code: int, timeout_s: float, settings: Settings) -> QueryLimitError:
    """Return why a query did not end by itself: the reason for which it was killed, or its worker's exit code."""
    memory_mb = settings.query_memory_mb
    if reason == "timeout":
        return QueryTimeoutError(
            f"the query was stopped at its deadline of {timeout_s:g} s (setting QUADCITE_QUERY_TIMEOUT_S is "
            f"{settings.query_timeout_s:g} s); restrict it further, or ask for less"
        )
    if reason == "cancelled":
        return QueryLimitError("the query was cancelled")
    if reason == "closed":
        return QueryLimitError("the server is stopping")
    if code == -signal.SIGSEGV:
        return QueryMemoryError("the query is nested too deeply to be evaluated; take some of its levels out")
    if code not in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV):
        return QueryLimitError(f"the query's worker failed (exit code {code}); this is a fault of Quadcite's")
    if code == -signal.SIGKILL:
        return KilledError("the query's worker was killed by the system, which does so when memory runs out")
    return QueryMemoryError(
        f"the query needed more than the {memory_mb} MiB of memory that a worker has (setting "
        f"QUADCITE_QUERY_MEMORY_MB) and was stopped (exit code {code}); group, sort or collect fewer rows"
    )
