"""Metrics, probes, and the state for ``kg top``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from kg.access.actors import EVERYONE, SCOPES, Actor
from kg.errors import StoreError
from kg.knowledge_graph import KnowledgeGraph
from kg.server import monitoring
from kg.server.app import create_app
from kg.server.mcp import ToolThreads
from kg.server.monitoring import Monitor
from kg.tools import derivations
from tests.accounts import SentBy
from tests.waiting import until

ADMIN = Actor("operator", frozenset(SCOPES))


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(create_app(kg, accounts=SentBy(actor=ADMIN)), base_url="http://127.0.0.1") as client:
        yield client


def read_metrics(client: TestClient) -> dict[str, dict[tuple[str, ...], float]]:
    """The samples of each name, by the values of their labels, in the order of their names."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            key = tuple(value for _, value in sorted(sample.labels.items()))
            assert key not in found.get(sample.name, {}), sample
            found.setdefault(sample.name, {})[key] = sample.value
    return found


def test_the_metrics_state_requests_queries_store_and_index(client: TestClient, kg: KnowledgeGraph) -> None:
    client.get("/sparql", params={"query": "ASK {}"})
    client.post("/tools/search", json={"query": "solar"})
    found = read_metrics(client)
    counted = kg.store.statistics()
    assert found["quadcite_http_requests_total"]["GET", "/sparql", "200"] >= 1
    assert found["quadcite_http_request_seconds_count"][("/sparql",)] >= 1
    assert found["quadcite_query_seconds_count"][()] >= 1
    assert found["quadcite_query_wait_seconds_count"][()] >= 1
    assert found["quadcite_search_seconds_count"][("ok",)] >= 1
    assert found["quadcite_commit_seconds_count"][("ok",)] >= 1
    assert found["quadcite_store_generation"][()] == counted.generation
    assert found["quadcite_store_quads"][()] == counted.quads
    assert found["quadcite_store_bytes"][()] > 0
    assert found["quadcite_index_up"][()] == found["quadcite_ready"][()] == found["quadcite_store_writable"][()] == 1
    assert found["quadcite_vectors_pending"][()] == kg.search.status().pending_vectors
    assert set(found["quadcite_queries"]) >= {("tools", "running"), ("tools", "waiting")}
    assert {kind for kind, _ in found["quadcite_calls"]} >= {"own", "light", "raw", "long", "updating", "pages"}
    assert found["quadcite_held"][("overdue",)] == 0


def test_due_derivations_are_counted_in_the_background(client: TestClient, kg: KnowledgeGraph) -> None:
    until(lambda: "quadcite_derivations_due" in read_metrics(client))
    due = {(name,): sum(reasons.values()) for name, reasons in derivations.count_due(kg).items()}
    assert sum(due.values()) > 0
    assert read_metrics(client)["quadcite_derivations_due"] == due


def test_stopped_queries_are_counted_by_reason(client: TestClient) -> None:
    def count() -> float:
        return read_metrics(client).get("quadcite_query_stops_total", {}).get(("timeout",), 0)

    before = count()
    slow = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
    assert client.get("/sparql", params={"query": slow, "timeout": "0.2"}).status_code == 504
    assert count() == before + 1


def test_a_server_that_answers_is_live_and_ready(client: TestClient) -> None:
    assert client.get("/health/live").json() == {"status": "live"}
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["missing"]) == (200, [])


class Failing:
    """A part whose methods named `results` return these, or raise them."""

    def __init__(self, part: Any, **results: Any) -> None:
        self._part, self._results = part, results

    def __getattr__(self, name: str) -> Any:
        if name not in self._results:
            return getattr(self._part, name)
        return partial(self._answer, self._results[name])

    def _answer(self, result: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        return result


def test_the_reasons_why_a_server_is_not_ready(kg: KnowledgeGraph) -> None:
    monitor = Monitor(kg, ToolThreads(kg))
    assert monitor.find_reasons()[0] == []
    monitor.is_stopping = lambda: True
    monitor.find_policy_problem = lambda: "press.cedar: line 3"
    status = replace(kg.search.status(), problem="/secret/path does not answer")
    silent = replace(kg, search=Failing(kg.search, status=status))
    monitor.kg = silent
    missing, degraded = monitor.find_reasons()
    assert (missing, set(degraded) >= {"policies"}) == (["stopping", "index"], True)
    broken = replace(silent, store=Failing(kg.store, statistics=StoreError("x")))
    monitor.kg = broken
    assert monitor.find_reasons()[0] == ["stopping", "store", "index"]
    client = TestClient(create_app(broken), base_url="http://127.0.0.1")
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["missing"]) == (503, ["store", "index"])
    assert "secret" not in answer.text


def test_the_state_is_for_admins(client: TestClient, kg: KnowledgeGraph) -> None:
    state = client.post("/admin/state").json()
    assert state["store"]["generation"] == kg.store.statistics().generation
    assert state["requests"]["total"] >= 1
    assert set(state["calls"]) >= {"own", "raw"}
    mine = next(each for each in state["processes"] if each["pid"] == os.getpid())
    assert mine["memory_bytes"] > 1 << 20
    assert "kg.queries.worker" in {each["name"] for each in state["processes"]}
    everyone = TestClient(create_app(kg, accounts=SentBy(actor=EVERYONE)), base_url="http://127.0.0.1")
    assert everyone.post("/admin/state").status_code == 403


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python", "-m", "kg.queries.worker", '{"key": "secret"}'], "kg.queries.worker"),
        (["/usr/bin/env", "kg.search.index_process", "x"], "kg.search.index_process"),
        (["/opt/bin/tool", "--token=secret"], "tool"),
        ([""], ""),
    ],
)
def test_processes_are_named_without_their_options(words: list[str], name: str) -> None:
    assert monitoring._name_process(words) == name
