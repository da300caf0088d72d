"""Reviews need the token: the tests here are run as its holder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.knowledge_graph import SENDER


@pytest.fixture(autouse=True)
def holder() -> Iterator[None]:
    sender = SENDER.set(Actor("local", frozenset({WRITE, CURATE, ADMIN})))
    yield
    SENDER.reset(sender)
