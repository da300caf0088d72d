"""`kg validate` of what ships with Quadcite: the ontology, the shapes, and the fixtures that shapes are tried on."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from pathlib import Path

from pyoxigraph import NamedNode, Quad

from kg import bundle
from kg.errors import QuadciteError
from kg.shacl.gate import RecordGate
from kg.shacl.rdf_files import read
from kg.shacl.releases import release_faults
from kg.shacl.report import Report, Violation
from kg.shacl.shapes import Shapes
from kg.vocabulary import KGS, SH, SOURCED

Check = Callable[[Sequence[Quad]], list[Violation]]


def validate_bundle() -> Report:
    """Validate what ships with Quadcite: each ontology module says what its terms mean and loses none of the last
    release, the shapes are SHACL that compiles to queries, and find in every fixture exactly what the fixture says.
    """
    ontology = sorted(bundle.folder("ontology").glob("*.ttl"))
    shapes = sorted(bundle.folder("shapes").glob("*.ttl"))
    fixtures = bundle.folder("fixtures") / "shapes"
    examples = sorted((bundle.folder("ontology") / "examples").glob("*.ttl"))
    found = [syntax_error for path in examples if (syntax_error := read(path)[1]) is not None]
    broken = [fault for path in shapes for fault in suite_faults(path)]
    if not broken:
        found += ontology_faults(ontology, bundle.folder("ontology") / "released" / "terms.nt")
        found += untried(shapes, fixtures)
        found += fixture_faults(fixtures)
    found += broken
    return Report(f"{len(ontology)} ontology modules, {len(shapes)} shapes graphs and their fixtures", found)


def tbox() -> Shapes:
    """Return the shapes of the ontology itself."""
    return Shapes.load(bundle.folder("shapes") / "tbox.ttl")


def suite_faults(path: Path) -> list[Violation]:
    """Return why a file of shapes cannot be used, or which of its shapes do not compile to queries: ours all do."""
    try:
        uncompiled = Shapes.load(path).uncompiled
    except QuadciteError as error:
        return [Violation(None, str(error), source=str(path))]
    return [
        Violation(shape, f"A shape of ours compiles to queries; this one does not: {reason}", source=str(path))
        for shape, reason in uncompiled.items()
    ]


def ontology_faults(modules: Sequence[Path], released: Path) -> list[Violation]:
    """Return what is wrong with the ontology in `modules`, taken as one graph: by its shapes, and where these find no
    violation, by its last release.
    """
    before, syntax_error = read(released)
    found = [syntax_error] if syntax_error else []
    said: list[Quad] = []
    home: dict[object, Path] = {}
    for path in modules:
        quads, syntax_error = read(path)
        found += [syntax_error] if syntax_error else []
        said += quads
        home.update((quad.subject, path) for quad in quads)
    if not found:
        found = tbox().check(said)
        if not any(fault.blocks for fault in found):
            found += release_faults(before, said)
        found = [replace(fault, source=str(home.get(fault.focus, released))) for fault in found]
    return sorted(found, key=lambda fault: (fault.source or "", str(fault.focus), fault.message))


def untried(shapes: Iterable[Path], fixtures: Path) -> Iterator[Violation]:
    """Yield each shape with a message of its own that no case below the folder `fixtures` tries."""
    tried = {case["shape"] for folder in _folders(fixtures) for case in _cases(folder)}
    for path in shapes:
        speaking = {
            quad.subject
            for quad in read(path)[0]
            if quad.predicate in (SH.message, SH.sparql) and isinstance(quad.subject, NamedNode)
        }
        for shape in sorted(speaking, key=str):
            if f"kgs:{shape.value.removeprefix(KGS.iri)}" not in tried:
                yield Violation(shape, "No fixture passes this shape and no other fails it.", source=str(path))


def fixture_faults(fixtures: Path) -> Iterator[Violation]:
    """Yield where a fixture is not judged as the ``cases.toml`` beside it declares, in `fixtures` and folders below.

    Each ``[[case]]`` there has a `shape`, a `passing` and a `failing` file, the `message` that the failing one must
    give, and with it the `severity`, where that is not Violation. The `suite` is ``dataset`` or ``tbox`` where the
    shape is not one for records.
    """
    checks = suites()

    @cache
    def judged(suite: str, path: Path) -> tuple[frozenset[tuple[str, str]], Violation | None]:
        quads, syntax_error = read(path)
        found = [] if syntax_error is not None else checks[suite](quads)
        return frozenset((result.message, result.severity) for result in found), syntax_error

    for folder in _folders(fixtures):
        for case in _cases(folder):
            for kind in ("passing", "failing"):
                path = folder / case[kind]
                given, syntax_error = judged(case.get("suite", "record"), path)
                if syntax_error is not None:
                    yield syntax_error
                else:
                    yield from _misjudged(case, kind, path, given)


def suites() -> dict[str, Check]:
    """Return what checks the fixtures of each suite, by the name of the suite."""
    gate = RecordGate()

    def records(quads: Sequence[Quad]) -> list[Violation]:
        return [violation for found in gate.check(_by_graph(quads)).values() for violation in found]

    whole = Shapes.dataset()

    def dataset(quads: Sequence[Quad]) -> list[Violation]:
        return whole.check_apart([(quads, range(len(quads)))])

    return {"record": records, "dataset": dataset, "tbox": tbox().check}


def _misjudged(case: Mapping[str, str], kind: str, path: Path, given: Set[tuple[str, str]]) -> Iterator[Violation]:
    expected = {(case["message"], case.get("severity", "Violation"))} if kind == "failing" else set()
    for message, severity in sorted(given ^ expected):
        lack = "gives" if (message, severity) in given else "does not give"
        yield Violation(None, f"{kind} fixture of {case['shape']} {lack} this {severity}: {message}", source=str(path))


def _folders(fixtures: Path) -> list[Path]:
    return sorted(path.parent for path in fixtures.rglob("cases.toml"))


def _cases(folder: Path) -> list[dict[str, str]]:
    cases: list[dict[str, str]] = tomllib.loads((folder / "cases.toml").read_text(encoding="utf-8"))["case"]
    return cases


def _by_graph(quads: Iterable[Quad]) -> dict[NamedNode, list[Quad]]:
    graphs: dict[NamedNode, list[Quad]] = defaultdict(list)
    for quad in quads:
        graph = quad.graph_name if isinstance(quad.graph_name, NamedNode) else NamedNode(SOURCED + "fixture")
        graphs[graph].append(Quad(quad.subject, quad.predicate, quad.object, graph))
    return graphs
