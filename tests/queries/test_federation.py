"""Only the endpoints that the setting names are asked, and whatever they answer, the query gets rows or an error."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from pydantic import HttpUrl
from pyoxigraph import QueryResultsFormat, Store

from kg.errors import InvalidInputError, QueryTimeoutError, UpstreamError
from kg.queries import federation
from kg.queries.federation import MAX_ROWS, Federation
from kg.remote.http import parse_address
from kg.settings import Settings
from kg.sparql.guard import check_query
from kg.sparql.service import find_clauses, parse_prologue, replace_clauses

JSON = "application/sparql-results+json"
Answer = Callable[[BaseHTTPRequestHandler, str], None]


@dataclass
class Stub:
    """A SPARQL endpoint on loopback that answers as the test says and remembers what it was asked."""

    address: str = ""
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: Answer = lambda handler, query: None
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return self.address + "/sparql"


@pytest.fixture
def stub() -> Iterator[Stub]:
    state = Stub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            [query] = parse_qs(body)["query"]
            state.asked.append(query)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            try:
                state.answer(self, query)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def do_GET(self) -> None:
            state.asked.append(self.path)
            self.send_error(400)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield state
    state.release.set()
    server.shutdown()
    server.server_close()


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, media_type: str = JSON, **more: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", media_type)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in more.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def results(variables: list[str], *rows: dict[str, Any]) -> Answer:
    body = json.dumps({"head": {"vars": variables}, "results": {"bindings": rows}}).encode()
    return lambda handler, query: send(handler, body)


def evaluates(data: str) -> Answer:
    """Answer with Oxigraph's own results over `data`."""
    store = Store()
    store.update(f"INSERT DATA {{ {data} }}")

    def answer(handler: BaseHTTPRequestHandler, query: str) -> None:
        body = store.query(query).serialize(format=QueryResultsFormat.JSON)  # type: ignore[union-attr]
        assert body is not None
        send(handler, body)

    return answer


def ask(stub: Stub, query: str, seconds: float = 60) -> str:
    """Return `query` with its clauses replaced by what the stub says."""
    query = query.replace("URL", stub.url)
    asked = Federation((HttpUrl(stub.url),), time.monotonic() + seconds)
    found = find_clauses(query)
    assert all(asked.is_allowed(clause.endpoint) for clause in found)
    expanded = replace_clauses(
        query, [(clause, asked.fetch_values(query, clause, parse_prologue(query))) for clause in found]
    )
    check_query(expanded)
    return expanded


def rows(query: str) -> list[dict[str, Any]]:
    solutions = Store().query(query)
    names = [variable.value for variable in solutions.variables]  # type: ignore[union-attr]
    return [dict(zip(names, solution, strict=True)) for solution in solutions]  # type: ignore[union-attr]


