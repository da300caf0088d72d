"""An engine finds which outputs do not follow from their inputs, and which inputs are due."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kg.derivations.engine import Engine
from kg.derivations.state import State
from kg.vocabulary import mint
from loaders.mentions.graph import MENTIONS
from loaders.mentions.graph.refresh import Mentions, mention_graph, refresh
from tests.loaders.mentions.test_refresh import opened, put_concept, put_text


def test_outputs_that_do_not_follow_from_their_inputs_are_found(tmp_path: Path) -> None:
    kg = opened(tmp_path / "data")
    put_text(kg, "act", "Tides.")
    put_text(kg, "law", "Tides.")
    put_concept(kg, "Q1", "tide")
    refresh(kg)
    graph = mention_graph(mint("graph", "src", "climate", "act"))
    with State(tmp_path / "data") as state:
        engine: Engine[Any, Any] = Engine(kg, state, MENTIONS, Mentions(kg))
        assert engine.find_differing(20) == []
        kg.store.commit({graph: kg.store.graph(graph)[1:]})
        assert engine.find_differing(20) == [graph]
        assert engine.count_due() == {}
        put_text(kg, "plan", "Tides.")
        assert engine.count_due() == {"new": 1}
    kg.store.close()
