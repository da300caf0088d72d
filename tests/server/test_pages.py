"""Every IRI has a page and its RDF; nothing that data or a request carry can become code or a link elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from itertools import chain
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from kg.errors import ClientBusyError
from kg.knowledge_graph import KnowledgeGraph
from kg.server import pages, static
from kg.server.html import href_of
from kg.server.mcp import ToolThreads
from kg.server.negotiation import GRAPH_TYPES
from kg.tools.entities import dereference as dereferencing
from kg.tools.entities.dereference import COUNTED, PAGE, QUADS, Dereferenced, dereference, short_name, worded_name
from kg.vocabulary import BASE, DCTERMS, ELI, FOAF, KG, PROV_GRAPH, RDF, RDFS, SCHEMA, mint
from tests.examples import dear
from tests.tools.made_up import Made
from tests.tools.made_up_speeches import day, quads_of

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
HOSTILE = mint("document", "hostile")
EVIL = "\"><script>alert(1)</script>'<img src=x onerror=alert(1)>{{ 7*7 }}&amp;"
SCRIPT = NamedNode("javascript:alert(document.domain)")
QUOTED = NamedNode("http://example.org/it's-\u00fcber?a=1&b=2")
CROWD = mint("place", "crowd")
BUSY = mint("document", "busy")


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    graph = mint("graph", "src", "hostile")
    quads = [
        Quad(HOSTILE, RDF.type, KG.PolicyDocument, graph),
        Quad(HOSTILE, DCTERMS.title, Literal(EVIL), graph),
        Quad(HOSTILE, RDFS.label, Literal(EVIL, language="en"), graph),
        Quad(HOSTILE, SCHEMA.text, Literal(EVIL + "\nsecond line"), graph),
        Quad(HOSTILE, FOAF.page, SCRIPT, graph),
        Quad(HOSTILE, FOAF.page, NamedNode("data:text/html,x"), graph),
        Quad(HOSTILE, FOAF.page, QUOTED, graph),
        Quad(HOSTILE, DCTERMS.source, NamedNode("https://example.org/outside"), graph),
        Quad(HOSTILE, NamedNode("http://example.org/%3Cp%3E"), Literal("x"), graph),
        *(Quad(mint("document", f"d{n}"), KG.jurisdiction, CROWD, graph) for n in range(PAGE * 2 + 3)),
        *(Quad(BUSY, DCTERMS.subject, NamedNode(f"http://example.org/s{n}"), graph) for n in range(QUADS + 5)),
    ]
    kg.store.commit({graph: quads})
    with TestClient(
        Starlette(routes=[*pages.routes(pages.Site(kg, ToolThreads(kg))), *static.routes()]),
        base_url="http://127.0.0.1:8000",
    ) as http:
        yield http


@pytest.fixture
def made(corpus: list[list[Made]]) -> list[Made]:
    return corpus[0]


class Page(HTMLParser):
    """The elements and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def data_of(path: str) -> str:
    """The table of properties, where the path has a page for reading too."""
    is_thing = path.startswith(("/resolve?", "/id/"))
    return f"{path}{'&' if '?' in path else '?'}view=data" if is_thing and "view=" not in path else path


def dereferenced_document(client: TestClient) -> str:
    """Find a document by the list of documents."""
    link = next(link for link in page_links(client, "/documents") if link.startswith("/resolve?iri=cpr"))
    return unquote(link.partition("iri=")[2])


def page_links(client: TestClient, path: str) -> list[str]:
    text = client.get(path, headers={"Accept": BROWSER}).text
    return [unescape(link) for link in re.findall(r'href="(/[^"]*)"', text)]


def page(client: TestClient, path: str, status: int = 200) -> Page:
    answer = client.get(data_of(path), headers={"Accept": BROWSER})
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    found = Page(answer.text)
    assert not found.tags & {"script", "img", "iframe", "object", "embed"}
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    for link in found.links:
        assert re.match(r"/(?!/)|https?://|data:,$|#", link), link
    return found


# What a page shows.


def test_a_document_has_its_title_its_class_and_its_text(client, made):
    passage = made[0]
    found = page(client, href_of(passage.document))
    assert passage.title in found.text
    assert "policy document" in found.text
    assert passage.text in found.text
    assert href_of(passage.iri) in found.links


def test_a_passage_is_readable_and_says_where_it_is_from(client, made):
    passage = made[0]
    found = page(client, href_of(passage.iri))
    assert f"Passage {passage.position} of {passage.title}" in found.text
    assert passage.text in found.text
    assert "read from made-up.parquet, row 1" in found.text
    assert "ab" * 32 in found.text
    assert f"graph/src/climate/{passage.slug}" in found.text
    assert href_of(passage.document) in found.links


