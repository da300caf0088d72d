"""The endpoint beside `oxigraph serve`, a bare Starlette handler over pyoxigraph, and rdflib-endpoint.

The same made-up data everywhere, the same queries, the same client, in turn: first ours, then theirs, query by query.
Our figures go through `kg serve` as it is: guard, workers, limits and all. Besides: how soon runaway queries are gone,
what they leave in the server's memory, and how long a query waits for the commit that it has to see.

Arguments: the number of quads (default 1,000,000), and how many runaways there are (default 1,000).
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad
from rich.console import Console

from kg.queries.pool import QueryPool
from kg.server.app import serve
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.load import connect, throughput

EX = "http://example.org/"
RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
PER_GRAPH = 1_000
PER_ITEM = 5
CLIENTS = 16
POINTS = 300
DEADLINE_S = 0.3
KILLS = 100
RDFLIB_QUADS = 50_000

HEAVY = {
    "count by class": f"SELECT ?t (COUNT(*) AS ?n) {{ ?s a ?t ; <{EX}size> ?z }} GROUP BY ?t",
    "join and filter": f"SELECT (COUNT(*) AS ?n) {{ ?a <{EX}near> ?b . ?b <{EX}size> ?z FILTER(?z > 500) }}",
    "100,000 rows": f"SELECT ?s ?n {{ ?s <{EX}name> ?n }} LIMIT 100000",
}
RUNAWAY = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }"


def quads(graph: int) -> Iterator[Quad]:
    """Yield the quads of one graph: items with a class, a name, a size and neighbours."""
    chance = random.Random(graph)
    name = NamedNode(f"{EX}graph/{graph}")
    near, size, label = (NamedNode(EX + term) for term in ("near", "size", "name"))
    for number in range(graph * PER_GRAPH // PER_ITEM, (graph + 1) * PER_GRAPH // PER_ITEM):
        item = NamedNode(f"{EX}item/{number}")
        yield Quad(item, RDF_TYPE, NamedNode(f"{EX}class/{number % 7}"), name)
        yield Quad(item, label, Literal(f"item number {number}"), name)
        yield Quad(item, size, Literal(chance.randrange(1000)), name)
        for _ in range(2):
            yield Quad(item, near, NamedNode(f"{EX}item/{chance.randrange(number + 1)}"), name)


def points(items: int) -> Iterator[str]:
    """Yield queries for one item each, for ever."""
    chance = random.Random(7)
    while True:
        yield f"SELECT ?p ?o {{ <{EX}item/{chance.randrange(items)}> ?p ?o }}"


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server of this module; yield it and the address that it prints first."""
    command = [sys.executable, "-m", "tests.benchmarks.endpoint", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout is not None
        try:
            address = child.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"{' '.join(arguments)} did not start")
            yield child, address
        finally:
            child.send_signal(signal.SIGTERM)


def wait_for(url: str) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = connect(url)
            connection.get("ASK {}")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            connection.close()
            return


@contextmanager
def oxigraph(folder: Path) -> Iterator[str]:
    """Run `oxigraph serve-read-only` over a store; yield the address of its endpoint."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    binary = Path(sys.executable).parent / "oxigraph"
    command = [
        str(binary), "serve-read-only", "--location", str(folder), "--bind", f"127.0.0.1:{port}",
        "--union-default-graph",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            wait_for(f"http://127.0.0.1:{port}/query")
            yield f"http://127.0.0.1:{port}/query"
        finally:
            child.terminate()


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def point_p50_ms(urls: Sequence[str], items: int) -> list[float]:
    """Return the median latency of point queries at each address, asked in turn."""
    connections = [connect(url) for url in urls]
    taken: list[list[float]] = [[] for _ in urls]
    for query in itertools.islice(points(items), POINTS + 20):
        for connection, times in zip(connections, taken, strict=True):
            status, seconds = connection.get(query)
            assert status == 200
            times.append(seconds)
    for connection in connections:
        connection.close()
    return [statistics.median(times[20:]) * 1e3 for times in taken]


def heavy_ms(urls: Sequence[str], query: str, times: int = 5) -> list[float]:
    """Return the median time of one query at each address, asked in turn."""
    taken: list[list[float]] = [[] for _ in urls]
    for _ in range(times):
        for url, seconds in zip(urls, taken, strict=True):
            connection = connect(url)  # anew: a server may close one that rests while the other server works
            status, elapsed = connection.get(query)
            assert status == 200
            seconds.append(elapsed)
            connection.close()
    return [statistics.median(seconds) * 1e3 for seconds in taken]


def kill_p99_ms(url: str, kills: int) -> float:
    """Return how long after its deadline a runaway's answer comes, which it does once its worker is dead."""
    late = []
    connection = connect(url)
    for number in range(kills):
        status, seconds = connection.get(f"{RUNAWAY} # {number}", extra=f"&timeout={DEADLINE_S}")
        assert status == 504, bytes(connection.received[:500])
        late.append(seconds - DEADLINE_S)
    connection.close()
    return sorted(late)[max(0, int(len(late) * 0.99) - 1)] * 1e3


