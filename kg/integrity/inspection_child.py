"""The child process of `kg.integrity.inspection.inspect_store`: a task that reads a whole store for damage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Store

from kg.integrity import permutations
from kg.integrity.findings import Findings, read_store
from kg.integrity.graph_reader import GraphReader
from kg.processes import task
from kg.provenance.shipped import INFERENCES
from kg.shacl.data_graph import DataGraph
from kg.shacl.incremental import find_influences
from kg.shacl.shapes import Shapes
from kg.store.commits import load_counters
from kg.store.difference import Statements, statements_sha256
from kg.store.ownership import is_user_graph
from kg.store.protocol import Term
from kg.vocabulary import (
    CATALOG_GRAPH,
    DCTERMS,
    KG,
    PROV_GRAPH,
    SCHEMA,
    SHAPES_GRAPH,
    TBOX_GRAPH,
    UNCOUNTED_GRAPHS,
    sha256,
)

_MAY_REPEAT: Final = frozenset({PROV_GRAPH, TBOX_GRAPH, SHAPES_GRAPH, CATALOG_GRAPH})
"""Graphs about the store itself, whose triples may also be in others."""

_COPIES: Final = """SELECT ?g ?h ?s {
  GRAPH ?g { ?s ?p ?o } GRAPH ?h { ?s ?p ?o } FILTER(STR(?g) < STR(?h))
}"""


def work(settings: dict[str, Any], _: bytes) -> dict[str, Any]:
    """Inspect the store of `settings` and return the reply."""
    return read_store(settings, partial(_inspect, content=settings["content"]))


def _inspect(store: Store, findings: Findings, *, content: bool) -> None:
    whole = _read_orders(store, findings)
    graphs, problem = permutations.list_graphs(store)
    if problem is not None:
        whole = False
        findings.add_unreadable(problem, f"The list of graphs cannot be read: {problem}")
    if permutations.has_default_graph(store):
        findings.add("default graph", "store", "Quads are in the default graph, which Quadcite leaves empty.")
    reader = GraphReader(store)
    if reader.problem is not None:
        whole = False
        findings.add_unreadable(reader.problem, f"The recorded hashes cannot be read: {reader.problem}")
    counts = _read_graphs(reader, graphs, findings)
    whole = whole and not counts["damaged_graphs"]
    if whole:
        recorded = load_counters(store)
        # Until the first commit of content none is counted, not even graph/prov.
        has_content = counts["graphs"] > (PROV_GRAPH in graphs)
        graphs_then = recorded.get(KG.graphCount, counts["graphs"])
        if graphs_then != counts["graphs"] and (graphs_then or has_content):
            message = f"The store has {counts['graphs']:,} graphs, but its last commit recorded {graphs_then:,}."
            findings.add("count", "store", message)
        # As `kg status` counts: without the quads that describe the shipped graphs, which look like the others.
        counts["quads"] = recorded.get(KG.quadCount, counts["quads"])
        counts["generation"] = recorded.get(KG.generation, 0)
    if whole and content:
        _check_shapes(store, findings)
        _check_copies(store, findings)
        _check_derived(store, findings)
    findings.finish(**counts, content=whole and content)


def _read_orders(store: Store, findings: Findings) -> bool:
    """Read all orders of the quads; return whether they are readable and equally long."""
    whole = True
    numbers: dict[str, int] = {}
    for order, found in permutations.read_all_orders(store):
        if isinstance(found, int):
            numbers[order] = found
        else:
            whole = False
            findings.add_unreadable(found, f"The index {order} cannot be read: {found}")
    if len(set(numbers.values())) > 1:
        whole = False
        counted = ", ".join(f"{order} {number:,}" for order, number in numbers.items())
        findings.add("unreadable", "store", f"The indexes have different numbers of quads: {counted}.")
    return whole


def _read_graphs(reader: GraphReader, graphs: set[NamedNode], findings: Findings) -> dict[str, int]:
    """Read every graph with all its terms, and compare it with its recorded hash."""
    counts = {"stored_quads": 0, "stored_graphs": 0, "quads": 0, "graphs": 0, "texts": 0, "hashes": 0}
    counts |= {"damaged_graphs": 0, "lost_graphs": 0}
    damaged: dict[NamedNode, str] = {}

    def count(graph: NamedNode, number: int) -> None:
        counts["stored_quads"] += number
        counts["stored_graphs"] += number > 0
        if graph not in UNCOUNTED_GRAPHS:
            counts["quads"] += number
            counts["graphs"] += number > 0

    for graph in sorted(graphs | reader.hashes.keys(), key=str):
        try:
            if graph in reader.hashes:
                held = reader.load(graph)
                counts["hashes"] += 1
                counts["texts"] += _check_graph(reader, graph, held, findings)
                count(graph, len(held))
            else:  # graph/prov, and graphs that are maintained by changes: they may be large
                count(graph, sum(1 for _ in reader.read(graph)))
        except (OSError, RuntimeError) as error:
            damaged[graph] = str(error)
    counts["damaged_graphs"] = len(damaged)
    for graph, message in damaged.items():
        held_elsewhere = reader.rescue(graph)
        if held_elsewhere is not None:
            count(graph, len(held_elsewhere))
            findings.add_unreadable(message, f"A part of {graph} can be read from another index only: {message}")
        else:
            counts["lost_graphs"] += 1
            findings.add_graph("lost", reader.store, graph, f"The graph cannot be read: {message}")
    return counts


def _check_graph(reader: GraphReader, graph: NamedNode, held: Statements, findings: Findings) -> int:
    """Compare a graph and its texts with their hashes; return the number of texts."""
    if not held:
        findings.add_graph("missing", reader.store, graph, "The graph is described, but has no quads.")
        return 0
    if {statements_sha256(graph, held)} != reader.hashes[graph]:
        findings.add_graph(
            "changed", reader.store, graph, "The graph differs from its recorded hash (kg:contentSha256)."
        )
    texts: dict[object, str] = {}
    recorded: dict[object, str] = {}
    wholes: dict[object, object] = {}
    starts: dict[object, int] = {}
    # People may state anything of a text: that is not damage.
    for quad in () if is_user_graph(graph) else held.values():
        value = quad.object
        if quad.predicate == DCTERMS.isPartOf:
            wholes[quad.subject] = value
        elif isinstance(value, Literal):
            match quad.predicate:
                case SCHEMA.text:
                    texts[quad.subject] = value.value
                case KG.textSha256:
                    recorded[quad.subject] = value.value
                case KG.start:
                    starts[quad.subject] = int(value.value)
    pieces: dict[object, list[tuple[int, str]]] = defaultdict(list)
    for piece, start in starts.items():
        if piece in texts and piece in wholes:
            pieces[wholes[piece]].append((start, texts[piece]))
    checked = 0
    for unit, digest in recorded.items():
        text = texts.get(unit)
        if text is None and unit in pieces:
            text = _join(pieces[unit])
        if text is None:
            continue
        checked += 1
        if sha256(text) != digest:
            name = unit.value if isinstance(unit, NamedNode) else str(unit)
            message = f"The text differs from its recorded hash (kg:textSha256), in {graph}."
            findings.add_graph("text", reader.store, graph, message, where=name)
    return checked


def _join(pieces: Iterable[tuple[int, str]]) -> str:
    """Join pieces of a text, given with their offsets, which may overlap."""
    text = ""
    for start, piece in sorted(pieces):
        text += piece[max(0, len(text) - start) :]
    return text


def _check_shapes(store: Store, findings: Findings) -> None:
    """Check provenance, evidence and the references of records by the dataset shapes."""
    shapes = Shapes.load_dataset()
    found: dict[str, dict[Term, int]] = defaultdict(lambda: defaultdict(int))
    for target, result in shapes.results_by_target(DataGraph.from_store(store, None)):
        if result.blocks:
            found[result.message][target] += 1
    written = [graph for graph in store.named_graphs() if isinstance(graph, NamedNode) and is_user_graph(graph)]
    nodes = {target for targets in found.values() for target in targets} if written else set()
    influences = find_influences(shapes, store, written, nodes) if nodes else {}
    for message, targets in found.items():
        for by_users in (False, True):
            some = {target: number for target, number in targets.items() if (target in influences) == by_users}
            if not some:
                continue
            told = f"{message} ({sum(some.values()):,} results; `kg validate --suite dataset` lists them.)"
            where = min(some, key=str)
            name = where.value if isinstance(where, NamedNode) else str(where)
            if by_users:
                graph, *_ = influences[where]
                told = f"{told} Statements of this user graph about it may be the cause."
                findings.add("user graph", graph.value, f"{name}: {told}")
            else:
                findings.add("shape", name, told)


def _check_copies(store: Store, findings: Findings) -> None:
    """Check that no triple of content is in two graphs: the engine would count it twice."""
    for row in permutations.select_rows(store, _COPIES):
        graphs = {row[0], row[1]}
        if not graphs & _MAY_REPEAT:
            findings.add("copy", str(row[2]), f"A triple of it is in two graphs: {row[0]} and {row[1]}.")


def _check_derived(store: Store, findings: Findings) -> None:
    """Compare the graphs that rules infer from others with the quads that the rules infer now."""
    for graph, inference in INFERENCES.items():
        if (delta := inference.compare(store)) is not None:
            missing, superfluous = len(delta.added), len(delta.removed)
            message = f"{missing:,} inferred quads are missing, and {superfluous:,} follow from nothing."
            findings.add("derived", graph.value, message)


def main() -> None:
    """Run the process."""
    task.main(work)
