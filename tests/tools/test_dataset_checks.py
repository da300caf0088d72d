"""What people wrote is checked behind their backs: soon, once for each content, and without holding anybody up."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.sandbox import QueryPool
from kg.tools import dataset_checks
from kg.tools.dataset_checks import DatasetChecks
from kg.tools.model import DatasetCheck
from kg.tools.overview import health
from kg.tools.user_graphs import UserGraphs
from kg.validation.report import Violation
from kg.validation.shapes import Shapes
from kg.vocabulary import DCTERMS, KG, mint
from tests.tools.made_up import WordIndex

GRAPH = mint("graph", "user", "mine")
DOCUMENT = mint("document", "mine")
NOTE = Triple(NamedNode("urn:a"), DCTERMS.title, Literal("A note"))


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    settings = Settings(data_dir=tmp_path, query_workers=1, _env_file=None)
    store = OxigraphStore(tmp_path)
    with KnowledgeGraph(settings, store, WordIndex(), QueryPool(store, settings)) as graph:
        yield graph


def checked(checks: DatasetChecks) -> DatasetCheck:
    checks.schedule()
    assert checks.wait(30)
    result = checks.result()
    assert result is not None
    return result


def test_what_people_wrote_over_http_conforms(kg: KnowledgeGraph) -> None:
    graphs = UserGraphs(kg)
    graphs.put(GRAPH, [NOTE], "local")
    graphs.post(mint("graph", "cur", "x"), [Triple(NamedNode("urn:b"), DCTERMS.title, Literal("B"))], "local")
    result = checked(DatasetChecks(kg))
    assert (result.conforms, result.messages, result.generation) == (True, [], 2)
    assert result.checked.startswith("2 graphs of people and their provenance")


def test_a_graph_that_nothing_describes_is_told(kg: KnowledgeGraph) -> None:
    kg.store.commit({GRAPH: [Quad(NOTE.subject, NOTE.predicate, NOTE.object, GRAPH)]})
    result = checked(DatasetChecks(kg))
    assert not result.conforms
    assert any("exactly one generating activity" in message and GRAPH.value in message for message in result.messages)


def test_what_an_update_wrote_against_the_shapes_is_told_in_the_status(kg: KnowledgeGraph) -> None:
    checks = DatasetChecks(kg)
    kg.dataset_check = checks.result
    assert health(kg).dataset_shapes is None
    update = f"INSERT DATA {{ GRAPH {GRAPH} {{ {DOCUMENT} a {KG.PolicyDocument} }} }}"
    UserGraphs(kg, checks.schedule).update(update, (), (), "local-admin")
    assert checks.wait(30)
    found = health(kg).dataset_shapes
    assert found is not None
    assert not found.conforms
    assert any("exactly one title" in message for message in found.messages)


def test_a_content_is_checked_once(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, checks = UserGraphs(kg), DatasetChecks(kg)
    update = f"INSERT DATA {{ GRAPH {GRAPH} {{ {DOCUMENT} a {KG.PolicyDocument} }} }}"
    graphs.update(update, (), (), "local-admin")
    first = checked(checks)
    sizes: list[int] = []
    real = Shapes.check

    def counted(self: Shapes, quads: Iterable[Quad | Triple]) -> list[Violation]:
        quads = list(quads)
        sizes.append(len(quads))
        return real(self, quads)

    monkeypatch.setattr(Shapes, "check", counted)
    graphs.put(mint("graph", "user", "other"), [NOTE], "local")
    sizes.clear()
    second = checked(checks)
    assert len(sizes) == 1, "the provenance alone"
    assert second.messages == first.messages


def test_what_is_too_large_is_left_out_and_said(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_checks, "MAX_TRIPLES", 1)
    update = f"INSERT DATA {{ GRAPH {GRAPH} {{ {DOCUMENT} a {KG.PolicyDocument} ; {DCTERMS.title} 'x' }} }}"
    UserGraphs(kg).update(update, (), (), "local-admin")
    assert "the content of 1 is too large" in checked(DatasetChecks(kg)).checked


def test_asking_never_waits_and_what_is_asked_for_meanwhile_is_one_more_check(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, runs = threading.Event(), []

    def slow(self: DatasetChecks) -> DatasetCheck:
        runs.append(threading.active_count())
        assert gate.wait(10)
        return DatasetCheck(generation=len(runs), checked="")

    monkeypatch.setattr(DatasetChecks, "_check", slow)
    checks = DatasetChecks(kg)
    for _ in range(50):
        checks.schedule()
    assert checks.result() is None
    assert not checks.wait(0)
    gate.set()
    assert checks.wait(10)
    assert len(runs) in (1, 2)
    assert len(set(runs)) == 1, "one thread"


def test_a_check_that_fails_is_told_and_the_next_one_runs(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = DatasetChecks(kg)
    UserGraphs(kg).put(GRAPH, [NOTE], "local")
    with monkeypatch.context() as patch:
        patch.setattr(dataset_checks, "SAID", "SELECT")
        patch.setattr(dataset_checks, "bind", lambda query, **terms: query)
        assert "not SPARQL" in (checked(checks).problem or "")
    assert checked(checks).conforms
