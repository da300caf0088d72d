"""Static files: kept by clients for as long as they do not change, and never a file from elsewhere."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.server import static


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    inside = tmp_path / "static"
    (inside / "chunks").mkdir(parents=True)
    (inside / "app.js").write_text("export const one = 1;\n" * 200)
    (inside / "chunks" / "a-1.js").write_text("export {};\n")
    (inside / ".hidden.js").write_text("secret")
    (tmp_path / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr(static, "FOLDER", inside)
    monkeypatch.setattr(static, "_kept", {})
    return TestClient(Starlette(routes=static.routes()))


def test_a_file_is_kept_for_good_under_the_address_of_its_content(client: TestClient) -> None:
    file = static.find_file("app.js")
    assert file is not None
    answer = client.get(file.href)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == file.body
    assert "immutable" in answer.headers["cache-control"]
    assert client.get("/static/app.js").headers["cache-control"] == "no-cache"
    assert client.get("/static/app.js?v=0000").headers["cache-control"] == "no-cache"
    assert client.get("/static/chunks/a-1.js").text == "export {};\n"


def test_an_unchanged_file_is_not_sent_again_and_a_changed_one_is(client: TestClient) -> None:
    first = client.get("/static/app.js")
    assert client.get("/static/app.js", headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    (static.FOLDER / "app.js").write_text("export const two = 2;\n")
    again = client.get("/static/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.text) == (200, "export const two = 2;\n")


def test_a_client_without_gzip_gets_the_plain_bytes(client: TestClient) -> None:
    answer = client.get("/static/app.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in answer.headers
    packed = client.get("/static/app.js")
    assert answer.content == packed.content
    assert answer.headers["etag"] != packed.headers["etag"]
    file = static.find_file("app.js")
    assert file is not None
    assert gzip.decompress(file.packed) == answer.content


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt",
        "%2e%2e/secret.txt",
        "..%2fsecret.txt",
        "link.txt",
        ".hidden.js",
        "chunks",
        "",
        "a%00b",
        "none.js",
    ],
)
def test_nothing_else_is_served(client: TestClient, name: str) -> None:
    answer = client.get(f"/static/{name}")
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.txt", "")


def test_it_is_only_read(client: TestClient) -> None:
    assert client.post("/static/app.js").status_code == 405
