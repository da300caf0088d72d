"""The SPARQL 1.1 Protocol at ``/sparql``, queries and updates (https://www.w3.org/TR/sparql11-protocol/).

A query is sent by GET, by POST as a form or directly, or by QUERY (draft-ietf-httpbis-safe-method-w-body) with the same
bodies; an update by POST, as a form or directly. GET without parameters returns the service description. Extensions of
the protocol:

- ``timeout=`` (seconds) lowers the timeout; ``snapshot=`` queries an earlier generation of the store, if it is kept;
- ``format=`` or ``output=`` names the media type, for clients without an Accept header (`negotiation.SHORTHANDS`);
- a response to GET has an ETag (weak, since rows are unordered), unless the query depends on the time, on random values
  or on another server; a client that sends it as If-None-Match saves the query;
- a SELECT without rows is answered with a ``Link`` (``rel="help"``) to the report of ``/sparql/check`` on the query;
- an update is answered with 204 and its generation in ``Quadcite-Snapshot``, which later queries include.

Unknown parameters are ignored, since clients send their own.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, urlencode

import anyio
import anyio.to_thread
from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from kg.access.audit import note
from kg.errors import InvalidInputError, NotFoundError, QueryForbiddenError, QueryTimeoutError
from kg.queries import text_check
from kg.server import request_bodies
from kg.server.call_log import redact
from kg.server.compression import Compression
from kg.server.endpoint import Endpoint
from kg.server.negotiation import (
    GRAPH_TYPES,
    RESULT_TYPES,
    SHORTHANDS,
    media_type_of,
    negotiate,
    shorthand,
)
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.server.query_execution import execute, find_audience, get_client_name
from kg.server.resources import browser_headers, choose_media_type, rdf_response
from kg.server.service_description import describe_service
from kg.sparql.guard import is_plain, query_form
from kg.text import quoted


def running_query_routes(endpoint: Endpoint) -> list[Route]:
    """Build the routes that list and cancel the queries of `endpoint`.

    The list has for each running or waiting query, oldest first: ``id``, ``client``, ``age_s``, ``sha256`` (of its
    text), ``lane`` (``fast`` or ``long``) and ``state`` (``running`` or ``waiting``). Cancelling requires the scope
    `WRITE`; the client of the query receives an error.
    """

    async def listed(request: Request) -> Response:
        endpoint.permit(endpoint.actor(request), "sparql.list")
        queries = [
            {
                "id": query.id,
                "client": query.client,
                "age_s": round(query.age_s, 3),
                "sha256": query.sha256,
                "lane": query.lane,
                "state": query.state,
            }
            for query in endpoint.pool.list_queries()
        ]
        return JSONResponse({"queries": queries}, headers={"Cache-Control": "no-store"})

    async def cancelled(request: Request) -> Response:
        endpoint.permit(endpoint.actor(request), "sparql.cancel")
        number = request.path_params["number"]
        known = number.isascii() and number.isdigit() and len(number) < 20  # Python refuses to parse thousands
        if not known or not endpoint.pool.cancel(int(number)):
            raise NotFoundError(
                f"Unknown query {quoted(number)}. GET /sparql/queries lists running and waiting queries."
            )
        return Response(status_code=204)

    return [
        Route("/sparql/queries", answering(listed), methods=["GET"], name="queries"),
        Route("/sparql/queries/{number}", answering(cancelled), methods=["DELETE"], name="query"),
    ]


FORM: Final = "application/x-www-form-urlencoded"
QUERY: Final = "application/sparql-query"
UPDATE: Final = "application/sparql-update"

_ALLOWED: Final = "GET, HEAD, POST, QUERY, OPTIONS"
_OFFERED: Final = {"SELECT": RESULT_TYPES, "ASK": RESULT_TYPES, "CONSTRUCT": GRAPH_TYPES, "DESCRIBE": GRAPH_TYPES}
_FORMATS: Final = ("format", "output")
_OF_QUERIES: Final = ("default-graph-uri", "named-graph-uri", "timeout", "snapshot")
_OF_UPDATES: Final = ("using-graph-uri", "using-named-graph-uri")
_MAX_PARAMETERS: Final = 10_000
_HELPED: Final = 1_500
"""Maximum characters of a query in the link to its check."""
_BROKEN_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_VOLATILE: Final = re.compile("NOW|RAND|UUID|SERVICE", re.IGNORECASE)
"""Words that can make a result differ over the same data. Any occurrence in the query counts, to be safe."""

Parameters = dict[str, list[str]]
Read = Callable[[Callable[[], str | None]], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class _Query:
    text: str
    media_type: str
    timeout_s: float | None
    snapshot: int | None
    default_graphs: tuple[NamedNode, ...]
    named_graphs: tuple[NamedNode, ...]


def routes(endpoint: Endpoint) -> list[Route]:
    """Build the route of the protocol over `endpoint`."""
    # An ASGI application gets all methods (a function would get GET only), so that 405 has the form of other errors.
    app = Compression(request_response(answering(_Sparql(endpoint).answer)))
    return [Route("/sparql", app, name="sparql")]


class _Sparql:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._instance: Final = secrets.token_hex(4)  # distinguishes ETags of another data directory

    async def answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return self._options()
        if request.method not in _ALLOWED.split(", "):
            raise method_not_allowed(request, _ALLOWED)
        actor = self._endpoint.actor(request)
        in_url = _parse_parameters(request.scope["query_string"], self._endpoint.settings.max_body_bytes)
        in_body = await self._body(request) if request.method in ("POST", "QUERY") else {}
        if "update" in in_url or ("update" in in_body and request.method != "POST"):
            raise InvalidInputError(f"Send an update by POST in the body: as {UPDATE}, or in a form as `update`.")
        parameters = {name: in_url.get(name, []) + in_body.get(name, []) for name in {**in_url, **in_body}}
        if request.method in ("GET", "HEAD") and not set(parameters) - set(_FORMATS):
            self._endpoint.permit(actor, "sparql.describe")
            return self._description(request)
        operations = [(name, text) for name in ("query", "update") for text in parameters.get(name, [])]
        if len(operations) != 1:
            raise InvalidInputError(
                f"{len(operations)} queries and updates in the request. Send exactly one, as `query` or `update`."
            )
        [(kind, text)] = operations
        if not text.strip():
            raise InvalidInputError(f"The {kind} is empty.")
        # The text is first: only some arguments are recorded, and clients may send any.
        note(action=f"sparql {kind}", arguments=redact({kind: [text]} | parameters))
        if kind == "update":
            return await self._update(request, text, parameters)
        self._endpoint.permit(actor, "sparql.query")
        return await self._query(request, text, parameters)

    def _description(self, request: Request) -> Response:
        headers = {"Quadcite-Snapshot": str(self._endpoint.generation())}
        description = describe_service(self._endpoint, str(request.base_url).rstrip("/"))
        media_type = choose_media_type(request)
        return rdf_response(description, media_type, headers | browser_headers(request, media_type))

    def _options(self) -> Response:
        headers = {"Allow": _ALLOWED, "Accept-Query": f"{QUERY}, {FORM}", "Accept-Post": self._accept_post()}
        return Response(status_code=204, headers=headers)

    def _accept_post(self) -> str:
        return ", ".join((QUERY, FORM) if self._endpoint.update is None else (QUERY, UPDATE, FORM))

    async def _body(self, request: Request) -> Parameters:
        """Parse the parameters in the body. A query or update that is sent directly is one parameter."""
        content_types = request.headers.getlist("content-type")
        if len(content_types) > 1:
            raise InvalidInputError("The request has several Content-Type headers. Send one.")
        content_type, parameters = media_type_of("".join(content_types))
        taken = (QUERY, FORM) if request.method == "QUERY" else (QUERY, UPDATE, FORM)
        headers = {"Accept-Post": self._accept_post(), "Accept-Query": f"{QUERY}, {FORM}"}
        if content_type not in taken:
            message = f"Unsupported Content-Type {content_type or '(none)'}. Send {' or '.join(taken)}."
            raise HttpError(415, "unsupported_media_type", message, headers)
        if (charset := parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
            raise HttpError(
                415, "unsupported_media_type", f"Unsupported charset {quoted(charset)}. Send UTF-8.", headers
            )
        if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
            message = f"Unsupported Content-Encoding {quoted(coding)}. Send the body uncompressed."
            raise HttpError(415, "unsupported_media_type", message, {"Accept-Encoding": "identity"})
        body = await request_bodies.read(request, self._endpoint.settings.max_body_bytes)
        if content_type == FORM:
            return _parse_parameters(body, len(body))
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"The body is not UTF-8: {error}.") from None
        return {"query" if content_type == QUERY else "update": [text]}

    async def _update(self, request: Request, text: str, parameters: Parameters) -> Response:
        endpoint = self._endpoint
        _refuse(parameters, _OF_QUERIES, "an update")
        if endpoint.update is None:
            raise QueryForbiddenError(
                "This endpoint is read-only. To allow updates, start the server with QUADCITE_UPDATES=true."
            )
        actor = endpoint.actor(request)
        endpoint.permit(actor, "sparql.update")  # before it waits for the updates of others
        default_graphs, named_graphs = (_parse_graphs(parameters, name) for name in _OF_UPDATES)
        update = partial(endpoint.update, text, default_graphs, named_graphs, actor)
        generation = await endpoint.limiters.updating.run(get_client_name(endpoint, request), update)
        return Response(status_code=204, headers={"Quadcite-Snapshot": str(generation), "Cache-Control": "no-store"})

    async def _query(self, request: Request, text: str, parameters: Parameters) -> Response:
        endpoint = self._endpoint
        _refuse(parameters, _OF_UPDATES, "a query")
        client = get_client_name(endpoint, request)
        query = _Query(
            text,
            await _choose_media_type(request, text, parameters, partial(endpoint.limiters.reading.run, client)),
            _parse_timeout(parameters),
            _parse_snapshot(parameters),
            *(_parse_graphs(parameters, name) for name in _OF_QUERIES[:2]),
        )
        headers = {"Vary": "Accept", "Cache-Control": "no-cache"}
        audience = await find_audience(endpoint, request)
        lasting = request.method in ("GET", "HEAD") and _VOLATILE.search(text) is None
        if lasting and (given := request.headers.getlist("if-none-match")):
            generation = endpoint.generation() if query.snapshot is None else query.snapshot
            tag = self._tag(query, generation, audience)
            if _matches(given, tag):
                headers |= {"ETag": tag, "Quadcite-Snapshot": str(generation)}
                return Response(status_code=304, headers=headers)
        expanded, timeout_s = await self._expanded(query, client)
        response = await execute(
            endpoint,
            request,
            expanded,
            media_type=query.media_type,
            headers=headers,
            timeout_s=timeout_s,
            default_graphs=query.default_graphs,
            named_graphs=query.named_graphs,
            exactly=query.snapshot,
            audience=audience,
        )
        if lasting:
            response.headers["ETag"] = self._tag(query, int(response.headers["Quadcite-Snapshot"]), audience)
        if endpoint.union and _has_no_rows(response) and len(text) <= _HELPED:
            response.headers["Link"] = f'</sparql/check?{urlencode({"query": text})}>; rel="help"'
        return response

    async def _expanded(self, query: _Query, client: str) -> tuple[str, float]:
        """Replace the SERVICE clauses of a query by their results. The second value is the remaining timeout."""
        allowed_s = self._endpoint.settings.query_timeout_s
        timeout_s = allowed_s if query.timeout_s is None else min(query.timeout_s, allowed_s)
        if "SERVICE" not in query.text.upper():
            return query.text, timeout_s
        begun = time.monotonic()
        expanded, expand = "", partial(self._endpoint.expand, query.text, timeout_s)
        with anyio.move_on_after(timeout_s):  # another server may not respond
            expanded = await self._endpoint.limiters.expanding.run(client, expand, abandon=True)
        left_s = timeout_s - (time.monotonic() - begun)
        if left_s <= 0 or not expanded:
            raise QueryTimeoutError(f"The SERVICE clauses of the query exceeded its timeout of {timeout_s:g} s.")
        return expanded, left_s

    def _tag(self, query: _Query, generation: int, audience: frozenset[str] | None) -> str:
        """Compute the ETag of the result of `query` over a generation of the store, for an audience."""
        asked = (query.text, query.media_type, *map(str, query.default_graphs), "", *map(str, query.named_graphs))
        seen = () if audience is None else ("", "", *sorted(audience))
        named = "\0".join((self._instance, str(self._endpoint.settings.max_rows), *asked, *seen))
        return f'W/"{generation}-{hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


async def _choose_media_type(request: Request, query: str, parameters: Parameters, read: Read) -> str:
    """Choose the media type of the result, by a parameter if present, else by the Accept headers."""
    form = query_form(query) if is_plain(query) else await read(partial(text_check.find_form, query))
    offered: Sequence[str] = _OFFERED.get(form or "", (*RESULT_TYPES, *GRAPH_TYPES))
    wanted = next((values[0] for name in _FORMATS if (values := parameters.get(name))), None)
    if wanted is None:
        media_type = negotiate(request.headers.getlist("accept"), offered)
        reason = "a type that the Accept header names"
    else:
        try:
            media_type = shorthand(wanted, offered)
        except KeyError:
            message = f"Unknown format {quoted(wanted)}. Available: a media type, or {', '.join(SHORTHANDS)}."
            raise InvalidInputError(message) from None
        reason = f"the format {quoted(wanted)}"
    if media_type is None:
        message = f"The result of {form or 'this query'} cannot have {reason}. Available: {', '.join(offered)}."
        raise HttpError(406, "not_acceptable", message)
    return media_type


def _parse_parameters(text: bytes, max_bytes: int) -> Parameters:
    """Parse the parameters of a query string or form, each with its values in order."""
    if len(text) > max_bytes:
        message = f"The URL is longer than {max_bytes} bytes (setting QUADCITE_MAX_BODY_BYTES). Send the query by POST."
        raise HttpError(414, "uri_too_long", message)
    if (broken := _BROKEN_ESCAPE.search(text)) is not None:
        found = broken[0].decode("ascii", "replace")
        raise InvalidInputError(f"The parameters are not percent-encoded: {found!r} at byte {broken.start()}.")
    try:
        decoded = text.decode("utf-8")
        pairs = parse_qsl(decoded, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"The parameters are not percent-encoded UTF-8: {error}.") from None
    except ValueError:
        raise InvalidInputError(f"More than {_MAX_PARAMETERS} parameters in the request.") from None
    parameters: Parameters = {}
    for name, value in pairs:
        parameters.setdefault(name, []).append(value)
    return parameters


def _refuse(parameters: Parameters, names: Sequence[str], operation: str) -> None:
    for name in names:
        if name in parameters:
            raise InvalidInputError(f"Parameter {name} is invalid with {operation}.")


def _parse_graphs(parameters: Parameters, name: str) -> tuple[NamedNode, ...]:
    graphs = []
    for value in parameters.get(name, []):
        try:
            graphs.append(NamedNode(value))
        except ValueError as error:
            raise InvalidInputError(f"Invalid {name} {quoted(value)}: not an absolute IRI ({error}).") from None
    return tuple(graphs)


def _single(parameters: Parameters, name: str) -> str | None:
    values = parameters.get(name, [])
    if len(values) > 1:
        raise InvalidInputError(f"Parameter {name} is given {len(values)} times. Give it once.")
    return values[0] if values else None


def _has_no_rows(response: Response) -> bool:
    """Whether `response` is the complete result of a SELECT without rows, in any format."""
    body = bytes(getattr(response, "body", b""))
    if response.headers["content-type"].startswith("text/"):
        return body.count(b"\n") == 1 and body.endswith(b"\n") and "turtle" not in response.headers["content-type"]
    return body.endswith((b'"bindings":[]}}', b"<results></results></sparql>"))


def _parse_timeout(parameters: Parameters) -> float | None:
    if (text := _single(parameters, "timeout")) is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InvalidInputError(f"Invalid timeout {quoted(text)}. Valid: a number of seconds greater than 0.")
    return seconds


def _parse_snapshot(parameters: Parameters) -> int | None:
    if (text := _single(parameters, "snapshot")) is None:
        return None
    if re.fullmatch("[0-9]{1,18}", text) is None:
        raise InvalidInputError(
            f"Invalid snapshot {quoted(text)}. Valid: a generation of the store, from the header Quadcite-Snapshot."
        )
    return int(text)


def _matches(given: Sequence[str], tag: str) -> bool:
    """Whether If-None-Match contains `tag`, by weak comparison (RFC 9110, section 13.1.2)."""
    return tag.removeprefix("W/") in (text.strip().removeprefix("W/") for text in ",".join(given).split(","))
