"""`kg validate` on RDF that Wikibase wrote, by shapes written for its dump format."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kg.shacl import pyshacl_engine
from kg.shacl.rdf_files import expand_paths, open_document
from kg.shacl.shapes import Shapes
from tests.cli.running import run

SHAPES = Path(__file__).with_name("wikibase.ttl")


def answer(*arguments: object) -> Any:
    result = run("validate", *arguments, "--shapes", SHAPES, "--format", "json")
    assert result.exit_code == 1, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def dumped(shared: Path) -> Path:
    return shared / "data" / "wikibase" / "rdf"


def test_what_is_found_is_what_pyshacl_finds(dumped: Path) -> None:
    shapes = Shapes.load(SHAPES)
    files = [open_document(name, lenient=True) for name in expand_paths([str(dumped)])]
    theirs = pyshacl_engine.validate(shapes.triples, [quad for each in files for quad in each.parse()])
    ours = answer(dumped, "--lenient")["results"]
    assert not shapes.uncompiled
    assert len(ours) > 200
    assert Counter((each["focus"], each["component"], each["message"]) for each in ours if each["shape"][0] != "_") == (
        Counter(
            (str(each.focus), each.component and each.component.value, each.message)
            for each in theirs
            if not str(each.shape).startswith("_")
        )
    )
    assert Counter((each["focus"], each["component"], each["value"]) for each in ours) == Counter(
        (str(each.focus), each.component and each.component.value, each.value and str(each.value)) for each in theirs
    )


def test_a_language_tag_that_none_is_hides_a_file_unless_it_is_taken_as_it_is(dumped: Path) -> None:
    faults = [each for each in answer(dumped)["results"] if each["focus"] is None]
    assert [Path(each["source"]).name for each in faults] == ["RdfRepositoryUpdaterIntegrationTest.Q513-munged.ttl"]
    assert "line 1641, column 3996: not Turtle: A subtag may be eight characters" in faults[0]["message"]
