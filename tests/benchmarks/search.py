"""`search` and `fetch` through MCP over HTTP, on made-up passages in many countries, beside bare ranking.

The vectors are random, made in no time by a stand-in for the model in the index process, for documents and queries
alike: what is measured is everything but the embedding of the query, and the target holds without it. Run as a
script, this module is that index process, or the server. Arguments: the number of passages (default 100,000).
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fastmcp import Client
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance import Agent, RecordOrigin, RowsOf, Run, SourceFile
from kg.search import edge_process
from kg.search.edge import EdgeIndex
from kg.search.healing import heal
from kg.server.app import serve
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import DCTERMS, ELI, FOAF, KG, RDF, SCHEMA, SKOS, mint, sha256
from tests.benchmarks.comparison import Comparison

PASSAGES_EACH = 100
REQUESTS = 200
SEARCH_LIMIT_MS = 60.0
FETCH_LIMIT_MS = 20.0
SCRIPT = (sys.executable, "-m", "tests.benchmarks.search")


class RandomEmbedder:
    """Unit vectors drawn from the hash of the text."""

    name = "random"
    dimensions = 384

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return [self.embed_query(text)[None, :] for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(self.dimensions, dtype=np.float32)
        return vector / np.linalg.norm(vector)


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


def build(folder: Path, passages: int) -> None:
    """Write the store and the index of `passages` made-up passages, each with its vector."""
    file = SourceFile(sha256("made up"), "made-up.parquet")
    run_ = Run(Agent("benchmark", "1"), sources=[file])
    settings = settings_of(folder)
    store, index = OxigraphStore(folder), EdgeIndex(folder / "index", settings)
    made = graphs(passages)
    while batch := dict(itertools.islice(made, 60)):
        origins = {
            graph: RecordOrigin(sha256(graph.value), [RowsOf(file, range(1, PASSAGES_EACH + 1))])
            for graph in batch
            if "/src/" in graph.value
        }
        store.commit(batch, run_.describe(store, origins))
    heal(store, index)
    index.wait()
    index.close()
    store.close()


def settings_of(folder: Path) -> Settings:
    """Return the settings of the measured server."""
    return Settings(data_dir=folder, _env_file=None)  # type: ignore[call-arg]


async def timed(work: Callable[[int], Awaitable[Any]], requests: int) -> list[float]:
    """Return how long each of `requests` calls took, in milliseconds, sorted; the first ones are not counted."""
    times = []
    for number in range(requests + 10):
        began = time.perf_counter()
        await work(number)
        times.append((time.perf_counter() - began) * 1_000)
    return sorted(times[10:])


def p95(times: Sequence[float]) -> float:
    """Return the 95th percentile of sorted `times`."""
    return times[int(len(times) * 0.95)]


async def measure(url: str, passages: int) -> dict[str, list[float]]:
    """Ask the server at `url`, one request after the other."""
    vocabulary, _ = words()
    documents = max(1, passages // PASSAGES_EACH)
    chance = random.Random(3)
    queries = [" ".join(chance.sample(vocabulary[:2_000], 4)) for _ in range(REQUESTS + 10)]
    codes = [country(chance.randrange(documents) // 10 * 10 + 1) for _ in queries]

    async with Client(f"{url}/mcp") as client:

        def searching(code: Callable[[int], list[str]]) -> Callable[[int], Awaitable[Any]]:
            return lambda number: client.call_tool(
                "search", {"query": queries[number], "filters": {"iso3": code(number)}, "limit": 10}
            )

        def fetching(number: int) -> Awaitable[Any]:
            ids = [
                f"cpr://doc/measure-{(number * 37 + step * 11) % documents}#p={(number + step) % PASSAGES_EACH}"
                for step in range(10)
            ]
            return client.call_tool("fetch", {"ids": ids})

        return {
            "narrow": await timed(searching(lambda number: [codes[number]]), REQUESTS),
            "wide": await timed(searching(lambda number: ["AAA"]), REQUESTS),
            "all": await timed(searching(lambda number: []), REQUESTS),
            "fetch": await timed(fetching, REQUESTS),
            "health": await timed(lambda number: client.call_tool("health", {}), REQUESTS),
        }


def bare(folder: Path) -> list[float]:
    """Return how long the index alone takes to rank, in milliseconds, sorted."""
    vocabulary, _ = words()
    chance = random.Random(4)
    index = EdgeIndex(folder / "index", settings_of(folder))
    times = []
    for _ in range(REQUESTS + 10):
        query = " ".join(chance.sample(vocabulary[:2_000], 4))
        began = time.perf_counter()
        index.rank(query, limit=10)
        times.append((time.perf_counter() - began) * 1_000)
    index.close()
    return sorted(times[10:])


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the graph, serve it, ask, and compare."""
    passages = int(arguments[0]) if arguments else 100_000
    EdgeIndex.command = (*SCRIPT, "index")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, passages)
        ranking = p95(bare(folder))
        with subprocess.Popen([*SCRIPT, "serve", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
            assert server.stdout is not None
            try:
                found = asyncio.run(measure(server.stdout.readline().decode().strip(), passages))
            finally:
                server.terminate()
    count = f"{passages:,} passages"
    one_call = p95(found["health"])
    return [
        Comparison.at_most(f"search, one country, {count}: p95", p95(found["narrow"]), "ms", SEARCH_LIMIT_MS, ranking),
        Comparison.at_most(f"search, a tenth of {count}: p95", p95(found["wide"]), "ms", SEARCH_LIMIT_MS, ranking),
        Comparison("search, no filter: p95", p95(found["all"]), ranking, "ms"),
        Comparison.at_most("fetch of 10 ids: p95", p95(found["fetch"]), "ms", FETCH_LIMIT_MS, one_call),
        Comparison("the lightest call (health): p95", one_call, None, "ms"),
    ]


if __name__ == "__main__":
    if sys.argv[1] == "index":
        edge_process.main([], lambda settings: RandomEmbedder())
    elif sys.argv[1] == "serve":
        EdgeIndex.command = (*SCRIPT, "index")
        data = Path(sys.argv[2])
        serve(data, settings_of(data), port=0, on_ready=lambda address: print(address, flush=True))
