"""Points of a folder of backups: incremental, verified, restored to equal graphs, pruned, and safe on a full disk."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple

from kg.access.actors import HOLDER
from kg.errors import ConflictError, InvalidInputError, NotFoundError, QuadciteError
from kg.integrity.backup_folder import BackupFolder, Point, Retention, StoredFile, encode_point, parse_point
from kg.integrity.backups import (
    choose_retention,
    list_backups,
    list_known_backups,
    restore_backup,
    verify_backups,
    write_backup,
)
from kg.integrity.compaction import compact
from kg.knowledge_graph import KnowledgeGraph
from kg.user_graphs import UserGraphs
from kg.vocabulary import KG, mint
from tests.adversarial.small_disk import SmallDisk
from tests.folders import open_graph, without_models

DISK_MB = 64


pytestmark = pytest.mark.usefixtures("without_index")


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "data") as opened:
        yield opened


def put(kg: KnowledgeGraph, name: str, *numbers: int) -> None:
    triples = [Triple(NamedNode(f"urn:{name}:{number}"), KG.start, Literal(number)) for number in numbers]
    UserGraphs(kg).put(mint("graph", "user", name), triples, HOLDER)


def hash_graphs(kg: KnowledgeGraph) -> dict[str, int]:
    """Sum up each graph without regard to the order of its quads."""
    return {graph.value: hash(frozenset(kg.store.graph(graph))) for graph in kg.store.graphs()}


@pytest.mark.long
def test_a_second_point_has_only_what_changed_and_both_are_restored(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = BackupFolder(tmp_path / "backups")
    put(kg, "one", *range(1000))
    first, before = write_backup(kg, folder.path), hash_graphs(kg)
    put(kg, "two", 1)
    second, after = write_backup(kg, folder.path), hash_graphs(kg)
    assert (first["number"], second["number"]) == (1, 2)
    assert second["generation"] == first["generation"] + 1
    assert second["added"] < first["added"]  # merges by the engine write other tables again
    tables = {file for name, file in folder.load(1).files.items() if name.endswith(".sst")}
    assert tables & {*folder.load(2).files.values()}
    assert verify_backups(folder.path).counts["points"] == 2
    for number, graphs in ((1, before), (2, after), (None, after)):
        restored = tmp_path / f"restored-{number}"
        done = restore_backup(folder.path, restored, number=number)
        assert done["point"] == number or number is None
        with open_graph(restored) as copy:
            assert hash_graphs(copy) == graphs
            assert copy.store.statistics().generation == done["generation"]


@pytest.mark.long
def test_files_of_the_data_directory_and_of_points_are_not_the_same_ones(kg: KnowledgeGraph, tmp_path: Path) -> None:
    """A block of the disk that is damaged must not damage both."""
    write_backup(kg, tmp_path / "backups")
    ours = {path.stat().st_ino for path in (tmp_path / "data").rglob("*")}
    assert not ours & {path.stat().st_ino for path in (tmp_path / "backups").rglob("*")}


@pytest.mark.long
def test_nothing_is_added_while_nothing_changes(kg: KnowledgeGraph, tmp_path: Path) -> None:
    first = write_backup(kg, tmp_path / "backups", read=False)
    contents = BackupFolder(tmp_path / "backups").list_contents()
    again = write_backup(kg, tmp_path / "backups", read=True)
    assert (again["new"], again["number"]) == (False, first["number"])
    assert (first["read"], again["read"]) == (False, True)
    assert again["confirmed"] >= first["confirmed"]
    assert BackupFolder(tmp_path / "backups").list_contents() == contents


def test_pruned_points_take_their_files_with_them(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = BackupFolder(tmp_path / "backups")
    for number in range(4):
        put(kg, "changing", number)
        done = write_backup(kg, folder.path, read=False, retention=Retention(newest=2))
    assert [point["number"] for point in list_backups(folder.path)["points"]] == [4, 3]
    assert done["removed"] == [2]
    used = {file.sha256 for point in folder.list_points() for file in point.files.values()}
    assert folder.list_contents() == used
    with pytest.raises(NotFoundError):
        restore_backup(folder.path, tmp_path / "restored", number=1)


@pytest.mark.long
def test_nothing_is_pruned_while_another_process_reads(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = BackupFolder(tmp_path / "backups")
    write_backup(kg, folder.path, read=False)
    put(kg, "changing", 1)
    with folder.reading():
        assert write_backup(kg, folder.path, read=False, retention=Retention(newest=1))["removed"] == []
        assert len(folder.list_points()) == 2
    put(kg, "changing", 2)
    assert write_backup(kg, folder.path, read=False, retention=Retention(newest=1))["removed"] == [1, 2]


@pytest.mark.long
def test_a_damaged_point_is_named_and_keeps_its_files(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = BackupFolder(tmp_path / "backups")
    write_backup(kg, folder.path, read=False)
    contents = folder.list_contents()
    put(kg, "changing", 1)
    path = folder.path / "points" / "1.json"
    path.write_bytes(path.read_bytes().replace(b'"quads"', b'"quats"'))
    done = write_backup(kg, folder.path, read=False, retention=Retention(newest=1))
    assert done["number"] == 2
    assert contents <= folder.list_contents()
    assert "1.json" in list_backups(folder.path)["problems"][0]
    assert "1.json" in verify_backups(folder.path).problems[0].message


@pytest.mark.long
def test_a_backup_goes_on_after_a_compaction(kg: KnowledgeGraph, tmp_path: Path) -> None:
    """The store is a new one then, whose files have the same names."""
    put(kg, "one", *range(100))
    write_backup(kg, tmp_path / "backups", read=False)
    graphs = hash_graphs(kg)
    kg.close()
    compact(tmp_path / "data")
    with open_graph(tmp_path / "data") as again:
        assert list_known_backups(again.settings.directory)[0]["target"] == str(tmp_path / "backups")
        assert write_backup(again, tmp_path / "backups")["new"]
    restore_backup(tmp_path / "backups", tmp_path / "restored")
    with open_graph(tmp_path / "restored") as restored:
        assert hash_graphs(restored) == graphs


@pytest.mark.long
def test_a_folder_with_other_files_is_refused(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("mine")
    with pytest.raises(InvalidInputError):
        write_backup(kg, tmp_path / "home")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["letter.txt"]
    for action in (list_backups, verify_backups):
        with pytest.raises(InvalidInputError):
            action(tmp_path / "home")
    with pytest.raises(InvalidInputError, match="data directory"):
        restore_backup(tmp_path / "data", tmp_path / "restored")


@pytest.mark.long
def test_another_writer_is_refused(kg: KnowledgeGraph, tmp_path: Path) -> None:
    write_backup(kg, tmp_path / "backups", read=False)
    descriptor = os.open(tmp_path / "backups" / "lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(ConflictError):
            write_backup(kg, tmp_path / "backups")
    finally:
        os.close(descriptor)


@pytest.mark.long
def test_a_full_disk_adds_no_point_and_keeps_the_others(kg: KnowledgeGraph, disk: SmallDisk, tmp_path: Path) -> None:
    folder = BackupFolder(disk.folder / "backups")
    put(kg, "one", 1)
    write_backup(kg, folder.path)
    put(kg, "two", *range(2000))
    disk.fill()
    for _ in range(2):
        with pytest.raises(QuadciteError, match="No space"):
            write_backup(kg, folder.path)
    assert [point.number for point in folder.list_points()] == [1]
    assert not verify_backups(folder.path).problems
    disk.free()
    assert write_backup(kg, folder.path)["number"] == 2
    assert restore_backup(folder.path, tmp_path / "restored")["point"] == 2


def make_point(number: int, confirmed: datetime) -> Point:
    return Point(
        number=number, generation=number, quads=0, written=confirmed, confirmed=confirmed, quadcite="1", read=True,
        added=0, files={"format.json": StoredFile(bytes=1, sha256="0" * 64)},
    )  # fmt: skip


@given(
    hours=st.lists(st.integers(0, 24 * 40), unique=True, max_size=40),
    retention=st.builds(Retention, st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)),
)
def test_retention_keeps_the_newest_and_the_last_of_each_day_and_week(hours: list[int], retention: Retention) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    points = [make_point(number, start + timedelta(hours=hour)) for number, hour in enumerate(sorted(hours), 1)]
    kept = retention.choose(points)
    if retention == Retention():
        assert len(kept) == len(points)
    elif points:
        assert points[-1].number in kept
        assert {point.number for point in points[len(points) - retention.newest :]} <= kept or not retention.newest
        for count, period in ((retention.daily, "%Y-%j"), (retention.weekly, "%G-%V")):
            last = {point.confirmed.strftime(period): point.number for point in points}
            assert {last[name] for name in sorted(last)[len(last) - min(count, len(last)) :]} <= kept
        assert len(kept) <= max(1, retention.newest) + retention.daily + retention.weekly


def test_each_number_that_is_given_replaces_that_of_the_settings_alone(tmp_path: Path) -> None:
    settings = without_models(tmp_path, backup_keep=5, backup_keep_daily=4, backup_keep_weekly=8)
    assert choose_retention(settings) == Retention(5, 4, 8)
    assert choose_retention(settings, newest=7) == Retention(7, 4, 8)
    assert choose_retention(settings, daily=0) == Retention(5, 0, 8)
    assert choose_retention(settings, weekly=1) == Retention(5, 4, 1)
    assert choose_retention(settings, 1, 0, 0) == Retention(1, 0, 0)


class LaterPoint(Point):
    """A point with a field that this version does not know."""

    later: int


def test_a_point_is_read_as_it_was_written_also_with_fields_of_a_later_version() -> None:
    point = make_point(1, datetime(2026, 1, 1, tzinfo=UTC))
    assert parse_point(encode_point(point), "here") == point
    assert parse_point(encode_point(LaterPoint(**dict(point), later=1)), "here") == point
    fields = json.loads(encode_point(point))
    with pytest.raises(QuadciteError, match="here"):
        parse_point(json.dumps({**fields, "point": {**fields["point"], "quads": 5}}).encode(), "here")


@pytest.mark.long
def test_restored_graphs_are_the_dumped_ones(kg: KnowledgeGraph, tmp_path: Path) -> None:
    put(kg, "one", 1, 2, 3)
    write_backup(kg, tmp_path / "backups")
    restore_backup(tmp_path / "backups", tmp_path / "restored")
    with open_graph(tmp_path / "restored") as copy:
        dumped = []
        for each in (kg, copy):
            with (tmp_path / "dump").open("wb") as file:
                each.store.dump(file, RdfFormat.N_QUADS)
            dumped.append(sorted((tmp_path / "dump").read_bytes().splitlines()))
    assert dumped[0] == dumped[1]
    assert Quad(NamedNode("urn:one:1"), KG.start, Literal(1), mint("graph", "user", "one")) in kg.store.graph(
        mint("graph", "user", "one")
    )
