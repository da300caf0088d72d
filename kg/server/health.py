"""``/health`` for machines: 200 when this server can answer, 503 with the reason when it cannot."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.server.mcp import Threads
from kg.tools.catalog.overview import health
from kg.tools.registry import content_of


def route(kg: KnowledgeGraph, threads: Threads) -> Route:
    """Return the route. Passages that wait for their embedding do not make the server unready: they are counted."""

    async def answer(request: Request) -> JSONResponse:
        try:
            state = await threads.run(partial(health, kg), kind="light")
        except QuadciteError as error:
            return JSONResponse(
                {"status": "unavailable", "code": error.code, "message": str(error), "retryable": error.retryable},
                status_code=503,
                headers={"Cache-Control": "no-store"},
            )
        return JSONResponse(content_of(state), headers={"Cache-Control": "no-store"})

    return Route("/health", answer, methods=["GET"])
