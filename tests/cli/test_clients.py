"""`kg clients`: the address, the mount and the token of this installation."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kg.clients.configurations import CLIENTS
from kg.clients.skills import SKILLS
from kg.settings import settings
from tests.cli.running import answer, run, served


def url_of(*arguments: object) -> str:
    return str(json.loads(answer("clients", "generic", *arguments)["configuration"])["mcpServers"]["quadcite"]["url"])


def test_the_list_has_every_client(tmp_path: Path) -> None:
    shown = run("clients").stdout
    assert [name for name in (*CLIENTS, "skills") if name not in shown.split()] == []


@pytest.mark.parametrize("name", CLIENTS)
def test_standard_output_is_the_configuration_alone(name: str, tmp_path: Path) -> None:
    result = run("clients", name, "--url", "https://kg.example.org", "--data-dir", tmp_path)
    assert result.exit_code == 0
    assert (
        result.stdout.rstrip("\n")
        == answer("clients", name, "--url", "https://kg.example.org", "--data-dir", tmp_path)["configuration"]
    )


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://127.0.0.1:8000", False), ("http://localhost", False), ("http://[::1]:8000", False),
        ("https://kg.example.org", True), ("http://192.0.2.7:8000", True), ("https://[2001:db8::1]", True),
    ],
)  # fmt: skip
def test_an_address_elsewhere_needs_a_token(url: str, token: bool, tmp_path: Path) -> None:
    shown = answer("clients", "cursor", "--url", url, "--data-dir", tmp_path)["configuration"]
    assert ("headers" in shown) == token
    for given in (True, False):
        option = "--token" if given else "--no-token"
        shown = answer("clients", "cursor", "--url", url, option, "--data-dir", tmp_path)["configuration"]
        assert ("headers" in shown) == given


@pytest.mark.parametrize(
    "url", ["kg.example.org", "ftp://x", "https://x/mcp", 'https://a"b', "https://u:p@x", "https://", ""]
)
def test_an_address_that_is_no_origin_is_refused(url: str, tmp_path: Path) -> None:
    result = run("clients", "cursor", "--url", url, "--data-dir", tmp_path)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_claude_desktop_starts_the_kg_of_this_environment_on_the_data_directory(tmp_path: Path) -> None:
    shown = json.loads(
        answer("clients", "claude-desktop", "--mount", "zoning", "--data-dir", tmp_path)["configuration"]
    )
    entry = shown["mcpServers"]["quadcite-zoning"]
    assert entry["command"] == str(Path(sys.executable).with_name("kg"))
    assert entry["args"] == ["serve", "--transport", "stdio", "--data-dir", str(tmp_path), "--mount", "zoning"]


@pytest.mark.parametrize("arguments", [["emacs"], ["cursor", "--mount", "x"], ["cursor", "--to", "x"], ["skills"]])
def test_invalid_arguments_are_refused(arguments: list[str], tmp_path: Path) -> None:
    assert run("clients", *arguments, "--data-dir", tmp_path).exit_code == 2


def test_skills_are_printed_one_at_a_time_and_written_all(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    files = answer("clients", "skills", "--to", folder, "--data-dir", tmp_path)["files"]
    assert sorted(files) == sorted(str(folder / f"quadcite-{mount}" / "SKILL.md") for mount in SKILLS)
    for mount in SKILLS:
        printed = run("clients", "skills", "--mount", mount, "--data-dir", tmp_path).stdout
        assert printed == (folder / f"quadcite-{mount}" / "SKILL.md").read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("clients", "skills", "--to", tmp_path / "file", "--data-dir", tmp_path)
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr


def test_a_server_with_tokens_needs_one_and_a_server_with_oauth_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(name: str) -> str:
        return str(answer("clients", name, "--data-dir", tmp_path)["configuration"])

    assert "headers" not in shown("cursor")
    assert run("token", "new", "cursor", "--data-dir", tmp_path).exit_code == 0
    assert "headers" in shown("cursor")
    monkeypatch.setenv("FASTMCP_SERVER_AUTH", "AZURE")
    assert "headers" not in shown("cursor")
    assert "Authentication: OAuth" in shown("chatgpt")


@pytest.mark.parametrize("name", ["claude-desktop-remote", "claude-code", "cursor", "vscode", "langchain", "generic"])
def test_the_token_is_in_the_header_of_the_settings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.cache_clear()
    monkeypatch.setenv("QUADCITE_TOKEN_HEADER", "X-Quadcite-Token")
    monkeypatch.setenv("QUADCITE_PUBLIC_URL", "https://kg.example.org")
    shown = answer("clients", name, "--data-dir", tmp_path)["configuration"]
    monkeypatch.undo()
    settings.cache_clear()
    assert "https://kg.example.org/mcp" in shown
    assert "x-quadcite-token" in shown
    assert "Bearer" not in shown


@pytest.mark.long
def test_the_address_is_that_of_the_running_server(tmp_path: Path) -> None:
    from kg.store.lock import find_address

    assert url_of("--data-dir", tmp_path) == "http://127.0.0.1:8000/mcp"
    with served(tmp_path):
        assert url_of("--data-dir", tmp_path) == f"{find_address(tmp_path)}/mcp"
        assert url_of("--data-dir", tmp_path, "--url", "https://kg.example.org/") == "https://kg.example.org/mcp"