def growth_mib(url: str, pid: int, runaways: int) -> float:
    """Return by how much the server's own memory grows over many runaways, after the first fifty."""
    connection = connect(url)
    for number in range(50):
        connection.get(f"{RUNAWAY} # first {number}", extra="&timeout=0.01")
    before = resident_mib(pid)
    for number in range(runaways):
        connection.get(f"{RUNAWAY} # then {number}", extra="&timeout=0.01")
    connection.close()
    return resident_mib(pid) - before


def commit_wait_p95_ms(store: OxigraphStore, settings: Settings, queries: int = 40) -> tuple[float, float, float]:
    """Return what a query waits more that has to see the last commit, with a commit every half second; what such a
    commit takes itself (median); and the disk that snapshots take, over that of the store.
    """
    stop = threading.Event()
    committed = threading.Event()
    ask = f"SELECT ?p ?o {{ <{EX}item/7> ?p ?o }}"

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            graph = NamedNode(f"{EX}graph/new/{number % 50}")
            rows = [
                Quad(NamedNode(f"{EX}n/{number}/{i}"), NamedNode(EX + "p"), Literal(number), graph) for i in range(100)
            ]
            begun = time.perf_counter()
            store.commit({graph: rows})
            commits.append(time.perf_counter() - begun)
            committed.set()
            stop.wait(0.5)

    writer = threading.Thread(target=write)
    waits: list[float] = []
    plain: list[float] = []
    most = 0.0
    commits: list[float] = []
    with QueryPool(store, settings) as pool:
        pool.run(ask)
        writer.start()
        for _ in range(queries):
            committed.clear()
            committed.wait()
            for times in (waits, plain):
                begun = time.perf_counter()
                pool.run(ask, at_least=store.statistics().generation)
                times.append(time.perf_counter() - begun)
            most = max(most, disk_ratio(store.directory.path))
        stop.set()
        writer.join()
    wait_s = sorted(waits)[int(len(waits) * 0.95)] - statistics.median(plain)
    return wait_s * 1e3, statistics.median(commits) * 1e3, most


