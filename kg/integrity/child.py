"""The child process of `kg.integrity.inspection`: a task that reads a whole store, or copies it.

It writes what it finds to a file, one JSON object for each line: `kind`, `where` and `message` of a problem, or counts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.integrity import permutations
from kg.processes import task
from kg.provenance.shipped import INFERENCES
from kg.shacl.data_graph import DataGraph
from kg.shacl.shapes import Shapes
from kg.store.commits import HEAD
from kg.store.difference import Statements, compare_inferred, key_by_statement, statements_sha256
from kg.vocabulary import (
    CATALOG_GRAPH,
    DCTERMS,
    KG,
    OWL,
    PROV,
    PROV_GRAPH,
    RDF,
    RDFS,
    SCHEMA,
    SHAPES_GRAPH,
    SOURCED,
    TBOX_GRAPH,
    UNCOUNTED_GRAPHS,
    sha256,
)

FINDINGS: Final = "findings"
MOST: Final = 50
"""Maximum problems of one kind that are named; `more` counts the others."""

_ORIGINS: Final = 1_000
_PORTION: Final = 50_000
_MAY_REPEAT: Final = frozenset({PROV_GRAPH, TBOX_GRAPH, SHAPES_GRAPH, CATALOG_GRAPH})
"""Graphs about the store itself, whose triples may also be in others."""

_PROVENANCE_PROPERTIES: Final = (
    KG.cededBy, KG.cededTo, KG.configuration, KG.contentSha256, KG.datasetRevision, KG.generation, KG.graphCount,
    KG.location, KG.loader, KG.quadCount, KG.removedCount, KG.retrievedAt, KG.sha256, KG.sourceRows, KG.sourceSha256,
    KG.threshold, KG.touched, PROV.endedAtTime, PROV.entity, PROV.invalidatedAtTime, PROV.qualifiedDerivation,
    PROV.specializationOf, PROV.startedAtTime, PROV.used, PROV.wasAssociatedWith, PROV.wasAttributedTo,
    PROV.wasDerivedFrom, PROV.wasGeneratedBy, RDF.object, RDF.predicate, RDF.subject, RDF.type, RDFS.label,
    SCHEMA.position, SCHEMA.softwareVersion,
)  # fmt: skip
"""Properties in ``graph/prov``, by which it is read where its own order is damaged."""

_COPIES: Final = """SELECT ?g ?h ?s {
  GRAPH ?g { ?s ?p ?o } GRAPH ?h { ?s ?p ?o } FILTER(STR(?g) < STR(?h))
}"""

Finding = dict[str, Any]


class _Findings:
    """Writes findings to a file as they are found, at most `MOST` of each kind."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._found: dict[str, int] = defaultdict(int)

    def add(self, kind: str, where: str, message: str, **more: Any) -> None:
        """Write a problem."""
        self._found[kind] += 1
        if self._found[kind] <= MOST:
            self._write({"kind": kind, "where": where, "message": message, **more})

    def finish(self, **counts: Any) -> None:
        """Write the counts of the data read."""
        more = {kind: number - MOST for kind, number in self._found.items() if number > MOST}
        self._write({"kind": "counts", "more": more, "memory_mb": _get_memory_mb(), **counts})
        self._file.close()

    def _write(self, finding: Finding) -> None:
        self._file.write(json.dumps(finding) + "\n")
        self._file.flush()


def _get_memory_mb() -> int | None:
    """Get the most memory that this process has held, in MiB; None where the system does not report it."""
    # Not from getrusage, which counts the parent before it started this program.
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM:")), None)


def work(settings: dict[str, Any], _: bytes) -> dict[str, Any]:
    """Inspect the store of `settings`, or copy it, and return the reply."""
    findings = _Findings(Path(settings["folder"]) / FINDINGS)
    try:
        if settings["task"] == "copy":
            _copy(settings["store"], settings["target"], findings)
        else:
            _inspect(settings["store"], findings, content=settings["content"])
    except (OSError, RuntimeError, ValueError) as error:
        findings.add("unreadable", _file(error), f"The inspection ended early: {error}")
        findings.finish()
    return {}


def _open(path: str, findings: _Findings) -> Store | None:
    try:
        return Store.read_only(path)
    except (OSError, RuntimeError) as error:
        findings.add("unreadable", _file(error), f"The store cannot be opened: {error}", part="store")
        findings.finish(quads=0, graphs=0)
        return None


def _file(error: object) -> str:
    return permutations.name_file(str(error)) or "store"


def _inspect(path: str, findings: _Findings, *, content: bool) -> None:
    if (store := _open(path, findings)) is None:
        return
    whole = _read_orders(store, findings)
    graphs, problem = permutations.list_graphs(store)
    if problem is not None:
        whole = False
        findings.add("unreadable", _file(problem), f"The list of graphs cannot be read: {problem}")
    if permutations.has_default_graph(store):
        findings.add("default graph", "store", "Quads are in the default graph, which Quadcite leaves empty.")
    reader = GraphReader(store)
    if reader.problem is not None:
        whole = False
        findings.add("unreadable", _file(reader.problem), f"The recorded hashes cannot be read: {reader.problem}")
    counts = _read_graphs(reader, graphs, findings)
    whole = whole and not counts["damaged_graphs"]
    if whole:
        _check_counters(store, counts, findings)
    if whole and content:
        _check_shapes(store, findings)
        _check_copies(store, findings)
        _check_derived(store, findings)
    findings.finish(**counts, content=whole and content)


