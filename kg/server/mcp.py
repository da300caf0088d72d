"""The MCP servers: one per set of tags, over one list of tools."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from copy import deepcopy
from functools import cache, partial
from typing import Any, Final, TypeVar

import anyio
from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.resources.security import ResourceSecurity
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import Tool as McpTool
from fastmcp.tools import ToolResult
from fastmcp.utilities.json_schema import dereference_refs
from mcp_types import CallToolRequestParams, TextContent, ToolAnnotations
from mcp_types import Tool as ListedTool
from pydantic import BaseModel, PrivateAttr
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg import __version__
from kg.access import audit
from kg.connectors.names import list_name
from kg.errors import ForbiddenError, QuadciteError, QueryBusyError
from kg.knowledge_graph import CALLER, CANCELLATION, SENDER, KnowledgeGraph
from kg.loading import ANSWER_AFTER_S
from kg.processes.child import never
from kg.queries.pool import Cancellation
from kg.retrieval.reader import Reader
from kg.retrieval.results import Result, to_json
from kg.server.auth import get_peer
from kg.server.call_log import CallLog
from kg.server.fair_limiter import CALL_S, FairLimiter, name_client
from kg.server.instructions import build_instructions, name_mounts
from kg.server.mcp_prompts import add_prompts
from kg.server.problem_details import fault
from kg.settings import Settings
from kg.text import quoted
from kg.tools.answers import Answer, content_of
from kg.tools.audiences import is_restricted
from kg.tools.calls import Kind, Tool
from kg.tools.catalog.health import health
from kg.tools.catalog.resources import hub_datasets, sources
from kg.tools.decisions import (
    decide,
    find_callable,
    get_policies,
    get_view,
    name_action,
    require_callable,
    require_endpoint,
)
from kg.tools.entities.entity_quads import load_entity
from kg.tools.mounts import MOUNTS
from kg.tools.registry import mounted

T = TypeVar("T")

log = logging.getLogger(__name__)

TOOL_CALLS: Final = (32, 24, 256)
"""Concurrent calls of tools; those of one client; and those of one client that wait."""
LONG_S: Final = 24 * 3600.0
"""Maximum seconds of a command that can take long, such as a load: repeated, it goes on where it was stopped."""
_KEPT_S: Final = 3600.0
"""Seconds for which the outcome of a call that went on without its client is kept."""
_WAITING_S: Final = 60.0
"""Maximum seconds that a call of a tool waits for others."""


class ToolThreads:
    """Runs tools in worker threads, with a limit per kind so that slow calls never block fast ones.

    Each call reads one state of `kg`. `call_s` is the maximum number of seconds of a call, except of commands that can
    take long.
    """

    def __init__(self, kg: KnowledgeGraph, call_s: float = CALL_S) -> None:
        self._kg: Final = kg
        tools = partial(FairLimiter, seconds=call_s, patience_s=_WAITING_S)
        self.kinds: Final[Mapping[Kind, FairLimiter]] = {
            "own": tools(*TOOL_CALLS, kind="own"),
            "light": tools(8, 6, 256, kind="light"),  # kept apart so that they answer at once
            "raw": FairLimiter(48, 16, 32, seconds=call_s, kind="raw"),
            "long": FairLimiter(8, 6, 32, seconds=LONG_S, patience_s=LONG_S, kind="long"),
        }
        self._going: Final[dict[Hashable, asyncio.Task[Any]]] = {}
        """Calls that go on without their clients, and those whose outcome nobody has got."""

    async def run(self, work: Callable[[], T], *, kind: Kind = "own") -> T:
        """Run `work` in a thread and return its result. If the caller is cancelled or late, its queries are stopped.

        Raises the errors of `FairLimiter.run`.
        """

        def read() -> T:
            with self._kg.reading():
                return work()

        cancellation, request = Cancellation(), CANCELLATION.get()
        token = CANCELLATION.set(cancellation)
        on_cancel = never if request is None else request.on_cancel
        forget = on_cancel(cancellation.cancel)
        try:
            # A cancelled call is left at once. Its thread ends with its queries, which are stopped below.
            return await self.kinds[kind].run(CALLER.get(), read, abandon=True, on_late=cancellation.cancel)
        except anyio.get_cancelled_exc_class():
            cancellation.cancel()
            raise
        finally:
            CANCELLATION.reset(token)
            forget()

    async def run_on(self, key: Hashable, work: Callable[[], T], *, kind: Kind) -> tuple[T, float]:
        """Run `work` as `run` does, but let it go on if it takes longer than `ANSWER_AFTER_S`, also without the client.

        The next call with the same `key` waits for the same work. Returns the result, and the seconds since the work
        ended. Raises QueryBusyError while it goes on.
        """

        async def run() -> tuple[T, float]:
            return await self.run(work, kind=kind), time.monotonic()

        task: asyncio.Task[tuple[T, float]] | None = self._going.get(key)
        if task is None:
            context = contextvars.copy_context()
            context.run(CANCELLATION.set, None)
            task = asyncio.get_running_loop().create_task(run(), context=context)
            self._going[key] = task
            task.add_done_callback(partial(self._keep, key))
        await asyncio.wait({task}, timeout=ANSWER_AFTER_S)
        if not task.done():
            raise QueryBusyError(
                f"The call takes more than {ANSWER_AFTER_S:g} s and goes on. Make the same call again, with the same "
                "arguments, to wait for its result."
            )
        self._forget(key, task)
        result, ended = task.result()
        return result, time.monotonic() - ended

    def _keep(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        """Keep an outcome for some time."""
        if not task.cancelled():
            task.exception()  # so that an error that nobody gets is none of the event loop
        task.get_loop().call_later(_KEPT_S, self._forget, key, task)

    def _forget(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        if self._going.get(key) is task:
            del self._going[key]


class CancelOnDisconnect:
    """An application whose calls are cancelled when the client disconnects, which MCP and Starlette do not check."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the context variables of its call set."""
        cancellation = Cancellation()
        complete = asyncio.Event()

        async def reading() -> Message:
            message = await receive()
            if not message.get("more_body", False):
                complete.set()
            return message

        async def watch() -> None:
            await complete.wait()  # before that, two readers would each get parts of the body
            while (await receive())["type"] != "http.disconnect":
                pass
            cancellation.cancel()

        token = CANCELLATION.set(cancellation)
        caller = CALLER.set(name_client(SENDER.get(), get_peer(scope)))
        watching = asyncio.create_task(watch())
        try:
            await self._app(scope, reading, send)
        finally:
            watching.cancel()
            CALLER.reset(caller)
            CANCELLATION.reset(token)


