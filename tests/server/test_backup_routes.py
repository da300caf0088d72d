"""Replicas read the points of a server: with the scope admin, by hash, in ranges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kg.errors import IndexUnavailableError
from kg.integrity.backup_folder import BackupFolder, parse_point
from kg.integrity.backups import write_backup
from kg.knowledge_graph import KnowledgeGraph
from kg.server.auth import LocalToken, read_token
from tests.server.test_commands import served
from tests.tools.made_up import WordIndex


@pytest.fixture
def folder(kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BackupFolder:
    def refuse(*_: object) -> None:
        raise IndexUnavailableError("not in this test")

    monkeypatch.setattr(WordIndex, "copy", refuse, raising=False)
    settings = kg.settings.model_copy(update={"backup_to": tmp_path / "backups"})
    monkeypatch.setattr(kg, "settings", settings)
    return BackupFolder(tmp_path / "backups")


@pytest.fixture
def client(kg: KnowledgeGraph, folder: BackupFolder, tmp_path: Path) -> Iterator[httpx.Client]:
    write_backup(kg, folder.path, read=False)
    with served(kg, LocalToken(tmp_path)) as address:
        headers = {"Authorization": f"Bearer {read_token(tmp_path)}"}
        with httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False) as http:
            yield http


def test_points_and_files_are_those_of_the_folder(
    client: httpx.Client, kg: KnowledgeGraph, folder: BackupFolder
) -> None:
    listed = client.get("/admin/backups").raise_for_status().json()
    point = folder.load()
    assert listed["generation"] == kg.store.statistics().generation == point.generation
    assert [each["number"] for each in listed["points"]] == [point.number]
    assert parse_point(client.get(f"/admin/backups/{point.number}").content, "there") == point
    for file in point.files.values():
        path = f"/admin/backups/files/{file.sha256}"
        content = folder.find_file(file).read_bytes()
        assert client.get(path).content == content
        if len(content) > 20:
            part = client.get(path, headers={"Range": "bytes=10-"})
            assert (part.status_code, part.content) == (206, content[10:])


def test_metrics_have_the_age_of_the_newest_backup(client: httpx.Client) -> None:
    lines = client.get("/metrics").text.splitlines()
    assert "quadcite_backup_failures 0.0" in lines
    [age] = [float(line.split()[1]) for line in lines if line.startswith("quadcite_backup_age_seconds ")]
    assert age >= 0


@pytest.mark.parametrize("path", ["/admin/backups", "/admin/backups/1", f"/admin/backups/files/{'0' * 64}"])
def test_backups_are_for_admins(client: httpx.Client, path: str) -> None:
    del client.headers["Authorization"]
    assert client.get(path).status_code == 403
    assert client.get(path, headers={"Authorization": "Bearer a-guess"}).status_code == 401


@pytest.mark.parametrize("name", ["0" * 64, "..%2Fbackup.json", "backup.json", "%2e%2e", "A" * 64])
def test_only_stored_hashes_are_served(client: httpx.Client, name: str) -> None:
    assert client.get(f"/admin/backups/files/{name}").status_code == 404
    assert client.get("/admin/backups/99").status_code == 404


def test_a_server_without_backups_has_none(kg: KnowledgeGraph, tmp_path: Path) -> None:
    with served(kg, LocalToken(tmp_path)) as address:
        headers = {"Authorization": f"Bearer {read_token(tmp_path)}"}
        found = httpx.get(f"{address}/admin/backups", headers=headers, trust_env=False)
        assert found.status_code == 404
        assert "--backup-to" in found.text
