"""Files that an agent has loaded: of allowed folders only, as `kg load files` loads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyoxigraph import Literal

from kg import allowed_files
from kg.allowed_files import matches
from kg.errors import ForbiddenError, InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import select, term_text
from kg.tools.documents.ingest import extract_and_link, ingest_docs
from kg.vocabulary import DCTERMS, mint
from loaders.files.graph.entities import EntityReport
from loaders.sources import load


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder that is allowed, with notes, and a folder next to it that is not."""
    folder = tmp_path / "shelf"
    for name, text in {
        "shelf/one.md": "# One\n\nThe first note is about ropes.\n",
        "shelf/deep/two.md": "# Two\n\nThe second note is about sails.\n",
        "shelf/deep/three.txt": "The third note is about anchors.\n",
        "shelf/picture.png": "no text",
        "shelf/.hidden/four.md": "# Four\n",
        "outside/secret.md": "# Secret\n\nNobody may read this.\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return folder


@pytest.fixture
def kg(receiving: KnowledgeGraph, shelf: Path) -> KnowledgeGraph:
    receiving.settings = receiving.settings.model_copy(update={"ingest_folders": (shelf,)})
    receiving.confined = lambda graph, name, *given, **options: {"load": load}[name](
        graph, *given, index=False, **options
    )
    return receiving


def paths(kg: KnowledgeGraph) -> set[str]:
    query = "SELECT ?c ?path WHERE { ?file kg:collection ?c ; kg:path ?path }"
    return {f"{term_text(row['c'])}/{term_text(row['path'])}" for row in select(kg.store.query, query)}


def ingest(kg: KnowledgeGraph, *wanted: str | Path, **options: object) -> tuple[int, int, int]:
    done = ingest_docs(kg, [str(each) for each in wanted], **options)  # type: ignore[arg-type]
    return done.ingested, done.skipped, len(done.errors)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("**/*.md", {"shelf/one.md", "shelf/deep/two.md"}),
        ("*.md", {"shelf/one.md"}),
        ("deep", {"shelf/deep/two.md", "shelf/deep/three.txt"}),
        ("deep/t*", {"shelf/deep/two.md", "shelf/deep/three.txt"}),
        ("one.md", {"shelf/one.md"}),
        (".", {"shelf/one.md", "shelf/deep/two.md", "shelf/deep/three.txt"}),
    ],
)
def test_files_folders_and_patterns_are_loaded(kg: KnowledgeGraph, wanted: str, expected: set[str]) -> None:
    assert ingest(kg, wanted) == (len(expected), 0, 0)
    assert paths(kg) == expected


def test_records_are_those_of_a_load_of_the_folder(kg: KnowledgeGraph, shelf: Path) -> None:
    assert ingest(kg, shelf / "deep" / "two.md", "deep/three.txt") == (2, 0, 0)
    report = load(kg, "files", [str(shelf)], index=False)
    assert (report.loaded, report.skipped) == (1, 2)


def test_unchanged_files_are_skipped_and_changed_ones_stored(kg: KnowledgeGraph, shelf: Path) -> None:
    assert ingest(kg, "**/*.md") == (2, 0, 0)
    assert ingest(kg, "**/*.md") == (0, 2, 0)
    (shelf / "one.md").write_text("# One\n\nThe first note is about knots.\n")
    assert ingest(kg, "**/*.md", skip_if_seen=False) == (1, 1, 0)


def test_tags_are_stored_with_the_files(kg: KnowledgeGraph) -> None:
    assert ingest(kg, "one.md", tags=["ropes", "boats"]) == (1, 0, 0)
    graph = mint("graph", "src", "files", "shelf", "one.md")
    tags = {quad.object for quad in kg.store.graph(graph) if quad.predicate == DCTERMS.subject}
    assert tags == {Literal("ropes"), Literal("boats")}
    with pytest.raises(InvalidInputError, match="tags"):
        ingest(kg, "one.md", tags=["a,b"])


@pytest.mark.parametrize(
    "wanted",
    ["../outside/secret.md", "deep/../../outside/secret.md", "../outside", "../outside/*.md", "deep/../**/*.md"],
)
def test_paths_out_of_the_folders_are_refused(kg: KnowledgeGraph, wanted: str) -> None:
    with pytest.raises(ForbiddenError):
        ingest(kg, wanted)
    assert paths(kg) == set()