class GraphTool(McpTool):
    """A tool of the graph as FastMCP serves it."""

    _tool: Tool = PrivateAttr()
    _kg: KnowledgeGraph = PrivateAttr()
    _threads: ToolThreads = PrivateAttr()
    _reword: Callable[[str], str] = PrivateAttr()

    @classmethod
    def build(cls, tool: Tool, kg: KnowledgeGraph, threads: ToolThreads, here: Collection[str], name: str) -> GraphTool:
        """Build the MCP tool with its schemas, listed as `name`.

        Its texts name the mounts of tools that are not `here`.
        """
        made = cls(
            name=name,
            title=tool.title,
            description=name_mounts(tool.description, here),
            parameters=input_schema(tool),
            output_schema=output_schema(tool),
            annotations=ToolAnnotations.model_validate(tool.get_hints(connected=bool(kg.connectors.enabled))),
        )
        made._tool, made._kg, made._threads = tool, kg, threads
        made._reword = partial(name_mounts, here=here)
        return made

    def to_mcp_tool(self, **overrides: Any) -> ListedTool:
        """Convert to the tool that clients see, without the metadata of FastMCP, which agents do not need.

        Tools that plans select have their tags and scopes as metadata.
        """
        meta = None
        if self._tool.mount is not None:
            meta = {"tags": sorted(self._tool.tags), "scopes": sorted(self._tool.fact_scopes)}
        return super().to_mcp_tool(**{"_meta": meta, **overrides})

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the function in a worker thread. Errors become results that the model can act on."""
        try:
            work = partial(call_tool, self._tool, self._kg, arguments, self._reword)
            with CallLog(self.name, arguments, "mcp", self._kg.audit) as call:
                require_callable(self._kg, SENDER.get(), self._tool)
                answer = await self._wait_for(work, arguments)
                call.answer = answer
        except QuadciteError as error:
            return failure(error.code, self._reword(str(error)), error.retryable)
        except Exception:  # noqa: BLE001 -- `fault` logs it
            return failure("internal", fault(f"tool {self.name}"), False)
        return ToolResult(
            content=[TextContent(type="text", text=to_json(answer.content))],
            structured_content=answer.content,
            meta=answer.meta | {"request_id": call.request_id},
        )

    async def _wait_for(self, work: Callable[[], Answer], arguments: Mapping[str, Any]) -> Answer:
        if self._tool.kind != "long":
            return await self._threads.run(work, kind=self._tool.kind)
        key = (self._tool.name, SENDER.get(), CALLER.get(), json.dumps(arguments, sort_keys=True, default=str))
        answer, age = await self._threads.run_on(key, work, kind="long")
        if age >= 1:
            note = f"This is the result of the same call, which ended {age:,.0f} s ago. Make it again to run it again."
            answer.content.setdefault("notes", []).append(note)
        return answer


def list_as(tool: Tool, settings: Settings) -> str:
    """Get the name by which clients see a tool."""
    return list_name(tool.name, settings.tool_names)


def call_tool(
    tool: Tool, kg: KnowledgeGraph, arguments: Mapping[str, Any], reword: Callable[[str], str] = str
) -> Answer:
    """Call a tool, if policies allow it with these arguments, on the data that the sender may read."""
    sender = SENDER.get()
    return tool.answer(get_view(kg, sender), arguments, reword, partial(decide, kg, sender))


def error_data(error: QuadciteError) -> dict[str, Any]:
    """Build the JSON object of an error: code, message, retryable."""
    return {"code": error.code, "message": str(error), "retryable": error.retryable}


def failure(code: str, message: str, retryable: bool) -> ToolResult:
    """Build an error result: text for the model, and the same as data in ``_meta``."""
    error = {"code": code, "message": message, "retryable": retryable}
    text = f"{code}: {message}" + (" (retryable)" if retryable else "")
    return ToolResult(content=[TextContent(type="text", text=text)], meta={"error": error}, is_error=True)


class ToolNames(Middleware):
    """Passes on a call by the name or alias of a tool, and answers any other with the names of the available tools.

    The list has the tools that policies allow the caller with some arguments.
    """

    def __init__(self, kg: KnowledgeGraph, listed: Mapping[str, Tool]) -> None:
        self._kg, self._tools = kg, listed
        self._names = list(listed)
        self._listed = {other: name for name, tool in listed.items() for other in (tool.alias, tool.name, name)}

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """List the tools that the caller may call."""
        found = find_callable(self._kg, SENDER.get())
        return [tool for tool in await call_next(context) if name_action(self._tools[tool.name]) in found]

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Read a resource, if policies allow it."""
        try:
            require_endpoint(self._kg, SENDER.get(), "resources.read")
        except ForbiddenError as error:
            raise ResourceError(f"{error.code}: {error}", log_level=logging.DEBUG) from error
        return await call_next(context)

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, Any]
    ) -> Any:
        """Pass the call on if the tool exists."""
        if (name := self._listed.get(context.message.name)) is None:
            named = context.message.name[:100]
            elsewhere = name_mounts(f"`{named}`", self._names)
            other = "" if elsewhere == f"`{named}`" else f" Another mount has it: {elsewhere}."
            said = f"Unknown tool {named!r}.{other} Available: {', '.join(self._names)}."
            audit.note(action=named, outcome="not_found")
            return failure("not_found", said, False)
        if name != context.message.name:
            context = context.copy(message=context.message.model_copy(update={"name": name}))
        return await call_next(context)