def _read_orders(store: Store, findings: _Findings) -> bool:
    """Read all orders of the quads; return whether they are readable and equally long."""
    whole = True
    numbers: dict[str, int] = {}
    for order, found in permutations.read_all_orders(store):
        if isinstance(found, int):
            numbers[order] = found
        else:
            whole = False
            findings.add("unreadable", _file(found), f"The index {order} cannot be read: {found}")
    if len(set(numbers.values())) > 1:
        whole = False
        counted = ", ".join(f"{order} {number:,}" for order, number in numbers.items())
        findings.add("unreadable", "store", f"The indexes have different numbers of quads: {counted}.")
    return whole


class GraphReader:
    """Reads graphs by their own order, or where that is damaged by the order of their properties."""

    def __init__(self, store: Store) -> None:
        self.store: Final = store
        self.hashes: Final[dict[NamedNode, set[str]]] = defaultdict(set)
        """The recorded hashes of the graphs."""
        self.problem: str | None = None
        self._properties: Final[set[NamedNode]] = {KG.contentSha256, *_PROVENANCE_PROPERTIES}
        try:
            for quad in store.quads_for_pattern(None, KG.contentSha256, None, PROV_GRAPH):
                if isinstance(quad.subject, NamedNode) and isinstance(quad.object, Literal):
                    self.hashes[quad.subject].add(quad.object.value)
        except (OSError, RuntimeError) as error:
            self.problem = str(error)

    def read(self, graph: NamedNode) -> Iterator[Quad]:
        """Yield the quads of a graph, by its own order. Raises OSError or RuntimeError for damage."""
        for quad in self.store.quads_for_pattern(None, None, None, graph):
            self._properties.add(quad.predicate)
            yield quad

    def load(self, graph: NamedNode) -> Statements:
        """Load the statements of a graph, by its own order. Raises OSError or RuntimeError for damage."""
        return key_by_statement(graph, self.read(graph))

    def rescue(self, graph: NamedNode) -> Statements | None:
        """Load a graph by the properties read so far; None if it cannot be read so, or is not as recorded.

        Call it after the readable graphs were read. For a graph without a recorded hash, the caller has to compare the
        counters of the store.
        """
        held: Statements = {}
        try:
            for name in self._properties:
                held |= key_by_statement(graph, self.store.quads_for_pattern(None, name, None, graph))
        except (OSError, RuntimeError):
            return None
        if graph in self.hashes:
            return held if {statements_sha256(graph, held)} == self.hashes[graph] else None
        return held or None


def _read_graphs(reader: GraphReader, graphs: set[NamedNode], findings: _Findings) -> dict[str, int]:
    """Read every graph with all its terms, and compare it with its recorded hash."""
    counts = {"quads": 0, "graphs": 0, "content_quads": 0, "content_graphs": 0, "texts": 0, "hashes": 0}
    counts |= {"damaged_graphs": 0, "lost_graphs": 0}
    damaged: dict[NamedNode, str] = {}

    def count(graph: NamedNode, number: int) -> None:
        counts["quads"] += number
        counts["graphs"] += number > 0
        if graph not in UNCOUNTED_GRAPHS:
            counts["content_quads"] += number
            counts["content_graphs"] += number > 0

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
            findings.add(
                "unreadable", _file(message), f"A part of {graph} can be read from another index only: {message}"
            )
        else:
            counts["lost_graphs"] += 1
            _add(findings, "lost", reader.store, graph, f"The graph cannot be read: {message}")
    return counts


def _check_graph(reader: GraphReader, graph: NamedNode, held: Statements, findings: _Findings) -> int:
    """Compare a graph and its texts with their hashes; return the number of texts."""
    if not held:
        _add(findings, "missing", reader.store, graph, "The graph is described, but has no quads.")
        return 0
    if {statements_sha256(graph, held)} != reader.hashes[graph]:
        _add(findings, "changed", reader.store, graph, "The graph differs from its recorded hash (kg:contentSha256).")
    texts: dict[object, str] = {}
    recorded: dict[object, str] = {}
    wholes: dict[object, object] = {}
    starts: dict[object, int] = {}
    for quad in held.values():
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
            _add(findings, "text", reader.store, graph, message, where=name)
    return checked


def _join(pieces: Iterable[tuple[int, str]]) -> str:
    """Join pieces of a text, given with their offsets, which may overlap."""
    text = ""
    for start, piece in sorted(pieces):
        text += piece[max(0, len(text) - start) :]
    return text


