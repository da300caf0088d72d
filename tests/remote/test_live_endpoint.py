"""A live endpoint that is slow, broken, busy, redirecting or dead gives its last good answer, or one clear error."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kg.errors import InvalidInputError, UpstreamError
from kg.remote import http, sparql
from kg.remote.response_cache import ResponseCache
from kg.remote.sparql import INTERVAL_S, TRUNCATED, Answer, Endpoint
from tests.remote.live_store import JSON, LiveStore, bindings, send, status

pytestmark = pytest.mark.long

QUERY = "SELECT ?s WHERE { ?s <e:p> ?o }"


class Clock:
    """The time of day, as the test wants it; sleeping is written down and takes no time."""

    def __init__(self) -> None:
        self.now = 1_900_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def endpoint(live: LiveStore, tmp_path: Path, clock: Clock) -> Callable[..., Endpoint]:
    live.data.update("INSERT DATA { <e:a> <e:p> 1 }")

    def opened(**more: Any) -> Endpoint:
        folder = more.pop("folder", tmp_path / "answers")
        chosen: dict[str, Any] = {"rest_s": 0, "timeout_s": 20, "sleep": clock.slept.append, "clock": clock} | more
        return Endpoint(more.pop("url", live.url), folder, **{k: v for k, v in chosen.items() if k != "url"})

    return opened


def found(answer: Answer) -> list[str]:
    return [binding["s"]["value"] for binding in answer.bindings]


def test_a_query_is_posted_as_it_stands_and_json_is_asked_for(
    live: LiveStore, endpoint: Callable[..., Endpoint]
) -> None:
    answer = endpoint().select(QUERY)
    assert found(answer) == ["e:a"]
    assert (answer.stale, answer.note, answer.endpoint, answer.age_s) == (False, None, live.url, 0)
    assert live.asked == [QUERY]
    assert live.headers[0]["accept"] == JSON
    assert not {"authorization", "cookie"} & live.headers[0].keys()


def test_an_answer_counts_as_live_for_five_minutes_also_in_another_process(
    live: LiveStore, endpoint: Callable[..., Endpoint], clock: Clock
) -> None:
    first = endpoint().select(QUERY)
    clock.now += 299
    again = endpoint().select(QUERY)
    assert (found(again), again.age_s, again.asked_at) == (["e:a"], 299, first.asked_at)
    assert len(live.asked) == 1
    live.data.update("INSERT DATA { <e:b> <e:p> 1 }")
    clock.now += 1
    assert sorted(found(endpoint().select(QUERY))) == ["e:a", "e:b"]
    assert endpoint().select("SELECT ?s { ?s ?p ?o }").query_sha256 != first.query_sha256


def test_an_answer_from_the_future_is_not_live(
    live: LiveStore, endpoint: Callable[..., Endpoint], clock: Clock
) -> None:
    endpoint().select(QUERY)
    clock.now -= 3600
    endpoint().select(QUERY)
    assert len(live.asked) == 2


def drips(handler: BaseHTTPRequestHandler, live: LiveStore, head: bytes) -> None:
    handler.wfile.write(head)
    while not live.release.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def cut_short(handler: BaseHTTPRequestHandler, query: str) -> None:
    handler.wfile.write(f'HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: 1000\r\n\r\n{{"head'.encode())
    handler.close_connection = True


BROKEN = {
    "HTTP 500": status(500),
    "HTTP 429": status(429),
    "HTTP 404": status(404),
    "HTTP 401": status(401),
    "redirects": status(302, Location="http://127.0.0.1:1/"),
    "returned text/html": status(200, b"<html>", "text/html"),
    "returned no SELECT result": status(200, b"[" * 100_000, JSON),
    "JSONDecodeError": status(200, b'{"head": {"vars": []}, "results": {"bind', JSON),
    "missing 'vars', as in the result of ASK": status(200, b'{"head": {}, "boolean": true}', JSON),
    "TypeError": status(200, b"[]", JSON),
    "returned invalid": status(200, bindings({"s": "e:a"}), JSON),
    "RemoteProtocolError": cut_short,
}


@pytest.mark.parametrize("message", BROKEN)
def test_when_it_breaks_the_last_good_answer_is_given_as_stale_else_an_error(
    live: LiveStore, endpoint: Callable[..., Endpoint], clock: Clock, message: str
) -> None:
    live.always(BROKEN[message])
    with pytest.raises(UpstreamError, match=message) as raised:
        endpoint().select(QUERY)
    assert (raised.value.code, raised.value.http_status) == ("upstream_unavailable", 502)
    live.behave()
    endpoint().select(QUERY)
    live.always(BROKEN[message])
    clock.now += 7200
    answer = endpoint().select(QUERY)
    assert (found(answer), answer.stale, answer.age_s) == (["e:a"], True, 7200)
    assert "7200 s old" in str(answer.note)
    assert message in str(answer.note)
    with pytest.raises(UpstreamError, match=f"{message}.*7200 s old"):
        endpoint().select(QUERY, stale=False)
    live.behave()
    assert not endpoint().select(QUERY).stale


@pytest.mark.long
@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nX: ", f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\n\r\n".encode()]
)
def test_it_is_not_waited_for_longer_than_the_timeout_however_it_drips(
    live: LiveStore, endpoint: Callable[..., Endpoint], head: bytes
) -> None:
    live.always(lambda handler, query: drips(handler, live, head))
    started = time.monotonic()
    with pytest.raises(UpstreamError, match="timeout"):
        endpoint(timeout_s=0.3).select(QUERY)
    assert time.monotonic() - started < 60
    assert len(live.asked) == http.ATTEMPTS


def certificate(folder: Path) -> Path:
    """Write a certificate for 127.0.0.1, and its key, into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + signed.public_bytes(pem)
    )
    return path


