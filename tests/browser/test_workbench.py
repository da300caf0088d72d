"""The SPARQL workbench in a browser: the editor repairs, completes, runs and draws, and asks no other host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser.conftest import BUILT

COUNTS = (
    "SELECT ?place (COUNT(DISTINCT ?d) AS ?n) WHERE { ?d a kg:PolicyDocument ; kg:jurisdiction ?place } GROUP BY ?place"
)
DATED = "SELECT ?d ?title ?date WHERE { ?d a kg:PolicyDocument ; dcterms:title ?title ; eli:date_document ?date }"
GRAPH = "CONSTRUCT { ?d kg:jurisdiction ?place } WHERE { ?d a kg:PolicyDocument ; kg:jurisdiction ?place }"
HOSTILE = (
    'SELECT ("<img src=x onerror=alert(1)>" AS ?x) (IRI("javascript:alert(1)") AS ?y) '
    '("{{<script>alert(1)</script>}}" AS ?z) WHERE {}'
)

Open = Callable[..., Any]


def address(query: str, **more: str) -> str:
    return f"/sparql?query={quote(query)}" + "".join(f"&{name}={value}" for name, value in more.items())


@BUILT
@pytest.mark.long
def test_a_syntax_error_is_shown_at_its_line(open_page: Open) -> None:
    page = open_page(address("SELECT ?x WHERE {\n  ?x kg:slug\n}"))
    page.locator(".tabPanel.active .hints li.error").wait_for()
    assert page.locator(".tabPanel.active .gutter-error").count() == 1
    page.locator(".tabPanel.active [role=alert]").wait_for()


@BUILT
@pytest.mark.long
def test_names_are_completed_from_the_store(open_page: Open) -> None:
    page = open_page("/sparql")
    page.locator(".tabPanel.active .CodeMirror").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("SELECT * WHERE { ?d kg:jurisd")
    page.keyboard.press("Control+Space")
    hint = page.locator(".CodeMirror-hint", has_text="kg:jurisdiction").first
    hint.wait_for()
    page.keyboard.press("Enter")
    assert "kg:jurisdiction" in page.evaluate(
        "document.querySelector('.tabPanel.active .CodeMirror').CodeMirror.getValue()"
    )


@BUILT
@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "view", "drawn"),
    [
        (COUNTS, "chart", "svg.chart g[data-mark=bar] rect"),
        (COUNTS, "map", "svg.chart g[data-mark=geo] path"),
        (DATED, "timeline", "svg.chart g[data-mark=dot] circle"),
        (GRAPH, "graph", ".graph-canvas canvas"),
    ],
)
def test_results_are_drawn(open_page: Open, query: str, view: str, drawn: str) -> None:
    page = open_page(address(query, view=view))
    page.locator(drawn).first.wait_for()
    assert page.locator(".result-view").count() == 1


@BUILT
@pytest.mark.long
def test_labels_link_to_pages_and_a_row_says_why(open_page: Open) -> None:
    page = open_page(address(COUNTS))
    link = page.locator(".result-table a", has_text="Fiji")
    link.wait_for()
    assert link.get_attribute("href").startswith("/resolve?iri=")
    page.get_by_role("button", name="Why row 1?").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("table tbody tr").first.wait_for()
    assert dialog.get_by_role("link", name="The query that lists this evidence").count() == 1
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


@BUILT
@pytest.mark.long
def test_a_snapshot_is_shown_and_kept(open_page: Open) -> None:
    page = open_page(address(COUNTS))
    shown = page.get_by_role("status").filter(has_text="snapshot")
    shown.wait_for()
    number = shown.inner_text().rpartition("snapshot ")[2].strip()
    page.get_by_label("Keep this snapshot").check()
    assert page.get_by_label(f"Snapshot {number} is kept").is_checked()
    with page.expect_request("**/sparql") as sent:
        page.get_by_role("button", name="Run", exact=True).click()
    assert f"snapshot={number}" in sent.value.post_data


@BUILT
def test_hostile_literals_are_text(open_page: Open) -> None:
    page = open_page(address(HOSTILE))
    page.locator(".result-table td", has_text="<img src=x onerror=alert(1)>").wait_for()
    assert page.locator(".result-table td", has_text="{{<script>").count() == 1
    assert page.locator(".result-table a[href^='javascript:']").count() == 0


@BUILT
@pytest.mark.long
def test_queries_are_saved_and_shared(open_page: Open) -> None:
    page = open_page(address(COUNTS))
    # of the workbench, whose arrival moves the buttons, and not of the server
    page.get_by_role("status").filter(has_text="rows.").wait_for()
    page.get_by_text("Saved queries").click()
    page.get_by_label("Name of the query").fill("Places")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("status").filter(has_text="Saved.").wait_for()
    page.get_by_role("button", name="Places", exact=True).wait_for()
    page.reload()
    page.get_by_text("Saved queries").click()
    assert page.get_by_role("link", name="link", exact=True).get_attribute("href").startswith("/sparql?query=")


@BUILT
@pytest.mark.long
def test_stored_settings_of_a_tab_cannot_send_a_query_elsewhere(open_page: Open) -> None:
    page = open_page("/sparql")
    page.evaluate(
        """() => { for (const key of Object.keys(localStorage)) localStorage[key] = localStorage[key]
        .replaceAll(JSON.stringify(location.origin + "/sparql"), '"https://elsewhere.example/sparql"') }"""
    )
    page.reload()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("status").filter(has_text="rows.").wait_for()


def test_without_scripts_the_server_renders_rows_and_errors(open_page: Open) -> None:
    page = open_page("/sparql", scripts=False)
    page.get_by_label("SPARQL query").fill(COUNTS)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("link", name="Fiji").wait_for()
    page.get_by_label("SPARQL query").fill("SELECT ?x WHERE {\n  ?x kg:slug\n}")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("alert").wait_for()
    assert page.locator(".query-lines .marked").count() == 1


def test_charts_draw_and_have_tables(open_page: Open) -> None:
    page = open_page("/charts", scripts=False)
    page.locator("#documents-by-place svg.chart rect").first.wait_for()
    figures = page.locator("figure.plotted")
    assert figures.count() >= 4
    assert figures.locator("svg.chart").count() >= figures.count()
    assert figures.locator("table").count() == figures.count()