def test_a_speech_says_who_says_each_part_of_it(kg, client):
    said = day()
    graphs: dict[NamedNode, list[Quad]] = defaultdict(list)
    for quad in (quad for row, each in enumerate(said, 1) for quad in quads_of(each, row)):
        if isinstance(quad.graph_name, NamedNode) and quad.graph_name != PROV_GRAPH:
            graphs[quad.graph_name].append(quad)
    kg.store.commit(graphs)
    speech = next(each for each in said if each.speech_id == "2024-05-06-senate-2")
    found = page(client, href_of(speech.iri.value))
    assert f"Text by parts {len(speech.chunks())} " in found.text
    for _, name, text in speech.utterances:
        assert f"{name} {text[:50]}" in found.text
    assert "Mara Di Fane" in found.text
    assert speech.debate is not None
    debate = page(client, href_of(speech.debate.value))
    assert "Parts of the kind “speech” 3 " in debate.text
    assert f"2 Senator DI FANE {speech.title}" in debate.text


def test_a_place_is_answered_at_its_own_path_and_shows_what_refers_to_it(client, made):
    passage = made[0]
    place = mint("place", passage.places[0])
    found = page(client, place.value.removeprefix(BASE[:-1]))
    assert place.value in found.text
    assert "Referring by “jurisdiction”" in found.text
    assert href_of(passage.document) in found.links


def test_a_graph_has_its_origin_and_what_it_speaks_of(client, made):
    graph = mint("graph", "src", "climate", made[0].slug)
    found = page(client, graph.value.removeprefix(BASE[:-1]))
    assert "Entities in this graph" in found.text
    assert href_of(made[0].document) in found.links


def test_a_term_has_its_definition_from_the_ontology_and_its_uses(client):
    found = page(client, href_of(KG.Passage.value))
    assert "A block of a policy document" in found.text
    assert "Referring by “type”" in found.text
    assert "Uses" in page(client, href_of(ELI.is_member_of.value)).text
    assert "running text" in page(client, "/vocab/blockType/Text").text.lower()


def test_a_path_keeps_its_percent_encoding(client):
    assert "inferred from gaps" in page(client, "/vocab/blockType/Inferred%20from%20gaps").text


def test_the_terms_have_a_page_and_a_document(client):
    found = page(client, "/ns")
    assert "kg:Passage" in found.text
    answer = client.get("/ns", headers={"Accept": "text/turtle"})
    subjects = {quad.subject for quad in parse(answer.content, format=RdfFormat.TURTLE)}
    assert {KG.Passage, KG.slug, NamedNode(BASE + "ns")} <= subjects


def test_the_start_page_counts_what_there_is_and_leads_on(kg, client):
    found = page(client, "/")
    assert f"{kg.store.statistics().quads:,} quads" in found.text
    ways = {"/places", "/people", "/concepts", "/documents", "/codes", "/search"}
    assert ways | {"/docs", "/sparql", "/graphs", "/tools", "/.well-known/void", "/ns", "/health"} <= set(found.links)
    links = client.get("/", headers={"Accept": "application/json"}).json()["links"]
    assert "/mcp" in links


def test_the_queries_behind_a_page_are_linked_and_give_the_same(kg, client, made):
    found = page(client, href_of(made[0].document))
    queries = [unquote(link.partition("query=")[2]).replace("+", " ") for link in found.links if "/sparql?" in link]
    assert len(queries) >= 4
    assert "SELECT DISTINCT ?graph ?property ?value" in queries[0]


# Caps and pages.


def referring(found: Dereferenced) -> list[str]:
    return [quad.subject.value for quad in found.references if isinstance(quad.subject, NamedNode)]


def test_references_are_paged_in_order_and_none_is_lost(kg, client):
    seen: list[str] = []
    for number in (1, 2, 3):
        answer = client.get(f"{href_of(CROWD.value)}&page={number}", headers={"Accept": "application/n-triples"})
        seen += re.findall(r"<cpr://doc/(d\d+)>", answer.text)
        assert answer.headers["quadcite-truncated"] == ("true" if number < 3 else "false")
        assert ('rel="next"' in answer.headers.get("link", "")) == (number < 3)
    assert sorted(seen) == sorted(f"d{n}" for n in range(PAGE * 2 + 3))
    in_order = [referring(dereference(kg, CROWD.value, number)) for number in (1, 2, 3)]
    assert list(chain(*in_order)) == sorted(f"cpr://doc/d{n}" for n in range(PAGE * 2 + 3))
    found = page(client, href_of(CROWD.value))
    assert f"{PAGE} of {PAGE * 2 + 3} on this page" in found.text
    assert f"{href_of(CROWD.value)}&page=2&view=data" in found.links


