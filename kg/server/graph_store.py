"""The SPARQL 1.1 Graph Store HTTP Protocol at ``/graphs`` (https://www.w3.org/TR/sparql11-http-rdf-update/).

A graph is named by ``?graph=IRI``, the default graph by ``?default``, or directly: ``/graphs/user/x`` is the graph
``https://w3id.org/quadcite/graph/user/x``; where an endpoint serves a plain dataset, it is the graph named by the URL
itself. POST to ``/graphs`` makes a graph of its own and answers with its place; GET lists the graphs.

Turtle, N-Triples, RDF/XML, JSON-LD, and forms with parts of these types are taken. A payload that breaks its shapes is
answered with 422 and the ``sh:ValidationReport`` in a type that Accept takes, and nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar
from urllib.parse import parse_qs

import anyio.to_thread
from anyio import CapacityLimiter
from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from kg.actors import READ, Actor
from kg.errors import InvalidInputError, NotFoundError, ShapesViolatedError
from kg.processes.child import Limits
from kg.queries.pool import UNLIMITED
from kg.server import request_bodies
from kg.server.compression import Compression
from kg.server.endpoint import Endpoint
from kg.server.negotiation import GRAPH_TYPES, negotiate
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.server.query_execution import execute
from kg.server.rdf_payloads import TAKEN, Payload
from kg.server.resources import rdf
from kg.shacl.report import build_report_triples
from kg.sparql.terms import bind
from kg.store.protocol import Rows
from kg.vocabulary import BASE

PATH: Final = "/graphs"
GRAPHS: Final = BASE + "graph/"
LISTED: Final = 1_000
"""Graphs that one page of the listing has."""

_ONE_GRAPH: Final = GRAPH_TYPES[:4]
_OF_A_GRAPH: Final = "GET, HEAD, PUT, POST, DELETE, OPTIONS"
_OF_ALL: Final = "GET, HEAD, POST, OPTIONS"
_PARSERS: Final = 2

CONTENT: Final = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH $graph { ?s ?p ?o } }"
DEFAULT: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
EXISTS: Final = "ASK { GRAPH $graph {} }"
NAMES: Final = "SELECT DISTINCT ?graph WHERE { GRAPH ?graph {} } OFFSET $offset LIMIT $limit"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about: a named graph, or the default graph (None)."""

    graph: NamedNode | None

    def __str__(self) -> str:
        return "the default graph" if self.graph is None else str(self.graph)


def routes(endpoint: Endpoint) -> list[Route]:
    """Return the routes of the protocol over `endpoint`."""
    app = Compression(request_response(answering(_GraphStore(endpoint).answer)))
    return [Route(PATH, app, name="graphs"), Route(PATH + "/{name:path}", app, name="graph")]


