from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.remote.live_store import LiveStore, serving


@pytest.fixture
def live() -> Iterator[LiveStore]:
    yield from serving()
