"""A query's way to HTTP: what is cut says so, large results stream in little memory, nobody waits for a client."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from pyoxigraph import QueryResultsFormat, parse_query_results
from rdflib.plugins.sparql.results.jsonresults import JSONResult
from starlette.applications import Starlette

from kg.access.actors import EVERYONE, READ, Actor
from kg.queries.pool import QueryPool
from kg.server import sparql_protocol
from kg.server import sparql_protocol as queries
from kg.server.connection_limits import LimitedProtocol
from kg.server.endpoint import Endpoint
from kg.server.http_server import address_of, listen
from kg.server.query_execution import HELD_BYTES, TRUNCATED
from kg.settings import Settings
from tests.conformance.plain_store import PlainStore
from tests.waiting import LIMITS_S, until

PLAIN = {"Accept": "application/sparql-results+json", "Accept-Encoding": "identity"}
CROSS_JOIN = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?h ?i }"
# Too large for the buffers of a connection, which may take several MiB: the query cannot end while nobody reads it.
LARGE = f"SELECT (REPLACE(?b, '.', '{'x' * 2000}') AS ?long) {{ ?a ?p ?b . ?c ?q ?d }}"


class Served:
    """An endpoint over a few triples on a real socket."""

    def __init__(self, folder: Path, **limits: object) -> None:
        self.settings = Settings(query_workers=2, _env_file=None, **limits)  # type: ignore[arg-type]
        self.store = PlainStore(folder)
        rows = " ".join(f"<http://example.org/{n}> <http://example.org/p> 'value {n}' ." for n in range(300))
        self.store.update(f"INSERT DATA {{ {rows} }}")
        self.pool = QueryPool(self.store, self.settings)
        self.actor: Actor = EVERYONE
        self.endpoint = Endpoint(
            settings=self.settings,
            pool=self.pool,
            generation=lambda: self.store.generation,
            actor=lambda request: self.actor,
            graphs=self.store,
            update=None,
            union=False,
        )

    @contextmanager
    def running(self) -> Iterator[httpx.Client]:
        app = Starlette(routes=[*sparql_protocol.routes(self.endpoint), *queries.running_query_routes(self.endpoint)])
        listening = listen("127.0.0.1", 0)
        config = uvicorn.Config(app, log_config=None, lifespan="off", http=LimitedProtocol)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with httpx.Client(base_url=address_of(listening), timeout=90) as client:
                yield client
        finally:
            server.should_exit = True
            self.pool.close()
            thread.join()
            self.store.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    limits = {"max_rows": 20_000, "query_timeout_s": 100.0, "query_memory_mb": 200}
    return Served(tmp_path_factory.mktemp("served"), **limits)


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with served.running() as client:
        yield client


def get(client: httpx.Client, query: str, **parameters: object) -> httpx.Response:
    return client.get("/sparql", params={"query": query, **parameters}, headers=PLAIN)  # type: ignore[dict-item]


def test_a_small_result_is_whole_and_says_so(client: httpx.Client) -> None:
    answer = get(client, "SELECT ?s { ?s ?p 'value 7' }")
    assert answer.headers["Quadcite-Truncated"] == "false"
    assert answer.headers["Quadcite-Row-Limit"] == "20000"
    assert answer.headers["Quadcite-Snapshot"] == "1"
    assert "content-length" in answer.headers
    assert answer.json()["head"] == {"vars": ["s"]}


def test_a_cut_json_result_that_was_streamed_says_so_at_its_end(client: httpx.Client) -> None:
    answer = get(client, "SELECT ('x' AS ?x) { ?a ?p ?b . ?c ?q ?d }")
    assert len(answer.content) > HELD_BYTES
    assert "Quadcite-Truncated" not in answer.headers
    assert answer.json()["meta"] == {"truncated": True}
    assert len(JSONResult(answer.json()).bindings) == 20_000
    with pytest.raises(SyntaxError):  # a parser that knows no further member does not take the part for the whole
        list(parse_query_results(answer.content, format=QueryResultsFormat.JSON))


def test_a_cut_json_result_that_was_held_has_a_link_in_its_head_that_parsers_take(tmp_path: Path) -> None:
    with Served(tmp_path, max_rows=7).running() as client:
        answer = get(client, "SELECT ?s ?o { ?s ?p ?o }")
        assert answer.headers["Quadcite-Truncated"] == "true"
        assert answer.json()["head"] == {"link": [TRUNCATED], "vars": ["s", "o"]}
        assert len(answer.json()["results"]["bindings"]) == 7
        assert len(list(parse_query_results(answer.content, format=QueryResultsFormat.JSON))) == 7
        assert len(JSONResult(answer.json()).bindings) == 7


def test_first_rows_come_while_the_query_runs_and_leaving_stops_it(served: Served, client: httpx.Client) -> None:
    with client.stream("GET", "/sparql", params={"query": LARGE}, headers=PLAIN) as answer:
        pieces = answer.iter_raw()  # a variable: httpcore closes the connection of an iterator that is dropped
        assert len(next(pieces)) > 0
        until(lambda: len(served.pool.list_queries()) == 1)
    until(lambda: served.pool.list_queries() == [])
    with socket.create_connection((client.base_url.host, client.base_url.port)) as gone:
        gone.sendall(f"GET /sparql?query={quote(CROSS_JOIN)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: len(served.pool.list_queries()) == 1)
    until(lambda: served.pool.list_queries() == [])
    assert get(client, "ASK {}").json()["boolean"] is True


def test_a_query_past_its_deadline_is_a_504_and_one_cut_off_within_its_answer_is_no_whole_answer(
    served: Served, client: httpx.Client
) -> None:
    begun = time.monotonic()
    assert get(client, CROSS_JOIN, timeout=0.3).status_code == 504
    assert time.monotonic() - begun < 60
    for limit_s in LIMITS_S:
        parameters: dict[str, str | float] = {"query": LARGE, "timeout": limit_s}
        with client.stream("GET", "/sparql", params=parameters, headers=PLAIN) as answer:
            if answer.status_code == 504:  # no rows yet, on a busy machine
                continue
            pieces = answer.iter_raw()
            next(pieces)  # the rest is read after the deadline, so that the query cannot end before it
            until(lambda: served.pool.list_queries() == [])
            with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
                list(pieces)
            break
    assert answer.status_code == 200


def test_queries_are_listed_and_stopped_over_http(served: Served, client: httpx.Client) -> None:
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(get(client, CROSS_JOIN)))
    asking.start()
    until(lambda: any(query.state == "running" for query in served.pool.list_queries()))
    [query] = client.get("/sparql/queries").json()["queries"]
    assert set(query) == {"id", "client", "age_s", "sha256", "lane", "state"}
    assert query["client"].endswith("@127.0.0.1")
    served.actor = Actor("reader", frozenset({READ}))
    assert client.delete(f"/sparql/queries/{query['id']}").status_code == 403
    served.actor = EVERYONE
    assert client.delete(f"/sparql/queries/{query['id']}").status_code == 204
    asking.join()
    assert answers[0].status_code == 503
    assert "cancelled" in answers[0].json()["message"]
    again = client.delete(f"/sparql/queries/{query['id']}")
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
    for number in ("9" * 5_000, "-1", "1e3", "\u0664"):
        unknown = client.delete(f"/sparql/queries/{number}")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


def test_a_snapshot_can_be_asked_for_while_it_is_kept(tmp_path: Path) -> None:
    served = Served(tmp_path)
    with served.running() as client:
        seen = []
        for number in range(4):
            seen.append(get(client, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").headers["Quadcite-Snapshot"])
            served.store.update(f"INSERT DATA {{ <a:s> <a:p> {number} }}")
        assert seen == ["1", "2", "3", "4"]
        assert get(client, "ASK {}").headers["Quadcite-Snapshot"] == "5"
        kept = get(client, "SELECT ?o { <a:s> <a:p> ?o }", snapshot=4)
        assert (kept.headers["Quadcite-Snapshot"], len(kept.json()["results"]["bindings"])) == ("4", 3)
        gone, never = get(client, "ASK {}", snapshot=1), get(client, "ASK {}", snapshot=99)
        assert (gone.status_code, never.status_code) == (410, 400)
        assert "4, 5" in gone.json()["message"]


def test_the_servers_memory_stays_flat_on_a_large_result(tmp_path: Path) -> None:
    def resident() -> float:
        [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) / 1024

    served = Served(tmp_path, max_rows=100_000_000, max_result_mb=60, query_timeout_s=100.0)
    with served.running() as client:
        large = f"SELECT (REPLACE(?b, '.', '{'x' * 500}') AS ?long) {{ ?a ?p ?b . ?c ?q ?d }}"
        with client.stream("GET", "/sparql", params={"query": large}, headers=PLAIN) as answer:
            pieces = answer.iter_raw()
            size = len(next(pieces))
            before = resident()
            most = before
            for piece in pieces:
                size += len(piece)
                most = max(most, resident())
    assert size > 60 << 20
    assert most - before < 30


def test_requests_that_arrive_too_slowly_or_never_are_closed_and_hold_up_nobody(
    served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LimitedProtocol, "arrival_s", 0.5)
    monkeypatch.setattr(LimitedProtocol.arriving, "most", 20)
    address = (client.base_url.host, client.base_url.port)
    slow = [socket.create_connection(address) for _ in range(60)]
    try:
        for number, connection in enumerate(slow):
            body = "POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\nContent-Length: 9\r\n"
            connection.sendall(body.encode()[: 30 + number] if number % 2 else (body + "\r\nASK").encode())
        assert get(client, "ASK {}").status_code == 200
        closed = 0
        for connection in slow:
            connection.settimeout(60)
            try:
                closed += connection.recv(1000) == b""
            except ConnectionResetError:  # it was closed while some of it was unread
                closed += 1
        assert closed == len(slow)
        assert get(client, "ASK {}").status_code == 200
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.exhaustive
def test_many_bad_queries_at_once_do_not_hold_up_the_good_ones(served: Served, client: httpx.Client) -> None:
    good = "SELECT ?s { ?s ?p 'value %d' }"
    for number in range(3):
        get(client, good % number)
    statuses: list[int] = []

    def bad(number: int) -> None:
        with httpx.Client(base_url=client.base_url, timeout=60) as other:
            statuses.append(get(other, f"{CROSS_JOIN} # {number}", timeout=1).status_code)

    threads = [threading.Thread(target=bad, args=(number,)) for number in range(100)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    until(lambda: len(served.pool.list_queries()) > 10)
    waits = []
    for number in range(20):
        begun = time.monotonic()
        assert get(client, good % number).status_code == 200
        waits.append(time.monotonic() - begun)
    for thread in threads:
        thread.join()
    assert sorted(waits)[10] < max(1.0, (time.monotonic() - started) / 20)  # a busy machine stretches both
    assert set(statuses) <= {429, 503, 504}
    until(lambda: served.pool.list_queries() == [])
