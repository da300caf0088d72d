"""Configurations of clients, as their formats demand them. `tests/clients/test_real_clients.py` runs the clients."""

from __future__ import annotations

import ast
import json
import shlex
from typing import Any

import pytest
from fastmcp.mcp_config import MCPConfig, RemoteMCPServer, StdioMCPServer

from kg.clients.configurations import CLIENTS, Installation, find_client
from kg.errors import InvalidInputError
from kg.tools.mounts import NAMES

URL = "https://kg.example.org"


def installation(mount: str = "core", *, token: bool = True) -> Installation:
    return Installation(URL, mount, token, ("/venv/bin/kg", "serve", "--transport", "stdio"))


def read(name: str, here: Installation) -> Any:
    return json.loads(CLIENTS[name].build(here))


@pytest.mark.parametrize("mount", NAMES)
@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if client.form == "json"])
def test_each_json_names_the_server_once_by_its_mount(name: str, mount: str) -> None:
    document = read(name, installation(mount))
    (servers,) = (document[key] for key in ("mcpServers", "servers") if key in document)
    ((server, entry),) = servers.items()
    assert server == ("quadcite" if mount == "core" else f"quadcite-{mount}")
    if name != "claude-desktop":
        assert URL + NAMES[mount] in json.dumps(entry)


@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "claude-desktop"])
def test_a_token_is_named_only_if_it_is_needed(name: str) -> None:
    with_token, without = (CLIENTS[name].build(installation(token=token)) for token in (True, False))
    assert with_token != without
    assert "token" not in without.lower()
    assert "authorization" not in without.lower()


def test_the_forms_of_claude_desktop_and_the_generic_one_are_those_of_other_readers() -> None:
    local, remote, generic = (
        MCPConfig.from_dict(read(name, installation())).mcpServers["quadcite"]
        for name in ("claude-desktop", "claude-desktop-remote", "generic")
    )
    assert isinstance(local, StdioMCPServer)
    assert [local.command, *local.args] == ["/venv/bin/kg", "serve", "--transport", "stdio"]
    assert isinstance(remote, StdioMCPServer)
    assert remote.args[:3] == ["-y", "mcp-remote", f"{URL}/mcp"]
    assert isinstance(generic, RemoteMCPServer)
    assert generic.url == f"{URL}/mcp"


def test_the_token_of_each_editor_is_a_variable_of_its_own_syntax() -> None:
    cursor = read("cursor", installation())["mcpServers"]["quadcite"]
    assert cursor["headers"]["Authorization"] == "Bearer ${env:QUADCITE_TOKEN}"
    vscode = read("vscode", installation())
    (asked,) = vscode["inputs"]
    assert vscode["servers"]["quadcite"]["headers"]["Authorization"] == f"Bearer ${{input:{asked['id']}}}"
    assert asked["password"] is True


def test_the_command_of_claude_code_is_words_of_a_shell() -> None:
    words = shlex.split(CLIENTS["claude-code"].build(installation("zoning")))
    assert words[:5] == ["claude", "mcp", "add", "--transport", "http"]
    assert words[5:] == ["quadcite-zoning", f"{URL}/mcp/zoning", "--header", "Authorization: Bearer $QUADCITE_TOKEN"]


@pytest.mark.parametrize("token", [True, False])
def test_the_script_of_langchain_is_python(token: bool) -> None:
    tree = ast.parse(CLIENTS["langchain"].build(installation(token=token)))
    (servers,) = (node.value for node in tree.body if isinstance(node, ast.Assign))
    assert isinstance(servers, ast.Dict)
    assert ("import os" in ast.unparse(tree)) == token


def test_chatgpt_gets_the_tools_of_deep_research_unless_a_mount_is_chosen() -> None:
    assert f"{URL}/mcp/research" in CLIENTS["chatgpt"].build(installation())
    assert f"{URL}/mcp/climate" in CLIENTS["chatgpt"].build(installation("climate"))


def test_an_unknown_client_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(InvalidInputError, match=r"cursor, vscode.*skills"):
        find_client("emacs")
