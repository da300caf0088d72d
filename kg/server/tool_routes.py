"""The tools over plain HTTP: ``GET /tools`` lists them, ``POST /tools/{name}`` calls one with a JSON object.

The answer is the structured content that MCP has, with what MCP puts into ``_meta`` as ``meta``. Of tools that share a
name (the deep-research pair), ``?tag=research`` means the one with that tag; without it the first one is meant.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from kg.actors import EVERYONE, Actor
from kg.errors import NotFoundError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.server import request_bodies
from kg.server.mcp import StopsWithClient, Threads, output_schema, permit, schema_of
from kg.server.problem_details import HttpError, answering, fault, method_not_allowed
from kg.tools.registry import TOOLS, Tool, content_of

log = logging.getLogger(__name__)

_NO_STORE: Final = {"Cache-Control": "no-store"}


def routes(
    kg: KnowledgeGraph, threads: Threads, actor: Callable[[Request], Actor] = lambda request: EVERYONE
) -> list[Route]:
    """Return the routes of all tools over `kg`; calls run in `threads`, and stop when the client hangs up.

    `actor` says who sent a request.
    """

    async def listing(request: Request) -> Response:
        tools = _with_tag(request)
        return JSONResponse({"tools": [_described(tool) for tool in tools]}, headers=_NO_STORE)

    async def call(request: Request) -> Response:
        if request.method != "POST":
            raise method_not_allowed(request, "POST")
        tool = _named(request)
        permit(tool)
        arguments = request_bodies.arguments_in(await request_bodies.read(request, kg.settings.max_body_bytes))
        try:
            result = await threads.run(partial(tool.call, kg, arguments), kind=tool.kind)
        except QuadciteError:
            raise
        except Exception as error:
            raise HttpError(500, "internal", fault(f"tool {tool.name}")) from error
        content = {**content_of(result), "meta": result.meta.model_dump(mode="json")}
        return JSONResponse(content, headers=_NO_STORE)

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return [
        Route("/tools", answering(listing), methods=["GET"], name="tools"),
        Route("/tools/{name}", StopsWithClient(request_response(answering(call)), actor), methods=methods, name="tool"),
    ]


def _with_tag(request: Request) -> list[Tool]:
    """Return the tools that ``?tag=`` asks for, or the first of each name."""
    tag = request.query_params.get("tag")
    if tag is None:
        first: dict[str, Tool] = {}
        for tool in TOOLS:
            first.setdefault(tool.name, tool)
        return list(first.values())
    found = [tool for tool in TOOLS if tag in tool.tags]
    if not found:
        tags = ", ".join(sorted({name for tool in TOOLS for name in tool.tags}))
        raise NotFoundError(f"no tool has the tag {tag[:100]!r}; the tags are {tags}")
    return found


def _named(request: Request) -> Tool:
    name = request.path_params["name"]
    tools = _with_tag(request)
    for tool in tools:
        if tool.name == name:
            return tool
    raise NotFoundError(f"there is no tool {name[:100]!r}; there are {', '.join(tool.name for tool in tools)}")


def _described(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "tags": sorted(tool.tags),
        "input_schema": schema_of(tool.arguments),
        "output_schema": output_schema(tool),
    }
