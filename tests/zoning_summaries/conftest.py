"""A small made-up town over a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from tests.zoning_summaries.made_up_code import Law, open_town, small_code
from tests.zoning_summaries.stand_in import Said, StandIn


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., KnowledgeGraph]]:
    """Open a town with given sections and settings; all are closed in the end."""
    towns: list[KnowledgeGraph] = []

    def open_(laws: list[Law] | None = None, **settings: Any) -> KnowledgeGraph:
        towns.append(open_town(tmp_path / str(len(towns)), small_code() if laws is None else laws, **settings))
        return towns[-1]

    yield open_
    for town in towns:
        town.store.close()


@pytest.fixture
def town(opened: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    return opened()


@pytest.fixture
def stand_in() -> Iterator[Callable[..., StandIn]]:
    """Start a stand-in for a chat endpoint."""
    started: list[StandIn] = []

    def start(*script: Said, **options: Any) -> StandIn:
        started.append(StandIn(*script, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()