def test_the_timeout_holds_over_tls_too(
    live: LiveStore, endpoint: Callable[..., Endpoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(path)
    assert live.server is not None
    live.server.socket = theirs.wrap_socket(live.server.socket, server_side=True)
    trusted = ssl.create_default_context(cafile=str(path))
    monkeypatch.setattr("kg.remote.http.load_certificates", lambda: trusted)
    url = live.url.replace("http:", "https:")
    live.data.update("INSERT DATA { <e:a> <e:p> 1 }")
    assert found(endpoint(url=url).select(QUERY)) == ["e:a"]
    live.always(
        lambda handler, query: drips(handler, live, f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\n\r\n".encode())
    )
    started = time.monotonic()
    with pytest.raises(UpstreamError, match="timeout"):
        endpoint(url=url, timeout_s=0.3, folder=None).select(QUERY)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("host", ["no..such", "a" * 70])
def test_a_host_that_there_cannot_be_is_an_upstream_error(endpoint: Callable[..., Endpoint], host: str) -> None:
    with pytest.raises(UpstreamError, match="did not answer"):
        endpoint(url=f"http://{host}/sparql").select(QUERY)


def test_all_attempts_together_take_no_longer_than_the_patience(
    live: LiveStore, endpoint: Callable[..., Endpoint]
) -> None:
    live.always(lambda handler, query: drips(handler, live, b""))
    started = time.monotonic()
    with pytest.raises(UpstreamError, match="before the deadline"):
        endpoint(timeout_s=90, patience_s=0.5, sleep=time.sleep).select(QUERY)
    assert time.monotonic() - started < 60


def test_an_endless_body_is_not_read_beyond_the_largest_and_is_no_fault_of_the_endpoint(
    live: LiveStore, endpoint: Callable[..., Endpoint]
) -> None:
    sent = 0

    def flood(handler: BaseHTTPRequestHandler, query: str) -> None:
        nonlocal sent
        handler.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\n\r\n".encode())
        while sent < 100_000_000:
            handler.wfile.write(b" " * 100_000)
            sent += 100_000

    live.always(flood)
    with pytest.raises(InvalidInputError, match="1 MiB"):
        endpoint(max_bytes=1 << 20).select(QUERY)
    assert sent < 50_000_000
    assert len(live.asked) == 1


@pytest.mark.parametrize("coding", ["gzip, gzip", "deflate,gzip", "br", "zstd"])
def test_an_answer_that_is_packed_in_another_way_than_asked_is_not_unpacked(
    live: LiveStore, endpoint: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    bomb = gzip.compress(gzip.compress(b" " * 50_000_000))
    live.always(status(200, bomb, JSON, Content_Encoding=coding))
    with pytest.raises(UpstreamError, match="Content-Encoding"):
        endpoint().select(QUERY)
    assert live.headers[-1]["accept-encoding"] == "gzip"


def test_a_query_that_is_refused_is_the_asker_s_fault_and_is_not_repeated(
    live: LiveStore, endpoint: Callable[..., Endpoint]
) -> None:
    with pytest.raises(InvalidInputError, match=r"refused the query: .*expected"):
        endpoint().select("SELECT nonsense")
    assert len(live.asked) == 1


def test_a_host_that_is_not_there_is_said_and_its_last_answer_given(
    live: LiveStore, endpoint: Callable[..., Endpoint], clock: Clock, tmp_path: Path
) -> None:
    gone = "http://127.0.0.1:1/sparql"
    with pytest.raises(UpstreamError, match=r"after 4 attempts: ConnectError"):
        endpoint(url=gone).select(QUERY)
    endpoint().select(QUERY)
    kept = ResponseCache(tmp_path / "answers").get(live.url, QUERY)
    assert kept is not None
    ResponseCache(tmp_path / "answers").put(gone, QUERY, kept)
    clock.now += 301
    assert endpoint(url=gone).select(QUERY).stale


def test_a_busy_endpoint_is_asked_again_when_it_says(
    live: LiveStore, endpoint: Callable[..., Endpoint], clock: Clock
) -> None:
    live.behave(
        status(429, Retry_After="7"), status(503, Retry_After=formatdate(time.time() + 30, usegmt=True)), status(500)
    )
    assert found(endpoint().select(QUERY)) == ["e:a"]
    assert clock.slept[0] == 7
    assert any(25 < slept <= 30 for slept in clock.slept)
    assert len(live.asked) == 4


def test_one_that_asks_for_an_hour_is_left_alone_for_it(live: LiveStore, endpoint: Callable[..., Endpoint]) -> None:
    live.behave(status(429, Retry_After="3600"))
    with pytest.raises(UpstreamError, match="3600 s"):
        endpoint().select(QUERY)
    with pytest.raises(UpstreamError, match="Rate limit"):
        endpoint().select(QUERY)
    assert len(live.asked) == 1


def test_one_that_does_not_answer_is_not_asked_again_at_once(
    live: LiveStore, endpoint: Callable[..., Endpoint]
) -> None:
    live.always(status(503))
    for _ in range(3):
        with pytest.raises(UpstreamError, match="HTTP 503"):
            endpoint(rest_s=60).select(QUERY)
    assert len(live.asked) == http.ATTEMPTS


def test_no_more_than_two_requests_a_second_reach_a_host_from_all_threads(
    live: LiveStore, endpoint: Callable[..., Endpoint], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(sparql, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    threads = [threading.Thread(target=endpoint().select, args=(f"{QUERY} LIMIT {number}",)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(live.asked) == 4
    assert sorted(wait for wait in clock.slept if wait > 0) == pytest.approx([INTERVAL_S * n for n in (1, 2, 3)])


def test_who_asks_the_same_at_the_same_time_waits_for_the_one_answer(
    live: LiveStore, endpoint: Callable[..., Endpoint]
) -> None:
    arrived = threading.Event()

    def slow(handler: BaseHTTPRequestHandler, query: str) -> None:
        arrived.set()
        live.release.wait(0.3)
        send(handler, 200, bindings({"s": {"type": "uri", "value": "e:a"}}))

    live.always(slow)
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(endpoint().select(QUERY))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert arrived.is_set()
    assert [found(answer) for answer in answers] == [["e:a"]] * 6
    assert len(live.asked) == 1


def test_without_a_folder_nothing_is_kept(live: LiveStore, endpoint: Callable[..., Endpoint]) -> None:
    for _ in range(2):
        endpoint(folder=None).select(QUERY)
    assert len(live.asked) == 2


@pytest.mark.parametrize(
    "said",
    [
        {"head": {"vars": ["s"], "link": [TRUNCATED]}, "results": {"bindings": []}},
        {"head": {"vars": ["s"]}, "results": {"bindings": []}, "meta": {"truncated": True}},
    ],
)
def test_an_answer_that_was_cut_says_so(
    live: LiveStore, endpoint: Callable[..., Endpoint], said: dict[str, object]
) -> None:
    live.behave(status(200, json.dumps(said).encode(), JSON))
    assert endpoint().select(QUERY).truncated
    assert not endpoint(folder=None).select(QUERY).truncated


@pytest.mark.parametrize("url", ["", "ftp://e/", "http://u@e/", "http://e/?q", "http://e/#f", "http://e\\@f/", "e"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="Invalid SPARQL endpoint"):
        Endpoint(url, None)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("5", 5), ("0.5", 0.5), ("-3", 0), ("soon", 9), ("nan", 9), ("inf", 9), (None, 9), ("", 9),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("Wed, 99 Oct 2015 07:28:00 GMT", 9)],
)  # fmt: skip
def test_retry_after_is_read_in_both_forms_and_nonsense_is_passed_over(header: str | None, seconds: float) -> None:
    assert http.parse_retry_after(header, 9) == seconds
