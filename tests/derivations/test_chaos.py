"""Commands that are killed at random moments end in the derived graphs of a fresh load."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg import bundle
from tests.derivations.chaos import Chaos

SOURCES = {"climate": "climate", "wikibase": "wikibase/concepts.json", "files": "files/handbook"}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_commands_that_are_killed_end_in_the_graphs_of_a_fresh_load(tmp_path: Path) -> None:
    fixtures = bundle.folder("fixtures")
    assert Chaos(tmp_path, [f"{source}:{fixtures / path}" for source, path in SOURCES.items()]).run(6, seed=5) == []
