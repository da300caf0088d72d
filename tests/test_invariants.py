"""The invariants of invariants.toml hold after every kind of commit, and each finds what breaks it."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import QuerySolutions, RdfFormat, Store, Triple, parse

from kg import bundle
from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.user_graphs import UserGraphs
from kg.vocabulary import BASE, PREFIXES, mint
from loaders.sources import load
from tests.folders import open_graph

pytestmark = pytest.mark.long

ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))
BOB = Actor("bob", frozenset({WRITE, CURATE, ADMIN}))

INVARIANTS = tomllib.loads((Path(__file__).parent / "invariants.toml").read_text(encoding="utf-8"))["invariant"]
HEAD = f"@base <{BASE}> . " + "".join(f"@prefix {name}: <{iri}> . " for name, iri in PREFIXES.items())
NOTES, DECISIONS = mint("graph", "user", "notes"), mint("graph", "cur", "decisions")
DOCUMENT = "<cpr://doc/fictional-zero-carbon-act_law9001>"


def triples(text: str) -> list[Triple]:
    return [quad.triple for quad in parse(HEAD + text, format=RdfFormat.TURTLE)]


def copy(kg: KnowledgeGraph) -> Store:
    store = Store()
    store.extend([quad for graph in kg.store.graphs() for quad in kg.store.graph(graph)])
    return store


def broken(store: Store) -> dict[str, list[str]]:
    """The invariants that do not hold of `store`, each with what breaks it."""
    found = {}
    for each in INVARIANTS:
        rows = store.query(each["query"], prefixes=PREFIXES)
        assert isinstance(rows, QuerySolutions)
        if lines := [" ".join(str(term) for term in row) for row in rows]:
            found[f"{each['name']}: {each['rule']}"] = lines
    return found


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "data") as opened:
        yield opened


def test_the_invariants_hold_after_loads_and_what_people_write(kg: KnowledgeGraph, tmp_path: Path) -> None:
    laws = tmp_path / "laws.csv"
    shutil.copy(bundle.folder("fixtures") / "climate" / "laws.csv", laws)
    load(kg, "climate", [str(laws)])
    assert broken(copy(kg)) == {}

    graphs = UserGraphs(kg)
    graphs.put(NOTES, triples(f'{DOCUMENT} dcterms:subject "budgets" ; dcterms:creator [ foaf:name "Ada" ] .'), ADA)
    graphs.post(NOTES, triples(f'{DOCUMENT} dcterms:title "Fictional Low Carbon Act" .'), BOB)
    graphs.post(DECISIONS, triples(f'{DOCUMENT} skos:editorialNote "Read twice." .'), ADA)
    graphs.update(f"INSERT DATA {{ GRAPH {NOTES} {{ <urn:n> <urn:is> _:b }} }}", (), (), ADA)
    assert broken(copy(kg)) == {}

    # The loader asserts what a person wrote before: the person's copy goes.
    laws.write_text(laws.read_text(encoding="utf-8").replace("Fictional Zero", "Fictional Low"), encoding="utf-8")
    assert load(kg, "climate", [str(laws)]).rejected == 0
    assert "Fictional Low Carbon Act" not in {getattr(quad.object, "value", "") for quad in kg.store.graph(NOTES)}
    assert broken(copy(kg)) == {}

    graphs.update(f"DELETE WHERE {{ GRAPH {NOTES} {{ ?s ?p ?o }} }}", (), (), ADA)
    graphs.put(NOTES, triples("<urn:n> a <urn:Note> ."), BOB)
    graphs.delete(NOTES, BOB)
    rows = laws.read_text(encoding="utf-8").splitlines(keepends=True)
    laws.write_text("".join(rows[:2]), encoding="utf-8")
    assert load(kg, "climate", [str(laws)], prune=True).removed > 0
    assert broken(copy(kg)) == {}


def test_the_invariants_hold_for_the_fixtures_of_all_domains(joined: KnowledgeGraph) -> None:
    assert broken(copy(joined)) == {}


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: f"{invariant['name']}")
def test_what_breaks_an_invariant_is_found(fixtures: KnowledgeGraph, invariant: dict[str, str]) -> None:
    store = copy(fixtures)
    assert broken(store) == {}
    store.extend(list(parse(f"{HEAD} {invariant['planted']}", format=RdfFormat.TRIG)))
    assert f"{invariant['name']}: {invariant['rule']}" in broken(store)