_RESTRICTED: Final = "You may read a part of the graphs. Ask in SPARQL: `sparql` runs a query over them."


class FreshInstructions(Middleware):
    """Builds the instructions when a client connects, since they name the contents of the graph.

    A sender who may read a part of the data gets others, which name none. Not when the server starts: a query worker
    would then hold a snapshot of that time until its next query.
    """

    def __init__(self, kg: KnowledgeGraph, server: FastMCP, build: Callable[[], str], threads: ToolThreads) -> None:
        self._kg, self._server, self._build, self._threads = kg, server, build, threads

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Pass the message on; before one that returns the instructions, build them."""
        audit.note(action=f"mcp {context.method}")
        if is_restricted(get_policies(self._kg), SENDER.get()):
            answer = await call_next(context)
            has_any = getattr(answer, "instructions", None) is not None
            return answer.model_copy(update={"instructions": _RESTRICTED}) if has_any else answer
        if context.method in ("initialize", "server/discover"):
            self._server.instructions = await self._threads.run(self._build)
        return await call_next(context)


def portable_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Write a JSON schema in the form that the converters of clients accept, without what only costs tokens.

    The titles that pydantic derives from names go, and empty defaults; so does ``additionalProperties: false``, on
    which the converter of Gemini fails: unknown arguments are refused all the same. Types are never lists. The
    description of alternatives is that of the first: next to ``anyOf`` the converter drops it.
    """

    def rewrite(node: Any, named: bool) -> Any:
        if isinstance(node, list):
            return [rewrite(item, False) for item in node]
        if not isinstance(node, dict):
            return node
        if not named:  # elsewhere the keys are names of arguments, and one may be called title or default
            node = {
                key: value
                for key, value in node.items()
                if not (key == "title" and isinstance(value, str))
                and not (key == "default" and value in (None, []))
                and not (key == "additionalProperties" and value is False)
            }
            if "anyOf" in node and "description" in node:
                first, *others = node["anyOf"]
                node["anyOf"] = [{"description": node.pop("description"), **first}, *others]
        return {key: rewrite(value, not named and key in ("properties", "$defs")) for key, value in node.items()}

    portable: dict[str, Any] = rewrite(schema, False)
    return portable


