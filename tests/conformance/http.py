"""Requests that a manifest describes in the HTTP vocabulary in RDF, sent in their order, and their answers judged.

The manifests' paths are replaced by ours, as they ask for: ``/sparql/`` by ``/sparql``, ``/gsp`` by ``/graphs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from pyoxigraph import NamedNode, Quad, QueryResultsFormat, RdfFormat, parse

from tests.conformance import results
from tests.conformance.manifest import CNT, HT, MF, Description, Test

PATHS = {"/sparql/": "/sparql", "/gsp": "/graphs"}
STATUS = "http://www.w3.org/2011/http-statusCodes#"
_STATUSES = {"OK": 200, "Created": 201, "NoContent": 204, "NotFound": 404}
_TABULAR = (
    "application/sparql-results+xml",
    "application/sparql-results+json",
    "text/csv",
    "text/tab-separated-values",
)


@dataclass(frozen=True)
class Body:
    """What is sent, or expected: bytes and their media type."""

    content: bytes
    media_type: str


@dataclass(frozen=True)
class Expected:
    """What an answer has to be. `statuses` holds codes, or the first digit of a class of them."""

    statuses: frozenset[int] = frozenset()
    boolean: bool | None = None
    format: str | None = None
    location: str | None = None
    """The name under which later requests speak of this answer's Location."""
    body: Body | None = None


@dataclass(frozen=True)
class Exchange:
    """One request, and what is expected of its answer."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes
    expected: Expected = field(default_factory=Expected)


def exchanges(test: Test) -> Iterator[Exchange]:
    """Yield the requests of a test, in their order."""
    description = test.description
    authority = description.text(test.action, HT + "connectionAuthority") or ""
    for request in description.items(description.one(test.action, HT + "requests")):
        path = description.text(request, HT + "absolutePath") or ""
        ours = next((PATHS[theirs] + path.removeprefix(theirs) for theirs in PATHS if path.startswith(theirs)), path)
        body = _body(description, request)
        headers = {"Host": authority, **_headers(description, request)}
        yield Exchange(
            description.text(request, HT + "methodName") or "",
            ours,
            headers,
            b"" if body is None else body.content,
            _expected(description, description.one(request, HT + "resp")),
        )


def run(client: httpx.Client, test: Test) -> None:
    """Send the requests of a test; AssertionError says which answer was not the one that it expects."""
    known: dict[str, str] = {}
    for number, exchange in enumerate(exchanges(test), 1):
        path = exchange.path
        for name, value in known.items():
            path = path.replace(name, value)
        request = client.build_request(exchange.method, path, headers=exchange.headers, content=exchange.content)
        if "content-type" not in exchange.headers:
            request.headers.pop("content-type", None)
        response = client.send(request)
        said = f"request {number}, {exchange.method} {path}: {response.status_code} {response.text[:200]}"
        _judge(response, exchange.expected, said)
        if exchange.expected.location is not None:
            assert "location" in response.headers, f"{said}: no Location"
            known[exchange.expected.location] = response.headers["location"]


def _judge(response: httpx.Response, expected: Expected, said: str) -> None:
    status = response.status_code
    assert {status, status // 100} & expected.statuses, f"{said}: expected {sorted(expected.statuses)}"
    media_type = response.headers.get("content-type", "").partition(";")[0]
    if expected.format == "boolean":
        assert media_type in _TABULAR[:2], f"{said}: {media_type} is no format of a boolean"
    if expected.format == "tabular":
        assert media_type in _TABULAR, f"{said}: {media_type} is no format of a table"
    if expected.format == "RDF":
        assert RdfFormat.from_media_type(media_type) is not None, f"{said}: {media_type} is no format of RDF"
    if expected.boolean is not None:
        solutions = QueryResultsFormat.from_media_type(media_type)
        assert solutions is not None, said
        assert results.parse_results(response.content, solutions) is expected.boolean, said
    if expected.body is not None:
        base = str(response.request.url)
        wanted = _graph(expected.body, base)
        assert results.same_quads(_graph(Body(response.content, media_type), base), wanted), said


def _graph(body: Body, base: str) -> list[Quad]:
    return list(parse(body.content, format=RdfFormat.from_media_type(body.media_type), base_iri=base))


def _headers(description: Description, message: Any) -> dict[str, str]:
    return {
        description.text(header, HT + "fieldName") or "": description.text(header, HT + "fieldValue") or ""
        for header in description.items(description.one(message, HT + "headers"))
    }


def _body(description: Description, message: Any) -> Body | None:
    node = description.one(message, HT + "body")
    if node is None:
        return None
    text = description.text(node, CNT + "chars") or ""
    content_type = _headers(description, message).get("content-type", "")
    if content_type.startswith("multipart/"):
        text = _multipart(text)
    encoding = description.text(node, CNT + "characterEncoding") or "UTF-8"
    return Body(text.encode(encoding), content_type.partition(";")[0])


def _multipart(text: str) -> str:
    """Give a multipart body, indented and with the line ends of its manifest, those that RFC 2046 demands."""
    return "\r\n".join(line.strip() for line in text.strip().splitlines()) + "\r\n"


def _expected(description: Description, response: Any) -> Expected:
    statuses = set()
    for status in description.all(response, MF + "expectedStatus"):
        assert isinstance(status, NamedNode)
        name = status.value.removeprefix(STATUS)
        statuses.add(int(name[10]) if name.startswith("StatusCode") else _STATUSES[name])
    boolean = description.text(response, MF + "expectedBoolean")
    return Expected(
        frozenset(statuses),
        None if boolean is None else boolean == "true",
        description.text(response, MF + "expectedFormat"),
        description.text(response, MF + "expectedLocation"),
        _body(description, response),
    )
