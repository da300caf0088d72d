"""The configurations, run by the clients that they are for. They come from their package indexes into a folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kg.clients.configurations import TOKEN
from kg.clients.prompts import list_prompts
from kg.server.auth import read_token
from kg.store.lock import find_address
from kg.tools.mounts import CORE, MOUNTS, NAMES, ZONING
from kg.tools.registry import mounted
from tests.cli.running import answer, served

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

PACKAGES = ("mcp-remote@0.15.1", "@modelcontextprotocol/inspector@2.12.0", "@anthropic-ai/claude-code@2.1.328")
LANGCHAIN = "langchain-mcp-adapters==0.3.2"
NPM = shutil.which("npm")


class Server(NamedTuple):
    """A server of the tests."""

    data_dir: Path
    token: str

    def get(self, name: str, mount: str, *, token: bool = True) -> str:
        """The configuration of a client for this server."""
        option = "--token" if token else "--no-token"
        text = answer("clients", name, "--mount", mount, option, "--data-dir", self.data_dir)["configuration"]
        assert isinstance(text, str)
        return text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("clients") / "kg-data"
    with served(data_dir):
        token = read_token(data_dir)
        assert token is not None
        yield Server(data_dir, token)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the clients that are on npm."""
    if NPM is None:
        pytest.skip("needs npm: apt-get install npm")
    folder = tmp_path_factory.mktemp("node")
    subprocess.run(
        [NPM, "install", "--no-audit", "--no-fund", "--silent", "--prefix", folder, *PACKAGES], check=True, timeout=500
    )
    return folder


def environment(home: Path, node: Path, **more: str) -> dict[str, str]:
    """The environment of a person with the clients on the path, and nothing configured."""
    path = os.pathsep.join((str(node / "node_modules" / ".bin"), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {"PATH": path, "HOME": str(home), **more}


def inspect(configuration: Any, method: str, node: Path, home: Path) -> Any:
    """Ask the one server of `configuration` by the MCP Inspector, which reads the form of most clients."""
    file = home / "mcp.json"
    file.write_text(json.dumps(configuration))
    (name,) = configuration["mcpServers"]
    inspector = node / "node_modules" / ".bin" / "mcp-inspector"
    done = subprocess.run(
        [inspector, "--cli", "--config", file, "--server", name, "--method", method],
        cwd=node, env=environment(home, node), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


def as_the_editor_reads(name: str, text: str, token: str) -> Any:
    """The form of most clients, with the variables of an editor replaced as it does."""
    for variable in (f"${{env:{TOKEN}}}", "${input:quadcite-token}"):
        text = text.replace(variable, token)
    document = json.loads(text if name in ("cursor", "vscode") else text.replace("Bearer TOKEN", f"Bearer {token}"))
    servers = document.get("mcpServers") or document["servers"]
    for entry in servers.values():
        if "url" in entry:
            entry["type"] = "streamable-http"
    return {"mcpServers": servers}


@pytest.mark.parametrize("mount", [CORE, ZONING])
@pytest.mark.parametrize("name", ["claude-desktop", "claude-desktop-remote", "cursor", "vscode", "generic"])
def test_the_inspector_lists_tools_and_prompts_by_each_json(
    name: str, mount: str, server: Server, node: Path, tmp_path: Path
) -> None:
    configuration = as_the_editor_reads(name, server.get(name, mount), server.token)
    tags = MOUNTS[NAMES[mount]].tags
    tools = inspect(configuration, "tools/list", node, tmp_path)["tools"]
    assert [tool["name"] for tool in tools] == [tool.alias for tool in mounted(tags)]
    prompts = inspect(configuration, "prompts/list", node, tmp_path)["prompts"]
    assert [prompt["name"] for prompt in prompts] == [prompt.name for prompt in list_prompts(tags)]


@pytest.mark.parametrize("name", ["claude-desktop-remote", "cursor", "generic"])
def test_a_wrong_token_is_sent_and_refused(name: str, server: Server, node: Path, tmp_path: Path) -> None:
    configuration = as_the_editor_reads(name, server.get(name, CORE), "wrong")
    with pytest.raises((AssertionError, subprocess.TimeoutExpired)):
        inspect(configuration, "tools/list", node, tmp_path)


def test_claude_code_adds_the_server_and_reaches_it(server: Server, node: Path, tmp_path: Path) -> None:
    given = environment(tmp_path, node, **{TOKEN: server.token, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"})
    command = server.get("claude-code", ZONING)
    subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, env=given, check=True, timeout=100, capture_output=True)
    done = subprocess.run(
        [node / "node_modules" / ".bin" / "claude", "mcp", "list"],
        cwd=tmp_path,
        env=given,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("quadcite-zoning:"))
    assert f"{find_address(server.data_dir)}/mcp/zoning" in line
    assert line.endswith("Connected")


def test_the_script_of_langchain_gets_the_tools(server: Server, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", LANGCHAIN], check=True, timeout=500)
    done = subprocess.run(
        [python, "-c", server.get("langchain", CORE)],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), TOKEN: server.token},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str([tool.alias for tool in mounted(MOUNTS["/mcp"].tags)])
