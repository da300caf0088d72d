"""How fast the tools for concepts answer on 200,000 statements and 1,000,000 mentions, beside the bare engine.

``python -m tests.benchmarks concepts [-- --mentions N]``. Concepts have twenty direct statements each, half of them
links, of these three in ten to one of 500 concepts that much is said of; a passage mentions five concepts, three in ten
of them of the common ones. Calls go through the workers as every call of a tool does; each is the first one for its
argument.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.settings import Settings
from kg.sparql.terms import bind
from kg.tools.climate.families import family_overview
from kg.tools.climate.jurisdictions import compare_jurisdictions, jurisdiction_overview
from kg.tools.concepts.find import concept_find, concept_properties
from kg.tools.concepts.mentions import concept_mentions
from kg.tools.concepts.neighbors import concept_neighbors
from kg.vocabulary import DCTERMS, ELI, KG, OA, PREFIXES, RDF, SCHEMA, SKOS, WIKIBASE, mint, mint_mention
from tests.benchmarks.comparison import Comparison

BASE = "https://climatepolicyradar.wikibase.cloud/"
CONCEPTS, STATEMENTS_EACH, COMMON = 10_000, 20, 500
PASSAGES_A_DOCUMENT, MENTIONS_A_PASSAGE = 100, 5
CALLS = 60

# What the tool asks for, in one query of the bare engine: the statements between items within two steps.
TWO_STEPS = """
SELECT DISTINCT ?subject ?predicate ?object WHERE {
  { VALUES ?near { $node } }
  UNION { $node ?p1 ?near FILTER(STRSTARTS(STR(?p1), $start)) }
  UNION { ?near ?p2 $node FILTER(STRSTARTS(STR(?p2), $start)) }
  { ?near ?predicate ?object BIND(?near AS ?subject) } UNION { ?subject ?predicate ?near BIND(?near AS ?object) }
  FILTER(STRSTARTS(STR(?predicate), $start))
}"""


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="concepts")
    parser.add_argument("--mentions", type=int, default=1_000_000)
    mentions: int = parser.parse_args(arguments).mentions
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        settings = Settings(data_dir=Path(folder) / "data", models_dir=Path(folder) / "models", _env_file=None)
        KnowledgeGraph.open(settings.data_dir, settings).close()
        # In a process of its own: the engine keeps what it has written in memory.
        command = [sys.executable, "-m", "tests.benchmarks.concepts", str(settings.data_dir / "store"), str(mentions)]
        subprocess.run(command, check=True)
        with KnowledgeGraph.open(settings.data_dir, settings) as kg:
            yield from measured(kg)


def measured(kg: KnowledgeGraph) -> Iterator[Comparison]:
    chance = random.Random(1)
    began = time.perf_counter()
    load_concepts(kg)
    yield Comparison(f"reading {CONCEPTS:,} concepts with their names", time.perf_counter() - began, None, "s")
    began = time.perf_counter()
    concept_find(kg, q="quorvex")
    yield Comparison("making their names findable", (time.perf_counter() - began) * 1000, None, "ms")
    names = [concept.label for concept in load_concepts(kg).by_iri.values()]
    yield Comparison("concept_find, p95", p95(lambda: concept_find(kg, q=chance.choice(names)[:-1])), None, "ms")
    some = [f"Q{number}" for number in chance.sample(range(1, CONCEPTS), 3 * CALLS)]
    with kg.store.snapshot() as snapshot:
        theirs, edges = alternative(str(snapshot.path), some)
        turns = iter(some)
        ours = p95(lambda: concept_neighbors(kg, next(turns), hops=2))
        yield Comparison.at_most(f"concept_neighbors, 2 hops ({edges:,.0f} edges), p95", ours, "ms", 50, theirs)
    turns = iter(some)
    yield Comparison("the same, one hop, with counts, p95", p95(lambda: one_hop(kg, next(turns))), None, "ms")
    yield Comparison("concept_properties of all, the first call", once(lambda: concept_properties(kg)), None, "ms")
    turns = iter(some)
    yield Comparison("concept_mentions, p95", p95(lambda: concept_mentions(kg, [next(turns)])), None, "ms")
    common = iter(range(1, COMMON))
    yield Comparison(
        "concept_mentions of a common concept, p95", p95(lambda: concept_mentions(kg, [f"Q{next(common)}"])), None, "ms"
    )
    first = once(lambda: jurisdiction_overview(kg, "AAA"))
    yield Comparison("jurisdiction_overview, the first call", first, None, "ms")
    yield Comparison("the same again", once(lambda: jurisdiction_overview(kg, "AAA")), None, "ms")
    compare = once(lambda: compare_jurisdictions(kg, "AAB", "AAC", by="concept"))
    yield Comparison("compare_jurisdictions by concept, the first call", compare, None, "ms")
    families = once(lambda: family_overview(kg, top_concepts=3))
    yield Comparison("family_overview with concepts (50 families)", families, None, "ms")


def alternative(path: str, qids: Sequence[str]) -> tuple[float, float]:
    """Return how long the bare engine takes for two steps (p95, in ms), and how many edges it finds as a rule."""
    engine = pyoxigraph.Store.read_only(path)
    turns = iter(qids)
    theirs = p95(lambda: bare(engine, next(turns)))
    return theirs, statistics.mean(bare(engine, qid) for qid in qids[:CALLS])


def one_hop(kg: KnowledgeGraph, qid: str) -> Any:
    return concept_neighbors(kg, qid, counts=True)


def bare(engine: pyoxigraph.Store, qid: str) -> int:
    """Return how many edges the engine gives for two steps, asked at once and in this process."""
    node, start = NamedNode(f"{BASE}entity/{qid}"), Literal(f"{BASE}prop/direct/")
    query = bind(TWO_STEPS, node=node, start=start)
    found = engine.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
    assert isinstance(found, pyoxigraph.QuerySolutions)
    return sum(1 for _ in found)


def once(call: Callable[[], Any]) -> float:
    """Return how long a call takes, in milliseconds."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def p95(call: Callable[[], Any]) -> float:
    """Return the 95th percentile of the durations of calls, in milliseconds."""
    return sorted(once(call) for _ in range(CALLS))[int(CALLS * 0.95)]


