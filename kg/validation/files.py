"""`kg validate`: files of RDF, the bundled ontology, shapes and fixtures, and the store's own data."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, parse

from kg import bundle
from kg.errors import InvalidInputError, QuadciteError, SourceError
from kg.validation.gate import BATCH_QUADS, RecordGate
from kg.validation.report import Report, Violation
from kg.validation.shapes import Shapes
from kg.vocabulary import BASE, KG, OWL, RDF, RDFS, SH, SKOS

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
        quads, syntax_error = _read(path)
        if syntax_error is not None:
            found.append(syntax_error)
            continue
        results = shapes.check(set(quads))
        if any(quad.object in (SH.NodeShape, SH.PropertyShape) for quad in quads):
            results += _shapes_faults(path)
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


def validate_bundle() -> Report:
    """Validate what ships with Quadcite: each ontology module says what its terms mean, the shapes are SHACL that
    finds in every fixture exactly what the fixture says, and no more.
    """
    ontology = sorted(bundle.folder("ontology").glob("*.ttl"))
    shapes = sorted(bundle.folder("shapes").glob("*.ttl"))
    found: list[Violation] = []
    for path in ontology:
        quads, syntax_error = _read(path)
        found += [syntax_error] if syntax_error else _ontology_faults(path, quads)
    for path in shapes:
        found += _shapes_faults(path)
    if not found:
        found += fixture_faults(bundle.folder("fixtures") / "shapes")
    return Report(f"{len(ontology)} ontology modules, {len(shapes)} shapes graphs and their fixtures", found)


def fixture_faults(folder: Path) -> Iterator[Violation]:
    """Yield where a fixture is not judged as ``cases.toml`` in `folder` declares.

    Each ``[[case]]`` there has a `shape`, a `passing` and a `failing` file, the `message` that the failing one must
    give, and with it the `severity`, where that is not Violation. The `suite` is ``dataset`` where the shape is not one
    for records.
    """
    gate, dataset = RecordGate(), Shapes.dataset()
    for case in tomllib.loads((folder / "cases.toml").read_text(encoding="utf-8"))["case"]:
        for kind in ("passing", "failing"):
            path = folder / case[kind]
            quads, syntax_error = _read(path)
            if syntax_error is not None:
                yield syntax_error
                continue
            if case.get("suite") == "dataset":
                results = dataset.check(quads)
            else:
                results = [violation for each in gate.check(_by_graph(quads)).values() for violation in each]
            expected = {(case["message"], case.get("severity", "Violation"))} if kind == "failing" else set()
            for message, severity in {(result.message, result.severity) for result in results} ^ expected:
                lack = "gives" if (message, severity) not in expected else "does not give"
                yield Violation(
                    None, f"{kind} fixture of {case['shape']} {lack} this {severity}: {message}", source=str(path)
                )


def _shapes_faults(path: Path) -> list[Violation]:
    try:
        Shapes.load(path)
    except QuadciteError as error:
        return [Violation(None, str(error), source=str(path))]
    return []


def _by_graph(quads: Iterable[Quad]) -> dict[NamedNode, list[Quad]]:
    graphs: dict[NamedNode, list[Quad]] = defaultdict(list)
    for quad in quads:
        graph = quad.graph_name if isinstance(quad.graph_name, NamedNode) else NamedNode(BASE + "graph/src/fixture")
        graphs[graph].append(Quad(quad.subject, quad.predicate, quad.object, graph))
    return graphs


def _read(path: Path) -> tuple[list[Quad], Violation | None]:
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


def _ontology_faults(path: Path, quads: Sequence[Quad]) -> Iterator[Violation]:
    said: dict[object, dict[NamedNode, list[object]]] = defaultdict(lambda: defaultdict(list))
    for quad in quads:
        said[quad.subject][quad.predicate].append(quad.object)
    for subject, properties in said.items():
        if isinstance(subject, BlankNode) or not isinstance(subject, NamedNode) or OWL.Ontology in properties[RDF.type]:
            continue
        if not subject.value.startswith(BASE):
            continue
        labels = RDFS.label if subject.value.startswith(KG.iri) else SKOS.prefLabel
        needed = {labels: "a label", SKOS.definition: "a definition", RDFS.isDefinedBy: "rdfs:isDefinedBy"}
        for predicate, name in needed.items():
            if not properties[predicate]:
                yield Violation(subject, f"A term of the ontology lacks {name}.", path=predicate, source=str(path))
        if RDFS.domain in properties or RDFS.range in properties:
            yield Violation(
                subject, "A property has rdfs:domain or rdfs:range: shapes check the data instead.", source=str(path)
            )
