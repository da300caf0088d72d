"""One structured line in the log for each call of a tool."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from kg.errors import NotFoundError
from kg.observability import observe_step
from kg.server.app import create_app
from kg.server.call_log import CallLog, JsonFormatter, redact
from kg.server.http_server import build_logging
from kg.settings import Settings


@pytest.fixture(scope="module")
def client(kg) -> Iterator[TestClient]:
    with TestClient(create_app(kg), base_url="http://127.0.0.1") as client:
        yield client


def logged(caplog: pytest.LogCaptureFixture) -> list[dict]:
    return [record.fields for record in caplog.records if record.name == "kg.calls"]


@pytest.mark.parametrize("path", ["/tools/search", "/mcp"])
def test_a_call_is_logged_with_arguments_counts_time_snapshot_and_request_id(client, caplog, path):
    caplog.set_level(logging.INFO, "kg.calls")
    arguments = {"query": "solar", "limit": 3}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": arguments}}
    headers = {"X-Request-Id": "abc-123", "Accept": "application/json, text/event-stream"}
    answer = client.post(path, json=call if path == "/mcp" else arguments, headers=headers)
    assert answer.status_code == 200
    [line] = logged(caplog)
    assert (line["tool"], line["outcome"], line["request_id"]) == ("search", "ok", "abc-123")
    assert line["transport"] == ("mcp" if path == "/mcp" else "http")
    assert line["arguments"] == arguments
    assert line["counts"]["results"] == 3
    assert line["snapshot"] >= 1
    assert line["ms"] > 0
    assert line["tokens"] > 0
    assert json.loads(caplog.records[-1].getMessage()) == line


def test_the_line_of_a_call_has_its_steps(caplog):
    caplog.set_level(logging.INFO, "kg.calls")
    with CallLog("verify", {}, "mcp"), observe_step("wikidata.get_claims"), observe_step("wikidata.sparql"):
        pass
    assert logged(caplog)[0]["steps"] == ["wikidata.get_claims", "wikidata.sparql"]


def test_a_failed_call_is_logged_with_its_code(client, caplog):
    caplog.set_level(logging.INFO, "kg.calls")
    client.post("/tools/fetch", json={"id": "cpr://doc/none"}, headers={"X-Request-Id": "bad id\u00e9".encode()})
    [line] = logged(caplog)
    assert line["outcome"] == "not_found"
    assert line["request_id"].isalnum()


@pytest.mark.parametrize(
    ("error", "outcome", "level"),
    [
        (NotFoundError("x"), "not_found", logging.INFO),
        (ValueError("x"), "internal", logging.ERROR),
        (asyncio.CancelledError(), "cancelled", logging.INFO),
    ],
)
def test_every_end_of_a_call_is_logged(caplog, error, outcome, level):
    caplog.set_level(logging.INFO, "kg.calls")
    with pytest.raises(type(error)), CallLog("search", {"query": "solar"}, "mcp"):
        raise error
    assert [(record.fields["outcome"], record.levelno) for record in caplog.records] == [(outcome, level)]


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        ("abc", "api_key", "[redacted]"),
        (2_000, "max_tokens", 2_000),
        ("x" * 500, "raw_content", "[500 characters]"),
        ([{"term": "a"}], "definitions", "[1 entries]"),
        ("/srv/data/speeches.csv", "file_path", "speeches.csv"),
        ("find Bearer abcdef and password=hunter2", "query", "find Bearer [redacted] and password=[redacted]"),
        ("use qc_" + "a-B" * 14 + " now", "query", "use [redacted] now"),
        ("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2ln", "query", "[redacted]"),
        ({"filters": {"token": "t", "iso3": ["BRA"]}}, "", {"filters": {"token": "[redacted]", "iso3": ["BRA"]}}),
        (list(range(12)), "ids", [*range(10), "[2 more]"]),
        ({f"a{n}": n for n in range(12)}, "", {f"a{n}": n for n in range(10)} | {"…": "[2 more]"}),
        ("\ud800", "query", "?"),
    ],
)
def test_arguments_in_the_log_have_no_secrets_and_no_long_texts(value, name, expected):
    assert redact(value, name) == expected


def test_a_long_query_is_shortened_in_the_log():
    assert len(redact("word " * 1_000, "query")) < 200


def test_the_log_is_json_lines_if_the_settings_say_so():
    made = build_logging(Settings(log_format="json", log_level="warning", _env_file=None))  # type: ignore[call-arg]
    assert made["handlers"]["stderr"]["formatter"] == "json"
    assert made["loggers"]["kg"]["level"] == "WARNING"
    quiet = build_logging(Settings(log_calls=False, _env_file=None))  # type: ignore[call-arg]
    assert quiet["loggers"]["kg.calls"]["level"] == "CRITICAL"
    record = logging.LogRecord("kg.calls", logging.INFO, "", 0, "%s", ("x",), None)
    record.fields = {"tool": "search"}
    line = json.loads(JsonFormatter("quadcite").format(record))
    assert (line["level"], line["tool"]) == ("INFO", "search")
    plain = logging.LogRecord("kg", logging.INFO, "", 0, "hello %s", ("you",), None)
    line = json.loads(JsonFormatter("Town Hall").format(plain))
    assert (line["message"], line["brand"]) == ("hello you", "Town Hall")
