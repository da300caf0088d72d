"""The child process of `kg.integrity.inspection.copy_store`: a task that copies the readable graphs of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.integrity import permutations
from kg.integrity.findings import Findings, read_store
from kg.integrity.graph_reader import GraphReader
from kg.processes import task
from kg.provenance.shipped import INFERENCES
from kg.store.commits import HEAD
from kg.store.protocol import batched
from kg.vocabulary import CATALOG_GRAPH, KG, OWL, PROV_GRAPH, TBOX_GRAPH, UNCOUNTED_GRAPHS

_PORTION: Final = 50_000
BULK: Final = 100_000
"""Maximum quads that are written at once to a new store; 500,000 take four times the memory (675 MB)."""
BULK_CHARACTERS: Final = 50_000_000
"""Maximum characters of their literals."""


def work(settings: dict[str, Any], _: bytes) -> dict[str, Any]:
    """Copy the store of `settings` and return the reply."""
    copy = _copy_whole if settings["whole"] else _copy
    return read_store(settings, partial(copy, settings["target"]))


def _copy_whole(target: str, store: Store, findings: Findings) -> None:
    """Copy all quads into a new store, and read both to compare their numbers and hashes."""
    copied = Store(target)
    for portion in divide(store):
        copied.bulk_extend(portion)
    copied.flush()
    before, after = _sum_up(store), _sum_up(copied)
    if before != after:
        findings.add("lost", "store", f"The copy has {after[0]:,} quads, and the store {before[0]:,}, or others.")
    findings.finish(stored_quads=after[0])


def divide(quads: Iterable[Quad]) -> Iterator[list[Quad]]:
    """Divide quads into portions that need little memory to be written, also where literals are long."""
    portion: list[Quad] = []
    characters = 0
    for quad in quads:
        portion.append(quad)
        if isinstance(quad.object, Literal):
            characters += len(quad.object.value)
        if len(portion) >= BULK or characters >= BULK_CHARACTERS:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion


def _sum_up(store: Store) -> tuple[int, int]:
    """Return the number of quads, and the sum of their hashes."""
    number = total = 0
    for quad in store:
        number += 1
        total += hash(quad)
    return number, total


def _copy(target: str, store: Store, findings: Findings) -> None:
    """Copy all graphs that can be read into a new store.

    The version of the shipped graphs is left out, so that they and all inferred graphs are written when it is opened.
    """
    reader = GraphReader(store)
    graphs, _ = permutations.list_graphs(store)
    graphs -= INFERENCES.keys() - {CATALOG_GRAPH}  # which has what former commits knew
    copied = Store(target)
    written: dict[NamedNode, int] = {}
    damaged: list[NamedNode] = []
    for graph in sorted(graphs | reader.hashes.keys(), key=str):
        try:
            written[graph] = _write_portions(copied, reader.read(graph))
        except (OSError, RuntimeError):
            damaged.append(graph)
    for graph in damaged:
        held = reader.rescue(graph)
        copied.remove_graph(graph)
        if held is None:
            findings.add("lost", graph.value, "The graph cannot be read.")
        else:
            written[graph] = _write_portions(copied, iter(held.values()))
    for quad in list(copied.quads_for_pattern(TBOX_GRAPH, OWL.versionInfo, None, TBOX_GRAPH)):
        copied.remove(quad)
    if written.keys() != graphs | reader.hashes.keys():  # else the recorded numbers are still right
        _write_counters(copied, [size for graph, size in written.items() if size and graph not in UNCOUNTED_GRAPHS])
    copied.flush()
    findings.finish(stored_quads=sum(written.values()))


def _write_counters(store: Store, sizes: Sequence[int]) -> None:
    """Replace the numbers of quads and graphs that the last commit recorded.

    The number of quads then includes those that describe the shipped graphs, which look like the others.
    """
    for name, counted in ((KG.quadCount, sum(sizes)), (KG.graphCount, len(sizes))):
        for quad in list(store.quads_for_pattern(HEAD, name, None, PROV_GRAPH)):
            store.remove(quad)
            store.add(Quad(HEAD, name, Literal(counted), PROV_GRAPH))


def _write_portions(store: Store, quads: Iterator[Quad]) -> int:
    number = 0
    for portion in batched(quads, _PORTION):
        store.extend(portion)
        number += len(portion)
    return number


def main() -> None:
    """Run the process."""
    task.main(work)
