"""Pages for reading: the whole text, its marks, exact highlights, and nothing that users or data could smuggle in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from pyoxigraph import Literal, NamedNode, Quad
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.server import pages
from kg.server.html import href_of
from kg.server.mcp import ToolThreads
from kg.server.pages import sections
from kg.server.pages.documents import find_direction
from kg.server.pages.reading import list_cited, passage_href, why_href, why_triple_href
from kg.server.pages.site import Site
from kg.server.pages.speeches import part_anchor
from kg.store.protocol import term_text
from kg.tools.parliament.speakers import list_speakers, speech_stats
from kg.tools.reading.documents import OUTLINE, PASSAGES, Heading, LeftOut, choose_headings
from kg.tools.reading.marks import Cited
from kg.tools.zoning.provisions import kg_query_permissions, kg_query_standards
from kg.tools.zoning.rules import Span
from kg.vocabulary import DCTERMS, ELI, KG, OA, RDF, SCHEMA, SKOS, mint, mint_mention
from tests.conftest import load, load_once, opened, shipped

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
EVIL = "\"><script>alert(1)</script>'<img src=x onerror=alert(1)>{{ 7*7 }}"
TEXTS = (
    "plain words",
    EVIL,
    "e\u0301tat combinant \u1100\u1161\u11a8",
    "waves \U0001f30a and \U0001f468\u200d\U0001f469\u200d\U0001f467 families",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u202eoverride\u202c",
    "\u6c14\u5019\u53d8\u5316\u6cd5 \u5730\u71b1",
    "lines\r\nwith\rreturns\n\nand\tblank ones \u2028 x",
    "  leading and trailing  ",
)
DOCUMENT = mint("document", "hostile-reading")
CONCEPT = mint("concept", "Q666")


class Page(HTMLParser):
    """The tags, links, marked words and visible words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.marked = ""
        self.words = ""
        self._inside = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not (tag == "script" and (dict(attrs).get("src") or "").startswith("/static/")):  # a script of the server
            self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        self._inside += tag == "mark"

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag == "mark"

    def handle_data(self, data: str) -> None:
        self.words += data
        if self._inside:
            self.marked += data


def read(client: TestClient, path: str) -> Page:
    answer = client.get(path, headers=BROWSER)
    assert answer.status_code == 200, (path, answer.text[:400])
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    found = Page(answer.text)
    assert not found.tags & {"script", "img", "iframe", "object", "embed"}
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    for link in found.links:
        assert re.match(r"/(?!/)|https?://|data:,$|#", link), link
    return found


def client_of(kg: KnowledgeGraph) -> TestClient:
    return TestClient(Starlette(routes=pages.routes(Site(kg, ToolThreads(kg)))), base_url="http://127.0.0.1:8000")


@pytest.fixture(scope="module")
def whole(joined: KnowledgeGraph) -> Iterator[TestClient]:
    with client_of(joined) as http:
        yield http


def select(kg: KnowledgeGraph, query: str) -> list[dict[str, str]]:
    return [{name: term_text(term) for name, term in row.items()} for row in Reader(kg).rows("a test", query)]


# Each kind of page, over the fixtures of all domains.


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("kg:PolicyDocument", "passages"),
        ("kg:File", "passages"),
        ("kg:Speech", "words"),
        ("kg:Sitting", "speeches"),
        ("kg:Debate", "speech"),
        ("kg:CodeSection", "Cites|Rules found|Before|After|no text"),
        ("kg:Municipality", "code sections|zoning districts"),
        ("kg:Place", ""),
        ("foaf:Person", "Votes"),
        ("skos:Concept", "Mentions"),
        ("kg:PolicyFamily", "Documents"),
        ("kg:ExternalLaw", "Cited by|No loaded text"),
        ("kg:Entity", "Relations"),
    ],
)
def test_each_entity_of_a_kind_has_a_page_for_reading(joined, whole, kind: str, words: str) -> None:
    rows = select(
        joined, f"SELECT DISTINCT ?it WHERE {{ ?it a {kind} FILTER(!CONTAINS(STR(?it), '/vocab/')) }} LIMIT 12"
    )
    assert rows
    for row in rows:
        found = read(whole, href_of(row["it"]))
        assert re.search(words, found.words), row
        assert f"{href_of(row['it'])}&view=data" in found.links or kind in ("kg:Debate", "skos:Concept")


