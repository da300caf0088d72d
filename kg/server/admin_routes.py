"""Routes with the scope ``admin``: ``POST /admin/query`` and ``POST /admin/snapshot``, for the command line.

``query`` answers like ``/sparql``, without a limit on rows or time. ``snapshot`` answers with the folder of a
checkpoint of the store as one JSON line, and keeps it until the client disconnects.
"""

from __future__ import annotations

import json

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.queries.pool import UNLIMITED
from kg.server import request_bodies
from kg.server.endpoint import Endpoint
from kg.server.mcp import LONG_S
from kg.server.problem_details import answering
from kg.server.query_execution import execute
from kg.store.protocol import Snapshot


def routes(kg: KnowledgeGraph, endpoint: Endpoint) -> list[Route]:
    """Build the routes over `kg`. `endpoint` asks the policies and answers queries."""

    async def query(request: Request) -> Response:
        endpoint.permit(endpoint.actor(request), "admin.query")
        arguments = request_bodies.parse_arguments(await request.body())
        request_bodies.allow_time(request, LONG_S)
        try:
            text, media_type = str(arguments["query"]), str(arguments["media_type"])
            timeout_s = float(arguments.get("timeout_s", UNLIMITED))
        except KeyError as error:
            raise InvalidInputError(f"Missing argument {error}. Required: query, media_type.") from None
        except (TypeError, ValueError):
            raise InvalidInputError("Invalid timeout_s. It must be a number of seconds.") from None
        if not timeout_s > 0:
            raise InvalidInputError(f"Invalid timeout_s {timeout_s}. It must be more than 0 seconds.")
        expanded = await anyio.to_thread.run_sync(endpoint.expand, text, timeout_s if timeout_s < UNLIMITED else None)
        return await execute(
            endpoint, request, expanded, media_type=media_type, headers={}, limit=UNLIMITED, timeout_s=timeout_s
        )

    async def snapshot(request: Request) -> Response:
        endpoint.permit(endpoint.actor(request), "admin.snapshot")
        request_bodies.allow_time(request, LONG_S)
        return _SnapshotResponse(
            await anyio.to_thread.run_sync(lambda: kg.store.snapshot(kg.store.statistics().generation))
        )

    return [
        Route("/admin/query", answering(query), methods=["POST"], name="admin-query"),
        Route("/admin/snapshot", answering(snapshot), methods=["POST"], name="admin-snapshot"),
    ]


class _SnapshotResponse(Response):
    """Sends the folder of a snapshot, and releases the snapshot when the client disconnects."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._snapshot = snapshot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the folder, then wait for the disconnect. A server that stops does not wait."""
        try:
            place = {"generation": self._snapshot.generation, "path": str(self._snapshot.path.absolute())}
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            line = json.dumps({"result": place}).encode() + b"\n"
            await send({"type": "http.response.body", "body": line, "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._snapshot.release)
