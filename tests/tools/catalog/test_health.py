"""The health is reported without a query."""

from __future__ import annotations

from kg.tools.catalog.health import health


def test_health_answers_without_a_query_and_names_what_is_wrong(kg):
    assert health(kg).status == "ok"
    kg.search.embedder_error = "the model is absent; run `kg models pull`"
    state = health(kg)
    assert state.status == "degraded"
    assert "kg models pull" in state.problems[0]
    assert (state.generation, state.pending_vectors) == (1, 3)
    assert kg.pool.asked == []
