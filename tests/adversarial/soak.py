"""A server under a seeded schedule of attacks and faults, while a good client asks and writes.

`python -m tests.adversarial.soak [--seconds 900] [--seed 1]` prints the figures, and exits with 1 if a promise is
broken. The attacks are those of clients that read nothing, send slowly, run away and send large documents. The faults
are loads, SIGSTOP of the index process and kill -9 of the server. The promises: a request of the good client is
answered; each acknowledged write is found afterwards; what is held ends at its deadline; the memory of each kind of
process is bounded.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from kg.server.auth import read_token
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import DCTERMS, mint
from tests.adversarial.attacks import STREAM, build_statement
from tests.adversarial.corpus import CROSS, write_ring
from tests.adversarial.running import GOOD, Running, start, stop, wait_until_ready

QUERY_S: Final = 5.0
TRANSFER_S: Final = 5.0
LIMITS: Final = {
    "query_timeout_s": str(QUERY_S),
    "transfer_timeout_s": str(TRANSFER_S),
    "max_rows": "1000000",
    "query_memory_mb": "256",
}
GOOD_ADDRESS: Final = "127.0.0.9"
PAUSE_S: Final = 0.05
"""Seconds between two requests of the good client."""
STOPPED_S: Final = 20.0
"""Seconds after a SIGSTOP in which searches may wait for the index, or do without it."""
ORPHAN_S: Final = 30.0
"""Maximum seconds that a process lives after the server that started it was killed."""
MOST_GROWN_MB: Final = {"server": 400, "index": 300, "worker": 350}
"""Most MiB that a process of a kind may have more than the first of its kind had at the start."""
LARGE: Final = [
    "".join(f'<urn:s{number}> <urn:p{graph}> "{number:0100}" .\n' for number in range(15_000)).encode()
    for graph in range(3)
]
TURTLE: Final = {"Content-Type": "text/turtle"}
LAW: Final = (
    "id,title,slug,description,geography,country_name,legislation_type,legislation_type_humanize,parent_id,date,"
    "date_passed,link\n"
    "{number},Fictional Act {number},fictional-act-{number},<p>This act is fictional and has number {number}.</p>,"
    "\"{{'id': 1, 'iso': 'NZL', 'name': 'New Zealand'}}\",New Zealand,legislative,Legislative,,2025-11-13,2025,\n"
)

OWN: Final = ("requests_arriving", "arriving_bytes")
"""What the request for the state, and idle connections, hold themselves."""

Attack = Callable[["Soak", random.Random], None]


@dataclass
class Memory:
    """Resident MiB of one kind of process: of the first sample, of the last, and the most."""

    first: float
    last: float = 0.0
    most: float = 0.0

    def add(self, size: float) -> None:
        self.last, self.most = size, max(self.most, size)


@dataclass
class Report:
    """What was measured, and which promises were broken."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: Counter[str] = field(default_factory=Counter)
    memory: dict[str, Memory] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        yield "events: " + ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        for kind, seconds in sorted(self.seconds.items()):
            took = sorted(seconds)
            p50, p99 = (took[min(len(took) - 1, int(len(took) * share))] for share in (0.5, 0.99))
            shown = [f"{name} {value * 1000:.0f}" for name, value in (("p50", p50), ("p99", p99), ("most", took[-1]))]
            yield f"{kind}: {len(took)}, {', '.join(shown)} ms"
        yield "refused: " + (", ".join(f"{what} {count}" for what, count in sorted(self.refused.items())) or "none")
        for kind, memory in sorted(self.memory.items()):
            yield f"memory of {kind}: first {memory.first:.0f}, last {memory.last:.0f}, most {memory.most:.0f} MiB"
        yield from (f"BROKEN: {what}" for what in self.broken)
        if not self.broken:
            yield "passed: no acknowledged write was lost, nothing was overdue, and no process grew beyond its bound"


