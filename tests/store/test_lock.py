"""One process at a time writes a data directory, and whoever is refused learns why and what to do."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kg.access.tokens import Tokens
from kg.data_directory import DataDirectory
from kg.errors import StoreError, StoreLockedError, StoreReadOnlyError, StoreVersionError
from kg.store.lock import DirectoryLock, find_holder
from kg.store.oxigraph import OxigraphStore

HOLD = """
import sys
from pathlib import Path
from kg.store.lock import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]), "http://127.0.0.1:8123")
print("held", flush=True)
sys.stdin.read()
"""


def hold_elsewhere(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_opener_in_the_same_process_is_told_who_holds_it(tmp_path: Path) -> None:
    with OxigraphStore(tmp_path, address="http://127.0.0.1:8000"):
        with pytest.raises(
            StoreLockedError, match=rf"process {os.getpid()} on .+ since .+, serving http://127.0.0.1:8000"
        ):
            OxigraphStore(tmp_path)
        assert find_holder(tmp_path) is not None
    assert find_holder(tmp_path) is None
    OxigraphStore(tmp_path).close()


def test_a_second_process_is_told_who_holds_it_and_a_killed_holder_is_no_obstacle(tmp_path: Path) -> None:
    with hold_elsewhere(tmp_path) as process:
        who = find_holder(tmp_path)
        assert who is not None
        assert (who.pid, who.address) == (process.pid, "http://127.0.0.1:8123")
        with pytest.raises(StoreLockedError, match=f"process {process.pid} on .*requests to http://127.0.0.1:8123"):
            DirectoryLock(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert json.loads((tmp_path / "lock").read_text())["pid"] == process.pid, "the dead process left its name behind"
    assert find_holder(tmp_path) is None
    lock = DirectoryLock(tmp_path)
    who = find_holder(tmp_path)
    assert who is not None
    assert who.pid == os.getpid()
    lock.release()
    lock.release()


def test_a_refused_opener_leaves_the_holder_its_lock(tmp_path: Path) -> None:
    first = DirectoryLock(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreLockedError):
            DirectoryLock(tmp_path)
    first.announce("http://127.0.0.1:9")
    with pytest.raises(StoreLockedError, match=r"http://127\.0\.0\.1:9"):
        DirectoryLock(tmp_path)
    first.release()


def test_a_holder_that_has_not_signed_yet_is_still_respected(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    (tmp_path / "lock").write_text("{torn")
    with pytest.raises(StoreLockedError, match="unknown process"):
        DirectoryLock(tmp_path)
    lock.release()


def test_a_new_directory_gets_a_version_and_no_leftovers(tmp_path: Path) -> None:
    DirectoryLock(tmp_path / "a" / "b").release()
    assert json.loads((tmp_path / "a" / "b" / "format.json").read_text()) == {"version": 1}
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["format.json", "lock"]


def test_a_directory_of_a_newer_version_is_refused_with_both_versions(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text('{"version": 7}')
    with pytest.raises(StoreVersionError, match=r"format 7, .* up to 1"):
        OxigraphStore(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["format.json"], "nothing is written to what is not ours"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": "1"}', '{"version": 0}', "\x00\xff"])
def test_a_damaged_version_file_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "format.json").write_text(text)
    with pytest.raises(StoreError, match=r"format\.json is damaged"):
        OxigraphStore(tmp_path)


def test_tokens_can_be_made_before_the_first_start(tmp_path: Path) -> None:
    Tokens(DataDirectory(tmp_path)).create("first", ["read"])
    (tmp_path / "audit").mkdir()
    DirectoryLock(tmp_path).release()
    assert DataDirectory(tmp_path).format.is_file()


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("my only copy")
    with pytest.raises(StoreError, match=r"not a Quadcite data directory.*thesis\.txt"):
        OxigraphStore(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_root_of_a_fresh_volume_is_taken(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".keep").touch()
    OxigraphStore(tmp_path).close()


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is a file"):
        OxigraphStore(tmp_path / "file")
    with pytest.raises(StoreError, match="is a file"):
        OxigraphStore(tmp_path / "file" / "below")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_read_only_directory_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    OxigraphStore(tmp_path).close()
    real = os.open

    def refusing(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(StoreReadOnlyError, match=f"{os.strerror(number)}.*write permission"):
        OxigraphStore(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_directory_without_write_permission_is_read_only(tmp_path: Path) -> None:
    OxigraphStore(tmp_path).close()
    (tmp_path / "lock").chmod(0o444)
    tmp_path.chmod(0o555)
    with pytest.raises(StoreReadOnlyError):
        OxigraphStore(tmp_path)
    tmp_path.chmod(0o755)


def test_a_full_disk_while_the_directory_is_made_is_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            OxigraphStore(tmp_path)
    OxigraphStore(tmp_path).close()


@pytest.mark.parametrize(
    "place",
    [
        "store", "index", "snapshots", "quarantine", "lock", "index/shard-1", "store/x.sst", "index/entities/shard-9",
        "index/shard-1/edge-1", "index/entities/shard-1/edge-1/x", "derivations.sqlite", "fetched/x", "summaries/x.npz",
    ],
)  # fmt: skip
def test_a_link_inside_the_data_directory_is_refused_and_what_it_leads_to_is_kept(tmp_path: Path, place: str) -> None:
    data, victim = tmp_path / "data", tmp_path / "victim"
    OxigraphStore(data).close()
    victim.mkdir()
    (victim / "file").write_text("mine")
    link = data / place
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir():
        link.rename(tmp_path / "moved")
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    with pytest.raises(StoreError, match="link"):
        OxigraphStore(data)
    assert (victim / "file").read_text() == "mine"


def test_a_folder_of_models_may_have_links(tmp_path: Path) -> None:
    OxigraphStore(tmp_path).close()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "link").symlink_to(tmp_path)
    OxigraphStore(tmp_path).close()
    assert (tmp_path / "models" / "link").is_symlink()


def test_a_data_directory_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    OxigraphStore(tmp_path / "data").close()
    OxigraphStore(tmp_path / "link").close()
