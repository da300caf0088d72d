"""JWTs: only valid ones of the issuer for this server, by its current keys, in an algorithm of the settings."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk
from joserfc.errors import SecurityWarning

from kg.errors import UpstreamError
from kg.server import jwt_tokens
from kg.server.jwt_tokens import JwtVerifier, fetch_keys
from tests.server.oidc_issuer import Issuer, issuing


@pytest.fixture(scope="module")
def served() -> Iterator[Issuer]:
    with issuing() as issuer:
        yield issuer


@pytest.fixture
def issuer(served: Issuer) -> Issuer:
    served.requests.clear()
    served.is_down = False
    return served


@pytest.fixture
def verifier(issuer: Issuer) -> JwtVerifier:
    return JwtVerifier(issuer.url, partial(fetch_keys, f"{issuer.url}/jwks"), ["kg"], ["RS256", "ES256"], 30)


def verify(verifier: JwtVerifier, token: str) -> Any:
    return anyio.run(verifier.verify_token, token)


def segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_valid_token_has_its_claims(issuer: Issuer, verifier: JwtVerifier) -> None:
    token = issuer.sign(scope="kg:read other", groups=["editors"], azp="client")
    found = verify(verifier, token)
    assert (found.subject, found.client_id, found.scopes) == ("ada", "client", ["kg:read", "other"])
    assert found.claims["groups"] == ["editors"]
    assert verify(verifier, issuer.sign(scp=["a", "b"])).scopes == ["a", "b"]
    assert verify(verifier, issuer.sign(aud=["other", "kg"])) is not None
    assert issuer.requests == ["/jwks"], "keys are kept"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "other"}, {"aud": None}, {"aud": ["other"]}, {"aud": "KG"}, {"aud": 5}, {"aud": []},
        {"iss": "https://other.example"}, {"iss": None}, {"iss": ["x"]},
        {"exp": None}, {"exp": "9999999999"}, {"exp": True}, {"exp": 0}, {"exp": int(time.time()) - 60},
        {"nbf": int(time.time()) + 3600}, {"iat": int(time.time()) + 3600}, {"nbf": "soon"}, {"iat": None, "nbf": [1]},
    ],
)  # fmt: skip
def test_another_issuer_audience_or_time_is_refused(issuer: Issuer, verifier: JwtVerifier, claims: Any) -> None:
    assert verify(verifier, issuer.sign(**claims)) is None
    assert verify(verifier, issuer.sign()) is not None


def test_clocks_may_differ_by_the_tolerance(issuer: Issuer, verifier: JwtVerifier) -> None:
    now = int(time.time())
    assert verify(verifier, issuer.sign(exp=now - 20)) is not None
    assert verify(verifier, issuer.sign(nbf=now + 20, iat=now + 20)) is not None


def test_unsigned_and_symmetric_tokens_are_refused(issuer: Issuer, verifier: JwtVerifier) -> None:
    claims = {"iss": issuer.url, "aud": "kg", "sub": "ada", "exp": int(time.time()) + 600}
    kid = issuer.jwks["keys"][0]["kid"]
    for alg in ("none", "None", "NONE", ""):
        assert verify(verifier, f"{segment({'alg': alg, 'kid': kid})}.{segment(claims)}.") is None
    public = issuer.keys[0].as_pem(private=False)
    for secret in (public, public.strip(), b"x" * 32):
        signed = f"{segment({'alg': 'HS256', 'kid': kid})}.{segment(claims)}"
        digest = hmac.digest(secret, signed.encode(), "sha256")
        forged = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
        assert verify(verifier, forged) is None


def test_a_key_in_the_token_itself_does_not_count(issuer: Issuer, verifier: JwtVerifier) -> None:
    own = jwk.RSAKey.generate_key(2048, {"kid": "own"}, auto_kid=False)
    for header in (
        {"jwk": own.as_dict(private=False)},
        {"jku": "http://127.0.0.1:1/keys"},
        {"kid": issuer.jwks["keys"][0]["kid"]},
        {"kid": None},
    ):
        assert verify(verifier, issuer.sign(header, key=own)) is None


def test_a_changed_token_and_one_with_critical_extensions_are_refused(issuer: Issuer, verifier: JwtVerifier) -> None:
    head, body, signature = issuer.sign().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    for changed in (f"{head}.{segment(claims | {'sub': 'root'})}.{signature}", f"{head}.{body}.", f"{head}.{body}"):
        assert verify(verifier, changed) is None
    critical = issuer.sign({"crit": ["b64"], "b64": True})
    assert verify(verifier, critical) is None


@given(st.one_of(st.text(), st.lists(st.text(st.characters(codec="ascii")), min_size=3, max_size=3).map(".".join)))
def test_any_text_is_refused_without_an_error(text: str) -> None:
    verifier = JwtVerifier("https://iss.example", lambda: {"keys": []}, ["kg"], ["RS256"])
    assert verify(verifier, text) is None


def test_keys_rotate_and_unknown_ones_cause_few_requests(
    issuer: Issuer, verifier: JwtVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = issuer.keys[0]
    assert verify(verifier, issuer.sign()) is not None
    issuer.rotate("EC", "P-256")
    assert verify(verifier, issuer.sign()) is None, "it has just asked"
    for number in range(50):
        assert verify(verifier, issuer.sign({"kid": f"made-up-{number}"})) is None
    assert issuer.requests == ["/jwks"]
    monkeypatch.setattr(jwt_tokens, "PAUSE_S", 0)
    assert verify(verifier, issuer.sign()) is not None
    assert verify(verifier, issuer.sign(key=old)) is None, "a key that is no longer published"
    issuer.rotate()


def test_a_silent_issuer_leaves_the_keys_of_before_for_a_day(
    issuer: Issuer, verifier: JwtVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verify(verifier, issuer.sign()) is not None
    issuer.is_down = True
    monkeypatch.setattr(jwt_tokens, "PAUSE_S", 0)
    monkeypatch.setattr(jwt_tokens, "FRESH_S", 0)
    assert verify(verifier, issuer.sign()) is not None
    monkeypatch.setattr(jwt_tokens, "STALE_S", 0)
    assert verify(verifier, issuer.sign()) is None


def test_keys_of_other_kinds_are_left_out(issuer: Issuer) -> None:
    with pytest.warns(SecurityWarning):
        weak = jwk.RSAKey.generate_key(1024, {"kid": "weak"}, auto_kid=False)
    good = issuer.jwks["keys"][0]
    published = [
        5, {}, {"kty": "RSA"}, {"kty": "oct", "k": "eHh4", "kid": "a"}, {"kty": "new"}, weak.as_dict(private=False),
        {**good, "use": "enc", "kid": "b"}, {**good, "alg": "RS512", "kid": "c"}, good,
    ]  # fmt: skip
    verifier = JwtVerifier(issuer.url, lambda: {"keys": published}, ["kg"], ["RS256"])
    assert verify(verifier, issuer.sign()) is not None
    assert verify(verifier, issuer.sign(key=weak)) is None
    for kid in "abc":
        assert verify(verifier, issuer.sign({"kid": kid})) is None


def test_what_is_no_key_set_is_an_error_of_the_provider(issuer: Issuer) -> None:
    for path in ("/nothing", "/.well-known/openid-configuration"):
        with pytest.raises(UpstreamError, match=path):
            fetch_keys(issuer.url + path)
    with pytest.raises(UpstreamError):
        fetch_keys("http://127.0.0.1:1/jwks")
