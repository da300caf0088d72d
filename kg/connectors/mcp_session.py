"""One MCP session with a remote server: its tools, and one call, within a time and a size.

FastMCP's client follows redirects within the origin of the endpoint, has no limit of size, and reports most failures
of the transport as a closed stream. `_GuardedTransport` refuses redirects to another origin, counts what arrives, and
keeps the reason of a failure.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import httpx2
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from mcp import MCPError
from mcp_types import PARSE_ERROR, CallToolResult, TextContent
from mcp_types import Tool as ListedTool

from kg import __version__
from kg.connectors.names import RemoteSchema
from kg.remote.http import load_certificates, parse_retry_after

T = TypeVar("T")

MOST_TOOLS: Final = 1_000
"""Tools of a server that are read."""
_CLOSING_S: Final = 2.0
_MOST_CHARACTERS: Final = 4_000
_START_BYTES: Final = 600
"""Bytes of an unusable answer that are quoted."""


class SessionError(Exception):
    """The server gave no usable answer. The message quotes it, and can be long and contain control characters.

    `retryable` is true if another attempt can succeed, after `wait_s` seconds.
    """

    def __init__(self, problem: str, *, retryable: bool = True, wait_s: float = 0.0) -> None:
        super().__init__(problem[:_MOST_CHARACTERS])
        self.retryable: Final = retryable
        self.wait_s: Final = wait_s


class RefusedCallError(SessionError):
    """The server answered that the call failed."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, retryable=False)


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to one origin only, and reads at most `max_bytes` of all responses together."""

    def __init__(self, url: str, max_bytes: int) -> None:
        self._inside = httpx2.AsyncHTTPTransport(verify=load_certificates(), trust_env=False, http2=False)
        self._origin = _origin_of(httpx2.URL(url))
        self._left = max_bytes
        self._max_bytes = max_bytes
        self.problem: SessionError | None = None
        """The first failure."""
        self.start = bytearray()
        """The start of the last response."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin_of(request.url) != self._origin:
            raise self._fail(f"refused to send a request to {_shown(request.url)}, another origin", retryable=False)
        # A few bytes of another encoding can decompress to more than the memory before they are counted.
        request.headers["Accept-Encoding"] = "identity"
        try:
            response = await self._inside.handle_async_request(request)
        except httpx2.TransportError as error:
            raise self._fail(f"{type(error).__name__}: {error}") from error
        try:
            await self._check(request, response)
        except httpx2.TransportError:
            await response.aclose()
            raise
        self.start = bytearray()
        response.stream = _Counted(cast(httpx2.AsyncByteStream, response.stream), self._take)
        return response

    async def _check(self, request: httpx2.Request, response: httpx2.Response) -> None:
        status = response.status_code
        if 300 <= status < 400:
            target = request.url.join(response.headers.get("location", ""))
            if _origin_of(target) != self._origin:
                raise self._fail(f"redirects to {_shown(target)} (HTTP {status}), which is refused", retryable=False)
        elif status == 429 or status >= 500:
            wait_s = parse_retry_after(response.headers.get("retry-after"), 0.0)
            raise self._fail(f"HTTP {status}: {await _read_start(response)}", wait_s=wait_s)
        elif status in (401, 403):
            raise self._fail(f"HTTP {status}: the server does not accept the credentials", retryable=False)
        elif 200 <= status < 300 and status != 202:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in ("application/json", "text/event-stream", "") and request.method == "POST":
                start = await _read_start(response)
                raise self._fail(f"answered with {kind[:80]}, which is not MCP: {start}", retryable=False)
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise self._fail("answered in a compressed encoding that was not accepted", retryable=False)

    def _take(self, piece: bytes) -> None:
        self.start += piece[: _START_BYTES - len(self.start)]
        self._left -= len(piece)
        if self._left < 0:
            raise self._fail(f"sent more than {self._max_bytes / 1024**2:g} MiB", retryable=False)

    def _fail(self, problem: str, *, retryable: bool = True, wait_s: float = 0.0) -> httpx2.TransportError:
        self.problem = self.problem or SessionError(problem, retryable=retryable, wait_s=wait_s)
        return httpx2.ReadError(str(self.problem))

    async def aclose(self) -> None:
        await self._inside.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inside: httpx2.AsyncByteStream, take: Callable[[bytes], None]) -> None:
        self._inside, self._take = inside, take

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inside:
            self._take(piece)
            yield piece

    async def aclose(self) -> None:
        await self._inside.aclose()


