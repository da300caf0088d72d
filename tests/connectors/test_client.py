"""Calls of a real MCP server on loopback: normal, slow, stopped in the middle, back again, and hostile."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from kg.connectors.breaker import CircuitBreaker
from kg.connectors.client import ATTEMPTS, Connectors, RemoteServer
from kg.connectors.manifest import load_manifest
from kg.errors import NotFoundError, UpstreamError
from kg.remote.outcomes import last_outcome
from tests.connectors.conftest import entry, settings_of
from tests.connectors.wikidata_server import serving

TOKEN = "hunter2-hunter2"


def connect(tmp_path, url, *, more=None, breaker=None, sleep=lambda seconds: None, **settings) -> RemoteServer:
    given = settings_of(tmp_path, entry(url, **(more or {})), **{"connector_timeout_s": 30.0, **settings})
    [connector] = load_manifest(given).connectors
    return RemoteServer(connector, given, sleep=sleep, breaker=breaker or CircuitBreaker(failures=100))


def test_a_canonical_call_reaches_the_tool_of_the_server_and_is_logged(server, tmp_path, caplog):
    caplog.set_level(logging.INFO, "kg.connectors")
    remote = connect(tmp_path, server.url)
    answers = remote.call("wikidata.get_claims", {"qids": ["Q9100011", "Q9100010"]})
    assert [answer.arguments["entity_id"] for answer in answers] == ["Q9100011", "Q9100010"]
    assert "Marit Osterlund (Q9100011): place of birth (P19): Port Elster (Q9100010)" in answers[0].text
    assert {name for name, _ in server.calls()} == {"get_statements"}
    normalized = {record.fields["remote_tool"]: record.fields["tool"] for record in caplog.records}
    assert normalized["get_statements"] == "wikidata.get_claims"
    assert last_outcome(server.url).problem is None


def test_an_older_server_is_called_by_its_own_names(tmp_path):
    with serving(names="old") as old:
        remote = connect(tmp_path, old.url)
        remote.call("wikidata.get_claims", {"qids": ["Q9100011"]})
        remote.call("get_statement_values", {"entity_id": "Q9100010", "property_id": "P1082"})
        assert [name for name, _ in old.calls()] == ["get_entity_claims", "get_claim_values"]
        assert remote.state.drift == []


def test_an_answer_is_cached_and_the_tools_are_listed_once(server, tmp_path):
    remote = connect(tmp_path, server.url)
    first = remote.call("wikidata.sparql", {"query": "SELECT ?s { ?s ?p 5 } LIMIT 1"})
    assert remote.call("wikidata.sparql", {"query": "SELECT ?s { ?s ?p 5 } LIMIT 1"}) == first
    assert connect(tmp_path, server.url).call("wikidata.sparql", {"query": "SELECT ?s { ?s ?p 5 } LIMIT 1"}) == first
    assert len(server.calls()) == 1


def test_a_slow_server_is_waited_for(server, tmp_path):
    server.faults.mode = "slow"
    assert connect(tmp_path, server.url).call("wikidata.vector_search_items", {"query": "elster"})


@pytest.mark.parametrize(
    ("mode", "retried"),
    [
        ("hang", False), ("drip", False), ("html", False), ("wrong", False), ("garbage", False), ("huge", False),
        ("busy", True), ("cut", True),
    ],
)  # fmt: skip
def test_a_fault_ends_within_the_time_with_an_error_of_the_upstream(server, tmp_path, caplog, mode, retried):
    limit_s = 8.0 if retried else 1.0  # all attempts fit into it, on a slow machine too
    remote = connect(tmp_path, server.url, connector_timeout_s=limit_s, connector_max_mb=1)
    remote.list_tools(30.0)
    server.faults.mode = mode
    server.faults.requests.clear()
    began = time.monotonic()
    with pytest.raises(UpstreamError) as caught:
        remote.call("wikidata.vector_search_items", {"query": mode})
    assert time.monotonic() - began < 10  # it would hang for 60 s
    assert "wikidata" in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert (len(server.faults.requests) > ATTEMPTS - 1) is retried
    [logged] = [record.fields for record in caplog.records if record.name == "kg.connectors.client"]
    assert (logged["event"], logged["connector"], logged["tool"]) == ("connector_error", "wikidata", "search_items")
    assert logged["answer"].isprintable()
    assert {"html": "Please log in", "busy": "overloaded", "wrong": "deep", "garbage": "{{{"}.get(mode, "") in logged[
        "answer"
    ]
    assert last_outcome(server.url).problem


def test_a_redirect_to_another_origin_is_refused_and_nothing_is_sent_there(server, tmp_path):
    remote = connect(tmp_path, server.url, more={"auth": {"type": "bearer", "token": TOKEN}})
    remote.list_tools()
    with serving() as internal:
        for target in (internal.url, "http://169.254.169.254/latest/", f"//127.0.0.2:{internal.port}/mcp/"):
            server.faults.mode, server.faults.target = "redirect", target
            with pytest.raises(UpstreamError, match="refused"):
                remote.call("wikidata.vector_search_items", {"query": target})
        assert internal.faults.headers == []


def test_a_redirect_within_the_origin_is_followed(server, tmp_path):
    remote = connect(tmp_path, server.url.rstrip("/"))
    assert remote.call("wikidata.vector_search_items", {"query": "port elster"})[0].text.startswith("Q9100010")


def test_an_error_of_the_tool_is_not_retried_and_does_not_count_against_the_server(server, tmp_path):
    breaker = CircuitBreaker(failures=1)
    remote = connect(tmp_path, server.url, breaker=breaker)
    with pytest.raises(UpstreamError):
        remote.call("wikidata.sparql", {"query": "SELECT 1", "limit": {"not": "a number"}})
    assert len(server.calls()) == 1
    assert breaker.state == "closed"


def test_a_tool_that_the_server_lacks_is_drift_and_not_a_failure_of_the_server(server, tmp_path, caplog):
    remote = connect(
        tmp_path, server.url, more={"remoteTools": [{"name": "wikidata.sparql"}, {"name": "wikidata.map"}]}
    )
    assert remote.state.tools is None
    assert remote.state.drift == []
    remote.call("wikidata.vector_search_items", {"query": "elster"})
    assert remote.state.drift == ["wikidata.map"]
    [logged] = [each.fields for each in caplog.records if getattr(each, "fields", {}).get("event") == "connector_drift"]
    assert logged["tools"] == "wikidata.map"
    with pytest.raises(NotFoundError):
        remote.call("wikidata.map", {"qids": ["Q1"]})


def test_a_server_that_asks_for_a_pause_is_given_it(server, tmp_path):
    remote = connect(tmp_path, server.url)
    remote.list_tools()
    server.faults.mode, server.faults.target = "pause", "60"
    server.faults.requests.clear()
    with pytest.raises(UpstreamError):
        remote.call("wikidata.vector_search_items", {"query": "pause"})
    assert len(server.faults.requests) == 1
    remote._limiter._next = 0.0  # other tests use the same host
    server.faults.target = "0.2"
    server.faults.requests.clear()
    with pytest.raises(UpstreamError):
        remote.call("wikidata.vector_search_items", {"query": "pause"})
    assert len(server.faults.requests) == ATTEMPTS


def test_the_token_is_sent_and_is_in_no_message(server, tmp_path):
    remote = connect(tmp_path, server.url, more={"auth": {"type": "bearer", "token": TOKEN}})
    with pytest.raises(UpstreamError) as caught:
        remote.call("wikidata.sparql", {"query": "SELECT 1", "limit": TOKEN})
    assert TOKEN not in str(caught.value)
    assert {headers["authorization"] for headers in server.faults.headers} == {f"Bearer {TOKEN}"}


def test_a_server_that_is_stopped_in_the_middle_and_comes_back(tmp_path):
    with serving() as server:
        breaker = CircuitBreaker(failures=2, rest_s=0.2)
        remote = connect(tmp_path, server.url, breaker=breaker, connector_timeout_s=2.0)
        kept = remote.call("wikidata.get_claims", {"qids": ["Q9100011"]})
        server.faults.mode = "hang"
        killer = threading.Timer(0.2, server.stop)
        killer.start()
        with pytest.raises(UpstreamError):
            remote.call("wikidata.get_claims", {"qids": ["Q9100010"]})
        killer.join()
        with pytest.raises(UpstreamError):
            remote.call("wikidata.get_claims", {"qids": ["Q9100012"]})
        assert breaker.state != "closed"
        [stale] = remote_at(remote, kept).call("wikidata.get_claims", {"qids": ["Q9100011"]})
        assert stale.text == kept[0].text
        assert stale.problem
        server.faults.mode = "normal"
        server.start()
        time.sleep(0.2)
        assert breaker.state == "half_open"
        assert remote.call("wikidata.get_claims", {"qids": ["Q9100012"]})[0].problem is None
        assert breaker.state == "closed"


def remote_at(remote: RemoteServer, kept) -> RemoteServer:
    """The same server an hour after the answers `kept`, so that they are old."""
    remote._clock = lambda: kept[0].asked_at.timestamp() + 3_600
    return remote


def test_many_calls_at_once_make_each_request_once(server, tmp_path):
    remote = connect(tmp_path, server.url)
    found = []

    def ask(query: str) -> None:
        found.append(remote.call("wikidata.vector_search_items", {"query": query}))

    threads = [threading.Thread(target=ask, args=(query,)) for query in ["elster", "marit"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(server.calls()) == 2


def test_servers_that_declare_a_tool_come_first_and_disabled_ones_never(tmp_path):
    settings = settings_of(
        tmp_path,
        {"id": "legacy", "version": "1", "endpoint": "https://a.example.org/"},
        entry("https://b.example.org/"),
        entry("https://c.example.org/", id="off", enabled=False),
        entry("https://d.example.org/", id="other", remoteTools=[{"name": "other.tool"}]),
        entry("https://e.example.org/", id="variant", remoteTools=[{"name": "get_entity_claims"}]),
    )
    found = Connectors.from_settings(settings).having("wikidata.get_claims")
    assert [server.connector.id for server in found] == ["wikidata", "variant", "legacy"]


def test_watching_lists_the_tools_in_the_background(server, tmp_path):
    connectors = Connectors([connect(tmp_path, server.url)])
    with connectors.watching():
        deadline = time.monotonic() + 10
        while connectors.states()[0].tools is None and time.monotonic() < deadline:
            time.sleep(0.02)
    assert "wikidata.sparql" in connectors.states()[0].tools


def test_a_breaker_opens_after_failures_in_a_row_and_lets_one_trial_through():
    now = [0.0]
    breaker = CircuitBreaker(failures=2, rest_s=10, clock=lambda: now[0])
    breaker.fail("a")
    breaker.succeed()
    breaker.fail("b")
    assert breaker.find_refusal() is None
    breaker.fail("c")
    assert breaker.state == "open"
    assert "c" in breaker.find_refusal()
    now[0] = 10.0
    assert breaker.state == "half_open"
    assert breaker.find_refusal() is None
    assert breaker.find_refusal() is not None
    breaker.abandon()
    assert breaker.find_refusal() is None
    breaker.fail("d")
    assert breaker.state == "open"
    now[0] = 20.0
    assert breaker.find_refusal() is None
    breaker.succeed()
    assert breaker.state == "closed"
