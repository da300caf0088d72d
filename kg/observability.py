"""Metrics, traces and steps of calls: the one place that knows Prometheus and OpenTelemetry.

``GET /metrics`` serves `REGISTRY`. Spans go to the OpenTelemetry SDK that the process has, and nowhere without one:
Quadcite depends on the API alone. Neither has arguments of calls, since both have other readers than the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode
from opentelemetry.util.types import AttributeValue
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.process_collector import ProcessCollector

from kg.errors import QuadciteError

OK: Final = "ok"

REGISTRY: Final = CollectorRegistry()
"""The metrics of this process."""
ProcessCollector(registry=REGISTRY)

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_TOOL_CALLS: Final = Counter(
    "quadcite_tool_calls", "Calls of tools.", ("tool", "transport", "outcome"), registry=REGISTRY
)
_TOOL_SECONDS: Final = Histogram(
    "quadcite_tool_call_seconds", "Time of calls of tools.", ("tool",), registry=REGISTRY, buckets=_SECONDS
)
_WIKIDATA_CALLS: Final = Counter(
    "wikidata_tool_calls",
    "Calls of the tools `wikidata.*`, alone and as steps of others.",
    ("tool",),
    registry=REGISTRY,
)
_CONNECTOR_CALLS: Final = Counter(
    "quadcite_connector_calls", "Calls of remote tools.", ("connector", "tool", "outcome"), registry=REGISTRY
)
_CONNECTOR_SECONDS: Final = Histogram(
    "quadcite_connector_call_seconds",
    "Time of calls of remote tools, with all attempts.",
    ("connector", "tool"),
    registry=REGISTRY,
    buckets=_SECONDS,
)

_AUDIT_ENTRIES: Final = Counter(
    "quadcite_audit_entries", "Entries of the audit log, by whether they were written.", ("written",), registry=REGISTRY
)
_DENIALS: Final = Counter("quadcite_denials", "Requests and calls that were refused.", ("reason",), registry=REGISTRY)

_WIKIDATA: Final = "wikidata."
_MOST_STEPS: Final = 100

_STEPS: Final[ContextVar[list[str] | None]] = ContextVar("steps", default=None)
"""The steps of the call in progress, in order."""


def outcome_of(error: BaseException | None) -> str:
    """Name the outcome of a call for logs and metrics: ``ok``, a code of an error, ``internal`` or ``cancelled``."""
    if error is None:
        return OK
    if isinstance(error, QuadciteError):
        return error.code
    return "internal" if isinstance(error, Exception) else "cancelled"


@contextmanager
def observe_call(tool: str, transport: str) -> Iterator[list[str]]:
    """Count, time and trace a call of a tool: the block. Yields its steps, which grow while it runs."""
    steps: list[str] = []
    token = _STEPS.set(steps)
    began = time.perf_counter()
    outcome = OK
    if tool.startswith(_WIKIDATA):
        _WIKIDATA_CALLS.labels(tool.removeprefix(_WIKIDATA)).inc()
    try:
        with span(f"tool {tool}", {"quadcite.tool": tool, "quadcite.transport": transport}):
            yield steps
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        _STEPS.reset(token)
        _TOOL_CALLS.labels(tool, transport, outcome).inc()
        _TOOL_SECONDS.labels(tool).observe(time.perf_counter() - began)


@contextmanager
def observe_step(tool: str) -> Iterator[Span]:
    """Count and trace a step of a call that takes several: the block. The log line of the call names its steps."""
    _add_step(tool)
    if tool.startswith(_WIKIDATA):
        _WIKIDATA_CALLS.labels(tool.removeprefix(_WIKIDATA)).inc()
    with span(f"step {tool}", {"quadcite.tool": tool}) as current:
        yield current


@contextmanager
def observe_connector(connector: str, tool: str) -> Iterator[Span]:
    """Count, time and trace a call of a remote tool, with all its attempts: the block."""
    _add_step(f"{connector}:{tool}")
    began = time.perf_counter()
    outcome = OK
    try:
        with span(f"connector {connector}", {"quadcite.connector": connector, "quadcite.tool": tool}) as current:
            yield current
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        _CONNECTOR_CALLS.labels(connector, tool, outcome).inc()
        _CONNECTOR_SECONDS.labels(connector, tool).observe(time.perf_counter() - began)


@contextmanager
def span(name: str, attributes: dict[str, AttributeValue]) -> Iterator[Span]:
    """Trace the block. An error is named by its code: its message may quote arguments."""
    tracer = trace.get_tracer("quadcite")
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_attribute("error.type", outcome_of(error))
            current.set_status(Status(StatusCode.ERROR))
            raise


def count_audit_entry(*, written: bool) -> None:
    """Count an entry of the audit log that was written, or lost."""
    _AUDIT_ENTRIES.labels("true" if written else "false").inc()


def count_denial(reason: str) -> None:
    """Count a request or call that was refused. `reason` is the code of its error."""
    _DENIALS.labels(reason).inc()


def _add_step(name: str) -> None:
    if (steps := _STEPS.get()) is not None and len(steps) < _MOST_STEPS:
        steps.append(name)
