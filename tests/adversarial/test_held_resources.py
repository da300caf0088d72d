"""What clients hold ends in time: places of queries, connections, heads and bodies of requests."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

import pytest

from tests.adversarial.attacks import (
    MANY_OBJECTS,
    build_statement,
    hold_bodies,
    open_silent_readers,
    send_half_heads,
    wait_until_closed,
    watch,
)
from tests.adversarial.running import Running, good, running

pytestmark = pytest.mark.long

TRANSFER_S = 3.0
QUERY_S = 2.0
SLACK_S = 2.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = {"transfer_timeout_s": str(TRANSFER_S), "query_timeout_s": str(QUERY_S), "max_rows": "1000000"}
    with running(tmp_path_factory.mktemp("held"), **limits) as started:
        yield started


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose deadline is long enough for large documents."""
    with running(tmp_path_factory.mktemp("patient"), query_timeout_s="40", query_memory_mb="512") as started:
        yield started


def test_silent_readers_hold_no_places_and_no_connections(server: Running) -> None:
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(server.client("127.0.0.9"))
        good(client)
        sockets = server.count_sockets()
        open_silent_readers(server, stack, 16)
        begun, oldest, waits = time.monotonic(), 0.0, []
        while time.monotonic() - begun < 4 * QUERY_S:
            asked = time.monotonic()
            answer = client.get(f"/sparql?query={quote('ASK {}')}")
            # The workers of the silent ones are replaced meanwhile; on a busy machine that may take the deadline.
            assert answer.status_code in (200, 504), answer.text
            waits.append(time.monotonic() - asked)
            queries = client.get("/sparql/queries").json()["queries"]
            oldest = max([oldest, *(query["age_s"] for query in queries if query["state"] == "running")])
            time.sleep(0.02)
        assert oldest < 2 * QUERY_S + SLACK_S, "it waits up to its deadline, and runs up to its deadline"
        assert client.get("/sparql/queries").json()["queries"] == []
        assert max(waits) < 2 * QUERY_S + SLACK_S
        wait_until_closed(server, sockets, TRANSFER_S + 30)


def test_half_sent_heads_are_closed(server: Running) -> None:
    sockets = server.count_sockets()
    with contextlib.ExitStack() as stack:
        send_half_heads(server, stack, 30)
        assert wait_until_closed(server, sockets, TRANSFER_S + 30) > TRANSFER_S / 2


def test_endless_heads_are_refused_and_cost_little(server: Running) -> None:
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(server.client())
        good(client)
        before, sockets = server.resident_bytes(), server.count_sockets()
        endless = [stack.enter_context(server.connect()) for _ in range(40)]
        most = 0
        for connection in endless:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(40):
            for connection in endless:
                with contextlib.suppress(OSError):
                    connection.sendall(b"X-Long: " + b"a" * 100_000 + b"\r\n")
            most = max(most, server.resident_bytes())
        assert good(client) < 20
        assert most - before < 100 << 20
        wait_until_closed(server, sockets, TRANSFER_S + 30)


def test_held_bodies_cost_little_and_make_room(server: Running) -> None:
    """Sixty bodies of 16 MB, all but their end sent as far as the server takes them; a good one is taken meanwhile."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(server.client())
        good(client)
        before, sockets = server.resident_bytes(), server.count_sockets()
        most = hold_bodies(server, stack, 60, 1.5)
        asked = time.monotonic()
        answer = client.put(
            "/graphs/user/good", content=b"<urn:a> <urn:b> 'c' .", headers={"Content-Type": "text/turtle"}
        )
        assert answer.status_code == 201, answer.text
        assert time.monotonic() - asked < 20
        large = b"<urn:a> <urn:b> 'd' .\n" + b"# " + b"a" * (8 << 20)
        answer = client.put("/graphs/user/good", content=large, headers={"Content-Type": "text/turtle"})
        assert answer.status_code == 204, answer.text
        most = max(most, server.resident_bytes())
        assert most - before < 200 << 20
        wait_until_closed(server, sockets, TRANSFER_S + 30)
        assert client.get("/health").json()["held"]["body_bytes"] == 0


@pytest.mark.parametrize("path", ["/mcp/all", "/tools/search", "/shacl"])
def test_bodies_of_every_route_are_bounded(server: Running, path: str) -> None:
    """Also those that do not declare their size."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with server.client() as client:
        declared = client.post(path, content=b" " * (17 << 20), headers=headers)
        assert declared.status_code == 413
        chunked = client.post(path, content=iter([b" " * (1 << 20)] * 17), headers=headers)
        assert chunked.status_code == 413


@pytest.mark.parametrize(("method", "path"), [("PUT", "/graphs/user/many"), ("POST", "/graphs"), ("POST", "/shacl")])
def test_documents_of_too_many_quads_cost_little(patient: Running, method: str, path: str) -> None:
    headers = {"Content-Type": "text/turtle"}
    with patient.client() as client, patient.client() as other:
        client.put("/graphs/user/small", content=b"<urn:a> <urn:b> 'c' .", headers=headers)
        for _ in range(2):
            send = partial(client.request, method, path, content=build_statement(MANY_OBJECTS), headers=headers)
            answer, grown, longest = watch(patient, other, send)
            assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
            assert "kg load" in answer.json()["detail"]
            assert grown < 50 << 20
            assert longest < 20


def test_large_documents_are_taken_in_bounded_memory(patient: Running) -> None:
    """Documents of 8 MB, of long literals, which replace each other: the server has the quads of none in memory."""
    sent = [
        "".join(f'<urn:s{number}> <urn:p> "{name}{number:0770}" .\n' for number in range(10_000)).encode()
        for name in "aba"
    ]
    headers, left = {"Content-Type": "application/n-triples"}, []
    with patient.client() as client, patient.client() as other:
        for status, document in zip((201, 204, 204), sent, strict=True):
            send = partial(client.put, "/graphs/user/large", content=document, headers=headers)
            answer, grown, longest = watch(patient, other, send)
            assert answer.status_code == status, answer.text
            assert grown < 100 << 20
            assert longest < 20
            left.append(patient.resident_bytes())
        assert client.delete("/graphs/user/large").status_code == 204
        assert left[2] - left[1] < 40 << 20
