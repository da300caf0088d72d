"""`hybrid_query` with two hops, beside `search` over the same files: what the expansion over relations costs.

Made-up notes of fifty chunks each mention made-up entities, some of them very often, and state relations of these. As
in the benchmark `search`, vectors are random and requests are plain JSON-RPC. The queries of both differ, so that both
meet most files for the first time. Arguments: the number of chunks (default 100,000), and of relations (200,000).
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.promotion import PROMOTED
from kg.search.index_client import EdgeIndex
from kg.vocabulary import (
    DCTERMS,
    EXTRACTED,
    KG,
    OA,
    RDF,
    SCHEMA,
    SKOS,
    XSD,
    mint,
    mint_claim,
    mint_mention,
    mint_span,
    sha256,
)  # fmt: skip
from tests.benchmarks.comparison import Comparison, median, p95
from tests.benchmarks.search import REQUESTS, SCRIPT, WARM_UP, Call, cached, in_turns, words

CHUNKS_EACH = 50
MENTIONS_EACH = 5
CHUNKS_OF_ENTITY = 3
"""Chunks for each entity, on average."""
LIMIT_MS = 60.0
K = 40
PROPERTIES = (KG.uses, KG.dependsOn, KG.defines, KG.partOf)


def graphs(chunks: int, relations: int) -> Iterator[tuple[NamedNode, list[Quad]]]:
    """Yield made-up files, what was extracted from each, and the entities."""
    vocabulary, weights = words()
    chance = random.Random(5)
    files = max(1, chunks // CHUNKS_EACH)
    entities = [mint("entity", "term", f"thing{number}") for number in range(max(2, chunks // CHUNKS_OF_ENTITY))]
    left = relations

    def pick() -> NamedNode:
        return entities[int(len(entities) * chance.random() ** 3)]

    shared: list[Quad] = []
    graph = mint("graph", "ref", "entity", "made")
    for number, entity in enumerate(entities):
        said: list[tuple[NamedNode, NamedNode | Literal]] = [
            (RDF.type, KG.Entity),
            (KG.entityType, mint("code", "entityType", "term")),
            (KG.norm, Literal(f"thing{number}")),
            (SKOS.prefLabel, Literal(f"thing {number}")),
        ]
        shared += [Quad(entity, name, value, graph) for name, value in said]
    yield graph, shared
    for number in range(files):
        name = f"note-{number}.md"
        graph, file = mint("graph", "src", "files", "made", name), mint("file", "made", name)
        extracted, edges = (NamedNode(f"{root}entities/files/made/{name}") for root in (EXTRACTED, PROMOTED))
        quads = [
            Quad(file, RDF.type, KG.File, graph),
            Quad(file, DCTERMS.title, Literal(f"Note {number}"), graph),
            Quad(file, KG.collection, Literal("made"), graph),
            Quad(file, KG.path, Literal(name), graph),
        ]
        found: list[Quad] = []
        units = []
        for position in range(CHUNKS_EACH):
            text = " ".join(chance.choices(vocabulary, cum_weights=weights, k=40))
            unit = mint_span(file, position * 1_000, position * 1_000 + len(text))
            units.append(unit)
            about: list[tuple[NamedNode, NamedNode | Literal]] = [
                (RDF.type, KG.Chunk),
                (DCTERMS.isPartOf, file),
                (SCHEMA.position, Literal(position)),
                (SCHEMA.text, Literal(text)),
                (KG.textSha256, Literal(sha256(text))),
                (KG.breadcrumb, Literal(f"Part {position}")),
            ]
            quads += [Quad(unit, name_, value, graph) for name_, value in about]
            for entity in dict.fromkeys(pick() for _ in range(MENTIONS_EACH)):
                node = mint_mention(unit, 0, 5, entity)
                found += [
                    Quad(unit, KG.mentions, entity, extracted),
                    Quad(node, OA.hasSource, unit, extracted),
                    Quad(node, KG.object, entity, extracted),
                ]
        promoted: dict[Quad, None] = {}
        share = left // (files - number)
        left -= share
        for _ in range(share):
            subject, name_, value, unit = pick(), chance.choice(PROPERTIES), pick(), chance.choice(units)
            claim, span = mint_claim(subject, name_, value, extracted), NamedNode(f"{unit.value}&char=0,20")
            found += [
                Quad(claim, RDF.type, KG.EntityRelation, extracted),
                Quad(claim, RDF.subject, subject, extracted),
                Quad(claim, RDF.predicate, name_, extracted),
                Quad(claim, RDF.object, value, extracted),
                Quad(claim, KG.confidence, Literal("0.8", datatype=XSD.decimal), extracted),
                Quad(claim, KG.evidence, span, extracted),
                Quad(span, OA.hasSource, unit, extracted),
                Quad(span, OA.exact, Literal("words of the sentence"), extracted),
            ]
            promoted[Quad(subject, name_, value, edges)] = None
        yield graph, quads
        yield extracted, list(dict.fromkeys(found))
        yield edges, list(promoted)


def requests() -> dict[str, Callable[[int], Call]]:
    """Return makers of calls, by what they measure."""
    vocabulary, _ = words()
    chance = random.Random(6)
    queries = [" ".join(chance.sample(vocabulary[:2_000], 4)) for _ in range(3 * (WARM_UP + REQUESTS))]
    return {
        "search": lambda number: ("search", {"query": queries[3 * number], "limit": K}),
        "hybrid": lambda number: ("hybrid_query", {"q": queries[3 * number + 1], "k": K, "hops": 2}),
        "alone": lambda number: ("hybrid_query", {"q": queries[3 * number + 2], "k": K, "hops": 0}),
    }


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the graph unless it is there, serve it, ask, and compare."""
    chunks = int(arguments[0]) if arguments else 100_000
    relations = int(arguments[1]) if len(arguments) > 1 else 200_000
    EdgeIndex.command = (*SCRIPT, "index")
    folder = cached(chunks, partial(graphs, relations=relations), Path(__file__))
    with subprocess.Popen([*SCRIPT, "serve", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            times, worked = in_turns(url, requests(), "/mcp/documents", server.pid)
        finally:
            server.terminate()
    count = f"{chunks:,} chunks, {relations:,} relations"
    plain, hybrid = times["search"], times["hybrid"]
    yield Comparison(f"search of {count}: median", median(plain), None, "ms")
    yield Comparison("search: p95", p95(plain), None, "ms")
    yield Comparison("hybrid_query, 2 hops: median", median(hybrid), median(plain), "ms")
    yield Comparison("hybrid_query, 2 hops: p95", p95(hybrid), p95(plain), "ms")
    yield Comparison("hybrid_query without hops: p95", p95(times["alone"]), p95(plain), "ms")
    yield Comparison.at_most("hybrid_query, 2 hops: p95 above that of search", p95(hybrid) - p95(plain), "ms", LIMIT_MS)
    plain, hybrid = worked["search"], worked["hybrid"]
    yield Comparison("hybrid_query, 2 hops: median of processor time", median(hybrid), median(plain), "ms")
    yield Comparison("hybrid_query, 2 hops: p95 of processor time", p95(hybrid), p95(plain), "ms")
    yield Comparison("hybrid_query, 2 hops: its p95 above that of search", p95(hybrid) - p95(plain), None, "ms")
