"""A server without its index process or without room on its disk goes on: it answers, says what is missing, and
recovers by itself.
"""

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
from tests.adversarial.small_disk import SmallDisk
from tests.examples import spread

DISK_MB = 160  # what an index of a few texts takes, twice, since one that broke on a full disk is built again

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
    [pid] = server.find_children("kg.search.index_process")
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
        assert time.monotonic() - begun < 7
        assert (state.status_code, state.json()["status"]) == (200, "degraded")
        assert state.json()["problems"]
        begun = time.monotonic()
        found = search(client, "lighthouse tariff")
        assert time.monotonic() - begun < 30
        assert (found["ids"], found["degraded"]) == (["urn:lamp"], "store")
        assert found["notes"]
        good(client)
        begun = time.monotonic()
        write(client, LATER, "buoy", "A buoy at the harbour.")
        assert time.monotonic() - begun < 60
        while search(client, "buoy")["degraded"] == "store":
            assert time.monotonic() - begun < 90, "the index process was not restarted"
            time.sleep(0.2)
        assert find_index_process(server) != first
        while search(client, "buoy") | {"notes": []} != {"ids": ["urn:buoy"], "degraded": "words", "notes": []}:
            assert time.monotonic() - begun < 100, "the write is not in the index"
            time.sleep(0.2)
        assert search(client, "lighthouse")["ids"] == ["urn:lamp"]


def put(client: httpx.Client, number: int) -> int:
    body = "".join(f'<urn:{number}> <urn:p{row}> "{"word " * 50}" .\n' for row in range(100))
    headers = {"Content-Type": "text/turtle"}
    return client.put(f"/graphs/user/filling-{number}", content=body, headers=headers).status_code


@pytest.mark.long
def test_a_full_disk_refuses_writes_only_and_only_until_it_is_freed(tmp_path: Path, disk: SmallDisk) -> None:
    with running(tmp_path, data=disk.folder / "data", query_timeout_s="10") as server, server.client() as client:
        assert put(client, 0) == 201
        disk.fill()
        acknowledged = [0]
        while (status := put(client, len(acknowledged))) == 201:
            acknowledged.append(len(acknowledged))
        assert status == 503
        state = client.get("/health").json()
        assert state["status"] == "degraded"
        assert any("No space" in problem for problem in state["problems"]), state["problems"]
        good(client)
        disk.free()
        begun = time.monotonic()
        while put(client, 1_000) != 201:
            assert time.monotonic() - begun < 60, "writes stay refused"
            time.sleep(0.2)
        begun = time.monotonic()  # the index opens again after the store, which took part of the time above
        while problems := [text for text in client.get("/health").json()["problems"] if "No space" in text]:
            assert time.monotonic() - begun < 60, problems
            time.sleep(0.2)
        for number in (*acknowledged, 1_000):
            assert client.get(f"/graphs/user/filling-{number}").text.count("\n") == 100


@pytest.mark.long
@pytest.mark.parametrize("state", spread(["full", "read-only"], 1))
def test_a_server_starts_on_a_disk_that_cannot_be_written(tmp_path: Path, disk: SmallDisk, state: str) -> None:
    prepare = disk.fill if state == "full" else lambda: disk.remount("ro")
    data = disk.folder / "data"
    with running(tmp_path, data=data, prepare=prepare, query_timeout_s="10") as server, server.client() as client:
        good(client)
        assert client.get("/health").json()["status"] == "degraded"
        assert put(client, 0) == 503
        disk.free() if state == "full" else disk.remount("rw")
        begun = time.monotonic()
        while put(client, 1) != 201:
            assert time.monotonic() - begun < 60, "writes stay refused"
            time.sleep(0.2)
        good(client)