def test_absolute_paths_out_of_the_folders_are_refused(kg: KnowledgeGraph, shelf: Path) -> None:
    for wanted in (shelf.parent / "outside" / "secret.md", shelf.parent / "outside" / "nosuch.md", "/etc/*", "/"):
        with pytest.raises(ForbiddenError):
            ingest(kg, wanted)


def test_link_in_a_circle_hides_no_other_file(kg: KnowledgeGraph, shelf: Path) -> None:
    os.symlink("circle.md", shelf / "circle.md")
    (shelf / "zebra.md").write_text("# Zebra\n\nA zebra that is after it.")
    done = ingest_docs(kg, ["*.md"])
    assert [error for error in done.errors if "circle.md" in error]
    assert str(shelf) not in str(done.errors)
    assert ingest_docs(kg, ["zebra.md"]).skipped == 1


def test_links_out_of_the_folders_are_not_followed(kg: KnowledgeGraph, shelf: Path) -> None:
    outside = shelf.parent / "outside"
    os.symlink(outside / "secret.md", shelf / "link.md")
    os.symlink(outside, shelf / "linked")
    os.symlink(shelf, shelf / "loop")
    for wanted in ("link.md", "linked/secret.md", "linked", "linked/*.md"):
        with pytest.raises(ForbiddenError):
            ingest(kg, wanted)
    assert ingest(kg, "**/*.md") == (2, 0, 1)
    assert paths(kg) == {"shelf/one.md", "shelf/deep/two.md"}


def test_paths_that_cannot_be_read_are_errors_without_the_folder(kg: KnowledgeGraph, shelf: Path) -> None:
    (shelf / "empty.md").write_text("")
    done = ingest_docs(kg, ["one.md", "empty.md", "nosuch.md", "picture.png", "*.pdf", "../outside/secret.md"])
    assert (done.ingested, len(done.errors)) == (1, 5)
    assert not any(str(shelf.parent) in error for error in done.errors)


def test_excluded_files_are_left_out(kg: KnowledgeGraph, shelf: Path) -> None:
    (shelf / ".gitignore").write_text("deep/\n")
    done = ingest_docs(kg, ["**/*.md"])
    assert (done.ingested, done.errors, len(done.notes)) == (1, [], 1)


def test_a_server_without_folders_loads_nothing(kg: KnowledgeGraph) -> None:
    kg.settings = kg.settings.model_copy(update={"ingest_folders": ()})
    with pytest.raises(ForbiddenError, match="QUADCITE_INGEST_FOLDERS"):
        ingest(kg, "one.md")


def test_a_search_of_folders_is_bounded(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed_files, "VISITED", 3)
    assert ingest(kg, "**/*.md")[2] == 1


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a/b/c.md", "**/*.md", True),
        ("c.md", "**/*.md", True),
        ("a/c.md", "*.md", False),
        ("a/b/c.md", "a/**", True),
        ("a/b/c.md", "**/b/**/c.md", True),
        ("a/b/c.md", "a/*/c.*", True),
        ("a/c.md", "a/*/c.*", False),
        ("a/b.md", "[ab]/?.md", True),
        ("/".join("a" * 40), "/".join(["**", "a"] * 15) + "/b", False),
    ],
)
def test_patterns_match_as_those_of_a_shell(path: str, pattern: str, expected: bool) -> None:
    assert matches(path.split("/"), pattern.split("/")) is expected


def test_extraction_reads_files_that_are_known(kg: KnowledgeGraph) -> None:
    ingest(kg, "one.md")
    asked: list[object] = []

    def find(graph: KnowledgeGraph, files: object, **_: object) -> EntityReport:
        asked.append(files)
        return EntityReport(files=1, mentions=4, entities_new=2, relations=1)

    kg.confined = lambda graph, name, files, **options: {"find_entities": find}[name](graph, files, **options)
    file = mint("file", "shelf", "one.md")
    done = extract_and_link(kg, [file.value, f"{file.value}#char=0,5"])
    assert (done.mentions, done.entities_new, done.relations) == (4, 2, 1)
    extract_and_link(kg)
    assert asked == [[file], None]
    with pytest.raises(NotFoundError, match="doc_ids"):
        extract_and_link(kg, [mint("file", "shelf", "nosuch.md").value])
