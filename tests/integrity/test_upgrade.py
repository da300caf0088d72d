"""`kg upgrade` names the formats, backs up, writes older parts again, and goes on after a kill."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.data_directory import DataDirectory
from kg.errors import InvalidInputError, StoreError, StoreLockedError, StoreVersionError
from kg.integrity import upgrade as module
from kg.integrity.backup_folder import BackupFolder
from kg.integrity.backups import restore_backup
from kg.integrity.upgrade import Part, plan_upgrade, upgrade
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.shipped import build_version
from kg.store.lock import DirectoryLock
from kg.vocabulary import OWL, SCHEMA, TBOX_GRAPH
from tests.folders import open_graph


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    """A data directory with the formats of this version."""
    graph = NamedNode("urn:g")
    with open_graph(tmp_path / "data") as kg:
        kg.store.commit({graph: [Quad(NamedNode("urn:s"), SCHEMA.text, Literal("A text."), graph)]})
    return DataDirectory(tmp_path / "data")


def open_again(directory: DataDirectory) -> None:
    open_graph(directory.path).close()


def write_index(directory: DataDirectory, version: int) -> None:
    (directory.index / "shard-1").mkdir(parents=True, exist_ok=True)
    (directory.index / "shard-1" / "index.json").write_text(json.dumps({"version": version}))


def write_format(path: Path, version: int) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {version}")


def make_current(directory: DataDirectory) -> None:
    write_index(directory, DataDirectory.index.version)
    write_format(directory.derivations, DataDirectory.derivations.version)


def make_older(directory: DataDirectory) -> None:
    write_index(directory, DataDirectory.index.version - 1)
    write_format(directory.derivations, 0)
    directory.schema.write_text("{}")
    directory.mentions.mkdir()
    engine = Store(str(directory.store))
    engine.remove(build_version())
    engine.add(Quad(TBOX_GRAPH, OWL.versionInfo, Literal("earlier"), TBOX_GRAPH))
    engine.flush()


def list_due(parts: tuple[Part, ...]) -> set[str]:
    return {part.name for part in parts if part.action != "none"}


def list_files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_a_current_directory_has_nothing_to_do(directory: DataDirectory, tmp_path: Path) -> None:
    make_current(directory)
    plan = plan_upgrade(directory)
    assert not plan.is_due
    done = upgrade(directory, tmp_path / "backups", lambda: pytest.fail("nothing is to be opened"))
    assert (done["due"], done["backup"]) == (False, None)
    assert not (tmp_path / "backups").exists()


def test_a_dry_run_names_the_older_parts_and_changes_nothing(directory: DataDirectory) -> None:
    make_older(directory)
    before = list_files(directory.path)
    plan = plan_upgrade(directory)
    assert list_due(plan.parts) == {
        "ontology, codes and shapes", "search index", "state of derivations", "files of earlier versions",
    }  # fmt: skip
    assert {name for part in plan.parts for name in part.removes} == {"derivations.sqlite", "mentions", "schema.json"}
    document = plan.to_dict()
    assert document["seconds"] > 0
    assert document["bytes"] > 0
    assert document["backup_bytes"] > 0
    changed = {path for path, time in list_files(directory.path).items() if before.get(path) != time}
    assert not {path for path in changed if not Path(path).name.startswith("LOG")}


@pytest.mark.long
def test_an_upgrade_backs_up_first_and_removes_what_is_not_written_any_more(
    directory: DataDirectory, tmp_path: Path
) -> None:
    make_older(directory)
    seen: list[bool] = []

    def finish() -> None:
        seen.append(directory.upgrade.exists())
        open_again(directory)
        make_current(directory)

    done = upgrade(directory, tmp_path / "backups", finish)
    assert seen == [True]
    assert done["backup"] == {"folder": str(tmp_path / "backups"), "point": 1}
    assert not directory.upgrade.exists()
    assert not directory.schema.exists()
    assert not directory.mentions.exists()
    assert not plan_upgrade(directory).is_due
    restore_backup(tmp_path / "backups", tmp_path / "former")
    assert "ontology, codes and shapes" in list_due(plan_upgrade(DataDirectory(tmp_path / "former")).parts)
    open_again(DataDirectory(tmp_path / "former"))


@pytest.mark.long
def test_without_a_folder_no_backup_is_written(directory: DataDirectory) -> None:
    make_older(directory)
    assert upgrade(directory, None, lambda: open_again(directory))["backup"] is None


KILLED = """
import os, signal, sys
from pathlib import Path
from kg.data_directory import DataDirectory
from kg.integrity import upgrade
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "before":
    upgrade._run_steps = kill
