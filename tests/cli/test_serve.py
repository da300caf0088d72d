"""`kg serve`, and commands on a data directory that a server has open."""

from __future__ import annotations

import json
import os
import ssl
import stat
import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from kg.store.lock import find_address
from kg.store.oxigraph import OxigraphStore
from tests.cli.running import CLIMATE, KG, MALFORMED, REPORT, answer, run, served


@pytest.mark.long
def test_a_directory_in_use_is_said_to_be_and_by_whom(copy: Path) -> None:
    with OxigraphStore(copy):
        result = run("status", "--data-dir", copy, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "store_locked"
    assert str(os.getpid()) in result.stderr


@pytest.mark.long
def test_every_command_answers_the_same_while_a_server_holds_the_data(copy: Path, tmp_path: Path) -> None:
    commands = [
        ["search", "geothermal", "--iso3", "DJI", "--limit", "3", "--json"],
        ["query", "SELECT DISTINCT ?type { ?thing a ?type } ORDER BY ?type", "--format", "csv"],
        ["query", "ASK { ?x a kg:Passage }"],
        ["query", "CONSTRUCT { ?x a kg:Passage } WHERE { ?x a kg:Passage }", "--format", "nt"],
        ["why", "cpr://doc/fictional-night-train-agreement_eu01", "--json"],
        ["why", "--triple", "cpr://doc/fictional-night-train-agreement_eu01", "a", "kg:PolicyDocument"],
        ["validate", "--format", "json"],
    ]
    answer("reindex", "--data-dir", copy)  # or the order of what search finds would change while vectors come
    here = [run(*command, "--data-dir", copy) for command in commands]
    status = answer("status", "--data-dir", copy)
    with served(copy):
        there = [run(*command, "--data-dir", copy) for command in commands]
        assert [result.exit_code for result in there] == [0] * len(commands), [result.stderr for result in there]
        assert [sorted(result.stdout.splitlines()) for result in there] == [
            sorted(result.stdout.splitlines()) for result in here
        ]
        moving = {
            "bytes_on_disk",
            "pending_vectors",
            "vectors_per_s",
            "vectors_seconds_left",
            "model",  # named by its precision once it is open
            "due",  # a server measures the schema and validates meanwhile
        }
        counted = answer("status", "--data-dir", copy)
        assert {name: counted[name] for name in counted if name not in moving} == {
            name: status[name] for name in status if name not in moving
        }
        assert answer("reindex", "--data-dir", copy)["pending_vectors"] == 0
        assert run("backup", "create", tmp_path / "backups", "--data-dir", copy).exit_code == 0
    assert run("restore", tmp_path / "backups", "--data-dir", tmp_path / "restored").exit_code == 0
    assert answer("status", "--data-dir", tmp_path / "restored")["quads"] == status["quads"]


@pytest.mark.exhaustive
def test_a_load_goes_through_the_server_from_any_folder_and_reports_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = tmp_path / "kg-data"
    monkeypatch.chdir(CLIMATE.parent)
    with served(data_dir):
        report = answer("load", "climate", "climate", "--data-dir", data_dir, "--wait")
        assert (set(report), report["loaded"], report["pending_vectors"]) == (REPORT, 13, 0)
        again = answer("load", "climate", "climate", "--data-dir", data_dir)
        assert (again["loaded"], again["skipped"], again["quads_added"]) == (0, 13, 0)
        bad = run("load", "climate", MALFORMED, "--data-dir", data_dir)
        assert bad.exit_code == 3
        assert "rejected" in bad.stderr
        gone = run("load", "climate", tmp_path / "absent.csv", "--data-dir", data_dir, "--json")
        assert (gone.exit_code, json.loads(gone.stdout)["error"]["code"]) == (1, "source_unreadable")
    assert answer("load", "climate", "climate", "--data-dir", data_dir)["skipped"] == 13


@pytest.mark.exhaustive
def test_errors_of_a_served_graph_are_those_of_an_open_one(copy: Path) -> None:
    commands = [
        ["query", "SELECT ?x { ?x a", "--format", "csv"],
        ["query", "SELECT ?x { SERVICE <http://127.0.0.1:1/> { ?x ?y ?z } }", "--format", "csv"],
        ["why", "cpr://doc/there-is-no-such-thing", "--json"],
    ]
    here = [run(*command, "--data-dir", copy) for command in commands]
    with served(copy):
        there = [run(*command, "--data-dir", copy) for command in commands]
    assert [(result.exit_code, result.stderr, result.stdout) for result in there] == [
        (result.exit_code, result.stderr, result.stdout) for result in here
    ]
    assert [result.exit_code for result in here] == [2, 2, 1]


@pytest.mark.long
def test_the_commands_take_the_token_that_only_its_user_can_read(copy: Path) -> None:
    with served(copy):
        assert stat.S_IMODE((copy / "token").stat().st_mode) == 0o600
        secret = (copy / "token").read_text()
        (copy / "token").unlink()
        result = run("status", "--data-dir", copy, "--json")
        assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "forbidden")
        (copy / "token").write_text("a guess")
        result = run("status", "--data-dir", copy, "--json")
        assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (1, "unauthorized")
        (copy / "token").write_text(secret)
    assert not (copy / "token").exists()


