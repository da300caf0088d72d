"""Identity providers by FASTMCP_SERVER_AUTH: what is missing is named, and OAuth works end to end on every mount."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
import uvicorn
from fastmcp import Client
from fastmcp.server.auth import OAuthProxy, RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.utilities.tests import HeadlessOAuth
from starlette.testclient import TestClient

from kg.access.actors import READ
from kg.access.tokens import Tokens
from kg.data_directory import DataDirectory
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.server.app import create_app
from kg.server.authentication import Accounts
from kg.server.identity_providers import PROVIDERS, VARIABLE, add_provider
from kg.server.sessions import COOKIE
from kg.settings import Settings, read_auth_variables
from kg.tools.mounts import MOUNTS
from tests.server.oidc_issuer import Issuer, issuing
from tests.waiting import until

ORIGIN = "https://kg.example"
BROWSER = {"Accept": "text/html", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
AZURE = {"CLIENT_ID": "id", "CLIENT_SECRET": "s3cret", "TENANT_ID": "tenant", "REQUIRED_SCOPES": "read"}
SIMPLE = {"CLIENT_ID": "id", "CLIENT_SECRET": "s3cret"}


def configure(**values: Any) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg]


def build(folder: Path, name: str, options: dict[str, str], **settings: Any) -> Accounts:
    known = next((each for each, path in PROVIDERS.items() if name in (each, path)), name)
    variables = {VARIABLE: name, **{f"{VARIABLE}_{known}_{option}": value for option, value in options.items()}}
    directory = DataDirectory(folder)
    return add_provider(Accounts(tokens=Tokens(directory)), configure(**settings), variables, directory)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AZURE", AZURE), ("GITHUB", SIMPLE), ("GOOGLE", SIMPLE),
        ("fastmcp.server.auth.providers.azure.AzureProvider", AZURE),
        ("fastmcp.server.auth.providers.github.GitHubProvider", SIMPLE),
    ],
)  # fmt: skip
def test_the_providers_of_compose_files_are_built(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    accounts = build(tmp_path, name, options, public_url=ORIGIN)
    assert isinstance(accounts.provider, OAuthProxy)
    assert accounts.required
    assert {"/authorize", "/token", "/register", "/auth/callback", "/consent"} <= accounts.public_paths
    assert {f"/.well-known/oauth-protected-resource{path}" for path in ("", *MOUNTS)} <= accounts.public_paths


@pytest.mark.parametrize("missing", AZURE)
def test_a_missing_value_is_named(tmp_path: Path, missing: str) -> None:
    options = {name: value for name, value in AZURE.items() if name != missing}
    with pytest.raises(InvalidInputError, match=f"{VARIABLE}_AZURE_{missing}"):
        build(tmp_path, "AZURE", options, public_url=ORIGIN)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({VARIABLE: "AZURE"}, "CLIENT_ID.*TENANT_ID.*QUADCITE_PUBLIC_URL"),
        ({VARIABLE: "NOTHING"}, "AZURE.*GITHUB"),
        ({VARIABLE: "os.path.join"}, "os.path.join"),
        ({VARIABLE: "fastmcp.FastMCP"}, "FastMCP"),
        ({f"{VARIABLE}_AZURE_CLIENT_ID": "x"}, f"{VARIABLE} is not"),
        ({VARIABLE: "GITHUB", f"{VARIABLE}_AZURE_CLIENT_ID": "x"}, "AZURE_CLIENT_ID"),
        ({VARIABLE: "GITHUB", f"{VARIABLE}_GITHUB_CLIENTID": "x"}, "GITHUB_CLIENTID.*GITHUB_CLIENT_ID"),
        ({VARIABLE: "GITHUB", f"{VARIABLE}_GITHUB_TIMEOUT_SECONDS": "soon"}, "TIMEOUT_SECONDS"),
        ({VARIABLE: "JWT"}, "JWT_ISSUER"),
        ({VARIABLE: "JWT", f"{VARIABLE}_JWT_ISSUER": "https://iss.example"}, "JWKS_URI"),
        ({VARIABLE: "OAUTH"}, "UPSTREAM_AUTHORIZATION_ENDPOINT"),
        (
            {
                VARIABLE: "INTROSPECTION",
                f"{VARIABLE}_INTROSPECTION_INTROSPECTION_URL": "https://iss.example/introspect",
                f"{VARIABLE}_INTROSPECTION_CLIENT_ID": "x",
                f"{VARIABLE}_INTROSPECTION_CLIENT_SECRET": "x",
            },
            "INTROSPECTION_AUDIENCE",
        ),
    ],
)
def test_a_wrong_configuration_never_starts_an_open_server(
    tmp_path: Path, variables: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"(?s){named}"):
        add_provider(Accounts(), configure(), variables, DataDirectory(tmp_path))


def test_a_provider_of_jwts_accepts_the_audiences_of_this_server_alone(tmp_path: Path) -> None:
    accounts = build(tmp_path, "KEYCLOAK", {"REALM_URL": "https://iss.example/realms/x"}, public_url=ORIGIN)
    assert isinstance(accounts.provider, RemoteAuthProvider)
    assert isinstance(accounts.provider.token_verifier, JWTVerifier)
    assert {ORIGIN, f"{ORIGIN}/mcp", f"{ORIGIN}/mcp/zoning"} <= set(accounts.provider.token_verifier.audience or ())


def test_jwts_of_the_variables_and_of_the_settings_are_one(tmp_path: Path) -> None:
    options = {"ISSUER": "https://iss.example", "JWKS_URI": "https://iss.example/keys", "AUDIENCE": "kg"}
    old = build(tmp_path, "JWT", options, public_url=ORIGIN)
    new = add_provider(
        Accounts(),
        configure(
            jwt_issuer="https://iss.example",
            jwt_jwks_url="https://iss.example/keys",
            jwt_audience="kg",
            public_url=ORIGIN,
        ),
        {},
        DataDirectory(tmp_path),
    )
    for accounts in (old, new):
        assert isinstance(accounts.provider, RemoteAuthProvider)
        assert accounts.provider.token_verifier.audiences == {"kg"}  # type: ignore[attr-defined]
        assert "/.well-known/oauth-protected-resource/mcp" in accounts.public_paths


def test_the_variables_are_read_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"{VARIABLE}=GITHUB\n{VARIABLE}_GITHUB_CLIENT_ID=file\nOTHER=x\n")
    monkeypatch.setenv(f"{VARIABLE}_GITHUB_CLIENT_ID", "environment")
    assert read_auth_variables() == {VARIABLE: "GITHUB", f"{VARIABLE}_GITHUB_CLIENT_ID": "environment"}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as served:
        yield served


@pytest.fixture
def jwt_client(kg: KnowledgeGraph, issuer: Issuer, tmp_path: Path) -> TestClient:
    settings = {
        "jwt_issuer": issuer.url,
        "jwt_jwks_url": f"{issuer.url}/jwks",
        "public_url": ORIGIN,
        "auth_scopes": {"editors": ("write",)},
    }
    accounts = add_provider(Accounts(), configure(**settings), {}, DataDirectory(tmp_path))
    return TestClient(create_app(kg, accounts=accounts), base_url=ORIGIN, follow_redirects=False)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", ["", *MOUNTS])
def test_each_mount_has_the_metadata_of_its_resource(jwt_client: TestClient, issuer: Issuer, path: str) -> None:
    metadata = jwt_client.get(f"/.well-known/oauth-protected-resource{path}").json()
    assert metadata["resource"].rstrip("/") == f"{ORIGIN}{path}"
    assert [server.rstrip("/") for server in metadata["authorization_servers"]] == [issuer.url]
    refused = jwt_client.post(path or "/tools/health", json={})
    named = f'resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource{path}"'
    assert (refused.status_code, named in refused.headers["www-authenticate"]) == (401, True)


def test_a_jwt_protects_every_protocol(jwt_client: TestClient, issuer: Issuer) -> None:
    for audience in (ORIGIN, f"{ORIGIN}/", f"{ORIGIN}/mcp", f"{ORIGIN}/mcp/climate"):
        assert jwt_client.get("/sparql?query=ASK{}", headers=bearer(issuer.sign(aud=audience))).status_code == 200
    for audience in ("kg", "https://other.example/mcp", f"{ORIGIN}.evil.example", f"{ORIGIN}/elsewhere"):
        assert jwt_client.get("/sparql?query=ASK{}", headers=bearer(issuer.sign(aud=audience))).status_code == 401
    turtle = {"Content-Type": "text/turtle"}
    for groups, status in (([], 403), (["editors"], 201)):
        headers = bearer(issuer.sign(aud=ORIGIN, groups=groups)) | turtle
        written = jwt_client.put("/graphs/user/of-jwt", content=b"<urn:a> <urn:b> 1 .", headers=headers)
        assert written.status_code == status
    # A role or group with the name of a scope is none: the organization has its own administrators.
    for claims, status in (({"roles": ["admin"]}, 403), ({"groups": ["admin"]}, 403), ({"scope": "kg:admin"}, 200)):
        asked = jwt_client.post("/admin/state", headers=bearer(issuer.sign(aud=ORIGIN, **claims)))
        assert asked.status_code == status
    mine = bearer(issuer.sign(aud=ORIGIN, groups=["editors"]))
    assert jwt_client.delete("/graphs/user/of-jwt", headers=mine).status_code == 204


@pytest.fixture
def served(kg: KnowledgeGraph, issuer: Issuer, tmp_path: Path) -> Iterator[str]:
    """The address of a server with an OpenID Connect provider."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    issuer.audience = "api"
    options = {"CONFIG_URL": f"{issuer.url}/.well-known/openid-configuration", "AUDIENCE": "api", **SIMPLE}
    accounts = build(tmp_path, "OIDC", options, public_url=address)
    server = uvicorn.Server(uvicorn.Config(create_app(kg, accounts=accounts), log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        until(lambda: server.started)
        yield address
    finally:
        server.should_exit = True
        thread.join()
        issuer.audience = "kg"


async def agree(browser: httpx2.AsyncClient, url: str) -> httpx2.Response:
    """Follow an authorization in a browser: the consent page of the server, the issuer, and back to the client."""
    response = await browser.get(url)
    while response.is_redirect and "consent" not in response.headers["location"]:
        response = await browser.get(response.headers["location"])
    consent = str(response.url.join(response.headers["location"]))
    shown = await browser.get(consent)
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', shown.text))
    response = await browser.post(consent, data={**fields, "action": "approve"}, headers={"Origin": origin_of(consent)})
    response = await browser.get(response.headers["location"])  # of the issuer
    return await browser.get(response.headers["location"])  # the callback of the server


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


class Browser(HeadlessOAuth):
    """The OAuth of an MCP client, with a browser whose user agrees."""

    async def redirect_handler(self, authorization_url: str) -> None:
        async with httpx2.AsyncClient(headers=BROWSER, follow_redirects=False) as browser:
            self._stored_response = await agree(browser, authorization_url)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/climate"])
def test_an_mcp_client_signs_in_by_oauth_and_calls_a_tool(served: str, path: str) -> None:
    async def run() -> Any:
        async with Client(f"{served}{path}", auth=Browser(f"{served}{path}")) as client:
            return await client.call_tool("health", {})

    assert anyio.run(run).structured_content["status"]


@pytest.mark.long
def test_a_token_for_another_resource_is_not_given(served: str) -> None:
    async def run() -> tuple[list[str], list[str]]:
        asked, given = [], []
        async with httpx2.AsyncClient(base_url=served, headers=BROWSER, follow_redirects=False) as http:
            metadata = {"redirect_uris": ["http://localhost:9/cb"], "token_endpoint_auth_method": "none"}
            client = (await http.post("/register", json=metadata)).json()["client_id"]
            for resource in (
                f"{served}/mcp",
                f"{served}/mcp/zoning",
                served,
                "https://other.example/mcp",
                f"{served}/x",
            ):
                query = {
                    "client_id": client,
                    "response_type": "code",
                    "redirect_uri": "http://localhost:9/cb",
                    "code_challenge": "x" * 43,
                    "code_challenge_method": "S256",
                    "resource": resource,
                }
                to = (await http.get("/authorize", params=query)).headers["location"]
                (given if "/consent" in to else asked).append(resource.removeprefix(served))
        return given, asked

    assert anyio.run(run) == (["/mcp", "/mcp/zoning", ""], ["https://other.example/mcp", "/x"])


@pytest.mark.long
def test_a_browser_signs_in_on_a_page_by_oauth(served: str, issuer: Issuer) -> None:
    async def run() -> None:
        async with httpx2.AsyncClient(base_url=served, headers=BROWSER, follow_redirects=False) as browser:
            sent = await browser.get("/search?q=x")
            assert sent.headers["location"] == "/login?to=%2Fsearch%3Fq%3Dx"
            login = await browser.get(sent.headers["location"])
            begin = re.search(r'href="(/login/oauth[^"]+)"', login.text)
            assert begin is not None
            response = await agree(browser, served + begin[1])
            back = response.headers["location"]
            async with httpx2.AsyncClient(headers=BROWSER) as other:
                stolen = await other.get(back)
                assert stolen.status_code == 403, "another browser cannot end it"

    anyio.run(run)

    async def whole() -> None:
        async with httpx2.AsyncClient(base_url=served, headers=BROWSER, follow_redirects=False) as browser:
            response = await agree(browser, f"{served}/login/oauth?to=/search?q=x")
            back = response.headers["location"]
            assert parse_qs(urlsplit(back).query).keys() >= {"code", "state"}
            signed = await browser.get(back)
            assert (signed.status_code, signed.headers["refresh"]) == (200, "0; url=/search?q=x")
            assert f"ada@{urlsplit(issuer.url).hostname}" in signed.text
            assert any(COOKIE in cookie for cookie in browser.cookies)
            assert (await browser.get("/search?q=x")).status_code == 200
            assert (await browser.get(back)).status_code == 403, "a code counts once"

    anyio.run(whole)


@pytest.mark.long
def test_tokens_of_clients_count_beside_the_provider(served: str, tmp_path: Path) -> None:
    secret = Tokens(DataDirectory(tmp_path)).create("script", [READ])
    answer = httpx2.get(f"{served}/tools", headers=bearer(secret))
    assert answer.status_code == 200
    assert httpx2.get(f"{served}/tools", headers=bearer(issuer_token(served))).status_code == 401


def issuer_token(served: str) -> str:
    """A token of the form of one of the proxy, with a signature of somebody else."""
    return "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ4In0." + "x" * 43