def concept_quads(chance: random.Random) -> Iterator[Quad]:
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(5_000)]
    properties = [NamedNode(f"{BASE}prop/direct/P{number}") for number in range(1, 21)]
    for number in range(1, CONCEPTS + 1):
        qid = f"Q{number}"
        entity, concept = NamedNode(f"{BASE}entity/{qid}"), mint("concept", qid)
        graph, view = mint("graph", "src", "wikibase", "climate", qid), mint("graph", "der", "skos", "climate", qid)
        yield Quad(entity, RDF.type, WIKIBASE.Item, graph)
        for position in range(STATEMENTS_EACH):
            other = chance.randint(1, COMMON if chance.random() < 0.3 else CONCEPTS)
            node = NamedNode(f"{BASE}entity/statement/{qid}-{position}")
            direct = chance.choice(properties)
            target = NamedNode(f"{BASE}entity/Q{other}") if position % 2 else Literal(f"value {other}")
            yield Quad(entity, direct, target, graph)
            yield Quad(entity, NamedNode(direct.value.replace("direct/", "")), node, graph)
            yield Quad(node, NamedNode(direct.value.replace("direct", "statement")), target, graph)
            yield Quad(node, RDF.type, WIKIBASE.Statement, graph)
            yield Quad(node, WIKIBASE.rank, WIKIBASE.NormalRank, graph)
        yield Quad(concept, RDF.type, SKOS.Concept, view)
        yield Quad(concept, KG.wikibaseEntity, entity, view)
        yield Quad(concept, SKOS.prefLabel, Literal(" ".join(chance.choices(words, k=2)), language="en"), view)
        for _ in range(3):
            yield Quad(concept, SKOS.altLabel, Literal(" ".join(chance.choices(words, k=2)), language="en"), view)
        yield Quad(concept, SKOS.broader, mint("concept", f"Q{chance.randint(1, CONCEPTS)}"), view)


def text_quads(chance: random.Random, mentions: int) -> Iterator[Quad]:
    for number in range(mentions // MENTIONS_A_PASSAGE // PASSAGES_A_DOCUMENT):
        slug = f"act_{number}"
        document, family = mint("document", slug), mint("family", f"family_{number // 2}")
        graph, found = mint("graph", "src", "climate", slug), mint("graph", "ext", "mentions", "climate", slug)
        place = mint("place", "AA" + chr(65 + number % 10))
        yield Quad(place, RDF.type, KG.Place, place)
        yield Quad(family, DCTERMS.title, Literal(f"Family {number // 2}"), family)
        yield Quad(document, RDF.type, KG.PolicyDocument, graph)
        yield Quad(document, KG.slug, Literal(slug), graph)
        yield Quad(document, DCTERMS.title, Literal(f"Act {number}"), graph)
        yield Quad(document, KG.jurisdiction, place, graph)
        yield Quad(document, KG.corpusType, mint("code", "corpusType", "Laws"), graph)
        yield Quad(document, SCHEMA.inLanguage, Literal("en"), graph)
        yield Quad(document, ELI.is_member_of, family, graph)
        for position in range(PASSAGES_A_DOCUMENT):
            unit = mint("passage", slug, str(position))
            yield Quad(unit, RDF.type, KG.Passage, graph)
            yield Quad(unit, DCTERMS.isPartOf, document, graph)
            yield Quad(unit, SCHEMA.position, Literal(position), graph)
            yield Quad(unit, SCHEMA.text, Literal("some words that mention a concept or two " * 5), graph)
            for at in range(MENTIONS_A_PASSAGE):
                concept = mint("concept", f"Q{chance.randint(1, COMMON if chance.random() < 0.3 else CONCEPTS)}")
                mention = mint_mention(unit, at * 10, at * 10 + 8, concept)
                yield Quad(unit, KG.mentions, concept, found)
                yield Quad(mention, OA.hasSource, unit, found)
                yield Quad(mention, KG.object, concept, found)
                yield Quad(mention, KG.start, Literal(at * 10), found)
                yield Quad(mention, KG.end, Literal(at * 10 + 8), found)
                yield Quad(mention, KG.matchType, Literal("label"), found)


if __name__ == "__main__":
    writing = pyoxigraph.Store(sys.argv[1])
    writing.bulk_extend(concept_quads(random.Random(0)))
    writing.bulk_extend(text_quads(random.Random(0), int(sys.argv[2])))
    writing.optimize()
