"""Traces: their spans, the trace of the caller, and their export by the variables of OpenTelemetry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from kg.errors import InvalidInputError
from kg.server.app import create_app
from kg.server.tracing import build_provider
from kg.settings import find_trace_exporters
from tests.cli.running import served
from tests.waiting import until

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """A collector in this process, which all tracers report to."""
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def path_of(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> list[str]:
    """The names of a span and of those around it, the outermost first."""
    by_id = {each.context.span_id: each for each in spans if each.context is not None}
    names = []
    while True:
        names.append(span.name)
        if span.parent is None or span.parent.span_id not in by_id:
            return names[::-1]
        span = by_id[span.parent.span_id]


def test_the_spans_of_a_call_are_in_the_trace_of_its_caller(kg, collected: InMemorySpanExporter) -> None:
    client = TestClient(create_app(kg), base_url="http://127.0.0.1")
    assert client.post("/tools/search", json={"query": "solar secret"}, headers=PARENT).status_code == 200
    assert client.get("/sparql", params={"query": "ASK { ?secret ?p ?o }"}, headers=PARENT).status_code == 200
    spans = collected.get_finished_spans()
    assert {f"{each.context.trace_id:032x}" for each in spans if each.context is not None} == {TRACE}
    paths = [path_of(each, spans) for each in spans]
    assert ["POST /tools/{name}", "tool search"] in paths
    assert ["POST /tools/{name}", "tool search", "search"] in paths
    assert ["POST /tools/{name}", "tool search", "query"] in paths
    assert ["GET /sparql", "query"] in paths
    requests = {each.name: each for each in spans if each.kind == trace.SpanKind.SERVER}
    assert requests["GET /sparql"].attributes == {
        "http.request.method": "GET", "http.route": "/sparql", "http.response.status_code": 200,
    }  # fmt: skip
    assert not any("secret" in str((each.name, dict(each.attributes or {}), each.events)) for each in spans)


def test_a_failed_request_is_an_error_with_its_code(kg, collected: InMemorySpanExporter) -> None:
    client = TestClient(create_app(kg), base_url="http://127.0.0.1")
    client.post("/tools/fetch", json={"id": "cpr://doc/none"})
    call = next(each for each in collected.get_finished_spans() if each.name == "tool fetch")
    assert (call.attributes or {})["error.type"] == "not_found"
    assert not call.status.is_ok


def test_commits_validations_and_loads_are_spans(kg, collected: InMemorySpanExporter) -> None:
    client = TestClient(create_app(kg), base_url="http://127.0.0.1")
    turtle = {"Content-Type": "text/turtle"}
    written = client.put(
        "/graphs?graph=https://w3id.org/quadcite/graph/user/t", content="<urn:a> a <urn:b> .", headers=turtle
    )
    assert written.status_code in (201, 204), written.text
    shapes = "@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:s> a sh:NodeShape ; sh:targetNode <urn:a> ."
    client.post("/tools/validate", json={"turtle": "<urn:a> a <urn:b> .", "shapes": shapes})
    with kg.loads.recording("climate", ["x"], lambda *_: None):
        pass
    assert {"commit", "validation", "load"} <= {each.name for each in collected.get_finished_spans()}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, []),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, ["otlp_proto_http"]),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, []),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ["console", "otlp_proto_http"]),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ["otlp_proto_grpc"]),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, []),
    ],
)
def test_the_standard_variables_name_the_exporters(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: list[str]
) -> None:
    for name in (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_TRACES_EXPORTER",
        "OTEL_SDK_DISABLED",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    ):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_trace_exporters() == expected


def test_an_unknown_exporter_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="console"):
        build_provider(["jaeger"])
    assert build_provider([]) is None


class Collector(BaseHTTPRequestHandler):
    """Takes traces as OTLP over HTTP."""

    received: list[ExportTraceServiceRequest]

    def do_POST(self) -> None:
        """Take one request."""
        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.mark.long
def test_a_server_exports_its_spans_to_a_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx

    from kg.store.lock import find_address

    received: list[ExportTraceServiceRequest] = []
    handler = type("Handler", (Collector,), {"received": received})
    with HTTPServer(("127.0.0.1", 0), handler) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        monkeypatch.setenv("QUADCITE_MODELS_DIR", str(tmp_path / "none"))
        with served(tmp_path / "data"):
            address = find_address(tmp_path / "data")
            assert (
                httpx.get(f"{address}/sparql", params={"query": "ASK {}"}, headers=PARENT, timeout=60).status_code
                == 200
            )
        until(lambda: bool(received))  # sent at the latest when the server ends
        collector.shutdown()
    resource = {each.key: each.value.string_value for each in received[0].resource_spans[0].resource.attributes}
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("quadcite", "test")
    spans = [
        span for each in received for part in each.resource_spans for scope in part.scope_spans for span in scope.spans
    ]
    assert {"GET /sparql", "query"} <= {span.name for span in spans if span.trace_id.hex() == TRACE}