def test_every_mention_of_the_fixtures_opens_with_exactly_its_words(joined, whole) -> None:
    rows = select(
        joined,
        """SELECT ?mention ?unit ?start ?end ?text WHERE {
          ?mention oa:hasSource ?unit ; kg:matchType ?type ; kg:start ?start ; kg:end ?end . ?unit schema:text ?text
        } ORDER BY ?mention LIMIT 40""",
    )
    assert len(rows) == 40
    for row in rows:
        wanted = row["text"][int(row["start"]) : int(row["end"])]
        assert read(whole, passage_href(row["unit"], (int(row["start"]), int(row["end"])))).marked == wanted
        assert read(whole, passage_href(row["mention"])).marked == wanted


def test_the_words_of_every_rule_are_highlighted_also_in_tables(joined, whole) -> None:
    rows = select(
        joined,
        """SELECT ?section ?start ?end ?words WHERE {
          ?rule kg:definedIn ?section ; kg:evidence ?span . ?table a kg:CodeTable ; dcterms:isPartOf ?section .
          ?span kg:start ?start ; kg:end ?end ; oa:exact ?words
        } ORDER BY ?section ?start LIMIT 25""",
    )
    assert rows
    for row in rows:
        found = read(whole, passage_href(row["section"], (int(row["start"]), int(row["end"]))))
        assert found.marked == row["words"]
        assert "table" in found.tags


def test_the_page_of_a_document_has_every_character_of_its_passages(joined, whole) -> None:
    rows = select(
        joined, "SELECT ?doc ?text WHERE { ?unit dcterms:isPartOf ?doc ; schema:text ?text . ?doc a kg:PolicyDocument }"
    )
    for document in sorted({row["doc"] for row in rows})[:4]:
        words = read(whole, href_of(document)).words
        for row in rows:
            assert row["doc"] != document or row["text"] in words


def test_a_highlight_in_a_speech_adds_no_white_space_around_its_voices(joined, whole) -> None:
    def voices(path: str) -> list[str]:
        text = whole.get(path, headers=BROWSER).text
        return [re.sub(r"<[^>]*>", "", each) for each in re.findall(r'<div class="prose"[^>]*>(.*?)</div>', text, re.S)]

    rows = select(joined, "SELECT DISTINCT ?it WHERE { ?voice a kg:Utterance ; dcterms:isPartOf ?it } LIMIT 5")
    assert rows
    for row in rows:
        assert voices(passage_href(row["it"], (2, 5)).partition("#")[0]) == voices(href_of(row["it"]))


def test_a_part_of_a_sitting_day_is_one_click_away_on_its_page(joined, whole) -> None:
    rows = select(joined, "SELECT ?it WHERE { ?it a kg:Division } LIMIT 5")
    assert rows
    for row in rows:
        text = whole.get(href_of(row["it"]), headers=BROWSER).text
        [anchor] = re.findall(r'<a href="#([\w-]+)">Division', text)
        assert anchor == part_anchor(row["it"])
        assert re.search(rf'class="division asked" id="{anchor}"', text)


@pytest.mark.parametrize(
    ("text", "language", "direction"),
    [
        ("2030", "ar", "rtl"),
        ("2030", "en", "auto"),
        ("2030", None, "auto"),
        ("2030", "?", "auto"),
        ("x 1", "he", "auto"),
    ],
)
def test_a_text_without_letters_has_the_direction_of_its_language(text, language, direction) -> None:
    assert find_direction(text, language) == direction


