"""A server on one host and a client on another: what binds an address needs accounts, and each request a token."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from fastmcp import Client
from fastmcp.exceptions import MCPError

from kg.integrity.backups import list_backups
from kg.search.registry import MINILM
from tests.deployment.two_hosts import CLIENT, SERVER, Hosts, stop, two_hosts, write_certificates
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

KG = Path(sys.executable).with_name("kg")
HEALTH = "/health/live"


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "QUADCITE_DATA_DIR": str(folder / "kg-data"),
        "QUADCITE_MODEL": MINILM,
        "QUADCITE_MODELS_DIR": str(folder / "no-models"),
        "QUADCITE_ACCESS_LOG": "true",
        **more,
    }


class Served(NamedTuple):
    """A server that binds all addresses of its host."""

    hosts: Hosts
    folder: Path
    token: str

    def get(self, path: str, token: str | None = None, **headers: str) -> httpx.Response:
        """Send a request from the client."""
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return self.hosts.on_client(
            lambda: httpx.get(f"http://{SERVER}:8000{path}", headers={**given, **headers}, timeout=60, trust_env=False)
        )


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with two_hosts() as made:
        yield made


@pytest.fixture(scope="module")
def served(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    given = environment(folder, QUADCITE_HOST="0.0.0.0")  # noqa: S104 -- all addresses of the host of the tests
    made = subprocess.run([KG, "token", "new", "tests", "--json"], env=given, capture_output=True, check=True)
    server = hosts.start([KG, "serve"], folder / "log", given)
    try:
        until(lambda: "Serving MCP" in (folder / "log").read_text() or server.poll() is not None)
        assert server.poll() is None, (folder / "log").read_text()
        yield Served(hosts, folder, json.loads(made.stdout)["token"])
    finally:
        stop(server)


def test_without_accounts_the_server_refuses_to_start_and_states_how(hosts: Hosts, tmp_path: Path) -> None:
    given = environment(tmp_path, QUADCITE_HOST="0.0.0.0")  # noqa: S104
    process = hosts.start([KG, "serve"], tmp_path / "log", given)
    assert process.wait(60) == 2
    assert "kg token new" in (tmp_path / "log").read_text()


def test_the_other_host_needs_a_token(served: Served) -> None:
    for path in ("/sparql?query=ASK{}", "/tools", "/graphs", "/metrics", "/docs"):
        assert served.get(path).status_code == 401
        assert served.get(path, "qc_wrong").status_code == 401
        assert served.get(path, served.token).status_code == 200


def test_the_probe_of_the_process_needs_none(served: Served) -> None:
    assert served.get(HEALTH).status_code == 200


def test_the_other_host_calls_tools_over_mcp_with_a_token_and_not_without(served: Served) -> None:
    async def work(token: str | None) -> Any:
        async with Client(f"http://{SERVER}:8000/mcp", auth=token) as client:
            return await client.call_tool("sparql", {"query": "SELECT (1 + 1 AS ?n) {}"})

    answer = served.hosts.on_client(lambda: anyio.run(work, served.token))
    assert "2" in json.dumps(answer.structured_content["rows"])
    with pytest.raises(MCPError):
        served.hosts.on_client(lambda: anyio.run(work, None))
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    refused = served.hosts.on_client(lambda: httpx.post(f"http://{SERVER}:8000/mcp", json=ping, trust_env=False))
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")


def test_a_token_that_only_reads_does_not_write(served: Served) -> None:
    graph = f"http://{SERVER}:8000/graphs?graph=https://w3id.org/quadcite/graph/user/x"
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "text/turtle"}
    refused = served.hosts.on_client(lambda: httpx.put(graph, content=b"", headers=headers, trust_env=False))
    assert refused.status_code == 403


def test_a_revoked_token_is_refused_at_once(served: Served) -> None:
    given = environment(served.folder)
    made = subprocess.run([KG, "token", "new", "leaked", "--json"], env=given, capture_output=True, check=True)
    leaked = json.loads(made.stdout)["token"]
    assert served.get("/tools", leaked).status_code == 200
    subprocess.run([KG, "token", "revoke", "leaked"], env=given, capture_output=True, check=True)
    assert served.get("/tools", leaked).status_code == 401


def test_forwarded_headers_of_a_peer_that_is_no_proxy_do_not_count(served: Served) -> None:
    claims = {"X-Forwarded-For": "192.0.2.66", "X-Forwarded-Proto": "https"}
    assert served.get("/docs?peer=1", served.token, **claims).status_code == 200
    (line,) = (line for line in (served.folder / "log").read_text().splitlines() if "peer=1" in line)
    assert CLIENT in line
    assert "192.0.2.66" not in line


def test_another_host_name_is_refused(served: Served) -> None:
    assert served.get("/docs", served.token, Host="evil.example").status_code == 421


def test_the_server_serves_tls_by_its_files(hosts: Hosts, tmp_path: Path) -> None:
    authority, chain, key = write_certificates(tmp_path)
    files = {"QUADCITE_TLS_CERT": str(chain), "QUADCITE_TLS_KEY": str(key)}
    given = environment(tmp_path, QUADCITE_HOST=SERVER, QUADCITE_PORT="8443", **files)
    made = subprocess.run([KG, "token", "new", "tests", "--json"], env=given, capture_output=True, check=True)
    server = hosts.start([KG, "serve"], tmp_path / "log", given)
    try:
        until(lambda: "Serving MCP" in (tmp_path / "log").read_text() or server.poll() is not None)
        headers = {"Authorization": f"Bearer {json.loads(made.stdout)['token']}"}
        tls = ssl.create_default_context(cafile=authority)
        url = f"https://{SERVER}:8443/tools"
        response = hosts.on_client(lambda: httpx.get(url, headers=headers, verify=tls, trust_env=False))
        assert response.status_code == 200
        with pytest.raises(httpx.ConnectError):
            hosts.on_client(lambda: httpx.get(url, headers=headers, trust_env=False))
    finally:
        stop(server)


@pytest.mark.exhaustive
def test_a_replica_on_another_host_follows_its_primary(hosts: Hosts, tmp_path: Path) -> None:
    primary, copy = tmp_path / "primary", tmp_path / "replica"
    primary.mkdir()
    copy.mkdir()
    backups = {"QUADCITE_BACKUP_TO": str(tmp_path / "backups"), "QUADCITE_BACKUP_EVERY": "1s"}
    at_primary = environment(primary, QUADCITE_HOST=SERVER, QUADCITE_PORT="8010", **backups)
    at_copy = environment(copy, QUADCITE_HOST=CLIENT, QUADCITE_PORT="8011", QUADCITE_REPLICA_EVERY="1s")
    tokens = {}
    for name, given, scopes in (("primary", at_primary, "read,write,admin"), ("replica", at_copy, "read,sparql")):
        words = [KG, "token", "new", "tests", "--scopes", scopes, "--json"]
        made = subprocess.run(words, env=given, capture_output=True, check=True)
        tokens[name] = {"Authorization": f"Bearer {json.loads(made.stdout)['token']}"}
    at_copy["QUADCITE_REPLICA_TOKEN"] = tokens["primary"]["Authorization"].removeprefix("Bearer ")
    graph = "https://w3id.org/quadcite/graph/user/replicated"

    def is_there() -> bool:
        asked = {"params": {"query": f"ASK {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}"}, "headers": tokens["replica"]}
        try:
            answer = hosts.on_server(
                lambda: httpx.get(f"http://{CLIENT}:8011/sparql", trust_env=False, timeout=30, **asked)  # type: ignore[arg-type]
            )
        except httpx.TransportError:
            assert following.poll() is None, (copy / "log").read_text()
            return False
        return answer.status_code == 200 and answer.json()["boolean"] is True

    serving = hosts.start([KG, "serve"], primary / "log", at_primary)
    try:
        until(lambda: "Serving MCP" in (primary / "log").read_text() or serving.poll() is not None)
        url = f"http://{SERVER}:8010/graphs?graph={graph}"
        headers = {**tokens["primary"], "Content-Type": "text/turtle"}
        written = hosts.on_client(
            lambda: httpx.put(url, content=b"<urn:a> <urn:b> 1 .", headers=headers, trust_env=False)
        )
        assert written.status_code == 201, written.text
        until(lambda: (tmp_path / "backups").exists() and list_backups(tmp_path / "backups")["points"])
        command = [KG, "replica", "--of", f"http://{SERVER}:8010"]
        following = hosts.start(command, copy / "log", at_copy, hosts.client)
        try:
            until(is_there)
            refused = hosts.on_server(lambda: httpx.get(f"http://{CLIENT}:8011/tools", trust_env=False))
            assert refused.status_code == 401
        finally:
            stop(following)
    finally:
        stop(serving)