upgrade.upgrade(DataDirectory(Path(sys.argv[1])), Path(sys.argv[3]), kill)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.long
def test_a_killed_upgrade_goes_on_with_the_backup_that_it_began_with(
    directory: DataDirectory, tmp_path: Path, moment: str
) -> None:
    make_older(directory)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(directory.path), moment, str(tmp_path / "backups")],
        check=False,
        env=os.environ,
    )
    assert killed.returncode == -signal.SIGKILL
    assert plan_upgrade(directory).begun
    opened: list[bool] = []

    def finish() -> None:
        open_again(directory)
        opened.append(True)

    done = upgrade(directory, tmp_path / "backups", finish)
    assert opened
    assert done["backup"]["point"] == 1
    assert [point.number for point in BackupFolder(tmp_path / "backups").list_points()] == [1]
    assert not plan_upgrade(directory).begun


@pytest.mark.parametrize("part", ["format", "index", "derivations", "load_queue", "tokens"])
@pytest.mark.long
def test_a_part_of_a_newer_version_is_refused_by_name(directory: DataDirectory, tmp_path: Path, part: str) -> None:
    make_older(directory)
    if part == "format":
        directory.format.write_text('{"version": 99}')
    elif part == "index":
        write_index(directory, 99)
    elif part == "tokens":
        directory.tokens.parent.mkdir()
        directory.tokens.write_text('{"version": 99}')
    else:
        write_format(getattr(directory, part), 99)
    before = list_files(directory.path)
    path = directory.path if part == "format" else directory.path / getattr(DataDirectory, part).name
    for action in (plan_upgrade, lambda each: upgrade(each, tmp_path / "backups", lambda: None)):
        with pytest.raises(StoreVersionError, match="99") as raised:
            action(directory)
        assert str(path) in str(raised.value)
    assert before.keys() - list_files(directory.path).keys() == set()
    assert not (tmp_path / "backups").exists()


@pytest.mark.long
def test_steps_between_formats_run_in_order_and_again_after_a_kill(
    directory: DataDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one format yet, so the steps of this test are made up."""
    make_current(directory)
    monkeypatch.setattr(DataDirectory, "format", replace(DataDirectory.format, version=3))
    ran: list[int] = []

    def fail(_: DataDirectory) -> None:
        ran.append(2)
        if ran.count(2) == 1:
            raise OSError("killed")

    with pytest.raises(InvalidInputError):
        plan_upgrade(directory)
    monkeypatch.setattr(module, "STEPS", {1: lambda _: ran.append(1), 2: fail})
    with pytest.raises(StoreVersionError, match="kg upgrade"):
        DirectoryLock(directory.path)
    with pytest.raises(OSError, match="killed"):
        upgrade(directory, None, lambda: None)
    assert json.loads(directory.format.read_text()) == {"version": 2}
    upgrade(directory, None, lambda: None)
    assert ran == [1, 2, 2]
    assert json.loads(directory.format.read_text()) == {"version": 3}
    DirectoryLock(directory.path).release()


@pytest.mark.long
def test_an_open_directory_is_not_upgraded(directory: DataDirectory, tmp_path: Path) -> None:
    make_older(directory)
    with DirectoryLock(directory.path), pytest.raises(StoreLockedError):
        upgrade(directory, tmp_path / "backups", lambda: None)


@pytest.mark.long
def test_a_replica_is_not_upgraded(directory: DataDirectory) -> None:
    directory.replica.write_text("{}")
    with pytest.raises(StoreError, match="primary"):
        plan_upgrade(directory)
    with pytest.raises(StoreError, match="kg replica"):
        KnowledgeGraph.open(directory.path, open_graph(directory.path.parent / "other").settings)
