"""SHACL over HTTP: ``POST /shacl`` validates data and responds with the report, with status 200 for any result.

- Stored data: ``?graph=IRI``, ``?graph=union`` (or ``default``, which is the same) or ``?document=IRI``. The body is
  the shapes graph in any RDF format; without a body, a suite of Quadcite's own shapes is used
  (``?suite=record|dataset``). ``?target=IRI`` validates one focus node.
- Data in the request: the body is the data in any RDF format, validated by a suite.
- Data and shapes in the request: ``multipart/form-data`` with the parts ``data`` and ``shapes``, or
  ``application/json`` with these members, RDF as text (``data_type`` and ``shapes_type``: its type if not Turtle).

The report is a ``sh:ValidationReport`` in an RDF format, JSON, SARIF, or text for people, by Accept or ``format=``.
``timeout=`` lowers the deadline, in seconds.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Final, get_args

import anyio.to_thread
from pyoxigraph import RdfFormat
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, request_response

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.server import request_bodies
from kg.server.compression import Compression
from kg.server.endpoint import Endpoint
from kg.server.mcp import CancelOnDisconnect, ToolThreads
from kg.server.negotiation import media_type_of, negotiate
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.server.query_execution import HELD_BYTES, get_client_name
from kg.server.rdf_payloads import FORMATS, Body
from kg.shacl import rdf_files
from kg.shacl.process import Document
from kg.text import quoted
from kg.tools.entities.dereference import parse_iri
from kg.tools.shacl import validate

PATH: Final = "/shacl"

_FORM: Final = "multipart/form-data"
_JSON: Final = "application/json"
_SARIF: Final = "application/sarif+json"
_RDF: Final = ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json")
_OFFERED: Final = (*_RDF, _JSON, _SARIF, "text/plain")
_FORMS: Final = {"text/plain": "text", _JSON: "json", _SARIF: "sarif"}
_FORMATS: Final = {
    "ttl": "text/turtle", "turtle": "text/turtle", "nt": "application/n-triples", "rdf": "application/rdf+xml",
    "jsonld": "application/ld+json", "json": _JSON, "sarif": _SARIF, "text": "text/plain",
}  # fmt: skip
_PARAMETERS: Final = ("graph", "document", "suite", "target", "timeout", "format")
_MEMBERS: Final = ("data", "data_type", "shapes", "shapes_type")
_ALLOWED: Final = "POST, OPTIONS"
_TAKEN: Final = (*_RDF, "application/trig", "application/n-quads", _FORM, _JSON)
_PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class _ValidationRequest:
    """The parsed request."""

    parameters: Mapping[str, str]
    media_type: str
    timeout_s: float | None
    data: Document | None
    shapes: Document | None


def routes(kg: KnowledgeGraph, endpoint: Endpoint, threads: ToolThreads) -> list[Route]:
    """Build the route over `kg`. Validations run in separate processes and stop when the client disconnects."""

    async def answer(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": _ALLOWED, "Accept-Post": ", ".join(_TAKEN)})
        if request.method != "POST":
            raise method_not_allowed(request, _ALLOWED)
        endpoint.permit(endpoint.actor(request), "shacl.validate")
        asked = await _parse_request(request, kg.settings.max_graph_bytes)
        running = await threads.run(partial(_run, kg, asked, get_client_name(endpoint, request)), kind="raw")
        return await _response(running, asked)

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    app = CancelOnDisconnect(Compression(request_response(answering(answer))))
    return [Route(PATH, app, methods=methods, name="shacl")]


def _run(kg: KnowledgeGraph, asked: _ValidationRequest, client: str) -> validate.FinishedValidation:
    given = asked.parameters
    graph = validate.UNION if given.get("graph") == "default" else given.get("graph")
    reader = Reader(kg)
    home, checked = validate.find_target(reader, graph=graph, document=given.get("document"), pasted=asked.data)
    suite = given.get("suite")
    if suite is not None and suite not in get_args(validate.SuiteName):
        raise InvalidInputError(f"Unknown suite {quoted(suite)}. Available: {', '.join(get_args(validate.SuiteName))}.")
    shapes = validate.choose_shapes(asked.shapes, suite, asked.data, home)  # type: ignore[arg-type]  # one of them
    focus = [parse_iri(given["target"]).value] if "target" in given else []
    form = _FORMS.get(asked.media_type, asked.media_type)
    return validate.run_validation(
        kg, asked.data, home, shapes, form, checked=checked, focus=focus, timeout_s=asked.timeout_s, client=client
    )


async def _response(running: validate.FinishedValidation, asked: _ValidationRequest) -> Response:
    charset = "; charset=utf-8" if asked.media_type.startswith("text/") else ""
    headers = {
        "Content-Type": asked.media_type + charset,
        "Vary": "Accept",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    if asked.data is None:
        headers["Quadcite-Snapshot"] = str(running.generation)
    first = await anyio.to_thread.run_sync(running.report.read, HELD_BYTES + 1)
    if len(first) <= HELD_BYTES:
        running.report.close()
        return Response(first, headers=headers)

    async def pieces() -> AsyncIterator[bytes]:
        with running:
            piece = first
            while piece:
                yield piece
                piece = await anyio.to_thread.run_sync(running.report.read, _PIECE)

    return StreamingResponse(pieces(), headers=headers)


async def _parse_request(request: Request, max_bytes: int) -> _ValidationRequest:
    """Parse a request. Raises InvalidInputError, or HttpError for errors with an HTTP status of their own."""
    parameters = _parameters(request)
    media_type = _negotiated(request, parameters.get("format"))
    timeout_s = _timeout(parameters.get("timeout"))
    if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
        message = f"Unsupported Content-Encoding {quoted(coding)}. Send the body uncompressed."
        raise HttpError(415, "unsupported_media_type", message, {"Accept-Encoding": "identity"})
    stored = "graph" in parameters or "document" in parameters
    content_type = request.headers.get("content-type", "")
    body = await request_bodies.read(request, max_bytes, "QUADCITE_MAX_GRAPH_BYTES")
    alone, base_iri = "shapes" if stored else "data", str(request.url)
    # In a thread: parsing a form or JSON of many megabytes would block the event loop.
    parts = await anyio.to_thread.run_sync(lambda: dict(_parts(body, content_type, alone, base_iri)))
    if stored and "data" in parts:
        raise InvalidInputError("Conflicting data. Send data, or name stored data with graph= or document=, not both.")
    if not stored and "data" not in parts:
        raise InvalidInputError(
            "Nothing to validate. Send data, or name stored data with graph=IRI, graph=union or document=IRI."
        )
    return _ValidationRequest(parameters, media_type, timeout_s, parts.get("data"), parts.get("shapes"))


def _parts(body: bytes, content_type: str, alone: str, base_iri: str) -> Iterator[tuple[str, Document]]:
    """Yield the documents of a body by name. A body that is one document gets the name `alone`."""
    media_type, parameters = media_type_of(content_type)
    if not body.strip() and media_type != _FORM:
        return
    if media_type == _FORM:
        for name, payload in _form(Body(body, content_type), parameters.get("boundary", "")):
            yield name, _document(name, payload.data, payload.content_type, base_iri)
    elif media_type == _JSON:
        members = request_bodies.parse_arguments(body)
        for name, value in members.items():
            if name not in _MEMBERS or not isinstance(value, str):
                raise InvalidInputError(
                    f"Invalid member {quoted(name)}. Available: {', '.join(_MEMBERS)}, each a string."
                )
        for name in ("data", "shapes"):
            if name in members:
                media_type = members.get(f"{name}_type", "text/turtle")
                yield name, _document(name, validate.to_utf8(name, members[name]), media_type, base_iri)
    else:
        yield alone, _document(alone, body, content_type, base_iri)


def _form(form: Body, boundary: str) -> Iterator[tuple[str, Body]]:
    names: set[str] = set()
    for headers, payload in form.parts(boundary):
        _, parameters = media_type_of(str(headers.get("Content-Disposition", "")))
        name = parameters.get("name", "")
        if name not in ("data", "shapes") or name in names:
            raise InvalidInputError(
                f"Unknown or repeated part {quoted(name)} of the form. Available: data, shapes, once each."
            )
        names.add(name)
        media_type, _ = media_type_of(payload.content_type)
        if media_type in (
            "",
            "application/octet-stream",
            "text/plain",
        ):  # defaults of clients that do not know the type
            by_name = rdf_files.FORMATS.get(PurePath(parameters.get("filename", "")).suffix.lower(), RdfFormat.TURTLE)
            payload = replace(payload, content_type=by_name.media_type)
        yield name, payload


def _document(name: str, data: bytes, content_type: str, base_iri: str) -> Document:
    media_type, parameters = media_type_of(content_type)
    form = FORMATS.get(media_type) or (RdfFormat.from_media_type(media_type) if media_type.isascii() else None)
    if form is None:
        message = f"Unsupported type of the {name}: {quoted(media_type)}. Send {', '.join(_TAKEN)}."
        raise HttpError(415, "unsupported_media_type", message, {"Accept-Post": ", ".join(_TAKEN)})
    if (charset := parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
        raise HttpError(
            415, "unsupported_media_type", f"Unsupported charset of the {name}: {quoted(charset)}. Send UTF-8."
        )
    return Document(data, form.media_type, base_iri, name)


def _parameters(request: Request) -> dict[str, str]:
    given = request.query_params
    for name in given:
        if name not in _PARAMETERS:
            raise InvalidInputError(f"Unknown parameter {quoted(name)}. Available: {', '.join(_PARAMETERS)}.")
        if len(given.getlist(name)) > 1:
            raise InvalidInputError(f"Parameter {name!r} is given {len(given.getlist(name))} times. Give it once.")
    return dict(given)


def _negotiated(request: Request, wanted: str | None) -> str:
    if wanted is not None:
        named = wanted.strip().lower().replace(" ", "+")  # a plus that nobody percent-encoded
        if named in _OFFERED or named in _FORMATS:
            return _FORMATS.get(named, named)
        raise InvalidInputError(f"Unknown format {quoted(wanted)}. Available: a media type, or {', '.join(_FORMATS)}.")
    media_type = negotiate(request.headers.getlist("accept"), _OFFERED)
    if media_type is None:
        message = f"Not acceptable by the Accept header. Available: {', '.join(_OFFERED)}."
        raise HttpError(406, "not_acceptable", message)
    return media_type


def _timeout(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise InvalidInputError(f"Invalid timeout {quoted(text)}. Valid: a number of seconds greater than 0.")
    return seconds
