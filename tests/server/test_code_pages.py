"""The pages of codes are read by people: sections by number and title, tables as tables, rules by what they say."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from pyoxigraph import Literal, NamedNode, Quad
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server import pages
from kg.server.mcp import ToolThreads
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, mint
from tests.conftest import load_once
from tests.folders import open_graph

BEND = "/id/section/us-ut-quarry-bend/"
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = load_once(tmp_path_factory, "zoning")
    with open_graph(folder) as opened:
        section, graph = mint("section", "us-ut-evil", "1"), mint("graph", "user", "evil")
        table = NamedNode(section.value + "#table=0")
        cells = f'[[{{"text":"{EVIL}7","raised":[[25,26]],"colspan":2}}],["a","b"]]'
        opened.store.commit(
            {
                graph: [
                    Quad(section, RDF.type, KG.CodeSection, graph),
                    Quad(section, KG.sectionNumber, Literal("1"), graph),
                    Quad(section, SCHEMA.text, Literal("before\n" + "x" * 10 + "\nafter"), graph),
                    Quad(table, DCTERMS.isPartOf, section, graph),
                    Quad(table, KG.cells, Literal(cells), graph),
                    Quad(table, KG.start, Literal(7), graph),
                    Quad(table, KG.end, Literal(17), graph),
                ]
            }
        )
        yield opened


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(
        Starlette(routes=pages.routes(pages.Site(kg, ToolThreads(kg)))), base_url="http://127.0.0.1:8000"
    ) as http:
        yield http


def data_of(path: str) -> str:
    """The table of properties, where the path has a page for reading too."""
    is_thing = path.startswith(("/resolve?", "/id/"))
    return f"{path}{'&' if '?' in path else '?'}view=data" if is_thing and "view=" not in path else path


def shown(client: TestClient, path: str) -> str:
    answer = client.get(data_of(path), headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text[:500]
    return answer.text


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def test_a_section_is_headed_by_its_number_and_title(client):
    assert '<h1 dir="auto">17.24.040 Dimensional Standards</h1>' in shown(client, BEND + "17.24.040")


def test_a_chapter_lists_its_sections_by_their_numbers(client):
    page = words(shown(client, BEND + "17.24"))
    assert "17.24.010 Purpose" in page
    assert page.index("17.24.010") < page.index("17.24.040")
    assert "17.24.010 17.24.010" not in page


def test_a_table_stands_as_a_table_where_its_lines_stand_in_the_text(client):
    page = shown(client, BEND + "17.52.010")
    text = page.partition("<blockquote")[2].partition("</blockquote>")[0]
    assert text.count("<tr>") == 10
    assert "<th>R2</th>" in text
    assert "<td>Kiln</td>" in text
    assert " | " not in text
    assert words(text).index("is not permitted.") < words(text).index("Use R-1")


def test_rules_and_claims_are_named_by_what_they_say(client):
    page = words(shown(client, BEND + "17.24.040"))
    assert "minimum front setback in R-2: 20 feet" in page
    assert page.index("Referring by “defined in”") < page.index("Referring by “has source”")
    assert "Duplex in R-2: by right" in words(shown(client, BEND + "17.24.020"))


def test_a_district_has_its_code_in_its_heading(client):
    assert "R-2 Two-Family Residential District</h1>" in shown(client, "/id/district/us-ut-quarry-bend/R-2")


def test_a_municipality_leads_to_its_code(client):
    page = shown(client, "/id/municipality/us-ut-quarry-bend")
    assert re.search(r"<h2>Code</h2>\s*<ul class=\"list\">\s*<li><a [^>]*>17 Zoning</a>", page)


def test_what_a_cell_says_stays_text_and_marks_are_raised(client):
    text = shown(client, "/id/section/us-ut-evil/1").partition("<blockquote")[2].partition("</blockquote>")[0]
    assert "<script" not in text
    assert '<td colspan="2">&lt;script&gt;alert(1)&lt;/script&gt;<sup>7</sup></td>' in text
    assert text.index("before") < text.index("<table>") < text.index("after")
    assert "xxx" not in text


def test_an_edge_from_a_claim_names_the_graphs_and_the_file_behind_it(client: TestClient, kg: KnowledgeGraph) -> None:
    query = """SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o }
      FILTER(STRSTARTS(STR(?g), "https://w3id.org/quadcite/graph/der/promote/zoning/us-ut-quarry-bend/")) } LIMIT 1"""
    [row] = kg.store.query(query)
    page = shown(client, f"/resolve?iri={row['s'].value}")
    graphs = page[page.index("<h2>Graphs</h2>") :]
    assert "computed from" in graphs
    assert "/ext/zoning/us-ut-quarry-bend/" in graphs
    assert "title_17_zoning.html" in graphs
