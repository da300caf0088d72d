"""A store in a folder of its own, and quads to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.store.oxigraph import OxigraphStore
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
