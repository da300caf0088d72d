"""What OWL 2 RL entails of the ontology together with data contradicts nothing: no class is empty that has a member."""

from __future__ import annotations

from collections.abc import Iterable

import owlrl
import pytest
from pyoxigraph import Quad, Triple, parse

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.shacl.pyshacl_engine import to_rdflib
from kg.vocabulary import KG, OWL, RDF, RDFS, mint
from tests.examples import spread

pytestmark = pytest.mark.long

ONTOLOGY = [quad for path in sorted(bundle.folder("ontology").glob("*.ttl")) for quad in parse(path=path)]
DOCUMENT, PLACE = mint("document", "tide-act"), mint("place", "NMK")


def contradictions(triples: Iterable[Quad | Triple]) -> list[str]:
    """What the rules of OWL 2 RL (section 4.3, those that entail false) find in `triples` and the ontology."""
    closure = owlrl.OWLRL_Semantics(to_rdflib([*ONTOLOGY, *triples]), axioms=False, daxioms=False)
    closure.closure()
    return [str(message) for message in closure.error_messages]


def test_the_ontology_and_the_fixtures_of_the_shapes_contradict_nothing() -> None:
    """Together, for what some of it entails all of it does; only where they do, each is looked at by itself."""
    passing = {
        path.stem: list(parse(path=path)) for path in (bundle.folder("fixtures") / "shapes" / "passing").glob("*.ttl")
    }
    assert len(passing) > 10
    if found := contradictions(quad for quads in passing.values() for quad in quads):
        pytest.fail(
            f"{found}; of the ontology: {contradictions([])}, of "
            f"{ {name: each for name, quads in passing.items() if (each := contradictions(quads))} }"
        )


@pytest.mark.exhaustive
def test_the_fixtures_of_climate_contradict_nothing(fixtures: KnowledgeGraph) -> None:
    data = [quad for graph in fixtures.store.graphs() for quad in fixtures.store.graph(graph)]
    assert contradictions(data) == []


@pytest.mark.parametrize(
    ("planted", "found"),
    spread([
        ([Triple(DOCUMENT, RDF.type, KG.PolicyDocument), Triple(DOCUMENT, RDF.type, KG.Passage)], "Disjoint classes"),
        ([Triple(PLACE, RDF.type, KG.Place), Triple(PLACE, OWL.sameAs, DOCUMENT),
          Triple(DOCUMENT, RDF.type, KG.Document)], "Disjoint classes"),
        ([Triple(KG.Tide, RDFS.subClassOf, OWL.Nothing), Triple(DOCUMENT, RDF.type, KG.Tide)], "Nothing"),
        ([Triple(DOCUMENT, OWL.sameAs, PLACE), Triple(DOCUMENT, OWL.differentFrom, PLACE)], "sameAs"),
    ], 2),
)  # fmt: skip
def test_a_planted_contradiction_is_found(planted: list[Triple], found: str) -> None:
    assert any(found in message for message in contradictions(planted))
