"""The charts: their numbers are those of the tools, and their tables are complete without scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.server.app import create_app
from kg.server.pages.charts import OTHERS
from kg.server.pages.site import ask
from kg.tools.climate.document_counts import count_documents
from kg.tools.climate.jurisdictions import compare_jurisdictions
from kg.tools.parliament.speakers import speech_stats
from kg.tools.zoning.municipalities import load_places

BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def client(joined: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(create_app(joined), base_url="http://127.0.0.1:8000") as client:
        yield client


def spec(text: str, name: str) -> dict:
    block = re.search(rf'<script type="application/json" id="{name}-data">(.*?)</script>', text, re.DOTALL)
    assert block is not None
    return json.loads(block[1])


def test_documents_by_place_and_year_add_up(joined: KnowledgeGraph, client: TestClient) -> None:
    text = client.get("/charts", headers=BROWSER).text
    counts = count_documents(joined)
    query = "SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE { ?d a kg:PolicyDocument ; kg:slug ?s }"
    total = client.get("/sparql", params={"query": query}).json()["results"]["bindings"][0]["n"]["value"]
    assert sum(counts.by_year.values()) == int(total)
    by_place = spec(text, "documents-by-place")["rows"]
    assert sum(row["documents"] for row in by_place) == sum(each.documents for each in counts.by_place if each.place)
    by_year = spec(text, "documents-by-year")
    assert sum(row["documents"] for row in by_year["rows"]) == sum(
        each.documents for each in counts.by_place if each.year
    )
    for row in by_place:
        assert row["place"] in text
    assert 'href="/sparql?query=' in text


def test_speeches_are_those_that_the_tool_counts(joined: KnowledgeGraph, client: TestClient) -> None:
    text = client.get("/charts", headers=BROWSER).text
    parties = ask(joined, speech_stats, group_by="party").result
    drawn = {row["party"]: row["speeches"] for row in spec(text, "speeches-by-party")["rows"]}
    assert drawn == {group.label: group.speeches for group in parties.groups if group.speeches}
    by_year = spec(text, "speeches-by-year")["rows"]
    years = ask(joined, speech_stats, group_by="year").result
    for group in years.groups:
        assert sum(row["speeches"] for row in by_year if row["year"] == group.label) == group.speeches
    for name in {row["party"] for row in by_year} - {OTHERS}:
        of_party = ask(joined, speech_stats, group_by="year", party=name).result.groups
        counted = {row["year"]: row["speeches"] for row in by_year if row["party"] == name}
        assert counted == {group.label: group.speeches for group in of_party if group.speeches}


def test_two_places_are_compared_as_the_tool_does(joined: KnowledgeGraph, client: TestClient) -> None:
    text = client.get("/charts/places", params={"a": "BRA", "b": "FJI", "by": "corpus_type"}, headers=BROWSER).text
    found = ask(joined, compare_jurisdictions, iso3_a="BRA", iso3_b="FJI", by="corpus_type").result
    drawn = spec(text, "comparison")["rows"]
    assert [row["documents"] for row in drawn if row["place"] == "BRA"] == found.a
    assert [row["documents"] for row in drawn if row["place"] == "FJI"] == found.b


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
