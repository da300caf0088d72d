"""Seconds to validate records with our record shapes, beside other validators in the same run, and at the gate.

Everybody gets the same two files of Turtle in a process of its own (`tests.benchmarks.peers` says what is timed), and
has to find as many results as we do in data with faults before its time counts. pySHACL and pyrudof take minutes for a
million triples, so they are given a tenth, and their time is scaled: it grows by the number of focus nodes.
`-- 100000` sets how many triples there are.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.shacl.data_graph import DataGraph
from kg.shacl.gate import RecordGate, check_record_graphs, find_record_graphs
from kg.shacl.incremental import find_affected, load_change
from kg.shacl.shapes import Shapes
from kg.vocabulary import KG, RDF, SCHEMA, XSD
from loaders.sources import load
from tests.benchmarks import peers
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.loading import PASSAGES_A_DOCUMENT, write_passages
from tests.shacl.made_up import record

TRIPLES = (100_000, 1_000_000)
SLOW_TRIPLES = 100_000
FAULTY_TRIPLES = 5_000
PASSAGES = 40
LOADED_PASSAGES = 20_000
STORED_PASSAGES = 150_000

FASTER = {"pyshacl": 30, "pyrudof": 8}
"""How many times as long as ours each is to take from text."""


def run(arguments: Sequence[str] = ()) -> Iterator[Comparison]:
    """Measure; see the module."""
    sizes = [int(each) for each in arguments] or TRIPLES
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        shapes = bundle.folder("shapes") / "record-climate.ttl"
        python, lacking = peers.environment()
        others = [name for name in ("pyshacl", "pyrudof", "purrdf") if not (name == "purrdf" and lacking)]
        yield from same_results(shapes, Path(folder), python, others)
        for triples in sizes:
            yield from beside(shapes, Path(folder), triples, python, others)
        if lacking:
            yield Comparison(lacking, 0, None, "")
        yield from gate_share(Path(folder))
        yield from changed(Path(folder))
        yield from many_results(Path(folder))
    yield from at_gate()


def made_up_records(triples: int) -> dict[ox.NamedNode, list[ox.Quad]]:
    """Return records of `PASSAGES` passages each, `triples` in all or a few more."""
    records: dict[ox.NamedNode, list[ox.Quad]] = {}
    count = 0
    while count < triples:
        graph, quads = record(f"act{len(records)}", PASSAGES)
        records[graph] = quads
        count += len(quads)
    return records


def faulty(quads: Iterable[ox.Quad]) -> Iterator[ox.Triple]:
    """Yield the triples with a fault of some kind at every tenth of them: each kind of them several times."""
    for position, quad in enumerate(quads):
        kind = position // 10 % 7 if position % 10 == 0 else None
        if kind == 0 and quad.predicate != RDF.type:
            continue  # something is missing
        yield quad.triple
        if kind == 1:
            yield ox.Triple(quad.subject, quad.predicate, ox.Literal("one more value"))
        elif kind == 2:
            yield ox.Triple(quad.subject, quad.predicate, ox.NamedNode("https://example.org/another"))
        elif kind == 3:
            yield ox.Triple(quad.subject, ox.NamedNode("https://example.org/unknown"), quad.object)
        elif kind == 4:
            yield ox.Triple(quad.subject, SCHEMA.position, ox.Literal("-1", datatype=XSD.integer))
        elif kind == 5:
            yield ox.Triple(quad.subject, SCHEMA.position, ox.Literal("1.0", datatype=XSD.decimal))
        elif kind == 6:
            yield ox.Triple(quad.subject, KG.slug, ox.Literal("another-slug"))


def write(triples: Iterable[ox.Triple], path: Path) -> Path:
    ox.serialize(triples, path, ox.RdfFormat.TURTLE)
    return path


def same_results(shapes: Path, folder: Path, python: Path, others: Sequence[str]) -> Iterator[Comparison]:
    """Say how many results each finds in data with faults: that all do the same work."""
    quads = [quad for quads in made_up_records(FAULTY_TRIPLES).values() for quad in quads]
    data = write(dict.fromkeys(faulty(quads)), folder / "faulty.ttl")
    _, found, _ = peers.measure("ours", shapes, data)
    for name in others:
        _, theirs, _ = peers.measure(name, shapes, data, python)
        yield Comparison(
            f"results in data with faults, {name} beside", found, theirs, "", "as many", found == theirs > 0
        )


def beside(shapes: Path, folder: Path, triples: int, python: Path, others: Sequence[str]) -> Iterator[Comparison]:
    """Measure everybody on the same sound records."""
    quads = [quad.triple for quads in made_up_records(triples).values() for quad in quads]
    whole = write(quads, folder / f"{triples}.ttl")
    some = write(quads[:SLOW_TRIPLES], folder / "some.ttl")
    name = f"{triples:,} triples of Turtle"
    times, _, mib = peers.measure("ours", shapes, whole)
    from_text = sum(times.values())
    stored = sum(peers.measure("ours_stored", shapes, whole)[0].values())
    for other in others:
        part = some if other in FASTER and triples > SLOW_TRIPLES else whole
        scale = triples / SLOW_TRIPLES if part == some else 1
        spent, _, peak = peers.measure(other, shapes, part, python)
        theirs = scale * sum(spent.values())
        scaled = ", scaled" if scale > 1 else ""
        if other in FASTER:
            least = FASTER[other]
            met = theirs >= least * from_text
            yield Comparison(f"{name}, {other} beside{scaled}", from_text, theirs, "s", f"ratio <= 1/{least}", met)
        else:
            yield Comparison(f"{name}, {other} beside", from_text, theirs, "s")
            yield Comparison(
                "the same in our store, from text there", stored, theirs, "s", "ratio <= 1", stored <= theirs
            )
            yield Comparison("the same, parsed by both", stored, spent["validating"], "s")
        if part == whole:
            yield Comparison(f"peak memory, {other} beside", mib, peak, "MiB")
    whole.unlink()


def gate_share(folder: Path) -> Iterator[Comparison]:
    """Measure how much of a load is spent at the gate."""
    source = folder / "passages.parquet"
    write_passages(source, LOADED_PASSAGES)
    for index in (True, False):
        # No model lies there: units wait for vectors that are not made.
        chosen = Settings(data_dir=folder / f"data-{index}", models_dir=folder / "models")
        with KnowledgeGraph.open(chosen.data_dir, chosen) as kg, timed_gate() as gate_seconds:
            started = time.perf_counter()
            load(kg, "climate", [str(source)], index=index)
            spent = time.perf_counter() - started
        title = f"the gate's share of a load of {LOADED_PASSAGES:,} passages, {'index' if index else 'no index'}"
        yield Comparison.at_most(title, 100 * sum(gate_seconds) / spent, "%", 15)


def changed(folder: Path) -> Iterator[Comparison]:
    """Measure what `kg validate --changed-since` does about one changed document, beside all of the store anew."""
    passages, some = folder / "stored.parquet", folder / "changed.parquet"
    write_passages(passages, STORED_PASSAGES)
    write_passages(some, PASSAGES_A_DOCUMENT)
    table = pq.read_table(some)
    texts = pa.array([f"Amended: {text}" for text in table["text"].to_pylist()])
    pq.write_table(table.set_column(table.schema.get_field_index("text"), "text", texts), some)
    chosen = Settings(data_dir=folder / "changed", models_dir=folder / "models")
    with KnowledgeGraph.open(chosen.data_dir, chosen) as kg:
        load(kg, "climate", [str(passages)], gate=False, index=False)
        before = kg.store.statistics().generation
        assert load(kg, "climate", [str(some)], gate=False, index=False).loaded == 1
        statistics = kg.store.statistics()
        with kg.store.snapshot(statistics.generation) as snapshot:
            store = ox.Store.read_only(str(snapshot.path))
            dataset, gate, data = Shapes.load_dataset(), RecordGate(), DataGraph.from_store(store)

            def anew() -> None:
                concerned = find_affected(dataset, data, load_change(store, before))
                assert concerned.nodes, concerned.why
                assert [*dataset.results(data, focus=concerned.nodes)] == []

            def records() -> None:
                graphs = find_record_graphs(store, since=before)
                assert len(graphs) == 1
                assert not any(each.blocks for each in check_record_graphs(store, graphs, gate))

            size = f"one changed document in a store of {statistics.quads:,} quads"
            whole = 1000 * seconds(lambda: dataset.validate(data))
            for suite, work in (("dataset", anew), ("record", records)):
                first, *others = [1000 * seconds(work) for _ in range(6)]
                alternative = whole if suite == "dataset" else None
                yield Comparison(f"{size}, {suite} suite, the first time", first, alternative, "ms")
                yield Comparison.at_most("the same, after that", median(others), "ms", 100, alternative)


def many_results(folder: Path) -> Iterator[Comparison]:
    """Measure the memory that a report of a million results takes beside the data, in a process of its own."""
    times, found, mib = peers.measure("many_results", folder / "many.ttl", folder / "report.ttl")
    yield Comparison(f"a report of {found:,} results", sum(times.values()), None, "s")
    yield Comparison.at_most("the memory that it takes beside the data", mib, "MiB", 256)


def at_gate() -> Iterator[Comparison]:
    """Measure a record at the gate, among many and alone."""
    records = made_up_records(TRIPLES[0])
    gate = RecordGate()
    among = seconds(lambda: gate.check(records)) / len(records)
    yield Comparison("a record at the gate, among many", 1000 * among, None, "ms")
    one = dict([next(iter(records.items()))])
    yield Comparison("one record alone", 1000 * seconds(lambda: gate.check(one)), None, "ms")


@contextmanager
def timed_gate() -> Iterator[list[float]]:
    """Note the seconds of each call of `RecordGate.check` within the block."""
    spent: list[float] = []
    check = RecordGate.check

    def timed(gate: RecordGate, candidates: Mapping[ox.NamedNode, Sequence[ox.Quad]]) -> object:
        started = time.perf_counter()
        try:
            return check(gate, candidates)
        finally:
            spent.append(time.perf_counter() - started)

    with patch.object(RecordGate, "check", timed):
        yield spent


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
