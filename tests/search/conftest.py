"""A search index over a deterministic embedder, in a real process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kg.search.index_client import EdgeIndex
from kg.search.protocol import GraphUnits, IndexedUnit
from kg.settings import Settings


class WordIndex(EdgeIndex):
    """An EdgeIndex whose process embeds with `word_embedder`."""

    command = (sys.executable, str(Path(__file__).with_name("word_embedder.py")))


def graph_units(name: str, *texts: str, version: str = "1", prelude: str = "") -> dict[str, GraphUnits]:
    """The graph `urn:g:{name}` with one unit per text, all parts of `urn:d:{name}`."""
    graph = f"urn:g:{name}"
    units = [IndexedUnit(f"urn:d:{name}#p={i}", graph, f"urn:d:{name}", text, prelude) for i, text in enumerate(texts)]
    return {graph: GraphUnits(version, units)}


@pytest.fixture
def words(tmp_path: Path) -> Settings:
    return Settings(_env_file=None, model="words/32", models_dir=tmp_path / "models")


@pytest.fixture
def open_index(tmp_path: Path, words: Settings) -> Iterator[Callable[..., WordIndex]]:
    """Open the index in one folder, again and again if need be; all are closed in the end."""
    opened: list[WordIndex] = []

    def open_(settings: Settings = words) -> WordIndex:
        opened.append(WordIndex(tmp_path / "index", settings))
        return opened[-1]

    yield open_
    for index in opened:
        index.close()


@pytest.fixture
def index(open_index: Callable[..., WordIndex]) -> WordIndex:
    return open_index()