@dataclass(frozen=True, slots=True)
class Session:
    """How to reach one server."""

    url: str
    token: str | None = None
    max_bytes: int = 8 << 20

    def list_tools(self, seconds: float) -> Sequence[RemoteSchema]:
        """List the tools of the server. Raises SessionError."""

        async def work(client: Client[Any]) -> Sequence[RemoteSchema]:
            listed = await client.list_tools()
            return [_to_schema(tool) for tool in listed[:MOST_TOOLS]]

        return self._run(work, seconds)

    def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> str:
        """Call a tool and return its text. Raises SessionError, and RefusedCallError if the tool reports an error."""

        async def work(client: Client[Any]) -> str:
            result = await client.call_tool_mcp(tool, dict(arguments), timeout=seconds)
            return _to_text(tool, result)

        return self._run(work, seconds)

    def _run(self, work: Callable[[Client[Any]], Coroutine[Any, Any, T]], seconds: float) -> T:
        guard = _GuardedTransport(self.url, self.max_bytes)

        async def session() -> T:
            def build_client(
                headers: dict[str, str] | None = None,
                timeout: httpx2.Timeout | None = None,
                auth: httpx2.Auth | None = None,
                **unused: Any,
            ) -> httpx2.AsyncClient:
                # trust_env=False: no proxies and no credentials from the environment.
                return httpx2.AsyncClient(
                    headers=headers,
                    auth=auth,
                    timeout=httpx2.Timeout(seconds),
                    transport=guard,
                    follow_redirects=False,
                    trust_env=False,
                )

            transport = StreamableHttpTransport(self.url, auth=self.token, httpx_client_factory=build_client)
            client = Client(transport, name=f"quadcite-{__version__}", timeout=seconds, init_timeout=seconds)
            async with asyncio.timeout(seconds), client:
                return await work(client)

        try:
            return _run_in_thread(session, seconds)
        except SessionError:
            raise
        except TimeoutError:
            raise guard.problem or SessionError(f"no complete answer in {seconds:.1f} s") from None
        except MCPError as error:
            problem = f"MCP error: {error}"
            if error.code == PARSE_ERROR:
                start = guard.start.decode(errors="replace")
                problem = f"answered with JSON that is not a message of MCP: {start}"
            raise guard.problem or SessionError(problem, retryable=False) from error
        except Exception as error:  # the client raises many kinds, also groups of them
            raise guard.problem or SessionError(f"{type(error).__name__}: {error}") from error


def _run_in_thread(work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
    """Run `work` in a loop of its own. A session that does not close after its deadline is left to its thread."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 -- raised in the thread of the caller
            failure.append(error)

    context = contextvars.copy_context()  # with the span of the call
    thread = threading.Thread(target=context.run, args=(run,), name="connector", daemon=True)
    thread.start()
    thread.join(seconds + _CLOSING_S)
    if outcome:
        return outcome[0]
    raise failure[0] if failure else TimeoutError


def _to_schema(tool: ListedTool) -> RemoteSchema:
    schema: Any = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    return RemoteSchema(
        tool.name,
        [*properties],
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else [],
        [name for name, each in properties.items() if isinstance(each, dict) and _takes_list(each)],
    )


def _takes_list(schema: Mapping[str, Any]) -> bool:
    options = schema.get("anyOf")
    kinds = (
        [schema, *(option for option in options if isinstance(option, dict))] if isinstance(options, list) else [schema]
    )
    return any(kind.get("type") == "array" for kind in kinds)


def _to_text(tool: str, result: CallToolResult) -> str:
    texts = [part.text for part in result.content if isinstance(part, TextContent)]
    text = "\n".join(texts)
    if result.is_error:
        raise RefusedCallError(f"{tool} failed: {text}")
    if not texts:
        raise SessionError(f"{tool} answered without text", retryable=False)
    return text


async def _read_start(response: httpx2.Response) -> str:
    """Read the start of an unusable answer, to quote it."""
    start = bytearray()
    try:
        async for piece in cast(httpx2.AsyncByteStream, response.stream):
            start += piece
            if len(start) >= _START_BYTES:
                break
    except httpx2.TransportError:
        pass  # what arrived is quoted
    return start[:_START_BYTES].decode(errors="replace")


def _origin_of(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _shown(url: httpx2.URL) -> str:
    """The origin of a URL, without what may be a secret."""
    return f"{url.scheme}://{url.host}" + (f":{url.port}" if url.port else "")