def disk_ratio(data_dir: Path) -> float:
    """Return the bytes that only snapshots hold, over those of the store: a file linked twice counts once."""

    def files(folder: Path) -> dict[int, int]:
        found = {}
        for parent, _, names in os.walk(folder):  # skips a folder that the engine has just deleted
            for name in names:
                try:
                    stat = Path(parent, name).stat()
                except FileNotFoundError:
                    continue
                found[stat.st_ino] = stat.st_size
        return found

    live, kept = files(data_dir / "store"), files(data_dir / "snapshots")
    return sum(size for inode, size in kept.items() if inode not in live) / sum(live.values())


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Yield the lines of the table."""
    size = int(arguments[0]) if arguments else 1_000_000
    runaways = int(arguments[1]) if len(arguments) > 1 else 1_000
    console = Console(stderr=True)
    folder = Path(tempfile.mkdtemp(prefix="endpoint-"))
    settings = Settings(data_dir=folder / "data", _env_file=None)
    try:
        items = size // PER_ITEM
        with OxigraphStore(folder / "data") as store:
            graphs = range(max(1, size // PER_GRAPH))
            for first in range(0, len(graphs), 100):
                store.commit({NamedNode(f"{EX}graph/{g}"): list(quads(g)) for g in graphs[first : first + 100]})
            with store.snapshot() as snapshot:
                shutil.copytree(snapshot.path, folder / "theirs")
                shutil.copytree(snapshot.path, folder / "bare")
            console.print(f"{store.statistics().quads:,} quads are loaded", style="dim")
        with ExitStack() as servers:
            child, ours = servers.enter_context(process("serve", str(folder / "data")))
            ours += "/sparql"
            theirs = servers.enter_context(oxigraph(folder / "theirs"))
            bare = servers.enter_context(process("bare", str(folder / "bare")))[1] + "/sparql"
            our_ms, their_ms = point_p50_ms((ours, theirs), items)
            yield Comparison.at_most("point query, p50", our_ms, "ms", their_ms + 2.0, their_ms)
            yield from _heavy(ours, theirs)
            # In turns, so that what else the machine does falls on all of them.
            rounds = [[_rate(url, items) for url in (ours, bare, theirs)] for _ in range(3)]
            rates = [statistics.median(rate) for rate in zip(*rounds, strict=True)]
            yield Comparison.at_least(f"{CLIENTS} clients, beside bare handler", rates[0], rates[1], "1/s", 0.6)
            yield Comparison(f"{CLIENTS} clients, beside oxigraph serve", rates[0], rates[2], "1/s")
            yield from _rdflib(ours, items, console)
            yield Comparison.at_most(
                f"runaways gone after deadline, p99 of {KILLS}", kill_p99_ms(ours, KILLS), "ms", 250
            )
            grown = growth_mib(ours, child.pid, runaways)
            yield Comparison.at_most(f"server's memory over {runaways:,} runaways", grown, "MiB", 20)
        with OxigraphStore(folder / "data") as store:
            wait_ms, commit_ms, ratio = commit_wait_p95_ms(store, settings)
        yield Comparison.at_most("wait for a commit, p95", wait_ms, "ms", 100)
        yield Comparison("such a commit of 100 quads, p50", commit_ms, None, "ms")
        yield Comparison.at_most("disk of snapshots, times the store", ratio, "x", 1.5)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _heavy(ours: str, theirs: str) -> Iterator[Comparison]:
    for name, query in HEAVY.items():
        our_ms, their_ms = heavy_ms((ours, theirs), query)
        if their_ms < 100:
            yield Comparison(f"{name} (less than 100 ms)", our_ms, their_ms, "ms")
        else:
            yield Comparison.at_most(name, our_ms, "ms", 1.15 * their_ms, their_ms)


def _rate(url: str, items: int, seconds: float = 3.0) -> float:
    throughput(url, points(items), CLIENTS, 0.5)
    return throughput(url, points(items), CLIENTS, seconds)


def _rdflib(ours: str, items: int, console: Console) -> Iterator[Comparison]:
    if importlib.util.find_spec("rdflib_endpoint") is None:
        console.print("not beside rdflib-endpoint: it is not installed (pip install rdflib-endpoint)")
        return
    few = min(items, RDFLIB_QUADS // PER_ITEM)
    with process("rdflib", str(few)) as (_, address):
        wait_for(address + "/")
        theirs = _rate(address + "/", few)
    yield Comparison.at_least(f"{CLIENTS} clients, beside rdflib-endpoint", _rate(ours, few), theirs, "1/s", 1.0)


def _serve(folder: str) -> None:
    settings = Settings(data_dir=Path(folder), _env_file=None)
    serve(Path(folder), settings, port=0, on_ready=lambda address: print(address, flush=True))


def _bare(folder: str) -> None:
    """Serve a store from a handler that evaluates in the server's own threads, without any limit."""
    import pyoxigraph
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    store = pyoxigraph.Store.read_only(folder)

    def sparql(request: Request) -> Response:
        result = store.query(request.query_params["query"], use_default_graph_as_union=True)
        assert isinstance(result, pyoxigraph.QuerySolutions)
        data = result.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        return Response(data, media_type="application/sparql-results+json")

    _run(Starlette(routes=[Route("/sparql", sparql)]))


def _rdflib_endpoint(items: str) -> None:
    from rdflib import Dataset
    from rdflib_endpoint import SparqlEndpoint

    dataset = Dataset(default_union=True)
    text = "".join(
        f"{q.subject} {q.predicate} {q.object} .\n" for g in range(int(items) * PER_ITEM // PER_GRAPH) for q in quads(g)
    )
    dataset.parse(data=text, format="nt")
    _run(SparqlEndpoint(graph=dataset, path="/"))


def _run(app: Callable[..., object]) -> None:
    """Run an application as ours runs, on a free port."""
    import uvicorn

    from kg.server.connection_limits import LimitedProtocol
    from kg.server.http_server import address_of, build_logging, listen

    listening = listen("127.0.0.1", 0)
    print(address_of(listening), flush=True)
    logging = build_logging(Settings(_env_file=None))
    config = uvicorn.Config(app, log_config=logging, server_header=False, http=LimitedProtocol, loop="uvloop")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    {"serve": _serve, "bare": _bare, "rdflib": _rdflib_endpoint}[sys.argv[1]](sys.argv[2])
