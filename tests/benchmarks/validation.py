"""Seconds to validate records with our record shapes: from text, and in a store, beside pySHACL in the same run.

pySHACL takes minutes for a million triples, so it is given a tenth, and its time is scaled: it grows by the number of
focus nodes. `-- 1000000` sets how many triples there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import pyoxigraph as ox
import pyshacl
import rdflib

from kg.validation import reference
from kg.validation.data import Data
from kg.validation.gate import RecordGate
from kg.validation.shapes import Shapes
from tests.benchmarks.comparison import Comparison
from tests.validation.made_up import record

TRIPLES = 100_000
PYSHACL_TRIPLES = 100_000
PASSAGES = 40


def made_up_records(triples: int) -> dict[ox.NamedNode, list[ox.Quad]]:
    """Return records of `PASSAGES` passages each, `triples` in all or a few more."""
    records: dict[ox.NamedNode, list[ox.Quad]] = {}
    count = 0
    while count < triples:
        graph, quads = record(f"act{len(records)}", PASSAGES)
        records[graph] = quads
        count += len(quads)
    return records


def text_of(records: dict[ox.NamedNode, list[ox.Quad]], triples: int) -> str:
    """Return `triples` of the records, or a few more, as Turtle."""
    kept: list[ox.Triple] = []
    for quads in records.values():
        if len(kept) >= triples:
            break
        kept += [quad.triple for quad in quads]
    return ox.serialize(kept, format=ox.RdfFormat.TURTLE).decode()


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def run(arguments: Sequence[str] = ()) -> Iterable[Comparison]:
    """Measure, parsing included wherever the data are text."""
    triples = int(arguments[0]) if arguments else TRIPLES
    shapes = Shapes.load()
    records = made_up_records(triples)
    text = text_of(records, triples)

    def ours() -> None:
        assert shapes.check(ox.parse(text, ox.RdfFormat.TURTLE)) == []

    part = min(triples, PYSHACL_TRIPLES)
    some = text_of(records, part)

    def theirs() -> None:
        graph = rdflib.Graph().parse(data=some, format="turtle")
        conforms, _, _ = pyshacl.validate(graph, shacl_graph=reference.rdflib_graph(shapes.triples))
        assert conforms

    from_text, by_pyshacl = seconds(ours), seconds(theirs) * triples / part
    name = f"{triples:,} triples of Turtle"
    met = by_pyshacl >= 30 * from_text
    yield Comparison(f"{name}, pySHACL beside", from_text, by_pyshacl, "s", "ratio <= 1/30", met)
    parsing = seconds(lambda: list(ox.parse(text, ox.RdfFormat.TURTLE)))
    yield Comparison(f"{name}, of that parsing", parsing, None, "s")
    store = ox.Store()
    store.bulk_extend([quad for quads in records.values() for quad in quads])
    yield Comparison("the same in a store", seconds(lambda: shapes.validate(Data.stored(store))), by_pyshacl, "s")
    gate = RecordGate(shapes)
    at_gate = seconds(lambda: gate.check(records))
    yield Comparison("the same at the gate, a record", 1000 * at_gate / len(records), None, "ms")
    one = dict([next(iter(records.items()))])
    yield Comparison("one record alone", 1000 * seconds(lambda: gate.check(one)), None, "ms")
