"""The made-up graph for tests of the tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import mint
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


@pytest.fixture
def pair(corpus: list[list[Made]]) -> KnowledgeGraph:
    """A graph that holds one document, in the original and in a translation, of one passage each."""
    original = replace(
        corpus[0][0],
        slug="two-faced",
        document=mint("document", "two-faced").value,
        iri=mint("passage", "two-faced", "0").value,
        languages=("fr",),
        language=None,
        text="en français",
    )
    translation = replace(
        original,
        document=mint("document", "two-faced", lang="en").value,
        iri=mint("passage", "two-faced", "0", lang="en").value,
        languages=("en",),
        text="in English",
    )
    return open_graph([[original], [translation]])