def test_the_pattern_is_asked_with_its_prefixes_and_the_rows_join(stub: Stub) -> None:
    stub.answer = evaluates("<e:a> <e:p> 1 . <e:b> <e:p> 2 . <e:c> <e:p> 'x'@en")
    expanded = ask(
        stub,
        """PREFIX e: <e:> # the data
        SELECT ?s ?o { VALUES ?s { e:b e:c } SERVICE <URL> { ?s e:p ?o # all of them
        OPTIONAL { ?s rdfs:label ?label } } }""",
    )
    assert {(row["s"].value, str(row["o"])) for row in rows(expanded)} == {
        ("e:b", '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("e:c", '"x"@en'),
    }
    [query] = stub.asked
    assert "PREFIX e: <e:>" in query
    assert "PREFIX rdfs:" in query
    assert "PREFIX skos:" not in query


def test_an_unbound_variable_stays_unbound_and_equal_rows_stay_two(stub: Stub) -> None:
    row = {"a": {"type": "uri", "value": "e:a"}}
    stub.answer = results(["a", "b"], row, row)
    found = rows(ask(stub, "SELECT * { SERVICE <URL> { ?a ?a ?a OPTIONAL { ?a ?b ?b } } }"))
    assert [(item["a"].value, item["b"]) for item in found] == [("e:a", None)] * 2


def test_a_pattern_without_variables_answers_yes_or_no(stub: Stub) -> None:
    for held, count in (([{}], 1), ([], 0)):
        stub.answer = results([], *held)
        assert len(rows(ask(stub, "SELECT * { VALUES ?x { 1 } SERVICE <URL> { <e:a> <e:b> <e:c> } }"))) == count


def test_an_answer_in_xml_is_taken_too(stub: Stub) -> None:
    body = b"""<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="a"/></head>
    <results><result><binding name="a"><literal>x</literal></binding></result></results></sparql>"""
    stub.answer = lambda handler, query: send(handler, body, media_type="application/sparql-results+xml; charset=utf-8")
    assert [row["a"].value for row in rows(ask(stub, "SELECT * { SERVICE <URL> { ?a ?a ?a } }"))] == ["x"]


def test_blank_nodes_of_one_answer_are_told_apart_and_never_join_with_ours(stub: Stub) -> None:
    bnode = [{"x": {"type": "bnode", "value": name}} for name in ("n0", "n1", "n0")]
    stub.answer = results(["x"], *bnode)
    found = [row["x"].value for row in rows(ask(stub, "SELECT * { SERVICE <URL> { ?x ?y ?z } }"))]
    assert found[0] == found[2] != found[1]
    assert all(iri.startswith("https://w3id.org/quadcite/.well-known/genid/") for iri in found)


@pytest.mark.parametrize(
    "value", ["} SERVICE <http://127.0.0.1/> { ?s ?p ?o", '" ) } #', "\\", "'''", "a\nb\r", "\u2028", "<>"]
)
def test_what_an_endpoint_says_stays_a_value(stub: Stub, value: str) -> None:
    stub.answer = results(["a"], {"a": {"type": "literal", "value": value}})
    assert [row["a"].value for row in rows(ask(stub, "SELECT * { SERVICE <URL> { ?a ?a ?a } }"))] == [value]


def broken(status: int = 200, media_type: str = JSON, body: bytes = b"{}", **headers: str) -> Answer:
    return lambda handler, query: send(handler, body, status, media_type, **headers)


def cut_short(handler: BaseHTTPRequestHandler, query: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", JSON)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"head"')
    handler.close_connection = True


NO_IRI = b'{"head":{"vars":["a"]},"results":{"bindings":[{"a":{"type":"uri","value":"no iri"}}]}}'
FAILURES = {
    "500": broken(500),
    "redirects": broken(302, Location="http://127.0.0.1:1/"),
    "text/html": broken(media_type="text/html"),
    "is not application": broken(body=NO_IRI),
    "is not application/sparql-results": broken(body=b"not JSON"),
    "with a boolean": broken(body=b'{"head":{},"boolean":true}'),
    "other": results(["other"], {}),
    "request failed": cut_short,
}  # fmt: skip


@pytest.mark.parametrize("message", FAILURES)
@pytest.mark.parametrize("silent", [False, True])
def test_a_failure_is_an_error_and_after_silent_one_empty_solution(stub: Stub, message: str, silent: bool) -> None:
    stub.answer = FAILURES[message]
    query = f"SELECT * {{ VALUES ?x {{ 1 }} SERVICE {'SILENT' if silent else ''} <URL> {{ ?a ?a ?a }} }}"
    if silent:
        [row] = rows(ask(stub, query))
        assert row["x"].value == "1"
        return
    with pytest.raises(UpstreamError, match=f"at line 1, column 28.*{message}"):
        ask(stub, query)
    assert len(stub.asked) == 1


def test_an_endpoint_that_is_not_there_is_an_upstream_error(stub: Stub) -> None:
    gone = Stub(address="http://127.0.0.1:1")
    with pytest.raises(UpstreamError, match="request failed"):
        ask(gone, "SELECT * { SERVICE <URL> { ?a ?a ?a } }")


def test_more_rows_than_are_taken_is_an_error_that_teaches(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federation, "MAX_ROWS", 3)
    stub.answer = results(["a"], *[{"a": {"type": "literal", "value": str(i)}} for i in range(4)])
    with pytest.raises(InvalidInputError, match=r"more than 3 solutions.*inside the clause"):
        ask(stub, "SELECT * { SERVICE SILENT <URL> { ?a ?a ?a } }")
    assert stub.asked[0].endswith("LIMIT 4")


def test_more_bytes_than_are_taken_is_an_error_and_the_rest_is_not_read(stub: Stub) -> None:
    sent = 0

    def flood(handler: BaseHTTPRequestHandler, query: str) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.send_header("Content-Type", JSON)
        handler.end_headers()
        while sent < 20 * federation.MAX_BYTES:
            handler.wfile.write(b" " * 1_000_000)
            sent += 1_000_000

    stub.answer = flood
    with pytest.raises(InvalidInputError, match="larger than 16 MiB"):
        ask(stub, "SELECT * { SERVICE <URL> { ?a ?a ?a } }")
    assert sent < 10 * federation.MAX_BYTES  # some of it is in the buffers of the connection


def drips_headers(handler: BaseHTTPRequestHandler, stub: Stub) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while not stub.release.wait(0.05):
        handler.wfile.write(b"x")
        handler.wfile.flush()


def drips_body(handler: BaseHTTPRequestHandler, stub: Stub) -> None:
    handler.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\n\r\n".encode())
    while not stub.release.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def silence(handler: BaseHTTPRequestHandler, stub: Stub) -> None:
    stub.release.wait(30)


@pytest.mark.parametrize("slow", [drips_headers, drips_body, silence])
def test_an_endpoint_has_the_query_s_deadline_however_it_drips(
    stub: Stub, slow: Callable[[BaseHTTPRequestHandler, Stub], None]
) -> None:
    stub.answer = lambda handler, query: slow(handler, stub)
    started = time.monotonic()
    with pytest.raises(QueryTimeoutError, match="deadline"):
        ask(stub, "SELECT * { SERVICE SILENT <URL> { ?a ?a ?a } }", seconds=0.4)
    assert time.monotonic() - started < 20  # the silent one answers after 30 s


def test_no_proxy_and_no_credentials_of_the_environment_are_used(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    stub.answer = results(["a"])
    ask(stub, "SELECT * { SERVICE <URL> { ?a ?a ?a } }")
    assert not {"authorization", "cookie"} & stub.headers[0].keys()


SAME = ["http://host.example/sparql", "HTTP://HOST.example/sparql", "http://host.example:80/sparql"]
OTHER = [
    "https://host.example/sparql", "http://host.example:8080/sparql", "http://host.example/", "http://host.example",
    "http://host.example/sparql/", "http://host.example/SPARQL", "http://host.example/sparql?x=1",
    "http://host.example/sparql#x", "http://user@host.example/sparql", "http://host.example@evil.example/sparql",
    "http://evil.example/sparql?http://host.example/sparql", "http://host.example.evil.example/sparql",
    "http://host.example./sparql", "http://host.example/x/../sparql", "http://host.example/%73parql",
    "http://host.example\\@evil.example/sparql", "ftp://host.example/sparql", "file:///sparql", "http:/sparql",
    "//host.example/sparql", "http://host.example:x/sparql", "http://host.example:0/sparql", "http://[::1/sparql",
    "http://host.example /sparql", "http://host.example/sparql\n", "http://host\u3002example/sparql",
    "http://\u212aost.example/sparql", "", "a:b", "http://", "http://:80/sparql",
]  # fmt: skip


@pytest.mark.parametrize("iri", SAME)
def test_the_same_address_is_allowed_in_each_spelling(iri: str) -> None:
    assert Federation((HttpUrl(SAME[0]),), 0).is_allowed(iri)


@pytest.mark.parametrize("iri", OTHER)
def test_every_other_address_is_refused(iri: str) -> None:
    assert not Federation((HttpUrl(SAME[0]),), 0).is_allowed(iri)
    assert not Federation((), 0).is_allowed(iri)


def test_an_address_without_a_path_has_the_root() -> None:
    assert parse_address("http://e") == parse_address("http://e:80/") == ("http", "e", 80, "/")
    assert parse_address("https://e") == ("https", "e", 443, "/")


@pytest.mark.parametrize(
    "url", ["http://u@e.example/", "http://e.example/?q", "http://e.example/#f", "ftp://e.example/"]
)
def test_a_setting_that_is_more_than_an_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        Settings(service_endpoints=url, _env_file=None)  # type: ignore[call-arg,arg-type]


def test_the_setting_is_a_list_of_words() -> None:
    made = Settings(service_endpoints="http://a.example https://b.example:1/x", _env_file=None)  # type: ignore[call-arg,arg-type]
    assert Federation(made.service_endpoints, 0).endpoints == ("http://a.example/", "https://b.example:1/x")
    assert MAX_ROWS == 10_000
