"""JWTs of an identity provider: signatures by its published keys (JWKS), issuer, audience, and times.

FastMCP's own verifier takes tokens without an expiry and those that are not valid yet, accepts one algorithm, and
fetches keys without a size limit. This one is a verifier for its providers with the rules of RFC 8725: the algorithms
are fixed and asymmetric, ``exp`` is required, and a key is used only for the algorithms of its type.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio
import anyio.to_thread
from fastmcp.server.auth import AccessToken, TokenVerifier
from joserfc import jwk, jws, jwt
from joserfc.errors import JoseError

from kg.errors import UpstreamError
from kg.remote.http import send_request

log = logging.getLogger(__name__)

FRESH_S: Final = 3_600.0
"""Seconds after which keys are fetched again."""
STALE_S: Final = 24 * 3_600.0
"""Seconds for which keys are used if the identity provider does not answer."""
PAUSE_S: Final = 30.0
"""Least seconds between two requests for keys, so that tokens with made-up keys cause no load elsewhere."""
_TIMEOUT_S: Final = 10.0
_MAX_BYTES: Final = 1 << 20
_LEAST_RSA_BITS: Final = 2_048
_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}

Key = jwk.RSAKey | jwk.ECKey | jwk.OKPKey


def fetch_keys(url: str) -> Mapping[str, Any]:
    """Fetch a key set. Blocks. Raises UpstreamError."""
    import httpx

    try:
        reply = send_request(url, None, "application/json", _TIMEOUT_S, _MAX_BYTES)
        if reply.status != httpx.codes.OK:
            raise UpstreamError(f"{url} answers HTTP {reply.status}.")
        keys = json.loads(reply.body)
    except UpstreamError:
        raise
    except Exception as error:  # any: of the connection, the size or the text
        raise UpstreamError(f"Cannot read keys from {url}: {type(error).__name__}: {error}") from error
    if not isinstance(keys, dict) or not isinstance(keys.get("keys"), list):
        raise UpstreamError(f"{url} is not a key set (JWKS): it has no list 'keys'.")
    return keys


class JwtVerifier(TokenVerifier):
    """Verifies the JWTs of one issuer. `fetch` gets its key set; `clock` is that of the times in tokens."""

    def __init__(
        self,
        issuer: str,
        fetch: Callable[[], Mapping[str, Any]],
        audiences: Sequence[str],
        algorithms: Sequence[str],
        skew_s: float = 30,
        *,
        required_scopes: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(required_scopes=list(required_scopes))
        self.issuer: Final = issuer
        self.audiences: Final = frozenset(audiences)
        self._fetch, self._skew_s, self._clock = fetch, skew_s, clock
        self._algorithms: Final = list(algorithms)
        self._registry: Final = jws.JWSRegistry(algorithms=self._algorithms, strict_check_header=False)
        self._keys: list[tuple[Mapping[str, Any], Key]] = []
        self._fetched = self._tried = -math.inf
        self._lock: Final = anyio.Lock()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Verify a token; None for any other than a valid one of the issuer. The reason is logged."""
        try:
            header = jws.extract_compact(token.encode("ascii")).protected
            key = await self._find_key(header)
            claims = jwt.decode(token, key, algorithms=self._algorithms, registry=self._registry).claims
            self._check(claims)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            log.info("Refused a JWT: %s", str(error)[:200] or type(error).__name__)
            return None
        scopes = _list_scopes(claims)
        if not set(self.required_scopes) <= set(scopes):
            log.info("Refused a JWT: it lacks a required scope of %s.", ", ".join(self.required_scopes))
            return None
        subject = claims.get("sub")
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject or "unknown"),
            scopes=scopes,
            expires_at=int(claims["exp"]),
            subject=subject if isinstance(subject, str) else None,
            claims=claims,
        )

    def _check(self, claims: Mapping[str, Any]) -> None:
        """Raise ValueError for claims that make a token invalid here and now."""
        now = self._clock()
        if claims.get("iss") != self.issuer:
            raise ValueError(f"its issuer is {claims.get('iss')!r}")
        audience = claims.get("aud")
        if self.audiences.isdisjoint([audience] if isinstance(audience, str) else audience or ()):
            raise ValueError(f"its audience is {audience!r}")
        if now >= _get_time(claims, "exp") + self._skew_s:
            raise ValueError("it has expired")
        for name in ("nbf", "iat"):
            if name in claims and now < _get_time(claims, name) - self._skew_s:
                raise ValueError(f"it is not valid yet ({name})")

    async def _find_key(self, header: Mapping[str, Any]) -> Key:
        """Find the key that signed a token, and fetch the keys if it is unknown or they are old."""
        algorithm = header.get("alg")
        if algorithm not in self._algorithms:
            raise ValueError(f"its algorithm is {algorithm!r}")
        if "crit" in header:
            raise ValueError("it has extensions that must be understood (crit)")
        now = time.monotonic()
        found = self._match(header) if now - self._fetched < STALE_S else []
        if len(found) != 1 or now - self._fetched > FRESH_S:
            await self._refresh()
            found = self._match(header)
        if len(found) != 1:
            raise ValueError(f"{len(found)} keys match its kid {header.get('kid')!r}")
        return found[0]

    def _match(self, header: Mapping[str, Any]) -> list[Key]:
        algorithm, wanted = header["alg"], header.get("kid")
        return [
            key
            for entry, key in self._keys
            if entry["kty"] == _TYPES[algorithm[:2]]
            and entry.get("alg", algorithm) == algorithm
            and (wanted is None or entry.get("kid") == wanted)
        ]

    async def _refresh(self) -> None:
        """Fetch the keys, unless that was tried just now. Those of before stay for a while if it fails."""
        async with self._lock:
            now = time.monotonic()
            if now - self._tried < PAUSE_S:
                return
            self._tried = now
            try:
                fetched = await anyio.to_thread.run_sync(self._fetch)
            except UpstreamError as error:
                log.warning("%s The keys of before are used for up to %d hours.", error, STALE_S // 3_600)
                if now - self._fetched >= STALE_S:
                    self._keys = []
                return
            self._keys, self._fetched = _read_keys(fetched), now


def _read_keys(fetched: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Key]]:
    """Read the public keys of signatures. A key that cannot be used is left out (RFC 7517, 5)."""
    found: list[tuple[Mapping[str, Any], Key]] = []
    for entry in fetched["keys"]:
        try:
            if entry["kty"] not in _TYPES.values() or entry.get("use", "sig") != "sig":
                continue
            if entry["kty"] == "RSA" and len(entry["n"]) * 6 < _LEAST_RSA_BITS:  # base64
                raise ValueError(f"it has fewer than {_LEAST_RSA_BITS} bits")
            key = jwk.import_key(entry, entry["kty"])
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("A key of the identity provider cannot be used: %s", str(error)[:200])
        else:
            found.append((entry, key))
    return found


def _get_time(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"its {name} is not a time")
    return value


def _list_scopes(claims: Mapping[str, Any]) -> list[str]:
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            return value.split()
        if isinstance(value, list):
            return [each for each in value if isinstance(each, str)]
    return []
