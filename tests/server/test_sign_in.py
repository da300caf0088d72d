"""Signing in by the local token: sessions, CSRF tokens, expiry, foreign origins, and what a session does not open."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient

from kg.access.actors import HOLDER
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.server import sessions as module
from kg.server.app import create_app
from kg.server.auth import LocalToken
from kg.server.authentication import Accounts
from kg.server.pages import sign_in
from kg.server.pages.sign_in import FORM_BYTES, find_local_path, form_route
from kg.server.pages.site import Site
from kg.server.sessions import COOKIE, IDLE_S, LASTS_S, MOST, Sessions

BASE = "http://127.0.0.1:8000"
BROWSER = {"Accept": "text/html"}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def token(fixtures: KnowledgeGraph) -> Iterator[LocalToken]:
    held = LocalToken(fixtures.settings.data_dir)
    yield held
    held.remove()


@pytest.fixture
def secret(fixtures: KnowledgeGraph, token: LocalToken) -> str:
    return fixtures.settings.directory.token.read_text()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(
    fixtures: KnowledgeGraph, token: LocalToken, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    """The application, with a form at ``/form`` that answers the name of its sender."""

    def send(request: Request, form: module.Form) -> Response:
        return PlainTextResponse(f"{SENDER.get().name} {form.get('note', '')}")

    def show(request: Request) -> Response:
        return PlainTextResponse(f"shown to {SENDER.get().name}")

    def routes(site: Site) -> list:
        site.sessions.clock = clock
        return [*actual(site), form_route(site, "/form", send, show=show)]

    actual = sign_in.routes
    monkeypatch.setattr(sign_in, "routes", routes)
    with TestClient(create_app(fixtures, accounts=Accounts(token)), base_url=BASE, follow_redirects=False) as client:
        yield client


def csrf_of(text: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', text)
    assert found is not None
    return found[1]


def enter(client: TestClient, secret: str, **more: str) -> Response:
    form = client.get("/login", headers=BROWSER)
    return client.post("/login", data={"csrf": csrf_of(form.text), "token": secret, **more}, headers=BROWSER)  # type: ignore[return-value]


def csrf(client: TestClient) -> str:
    return csrf_of(client.get("/login", headers=BROWSER).text)


def test_the_token_buys_a_session_that_scripts_and_other_sites_cannot_use(app: TestClient, secret: str) -> None:
    answer = enter(app, secret, to="/form")
    assert (answer.status_code, answer.headers["location"]) == (303, "/form")
    cookie = next(each for each in answer.headers.get_list("set-cookie") if each.startswith(COOKIE))
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert secret not in cookie
    sent = app.post("/form", data={"csrf": csrf(app), "note": "ü"})
    assert (sent.status_code, sent.text) == (200, f"{HOLDER.name} ü")
    assert app.get("/form").text == "shown to local"


def test_another_token_opens_nothing(app: TestClient) -> None:
    for wrong in ("x", "", "é" * 40, "\ud800"):
        form = app.get("/login", headers=BROWSER)
        answer = app.post(
            "/login", data={"csrf": csrf_of(form.text), "token": wrong.encode(errors="replace")}, headers=BROWSER
        )
        assert answer.headers["location"] == "/login?wrong=1"
        assert COOKIE not in app.cookies
    assert 'role="alert"' in app.get("/login?wrong=1", headers=BROWSER).text


def test_a_form_needs_the_csrf_token_of_its_own_session(app: TestClient, secret: str) -> None:
    assert app.post("/form", data={"csrf": "x"}).status_code == 403
    enter(app, secret)
    mine = csrf(app)
    for wrong in ({"other": "x"}, {"csrf": ""}, {"csrf": mine[:-1]}, {"csrf": "é"}):
        assert app.post("/form", data=wrong).status_code == 403
    first = dict(app.cookies)
    app.cookies.clear()
    enter(app, secret)
    assert app.post("/form", data={"csrf": mine}).status_code == 403
    assert app.post("/form", data={"csrf": csrf(app)}).status_code == 200
    assert first[COOKIE] != app.cookies[COOKIE]


def test_signing_in_needs_the_form_of_this_browser(app: TestClient, secret: str) -> None:
    other = csrf_of(app.get("/login", headers=BROWSER).text)
    app.cookies.clear()
    assert app.post("/login", data={"csrf": other, "token": secret}).status_code == 403
    app.get("/login")
    assert app.post("/login", data={"csrf": other, "token": secret}).status_code == 403
    assert COOKIE not in app.cookies


def test_a_name_that_an_attacker_set_is_not_the_session(app: TestClient, secret: str) -> None:
    app.cookies.set(COOKIE, "a-name-from-elsewhere", domain="127.0.0.1", path="/")
    answer = enter(app, secret)
    given = [each for each in answer.headers.get_list("set-cookie") if each.startswith(COOKIE)]
    assert len(given) == 1
    assert "a-name-from-elsewhere" not in given[0]
    app.cookies.clear()
    app.cookies.set(COOKIE, "a-name-from-elsewhere")
    assert app.post("/form", data={"csrf": "x"}).status_code == 403


def test_pages_of_other_origins_send_no_form(app: TestClient, secret: str) -> None:
    enter(app, secret)
    mine = csrf(app)
    for headers in ({"Origin": "http://127.0.0.1:9000"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
        for path in ("/form", "/login", "/logout"):
            assert app.post(path, data={"csrf": mine}, headers=headers).status_code == 403
    assert app.post("/form", data={"csrf": mine}, headers={"Origin": BASE}).status_code == 200


def test_sessions_end_without_use_and_in_any_case(app: TestClient, secret: str, clock: Clock) -> None:
    enter(app, secret)
    mine = csrf(app)
    for _ in range(int(LASTS_S / IDLE_S) + 2):
        clock.now += IDLE_S - 60
        status = app.post("/form", data={"csrf": mine}).status_code
    assert status == 403
    enter(app, secret)
    clock.now += IDLE_S + 1
    assert app.post("/form", data={"csrf": csrf(app)}).status_code == 403


def test_signing_out_ends_the_session_on_the_server(app: TestClient, secret: str) -> None:
    enter(app, secret)
    mine, kept = csrf(app), app.cookies[COOKIE]
    assert app.post("/logout", data={"csrf": "x"}).status_code == 403
    assert app.get("/logout").status_code == 405
    shown = app.get("/logout", headers={"Accept": "text/html"})
    assert (shown.status_code, shown.headers["allow"]) == (405, "POST, OPTIONS")
    assert shown.headers["content-type"].startswith("text/html")
    assert app.post("/logout", data={"csrf": mine}).headers["location"] == "/login"
    app.cookies.set(COOKIE, kept)
    assert app.post("/form", data={"csrf": mine}).status_code == 403


def test_a_session_opens_forms_and_not_the_protocols(app: TestClient, secret: str) -> None:
    enter(app, secret)
    assert app.post("/admin/query", json={"query": "ASK {}", "media_type": "application/json"}).status_code == 403
    assert app.post("/tools/review_claim", json={"claim": "x", "verdict": "accept"}).status_code == 403


def test_the_number_of_sessions_is_bounded(token: LocalToken, secret: str) -> None:
    sessions = Sessions(Accounts(token))
    names = [sessions.open(HOLDER, secret) for _ in range(MOST + 5)]
    assert len(sessions) == MOST
    assert len(set(names)) == MOST + 5
    assert secret not in repr(sessions)


def test_nobody_signs_in_without_a_token(fixtures: KnowledgeGraph) -> None:
    with TestClient(create_app(fixtures), base_url=BASE, follow_redirects=False) as client:
        assert 'name="token"' not in client.get("/login", headers=BROWSER).text


@pytest.mark.parametrize(
    "path", ["", "//evil.example", "/\\evil.example", "https://evil.example", "/a\nb", "/x\\y", "javascript:alert(1)"]
)
def test_signing_in_leads_only_to_pages_of_this_server(path: str) -> None:
    assert find_local_path(path) == "/status"


def test_signing_in_leads_back() -> None:
    assert find_local_path("/passage/x?span=1-2") == "/passage/x?span=1-2"


def test_other_bodies_than_forms_are_refused(app: TestClient, secret: str) -> None:
    enter(app, secret)
    assert app.post("/form", json={"csrf": csrf(app)}).status_code == 415
    assert (
        app.post(
            "/form", content=b"csrf=%FF", headers={"Content-Type": "application/x-www-form-urlencoded"}
        ).status_code
        == 400
    )
    doubled = f"csrf={csrf(app)}&csrf=x"
    assert (
        app.post("/form", content=doubled, headers={"Content-Type": "application/x-www-form-urlencoded"}).status_code
        == 400
    )
    assert app.post("/form", data={"csrf": csrf(app), "note": "x" * FORM_BYTES}).status_code == 413
