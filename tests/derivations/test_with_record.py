"""Derivations with the record: their versions, computation from the stored graphs, and the same end in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode

from kg import bundle
from kg.derivations import with_record
from kg.derivations.protocol import Definition, Outcome
from kg.errors import StoreError
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import select
from kg.vocabulary import PROV_GRAPH
from loaders.derivations import call_each
from loaders.languages.graph import text_languages
from loaders.sources import load
from loaders.with_record import DEFINITIONS, LANGUAGES, LISTS, PARLIAMENT, VIEWS, ZONING
from tests.folders import open_graph

FIXTURES = bundle.folder("fixtures")
SOURCES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("wikibase", "wikibase", {"base": "climate"}),
    ("wikibase", "wikibase", {"base": "https://ferrowick.example/"}),
    ("parliament", "hansard", {}),
    ("parliament", "parlamint", {}),
    ("members", "members", {}),
    ("zoning", "zoning", {}),
    ("climate", "climate", {}),
    ("files", "files/handbook", {}),
)
GRAPHS = "SELECT DISTINCT ?graph WHERE { GRAPH ?graph { ?subject ?property ?value } }"
CODE = """<h1>1 General</h1><h2>1.1 Purpose</h2><p>The council shall hold a public hearing before it grants a
permit for a building that is higher than the roofs of the houses around it, and gives notice to the owners.</p>"""


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "data") as opened:
        yield opened


def dump(kg: KnowledgeGraph) -> dict[str, frozenset[str]]:
    """All quads by graph, except provenance."""
    graphs = [row["graph"] for row in select(kg.store.query, GRAPHS)]
    return {
        graph.value: frozenset(map(str, kg.store.graph(graph)))
        for graph in graphs
        if isinstance(graph, NamedNode) and graph != PROV_GRAPH and not graph.value.endswith("/catalog")
    }


def due(kg: KnowledgeGraph, definition: Definition) -> Counter[str]:
    return call_each(kg, "count_due")[definition.name]


def empty_derived(kg: KnowledgeGraph, definition: Definition) -> None:
    """Remove the outputs of a derivation, as if an earlier version had written none."""
    kg.store.commit({NamedNode(graph): () for graph in dump(kg) if graph.startswith(definition.writes)}, None)


@pytest.mark.long
def test_what_was_computed_from_memory_is_computed_from_the_store_in_any_batches(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source, path, options in SOURCES:
        load(kg, source, [str(FIXTURES / path)], index=False, **options)
    assert not any(call_each(kg, "count_due")[each.name] for each in DEFINITIONS)
    expected, generation = dump(kg), kg.store.statistics().generation
    for most in (5, 50, 10_000):
        differing = call_each(kg, "find_differing", most=most)
        assert not any(differing[each.name] for each in DEFINITIONS)
    monkeypatch.setattr(with_record, "BATCH_QUADS", 500)
    for each in (LANGUAGES, VIEWS, PARLIAMENT, ZONING):
        assert call_each(kg, "derive", each.name, full=True)[each.name].graphs
        assert kg.store.statistics().generation == generation, "nothing changed, so nothing was committed"
    for each in (LANGUAGES, VIEWS, ZONING):
        empty_derived(kg, each)
        assert call_each(kg, "find_differing", most=10_000)[each.name]
        call_each(kg, "derive", each.name, full=True)
    assert dump(kg) == expected


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "code.html").write_text(CODE)
    return folder


def load_code(kg: KnowledgeGraph, folder: Path) -> None:
    load(kg, "zoning", [str(folder)], municipality="Ferrowick", state="UT", index=False)


def test_inputs_are_due_after_a_new_version_and_are_computed_by_the_next_load(
    kg: KnowledgeGraph, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_code(kg, code)
    expected = dump(kg)
    monkeypatch.setattr(LANGUAGES, "version", "next")
    monkeypatch.setattr(text_languages, "find_language", lambda place: "fr")
    sections = due(kg, LANGUAGES)["new version"]
    assert sections >= 2
    assert not due(kg, ZONING)
    load_code(kg, code)
    assert not due(kg, LANGUAGES)
    changed = dump(kg)
    assert [graph for graph in expected if changed[graph] != expected[graph]] == [
        graph for graph in expected if "/der/language/" in graph
    ]
    assert call_each(kg, "derive", "languages")["languages"].graphs == 0


def test_a_record_that_is_committed_meanwhile_is_no_longer_due(
    kg: KnowledgeGraph, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_code(kg, code)
    monkeypatch.setattr(ZONING, "version", "next")
    computed: list[int] = []
    derive_due = with_record.Steps.derive_due

    def count(steps: with_record.Steps, commit: Any, outcome: Outcome, *given: Any) -> None:
        derive_due(steps, commit, outcome, *given)
        computed.append(outcome.graphs)

    monkeypatch.setattr(with_record.Steps, "derive_due", count)
    (code / "code.html").write_text(CODE.replace("public hearing", "hearing"))
    before = due(kg, ZONING)["new version"]
    load_code(kg, code)
    assert computed == [before - 1]
    assert not due(kg, ZONING)


def test_a_killed_computation_is_continued(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    load(kg, "zoning", [str(FIXTURES / "zoning")], index=False)
    expected = dump(kg)
    empty_derived(kg, ZONING)
    monkeypatch.setattr(ZONING, "version", "next")
    monkeypatch.setattr(with_record, "BATCH_QUADS", 200)
    commits = iter(range(100))
    commit = type(kg.store).commit

    def commit_or_stop(*given: object) -> object:
        if next(commits) == 3:
            raise StoreError("killed")
        return commit(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(type(kg.store), "commit", commit_or_stop)
        with pytest.raises(StoreError):
            call_each(kg, "derive", "zoning")
    left = due(kg, ZONING).total()
    assert 0 < left < len([graph for graph in expected if "/src/zoning/" in graph])
    assert call_each(kg, "derive", "zoning")["zoning"].graphs == left
    assert dump(kg) == expected


def test_what_only_the_source_has_is_read_again(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    load(kg, "parliament", [str(FIXTURES / "parlamint")], index=False)
    expected = dump(kg)
    call_each(kg, "derive", "lists", full=True)
    assert not due(kg, LISTS)
    monkeypatch.setattr(LISTS, "version", "next")
    assert set(due(kg, LISTS)) == {with_record.LOAD_AGAIN}
    assert call_each(kg, "derive", "lists")["lists"].graphs == 0
    load(kg, "parliament", [str(FIXTURES / "parlamint")], index=False)
    assert not due(kg, LISTS)
    assert dump(kg) == expected
