"""The SPARQL 1.1 Graph Store HTTP Protocol at ``/graphs`` (https://www.w3.org/TR/sparql11-http-rdf-update/).

A graph is named by ``?graph=IRI``, the default graph by ``?default``, or directly: ``/graphs/user/x`` is the graph
``https://w3id.org/quadcite/graph/user/x``; where an endpoint serves a plain dataset, it is the graph named by the URL
itself. POST to ``/graphs`` creates a graph and returns its location; GET lists the graphs.

Payloads are Turtle, N-Triples, RDF/XML, JSON-LD, or forms with parts of these types. A payload that violates its shapes
is rejected with 422 and the ``sh:ValidationReport`` in an accepted type, and nothing has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, cast
from urllib.parse import parse_qs

import anyio.to_thread
from anyio import CapacityLimiter
from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from kg.access.actors import Actor
from kg.errors import InvalidInputError, NotFoundError, ShapesViolatedError
from kg.processes.child import Limits
from kg.provenance.permissions import Method
from kg.queries.pool import UNLIMITED
from kg.server import request_bodies
from kg.server.compression import Compression
from kg.server.endpoint import Endpoint
from kg.server.negotiation import GRAPH_TYPES, negotiate
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.server.query_execution import execute, find_audience, get_client_name
from kg.server.rdf_payloads import TAKEN, Body
from kg.server.resources import rdf_response
from kg.shacl.report import build_report_triples
from kg.sparql.terms import bind
from kg.store.payloads import EXPANSION
from kg.store.protocol import Rows
from kg.text import quoted
from kg.user_graphs import name_new_graph
from kg.vocabulary import BASE

PATH: Final = "/graphs"
GRAPHS: Final = BASE + "graph/"
LISTED: Final = 1_000
"""Graphs per page of the listing."""

_ONE_GRAPH: Final = GRAPH_TYPES[:4]
_OF_A_GRAPH: Final = "GET, HEAD, PUT, POST, DELETE, OPTIONS"
_OF_ALL: Final = "GET, HEAD, POST, OPTIONS"

CONTENT: Final = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH $graph { ?s ?p ?o } }"
DEFAULT: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
EXISTS: Final = "ASK { GRAPH $graph {} }"
NAMES: Final = "SELECT DISTINCT ?graph WHERE { GRAPH ?graph {} } OFFSET $offset LIMIT $limit"


@dataclass(frozen=True, slots=True)
class Target:
    """The graph of a request: a named graph, or the default graph (None)."""

    graph: NamedNode | None

    def __str__(self) -> str:
        return "the default graph" if self.graph is None else str(self.graph)


def routes(endpoint: Endpoint) -> list[Route]:
    """Build the routes of the protocol over `endpoint`."""
    app = Compression(request_response(answering(_GraphStore(endpoint).answer)))
    return [Route(PATH, app, name="graphs"), Route(PATH + "/{name:path}", app, name="graph")]


class _GraphStore:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint

    async def answer(self, request: Request) -> Response:
        target = _parse_target(request, plain=not self._endpoint.union)
        allowed = _OF_ALL if target is None else _OF_A_GRAPH
        if request.method == "OPTIONS":
            taken = ", ".join(TAKEN)
            return Response(status_code=204, headers={"Allow": allowed, "Accept-Post": taken, "Accept-Put": taken})
        if request.method not in allowed.split(", "):
            raise method_not_allowed(request, allowed)
        actor = self._endpoint.actor(request)
        if request.method in ("GET", "HEAD"):
            self._endpoint.permit(actor, "graphs.read")
            return await (self._list(request) if target is None else self._get(request, target))
        self._endpoint.permit(actor, "graphs.write")
        # Before its payload is read and parsed; the write asks again, with its commit.
        if target is None:
            self._endpoint.permit_write(name_new_graph(), "PUT", actor)
        else:
            self._endpoint.permit_write(target.graph, cast("Method", request.method), actor)
        try:
            return await self._write(request, target, actor)
        except ShapesViolatedError as error:
            return _report(request, error)

    async def _get(self, request: Request, target: Target) -> Response:
        media_type = _negotiated(request, _ONE_GRAPH)
        query = DEFAULT
        if target.graph is not None:
            exists = await self._ask(request, bind(EXISTS, graph=target.graph))
            if exists is not True:
                raise NotFoundError(f"Unknown graph {target}. {PATH} lists the graphs.")
            query = bind(CONTENT, graph=target.graph)
        headers = {"Vary": "Accept", "Cache-Control": "no-cache"}
        # Without a row limit: a client could not distinguish a truncated graph from a whole one.
        return await execute(self._endpoint, request, query, media_type=media_type, headers=headers, limit=UNLIMITED)

    async def _list(self, request: Request) -> Response:
        """List a page of the names of graphs, unordered."""
        offset = _parse_offset(request)
        found = await self._ask(request, bind(NAMES, offset=offset, limit=LISTED + 1))
        names = (
            [row["graph"].value for row in found if isinstance(row["graph"], NamedNode)]
            if isinstance(found, Rows)
            else []
        )
        following = f"{PATH}?offset={offset + LISTED}" if len(names) > LISTED else None
        headers = {} if following is None else {"Link": f'<{following}>; rel="next"'}
        return JSONResponse({"graphs": names[:LISTED], "next": following}, headers=headers)

    async def _ask(self, request: Request, query: str) -> object:
        endpoint = self._endpoint
        run = partial(
            endpoint.pool.run,
            query,
            limit=LISTED + 1,
            at_least=endpoint.generation(),
            union=endpoint.union,
            client=endpoint.actor(request).name,
            audience=await find_audience(endpoint, request),
        )
        answer = await anyio.to_thread.run_sync(run, limiter=CapacityLimiter(1))
        return answer.result

    async def _write(self, request: Request, target: Target | None, actor: Actor) -> Response:
        graphs, limiters = self._endpoint.graphs, self._endpoint.limiters
        client = get_client_name(self._endpoint, request)
        run = partial(limiters.writing.run, client)
        if request.method == "DELETE" and target is not None:
            await run(partial(graphs.delete, target.graph, actor))
            return self._done(204)
        await run(self._endpoint.require_writable)
        body = await _read_body(request, self._endpoint.settings.max_graph_bytes)
        base_iri = str(request.url) if target is None or target.graph is None else target.graph.value
        settings = self._endpoint.settings
        limits = Limits(
            settings.query_timeout_s,
            settings.query_memory_mb << 20,
            max_bytes=EXPANSION * settings.max_graph_bytes,
            max_quads=settings.max_graph_quads,
        )
        # The next start clears this folder of leftovers of a crash.
        folder = settings.directory.snapshots
        # A plain dataset keeps blank nodes; a payload for the graph store itself has no graph to name them by.
        graph = target.graph if target is not None and self._endpoint.union else None

        def write() -> Response:
            with body.read(graph, base_iri, limits, folder if folder.is_dir() else None) as payload:
                if target is None:
                    return self._done(201, {"Location": _location(request, graphs.create(payload, actor))})
                write_graph = graphs.put if request.method == "PUT" else graphs.post
                return self._done(201 if write_graph(target.graph, payload, actor) else 204)

        # Large documents do not keep small ones waiting, which are parsed in this process.
        return await (limiters.writing if body.is_small else limiters.parsing).run(client, write)

    def _done(self, status: int, headers: dict[str, str] | None = None) -> Response:
        snapshot = str(self._endpoint.generation())
        return Response(
            status_code=status, headers={"Quadcite-Snapshot": snapshot, "Cache-Control": "no-store", **(headers or {})}
        )


def _parse_target(request: Request, *, plain: bool) -> Target | None:
    """Parse the target of `request`; None for the graph store itself (section 4 of the protocol)."""
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    name = path.decode("ascii", "replace").partition("?")[0].partition(PATH + "/")[2]
    parameters = parse_qs(request.scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
    given = [key for key in ("graph", "default") if key in parameters]
    if name and given:
        raise InvalidInputError(f"The URL already names a graph. Remove ?{given[0]}.")
    if len(given) > 1 or any(len(parameters[key]) > 1 for key in given):
        raise InvalidInputError("More than one graph in the request. Give one ?graph=IRI or ?default.")
    if name:
        iri = f"{request.url.scheme}://{request.url.netloc}{PATH}/{name}" if plain else GRAPHS + name
        return Target(_parse_iri(iri))
    if given == ["default"]:
        return Target(None)
    if given == ["graph"]:
        iri = parameters["graph"][0]
        here = _base_of(request)
        return Target(_parse_iri(iri if plain or not iri.startswith(here) else GRAPHS + iri.removeprefix(here)))
    return None


def _base_of(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}{PATH}/"


def _location(request: Request, graph: NamedNode) -> str:
    """Build the URL of `graph` on this server."""
    return _base_of(request) + graph.value.removeprefix(GRAPHS) if graph.value.startswith(GRAPHS) else graph.value


def _parse_iri(text: str) -> NamedNode:
    try:
        return NamedNode(text)
    except ValueError as error:
        raise InvalidInputError(f"Invalid graph name {quoted(text)}: not an absolute IRI ({error}).") from None


def _parse_offset(request: Request) -> int:
    text = request.query_params.get("offset", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInputError(f"Invalid offset {quoted(text)}. Valid: an integer from 0.")
    return int(text)


def _negotiated(request: Request, offered: tuple[str, ...]) -> str:
    media_type = negotiate(request.headers.getlist("accept"), offered)
    if media_type is None:
        message = f"Not acceptable by the Accept header. Available: {', '.join(offered)}."
        raise HttpError(406, "not_acceptable", message)
    return media_type


async def _read_body(request: Request, max_bytes: int) -> Body:
    if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
        message = f"Unsupported Content-Encoding {quoted(coding)}. Send the body uncompressed."
        raise HttpError(415, "unsupported_media_type", message, {"Accept-Encoding": "identity"})
    body = await request_bodies.read(request, max_bytes, "QUADCITE_MAX_GRAPH_BYTES")
    return Body(body, request.headers.get("content-type", ""))


def _report(request: Request, error: ShapesViolatedError) -> Response:
    """Build the response with a validation report, in an accepted type, else in Turtle."""
    media_type = negotiate(request.headers.getlist("accept"), _ONE_GRAPH) or _ONE_GRAPH[0]
    headers = {"Cache-Control": "no-store", "Quadcite-Error": error.code}
    answer = rdf_response(error.report or build_report_triples(error.violations), media_type, headers)
    answer.status_code = error.http_status
    return answer
