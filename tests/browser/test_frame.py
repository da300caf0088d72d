"""The frame of all pages: it fits each width, is complete without scripts, and can be used with the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import WIDTHS, find_faults, measure_overflow

Open = Callable[..., Any]

pytestmark = pytest.mark.long

PAGES = ("/", "/docs", "/ns", "/resolve?iri=https%3A%2F%2Fnowhere.example%2F")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_no_wider_than_its_window(open_page: Open, path: str, width: int) -> None:
    assert measure_overflow(open_page(path, width=width)) <= 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible(open_page: Open, path: str, dark: bool) -> None:
    assert find_faults(open_page(path, dark=dark)) == []


def test_the_first_tab_leads_past_the_header(open_page: Open) -> None:
    page = open_page("/docs")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize("scripts", [True, False])
def test_nothing_moves_while_a_page_loads(open_page: Open, scripts: bool) -> None:
    page = open_page("/docs/quickstart", scripts=scripts)
    assert page.title()
    if scripts:
        shifts = page.evaluate(
            """() => new Promise((done) => {
              new PerformanceObserver((list) => done(list.getEntries().reduce((sum, one) => sum + one.value, 0)))
                .observe({type: "layout-shift", buffered: true});
              setTimeout(() => done(0), 300);
            })"""
        )
        assert shifts < 0.01
