"""What ships with Quadcite: every shape is tried on fixtures, which fail and pass as they declare."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from pyoxigraph import NamedNode, parse

from kg import bundle
from kg.validation.bundled import fixture_faults, validate_bundle
from kg.vocabulary import KGS, SH

FIXTURES = bundle.folder("fixtures") / "shapes"


def test_what_ships_is_well_formed_and_every_fixture_is_judged_as_it_declares() -> None:
    report = validate_bundle()
    assert report.conforms, str(report)


def test_every_shape_has_a_fixture_that_passes_and_one_that_fails() -> None:
    declared = {case["shape"] for case in tomllib.loads((FIXTURES / "cases.toml").read_text())["case"]}
    shapes = {
        f"kgs:{quad.subject.value.removeprefix(KGS.iri)}"
        for path in bundle.folder("shapes").glob("*.ttl")
        for quad in parse(path=path)
        if quad.predicate in (SH.message, SH.sparql) and isinstance(quad.subject, NamedNode)
    }
    assert declared == shapes


def test_every_fixture_is_declared() -> None:
    cases = tomllib.loads((FIXTURES / "cases.toml").read_text())["case"]
    declared = {case[kind] for case in cases for kind in ("passing", "failing")}
    assert declared == {path.relative_to(FIXTURES).as_posix() for path in FIXTURES.rglob("*.ttl")}


def test_a_fixture_that_fails_otherwise_than_declared_is_a_fault(tmp_path: Path) -> None:
    folder = tmp_path / "shapes"
    (folder / "passing").mkdir(parents=True)
    shutil.copy(FIXTURES / "passing" / "family.ttl", folder / "passing" / "family.ttl")
    shutil.copy(FIXTURES / "failing" / "PolicyFamily-title.ttl", folder / "bad.ttl")
    (folder / "cases.toml").write_text(
        '[[case]]\nshape = "kgs:PolicyFamily-title"\n'
        'passing = "bad.ttl"\nfailing = "passing/family.ttl"\nmessage = "Never said."\n'
    )
    faults = sorted(str(fault.message) for fault in fixture_faults(folder))
    assert [fault.split(": ")[0].split(" this ")[0] for fault in faults] == [
        "failing fixture of kgs:PolicyFamily-title does not give",
        "passing fixture of kgs:PolicyFamily-title gives",
    ]