class _GraphStore:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._parsers: Final = CapacityLimiter(_PARSERS)
        self._writers: Final = CapacityLimiter(4)

    async def answer(self, request: Request) -> Response:
        target = _target(request, plain=not self._endpoint.union)
        allowed = _OF_ALL if target is None else _OF_A_GRAPH
        if request.method == "OPTIONS":
            taken = ", ".join(TAKEN)
            return Response(status_code=204, headers={"Allow": allowed, "Accept-Post": taken, "Accept-Put": taken})
        if request.method not in allowed.split(", "):
            raise method_not_allowed(request, allowed)
        actor = self._endpoint.actor(request)
        if request.method in ("GET", "HEAD"):
            actor.require(READ, "reading a graph")
            return await (self._list(request) if target is None else self._get(request, target))
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
                raise NotFoundError(f"there is no graph {target}; {PATH} lists those that there are")
            query = bind(CONTENT, graph=target.graph)
        headers = {"Vary": "Accept", "Cache-Control": "no-cache"}
        # A graph is sent whole: a part of it would look like all of it.
        return await execute(self._endpoint, request, query, media_type=media_type, headers=headers, limit=UNLIMITED)

    async def _list(self, request: Request) -> Response:
        """Answer with the names of graphs, a page at a time, in no particular order."""
        offset = _offset(request)
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
        )
        answer = await anyio.to_thread.run_sync(run, limiter=CapacityLimiter(1))
        return answer.result

    async def _write(self, request: Request, target: Target | None, actor: Actor) -> Response:
        graphs = self._endpoint.graphs
        if request.method == "DELETE" and target is not None:
            await self._in_thread(partial(graphs.delete, target.graph, actor))
            return self._done(204)
        payload = await _payload(request, self._endpoint.settings.max_graph_bytes)
        base_iri = str(request.url) if target is None or target.graph is None else target.graph.value
        settings = self._endpoint.settings
        limits = Limits(settings.query_timeout_s, settings.query_memory_mb << 20)
        # What a crash leaves among the snapshots goes at the next start.
        folder = settings.data_dir / "snapshots"
        read = partial(payload.triples, base_iri, limits, folder if folder.is_dir() else None)
        triples = await anyio.to_thread.run_sync(read, limiter=self._parsers)
        if target is None:
            graph = await self._in_thread(partial(graphs.create, triples, actor))
            return self._done(201, {"Location": _place(request, graph)})
        write = graphs.put if request.method == "PUT" else graphs.post
        is_new = await self._in_thread(partial(write, target.graph, triples, actor))
        return self._done(201 if is_new else 204)

    async def _in_thread(self, write: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(write, limiter=self._writers)

    def _done(self, status: int, headers: dict[str, str] | None = None) -> Response:
        snapshot = str(self._endpoint.generation())
        return Response(
            status_code=status, headers={"Quadcite-Snapshot": snapshot, "Cache-Control": "no-store", **(headers or {})}
        )


def _target(request: Request, *, plain: bool) -> Target | None:
    """Return what `request` is about; None for the graph store itself (section 4 of the protocol)."""
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    name = path.decode("ascii", "replace").partition("?")[0].partition(PATH + "/")[2]
    parameters = parse_qs(request.scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
    given = [key for key in ("graph", "default") if key in parameters]
    if name and given:
        raise InvalidInputError(f"the URL names a graph already, so ?{given[0]} cannot")
    if len(given) > 1 or any(len(parameters[key]) > 1 for key in given):
        raise InvalidInputError("a request is about one graph: give one ?graph=IRI, or ?default, and not both")
    if name:
        iri = f"{request.url.scheme}://{request.url.netloc}{PATH}/{name}" if plain else GRAPHS + name
        return Target(_iri(iri))
    if given == ["default"]:
        return Target(None)
    if given == ["graph"]:
        iri = parameters["graph"][0]
        here = _here(request)
        return Target(_iri(iri if plain or not iri.startswith(here) else GRAPHS + iri.removeprefix(here)))
    return None


def _here(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}{PATH}/"


def _place(request: Request, graph: NamedNode) -> str:
    """Return the URL at which `graph` is found."""
    return _here(request) + graph.value.removeprefix(GRAPHS) if graph.value.startswith(GRAPHS) else graph.value


def _iri(text: str) -> NamedNode:
    try:
        return NamedNode(text)
    except ValueError as error:
        raise InvalidInputError(f"{text[:200]!r} is not an absolute IRI, as the name of a graph is: {error}") from None


def _offset(request: Request) -> int:
    text = request.query_params.get("offset", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInputError(f"offset is a whole number from 0, not {text[:20]!r}")
    return int(text)


def _negotiated(request: Request, offered: tuple[str, ...]) -> str:
    media_type = negotiate(request.headers.getlist("accept"), offered)
    if media_type is None:
        message = f"a graph is sent as {', '.join(offered)}; the Accept header takes none of them"
        raise HttpError(406, "not_acceptable", message)
    return media_type


async def _payload(request: Request, max_bytes: int) -> Payload:
    if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
        message = f"the body is sent as it is, not compressed (Content-Encoding: {coding})"
        raise HttpError(415, "unsupported_media_type", message, {"Accept-Encoding": "identity"})
    body = await request_bodies.read(request, max_bytes, "QUADCITE_MAX_GRAPH_BYTES")
    return Payload(body, request.headers.get("content-type", ""))


def _report(request: Request, error: ShapesViolatedError) -> Response:
    """Return the report of a validation, in a type that Accept takes, or in Turtle."""
    media_type = negotiate(request.headers.getlist("accept"), _ONE_GRAPH) or _ONE_GRAPH[0]
    headers = {"Cache-Control": "no-store", "Quadcite-Error": error.code}
    answer = rdf(build_report_triples(error.violations), media_type, headers)
    answer.status_code = error.http_status
    return answer
