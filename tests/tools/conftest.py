"""The made-up graph for tests of the tools."""

from __future__ import annotations

import pytest

from kg.knowledge_graph import KnowledgeGraph
from tests.tools.made_up import Made, Passages, make_passages, open_graph


@pytest.fixture(scope="session")
def corpus() -> list[list[Made]]:
    return make_passages()


@pytest.fixture
def made(corpus: list[list[Made]]) -> Passages:
    return Passages(passage for document in corpus for passage in document)


@pytest.fixture
def kg(corpus: list[list[Made]]) -> KnowledgeGraph:
    return open_graph(corpus)
