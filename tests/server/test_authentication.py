"""Authentication of requests: tokens, the proxy's user, the header of tokens, and what is open without credentials."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from kg.access.actors import READ, SEARCH, SPARQL, WRITE
from kg.access.audit import AuditLog, read_entries
from kg.access.tokens import Tokens
from kg.data_directory import DataDirectory
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.observability import REGISTRY
from kg.server.app import create_app
from kg.server.auth import LocalToken, derive_user_secret, read_token
from kg.server.authentication import Accounts
from kg.server.http_server import check_bind
from kg.server.sessions import COOKIE
from kg.settings import Settings
from tests.server.test_sign_in import csrf_of, enter

BASE = "http://127.0.0.1:8000"
ASK = {"params": {"query": "ASK {}"}}
BROWSER = {"Accept": "text/html"}
PROTECTED = [
    ("GET", "/sparql?query=ASK{}"), ("GET", "/sparql/queries"), ("GET", "/graphs"), ("GET", "/tools"),
    ("POST", "/tools/health"), ("POST", "/mcp"), ("POST", "/mcp/climate"), ("GET", "/health"), ("GET", "/metrics"),
    ("POST", "/shacl"), ("POST", "/admin/query"), ("GET", "/"), ("GET", "/search?q=x"), ("GET", "/docs"),
    ("GET", "/status"), ("GET", "/v1/connectors/service-map"), ("GET", "/nothing/here"), ("PUT", "/graphs/x"),
]  # fmt: skip


def configure(**values: Any) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg]


class Served:
    """An application with accounts, and a client of it."""

    def __init__(self, kg: KnowledgeGraph, folder: Path, **settings: Any) -> None:
        directory = DataDirectory(folder)
        self.local, self.tokens = LocalToken(folder), Tokens(directory)
        self.secret = read_token(folder)
        accounts = Accounts(self.local, self.tokens, configure(**settings))
        kg.settings = kg.settings.model_copy(update=settings and dict(configure(**settings)) | {"data_dir": folder})
        self.app = create_app(kg, accounts=accounts)
        self.client = self.open()

    def open(self, peer: str = "127.0.0.1", base: str = BASE) -> TestClient:
        return TestClient(self.app, base_url=base, follow_redirects=False, client=(peer, 50_000))


@pytest.fixture
def serve(kg: KnowledgeGraph, tmp_path: Path) -> Iterator[Any]:
    before = kg.settings
    yield lambda **settings: Served(kg, tmp_path, **settings)
    kg.settings = before


def bearer(secret: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_without_accounts_everyone_on_this_machine_reads(serve: Any) -> None:
    client = serve().client
    assert client.get("/sparql", **ASK).status_code == 200
    assert client.get("/search?q=x", headers=BROWSER).status_code == 200


@pytest.mark.parametrize(("method", "path"), PROTECTED)
def test_with_a_token_every_route_needs_credentials(serve: Any, method: str, path: str) -> None:
    served = serve()
    served.tokens.create("alice", [READ])
    answer = served.client.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == 'Bearer realm="quadcite"'
    for wrong in ("qc_" + "x" * 43, "", "é"):
        answer = served.client.request(method, path, headers={"Authorization": f"Bearer {wrong}".encode()})
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_what_everybody_may_read_stays_open(serve: Any) -> None:
    served = serve()
    served.tokens.create("alice", [READ])
    shown = served.client.get("/login", headers=BROWSER)
    assert shown.status_code == 200
    style = shown.text.split('rel="stylesheet" href="')[1].split('"')[0]
    assert served.client.get(style).status_code == 200


def test_a_token_has_its_scopes_until_it_is_revoked(serve: Any) -> None:
    served = serve()
    secret = served.tokens.create("alice", [READ, SPARQL])
    client = served.client
    assert client.get("/sparql", headers=bearer(secret), **ASK).status_code == 200
    turtle = {"Content-Type": "text/turtle", **bearer(secret)}
    refused = client.put("/graphs/user/notes", content=b"<urn:a> <urn:b> <urn:c> .", headers=turtle)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "alice" in refused.json()["message"]
    served.tokens.revoke("alice")
    assert client.get("/sparql", headers=bearer(secret), **ASK).status_code == 401
    assert client.get("/sparql", **ASK).status_code == 401, "revoking the last token does not open the server"


def test_the_local_token_stays_the_operators_and_that_of_stdio_is_everyones(serve: Any) -> None:
    served = serve()
    served.tokens.create("alice", [READ])
    body = {"query": "ASK {}", "media_type": "application/sparql-results+json"}
    assert served.client.post("/admin/query", json=body, headers=bearer(served.secret)).status_code == 200
    user = bearer(derive_user_secret(served.secret))
    assert served.client.get("/sparql", headers=user, **ASK).status_code == 200
    assert served.client.post("/admin/query", json=body, headers=user).status_code == 403


def test_a_browser_is_sent_to_the_page_for_signing_in_and_reads_by_its_session(serve: Any) -> None:
    served = serve()
    secret = served.tokens.create("alice", [READ, SEARCH, SPARQL, WRITE])
    client = served.client
    sent = client.get("/search?q=a%20b", headers=BROWSER)
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?to=%2Fsearch%3Fq%3Da%2520b")
    form = client.get(sent.headers["location"], headers=BROWSER)
    data = {"csrf": csrf_of(form.text), "to": "/search?q=a%20b", "token": secret}
    assert client.post("/login", data=data, headers=BROWSER).headers["location"] == "/search?q=a%20b"
    assert client.get("/search?q=x", headers=BROWSER).status_code == 200
    assert client.get("/sparql", **ASK).status_code == 200, "the editor on the page asks by the session"
    turtle = {"Content-Type": "text/turtle"}
    assert client.put("/graphs/user/notes", content=b"", headers=turtle).status_code == 403, "a cookie writes nothing"
    served.tokens.revoke("alice")
    assert client.get("/search?q=x", headers=BROWSER).status_code == 303, "a session ends with its token"


def test_failures_to_sign_in_are_recorded_as_such_and_nobody_fills_the_audit_log(
    serve: Any, kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AuditLog(DataDirectory(tmp_path)) as log:
        monkeypatch.setattr(kg, "audit", log)
        served = serve()
        served.tokens.create("alice", [READ])
        before = REGISTRY.get_sample_value("quadcite_auth_failures_total") or 0
        for _ in range(12):
            assert enter(served.client, "qc_wrong").headers["location"] == "/login?wrong=1"
        for number in range(30):
            assert served.client.get("/login", params={"x": number}).status_code == 200
            assert served.client.get("/health/live").status_code == 200
    read = list(read_entries(DataDirectory(tmp_path)))
    assert [entry["outcome"] for entry in read if entry["action"].startswith("POST")] == ["unauthorized"] * 10
    assert len(read) == 20
    assert REGISTRY.get_sample_value("quadcite_auth_failures_total") == before + 12


def test_a_session_cancels_queries_with_the_scope_of_its_token(serve: Any) -> None:
    served = serve()
    for name, scopes, status in (("reader", [READ], 403), ("writer", [READ, WRITE], 404)):
        secret, client = served.tokens.create(name, scopes), served.open()
        enter(client, secret)
        csrf = csrf_of(client.get("/login", headers=BROWSER).text)
        unknown = {"csrf": csrf, "query": "123456789", "pool": "tools"}
        assert client.post("/status/cancel", data=unknown).status_code == status


def test_cookies_over_https_are_of_this_host_alone(serve: Any) -> None:
    served = serve(public_url="https://kg.example")
    secret = served.tokens.create("alice", [READ])
    client = served.open(base="https://kg.example")
    form = client.get("/login", headers=BROWSER)
    answer = client.post("/login", data={"csrf": csrf_of(form.text), "token": secret}, headers=BROWSER)
    [cookie] = [each for each in answer.headers.get_list("set-cookie") if COOKIE in each and "Max-Age=0" not in each]
    assert cookie.startswith(f"__Host-{COOKIE}=")
    parts = {part.strip().lower() for part in cookie.split(";")}
    assert {"secure", "httponly", "path=/", "samesite=strict"} <= parts
    assert not any(part.startswith("domain") for part in parts)


def test_the_public_name_is_accepted_and_foreign_pages_are_not(serve: Any) -> None:
    served = serve(public_url="https://kg.example")
    client = served.open("203.0.113.9", base="https://kg.example")
    assert client.get("/sparql", **ASK).status_code == 200
    assert client.get("/sparql", headers={"Origin": "https://kg.example"}, **ASK).status_code == 200
    assert client.get("/sparql", headers={"Origin": "https://evil.example"}, **ASK).status_code == 403
    assert client.get("/sparql", headers={"Host": "evil.example"}, **ASK).status_code == 421


PROXY = {
    "trusted_proxies": "10.0.0.0/8",
    "proxy_user_header": "X-Forwarded-User",
    "proxy_groups_header": "X-Forwarded-Groups",
    "auth_scopes": {"editors": ["write"]},
}


def test_the_user_of_a_proxy_counts_from_the_proxy_alone(serve: Any) -> None:
    served = serve(**PROXY)
    named = {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "editors, readers", "X-Forwarded-For": "203.0.113.9"}
    assert served.open("10.1.2.3").get("/sparql", headers=named, **ASK).status_code == 200
    for peer in ("127.0.0.1", "203.0.113.9", "11.0.0.1"):
        forged = {**named, "X-Forwarded-For": "10.1.2.3"}
        assert served.open(peer).get("/sparql", headers=forged, **ASK).status_code == 401, peer
    assert served.open("10.1.2.3").get("/sparql", **ASK).status_code == 401, "the proxy itself is nobody"
    doubled = [("X-Forwarded-User", "ada"), ("X-Forwarded-User", "admin")]
    assert served.open("10.1.2.3").get("/sparql", headers=doubled, **ASK).status_code == 401
    turtle = {"Content-Type": "text/turtle"}
    for groups, status in (("readers", 403), ("readers,editors", 201)):
        headers = {**named, **turtle, "X-Forwarded-Groups": groups}
        written = served.open("10.1.2.3").put("/graphs/user/of-ada", content=b"<urn:a> <urn:b> 1 .", headers=headers)
        assert written.status_code == status
    assert served.open("10.1.2.3").delete("/graphs/user/of-ada", headers=named).status_code == 204


def test_the_user_of_a_proxy_may_send_forms_until_the_proxy_names_another(serve: Any) -> None:
    served = serve(**PROXY)
    named = {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "editors", **BROWSER}
    client = served.open("10.1.2.3")
    form = client.get("/login", headers=named)
    assert "ada@proxy" in form.text
    assert client.post("/login", data={"csrf": csrf_of(form.text)}, headers=named).headers["location"] == "/status"
    signed = client.get("/login", headers=named)
    assert 'action="/logout"' in signed.text
    gone = {"csrf": csrf_of(signed.text), "query": "1", "pool": "x"}
    assert client.post("/status/cancel", data=gone, headers=named).status_code == 404
    other = {**named, "X-Forwarded-User": "bob"}
    assert client.post("/status/cancel", data=gone, headers=other).status_code == 403
    outside = served.open("203.0.113.9")
    form = outside.get("/login", headers=named)
    assert "ada@proxy" not in form.text
    assert (
        outside.post("/login", data={"csrf": csrf_of(form.text)}, headers=named).headers["location"] == "/login?wrong=1"
    )


def test_a_token_may_come_in_a_header_of_its_own(serve: Any) -> None:
    served = serve(token_header="X-Quadcite-Token")
    secret = served.tokens.create("alice", [READ, SPARQL])
    basic = {"Authorization": "Basic dXNlcjpwYXNz"}
    get = served.client.get
    assert get("/sparql", headers={**basic, "X-Quadcite-Token": secret}, **ASK).status_code == 200
    assert get("/sparql", headers={**basic, "X-Quadcite-Token": secret[:-1]}, **ASK).status_code == 401
    assert get("/sparql", headers=basic, **ASK).status_code == 401
    assert get("/sparql", headers=bearer(secret), **ASK).status_code == 200
    wrong = {**bearer(secret), "X-Quadcite-Token": "x"}
    assert get("/sparql", headers=wrong, **ASK).status_code == 401, "one of two tokens is not enough"


def test_removing_the_file_of_tokens_opens_no_server_that_runs(serve: Any, tmp_path: Path) -> None:
    served = serve()
    served.tokens.create("alice", [READ])
    assert served.client.get("/sparql", **ASK).status_code == 401
    (tmp_path / "access" / "tokens.json").unlink()
    assert served.client.get("/sparql", **ASK).status_code == 401
    assert Accounts(tokens=Tokens(DataDirectory(tmp_path)), always=True).required


@pytest.mark.parametrize("host", [str(IPv4Address(0)), "::", "192.0.2.1", "kg.example", "", "127.0.0.1.evil.example"])
def test_another_address_than_loopback_needs_accounts(host: str) -> None:
    with pytest.raises(InvalidInputError, match=r"kg token new.*--insecure"):
        check_bind(host, protected=False)
    check_bind(host, protected=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    check_bind(host, protected=False)


@pytest.mark.parametrize(
    "values",
    [
        {"tls_cert": "a.pem"},
        {"jwt_issuer": "https://iss.example"},
        {"jwt_jwks_url": "https://iss.example/keys"},
        {"jwt_issuer": "https://iss.example", "jwt_jwks_url": "https://iss.example/keys"},
        {"jwt_algorithms": "none"},
        {"jwt_algorithms": "RS256 HS256"},
        {"jwt_algorithms": ""},
        {"proxy_user_header": "X-Forwarded-User"},
        {"proxy_user_header": "Authorization", "trusted_proxies": "10.0.0.1"},
        {"token_header": "Cookie"},
        {"token_header": "X Token"},
        {"auth_default_scopes": "root"},
        {"auth_scopes": {"editors": ["root"]}},
        {"public_url": "https://kg.example/path"},
    ],
)
def test_settings_that_belong_together_or_cannot_be_right_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        configure(**values)
