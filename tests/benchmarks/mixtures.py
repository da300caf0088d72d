"""Searches by words and by meaning in an index of up to millions of texts that are like real ones.

The texts are the passages of both corpora (`tests.benchmarks.corpora`) and mixtures: half of the words of one passage
and half of another one, with the mean of their vectors. So the orders by words and by meaning agree as far as those of
real texts do, which they do not for made-up words. The questions are those of the corpora. Arguments: ``--texts N``
(default 150,000; 3 million take 16 GB of disk and a quarter of an hour), ``--processes N``.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from platformdirs import user_cache_path

from kg.processes.cores import count_cores
from kg.search.embedding import open_embedder
from kg.search.index_client import EdgeIndex
from kg.search.payloads import digest
from kg.search.protocol import Conditions, IndexedUnit
from kg.search.shards import Shards
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from kg.settings import Settings
from tests.benchmarks.comparison import Comparison, median, p95, timed
from tests.benchmarks.corpora import find_corpora
from tests.benchmarks.known_vectors import MODEL, SCRIPT, Vectors, write_vectors
from tests.benchmarks.scale import compare_memory, find_index_processes, read_memory

WARM_UP: Final = 20
QUESTIONS: Final = 100
LIMIT: Final = 100
COUNTED: Final = 1_000
"""Units that a search with facets counts."""
SEARCHES_AT_ONCE: Final = 8
FIRST: Final = 10
AT_ONCE: Final = 2_000
A_DOCUMENT: Final = 100
PLACES: Final = ("BRA", "DJI", "FJI", "KEN")
REST_S: Final = 5.5


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Make the index, time searches, and compare the first ones with those by the original vectors."""
    parser = argparse.ArgumentParser(prog="mixtures")
    parser.add_argument("--texts", type=int, default=150_000)
    parser.add_argument("--processes", type=int, default=count_cores())
    given = parser.parse_args(arguments)
    if not find_corpora():
        print("mixtures: the corpora are not there")
        return
    embedder = open_embedder(Settings())
    texts, vectors = load_passages(embedder.name)
    questions = [question.text for corpus in find_corpora() for question in corpus.load_questions()]
    asked = random.Random(5).sample(questions, WARM_UP + QUESTIONS)
    of_questions = {text: embedder.embed_query(text).tolist() for text in asked}
    with tempfile.TemporaryDirectory(prefix="bench-mixtures-") as place:
        folder = Path(place)
        make_index(folder, texts, vectors, given.texts)
        del texts, vectors
        yield from measure(folder, given.texts, of_questions, given.processes)


def measure(folder: Path, texts: int, of_questions: Mapping[str, list[float]], processes: int) -> Iterator[Comparison]:
    """Time searches of the index for questions with their vectors, and read the memory of its processes after them."""
    asked = [*of_questions]
    with opened(folder, of_questions, processes) as index:
        filters: dict[str, Conditions] = {"no filter": (), "a quarter": [{"place": ["KEN"]}]}
        for name, codes in filters.items():
            timed(search(index, codes), asked[:WARM_UP])
            times = timed(search(index, codes), asked[WARM_UP:])
            yield Comparison(f"{texts:,} texts, {name}: median", median(times), None, "ms")
            yield Comparison(f"{texts:,} texts, {name}: p95", p95(times), None, "ms")
        yield compare_memory("anonymous memory after searches", read_anonymous() / texts, texts)
        with ThreadPoolExecutor(SEARCHES_AT_ONCE) as searches:
            counting = [search(index, codes, COUNTED) for codes in filters.values()]
            for each in counting:
                list(searches.map(each, asked[WARM_UP:]))
        yield compare_memory("the same with facets, eight at once", read_anonymous() / texts, texts)
        found = [search(index)(text) for text in asked[WARM_UP:]]
    shards = Shards(folder, exact_vectors=10**9, processes=processes)
    exact = UnitIndex(shards, VectorCache(folder), lambda text, number: of_questions[text])
    wanted = [[each.iri for each in exact.rank(text, None, None, LIMIT).candidates] for text in asked[WARM_UP:]]
    shards.close()
    same = sum(len({*one[:FIRST]} & {*other[:FIRST]}) for one, other in zip(found, wanted, strict=True))
    every = sum(len(each[:FIRST]) for each in wanted)
    yield Comparison.at_least("of the first ten, those by the original vectors", same / every, 1.0, "", 0.99)