def test_references_are_paged_by_blocks_where_they_are_too_many_to_be_put_in_order(kg, client, monkeypatch):
    monkeypatch.setattr(dereferencing, "COUNTED", PAGE)
    pages_of = [dereference(kg, CROWD.value, number) for number in (1, 2, 3)]
    subjects = [referring(found) for found in pages_of]
    assert all(each == sorted(each) for each in subjects)
    assert len(set(chain(*subjects))) == PAGE * 2 + 3
    assert [found.more for found in pages_of] == [True, True, False]


def test_a_cut_is_announced(client):
    assert f"{QUADS:,} statements" in page(client, href_of(BUSY.value)).text
    answer = client.get(href_of(BUSY.value), headers={"Accept": "application/n-triples"})
    assert answer.headers["quadcite-truncated"] == "true"


@pytest.mark.parametrize("number", ["0", "-1", "x", "1e3", "٣", str(COUNTED + 1), "9" * 30])
def test_a_page_that_is_no_number_is_refused(client, number):
    assert client.get(href_of(CROWD.value) + "&page=" + quote(number)).status_code == 400


def test_there_is_no_page_behind_the_last(client):
    assert client.get(href_of(CROWD.value) + "&page=9").status_code == 404


# As RDF.


@pytest.mark.parametrize("media_type", GRAPH_TYPES)
@pytest.mark.parametrize("by", ["accept", "format"])
def test_the_same_is_given_as_rdf(kg, client, made, media_type, by):
    iri = made[0].document
    headers = {"Accept": media_type if by == "accept" else BROWSER}
    query = "" if by == "accept" else "&format=" + quote(media_type)
    answer = client.get(href_of(iri) + query, headers=headers)
    assert answer.headers["content-type"].startswith(media_type)
    form = RdfFormat.from_media_type(media_type)
    quads = list(parse(answer.content, format=form))
    about = {quad.triple for quad in quads if quad.subject == NamedNode(iri)}
    stored = {quad.triple for graph in kg.store.graphs() for quad in kg.store.graph(graph) if quad.subject.value == iri}
    assert about == stored
    if form.supports_datasets:
        assert {quad.graph_name for quad in quads if quad.subject == NamedNode(iri)} == {
            mint("graph", "src", "climate", made[0].slug)
        }


def test_a_program_that_takes_anything_gets_rdf_and_a_person_html(client, made):
    assert client.get(href_of(made[0].iri)).headers["content-type"].startswith("text/turtle")
    assert client.get(href_of(made[0].iri), headers={"Accept": BROWSER}).headers["content-type"].startswith("text/html")
    refused = client.get(href_of(made[0].iri), headers={"Accept": "image/png"})
    assert refused.status_code == 406


def test_each_format_is_linked_and_there(client, made):
    found = page(client, href_of(made[0].iri))
    formats = [link for link in found.links if "format=" in link]
    assert len(set(formats)) == len(GRAPH_TYPES)
    assert all(client.get(link).status_code == 200 for link in set(formats))


# Attacks.


def test_what_data_say_stays_text(client):
    found = page(client, href_of(HOSTILE.value))
    assert EVIL in " ".join(found.words)
    assert "7*7" in found.text  # not 49
    assert SCRIPT.value in found.text
    assert not any("javascript" in link.partition("?")[0] or link.startswith("data:text") for link in found.links)
    assert QUOTED.value in found.links
    assert "https://example.org/outside" in found.links


@pytest.mark.parametrize(
    "iri", [SCRIPT.value, "data:text/html,<b>", 'http://x/"onmouseover="alert(1)', "urn:x:'><script>", "cpr://doc/<b>"]
)
def test_what_a_request_says_stays_text(client, iri):
    answer = client.get("/resolve", params={"iri": iri}, headers={"Accept": BROWSER})
    assert answer.status_code in ([200] if iri == SCRIPT.value else [400, 404])
    page(client, "/resolve?iri=" + quote(iri, safe=""), answer.status_code)


@settings(max_examples=dear(60))
@given(st.text(min_size=1, max_size=40))
def test_no_text_for_an_iri_breaks_a_page(client, text):
    for iri in (text, "cpr://doc/" + text, "http://example.org/" + text):
        encoded = quote(iri.encode("utf-8", "replace"), safe="")
        status = client.get("/resolve?iri=" + encoded, headers={"Accept": BROWSER}).status_code
        assert status in (400, 404)
        page(client, "/resolve?iri=" + encoded, status)


@pytest.mark.parametrize(
    "path", ["/resolve", "/resolve?iri=", "/resolve?iri=a&iri=b", "/resolve?iri=no-iri", "/id/%ff%00"]
)
def test_what_is_no_iri_is_refused_in_the_form_asked_for(client, path):
    answer = client.get(path)
    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"] == "application/problem+json"
    page(client, path, answer.status_code)


