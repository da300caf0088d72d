"""Each call reads one state of the store, whatever is loaded, removed and stated again meanwhile."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyoxigraph import Literal, NamedNode, Triple
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.knowledge_graph import KnowledgeGraph, Memory
from kg.queries.pool import QueryPool
from kg.server import pages
from kg.server.mcp import ToolThreads
from kg.store.protocol import Rows, State, term_text
from kg.tools.commands import COMMANDS
from kg.tools.registry import TOOLS
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, mint
from loaders.sources import load
from tests.conftest import opened
from tests.loaders.test_pipeline import rows, write

ACT, OTHER, USER = "kiln-act", "brick-act", mint("graph", "user", "kilns")
OF_ANOTHER_STATE: Final = ("The names of", "The answer is approximate", "Counts and values are those")
"""Beginnings of notes of answers that use what is of another state."""

Door = Callable[[KnowledgeGraph], Any]


class Leases:
    """A pool that notes which generations are leased, and holds each; or that leases one generation only."""

    def __init__(self, pool: QueryPool, only: int | None = None) -> None:
        self._pool, self._only = pool, only
        self.taken: list[int] = []
        self.held: list[State] = []

    def lease(self, exactly: int | None = None) -> State:
        taken = self._pool.lease(exactly if self._only is None else self._only)
        self.held.append(self._pool.lease(exactly=taken.generation))
        self.taken.append(taken.generation)
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


def call(name: str, **arguments: Any) -> Door:
    found = next(each for each in (*COMMANDS, *TOOLS) if each.name == name)
    return lambda kg: found.content(kg, arguments)


def page(path: str, accept: str) -> Door:
    def get(kg: KnowledgeGraph) -> tuple[int, str]:
        app = Starlette(routes=pages.routes(pages.Site(kg, ToolThreads(kg))))
        answer = TestClient(app, base_url="http://127.0.0.1:8000").get(path, headers={"Accept": accept})
        return answer.status_code, answer.text

    return get


DOORS: Final[dict[str, Door]] = {
    "why": call("why", iri=f"cpr://doc/{ACT}#p=0"),
    "/why": page(f"/why?iri=cpr://doc/{ACT}%23p=0", "text/html"),
    "/resolve": page(f"/resolve?iri=cpr://doc/{ACT}", "application/n-quads"),
    "fetch": call("fetch", id=f"cpr://doc/{ACT}", limit=50),
    "compare_jurisdictions": call("compare_jurisdictions", iso3_a="BRA", iso3_b="DJI"),
    "describe_schema": call("describe_schema", term="kg:Passage"),
}
COUNT: Final = "SELECT (COUNT(DISTINCT ?unit) AS ?n) { ?unit a kg:Passage }"


def change(kg: KnowledgeGraph, path: Path, number: int) -> None:
    """Load, remove and state again: one of several changes by its number."""
    sender = Actor("Fern Ashby", frozenset({WRITE, CURATE, ADMIN}))
    if number % 3 == 2:
        title = [Triple(NamedNode(f"cpr://doc/{ACT}"), DCTERMS.title, Literal(f"Kilns of users {number}"))]
        UserGraphs(kg).put(USER, title if number % 2 else [], sender)
        return
    texts = [f"A kiln is fired at dusk, rule {number}.", *(f"Rule {part} of {number}." for part in range(number % 4))]
    records = [rows(ACT, texts)]
    if number % 2:
        records.append(rows(OTHER, ["Bricks are fired in kilns at dusk."], geography_iso="DJI"))
    load(kg, "climate", [str(write(path, *records))], prune=True)


@contextmanager
def changing(kg: KnowledgeGraph, path: Path) -> Iterator[None]:
    stopped, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        number = 1
        while not stopped.is_set():
            try:
                change(kg, path, number := number + 1)
            except BaseException as error:
                errors.append(error)
                raise

    writer = threading.Thread(target=work)
    writer.start()
    try:
        yield
    finally:
        stopped.set()
        writer.join()
    assert not errors


def has_all(answer: Any) -> bool:
    """Whether each explanation of `why` names who wrote its graph, and the hash of that."""
    return all(each["agent"] and each["content_sha256"] for each in answer["explanations"])


def _check(name: str, answer: Any, of_state: KnowledgeGraph, generation: int) -> None:
    """Compare an answer with that of the state that it read, when nothing changes any more."""
    notes = answer.get("notes", ()) if isinstance(answer, dict) else ()
    if any(note.startswith(OF_ANOTHER_STATE) for note in notes):
        return
    if name == "describe_schema":
        counted = of_state.pool.run(COUNT, exactly=generation).result
        assert isinstance(counted, Rows)
        assert answer["entities"] == int(term_text(counted.rows[0][0]))
        return
    assert answer == DOORS[name](of_state)


@pytest.mark.parametrize(
    "seconds", [pytest.param(4.0, marks=pytest.mark.long), pytest.param(60.0, marks=pytest.mark.exhaustive)]
)
def test_each_answer_is_that_of_one_state(tmp_path: Path, seconds: float) -> None:
    with opened(tmp_path / "data") as kg:
        path = tmp_path / "rows.jsonl"
        change(kg, path, 1)
        found: dict[str, list[tuple[int, Any]]] = {name: [] for name in DOORS}
        leases = {name: Leases(kg.pool) for name in DOORS}
        end = time.monotonic() + seconds
        errors: list[BaseException] = []

        def ask(name: str) -> None:
            own = replace(kg, pool=leases[name])
            try:
                while time.monotonic() < end or len(found[name]) < 2:
                    leases[name].taken.clear()
                    answer = DOORS[name](own)
                    taken = leases[name].taken
                    assert len(taken) == 1 or name == "describe_schema", (name, taken)
                    if name == "why":
                        assert has_all(answer), json.dumps(answer, indent=1)
                    found[name].append((taken[-1], answer))
            except BaseException as error:
                errors.append(error)
                raise

        with changing(kg, path):
            readers = [threading.Thread(target=ask, args=(name,)) for name in DOORS]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
        assert not errors
        assert len({generation for answers in found.values() for generation, _ in answers}) > 2
        for name, answers in found.items():
            for generation, answer in answers[-40:]:
                of_state = replace(kg, pool=Leases(kg.pool, only=generation), memory=Memory())
                _check(name, answer, of_state, generation)
                for held in of_state.pool.held:
                    held.release()
        for each in leases.values():
            for held in each.held:
                held.release()
