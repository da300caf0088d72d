"""Any order of changes, kills, upgrades and lost states ends in the graphs of a fresh run."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from pyoxigraph import Quad

from kg.data_directory import DataDirectory
from kg.derivations.engine import Engine
from kg.derivations.state import Finished, State
from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import mint
from loaders.mentions.graph import MENTIONS
from loaders.mentions.graph import refresh as refreshing
from loaders.mentions.graph.refresh import Mentions, mention_graph, refresh
from tests.examples import dear
from tests.loaders.mentions.test_refresh import opened, put_concept, put_text

SLUGS = st.sampled_from(["act", "law", "plan"])
TEXTS = st.lists(st.sampled_from(["Tides.", "Tidal power", "Powers of bio-\nfuels", "Nothing"]), min_size=1, max_size=3)
CONCEPTS = st.sampled_from(["Q1", "Q2", "Q3"])
NAMES = st.sampled_from(["tide", "tidal power", "power", "biofuel", None])


class Killed(BaseException):
    """The end of a process at this place."""


def mentions(kg: KnowledgeGraph) -> set[Quad]:
    graphs = [graph for graph in kg.store.graphs() if graph.value.startswith(MENTIONS.writes)]
    return {quad for graph in graphs for quad in kg.store.graph(graph)}


class Histories(RuleBasedStateMachine):
    """A store whose texts and concepts change in any order while mentions are found, or are not found to the end."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.kg = opened(self.folder / "data")
        self.state = DataDirectory(self.folder / "data").derivations
        self.texts: dict[str, list[str]] = {}
        self.concepts: dict[str, str | None] = {}
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(refreshing, "BATCH_QUADS", 1)

    @rule(slug=SLUGS, texts=TEXTS)
    def load(self, slug: str, texts: list[str]) -> None:
        self.texts[slug] = texts
        put_text(self.kg, slug, *texts)

    @rule(slug=SLUGS)
    def delete(self, slug: str) -> None:
        self.texts.pop(slug, None)
        put_text(self.kg, slug)

    @rule(concept=CONCEPTS, name=NAMES)
    def name(self, concept: str, name: str | None) -> None:
        self.concepts[concept] = name
        put_concept(self.kg, concept, name)

    @rule()
    def derive(self) -> None:
        refresh(self.kg)

    @rule(after=st.integers(0, 2))
    def is_killed_between_batches(self, after: int) -> None:
        def advance(done: int, total: int | None, text: str) -> None:
            if done > after:
                raise Killed

        self._kill(lambda: refresh(self.kg, on_progress=advance))

    @rule(after=st.integers(0, 2))
    def is_killed_after_a_commit(self, after: int) -> None:
        finish, calls = State.finish, 0

        def finish_or_die(state: State, name: str, done: dict[object, Finished]) -> None:
            nonlocal calls
            calls += 1
            if calls > after:
                raise Killed
            finish(state, name, done)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(State, "finish", finish_or_die)
            self._kill(lambda: refresh(self.kg))

    @rule()
    def is_upgraded(self) -> None:
        self.patched.setattr(MENTIONS, "version", f"{MENTIONS.version}+")

    @rule()
    def keep_state(self) -> None:
        if self.state.exists():
            shutil.copy(self.state, self.folder / "kept")

    @rule()
    def lose_state(self) -> None:
        """Restore an older file, or none: outputs may then be newer than the state, and never the other way round."""
        if (self.folder / "kept").exists():
            shutil.copy(self.folder / "kept", self.state)
        else:
            self.state.unlink(missing_ok=True)

    def _kill(self, run: Callable[[], object]) -> None:
        with contextlib.suppress(Killed):
            run()

    def teardown(self) -> None:
        fresh = opened(self.folder / "fresh")
        for slug, texts in self.texts.items():
            put_text(fresh, slug, *texts)
        for concept, name in self.concepts.items():
            put_concept(fresh, concept, name)
        refresh(fresh)
        refresh(self.kg)
        try:
            assert mentions(self.kg) == mentions(fresh)
            assert refresh(self.kg).graphs == 0
        finally:
            self.patched.undo()
            fresh.store.close()
            self.kg.store.close()
            shutil.rmtree(self.folder)


def test_outputs_that_do_not_follow_from_their_inputs_are_found(tmp_path: Path) -> None:
    kg = opened(tmp_path / "data")
    put_text(kg, "act", "Tides.")
    put_text(kg, "law", "Tides.")
    put_concept(kg, "Q1", "tide")
    refresh(kg)
    graph = mention_graph(mint("graph", "src", "climate", "act"))
    with State(tmp_path / "data") as state:
        engine = Engine(kg, state, MENTIONS, Mentions(kg))
        assert engine.find_differing(20) == []
        kg.store.commit({graph: kg.store.graph(graph)[1:]})
        assert engine.find_differing(20) == [graph]
        assert engine.count_due() == {}
        put_text(kg, "plan", "Tides.")
        assert engine.count_due() == {"new": 1}
    kg.store.close()


TestHistories = pytest.mark.long(Histories.TestCase)
TestHistories.settings = settings(
    max_examples=dear(10), stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