# What is not there.


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("kg:Passage", KG.Passage.value),
        (KG.Passage.value.replace("https", "http", 1), KG.Passage.value),
        (KG.Passage.value + "s", KG.Passage.value),
        (CROWD.value + "/", CROWD.value),
        ("CPR://doc/busy", BUSY.value),
        (BUSY.value + "#p=99", BUSY.value),
        (BUSY.value + "#lang=xx", BUSY.value),
        (BUSY.value + "/", BUSY.value),
    ],
)
def test_what_may_have_been_meant_is_named(client, asked, meant):
    answer = client.get("/resolve", params={"iri": asked}, headers={"Accept": "application/json"})
    assert answer.status_code == 404
    assert f"<{meant}>" in answer.json()["message"]
    assert href_of(meant) in page(client, href_of(asked), 404).links


def test_words_of_a_slug_lead_to_documents_about_them(client):
    found = page(client, href_of("cpr://doc/a-geothermal-levy_zz9"), 404)
    assert any(link.startswith(href_of("cpr://doc/act-")) for link in found.links)


def test_words_of_a_slug_that_no_text_has_lead_nowhere(client):
    found = page(client, href_of("cpr://doc/giraffe-tariffs-elsewhere_zz9"), 404)
    assert [link for link in found.links if link.startswith(href_of("cpr://doc/"))] == []


def test_names_without_a_label_are_put_in_words():
    assert worded_name(DCTERMS.isPartOf.value) == "is part of"
    assert worded_name(ELI.is_member_of.value) == "is member of"
    assert worded_name("http://example.org/x/y") == "y"
    assert worded_name("http://www.w3.org/2003/06/sw-vocab-status/ns#term_status") == "term status"
    assert short_name(mint("commit", "2").value) == "commit 2"
    assert short_name(mint("snapshot", "sha256-" + "ab" * 32).value) == "snapshot sha256-abababababab…"


def test_the_style_sheet_has_an_address_of_its_content_and_loads_nothing_else(client):
    answer = client.get(href_of(KG.Passage.value), headers={"Accept": BROWSER})
    [address] = re.findall('<link rel="stylesheet" href="([^"]+)">', answer.text)
    style = client.get(unescape(address))
    assert style.headers["content-type"].startswith("text/css")
    assert "immutable" in style.headers["cache-control"]
    assert hashlib.sha256(style.content).hexdigest().startswith(address.partition("?v=")[2])
    assert "url(" not in style.text
    assert "@import" not in style.text


@pytest.mark.parametrize(
    "path",
    ["/", "/places", "/people?q=x", "/docs", "/docs/sparql", "/status", "/charts", "/ns", "/search?q=solar", "/login",
     "/resolve?iri=http://www.wikidata.org/entity/Q12707", "/id/place/DJI"],
)  # fmt: skip
def test_an_unknown_parameter_is_reported_and_a_known_one_is_not(client: TestClient, path: str) -> None:
    def warned(address: str) -> bool:
        return "Unknown parameter" in client.get(address, headers={"Accept": BROWSER}).text

    assert not warned(path)
    assert warned(path + ("&" if "?" in path else "?") + "colour=red")


def test_the_links_of_pages_have_no_unknown_parameter(client: TestClient) -> None:
    seen: dict[tuple[str, frozenset[str]], str] = {}
    for path in (
        "/",
        "/places",
        "/documents",
        "/search?q=solar",
        "/charts",
        href_of(dereferenced_document(client)),
        "/people",
    ):
        for link in page_links(client, path):
            parts = urlsplit(link)
            names = frozenset(name for name, _ in parse_qsl(parts.query))
            if names and not link.startswith(("/sparql", "/static")):
                seen.setdefault((parts.path, names), link)
    assert len(seen) > 8
    for link in seen.values():
        assert "Unknown parameter" not in client.get(link, headers={"Accept": BROWSER}).text, link


def test_a_client_over_its_share_gets_a_page_that_leads_back(kg: KnowledgeGraph) -> None:
    def refuse(request: Request) -> Response:
        raise ClientBusyError("Other requests of this client took too long.")

    route = pages.Site(kg, ToolThreads(kg)).route("/busy", refuse, ("q",))
    with TestClient(Starlette(routes=[route]), base_url="http://127.0.0.1:8000") as http:
        answer = http.get("/busy?q=%22%3E%C3%A9", headers={"Accept": BROWSER})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert '<a href="/busy?q=%22%3E%C3%A9">Try again</a>' in answer.text
        assert "Other requests of this client took too long." in answer.text
        assert http.get("/busy", headers={"Accept": "application/json"}).json()["code"] == "client_busy"


def test_a_page_without_scripts_allows_none(client):
    policy = client.get(href_of(KG.Passage.value), headers={"Accept": BROWSER}).headers["content-security-policy"]
    assert "script-src" not in policy
    assert "unsafe" not in policy
