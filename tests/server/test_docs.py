"""``/docs``: the documentation, served."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.server.mcp import ToolThreads
from kg.server.pages import docs
from kg.server.pages.site import Site


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> TestClient:
    return TestClient(Starlette(routes=docs.routes(Site(kg, ToolThreads(kg)))))


def test_every_chapter_is_listed_and_served_as_html_and_markdown(client: TestClient) -> None:
    index = client.get("/docs").text
    for topic in bundle.CHAPTERS:
        assert f'href="/docs/{topic}"' in index
        page = client.get(f"/docs/{topic}", headers={"Accept": "text/html"})
        assert page.headers["content-type"].startswith("text/html")
        assert bundle.chapter_title(topic) in page.text
        source = client.get(f"/docs/{topic}", headers={"Accept": "text/markdown"})
        assert source.text == bundle.chapter(topic)
        assert client.get(f"/docs/{topic}?format=md").text == bundle.chapter(topic)


def test_the_marks_of_generated_tables_are_not_shown(client: TestClient) -> None:
    marked = [topic for topic in bundle.CHAPTERS if "\n<!--" in bundle.chapter(topic)]
    assert marked
    for topic in marked:
        assert "&lt;!--" not in client.get(f"/docs/{topic}").text


@pytest.mark.parametrize("name", bundle.FIGURES)
def test_figures_are_served_without_scripts(client: TestClient, name: str) -> None:
    answer = client.get(f"/docs/{name}")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["content-security-policy"] == "default-src 'none'"
    assert answer.text == bundle.figure(name)
    assert any(f"]({name})" in bundle.chapter(topic) for topic in bundle.CHAPTERS)


def test_links_between_chapters_work(client: TestClient) -> None:
    links = {
        target
        for topic in bundle.CHAPTERS
        for target in re.findall(r'href="((?!https?:|data:|/|#)[^"#]*)', client.get(f"/docs/{topic}").text)
    }
    assert links
    assert {client.get(f"/docs/{target}").status_code for target in links} == {200}


@pytest.mark.parametrize("topic", ["none", "errors.py", "<script>"])
def test_an_unknown_chapter_is_not_found(client: TestClient, topic: str) -> None:
    answer = client.get(f"/docs/{topic}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
