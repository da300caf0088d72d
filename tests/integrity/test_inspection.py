"""The number of graphs that the last commit recorded, compared with those that are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.integrity.doctor import inspect_closed
from kg.vocabulary import RDFS, mint
from tests.folders import open_graph

GRAPH = mint("graph", "user", "notes")
NOTE = Quad(NamedNode("urn:note"), RDFS.label, Literal("a note"), GRAPH)


@pytest.mark.parametrize("content", ["none", "there", "removed"])
def test_a_healthy_store_has_the_recorded_number_of_graphs(tmp_path: Path, content: str) -> None:
    with open_graph(tmp_path / "data") as kg:
        if content != "none":
            kg.store.commit({GRAPH: [NOTE]})
        if content == "removed":
            kg.store.commit({GRAPH: ()})
    assert "count" not in {problem.kind for problem in inspect_closed(tmp_path / "data").problems}


def test_a_graph_that_no_commit_recorded_is_found(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data"):
        pass
    store = Store(str(tmp_path / "data" / "store"))
    store.add(NOTE)
    store.flush()
    del store
    assert "count" in {problem.kind for problem in inspect_closed(tmp_path / "data").problems}
