"""A replica follows its primary, point by point; requests in progress read on; it survives what the primary does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextvars import Context
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Triple

from kg.access.actors import HOLDER
from kg.errors import NotFoundError, ReplicaError, StoreError, UpstreamError
from kg.integrity.backup_folder import BackupFolder, StoredFile
from kg.integrity.backups import restore_backup, write_backup
from kg.integrity.point_sources import FolderSource
from kg.integrity.replication import Replica, load_replica, promote
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.replica import ReplicaStore
from kg.tools import registry
from kg.tools.catalog.health import health
from kg.tools.commands import COMMANDS
from kg.user_graphs import UserGraphs
from kg.vocabulary import KG, mint
from tests.folders import open_graph, without_models
from tests.waiting import until

NUMBERS = "SELECT ?n { GRAPH ?g { ?s kg:start ?n } FILTER(STRSTARTS(STR(?s), 'urn:')) }"


pytestmark = pytest.mark.usefixtures("without_index")


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "primary") as kg:
        yield kg


@pytest.fixture
def folder(tmp_path: Path) -> BackupFolder:
    return BackupFolder(tmp_path / "backups")


@pytest.fixture
def settings(tmp_path: Path, folder: BackupFolder) -> Settings:
    return without_models(tmp_path / "replica", query_workers=1, replica_of=str(folder.path), replica_every="1s")


def put(kg: KnowledgeGraph, number: int) -> None:
    triples = [Triple(NamedNode("urn:it"), KG.start, Literal(number))]
    UserGraphs(kg).put(mint("graph", "user", "changing"), triples, HOLDER)


def point(kg: KnowledgeGraph, folder: BackupFolder, number: int) -> None:
    put(kg, number)
    write_backup(kg, folder.path, read=False)


def read(kg: KnowledgeGraph) -> list[str]:
    return [str(row[0].value) for row in kg.query(NUMBERS, all_graphs=True).result.rows]  # type: ignore[union-attr]


def open_replica(settings: Settings) -> tuple[Replica, KnowledgeGraph]:
    replica = Replica(settings)
    replica.prepare()
    kg = KnowledgeGraph.open(settings.data_dir, settings, replica=replica.open_store())
    kg.replica_state = lambda: replica.state
    return replica, kg


def follow(replica: Replica, kg: KnowledgeGraph) -> None:
    assert isinstance(kg.store, ReplicaStore)
    replica.follow(kg.store, lambda: None)


def test_a_replica_serves_each_new_point_and_links_equal_files(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings
) -> None:
    point(primary, folder, 1)
    replica, kg = open_replica(settings)
    with kg:
        assert read(kg) == ["1"]
        assert kg.store.statistics().generation == primary.store.statistics().generation
        for number in (2, 3, 4):
            point(primary, folder, number)
            follow(replica, kg)
            assert read(kg) == [str(number)]
            state = replica.state
            assert (state.point, state.generation, state.failures) == (number, primary.store.statistics().generation, 0)
        assert [path.name for path in settings.directory.points.iterdir()] == ["4"]
        assert replica.state.lag_s < 600
        follow(replica, kg)
        assert replica.state.point == 4


@pytest.mark.long
def test_a_request_in_progress_reads_the_point_that_it_began_with(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings
) -> None:
    point(primary, folder, 1)
    replica, kg = open_replica(settings)
    with kg:
        with kg.reading() as lease:
            begun = lease.get().generation
            for number in (2, 3, 4, 5):
                Context().run(point, primary, folder, number)  # a write has its own call read what it wrote
                follow(replica, kg)
            assert read(kg) == ["1"]
            assert kg.generation == begun
        assert read(kg) == ["5"]


def test_every_write_is_refused_with_the_address_of_the_primary(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings
) -> None:
    point(primary, folder, 1)
    _, kg = open_replica(settings)
    graph = mint("graph", "user", "new")
    triples = [Triple(NamedNode("urn:a"), KG.start, Literal(1))]
    with kg:
        store, writer = kg.store, UserGraphs(kg)
        refused: list[Callable[[], object]] = [
            lambda: store.commit({graph: []}),
            lambda: store.extend(graph, []),
            lambda: store.require_writable(),
            lambda: store.update("INSERT DATA { GRAPH <urn:g> { <urn:s> <urn:p> 1 } }"),
            lambda: writer.put(graph, triples, HOLDER),
            lambda: writer.post(graph, triples, HOLDER),
            lambda: writer.update("CLEAR ALL", (), (), HOLDER),
        ]
        for write in refused:
            with pytest.raises(ReplicaError, match=str(folder.path)):
                write()
        writing = [each for each in (*registry.TOOLS, *COMMANDS) if each.writes_store]
        assert len(writing) > 20
        for command in writing:
            with pytest.raises(ReplicaError, match=str(folder.path)):
                command.content(kg, {})
        assert read(kg) == ["1"]
        assert kg.store.problem is None


@pytest.mark.long
def test_a_primary_that_vanishes_is_reported_and_followed_again(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings
) -> None:
    point(primary, folder, 1)
    replica, kg = open_replica(settings)
    away = folder.path.with_name("away")
    with kg:
        folder.path.rename(away)
        for failures in (1, 2):
            follow(replica, kg)
            assert replica.state.failures == failures
        found = health(kg)
        assert found.status == "degraded"
        assert found.replica is not None
        assert (found.replica.primary, found.replica.failures) == (str(folder.path), 2)
        assert read(kg) == ["1"]
    again, kg = open_replica(settings)  # a restart without the primary
    with kg:
        assert read(kg) == ["1"]
        away.rename(folder.path)
        point(primary, folder, 2)
        follow(again, kg)
        assert again.state.problem is None
        assert read(kg) == ["2"]


def test_without_a_first_point_there_is_nothing_to_serve(folder: BackupFolder, settings: Settings) -> None:
    with pytest.raises(UpstreamError):
        Replica(settings).prepare()


@pytest.mark.long
def test_a_point_that_arrives_half_is_completed_by_the_next_start(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    point(primary, folder, 1)
    replica, kg = open_replica(settings)
    fetched: list[StoredFile] = []
    fetch, limit = FolderSource.fetch, 2

    def fetch_some(self: FolderSource, file: StoredFile, target: Path) -> None:
        if len(fetched) == limit:
            raise UpstreamError("The connection broke.")
        fetched.append(file)
        fetch(self, file, target)

    with kg:
        point(primary, folder, 2)
        monkeypatch.setattr(FolderSource, "fetch", fetch_some)
        follow(replica, kg)
        assert replica.state.failures == 1
        assert read(kg) == ["1"]
        assert (settings.directory.points / "2.partial").is_dir()
    before, limit = list(fetched), -1
    replica, kg = open_replica(settings)
    with kg:
        assert read(kg) == ["1"]
        follow(replica, kg)
        assert read(kg) == ["2"]
    assert not {file.sha256 for file in before} & {file.sha256 for file in fetched[len(before) :]}


@pytest.mark.long
def test_a_damaged_file_is_not_served(primary: KnowledgeGraph, folder: BackupFolder, settings: Settings) -> None:
    point(primary, folder, 1)
    replica, kg = open_replica(settings)
    with kg:
        point(primary, folder, 2)
        new = {file.sha256: file for name, file in folder.load(2).files.items() if name.endswith(".sst")}
        old = {file.sha256 for file in folder.load(1).files.values()}
        path = folder.find_file(next(file for sha256, file in new.items() if sha256 not in old))
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        follow(replica, kg)
        assert replica.state.failures == 1
        assert path.name in str(replica.state.problem)
        assert read(kg) == ["1"]
        path.write_bytes(content)
        follow(replica, kg)
        assert read(kg) == ["2"]


@pytest.mark.long
def test_a_primary_with_another_history_is_served_after_a_restart(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings, tmp_path: Path
) -> None:
    point(primary, folder, 1)
    point(primary, folder, 2)
    replica, kg = open_replica(settings)
    with kg:
        restore_backup(folder.path, tmp_path / "restored", number=1)
        with open_graph(tmp_path / "restored") as restored:
            point(restored, folder, 9)
            assert restored.store.statistics().generation == kg.store.statistics().generation
        follow(replica, kg)
        assert replica.restarts
        assert read(kg) == ["2"]
    _, kg = open_replica(settings)
    with kg:
        assert read(kg) == ["9"]


@pytest.mark.long
def test_a_replica_is_followed_in_the_background(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings
) -> None:
    point(primary, folder, 1)
    replica, kg = open_replica(settings)
    switched: list[int] = []
    with kg:
        assert isinstance(kg.store, ReplicaStore)
        with replica.following(kg.store, lambda: switched.append(replica.state.point), lambda: None):
            point(primary, folder, 2)
            until(lambda: replica.state.point == 2)
        assert len(switched) == 1


@pytest.mark.long
def test_a_replica_is_opened_as_such_only_until_it_is_promoted(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings
) -> None:
    point(primary, folder, 1)
    _, kg = open_replica(settings)
    kg.close()
    with pytest.raises(StoreError, match="kg replica"):
        open_graph(settings.data_dir)
    assert promote(settings.data_dir)["generation"] == primary.store.statistics().generation
    with open_graph(settings.data_dir) as own:
        assert read(own) == ["1"]
        put(own, 2)
        assert read(own) == ["2"]
    with pytest.raises(NotFoundError):
        promote(settings.data_dir)
    with pytest.raises(StoreError, match="store of its own"):
        Replica(settings).prepare()


@pytest.mark.long
def test_a_replica_of_a_newer_format_is_refused_and_the_old_point_stays(
    primary: KnowledgeGraph, folder: BackupFolder, settings: Settings, tmp_path: Path
) -> None:
    point(primary, folder, 1)
    replica, kg = open_replica(settings)
    with kg:
        point(primary, folder, 2)
        (tmp_path / "format.json").write_text(json.dumps({"version": 99}))
        with folder.writing():
            newest = folder.load()
            files = {**newest.files, "format.json": folder.add(tmp_path / "format.json")}
            folder.write(newest.model_copy(update={"files": files}))
        follow(replica, kg)
        assert "99" in str(replica.state.problem)
        assert read(kg) == ["1"]
        assert load_replica(settings.directory) is not None
    shutil.rmtree(settings.data_dir)
