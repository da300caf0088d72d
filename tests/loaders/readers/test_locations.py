from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pytest

from kg.errors import SourceError, UpstreamError
from kg.settings import Settings
from loaders.readers.locations import find_files

SETTINGS = Settings(_env_file=None, dataset_repo="fictional/set", hub_token="a-token")  # type: ignore[call-arg,arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "sub/b.parquet", "sub/deep/c.JSONL", ".hidden/d.csv", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def names(folder: Path, *locations: str) -> list[str]:
    return [str(file.path.relative_to(folder)) for file in find_files(locations, SETTINGS).files]


def test_a_folder_is_searched_to_any_depth_for_known_endings(folder: Path) -> None:
    assert names(folder, str(folder)) == ["a.csv", "sub/b.parquet", "sub/deep/c.JSONL"]


def test_a_glob_a_file_and_a_folder_together_give_each_file_once(folder: Path) -> None:
    found = names(folder, str(folder / "**" / "*.parquet"), str(folder / "a.csv"), str(folder))
    assert found == ["sub/b.parquet", "a.csv", "sub/deep/c.JSONL"]


def test_only_a_file_that_was_named_must_be_readable(folder: Path) -> None:
    located = find_files([str(folder), str(folder / "a.csv")], SETTINGS)
    assert {file.path.name: file.named for file in located.files} == {
        "a.csv": True,
        "b.parquet": False,
        "c.JSONL": False,
    }


def test_a_name_with_glob_characters_is_a_name_first(folder: Path) -> None:
    (folder / "odd[1].csv").write_text("x")
    assert names(folder, str(folder / "odd[1].csv")) == ["odd[1].csv"]


def test_a_snapshot_knows_the_bytes_and_the_absolute_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    [file] = find_files(["a.csv"], SETTINGS).files
    assert file.snapshot.sha256 == hashlib.sha256(b"a.csv").hexdigest()
    assert file.snapshot.source == str(folder / "a.csv")


def test_an_empty_name_is_not_the_working_folder() -> None:
    with pytest.raises(SourceError, match="no location"):
        find_files(["", "x.csv"], SETTINGS)


def test_an_unknown_home_is_no_such_file() -> None:
    with pytest.raises(SourceError, match="no such file"):
        find_files(["~nobody-of-this-name/x.csv"], SETTINGS)


