"""Whatever happens to a store, its derived graphs become those of a fresh one with the same records.

A history is any order of loads, kills of loads and derivations, pauses, other versions of a derivation, and lost,
damaged or older files.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from pyoxigraph import NamedNode

from kg.data_directory import DataDirectory
from kg.derivations.engine import AfterCommit
from kg.derivations.state import State
from kg.errors import StoreError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.shipped import infer_graphs, write_shipped_graphs
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Store
from kg.tools.derivations import DEFINITIONS, count_due, derive, find_differing
from kg.vocabulary import BASE, DERIVED, EXTRACTED
from loaders import batches
from loaders.files.graph import entities
from loaders.files.graph.entities import Entities
from loaders.sources import load
from tests.derivations.civic_records import DOMAINS, Records, draw_records
from tests.folders import copy_folder, without_models
from tests.tools.made_up import DirectPool, WordIndex

T = TypeVar("T")

COMMITS: Final = ("commit", "patch_provenance")
WRITES: Final = ("save", "mark_due", "finish", "remove")
"""The methods by which a derivation writes its state."""
PLACES: Final = st.integers(0, 40)
"""Number of writes of the store or the state before a kill; each counts before and after it."""


DERIVED_GRAPHS: Final = DERIVED, EXTRACTED, f"{BASE}graph/inf/", f"{BASE}graph/ref/entity/"
FRESH: Final[dict[tuple[tuple[str, str], ...], set[str]]] = {}
PHASES: Final = [phase for phase in Phase if phase != Phase.explain]
"""Without the explanation of a failure, which repeats the history hundreds of times."""


class Killed(BaseException):
    """The end of a process at this place."""


@contextlib.contextmanager
def killed(after: int) -> Iterator[None]:
    """End the block where it is about to write for the nth time, or where it has just written."""

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            count()
            result = method(*given, **options)
            count()
            return result

        return call

    def count() -> None:
        nonlocal after
        after -= 1
        if after < 0:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        for owner, names in ((OxigraphStore, COMMITS), (State, WRITES)):
            for name in names:
                patch.setattr(owner, name, dying(getattr(owner, name)))
        yield


def find_writer(graph: NamedNode) -> str | None:
    """Find the derivation that writes a graph: that with the longest beginning of its name."""
    found = [each for each in DEFINITIONS.values() if each.writes and graph.value.startswith(each.writes)]
    return max(found, key=lambda each: len(each.writes)).name if found else None


def opened(data_dir: Path) -> KnowledgeGraph:
    """Open a data directory with the indexes of words that a test needs, and without workers."""
    chosen = without_models(data_dir)
    store = OxigraphStore(data_dir, infer=infer_graphs)
    write_shipped_graphs(store)
    others: Any = WordIndex(), DirectPool(store)  # type: ignore[arg-type]
    return KnowledgeGraph(chosen, store, *others)


def load_all(kg: KnowledgeGraph, folder: Path, domain: str, *, index: bool = True) -> None:
    options: dict[str, Any] = dict(DOMAINS[domain].options)
    report = load(kg, DOMAINS[domain].source, [str(folder / domain)], prune=True, index=index, **options)
    assert report.rejections == []


def dump(store: Store) -> set[str]:
    """The quads of all derived graphs but the catalog, whose files are those that were read first.

    Descriptions that sources share, as of a place, stay after the last record that has them.
    """
    return {
        str(quad) for graph in store.graphs() if graph.value.startswith(DERIVED_GRAPHS) for quad in store.graph(graph)
    }


def never(done: int, total: int | None, text: str) -> None:
    """Report no progress."""


def repeat(work: Callable[..., T], *given: Any, **options: Any) -> T:
    """Do it once more where the state is found to be damaged, as the error says."""
    try:
        return work(*given, **options)
    except StoreError:
        return work(*given, **options)


def compare(found: set[str], wanted: set[str]) -> list[str]:
    return [*(f"+ {quad}" for quad in sorted(found - wanted)), *(f"- {quad}" for quad in sorted(wanted - found))]


class Histories(RuleBasedStateMachine):
    """A store, the folders of its sources, and copies of its files from earlier."""

    def __init__(self, empty: Path) -> None:
        super().__init__()
        self.empty = empty
        self.folder = Path(tempfile.mkdtemp())
        self.data = copy_folder(self.empty, self.folder / "data")
        self.sources = self.folder / "sources"
        self.kept = self.folder / "kept"
        self.state = DataDirectory(self.data).derivations
        self.kg = opened(self.data)
        self.unfinished = self.kept_unfinished = set[str]()
        """Domains with a load that was killed, or did not derive to its end."""
        self.sources.mkdir()

    @rule(drawn=draw_records(), after=st.none() | PLACES)
    def load(self, drawn: tuple[str, Records], after: int | None) -> None:
        """Replace the records of a domain, and delete those that are left out."""
        name, records = drawn
        DOMAINS[name].fill(self.sources / name, records)
        self.unfinished.add(name)
        with self._killed(after):
            repeat(load_all, self.kg, self.sources, name)
            self.unfinished.discard(name)

    @rule(drawn=draw_records())
    def load_without_derivations(self, drawn: tuple[str, Records]) -> None:
        name, records = drawn
        DOMAINS[name].fill(self.sources / name, records)
        repeat(load_all, self.kg, self.sources, name, index=False)

    @rule(name=st.none() | st.sampled_from(list(DEFINITIONS)), full=st.booleans(), after=st.none() | PLACES)
    def derive(self, name: str | None, full: bool, after: int | None) -> None:
        with self._killed(after):
            repeat(derive, self.kg, name, full=full, on_progress=never)

    @rule(name=st.sampled_from(list(DEFINITIONS)), after=st.integers(0, 2))
    def derive_until_killed_by_progress(self, name: str, after: int) -> None:
        def advance(done: int, total: int | None, text: str) -> None:
            if done > after:
                raise Killed

        with self._killed():
            repeat(derive, self.kg, name, full=False, on_progress=advance)

    @rule(after=st.integers(0, 30))
    def pause(self, after: int) -> None:
        steps = iter(range(after))
        repeat(entities.refresh, self.kg, is_paused=lambda: next(steps, None) is None)

    @rule(name=st.sampled_from(list(DEFINITIONS)), pick=st.integers(0, 99))
    def upgrade(self, name: str, pick: int) -> None:
        """Have the state, and one of the outputs, be those of another version of a derivation."""
        if not self.state.exists():
            return
        with contextlib.closing(sqlite3.connect(self.state)) as database, contextlib.suppress(sqlite3.DatabaseError):
            changed = database.execute("UPDATE derivations SET version = version || '-' WHERE name = ?", (name,))
            database.commit()
            if not changed.rowcount:  # never computed, or without a state
                return
            outputs = sorted(filter(lambda graph: find_writer(graph) == name, self.kg.store.graphs()), key=str)
            if outputs:
                graph = outputs[pick % len(outputs)]
                self.kg.store.commit({graph: self.kg.store.graph(graph)[1:]})
                shutil.rmtree(self.kept, ignore_errors=True)  # whose state is of the current version

    @rule()
    def keep(self) -> None:
        """Copy the data directory, and the sources with it."""
        self._end()
        shutil.rmtree(self.kept, ignore_errors=True)
        for folder in (self.data, self.sources):
            copy_folder(folder, self.kept / folder.name)
        self.kept_unfinished = set(self.unfinished)
        self._begin()

    @rule(of=st.sampled_from(("state", "store", "both")))
    def restore(self, of: str) -> None:
        """Restore the state, the store, or both."""
        if not self.kept.exists():
            return
        self._end()
        state = DataDirectory(self.kept / "data").derivations if of == "state" else self.state
        content = state.read_bytes() if state.exists() else b""  # where nothing is known
        if of != "state":
            for folder in (self.data, self.sources):
                shutil.rmtree(folder)
                copy_folder(self.kept / folder.name, folder)
            self.unfinished = set(self.kept_unfinished)
        if of != "both":
            self.state.write_bytes(content)
        self._begin()

    @rule(damage=st.none() | st.tuples(st.integers(0, 1 << 20), st.binary(min_size=1, max_size=4_096)))
    def lose_state(self, damage: tuple[int, bytes] | None) -> None:
        """Remove the state, or overwrite a part of it."""
        if damage is None or not self.state.exists():
            self.state.unlink(missing_ok=True)
            return
        place, written = damage
        with self.state.open("r+b") as file:
            file.seek(place % max(self.state.stat().st_size, 1))
            file.write(written)

    @contextlib.contextmanager
    def _killed(self, after: int | None = None) -> Iterator[None]:
        """Run the block until a write of the store or the state, None: `Killed`, and open again what it left."""
        try:
            with contextlib.nullcontext() if after is None else killed(after):
                yield
        except Killed:
            self._end()
            self._begin()

    def _end(self) -> None:
        self.kg.store.close()
        entities.INTERRUPTED.clear()

    def _begin(self) -> None:
        self.kg = opened(self.data)

    def teardown(self) -> None:
        try:
            self._check()
        finally:
            self.kg.store.close()
            shutil.rmtree(self.folder)

    def _check(self) -> None:
        for name in DOMAINS:
            if name in self.unfinished:
                repeat(load_all, self.kg, self.sources, name)
        repeat(derive, self.kg, None, full=False, on_progress=never)
        assert +sum(repeat(count_due, self.kg).values(), Counter()) == {}
        assert {name: graphs for name, graphs in repeat(find_differing, self.kg, 100).items() if graphs} == {}
        if lines := compare(dump(self.kg.store), self._load_fresh()):
            pytest.fail("\n".join(lines[:20]))

    def _load_fresh(self) -> set[str]:
        """Load the sources into a fresh store. Its quads are kept, since a failure repeats its end while it shrinks."""
        files = sorted(path for path in self.sources.rglob("*") if path.is_file())
        key = tuple((str(path.relative_to(self.sources)), path.read_text()) for path in files)
        if key not in FRESH:
            kg = opened(copy_folder(self.empty, self.folder / "fresh"))
            for name in DOMAINS:
                if (self.sources / name).exists():
                    load_all(kg, self.sources, name)
            derive(kg, None, full=False, on_progress=never)
            FRESH[key] = dump(kg.store)
            kg.store.close()
        return FRESH[key]


@pytest.mark.parametrize(("examples", "steps"), [(3, 6), pytest.param(60, 10, marks=pytest.mark.long)])
@pytest.mark.timeout(900)
def test_every_history_ends_in_the_graphs_of_a_fresh_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, examples: int, steps: int
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(batches, "BATCH_QUADS", 1)  # so that each record is a commit
    monkeypatch.setattr(entities, "_LARGE", 20)  # so that some are removed by a commit of their own
    for computation in (AfterCommit, Entities):
        monkeypatch.setattr(computation, "batch_quads", 1)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=PHASES,
        report_multiple_bugs=False,
    )
    opened(tmp_path / "data").store.close()  # with the shipped graphs only
    begin: Any = partial(Histories, tmp_path / "data")
    run_state_machine_as_test(begin, settings=chosen)
