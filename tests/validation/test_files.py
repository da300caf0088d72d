"""`kg validate`: every format, syntax errors with their line, and the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse, serialize

from kg import bundle
from kg.errors import InvalidInputError, SourceError
from kg.store.oxigraph import OxigraphStore
from kg.validation.files import FORMATS, validate_files, validate_store
from kg.validation.shapes import Shapes
from kg.vocabulary import DCTERMS
from tests.validation.made_up import record, without

FIXTURES = bundle.folder("fixtures") / "shapes"
BROKEN = FIXTURES / "failing" / "PolicyDocument-slug.ttl"


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