def test_interjections_are_shown_under_who_made_them(whole) -> None:
    found = read(whole, "/id/speech/2024-03-21-representatives-1")
    assert re.search(r"Mrs Ashgrove( [^.]{0,60})? interjecting", " ".join(found.words.split()))
    assert "/resolve?iri=" + quote(mint("person", "aph-FZ1").value, safe="") in found.links
    day = read(whole, "/id/sitting/representatives/2024-03-21")
    assert day.words.index("First Reading") < day.words.index("Second Reading") < day.words.index("Question negatived")
    assert "2 ayes 3 noes" in " ".join(day.words.split())


def test_citations_lead_both_ways(joined, whole) -> None:
    [row, *_] = select(
        joined,
        """SELECT ?unit ?cited WHERE {
          ?claim rdf:subject ?unit ; rdf:object ?cited ; kg:rawCitation ?words . ?cited a kg:CodeSection
        } ORDER BY ?unit LIMIT 1""",
    )
    assert href_of(row["cited"]) in read(whole, href_of(row["unit"])).links
    back = read(whole, href_of(row["cited"]))
    assert "Cited by" in back.words
    assert any(link.startswith(f"/passage/{quote(row['unit'], safe='')}") for link in back.links)


def test_a_law_and_its_policy_family_in_the_same_words_are_listed_once() -> None:
    law, family = mint("law", "aus", "act", "water-act-2007").value, "cpr://family/water-act-2007"

    def cite(target: str, kind: str, start: int, claim: str) -> Cited:
        span = Span(start=start, end=start + 14, text="Water Act 2007")
        return Cited(claim, "cpr://doc/x#p=0", span.text, "cites", target, span.text, kind, True, 0.9, [span])

    both = [cite(law, "law", 3, "a"), cite(family, "policy family", 3, "b"), cite(family, "policy family", 40, "c")]
    [entry] = list_cited(both)
    assert (entry["href"], entry["count"]) == (href_of(family), 2)
    assert entry["also"] == [{"href": href_of(law), "claim": "a"}]
    apart = list_cited([cite(law, "law", 3, "a"), cite(family, "policy family", 40, "c")])
    assert [each["href"] for each in apart] == [href_of(law), href_of(family)]


def test_the_rules_of_a_section_are_listed_in_pages(joined, whole, monkeypatch) -> None:
    monkeypatch.setattr(sections, "SHOWN_RULES", 1)
    monkeypatch.setattr(sections, "RULES_PER_PAGE", 2)
    [row] = select(
        joined,
        "SELECT ?s (COUNT(DISTINCT ?r) AS ?n) WHERE { ?r kg:definedIn ?s ; a kg:UsePermission } GROUP BY ?s "
        "ORDER BY DESC(?n) LIMIT 1",
    )
    path, found = "/resolve?iri=" + quote(row["s"], safe=""), []
    for number in range(1, 200):
        text = whole.get(f"{path}&rules={number}", headers=BROWSER).text
        listed = re.findall(r'<li id="rule-(\d+)"', text)
        assert 1 <= len(listed) <= 2
        assert number == 1 or f'<ol start="{listed[0]}">' in text
        found += map(int, listed)
        if f"rules={number + 1}#rules" not in text:
            break
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= int(row["n"]) > 2
    assert whole.get(f"{path}&rules={number + 1}", headers=BROWSER).status_code == 400


def test_every_reference_of_a_page_leads_to_an_explanation(whole) -> None:
    for path in ("/id/section/us-ut-quarry-bend/17.20.030", "/id/speech/2024-03-21-representatives-1"):
        links = sorted({link for link in read(whole, path).links if link.startswith("/why?")})
        assert len(links) > 2
        for link in links:
            found = read(whole, link)
            assert "In full" in found.words
            assert {"svg", "ol", "pre"} <= found.tags


def test_why_names_the_same_steps_in_the_drawing_and_in_the_list(joined, whole) -> None:
    [row, *_] = select(joined, "SELECT ?unit ?concept WHERE { ?unit kg:mentions ?concept } ORDER BY ?unit LIMIT 1")
    found = whole.get(why_triple_href(row["unit"], KG.mentions.value, row["concept"]), headers=BROWSER).text
    drawing, _, rest = found.partition("</svg>")
    for kind in ("Graph", "Claim", "Words", "File", "Run"):
        assert f">{kind}</text>" in drawing
        assert f">{kind}</span>" in rest
    assert "the stored text has these words here" in rest


