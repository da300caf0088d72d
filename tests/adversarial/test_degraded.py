"""A server whose index process is stopped goes on: it answers, says what is missing, and recovers by itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kg.vocabulary import DCTERMS, mint
from tests.adversarial.running import Running, good, running

NOTES = "/graphs?graph=" + mint("graph", "user", "notes").value
LATER = "/graphs?graph=" + mint("graph", "user", "later").value


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("degraded"), query_timeout_s="10") as started:
        yield started


def write(client: httpx.Client, address: str, name: str, text: str) -> None:
    body = f'<urn:{name}> <http://schema.org/text> "{text}" ; <{DCTERMS.isPartOf.value}> <urn:of-{name}> ; '
    body += "<http://schema.org/position> 0 ."
    answer = client.put(address, content=body, headers={"Content-Type": "text/turtle"})
    assert answer.status_code in (201, 204), answer.text


def search(client: httpx.Client, query: str) -> dict[str, object]:
    answer = client.post("/tools/search", json={"query": query})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return {"ids": [hit["id"] for hit in found["results"]], "degraded": found.get("degraded"), "notes": found["notes"]}


def find_index_process(server: Running) -> int:
    [pid] = [
        pid for pid in server.children() if b"kg.search.index_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return pid


@pytest.mark.long
def test_a_stopped_index_process_delays_no_answer_beyond_its_deadline(server: Running) -> None:
    with server.client() as client:
        write(client, NOTES, "lamp", "A lighthouse of my own, with tariffs.")
        found = search(client, "lighthouse")
        # no model is installed: ranked by words only, which the answer says
        assert (found["ids"], found["degraded"]) == (["urn:lamp"], "words")
        first = find_index_process(server)
        os.kill(first, signal.SIGSTOP)
        begun = time.monotonic()
        state = client.get("/health")
        assert time.monotonic() - begun < 4
        assert (state.status_code, state.json()["status"]) == (200, "degraded")
        assert state.json()["problems"]
        begun = time.monotonic()
        found = search(client, "lighthouse tariff")
        assert time.monotonic() - begun < 12
        assert (found["ids"], found["degraded"]) == (["urn:lamp"], "store")
        assert found["notes"]
        good(client)
        begun = time.monotonic()
        write(client, LATER, "buoy", "A buoy at the harbour.")
        assert time.monotonic() - begun < 20
        while search(client, "buoy")["degraded"] == "store":
            assert time.monotonic() - begun < 30, "the index process was not restarted"
            time.sleep(0.2)
        assert find_index_process(server) != first
        while search(client, "buoy") | {"notes": []} != {"ids": ["urn:buoy"], "degraded": "words", "notes": []}:
            assert time.monotonic() - begun < 40, "the write is not in the index"
            time.sleep(0.2)
        assert search(client, "lighthouse")["ids"] == ["urn:lamp"]
