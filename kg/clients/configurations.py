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
    oauth: bool = False
    """Whether clients sign in by OAuth, without a token in their configuration."""
    own_header: str = ""
    """The header of the token, if `Authorization` is that of a proxy."""

    @property
    def mcp_url(self) -> str:
        """The URL of the mount."""
        return self.url + NAMES[self.mount]

    def get_header(self, token: str) -> tuple[str, str]:
        """Get the name and the value of the header by which a client sends `token`."""
        return (self.own_header, token) if self.own_header else ("Authorization", f"Bearer {token}")

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
    return {"headers": dict([here.get_header(token)])} if here.token else {}


def _claude_desktop(here: Installation) -> str:
    return _json({"mcpServers": {here.server: {"command": here.command[0], "args": [*here.command[1:]]}}})


def _mcp_remote(here: Installation) -> str:
    """Build the configuration of mcp-remote. Its header is a variable as a whole: some clients split at the space."""
    entry: dict[str, Any] = {"command": "npx", "args": ["-y", "mcp-remote", here.mcp_url]}
    if here.token:
        header, value = here.get_header("TOKEN")
        entry["args"] += ["--header", header + ":${AUTHORIZATION}"]
        entry["env"] = {"AUTHORIZATION": value}
    return _json({"mcpServers": {here.server: entry}})


def _claude_code(here: Installation) -> str:
    words = ["claude", "mcp", "add", "--transport", "http", here.server, here.mcp_url]
    header = ": ".join(here.get_header(f"${TOKEN}"))
    return shlex.join(words) + (f' --header "{header}"' if here.token else "")


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
            f"Authentication: {'OAuth' if here.token or here.oauth else 'No authentication'}",
        )
    )


def _langchain(here: Installation) -> str:
    # The token is in the environment, so that the script can be shared.
    header, value = here.get_header(f"{{os.environ['{TOKEN}']}}")
    headers = f', "headers": {{"{header}": f"{value}"}}' if here.token else ""
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
            "Enter this under Settings, Connectors, Create. The address must be reachable by HTTPS, and the "
            "accounts be those of OAuth: ChatGPT sends no token of its own.",
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
