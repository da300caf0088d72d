"""The store is checked behind everybody's back: soon, only where commits matter, and without holding anybody up."""

from __future__ import annotations

import threading

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg.access.actors import EVERYONE, HOLDER
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import DatasetCheck
from kg.shacl.shapes import Shapes
from kg.store.protocol import Patch
from kg.tools.catalog.health import health
from kg.tools.commands import store_status
from kg.tools.shacl.background_validation import DatasetChecks
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, RDF, RDFS, SCHEMA, XSD, mint

GRAPH = mint("graph", "user", "mine")
DOCUMENT = mint("document", "mine")
NOTE = Triple(NamedNode("urn:a"), DCTERMS.title, Literal("A note"))


@pytest.fixture
def kg(empty: KnowledgeGraph) -> KnowledgeGraph:
    return empty


def checked(checks: DatasetChecks) -> DatasetCheck:
    checks.schedule()
    assert checks.wait(60)
    result = checks.result()
    assert result is not None
    return result


def test_what_people_wrote_over_http_conforms(kg: KnowledgeGraph) -> None:
    graphs = UserGraphs(kg)
    graphs.put(GRAPH, [NOTE], EVERYONE)
    graphs.post(mint("graph", "cur", "x"), [Triple(NamedNode("urn:b"), DCTERMS.title, Literal("B"))], HOLDER)
    result = checked(DatasetChecks(kg, pause_s=0))
    assert (result.conforms, result.messages, result.generation) == (True, [], 2)
    assert result.checked == "the whole store, by the dataset shapes; 2 user graphs, by the open record shapes"


def test_a_graph_that_nothing_describes_is_told(kg: KnowledgeGraph) -> None:
    kg.store.commit({GRAPH: [Quad(NOTE.subject, NOTE.predicate, NOTE.object, GRAPH)]})
    result = checked(DatasetChecks(kg, pause_s=0))
    assert not result.conforms
    assert any("exactly one generating activity" in message and GRAPH.value in message for message in result.messages)


def test_what_an_update_wrote_against_the_shapes_is_told_in_the_status(kg: KnowledgeGraph) -> None:
    checks = DatasetChecks(kg, pause_s=0)
    kg.dataset_check = checks.result
    before = health(kg)
    assert (before.status, before.dataset_shapes, len(before.notes)) == ("ok", None, 1)
    update = f"INSERT DATA {{ GRAPH {GRAPH} {{ {DOCUMENT} a {KG.PolicyDocument} }} }}"
    UserGraphs(kg, checks.schedule).update(update, (), (), HOLDER)
    assert checks.wait(60)
    found = health(kg).dataset_shapes
    assert found is not None
    assert not found.conforms
    assert any("exactly one slug" in message for message in found.messages)
    told = store_status(kg)["dataset_shapes"]
    assert told.startswith(f"generation 1: {found.violations} violation")
    assert told.endswith(found.messages[0])


def test_the_user_graph_that_breaks_a_text_of_a_source_is_named(kg: KnowledgeGraph) -> None:
    graph, units = mint("graph", "src", "climate", "act"), [NamedNode(f"urn:unit{number}") for number in range(2)]
    hashed = Quad(units[1], KG.textSha256, Literal("0" * 64), graph)
    kg.store.commit({graph: [hashed, *(Quad(unit, SCHEMA.text, Literal("Words."), graph) for unit in units)]})
    checks = DatasetChecks(kg, pause_s=0)
    first = checked(checks)
    forged = [Triple(units[0], KG.textSha256, Literal("f" * 64)), Triple(units[0], KG.start, Literal("x"))]
    UserGraphs(kg).put(GRAPH, forged, EVERYONE)
    second = checked(checks)
    [genuine] = [message for message in first.messages if "was altered" in message]
    [by_user] = [message for message in second.messages if units[0].value in message and "was altered" in message]
    assert units[1].value in genuine
    assert GRAPH.value not in genuine
    assert genuine in second.messages
    assert GRAPH.value in by_user
    assert set(checked(DatasetChecks(kg, pause_s=0)).messages) == set(second.messages)


