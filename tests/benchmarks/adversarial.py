"""The whole adversarial corpus against a real server: how long after its deadline each query is gone, and what is left.

Beside them, in the same run, a client that asks good queries from an address of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from tests.adversarial.attacks import (
    MANY_OBJECTS,
    ask_points,
    build_statement,
    count_processors,
    hold_bodies,
    open_silent_readers,
    running_away,
    send_half_heads,
    spinning,
    wait_until_closed,
    watch,
)
from tests.adversarial.corpus import ATTACKS, CROSS, CUT, OK, TIMEOUT
from tests.adversarial.running import DEADLINE_S, ELSEWHERE, Running, ask, good, persist, running
from tests.adversarial.soak import LARGE
from tests.benchmarks.comparison import Comparison

KILLS = 100
FLOOD = 200
ROUNDS = 1_000
TIMEOUT_S = 5.0
TRANSFER_S = 3.0
RUNAWAY = f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }}"


def run_corpus(server: Running) -> Iterator[Comparison]:
    """Run each attack once; what ended in another way than it should is printed."""
    wrong, late = 0, []
    with server.client() as client:
        for attack in ATTACKS:
            outcome = persist(client, attack)
            if outcome.code not in attack.outcomes or outcome.status == 500:
                wrong += 1
                print(f"  {attack.name}: {outcome.code} ({outcome.status}) {outcome.message}")
            if outcome.code == TIMEOUT:
                late.append((outcome.seconds - DEADLINE_S) * 1000)
        yield Comparison.at_most(f"of {len(ATTACKS)} attacks, those that ended wrongly", wrong, "", 0)
        yield Comparison("attack gone after its deadline, p50", median(late), None, "ms")
        yield Comparison("attack gone after its deadline, most", max(late), None, "ms")


def run_kills(server: Running, count: int) -> Iterator[Comparison]:
    """Time runaways one after another: from the deadline to the error at the client."""
    late = []
    with server.client() as client:
        for _ in range(count):
            started = time.monotonic()
            outcome = ask(client, RUNAWAY)
            assert outcome.code == TIMEOUT, outcome
            late.append((time.monotonic() - started - DEADLINE_S) * 1000)
    yield Comparison(f"runaway gone after its deadline, p50 of {count}", median(late), None, "ms")
    p99 = quantiles(late, n=100)[98]
    yield Comparison.at_most(f"runaway gone after its deadline, p99 of {count}", p99, "ms", 250)


def run_flood(server: Running) -> Iterator[Comparison]:
    """Send many bad queries at once while another client asks good ones."""
    bad = [attack for attack in ATTACKS if TIMEOUT in attack.outcomes]
    waits: list[float] = []
    done = threading.Event()
    with server.client() as client:
        alone = median(good(client) for _ in range(50)) * 1000

    def ask_well() -> None:
        with server.client(ELSEWHERE) as client:
            while not done.is_set():
                waits.append(good(client))

    with server.client() as client, ThreadPoolExecutor(FLOOD + 1) as threads:
        asking = threads.submit(ask_well)
        outcomes = list(threads.map(lambda n: ask(client, bad[n % len(bad)].make()), range(FLOOD)))
        done.set()
        asking.result()
    wrong = sum(outcome.status == 500 or outcome.code == "" for outcome in outcomes)
    told = sum(outcome.code.endswith("_busy") for outcome in outcomes)
    yield Comparison.at_most(f"of {FLOOD} bad queries at once, those without an answer or with 500", wrong, "", 0)
    yield Comparison("of these, told to come again", told, None, "")
    yield Comparison("of these, whole or cut answers", sum(outcome.code in (OK, CUT) for outcome in outcomes), None, "")
    yield Comparison("good query of another client meanwhile, p50", median(waits) * 1000, alone, "ms")
    yield Comparison("good query of another client meanwhile, most", max(waits) * 1000, alone, "ms")


def run_memory(server: Running, rounds: int) -> Iterator[Comparison]:
    """Compare the server's memory before and after many runaways, stopped early by their own ``timeout=``."""
    with server.client() as client, ThreadPoolExecutor(8) as threads:

        def runaway(_: int) -> None:
            while client.get("/sparql", params={"query": RUNAWAY, "timeout": "0.05"}).status_code != 504:
                time.sleep(0.02)

        list(threads.map(runaway, range(50)))
        before, processes = server.resident_bytes(), len(server.children())
        list(threads.map(runaway, range(rounds)))
        time.sleep(1)
        grown = (server.resident_bytes() - before) / 1024**2
    yield Comparison.at_most(f"memory of the server after {rounds} runaways, grown by", grown, "MiB", 20)
    yield Comparison.at_most("processes more than before", max(0, len(server.children()) - processes), "", 4)