def test_a_folder_that_may_not_be_read_is_not_taken_for_empty(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refused(path: str | Path) -> Any:
        if str(path).endswith("sub"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(SourceError, match="sub: the folder cannot be read"):
        find_files([str(folder)], SETTINGS)


def test_a_file_name_that_is_no_text_is_refused_for_it_could_not_be_cited(folder: Path) -> None:
    try:
        (folder / os.fsdecode(b"odd-\xff.csv")).write_text("x")
    except OSError:
        pytest.skip("this file system holds UTF-8 names alone")
    with pytest.raises(SourceError, match="not UTF-8"):
        find_files([str(folder)], SETTINGS)


def test_locations_cover_what_lies_under_them(folder: Path) -> None:
    located = find_files([str(folder / "sub"), str(folder / "a.csv")], SETTINGS)
    assert located.covers(str(folder / "sub" / "gone.csv"))
    assert located.covers(str(folder / "a.csv"))
    assert not located.covers(str(folder / "b.csv"))
    assert not located.covers(str(folder / "subway" / "x.csv"))


def test_a_pattern_covers_what_it_would_match_and_no_more(folder: Path) -> None:
    flat = find_files([str(folder / "sub" / "*.parquet")], SETTINGS)
    assert flat.covers(str(folder / "sub" / "gone.parquet"))
    assert not flat.covers(str(folder / "sub" / "gone.csv"))
    assert not flat.covers(str(folder / "sub" / "deep" / "gone.parquet"))
    deep = find_files([str(folder / "**" / "[a-c].*")], SETTINGS)
    assert deep.covers(str(folder / "a.jsonl"))
    assert deep.covers(str(folder / "x" / "y" / "b.csv"))
    assert not deep.covers(str(folder / "x" / "d.csv"))


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("missing.csv", "no such file"),
        ("sub/*.xlsx", "matches no file"),
        ("empty", "contains no file"),
        ("notes.txt", "only files that end in .parquet, .csv"),
        ("x" * 5000, "no such file"),
        ("a\0.csv", "no such file"),
    ],
)
def test_nothing_to_read_is_said(location: str, message: str, folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(SourceError, match=message):
        find_files([str(folder / location)], SETTINGS)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """The part of the model hub that a download needs: one dataset at one commit."""

    files: ClassVar[dict[str, bytes]] = {"data/train.csv": b"a,b\n1,2\n", "README.md": b"fictional"}
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.asked.append((path, self.headers.get("Authorization")))
        if path.startswith("/api/datasets/fictional/broken"):
            return self.answer(500)
        if path in (f"/api/datasets/fictional/set/revision/{name}" for name in ("main", "v1", COMMIT)):
            siblings = [{"rfilename": name} for name in self.files]
            body = json.dumps({"id": "fictional/set", "sha": COMMIT, "siblings": siblings}).encode()
            return self.answer(200, body, Content_Type="application/json")
        if path.startswith(f"/api/datasets/fictional/set/tree/{COMMIT}"):
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}  # noqa: S324
                for name, data in self.files.items()
            ]
            return self.answer(200, json.dumps(tree).encode(), Content_Type="application/json")
        prefix = f"/datasets/fictional/set/resolve/{COMMIT}/"
        if path.startswith(prefix) and (data := self.files.get(path.removeprefix(prefix))) is not None:
            etag = hashlib.sha256(data).hexdigest()
            return self.answer(200, data, X_Repo_Commit=COMMIT, ETag=f'"{etag}"')
        known = path.startswith("/api/datasets/fictional/set/")
        return self.answer(404, X_Error_Code="RevisionNotFound" if known else "RepoNotFound")

    do_HEAD = do_GET  # noqa: N815


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Hub]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    download = huggingface_hub.snapshot_download

    def local(*given: Any, **named: Any) -> str:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        return download(*given, **named, endpoint=endpoint, cache_dir=tmp_path / "hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", local)
    Hub.asked.clear()
    yield Hub
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_dataset_on_the_hub_is_read_at_its_pinned_revision_with_the_token(hub: type[Hub]) -> None:
    located = find_files([f"hub:fictional/set@{COMMIT}"], SETTINGS)
    [file] = located.files
    assert file.path.read_bytes() == Hub.files["data/train.csv"]
    assert (file.snapshot.source, file.snapshot.revision) == ("hub:fictional/set/data/train.csv", COMMIT)
    assert located.warnings == ()
    assert located.covers("hub:fictional/set/data/other.csv")
    assert {token for _, token in hub.asked} == {"Bearer a-token"}
    assert not [path for path, _ in hub.asked if path.endswith("README.md")]


@pytest.mark.parametrize("location", ["hub", "hub:fictional/set@v1"])
@pytest.mark.usefixtures("hub")
def test_a_revision_that_is_not_pinned_is_resolved_recorded_and_said(location: str) -> None:
    located = find_files([location], SETTINGS)
    assert located.files[0].snapshot.revision == COMMIT
    assert f"hub:fictional/set@{COMMIT}" in located.warnings[0]


@pytest.mark.parametrize(
    ("location", "error", "message"),
    [
        ("hub:fictional/set@no-such", SourceError, "no such revision"),
        ("hub:fictional/none", SourceError, "no such dataset"),
        ("hub:not a name", SourceError, "OWNER/NAME"),
        ("hub:fictional/broken", UpstreamError, "unexpected response"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_what_the_hub_refuses_is_said(location: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        find_files([location], SETTINGS)


def test_a_source_that_is_no_table_has_no_dataset_on_the_hub_and_says_what_else_there_is(tmp_path: Path) -> None:
    fetches = {"sparql": lambda location, settings, folder: pytest.fail("it was asked")}
    with pytest.raises(SourceError, match="no datasets on the hub"):
        find_files(["hub"], SETTINGS, (".json", ".csv"), fetches)
    with pytest.raises(SourceError, match=r"a pattern, sparql:\.\.\.$"):
        find_files([str(tmp_path / "none.json")], SETTINGS, (".json", ".csv"), fetches)
    with pytest.raises(SourceError, match=r"a pattern, hub:OWNER/NAME@REVISION$"):
        find_files([str(tmp_path / "none.csv")], SETTINGS)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("location", ["", "/*"])
def test_files_of_other_formats_are_counted_by_their_endings(tmp_path: Path, location: str, *, lenient: bool) -> None:
    for name in ("a.md", "b.LOG", "c.log", "Makefile", ".hidden.log", "a.toml", "d.toml"):
        (tmp_path / name).write_text("x")
    located = find_files([f"{tmp_path}{location}"], Settings(), (".md",), lenient=lenient)
    assert dict(located.other) == {".log": 2, "": 1, ".toml": 1}
    assert len(located.warnings) == 1
