"""`kg validate`: files of RDF, and the store's own data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from kg.errors import InvalidInputError, QuadciteError, SourceError
from kg.validation.gate import BATCH_QUADS, RecordGate
from kg.validation.report import Report, Violation
from kg.validation.shapes import Shapes
from kg.vocabulary import BASE, SH

FORMATS: Final[dict[str, RdfFormat]] = {
    ".ttl": RdfFormat.TURTLE,
    ".trig": RdfFormat.TRIG,
    ".nt": RdfFormat.N_TRIPLES,
    ".nq": RdfFormat.N_QUADS,
    ".jsonld": RdfFormat.JSON_LD,
    ".rdf": RdfFormat.RDF_XML,
    ".owl": RdfFormat.RDF_XML,
    ".xml": RdfFormat.RDF_XML,
}

SOURCE_GRAPHS: Final = (BASE + "graph/src/", BASE + "graph/ref/")
"""Where the records stand that record shapes are for."""


def validate_files(paths: Sequence[Path], shapes: Shapes | None = None) -> Report:
    """Validate each file by itself, as one graph, against `shapes` (the record shapes, if none are given).

    Turtle, TriG, N-Triples, N-Quads, JSON-LD and RDF/XML, told by the end of the name. A file that is not well formed
    is a result of its own, which names the line. Raises InvalidInputError for a file of another kind, SourceError for
    one that cannot be read.
    """
    shapes = shapes or Shapes.load()
    found: list[Violation] = []
    for path in paths:
        quads, syntax_error = read(path)
        if syntax_error is not None:
            found.append(syntax_error)
            continue
        results = shapes.check(set(quads))
        if any(quad.object in (SH.NodeShape, SH.PropertyShape) for quad in quads):
            results += shapes_faults(path)
        found += [replace(violation, source=str(path)) for violation in results]
    found.sort(key=lambda violation: (violation.source or "", not violation.blocks, str(violation.focus)))
    return Report(f"{len(paths)} file{'s' * (len(paths) != 1)}", found, shapes.by_pyshacl())


class Graphs(Protocol):
    """Named graphs that can be read one by one: a store, or one that a server holds."""

    def graphs(self) -> Sequence[NamedNode]:
        """Return the names of all graphs."""
        ...

    def graph(self, graph: NamedNode) -> list[Quad]:
        """Return the quads of one graph."""
        ...


def validate_store(store: Graphs, shapes: Shapes | None = None) -> Report:
    """Validate the records in `store`, each graph by itself, some at a time; graphs of other kinds are passed over."""
    gate = RecordGate(shapes)
    names = sorted(
        (name for name in store.graphs() if name.value.startswith(SOURCE_GRAPHS)), key=lambda name: name.value
    )
    found: list[Violation] = []
    batch: dict[NamedNode, list[Quad]] = {}
    for position, name in enumerate(names, 1):
        batch[name] = store.graph(name)
        if sum(map(len, batch.values())) >= BATCH_QUADS or position == len(names):
            results = gate.check(batch)
            found += [violation for graph in batch for violation in results.get(graph, ())]
            batch.clear()
    return Report(f"{len(names)} graphs of sources", found, gate.shapes.by_pyshacl())


def shapes_faults(path: Path) -> list[Violation]:
    """Return why a file of shapes cannot be used; nothing, if it can."""
    try:
        Shapes.load(path)
    except QuadciteError as error:
        return [Violation(None, str(error), source=str(path))]
    return []


def read(path: Path) -> tuple[list[Quad], Violation | None]:
    """Return the quads of a file, or what is wrong with its syntax and where."""
    format_ = FORMATS.get(path.suffix.lower())
    if format_ is None:
        raise InvalidInputError(
            f"{path}: what format it has cannot be told; name it {', '.join(sorted(FORMATS))}, by its format"
        )
    try:
        # Blank nodes of two files with one label are two nodes.
        base = path.absolute().as_uri()
        return list(parse(path=path, format=format_, base_iri=base, rename_blank_nodes=True)), None
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno is not None else ""
        column = f", column {error.offset}" if error.lineno is not None and error.offset is not None else ""
        return [], Violation(None, f"{path}{line}{column}: not {format_.name}: {error.msg}", source=str(path))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
