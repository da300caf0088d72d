"""`kg validate`: every format, syntax errors with their line, the bundle with its fixtures, and the store."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, RdfFormat, parse, serialize

from kg import bundle
from kg.errors import InvalidInputError, SourceError
from kg.store.oxigraph import OxigraphStore
from kg.validation.files import FORMATS, fixture_faults, validate_bundle, validate_files, validate_store
from kg.validation.shapes import Shapes
from kg.vocabulary import DCTERMS, KGS, SH
from tests.validation.made_up import record, without

FIXTURES = bundle.folder("fixtures") / "shapes"
BROKEN = FIXTURES / "failing" / "PolicyDocument-slug.ttl"


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


@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_each_format_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"record{suffix}"
    triples = [quad.triple for quad in parse(path=BROKEN)]
    serialize(triples, str(path), FORMATS[suffix])
    report = validate_files([path])
    assert [violation.path and violation.path.value for violation in report.violations] == [
        "https://w3id.org/quadcite/ns#slug"
    ]
    assert report.violations[0].source == str(path)


def test_a_syntax_error_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.ttl"
    path.write_text("<a> <b> <c> .\n<a> <b> .\n")
    [violation] = validate_files([path]).violations
    assert f"{path}, line 2" in violation.message


def test_one_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "broken.ttl"
    path.write_text("no turtle")
    report = validate_files([path, BROKEN])
    assert {violation.source for violation in report.violations} == {str(path), str(BROKEN)}


def test_a_file_of_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"\.jsonld.*\.ttl"):
        validate_files([tmp_path / "data.csv"])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.ttl"):
        validate_files([tmp_path / "absent.ttl"])


def test_a_shapes_file_that_is_not_shacl_is_a_violation(tmp_path: Path) -> None:
    path = tmp_path / "shapes.ttl"
    path.write_text(
        "@prefix sh: <http://www.w3.org/ns/shacl#> .\n"
        "<urn:s> a sh:PropertyShape ; sh:targetNode <urn:n> ; sh:path <urn:p> , <urn:q> ; sh:minCount 1 .\n"
    )
    [violation] = validate_files([path]).violations
    assert "the shapes cannot be used" in violation.message


def test_shapes_that_are_not_turtle_are_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "shapes.ttl"
    path.write_text("\n<a> <b>\n")
    with pytest.raises(SourceError, match="line"):
        Shapes.load(path)


def test_the_store_is_checked_record_by_record(tmp_path: Path) -> None:
    graph, quads = record("bad")
    with OxigraphStore(tmp_path / "data") as store:
        store.commit(dict([record("good"), (graph, without(quads, DCTERMS.title))]))
        report = validate_store(store)
    assert (report.checked, {violation.graph for violation in report.violations}) == ("2 graphs of sources", {graph})


def test_a_file_of_quads_is_checked_whole(tmp_path: Path) -> None:
    path = tmp_path / "records.nq"
    serialize([*record("one")[1], *without(record("two")[1], DCTERMS.title)], str(path), RdfFormat.N_QUADS)
    [violation] = validate_files([path]).violations
    assert str(violation.focus) == "<cpr://doc/two>"
