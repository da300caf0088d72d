"""What runs at the endpoint, and how to stop it: ``GET /sparql/queries`` and ``DELETE /sparql/queries/{id}``."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kg.errors import NotFoundError
from kg.server.auth import READ, WRITE
from kg.server.endpoint import Endpoint
from kg.server.problems import answering


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
            for query in endpoint.pool.running()
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
