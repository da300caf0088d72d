"""Whoever writes at the same time, and however the process ends: no write is lost, none is half there."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg import user_graphs
from kg.access.actors import EVERYONE, HOLDER, READ, WRITE, Actor
from kg.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    PayloadTooLargeError,
    QueryLimitError,
    QueryMemoryError,
    QuerySyntaxError,
    QuotaError,
    ShapesViolatedError,
)
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.processes.child import Limits
from kg.queries.pool import QueryPool
from kg.settings import Settings
from kg.store.difference import content_sha256
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Rows
from kg.user_graphs import UserGraphs
from kg.vocabulary import BASE, DCTERMS, KG, PROV, PROV_GRAPH, mint
from tests.tools.made_up import WordIndex

COUNTER = mint("graph", "user", "counter")
NOTES = mint("graph", "user", "notes")
SUBJECT = NamedNode("urn:n")
INCREMENT = f"""WITH {COUNTER} DELETE {{ {SUBJECT} <urn:is> ?n }} INSERT {{ {SUBJECT} <urn:is> ?m }}
WHERE {{ {SUBJECT} <urn:is> ?n BIND(?n + 1 AS ?m) }}"""


@pytest.fixture
def kg(empty: KnowledgeGraph) -> KnowledgeGraph:
    return empty


def note(value: str) -> Triple:
    return Triple(NamedNode(f"urn:{value}"), DCTERMS.title, Literal(value))


@pytest.mark.long
def test_writers_of_every_kind_at_once_lose_nothing(kg: KnowledgeGraph) -> None:
    graphs = UserGraphs(kg)
    graphs.put(COUNTER, [Triple(SUBJECT, NamedNode("urn:is"), Literal(0))], EVERYONE)
    loaded = mint("graph", "src", "test", "a")
    failures: list[BaseException] = []

    def post(who: int) -> None:
        for step in range(6):
            graphs.post(NOTES, [note(f"post-{who}-{step}")], Actor(f"person-{who}", frozenset({WRITE})))

    def update(who: int) -> None:
        for step in range(4):
            graphs.update(INCREMENT, (), (), HOLDER)
            graphs.update(f"INSERT DATA {{ GRAPH {NOTES} {{ <urn:u> dcterms:title '{who}-{step}' }} }}", (), (), HOLDER)

    def load(who: int) -> None:
        for step in range(15):
            title = note(f"post-0-{step % 6}")
            kg.store.commit({loaded: [Quad(title.subject, title.predicate, title.object, loaded)]})

    def run(work: Callable[[int], None], who: int) -> None:
        try:
            work(who)
        except ConflictError:
            pass  # the loader said it first
        except BaseException as error:  # noqa: BLE001 -- handed to the test
            failures.append(error)

    jobs = [(post, 0), (post, 1), (update, 0), (update, 1), (load, 0)]
    threads = [threading.Thread(target=run, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [quad.object for quad in kg.store.graph(COUNTER)] == [Literal(8)]
    written = {str(quad.object.value) for quad in kg.store.graph(NOTES) if isinstance(quad.object, Literal)}
    assert {f"post-1-{step}" for step in range(6)} <= written
    assert {f"{who}-{step}" for who in range(2) for step in range(4)} <= written
    rows = kg.store.query(
        f"SELECT ?s {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g != {PROV_GRAPH}) }} GROUP BY ?s ?p ?o HAVING (COUNT(?g) > 1)"
    )
    assert isinstance(rows, Rows)
    assert len(rows) == 0
    assert described(kg.store.graph(PROV_GRAPH), NOTES) == content_sha256(kg.store.graph(NOTES))


def test_what_is_posted_is_checked_with_what_came_between(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = UserGraphs(kg)
    commits = iter(range(50))
    checked: list[int] = []
    extend = OxigraphStore.extend

    def contested(self: OxigraphStore, graph: NamedNode, *args: Any) -> Any:
        self.commit({graph: [*self.graph(graph), *quads(graph, [note(f"between-{next(commits)}")])]})
        return extend(self, graph, *args)

    monkeypatch.setattr(OxigraphStore, "extend", contested)
    monkeypatch.setattr(user_graphs, "_check", lambda _, triples: checked.append(len(triples)))
    assert not graphs.post(NOTES, [note("posted")], EVERYONE)
    assert checked == [1, 2]
    assert {quad.subject for quad in kg.store.graph(NOTES)} == {NamedNode("urn:posted"), NamedNode("urn:between-0")}

    def refused(_: NamedNode, triples: list[Triple]) -> None:
        if len(triples) > 3:
            raise ShapesViolatedError("too many", [])

    monkeypatch.setattr(user_graphs, "_check", refused)
    with pytest.raises(ShapesViolatedError):
        graphs.post(NOTES, [note("refused")], EVERYONE)
    assert len(kg.store.graph(NOTES)) == 3  # the other write stands, this one does not


def quads(graph: NamedNode, triples: list[Triple]) -> list[Quad]:
    return [Quad(triple.subject, triple.predicate, triple.object, graph) for triple in triples]


def described(said: list[Quad], graph: NamedNode) -> str:
    [digest] = [quad.object for quad in said if quad.subject == graph and quad.predicate == KG.contentSha256]
    assert isinstance(digest, Literal)
    [activity] = [quad.object for quad in said if quad.subject == graph and quad.predicate == PROV.wasGeneratedBy]
    assert any(quad.subject == activity and quad.predicate == PROV.endedAtTime for quad in said)
    return digest.value


WRITER = f"""
import sys
from pathlib import Path
from pyoxigraph import Literal, NamedNode, Quad, Triple
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.access.actors import EVERYONE, HOLDER
from kg import user_graphs
from kg.user_graphs import UserGraphs
from tests.tools.made_up import WordIndex