def test_rdf_is_the_same_and_the_properties_are_one_click_away(whole) -> None:
    path = "/id/section/us-ut-quarry-bend/17.20.030"
    assert whole.get(path, headers={"Accept": "text/turtle"}).headers["content-type"].startswith("text/turtle")
    assert "Conditional Uses" in whole.get(path + "?format=nt").text
    data = whole.get(path + "?view=data", headers=BROWSER).text
    assert "kg:sourceLines" in data or "source lines" in data
    assert f'href="{href_of(mint("section", "us-ut-quarry-bend", "17.20.030").value)}"' in data


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/passage/cpr%3A%2F%2Fdoc%2Fnothing%23p%3D1", 404),
        ("/passage/%20", 400),
        ("/passage/fictional-geothermal-and-solar-levy-act_ke01%23p=9999", 404),
        ("/id/section/us-ut-quarry-bend/17.20.030?cited=0", 400),
        ("/id/sitting/representatives/2024-03-21?page=9", 404),
        ("/id/person/aph-FZ3?page=9", 404),
        ("/why", 400),
        ("/why?iri=not an iri", 400),
        ("/why?s=urn:a&p=urn:b&o=urn:c", 404),
        ("/why?s=urn:a&p=urn:b&value=x&lang=%00", 400),
    ],
)
def test_what_is_not_there_is_an_error_page(whole, path: str, status: int) -> None:
    answer = whole.get(path, headers=BROWSER)
    assert answer.status_code == status, answer.text[:300]
    assert answer.headers["content-type"].startswith("text/html")


def test_a_misspelt_passage_offers_near_ones(whole) -> None:
    iri = "cpr://doc/fictional-decree-on-geothermal-exploration_d0a1#p=99"
    answer = whole.get(passage_href(iri), headers=BROWSER)
    assert answer.status_code == 404
    assert href_of(iri.partition("#")[0]) in answer.text


def test_a_misspelt_document_offers_that_with_the_nearest_slug_by_its_title(whole) -> None:
    answer = whole.get(href_of("cpr://doc/fictional-decree-on-geothermal-exploration_d0a7"), headers=BROWSER)
    assert answer.status_code == 404
    listed = answer.text.partition("Did you mean")[2]
    href = href_of("cpr://doc/fictional-decree-on-geothermal-exploration_d0a1")
    title = whole.get(href, headers=BROWSER).text.partition("</h1>")[0].rpartition(">")[2]
    assert f'<a href="{href}">{title}</a>' in listed


# Hostile and unusual texts, and what users write.


@pytest.fixture(scope="module")
def hostile(kg: KnowledgeGraph) -> Iterator[TestClient]:
    source, mentions, user = (
        mint("graph", "src", "hostile"),
        mint("graph", "ext", "hostile"),
        mint("graph", "user", "x"),
    )
    quads = [
        Quad(DOCUMENT, RDF.type, KG.PolicyDocument, source),
        Quad(DOCUMENT, DCTERMS.title, Literal(EVIL), source),
        Quad(DOCUMENT, ELI.is_member_of, NamedNode("javascript:alert(2)"), source),
        Quad(CONCEPT, RDF.type, SKOS.Concept, source),
        Quad(CONCEPT, SKOS.prefLabel, Literal(EVIL, language="en"), source),
        Quad(CONCEPT, SKOS.exactMatch, NamedNode("javascript:alert(3)"), source),
    ]
    units = [mint("passage", "hostile-reading", str(number)) for number in range(len(TEXTS))]
    found = []
    for number, (unit, text) in enumerate(zip(units, TEXTS, strict=True)):
        quads += [
            Quad(unit, RDF.type, KG.Passage, source),
            Quad(unit, DCTERMS.isPartOf, DOCUMENT, source),
            Quad(unit, SCHEMA.position, Literal(number), source),
            Quad(unit, SCHEMA.text, Literal(text), source),
        ]
        mention = mint_mention(unit, 1, 4, CONCEPT)
        found += [
            Quad(mention, OA.hasSource, unit, mentions),
            Quad(mention, KG.object, CONCEPT, mentions),
            Quad(mention, KG.matchType, Literal(EVIL), mentions),
            Quad(mention, KG.start, Literal(1), mentions),
            Quad(mention, KG.end, Literal(4), mentions),
            Quad(unit, KG.mentions, CONCEPT, mentions),
        ]
    forged = mint("passage", "hostile-reading", "77")
    kg.store.commit(
        {
            source: quads,
            mentions: found,
            user: [
                Quad(forged, RDF.type, KG.Passage, user),
                Quad(forged, DCTERMS.isPartOf, DOCUMENT, user),
                Quad(forged, SCHEMA.position, Literal(0), user),
                Quad(forged, SCHEMA.text, Literal("forged by a user"), user),
                Quad(DOCUMENT, DCTERMS.title, Literal("AAA REPEALED"), user),
                Quad(DOCUMENT, ELI.date_document, Literal("1066-01-01"), user),
            ],
        }
    )
    with client_of(kg) as http:
        yield http