class Soak:
    """A server that is attacked, killed and started again, and what is known to be stored in it."""

    def __init__(self, folder: Path, seed: int, settings: dict[str, str]) -> None:
        self.folder, self.data = folder, folder / "data"
        self.report = Report()
        self.written: dict[str, str] = {}
        """Texts of acknowledged writes by the name of their graph."""
        self.loaded: list[int] = []
        """Numbers of acknowledged loads."""
        self._seed, self._settings = seed, settings
        self._over = threading.Event()
        self._up = threading.Event()
        self._lives = 0
        """Starts of the server: a request is judged if the server lived from its begin to its end."""
        self._stopped_until = 0.0
        self._numbers = iter(range(1_000_000))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        with OxigraphStore(self.data) as store:
            write_ring(store)
        self._launch()

    def _launch(self) -> None:
        self._process = start(self.folder, self.data, self._port, **self._settings)
        self.server: Running = wait_until_ready(self.folder, self._process)
        self._lives += 1
        self._up.set()

    def run(self, seconds: float) -> Report:
        """Run the schedule for `seconds`, let the server recover, and check what it has."""
        ends = time.monotonic() + seconds
        chance = random.Random(self._seed)
        good = [threading.Thread(target=work, daemon=True) for work in (self._ask, self._watch)]
        for thread in good:
            thread.start()
        with ThreadPoolExecutor(64) as attackers:
            while time.monotonic() < ends:
                attack = chance.choices(list(ATTACKS), weights=[weight for _, weight in ATTACKS.values()])[0]
                act, inner = ATTACKS[attack][0], random.Random(chance.random())
                self.report.done[attack] += 1
                if act in (_kill, _stop_index):
                    act(self, inner)
                else:
                    attackers.submit(self._attack, attack, act, inner)
                time.sleep(chance.uniform(0.05, 0.5))
            self._over.set()
        for thread in good:
            thread.join(60)
            if thread.is_alive():
                self.report.broken.append("the good client has had no answer for 60 s")
        self._check_end()
        stop(self._process, self.server)
        return self.report

    def client(self, source: str | None = None, timeout_s: float = 60.0) -> httpx.Client:
        """Open a client of the address `source`."""
        transport = httpx.HTTPTransport(local_address=source)
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self._port}", transport=transport, timeout=timeout_s, trust_env=False
        )

    def is_over(self) -> bool:
        """Return whether the schedule has ended."""
        return self._over.is_set()

    def kill(self) -> None:
        """Kill the server, check that its processes end, and start it again."""
        family = self.server.children()
        self._up.clear()
        self._lives += 1
        self._process.kill()
        self._process.wait()
        # One that has just been started notices it once its interpreter runs.
        until = time.monotonic() + ORPHAN_S
        while left := [pid for pid in family if _is_alive(pid)]:
            if time.monotonic() > until:
                named = [f"{pid} {_kind(pid)}" for pid in left]
                self.report.broken.append(f"processes live {ORPHAN_S:g} s after the server was killed: {named}")
                break
            time.sleep(0.05)
        self._read_log()
        began = time.monotonic()
        self._launch()
        self.report.seconds["start after kill -9"].append(time.monotonic() - began)

    def stop_index(self, seconds: float | None) -> None:
        """Stop the index process; let it go on after `seconds`, or leave it to the server."""
        for pid in self.server.find_children("kg.search.index_process"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self._stopped_until = time.monotonic() + STOPPED_S
                if seconds is not None:
                    threading.Timer(seconds, _continue, [pid]).start()

    def _attack(self, name: str, act: Attack, chance: random.Random) -> None:
        try:
            act(self, chance)
        except (OSError, httpx.HTTPError):
            pass  # the server closed the connection, or was killed
        except Exception as error:  # noqa: BLE001 -- reported
            self.report.broken.append(f"{name}: {error!r}")

    # The good client

    def _ask(self) -> None:
        with self.client(GOOD_ADDRESS) as client:
            for number in self._numbers:
                if self.is_over():
                    return
                self._up.wait(60)
                self._time("point query", lambda: client.get("/sparql", params={"query": GOOD}), {200})
                if number % 3 == 0:
                    self._time("search", lambda: client.post("/tools/search", json={"query": "harbour light"}), {200})
                if number % 5 == 0:
                    self._write(client, f"good-{number}", f"The harbour light number {number} of the good client.")
                time.sleep(PAUSE_S)

    def _write(self, client: httpx.Client, name: str, text: str) -> None:
        graph = mint("graph", "user", name).value
        body = f'<urn:{name}> <http://schema.org/text> "{text}" ; <{DCTERMS.isPartOf.value}> <urn:of-{name}> ; '
        body += "<http://schema.org/position> 0 ."

        def put() -> httpx.Response:
            answer = client.put("/graphs", params={"graph": graph}, content=body, headers=TURTLE)
            if answer.status_code == 201:
                self.written[name] = text
            return answer

        self._time("write", put, {201})

    def _time(self, kind: str, send: Callable[[], httpx.Response], right: set[int]) -> None:
        life, began = self._lives, time.monotonic()
        without_index = began < self._stopped_until
        try:
            answer = send()
        except httpx.HTTPError as error:
            if self._up.is_set() and self._lives == life:
                self.report.broken.append(f"{kind}: {error!r} after {time.monotonic() - began:.1f} s")
            return
        if self._lives != life:
            return
        if answer.status_code not in right:
            code = re.search(r'"code":\s*"(\w+)"', answer.text)
            self.report.refused[f"{kind} {answer.status_code} {code[1] if code else ''}".strip()] += 1
        # A write is acknowledged once the index has it, or did not take it in time.
        late = ", index stopped" if kind != "point query" and (without_index or began < self._stopped_until) else ""
        self.report.seconds[kind + late].append(time.monotonic() - began)

    # What is watched

    def _watch(self) -> None:
        """Sample memory and what is held, each second."""
        with self.client(GOOD_ADDRESS) as client:
            while not self.is_over():
                life = self._lives
                if self._up.is_set():
                    self._sample_memory()
                    self._check_held(client, life)
                time.sleep(1)

    def _sample_memory(self) -> None:
        sizes: dict[str, list[float]] = defaultdict(list)
        for pid in (self.server.pid, *self.server.children()):
            if kind := "server" if pid == self.server.pid else _kind(pid):
                sizes[kind].append(_resident_mib(pid))
        for kind, found in sizes.items():
            if kind in MOST_GROWN_MB and (size := max(found)):
                self.report.memory.setdefault(kind, Memory(size)).add(size)

    def _check_held(self, client: httpx.Client, life: int) -> None:
        began = time.monotonic()
        try:
            state = client.get("/health")
            queries = client.get("/sparql/queries").json()["queries"]
        except (httpx.HTTPError, KeyError, ValueError) as error:
            if self._lives == life:
                self.report.broken.append(f"health: {error!r}")
            return
        if self._lives != life:
            return
        self.report.seconds["health"].append((time.monotonic() - began) / 2)
        if state.status_code != 200:
            self.report.refused[f"health {state.status_code}"] += 1
        elif overdue := state.json()["held"].get("overdue"):
            self.report.broken.append(f"held beyond its deadline: {overdue}: {state.json()['held']}")
        # It waits up to its deadline, and runs up to its deadline.
        old = [query for query in queries if query["age_s"] > 2 * QUERY_S + 3]
        if old:
            self.report.broken.append(f"queries are older than their deadlines: {old}")

    def _check_end(self) -> None:
        """Check that the server is as before, once nobody attacks it."""
        with self.client(GOOD_ADDRESS) as client:
            until = time.monotonic() + TRANSFER_S + 60
            while True:
                state = client.get("/health").json()
                held = {name: count for name, count in state["held"].items() if count and name not in OWN}
                if not _is_missing(state) and not held:
                    break
                if time.monotonic() > until:
                    self.report.broken.append(f"afterwards: {state['status']}, {state['problems']}, held {held}")
                    break
                time.sleep(0.5)
            self._sample_memory()
            self._check_written(client)
        for kind, memory in self.report.memory.items():
            if memory.most - memory.first > MOST_GROWN_MB[kind]:
                self.report.broken.append(f"{kind} grew by {memory.most - memory.first:.0f} MiB")
        self._read_log()

    def _check_written(self, client: httpx.Client) -> None:
        query = "SELECT ?s ?t { GRAPH ?g { ?s <http://schema.org/text> ?t } FILTER(STRSTARTS(STR(?s), 'urn:good-')) }"
        answer = client.get("/sparql", params={"query": query}, headers={"Accept": "application/sparql-results+json"})
        rows = answer.json()["results"]["bindings"]
        found = {row["s"]["value"].removeprefix("urn:"): row["t"]["value"] for row in rows}
        lost = {name for name, text in self.written.items() if found.get(name) != text}
        if lost:
            text = f"{len(lost)} of {len(self.written)} acknowledged writes are lost: {sorted(lost)[:5]}"
            self.report.broken.append(text)
        for name in random.Random(self._seed).sample(sorted(self.written), min(5, len(self.written))):
            hits = client.post("/tools/search", json={"query": self.written[name], "limit": 5}).json()["results"]
            if f"urn:{name}" not in [hit["id"] for hit in hits]:
                self.report.broken.append(f"the acknowledged write {name} is not found by a search")
        for number in self.loaded:
            ask = f'ASK {{ ?law <{DCTERMS.title.value}> "Fictional Act {number}" }}'
            if not client.get("/sparql", params={"query": ask}).json()["boolean"]:
                self.report.broken.append(f"the acknowledged load of act {number} is lost")

    def _read_log(self) -> None:
        if "Traceback" in (said := (self.folder / "log").read_text()):
            self.report.broken.append("a traceback in the log: " + said[said.index("Traceback") :][:1_500])


# The attacks and faults


def _read_nothing(soak: Soak, chance: random.Random) -> None:
    connection = _connect(soak, chance, 4_096)
    with connection:
        connection.sendall(
            b"GET /sparql?query=" + STREAM.encode() + b" HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\n"
            b"Accept-Encoding: identity\r\n\r\n"
        )
        _wait(soak, chance.uniform(1, 30))


def _send_slowly(soak: Soak, chance: random.Random) -> None:
    head = b"PUT /graphs/user/slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n"
    head += b"Content-Length: 8000000\r\n\r\n"
    with _connect(soak, chance) as connection:
        connection.sendall(head[: chance.choice([5, 60, len(head)])])
        for _ in range(40):
            if soak.is_over():
                return
            connection.sendall(b"# a")
            time.sleep(0.25)


def _run_away(soak: Soak, chance: random.Random) -> None:
    with soak.client(f"127.0.0.{chance.randrange(2, 6)}") as client:
        client.get("/sparql", params={"query": f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }} # {chance.random()}"})


def _put_too_much(soak: Soak, chance: random.Random) -> None:
    with soak.client(f"127.0.0.{chance.randrange(2, 6)}") as client:
        status = client.put("/graphs/user/many", content=build_statement(400_000), headers=TURTLE).status_code
    assert status in (413, 429, 503, 504), status


def _put_large(soak: Soak, chance: random.Random) -> None:
    with soak.client(f"127.0.0.{chance.randrange(2, 6)}") as client:
        headers = {"Content-Type": "application/n-triples"}
        graph = chance.randrange(len(LARGE))
        status = client.put(f"/graphs/user/large-{graph}", content=LARGE[graph], headers=headers).status_code
    assert status in (201, 204, 429, 503, 504), status


def _load(soak: Soak, chance: random.Random) -> None:
    number = chance.randrange(10_000, 100_000)
    file = soak.folder / f"law-{number}.csv"
    file.write_text(LAW.format(number=number))
    with soak.client() as client:
        headers = {"Authorization": f"Bearer {read_token(soak.data)}"}
        arguments = {"source": "climate", "paths": [str(file)]}
        answer = client.post("/tools/load", json=arguments, headers=headers)
    if answer.status_code == 200 and answer.json()["report"]["loaded"]:
        soak.loaded.append(number)


def _validate(soak: Soak, chance: random.Random) -> None:
    with soak.client(f"127.0.0.{chance.randrange(2, 6)}") as client:
        status = client.post("/shacl", content=LARGE[0][:1_000_000], headers=TURTLE).status_code
    assert status in (200, 400, 413, 429, 503, 504), status


def _stop_index(soak: Soak, chance: random.Random) -> None:
    soak.stop_index(chance.choice([None, 1.0, 4.0]))


def _kill(soak: Soak, chance: random.Random) -> None:
    soak.kill()


ATTACKS: Final[dict[str, tuple[Attack, float]]] = {
    "silent reader": (_read_nothing, 10),
    "slow sender": (_send_slowly, 10),
    "runaway": (_run_away, 12),
    "refused PUT": (_put_too_much, 2),
    "large PUT": (_put_large, 2),
    "validation": (_validate, 2),
    "load": (_load, 3),
    "SIGSTOP of the index": (_stop_index, 1),
    "kill -9": (_kill, 1),
}
"""Attacks and faults by name, with how often each is chosen."""


def _connect(soak: Soak, chance: random.Random, buffer_bytes: int | None = None) -> socket.socket:
    return soak.server.connect(f"127.0.0.{chance.randrange(2, 6)}", buffer_bytes)


def _wait(soak: Soak, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not soak.is_over():
        time.sleep(0.1)


def _is_missing(state: dict[str, object]) -> bool:
    """Return whether a problem is other than the absent model of the tests."""
    problems = state["problems"]
    assert isinstance(problems, list)
    return any("No embeddings" not in problem for problem in problems)


def _continue(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kind(pid: int) -> str:
    with contextlib.suppress(OSError):
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"kg.search.index_process" in line:
            return "index"
        return "worker" if b"kg.queries.worker" in line else "task"
    return ""


def _resident_mib(pid: int) -> float:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024
    return 0.0


def soak(folder: Path, seconds: float, seed: int) -> Report:
    """Run a soak with its data in `folder`, and return its report."""
    return Soak(folder, seed, LIMITS).run(seconds)


def main(arguments: Sequence[str]) -> int:
    """Run a soak and print its report; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    print(f"The report follows after about {given.seconds / 60 + 1:.0f} minutes.", flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = soak(Path(folder), given.seconds, given.seed)
    print(f"seconds {given.seconds:g}, seed {given.seed}, load average {os.getloadavg()[0]:.1f}")
    print("\n".join(report.lines()))
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
