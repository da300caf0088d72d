"""The pages of search, the start page and the lists, over the fixtures of all domains."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from pyoxigraph import RdfFormat, parse
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.errors import IndexUnavailableError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.filters import hint
from kg.retrieval.hybrid_search import Retrieved
from kg.retrieval.notes import Note, select_for_people, word_for_people
from kg.retrieval.results import SearchFilters, SearchResult
from kg.retrieval.search_notes import describe_ranking
from kg.server import pages, static
from kg.server.mcp import ToolThreads
from kg.server.pages.search import PARAMETERS, State, _to_cell
from kg.tools.registry import TOOLS
from kg.tools.search.passages import fetch, search
from tests.server.test_pages import Page, page

WATER = "flood"


@pytest.fixture(scope="module")
def client(joined: KnowledgeGraph) -> Iterator[TestClient]:
    routes = [*pages.routes(pages.Site(joined, ToolThreads(joined))), *static.routes()]
    with TestClient(Starlette(routes=routes), base_url="http://127.0.0.1:8000") as http:
        yield http


def markup(client: TestClient, path: str, status: int = 200) -> str:
    answer = client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text[:300]
    return answer.text


def search_links(found: Page, name: str) -> list[str]:
    return [
        link for link in found.links if link.startswith("/search?") and name in dict(parse_qsl(urlsplit(link).query))
    ]


# Search.


def test_results_are_those_of_the_tool_with_their_words_marked_in_the_verbatim_text(
    client: TestClient, joined: KnowledgeGraph
) -> None:
    text = markup(client, f"/search?q={WATER}")
    hits = search(joined, WATER).results
    quotes = re.findall(r'<blockquote class="found"[^>]*>(.*?)</blockquote>', text, re.DOTALL)
    assert len(quotes) == len(hits) > 3
    whole = {each.id: each.passage.text for each in fetch(joined, ids=[hit.id for hit in hits]).evidence}
    for hit, quote in zip(hits, quotes, strict=True):
        without_cuts = re.sub(r'<span class="cut".*?</span>', "", quote)
        words = unescape(re.sub("<[^>]+>", "", without_cuts))
        assert words in whole[hit.id]
        for marked in re.findall("<mark>(.*?)</mark>", quote):
            assert marked.casefold().startswith("flood")
    assert "<mark>" in quotes[0]


def test_a_facet_narrows_to_as_many_passages_as_it_says(client: TestClient) -> None:
    found = page(client, f"/search?q={WATER}")
    text = markup(client, f"/search?q={WATER}")
    for href, count in re.findall(
        r'<a href="(/search\?q=flood&amp;[^"]+)"[^>]*>.*?<span class="count">([\d,]+)</span>', text
    )[:12]:
        narrowed = page(client, unescape(href))
        assert f"{int(count):,} passage" in narrowed.text
    assert search_links(found, "domain")


@pytest.mark.parametrize("chosen", [[("domain", "climate")], [("domain", "zoning")], [("language", "en")]])
def test_a_search_within_filters_lists_what_the_filters_of_the_tool_do(
    client: TestClient, joined: KnowledgeGraph, chosen: list[tuple[str, str]]
) -> None:
    within = [("within", name) for name, _ in chosen]
    whole = "/search?" + urlencode([("q", WATER), *chosen])
    narrow = "/search?" + urlencode([("q", WATER), *chosen, *within])
    assert narrow in page(client, whole).links
    assert whole in page(client, narrow).links
    filters = SearchFilters(**{name: [value] for name, value in chosen})
    ids = [hit.id for hit in search(joined, WATER, filters).results]
    for href in (narrow, *(link for link in page(client, narrow).links if "format=json" in link)):
        content = client.get(href if "format=" in href else f"{href}&format=json").json()
        assert [hit["id"] for hit in content["results"]] == ids


def test_the_numbers_within_filters_are_those_of_the_lists(client: TestClient) -> None:
    text = markup(client, f"/search?q={WATER}&domain=climate&within=domain")
    facets = text[text.index('<aside class="facets"') : text.index("</aside>")]
    values = re.findall(r'<a href="([^"]+)"( class="chosen")?.*?<span class="count">([\d,]+)</span>', facets)
    assert [chosen for _, chosen, _ in values].count(' class="chosen"') == 1
    narrowed = [(unescape(href), count) for href, chosen, count in values if not chosen]
    assert len(narrowed) > 3
    for href, count in narrowed[:12]:
        assert ("within", "domain") in parse_qsl(urlsplit(href).query)
        assert f"{int(count):,} passage" in page(client, href).text


@pytest.mark.parametrize("path", ["/search?q=flood&within=domain", "/search?domain=climate&within=domain"])
def test_within_needs_words_and_a_filter(client: TestClient, path: str) -> None:
    without = path.partition("&within")[0]
    results = [client.get(f"{each}&format=json").json()["results"] for each in (path, without)]
    assert results[0] == results[1]
    assert "Search within these filters" not in page(client, path).text
    assert client.get("/search?q=flood&domain=climate&within=1", headers={"Accept": "text/html"}).status_code == 400


def test_the_address_holds_the_whole_state_and_a_chosen_value_can_be_removed(client: TestClient) -> None:
    path = "/search?" + urlencode([("q", WATER), ("domain", "climate"), ("domain", "zoning"), ("sort", "newest")])
    found = page(client, path)
    kept = [parse_qsl(urlsplit(link).query) for link in search_links(found, "sort")]
    assert [("q", WATER), ("domain", "climate"), ("sort", "newest")] in kept
    assert f"/search?q={WATER}&sort=newest" in found.links


def test_pages_follow_one_another_without_repeating(client: TestClient, joined: KnowledgeGraph) -> None:
    seen: list[str] = []
    path = "/search?q=the+energy+of+water"
    for _ in range(30):
        text = markup(client, path)
        seen += re.findall(r'href="(/cite\?id=[^"]+)"', text)
        following = re.search(r'<a rel="next" href="([^"]+)"', text)
        if following is None:
            break
        path = unescape(following[1])
    assert len(seen) == len(set(seen)) > 20


@pytest.mark.parametrize(("sort", "reverse"), [("newest", True), ("oldest", False)])
def test_results_are_sorted_by_date(client: TestClient, joined: KnowledgeGraph, sort: str, reverse: bool) -> None:
    content = client.get(f"/search?q=energy&sort={sort}&format=json").json()
    years = [joined.search.load_codes([hit["id"]])[hit["id"]].get("year") for hit in content["results"]]
    dated = [each[0] for each in years if each]
    assert dated == sorted(dated, reverse=reverse)
    assert len(dated) > 3


def test_results_are_given_as_csv_and_json(client: TestClient, joined: KnowledgeGraph) -> None:
    ids = [hit.id for hit in search(joined, WATER).results]
    rows = list(csv.DictReader(io.StringIO(client.get(f"/search?q={WATER}&format=csv").text)))
    assert [row["id"] for row in rows] == ids
    assert all(row["text"] and row["graph"] for row in rows)
    content = client.get(f"/search?q={WATER}&format=json").json()
    assert [hit["id"] for hit in content["results"]] == ids
    assert content["facets"]["passages"] >= len(ids)


def test_filters_alone_are_counted_exactly(client: TestClient, joined: KnowledgeGraph) -> None:
    counted = search(joined, facets=["domain"]).facets
    assert counted is not None
    assert f"{counted.passages} passages in {counted.documents} documents" in page(client, "/search").text
    climate = next(each for each in counted.values["domain"] if each.value == "climate")
    assert f"{climate.passages} passages" in page(client, "/search?domain=climate").text


@pytest.mark.parametrize("filters", ["domain=climate", "concept=Q1012", "domain=zoning&sort=title", "once=1"])
def test_filters_alone_list_all_passages_page_by_page(client: TestClient, filters: str) -> None:
    first = client.get(f"/search?{filters}&format=json&limit=200").json()
    total = first["total"]
    seen: list[str] = []
    path = f"/search?{filters}"
    while path:
        text = markup(client, path)
        seen += re.findall(r'href="(/cite\?id=[^"]+)"', text)
        assert f"Page {len(seen[:-1]) // 20 + 1} of {-(-total // 20)}" in text or total <= 20
        following = re.search(r'<a rel="next" href="([^"]+)"', text)
        path = unescape(following[1]) if following else ""
    assert len(seen) == len(set(seen)) == total > 0
    assert [hit["id"] for hit in first["results"]] == [
        dict(parse_qsl(urlsplit(unescape(link)).query))["id"] for link in seen[:200]
    ]
    rows = list(csv.DictReader(io.StringIO(client.get(f"/search?{filters}&format=csv&limit=200").text)))
    assert [row["id"] for row in rows] == [hit["id"] for hit in first["results"]]
    assert not any(row["score"] for row in rows)


def test_the_page_of_refused_filters_does_not_grow_with_their_square(client: TestClient) -> None:
    sizes = [
        len(markup(client, f"/search?{urlencode([('year', str(n)) for n in range(most)])}", 400)) for most in (400, 800)
    ]
    assert sizes[1] < 1.1 * sizes[0]


def test_a_concept_as_a_filter_is_marked_where_it_is_mentioned(client: TestClient) -> None:
    text = markup(client, "/search?concept=Q1012")
    quotes = re.findall(r'<blockquote class="found"[^>]*>(.*?)</blockquote>', text, re.DOTALL)
    assert quotes
    assert all("<mark>" in quote for quote in quotes)


def test_the_queries_behind_the_results_lead_to_the_editor(client: TestClient) -> None:
    found = page(client, f"/search?q={WATER}&domain=climate")
    assert [link for link in found.links if link.startswith("/sparql?query=SELECT")]


def test_an_iri_is_looked_up(client: TestClient) -> None:
    answer = client.get("/search?q=cpr://doc/x", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/resolve?iri=cpr%3A%2F%2Fdoc%2Fx")


# Bad input.


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({"q": "x" * 10_000}, 400),
        ({"q": "flood", "year": "MMXX"}, 400),
        ({"q": "flood", "domain": "alchemy"}, 400),
        ({"q": "flood", "place": "Nowhereland"}, 404),
        ({"q": "flood", "party": "The Silly Party"}, 404),
        ({"q": "flood", "language": "<script>alert(1)</script>"}, 404),
        ({"q": "flood", "language": "Klingon"}, 404),
        ({"q": "flood", "sort": "colour"}, 400),
        ({"q": "flood", "page": "0"}, 400),
        ({"q": "flood", "page": "9999999999"}, 400),
        ({"limit": "0"}, 400),
        ({"limit": "201"}, 400),
        ({"page": "5002"}, 400),
        ({"page": "5001"}, 200),
        ({"q": "flood", "page": "٣"}, 400),
        ({"q": "flood", "format": "exe"}, 400),
        ({"q": "flood" + "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")}, 200),
        ({"q": "\ud800".encode("utf-8", "surrogatepass")}, 400),
        ({"q": "§"}, 400),
        ({"q": "§ 12-3"}, 200),
    ],
)
def test_what_cannot_be_searched_is_refused_on_a_page(
    client: TestClient, parameters: dict[str, str], status: int
) -> None:
    found = page(client, "/search?" + urlencode(parameters), status)
    assert len(found.text) < 40_000


@pytest.mark.parametrize(
    "words",
    [
        "قانون المياه",
        "水資源の管理",
        '"><script>alert(1)</script>',
        "javascript:alert(1)",
        "{{ 7*7 }}",
        "' OR 1=1 --",
        "}} UNION { ?s ?p ?o }",
        "\u202egnidaer",
        "\U0001f30d solar",
        "s\u200bolar\u200d pan\u00adels",
        "e\u0301cole",
        "مرحبا hello 太阳能 школа",
        "\U000e0041\U000e0042solar",
    ],
)
def test_hostile_and_foreign_words_are_only_words(client: TestClient, words: str) -> None:
    found = page(client, "/search?" + urlencode({"q": words}))
    assert not [link for link in found.links if link.startswith("javascript:")]
    text = markup(client, "/search?" + urlencode({"q": words}))
    assert "<script>alert" not in text
    given = re.search(r'<input name="q"[^>]* value="([^"]*)"', text)
    assert given is not None
    assert unescape(given[1]) == words


def test_an_error_and_a_note_name_the_parameters_of_the_page(client: TestClient) -> None:
    def warnings(path: str) -> list[str]:
        text = client.get(path, headers={"Accept": "text/html"}).text
        return [unescape(each) for each in re.findall(r'<p class="warn"[^>]*>(.*?)</p>', text)]

    [unknown, invalid] = warnings("/search?q=water&year=soon&colour=red")
    assert "colour" in unknown
    assert {*PARAMETERS} <= set(re.findall(r"\w+", unknown))
    assert invalid.startswith("year: ")
    for text in (invalid, *warnings("/search?q=water&place=Nowhereland")):
        assert not {"iso3", "family_slug", "neighbours", "min_score", "filters"} & set(re.findall(r"\w+", text))
    assert "Unknown parameter" not in markup(client, "/search?q=water&domain=climate")


def test_a_form_names_its_field_in_an_error(client: TestClient) -> None:
    text = client.get("/charts/places?a=Nowhereland&b=Utah").text
    assert "iso3_a" not in text


@pytest.mark.parametrize(
    "wrong", ["page=0", "limit=999", "format=exe", "year=soon", "place=Nowhereland", "sort=colour"]
)
def test_a_refused_search_keeps_its_words_and_filters_on_its_page(client: TestClient, wrong: str) -> None:
    answer = client.get(f"/search?q=flood+levee&domain=climate&{wrong}", headers={"Accept": "text/html"})
    assert answer.status_code in (400, 404)
    assert 'value="flood levee"' in answer.text
    assert '<input type="hidden" name="domain" value="climate">' in answer.text
    data = client.get(f"/search?q=flood+levee&{wrong}", headers={"Accept": "application/json"})
    assert data.status_code == answer.status_code
    assert data.json()["code"] in ("invalid_input", "not_found")


def test_the_json_of_a_search_has_a_line_for_each_value(client: TestClient) -> None:
    answer = client.get(f"/search?q={WATER}&format=json")
    assert answer.headers["content-type"].startswith("application/json")
    assert len(answer.text.splitlines()) > 10 * len(answer.json()["results"]) > 0


def test_the_only_chosen_value_of_a_facet_has_the_number_of_the_results(client: TestClient) -> None:
    for domain in ("climate", "parliament", "zoning"):
        text = markup(client, f"/search?q={WATER}&domain={domain}")
        [count] = re.findall(r'class="chosen".*?<span class="count">([\d,]+)</span>', text)
        assert f"<strong>{count} passage" in text


def test_nothing_relevant_is_said_as_such(client: TestClient) -> None:
    text = markup(client, "/search?q=qzxvw+jjkkpp")
    assert '<blockquote class="found"' not in text.partition('<section class="nearest">')[0]
    assert "<mark>" not in text
    found = json.loads(client.get("/search?q=qzxvw+jjkkpp&format=json").text)
    assert (found["results"], found["facets"]["passages"]) == ([], 0)


NOTHING = Retrieved([], "approximate", None, None)


@pytest.mark.parametrize(
    "note",
    [
        *describe_ranking(replace(NOTHING, degraded="store"), "passages"),
        *describe_ranking(replace(NOTHING, degraded="words"), "passages"),
        *describe_ranking(replace(NOTHING, pending=3), "passages"),
        hint("x", [f"value {number}" for number in range(40)]),
    ],
)
def test_a_note_on_a_page_names_no_tool(note: str) -> None:
    names = {tool.name for tool in TOOLS} - {"search", "status"}
    assert names & set(re.findall(r"\w+", note))
    assert not names & set(re.findall(r"\w+", word_for_people(note)))


def test_notes_keep_their_words_for_people_in_a_result_and_are_plain_text_for_agents() -> None:
    note = Note("health has it.", "The status page has it.")
    result = SearchResult(results=[], notes=[note, "Plain.", Note("For agents.")])
    assert select_for_people(result.notes) == ["The status page has it.", "Plain."]
    assert json.loads(result.model_dump_json())["notes"] == ["health has it.", "Plain.", "For agents."]
    assert SearchResult.model_json_schema()["properties"]["notes"]["items"] == {"type": "string"}


def test_an_index_that_does_not_answer_degrades_and_is_said(
    client: TestClient, joined: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexUnavailableError("The search index is stopped.")

    for operation in ("rank", "count", "load_codes"):
        monkeypatch.setattr(joined.search, operation, fail)
    found = page(client, f"/search?q={WATER}")
    assert "index does not answer" in found.text
    assert "flood" in found.text
    assert "search index is stopped" in page(client, "/").text
    assert page(client, "/search", 503).text


# Start page and lists.


def test_the_examples_of_the_start_page_have_results(client: TestClient) -> None:
    found = page(client, "/")
    examples = [link for link in found.links if link.startswith(("/search?q=", "/search?place="))]
    assert len(examples) > 2
    for link in examples:
        content = client.get(link + "&format=json").json()
        assert content["results"], link


@pytest.mark.parametrize("path", ["/places", "/people", "/concepts", "/documents", "/codes"])
def test_the_links_of_a_list_lead_to_pages(client: TestClient, path: str) -> None:
    found = page(client, path)
    inside = [link for link in dict.fromkeys(found.links) if link.startswith(("/resolve?", "/search?"))]
    assert len(inside) > 2
    for link in inside[:3] + inside[-3:]:
        assert client.get(link, headers={"Accept": "text/html"}).status_code == 200, link


def test_a_town_has_the_number_of_its_sections_and_no_link_without_any(
    client: TestClient, joined: KnowledgeGraph
) -> None:
    text = markup(client, "/codes")
    counted = search(joined, facets=["place"], filters=SearchFilters(domain=["zoning"])).facets
    assert counted is not None
    numbers = {each.value: each.passages for each in counted.values["place"]}
    linked = dict(re.findall(r'href="/search\?place=([\w-]+)&amp;domain=zoning">([\d,]+)<', text))
    assert linked
    assert {key: f"{numbers[key]:,}" for key in linked} == linked


def test_lists_are_filtered_and_paged(client: TestClient) -> None:
    assert "geothermal" in page(client, "/concepts?q=geothrmal").text
    assert page(client, "/people?page=0", 400).text
    for path in ("/codes", "/people", "/documents"):
        assert "None is named like that" in page(client, f"{path}?q=zzz").text


# Citations.


def test_a_passage_is_cited_in_each_form(client: TestClient, joined: KnowledgeGraph) -> None:
    hit = search(joined, WATER).results[0]
    passage = fetch(joined, id=hit.id).evidence[0]
    words = passage.passage.text
    address = "/cite?" + urlencode({"id": hit.id, "span": "0-5"})
    assert words[:5] in page(client, address).text
    text = client.get(address + "&format=text").text
    assert words[:5] in text
    assert hit.id in text
    [item] = json.loads(client.get(address + "&format=csl").text)
    assert item["title"] == passage.document.title
    turtle = client.get(address + "&format=ttl")
    quads = list(parse(turtle.content, format=RdfFormat.TURTLE))
    assert words[:5] in {getattr(quad.object, "value", None) for quad in quads}
    assert client.get(address + "&format=bibtex").text.startswith("@misc{")
    assert client.get(address + "&format=markdown").text.startswith("> ")


@pytest.mark.parametrize("span", ["5-5", "9-2", "0-999999999", "a-b", "-1-3", "0", "1e3-5"])
def test_a_span_outside_the_text_is_refused(client: TestClient, joined: KnowledgeGraph, span: str) -> None:
    hit = search(joined, WATER).results[0]
    page(client, "/cite?" + urlencode({"id": hit.id, "span": span}), 400)


def test_a_state_is_read_back_from_its_address() -> None:
    state = State("a & b", {"place": ["US-UT", "Sandy, UT"]}, "newest", 3)
    assert dict(parse_qsl(urlsplit(state.href).query)) == {
        "q": "a & b", "place": "Sandy, UT", "sort": "newest", "page": "3",
    }  # fmt: skip
    assert state.toggle("place", "US-UT").toggle("place", "US-UT").filters == {"place": ["Sandy, UT", "US-UT"]}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_of_results_is_a_formula(text: str) -> None:
    assert _to_cell(text) == f"'{text}"
    assert _to_cell(f"Levy {text}") == f"Levy {text}"
