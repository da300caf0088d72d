"""An engine finds which outputs do not follow from their inputs, and which inputs are due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.engine import AfterCommit, Engine, Result
from kg.derivations.protocol import Definition
from kg.derivations.state import State
from kg.sparql.terms import bind
from kg.vocabulary import DERIVED, KG, PROV_GRAPH, SOURCED, mint
from loaders.mentions.graph import MENTIONS
from loaders.mentions.graph.refresh import Mentions, mention_graph, refresh
from tests.loaders.mentions.test_refresh import opened, put_concept, put_text

SIZES: Final = Definition("sizes", "how many quads each has", "after the commit", "1", (SOURCED,), f"{DERIVED}sizes/")
RULE: Final = "ASK { GRAPH $prov { $graph prov:wasGeneratedBy/prov:used ?rule . ?rule a kg:Rule ; rdfs:label ?label } }"


class Sizes(AfterCommit[None, None]):
    def compute(self, due: Mapping[NamedNode, None], table: None) -> Iterator[tuple[NamedNode, Result]]:
        for graph in due:
            size = Literal(len(self.store.graph(graph)))
            yield graph, Result([Quad(graph, KG.quadCount, size, SIZES.get_output(graph))])


def test_a_derived_graph_has_the_rule_of_its_definition(tmp_path: Path) -> None:
    kg = opened(tmp_path / "data")
    put_text(kg, "act", "Tides.")
    with State(tmp_path / "data") as state:
        Engine(kg, state, SIZES, Sizes(kg)).derive()
    graph = SIZES.get_output(mint("graph", "src", "climate", "act"))
    assert len(kg.store.graph(graph)) == 1
    assert kg.store.query(bind(RULE, prov=PROV_GRAPH, graph=graph))
    kg.store.close()


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