@pytest.mark.long
def test_two_stdio_servers_and_a_command_share_one_data_directory(copy: Path) -> None:
    command = [*KG, "serve", "--transport", "stdio", "--data-dir", str(copy)]

    async def ask() -> list[Any]:
        first = Client(StdioTransport(command[0], command[1:]))
        second = Client(StdioTransport(command[0], command[1:]))
        async with first:
            names = {tool.name for tool in await first.list_tools()}
            async with second:
                assert {tool.name for tool in await second.list_tools()} == names
                assert first.instructions is not None
                assert second.instructions == first.instructions  # the second forwards to the first
                arguments = {"query": "geothermal", "limit": 2}
                found = [await client.call_tool("search", arguments) for client in (first, second)]
                counted = await anyio.to_thread.run_sync(lambda: answer("status", "--data-dir", copy))
                assert counted["quads"] > 0
        return [(each.structured_content, each.meta) for each in found]

    first, second = anyio.run(ask)
    assert first[1].pop("request_id") != second[1].pop("request_id")
    assert first == second
    assert len(first[0]["results"]) == 2
    assert first[1]["snapshot"] > 0


def test_serve_refuses_an_address_that_others_reach(copy: Path) -> None:
    result = run("serve", "--host", "0.0.0.0", "--port", "0", "--data-dir", copy)  # noqa: S104
    assert result.exit_code == 2
    assert "--insecure" in result.stderr


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for kg.example, signed by itself, and its key."""
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    name = ["-subj", "/CN=kg.example", "-addext", "subjectAltName=DNS:kg.example"]
    subprocess.run(
        [*make, *name, "-out", str(files[0]), "-keyout", str(files[1])], check=True, capture_output=True, timeout=60
    )
    return files


@pytest.mark.parametrize("wrong", ["no key", "another key", "no certificate", "one alone"])
def test_serve_refuses_a_certificate_that_it_cannot_use(
    copy: Path, tmp_path: Path, certificate: tuple[Path, Path], wrong: str
) -> None:
    cert, key = certificate
    if wrong == "one alone":
        result = run("serve", "--tls-cert", cert, "--port", "0", "--data-dir", copy)
    else:
        if wrong == "another key":
            make = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key)]
            subprocess.run(make, check=True, capture_output=True, timeout=60)
        elif wrong == "no certificate":
            cert.write_text("text")
        else:
            key = tmp_path / "absent.pem"
        result = run("serve", "--tls-cert", cert, "--tls-key", key, "--port", "0", "--data-dir", copy)
    assert result.exit_code == 2


@pytest.mark.long
def test_a_server_for_others_has_tls_and_tokens_and_commands_reach_it(
    copy: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate
    monkeypatch.setenv("QUADCITE_PUBLIC_URL", "https://kg.example")
    made = answer("token", "new", "alice", "--scopes", "read,sparql", "--data-dir", copy)
    files = ("--tls-cert", str(cert), "--tls-key", str(key))
    with served(copy, "--host", "0.0.0.0", *files):  # noqa: S104
        address = str(find_address(copy))
        assert address.startswith("https://127.0.0.1:")
        assert answer("status", "--data-dir", copy)["quads"] > 0
        trusted = ssl.create_default_context(cafile=cert)
        with httpx.Client(verify=trusted, base_url=address, headers={"Host": "kg.example"}) as client:
            sni = {"extensions": {"sni_hostname": "kg.example"}}
            assert client.get("/tools", **sni).status_code == 401
            allowed = {"Authorization": f"Bearer {made['token']}"}
            assert client.get("/sparql?query=ASK{}", headers=allowed, **sni).status_code == 200
            cookies = client.get("/login", headers={"Accept": "text/html"}, **sni).headers["set-cookie"]
            assert cookies.startswith("__Host-")
            assert "Secure" in cookies
            run("token", "revoke", "alice", "--data-dir", copy)
            assert client.get("/sparql?query=ASK{}", headers=allowed, **sni).status_code == 401
        command = [*KG, "serve", "--transport", "stdio", "--data-dir", str(copy)]

        async def ask() -> Any:
            async with Client(StdioTransport(command[0], command[1:])) as stdio:
                return await stdio.call_tool("search", {"query": "geothermal", "limit": 2})

        assert anyio.run(ask).structured_content["results"]
