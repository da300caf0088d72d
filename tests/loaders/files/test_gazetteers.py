"""Gazetteers of collections: the names that files show often are known in all files of the collection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.protocol import select, term_text
from loaders.files.extraction.gazetteer import choose_names, count_names, find_collected
from loaders.files.extraction.plain_text import build_outline
from loaders.files.graph import entities
from loaders.files.graph.entities import find_pending, refresh
from loaders.files.readers.markdown import read_markdown
from loaders.sources import load
from tests.conftest import opened

SHOWING = ("# Alarms of the Kelp Sorter\n\nOff.", "# Oil\n\nAsk **Kelp Sorter**.", "## Kelp Sorter\n\nOn.")
USING = "# Rounds\n\n| night | work |\n| --- | --- |\n| one | Kelp Sorter is old |\n"
"""The recognizer does not read tables, so only the gazetteer has the name."""
OTHER = "# Boats\n\nthe boats lie at the wall.\n"

MENTIONS = """SELECT ?graph WHERE {
  GRAPH ?graph { ?mention kg:object ?entity ; kg:matchType "gazetteer" } FILTER(STRENDS(STR(?entity), "/kelpsorter"))
}"""


def counts(text: str) -> dict[str, int]:
    found = read_markdown(text)
    return dict(count_names(found.text, found.blocks, found.title))


def test_names_in_headings_bold_words_and_code_are_counted_with_their_parts() -> None:
    text = (
        "# Setup of the Kelp Sorter Hub\n\nIt has **Brine Pump** and **not**, `kelp_sorter` and `run it`.\n\n"
        "## Tides\n\nTides are told.\n\n```\n**No Name**\n```\n"
    )
    assert counts(text) == {
        "Kelp Sorter Hub": 1,
        "Kelp Sorter": 1,
        "Sorter Hub": 1,
        "Kelp": 1,
        "Sorter": 1,
        "Hub": 1,
        "Brine Pump": 1,
        "`kelp_sorter": 1,
        "Tides": 1,
    }
    assert counts("# Pumps\n\nThe pumps run.") == {}


def test_parts_of_one_longer_name_are_left_out_and_the_most_frequent_kept() -> None:
    found = {"Kelp Sorter": 4, "Kelp": 4, "Sorter": 6, "Brine Pump": 3, "Reed": 2}
    assert choose_names(found, 3, 10) == ["Brine Pump", "Kelp Sorter", "Sorter"]
    assert choose_names(found, 3, 2) == ["Kelp Sorter", "Sorter"]


def test_collected_names_are_found_in_running_text_as_they_are_spelled() -> None:
    outline = build_outline(
        "# Brine Pump\n\nThe Kelp Sorter is on. the brine pump is off. See a/b.py.", "text/markdown"
    )
    assert list(find_collected(outline, ["Kelp Sorter", "Brine Pump", "`a/b.py", "Reed"])) == [
        ("Kelp Sorter", False),
        ("a/b.py", True),
    ]


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with opened(tmp_path / "data") as graph:
        yield graph


def files_with_gazetteer(kg: KnowledgeGraph) -> set[str]:
    return {term_text(row["graph"]).rpartition("/")[2] for row in select(kg.store.query, MENTIONS)}


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


@pytest.mark.long
def test_files_with_a_name_that_enters_or_leaves_the_gazetteer_are_read_again(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    extract = entities.extract_in_steps
    monkeypatch.setattr(entities, "extract_in_steps", lambda *given: read.append(given[0]) or extract(*given))
    folder = write(tmp_path / "notes", using=USING, other=OTHER, a=SHOWING[0], b=SHOWING[1])
    load(kg, "files", [str(folder)])
    assert "using.md" not in files_with_gazetteer(kg)
    read.clear()
    write(folder, c=SHOWING[2])
    load(kg, "files", [str(folder)])
    assert "using.md" in files_with_gazetteer(kg)
    assert USING in read
    assert OTHER not in read
    write(tmp_path / "elsewhere", using=USING.replace("old", "new"))
    load(kg, "files", [str(tmp_path / "elsewhere")])
    rows = {term_text(row["graph"]) for row in select(kg.store.query, MENTIONS)}
    assert not any("/elsewhere/" in graph for graph in rows)
    read.clear()
    (folder / "a.md").unlink()
    load(kg, "files", [str(folder)], prune=True)
    assert "using.md" not in files_with_gazetteer(kg)
    assert OTHER not in read
    assert not find_pending(kg)
    assert refresh(kg).files == 0


@pytest.mark.long
def test_settings_change_the_gazetteer(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", using=USING, a=SHOWING[0], b=SHOWING[1], c=SHOWING[2])
    for top, least, is_found in ((2_000, 3, True), (0, 3, False), (2_000, 4, False), (2_000, 2, True)):
        settings = Settings(
            data_dir=tmp_path / "data",
            models_dir=tmp_path / "none",
            gazetteer_mine_topk=top,
            gazetteer_min_freq=least,
            _env_file=None,  # type: ignore[call-arg]
        )
        with KnowledgeGraph.open(tmp_path / "data", settings) as kg:
            load(kg, "files", [str(folder)])
            assert ("using.md" in files_with_gazetteer(kg)) is is_found
