"""The charts: their numbers are those of the tools, and their tables are complete without scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape

import pytest
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.server.app import create_app
from kg.server.pages import charts
from kg.server.pages.charts import OTHERS
from kg.server.pages.plots import COLUMNS_HEIGHT, draw_bars, draw_columns
from kg.server.pages.site import ask
from kg.tools.climate.document_counts import count_documents
from kg.tools.climate.jurisdictions import compare_jurisdictions
from kg.tools.parliament.speakers import speech_stats
from kg.tools.zoning.name_lookup import load_places

BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def client(joined: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(create_app(joined), base_url="http://127.0.0.1:8000") as client:
        yield client


def read_drawing(text: str, name: str) -> dict[str, int]:
    """Read what each rectangle of a chart stands for, and its number."""
    block = re.search(rf'<div class="drawn" id="{name}".*?<details', text, re.DOTALL)
    assert block is not None
    titles = [unescape(title).rpartition(": ") for title in re.findall(r"<title>(.*?)</title>", block[0])]
    assert len({title for title, _, _ in titles}) == len(titles)
    return {title: int(number.replace(",", "")) for title, _, number in titles}


def test_documents_by_place_and_year_add_up(joined: KnowledgeGraph, client: TestClient) -> None:
    text = client.get("/charts", headers=BROWSER).text
    counts = count_documents(joined)
    query = "SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE { ?d a kg:PolicyDocument ; kg:slug ?s }"
    total = client.get("/sparql", params={"query": query}).json()["results"]["bindings"][0]["n"]["value"]
    assert sum(counts.by_year.values()) == int(total)
    by_place = read_drawing(text, "documents-by-place")
    assert sum(by_place.values()) == sum(each.documents for each in counts.by_place if each.place)
    by_year = read_drawing(text, "documents-by-year")
    assert sum(by_year.values()) == sum(each.documents for each in counts.by_place if each.year)
    for place in by_place:
        assert place in text
    assert 'href="/sparql?query=' in text


def test_speeches_are_those_that_the_tool_counts(joined: KnowledgeGraph, client: TestClient) -> None:
    text = client.get("/charts", headers=BROWSER).text
    parties = ask(joined, speech_stats, group_by="party").result
    drawn = read_drawing(text, "speeches-by-party")
    assert drawn == {group.label: group.speeches for group in parties.groups if group.speeches}
    by_year = {tuple(title.split(", ", 1)): count for title, count in read_drawing(text, "speeches-by-year").items()}
    years = ask(joined, speech_stats, group_by="year").result
    for group in years.groups:
        assert sum(count for (year, _), count in by_year.items() if year == group.label) == group.speeches
    for name in {party for _, party in by_year} - {OTHERS}:
        of_party = ask(joined, speech_stats, group_by="year", party=name).result.groups
        counted = {year: count for (year, party), count in by_year.items() if party == name}
        assert counted == {group.label: group.speeches for group in of_party if group.speeches}


def test_only_the_smallest_series_are_others_and_are_named() -> None:
    counts = {f"party {number}": Counter({2000: number, 2001: 1}) for number in range(1, 13)}
    chart = charts._stack("x", "X", "party", "speeches", counts, {}, ["A note."], [])
    assert list(chart.columns) == ["Year", *(f"party {number}" for number in range(12, 5, -1)), OTHERS, "All"]
    assert chart.rows[0] == ["2000", *range(12, 5, -1), 15, 78]
    assert all(f"party {number} ({number + 1})" in chart.notes[-1] for number in range(1, 6))
    eight = charts._stack("x", "X", "party", "speeches", dict(list(counts.items())[:8]), {}, [], [])
    assert OTHERS not in eight.columns
    assert not eight.notes


def test_two_places_are_compared_as_the_tool_does(joined: KnowledgeGraph, client: TestClient) -> None:
    text = client.get("/charts/places", params={"a": "BRA", "b": "FJI", "by": "corpus_type"}, headers=BROWSER).text
    found = ask(joined, compare_jurisdictions, iso3_a="BRA", iso3_b="FJI", by="corpus_type").result
    drawn = read_drawing(text, "comparison")
    assert [drawn[f"{name}, Brazil"] for name in found.bins] == found.a
    assert [drawn[f"{name}, Fiji"] for name in found.bins] == found.b


def test_bars_and_columns_have_lengths_in_proportion() -> None:
    rows = [
        {"year": "1999", "party": "A", "n": 3},
        {"year": "1999", "party": "B", "n": 1},
        {"year": 2001, "party": "A", "n": 2},
    ]
    columns = draw_columns(rows, "year", "n", "party", ("A", "B"))
    assert [round(each.height / columns.columns[1].height) for each in columns.columns] == [3, 1, 2]
    lowest = [each.y + each.height for each in columns.columns]
    assert lowest == [COLUMNS_HEIGHT, columns.columns[0].y, COLUMNS_HEIGHT]
    assert [number for _, number in columns.ticks] == ["0", "1", "2", "3", "4"]
    assert all(each.x >= 0 and each.x + each.width <= 100 for each in columns.columns)
    bars = draw_bars(rows, "year", "n", "party")
    assert [(row.label, [bar.text for bar in row.bars]) for row in bars.rows] == [("1999", ["3", "1"]), ("2001", ["2"])]
    assert [bar.series for row in bars.rows for bar in row.bars] == [0, 1, 0]
    assert draw_bars([], "year", "n", None).rows == []
    assert draw_columns([], "year", "n").columns == []


@pytest.mark.parametrize("most", [1, 3, 7, 12, 99, 1_000, 48_211])
def test_an_axis_has_few_round_numbers(most: int) -> None:
    ticks = [int(number.replace(",", "")) for _, number in draw_columns([{"y": 2000, "n": most}], "y", "n").ticks]
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == 0
    assert ticks[-1] >= most


def test_two_codes_are_compared(joined: KnowledgeGraph, client: TestClient) -> None:
    names = [place.shown for place in load_places(Reader(joined))][:2]
    page = client.get("/charts/codes", params={"a": names[0], "b": names[1]}, headers=BROWSER)
    assert page.status_code == 200
    assert "Uses side by side" in page.text
    for name in names:
        assert f'<th scope="col">{name}</th>' in page.text


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/charts/places", {"a": "Nowhere at all", "b": "FJI"}),
        ("/charts/places", {"a": "BRA", "b": "FJI", "by": "colour"}),
        ("/charts/codes", {"a": "<script>alert(1)</script>", "b": "x"}),
    ],
)
def test_unknown_places_are_explained(client: TestClient, path: str, parameters: dict[str, str]) -> None:
    page = client.get(path, params=parameters, headers=BROWSER)
    assert page.status_code in (400, 404)
    assert "<script>alert" not in page.text


def test_forms_without_arguments_offer_what_there_is(client: TestClient) -> None:
    for path in ("/charts/places", "/charts/codes"):
        page = client.get(path, headers=BROWSER)
        assert page.status_code == 200
        assert "<option value=" in page.text
