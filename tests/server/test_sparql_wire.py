"""The SPARQL endpoint behind a real HTTP server: what clients send byte by byte, and when they get what."""

from __future__ import annotations

import logging
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPResponse
from urllib.parse import quote

import pytest
import uvicorn
from pyoxigraph import Literal, NamedNode, Quad
from starlette.applications import Starlette

from kg.access.actors import EVERYONE
from kg.queries.pool import QueryPool
from kg.server.endpoint import Endpoint
from kg.server.sparql_protocol import routes
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from tests.conformance.plain_store import PlainStore
from tests.waiting import LIMITS_S, until

CROSS_JOIN = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?h ?i }"
STEADY = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
"""Rows without end, as far as a test is concerned."""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    settings = Settings(max_rows=5_000, max_body_bytes=100_000, query_workers=2, query_queue=2, query_timeout_s=100)
    graph, p = NamedNode("https://w3id.org/quadcite/graph/src/test/one"), NamedNode("http://example.org/p")
    quads = [Quad(NamedNode(f"http://example.org/{i}"), p, Literal(f"value {i}"), graph) for i in range(500)]
    with OxigraphStore(tmp_path_factory.mktemp("wire") / "data") as store:
        store.commit({graph: quads})
        with PlainStore() as other, QueryPool(store, settings) as pool:
            yield Endpoint(
                settings=settings,
                pool=pool,
                generation=lambda: store.statistics().generation,
                actor=lambda request: EVERYONE,
                graphs=other,
                update=None,
            )


@contextmanager
def served(endpoint: Endpoint) -> Iterator[int]:
    """The endpoint behind a real HTTP server on a free port."""
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes(endpoint)), port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def connection(port: int, query: str, accept: str = "*/*", parameters: str = "") -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=90)
    target = f"/sparql?query={quote(query)}{parameters}"
    opened.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode())
    return opened


@pytest.mark.parametrize("query", [CROSS_JOIN, STEADY])
def test_a_client_that_goes_away_stops_its_query(endpoint: Endpoint, query: str) -> None:
    unlimited = replace(endpoint, settings=endpoint.settings.model_copy(update={"max_rows": 10**12}))
    with served(unlimited) as port:
        client = connection(port, query, "text/csv")
        until(endpoint.pool.list_queries)
        if query == STEADY:
            assert client.recv(65_536).startswith(b"HTTP/1.1 200")
        client.close()
        until(lambda: not endpoint.pool.list_queries())


@pytest.mark.parametrize("accept", ["text/csv", "text/csv\r\nAccept-Encoding: gzip"])
def test_a_result_that_meets_its_deadline_midway_never_looks_complete(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture, accept: str
) -> None:
    # 500 rows at once, more than are held back; then the join finds no more, for ever.
    slow = (
        f"SELECT (REPLACE(?long, 'v', '{'x' * 200}') AS ?x) {{ {{ ?s ?p ?long }} UNION "
        "{ ?a ?p ?b . ?c ?q ?d . ?e ?r ?f FILTER(CONCAT(?b, ?d, ?f) = 'none') BIND(?b AS ?long) } }"
    )
    slow = slow.replace("?long, 'v'", "REPLACE(?long, '.', '" + "v" * 4 + "'), 'v'")
    caplog.set_level(logging.WARNING)
    for limit_s in LIMITS_S:
        with served(endpoint) as port, connection(port, slow, accept, f"&timeout={limit_s}") as client:
            received = b"".join(iter(lambda: client.recv(65_536), b""))
        if received.startswith(b"HTTP/1.1 200"):  # on a busy machine the rows may come after the deadline
            break
    assert received.startswith(b"HTTP/1.1 200")
    assert not received.endswith(b"0\r\n\r\n")
    assert f"deadline of {limit_s:g} s" in caplog.text


def test_a_client_that_sends_too_much_gets_to_read_why(endpoint: Endpoint) -> None:
    body = b" " * (32 << 20)
    with served(endpoint) as port, socket.create_connection(("127.0.0.1", port), timeout=90) as client:
        client.sendall(
            b"POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        client.sendall(body)
        assert client.recv(65_536).startswith(b"HTTP/1.1 413")


def answer_to(port: int, *pieces: bytes) -> tuple[int, bytes]:
    """Send `pieces` as they are on a connection of their own; return the status and the body of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=90) as client:
        for piece in pieces:
            client.sendall(piece)
        with HTTPResponse(client) as answer:
            answer.begin()
            return answer.status, answer.read()


def post(content: bytes, *headers: bytes) -> bytes:
    lines = (b"POST /sparql HTTP/1.1", b"Host: localhost", b"Content-Type: application/sparql-query", *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + content


def test_a_body_may_come_in_chunks(endpoint: Endpoint) -> None:
    with served(endpoint) as port:
        head = post(b"", b"Transfer-Encoding: chunked")
        assert answer_to(port, head, b"3\r\nASK\r\n", b"3\r\n {}\r\n", b"0\r\n\r\n")[0] == 200
        assert answer_to(port, head, b"%x\r\n%s\r\n" % (200_000, b" " * 200_000), b"0\r\n\r\n")[0] == 413
        assert answer_to(port, head, b"nonsense\r\n")[0] == 400


def test_a_content_length_that_is_wrong_harms_nobody(endpoint: Endpoint) -> None:
    with served(endpoint) as port:
        # Too short: the rest is read as the next request, and is none.
        assert answer_to(port, post(b"ASK {} garbage", b"Content-Length: 6"))[0] in (200, 400)
        for wrong in (b"Content-Length: -1", b"Content-Length: six", b"Content-Length: 6\r\nContent-Length: 7"):
            assert answer_to(port, post(b"ASK {}", wrong))[0] == 400
        # Too long: the client hangs up before its request is whole.
        with socket.create_connection(("127.0.0.1", port), timeout=90) as client:
            client.sendall(post(b"ASK {}", b"Content-Length: 600"))
            client.shutdown(socket.SHUT_WR)
            assert b" 200 " not in client.recv(1_000)
        assert answer_to(port, post(b"ASK {}", b"Content-Length: 6"))[0] == 200


def test_a_url_of_any_length_gets_an_answer(endpoint: Endpoint) -> None:
    with served(endpoint) as port:
        for length, expected in ((10_000, {200}), (1_000_000, {400, 414, 431})):
            target = f"/sparql?query={quote('ASK {}')}{'+' * length}"
            status, _ = answer_to(port, f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert status in expected


def test_methods_are_case_sensitive(endpoint: Endpoint) -> None:
    with served(endpoint) as port:
        for method, expected in (("GET", {200}), ("get", {400, 405}), ("Query", {400, 405})):
            request = f"{method} /sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n"
            assert answer_to(port, request.encode())[0] in expected


@pytest.mark.parametrize("packed", [False, True])
def test_the_first_rows_come_before_the_last_are_computed(endpoint: Endpoint, packed: bool) -> None:
    unlimited = replace(endpoint, settings=endpoint.settings.model_copy(update={"max_rows": 10**12}))
    encoding = "\r\nAccept-Encoding: gzip" if packed else ""
    with served(unlimited) as port, connection(port, STEADY, "text/csv" + encoding) as client:
        with HTTPResponse(client) as answer:
            answer.begin()
            received = answer.read1(200_000)
        assert answer.headers["content-encoding"] == ("gzip" if packed else None)
    unpacked = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(received) if packed else received
    assert unpacked.startswith(b"a,b,c,d,e,f,g,h,i\r\nhttp")