def run_documents(server: Running) -> Iterator[Comparison]:
    """Send a document of 1.9 million quads (refused) and one that is taken, beside a good client."""
    headers = {"Content-Type": "application/n-triples"}
    with server.client() as client, server.client(ELSEWHERE) as other:
        client.put("/graphs/user/small", content=b"<urn:a> <urn:b> 'c' .", headers=headers)
        for name, document, grows, answered, waited in (
            ("refused", build_statement(MANY_OBJECTS), (50, 6_100), 108_000, 8_700),
            ("taken", LARGE[0], (250, None), None, None),
        ):
            began = time.monotonic()
            put = partial(client.put, "/graphs/user/many", content=document, headers=headers)
            _, grown, longest = watch(server, other, put)
            took = (time.monotonic() - began) * 1000
            yield Comparison.at_most(f"document {name}: the server grows by", grown / 1024**2, "MiB", *grows)
            yield Comparison(f"document {name}: answered after", took, answered, "ms")
            yield Comparison(f"document {name}: longest wait of another", longest * 1000, waited, "ms")


def run_holders(server: Running) -> Iterator[Comparison]:
    """Hold places by silent readers, bodies, and heads, until the server takes them back."""
    with server.client(ELSEWHERE) as client, contextlib.ExitStack() as stack:
        good(client)
        sockets = server.count_sockets()
        open_silent_readers(server, stack, 16)
        began, oldest, waits = time.monotonic(), 0.0, []
        while time.monotonic() - began < 4 * TIMEOUT_S:
            waits.append(good(client))
            queries = client.get("/sparql/queries").json()["queries"]
            oldest = max([oldest, *(query["age_s"] for query in queries if query["state"] == "running")])
        name = f"oldest place of a silent reader, at a deadline of {TIMEOUT_S:g} s"
        yield Comparison.at_most(name, oldest, "s", 2 * TIMEOUT_S + 1)
        yield Comparison("good query beside silent readers, most", max(waits) * 1000, None, "ms")
        seconds = wait_until_closed(server, sockets, TRANSFER_S + 10)
        yield Comparison("silent connections closed after further", seconds, None, "s")
        send_half_heads(server, stack, 30)
        seconds = wait_until_closed(server, sockets, TRANSFER_S + 10)
        yield Comparison.at_most("half-sent heads closed after", seconds, "s", TRANSFER_S + 2)
        before = server.resident_bytes()
        grown = (hold_bodies(server, stack, 60, 1.5) - before) / 1024**2
        yield Comparison.at_most("60 held bodies of 16 MB: the server grows by", grown, "MiB", 200, 963)
        wait_until_closed(server, sockets, TRANSFER_S + 10)


def run_starving(server: Running) -> Iterator[Comparison]:
    """Ask point queries beside 16 runaways of 4 clients, also while other programs take the processors."""
    for name, programs in (("quiet", 0), ("busy", 2 * count_processors())):
        with spinning(programs), server.client() as client:
            alone, _ = ask_points(client, 200)
            with running_away(server, 16):
                beside, refused = ask_points(client, 200)
        p99 = [quantiles(seconds, n=100)[98] * 1000 for seconds in (beside, alone)]
        yield Comparison.at_most(f"point query beside 16 runaways, {name}, p99", p99[0], "ms", 1_000, p99[1])
        yield Comparison.at_most(f"of these refused, {name}", len(refused), "", 0)


def run_stopped_index(server: Running) -> Iterator[Comparison]:
    """Stop the index process, and ask for the state and for a search."""
    with server.client() as client:
        client.post("/tools/search", json={"query": "lighthouse"})
        for pid in server.find_children("kg.search.index_process"):
            os.kill(pid, signal.SIGSTOP)
        for name, send, before in (
            ("health", partial(client.get, "/health"), 10_000),
            ("search", partial(client.post, "/tools/search", json={"query": "lighthouse"}), 60_000),
        ):
            began = time.monotonic()
            assert send().status_code == 200
            took = (time.monotonic() - began) * 1000
            yield Comparison.at_most(f"{name} with a stopped index", took, "ms", 12_000, before)


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Run the benchmark; ``--quick`` takes a tenth of the counts.

    Figures beside those of documents, held resources and a stopped index are of e14abb84, before they were bounded.
    """
    share = 10 if "--quick" in arguments else 1
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        yield from run_corpus(server)
        yield from run_kills(server, KILLS // share)
        yield from run_flood(server)
        yield from run_memory(server, ROUNDS // share)
    started = partial(running, query_timeout_s=str(TIMEOUT_S), transfer_timeout_s=str(TRANSFER_S), max_rows="1000000")
    with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as server:
        yield from run_starving(server)
        yield from run_holders(server)
        yield from run_stopped_index(server)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), query_timeout_s="40") as server:
        yield from run_documents(server)