def test_only_violations_that_no_user_graph_can_cause_are_problems(kg: KnowledgeGraph) -> None:
    graph, run, agent = mint("graph", "der", "x"), NamedNode("urn:run"), NamedNode("urn:agent")
    said = {
        Quad(graph, RDF.type, KG.DerivedGraph, PROV_GRAPH),
        Quad(graph, KG.contentSha256, Literal("0" * 64), PROV_GRAPH),
        Quad(graph, PROV.wasGeneratedBy, run, PROV_GRAPH),
        Quad(run, PROV.endedAtTime, Literal("2026-01-01T00:00:00Z", datatype=XSD.dateTime), PROV_GRAPH),
        Quad(run, PROV.wasAssociatedWith, agent, PROV_GRAPH),
        Quad(agent, RDFS.label, Literal("agent"), PROV_GRAPH),
        Quad(run, PROV.used, NamedNode("urn:rule"), PROV_GRAPH),
    }
    rule = frozenset({Quad(NamedNode("urn:rule"), RDF.type, KG.Rule, PROV_GRAPH)})
    quads = [[Quad(DOCUMENT, DCTERMS.title, Literal(title), graph)] for title in "xyz"]
    kg.store.commit({graph: quads[0]}, lambda changes: Patch(add=frozenset(said) | rule))
    checks = DatasetChecks(kg, pause_s=0)
    kg.dataset_check = checks.result
    labelled = frozenset({Quad(NamedNode("urn:rule"), RDFS.label, Literal("rule"), PROV_GRAPH)})
    kg.store.commit({graph: quads[1]}, lambda changes: Patch(add=labelled))
    # A second end of the run breaks the description of the graph, of which the user graph says nothing.
    UserGraphs(kg).put(GRAPH, [Triple(run, PROV.endedAtTime, Literal("2027-01-01T00:00:00Z"))], EVERYONE)
    assert any(GRAPH.value in message and graph.value in message for message in checked(checks).messages)
    assert health(kg).status == "ok"
    kg.store.commit({graph: quads[2]}, lambda changes: Patch(remove=rule))
    for own in (checked(checks).own, checked(DatasetChecks(kg, pause_s=0)).own):
        assert own["kgs:ComputedGraph-rule"] == 1
    assert any("kgs:ComputedGraph-rule: 1" in problem for problem in health(kg).problems)


def test_a_state_that_was_checked_is_not_checked_again(kg: KnowledgeGraph) -> None:
    UserGraphs(kg).put(GRAPH, [NOTE], EVERYONE)
    checks = DatasetChecks(kg, pause_s=0)
    assert store_status(kg)["dataset_shapes"].startswith("not checked yet")
    kg.dataset_check = checks.result
    assert checked(checks) == checked(checks)
    assert store_status(kg)["dataset_shapes"] == "generation 1: conforms"


def test_only_what_commits_can_affect_is_checked_again(kg: KnowledgeGraph) -> None:
    graphs, checks = UserGraphs(kg), DatasetChecks(kg, pause_s=0)
    update = f"INSERT DATA {{ GRAPH {GRAPH} {{ {DOCUMENT} a {KG.PolicyDocument} }} }}"
    graphs.update(update, (), (), HOLDER)
    first = checked(checks)
    graphs.put(mint("graph", "user", "other"), [NOTE], EVERYONE)
    second = checked(checks)
    assert second.checked.endswith("nodes that later commits can affect, by the dataset shapes; 1 user graph, by "
                                   "the open record shapes")  # fmt: skip
    assert (second.messages, second.violations) == (first.messages, first.violations)
    graphs.delete(GRAPH, HOLDER)
    assert checked(checks).conforms


