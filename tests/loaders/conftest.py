"""Knowledge graphs: one whose index is a dictionary, so that loads are tested without processes, and a whole one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest
from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from kg.errors import IndexUnavailableError
from kg.knowledge_graph import KnowledgeGraph
from kg.search.protocol import GraphUnits, IndexedUnit, IndexStatus, Ranking
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import PROV_GRAPH
from tests import folders
from tests.conftest import load_once


class MemoryIndex:
    """The part of SearchIndex that loading uses."""

    def __init__(self) -> None:
        self.graphs: dict[str, GraphUnits] = {}
        self.replaced: list[str] = []
        self.missing: list[int] = []

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        self.graphs.update(graphs)
        self.replaced.extend(graphs)

    def remove(self, graphs: Iterable[str]) -> None:
        for graph in graphs:
            self.graphs.pop(graph, None)

    def note_missing(self, graphs: int) -> None:
        self.missing.append(graphs)

    def state(self) -> dict[str, str]:
        return {graph: units.content_sha256 for graph, units in self.graphs.items()}

    def embed(self, texts: Iterable[str]) -> None:
        """There is no embedding model."""

    def rank(self, query: str, **options: object) -> Ranking:
        raise IndexUnavailableError("The index of this test ranks nothing.")

    def count_units(self) -> int:
        return self.status().units

    def status(self) -> IndexStatus:
        count = sum(len(graph.units) for graph in self.graphs.values())
        return IndexStatus(count, count, len(self.graphs), "none")

    def units(self) -> list[IndexedUnit]:
        return sorted((unit for graph in self.graphs.values() for unit in graph.units), key=lambda unit: unit.iri)


@pytest.fixture
def open_graph(tmp_path: Path) -> Iterator[Callable[..., KnowledgeGraph]]:
    """Open a data directory with an index in memory; closed at the end of the test."""
    with ExitStack() as stack:

        def opened(name: str = "data") -> KnowledgeGraph:
            data_dir = tmp_path / name
            store = stack.enter_context(OxigraphStore(data_dir))
            settings = Settings(_env_file=None, data_dir=data_dir)  # type: ignore[call-arg]
            return KnowledgeGraph(settings, store, cast(Any, MemoryIndex()), cast(Any, None))

        yield opened


@pytest.fixture
def kg(open_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    return open_graph()


@pytest.fixture
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """A graph with the processes of its index and queries, for tests that search or query what was loaded."""
    folder = load_once(tmp_path_factory, "empty")
    with folders.open_graph(folder) as opened:
        yield opened


def content(store: OxigraphStore) -> set[Quad]:
    """All quads but those that say when and by whom they were loaded."""
    output = BytesIO()
    store.dump(output, RdfFormat.N_QUADS)
    return {quad for quad in parse(output.getvalue(), RdfFormat.N_QUADS) if quad.graph_name != PROV_GRAPH}


def values(store: OxigraphStore, subject: NamedNode, predicate: NamedNode) -> set[str]:
    """The objects of a subject and predicate in any graph but provenance, as text."""
    return {q.object.value for q in content(store) if q.subject == subject and q.predicate == predicate}
