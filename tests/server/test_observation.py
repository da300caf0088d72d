"""Each request is counted, is an entry of the audit log, and counts against the rate of its sender."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kg.access import policy_files
from kg.access.actors import EVERYONE, SCOPES, Actor
from kg.access.audit import AuditLog, read_entries, verify
from kg.access.limits import find_limits
from kg.data_directory import DataDirectory
from kg.knowledge_graph import KnowledgeGraph
from kg.observability import REGISTRY
from kg.server import authentication, monitoring
from kg.server.app import create_app
from kg.server.fair_limiter import name_client
from kg.settings import SenderLimits, Settings
from tests.accounts import SentBy

ANN = Actor("ann", frozenset(SCOPES), frozenset({"press"}))
MCP = {"Accept": "application/json, text/event-stream"}


def with_settings(kg: KnowledgeGraph, audit: AuditLog | None = None, **options: Any) -> KnowledgeGraph:
    return replace(kg, settings=kg.settings.model_copy(update=options), audit=audit)


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path)


@pytest.fixture
def client(kg: KnowledgeGraph, directory: DataDirectory) -> Iterator[TestClient]:
    with AuditLog(directory) as log:
        app = create_app(with_settings(kg, log), accounts=SentBy(actor=ANN))
        with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
            yield client


def entries(directory: DataDirectory) -> list[dict[str, Any]]:
    return list(read_entries(directory))


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def test_each_request_is_one_entry_with_sender_action_and_outcome(client: TestClient, directory: DataDirectory) -> None:
    headers = {"X-Request-Id": "abc-1"}
    client.post("/tools/search", json={"query": "solar", "limit": 2}, headers=headers)
    client.post("/mcp/all", json=call("fetch", {"id": "cpr://doc/none"}), headers=MCP)
    client.post("/mcp/all", json=call("no_tool", {}), headers=MCP)
    client.post("/mcp/all", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=MCP)
    client.get("/sparql", params={"query": "ASK {}"})
    client.post("/sparql", data={"query": "SELECT nonsense"})
    client.post("/tools/store_status", json={})
    client.get("/nowhere", params={"token": "hunter2", "state": "UT"})
    client.get("/auth/callback", params={"code": "hunter2", "state": "hunter2"})
    client.get("/health/live")
    client.get("/metrics")
    read = entries(directory)
    assert [(entry["action"], entry["outcome"]) for entry in read] == [
        ("search", "ok"),
        ("fetch", "not_found"),
        ("no_tool", "not_found"),
        ("mcp tools/list", "ok"),
        ("sparql query", "ok"),
        ("sparql query", "query_syntax"),
        ("GET /nowhere", "not_found"),
        ("GET /auth/callback", "not_found"),
    ]
    assert {(entry["who"], tuple(entry["groups"]), entry["peer"]) for entry in read} == {
        ("ann", ("press",), "testclient")
    }
    assert (read[0]["request_id"], read[0]["arguments"]) == ("abc-1", {"query": "solar", "limit": 2})
    assert read[0]["snapshot"] == read[4]["snapshot"] >= 1
    assert read[4]["arguments"] == {"query": ["ASK {}"]}
    assert read[6]["arguments"]["state"] == "UT"
    assert b"hunter2" not in next((directory.audit).glob("*.jsonl")).read_bytes()
    assert verify(directory).problems == []


def test_further_parameters_hide_no_query_and_no_graph(client: TestClient, directory: DataDirectory) -> None:
    further = {f"a{number}": "x" for number in range(20)}
    client.get("/sparql", params=further | {"query": "ASK {}"})
    client.delete("/graphs/user/none", params=further)
    client.delete("/graphs", params=further | {"graph": "urn:x:none"})
    query, direct, named = (entry["arguments"] for entry in entries(directory))
    assert (query["query"], direct["name"], named["graph"]) == (["ASK {}"], "user/none", "urn:x:none")
    assert query["…"] == "[11 more]"


def test_a_streamed_call_is_one_entry_with_its_outcome(client: TestClient, directory: DataDirectory) -> None:
    lines = {"Accept": "application/x-ndjson"}
    client.post("/tools/search", json={"query": "solar"}, headers=lines)
    client.post("/tools/fetch", json={"id": "cpr://doc/none"}, headers=lines)
    assert [(each["action"], each["outcome"]) for each in entries(directory)] == [
        ("search", "ok"),
        ("fetch", "not_found"),
    ]


def test_the_decision_of_the_policies_is_in_the_entry(client: TestClient, directory: DataDirectory) -> None:
    client.post("/mcp/all", json=call("search", {"query": "solar"}), headers=MCP)
    assert entries(directory)[0]["decision"] == {"allowed": True, "policies": ["default-tools"]}


def test_the_log_line_of_a_call_names_its_sender(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kg.calls")
    client.post("/tools/search", json={"query": "solar"})
    [line] = [record.fields for record in caplog.records if record.name == "kg.calls"]  # type: ignore[attr-defined]
    assert line["who"] == "ann"


def test_failures_to_authenticate_are_counted_and_a_few_are_recorded(
    kg: KnowledgeGraph, directory: DataDirectory
) -> None:
    before = REGISTRY.get_sample_value("quadcite_auth_failures_total") or 0
    with AuditLog(directory) as log:
        app = create_app(with_settings(kg, log), accounts=authentication.Accounts())
        client = TestClient(app, base_url="http://127.0.0.1")
        for _ in range(30):
            assert client.get("/tools", headers={"Authorization": "Bearer wrong-secret"}).status_code == 401
    read = entries(directory)
    assert [(entry["outcome"], entry["who"]) for entry in read] == [("unauthorized", "")] * 10
    assert b"wrong-secret" not in next(directory.audit.glob("*.jsonl")).read_bytes()
    assert REGISTRY.get_sample_value("quadcite_auth_failures_total") == before + 30


def test_a_required_log_that_cannot_be_written_refuses_requests_until_it_can(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    gone = DataDirectory(tmp_path / "gone")
    with AuditLog(gone, required=True) as log:
        app = create_app(with_settings(kg, log))
        with TestClient(app, base_url="http://127.0.0.1") as client:
            # The first ones run before the failure is known, but their answers are not sent.
            first = [
                client.get("/sparql", params={"query": "ASK {}"}),
                client.get("/sparql", params={"query": "ASK {}"}),
            ]
            tool = client.post("/tools/search", json={"query": "solar"})
            over_mcp = client.post("/mcp/all", json=call("search", {"query": "solar"}), headers=MCP)
            ready = client.get("/health/ready")
            assert [answer.status_code for answer in (*first, tool, over_mcp, ready)] == [503] * 5
            assert {answer.json()["code"] for answer in (*first, tool, over_mcp)} == {"audit_unavailable"}
            gone.path.mkdir()
            assert client.get("/sparql", params={"query": "ASK {}"}).status_code == 200
    assert [(entry["action"], entry["outcome"]) for entry in entries(gone)][1:] == [("sparql query", "ok")]


def test_a_log_that_is_not_required_loses_entries_and_counts_them(kg: KnowledgeGraph, tmp_path: Path) -> None:
    with AuditLog(DataDirectory(tmp_path / "gone")) as log:
        client = TestClient(create_app(with_settings(kg, log)), base_url="http://127.0.0.1")
        assert client.get("/sparql", params={"query": "ASK {}"}).status_code == 200
        assert log.problem


def test_an_account_has_a_rate_and_a_sender_without_one_on_this_machine_has_none(kg: KnowledgeGraph) -> None:
    before = REGISTRY.get_sample_value("quadcite_rate_refusals_total") or 0
    limited = with_settings(kg, requests_per_minute=3, sender_limits={"user:bob": SenderLimits(requests_per_minute=0)})

    def statuses(actor: Actor, peer: str = "127.0.0.1") -> list[int]:
        app = create_app(limited, accounts=SentBy(actor=actor))
        client = TestClient(app, base_url="http://127.0.0.1", client=(peer, 1))
        last = [client.get("/tools") for _ in range(5)]
        if last[-1].status_code == 429:
            assert last[-1].json()["code"] == "rate_limited"
            assert last[-1].headers["content-type"] == "application/problem+json"
            assert 1 <= int(last[-1].headers["retry-after"]) <= 60
        return [answer.status_code for answer in last]

    assert statuses(ANN) == [200] * 3 + [429] * 2
    assert statuses(EVERYONE, "192.0.2.7") == [200] * 3 + [429] * 2
    assert statuses(EVERYONE) == [200] * 5
    assert statuses(replace(ANN, name="bob")) == [200] * 5
    assert REGISTRY.get_sample_value("quadcite_rate_refusals_total") == before + 4


def test_the_sizes_of_requests_and_results_are_limited_by_sender(kg: KnowledgeGraph) -> None:
    limits = {"group:press": SenderLimits(max_rows=2, max_body_bytes=1024)}
    app = create_app(with_settings(kg, sender_limits=limits), accounts=SentBy(actor=ANN))
    client = TestClient(app, base_url="http://127.0.0.1")
    rows = client.get("/sparql", params={"query": "SELECT * { ?s ?p ?o }", "format": "json"})
    assert (len(rows.json()["results"]["bindings"]), rows.headers["quadcite-row-limit"]) == (2, "2")
    assert client.post("/tools/search", json={"query": "x" * 2_000}).status_code == 413
    assert client.post("/tools/search", json={"query": "solar"}).status_code == 200


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 100),
        ({"user:ann": 7, "group:press": 900}, 7),
        ({"group:press": 5, "group:other": 9, "scope:admin": 900}, 5),
        ({"scope:read": 50, "scope:admin": 60}, 60),
        ({"scope:read": 50, "scope:admin": 0}, 0),
    ],
)
def test_the_limit_of_a_name_is_before_those_of_groups_and_scopes(limits: dict[str, int], expected: int) -> None:
    given = {name: SenderLimits(requests_per_minute=rate) for name, rate in limits.items()}
    settings = Settings(requests_per_minute=100, sender_limits=given, _env_file=None)  # type: ignore[call-arg]
    assert find_limits(settings, ANN).requests_per_minute == expected


def test_an_account_is_one_client_from_everywhere() -> None:
    assert name_client(ANN, "192.0.2.7") == name_client(ANN, "192.0.2.8")
    assert name_client(EVERYONE, "192.0.2.7") != name_client(EVERYONE, "192.0.2.8")


def test_requests_are_counted_by_the_pattern_of_their_path(client: TestClient) -> None:
    labels = {"route": "/sparql/queries/{number}", "method": "DELETE", "status": "404"}
    before = REGISTRY.get_sample_value("quadcite_http_requests_total", labels) or 0
    client.delete("/sparql/queries/7")
    client.delete("/sparql/queries/8")
    assert REGISTRY.get_sample_value("quadcite_http_requests_total", labels) == before + 2
    unknown = {"route": "unknown", "method": "other", "status": "404"}
    client.request("BREW", "/coffee")
    assert REGISTRY.get_sample_value("quadcite_http_requests_total", unknown)


def test_changed_policies_are_an_entry_and_invalid_ones_make_the_server_degraded(
    kg: KnowledgeGraph, directory: DataDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_files, "CHECKED_S", 0.0)
    folder = tmp_path / "policies"
    folder.mkdir()
    with AuditLog(directory) as log:
        app = create_app(replace(with_settings(kg, log, policies=folder), policies=None))
        client = TestClient(app, base_url="http://127.0.0.1")
        assert "policies" not in client.get("/health/ready").json()["degraded"]
        (folder / "press.cedar").write_text("permit(;")
        ready = client.get("/health/ready")
        assert (ready.status_code, "policies" in ready.json()["degraded"]) == (200, True)
        (folder / "press.cedar").write_text('@id("all") permit(principal in Group::"press", action, resource);')
        assert "policies" not in client.get("/health/ready").json()["degraded"]
    read = [entry for entry in entries(directory) if entry["action"] == "policies.read"]
    assert [entry["outcome"] for entry in read] == ["invalid_input", "ok"]
    assert read[0]["arguments"]["version"] != read[1]["arguments"]["version"]
    assert "press.cedar" in read[0]["arguments"]["problem"]


def test_a_request_that_fails_by_a_bug_is_an_entry(
    client: TestClient, directory: DataDirectory, kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "measure_processes", lambda: 1 // 0)
    labels = {"route": "/admin/state", "method": "POST", "status": "500"}
    before = REGISTRY.get_sample_value("quadcite_http_requests_total", labels) or 0
    assert client.post("/admin/state").status_code == 500
    assert REGISTRY.get_sample_value("quadcite_http_requests_total", labels) == before + 1
    [entry] = entries(directory)
    assert (entry["action"], entry["outcome"]) == ("POST /admin/state", "internal")
