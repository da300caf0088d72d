"""How fast names are found, committed and kept in line: 50,000 names in 200,000 passages.

``python -m tests.benchmarks mentions [-- --passages N --labels N]``. The library alone searches the lower-cased text
for the names as they are, which finds them within words too and knows no number, hyphen or capitals. All runs in a
process of its own, so that the peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyoxigraph
from ahocorasick_rs import AhoCorasick
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.vocabulary import DCTERMS, KG, PROV_GRAPH, RDF, SCHEMA, SKOS, mint, sha256
from loaders.mentions.graph.refresh import refresh
from loaders.mentions.label_variants import Label
from loaders.mentions.matcher import Matcher
from tests.benchmarks.comparison import Comparison

PASSAGES = 200_000
LABELS = 50_000
PASSAGES_A_DOCUMENT = 100
NEW_CONCEPT_EVERY = 80
"""In one document of so many, the name of the concept that is added at the end stands in four passages."""
MIB = 1 << 20


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="mentions")
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--labels", type=int, default=LABELS)
    chosen = parser.parse_args(arguments)
    size = [str(chosen.passages), str(chosen.labels)]
    finding, keeping = measure("finding", *size), measure("keeping", *size)
    names = f"{chosen.labels:,} names, {chosen.passages:,} passages"
    ours, target = finding["passages_s"], 20_000
    yield Comparison(
        f"finding ({names})", ours, finding["library_s"], "passages/s", f">= {target:,} passages/s", ours >= target
    )
    yield Comparison("the same by processor time", finding["passages_cpu_s"], finding["library_cpu_s"], "passages/s")
    yield Comparison("mentions found a passage", finding["found"], finding["library_found"], "mentions")
    yield Comparison("making the automaton", finding["build_s"], finding["library_build_s"], "s")
    yield Comparison.at_most("peak memory of finding", finding["mib"], "MiB", 1024)
    yield Comparison("finding and committing", keeping["passages_s"], None, "passages/s")
    yield Comparison("finding and committing", keeping["mentions_s"], None, "mentions/s")
    yield Comparison.at_most("quads a mention", keeping["quads"], "quads", 6)
    yield Comparison.at_most("disk a mention", keeping["bytes"], "bytes", 2048)
    yield Comparison("nothing has changed", keeping["again_s"], None, "s")
    yield Comparison.at_most(f"one concept more ({keeping['added']:.0f} mentions)", keeping["add_s"], "s", 2)
    yield Comparison("the same by processor time", keeping["add_cpu_s"], None, "s")
    yield Comparison("one concept less", keeping["remove_s"], None, "s")
    yield Comparison.at_most("peak memory of finding and committing", keeping["mib"], "MiB", 1024)


def measure(mode: str, *arguments: str) -> dict[str, float]:
    """Run one measurement in a child process and return what it found."""
    command = [sys.executable, "-m", "tests.benchmarks.mentions", mode, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


class Corpus:
    """Made-up names of one to four words, and passages of about 40 words in which one name stands."""

    def __init__(self, labels: int) -> None:
        self.chance = random.Random(0)
        self.words = self._made_up(20_000)
        rare = self._made_up(labels)
        self.labels = [
            rare[number] if number % 10 == 0 else " ".join(self.chance.choices(self.words, k=self.chance.randint(2, 4)))
            for number in range(labels)
        ]

    def _made_up(self, count: int) -> list[str]:
        letters = "abcdefghijklmnopqrstuvwxyz"
        return ["".join(self.chance.choices(letters, k=self.chance.randint(3, 9))) for _ in range(count)]

    def passage(self, number: int) -> str:
        words = self.chance.choices(self.words, k=38)
        words[self.chance.randrange(len(words))] = self.chance.choice(self.labels)
        if number // PASSAGES_A_DOCUMENT % NEW_CONCEPT_EVERY == 0 and number % PASSAGES_A_DOCUMENT < 4:
            words.append("a quorvex panel")
        return " ".join(words).capitalize() + "."


def finding(passages: int, count: int) -> dict[str, float]:
    """Search texts that are in memory."""
    corpus = Corpus(count)
    texts = [corpus.passage(number) for number in range(passages)]
    start = time.perf_counter()
    matcher = Matcher(Label(f"c{number}", text, "en", "label") for number, text in enumerate(corpus.labels))
    matcher.find("", ["en"])
    built = time.perf_counter() - start
    start, cpu = time.perf_counter(), time.process_time()
    found = sum(len(matcher.find(text, ["en"])) for text in texts)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = mib()
    start = time.perf_counter()
    library = AhoCorasick(corpus.labels)
    library_built = time.perf_counter() - start
    start, library_cpu = time.perf_counter(), time.process_time()
    theirs = sum(len(library.find_matches_as_indexes(text.lower(), overlapping=True)) for text in texts)
    library_seconds, library_cpu = time.perf_counter() - start, time.process_time() - library_cpu
    return {
        "passages_s": passages / seconds,
        "passages_cpu_s": passages / cpu,
        "library_s": passages / library_seconds,
        "library_cpu_s": passages / library_cpu,
        "found": found / passages,
        "library_found": theirs / passages,
        "build_s": built,
        "library_build_s": library_built,
        "mib": peak,
    }


def keeping(passages: int, count: int) -> dict[str, float]:
    """Search a store, commit what is found, and do it again after small changes."""
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        settings = Settings(data_dir=Path(folder) / "data", models_dir=Path(folder) / "models")
        KnowledgeGraph.open(settings.data_dir, settings).close()
        # In a process of its own: what that takes of memory is none of ours.
        command = [sys.executable, "-m", "tests.benchmarks.mentions", "writing", str(passages), str(count)]
        subprocess.run([*command, str(settings.data_dir / "store")], check=True)
        with KnowledgeGraph.open(settings.data_dir, settings) as kg:
            before = disk(kg)
            first = timed(kg)
            after = disk(kg)
            again = timed(kg)
            graph, added = concept(count, "quorvex panels")
            kg.store.commit({graph: added})
            more = timed(kg)
            kg.store.commit({graph: ()})
            less = timed(kg)
    mentions = first["mentions"]
    return {
        "passages_s": passages / first["seconds"],
        "mentions_s": mentions / first["seconds"],
        "quads": first["quads_added"] / mentions,
        "bytes": (after - before) / mentions,
        "again_s": again["seconds"],
        "added": more["quads_added"] / 6,
        "add_s": more["seconds"],
        "add_cpu_s": more["cpu"],
        "remove_s": less["seconds"],
        "mib": mib(),
    }


def timed(kg: KnowledgeGraph) -> dict[str, float]:
    cpu = time.process_time()
    done: dict[str, float] = refresh(kg).to_dict()
    return {**done, "cpu": time.process_time() - cpu}


def write_store(folder: Path, corpus: Corpus, passages: int) -> None:
    """Write a store with the passages and concepts, past all that a load does."""
    store = pyoxigraph.Store(folder)
    store.bulk_extend(quad for number in range(passages) for quad in passage(number, corpus.passage(number)))
    store.bulk_extend(quad for number, text in enumerate(corpus.labels) for quad in concept(number, text)[1])
    store.optimize()


def passage(number: int, text: str) -> Iterator[Quad]:
    document, index = divmod(number, PASSAGES_A_DOCUMENT)
    slug = f"fictional-{document:07d}"
    graph, unit = mint("graph", "src", "climate", slug), mint("passage", slug, str(index))
    if index == 0:
        yield Quad(graph, KG.contentSha256, Literal(sha256(slug)), PROV_GRAPH)
    yield Quad(unit, RDF.type, KG.Passage, graph)
    yield Quad(unit, DCTERMS.isPartOf, mint("document", slug), graph)
    yield Quad(unit, SCHEMA.position, Literal(index), graph)
    yield Quad(unit, SCHEMA.text, Literal(text), graph)
    yield Quad(unit, KG.textSha256, Literal(sha256(text)), graph)
    yield Quad(unit, SCHEMA.inLanguage, Literal("en"), graph)


def concept(number: int, text: str) -> tuple[NamedNode, list[Quad]]:
    graph, iri = mint("graph", "der", "skos", "climate", f"Q{number}"), mint("concept", f"Q{number}")
    return graph, [
        Quad(iri, RDF.type, SKOS.Concept, graph),
        Quad(iri, SKOS.prefLabel, Literal(text, language="en"), graph),
    ]


def disk(kg: KnowledgeGraph) -> int:
    """Bytes on the disk once everything is in tables."""
    with kg.store.snapshot(kg.store.statistics().generation) as snapshot:
        return sum(path.stat().st_size for path in snapshot.path.rglob("*.sst"))


def mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


if __name__ == "__main__":
    if sys.argv[1] == "writing":
        write_store(Path(sys.argv[4]), Corpus(int(sys.argv[3])), int(sys.argv[2]))
        sys.exit()
    measurements = {"finding": finding, "keeping": keeping}
    print(json.dumps(measurements[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))))
