"""The local token: only its own user can read it, and only its server takes it. The guard against foreign pages."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import anyio
import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from kg.access.actors import ADMIN, CURATE, EVERYONE, HOLDER, READ, SEARCH, SPARQL, WRITE, Actor
from kg.errors import ForbiddenError, StoreError, UnauthorizedError
from kg.knowledge_graph import KnowledgeGraph
from kg.queries.pool import QueryPool
from kg.server.app import create_app
from kg.server.auth import HostGuard, LocalToken, get_peer, parse_host, read_token
from kg.server.authentication import Accounts
from kg.server.fair_limiter import FairLimiter
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from tests.tools.made_up import WordIndex


def identify(token: LocalToken, *values: bytes) -> Actor:
    headers = [(b"authorization", value) for value in values]
    return anyio.run(Accounts(token).identify, Request({"type": "http", "headers": headers}))


def test_only_its_own_user_can_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        LocalToken(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_what_another_process_left_or_holds_open_does_not_get_it(tmp_path: Path) -> None:
    partial = tmp_path / "token.partial"
    partial.write_text("left by a crash")
    partial.chmod(0o666)
    with partial.open() as opened:
        LocalToken(tmp_path)
        assert opened.read() == "left by a crash"
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_a_link_is_replaced_and_what_it_points_at_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "token").symlink_to(victim)
    LocalToken(tmp_path)
    assert (victim.read_text(), (tmp_path / "token").is_symlink()) == ("mine", False)


def test_its_holder_is_an_admin_and_everyone_else_reads_and_writes(tmp_path: Path) -> None:
    token = LocalToken(tmp_path)
    secret = read_token(tmp_path)
    assert secret is not None
    assert identify(token) == EVERYONE
    assert identify(token, f"bearer  {secret} ".encode()) == HOLDER
    assert HOLDER.scopes - EVERYONE.scopes == {ADMIN, CURATE}
    assert EVERYONE.scopes == {READ, SEARCH, SPARQL, WRITE}
    with pytest.raises(ForbiddenError, match=r"(?i)an update .*'admin'.*token"):
        EVERYONE.require(ADMIN, "an update")
    HOLDER.require(ADMIN, "an update")


@pytest.mark.parametrize("header", [b"Bearer", b"Bearer ", b"Bearer \xe9", b"Bearer x", b"Basic dXNlcjpwYXNz", b""])
def test_other_credentials_are_refused_never_taken_for_everyones(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(UnauthorizedError):
        identify(LocalToken(tmp_path), header)


def test_a_beginning_of_it_is_not_enough(tmp_path: Path) -> None:
    token = LocalToken(tmp_path)
    secret = read_token(tmp_path)
    assert secret is not None
    assert len(secret) >= 43, "256 bits"
    for given in (secret[:-1], secret + "x", secret.swapcase()):
        with pytest.raises(UnauthorizedError):
            identify(token, f"Bearer {given}".encode())


def test_each_server_has_its_own_and_takes_no_older_one(tmp_path: Path) -> None:
    old = LocalToken(tmp_path)
    given = read_token(tmp_path)
    new = LocalToken(tmp_path)
    with pytest.raises(UnauthorizedError, match="local token"):
        identify(new, f"Bearer {given}".encode())
    old.remove()
    assert read_token(tmp_path) is not None, "an older server does not take away the newer one's"
    new.remove()
    new.remove()
    assert read_token(tmp_path) is None


def test_a_file_that_is_no_token_is_none(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    assert read_token(tmp_path) is None


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="absent"):
        LocalToken(tmp_path / "absent")


OWN = ("host", "127.0.0.1:8181")
LINK = [OWN, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("accept", "text/html,*/*;q=0.8")]
DOCUMENT = ("sec-fetch-dest", "document")


def knock(
    *headers: tuple[str, str], path: str = "/", query: bytes = b"", method: str = "GET", origins: tuple[str, ...] = ()
) -> int:
    """The status of a request to a server on 127.0.0.1:8181; 200 if the guard lets it in, twice."""

    async def inside(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    guard = HostGuard(inside, origins)
    sent: list[int] = []

    async def send(message) -> None:  # type: ignore[no-untyped-def]
        if message["type"] == "http.response.start":
            sent.append(message["status"])

    scope = {"type": "http", "method": method, "path": path, "query_string": query, "server": ("127.0.0.1", 8181)}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers]

    async def call_twice() -> None:
        for _ in range(2):
            await guard(scope, None, send)  # type: ignore[arg-type]

    anyio.run(call_twice)
    assert sent[0] == sent[1]
    return sent[0]


@pytest.mark.parametrize("host", ["127.0.0.1:8181", "localhost:8181", "LOCALHOST:8181", "[::1]:8181", "localhost"])
def test_a_request_for_this_server_is_let_in(host: str) -> None:
    assert knock(("host", host)) == 200
    assert knock(("host", host), ("origin", f"http://{host.lower()}"), ("sec-fetch-site", "same-origin")) == 200
    assert knock(("host", host), ("sec-fetch-site", "none"), method="POST") == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("127.0.0.1:8182", 421),
        ("192.0.2.1:8181", 421),
        ("localhost.evil.example:8181", 421),
        ("127.0.0.1:8181@evil", 400),
        ("evil@127.0.0.1:8181", 400),
        ("localhost.:8181", 400),
        ("127.0.0.1.:8181", 400),
        ("127.0.0.1:8181.", 400),
        ("127.0.0.1:", 400),
        ("127.0.0.1:0", 400),
        ("127.0.0.1:99999", 400),
        ("127.0.0.1:+8181", 400),
        ("127.0.0.1:8181/", 400),
        ("127.0.0.1 :8181", 400),
        ("127.0.0.1:8181,evil.example", 400),
        ("http://127.0.0.1:8181", 400),
        ("::1", 400),
        ("", 400),
    ],
)
def test_another_or_malformed_host_is_refused(host: str, status: int) -> None:
    assert knock(("host", host)) == status


def test_a_second_host_or_origin_header_or_none_is_refused() -> None:
    assert knock() == 400
    assert knock(OWN, OWN) == 400
    assert knock(OWN, ("host", "evil.example")) == 400
    origin = ("origin", "http://127.0.0.1:8181")
    assert knock(OWN, origin) == 200
    assert knock(OWN, origin, origin) == 400
    assert knock(OWN, origin, ("origin", "https://evil.example")) == 400
    assert knock(OWN, ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")) == 400


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "header",
    [
        ("origin", "https://evil.example"),
        ("origin", "http://127.0.0.1:3000"),
        ("origin", "http://localhost:8181"),
        ("origin", "http://127.0.0.1"),
        ("origin", "http://127.0.0.1:8181@evil.example"),
        ("origin", "null"),
        ("origin", ""),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "anything"),
    ],
)
def test_a_request_of_a_foreign_page_is_refused_also_to_read(method: str, header: tuple[str, str]) -> None:
    assert knock(OWN, header, method=method) == 403
    assert knock(OWN, header, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image"), method=method) == 403


def test_a_link_of_a_foreign_page_leads_to_html_pages_only() -> None:
    assert knock(*LINK, DOCUMENT) == 200
    assert knock(*LINK, DOCUMENT, path="/docs/operations") == 200
    assert knock(*LINK, DOCUMENT, path="/sparql") == 200
    assert knock(*LINK, DOCUMENT, path="/sparql", query=b"query=ASK{}") == 403
    for path in ("/tools", "/tools/health", "/mcp", "/health", "/graphs", "/sparql/queries", "/shacl", "/admin/query"):
        assert knock(*LINK, DOCUMENT, path=path) == 403, path
    assert knock(*LINK, DOCUMENT, method="POST") == 403
    assert knock(*LINK, ("sec-fetch-dest", "iframe")) == 403
    assert knock(*LINK[:-1], DOCUMENT, ("accept", "*/*")) == 403
    assert knock(*LINK, DOCUMENT, ("origin", "https://evil.example"), method="POST") == 403


def test_further_origins_are_let_in_by_a_setting() -> None:
    page, other = "https://graph.example:8443", "https://evil.example"
    headers = (OWN, ("origin", page), ("sec-fetch-site", "cross-site"))
    assert knock(*headers) == 403
    assert knock(*headers, origins=(page,)) == 200
    assert knock(OWN, ("origin", other), origins=(page,)) == 403
    assert knock(("host", "graph.example:8443"), origins=(page,)) == 200
    assert knock(("host", "graph.example:8444"), origins=(page,)) == 421


def test_the_setting_of_origins_takes_no_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADCITE_ALLOWED_ORIGINS", "http://localhost:9000 https://graph.example")
    assert [str(url) for url in Settings(_env_file=None).allowed_origins] == [
        "http://localhost:9000/",
        "https://graph.example/",
    ]
    for wrong in ("http://localhost:9000/page", "http://me@localhost:9000", "localhost"):
        monkeypatch.setenv("QUADCITE_ALLOWED_ORIGINS", wrong)
        with pytest.raises(ValueError):
            Settings(_env_file=None)


def test_parse_host_returns_name_and_port() -> None:
    assert parse_host("[::1]:80") == ("::1", 80)
    assert parse_host("Example.ORG") == ("example.org", None)
    assert parse_host("a" * 300) is None


def test_pages_of_further_origins_can_read_the_answers(tmp_path: Path) -> None:
    page = "https://graph.example"
    settings = Settings(data_dir=tmp_path, query_workers=1, allowed_origins=page, _env_file=None)  # type: ignore[arg-type]
    store = OxigraphStore(tmp_path)
    with KnowledgeGraph(settings, store, WordIndex(), QueryPool(store, settings)) as kg:  # type: ignore[arg-type]
        client = TestClient(create_app(kg), base_url="http://127.0.0.1")
        asked = {"Origin": page, "Sec-Fetch-Site": "cross-site"}
        answer = client.get("/tools", headers=asked)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, page)
        preflight = client.options("/tools/search", headers={**asked, "Access-Control-Request-Method": "POST"})
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, page)
        foreign = client.options(
            "/tools/search", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        )
        assert (foreign.status_code, foreign.headers.get("access-control-allow-origin")) == (403, None)


@pytest.mark.parametrize(
    ("proxies", "peer", "clients"),
    [
        ("", "127.0.0.1", 1),
        ("", "198.51.100.4", 1),
        ("10.0.0.0/8 192.0.2.1", "127.0.0.1", 1),
        ("10.0.0.0/8 192.0.2.1", "10.1.2.3", 35),
        ("127.0.0.1", "127.0.0.1", 35),
    ],
)
def test_forwarded_addresses_count_only_from_proxies_that_the_settings_name(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, proxies: str, peer: str, clients: int
) -> None:
    own = Settings(trusted_proxies=proxies, _env_file=None).trusted_proxies  # type: ignore[call-arg, arg-type]
    monkeypatch.setattr(kg, "settings", kg.settings.model_copy(update={"trusted_proxies": own}))
    names: set[str] = set()
    run = FairLimiter.run
    monkeypatch.setattr(
        FairLimiter,
        "run",
        lambda self, client, *given, **more: (names.add(client), run(self, client, *given, **more))[1],
    )
    client = TestClient(create_app(kg), base_url="http://127.0.0.1", client=(peer, 50_000))
    for number in range(35):
        address = f"203.0.113.{number}"
        headers = {"X-Forwarded-For": address, "Forwarded": f"for={address}", "X-Real-IP": address}
        assert client.post("/tools/health", json={}, headers=headers).status_code == 200
    assert len(names) == clients


def test_all_addresses_of_this_machine_are_one_client() -> None:
    assert {get_peer({"client": (f"127.0.0.{number}", 1)}) for number in range(1, 36)} == {"127.0.0.1"}
