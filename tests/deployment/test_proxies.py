"""Caddy and nginx with TLS in front of a server, on a host of the tests' own, and a client on another host."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from kg import bundle
from kg.search.registry import MINILM
from tests.deployment.two_hosts import CLIENT, NAME, Hosts, named, require, stop, two_hosts, write_certificates
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

KG = Path(sys.executable).with_name("kg")
URL = f"https://{NAME}"
GRAPH = f"{URL}/graphs?graph=https://w3id.org/quadcite/graph/user/large"


class Site(NamedTuple):
    """A proxy with the server behind it."""

    hosts: Hosts
    tls: ssl.SSLContext
    token: str
    log: Path

    def ask(self, work: Callable[[httpx.Client], Any], *, token: bool = True) -> Any:
        """Send requests from the client, with the token or without."""
        headers = {"Authorization": f"Bearer {self.token}"} if token else {}

        def run() -> Any:
            with httpx.Client(base_url=URL, verify=self.tls, headers=headers, timeout=60, trust_env=False) as client:
                return work(client)

        return self.hosts.on_client(run)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with pytest.MonkeyPatch.context() as patched, two_hosts() as made, named(patched):
        yield made


@pytest.fixture(scope="module")
def serving(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A server on the loopback of its host, with a token; its folder."""
    folder = tmp_path_factory.mktemp("server")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "QUADCITE_DATA_DIR": str(folder / "kg-data"),
        "QUADCITE_MODEL": MINILM,
        "QUADCITE_MODELS_DIR": str(folder / "no-models"),
        "QUADCITE_PUBLIC_URL": URL,
        "QUADCITE_TRUSTED_PROXIES": "127.0.0.1",
        "QUADCITE_ACCESS_LOG": "true",
    }
    scopes = "read,search,sparql,write,curate,admin"
    made = subprocess.run(
        [KG, "token", "new", "tests", "--scopes", scopes, "--json"], env=environment, capture_output=True, check=True
    )
    server = hosts.start([KG, "serve"], folder / "log", environment)
    try:
        until(lambda: "Serving MCP" in (folder / "log").read_text() or server.poll() is not None)
        assert server.poll() is None, (folder / "log").read_text()
        yield folder, json.loads(made.stdout)["token"]
    finally:
        stop(server)


def start_caddy(hosts: Hosts, folder: Path, chain: Path, key: Path) -> subprocess.Popen[bytes]:
    caddy = require("caddy", "caddy")
    (folder / "Caddyfile").write_text(bundle.deployment("caddy"))
    given = {"CADDY_DOMAIN": NAME, "CADDY_TLS": f"tls {chain} {key}", "HOME": str(folder), "PATH": os.environ["PATH"]}
    command = [caddy, "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]
    return hosts.start(command, folder / "log", given)


def start_nginx(hosts: Hosts, folder: Path, chain: Path, key: Path) -> subprocess.Popen[bytes]:
    nginx = require("nginx", "nginx-light")
    site = bundle.deployment("nginx").replace("/etc/quadcite/fullchain.pem", str(chain))
    (folder / "quadcite.conf").write_text(site.replace("/etc/quadcite/privkey.pem", str(key)))
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"user root;\ndaemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}include {folder}/quadcite.conf;\n}}\n"
    )
    return hosts.start([nginx, "-c", folder / "nginx.conf"], folder / "log", {"PATH": os.environ["PATH"]})


