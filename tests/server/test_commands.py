"""Commands over HTTP: who may call them, their lines of progress and result, and how they end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from kg.knowledge_graph import PROGRESS, KnowledgeGraph
from kg.server.app import create_app
from kg.server.auth import LocalToken, read_token
from kg.server.authentication import Accounts
from kg.server.http_server import address_of, listen
from kg.tools import commands, registry
from kg.tools.calls import Command
from kg.tools.commands import COMMANDS


@pytest.fixture
def client(kg: KnowledgeGraph, tmp_path: Path) -> Iterator[httpx.Client]:
    """An admin of the served graph."""
    with served(kg, LocalToken(tmp_path)) as address:
        headers = {"Authorization": f"Bearer {read_token(tmp_path)}", "Accept": "application/x-ndjson"}
        with httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False) as http:
            yield http


@contextmanager
def served(kg: KnowledgeGraph, token: LocalToken) -> Iterator[str]:
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(create_app(kg, accounts=Accounts(token)), log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield address_of(listening)
        finally:
            server.should_exit = True
            thread.join()


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.parametrize("path", ["/tools/store_status", "/tools/load", "/admin/query", "/admin/snapshot"])
@pytest.mark.parametrize(
    ("credentials", "status", "code"),
    [(None, 403, "forbidden"), ("Bearer a-guess", 401, "unauthorized"), ("Basic dTpw", 401, "unauthorized")],
)
def test_a_command_is_for_the_holder_of_the_token(
    client: httpx.Client, path: str, credentials: str | None, status: int, code: str
) -> None:
    del client.headers["Authorization"]
    answer = client.post(path, headers={"Authorization": credentials} if credentials else {})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_no_listing_names_a_command(client: httpx.Client) -> None:
    names = {command.name for command in COMMANDS}
    assert names.isdisjoint(tool["name"] for tool in client.get("/tools").json()["tools"])
    unknown = client.post("/tools/forget").json()
    assert unknown["code"] == "not_found"
    assert names.isdisjoint(unknown["message"].replace(",", " ").replace(".", " ").split())


def test_the_last_line_is_the_result(client: httpx.Client, kg: KnowledgeGraph) -> None:
    answer = client.post("/tools/store_status")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert lines(answer)[-1]["result"]["quads"] == kg.store.statistics().quads
    assert client.post("/tools/store_status", headers={"Accept": "*/*"}).json()["quads"] == kg.store.statistics().quads


def test_a_tool_streams_too_when_asked_to(client: httpx.Client, kg: KnowledgeGraph) -> None:
    del client.headers["Authorization"]
    result = lines(client.post("/tools/health"))[-1]["result"]
    assert (result["quads"], result["meta"]["snapshot"]) == (kg.store.statistics().quads, result["generation"])


@pytest.mark.parametrize(
    ("path", "body", "datum"),
    [
        ("/tools/why", b"{", "JSON"),
        ("/tools/why", b"[]", "object"),
        ("/tools/why", b"[" * 100_000, "nested"),
        ("/admin/query", b"{}", "'query'"),
    ],
)
def test_a_body_that_is_no_object_of_arguments_is_invalid(
    client: httpx.Client, path: str, body: bytes, datum: str
) -> None:
    answer = client.post(path, content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert datum in answer.json()["message"]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("why", {}, "invalid_input"),
        ("why", {"iri": "no iri"}, "invalid_input"),
        ("why", {"iri": "cpr://doc/there-is-none"}, "not_found"),
        ("why", {"triple": ["<a:b>", "<a:c>"]}, "invalid_input"),
        ("why", {"colour": "red"}, "invalid_input"),
        ("backup", {"folder": "/proc/nowhere/at-all"}, "error"),
    ],
)
def test_an_operation_that_fails_ends_with_its_error(
    client: httpx.Client, name: str, arguments: dict[str, Any], code: str
) -> None:
    assert lines(client.post(f"/tools/{name}", json=arguments))[-1]["error"]["code"] == code


def test_a_fault_of_our_own_is_named_by_a_number_and_not_shown(
    client: httpx.Client, kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kg, "policies", None)  # of other commands

    def broken(kg: KnowledgeGraph) -> dict[str, Any]:
        raise ZeroDivisionError("a secret")

    for module in (registry, commands):
        monkeypatch.setattr(module, "COMMANDS", (Command(broken),))
    error = lines(client.post("/tools/broken"))[-1]["error"]
    assert error["code"] == "internal"
    assert error["message"].rsplit(" ", 1)[-1].rstrip(".") in caplog.text
    assert "secret" not in error["message"]


def test_a_query_streams_without_a_cap_on_rows(client: httpx.Client, kg: KnowledgeGraph) -> None:
    query = "SELECT ?x { VALUES ?a { " + "0 " * 1_000 + "} VALUES ?x { " + "1 " * 101 + "} }"
    answer = client.post("/admin/query", json={"query": query, "media_type": "text/csv"})
    assert answer.status_code == 200
    assert len(answer.text.splitlines()) == 1 + 101_000 > kg.settings.max_rows


def test_who_hangs_up_stops_the_operation(
    client: httpx.Client, kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kg, "policies", None)  # of other commands
    stopped = threading.Event()

    def endless(kg: KnowledgeGraph) -> dict[str, Any]:
        try:
            while True:
                PROGRESS.get()(1, None, "turning")
                threading.Event().wait(0.01)
        finally:
            stopped.set()

    for module in (registry, commands):
        monkeypatch.setattr(module, "COMMANDS", (Command(endless),))
    with client.stream("POST", "/tools/endless") as answer:
        said = answer.iter_lines()  # a variable: the connection of an iterator that is dropped is closed
        assert json.loads(next(said)) == {"progress": [1, None, "turning"]}
        assert not stopped.is_set()
    assert stopped.wait(60)
