"""`kg validate` of what ships with Quadcite: the ontology, the shapes, and the fixtures that shapes are tried on."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pyoxigraph import BlankNode, NamedNode, Quad

from kg import bundle
from kg.validation.files import read, shapes_faults
from kg.validation.gate import RecordGate
from kg.validation.report import Report, Violation
from kg.validation.shapes import Shapes
from kg.vocabulary import BASE, KG, OWL, RDF, RDFS, SKOS


def validate_bundle() -> Report:
    """Validate what ships with Quadcite: each ontology module says what its terms mean, the shapes are SHACL that
    finds in every fixture exactly what the fixture says, and no more.
    """
    ontology = sorted(bundle.folder("ontology").glob("*.ttl"))
    shapes = sorted(bundle.folder("shapes").glob("*.ttl"))
    found: list[Violation] = []
    for path in ontology:
        quads, syntax_error = read(path)
        found += [syntax_error] if syntax_error else _ontology_faults(path, quads)
    for path in shapes:
        found += shapes_faults(path)
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
            quads, syntax_error = read(path)
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


def _by_graph(quads: Iterable[Quad]) -> dict[NamedNode, list[Quad]]:
    graphs: dict[NamedNode, list[Quad]] = defaultdict(list)
    for quad in quads:
        graph = quad.graph_name if isinstance(quad.graph_name, NamedNode) else NamedNode(BASE + "graph/src/fixture")
        graphs[graph].append(Quad(quad.subject, quad.predicate, quad.object, graph))
    return graphs


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
