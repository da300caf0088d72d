"""Texts per second: our embedder beside fastembed's own `embed`, same model, threads and batch size, same texts.

The texts are made up, with the lengths of real passages: half of them below 50 words, some longer than the model's
window. fastembed cuts those off, we embed every window of them, so a second line compares texts that fit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from kg.search import models
from kg.search.embedding import BATCH, Vectors, open_embedder
from kg.settings import Settings, settings
from tests.benchmarks.comparison import Comparison

WORDS = (
    "the of and to in for shall be by or with emissions energy municipal building permit geothermal renewable adopted "
    "ministry plan measures national greenhouse reduction reporting agency fund transport article paragraph annual "
    "public water forest adaptation resilience target sector investment law regulation"
)
TEXTS = 200
ROUNDS = 3


def made_up_texts(count: int, longest: int, seed: int = 7) -> list[str]:
    """Return `count` texts of log-normal length, at most `longest` words."""
    source = random.Random(seed)
    lengths = [min(longest, max(4, int(source.lognormvariate(3.9, 0.8)))) for _ in range(count)]
    return [" ".join(source.choices(WORDS.split(), k=length)) + f" {number}." for number, length in enumerate(lengths)]


def throughput(work: Callable[[], object], texts: int) -> float:
    """Return texts per second of one run."""
    started = time.perf_counter()
    work()
    return texts / (time.perf_counter() - started)


def run(arguments: Sequence[str] = ()) -> Iterable[Comparison]:
    """Measure, alternating the two so that a change in the machine's load meets both; the median round counts."""
    chosen: Settings = settings()
    models.pull(chosen)
    reference = models.load_model(chosen)
    embedder = open_embedder(chosen)
    for name, longest in (("texts within the window", 200), ("texts of any length", 2_000)):
        texts = made_up_texts(TEXTS, longest)
        rounds = []
        for _ in range(ROUNDS):
            ours = throughput(lambda: embedder.embed_documents(texts), TEXTS)  # noqa: B023
            theirs = throughput(lambda: list(reference.embed(texts, batch_size=BATCH)), TEXTS)  # noqa: B023
            rounds.append((ours, theirs))
        ours, theirs = sorted(rounds, key=lambda pair: pair[0] / pair[1])[ROUNDS // 2]
        if longest == 200:
            yield Comparison.at_least(f"{embedder.name}, {name}", ours, theirs, "texts/s", 0.9)
        else:
            yield Comparison(f"{embedder.name}, {name} (alternative cuts off)", ours, theirs, "texts/s")
    yield from precision(chosen)
    queries = [f"where may {word} be used" for word in WORDS.split()]
    took = sorted(1000 / throughput(partial(embedder.embed_query, text), 1) for text in queries)
    yield Comparison("one query, p95", took[int(len(took) * 0.95)], None, "ms")


def precision(chosen: Settings) -> Iterable[Comparison]:
    """Compare int8 with fp32, where both are installed: speed, and how far apart the vectors are."""
    texts = made_up_texts(TEXTS, 200)
    vectors: dict[str, Vectors] = {}
    speed: dict[str, float] = {}
    for kind in ("fp32", "int8"):
        variant = chosen.model_copy(update={"model_precision": kind})
        if not models.get_folder(variant).is_dir():
            return
        embedder = open_embedder(variant)
        found: list[Vectors] = []
        speed[kind] = throughput(lambda: found.extend(embedder.embed_documents(texts)), TEXTS)  # noqa: B023
        vectors[kind] = np.concatenate(found)
    yield Comparison("int8 beside fp32", speed["int8"], speed["fp32"], "texts/s")
    cosines = (vectors["int8"] * vectors["fp32"]).sum(axis=1)
    yield Comparison("mean cosine of int8 to fp32", float(cosines.mean()), None, "")
    yield Comparison("least cosine of int8 to fp32", float(cosines.min()), None, "")
