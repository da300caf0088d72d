"""`search` and `fetch` through MCP over HTTP, on made-up passages in many countries, beside bare ranking.

The vectors are random, made in no time by a stand-in for the model in the index process, for documents and queries
alike: what is measured is everything but the embedding of the query, and the target holds without it. Each request is
timed twice: first as plain JSON-RPC over one kept connection, which is the server's time and has the targets, then
through FastMCP's client, which also checks each result against its schema (some 10 ms for ten texts). The first one
meets most documents for the first time, the second finds them in memory.

The store is built once and stays in the user's cache until its parameters or the code that writes it change. Run as a
script, this module is that index process, or the server. Arguments: the number of passages (default 100,000).
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import itertools
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from fastmcp import Client
from numpy.typing import NDArray
from platformdirs import user_cache_path
from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Agent, RecordOrigin, RowsOf, Run, SourceFile
from kg.retrieval.hybrid_search import FIRST_BLOCK
from kg.search import index_process
from kg.search.index_client import EdgeIndex
from kg.search.index_sync import repair_index
from kg.server.app import serve
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import DCTERMS, ELI, FOAF, KG, RDF, SCHEMA, SKOS, mint, sha256
from tests.benchmarks.comparison import Comparison, median, p95

PASSAGES_EACH = 100
REQUESTS = 200
WARM_UP = 10
SEARCH_LIMIT_MS = 60.0
FETCH_LIMIT_MS = 20.0
SCRIPT = (sys.executable, "-m", "tests.benchmarks.search")


class RandomEmbedder:
    """Unit vectors drawn from the hash of the text."""

    name = "random"
    dimensions = 384
    at_once = 32
    languages: frozenset[str] | None = None

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return [self.embed_query(text)[None, :] for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(self.dimensions, dtype=np.float32)
        return vector / np.linalg.norm(vector)


class WordEmbedder:
    """The mean of a random vector for each word, of norm 1: texts with the same words are near each other."""

    name = "words"
    dimensions = RandomEmbedder.dimensions
    at_once = RandomEmbedder.at_once
    languages: frozenset[str] | None = None

    def __init__(self) -> None:
        self._random = RandomEmbedder()
        self._words: dict[str, NDArray[np.float32]] = {}

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return [self.embed_query(text)[None, :] for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        words = text.split() or [""]
        for word in words:
            if word not in self._words:
                self._words[word] = self._random.embed_query(word)
        whole: NDArray[np.float32] = np.stack([self._words[word] for word in words]).sum(axis=0)
        return whole / np.linalg.norm(whole)


def country(document: int) -> str:
    """Return the code of the country of a document: one in ten is in AAA, the others in 180 countries."""
    if document % 10 == 0:
        return "AAA"
    number = document % 180
    return "".join(chr(65 + number // divisor % 6) for divisor in (36, 6, 1))[::-1] + "Z"


def words() -> tuple[list[str], list[float]]:
    """Return a made-up vocabulary with frequencies that fall as those of a language do."""
    chance = random.Random(1)
    vocabulary = ["".join(chance.choices("aeioulnrst", k=chance.randint(4, 9))) for _ in range(8_000)]
    return vocabulary, list(itertools.accumulate(1 / (rank + 10) for rank in range(len(vocabulary))))


def graphs(passages: int) -> Iterator[tuple[NamedNode, list[Quad]]]:
    """Yield made-up documents as their graphs, and the graphs of their countries and families."""
    vocabulary, weights = words()
    chance = random.Random(2)
    places = set()
    for number in range(max(1, passages // PASSAGES_EACH)):
        slug = f"measure-{number}"
        graph, document = mint("graph", "src", "climate", slug), mint("document", slug)
        family, place = mint("family", f"family-{number // 3}"), mint("place", country(number))
        about: list[tuple[NamedNode, NamedNode | Literal]] = [
            (RDF.type, KG.PolicyDocument),
            (DCTERMS.title, Literal(f"Measure {number} of {country(number)}")),
            (KG.slug, Literal(slug)),
            (DCTERMS.identifier, Literal(f"MADE.{number}")),
            (ELI.is_member_of, family),
            (KG.corpusType, mint("code", "corpusType", "Laws and Policies")),
            (KG.jurisdiction, place),
            (SCHEMA.inLanguage, Literal("en")),
            (FOAF.page, NamedNode(f"https://app.climatepolicyradar.org/documents/{slug}")),
        ]
        quads = [Quad(document, name, value, graph) for name, value in about]
        for position in range(PASSAGES_EACH):
            unit = mint("passage", slug, str(position))
            text = " ".join(chance.choices(vocabulary, cum_weights=weights, k=40))
            said: list[tuple[NamedNode, NamedNode | Literal]] = [
                (RDF.type, KG.Passage),
                (DCTERMS.isPartOf, document),
                (SCHEMA.position, Literal(position)),
                (SCHEMA.text, Literal(text)),
                (KG.textSha256, Literal(sha256(text))),
                (KG.pageNumber, Literal(position // 8 + 1)),
                (KG.blockType, mint("code", "blockType", "Text")),
            ]
            quads += [Quad(unit, name, value, graph) for name, value in said]
        yield graph, quads
        if number % 3 == 0:
            shared = mint("graph", "ref", "family", f"family-{number // 3}")
            title = Literal(f"Family {number // 3}")
            yield shared, [Quad(family, RDF.type, KG.PolicyFamily, shared), Quad(family, DCTERMS.title, title, shared)]
        if place not in places:
            places.add(place)
            shared = mint("graph", "ref", "place", country(number))
            code = Literal(country(number))
            yield shared, [Quad(place, RDF.type, KG.Place, shared), Quad(place, SKOS.notation, code, shared)]


def build(folder: Path, made: Iterator[tuple[NamedNode, list[Quad]]]) -> None:
    """Write the store and the index of made-up graphs, each text with its vector."""
    file = SourceFile(sha256("made up"), "made-up.parquet")
    run_ = Run(Agent("benchmark", "1"), sources=[file])
    settings = settings_of(folder)
    store, index = OxigraphStore(folder), EdgeIndex(folder / "index", settings)
    while batch := dict(itertools.islice(made, 60)):
        origins = {
            graph: RecordOrigin(sha256(graph.value), [RowsOf(file, range(1, PASSAGES_EACH + 1))])
            for graph in batch
            if "/src/" in graph.value
        }
        store.commit(batch, run_.describe(store, origins))
    repair_index(store, index)
    index.wait()
    index.close()
    store.close()


def cached(
    passages: int,
    made: Callable[[int], Iterator[tuple[NamedNode, list[Quad]]]] = graphs,
    source: Path = Path(__file__),
) -> Path:
    """Return a data directory of `passages` made-up texts, built if there is none by this code, that of `source`."""
    root = Path(__file__).parent.parent.parent
    code = hashlib.sha256(source.read_bytes())
    for folder in ("kg/store", "kg/search", "kg/provenance"):
        for file in sorted((root / folder).glob("*.py")):
            code.update(file.read_bytes())
    place = user_cache_path("quadcite") / "benchmarks" / source.stem
    wanted = place / f"{passages}-{code.hexdigest()[:16]}"
    if not wanted.is_dir():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        draft = place / "draft"
        print(f"building a store of {passages:,} passages in {place}", flush=True)
        build(draft, made(passages))
        draft.rename(wanted)
    return wanted


def settings_of(folder: Path) -> Settings:
    """Return the settings of the measured server."""
    return Settings(data_dir=folder, _env_file=None)


Call = tuple[str, dict[str, Any]]


def requests(passages: int) -> dict[str, Callable[[int], Call]]:
    """Return makers of tool calls, by what they measure; the same number gives the same call."""
    vocabulary, _ = words()
    documents = max(1, passages // PASSAGES_EACH)
    chance = random.Random(3)
    queries = [" ".join(chance.sample(vocabulary[:2_000], 4)) for _ in range(WARM_UP + REQUESTS)]
    codes = [country(chance.randrange(documents) // 10 * 10 + 1) for _ in queries]

    def searching(code: Callable[[int], list[str]]) -> Callable[[int], Call]:
        return lambda number: (
            "search",
            {"query": queries[number], "filters": {"iso3": code(number)}, "limit": 10},
        )

    def fetching(number: int) -> Call:
        ids = [
            f"cpr://doc/measure-{(number * 37 + step * 11) % documents}#p={(number + step) % PASSAGES_EACH}"
            for step in range(10)
        ]
        return "fetch", {"ids": ids}

    return {
        "fetch": fetching,
        "narrow": searching(lambda number: [codes[number]]),
        "wide": searching(lambda number: ["AAA"]),
        "all": searching(lambda number: []),
        "health": lambda number: ("health", {}),
    }


async def through_client(url: str, call_of: Callable[[int], Call]) -> list[float]:
    """Return how long each call took through FastMCP's client, in milliseconds, sorted; warming up not counted."""
    times = []
    async with Client(f"{url}/mcp") as client:
        for number in range(WARM_UP + REQUESTS):
            name, arguments = call_of(number)
            began = time.perf_counter()
            await client.call_tool(name, arguments)
            times.append((time.perf_counter() - began) * 1_000)
    return sorted(times[WARM_UP:])


