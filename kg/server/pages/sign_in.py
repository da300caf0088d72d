"""Signing in and out (``/login``, ``/logout``), and the routes of forms that only a browser with a session may send."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal
from urllib.parse import parse_qsl

import anyio.from_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, request_response

from kg.access.actors import Actor
from kg.access.audit import note
from kg.errors import ForbiddenError, InvalidInputError, QuadciteError, UnauthorizedError
from kg.knowledge_graph import SENDER
from kg.server import request_bodies
from kg.server.html import page
from kg.server.mcp import CancelOnDisconnect
from kg.server.negotiation import media_type_of
from kg.server.pages.site import Site, problem_page
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.server.sessions import COOKIE, CSRF_FIELD, IDLE_S, LASTS_S, Form, Sessions, name_cookie

LOGIN_COOKIE: Final = "quadcite-login"
FORM_BYTES: Final = 64_000
FORM_FIELDS: Final = 100
_FORM: Final = "application/x-www-form-urlencoded"


def form_route(
    site: Site,
    path: str,
    answer: Callable[[Request, Form], Response],
    *,
    show: Callable[[Request], Response] | None = None,
) -> Route:
    """Build a route whose forms only a browser that is signed in may send.

    `answer` gets a form with a valid CSRF token. It runs in a thread of the tools, and `SENDER` is the actor of the
    session. `show` answers GET; without it only POST is allowed.
    """

    def run(request: Request, form: Form) -> Response:
        session = site.sessions.require(request, form)
        sender = SENDER.set(session.actor)
        try:
            return answer(request, form)
        finally:
            SENDER.reset(sender)

    return _build_route(site, path, run, show)


def _build_route(
    site: Site,
    path: str,
    send: Callable[[Request, Form], Response],
    show: Callable[[Request], Response] | None,
    parameters: Sequence[str] = (),
) -> Route:
    allowed = "GET, HEAD, POST, OPTIONS" if show is not None else "POST, OPTIONS"

    async def handle(request: Request) -> Response:
        request.state.parameters = parameters
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": allowed})
        if request.method not in allowed.split(", "):
            return problem_page(request, method_not_allowed(request, allowed))
        try:
            if request.method == "POST":
                form = await _read_form(request)
                return await site.threads.run(partial(send, request, form))
            assert show is not None  # noqa: S101 -- GET is allowed only with it
            return await site.threads.run(partial(show, request))
        except (HttpError, QuadciteError) as error:
            return problem_page(request, error)

    app = CancelOnDisconnect(request_response(answering(handle)))
    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Route(path, app, methods=methods, name=path)


async def _read_form(request: Request) -> Form:
    media_type, _ = media_type_of(request.headers.get("content-type", ""))
    if media_type != _FORM:
        raise HttpError(415, "unsupported_media_type", f"Unsupported Content-Type. Send a form ({_FORM}).")
    body = await request_bodies.read(request, FORM_BYTES)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS)
    except ValueError:
        raise InvalidInputError(f"The form is not UTF-8, or has more than {FORM_FIELDS} fields.") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise InvalidInputError("The form has a field twice.")
    return form


def routes(site: Site) -> list[Route]:
    """Build the routes for signing in and out."""
    sessions = site.sessions

    def show(request: Request) -> Response:
        nonce = request.cookies.get(name_cookie(request, LOGIN_COOKIE)) or secrets.token_urlsafe(16)
        context = {
            "session": sessions.find(request),
            "csrf": sessions.sign(nonce),
            "to": find_local_path(request.query_params.get("to", "")),
            "wrong": "wrong" in request.query_params,
            "forwarded": sessions.accounts.find_forwarded(request.headers),
            "provided": sessions.accounts.has_pages,
            "possible": sessions.accounts.token is not None or sessions.accounts.required,
        }
        response = page(request, "login.html", context, headers={"Cache-Control": "no-store"})
        set_cookie(request, response, LOGIN_COOKIE, nonce, IDLE_S)
        return response

    def sign_in(request: Request, form: Form) -> Response:
        nonce = request.cookies.get(name_cookie(request, LOGIN_COOKIE), "")
        if not nonce or not hmac.compare_digest(form.get(CSRF_FIELD, "").encode(), sessions.sign(nonce).encode()):
            raise ForbiddenError("The form was not sent from the page /login of this server, or cookies are off.")
        to = find_local_path(form.get("to", ""))
        secret = form.get("token", "").strip()
        if secret:
            actor = anyio.from_thread.run(sessions.accounts.find_holder, secret)
        else:  # whom the proxy names
            actor = sessions.accounts.find_forwarded(request.headers)
        if actor is None:
            note(outcome=UnauthorizedError.code)
            return RedirectResponse("/login?wrong=1", 303)
        response = RedirectResponse(to, 303, headers={"Cache-Control": "no-store"})
        start_session(request, response, sessions, actor, secret or None)
        return response

    def sign_out(request: Request, form: Form) -> Response:
        sessions.close(request)
        response = RedirectResponse("/login", 303, headers={"Cache-Control": "no-store"})
        _delete_cookie(request, response, COOKIE)
        return response

    return [
        _build_route(site, "/login", sign_in, show, ("to", "wrong")),
        form_route(site, "/logout", sign_out),
    ]


def start_session(request: Request, response: Response, sessions: Sessions, actor: Actor, secret: str | None) -> None:
    """Open a session for the browser that sent `request`, and give it the cookie."""
    sessions.close(request)  # a name that the browser had before is worth nothing from here on
    set_cookie(request, response, COOKIE, sessions.open(actor, secret), LASTS_S)
    _delete_cookie(request, response, LOGIN_COOKIE)


def set_cookie(
    request: Request,
    response: Response,
    name: str,
    value: str,
    seconds: float,
    samesite: Literal["lax", "strict"] = "strict",
) -> None:
    """Set a cookie that scripts cannot read, under the name that `name_cookie` gives it."""
    secure = request.url.scheme == "https"
    response.set_cookie(
        name_cookie(request, name), value, int(seconds), path="/", secure=secure, httponly=True, samesite=samesite
    )


def _delete_cookie(request: Request, response: Response, name: str) -> None:
    secure = request.url.scheme == "https"
    response.delete_cookie(name_cookie(request, name), path="/", secure=secure, httponly=True, samesite="strict")


def find_local_path(given: str) -> str:
    """Return `given` if it is a path of this server, else the path of the status page."""
    plain = given.startswith("/") and not given.startswith(("//", "/\\")) and given.isascii() and given.isprintable()
    return given if plain and len(given) < 2_000 and "\\" not in given else "/status"
