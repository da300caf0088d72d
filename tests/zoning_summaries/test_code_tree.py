"""A tree that is kept from one commit to the next is the tree that is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, Run
from kg.provenance.reader import find_changed_graphs
from kg.vocabulary import BASE, KG, RDF, mint
from kg.zoning_summaries import build, code_tree
from loaders.sources import load
from loaders.zoning.graph.ingest import ingest
from tests.folders import open_graph

TITLE = Path(__file__).parent.parent.parent / "fixtures" / "zoning" / "title_17_zoning.html"
TOWN = mint("municipality", "us-ut-quarry-bend").value


@pytest.fixture
def kg(tmp_path: Path) -> Any:
    with open_graph(tmp_path) as opened:
        load(opened, "zoning", [str(TITLE)], state="UT", index=False)
        yield opened


def send(kg: KnowledgeGraph, key: str, text: str, parent: str = "17.04") -> None:
    entry = {"section_id": key, "title": "Rule", "level": "section", "raw_content": text, "parent_id": parent}
    ingest(kg, tool="test", municipality="Quarry Bend", state="UT", kind="section", entries=[entry], sent_by="test")


def summarize(kg: KnowledgeGraph, key: str, text: str, model: str = "agent/test") -> None:
    tree = code_tree.read_tree(kg, TOWN)
    section = mint("section", "us-ut-quarry-bend", key).value
    graph = code_tree.to_summary_graph(section, model).value
    summary = code_tree.Summary(section, graph, text, tree.heights[section], "0" * 64, tree.inputs(section))
    build.commit_summaries(kg, tree, [summary], Run(Agent("test", "1"), {}, ()))


def said(tree: code_tree.CodeTree) -> object:
    return tree.sections, tree.order, tree.summaries, tree.heights, tree.states


@pytest.mark.long
def test_a_tree_that_is_kept_is_the_one_that_is_stored(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_tree.cached_tree(kg, TOWN)
    whole = code_tree.read_tree

    def refused(*_: object) -> Any:
        raise AssertionError("the whole tree is read again")

    def agree(*, again: bool = False) -> code_tree.CodeTree:
        monkeypatch.setattr(code_tree, "read_tree", whole if again else refused)
        kept = code_tree.cached_tree(kg, TOWN)
        monkeypatch.setattr(code_tree, "read_tree", whole)
        assert said(kept) == said(code_tree.read_tree(kg, TOWN))
        return kept

    note, place = NamedNode(f"{BASE}graph/user/note"), NamedNode(TOWN)
    kg.store.commit({note: [Quad(place, RDF.value, Literal("by the river"), note)]})
    assert agree() is before
    send(kg, "17.04.900", "No kiln burns at night.")
    assert len(agree().sections) == len(before.sections) + 1
    summarize(kg, "17.04.900", "Kilns rest at night.")
    assert len(agree().summaries) == 1
    summarize(kg, "17.04.900", "Kilns rest.", "agent/other")
    assert [each.text for each in agree().summaries.values()] == ["Kilns rest."]
    send(kg, "17.04.900", "No kiln burns by day.", "17.08")
    assert "stale" in agree().states.values()
    load(kg, "zoning", [str(TITLE.parent / "upper_feign.json")], index=False)
    agree()
    own = mint("section", "us-ut-quarry-bend", "x")
    kg.store.commit({note: [Quad(own, RDF.type, KG.CodeSection, note), Quad(own, KG.jurisdiction, place, note)]})
    assert own.value not in agree().sections  # a code has the sections of its source


def test_sections_of_one_place_are_in_the_order_of_their_numbers() -> None:
    numbers = ["13", "5", "100A", "5A", "14"]
    sections = [code_tree.Section(f"urn:{each}", "urn:g", each, "", 1, None, 0, None) for each in numbers]
    tree = code_tree.CodeTree(sections, ())
    assert [tree.sections[root].number for root in tree.roots] == ["5", "5A", "13", "14", "100A"]


def test_what_commits_have_changed_is_told_as_far_as_they_are_recorded(kg: KnowledgeGraph) -> None:
    first, note = kg.store.statistics().generation, NamedNode(f"{BASE}graph/user/note")
    for number in range(2):
        kg.store.commit({note: [Quad(note, RDF.value, Literal(number), note)]})
    assert find_changed_graphs(kg.store.query, first, first) == frozenset()
    assert find_changed_graphs(kg.store.query, first, first + 2) == {note.value}
    assert find_changed_graphs(kg.store.query, first, first + 3) is None
    assert find_changed_graphs(kg.store.query, first + 2, first) is None
    assert find_changed_graphs(kg.store.query, -1, 10_000) is None
