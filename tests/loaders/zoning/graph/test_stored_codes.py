"""A cached code equals the stored one, and the cost of sending a section does not depend on the size of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import Rows
from loaders.sources import load
from loaders.zoning.extraction.citation_resolution import numbers_in
from loaders.zoning.graph.ingest import ingest
from loaders.zoning.graph.stored_codes import Code, Codes

NAME = "us-ut-marl"
TEXT = "Kilns are subject to section 3.2 and to sections 3.1 through 3.9. In the R-9 zone, height is 9 feet."


def send(kg: KnowledgeGraph, key: str, text: str = TEXT, **more: Any) -> dict[str, Any]:
    entry = {"section_id": key, "title": f"Rule {key}", "raw_content": text, **more}
    return ingest(kg, tool="test", municipality="Marl", state="UT", kind="section", entries=[entry], sent_by="test")


def loaded(kg: KnowledgeGraph, folder: Path, keys: list[str], **more: Any) -> None:
    sections = [{"section_id": key, "title": f"Rule {key}", "raw_content": TEXT} for key in keys]
    path = folder / "marl.json"
    path.write_text(json.dumps({"municipality": "Marl", "state": "UT", "sections": sections}), encoding="utf-8")
    load(kg, "zoning", [str(path)], **more)


def said(code: Code) -> object:
    sections = {
        key: (each.title, each.kind, each.level, each.parent, each.order, each.text, list(each.subsections))
        for key, each in code.sections.items()
    }
    return sections, code.named, code.words, set(code.index.below("3"))


def test_a_code_that_is_kept_is_the_one_that_is_stored(kg: KnowledgeGraph, tmp_path: Path) -> None:
    kept = Codes(kg.memory)

    def agree() -> Code:
        code = kept.load(kg.store, NAME)
        assert said(code) == said(Codes().load(kg.store, NAME))
        return code

    assert not agree().sections
    send(kg, "3.1", level=2, parent_id="3")
    assert set(agree().sections) == {"3.1"}
    send(kg, "3", "The zones are:\nR-9 Rural District\nQ-1 Quarry District", level=1)
    send(kg, "3.1", "No kiln burns at night.", level=2, parent_id="3")
    assert agree().named.keys() == {"3"}
    loaded(kg, tmp_path, ["3.2", "3.4"])
    assert set(agree().sections) == {"3", "3.1", "3.2", "3.4"}
    loaded(kg, tmp_path, ["3.4"], prune=True)
    send(kg, "3.5")
    assert set(agree().sections) == {"3", "3.1", "3.4", "3.5"}


def test_a_section_that_is_sent_costs_as_much_in_a_large_code_as_in_a_small_one(
    kg: KnowledgeGraph, open_graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for number, graph in ((3, kg), (300, open_graph("other"))):
        loaded(graph, tmp_path, [f"8.{each}" for each in range(number)])
        send(graph, "9.1")
        read: list[int] = []
        plain = graph.store.query

        def counted(query: str, *, limit: int | None = None, plain: Any = plain, read: list[int] = read) -> Any:
            result = plain(query, limit=limit)
            read.append(len(result) if isinstance(result, Rows) else 1)
            return result

        monkeypatch.setattr(graph.store, "query", counted)
        assert send(graph, "9.2", "Kilns are subject to section 8.1.")["entries"][0]["outcome"] == "stored"
        monkeypatch.setattr(graph.store, "query", plain)
        counts.append(sum(read))
    assert counts[0] == counts[1]


def test_what_is_sent_does_not_wait_for_texts_that_others_left_out_of_the_index(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    loaded(kg, tmp_path, ["8.1"], index=False)
    [sent] = send(kg, "9.1")["entries"]
    assert set(kg.search.state()) == {sent["graph"]}
    send(kg, "9.1", "")
    assert not kg.search.state()


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("sections 17.04.010 through 17.04.090", "17.04.090"),
        ("§§ 10-101–10-110.", "10-110"),
        ("10-101-10-110", "10-101"),
        ("Chapter II", "ii"),
        ("title 8, chapter 2A", "2a"),
    ],
)
def test_the_words_of_a_citation_have_the_numbers_of_what_it_cites(words: str, number: str) -> None:
    assert number in numbers_in(words)
