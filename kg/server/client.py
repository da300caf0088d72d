"""Asking a running server over MCP, from code that is not asynchronous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.exceptions import FastMCPError, McpError

from kg.errors import UpstreamError


def call_tools(url: str, calls: Sequence[tuple[str, Mapping[str, object]]]) -> list[dict[str, Any]]:
    """Call tools of the MCP server at `url`, one after the other in one session, and return their structured results.

    Raises UpstreamError when the server cannot be reached, a tool reports an error or an answer breaks its schema.
    """

    async def ask() -> list[dict[str, Any]]:
        results = []
        async with Client(url) as client:
            for name, arguments in calls:
                answer = await client.call_tool(name, dict(arguments), raise_on_error=False)
                if answer.is_error or answer.structured_content is None:
                    said = " ".join(getattr(block, "text", "") for block in answer.content)
                    raise UpstreamError(f"{url}: the tool {name!r} answered with an error: {said or 'no content'}")
                results.append(dict(answer.structured_content))
        return results

    try:
        return anyio.run(ask)
    except (FastMCPError, McpError, RuntimeError, OSError) as error:  # RuntimeError: the client's own schema check
        raise UpstreamError(f"cannot ask {url}: {error}") from error
