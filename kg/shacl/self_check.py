"""`kg validate --self`: checks of the ontology, the shapes and the shape fixtures that ship with Quadcite."""

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
from kg.shacl.rdf_files import parse_file
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.vocabulary import KGS, SH, SOURCED

Check = Callable[[Sequence[Quad]], list[Violation]]


def check_bundle() -> tuple[str, list[Violation]]:
    """Check everything that ships with Quadcite. Return a description of the checked files and the faults.

    Each ontology module conforms to the shapes for ontologies. Each shape is valid SHACL and compiles to queries. Each
    fixture gives exactly the results that it declares.
    """
    ontology = sorted(bundle.folder("ontology").glob("*.ttl"))
    shapes = sorted(bundle.folder("shapes").glob("*.ttl"))
    fixtures = bundle.folder("fixtures") / "shapes"
    examples = sorted((bundle.folder("ontology") / "examples").glob("*.ttl"))
    faults = [syntax_error for path in examples if (syntax_error := parse_file(path)[1]) is not None]
    shape_faults = [fault for path in shapes for fault in check_shapes(path)]
    if not shape_faults:  # with shapes that cannot be used, the checks below would only repeat the error
        faults += check_ontology(ontology)
        faults += find_untested_shapes(shapes, fixtures)
        faults += check_fixtures(fixtures)
    faults += shape_faults
    return f"{len(ontology)} ontology modules, {len(shapes)} shapes graphs and their fixtures", faults


def load_tbox_shapes() -> Shapes:
    """Load the shapes for ontologies."""
    return Shapes.load(bundle.folder("shapes") / "tbox.ttl")


def check_shapes(path: Path) -> list[Violation]:
    """Check that the shapes in a file are valid SHACL and that all of them compile to queries."""
    try:
        uncompiled = Shapes.load(path).uncompiled
    except QuadciteError as error:
        return [Violation(None, str(error), source=str(path))]
    return [
        Violation(shape, f"A bundled shape does not compile to queries: {reason}.", source=str(path))
        for shape, reason in uncompiled.items()
    ]


def check_ontology(modules: Sequence[Path]) -> list[Violation]:
    """Check the ontology in the files `modules`, taken as one graph. Each fault names the file of its term."""
    faults: list[Violation] = []
    quads: list[Quad] = []
    file_of: dict[object, Path] = {}
    for path in modules:
        parsed, syntax_error = parse_file(path)
        faults += [syntax_error] if syntax_error else []
        quads += parsed
        file_of.update((quad.subject, path) for quad in parsed)
    if not faults:
        faults = load_tbox_shapes().check(quads)
        faults = [replace(each, source=str(file_of[each.focus])) if each.focus in file_of else each for each in faults]
    return sorted(faults, key=lambda fault: (fault.source or "", str(fault.focus), fault.message))


def find_untested_shapes(shapes: Iterable[Path], fixtures: Path) -> Iterator[Violation]:
    """Yield a fault for each shape with a message of its own that no case below the folder `fixtures` tests."""
    tested = {case["shape"] for folder in _case_folders(fixtures) for case in _load_cases(folder)}
    for path in shapes:
        with_message = {
            quad.subject
            for quad in parse_file(path)[0]
            if quad.predicate in (SH.message, SH.sparql) and isinstance(quad.subject, NamedNode)
        }
        for shape in sorted(with_message, key=str):
            if f"kgs:{shape.value.removeprefix(KGS.iri)}" not in tested:
                yield Violation(shape, "No pair of passing and failing fixtures tests this shape.", source=str(path))


def check_fixtures(fixtures: Path) -> Iterator[Violation]:
    """Yield a fault for each fixture below `fixtures` whose results differ from the ``cases.toml`` in its folder.

    Each ``[[case]]`` there has a `shape`, a `passing` and a `failing` file, the `message` that the failing file must
    give, and the `severity` of that result unless it is Violation. The `suite` is ``dataset`` or ``tbox`` unless the
    shape is for records.
    """
    checks = load_suites()

    @cache
    def results_of(suite: str, path: Path) -> tuple[frozenset[tuple[str, str]], Violation | None]:
        quads, syntax_error = parse_file(path)
        results = [] if syntax_error is not None else checks[suite](quads)
        return frozenset((result.message, result.severity) for result in results), syntax_error

    for folder in _case_folders(fixtures):
        for case in _load_cases(folder):
            for kind in ("passing", "failing"):
                path = folder / case[kind]
                results, syntax_error = results_of(case.get("suite", "record"), path)
                if syntax_error is not None:
                    yield syntax_error
                else:
                    yield from _differences(case, kind, path, results)


def load_suites() -> dict[str, Check]:
    """Load the check of each suite that fixtures name."""
    gate = RecordGate()

    def records(quads: Sequence[Quad]) -> list[Violation]:
        return [violation for found in gate.check(_by_graph(quads)).values() for violation in found]

    whole = Shapes.load_dataset()

    def dataset(quads: Sequence[Quad]) -> list[Violation]:
        return whole.check_disjoint([(quads, range(len(quads)))])

    return {"record": records, "dataset": dataset, "tbox": load_tbox_shapes().check}


def _differences(case: Mapping[str, str], kind: str, path: Path, results: Set[tuple[str, str]]) -> Iterator[Violation]:
    expected = {(case["message"], case.get("severity", "Violation"))} if kind == "failing" else set()
    for message, severity in sorted(results ^ expected):
        problem = "Unexpected" if (message, severity) in results else "Missing"
        yield Violation(
            None, f"{problem} {severity} from the {kind} fixture of {case['shape']}: {message}", source=str(path)
        )


def _case_folders(fixtures: Path) -> list[Path]:
    return sorted(path.parent for path in fixtures.rglob("cases.toml"))


def _load_cases(folder: Path) -> list[dict[str, str]]:
    cases: list[dict[str, str]] = tomllib.loads((folder / "cases.toml").read_text(encoding="utf-8"))["case"]
    return cases


def _by_graph(quads: Iterable[Quad]) -> dict[NamedNode, list[Quad]]:
    graphs: dict[NamedNode, list[Quad]] = defaultdict(list)
    for quad in quads:
        graph = quad.graph_name if isinstance(quad.graph_name, NamedNode) else NamedNode(SOURCED + "fixture")
        graphs[graph].append(Quad(quad.subject, quad.predicate, quad.object, graph))
    return graphs
