"""One endpoint over a plain dataset, served on loopback for the whole run."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from pydantic import HttpUrl

from kg.server.http_server import address_of, listen
from kg.settings import Settings
from tests.conformance.endpoint import BASE_IRI, Served
from tests.conformance.plain_server import create_plain_app
from tests.conformance.plain_store import PlainStore
from tests.conformance.stand_ins import StandIns, stand_ins

MEMORY = "/dev/shm"
"""Where a file costs no disk, if the system has it: almost every test makes a snapshot, which is synchronized."""


@pytest.fixture(scope="package")
def remote() -> Iterator[StandIns]:
    with stand_ins() as served:
        yield served


@pytest.fixture(scope="package")
def served(remote: StandIns) -> Iterator[Served]:
    allowed = [HttpUrl(address) for address in remote.addresses]
    settings = Settings(query_workers=1, query_timeout_s=30, service_endpoints=allowed, _env_file=None)  # type: ignore[call-arg]
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder,
        PlainStore(Path(folder), base_iri=BASE_IRI) as store,
        contextlib.closing(listen("127.0.0.1", 0)) as listening,
        httpx.Client(base_url=address_of(listening), timeout=30) as client,
    ):
        app = create_plain_app(store, settings)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
        thread = threading.Thread(target=server.run, args=([listening],), name="plain-endpoint")
        thread.start()
        try:
            yield Served(store, client)
        finally:
            server.should_exit = True
            thread.join(30)
