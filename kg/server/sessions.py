"""Sessions of browsers: who signs in on a page may then read the other pages, and send their forms.

A token or an identity provider opens a session, which is kept in the memory of the server: it ends when the server
does, after `IDLE_S` without a request, after `LASTS_S` in any case, when its token is revoked or expires, or by signing
out.
The browser has its name in a cookie that scripts cannot read (HttpOnly) and that requests of other sites do not carry
(SameSite=Strict; over https also Secure, with a ``__Host-`` name). Only its hash is kept here.

Forms (`kg.server.pages.sign_in`) have all scopes of a session, and the CSRF token of it. Where accounts are required,
the cookie also reads pages, graphs, tools and SPARQL, with the scopes in `kg.server.authentication.BROWSED`. Nothing
else is written by a cookie: tools that write, SPARQL updates and writes of graphs need a token in the request.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from starlette.requests import Request

from kg.access.actors import Actor
from kg.errors import ForbiddenError
from kg.server.authentication import Accounts

COOKIE: Final = "quadcite-session"
CSRF_FIELD: Final = "csrf"
MOST: Final = 1_024
"""Maximum sessions at a time. A further one ends the one that was used least recently."""
IDLE_S: Final = 3_600.0
LASTS_S: Final = 12 * 3_600.0

Form = Mapping[str, str]


@dataclass(slots=True)
class Session:
    """A browser that is signed in. Times are of a monotonic clock."""

    actor: Actor
    secret: str | None = field(repr=False)
    """The token that opened it, which is verified again with each request. None: a proxy named the user."""
    csrf: str = field(repr=False)
    began: float
    used: float


@dataclass(slots=True)
class Sessions:
    """The sessions of a server, for the holders of its `accounts`."""

    accounts: Accounts
    clock: Callable[[], float] = time.monotonic
    _sessions: OrderedDict[bytes, Session] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), init=False, repr=False)

    def open(self, actor: Actor, secret: str | None) -> str:
        """Open a session for the holder of a token, and return its name."""
        name, now = secrets.token_urlsafe(32), self.clock()
        with self._lock:
            self._sessions[_hash(name)] = Session(actor, secret, secrets.token_urlsafe(32), now, now)
            while len(self._sessions) > MOST:
                self._sessions.popitem(last=False)
        return name

    async def check(self, request: Request) -> Session | None:
        """Find the session of the browser that sent `request`. End it if its token is no longer valid."""
        session = self.find(request)
        if session is None:
            return None
        if session.secret is None:
            actor = self.accounts.find_forwarded(request.headers)
        else:
            actor = await self.accounts.find_holder(session.secret)
        if actor is None or actor.name != session.actor.name:
            self.close(request)
            return None
        session.actor = actor
        return session

    def find(self, request: Request) -> Session | None:
        """Find the session of the browser that sent `request`."""
        name = request.cookies.get(name_cookie(request, COOKIE))
        if not name or len(name) > 100:
            return None
        key, now = _hash(name), self.clock()
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if now - session.used > IDLE_S or now - session.began > LASTS_S:
                del self._sessions[key]
                return None
            session.used = now
            self._sessions.move_to_end(key)
            return session

    def close(self, request: Request) -> None:
        """End the session of the browser that sent `request`, if it has one."""
        with self._lock:
            self._sessions.pop(_hash(request.cookies.get(name_cookie(request, COOKIE), "")), None)

    def __len__(self) -> int:
        return len(self._sessions)

    def require(self, request: Request, form: Form) -> Session:
        """Get the session that sent a form. Raises ForbiddenError without one, and for a wrong CSRF token."""
        session = self.find(request)
        if session is None:
            raise ForbiddenError("Nobody is signed in, or the session has ended. Sign in at /login, and send it again.")
        if not hmac.compare_digest(form.get(CSRF_FIELD, "").encode(), session.csrf.encode()):
            raise ForbiddenError("The form has no valid token of this session. Open its page again, and send it there.")
        return session

    def sign(self, nonce: str) -> str:
        """Compute the CSRF token of the form for signing in, for the browser with `nonce` in a cookie."""
        return hmac.new(self._key, nonce.encode(), hashlib.sha256).hexdigest()


def name_cookie(request: Request, name: str) -> str:
    """Get the name of a cookie: over https browsers take it from this host alone."""
    return f"__Host-{name}" if request.url.scheme == "https" else name


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
