"""A graph with the fictional entities of Wikidata that ship with kg."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kg.knowledge_graph import KnowledgeGraph
from tests.conftest import load_once, opened


@pytest.fixture(scope="session")
def wikidata(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fictional entities of Wikidata, loaded; there is no embedding model."""
    with opened(load_once(tmp_path_factory, "wikidata")) as graph:
        yield graph
