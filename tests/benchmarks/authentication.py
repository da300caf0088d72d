"""What authentication adds to a call: `kg serve` with tokens next to one without accounts, and the layer by itself.

Arguments: the number of calls of each kind (default 2,000).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
from starlette.types import Message, Scope

from kg.access.actors import SCOPES
from kg.access.tokens import Tokens
from kg.data_directory import DataDirectory
from kg.server.auth import LocalToken
from kg.server.authentication import Accounts, Authentication
from kg.server.identity_providers import add_provider
from kg.server.sessions import Sessions
from kg.settings import Settings
from kg.store.lock import find_address
from tests.benchmarks.comparison import Comparison
from tests.server.oidc_issuer import Issuer, issuing
from tests.waiting import until

LIMIT_MS = 1.0
"""The most that authentication may add to the 95th percentile of a call."""
TURN = 50


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a data directory, and return the address."""
    command = [sys.executable, "-m", "kg.cli", "serve", "--port", "0", "--data-dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: find_address(folder) is not None)
            yield str(find_address(folder))
        finally:
            process.terminate()


def percentile(times: Iterable[float], share: float = 0.95) -> float:
    """Return the value that a share of the times does not exceed."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Compare calls of servers with and without accounts, then measure the layer."""
    calls = int(arguments[0]) if arguments else 2_000
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        secret = Tokens(DataDirectory(folder / "locked")).create("bench", SCOPES)
        clients = {
            kind: stack.enter_context(
                httpx2.Client(base_url=stack.enter_context(serving(folder / kind)), headers=headers)
            )
            for kind, headers in (("open", {}), ("locked", {"Authorization": f"Bearer {secret}"}))
        }
        times: dict[str, list[float]] = {kind: [] for kind in clients}
        for turn in range(
            -2, calls // TURN
        ):  # in turn, so that both meet the same load; the first ones are not counted
            for kind, client in clients.items():
                for _ in range(TURN):
                    began = time.perf_counter()
                    answer = client.get("/sparql?query=ASK{}")
                    if turn >= 0:
                        times[kind].append((time.perf_counter() - began) * 1_000)
                    assert answer.status_code == 200
        for name, of in (("median", 0.5), ("p95", 0.95)):  # for information: a busy machine varies more than 1 ms
            found = {kind: percentile(each, of) for kind, each in times.items()}
            yield Comparison(f"{name} of {calls:,} queries: a token, no accounts", found["locked"], found["open"], "ms")
    with tempfile.TemporaryDirectory() as name, issuing() as issuer:
        yield from measure_layer(Path(name), issuer, calls)


def measure_layer(folder: Path, issuer: Issuer, calls: int) -> Iterable[Comparison]:
    """Measure the layer in front of an application that does nothing."""
    directory = DataDirectory(folder)
    secret = Tokens(directory).create("bench", SCOPES)
    settings = Settings(
        _env_file=None,
        jwt_issuer=issuer.url,
        jwt_jwks_url=f"{issuer.url}/jwks",
        jwt_audience="kg",
        public_url="https://kg.example",
    )
    accounts = add_provider(Accounts(LocalToken(folder), Tokens(directory)), settings, {}, directory)
    tokens = [issuer.sign(n=number) for number in range(calls // 10)]
    kinds: dict[str, tuple[Accounts, list[str | None]]] = {
        "no accounts": (Accounts(LocalToken(folder)), [None] * calls),
        "a token": (accounts, [secret] * calls),
        "a JWT, again": (accounts, [tokens[0]] * calls),
        "a JWT for the first time": (accounts, list(tokens)),
    }
    for kind, (chosen, secrets) in kinds.items():
        times = anyio.run(partial(_measure, chosen, secrets))
        yield Comparison.at_most(f"p95 of the layer: {kind}", percentile(times), "ms", LIMIT_MS)


async def _measure(accounts: Accounts, secrets: Sequence[str | None]) -> list[float]:
    async def inside(scope: Scope, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    statuses: list[int] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    layer = Authentication(inside, accounts, Sessions(accounts))
    times = []
    for secret in secrets:
        headers = [(b"host", b"kg.example"), (b"accept", b"*/*")]
        if secret is not None:
            headers.append((b"authorization", f"Bearer {secret}".encode()))
        scope = {"type": "http", "method": "GET", "path": "/sparql", "query_string": b"", "headers": headers}
        began = time.perf_counter()
        await layer(scope, receive, send)
        times.append((time.perf_counter() - began) * 1_000)
    assert set(statuses) == {200}
    return times[len(times) // 20 :]  # without the first request, which fetches the keys