def _check_counters(store: Store, counts: dict[str, int], findings: _Findings) -> None:
    """Compare the number of graphs with the one that the last commit recorded."""
    held = {
        quad.predicate: int(quad.object.value)
        for quad in store.quads_for_pattern(HEAD, None, None, PROV_GRAPH)
        if isinstance(quad.object, Literal)
    }
    # The recorded number of quads leaves out those that describe the shipped graphs, which look like the others.
    recorded, counted = held.get(KG.graphCount), counts["content_graphs"]
    if recorded is not None and recorded != counted:
        findings.add("count", "store", f"The store has {counted:,} graphs, but its last commit recorded {recorded:,}.")


def _check_shapes(store: Store, findings: _Findings) -> None:
    """Check provenance, evidence and the references of records by the dataset shapes."""
    first: dict[str, str] = {}
    number: dict[str, int] = defaultdict(int)
    for result in Shapes.load_dataset().results(DataGraph.from_store(store, None)):
        if result.blocks:
            focus = result.focus.value if isinstance(result.focus, NamedNode) else str(result.focus)
            first.setdefault(result.message, focus)
            number[result.message] += 1
    for message, where in first.items():
        findings.add(
            "shape", where, f"{message} ({number[message]:,} results; `kg validate --suite dataset` lists them.)"
        )


def _check_copies(store: Store, findings: _Findings) -> None:
    """Check that no triple of content is in two graphs: the engine would count it twice."""
    for row in permutations.select_rows(store, _COPIES):
        graphs = {row[0], row[1]}
        if not graphs & _MAY_REPEAT:
            findings.add("copy", str(row[2]), f"A triple of it is in two graphs: {row[0]} and {row[1]}.")


def _check_derived(store: Store, findings: _Findings) -> None:
    """Compare the graphs that rules infer from others with the quads that the rules infer now."""
    for graph, infer in INFERENCES.items():
        if (delta := compare_inferred(store, graph, infer(store))) is not None:
            missing, superfluous = len(delta.added), len(delta.removed)
            message = f"{missing:,} inferred quads are missing, and {superfluous:,} follow from nothing."
            findings.add("derived", graph.value, message)


def _copy(path: str, target: str, findings: _Findings) -> None:
    """Copy all graphs that can be read into a new store.

    The version of the shipped graphs is left out, so that they and all inferred graphs are written when it is opened.
    """
    if (store := _open(path, findings)) is None:
        return
    reader = GraphReader(store)
    graphs, _ = permutations.list_graphs(store)
    graphs -= INFERENCES.keys()
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
    findings.finish(quads=sum(written.values()))


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
    while portion := list(islice(quads, _PORTION)):
        store.extend(portion)
        number += len(portion)
    return number


def _add(findings: _Findings, kind: str, store: Store, graph: NamedNode, message: str, where: str = "") -> None:
    """Write a problem of a graph, with the records and files from which it can be loaded again."""
    records, files = _find_origins(store, graph)
    findings.add(kind, where or graph.value, message, records=records, files=files)


def _find_origins(store: Store, graph: NamedNode) -> tuple[list[str], list[list[str]]]:
    """Find the records that a graph is or follows from, and their files: name, and identifier of the path."""
    records: set[str] = set()
    files: set[tuple[str, str]] = set()
    try:
        pending, seen = [graph], {graph}
        while pending and len(seen) < _ORIGINS:
            each = pending.pop()
            if each.value.startswith(SOURCED):
                records.add(each.value)
            for origin in _find_sources(store, each):
                if origin in seen:
                    continue
                seen.add(origin)
                names = _values(store, origin, KG.location)
                if not names:
                    pending.append(origin)
                    continue
                files.update(
                    (name, source) for name in names for source in _values(store, origin, PROV.specializationOf)
                )
                if not records:  # a graph that several records share: all records of the file
                    records.update(
                        quad.subject.value
                        for quad in store.quads_for_pattern(None, PROV.wasDerivedFrom, origin, PROV_GRAPH)
                        if isinstance(quad.subject, NamedNode) and quad.subject.value.startswith(SOURCED)
                    )
    except (OSError, RuntimeError):  # the provenance is damaged as well
        pass
    return sorted(records), [list(file) for file in sorted(files)]


def _find_sources(store: Store, graph: NamedNode) -> Iterator[NamedNode]:
    for quad in store.quads_for_pattern(graph, PROV.wasDerivedFrom, None, PROV_GRAPH):
        if isinstance(quad.object, NamedNode):
            yield quad.object
    for quad in store.quads_for_pattern(graph, PROV.qualifiedDerivation, None, PROV_GRAPH):
        if isinstance(quad.object, NamedNode):
            for entity in store.quads_for_pattern(quad.object, PROV.entity, None, PROV_GRAPH):
                if isinstance(entity.object, NamedNode):
                    yield entity.object


def _values(store: Store, subject: NamedNode, predicate: NamedNode) -> list[str]:
    return [
        quad.object.value
        for quad in store.quads_for_pattern(subject, predicate, None, PROV_GRAPH)
        if isinstance(quad.object, NamedNode | Literal)
    ]


def main() -> None:
    """Run the process."""
    task.main(work)
