"""Pages for reading, in a browser: exact highlights in view, sources, reviews, and literals that do nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.server.auth import read_token
from kg.server.html import href_of
from kg.server.pages.reading import passage_href, why_href
from kg.settings import Settings
from kg.store.lock import find_holder
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, SKOS, mint
from tests.browser.conftest import WIDTHS, Visits, find_faults, measure_overflow
from tests.cli.running import served
from tests.conftest import load_once

Open = Callable[..., Any]

pytestmark = pytest.mark.long

DECREE = "cpr://doc/fictional-decree-on-geothermal-exploration_d0a1"
SECTION = "/id/section/us-ut-quarry-bend/17.20.030"
PAGES = {
    "document": href_of(DECREE),
    "passage": passage_href(f"{DECREE}#p=3", (39, 54)),
    "speech": "/id/speech/2024-03-21-representatives-1",
    "sitting": "/id/sitting/representatives/2024-03-21",
    "section": SECTION,
    "matrix": "/id/section/us-ut-quarry-bend/17.52.010",
    "town": "/id/municipality/us-ut-quarry-bend",
    "country": "/id/place/AUS",
    "person": "/id/person/aph-FZ3",
    "concept": href_of("cpr://concept/Q1009"),
    "family": href_of("cpr://family/fictional-geothermal-programme_d0f0"),
    "law": "/id/law/us/usc/42%20U.S.C.%20%C2%A7%203604",
    "why": why_href(f"{DECREE}#p=3&char=39,54&q=Q1012"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_each_width(open_page: Open, name: str) -> None:
    for width in WIDTHS:
        assert measure_overflow(open_page(PAGES[name], width=width)) <= 0, width


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_light_and_dark(open_page: Open, name: str) -> None:
    for dark in (False, True):
        assert find_faults(open_page(PAGES[name], dark=dark)) == []


@pytest.mark.parametrize("scripts", [True, False])
def test_a_passage_opens_at_its_words(open_page: Open, scripts: bool) -> None:
    page = open_page(passage_href(f"{DECREE}#p=11", (2, 10)), height=400, scripts=scripts)
    mark = page.locator("mark")
    assert mark.count() == 1
    for _ in range(40):  # browsers scroll smoothly
        box = mark.bounding_box()
        assert box is not None
        if 0 <= box["y"] < 400:
            break
        page.wait_for_timeout(100)
    assert 0 <= box["y"] < 400


def test_from_a_concept_to_a_law_a_speech_and_a_section_that_name_it(open_page: Open) -> None:
    page = open_page(PAGES["concept"], scripts=False)
    wheres = page.locator("ul.quotes .where")
    links = [wheres.nth(number).get_attribute("href") for number in range(wheres.count())]
    for start in ("cpr://doc/", "https://w3id.org/quadcite/id/speech/", "https://w3id.org/quadcite/id/section/"):
        [link, *_] = [link for link in links if link.startswith(f"/passage/{quote(start, safe='')}")]
        opened = open_page(link, scripts=False)
        assert opened.locator("mark").count() >= 1
        assert opened.locator("a.mention").count() >= 1


def test_from_a_highlighted_sentence_to_its_file_and_row(open_page: Open) -> None:
    page = open_page(PAGES["passage"], scripts=False)
    assert page.locator("mark").inner_text() == "geothermal heat"
    page.locator(".passage.asked sup.from a").click()
    assert "row 4" in page.locator("ol.steps").inner_text()
    assert "energy-and-water.csv" in page.locator("svg").text_content()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_claim_is_accepted_by_who_is_signed_in(open_page: Open, data_dir: Any, scripts: bool) -> None:
    page = open_page(SECTION, scripts=scripts)
    assert page.locator("form.review").count() == 0
    page.goto("/login?to=" + quote(SECTION, safe=""))
    page.fill("input[name=token]", read_token(data_dir) or "")
    page.locator("main button").first.click()
    page.wait_for_url("**" + SECTION)
    rule = page.locator("#rule-2")
    rule.locator("button[value=accept]").click()
    page.wait_for_url("**" + SECTION)
    assert "accepted" in page.locator("#rule-2").inner_text()


EVIL = "\"'><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>javascript:alert(4)"


@pytest.fixture(scope="module")
def hostile(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visits]:
    """A server whose sources have hostile literals and IRIs."""
    folder = load_once(tmp_path_factory, "joined")
    settings = Settings(data_dir=folder, models_dir=folder / "none", query_workers=1, _env_file=None)  # type: ignore[call-arg]
    graph, document = mint("graph", "src", "hostile"), mint("document", "hostile")
    unit, concept = mint("passage", "hostile", "0"), mint("concept", "Q666")
    script = NamedNode("javascript:alert(5)")
    with KnowledgeGraph.open(folder, settings) as opened:
        opened.store.commit(
            {
                graph: [
                    Quad(document, RDF.type, KG.PolicyDocument, graph),
                    Quad(document, DCTERMS.title, Literal(EVIL), graph),
                    Quad(document, DCTERMS.source, script, graph),
                    Quad(document, KG.corpusType, script, graph),
                    Quad(unit, RDF.type, KG.Passage, graph),
                    Quad(unit, DCTERMS.isPartOf, document, graph),
                    Quad(unit, SCHEMA.position, Literal(0), graph),
                    Quad(unit, SCHEMA.text, Literal(EVIL), graph),
                    Quad(concept, RDF.type, SKOS.Concept, graph),
                    Quad(concept, SKOS.prefLabel, Literal(EVIL, language="en"), graph),
                    Quad(concept, SKOS.exactMatch, script, graph),
                ]
            }
        )
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("QUADCITE_MODELS_DIR", str(folder.with_name("no-models")))
        stack.enter_context(served(folder))
        holder = find_holder(folder)
        assert holder is not None
        assert holder.address is not None
        yield Visits(browser, holder.address, stack.enter_context(ExitStack()))


def test_hostile_literals_do_nothing(hostile: Visits) -> None:
    document, unit = "cpr://doc/hostile", "cpr://doc/hostile#p=0"
    for path in (href_of(document), href_of(document) + "&view=data", passage_href(unit, (0, 9)), why_href(unit)):
        page = hostile.open(path)
        assert EVIL[:9] in page.locator("main").inner_text()
        links = page.locator("a").evaluate_all(
            "all => all.map((each) => new URL(each.getAttribute('href'), location).href)"
        )
        assert not [link for link in links if not link.startswith(("http:", "https:"))]
    hostile.open(href_of("cpr://concept/Q666"))
    assert (hostile.dialogs, hostile.violations, hostile.errors, hostile.foreign) == ([], [], [], [])
