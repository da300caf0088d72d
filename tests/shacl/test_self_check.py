"""What ships with Quadcite: every shape is tried on fixtures, which fail and pass as they declare."""

from __future__ import annotations

import shutil
import tomllib
from functools import cache
from operator import itemgetter
from pathlib import Path

import pytest
from pyoxigraph import parse

from kg import bundle
from kg.shacl import pyshacl_engine
from kg.shacl.report import Violation
from kg.shacl.self_check import (
    check_bundle,
    check_fixtures,
    check_ontology,
    check_shapes,
    find_untested_shapes,
    load_tbox_shapes,
)
from kg.shacl.shapes import Shapes
from kg.vocabulary import KG, KGS
from tests.examples import spread

FIXTURES, SHAPES, ONTOLOGY = bundle.folder("fixtures") / "shapes", bundle.folder("shapes"), bundle.folder("ontology")
MODULES = sorted(ONTOLOGY.glob("*.ttl"))
DATASET = [path for path in sorted(SHAPES.glob("dataset-*.ttl")) if path.name != "dataset-graphs.ttl"]
SUITES = {"record": Shapes.load(), "dataset": Shapes.load(*DATASET), "tbox": load_tbox_shapes()}
CASES = [
    {**case, "folder": str(path.parent)}
    for path in sorted(FIXTURES.rglob("cases.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]


def compared(result: Violation) -> tuple[str, ...]:
    return (str(result.focus), str(result.value), str(result.component), result.severity, str(result.shape))


def test_every_fixture_is_declared() -> None:
    declared = {Path(case["folder"]) / case[kind] for case in CASES for kind in ("passing", "failing")}
    there = {path for path in FIXTURES.rglob("*") if path.is_file() and path.name != "cases.toml"}
    assert declared == there


@pytest.mark.long
def test_the_shipped_ontology_shapes_and_fixtures_have_no_fault() -> None:
    assert check_bundle()[1] == []


def test_a_shape_without_a_case_is_named(tmp_path: Path) -> None:
    (tmp_path / "cases.toml").write_text('[[case]]\nshape = "kgs:Snapshot-hash"\n')
    faults = [str(fault.focus) for fault in find_untested_shapes([SHAPES / "dataset-core.ttl"], tmp_path)]
    assert str(KGS["ContentGraph-hash"]) in faults
    assert str(KGS["Snapshot-hash"]) not in faults


def test_a_fixture_that_fails_otherwise_than_declared_is_a_fault(tmp_path: Path) -> None:
    folder = tmp_path / "shapes"
    (folder / "passing").mkdir(parents=True)
    shutil.copy(FIXTURES / "passing" / "family.ttl", folder / "passing" / "family.ttl")
    shutil.copy(FIXTURES / "failing" / "PolicyFamily-title.ttl", folder / "bad.ttl")
    (folder / "cases.toml").write_text(
        '[[case]]\nshape = "kgs:PolicyFamily-title"\n'
        'passing = "bad.ttl"\nfailing = "passing/family.ttl"\nmessage = "Never said."\n'
    )
    faults = sorted(str(fault.message) for fault in check_fixtures(folder))
    assert [fault.split(": ")[0] for fault in faults] == [
        "Missing Violation from the failing fixture of kgs:PolicyFamily-title",
        "Unexpected Violation from the passing fixture of kgs:PolicyFamily-title",
    ]


@pytest.mark.parametrize(
    ("shape", "fault"),
    [
        ("sh:targetNode <urn:n> ; sh:minCount 1", "sh:minCount"),
        ("sh:target [ a sh:SPARQLTarget ; sh:select 'SELECT ?this WHERE { ?this a ?kind }' ]", "sh:target"),
    ],
)
def test_a_shape_of_ours_that_is_not_shacl_or_is_left_to_pyshacl_is_a_fault(
    tmp_path: Path, shape: str, fault: str
) -> None:
    path = tmp_path / "record-more.ttl"
    path.write_text(f"@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:s> a sh:NodeShape ; {shape} .")
    [found] = check_shapes(path)
    assert fault in found.message
    assert found.source == str(path)


def test_a_term_that_says_nothing_of_itself_is_a_fault_in_its_file(tmp_path: Path) -> None:
    added = tmp_path / "added.ttl"
    added.write_text(
        "@prefix kg: <https://w3id.org/quadcite/ns#> . kg:Mystery a <http://www.w3.org/2002/07/owl#Class> ."
    )
    faults = check_ontology([*MODULES, added])
    assert {(fault.focus, fault.source) for fault in faults if fault.blocks} == {(KG.Mystery, str(added))}


def test_a_version_that_is_none_is_a_fault_of_its_module(tmp_path: Path) -> None:
    core = tmp_path / "core.ttl"
    core.write_text((ONTOLOGY / "core.ttl").read_text().replace('owl:versionInfo "', 'owl:versionInfo "v'))
    others = [path for path in MODULES if path.name != "core.ttl"]
    faults = {str(fault.shape) for fault in check_ontology([core, *others])}
    assert str(KGS["OntologyModule-version"]) in faults


def test_an_ontology_that_is_not_turtle_is_named_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ttl"
    broken.write_text("\nkg:Passage a")
    [fault] = check_ontology([broken])
    assert "line 2" in fault.message


@pytest.mark.long
@pytest.mark.parametrize(
    "case", spread([case for case in CASES if not case["failing"].endswith(".trig")], 60), ids=itemgetter("shape")
)
def test_pyshacl_judges_a_fixture_alike(case: dict[str, str]) -> None:
    """Not compared: the message, and how many results that are alike there are; named graphs (see test_suites.py)."""
    for kind in ("passing", "failing"):
        ours, theirs = judged(case.get("suite", "record"), Path(case["folder"]) / case[kind])
        assert ours == theirs


@cache
def judged(suite: str, path: Path) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """What our engine and pySHACL find in a file: once, however many shapes it is to pass."""
    shapes, quads = SUITES[suite], list(parse(path=path))
    found = (shapes.check(quads), pyshacl_engine.validate(shapes.triples, quads))
    ours, theirs = ({compared(each) for each in results} for results in found)
    return ours, theirs
