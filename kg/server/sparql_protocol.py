"""The SPARQL 1.1 Protocol at ``/sparql``, queries and updates (https://www.w3.org/TR/sparql11-protocol/).

A query comes by GET, by POST as a form or as it is, and by QUERY (draft-ietf-httpbis-safe-method-w-body) with the same
bodies; an update by POST, as a form or as it is. GET without parameters answers with the service description. Beyond
the protocol:

- ``timeout=`` (seconds) lowers the deadline; ``snapshot=`` asks a generation of the store that is still kept;
- ``format=`` or ``output=`` names the representation where no Accept header can be sent (`negotiation.SHORTHANDS`);
- an answer to GET has an ETag, weak since rows have no order of their own, unless the query asks for something that
  changes by itself (the time, chance, another server); sent back as If-None-Match it saves the query;
- a SELECT without rows is answered with a ``Link`` (``rel="help"``) to what ``/sparql/check`` says of the query;
- an update is answered with 204 and, in ``Quadcite-Snapshot``, the generation that it made: the next query sees it.

Parameters that nothing here knows are left alone, as clients send some of their own.
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
from anyio import CapacityLimiter
from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from kg.actors import READ, WRITE
from kg.errors import InvalidInputError, NotFoundError, QueryForbiddenError, QueryTimeoutError
from kg.queries import text_check
from kg.server import request_bodies
from kg.server.compression import Compression
from kg.server.endpoint import Endpoint
from kg.server.fair_limiter import FairLimiter
from kg.server.negotiation import (
    GRAPH_TYPES,
    RESULT_TYPES,
    SHORTHANDS,
    media_type_of,
    negotiate,
    shorthand,
)
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.server.query_execution import execute, get_client_name
from kg.server.resources import rdf, representation, shown_to
from kg.server.service_description import service_description
from kg.sparql.guard import is_plain, query_form


def running_query_routes(endpoint: Endpoint) -> list[Route]:
    """Return the routes over the pool of `endpoint`.

    The list has for each query that runs or waits, the oldest first: ``id``, ``client``, ``age_s``, ``sha256`` (of its
    text), ``lane`` (``fast`` or ``long``) and ``state`` (``running`` or ``waiting``). Stopping one takes the scope
    `WRITE`; whoever asked it is told that it was cancelled.
    """

    async def listed(request: Request) -> Response:
        endpoint.actor(request).require(READ, "the list of queries")
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
        endpoint.actor(request).require(WRITE, "stopping a query")
        number = request.path_params["number"]
        if not endpoint.pool.cancel(number):
            raise NotFoundError(f"no query {number} runs or waits; GET /sparql/queries lists those that do")
        return Response(status_code=204)

    return [
        Route("/sparql/queries", answering(listed), methods=["GET"], name="queries"),
        Route("/sparql/queries/{number:int}", answering(cancelled), methods=["DELETE"], name="query"),
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
"""Characters of a query that fit into the link to what may be wrong with it."""
_EXPANSIONS: Final = (8, 4, 32)
"""Queries whose SERVICE clauses are answered at the same time, those of one client, and those of one that may wait."""
_BROKEN_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_VOLATILE: Final = re.compile("NOW|RAND|UUID|SERVICE", re.IGNORECASE)
"""What may make an answer differ over the same data; wherever it stands in the query, to be sure."""

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
    """Return the route of the protocol over `endpoint`."""
    # Every method comes here (a route of a function would take GET alone), so that 405 has the endpoint's own form.
    app = Compression(request_response(answering(_Sparql(endpoint).answer)))
    return [Route("/sparql", app, name="sparql")]


class _Sparql:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._updates: Final = CapacityLimiter(1)  # they wait for one another anyway
        self._expansions: Final = FairLimiter(*_EXPANSIONS)
        self._instance: Final = secrets.token_hex(4)  # the generations of another data directory are not these

    async def answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return self._options()
        if request.method not in _ALLOWED.split(", "):
            raise method_not_allowed(request, _ALLOWED)
        actor = self._endpoint.actor(request)
        in_url = _parameters(request.scope["query_string"], self._endpoint.settings.max_body_bytes)
        in_body = await self._body(request) if request.method in ("POST", "QUERY") else {}
        if "update" in in_url or ("update" in in_body and request.method != "POST"):
            raise InvalidInputError(f"an update is sent by POST, in the body: as {UPDATE}, or in a form as `update`")
        parameters = {name: in_url.get(name, []) + in_body.get(name, []) for name in {**in_url, **in_body}}
        if request.method in ("GET", "HEAD") and not set(parameters) - set(_FORMATS):
            actor.require(READ, "the service description")
            return self._description(request)
        operations = [(name, text) for name in ("query", "update") for text in parameters.get(name, [])]
        if len(operations) != 1:
            raise InvalidInputError(
                f"a request carries exactly one query (parameter `query`) or update, not {len(operations)}"
            )
        [(kind, text)] = operations
        if not text.strip():
            raise InvalidInputError(f"the {kind} is empty")
        if kind == "update":
            return await self._update(request, text, parameters)
        actor.require(READ, "a query")
        return await self._query(request, text, parameters)

    def _description(self, request: Request) -> Response:
        headers = {"Quadcite-Snapshot": str(self._endpoint.generation())}
        description = service_description(self._endpoint, str(request.base_url).rstrip("/"))
        media_type = representation(request)
        return rdf(description, media_type, headers | shown_to(request, media_type))

    def _options(self) -> Response:
        headers = {"Allow": _ALLOWED, "Accept-Query": f"{QUERY}, {FORM}", "Accept-Post": self._accept_post()}
        return Response(status_code=204, headers=headers)

    def _accept_post(self) -> str:
        return ", ".join((QUERY, FORM) if self._endpoint.update is None else (QUERY, UPDATE, FORM))

    async def _body(self, request: Request) -> Parameters:
        """Return the parameters in the body of a request, of which a query or update sent as it is is one."""
        content_types = request.headers.getlist("content-type")
        if len(content_types) > 1:
            raise InvalidInputError("the request has several Content-Type headers; send one")
        content_type, parameters = media_type_of("".join(content_types))
        taken = (QUERY, FORM) if request.method == "QUERY" else (QUERY, UPDATE, FORM)
        headers = {"Accept-Post": self._accept_post(), "Accept-Query": f"{QUERY}, {FORM}"}
        if content_type not in taken:
            message = f"a {request.method} carries {' or '.join(taken)}, not {content_type or 'a body without a type'}"
            raise HttpError(415, "unsupported_media_type", message, headers)
        if (charset := parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8", "us-ascii"):
            raise HttpError(415, "unsupported_media_type", f"the charset is UTF-8, not {charset}", headers)
        if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
            message = f"the body is sent as it is, not compressed (Content-Encoding: {coding})"
            raise HttpError(415, "unsupported_media_type", message, {"Accept-Encoding": "identity"})
        body = await request_bodies.read(request, self._endpoint.settings.max_body_bytes)
        if content_type == FORM:
            return _parameters(body, len(body))
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"the body is not UTF-8: {error}") from None
        return {"query" if content_type == QUERY else "update": [text]}

    async def _update(self, request: Request, text: str, parameters: Parameters) -> Response:
        endpoint = self._endpoint
        _refuse(parameters, _OF_QUERIES, "a query, and this is an update")
        if endpoint.update is None:
            raise QueryForbiddenError(
                "this endpoint is read-only: it takes no updates unless it is started with QUADCITE_UPDATES=true"
            )
        default_graphs, named_graphs = (_graphs(parameters, name) for name in _OF_UPDATES)
        update = partial(endpoint.update, text, default_graphs, named_graphs, endpoint.actor(request))
        generation = await anyio.to_thread.run_sync(update, limiter=self._updates)
        return Response(status_code=204, headers={"Quadcite-Snapshot": str(generation), "Cache-Control": "no-store"})

    async def _query(self, request: Request, text: str, parameters: Parameters) -> Response:
        endpoint = self._endpoint
        _refuse(parameters, _OF_UPDATES, "an update, and this is a query")
        client = get_client_name(endpoint, request)
        query = _Query(
            text,
            await _media_type(request, text, parameters, partial(endpoint.reading.run, client)),
            _timeout(parameters),
            _snapshot(parameters),
            *(_graphs(parameters, name) for name in _OF_QUERIES[:2]),
        )
        headers = {"Vary": "Accept", "Cache-Control": "no-cache"}
        lasting = request.method in ("GET", "HEAD") and _VOLATILE.search(text) is None
        if lasting and (given := request.headers.getlist("if-none-match")):
            generation = endpoint.generation() if query.snapshot is None else query.snapshot
            tag = self._tag(query, generation)
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
        )
        if lasting:
            response.headers["ETag"] = self._tag(query, int(response.headers["Quadcite-Snapshot"]))
        if endpoint.union and _has_no_rows(response) and len(text) <= _HELPED:
            response.headers["Link"] = f'</sparql/check?{urlencode({"query": text})}>; rel="help"'
        return response

    async def _expanded(self, query: _Query, client: str) -> tuple[str, float]:
        """Return the query with its SERVICE clauses answered, and the seconds that this leaves it."""
        allowed_s = self._endpoint.settings.query_timeout_s
        timeout_s = allowed_s if query.timeout_s is None else min(query.timeout_s, allowed_s)
        if "SERVICE" not in query.text.upper():
            return query.text, timeout_s
        begun = time.monotonic()
        expanded, expand = "", partial(self._endpoint.expand, query.text, timeout_s)
        with anyio.move_on_after(timeout_s):  # whatever is asked may hang
            expanded = await self._expansions.run(client, expand, abandon=True)
        left_s = timeout_s - (time.monotonic() - begun)
        if left_s <= 0 or not expanded:
            raise QueryTimeoutError(f"answering the query's SERVICE clauses took its whole deadline of {timeout_s:g} s")
        return expanded, left_s

    def _tag(self, query: _Query, generation: int) -> str:
        """Return what names the answer to `query` over a generation of the store."""
        asked = (query.text, query.media_type, *map(str, query.default_graphs), "", *map(str, query.named_graphs))
        named = "\0".join((self._instance, str(self._endpoint.settings.max_rows), *asked))
        return f'W/"{generation}-{hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


async def _media_type(request: Request, query: str, parameters: Parameters, read: Read) -> str:
    """Return what to answer `query` with, by a parameter if it has one, else by the Accept headers."""
    form = query_form(query) if is_plain(query) else await read(partial(text_check.find_form, query))
    offered: Sequence[str] = _OFFERED.get(form or "", (*RESULT_TYPES, *GRAPH_TYPES))
    wanted = next((values[0] for name in _FORMATS if (values := parameters.get(name))), None)
    if wanted is None:
        media_type = negotiate(request.headers.getlist("accept"), offered)
        asker = "the Accept header takes"
    else:
        try:
            media_type = shorthand(wanted, offered)
        except KeyError:
            message = f"{' or '.join(_FORMATS)} is a media type or one of {', '.join(SHORTHANDS)}, not {wanted[:80]!r}"
            raise InvalidInputError(message) from None
        asker = f"{wanted[:80]!r} names"
    if media_type is None:
        message = f"{form or 'this query'} is answered in {', '.join(offered)}; {asker} none of them"
        raise HttpError(406, "not_acceptable", message)
    return media_type


def _parameters(text: bytes, max_bytes: int) -> Parameters:
    """Return the parameters of a query string or form, each with its values in order."""
    if len(text) > max_bytes:
        message = f"the URL is longer than {max_bytes} bytes (setting QUADCITE_MAX_BODY_BYTES); send the query by POST"
        raise HttpError(414, "uri_too_long", message)
    if (broken := _BROKEN_ESCAPE.search(text)) is not None:
        found = broken[0].decode("ascii", "replace")
        raise InvalidInputError(f"the parameters are not percent-encoded: {found!r} at byte {broken.start()}")
    try:
        decoded = text.decode("utf-8")
        pairs = parse_qsl(decoded, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"the parameters are not percent-encoded UTF-8: {error}") from None
    except ValueError:
        raise InvalidInputError(f"a request has at most {_MAX_PARAMETERS} parameters") from None
    parameters: Parameters = {}
    for name, value in pairs:
        parameters.setdefault(name, []).append(value)
    return parameters


def _refuse(parameters: Parameters, names: Sequence[str], reason: str) -> None:
    for name in names:
        if name in parameters:
            raise InvalidInputError(f"{name} belongs to {reason}")


def _graphs(parameters: Parameters, name: str) -> tuple[NamedNode, ...]:
    graphs = []
    for value in parameters.get(name, []):
        try:
            graphs.append(NamedNode(value))
        except ValueError as error:
            raise InvalidInputError(f"{name} must be an absolute IRI, not {value[:200]!r}: {error}") from None
    return tuple(graphs)


def _single(parameters: Parameters, name: str) -> str | None:
    values = parameters.get(name, [])
    if len(values) > 1:
        raise InvalidInputError(f"{name} is given {len(values)} times; give it once")
    return values[0] if values else None


def _has_no_rows(response: Response) -> bool:
    """Return whether `response` is the whole result of a SELECT without rows, in any of the formats."""
    body = bytes(getattr(response, "body", b""))
    if response.headers["content-type"].startswith("text/"):
        return body.count(b"\n") == 1 and body.endswith(b"\n") and "turtle" not in response.headers["content-type"]
    return body.endswith((b'"bindings":[]}}', b"<results></results></sparql>"))


def _timeout(parameters: Parameters) -> float | None:
    if (text := _single(parameters, "timeout")) is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InvalidInputError(f"timeout must be a number of seconds greater than 0, not {text[:80]!r}")
    return seconds


def _snapshot(parameters: Parameters) -> int | None:
    if (text := _single(parameters, "snapshot")) is None:
        return None
    if re.fullmatch("[0-9]{1,18}", text) is None:
        raise InvalidInputError(
            f"snapshot must be a generation of the store, as in the header Quadcite-Snapshot, not {text[:80]!r}"
        )
    return int(text)


def _matches(given: Sequence[str], tag: str) -> bool:
    """Return whether If-None-Match names `tag`, compared weakly (RFC 9110, section 13.1.2)."""
    return tag.removeprefix("W/") in (text.strip().removeprefix("W/") for text in ",".join(given).split(","))
