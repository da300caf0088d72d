"""Damaged files and forged texts are found, a damaged store is not backed up, and kills leave nothing half-written."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyoxigraph import Literal, NamedNode, Quad, Store, Triple

from kg import bundle
from kg.access.actors import HOLDER
from kg.cli import backups
from kg.data_directory import DataDirectory
from kg.errors import (
    ConflictError,
    InvalidInputError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreReadOnlyError,
    StoreVersionError,
)
from kg.integrity import backups as module
from kg.integrity import inspection_child, permutations
from kg.integrity.backup_folder import BackupFolder, Point, StoredFile
from kg.integrity.backups import restore_backup, verify_backups, write_backup
from kg.integrity.doctor import inspect_and_repair, inspect_closed, rebuild_store, repair_files
from kg.integrity.findings import FINDINGS
from kg.integrity.inspection import DAMAGE, Inspection, inspect_store
from kg.search.index_sync import repair_index
from kg.store.commits import HEAD
from kg.store.lock import DirectoryLock
from kg.tools.commands import store_status
from kg.user_graphs import UserGraphs
from kg.vocabulary import KG, PROV_GRAPH, SCHEMA, mint
from loaders.sources import load
from tests.folders import open_graph

pytestmark = pytest.mark.long

LAWS = str(bundle.folder("fixtures") / "climate" / "laws.csv")
RESTORED = {"format.json", "lock", "source-paths.txt", "store"}
DERIVED = {
    f"https://w3id.org/quadcite/graph/{name}"
    for name in ("inf/superclass", "inf/about", "inf/wikidata-properties", "tbox", "shapes")
}
"""Graphs that are written again when the store is opened."""

NOT_READ = ("IDENTITY", "LOG", "OPTIONS")
"""Files that no answer depends on: the engine writes them, and reads at most their names."""


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the laws of the fixtures."""
    folder: Path = tmp_path_factory.mktemp("damage")
    with open_graph(folder / "data") as kg:
        assert load(kg, "climate", [LAWS]).loaded
        done = write_backup(kg, folder / "backup")
    assert done["index"]
    return folder / "backup"


@pytest.fixture
def data(backup: Path, tmp_path: Path) -> Path:
    """A data directory with the laws, as it is on the disk, without the index, which is large."""
    folder = BackupFolder(backup)
    for name, file in folder.load().files.items():
        if not name.startswith("index/"):
            target = tmp_path / "data" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder.find_file(file), target)
    return tmp_path / "data"


