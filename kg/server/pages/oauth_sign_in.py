"""Signing in on a page with the identity provider: it begins at ``/login/oauth`` and ends at ``/login/callback``.

The browser is a client of the server's own authorization server (`kg.server.identity_providers`): authorization code
with PKCE. A sign-in in progress is kept in memory for ten minutes, and belongs to the browser that has its cookie.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from fastmcp.server.auth import OAuthProxy
from mcp.server.auth.provider import AuthorizationParams, AuthorizeError, TokenError
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from kg.errors import ForbiddenError, QuadciteError, UnauthorizedError
from kg.server.html import page
from kg.server.identity_providers import CALLBACK, find_authorization_server
from kg.server.pages.sign_in import find_local_path, set_cookie, start_session
from kg.server.pages.site import Site, problem_page
from kg.server.sessions import name_cookie

BEGIN: Final = "/login/oauth"
BEGUN_COOKIE: Final = "quadcite-oauth"
CLIENT: Final = "quadcite-pages"
BEGUN_S: Final = 600.0
_MOST: Final = 1_024


@dataclass(frozen=True, slots=True)
class _Begun:
    nonce: str
    verifier: str
    to: str
    time: float


def routes(site: Site) -> list[Route]:
    """Build the routes; none without a provider with which a browser can sign in."""
    accounts = site.sessions.accounts
    server = find_authorization_server(accounts.provider)
    return [] if server is None else _SignIn(site, server, accounts.origin).routes()


class _SignIn:
    def __init__(self, site: Site, server: OAuthProxy, origin: str) -> None:
        self._site: Final = site
        self._server: Final = server
        self._client: Final = OAuthClientInformationFull(
            client_id=CLIENT,
            client_name="Quadcite, in this browser",
            redirect_uris=[AnyUrl(origin + CALLBACK)],
            token_endpoint_auth_method="none",  # noqa: S106 -- the name of a method
        )
        self._begun: Final[OrderedDict[str, _Begun]] = OrderedDict()

    def routes(self) -> list[Route]:
        return [Route(BEGIN, self._begin, methods=["GET"]), Route(CALLBACK, self._end, methods=["GET"])]

    async def _begin(self, request: Request) -> Response:
        """Send the browser to the identity provider, by way of the consent page of the server."""
        await self._server.register_client(self._client.model_copy())
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        self._begun[state] = _Begun(
            nonce, verifier, find_local_path(request.query_params.get("to", "")), time.monotonic()
        )
        while len(self._begun) > _MOST:
            self._begun.popitem(last=False)
        client = await self._server.get_client(CLIENT)
        assert client is not None  # noqa: S101 -- it was registered
        assert self._client.redirect_uris is not None  # noqa: S101
        try:
            url = await self._server.authorize(
                client,
                AuthorizationParams(
                    state=state,
                    scopes=None,
                    code_challenge=_challenge(verifier),
                    redirect_uri=self._client.redirect_uris[0],
                    redirect_uri_provided_explicitly=True,
                ),
            )
        except AuthorizeError as error:
            return problem_page(request, ForbiddenError(f"The sign-in cannot begin: {error.error_description}."))
        response = RedirectResponse(url, 303, headers={"Cache-Control": "no-store"})
        # Lax: the browser comes back by a link of the identity provider.
        set_cookie(request, response, BEGUN_COOKIE, nonce, BEGUN_S, "lax")
        return response

    async def _end(self, request: Request) -> Response:
        """Exchange the code for a token, and open a session for its holder."""
        try:
            return await self._open(request)
        except QuadciteError as error:
            return problem_page(request, error)

    async def _open(self, request: Request) -> Response:
        given = request.query_params
        begun = self._begun.pop(given.get("state", ""), None)
        cookie = request.cookies.get(name_cookie(request, BEGUN_COOKIE), "")
        if (
            begun is None
            or time.monotonic() - begun.time > BEGUN_S
            or not hmac.compare_digest(cookie.encode("utf-8", "surrogatepass"), begun.nonce.encode())
        ):
            raise ForbiddenError("This sign-in was not begun in this browser, or too long ago. Begin again at /login.")
        if "error" in given:
            raise UnauthorizedError("The identity provider refused the sign-in. Begin again at /login.")
        client = await self._server.get_client(CLIENT)
        code = await self._server.load_authorization_code(client, given.get("code", "")) if client else None
        if client is None or code is None or not hmac.compare_digest(code.code_challenge, _challenge(begun.verifier)):
            raise UnauthorizedError("The code of the identity provider is invalid or was used. Begin again at /login.")
        try:
            token = await self._server.exchange_authorization_code(client, code)
        except TokenError as error:
            raise UnauthorizedError(f"The identity provider gave no token: {error.error_description}.") from error
        sessions = self._site.sessions
        actor = await sessions.accounts.find_holder(token.access_token)
        if actor is None:
            raise UnauthorizedError("The token of the identity provider is not accepted here. The log has the reason.")
        context = {"title": "Signed in", "name": actor.name, "to": begun.to}
        # Not a redirect: the browser would not send the cookie, since the request comes by a link of another site.
        headers = {"Cache-Control": "no-store", "Refresh": f"0; url={begun.to}"}
        response = page(request, "signed_in.html", context, headers=headers)
        start_session(request, response, sessions, actor, token.access_token)
        return response


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
