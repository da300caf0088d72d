"""A real graph, small and made up, behind the real application: store, workers and routes, and an index by words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.queries.pool import QueryPool
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch
from kg.vocabulary import PROV_GRAPH
from tests.tools.made_up import Made, WordIndex, concept_quads, make_passages, quads_of


@pytest.fixture(scope="session")
def corpus() -> list[list[Made]]:
    return make_passages(documents=12)


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory, corpus: list[list[Made]]) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("served")
    settings = Settings(data_dir=folder, query_workers=2, query_timeout_s=100, _env_file=None)  # type: ignore[call-arg]
    store = OxigraphStore(folder)
    graphs: dict[Any, list[Any]] = {}
    origins: list[Quad] = []
    row = 0
    index = WordIndex()
    for made in corpus:
        for quad in quads_of(made, row):
            if quad.graph_name == PROV_GRAPH:
                origins.append(quad)
            else:
                graphs.setdefault(quad.graph_name, []).append(quad)
        row += len(made)
        index.units.update({passage.iri: (passage.document, passage.text) for passage in made})
    for quad in concept_quads(corpus):
        graphs.setdefault(quad.graph_name, []).append(quad)
    store.commit(graphs, lambda changes: Patch(add=frozenset(origins)))
    with KnowledgeGraph(settings, store, index, QueryPool(store, settings)) as graph:
        yield graph
