"""Every kind of page: it fits each width, has no serious fault of accessibility, and hostile literals do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from kg.server.html import href_of
from kg.server.pages.reading import passage_href, why_href
from tests.browser.conftest import (
    DECREE,
    EVIL,
    EVIL_CONCEPT,
    EVIL_DOCUMENT,
    EVIL_UNIT,
    SECTION,
    WIDTHS,
    find_faults,
    measure_overflow,
)

Open = Callable[..., Any]

pytestmark = pytest.mark.long

COUNTS = "SELECT ?place (COUNT(*) AS ?n) WHERE { ?d a kg:PolicyDocument ; kg:jurisdiction ?place } GROUP BY ?place"
PAGES = {
    "home": "/",
    "search": "/search?q=flood",
    "filters": "/search?domain=climate&sort=title",
    "places": "/places",
    "people": "/people",
    "concepts": "/concepts",
    "documents": "/documents",
    "codes": "/codes",
    "workbench": f"/sparql?query={quote(COUNTS)}",
    "results": f"/sparql?query={quote(COUNTS)}&run=1",
    "charts": "/charts",
    "two places": "/charts/places?a=BRA&b=FJI",
    "two codes": "/charts/codes?a=Quarry+Bend%2C+UT&b=Lower+Quill%2C+CT",
    "status": "/status",
    "sign in": "/login",
    "docs": "/docs",
    "chapter": "/docs/sparql",
    "terms": "/ns",
    "unknown": "/resolve?iri=https%3A%2F%2Fnowhere.example%2F",
    "document": href_of(DECREE),
    "passage": passage_href(f"{DECREE}#p=3", (39, 54)),
    "cite": f"/cite?id={quote(DECREE, safe='')}%23p%3D3&span=39-54",
    "properties": href_of(DECREE) + "&view=data",
    "speech": "/id/speech/2024-03-21-representatives-1",
    "sitting": "/id/sitting/representatives/2024-03-21",
    "section": SECTION,
    "matrix": "/id/section/us-ut-quarry-bend/17.52.010",
    "town": "/id/municipality/us-ut-quarry-bend",
    "country": "/id/place/AUS",
    "district": "/id/district/us-ut-quarry-bend/R-1",
    "party": "/id/party/labor",
    "person": "/id/person/aph-FZ3",
    "concept": href_of("cpr://concept/Q1009"),
    "family": href_of("cpr://family/fictional-geothermal-programme_d0f0"),
    "law": "/id/law/us/usc/42%20U.S.C.%20%C2%A7%203604",
    "why": why_href(f"{DECREE}#p=3&char=39,54&q=Q1012"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_each_width_and_is_accessible_light_and_dark(open_page: Open, name: str) -> None:
    page = open_page(PAGES[name])
    page.wait_for_load_state("networkidle" if name in ("workbench", "charts", "two places", "why") else "load")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert measure_overflow(page) <= 0, width
    assert find_faults(page) == []
    page.emulate_media(color_scheme="dark")
    assert find_faults(page, rules=["color-contrast"]) == []


def test_the_first_tab_leads_past_the_header(open_page: Open) -> None:
    page = open_page("/docs")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize("name", ["chapter", "charts", "why", "workbench", "search"])
def test_nothing_moves_while_a_page_loads(open_page: Open, name: str) -> None:
    page = open_page(PAGES[name])
    page.wait_for_load_state("networkidle")
    shifts = page.evaluate(
        """() => new Promise((done) => {
          new PerformanceObserver((list) => done(list.getEntries().reduce((sum, one) => sum + one.value, 0)))
            .observe({type: "layout-shift", buffered: true});
          setTimeout(() => done(0), 300);
        })"""
    )
    assert shifts < 0.01


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


# What the pages do with literals that would do harm; `open_page` fails where one of them runs.


@pytest.mark.parametrize(
    "path",
    [
        href_of(EVIL_DOCUMENT),
        href_of(EVIL_DOCUMENT) + "&view=data",
        passage_href(EVIL_UNIT, (0, 9)),
        why_href(EVIL_UNIT),
        href_of(EVIL_CONCEPT),
        "/cite?id=" + quote(EVIL_UNIT, safe=""),
    ],
)
def test_hostile_literals_of_sources_do_nothing(open_page: Open, path: str) -> None:
    page = open_page(path)
    shown = page.locator("main").inner_text() + "".join(
        page.locator("textarea").evaluate_all("x => x.map(y => y.value)")
    )
    assert EVIL[:40] in shown
    links = page.locator("a").evaluate_all(
        "all => all.map((each) => new URL(each.getAttribute('href'), location).href)"
    )
    assert not [link for link in links if not link.startswith(("http:", "https:"))]
    assert page.locator("main img, main script").count() == 0


def test_hostile_literals_of_users_do_nothing(open_page: Open, address: str) -> None:
    section, hostile = (
        "urn:hostile:document",
        "<img src=x onerror=alert(1)><script>alert(2)</script> zanzibarian harbour",
    )
    turtle = f"""@prefix dcterms: <http://purl.org/dc/terms/> . @prefix schema: <http://schema.org/> .
        <{section}> dcterms:title {hostile!r} . <{section}#1> dcterms:isPartOf <{section}> ; schema:position 0 ;
        schema:text {hostile!r} ; dcterms:source <javascript:alert(3)> ."""
    sent = httpx.put(f"{address}/graphs/user/hostile", content=turtle, headers={"Content-Type": "text/turtle"})
    assert sent.status_code in (200, 201, 204), sent.text
    for path in (
        "/search?q=zanzibarian+harbour",
        "/search?sort=title&limit=200",
        f"/cite?id={section.replace(':', '%3A')}%231",
    ):
        page = open_page(path)
        assert "onerror=alert(1)" in page.locator("main").inner_text() + page.locator("main").inner_html()
        assert page.locator("main img, main script").count() == 0
        assert page.locator("a[href^='javascript:']").count() == 0