def test_loads_are_checked_too_and_what_is_mended_is_told_no_more(kg: KnowledgeGraph) -> None:
    checks = DatasetChecks(kg, pause_s=0)
    graph, snapshot = mint("graph", "src", "climate", "act"), NamedNode("urn:snapshot")
    quad = Quad(DOCUMENT, DCTERMS.title, Literal("x"), graph)
    said = frozenset({Quad(snapshot, RDF.type, KG.Snapshot, PROV_GRAPH)})
    kg.store.commit({graph: [quad]}, lambda changes: Patch(add=said))
    first = checked(checks)
    assert any("one hash of its bytes" in message for message in first.messages)
    hashed = frozenset({Quad(snapshot, KG.sha256, Literal("0" * 64), PROV_GRAPH)})
    kg.store.commit({graph: [quad, Quad(DOCUMENT, KG.slug, Literal("x"), graph)]}, lambda changes: Patch(add=hashed))
    second = checked(checks)
    assert set(first.messages) - set(second.messages) == {m for m in first.messages if "one hash of its bytes" in m}
    kg.store.commit({graph: [quad]}, lambda changes: Patch(remove=hashed))
    assert checked(checks).messages == first.messages


def test_who_commits_need_not_tell(kg: KnowledgeGraph) -> None:
    checks = DatasetChecks(kg, pause_s=0, look_s=0.01)
    asked = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatasetChecks, "schedule", lambda self: asked.set())
        with checks.watching():
            assert not asked.is_set()
            kg.store.commit({GRAPH: [Quad(NOTE.subject, NOTE.predicate, NOTE.object, GRAPH)]})
            assert asked.wait(60)


def test_asking_never_waits_and_what_is_asked_for_meanwhile_is_one_more_check(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, runs = threading.Event(), []

    def slow(self: DatasetChecks) -> DatasetCheck:
        runs.append(threading.active_count())
        assert gate.wait(60)
        return DatasetCheck(generation=len(runs), checked="")

    monkeypatch.setattr(DatasetChecks, "check", slow)
    checks = DatasetChecks(kg, pause_s=0)
    for _ in range(50):
        checks.schedule()
    assert checks.result() is None
    assert not checks.wait(0)
    gate.set()
    assert checks.wait(60)
    assert len(runs) in (1, 2)
    assert len(set(runs)) == 1, "one thread"


def test_a_check_that_fails_is_told_and_the_next_one_runs(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = DatasetChecks(kg, pause_s=0)
    UserGraphs(kg).put(GRAPH, [NOTE], EVERYONE)
    with monkeypatch.context() as patch:

        def refused(self: Shapes, *_: object, **__: object) -> None:
            raise InvalidInputError("the query cannot be asked")

        patch.setattr(Shapes, "results_by_target", refused)
        assert checked(checks).problem == "the query cannot be asked"
    assert checked(checks).conforms


def test_after_a_restart_only_what_later_commits_can_affect_is_checked(kg: KnowledgeGraph) -> None:
    graphs = UserGraphs(kg)
    update = f"INSERT DATA {{ GRAPH {GRAPH} {{ {DOCUMENT} a {KG.PolicyDocument} }} }}"
    graphs.update(update, (), (), HOLDER)
    first = checked(DatasetChecks(kg, pause_s=0))
    again = checked(DatasetChecks(kg, pause_s=0))
    assert again.checked.startswith("0 nodes")
    shown = ("violations", "messages", "by_shape", "conforms", "generation")
    assert [getattr(again, name) for name in shown] == [getattr(first, name) for name in shown]
    graphs.put(mint("graph", "user", "other"), [NOTE], EVERYONE)
    kg.store.commit({GRAPH: [Quad(DOCUMENT, KG.slug, Literal("mine"), GRAPH)]})
    later = checked(DatasetChecks(kg, pause_s=0))
    assert "nodes that later commits can affect" in later.checked
    kg.settings.directory.derivations.unlink()
    whole = checked(DatasetChecks(kg, pause_s=0))
    assert whole.checked.startswith("the whole store")
    for name in ("violations", "by_shape", "conforms", "generation"):
        assert getattr(later, name) == getattr(whole, name)
    assert {*later.messages} == {*whole.messages}


def test_a_server_shows_the_result_of_its_last_check_at_its_start(kg: KnowledgeGraph) -> None:
    UserGraphs(kg).put(GRAPH, [NOTE], EVERYONE)
    first = DatasetChecks(kg)
    with first.watching():
        assert first.result() is None
    checked(DatasetChecks(kg, pause_s=0))
    second = DatasetChecks(kg, pause_s=0)
    with second.watching():
        assert second.wait(60)
        assert second.result() is not None