user_graphs._LARGE = int(sys.argv[2])
folder = Path(sys.argv[1])
store = OxigraphStore(folder, idle_s=0.005)
graphs = UserGraphs(KnowledgeGraph(Settings(data_dir=folder, _env_file=None), store, WordIndex(), None))
notes, counter = NamedNode({NOTES.value!r}), NamedNode({COUNTER.value!r})
number = store.statistics().generation
if not store.graph(counter):
    graphs.put(counter, [Triple(NamedNode("urn:n"), NamedNode("urn:is"), Literal(0))], EVERYONE)
while True:
    number += 1
    triples = [Triple(NamedNode("urn:a"), NamedNode("urn:p"), Literal(f"{{number}} {{row}}")) for row in range(200)]
    graphs.put(notes, triples, EVERYONE)
    print(store.statistics().generation, flush=True)
    graphs.update({INCREMENT!r}, (), (), HOLDER)
    print(store.statistics().generation, flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("large", [10_000, 10])
def test_a_kill_during_any_write_leaves_the_old_state_or_the_new_one_whole(tmp_path: Path, large: int) -> None:
    """Also where the quads are written by another process."""
    chance = random.Random()
    for round_ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(large)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(chance.randint(1, 3)):
                process.stdout.readline()
            time.sleep(
                chance.random() * (0.2 if large > 200 else 0.8)
            )  # the moment of the kill is the point of the test
            os.kill(process.pid, signal.SIGKILL)
            acknowledged = process.stdout.read()
        with OxigraphStore(tmp_path) as store:
            where = f"round {round_}, {acknowledged!r}"
            said = store.graph(PROV_GRAPH)
            notes = store.graph(NOTES)
            assert len(notes) == 200, where
            assert len({str(quad.object).split()[0] for quad in notes}) == 1, where
            for graph in (NOTES, COUNTER):
                assert described(said, graph) == content_sha256(store.graph(graph)), where
            assert len(store.graph(COUNTER)) == 1, where
    for _ in range(600):  # an update's own process may outlive the writer by moments, and write where it did before
        with OxigraphStore(tmp_path):
            left = list((tmp_path / "snapshots").iterdir())
        if not left:
            break
        time.sleep(0.1)
    assert left == []


def test_an_update_that_needs_too_much_memory_costs_only_itself(kg: KnowledgeGraph) -> None:
    UserGraphs(kg).put(NOTES, [note(str(number)) for number in range(3_000)], EVERYONE)
    cross = f"""INSERT {{ GRAPH {COUNTER} {{ ?a ?b ?c }} }} WHERE {{
      GRAPH {NOTES} {{ ?a ?x ?c }} GRAPH {NOTES} {{ ?b ?y ?d }} FILTER(isIRI(?b)) }}"""
    before = kg.store.statistics()
    with pytest.raises(QueryMemoryError, match="64 MiB"):
        kg.store.update(cross, limits=Limits(30.0, 64 << 20))
    assert kg.store.statistics().generation == before.generation


@pytest.mark.long
@pytest.mark.parametrize(
    "pattern",
    ["{} " + "UNION {} " * 20_000, "?s" + " <urn:p>/<urn:p>" + "/<urn:p>" * 20_000 + " ?o", "?s ?p ?o . " * 20_000],
)
def test_an_update_that_overruns_the_parser_costs_only_itself(kg: KnowledgeGraph, pattern: str) -> None:
    before = kg.store.statistics()
    with contextlib.suppress(QueryLimitError):  # what does not overrun it selects nothing
        kg.store.update(f"INSERT {{ GRAPH {COUNTER} {{ ?s ?p ?o }} }} WHERE {{ GRAPH {NOTES} {{ {pattern} }} }}")
    assert kg.store.statistics().generation == before.generation


def test_what_is_no_update_is_called_so_whatever_else_is_wrong_with_it(kg: KnowledgeGraph) -> None:
    for text in (
        "DROP ALL ; nonsense",
        "INSERT DATA { GRAPH no:thing { <urn:s> <urn:p> 1 } }",
        "COPY DEFAULT TO",
        "DROP",
    ):
        for given in ((), (NOTES,)):
            with pytest.raises(QuerySyntaxError):
                kg.store.update(text, default_graphs=given)


def test_an_update_cannot_nest_triples_without_end(kg: KnowledgeGraph) -> None:
    step = f"""; INSERT {{ GRAPH {NOTES} {{ <urn:s> <urn:p> ?t }} }} WHERE {{
      GRAPH {NOTES} {{ <urn:s> <urn:p> ?o }} BIND(TRIPLE(<urn:s>, <urn:p>, ?o) AS ?t) }}"""
    text = f"INSERT DATA {{ GRAPH {NOTES} {{ <urn:s> <urn:p> 1 }} }}"
    kg.store.update(text + step * 8)
    with pytest.raises(InvalidInputError, match="nested more than 8"):
        kg.store.update(text + step * 20)


@pytest.mark.parametrize("name", ["../prov", "a/../../prov", "%2e%2e/prov", "%2E./prov", ".", "a/.", "a%2F..%2Fb"])
def test_a_name_that_programs_read_as_that_of_another_graph_is_none(kg: KnowledgeGraph, name: str) -> None:
    graph = NamedNode(f"{BASE}graph/user/{name}")
    for write in (UserGraphs(kg).put, UserGraphs(kg).post):
        with pytest.raises(ForbiddenError, match="dot"):
            write(graph, [note("a")], EVERYONE)
    with pytest.raises(ForbiddenError, match="dot"):
        UserGraphs(kg).update(f"INSERT DATA {{ GRAPH {graph} {{ <urn:s> <urn:p> 1 }} }}", (), (), HOLDER)


def test_each_write_takes_its_scope(kg: KnowledgeGraph) -> None:
    graphs, reader, before = UserGraphs(kg), Actor("reader", frozenset({READ})), kg.store.statistics().generation
    writes: list[Callable[[], object]] = [
        lambda: graphs.put(NOTES, [note("a")], reader),
        lambda: graphs.post(NOTES, [note("a")], reader),
        lambda: graphs.create([note("a")], reader),
        lambda: graphs.delete(NOTES, reader),
        lambda: graphs.update(f"CLEAR SILENT GRAPH {NOTES}", (), (), EVERYONE),
    ]
    for write in writes:
        with pytest.raises(ForbiddenError, match="scope"):
            write()
    assert kg.store.statistics().generation == before


def test_what_is_not_there_cannot_be_removed(kg: KnowledgeGraph) -> None:
    with pytest.raises(NotFoundError):
        UserGraphs(kg).delete(NOTES, EVERYONE)


def limited(kg: KnowledgeGraph, **limits: int) -> UserGraphs:
    """Writes to the same graphs under other limits."""
    return UserGraphs(replace(kg, settings=kg.settings.model_copy(update=limits)))


def test_a_sender_may_hold_a_limited_number_of_quads_and_graphs(kg: KnowledgeGraph) -> None:
    graphs = limited(kg, user_quads=3, user_graphs=2)
    others = mint("graph", "user", "others")
    graphs.put(NOTES, [note("a"), note("b")], EVERYONE)
    graphs.put(others, [note("c")], EVERYONE)
    before = kg.store.statistics().generation
    for write in (
        lambda: graphs.put(others, [note("c"), note("d")], EVERYONE),
        lambda: graphs.post(NOTES, [note("d")], EVERYONE),
        lambda: graphs.create([note("d")], EVERYONE),
    ):
        with pytest.raises(QuotaError, match="QUADCITE_USER_"):
            write()
    assert kg.store.statistics().generation == before
    graphs.put(mint("graph", "user", "mine"), [note("d")], HOLDER)  # of another sender
    graphs.put(NOTES, [note("a")], EVERYONE)
    graphs.post(others, [note("e")], EVERYONE)
    graphs.delete(NOTES, EVERYONE)
    graphs.create([note("f")], EVERYONE)


def test_quotas_count_what_is_there_at_the_start_and_what_loads_change(kg: KnowledgeGraph) -> None:
    UserGraphs(kg).put(NOTES, [note("a"), note("b")], EVERYONE)
    kg.memory = Memory()
    with pytest.raises(QuotaError):
        limited(kg, user_quads=2).post(NOTES, [note("c")], EVERYONE)
    kg.store.commit({NOTES: []})
    limited(kg, user_quads=2).post(NOTES, [note("c")], EVERYONE)


def test_curated_graphs_need_the_token_and_have_a_limit(kg: KnowledgeGraph) -> None:
    curated = mint("graph", "cur", "decisions")
    graphs = limited(kg, curated_quads=1)
    for write in (lambda: graphs.post(curated, [note("a")], EVERYONE), lambda: graphs.delete(curated, EVERYONE)):
        with pytest.raises(ForbiddenError, match="token"):
            write()
    graphs.post(curated, [note("a")], HOLDER)
    with pytest.raises(QuotaError, match="QUADCITE_CURATED_QUADS"):
        graphs.post(curated, [note("b")], HOLDER)
    with pytest.raises(QuotaError):
        graphs.update(f"INSERT DATA {{ GRAPH {curated} {{ <urn:s> <urn:p> 1 }} }}", (), (), HOLDER)
    graphs.delete(curated, HOLDER)
    assert kg.store.graph(curated) == []


def test_graphs_are_bounded_by_quads(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, query_workers=1, max_graph_quads=10, _env_file=None)  # type: ignore[call-arg]
    store = OxigraphStore(tmp_path)
    with KnowledgeGraph(settings, store, WordIndex(), QueryPool(store, settings)) as graph:
        graphs = UserGraphs(graph)
        graphs.post(NOTES, [note(str(number)) for number in range(8)], EVERYONE)
        graphs.post(NOTES, [note(str(number)) for number in range(10)], EVERYONE)  # of which it has eight
        before = graph.store.statistics().generation
        with pytest.raises(PayloadTooLargeError, match="QUADCITE_MAX_GRAPH_QUADS"):
            graphs.post(NOTES, [note("more")], EVERYONE)
        data = " , ".join(map(str, range(11)))
        with pytest.raises(PayloadTooLargeError, match="QUADCITE_MAX_GRAPH_QUADS"):
            graphs.update(f"INSERT DATA {{ GRAPH {COUNTER} {{ <urn:s> <urn:p> {data} }} }}", (), (), HOLDER)
        assert graph.store.statistics().generation == before
        assert len(graph.store.graph(NOTES)) == 10
