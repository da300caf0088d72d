"""Workers live within the limits that the settings allow, at the least of them too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg.errors import QueryMemoryError
from kg.queries.pool import QueryPool
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Rows
from tests.adversarial.corpus import CROSS, GRAPH, NODES, ring


def test_the_least_memory_that_the_setting_takes_is_enough_for_a_worker(tmp_path: Path) -> None:
    """A store is opened by dozens of threads, whose stacks count as memory."""
    least = next(limit.ge for limit in Settings.model_fields["query_memory_mb"].metadata if hasattr(limit, "ge"))
    with OxigraphStore(tmp_path / "data") as store:
        store.commit({GRAPH: list(ring())})
        with QueryPool(store, Settings(query_memory_mb=least, query_timeout_s=20)) as pool:
            assert pool.run("ASK { ?s ?p ?o }", at_least=1).result is True
            rows = pool.run("SELECT ?s ?o { ?s ?p ?o } ORDER BY ?o", at_least=1).result
            assert isinstance(rows, Rows)
            assert len(rows) >= 5 * NODES
            with pytest.raises(QueryMemoryError, match=f"{least} MiB"):
                pool.run(f"SELECT * {{ {CROSS} }} ORDER BY ?a ?b", at_least=1)
