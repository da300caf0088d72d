"""The page of the state of the server: what ran, what was rejected, what is running, and who may cancel it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.loading import load
from kg.server.app import create_app
from kg.server.auth import LocalToken
from kg.server.authentication import Accounts
from kg.server.pages.status import hide_paths
from kg.tools.catalog.server_state import describe_server
from tests.conftest import load_once, opened, shipped

BASE = "http://127.0.0.1:8000"
BROWSER = {"Accept": "text/html"}
SLOW = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . FILTER(STR(?a) > STR(?i)) }"


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with opened(load_once(tmp_path_factory, "climate")) as graph:
        yield graph


@pytest.fixture(scope="module")
def token(kg: KnowledgeGraph) -> Iterator[LocalToken]:
    held = LocalToken(kg.settings.data_dir)
    yield held
    held.remove()


@pytest.fixture
def client(kg: KnowledgeGraph, token: LocalToken) -> Iterator[TestClient]:
    with TestClient(create_app(kg, accounts=Accounts(token)), base_url=BASE, follow_redirects=False) as client:
        yield client


def test_loads_are_listed_with_progress_then_with_their_reports(kg: KnowledgeGraph, client: TestClient) -> None:
    seen: list[str] = []

    def look(done: int, total: int | None, doing: str) -> None:
        if not seen:
            seen.append(client.get("/status", headers=BROWSER).text)

    load(kg, look, source="climate", paths=[shipped("climate")], prune=False, wait=False)
    assert "No load is running" not in seen[0]
    page = client.get("/status", headers=BROWSER).text
    assert "No load is running" in page
    assert "Since this server began" in page
    assert str(Path(shipped("climate")).parent) not in page
    ended = describe_server(kg).ended[0]
    assert ended.report is not None
    assert ended.report["skipped"] > 0
    assert ended.error is None


def test_a_load_that_fails_is_listed_with_its_error(kg: KnowledgeGraph, client: TestClient, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="nowhere"):
        load(
            kg,
            lambda done, total, doing: None,
            source="climate",
            paths=[str(tmp_path / "nowhere.csv")],
            prune=False,
            wait=False,
        )
    state = describe_server(kg)
    assert not state.running
    assert "nowhere" in (state.ended[0].error or "")
    assert str(tmp_path) not in client.get("/status", headers=BROWSER).text


def test_past_loads_come_from_the_provenance(kg: KnowledgeGraph) -> None:
    runs = describe_server(kg).runs
    assert runs
    assert all(run.graphs > 0 for run in runs)
    assert any("climate" in run.loader for run in runs)


def test_rejected_records_are_listed_without_the_folders_of_the_server(
    kg: KnowledgeGraph, client: TestClient, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text(
        "document_id,document_slug,document_name,geography_iso,family_slug,block_index,text\n"
        "<script>alert(1)</script>,a-slug,A title,FJI,a-family,first,Some text.\n"
    )
    load(kg, lambda done, total, doing: None, source="climate", paths=[str(broken)], prune=False, wait=False)
    state = describe_server(kg)
    page = client.get("/status", headers=BROWSER).text
    assert "<script>alert" not in page
    assert str(tmp_path) not in page
    assert state.quarantine is not None
    assert state.quarantine["total"] == 1
    assert state.quarantine["records"][0]["reason"]
    assert 'aria-label="Rejected records"' in page
    assert state.ended[0].report is not None
    assert state.ended[0].report["rejected"] == 1


def test_storage_names_the_parts_of_the_data_directory(kg: KnowledgeGraph) -> None:
    parts = {part.name: part.size for part in describe_server(kg).storage}
    assert parts["store/"] > 0
    assert parts["index/"] < 64 << 20  # its files are 0.5 GiB with their holes
    assert "token" not in " ".join(name for name in parts if name != "token")


def test_only_who_is_signed_in_sees_and_sends_the_form_that_cancels(kg: KnowledgeGraph, client: TestClient) -> None:
    ended = threading.Event()

    def ask() -> None:
        client.get("/sparql", params={"query": SLOW, "timeout": "60"})
        ended.set()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        while not any(query.state == "running" for query in kg.pool.list_queries()):
            assert not ended.wait(0.05)
        assert 'action="/status/cancel"' not in client.get("/status", headers=BROWSER).text
        number = kg.pool.list_queries()[0].id
        assert client.post("/status/cancel", data={"query": number, "pool": "tools"}).status_code == 403
        form = client.get("/login", headers=BROWSER).text
        secret = kg.settings.directory.token.read_text()
        found = re.search(r'name="csrf" value="([^"]+)"', form)
        assert found is not None
        client.post("/login", data={"csrf": found[1], "token": secret})
        page = client.get("/status", headers=BROWSER).text
        found = re.search(r'name="csrf" value="([^"]+)"', page)
        assert found is not None
        wrong = {"csrf": found[1], "query": "1" * 30, "pool": "tools"}
        assert client.post("/status/cancel", data=wrong).status_code == 404
        right = {"csrf": found[1], "query": number, "pool": "tools"}
        assert client.post("/status/cancel", data=right).headers["location"] == "/status#queries"
        assert ended.wait(30)
    finally:
        for query in kg.pool.list_queries():
            kg.pool.cancel(query.id)
        thread.join(30)


def test_the_check_of_the_dataset_counts_by_shape(kg: KnowledgeGraph, client: TestClient) -> None:
    page = client.get("/status", headers=BROWSER).text
    assert 'id="checks"' in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at row 1 of /srv/data/in/a.json. The rest", "at row 1 of …/a.json. The rest"),
        ("https://example.org/a/b and and/or 1/2", "https://example.org/a/b and and/or 1/2"),
    ],
)
def test_a_reason_has_no_folders_of_the_server(text: str, shown: str) -> None:
    assert hide_paths(text) == shown