@pytest.fixture(scope="module", params=[start_caddy, start_nginx], ids=["caddy", "nginx"])
def site(
    request: pytest.FixtureRequest,
    hosts: Hosts,
    serving: tuple[Path, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("proxy")
    authority, chain, key = write_certificates(folder)
    proxy = request.param(hosts, folder, chain, key)
    made = Site(hosts, ssl.create_default_context(cafile=authority), serving[1], serving[0] / "log")
    try:

        def answers() -> bool:
            assert proxy.poll() is None, (folder / "log").read_text()
            try:
                return bool(made.ask(lambda client: client.get("/health/live").status_code == 200))
            except httpx.TransportError:
                return False

        until(answers)
        yield made
    finally:
        stop(proxy)


def test_a_request_without_tls_is_redirected_to_it(site: Site) -> None:
    def work(client: httpx.Client) -> httpx.Response:
        return client.get(f"http://{NAME}/docs")

    response = site.ask(work)
    assert response.status_code in (301, 308)
    assert response.headers["location"] == f"{URL}/docs"


def test_without_a_token_pages_lead_to_the_form_and_protocols_refuse(site: Site) -> None:
    page = site.ask(lambda client: client.get("/", headers={"Accept": "text/html"}), token=False)
    assert page.status_code == 303
    assert page.headers["location"].startswith("/login")
    for path in ("/sparql?query=ASK{}", "/tools", "/graphs", "/metrics"):
        refused = site.ask(lambda client, path=path: client.get(path), token=False)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")


def test_a_browser_signs_in_and_its_cookie_is_for_tls_alone(site: Site) -> None:
    html = {"Accept": "text/html"}

    def work(client: httpx.Client) -> tuple[httpx.Response, httpx.Response]:
        form = client.get("/login", headers=html)
        (field,) = re.findall(r'name="csrf" value="([^"]+)"', form.text)
        fields = {"csrf": field, "token": site.token, "to": "/docs"}
        return client.post("/login", data=fields, headers={"Origin": URL}), client.get("/docs", headers=html)

    signed_in, page = site.ask(work, token=False)
    assert signed_in.status_code == 303
    assert signed_in.headers["location"] == "/docs"
    cookies = [line for line in signed_in.headers.get_list("set-cookie") if "quadcite-session=" in line]
    assert len(cookies) == 1
    assert {"secure", "httponly"} <= {part.strip().lower() for part in cookies[0].split(";")}
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]


def test_an_mcp_client_lists_and_calls_tools(site: Site) -> None:
    async def work() -> Any:
        def build(**options: Any) -> Any:
            import httpx2  # that of FastMCP

            return httpx2.AsyncClient(**{**options, "verify": site.tls, "trust_env": False})

        transport = StreamableHttpTransport(f"{URL}/mcp", auth=site.token, httpx_client_factory=build)
        async with Client(transport) as client:
            tools = await client.list_tools()
            prompt = await client.get_prompt("check_draft", {"draft": "x"})
            return tools, prompt, await client.call_tool("sparql", {"query": "SELECT (1 + 1 AS ?n) {}"})

    tools, prompt, answer = site.hosts.on_client(lambda: anyio.run(work))
    assert "search" in {tool.name for tool in tools}
    assert prompt.messages
    assert "2" in json.dumps(answer.structured_content["rows"])


def test_a_large_graph_is_uploaded_and_one_beyond_the_limit_is_refused_by_the_server(site: Site) -> None:
    quads = "".join(f'<http://example.org/{n}> <http://example.org/p> "{"x" * 200}" .\n' for n in range(40_000))
    turtle = {"Content-Type": "text/turtle"}
    stored = site.ask(lambda client: client.put(GRAPH, content=quads.encode(), headers=turtle))
    assert stored.status_code in (200, 201, 204), stored.text
    assert (
        site.ask(lambda client: client.get(GRAPH, headers={"Accept": "application/n-triples"})).text.count("\n")
        == 40_000
    )

    def pieces() -> Iterator[bytes]:
        for _ in range(4):
            yield quads.encode()

    refused = site.ask(lambda client: client.put(GRAPH, content=pieces(), headers=turtle))
    assert refused.status_code == 413
    assert refused.json()["code"] == "body_too_large"
    assert site.ask(lambda client: client.delete(GRAPH)).status_code in (200, 204)


def test_progress_arrives_while_the_call_runs(site: Site, tmp_path: Path) -> None:
    """A proxy that collects a response would pass the first line on when the load has ended."""
    speech = "speech_id,speaker,party,chamber,date,title,text\n"
    rows = (
        f"{id(site)}-{n},Ada Example,Example,House,2024-01-{n % 28 + 1:02},Title {n},{'Words of a speech. ' * 20}\n"
        for n in range(1_000)
    )
    (tmp_path / "speeches.csv").write_text(speech + "".join(rows))
    asked = {"source": "hansard", "paths": [str(tmp_path)], "options": {"jurisdiction": "AU"}}
    asked |= {"prune": False, "wait": False, "replace_newer": False}

    def work(client: httpx.Client) -> tuple[bytes, int, int]:
        headers = {"Accept": "application/x-ndjson"}
        with client.stream("POST", "/tools/load", json=asked, headers=headers) as response:
            assert response.status_code == 200, response.read()
            pieces = response.iter_raw()
            first = next(pieces)
            running = client.get("/health").json()["held"]["long_calls"]
            rest = b"".join(pieces)
        return first + rest, running, client.get("/health").json()["held"]["long_calls"]

    lines, during, afterwards = site.ask(work)
    found = [json.loads(line) for line in lines.splitlines()]
    assert "progress" in found[0]
    assert "result" in found[-1], found[-1]
    assert (during, afterwards) == (1, 0)


def test_a_long_result_is_whole(site: Site) -> None:
    values = " ".join(f"VALUES ?{name} {{ 0 1 2 3 4 5 6 7 8 9 }}" for name in "abcde")
    query = f"SELECT (CONCAT('{'x' * 100}', STR(?a), STR(?b), STR(?c), STR(?d), STR(?e)) AS ?text) {{ {values} }}"
    csv = {"Accept": "text/csv"}
    text = site.ask(lambda client: client.post("/sparql", data={"query": query}, headers=csv)).text
    assert len(set(text.split())) == 100_001


def test_the_address_is_that_of_the_client_whatever_it_claims(site: Site) -> None:
    claims = {"X-Forwarded-For": "192.0.2.66", "Forwarded": "for=192.0.2.67", "X-Real-IP": "192.0.2.68"}
    marker = f"/docs?proxy={id(site)}"
    assert site.ask(lambda client: client.get(marker, headers=claims)).status_code == 200
    (line,) = (line for line in site.log.read_text().splitlines() if marker in line)
    assert CLIENT in line
    assert "192.0.2." not in line


def test_another_name_is_not_served(site: Site) -> None:
    """Caddy knows one name. nginx passes the name on, and the server refuses it."""

    def work(client: httpx.Client) -> httpx.Response:
        return client.get("/docs", headers={"Host": "evil.example"})

    response = site.ask(work)
    assert response.status_code == 421 or (response.status_code == 200 and response.content == b"")


def test_there_are_no_websockets(site: Site) -> None:
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    assert site.ask(lambda client: client.get("/docs", headers=upgrade)).status_code != 101
