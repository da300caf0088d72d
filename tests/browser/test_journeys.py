"""What people come for, from the first page to the last: each journey as a person makes it, over the fixtures.

Journeys that need no script run without scripts too.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from kg import bundle
from kg.server.auth import read_token
from kg.server.html import href_of
from tests.browser.conftest import BUILT, SECTION
from tests.cli.running import KG

Open = Callable[..., Any]

pytestmark = pytest.mark.long
EITHER = pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
SLOW = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . FILTER(STR(?a) > STR(?i)) }"
MISSPELT = "SELECT ?d WHERE {\n  ?d a kg:PolicyDocument .\n  ?d kg:jurisdicton ?place\n}"


@EITHER
def test_an_analyst_goes_from_a_question_to_a_sentence_to_its_file_and_row(open_page: Open, scripts: bool) -> None:
    page = open_page("/", scripts=scripts)
    page.locator("main input[name=q]").fill("geothermal heat")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=geothermal+heat")
    marked = page.locator(".found mark").first.inner_text()
    assert marked.lower().startswith("geotherm")
    page.locator(".hit h2 a").first.click()
    page.wait_for_url("**/passage/**")
    assert page.locator("mark").first.inner_text() == marked
    page.locator(".passage.asked sup.from a").first.click()
    page.wait_for_url("**/why?**")
    steps = page.locator("ol.steps").inner_text()
    assert "row 28" in steps
    assert "energy-and-water.csv" in steps
    assert "energy-and-water.csv" in page.locator("svg").first.text_content()


@EITHER
def test_from_a_concept_to_a_law_a_speech_and_a_section_that_name_it(open_page: Open, scripts: bool) -> None:
    page = open_page(href_of("cpr://concept/Q1009"), scripts=scripts)
    wheres = page.locator("ul.quotes .where")
    links = [wheres.nth(number).get_attribute("href") for number in range(wheres.count())]
    for start in ("cpr://doc/", "https://w3id.org/quadcite/id/speech/", "https://w3id.org/quadcite/id/section/"):
        [link, *_] = [link for link in links if link.startswith(f"/passage/{quote(start, safe='')}")]
        page.goto(link)
        assert page.locator("mark").count() >= 1
        assert page.locator("a.mention").count() >= 1


@EITHER
def test_a_planner_compares_two_codes(open_page: Open, scripts: bool) -> None:
    page = open_page("/codes", scripts=scripts)
    page.get_by_role("link", name="Charts").click()
    page.get_by_role("link", name="Two codes").click()
    page.get_by_label("First").fill("Quarry Bend, UT")
    page.get_by_label("Second").fill("Lower Quill, CT")
    page.get_by_role("textbox", name="Use").fill("duplex")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/charts/codes?**")
    uses = page.get_by_role("region", name="Uses side by side")
    duplex = uses.locator("tbody tr", has_text="Duplex").first.inner_text()
    assert "conditional: R-1" in duplex
    assert "by right: R-2" in duplex
    page.get_by_role("textbox", name="Use").fill("")
    page.get_by_role("button", name="Compare").click()
    page.locator("figure.plotted table").first.wait_for()
    uses.locator("tbody tr", has_text="Duplex").first.get_by_role("link").first.click()
    page.wait_for_url("**/why?**")
    assert "title_17_zoning.html" in page.locator("ol.steps").inner_text()


@BUILT
def test_an_engineer_repairs_a_misspelt_query_in_the_editor(open_page: Open) -> None:
    page = open_page("/sparql")
    editor = page.locator(".tabPanel.active .CodeMirror")
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(MISSPELT)
    page.locator(".tabPanel.active .hints").get_by_role("button", name="kg:jurisdiction", exact=True).click()
    page.wait_for_function("() => !document.querySelector('.tabPanel.active .hints li')")
    assert "kg:jurisdiction ?place" in page.evaluate(
        "document.querySelector('.tabPanel.active .CodeMirror').CodeMirror.getValue()"
    )
    editor.click()
    page.keyboard.press("Control+Enter")
    page.get_by_role("status").filter(has_text="rows.").wait_for()
    page.locator(".result-table tbody tr").nth(5).wait_for()


@EITHER
def test_a_claim_is_accepted_by_who_is_signed_in(open_page: Open, data_dir: Path, scripts: bool) -> None:
    page = open_page(SECTION, scripts=scripts)
    assert page.locator("form.review").count() == 0
    page.goto("/login?to=" + quote(SECTION, safe=""))
    page.get_by_label("Token").fill(read_token(data_dir) or "")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**" + SECTION + "**")
    page.locator("#rule-2").get_by_role("button", name="Accept").click()
    page.locator("#rule-2", has_text="accepted").wait_for()
    page.goto("/status")
    assert page.get_by_text("Signed in as local-admin").count() == 1


@EITHER
def test_a_librarian_copies_a_citation_in_each_format(open_page: Open, scripts: bool) -> None:
    page = open_page("/search?q=geothermal+heat&domain=climate", scripts=scripts)
    page.get_by_role("link", name="Cite", exact=True).first.click()
    page.wait_for_url("**/cite?**")
    iri = parse_qs(urlsplit(page.url).query)["id"][0]
    words = page.locator("blockquote.text").inner_text()
    written = {name: page.get_by_label(name, exact=True).input_value() for name in (
        "Text", "Markdown", "BibTeX", "CSL-JSON", "RDF (Turtle)",
    )}  # fmt: skip
    for name in ("Text", "Markdown", "BibTeX", "CSL-JSON"):
        plain = written[name].replace("\\", "")
        assert (iri in plain, "climate/energy-and-water.csv" in plain, "row " in plain) == (True, True, True), name
    assert f"<{iri}>" in written["RDF (Turtle)"]
    assert words in written["Text"]
    assert written["Markdown"].startswith("> ")
    assert written["BibTeX"].startswith("@misc{")
    assert json.loads(written["CSL-JSON"])[0]["title"]
    for number, text in enumerate(written.values()):
        link = page.get_by_role("link", name="As a file").nth(number).get_attribute("href")
        assert page.request.get(link).text().strip() == text.strip()


@EITHER
def test_a_citation_is_followed_both_ways(open_page: Open, scripts: bool) -> None:
    page = open_page(SECTION, scripts=scripts)
    cites = page.locator("#cites")
    relation = cites.locator(".relation").first.inner_text()
    cites.locator("li a").first.click()
    page.wait_for_url("**17.12.040**")
    back = page.locator("#cited-by li", has_text="17.20.030")
    assert back.locator(".relation").inner_text() == relation
    back.get_by_role("link", name="Conditional Uses").click()
    page.wait_for_url("**17.20.030**")
    assert page.locator("mark").first.inner_text() == "section 17.12.040"


@EITHER
def test_from_the_memberships_of_a_person_to_a_speech(open_page: Open, scripts: bool) -> None:
    page = open_page("/people?q=Drumm", scripts=scripts)
    page.get_by_role("link", name="Drumm, Philippa, MP").click()
    seats = page.locator("section", has=page.get_by_role("heading", name="Seats", exact=True)).inner_text()
    assert "2013-09-07 – 2021-02-23" in seats
    assert "Saltmarsh" in seats
    name = page.get_by_role("heading", level=1).inner_text()
    page.locator("#speeches ul a").first.click()
    page.wait_for_url("**speech**")
    assert page.locator("p.speaker a").first.inner_text() == name
    page.locator("p.speaker a").first.click()
    page.get_by_role("heading", level=1, name=name, exact=True).wait_for()


@EITHER
def test_filters_and_facets_are_shared_by_their_address(open_page: Open, scripts: bool) -> None:
    def read(shown: Any) -> list[str]:
        parts = ("[role=status]", ".chosen-filters", ".facets", "ol.hits", ".choices >> nth=0")
        return [shown.locator(part).inner_text() for part in parts]

    page = open_page("/search?q=water", scripts=scripts)
    everything = page.locator("[role=status]").inner_text()
    for facet in ("Language", "Year"):
        value = page.locator(".facet-group", has=page.get_by_role("heading", name=facet)).locator("a").first
        count = value.locator(".count").inner_text()
        value.click()
        page.wait_for_url(f"**{facet.lower()}=*")
        assert page.locator("[role=status]").inner_text().startswith(f"{count} passage")
    page.get_by_role("link", name="Oldest first").click()
    page.wait_for_url("**sort=oldest*")
    assert page.locator(".chip").count() == 2
    narrowed = read(page)
    assert read(open_page(page.url, scripts=scripts)) == narrowed  # a browser that was never here
    page.locator("header input[name=q]").fill("")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "q=&" in url)
    assert page.locator(".chip").count() == 2  # the filters stay, and list all that passes them
    assert page.locator(".hit").count() >= len(narrowed[3].split("Cite")) - 1
    for _ in range(4):
        page.go_back()
    assert page.locator("[role=status]").inner_text() == everything


@BUILT
def test_a_query_is_cancelled_while_it_runs(open_page: Open) -> None:
    page = open_page(f"/sparql?query={quote(SLOW)}")
    page.get_by_text("Running queries").click()
    page.get_by_role("button", name="Cancel query").first.click()
    alert = page.locator(".tabPanel.active [role=alert]")
    alert.wait_for()
    assert "query_" in alert.inner_text() or "stopped" in alert.inner_text()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Run", exact=True).wait_for()
    page.get_by_text("No query is running or waiting.").wait_for()


@EITHER
def test_an_operator_sees_a_load_and_the_record_that_it_rejected(
    open_page: Open, data_dir: Path, scripts: bool
) -> None:
    source = bundle.folder("fixtures") / "malformed" / "climate" / "no-slug.jsonl"
    done = subprocess.run(
        [*KG, "load", "climate", str(source), "--data-dir", str(data_dir)], capture_output=True, check=False
    )
    assert done.returncode == 3, done.stderr
    page = open_page("/status", scripts=scripts)
    loads = page.locator("#loads")
    loads.get_by_text("2 rejected", exact=True).first.click()
    assert "row 2: Missing slug" in loads.locator("details[open]").first.inner_text()
    quarantined = page.locator("#quarantine tbody tr").first.inner_text()
    assert "no-slug.jsonl" in quarantined
    assert "Missing slug" in quarantined
    assert page.locator("#quarantine h2 small").inner_text() == "2"
