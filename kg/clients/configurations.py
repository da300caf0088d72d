"""Configurations of MCP clients for this installation, as each client reads them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from kg.errors import InvalidInputError
from kg.text import quoted
from kg.tools.mounts import CORE, NAMES, RESEARCH

TOKEN: Final = "QUADCITE_TOKEN"  # noqa: S105 -- the name of a variable
"""The environment variable from which clients take the token of the server."""


@dataclass(frozen=True)
class Installation:
    """A server, and the mount of it that a client uses."""

    url: str
    """Scheme, host and port, without a slash at the end."""
    mount: str
    """A name in `kg.tools.mounts.NAMES`."""
    token: bool
    """Whether clients need a token."""
    command: tuple[str, ...]
    """The command that serves the mount on standard input and output, on the machine of the data directory."""

    @property
    def mcp_url(self) -> str:
        """The URL of the mount."""
        return self.url + NAMES[self.mount]

    @property
    def server(self) -> str:
        """The name of the server in the configuration of a client."""
        return "quadcite" if NAMES[self.mount] == "/mcp" else f"quadcite-{self.mount}"


class Client(NamedTuple):
    """A client, the place of its configuration, and the function that builds it."""

    name: str
    title: str
    place: str
    """Where the configuration goes, as a sentence."""
    form: Literal["json", "sh", "python", "text"]
    build: Callable[[Installation], str]


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def _headers(here: Installation, token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}} if here.token else {}


def _claude_desktop(here: Installation) -> str:
    return _json({"mcpServers": {here.server: {"command": here.command[0], "args": [*here.command[1:]]}}})


def _mcp_remote(here: Installation) -> str:
    """Build the configuration of mcp-remote. Its header is a variable as a whole: some clients split at the space."""
    entry: dict[str, Any] = {"command": "npx", "args": ["-y", "mcp-remote", here.mcp_url]}
    if here.token:
        entry["args"] += ["--header", "Authorization:${AUTHORIZATION}"]
        entry["env"] = {"AUTHORIZATION": "Bearer TOKEN"}
    return _json({"mcpServers": {here.server: entry}})


def _claude_code(here: Installation) -> str:
    words = ["claude", "mcp", "add", "--transport", "http", here.server, here.mcp_url]
    return shlex.join(words) + (f' --header "Authorization: Bearer ${TOKEN}"' if here.token else "")


def _cursor(here: Installation) -> str:
    return _json({"mcpServers": {here.server: {"url": here.mcp_url, **_headers(here, f"${{env:{TOKEN}}}")}}})


def _vscode(here: Installation) -> str:
    entry = {"type": "http", "url": here.mcp_url, **_headers(here, "${input:quadcite-token}")}
    asked = {"type": "promptString", "id": "quadcite-token", "description": "Token of Quadcite", "password": True}
    return _json({**({"inputs": [asked]} if here.token else {}), "servers": {here.server: entry}})


def _chatgpt(here: Installation) -> str:
    return "\n".join(
        (
            "Name: Quadcite",
            # Deep research takes servers with the two tools of its contract only.
            f"MCP Server URL: {here.url + NAMES[RESEARCH] if here.mount == CORE else here.mcp_url}",
            f"Authentication: {'OAuth' if here.token else 'No authentication'}",
        )
    )


def _langchain(here: Installation) -> str:
    headers = (
        f', "headers": {{"Authorization": "Bearer " + os.environ["{TOKEN}"]}}' if here.token else ""
    )  # from the environment, so that the script can be shared
    return f'''\
import asyncio
{"import os" + chr(10) if here.token else ""}
from langchain_mcp_adapters.client import MultiServerMCPClient

SERVERS = {{
    "{here.server}": {{"transport": "streamable_http", "url": "{here.mcp_url}"{headers}}},
}}


async def main() -> None:
    tools = await MultiServerMCPClient(SERVERS).get_tools()
    print([tool.name for tool in tools])  # pass them to an agent, as in create_agent(model, tools)


asyncio.run(main())'''


def _generic(here: Installation) -> str:
    entry = {"type": "streamable-http", "url": here.mcp_url, **_headers(here, "TOKEN")}
    return _json({"mcpServers": {here.server: entry}})


CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client(
            "claude-desktop",
            "Claude Desktop, on the machine of the data directory",
            "Put this into claude_desktop_config.json (Settings, Developer, Edit Config).",
            "json",
            _claude_desktop,
        ),
        Client(
            "claude-desktop-remote",
            "Claude Desktop, by mcp-remote",
            "Put this into claude_desktop_config.json (Settings, Developer, Edit Config). It needs Node.",
            "json",
            _mcp_remote,
        ),
        Client("claude-code", "Claude Code", "Run this in the folder of a project.", "sh", _claude_code),
        Client("cursor", "Cursor", "Put this into .cursor/mcp.json.", "json", _cursor),
        Client("vscode", "Visual Studio Code", "Put this into .vscode/mcp.json.", "json", _vscode),
        Client(
            "chatgpt",
            "ChatGPT connectors",
            "Enter this under Settings, Connectors, Create. The address must be reachable from the Internet by HTTPS.",
            "text",
            _chatgpt,
        ),
        Client("langchain", "LangChain", "Install langchain-mcp-adapters, and run this.", "python", _langchain),
        Client("generic", "Other clients", "Use the form that most clients read.", "json", _generic),
    )
}
"""The clients by name."""


def find_client(name: str) -> Client:
    """Find a client by its name. Raises InvalidInputError for an unknown one."""
    if name not in CLIENTS:
        raise InvalidInputError(f"Unknown client {quoted(name)}. Available: {', '.join(CLIENTS)}, skills.")
    return CLIENTS[name]
