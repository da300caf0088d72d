"""What the application promises to machines: who may ask, where it binds, and how it starts and stops."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from urllib.parse import quote

import anyio
import pytest
import uvicorn
from fastmcp.utilities.tests import ASGIServer

from kg import loading
from kg.access.actors import HOLDER
from kg.errors import IndexUnavailableError, InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.queries.dispatcher import Ticket
from kg.server import app
from kg.server.app import create_app, repairing_index
from kg.server.http_server import address_of, listen
from kg.store.protocol import Rows
from kg.tools.catalog.health import health
from kg.vocabulary import BASE
from loaders import pipeline
from loaders.sources import build_loader
from tests.accounts import SentBy
from tests.examples import spread
from tests.folders import without_models
from tests.waiting import until

pytestmark = pytest.mark.long


def request(kg, method: str, path: str, **options):
    async def run():
        served = create_app(kg)
        async with served.router.lifespan_context(served):
            server = ASGIServer(url="http://127.0.0.1/mcp", app=served, transport_type="http")
            async with server.http_client() as http:
                return await http.request(method, path, **options)

    return anyio.run(run)


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "health", "arguments": {}}}
JSON = {"Accept": "application/json"}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/climate", "/mcp/all"])
def test_a_tool_can_be_called_with_plain_json(kg, path):
    answer = request(kg, "POST", path, json=CALL, headers=JSON)
    assert answer.status_code == 200
    assert answer.json()["result"]["structuredContent"]["status"] == "ok"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/research", "/health", "/sparql?query=ASK{}"])
@pytest.mark.parametrize(
    ("headers", "status"), [({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)]
)
def test_a_foreign_host_or_page_is_turned_away_everywhere(kg, path, headers, status):
    method = "POST" if path.startswith("/mcp") else "GET"
    body = {"json": CALL} if method == "POST" else {}
    assert request(kg, method, path, headers={**JSON, **headers}, **body).status_code == status


def test_health_is_ready_while_passages_wait_for_vectors(kg):
    answer = request(kg, "GET", "/health")
    assert answer.status_code == 200
    state = answer.json()
    assert state["pending_vectors"] == 3
    assert state["quads"] > 0
    assert state["generation"] >= 1


@pytest.fixture
def unmeasured(monkeypatch):
    """Apps do not measure the schema, whose queries run in the background."""
    monkeypatch.setattr(app, "measuring", lambda kg: nullcontext())


@pytest.mark.usefixtures("unmeasured")
def test_health_counts_everything_that_is_held(kg, monkeypatch):
    """While a load waits for another one, and after it was given up."""
    held = []

    async def get_held(http):
        return (await http.get("/health")).json()["held"]

    async def run():
        served = create_app(kg, accounts=SentBy(actor=HOLDER))
        async with served.router.lifespan_context(served):
            server = ASGIServer(url="http://127.0.0.1/mcp", app=served, transport_type="http")
            async with server.http_client() as http, anyio.create_task_group() as group:
                group.start_soon(partial(http.post, "/tools/load", json={"source": "climate", "paths": ["none"]}))
                with anyio.fail_after(60):
                    while not (await get_held(http))["long_calls"]:
                        await anyio.lowlevel.checkpoint()
                held.append(await get_held(http))
                group.cancel_scope.cancel()
            async with server.http_client() as http:
                with anyio.fail_after(60):
                    while (await get_held(http))["long_calls"]:
                        await anyio.lowlevel.checkpoint()
                held.append(await get_held(http))

    monkeypatch.setattr(kg, "confined", lambda *_, **__: pytest.fail("it was given up"))
    with loading.exclusive_load(lambda *_: None):
        anyio.run(run)
    during, after = ({name: count for name, count in each.items() if count} for each in held)
    assert during.pop("body_bytes") > 0
    assert during == {"bodies": 1, "long_calls": 1}
    assert after == {}


def test_health_is_degraded_when_the_index_does_not_answer(kg, monkeypatch):
    known = replace(kg.search.status(), problem="The process is being restarted.")
    monkeypatch.setattr(kg.search, "status", lambda: known)
    answer = request(kg, "GET", "/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert any(known.problem in problem for problem in answer.json()["problems"])


def test_health_is_degraded_while_the_index_lacks_a_commit(kg, monkeypatch):
    monkeypatch.setattr(kg, "unindexed", threading.Event())
    assert health(kg).status == "ok"
    kg.unindexed.set()
    assert health(kg).status == "degraded"


@pytest.mark.parametrize("error", [IndexUnavailableError("It is being restarted."), ValueError("unforeseen")])
def test_a_change_that_the_index_did_not_take_is_indexed_later(kg, monkeypatch, error):
    monkeypatch.setattr(app, "REPAIR_PAUSE_S", 0.01)
    state, failures = kg.search.state, iter([error] * 3)
    repaired = threading.Event()

    def fail_first():
        for error in failures:
            raise error
        repaired.set()
        return state()

    with repairing_index(kg):
        monkeypatch.setattr(kg.search, "state", fail_first)
        kg.unindexed.set()
        assert repaired.wait(60)


def test_a_removal_that_was_interrupted_is_completed_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr("loaders.files.graph.entities._LARGE", 5)
    settings = without_models(tmp_path / "data")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "kept.md").write_text("The tide is out.")
    (tmp_path / "notes" / "pump.md").write_text(
        "# Log\n\nThe Tide Gateway uses the Brine Pump in Ferrowick. The **Tide Gatewey** is old.\n"
    )
    links = BASE + "graph/ext/entities/links/"
    with KnowledgeGraph.open(tmp_path / "data", settings) as kg:
        loader = build_loader("files", settings)
        pipeline.load(kg, loader, [str(tmp_path / "notes")])
        (tmp_path / "notes" / "pump.md").unlink()
        pipeline.load(kg, replace(loader, refresh=None), [str(tmp_path / "notes")], prune=True)
        assert kg.store.find_invalidated_graphs()
        assert any(graph.value.startswith(links) for graph in kg.store.graphs())
        with repairing_index(kg):
            until(lambda: not any(graph.value.startswith(links) for graph in kg.store.graphs()))
        assert not kg.store.find_invalidated_graphs()
        assert not any("/graph/ref/entity/" in graph.value for graph in kg.store.graphs())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":[]}}',
        b"\xff\xfe",
        b"[" * 5_000,
    ],
)
def test_a_broken_request_is_answered_with_an_error(kg, body):
    answer = request(kg, "POST", "/mcp", content=body, headers={**JSON, "Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500 or "error" in answer.json()


def test_starting_brings_the_index_up_to_date(kg):
    request(kg, "GET", "/health")
    with_text = kg.store.query("SELECT DISTINCT ?graph WHERE { GRAPH ?graph { ?unit schema:text ?text } }")
    assert isinstance(with_text, Rows)
    assert kg.search.state().keys() == {row["graph"].value for row in with_text} != set()


def test_a_port_in_use_is_named():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match=f"{port} .* in use"):
            listen("127.0.0.1", port)


def test_the_address_names_the_port_that_was_taken():
    with listen("localhost", 0) as listening:
        assert address_of(listening) == f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_answers_are_not_held_back_by_nagles_algorithm():
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # what asyncio asks for before it sets TCP_NODELAY


SERVE = """
import sys
from pathlib import Path
from kg.search.registry import MINILM
from kg.server.app import serve
from kg.settings import Settings
data = Path(sys.argv[1])
settings = Settings(data_dir=data, models_dir=data / "no-models", model=MINILM, _env_file=None)
ready = sys.stdout if sys.argv[2] == "http" else sys.stderr  # standard output is the protocol's
say = lambda address: print(address, file=ready, flush=True)
serve(data, settings, port=0, transport=sys.argv[2], on_ready=say)
"""


def start(tmp_path, transport: str, **streams) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", SERVE, str(tmp_path / "data"), transport], **streams)


@pytest.mark.parametrize(("number", "logged"), spread([(signal.SIGTERM, True), (signal.SIGINT, False)], 1))
def test_a_server_starts_answers_and_stops_when_told(tmp_path, monkeypatch, number, logged):
    monkeypatch.setenv("QUADCITE_ACCESS_LOG", str(logged))
    with start(tmp_path, "http", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address, process.stderr.read().decode() if process.stderr else ""
        with urllib.request.urlopen(f"{address}/health", timeout=60) as answer:  # noqa: S310
            state = json.load(answer)
        lock = (tmp_path / "data" / "lock").read_text()
        process.send_signal(number)
        output, log = process.communicate(timeout=60)
    assert state["quads"] == 0 or state["generation"] >= 0
    assert json.loads(lock)["address"] == address
    assert process.returncode == 0
    assert output == b""
    assert (b"GET /health" in log) is logged
    assert b"Traceback" not in log


@contextmanager
def listening_app(kg):
    server = uvicorn.Server(uvicorn.Config(create_app(kg), log_level="warning"))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/research"])
def test_a_client_that_hangs_up_ends_the_queries_of_its_call(kg, path):
    call = {"name": "search", "arguments": {"query": "solar"}}
    body = json.dumps({**CALL, "params": call}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    dispatcher = kg.pool.dispatcher
    tickets = [Ticket("", "ASK {}") for _ in range(kg.settings.query_workers)]
    assert all(dispatcher.submit(ticket, lambda: None) for ticket in tickets)
    try:
        with listening_app(kg) as port:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
                client.sendall(head.encode() + body)
                until(lambda: len(kg.pool.list_queries()) > len(tickets))
            until(lambda: len(kg.pool.list_queries()) == len(tickets))
    finally:
        for ticket in tickets:
            dispatcher.hand_back(ticket)


ENDLESS = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"VALUES ?{x} {{ 1 2 3 4 5 6 7 8 9 }}" for x in "abcdefghijklm") + "}"


@pytest.mark.exhaustive
def test_runaway_queries_leave_the_tools_their_workers(tmp_path):
    call = json.dumps({**CALL, "params": {"name": "list_resources", "arguments": {}}}).encode()
    with start(tmp_path, "http", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process, ExitStack() as stack:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        stack.callback(process.terminate)
        runaways = [
            stack.enter_context(socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=60))
            for _ in range(6)
        ]
        for runaway in runaways:
            runaway.sendall(f"GET /sparql?query={quote(ENDLESS)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}/mcp", call, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            assert not json.load(answer)["result"].get("isError")
        answered, _, _ = select.select(runaways, [], [], 0)
        assert not answered, "the runaways ended before the tool was answered: they held nothing up"


@pytest.mark.long
def test_a_query_that_runs_when_the_server_stops_is_told_so(tmp_path):
    with start(tmp_path, "http", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().decode().strip().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(
                f"GET /sparql?query={quote(ENDLESS)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/sparql?query=ASK%7B%7D", timeout=60):
                process.send_signal(signal.SIGTERM)
            answer = b"".join(iter(lambda: client.recv(65_536), b""))
        _, log = process.communicate(timeout=60)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"The server is stopping." in answer
    assert process.returncode == 0
    assert b"Traceback" not in log


@pytest.mark.exhaustive
def test_stdio_carries_the_protocol_and_nothing_else(tmp_path):
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }
    messages = [hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, {**CALL, "id": 2}]
    with start(tmp_path, "stdio", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        rest = process.stdout.read()
        process.wait(timeout=60)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["structuredContent"]["quads"] >= 0
    assert rest == b""
    assert process.returncode == 0
