"""The competency questions of the ontology have their known answers over the fixtures of all domains."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.lint import check
from kg.store.protocol import Rows, term_text
from kg.tools.schema.examples import load_examples
from kg.tools.schema.schema_measurement import get_schema

QUERIES = {example.iri.rpartition("/")[2]: example.query for example in load_examples() if "/joined/" in example.iri}

# Rows that must be in the result, by some of its columns.
GOLDEN: Mapping[str, list[dict[str, str]]] = {
    "words-in-every-domain": [
        {"domain": "law", "unit": "cpr://doc/fictional-clean-homes-act_us01#p=2", "words": "accessory dwelling unit"},
        {"domain": "parliament", "words": "accessory dwelling unit"},
        {
            "domain": "zoning",
            "unit": "https://w3id.org/quadcite/id/section/us-ut-harrow-inlet/2.1",
            "words": "accessory dwelling unit",
        },
    ],
    "parties-on-the-topics-of-laws": [
        {
            "party": "Australian Greens",
            "person": "Senator Isolde Farrow",
            "date": "2024-06-18",
            "concept": "flood",
            "law": "Fictional Rooftop Energy Act 2023",
        },
        {"party": "Australian Labor Party", "person": "Ms Petra Quillfeather", "concept": "accessory dwelling unit"},
    ],
    "debated-but-in-no-law": [
        {"country": "AUS", "label": "coal"},
        {"country": "AUS", "label": "affordable housing"},
    ],
    "links-without-reference": [{"concept": "cpr://concept/Q1010", "other": "cpr://concept/Q1019"}],
    "permission-to-external-law": [
        {"use": "Accessory dwelling unit", "section": "2.1", "via": "1.2", "law": "42 U.S.C. § 6834"},
    ],
    "coverage-of-a-concept": [
        {"country": "AUS", "passages": "1", "speechChunks": "4", "sections": "0"},
        {"country": "USA", "passages": "1", "speechChunks": "0", "sections": "1"},
    ],
}


def run(graph: KnowledgeGraph, name: str) -> list[dict[str, str]]:
    result = graph.query(QUERIES[name]).result
    assert isinstance(result, Rows)
    return [{column: term_text(term) for column, term in row.items()} for row in result]


@pytest.mark.parametrize("name", QUERIES)
def test_every_question_has_a_golden_answer(name: str) -> None:
    assert GOLDEN.get(name)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_competency_question_has_its_known_answer(joined: KnowledgeGraph, name: str) -> None:
    rows = run(joined, name)
    for wanted in GOLDEN[name]:
        assert any(wanted.items() <= row.items() for row in rows), rows


@pytest.mark.parametrize("name", QUERIES)
def test_a_competency_question_has_no_hint(joined: KnowledgeGraph, name: str) -> None:
    assert check(QUERIES[name], get_schema(joined)) == []