def test_texts_of_all_scripts_are_shown_and_do_nothing(hostile) -> None:
    found = read(hostile, href_of(DOCUMENT.value))
    for text in TEXTS:
        assert text in found.words


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_a_highlight_counts_code_points_of_the_verbatim_text(hostile, number: int) -> None:
    text, unit = TEXTS[number], mint("passage", "hostile-reading", str(number)).value
    for start, end in ((0, 1), (1, 5), (2, len(text)), (0, len(text)), (len(text) - 1, len(text))):
        assert read(hostile, passage_href(unit, (start, end))).marked == text[start:end]
    for span in ("5-5", f"0-{len(text) + 1}", "x", "9-3"):
        address = f"/passage/{quote(unit, safe='')}?span={span}"
        assert hostile.get(address, headers=BROWSER).status_code == 400


def test_the_concept_of_hostile_literals_has_a_page(hostile) -> None:
    found = read(hostile, href_of(CONCEPT.value))
    assert EVIL in found.words
    assert not [link for link in found.links if "javascript" in link and not link.startswith("/")]


def test_statements_of_users_are_not_read(hostile) -> None:
    found = read(hostile, href_of(DOCUMENT.value))
    assert "forged by a user" not in found.words
    assert "AAA REPEALED" not in found.words
    assert "1066" not in found.words
    data = hostile.get(href_of(DOCUMENT.value) + "&view=data", headers=BROWSER).text
    assert "AAA REPEALED" in data  # where each statement has its graph


def test_pages_of_a_long_document_have_their_passages(kg, hostile) -> None:
    document, graph = mint("document", "long"), mint("graph", "src", "long")
    count = PASSAGES * 2 + 7
    quads = [Quad(document, RDF.type, KG.PolicyDocument, graph), Quad(document, DCTERMS.title, Literal("Long"), graph)]
    for number in range(count):
        unit = mint("passage", "long", str(number))
        quads += [
            Quad(unit, RDF.type, KG.Passage, graph),
            Quad(unit, DCTERMS.isPartOf, document, graph),
            Quad(unit, SCHEMA.position, Literal(number * 3), graph),
            Quad(unit, SCHEMA.text, Literal(f"passage number {number} of it"), graph),
        ]
    kg.store.commit({graph: quads})
    seen: list[int] = []
    for page in (1, 2, 3):
        words = read(hostile, f"{href_of(document.value)}&page={page}").words
        seen += [int(number) for number in re.findall(r"passage number (\d+) of it", words)]
    assert seen == list(range(count))
    assert hostile.get(f"{href_of(document.value)}&page=4", headers=BROWSER).status_code == 404
    last = mint("passage", "long", str(count - 1)).value
    found = read(hostile, passage_href(last, (0, 7)))
    assert found.marked == "passage"
    assert "Page 3 of 3" in found.words


