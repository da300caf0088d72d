"""Rates and memory of the configured models, and of ours next to fastembed's `embed`, by threads, processes, endpoint.

The texts are made up, with the lengths of real passages: half of them below 50 words, some longer than the model's
window. fastembed cuts those off, we embed every window of them, so a second line compares texts that fit.

Threads, processes and order are also compared by processor time, since a machine that does other work as well gives
each of them another share. The endpoint is a process on this machine that serves the same model.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from kg.search import models
from kg.search.devices import get_providers
from kg.search.embedding import BATCH, LocalEmbedder, RemoteEmbedder, Vectors, open_embedder
from kg.settings import Settings, settings
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.endpoint import resident_mib

WORDS = (
    "the of and to in for shall be by or with emissions energy municipal building permit geothermal renewable adopted "
    "ministry plan measures national greenhouse reduction reporting agency fund transport article paragraph annual "
    "public water forest adaptation resilience target sector investment law regulation"
)
TEXTS = 200
ROUNDS = 3
SCRIPT = (sys.executable, "-m", "tests.benchmarks.embedding")


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


def processor_s() -> float:
    """Return the processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def per_processor_s(work: Callable[[], object], texts: int) -> float:
    """Return texts per second of processor time of one run."""
    began = processor_s()
    work()
    return texts / (processor_s() - began)


