"""What OWL 2 RL entails of the ontology together with data contradicts nothing: no class is empty that has a member."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import owlrl
import pytest
from pyoxigraph import Quad, Triple, parse

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.validation.reference import rdflib_graph
from kg.vocabulary import KG, OWL, RDF, RDFS, mint

ONTOLOGY = [quad for path in sorted(bundle.folder("ontology").glob("*.ttl")) for quad in parse(path=path)]
DOCUMENT, PLACE = mint("document", "tide-act"), mint("place", "NMK")


def contradictions(triples: Iterable[Quad | Triple]) -> list[str]:
    """What the rules of OWL 2 RL (section 4.3, those that entail false) find in `triples` and the ontology."""
    closure = owlrl.OWLRL_Semantics(rdflib_graph([*ONTOLOGY, *triples]), axioms=False, daxioms=False)
    closure.closure()
    return [str(message) for message in closure.error_messages]


def test_the_ontology_contradicts_nothing() -> None:
    assert contradictions([]) == []


@pytest.mark.parametrize(
    "path", sorted((bundle.folder("fixtures") / "shapes" / "passing").glob("*.ttl")), ids=lambda path: path.stem
)
def test_a_fixture_of_the_shapes_contradicts_nothing(path: Path) -> None:
    assert contradictions(parse(path=path)) == []


def test_the_fixtures_of_climate_contradict_nothing(fixtures: KnowledgeGraph) -> None:
    data = [quad for graph in fixtures.store.graphs() for quad in fixtures.store.graph(graph)]
    assert contradictions(data) == []


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ([Triple(DOCUMENT, RDF.type, KG.PolicyDocument), Triple(DOCUMENT, RDF.type, KG.Passage)], "Disjoint classes"),
        ([Triple(PLACE, RDF.type, KG.Place), Triple(PLACE, OWL.sameAs, DOCUMENT),
          Triple(DOCUMENT, RDF.type, KG.Document)], "Disjoint classes"),
        ([Triple(KG.Tide, RDFS.subClassOf, OWL.Nothing), Triple(DOCUMENT, RDF.type, KG.Tide)], "Nothing"),
        ([Triple(DOCUMENT, OWL.sameAs, PLACE), Triple(DOCUMENT, OWL.differentFrom, PLACE)], "sameAs"),
    ],
)  # fmt: skip
def test_a_planted_contradiction_is_found(planted: list[Triple], found: str) -> None:
    assert any(found in message for message in contradictions(planted))