def plainly(url: str, call_of: Callable[[int], Call], path: str = "/mcp") -> list[float]:
    """Return how long each call took as JSON-RPC over one connection, until the whole answer was read."""
    return in_turns(url, {"": call_of}, path)[0][""]


def processor_ms(pid: int) -> float:
    """Return the processor time of a process and its children so far, in milliseconds; 0 without ``/proc``."""
    total, waiting = 0, [pid]
    for process in waiting:
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
                waiting += map(int, (task / "children").read_text().split())
        except OSError:  # it has ended, or this is no Linux
            continue
    return total / 1e6


def in_turns(
    url: str, calls: Mapping[str, Callable[[int], Call]], path: str = "/mcp", pid: int | None = None
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the times of `plainly` for several kinds of calls in turns, so that all meet the same load.

    The second times are those of the processor in the server `pid` and its processes, which other load changes less.
    """
    times: dict[str, list[float]] = {kind: [] for kind in calls}
    worked: dict[str, list[float]] = {kind: [] for kind in calls}
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for number in range(WARM_UP + REQUESTS):
        for kind, call_of in calls.items():
            name, arguments = call_of(number)
            params = {"name": name, "arguments": arguments}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            before = 0.0 if pid is None else processor_ms(pid)
            began = time.perf_counter()
            connection.request("POST", path, body, headers)
            answer = connection.getresponse().read()
            times[kind].append((time.perf_counter() - began) * 1_000)
            worked[kind].append(0.0 if pid is None else processor_ms(pid) - before)
            if json.loads(answer)["result"].get("isError"):
                raise RuntimeError(f"{name} failed: {answer.decode()[:300]}")
    connection.close()
    first, second = ({kind: sorted(own[WARM_UP:]) for kind, own in each.items()} for each in (times, worked))
    return first, second


def measure(url: str, passages: int) -> dict[str, tuple[list[float], list[float]]]:
    """Ask the server at `url`, one request after the other; return the times of plain requests and of the client."""
    return {
        name: (plainly(url, call_of), asyncio.run(through_client(url, call_of)))
        for name, call_of in requests(passages).items()
    }


def bare(folder: Path) -> list[float]:
    """Return how long the index alone takes to rank without a filter, in milliseconds, sorted."""
    vocabulary, _ = words()
    chance = random.Random(4)
    index = EdgeIndex(folder / "index", settings_of(folder))
    times = []
    for _ in range(WARM_UP + REQUESTS):
        query = " ".join(chance.sample(vocabulary[:2_000], 4))
        began = time.perf_counter()
        index.rank(query, limit=FIRST_BLOCK)
        times.append((time.perf_counter() - began) * 1_000)
    index.close()
    return sorted(times[WARM_UP:])


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the graph unless it is there, serve it, ask, and compare."""
    passages = int(arguments[0]) if arguments else 100_000
    EdgeIndex.command = (*SCRIPT, "index")
    folder = cached(passages)
    ranking = bare(folder)
    with subprocess.Popen([*SCRIPT, "serve", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            found = measure(server.stdout.readline().decode().strip(), passages)
        finally:
            server.terminate()
    count = f"{passages:,} passages"
    names = {
        "narrow": (f"search, one country, {count}", SEARCH_LIMIT_MS, ranking),
        "wide": (f"search, a tenth of {count}", SEARCH_LIMIT_MS, ranking),
        "all": ("search, no filter", None, ranking),
        "fetch": ("fetch of 10 ids", FETCH_LIMIT_MS, None),
        "health": ("the lightest call (health)", None, None),
    }
    for name, (title, limit, beside) in names.items():
        plain, client = found[name]
        theirs = None if beside is None else (median(beside), p95(beside))
        yield Comparison(f"{title}: median", median(plain), theirs and theirs[0], "ms")
        if limit is None:
            yield Comparison(f"{title}: p95", p95(plain), theirs and theirs[1], "ms")
        else:
            yield Comparison.at_most(f"{title}: p95", p95(plain), "ms", limit, theirs and theirs[1])
        yield Comparison("  through FastMCP's client: median", median(client), None, "ms")
        yield Comparison("  through FastMCP's client: p95", p95(client), None, "ms")


if __name__ == "__main__":
    if sys.argv[1] == "index":
        index_process.main(lambda settings, model: RandomEmbedder())
    elif sys.argv[1] == "serve":
        EdgeIndex.command = (*SCRIPT, "index")
        data = Path(sys.argv[2])
        serve(data, settings_of(data), port=0, on_ready=lambda address: print(address, flush=True))