@pytest.fixture(scope="module")
def bare(backup: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The backup without the index, which is large."""
    folder = BackupFolder(tmp_path_factory.mktemp("bare") / "backup")
    point = BackupFolder(backup).load()
    files = {name: file for name, file in point.files.items() if not name.startswith("index/")}
    with folder.writing():
        for file in files.values():
            folder.add(BackupFolder(backup).find_file(file))
        folder.write(point.model_copy(update={"files": files}))
    return folder.path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of several levels of files, of which each order and the dictionary have some, without removed terms."""
    folder: Path = tmp_path_factory.mktemp("small") / "store"
    store = Store(str(folder))
    for part in range(3):
        store.extend(
            Quad(
                NamedNode(f"http://example.org/subject/{number}"),
                NamedNode(f"http://example.org/property/{number % 7}"),
                Literal(f"text {number} of more than sixteen bytes") if number % 2 else Literal(number),
                NamedNode(f"http://example.org/graph/{number // 20}"),
            )
            for number in range(part * 200, part * 200 + 200)
        )
        store.flush()
    return folder


def link(folder: Path, target: Path, without: str = "") -> Path:
    """Link the files of `folder` into `target`, except one, which is to be written otherwise."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and name.as_posix() != without:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target / name)
    return target


def flip(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0x10
    return bytes(changed)


def replace(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Write a changed file in place of one that may be linked elsewhere."""
    content = change(path.read_bytes())
    path.unlink()
    path.write_bytes(content)


def read(store: Path, folder: Path) -> list[tuple[str, str]]:
    """Read a store as the process of `inspect_store` does, in this process: the problems, by kind and place."""
    settings = {"task": "inspect", "store": str(store), "content": False, "folder": str(folder), "max_bytes": 1}
    assert inspection_child.work(settings, b"") == {}
    lines = [json.loads(line) for line in (folder / FINDINGS).read_text().splitlines()]
    return [(line["kind"], line["where"]) for line in lines if line["kind"] != "counts"]


def copy_backup(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def kinds(found: Inspection) -> set[str]:
    return {problem.kind for problem in found.problems}


def test_a_flipped_byte_in_each_file_of_a_store_is_found_by_reading(small: Path, tmp_path: Path) -> None:
    assert read(small, tmp_path) == []
    chance = random.Random(16)
    tables = 0
    for path in sorted(small.iterdir()):
        content = path.read_bytes()
        if not content or path.name.startswith(NOT_READ) or path.suffix == ".log":
            continue
        # The last part of a table has filters, which only make lookups faster, and a footer with unused bytes.
        place = chance.randrange(len(content) * 6 // 10)
        target = link(small, tmp_path / path.name, without=path.name)
        (target / path.name).write_bytes(flip(content, place))
        assert read(target, tmp_path), f"{path.name}: byte {place} of {len(content)}"
        tables += path.suffix == ".sst"
    assert tables >= 8  # six orders, the dictionary, the list of graphs


def test_a_flipped_byte_in_each_file_of_a_backup_is_found_by_its_checksum(bare: Path, tmp_path: Path) -> None:
    folder = BackupFolder(copy_backup(bare, tmp_path / "copy"))
    assert not verify_backups(folder.path).problems
    chance = random.Random(16)
    for name, file in folder.load().files.items():
        path = folder.find_file(file)
        if not (content := path.read_bytes()):
            continue
        replace(path, lambda content: flip(content, chance.randrange(len(content))))
        assert folder.check(file) is not None
        found = module._check_files(folder, [folder.load()])
        assert [name in problem.where for problem in found] == [True]
        replace(path, lambda _: content)
    [listed] = (folder.path / "points").iterdir()
    original = listed.read_bytes()
    for change in (
        lambda content: flip(content, len(content) // 2),
        lambda content: content[:-2],
        lambda _: b"",
        lambda _: b"[" * 100_000,
        lambda _: b"[]",
    ):
        replace(listed, change)
        assert {problem.kind for problem in verify_backups(folder.path).problems} == {"file"}
        assert not folder.list_points()
        with pytest.raises(StoreDamagedError):
            folder.load()
        replace(listed, lambda _: original)
    folder.find_file(folder.load().files["store/CURRENT"]).unlink()
    assert any("store/CURRENT" in problem.where for problem in verify_backups(folder.path).problems)


def test_a_healthy_data_directory_and_backup_have_no_problems(backup: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert restore_backup(backup, data)["index"]
    found = inspect_closed(data)
    assert not found.problems
    assert found.counts["content"]
    assert found.counts["texts"] == 10
    with open_graph(data) as kg:
        document = inspect_and_repair(kg, read=False, repair=False)
    assert document["ok"]
    assert document["checked"]["index"] == "compared"


@pytest.mark.parametrize("change", ["truncated", "missing"])
def test_truncated_and_missing_files_are_found(small: Path, tmp_path: Path, change: str) -> None:
    largest = max(small.glob("*.sst"), key=lambda path: path.stat().st_size)
    target = link(small, tmp_path / "store", without=largest.name)
    if change == "truncated":
        content = largest.read_bytes()
        (target / largest.name).write_bytes(content[: len(content) // 2])
    assert read(target, tmp_path)


def read_quads(data_dir: Path) -> set[Quad]:
    """Read all quads except the counters of the last commit, which are counted again if a repair loses graphs."""
    return {quad for quad in Store.read_only(str(data_dir / "store")) if quad.subject != HEAD}


def read_counters(data_dir: Path) -> set[Quad]:
    """Read the counters of the last commit."""
    return set(Store.read_only(str(data_dir / "store")).quads_for_pattern(HEAD, None, None, PROV_GRAPH))


def test_damaged_orders_are_repaired_and_lost_records_are_loaded_again(data: Path, tmp_path: Path) -> None:
    """A store is rebuilt from the orders that can be read; what no order has any more is named, with its file."""
    before = read_quads(data)
    tables = sorted((data / "store").glob("*.sst"), key=lambda path: path.stat().st_size)
    outcomes = set()
    for table in tables[-4:]:
        folder = tmp_path / table.name
        link(data, folder, without=f"store/{table.name}")
        content = table.read_bytes()
        (folder / "store" / table.name).write_bytes(flip(content, len(content) // 3))
        try:
            _, lost = rebuild_store(DataDirectory(folder))
        except StoreError:  # the provenance is lost: nothing can be repaired
            assert inspect_closed(folder).is_damaged
            continue
        graphs = {problem.where for problem in lost}
        outcomes.add(bool(graphs))
        assert graphs or read_counters(folder) == read_counters(data)
        after = read_quads(folder)
        assert after <= before
        assert {str(quad.graph_name)[1:-1] for quad in before - after} - DERIVED == graphs - DERIVED
        if graphs - DERIVED:
            with open_graph(folder) as kg:
                document = inspect_and_repair(kg, read=True, repair=True)
                named = [problem for problem in document["problems"] if "/graph/src/" in problem["where"]]
                assert all(problem["commands"] == [f"kg load climate {LAWS}"] for problem in named)
                load(kg, "climate", [LAWS])
                assert inspect_and_repair(kg, read=True, repair=False)["problems"] == []
    assert False in outcomes


def test_a_flipped_byte_in_the_log_of_a_killed_store_is_found_before_it_is_opened(data: Path) -> None:
    """The engine opens such a store without an error, and without the commits after the damage."""
    script = (
        "import os, signal, sys; from pyoxigraph import Store; store = Store(sys.argv[1])\n"
        "for n in range(30): store.update('INSERT DATA { GRAPH <urn:g> { <urn:s> <urn:p> %d } }' % n)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(data / "store")], check=False)
    log = max((data / "store").glob("*.log"), key=lambda path: path.stat().st_size)
    assert "log" not in kinds(inspect_closed(data))
    replace(log, lambda content: flip(content, len(content) // 2))
    assert len(list(Store.read_only(str(data / "store")).quads_for_pattern(None, None, None, NamedNode("urn:g")))) < 30
    assert [problem.where for problem in inspect_closed(data).problems if problem.kind == "log"] == [log.name]
    assert repair_files(data, inspect_closed(data))[0] == []
    largest = max((data / "store").glob("*.sst"), key=lambda path: path.stat().st_size)
    replace(largest, lambda content: flip(content, len(content) // 3))
    repaired, remaining = repair_files(data, inspect_closed(data))
    assert repaired
    assert log.name in {problem.where for problem in remaining.problems if problem.kind == "log"}


COMMITS_AND_DIES = """
import os, sys
from pathlib import Path
from pyoxigraph import Literal, NamedNode, Quad
from kg.store.oxigraph import OxigraphStore
graph = NamedNode("urn:g")
store = OxigraphStore(Path(sys.argv[1]), idle_s=3_600)  # it flushes nothing
store.commit({graph: [Quad(graph, graph, Literal("x" * 5_000), graph)]})
os._exit(0)
"""


def test_damaged_log_is_kept_and_named_until_it_is_removed(data: Path) -> None:
    """Opening a store whose log is damaged loses acknowledged commits, and removes the log."""
    subprocess.run([sys.executable, "-c", COMMITS_AND_DIES, str(data)], check=True)
    log = max((data / "store").glob("*.log"), key=lambda path: path.stat().st_size)
    replace(log, lambda content: flip(content, len(content) // 2))
    for _ in range(2):  # also at the next start, when the engine has removed the log
        with open_graph(data) as kg:
            assert not kg.store.graph(NamedNode("urn:g"))
            [kept] = kg.store.damaged_logs
            assert kept.name.endswith(log.name)
            assert any(kept.name in problem for problem in store_status(kg)["problems"])
            assert ("commits", kept.name) in {
                (problem["kind"], problem["where"])
                for problem in inspect_and_repair(kg, read=False, repair=False)["problems"]
            }
        assert not log.exists()
        assert kinds(inspect_closed(data)) == {"commits"}
    kept.unlink()
    assert not inspect_closed(data).problems
    with open_graph(data) as kg:
        assert not kg.store.damaged_logs


COMMITS_UNTIL_KILLED = """
import random, sys
from pathlib import Path
from pyoxigraph import Literal, NamedNode, Quad
from kg.store.oxigraph import OxigraphStore
chance = random.Random(int(sys.argv[2]))
with OxigraphStore(Path(sys.argv[1]), flush_quads=4_000, idle_s=0.05) as store:
    print(len(store.damaged_logs), store.statistics().generation, flush=True)
    while True:
        graph = NamedNode(f"urn:g{chance.randrange(20)}")
        values = (chance.randbytes(chance.choice((10, 400, 3_000))).hex() for _ in range(chance.choice((1, 40, 900))))
        store.commit({graph: [Quad(graph, graph, Literal(value), graph) for value in values]})
        print(store.statistics().generation, flush=True)
"""


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=[pytest.mark.exhaustive, pytest.mark.timeout(900)])])
def test_a_kill_loses_no_acknowledged_commit_and_is_no_damage(tmp_path: Path, kills: int) -> None:
    """The engine recycles its logs: behind their last fragment are bytes of older ones."""
    chance, acknowledged = random.Random(kills), 0
    for number in range(kills):
        command = [sys.executable, "-c", COMMITS_UNTIL_KILLED, str(tmp_path), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            damaged, generation = map(int, writer.stdout.readline().split())
            assert not damaged
            assert generation >= acknowledged
            time.sleep(chance.uniform(0, 2.5))
            writer.kill()
            acknowledged = max(map(int, writer.stdout.read().split()), default=generation)
    assert not kinds(inspect_closed(tmp_path)) & DAMAGE
    assert acknowledged > kills


def test_rebuild_that_is_killed_is_finished_by_the_next_start(data: Path) -> None:
    """The old store has lost its name then, and the new one has not got it yet."""
    quads = read_quads(data)
    for name, is_found in (("store.rebuilt", True), ("store.partial", False)):
        shutil.copytree(data / "store", data / name)
        (data / "store").rename(data / "store-damaged-1")
        if not is_found:
            assert "store-damaged-1" in inspect_closed(data).problems[0].message
            with pytest.raises(StoreError):
                open_graph(data)
            break
        open_graph(data).close()
        assert quads <= read_quads(data)
        shutil.rmtree(data / "store-damaged-1")
    (data / "store-damaged-1").rename(data / "store")
    leftovers = [data / name for name in ("store.rebuilt", "store.partial", ".restoring", ".replaced")]
    for leftover in leftovers:
        shutil.copytree(data / "store", leftover, dirs_exist_ok=True)
    open_graph(data).close()
    assert not any(leftover.exists() for leftover in leftovers)


def test_rebuild_that_is_killed_between_its_steps_loses_nothing(data: Path) -> None:
    quads = {quad for quad in read_quads(data) if quad.graph_name != PROV_GRAPH}
    script = (
        "import os, signal, sys; from pathlib import Path; from kg.data_directory import DataDirectory\n"
        "from kg.integrity.doctor import rebuild_store\n"
        "left, rename = int(sys.argv[2]), Path.rename\n"
        "def counted(path, target):\n"
        "    global left; left -= 1\n"
        "    os.kill(os.getpid(), signal.SIGKILL) if left < 0 else rename(path, target)\n"
        "Path.rename = counted; rebuild_store(DataDirectory(Path(sys.argv[1])))"
    )
    for steps in (1, 2):
        run = subprocess.run([sys.executable, "-c", script, str(data), str(steps)], check=False)
        assert run.returncode == -signal.SIGKILL
        assert not inspect_closed(data).problems or steps == 2  # what was inferred is written at the next start
        assert (data / "store").is_dir()
    open_graph(data).close()
    found = inspect_closed(data)
    assert not found.is_damaged
    assert repair_files(data, found)[0] == [], "another repair changes nothing"
    assert quads <= read_quads(data)


def test_a_forged_text_is_named_and_the_next_load_restores_it(data: Path) -> None:
    engine = Store(str(data / "store"))
    [quad, *_] = sorted(engine.quads_for_pattern(None, SCHEMA.text, None, None), key=str)
    engine.remove(quad)
    engine.add(Quad(quad.subject, quad.predicate, Literal("Forged."), quad.graph_name))
    engine.flush()
    del engine
    found = inspect_closed(data)
    by_kind = {problem.kind: problem for problem in found.problems}
    assert isinstance(quad.subject, NamedNode)
    assert (by_kind["text"].where, by_kind["changed"].where) == (quad.subject.value, str(quad.graph_name)[1:-1])
    assert by_kind["changed"].commands == (f"kg load climate {LAWS}",)
    assert not found.is_damaged
    with open_graph(data) as kg, pytest.raises(StoreDamagedError, match="kg:contentSha256"):
        write_backup(kg, data.parent / "of-forged")
    assert not BackupFolder(data.parent / "of-forged").list_points()
    with open_graph(data) as kg:
        assert load(kg, "climate", [LAWS]).loaded == 0  # it skips what its source has not changed
        document = inspect_and_repair(kg, read=True, repair=True)
        assert not document["ok"]
        assert document["repaired"]
        assert load(kg, "climate", [LAWS]).loaded == 1
        assert inspect_and_repair(kg, read=True, repair=False)["ok"]
        assert quad in kg.store.graph(NamedNode(by_kind["changed"].where))


def test_what_a_user_graph_forges_of_a_text_is_no_damage_of_the_source(data: Path) -> None:
    forged = mint("graph", "user", "forger")
    with open_graph(data) as kg:
        rows = kg.store.query("SELECT ?unit ?text ?graph { GRAPH ?graph { ?unit schema:text ?text } } LIMIT 1").rows  # type: ignore[union-attr]
        [[unit, text, _]] = rows
        assert isinstance(unit, NamedNode)
        said = [
            Triple(unit, KG.textSha256, Literal("f" * 64)),
            Triple(unit, KG.start, Literal("one")),
            Triple(NamedNode("urn:own"), SCHEMA.text, Literal("Own.")),
            Triple(NamedNode("urn:own"), KG.textSha256, Literal("f" * 64)),
        ]
        UserGraphs(kg).put(forged, said, HOLDER)
        repair_index(kg.store, kg.search)  # the backup has none
        problems = inspect_and_repair(kg, read=True, repair=False)["problems"]
        assert {(problem["kind"], problem["where"]) for problem in problems} == {("user graph", forged.value)}
        assert any(unit.value in problem["message"] for problem in problems)
        write_backup(kg, data.parent / "of-forged")
    graph = next(iter(row[2] for row in rows))
    engine = Store(str(data / "store"))
    engine.remove(Quad(unit, SCHEMA.text, text, graph))
    engine.add(Quad(unit, SCHEMA.text, Literal("Damaged."), graph))
    engine.flush()
    del engine
    assert {("text", unit.value), ("user graph", forged.value)} <= {
        (problem.kind, problem.where) for problem in inspect_closed(data).problems
    }


def test_what_is_derived_is_repaired(data: Path) -> None:
    """Inferred quads and the index follow from the store: the doctor finds differences and removes them."""
    engine = Store(str(data / "store"))
    inferred = NamedNode("https://w3id.org/quadcite/graph/inf/superclass")
    engine.remove(next(engine.quads_for_pattern(None, None, None, inferred)))
    engine.flush()
    del engine
    assert kinds(inspect_closed(data)) == {"derived"}
    with open_graph(data) as kg:
        assert {problem["kind"] for problem in inspect_and_repair(kg, read=True, repair=False)["problems"]} == {
            "derived",
            "index",
        }
        document = inspect_and_repair(kg, read=True, repair=True)
        assert document["ok"], document["problems"]
        assert len(document["repaired"]) == 2


def test_missing_provenance_is_found(data: Path) -> None:
    engine = Store(str(data / "store"))
    graph = next(quad.subject for quad in engine.quads_for_pattern(None, KG.sourceSha256, None, PROV_GRAPH))
    for quad in list(engine.quads_for_pattern(graph, None, None, PROV_GRAPH)):
        if quad.predicate != KG.contentSha256:
            engine.remove(quad)
    engine.flush()
    del engine
    assert "shape" in kinds(inspect_closed(data))


def test_second_backup_to_a_folder_is_refused_while_the_first_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = module._add_parts

    def add_twice(*arguments: Any) -> dict[str, StoredFile]:
        with pytest.raises(ConflictError):
            write_backup(kg, tmp_path / "copy")
        return add(*arguments)

    monkeypatch.setattr(module, "_add_parts", add_twice)
    with open_graph(data) as kg:
        quads = kg.store.statistics().quads
        assert write_backup(kg, tmp_path / "copy")["quads"] == quads
    assert not verify_backups(tmp_path / "copy").problems
    assert restore_backup(tmp_path / "copy", tmp_path / "restored")["quads"] == quads
    assert {path.name for path in tmp_path.iterdir()} == {"copy", "data", "restored"}
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {
        "backup.json",
        "files",
        "lock",
        "points",
        "readers",
    }


def test_index_that_is_copied_wrongly_is_found(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that copies it computes the checksums of what it reads."""
    with open_graph(data) as kg:
        copy = kg.search.copy

        def copy_wrongly(target: Path, known: Collection[str]) -> dict[str, str]:
            read = copy(target, known)
            (target / "index.json").write_text("{}")
            return read

        monkeypatch.setattr(kg.search, "copy", copy_wrongly)
        with pytest.raises(StoreDamagedError, match=r"index\.json"):
            write_backup(kg, tmp_path / "copy")


def test_a_damaged_store_is_not_backed_up(data: Path, tmp_path: Path) -> None:
    largest = max((data / "store").glob("*.sst"), key=lambda path: path.stat().st_size)
    replace(largest, lambda content: flip(content, len(content) // 3))
    with open_graph(data) as kg, pytest.raises(StoreDamagedError) as raised:
        write_backup(kg, tmp_path / "copy")
    assert largest.name in str(raised.value)
    assert not BackupFolder(tmp_path / "copy").list_points()


def test_status_of_a_damaged_store_names_the_problem_and_takes_little_memory(data: Path) -> None:
    """To count over a damaged block the engine takes all memory, so that must not happen in a server's own process."""
    texts = f"SELECT ?unit {{ GRAPH ?g {{ ?unit {SCHEMA.text} ?text }} }}"
    for table in sorted((data / "store").glob("*.sst")):
        content = table.read_bytes()
        damaged = bytearray(content)
        blocks = slice(100, len(content) * 8 // 10, 4_000)  # each block, but not the index at the end
        damaged[blocks] = bytes(byte ^ 1 for byte in damaged[blocks])
        table.write_bytes(damaged)
        try:
            engine = Store.read_only(str(data / "store"))
            assert next(engine.quads_for_pattern(HEAD, None, None, PROV_GRAPH), None)
        except RuntimeError:  # a table that the store needs to be opened
            table.write_bytes(content)
            continue
        try:
            assert len(list(permutations.select_rows(engine, texts))) == 10
        except RuntimeError:
            break
        table.write_bytes(content)
    else:
        pytest.fail("no table has the order by properties")
    with open_graph(data) as kg:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        limits = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, limits[1]))  # if it fails, it ends this process alone
        try:
            found = store_status(kg)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, limits)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert found["text_units"] is None
    assert any("kg doctor" in problem for problem in found["problems"])


def test_a_damaged_backup_is_not_restored(bare: Path, tmp_path: Path) -> None:
    damaged = BackupFolder(copy_backup(bare, tmp_path / "backup"))
    table = next(file for name, file in damaged.load().files.items() if name.endswith(".sst"))
    replace(damaged.find_file(table), lambda content: flip(content, len(content) - 1))
    with pytest.raises(StoreDamagedError):
        restore_backup(damaged.path, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_data_directory_on_a_read_only_disk_is_examined(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with errors is often mounted read-only."""

    def refuse(*_: object) -> None:
        raise StoreReadOnlyError("Read-only file system.")

    monkeypatch.setattr("kg.cli.backups.connect", refuse)
    found = backups._inspect(data, repair=False)
    assert found["ok"]
    assert found["checked"]["quads"]
    with pytest.raises(StoreReadOnlyError):
        backups._inspect(data, repair=True)


def test_a_backup_with_links_is_not_restored(bare: Path, tmp_path: Path) -> None:
    """What the links lead to is not in the backup."""
    linked = BackupFolder(copy_backup(bare, tmp_path / "backup"))
    path = linked.find_file(linked.load().files["store/CURRENT"])
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreDamagedError):
        restore_backup(linked.path, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_backup_of_a_newer_version_is_not_restored(bare: Path, data: Path, tmp_path: Path) -> None:
    newer = BackupFolder(copy_backup(bare, tmp_path / "newer"))
    for text, error in (('{"version": 99}', StoreVersionError), ("{", StoreDamagedError)):
        (tmp_path / "format.json").write_text(text)
        with newer.writing():
            point = newer.load()
            files = {**point.files, "format.json": newer.add(tmp_path / "format.json")}
            newer.write(point.model_copy(update={"files": files}))
        with pytest.raises(error):
            restore_backup(newer.path, data, replace=True)
    (newer.path / "backup.json").write_text('{"version": 99}')
    with pytest.raises(StoreVersionError):
        restore_backup(newer.path, data, replace=True)
    DirectoryLock(data).release()


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "store/../../escaped", "."])
def test_names_of_files_stay_in_the_data_directory(bare: Path, name: str) -> None:
    fields = BackupFolder(bare).load().model_dump()
    with pytest.raises(ValidationError):
        Point.model_validate({**fields, "files": {name: fields["files"]["format.json"]}})


def test_a_backup_inside_the_data_directory_is_not_removed_by_its_restore(bare: Path, data: Path) -> None:
    inside = copy_backup(bare, data / "backups" / "monday")
    with pytest.raises(InvalidInputError):
        restore_backup(inside, data, replace=True)
    assert not verify_backups(inside).problems
    with open_graph(data) as kg, pytest.raises(InvalidInputError):
        write_backup(kg, data / "backups" / "tuesday")


def test_restore_replaces_only_a_data_directory_that_nobody_has_open(bare: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConflictError):
        restore_backup(bare, data)
    lock = DirectoryLock(data)
    with pytest.raises(StoreLockedError):
        restore_backup(bare, data, replace=True)
    lock.release()
    (data / "citations").mkdir()
    restore_backup(bare, data, replace=True)
    assert {path.name for path in data.iterdir()} == RESTORED
    foreign = tmp_path / "home"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("mine")
    with pytest.raises(StoreError):
        restore_backup(bare, foreign, replace=True)
    assert (foreign / "letter.txt").read_text() == "mine"


KILLED = """
import sys, os, signal
from pathlib import Path
from kg.integrity import backup_folder, backups
left = int(sys.argv[4])
def counted(function):
    def call(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call
for module in (backup_folder, backups):
    module.copy_with_holes = counted(module.copy_with_holes)
backups._move = counted(backups._move)
backup_folder.write_file = counted(backup_folder.write_file)
if sys.argv[1] == "restore":
    backups.restore_backup(Path(sys.argv[2]), Path(sys.argv[3]), replace=True)
else:
    from tests.adversarial.test_damage import open_graph
    with open_graph(Path(sys.argv[2])) as kg:
        backups.write_backup(kg, Path(sys.argv[3]))
"""


def run_killed(*arguments: str | Path) -> int:
    return subprocess.run([sys.executable, "-c", KILLED, *map(str, arguments)], check=False).returncode


def test_a_backup_that_is_killed_adds_no_point(bare: Path, data: Path, tmp_path: Path) -> None:
    copies = sum(not name.endswith("/") for name in BackupFolder(bare).load().files)
    for after in (0, 5, copies // 2):
        assert run_killed("backup", data, tmp_path / "copy", after) == -signal.SIGKILL
        assert not BackupFolder(tmp_path / "copy").list_points()
    with open_graph(data) as kg:
        assert write_backup(kg, tmp_path / "copy")["new"]
    assert not verify_backups(tmp_path / "copy").problems
    with open_graph(data) as kg:
        UserGraphs(kg).put(mint("graph", "user", "me"), [Triple(NamedNode("urn:a"), KG.start, Literal(1))], HOLDER)
    assert run_killed("backup", data, tmp_path / "copy", 3) == -signal.SIGKILL
    assert [point.number for point in BackupFolder(tmp_path / "copy").list_points()] == [1]
    with open_graph(data) as kg:
        assert write_backup(kg, tmp_path / "copy")["number"] == 2
    assert not (tmp_path / "copy" / "incoming").exists()
    assert not verify_backups(tmp_path / "copy").problems


def test_a_restore_that_is_killed_leaves_the_old_data_or_no_data_directory(bare: Path, data: Path) -> None:
    files = len(BackupFolder(bare).load().files)
    for after in (3, files + 1, files + 4):  # while it copies, moves the old content away, and moves the new one in
        assert run_killed("restore", bare, data, after) == -signal.SIGKILL
        if (data / "format.json").exists():
            assert not inspect_store(DataDirectory(data), content=False).problems
        else:
            with pytest.raises(StoreError):
                DirectoryLock(data)
    restore_backup(bare, data)
    assert {path.name for path in data.iterdir()} == RESTORED
    assert not inspect_store(DataDirectory(data), content=False).problems
