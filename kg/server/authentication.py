"""Authentication: one layer of the application identifies the sender of each HTTP request, once.

The actor is the value of `SENDER` while the request is answered, in its tasks and threads. Nothing else reads the
credentials of a request. Without accounts (`Accounts.required`) a request without credentials is one of everyone on
this machine. With accounts it is answered by 401, or by the page for signing in. Every request with wrong credentials
is answered by 401, except for the paths that everybody may read (`Accounts.is_public`).
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kg.access.actors import EVERYONE, READ, SCOPES, SEARCH, SPARQL, Actor
from kg.access.tokens import PREFIX, Tokens, hash_secret
from kg.errors import QuadciteError, UnauthorizedError
from kg.knowledge_graph import SENDER
from kg.server.auth import MACHINE_PATHS, LocalToken
from kg.server.negotiation import negotiate
from kg.server.problem_details import PROBLEM, problem
from kg.settings import Settings
from kg.text import quoted

if TYPE_CHECKING:
    from fastmcp.server.auth import AccessToken, AuthProvider

    from kg.server.sessions import Sessions

log = logging.getLogger(__name__)

NOBODY: Final = Actor("nobody", frozenset())
"""The sender of a request without credentials, where accounts are configured and the path is public."""
BROWSED: Final = frozenset({READ, SEARCH, SPARQL})
"""The scopes that a session of a browser gives outside of forms: a cookie alone never writes."""
KEPT_S: Final = 60.0
"""Seconds for which the answer of an identity provider about a token counts. It is asked again after them."""
MOST_CHARACTERS: Final = 16_384
_KEPT: Final = 1_024
_PUBLIC: Final = frozenset({"/login", "/login/oauth", "/login/callback", "/health/live", "/health/ready"})
_METADATA: Final = "/.well-known/oauth-protected-resource"


class _Verified:
    """The senders of tokens of an identity provider, by the hashes of these, for some seconds."""

    def __init__(self) -> None:
        self._known: Final[OrderedDict[bytes, tuple[float, Actor]]] = OrderedDict()
        self._asking: Final[dict[bytes, asyncio.Task[AccessToken | None]]] = {}

    async def find(self, secret: str, provider: AuthProvider, settings: Settings) -> Actor | None:
        key = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        if (known := self._known.get(key)) is not None and time.time() < known[0]:
            return known[1]
        # Requests that arrive together ask once.
        if (asking := self._asking.get(key)) is None:
            asking = self._asking[key] = asyncio.create_task(_verify(provider, secret))
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        token = await asyncio.shield(asking)
        if token is None or (actor := to_actor(token, settings)) is None:
            self._known.pop(key, None)
            return None
        until = time.time() + KEPT_S
        self._known[key] = min(until, token.expires_at or until), actor
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return actor


async def _verify(provider: AuthProvider, secret: str) -> AccessToken | None:
    token: AccessToken | None = await provider.verify_token(secret)
    return token


@dataclass(frozen=True)
class Accounts:
    """The credentials that a server accepts. Without any, everyone on this machine may read and write.

    `token` is the local one, of the admin. `provider` verifies the tokens of an identity provider.
    """

    token: LocalToken | None = None
    tokens: Tokens | None = None
    settings: Settings | None = None
    provider: AuthProvider | None = None
    always: bool = False
    """Whether requests need credentials even if the file of tokens is removed: others reach the server."""
    routes: tuple[Route, ...] = ()
    """The routes of `provider`: of OAuth, and of its metadata."""
    _verified: _Verified = field(default_factory=_Verified, init=False, repr=False, compare=False)

    @cached_property
    def public_paths(self) -> frozenset[str]:
        """The paths of the routes of the provider, which answers them itself."""
        return frozenset(route.path for route in self.routes)

    @property
    def has_pages(self) -> bool:
        """Whether a browser can sign in with the provider (`kg.server.pages.oauth_sign_in`)."""
        return "/authorize" in self.public_paths

    @property
    def required(self) -> bool:
        """Whether requests need credentials: an identity provider or a proxy is configured, or a token was made."""
        if self.always or self.provider is not None or (self.settings is not None and self.settings.proxy_user_header):
            return True
        return self.tokens is not None and self.tokens.exist()

    def is_public(self, path: str) -> bool:
        """Return whether everybody may read a path: signing in, its style sheet, the probe of the process."""
        return path in _PUBLIC or path in self.public_paths or path.startswith("/static/")

    async def identify(self, request: Request) -> Actor | None:
        """Identify the sender of `request`. None: it has no credentials, and needs some.

        Raises UnauthorizedError for invalid credentials.
        """
        given = self._find_secret(request.headers)
        if given is not None:
            if (actor := await self.find_holder(given)) is not None:
                return actor
            raise UnauthorizedError(
                "Invalid, expired or revoked token. `kg token new` makes one. The local token, in the file 'token' of "
                "the data directory, changes with each start of the server."
            )
        if (named := self.find_forwarded(request.headers)) is not None:
            return named
        return None if self.required else EVERYONE

    async def find_holder(self, secret: str) -> Actor | None:
        """Find the actor that holds a token; None for an unknown one."""
        if not secret or len(secret) > MOST_CHARACTERS:
            return None
        if self.token is not None and (actor := self.token.identify(secret)) is not None:
            return actor
        if secret.startswith(PREFIX):
            return await self._find_token(hash_secret(secret))
        if self.provider is None or self.settings is None:
            return None
        return await self._verified.find(secret, self.provider, self.settings)

    async def _find_token(self, digest: str) -> Actor | None:
        if self.tokens is None or (token := self.tokens.find(digest)) is None:
            return None
        if self.tokens.note_use(token):
            await asyncio.get_running_loop().run_in_executor(None, self.tokens.write_uses)
        return token.actor

    def build_challenge(self, request: Request) -> str:
        """Build the header WWW-Authenticate of a response 401 (RFC 6750, RFC 9728)."""
        parts = ['realm="quadcite"']
        if "authorization" in request.headers:
            parts.append('error="invalid_token"')
        if f"{_METADATA}{request.url.path}" in self.public_paths:
            parts.append(f'resource_metadata="{self.origin}{_METADATA}{request.url.path}"')
        elif _METADATA in self.public_paths:
            parts.append(f'resource_metadata="{self.origin}{_METADATA}"')
        return "Bearer " + ", ".join(parts)

    @property
    def origin(self) -> str:
        """The address of the server for its clients, without a slash at the end; empty if no setting has it."""
        url = self.settings.public_url if self.settings is not None else None
        return str(url).rstrip("/") if url is not None else ""

    def _find_secret(self, headers: Headers) -> str | None:
        """Find the token in the headers of a request. Raises UnauthorizedError for credentials of another kind."""
        own = self.settings.token_header if self.settings is not None else ""
        if own and (given := headers.get(own)) is not None:
            return given.strip()
        header = headers.get("authorization")
        if header is None:
            return None
        scheme, _, given = header.partition(" ")
        if scheme.lower() == "bearer":
            return given.strip()
        if own:  # the header is one of the proxy
            return None
        raise UnauthorizedError(
            f"Unsupported authorization scheme {quoted(scheme)}. Send `Authorization: Bearer TOKEN`."
        )

    def find_forwarded(self, headers: Headers) -> Actor | None:
        """Find the user whom the proxy names. `ForwardedUser` has removed the headers of everybody else."""
        settings = self.settings
        if settings is None or not settings.proxy_user_header:
            return None
        names = [name for given in headers.getlist(settings.proxy_user_header) if (name := given.strip())]
        if not names:
            return None
        if len(names) > 1:
            raise UnauthorizedError(f"{len(names)} headers {settings.proxy_user_header}. The proxy must send one.")
        lists = headers.getlist(settings.proxy_groups_header) if settings.proxy_groups_header else []
        groups = [group for each in lists for part in each.split(",") if (group := part.strip())]
        return _build_actor(f"{names[0]}@proxy", (), groups, {}, settings)


def to_actor(token: AccessToken, settings: Settings) -> Actor | None:
    """Convert the claims of an identity provider about a sender. None without a name that can be recorded.

    The name has the host of the issuer, so that it is never that of a token or of another issuer's user.
    """
    claims = token.claims or {}
    name = claims.get(settings.auth_name_claim) or (token.subject if settings.auth_name_claim == "sub" else None)
    if not isinstance(name, str | int) or isinstance(name, bool) or not str(name).strip():
        log.warning(
            "A token has no claim %r, the name of the sender (QUADCITE_AUTH_NAME_CLAIM).", settings.auth_name_claim
        )
        return None
    issuer = urlsplit(str(claims.get("iss", ""))).hostname or "oauth"
    groups = _list(claims.get(settings.auth_group_claim))
    roles = _list(claims.get("roles"))
    return _build_actor(f"{name}@{issuer}", token.scopes, groups, claims, settings, roles)


def _build_actor(
    name: str,
    granted: Iterable[str],
    groups: Iterable[str],
    claims: Mapping[str, Any],
    settings: Settings,
    roles: Iterable[str] = (),
) -> Actor | None:
    if len(name) > 256 or not name.isprintable():
        return None
    groups = tuple(groups)
    scopes = set(settings.auth_default_scopes)
    for each in (*granted, *roles, *groups):
        scopes.update(settings.auth_scopes.get(each, ()))
    # Not of roles and groups: an `admin` of the organization is none of this server.
    scopes.update(scope for each in granted if (scope := each.removeprefix("kg:")) in SCOPES)
    kept = {each: value for each in settings.auth_claims if (value := _to_claim(claims.get(each))) is not None}
    return Actor(name, frozenset(scopes), frozenset(groups), kept)


def _to_claim(value: Any) -> str | bool | int | tuple[str, ...] | None:
    if isinstance(value, str | bool | int):
        return value
    return tuple(map(str, value)) if isinstance(value, list) else None


def _list(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


class ForwardedUser:
    """An application that gets the headers that name a user from `proxies` only. It must see the peer itself."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app: Final = app
        names = (settings.proxy_user_header, settings.proxy_groups_header)
        self._names: Final = frozenset(name.encode() for name in names if name)
        self._proxies: Final = settings.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, without these headers if its peer is not a proxy."""
        if scope["type"] == "http" and any(name in self._names for name, _ in scope["headers"]):
            peer = (scope.get("client") or ("",))[0]
            if not _is_in(peer, self._proxies):
                headers = [(name, value) for name, value in scope["headers"] if name not in self._names]
                scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)


def _is_in(peer: str, networks: Iterable[Any]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return any(address in network for network in networks)


class Authentication:
    """An application whose requests have an actor: the value of `SENDER`."""

    def __init__(self, app: ASGIApp, accounts: Accounts, sessions: Sessions | None = None) -> None:
        self._app: Final = app
        self._accounts: Final = accounts
        self._sessions: Final = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of an actor, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            actor = await self._identify(request)
        except QuadciteError as error:
            if not (isinstance(error, UnauthorizedError) and self._accounts.is_public(scope["path"])):
                await self._refuse(request, error)(scope, receive, send)
                return
            actor = NOBODY
        sender = SENDER.set(actor)
        try:
            await self._app(scope, receive, send)
        finally:
            SENDER.reset(sender)

    async def _identify(self, request: Request) -> Actor:
        # Also where nothing else asks for it, so that a session never outlives the token that opened it.
        session = await self._sessions.check(request) if self._sessions is not None else None
        actor = await self._accounts.identify(request)
        if actor is not None:
            return actor
        if session is not None:
            return replace(session.actor, scopes=session.actor.scopes & BROWSED)
        raise UnauthorizedError("This server requires credentials. Send a token: `Authorization: Bearer TOKEN`.")

    def _refuse(self, request: Request, error: QuadciteError) -> Response:
        path = request.url.path
        if (
            isinstance(error, UnauthorizedError)
            and request.method in ("GET", "HEAD")
            and not f"{path}/".startswith(MACHINE_PATHS)
            and negotiate(request.headers.getlist("accept"), (PROBLEM, "text/plain", "text/html")) == "text/html"
        ):
            to = path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?to={quote(to, safe='')}", 303, headers={"Cache-Control": "no-store"})
        response = problem(request, error)
        if isinstance(error, UnauthorizedError):
            response.headers["WWW-Authenticate"] = self._accounts.build_challenge(request)
        return response