def make_headings(levels: list[int]) -> list[Heading]:
    """Make headings of these levels, ten on a page."""
    return [
        Heading(f"urn:{number}", f"Heading {number}", number * 20, number // 10 + 1, level)
        for number, level in enumerate(levels)
    ]


def check_outline(headings: list[Heading], page: int) -> list[Heading]:
    """Check that an outline is in order, counts what it leaves out, and has the headings of its page."""
    outline = choose_headings(headings, page)
    place = 0
    for entry in outline:
        assert (entry.first if isinstance(entry, LeftOut) else entry) == headings[place]
        place += entry.count if isinstance(entry, LeftOut) else 1
    assert place == len(headings)
    shown = [entry for entry in outline if isinstance(entry, Heading)]
    assert len(shown) == min(OUTLINE, len(headings))
    own = [each for each in headings if each.page == page]
    assert all(each in shown for each in own[: OUTLINE // 2])
    return shown


@pytest.mark.parametrize("page", [1, 40, 80])
def test_the_outline_of_a_long_document_has_the_headings_near_the_page(page: int) -> None:
    shown = check_outline(make_headings([1] * 800), page)
    places = [each.place for each in shown]
    assert places == list(range(places[0], places[-1] + 1, 20))
    short = make_headings([1, 2] * (OUTLINE // 2))
    assert choose_headings(short, 3) == short


@pytest.mark.parametrize("page", [1, 15, 73])
def test_the_outline_has_the_chapters_and_what_the_page_is_below(page: int) -> None:
    levels = ([1, *([2, *[3] * 9] * 4)] * 20)[:800]
    headings = make_headings(levels)
    shown = check_outline(headings, page)
    assert [each for each in headings if each.level == 1] == [each for each in shown if each.level == 1]
    before = [each for each in headings if each.page < page]
    for level in (2, 3) if before else ():
        last = [each for each in before if each.level == level][-1]
        is_open = not any(each.level < level for each in before[before.index(last) :])
        assert not is_open or last in shown


@pytest.mark.parametrize("page", [1, 2, 3])
def test_a_page_with_more_headings_than_an_outline(page: int) -> None:
    headings = [Heading(f"urn:{number}", "x", number, number // 200 + 1) for number in range(600)]
    check_outline(headings, page)


def test_headings_that_are_left_out_are_one_link_away(kg, hostile) -> None:
    document, graph = mint("document", "headed"), mint("graph", "src", "headed")
    quads = [Quad(document, RDF.type, KG.PolicyDocument, graph), Quad(document, DCTERMS.title, Literal("x"), graph)]
    count = PASSAGES * 3
    for number in range(count):
        unit = mint("passage", "headed", str(number))
        kind = "sectionHeading" if number % 2 else "Text"
        quads += [
            Quad(unit, DCTERMS.isPartOf, document, graph),
            Quad(unit, SCHEMA.position, Literal(number), graph),
            Quad(unit, SCHEMA.text, Literal(f"Heading {number}"), graph),
            Quad(unit, KG.blockType, mint("code", "blockType", kind), graph),
        ]
    kg.store.commit({graph: quads})
    text = hostile.get(href_of(document.value), headers=BROWSER).text
    outline = text[text.index('id="contents"') :]
    assert outline.count('class="level-') == OUTLINE + 1
    links = re.findall(r'class="left-out" href="([^"]*)">(\d+) more', outline)
    assert [int(number) for _, number in links] == [count // 2 - OUTLINE]
    target, _, anchor = links[0][0].replace("&amp;", "&").partition("#")
    assert f'id="{anchor}"' in hostile.get(target, headers=BROWSER).text


def test_a_page_of_an_older_snapshot_still_names_its_links(kg, hostile) -> None:
    """A page that is open while the store changes: its addresses are IRIs, not places in a list."""
    first = read(hostile, href_of(DOCUMENT.value)).links
    kg.store.commit(
        {
            mint("graph", "src", "later"): [
                Quad(mint("document", "z"), DCTERMS.title, Literal("z"), mint("graph", "src", "later"))
            ]
        }
    )
    for link in [link for link in first if link.startswith("/passage/")][:5]:
        assert hostile.get(link, headers=BROWSER).status_code == 200


# Districts and parties.


@pytest.mark.parametrize("district", ["us-ut-quarry-bend/R-1", "us-ct-lower-quill/RA"])
def test_a_district_shows_its_uses_and_standards_with_their_sources(
    whole: TestClient, joined: KnowledgeGraph, district: str
) -> None:
    town, _, code = district.partition("/")
    state = town.split("-")[1]
    found = read(whole, href_of(mint("district", town, code).value))
    permissions = kg_query_permissions(joined, town, state, district=code, limit=200).permissions
    standards = kg_query_standards(joined, town, state, district=code, limit=200).standards
    assert len(permissions) > 1
    assert standards
    for each in permissions:
        assert each.use in found.words
    whys = {why_href(each.evidence.id) for each in [*permissions, *standards]}
    assert whys <= set(found.links)
    for each in permissions[:2]:
        read(whole, why_href(each.evidence.id))
    assert href_of(mint("municipality", town).value) in found.links
    read(whole, next(link for link in found.links if link.startswith("/search?district=")))


def test_each_district_and_party_in_the_store_has_a_page(whole: TestClient, joined: KnowledgeGraph) -> None:
    things = select(joined, "SELECT ?thing WHERE { VALUES ?class { kg:ZoningDistrict kg:Party } ?thing a ?class }")
    assert len(things) > 10
    for row in things:
        assert "Properties of" not in read(whole, href_of(row["thing"])).words


def test_a_party_shows_its_speeches_by_year_and_its_people(whole: TestClient, joined: KnowledgeGraph) -> None:
    party = mint("party", "labor").value
    found = read(whole, href_of(party))
    people = list_speakers(joined, party="Australian Labor Party", limit=50).speakers
    assert people
    assert all(href_of(each.id) in found.links for each in people if each.id)
    total = speech_stats(joined, group_by="year", party="Australian Labor Party").totals.speeches
    assert f"{total} speeches" in found.words
    assert "/search?party=labor" in found.links
    read(whole, "/search?party=labor")


def test_a_party_without_speeches_shows_none_of_a_party_with_such_a_name(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    graph, party = mint("graph", "ref", "parties"), mint("party", "other-labor")
    with opened(load_once(tmp_path_factory, "parliament")) as kg:
        assert speech_stats(kg, party="Labor").totals.speeches
        kg.store.commit(
            {graph: [Quad(party, RDF.type, KG.Party, graph), Quad(party, SKOS.prefLabel, Literal("Labor"), graph)]}
        )
        with client_of(kg) as http:
            found = read(http, href_of(party.value))
    assert "No speech of this party is loaded" in found.words
    assert not [link for link in found.links if "/id/person/" in link]


def test_a_document_without_text_has_a_page_that_reports_it(tmp_path: Path) -> None:
    graph, document = mint("graph", "src", "climate", "no-text"), mint("document", "no-text")
    with opened(tmp_path) as kg:
        kg.store.commit(
            {
                graph: [
                    Quad(document, RDF.type, KG.PolicyDocument, graph),
                    Quad(document, DCTERMS.title, Literal("Act without words"), graph),
                ]
            }
        )
        with client_of(kg) as http:
            found = read(http, href_of(document.value))
    assert "Act without words" in found.words
    assert "No text of this document is loaded" in found.words


def test_a_speaker_whom_no_list_names_has_a_page(tmp_path: Path) -> None:
    with opened(tmp_path) as graph:
        load(graph, "parliament", [shipped("parlamint")])
        unnamed = [
            each
            for each in list_speakers(graph, limit=200).speakers
            if each.id and not select(graph, f"SELECT ?name WHERE {{ <{each.id}> foaf:name|skos:altLabel ?name }}")
        ]
        assert unnamed
        with client_of(graph) as http:
            for each in unnamed:
                assert each.name in read(http, href_of(each.id)).words
