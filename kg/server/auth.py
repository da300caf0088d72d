"""The local token, which `kg.server.authentication` accepts, and the refusal of foreign web pages.

The server writes the local token into its data directory at each start, readable by its own user only. It has all
scopes. Without accounts the server binds loopback only (`kg.server.http_server.check_bind`), and every process of the
machine may read and write. A browser on this machine also runs pages of other people: `HostGuard` refuses their
requests.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kg.access.actors import EVERYONE, HOLDER, Actor
from kg.access.tokens import write_private
from kg.data_directory import DataDirectory
from kg.remote.http import is_loopback
from kg.text import quoted

if TYPE_CHECKING:  # the command line imports this module too, and starts faster without Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

_REMEMBERED: Final = 256
_HOST: Final = re.compile(
    r"(?P<name>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
)
_PORTS: Final = {"http": 80, "https": 443}
_CHECKED: Final = frozenset((b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"accept"))
_OWN_SITE: Final = frozenset(("same-origin", "none"))
"""Values of Sec-Fetch-Site for requests of the server's own pages and of the user (an address typed, a bookmark)."""
MACHINE_PATHS: Final = (
    "/admin/", "/graphs/", "/health/", "/mcp/", "/metrics/", "/sparql/queries/", "/shacl/", "/tools/", "/v1/",
)  # fmt: skip
"""Paths without HTML pages: no link of a foreign page leads there."""


class HostGuard:
    """Refuses requests that a foreign web page may have sent, before anything else of them is read.

    A page is foreign unless its origin (scheme, host and port) is the server's own or one of `origins`: another port of
    this machine is another program. Requests of foreign pages get 403, also those that only read, except that a link
    may lead to an HTML page. Requests for another host than this machine get 421 (DNS rebinding), and those whose
    headers can be understood in two ways 400.
    """

    def __init__(self, app: ASGIApp, origins: Iterable[str] = ()) -> None:
        self._inside: Final = app
        self._origins: Final = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._hosts: Final = {
            (parsed[0], parsed[1] or _PORTS[scheme])
            for scheme, _, host in (origin.partition("://") for origin in self._origins)
            if (parsed := parse_host(host)) is not None
        }
        self._known: Final[set[tuple[object, ...]]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "http":
            key = (*(scope.get("server") or ()), *(header for header in scope["headers"] if header[0] in _CHECKED))
            if key not in self._known and (refusal := self._check(scope, key)) is not None:
                from starlette.requests import Request

                from kg.server.problem_details import HttpError, problem

                await problem(Request(scope), HttpError(*refusal))(scope, receive, send)
                return
        await self._inside(scope, receive, send)

    def _check(self, scope: Scope, key: tuple[object, ...]) -> tuple[int, str, str] | None:
        """Return status, code and message for a request to refuse. Remember `key` of others, unless they are links."""
        headers: Mapping[str, list[str]] = defaultdict(list)
        for name, value in scope["headers"]:
            if name in _CHECKED:
                headers[name.decode("ascii")].append(value.decode("latin-1"))
        hosts, origins = headers["host"], headers["origin"]
        if len(hosts) != 1 or len(origins) > 1 or len(headers["sec-fetch-site"]) > 1:
            message = f"{len(hosts)} Host and {len(origins)} Origin headers. Send one Host and at most one Origin."
            return 400, "invalid_input", message
        host = parse_host(hosts[0])
        if host is None:
            return 400, "invalid_input", f"Invalid Host header {quoted(hosts[0])}. Send HOST or HOST:PORT."
        if not self._is_own_host(host, scope.get("server")):
            return (
                421,
                "misdirected_request",
                f"This server is not {quoted(hosts[0])}. Use the address that it printed at its start, or set "
                "QUADCITE_ALLOWED_ORIGINS for a tunnel or proxy.",
            )
        if not self._is_foreign(hosts[0], headers):
            if len(self._known) < _REMEMBERED:
                self._known.add(key)
            return None
        if _is_link(scope, headers):
            return None
        sender = f", {quoted(origins[0])}" if origins else ""
        return (
            403,
            "forbidden",
            f"The request comes from a web page of another origin{sender}. Only pages of this server may send "
            "requests. QUADCITE_ALLOWED_ORIGINS names further origins.",
        )

    def _is_own_host(self, host: tuple[str, int | None], server: Sequence[object] | None) -> bool:
        name, port = host
        if any(name == known and port in (None, of) for known, of in self._hosts):
            return True
        served, at = (*server, None, None)[:2] if server else (None, None)
        # Browsers leave out the port only if it is that of the scheme; programs do it otherwise too.
        return (is_loopback(name) or name == served) and (port is None or at is None or port == at)

    def _is_foreign(self, host: str, headers: Mapping[str, list[str]]) -> bool:
        """Return whether the headers that browsers send name a page of another origin."""
        if origins := headers["origin"]:
            origin = origins[0].lower()
            if origin in self._origins:
                return False
            if origin not in (f"http://{host.lower()}", f"https://{host.lower()}"):
                return True
        sites = headers["sec-fetch-site"]
        return bool(sites) and sites[0] not in _OWN_SITE


def parse_host(value: str) -> tuple[str, int | None] | None:
    """Parse a Host header strictly: name or address in lower case, and port. None for anything else."""
    found = _HOST.fullmatch(value.lower())
    if found is None or len(value) > 255:
        return None
    port = int(found["port"]) if found["port"] else None
    return (found["name"].strip("[]"), port) if port is None or 0 < port < 65536 else None


def _is_link(scope: Scope, headers: Mapping[str, list[str]]) -> bool:
    """Return whether a request opens an HTML page as the content of a browser's tab, by GET."""
    path = scope["path"]
    return (
        scope["method"] in ("GET", "HEAD")
        and headers["sec-fetch-mode"] == ["navigate"]
        and headers["sec-fetch-dest"] == ["document"]
        and any("text/html" in accepted for accepted in headers["accept"])
        and not f"{path}/".startswith(MACHINE_PATHS)
        # The page of /sparql is a form; with a query it would run it.
        and not (path == "/sparql" and scope.get("query_string"))
    )


def get_peer(scope: Scope) -> str:
    """Get the address by which limits per client count a request: one for all addresses of this machine."""
    host = (scope.get("client") or ["nowhere"])[0]
    return "127.0.0.1" if is_loopback(host) else host


class LocalToken:
    """The secret of a running server, in a file that only its own user can read. Removed when the server ends."""

    def __init__(self, data_dir: Path) -> None:
        self._path: Final = DataDirectory(data_dir).token
        self._secret: Final = secrets.token_urlsafe(32)
        write_private(self._path, self._secret)

    def identify(self, given: str) -> Actor | None:
        """Identify the sender of a token, in a time that does not depend on it. None for another token."""
        sent = given.encode("utf-8", "surrogatepass")
        if hmac.compare_digest(sent, self._secret.encode()):
            return HOLDER
        return EVERYONE if hmac.compare_digest(sent, derive_user_secret(self._secret).encode()) else None

    def remove(self) -> None:
        """Delete the file, unless another server has replaced it by its own."""
        if read_token(self._path.parent) == self._secret:
            self._path.unlink(missing_ok=True)


def derive_user_secret(secret: str) -> str:
    """Derive from the local token the secret of a program that acts as everyone on this machine, not as the admin."""
    return hashlib.sha256(b"local user " + secret.encode()).hexdigest()


def read_token(data_dir: Path) -> str | None:
    """Read the token of the server that holds `data_dir`; None if there is no readable one."""
    try:
        return DataDirectory(data_dir).token.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
