"""Killed at any moment, the store opens with its last acknowledged commit or one later, whole, and counted right."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyoxigraph import Literal, Quad

from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Rows
from kg.vocabulary import DCTERMS, KG, PROV_GRAPH, mint

pytestmark = pytest.mark.long

QUADS = 400

WRITER = f"""
import sys
from pathlib import Path
from pyoxigraph import Literal, Quad
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch
from kg.vocabulary import DCTERMS, KG, PROV_GRAPH, mint

store = OxigraphStore(Path(sys.argv[1]), flush_quads=3_000, idle_s=0.005)
number = store.statistics().generation
while True:
    number += 1
    replace = {{}}
    for name in "ab":
        graph = mint("graph", "src", "test", name)
        texts = [Literal(f"{{number}} {{row}}") for row in range({QUADS})]
        replace[graph] = [Quad(mint("document", name), DCTERMS.title, text, graph) for text in texts]
    graph = mint("graph", "src", "test", f"only{{number % 3}}")
    replace[graph] = [Quad(mint("document", "c"), DCTERMS.title, Literal(number), graph)] if number % 2 else []
    note = Quad(mint("run", str(number)), KG.generation, Literal(number), PROV_GRAPH)
    commit = store.commit(replace, lambda _: Patch(add=frozenset([note])))
    print(commit.generation, flush=True)
    if number % 4 == 0:
        store.snapshot().release()
"""


def killed_after(folder: Path, acknowledged: int, delay_s: float) -> int:
    """Run the writer, kill it, and return the last generation that it acknowledged."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = [process.stdout.readline() for _ in range(acknowledged)][-1]
        time.sleep(delay_s)  # the moment of the kill is the point of the test
        os.kill(process.pid, signal.SIGKILL)
        last = (process.stdout.read().rpartition("\n")[0] or last).split()[-1]
        process.wait()
    return int(last)


def test_a_kill_leaves_the_last_acknowledged_commit_or_the_next_one_never_half_of_it(tmp_path: Path) -> None:
    chance = random.Random()
    for round_ in range(6):
        acknowledged = killed_after(tmp_path, chance.randint(1, 6), chance.random() * 0.06)
        with OxigraphStore(tmp_path) as store:
            statistics = store.statistics()
            at = statistics.generation
            where = f"round {round_}: {acknowledged} was acknowledged, {at} is there"
            assert at in (acknowledged, acknowledged + 1), where
            for name in "ab":
                graph = mint("graph", "src", "test", name)
                wanted = {
                    Quad(mint("document", name), DCTERMS.title, Literal(f"{at} {row}"), graph) for row in range(QUADS)
                }
                assert set(store.graph(graph)) == wanted, where
            notes = [
                quad for quad in store.graph(PROV_GRAPH) if str(quad.subject).startswith(str(mint("run", "x"))[:-2])
            ]
            assert {int(quad.object.value) for quad in notes if isinstance(quad.object, Literal)} == set(
                range(1, at + 1)
            )
            commits = store.query("SELECT ?n { ?c a kg:Commit ; kg:generation ?n }")
            assert isinstance(commits, Rows)
            assert len(commits) == at, where
            counted = store.query("SELECT (COUNT(*) AS ?q) (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
            assert isinstance(counted, Rows)
            assert [int(term.value) for term in counted.rows[0] if isinstance(term, Literal)] == [
                statistics.quads,
                statistics.graphs,
            ], where
            assert list((tmp_path / "snapshots").iterdir()) == [], "checkpoints of the dead process are gone"


def test_a_kill_while_the_directory_is_made_leaves_one_that_opens(tmp_path: Path) -> None:
    chance = random.Random()
    for round_ in range(3):
        folder = tmp_path / str(round_)
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while not folder.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.02)
        process.kill()
        process.wait()
        with OxigraphStore(folder) as store:
            graph = mint("graph", "src", "test", "z")
            after = store.commit({graph: [Quad(KG.s, KG.p, KG.o, graph)]})
            assert after.generation == store.statistics().generation
            assert store.graph(graph) == [Quad(KG.s, KG.p, KG.o, graph)]
