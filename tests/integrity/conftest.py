"""Backups without the search index."""

from __future__ import annotations

import pytest

from kg.errors import IndexUnavailableError
from kg.search.index_client import EdgeIndex


@pytest.fixture
def without_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is large: `tests/adversarial/test_damage.py` backs it up."""

    def refuse(*_: object) -> None:
        raise IndexUnavailableError("not in this test")

    monkeypatch.setattr(EdgeIndex, "copy", refuse)
