"""An OpenID Connect issuer of the tests' own, on loopback: keys that rotate, a page that agrees at once, tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwk, jwt


@dataclass
class Issuer:
    """The issuer. `subject` is who is signed in at it."""

    url: str = ""
    subject: str = "ada"
    groups: tuple[str, ...] = ("editors",)
    audience: str = "kg"
    is_down: bool = False
    requests: list[str] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def rotate(self, kind: str = "RSA", size: Any = 2048) -> None:
        """Replace the keys by a new one."""
        key = jwk.RSAKey if kind == "RSA" else jwk.ECKey
        self.keys = [key.generate_key(size, {"kid": secrets.token_hex(4), "use": "sig"}, auto_kid=False)]

    @property
    def jwks(self) -> dict[str, Any]:
        """The published keys."""
        return {"keys": [key.as_dict(private=False) for key in self.keys]}

    def sign(self, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """Make a token. A claim that is None is left out."""
        key = key or self.keys[0]
        now = int(time.time())
        whole = {"iss": self.url, "aud": self.audience, "sub": self.subject, "iat": now, "exp": now + 600}
        whole = {name: value for name, value in (whole | claims).items() if value is not None}
        algorithm = "RS256" if key.key_type == "RSA" else "ES256"
        chosen = {"alg": algorithm, "kid": key.as_dict(private=False).get("kid")} | (header or {})
        chosen = {name: value for name, value in chosen.items() if value is not None}
        return jwt.encode(chosen, whole, key, algorithms=[chosen["alg"]])

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        """Answer a request: status, headers, content."""
        if self.is_down:
            return 503, {}, {}
        if path == "/jwks":
            return 200, {}, self.jwks
        if path == "/.well-known/openid-configuration":
            paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/jwks"}
            lists = {
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
            return 200, {}, {"issuer": self.url, **{name: self.url + at for name, at in paths.items()}, **lists}
        if path == "/authorize":
            code = secrets.token_urlsafe(8)
            self.codes[code] = form
            back = urlencode({"code": code, "state": form["state"]})
            return 302, {"Location": f"{form['redirect_uri']}?{back}"}, {}
        if path == "/token":
            begun = self.codes.pop(form.get("code", ""), None)
            if begun is None:
                return 400, {}, {"error": "invalid_grant"}
            if "code_challenge" in begun:
                digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != begun["code_challenge"]:
                    return 400, {}, {"error": "invalid_grant"}
            token = self.sign(groups=list(self.groups), scope="openid")
            return 200, {}, {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": "openid"}
        return 404, {}, {}


@contextmanager
def issuing() -> Iterator[Issuer]:
    """Serve an issuer until the block ends."""
    issuer = Issuer()
    issuer.rotate()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("Content-Length", 0))
            form = {name: values[0] for name, values in parse_qs(parts.query or self.rfile.read(size).decode()).items()}
            issuer.requests.append(parts.path)
            status, headers, content = issuer.answer(parts.path, form)
            body = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {
                **headers,
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = respond  # noqa: N815 -- the names that the server calls

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
