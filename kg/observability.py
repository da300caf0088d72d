"""Metrics, traces and steps of calls: what all other modules count and trace with.

``GET /metrics`` serves `REGISTRY`, and the state of the server (`kg.server.monitoring`). Spans go to the OpenTelemetry
SDK that the process has, and nowhere without one: Quadcite depends on the API alone (`kg.server.tracing`). Neither has
arguments of calls, since both have other readers than the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.samples import Sample

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

_REQUESTS: Final = Counter(
    "quadcite_http_requests",
    "HTTP requests, by the pattern of their path.",
    ("route", "method", "status"),
    registry=REGISTRY,
)
_REQUEST_SECONDS: Final = Histogram(
    "quadcite_http_request_seconds",
    "Time of HTTP requests up to the end of the response.",
    ("route",),
    registry=REGISTRY,
    buckets=_SECONDS,
)
_IN_PROGRESS: Final = Gauge("quadcite_http_requests_in_progress", "HTTP requests in progress.", registry=REGISTRY)
_AUTH_FAILURES: Final = Counter(
    "quadcite_auth_failures", "Requests without valid credentials (401).", registry=REGISTRY
)
_RATE_REFUSALS: Final = Counter(
    "quadcite_rate_refusals", "Requests above the rate of their sender (429).", registry=REGISTRY
)
_CALL_WAITS: Final = Histogram(
    "quadcite_call_wait_seconds",
    "Time for which calls waited for others, by the kind of work; only calls that waited.",
    ("kind",),
    registry=REGISTRY,
    buckets=_SECONDS,
)
_QUERY_WAITS: Final = Histogram(
    "quadcite_query_wait_seconds", "Time for which queries waited for a worker.", registry=REGISTRY, buckets=_SECONDS
)
_QUERY_SECONDS: Final = Histogram(
    "quadcite_query_seconds", "Time of queries in a worker, of those that ended.", registry=REGISTRY, buckets=_SECONDS
)
_QUERY_STOPS: Final = Counter(
    "quadcite_query_stops",
    "Queries that were stopped: their worker was killed, or they gave up waiting.",
    ("reason",),
    registry=REGISTRY,
)
_SEARCH_SECONDS: Final = Histogram(
    "quadcite_search_seconds",
    "Time of rankings by the search index.",
    ("outcome",),
    registry=REGISTRY,
    buckets=_SECONDS,
)
_COMMIT_SECONDS: Final = Histogram(
    "quadcite_commit_seconds",
    "Time to write and sync a commit to the store.",
    ("outcome",),
    registry=REGISTRY,
    buckets=_SECONDS,
)
_VALIDATION_SECONDS: Final = Histogram(
    "quadcite_validation_seconds",
    "Time of SHACL validations in processes of their own.",
    ("outcome",),
    registry=REGISTRY,
    buckets=_SECONDS,
)
_LOADS: Final = Counter("quadcite_loads", "Loads and derivations that ended.", ("source", "outcome"), registry=REGISTRY)
_AUDIT_ENTRIES: Final = Counter(
    "quadcite_audit_entries", "Entries of the audit log, by whether they were written.", ("written",), registry=REGISTRY
)
_DENIALS: Final = Counter("quadcite_denials", "Requests and calls that were refused.", ("reason",), registry=REGISTRY)

for _reason in ("timeout", "waited", "memory", "cancelled", "crowded", "displaced", "closed", "failed"):
    _QUERY_STOPS.labels(_reason)
for _written in ("true", "false"):
    _AUDIT_ENTRIES.labels(_written)
for _reason in ("unauthorized", "forbidden"):  # from 0 on, so that the first one is an increase
    _DENIALS.labels(_reason)

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
def observe_request(method: str, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
    """Trace an HTTP request, as a part of the trace that its header ``traceparent`` names (W3C), and count it."""
    began = time.perf_counter()
    parent = propagate.extract(headers) if "traceparent" in headers else None
    tracer = trace.get_tracer("quadcite")
    _IN_PROGRESS.inc()
    with tracer.start_as_current_span(
        method, context=parent, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
    ) as current:
        request = RequestSpan()
        try:
            yield request
        finally:
            _IN_PROGRESS.dec()
            _REQUESTS.labels(request.route, method, request.status or "none").inc()
            _REQUEST_SECONDS.labels(request.route).observe(time.perf_counter() - began)
            if current.is_recording():
                current.update_name(f"{method} {request.route}")
                current.set_attributes({"http.request.method": method, "http.route": request.route})
                current.set_attribute("http.response.status_code", request.status)
                if request.status >= 500 or not request.status:
                    current.set_status(Status(StatusCode.ERROR))


class RequestSpan:
    """A request in progress. Set `route`, the pattern of its path, and `status`, 0 if it got no response."""

    def __init__(self) -> None:
        self.route = "unknown"
        self.status = 0


@contextmanager
def observe_search(mode: str) -> Iterator[Span]:
    """Time and trace a ranking by the search index: the block."""
    with _timed("search", _SEARCH_SECONDS, {"quadcite.mode": mode}) as current:
        yield current


@contextmanager
def observe_commit() -> Iterator[Span]:
    """Time and trace the write of a commit: the block."""
    with _timed("commit", _COMMIT_SECONDS, {}) as current:
        yield current


@contextmanager
def observe_validation() -> Iterator[Span]:
    """Time and trace a validation: the block."""
    with _timed("validation", _VALIDATION_SECONDS, {}) as current:
        yield current


@contextmanager
def observe_load(source: str) -> Iterator[Span]:
    """Count and trace a load: the block."""
    outcome = OK
    try:
        with span("load", {"quadcite.source": source}) as current:
            yield current
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        _LOADS.labels(source, outcome).inc()


@contextmanager
def _timed(name: str, seconds: Histogram, attributes: dict[str, AttributeValue]) -> Iterator[Span]:
    began = time.perf_counter()
    outcome = OK
    try:
        with span(name, attributes) as current:
            yield current
    except BaseException as error:
        outcome = outcome_of(error)
        raise
    finally:
        seconds.labels(outcome).observe(time.perf_counter() - began)


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


def summarize_calls() -> dict[str, Any]:
    """Summarize the requests and calls since the start, for people: numbers by outcome, and mean times."""
    failed, total = 0.0, 0.0
    for sample in _samples(_REQUESTS, "_total"):
        total += sample.value
        failed += sample.value if sample.labels["status"][0] not in "123" else 0
    tools: dict[str, dict[str, float]] = {}
    for sample in _samples(_TOOL_CALLS, "_total"):
        tool = tools.setdefault(sample.labels["tool"], {"calls": 0, "failed": 0})
        tool["calls"] += sample.value
        tool["failed"] += sample.value if sample.labels["outcome"] != OK else 0
    for sample in _samples(_TOOL_SECONDS, "_sum"):
        tool = tools[sample.labels["tool"]]
        tool["mean_ms"] = round(1_000 * sample.value / max(1, tool["calls"]), 1)
    [in_progress] = [int(sample.value) for sample in _samples(_IN_PROGRESS, "")]
    return {"in_progress": in_progress, "total": int(total), "failed": int(failed), "tools": tools}


def _samples(metric: Counter | Gauge | Histogram, suffix: str) -> list[Sample]:
    return [sample for family in metric.collect() for sample in family.samples if sample.name.endswith(suffix)]


def count_call_wait(kind: str, seconds: float) -> None:
    """Count the time for which a call waited for a place among those of its kind."""
    _CALL_WAITS.labels(kind).observe(seconds)


def count_query_wait(seconds: float) -> None:
    """Count the time for which a query waited for a worker."""
    _QUERY_WAITS.observe(seconds)


def count_query(seconds: float) -> None:
    """Count a query that ended by itself, and its time in a worker."""
    _QUERY_SECONDS.observe(seconds)


def count_query_stop(reason: str) -> None:
    """Count a query that was stopped, by the reason."""
    _QUERY_STOPS.labels(reason).inc()


def count_auth_failure() -> None:
    """Count a request without valid credentials."""
    _AUTH_FAILURES.inc()


def count_rate_refusal() -> None:
    """Count a request above the rate of its sender."""
    _RATE_REFUSALS.inc()


def count_audit_entry(*, written: bool) -> None:
    """Count an entry of the audit log that was written, or lost."""
    _AUDIT_ENTRIES.labels("true" if written else "false").inc()


def count_denial(reason: str) -> None:
    """Count a request or call that was refused. `reason` is the code of its error."""
    _DENIALS.labels(reason).inc()


def _add_step(name: str) -> None:
    if (steps := _STEPS.get()) is not None and len(steps) < _MOST_STEPS:
        steps.append(name)
