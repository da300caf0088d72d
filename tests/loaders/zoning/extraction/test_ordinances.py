"""The structure of labelled ordinances is read right, as clean text and as text out of a PDF."""

from __future__ import annotations

import pytest

from loaders.citations.section_citations import find_citations
from loaders.zoning.extraction.citation_resolution import Index, resolve
from loaders.zoning.readers import plain_text
from tests.benchmarks import ordinances

NAMES = sorted([*ordinances.GROUPS["first"], *ordinances.GROUPS["second"]])
LEAST = {
    "clean text": {
        "section": (0.99, 0.99),
        "definition": (0.97, 0.98),
        "permission": (0.97, 0.56),
        "standard": (0.97, 0.2),
        "citation": (0.95, 0.95),
    },
    "out of a PDF": {
        "section": (0.98, 0.98),
        "definition": (0.97, 0.98),
        "permission": (0.97, 0.55),
        "standard": (0.96, 0.2),
        "citation": (0.93, 0.92),
    },
    "PDF": {"section": (0.99, 0.99), "definition": (0.97, 0.98)},
    "PDF of two columns": {"section": (0.97, 0.97), "definition": (0.95, 0.95)},
}
"""Minimum precision and recall by kind. Uses and standards in sentences are quoted, and no facts."""


def test_the_labels_are_enough() -> None:
    counts = {
        kind: sum(
            len(ordinances.labels(kind, ordinances.read_gold(ordinances.FOLDER / f"{name}.toml"))) for name in NAMES
        )
        for kind in ordinances.KINDS
    }
    assert len(NAMES) >= 12
    assert all(count >= 300 for kind, count in counts.items() if kind != "district"), counts


@pytest.mark.parametrize("form", LEAST)
def test_structure_is_read(form: str) -> None:
    scores = ordinances.measure(NAMES[:2] if form.startswith("PDF") else NAMES, form)
    for kind, (precision, recall) in LEAST[form].items():
        one = scores[kind]
        assert one.right >= precision * one.found, one.wrong
        assert one.labelled - len(one.missed) >= recall * one.labelled, one.missed


def test_an_article_at_the_top_of_a_code_is_cited_from_another() -> None:
    code = plain_text.parse(b"ARTICLE I AIMS\n1.1 Scope\nSee Article II.\nARTICLE II USES\n2.1 Homes\nYes.\n", "a.txt")
    index = Index(code.sections)
    (citation,) = find_citations("See Article II.", "OH")
    assert resolve(citation, index, "1.1") == "article II"
    (citation,) = find_citations("See Article IV.", "OH")
    assert resolve(citation, index, "1.1") is None
