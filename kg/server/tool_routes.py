"""Tools over plain HTTP: ``GET /tools`` lists them, ``POST /tools/{name}`` calls one with a JSON object of arguments.

The response is the structured content that MCP returns, with MCP's ``_meta`` as ``meta``. ``?tag=`` selects among
tools that share a name (``?tag=research`` for the deep-research pair); without it the first one is called. The commands
of the command line (`kg.tools.commands`) are called the same way, with the scope ``admin``; they are not listed.

With ``Accept: application/x-ndjson`` the response is a stream of JSON lines: ``{"progress": [done, total, doing]}``
while the call runs, then ``{"result": ...}`` or ``{"error": {"code", "message", "retryable"}}``. A client that
disconnects stops the call.

``GET /health`` is the tool `health` for machines: 200 when the server can answer, 503 with the reason when it cannot.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import anyio
import anyio.from_thread
from anyio.streams.memory import MemoryObjectSendStream
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response
from starlette.types import Receive, Scope, Send

from kg.access.actors import ADMIN
from kg.access.audit import note
from kg.errors import QuadciteError, QueryLimitError
from kg.knowledge_graph import CANCELLATION, PROGRESS, SENDER, KnowledgeGraph
from kg.retrieval.results import encode_json
from kg.server import request_bodies
from kg.server.call_log import CallLog
from kg.server.mcp import (
    LONG_S,
    CancelOnDisconnect,
    ToolThreads,
    call_tool,
    error_data,
    input_schema,
    list_as,
    output_schema,
)
from kg.server.negotiation import negotiate
from kg.server.problem_details import HttpError, answering, fault, method_not_allowed
from kg.tools import registry
from kg.tools.answers import content_of
from kg.tools.calls import Command, Tool
from kg.tools.catalog.health import health
from kg.tools.decisions import decide, find_callable, get_policies, get_view, name_action, require_callable

NDJSON: Final = "application/x-ndjson"
PROGRESS_INTERVAL_S: Final = 0.1
_NO_STORE: Final = {"Cache-Control": "no-store"}

Line = Mapping[str, Any]


def routes(kg: KnowledgeGraph, threads: ToolThreads) -> list[Route]:
    """Build the routes of all tools and commands over `kg`."""

    async def listing(request: Request) -> Response:
        tagged = registry.tagged(request.query_params.get("tag"))
        get_policies(kg).require(SENDER.get(), "tools.list")
        found = find_callable(kg, SENDER.get())
        tools = [_describe(tool, list_as(tool, kg.settings)) for tool in tagged if name_action(tool) in found]
        return JSONResponse({"tools": tools}, headers=_NO_STORE)

    async def call(request: Request) -> Response:
        if request.method != "POST":
            raise method_not_allowed(request, "POST")
        tool = registry.get(request.path_params["name"], request.query_params.get("tag"))
        require_callable(kg, SENDER.get(), tool)
        settings = kg.settings
        # A load may name thousands of files.
        max_bytes = settings.max_graph_bytes if tool.scope == ADMIN else settings.max_body_bytes
        arguments = request_bodies.parse_arguments(await request_bodies.read(request, max_bytes))
        if tool.kind == "long":
            request_bodies.allow_time(request, LONG_S)
        note(action=tool.name, is_written=not tool.logged)
        running = partial(threads.run, partial(_content, tool, kg, arguments), kind=tool.kind)
        if negotiate(request.headers.getlist("accept"), ("application/json", NDJSON)) == NDJSON:
            note(is_streamed=True)
            return _ProgressResponse(tool.name, running)
        try:
            return Response(encode_json(await running()), headers=_NO_STORE, media_type="application/json")
        except QuadciteError:
            raise
        except Exception as error:
            raise HttpError(500, "internal", fault(f"tool {tool.name}")) from error

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return [
        Route("/tools", answering(listing), methods=["GET"], name="tools"),
        Route("/tools/{name}", CancelOnDisconnect(request_response(answering(call))), methods=methods, name="tool"),
    ]


def health_route(kg: KnowledgeGraph, threads: ToolThreads, count_held: Callable[[], Mapping[str, int]] = dict) -> Route:
    """Build the route ``/health``. Pending embeddings are counted, and do not make the server unavailable.

    `count_held` counts what requests in progress hold; its result is the member ``held``.
    """

    async def answer(request: Request) -> JSONResponse:
        try:
            state = await threads.run(partial(health, kg), kind="light")
        except QuadciteError as error:
            return JSONResponse({"status": "unavailable", **error_data(error)}, status_code=503, headers=_NO_STORE)
        return JSONResponse({**content_of(state), "held": dict(count_held())}, headers=_NO_STORE)

    return Route("/health", answer, methods=["GET"])


def _content(tool: Command, kg: KnowledgeGraph, arguments: Mapping[str, Any]) -> dict[str, Any]:
    sender = SENDER.get()
    if not tool.logged:
        return tool.content(get_view(kg, sender), arguments, partial(decide, kg, sender))
    with CallLog(tool.name, arguments, "http", kg.audit) as call:
        if not isinstance(tool, Tool):
            return tool.content(get_view(kg, sender), arguments, partial(decide, kg, sender))
        call.answer = answer = call_tool(tool, kg, arguments)
    return {**answer.content, "meta": answer.meta | {"request_id": call.request_id}}


def _describe(tool: Tool, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "title": tool.title,
        "description": tool.description,
        "tags": sorted(tool.tags),
        **({"scopes": sorted(tool.fact_scopes)} if tool.fact_scopes else {}),
        "input_schema": input_schema(tool),
        "output_schema": output_schema(tool),
    }


class _ProgressResponse(Response):
    """Runs a call and sends its progress, then its result or error, as JSON lines."""

    def __init__(self, name: str, running: Callable[[], Any]) -> None:
        super().__init__(media_type=NDJSON, headers=_NO_STORE)
        del self.headers["content-length"]  # that of an empty body
        self._name, self._running = name, running
        self._reported = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines until the call has ended."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        writer, lines = anyio.create_memory_object_stream[Line](1_000)
        async with anyio.create_task_group() as group:
            group.start_soon(self._run, writer)
            async with lines:
                async for line in lines:
                    piece = json.dumps(line, ensure_ascii=False).encode() + b"\n"
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _run(self, writer: MemoryObjectSendStream[Line]) -> None:
        def report(done: int, total: int | None, doing: str) -> None:
            cancellation = CANCELLATION.get()
            if cancellation is not None and cancellation.cancelled:
                raise QueryLimitError(f"{self._name} was stopped because its client disconnected.")
            now = time.monotonic()
            if now - self._reported >= PROGRESS_INTERVAL_S:
                self._reported = now
                anyio.from_thread.run_sync(_offer, writer, {"progress": [done, total, doing]})

        outcome: Line
        token = PROGRESS.set(report)
        async with writer:
            try:
                outcome = {"result": await self._running()}
            except QuadciteError as error:
                note(outcome=error.code)
                outcome = {"error": error_data(error)}
            except Exception:  # noqa: BLE001 -- `fault` logs it
                outcome = {"error": {"code": "internal", "message": fault(f"tool {self._name}"), "retryable": False}}
            finally:
                PROGRESS.reset(token)
            await writer.send(outcome)


def _offer(writer: MemoryObjectSendStream[Line], line: Line) -> None:
    """Send a line unless the client reads none: the call must not wait for it."""
    with contextlib.suppress(anyio.WouldBlock):
        writer.send_nowait(line)
