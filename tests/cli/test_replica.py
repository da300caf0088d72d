"""`kg replica` and its primary as processes: over HTTP, under requests, through kill -9 of either."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kg.server.auth import read_token
from kg.store.lock import find_address
from tests.cli.running import KG, answer, run
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

GRAPH = "https://w3id.org/quadcite/graph/user/counter"
VALUE = f"SELECT ?n {{ GRAPH <{GRAPH}> {{ <urn:counter> <urn:is> ?n }} }}"


@contextmanager
def running(data_dir: Path, *command: object, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process that serves a data directory, and its address. It is killed at the end."""
    with subprocess.Popen(
        [*KG, *map(str, command), "--port", "0", "--data-dir", str(data_dir)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "QUADCITE_MODELS_DIR": str(data_dir / "models"), **environment},
    ) as process:
        try:
            until(lambda: find_address(data_dir) is not None or process.poll() is not None)
            address = find_address(data_dir)
            assert address is not None
            until(lambda: is_ready(address))
            yield process, address
        finally:
            process.kill()


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", trust_env=False, timeout=60).status_code == 200
    except httpx.HTTPError:
        return False


def put(address: str, number: int) -> httpx.Response:
    return httpx.put(
        f"{address}/graphs",
        params={"graph": GRAPH},
        content=f"<urn:counter> <urn:is> {number} .",
        headers={"Content-Type": "text/turtle"},
        trust_env=False,
        timeout=60,
    )


def read(client: httpx.Client) -> int:
    response = client.post("/sparql", data={"query": VALUE}, headers={"Accept": "application/sparql-results+json"})
    rows: list[Any] = response.raise_for_status().json()["results"]["bindings"]
    return int(rows[0]["n"]["value"]) if rows else -1


def health(address: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{address}/health", trust_env=False, timeout=60).json()
    return found


def test_a_replica_follows_a_server_and_outlives_it(tmp_path: Path) -> None:
    primary_dir, replica_dir, backups = (tmp_path / name for name in ("primary", "replica", "backups"))
    serving = ("serve", "--backup-to", backups, "--backup-every", "1s", "--keep", "3")
    with running(primary_dir, *serving) as (primary, address):
        assert put(address, 1).status_code == 201
        until(lambda: bool(health(address)["backups"].get("point")))
        token = read_token(primary_dir)
        assert token is not None
        following = ("replica", "--of", address, "--every", "1s")
        with running(replica_dir, *following, QUADCITE_REPLICA_TOKEN=token) as (replica, there):
            failures: list[Exception] = []
            seen: list[int] = []
            stop = threading.Event()

            def ask() -> None:
                with httpx.Client(base_url=there, trust_env=False, timeout=60) as client:
                    while not stop.is_set():
                        try:
                            seen.append(read(client))
                        except (httpx.HTTPError, LookupError, ValueError) as error:
                            failures.append(error)

            with httpx.Client(base_url=there, trust_env=False, timeout=60) as client:
                until(lambda: read(client) == 1)
                asking = threading.Thread(target=ask)
                asking.start()
                for number in (2, 3, 4):
                    assert put(address, number).status_code in (200, 204)
                    until(lambda number=number: read(client) == number)  # type: ignore[misc]
                stop.set()
                asking.join()
            assert not failures
            assert seen == sorted(seen)
            assert set(seen) >= {2, 3}
            refused = put(there, 9)
            assert (refused.status_code, refused.json()["code"]) == (403, "read_only_replica")
            assert address in refused.text
            state = health(there)
            assert state["replica"]["primary"] == address
            assert state["generation"] == health(address)["generation"] == state["replica"]["primary_generation"]

            primary.send_signal(signal.SIGKILL)
            until(lambda: health(there)["replica"].get("failures", 0) > 0)
            state = health(there)
            assert state["status"] == "degraded"
            assert state["replica"]["lag_s"] > 0
            metrics = httpx.get(f"{there}/metrics", trust_env=False, timeout=60).text
            assert "quadcite_replica_failures" in metrics
            assert "quadcite_replica_lag_seconds" in metrics
            with httpx.Client(base_url=there, trust_env=False, timeout=60) as client:
                assert read(client) == 4
            replica.send_signal(signal.SIGKILL)
            replica.wait()
        with running(replica_dir, *following, QUADCITE_REPLICA_TOKEN=token) as (replica, there):
            with httpx.Client(base_url=there, trust_env=False, timeout=60) as client:
                assert read(client) == 4
            assert answer("status", "--data-dir", replica_dir)["replica"].startswith(f"of {address}")
            assert run("reindex", "--data-dir", replica_dir).exit_code == 0
            assert run("derive", "--data-dir", replica_dir).exit_code == 1
            replica.send_signal(signal.SIGTERM)
            assert replica.wait(60) == 0
    assert run("status", "--data-dir", replica_dir).exit_code == 1
    assert answer("replica", "--promote", "--data-dir", replica_dir)["primary"] == address
    assert answer("backup", "verify", backups)["ok"]
    restored = tmp_path / "restored"
    assert run("restore", backups, "--data-dir", restored).exit_code == 0
    counts = {answer("status", "--data-dir", folder)["quads"] for folder in (replica_dir, restored)}
    assert len(counts) == 1
