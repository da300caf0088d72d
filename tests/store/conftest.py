"""A store in a folder of its own, quads to put into it, and what it contains and writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyoxigraph
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Rows
from kg.vocabulary import DCTERMS, mint


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OxigraphStore]:
    with OxigraphStore(tmp_path / "data") as opened:
        yield opened


def titles(name: str, *values: str | int | Literal | NamedNode) -> tuple[NamedNode, list[Quad]]:
    """A graph ``graph/src/test/{name}`` in which one document has these titles."""
    graph = mint("graph", "src", "test", name)
    document = mint("document", name)
    terms = [value if isinstance(value, (Literal, NamedNode)) else Literal(value) for value in values]
    return graph, [Quad(document, DCTERMS.title, term, graph) for term in terms]


def recount(store: OxigraphStore) -> tuple[int, int]:
    found = store.query("SELECT (COUNT(*) AS ?q) (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
    assert isinstance(found, Rows)
    [[quads, graphs]] = [[int(term.value) for term in row if isinstance(term, Literal)] for row in found.rows]
    return quads, graphs


def counters(store: OxigraphStore) -> tuple[int, int]:
    statistics = store.statistics()
    return statistics.quads, statistics.graphs


def values(store: OxigraphStore, name: str) -> set[str]:
    return {quad.object.value for quad in store.graph(titles(name)[0]) if isinstance(quad.object, Literal)}


class Statements:
    """Stands before the engine and keeps the update strings that reach it."""

    def __init__(self, engine: pyoxigraph.Store) -> None:
        self._engine = engine
        self.updates: list[str] = []

    def update(self, text: str) -> None:
        self.updates.append(text)
        self._engine.update(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def __contains__(self, quad: Quad) -> bool:
        return quad in self._engine


@pytest.fixture
def written(store: OxigraphStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    spy = Statements(store._opened())
    monkeypatch.setattr(store, "_store", spy)
    return spy.updates