_UNLISTED: Final = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minimum", "exclusiveMinimum"})
"""Limits that a call is checked for, and that agents do not need to read: their errors name them."""


def input_schema(tool: Tool) -> dict[str, Any]:
    """Build the schema of a tool's arguments. Each call returns a copy, since mounts may change theirs.

    Every tool takes ``explain`` and ``detail`` as well, which the instructions name. The list has ``explain`` of no
    tool, and ``detail`` of those that read: the receipt of a write is short.
    """
    if tool.single:
        unlisted: tuple[str, ...] = ()
    else:
        unlisted = ("explain",) if tool.reads else ("explain", "detail")
    return deepcopy(_input_schema_of(tool.arguments, unlisted))


@cache
def _input_schema_of(model: type[BaseModel], unlisted: Collection[str]) -> dict[str, Any]:
    schema = portable_schema(dereference_refs(model.model_json_schema()))
    for name in unlisted:
        schema["properties"].pop(name, None)

    def listed(node: Any) -> Any:
        if isinstance(node, list):
            return [listed(item) for item in node]
        if not isinstance(node, dict):
            return node
        return {name: listed(value) for name, value in node.items() if name not in _UNLISTED}

    kept: dict[str, Any] = listed(schema)
    for name in ("max_tokens", "offset"):
        kept["properties"].get(name, {}).pop("maximum", None)  # an error names it
    return kept


def output_schema(tool: Tool) -> dict[str, Any]:
    """Build the schema of a tool's structured content: the fields of the whole with their types, and no more.

    The descriptions of the tools name the fields of the elements. Their schemas would cost more than all else that an
    agent reads of a tool, and a concise answer has fewer fields than a full one. A field without a value is absent.
    """
    return deepcopy(_output_schema_of(tool.result))


