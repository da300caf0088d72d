"""Search in a browser: with the keyboard, without scripts, at each width, and over literals that would do harm."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.browser.conftest import WIDTHS, find_faults, measure_overflow

Open = Callable[..., Any]

pytestmark = pytest.mark.long

PAGES = ("/", "/search?q=flood", "/search?domain=climate", "/places", "/people", "/concepts", "/documents", "/codes")
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> zanzibarian harbour"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_no_wider_than_its_window(open_page: Open, path: str, width: int) -> None:
    assert measure_overflow(open_page(path, width=width)) <= 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible(open_page: Open, path: str, dark: bool) -> None:
    assert find_faults(open_page(path, dark=dark)) == []


@pytest.mark.parametrize("scripts", [True, False])
def test_from_a_question_to_a_highlighted_sentence_in_its_document(open_page: Open, scripts: bool) -> None:
    page = open_page("/", scripts=scripts)
    page.locator("main input[name=q]").fill("geothermal heat")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=geothermal+heat")
    marked = page.locator(".found mark").first
    words = marked.inner_text()
    assert words.lower().startswith("geotherm")
    page.locator(".hit h2 a").first.click()
    page.wait_for_url("**/passage/**")
    assert page.locator("mark").first.inner_text() == words


def test_facets_narrow_and_widen_and_the_back_button_returns(open_page: Open) -> None:
    page = open_page("/search?q=flood", scripts=False)
    total = page.locator("[role=status]").inner_text()
    value = page.locator(".facet-group a").first
    count = int(value.locator(".count").inner_text())
    value.click()
    page.wait_for_url("**&*")
    assert page.locator(".chip").count() == 1
    assert re.match(f"{count} passage", page.locator("[role=status]").inner_text())
    page.go_back()
    assert page.locator("[role=status]").inner_text() == total


def test_hostile_literals_are_text(open_page: Open, address: str) -> None:
    section = "urn:hostile:document"
    turtle = f"""@prefix dcterms: <http://purl.org/dc/terms/> . @prefix schema: <http://schema.org/> .
        <{section}> dcterms:title {HOSTILE!r} . <{section}#1> dcterms:isPartOf <{section}> ; schema:position 0 ;
        schema:text {HOSTILE!r} ; dcterms:source <javascript:alert(3)> ."""
    sent = httpx.put(f"{address}/graphs/user/hostile", content=turtle, headers={"Content-Type": "text/turtle"})
    assert sent.status_code in (200, 201, 204), sent.text
    for path in ("/search?q=zanzibarian+harbour", f"/cite?id={section.replace(':', '%3A')}%231"):
        page = open_page(path)
        page.wait_for_timeout(200)
        assert "onerror=alert(1)" in page.locator("main").inner_text() + page.locator("main").inner_html()
        assert page.locator("main img, main script").count() == 0
        assert page.locator("a[href^='javascript:']").count() == 0
