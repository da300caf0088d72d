"""Accepting and rejecting claims by the forms of pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from pyoxigraph import NamedNode
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.server.app import create_app
from kg.server.auth import LocalToken
from kg.server.authentication import Accounts
from kg.server.html import href_of
from kg.server.pages.reviews import PATH
from kg.store.protocol import term_text
from kg.tools.reading.sections import read_section
from tests.conftest import load_once, opened
from tests.server.test_sign_in import BASE, BROWSER, csrf_of


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with opened(load_once(tmp_path_factory, "zoning")) as graph:
        yield graph


@pytest.fixture(scope="module")
def signed_in(kg: KnowledgeGraph) -> Iterator[TestClient]:
    token = LocalToken(kg.settings.data_dir)
    with TestClient(
        create_app(kg, accounts=Accounts(token)), base_url=BASE, headers=BROWSER, follow_redirects=False
    ) as client:
        secret = kg.settings.directory.token.read_text()
        sent = client.post("/login", data={"csrf": csrf_of(client.get("/login").text), "token": secret})
        assert sent.status_code == 303
        yield client
    token.remove()


def list_forms(text: str) -> list[dict[str, str]]:
    forms = re.findall(r'<form class="review".*?</form>', text, re.DOTALL)
    return [
        {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)}
        for form in forms
    ]


def find_sections(kg: KnowledgeGraph, kind: str) -> list[str]:
    query = (
        "SELECT DISTINCT ?section WHERE { ?section a kg:CodeSection . GRAPH ?graph { ?rule a kg:DimensionalStandard ; "
        f"kg:definedIn ?section }} FILTER(CONTAINS(STR(?graph), '/graph/{kind}/')) }} ORDER BY ?section"
    )
    return [term_text(row["section"]) for row in Reader(kg).rows("sections with standards", query)]


def test_only_rules_that_were_found_in_the_text_can_be_reviewed(kg: KnowledgeGraph, signed_in: TestClient) -> None:
    sections = [*find_sections(kg, "src")[:3], *find_sections(kg, "ext")[:3]]
    stated, offered = 0, 0
    for section in sections:
        rules = read_section(kg, section).rules
        forms = list_forms(signed_in.get(href_of(section)).text)
        assert {form["claim"] for form in forms} == {rule.claim for rule in rules if rule.confidence is not None}
        stated += sum(rule.confidence is None for rule in rules)
        offered += len(forms)
    assert stated
    assert offered


def test_a_claim_is_accepted_by_the_form_of_its_page(kg: KnowledgeGraph, signed_in: TestClient) -> None:
    section = find_sections(kg, "ext")[0]
    form = list_forms(signed_in.get(href_of(section)).text)[0]
    for wrong in ({"csrf": "x"}, {"claim": "x"}, {"verdict": "perhaps"}, {"claim": NamedNode("urn:x").value}):
        assert signed_in.post(PATH, data={**form, "verdict": "accept", **wrong}).status_code in (400, 403, 404)
    assert (
        signed_in.post(PATH, data={**form, "verdict": "accept"}, headers={"Origin": "http://a.test"}).status_code == 403
    )
    sent = signed_in.post(PATH, data={**form, "verdict": "accept", "to": "//a.test/"})
    assert (sent.status_code, sent.headers["location"]) == (303, "/status")
    path, _, fragment = form["to"].partition("#")
    assert f'<li id="{fragment}">' in signed_in.get(path).text
    reviewed = {rule.claim: rule.review for rule in read_section(kg, section).rules}
    assert "accepted" in (reviewed[form["claim"]] or "")