@contextmanager
def opened(folder: Path, of_questions: Mapping[str, list[float]], processes: int) -> Iterator[EdgeIndex]:
    """Start the process of the index, which knows the vectors of these questions, and stop it."""
    with tempfile.TemporaryDirectory(prefix="bench-mixtures-") as place:
        file = Path(place) / "questions.npy"
        write_vectors(file, of_questions)
        EdgeIndex.command = (*SCRIPT, str(file))
        index = EdgeIndex(folder, Settings(index_processes=processes, _env_file=None))
        try:
            yield index
        finally:
            index.close()


def search(index: EdgeIndex, codes: Conditions = (), counted: int = 0) -> Callable[[str], Sequence[str]]:
    """Return the function that ranks the units for a question."""
    return lambda text: [each.iri for each in index.rank(text, limit=LIMIT, codes=codes, counted=counted).candidates]


def read_anonymous() -> float:
    """Read the anonymous memory of the processes of the index, in bytes."""
    return sum(read_memory(pid)["RssAnon"] for pid in find_index_processes())


def load_passages(model: str) -> tuple[list[str], Vectors]:
    """Load the passages of both corpora, with the vector of the first window of each."""
    texts: list[str] = []
    vectors: list[Vectors] = []
    for corpus in find_corpora():
        with corpus.open_index():  # which embeds what is not embedded
            units = [unit for graph in corpus.load_passages().values() for unit in graph.units]
        cache = VectorCache(user_cache_path("quadcite") / "benchmarks" / corpus.name)
        hashes = {digest(unit.text): unit.text for unit in units}
        for text_hash, rows in cache.get(hashes, model).items():
            texts.append(hashes[text_hash])
            vectors.append(rows[0].astype(np.float32))
        cache.close()
    return texts, np.stack(vectors)


def make_index(folder: Path, texts: Sequence[str], vectors: Vectors, number: int) -> None:
    """Index the texts, then mixtures of two of them, up to `number`, and optimize the shards."""
    shards = Shards(folder)
    index = UnitIndex(shards, VectorCache(folder), lambda query, number: None)
    index.use_model(0, MODEL, vectors.shape[1], None)
    chance = random.Random(0)
    words = [text.split() for text in texts]

    def make(each: int) -> tuple[str, Vectors]:
        if each < len(texts):
            return texts[each], vectors[each]
        one, other = chance.randrange(len(texts)), chance.randrange(len(texts))
        first, second = words[one], words[other]
        mean = vectors[one] + vectors[other]
        text = " ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :])
        return text, mean / np.linalg.norm(mean)

    def optimize() -> None:
        while (grown := shards.find_grown()) is not None and shards.optimize(grown):
            pass

    for start in range(0, number, AT_ONCE):
        made = {each: make(each) for each in range(start, min(start + AT_ONCE, number))}
        units = {each: build_unit(each, text) for each, (text, _) in made.items()}
        graphs = {unit.graph: "1" for unit in units.values()}
        index.begin([*graphs])
        index.put([*units.values()])
        index.finish(graphs)
        of_points = {
            shards.compute_id(unit.iri): made[each][1][None].astype(np.float16) for each, unit in units.items()
        }
        hashes = shards.retrieve([*of_points], ["text_hash"])
        index.set_vectors("dense", {id_: (payload["text_hash"], of_points[id_]) for id_, payload in hashes.items()})
        optimize()
    shards.flush()
    time.sleep(REST_S)  # then smaller shards are optimized too
    optimize()
    shards.close()


def build_unit(number: int, text: str) -> IndexedUnit:
    """Build the unit of a text: a hundred are in a document, and each document is of one of four places."""
    document = number // A_DOCUMENT
    return IndexedUnit(
        f"urn:passage:{number}",
        f"urn:graph:{document}",
        f"urn:document:{document}",
        text,
        f"Document {document}",
        "en",
        codes={"place": [PLACES[document % len(PLACES)]]},
    )