@cache
def _output_schema_of(model: type[Result]) -> dict[str, Any]:
    schema = portable_schema(model.model_json_schema())
    defined = schema.get("$defs", {})
    fields = {
        name: _type_of(field, defined, nullable=name in model.shown)
        for name, field in schema["properties"].items()
        if name not in _FRAME
    }
    return {"type": "object", "properties": fields}


def _type_of(field: dict[str, Any], defined: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    """Get the types of a field. One that is not `nullable` is absent where the model has null."""
    if "$ref" in field:
        field = defined[field["$ref"].rpartition("/")[2]]
    if "anyOf" in field:
        options = [_type_of(option, defined, nullable=True) for option in field["anyOf"]]
        options = [option for option in options if nullable or option != {"type": "null"}]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if "items" in field:
        return {"type": "array", "items": _type_of(field["items"], defined, nullable=True)}
    return {name: value for name, value in field.items() if name == "type"}


_FRAME: Final = frozenset({"notes", "names", "next_offset", "explain"})
"""Fields that every result has."""


def build_mcp(kg: KnowledgeGraph, path: str = "/mcp/all", threads: ToolThreads | None = None) -> FastMCP:
    """Build the server of the mount at `path`, a key of `MOUNTS`."""
    threads = threads or ToolThreads(kg)
    listed = {list_as(tool, kg.settings): tool for tool in mounted(MOUNTS[path].tags)}
    names = list(listed)
    server: FastMCP = FastMCP(
        "Quadcite",
        version=__version__,
        tools=[GraphTool.build(tool, kg, threads, names, name) for name, tool in listed.items()],
        middleware=[ToolNames(kg, listed)],
        mask_error_details=True,
        on_duplicate="error",
    )
    server.add_middleware(FreshInstructions(kg, server, partial(build_instructions, kg, path, names), threads))
    add_prompts(server, MOUNTS[path].tags, names)
    if path != "/mcp/research":
        _add_resources(server, kg, threads)
    return server


def _add_resources(server: FastMCP, kg: KnowledgeGraph, threads: ToolThreads) -> None:
    async def run(work: Callable[[], T], *, kind: Kind = "own") -> T:
        try:
            return await threads.run(work, kind=kind)
        except QuadciteError as error:
            # An answer to the client, which fastmcp would log with its traceback.
            raise ResourceError(f"{error.code}: {error}", log_level=logging.DEBUG) from error

    @server.resource("cpr://status", mime_type="application/json", title="State of the server")
    async def status() -> str:
        """Counts, generation of the store, pending embeddings, problems."""
        return json.dumps(content_of(await run(partial(health, kg), kind="light")), ensure_ascii=False)

    @server.resource("cpr://dataset/revision", mime_type="application/json", title="Source files with their hashes")
    async def revision() -> str:
        """The dataset and the files that the graph was read from, each with its SHA-256."""
        files = await run(lambda: sources(Reader(kg)))
        return json.dumps(
            {
                "datasets": [each.model_dump() for each in hub_datasets(kg.store)],
                "sources": [
                    {"location": file.title, "sha256": file.values[0], "revision": next(iter(file.values[1:]), None)}
                    for file in files
                ],
            },
            ensure_ascii=False,
        )

    @server.resource(
        "kg://entity/{iri}{?format}",
        mime_type="text/turtle",
        title="All quads about one IRI",
        security=ResourceSecurity(exempt_params={"iri"}),
    )
    async def entity(iri: str, format: str = "turtle") -> ResourceResult:
        """All quads about one IRI (percent-encoded), by graph: format=turtle (default) or json."""
        if format not in ("turtle", "json"):
            message = f"invalid_input: Unknown format {quoted(format)}. Available: turtle, json."
            raise ResourceError(message, log_level=logging.DEBUG)
        shown, turtle = await run(partial(load_entity, kg, iri))
        if format == "json":
            return ResourceResult([ResourceContent(shown.model_dump_json(), mime_type="application/json")])
        return ResourceResult([ResourceContent(turtle, mime_type="text/turtle")])
