"""A section that a load takes away takes its summary along, in the same commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.zoning_summaries.build import build
from kg.zoning_summaries.code_tree import read_tree
from loaders.sources import load
from tests.folders import open_graph
from tests.zoning_summaries.topics import municipality_in

COUNT = "SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE { ?s a kg:Summary }"


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "data") as opened:
        yield opened


def summaries(kg: KnowledgeGraph) -> int:
    [row] = kg.store.query(COUNT)
    return int(row["n"].value)


def test_what_a_load_removes_loses_its_summary_and_a_code_that_goes_all_of_them(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    code: dict[str, Any] = json.loads((bundle.folder("fixtures") / "zoning" / "upper_feign.json").read_bytes())
    source = tmp_path / "in"
    source.mkdir()
    file = source / "code.json"
    file.write_text(json.dumps(code))
    load(kg, "zoning", [str(source)])
    place = municipality_in(kg)
    built = build(kg, place).built
    assert summaries(kg) == built > 3

    leaf = next(each for each in read_tree(kg, place).order if read_tree(kg, place).heights.get(each) == 0)
    gone = read_tree(kg, place).sections[leaf].number
    code["sections"] = [each for each in code["sections"] if each["section_id"] != gone]
    file.write_text(json.dumps(code))
    load(kg, "zoning", [str(source)], prune=True)
    assert leaf not in read_tree(kg, place).sections
    assert summaries(kg) == built - 1

    file.unlink()
    (source / "other.json").write_text(json.dumps({**code, "municipality": "Lower Feign"}))
    load(kg, "zoning", [str(source)], prune=True)
    assert summaries(kg) == 0