def alternate(one: Callable[[], float], other: Callable[[], float]) -> tuple[float, float]:
    """Measure two rates in turn, so that a change in the machine's load meets both; the median round counts."""
    rounds = [(one(), other()) for _ in range(ROUNDS)]
    return sorted(rounds, key=lambda pair: pair[0] / pair[1])[ROUNDS // 2]


def run(arguments: Sequence[str] = ()) -> Iterable[Comparison]:
    """Measure the configured models, and the first of them next to fastembed and to an endpoint that serves it."""
    chosen: Settings = settings()
    yield from configured_models(chosen)
    # All threads for one batch, which is what fastembed does.
    reference = models.load_model(chosen)
    embedder = open_embedder(chosen)
    print(f"{embedder.name} on {get_providers(reference)[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name, longest in (("texts within the window", 200), ("texts of any length", 2_000)):
        texts = made_up_texts(TEXTS, longest)
        ours, theirs = alternate(
            lambda: throughput(lambda: embedder.embed_documents(texts), TEXTS),  # noqa: B023
            lambda: throughput(lambda: list(reference.embed(texts, batch_size=BATCH)), TEXTS),  # noqa: B023
        )
        if longest == 200:
            yield Comparison.at_least(f"{embedder.name}, {name}", ours, theirs, "texts/s", 0.9)
        else:
            yield Comparison(f"{embedder.name}, {name} (alternative cuts off)", ours, theirs, "texts/s")
    yield from order_and_threads(chosen)
    yield from precision(chosen)
    yield from endpoint(chosen, embedder.embed_documents)


def configured_models(chosen: Settings) -> Iterable[Comparison]:
    """Measure each configured model, and a query in the spaces of all of them."""
    embedders = []
    for name in chosen.models:
        models.pull(chosen, name=name)
        embedder = open_embedder(chosen, name)
        embedders.append(embedder)
        texts = made_up_texts(TEXTS, 2_000)
        embedder.embed_documents(texts[:10])
        yield Comparison(embedder.name, throughput(partial(embedder.embed_documents, texts), TEXTS), None, "texts/s")
        rate = per_processor_s(partial(embedder.embed_documents, texts), TEXTS)
        yield Comparison(embedder.name, rate, None, "texts/processor s")
        done = subprocess.run([*SCRIPT, "memory", name], capture_output=True, text=True, check=True)
        yield Comparison(f"{embedder.name}, memory after {TEXTS} texts", float(done.stdout), None, "MiB")
    queries = [f"where may {word} be used" for word in WORDS.split()]

    def embed() -> None:
        for text in queries:
            for embedder in embedders:
                embedder.embed_query(text)

    names = " and ".join(chosen.models)
    rate = sorted(per_processor_s(embed, len(queries)) for _ in range(ROUNDS))[ROUNDS // 2]
    yield Comparison.at_most(f"a query by {names}", 1_000 / rate, "processor ms", 10)
    took = sorted(1000 / throughput(partial(each.embed_query, text), 1) for text in queries for each in embedders[:1])
    yield Comparison("one query by the first, p95", took[int(len(took) * 0.95)], None, "ms")


def memory(name: str) -> None:
    """Print by how many megabytes the resident memory of this process grows when a model embeds the texts."""
    before = resident_mib(os.getpid())
    open_embedder(settings(), name).embed_documents(made_up_texts(TEXTS, 2_000))
    print(resident_mib(os.getpid()) - before)


def order_and_threads(chosen: Settings) -> Iterable[Comparison]:
    """Compare batches of like texts with batches in any order, and threads with each other and with processes."""
    texts = made_up_texts(TEXTS, 200)
    ordered = sorted(texts, key=len, reverse=True)
    threads = max(2, chosen.embedding_threads or len(os.sched_getaffinity(0)))
    alone = models.load_model(chosen, threads=1)

    def embed(model: object, texts: Sequence[str]) -> None:
        list(model.embed(texts, batch_size=BATCH))  # type: ignore[attr-defined]

    like, mixed = alternate(
        lambda: per_processor_s(lambda: embed(alone, ordered), TEXTS),
        lambda: per_processor_s(lambda: embed(alone, texts), TEXTS),
    )
    yield Comparison("batches of texts of like length, over any", like, mixed, "texts/processor s")

    several = LocalEmbedder(alone, "several", threads=threads)
    together = models.load_model(chosen, threads=threads)
    for unit, measure in (("texts/s", throughput), ("texts/processor s", per_processor_s)):
        ours, theirs = alternate(
            lambda: measure(lambda: several.embed_documents(texts), TEXTS),  # noqa: B023
            lambda: measure(lambda: embed(together, ordered), TEXTS),  # noqa: B023
        )
        yield Comparison(f"{threads} threads with a batch each, over one batch together", ours, theirs, unit)
    with workers(threads) as ask:
        ours, theirs = alternate(
            lambda: throughput(lambda: several.embed_documents(texts), TEXTS),
            lambda: throughput(ask, TEXTS),
        )
        yield Comparison(f"one process with {threads} threads, over {threads} with one", ours, theirs, "texts/s")
        ours, theirs = alternate(
            lambda: per_processor_s(lambda: several.embed_documents(texts), TEXTS),
            lambda: TEXTS / sum(ask()),
        )
        yield Comparison(
            f"one process with {threads} threads, over {threads} with one", ours, theirs, "texts/processor s"
        )


@contextmanager
def workers(count: int) -> Iterator[Callable[[], list[float]]]:
    """Start processes with a thread each; yield a function by which they embed the texts, and return their times."""
    started = [
        subprocess.Popen([*SCRIPT, "work", str(number), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for number in range(count)
    ]

    def ask() -> list[float]:
        for each in started:
            assert each.stdin is not None
            each.stdin.write(b"\n")
            each.stdin.flush()
        return [float(each.stdout.readline()) for each in started if each.stdout is not None]

    try:
        for each in started:
            assert each.stdout is not None
            each.stdout.readline()
        yield ask
    finally:
        for each in started:
            each.communicate()


def work(number: int, count: int) -> None:
    """Embed every `count`-th batch of the texts for each line of input; print the processor time."""
    model = models.load_model(settings(), threads=1)
    ordered = sorted(made_up_texts(TEXTS, 200), key=len, reverse=True)
    own = [text for at in range(number * BATCH, TEXTS, count * BATCH) for text in ordered[at : at + BATCH]]
    print("ready", flush=True)
    for _ in sys.stdin:
        began = processor_s()
        list(model.embed(own, batch_size=BATCH))
        print(processor_s() - began, flush=True)


def endpoint(chosen: Settings, local: Callable[[Sequence[str]], object]) -> Iterable[Comparison]:
    """Compare an endpoint on this machine with the model in this process, and requests at once with one by one."""
    texts = made_up_texts(2 * TEXTS, 200)
    server = subprocess.Popen([*SCRIPT, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        at_once = RemoteEmbedder(url, chosen.models[0], requests=chosen.embedding_requests)
        singly = RemoteEmbedder(url, chosen.models[0], requests=1)
        count = len(texts)
        ours, theirs = alternate(
            lambda: throughput(lambda: at_once.embed_documents(texts), count),
            lambda: throughput(lambda: local(texts), count),
        )
        yield Comparison(
            f"endpoint, {chosen.embedding_requests} requests at once, over this process", ours, theirs, "texts/s"
        )
        ours, theirs = alternate(
            lambda: throughput(lambda: at_once.embed_documents(texts), count),
            lambda: throughput(lambda: singly.embed_documents(texts), count),
        )
        yield Comparison(
            f"endpoint, {chosen.embedding_requests} requests at once, over one by one", ours, theirs, "texts/s"
        )
        at_once.close()
        singly.close()
    finally:
        server.communicate()


def serve() -> None:
    """Serve the configured model on loopback until the input ends; print the address."""
    embedder = open_embedder(settings())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = [rows[0].tolist() for rows in embedder.embed_documents(body["input"])]
            data = [{"index": index, "embedding": vector} for index, vector in enumerate(found)]
            content = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    sys.stdin.read()


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


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "memory":
        memory(sys.argv[2])
    else:
        work(int(sys.argv[2]), int(sys.argv[3]))
