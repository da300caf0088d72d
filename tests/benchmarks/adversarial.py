"""The whole adversarial corpus against a real server: how long after its deadline each query is gone, and what is left.

Beside them, in the same run, a client that asks good queries from an address of its own.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

from tests.adversarial.corpus import ATTACKS, CROSS, CUT, OK, TIMEOUT
from tests.adversarial.running import DEADLINE_S, ELSEWHERE, Running, ask, good, persist, running
from tests.benchmarks.comparison import Comparison

KILLS = 100
FLOOD = 200
ROUNDS = 1_000
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


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Run the benchmark; ``--quick`` takes a tenth of the counts."""
    share = 10 if "--quick" in arguments else 1
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        yield from run_corpus(server)
        yield from run_kills(server, KILLS // share)
        yield from run_flood(server)
        yield from run_memory(server, ROUNDS // share)
