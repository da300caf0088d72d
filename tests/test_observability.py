"""Counters, steps and spans of calls."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan

from kg.errors import NotFoundError
from kg.observability import REGISTRY, observe_call, observe_connector, observe_step, outcome_of


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_call_is_counted_by_its_outcome_and_its_steps_are_listed():
    before = value("quadcite_tool_calls_total", tool="t1", transport="mcp", outcome="not_found")
    steps: list[str] = []

    def call() -> None:
        nonlocal steps
        name = "wikidata.get_claims"
        with observe_call("t1", "mcp") as steps, observe_step(name), observe_connector("wikidata", name):
            raise NotFoundError("x")

    with pytest.raises(NotFoundError):
        call()
    assert steps == ["wikidata.get_claims", "wikidata:wikidata.get_claims"]
    assert value("quadcite_tool_calls_total", tool="t1", transport="mcp", outcome="not_found") == before + 1
    assert value("quadcite_tool_call_seconds_count", tool="t1") >= 1


def test_tools_of_wikidata_are_counted_alone_and_as_steps():
    before = value("wikidata_tool_calls_total", tool="vector_search_items")
    with observe_call("wikidata.vector_search_items", "http"):
        pass
    with observe_call("verify", "http"), observe_step("wikidata.vector_search_items"):
        pass
    assert value("wikidata_tool_calls_total", tool="vector_search_items") == before + 2


def test_a_remote_call_that_fails_is_counted_with_its_code():
    before = value("quadcite_connector_calls_total", connector="c", tool="t", outcome="internal")
    with pytest.raises(ZeroDivisionError), observe_connector("c", "t"):
        1 / 0  # noqa: B018
    assert value("quadcite_connector_calls_total", connector="c", tool="t", outcome="internal") == before + 1


def test_steps_belong_to_their_call_and_outside_of_calls_there_are_none():
    with observe_step("alone"):
        pass
    with observe_call("outer", "mcp") as outer:
        with observe_call("inner", "mcp") as inner, observe_step("a"):
            pass
        with observe_step("b"):
            pass
    assert (outer, inner) == (["b"], ["a"])


def test_the_steps_of_a_call_are_bounded():
    with observe_call("many", "mcp") as steps:
        for _ in range(1_000):
            with observe_step("a"):
                pass
    assert len(steps) == 100


class Recorder(NonRecordingSpan):
    def __init__(self) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.attributes: dict[str, object] = {}

    def set_attribute(self, key: str, value: object) -> None:
        self.attributes[key] = value


def test_a_span_names_an_error_by_its_code_and_not_by_its_message(monkeypatch):
    made: list[Recorder] = []

    class Tracer(trace.NoOpTracer):
        def start_as_current_span(self, name, **given):  # type: ignore[no-untyped-def]
            made.append(Recorder())
            return trace.use_span(made[-1], record_exception=False, set_status_on_exception=False)

    monkeypatch.setattr(trace, "get_tracer", lambda name: Tracer())
    with pytest.raises(NotFoundError), observe_step("a"):
        raise NotFoundError("a secret")
    assert made[0].attributes == {"error.type": "not_found"}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "ok"),
        (NotFoundError("x"), "not_found"),
        (ValueError("x"), "internal"),
        (KeyboardInterrupt(), "cancelled"),
    ],
)
def test_outcomes(error, outcome):
    assert outcome_of(error) == outcome
