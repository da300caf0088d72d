"""Fixtures that every part of the suite may use."""

from __future__ import annotations

import fcntl
import gc
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import tests.examples  # noqa: F401 -- whose profile --hypothesis-profile may name
from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.queries import text_check
from kg.queries.pool import QueryPool
from kg.search import index_client
from kg.server import fair_limiter
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.tools.schema.schema_measurement import Schema, _Measurements
from loaders.sources import load
from tests.adversarial.small_disk import SmallDisk, mount_small_disk
from tests.folders import copy_folder, without_models
from tests.tools.made_up import WordIndex
from tests.waiting import HANG_S
from tests.watching import WITH_PROCESSES, watched

ROOT = Path(__file__).parent.parent


TIERS = {
    "long": re.compile(r"\blong\b|\bmeasures_processor_time\b"),
    "measures_time": re.compile(r"\bmeasures_time\b"),
    "exhaustive": re.compile(r"\bexhaustive\b|\bspread\(|\bshared\b"),
}
"""What each file with tests of a marker contains."""

LONGEST: Final = (
    "test_search_hits.py", "test_shipped_graphs.py", "test_derive.py", "test_ordinances.py", "test_index_client.py",
    "test_adversarial.py", "test_findings.py", "test_quarantine.py", "test_review.py", "test_main.py",
    "test_embedding.py", "test_lint.py", "test_damage.py", "test_pool.py", "test_graph_store.py",
)  # fmt: skip
"""Files that take longest. They begin first, so that no worker has one to do when the others have ended."""


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without a test of the marker that is asked for: to import all takes each worker ten seconds."""
    pattern = TIERS.get(str(config.option.markexpr).partition(" ")[0])
    is_file = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if pattern and is_file and not pattern.search(read(collection_path)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of real data, which are skipped where it is absent, and those that are long by their nature."""
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.exhaustive)
        if item.get_closest_marker("measures_processor_time"):
            item.add_marker(pytest.mark.long)
        for name, pattern in TIERS.items():
            if item.get_closest_marker(name) and not pattern.search(read(item.path)):
                raise pytest.UsageError(f"{item.nodeid} is {name}, but its file does not contain {pattern.pattern}")
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_collection_finish() -> None:
    """Keep the thousands of tests themselves, and all modules, out of what the garbage collector looks through."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    timed = any(item.get_closest_marker(name) for name in ("measures_time", "measures_processor_time"))
    with watched(at_all=not timed, processes=not timed and item.path.parent.name in WITH_PROCESSES):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Lengthen the limits after which an answer is another one, which a busy machine would reach.

    A test of such a limit sets it itself.
    """
    current = _Measurements.current

    def wait_for_measurement(self: _Measurements, wait_s: float, newest: bool) -> Schema:
        return current(self, HANG_S if wait_s >= 1 else wait_s, newest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Measurements, "current", wait_for_measurement)
        patch.setattr(text_check, "READING_S", HANG_S)
        patch.setattr(fair_limiter, "PATIENCE_S", HANG_S)
        for operation in ("status", "rank", "rerank", "embed"):
            patch.setitem(index_client.TIMEOUT_S, operation, HANG_S)
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the project (or at QUADCITE_SHARED); without it the test is skipped."""
    folder = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("needs the real data: no folder ../shared beside the project and QUADCITE_SHARED is not set")
    return folder


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Return a copy of the caller's own of the folder that `build` makes, which it does once for all workers."""
    base = factory.getbasetemp()
    built = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"built-{name}"
    with built.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            partial = built.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)  # of a worker whose build failed
            build(partial)
            partial.rename(built)
    return copy_folder(built, factory.mktemp(name) / "data")


def opened(data_dir: Path) -> KnowledgeGraph:
    """Open a data directory without an embedding model."""
    settings = without_models(data_dir)
    return KnowledgeGraph.open(data_dir, settings)


def shipped(source: str) -> str:
    return str(bundle.folder("fixtures") / source)


def _load_fixtures(graph: KnowledgeGraph) -> None:
    load(graph, "climate", [shipped("climate")])
    load(graph, "wikibase", [shipped("wikibase")], base="climate")


def _load_joined(graph: KnowledgeGraph) -> None:
    load(graph, "wikibase", [shipped("wikibase")], base="climate")
    for source in ("climate", "hansard", "zoning"):
        load(graph, source, [shipped(source), shipped(f"joined/{source}")])
    load(graph, "files", [shipped("files/handbook")])


CONTENTS: Final[dict[str, Callable[[KnowledgeGraph], object]]] = {
    "empty": lambda graph: None,
    "climate": lambda graph: load(graph, "climate", [shipped("climate")]),
    "fixtures": _load_fixtures,
    "parliament": lambda graph: load(graph, "hansard", [shipped("hansard")]),
    "wikidata": lambda graph: load(graph, "wikibase", [shipped("wikidata")]),
    "zoning": lambda graph: load(graph, "zoning", [shipped("zoning")]),
    "utah": lambda graph: load(graph, "zoning", [shipped("zoning")], state="UT", mapping=shipped("zoning/towns.toml")),
    "joined": _load_joined,
}
"""Data directories that many modules begin with, by name."""


def load_once(factory: pytest.TempPathFactory, name: str) -> Path:
    """Return a data directory of the caller's own with one of the `CONTENTS`, which is loaded once for all workers."""

    def build(folder: Path) -> None:
        with opened(folder) as graph:
            CONTENTS[name](graph)

    return build_once(factory, name, build)


@pytest.fixture(scope="session")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures that ship with kg, loaded; there is no embedding model."""
    with opened(load_once(tmp_path_factory, "fixtures")) as graph:
        yield graph


@pytest.fixture(scope="session")
def parliament(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures of Hansard that ship with kg, loaded apart from the others; there is no embedding model."""
    with opened(load_once(tmp_path_factory, "parliament")) as graph:
        yield graph


@pytest.fixture(scope="session")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures of all domains in one graph, with the records that share concepts, places and laws."""
    with opened(load_once(tmp_path_factory, "joined")) as graph:
        yield graph


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    """An empty graph with a store and a query worker of its own, and an index in memory."""
    settings = Settings(data_dir=tmp_path, query_workers=1, _env_file=None)  # type: ignore[call-arg]
    store = OxigraphStore(tmp_path)
    with KnowledgeGraph(settings, store, WordIndex(), QueryPool(store, settings)) as graph:
        yield graph


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of as many megabytes as ``DISK_MB`` of the module says. The test is skipped where none can be mounted."""
    with mount_small_disk(tmp_path / "disk", request.module.DISK_MB) as mounted:
        if mounted is None:
            pytest.skip("file systems cannot be mounted here: it needs root")
        yield mounted
