"""The routes of connectors and metrics, and what `health` says about connectors."""

from __future__ import annotations

import re

import anyio
import pytest
from fastmcp import Client
from pydantic import SecretStr
from starlette.testclient import TestClient

from kg.connectors.client import Connectors
from kg.connectors.service_map import verify_service_map
from kg.server.app import create_app
from kg.server.mcp import build_mcp
from tests.connectors.conftest import entry, settings_of
from tests.connectors.wikidata_server import serving

MAP = "/v1/connectors/service-map"


@pytest.fixture
def client(kg, tmp_path, monkeypatch):
    settings = settings_of(tmp_path, entry(remoteTools=[{"name": "wikidata.vector_search_items", "tags": ["vector"]}]))
    monkeypatch.setattr(kg, "connectors", Connectors.from_settings(settings))
    return TestClient(create_app(kg), base_url="http://127.0.0.1", client=("127.0.0.1", 50_000))


@pytest.fixture
def signed(kg, monkeypatch):
    key = "a key"
    monkeypatch.setattr(kg, "settings", kg.settings.model_copy(update={"service_map_key": SecretStr(key)}))
    return key


def test_the_service_map_has_the_tools_with_their_tags_and_scopes(client):
    answer = client.get(MAP)
    assert answer.status_code == 200
    [connector] = answer.json()["connectors"]
    assert connector["remoteTools"][0] == {
        "name": "wikidata.vector_search_items",
        "tags": ["vector", "wikidata", "items"],
        "scopes": ["facts", "entities"],
    }
    assert "signature" not in answer.json()
    assert answer.headers["cache-control"] == "private, max-age=1800"


def test_a_map_that_was_sent_verifies(signed, client):
    assert verify_service_map(client.get(MAP).json(), signed.encode())


@pytest.mark.parametrize("headers", [{"X-Forwarded-For": "192.0.2.7"}, {"Forwarded": "for=192.0.2.7"}])
def test_an_unsigned_map_is_refused_outside_loopback(client, headers):
    answer = client.get(MAP, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_an_unsigned_map_is_refused_to_another_machine(kg, client):
    away = TestClient(create_app(kg), base_url="http://127.0.0.1", client=("192.0.2.7", 50_000))
    assert away.get(MAP).status_code == 403


def test_a_signed_map_is_served_through_a_proxy(signed, client):
    assert client.get(MAP, headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 200


@pytest.mark.parametrize("path", [MAP, "/metrics"])
def test_a_foreign_page_may_not_read_them(client, path):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
               "Accept": "text/html"}  # fmt: skip
    assert client.get(path, headers=headers).status_code == 403


def count(client, tool: str) -> float:
    found = re.search(rf'quadcite_tool_calls_total{{outcome="ok",tool="{tool}",transport="http"}} (\S+)', client.get(
        "/metrics"
    ).text)  # fmt: skip
    return float(found[1]) if found else 0.0


def list_hints(kg):
    async def work():
        async with Client(build_mcp(kg, "/mcp/wikidata")) as client:
            return {tool.name: tool.annotations for tool in await client.list_tools()}

    return anyio.run(work)


def test_tools_that_ask_connectors_and_store_their_answers_say_so(kg, tmp_path, monkeypatch):
    local = list_hints(kg)
    assert all(each.read_only_hint and not each.open_world_hint for each in local.values())
    for enabled, asking in ((False, set()), (True, {"wikidata_get_claims", "verify_fact"})):
        monkeypatch.setattr(kg, "connectors", Connectors.from_settings(settings_of(tmp_path, entry(enabled=enabled))))
        hints = list_hints(kg)
        assert {name for name, each in hints.items() if each.open_world_hint} == asking
        assert {name for name, each in hints.items() if not each.read_only_hint} == asking
        assert not any(each.destructive_hint for each in hints.values())


def test_metrics_count_the_calls_of_tools(client):
    before = count(client, "health")
    client.post("/tools/health", json={})
    assert count(client, "health") == before + 1
    assert client.get("/metrics").headers["content-type"].startswith("text/plain")


def test_health_reports_drift_and_a_connector_that_was_not_called_as_unknown(kg, client, tmp_path, monkeypatch):
    [service] = [each for each in client.get("/health").json()["services"] if each["name"] == "connector wikidata"]
    assert service["state"] == "unknown"
    with serving() as server:
        settings = settings_of(tmp_path, entry(server.url, remoteTools=[{"name": "wikidata.map"}]))
        connectors = Connectors.from_settings(settings)
        monkeypatch.setattr(kg, "connectors", connectors)
        connectors.servers["wikidata"].list_tools()
    answer = client.get("/health")
    [service] = [each for each in answer.json()["services"] if each["name"] == "connector wikidata"]
    assert (service["state"], service["drift"]) == ("ok", ["wikidata.map"])
    assert answer.status_code == 200
    assert any("wikidata.map" in problem for problem in answer.json()["problems"])
