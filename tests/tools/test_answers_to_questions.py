"""The questions of the ontology have over the fixtures the answers that answers.toml says, no more and no fewer."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import Rows
from kg.tools.schema.examples import load_examples
from kg.tools.sparql.local_services import expand_services

ANSWERS = tomllib.loads((Path(__file__).parent / "answers.toml").read_text(encoding="utf-8"))["answer"]
QUERIES = {example.iri.partition("/examples/")[2]: example.query for example in load_examples()}
NO_ONE_ANSWER = {
    "climate/passages-of-a-document": "any document",
    "codes/headings-of-a-document": "any document",
    "concepts/alignments-to-review": "none: kg align has not proposed any in the fixtures",
    "codes/added-codes": "none: the fixtures use no code that the ontology does not list",
}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: f"{answer['to']}")
def test_a_question_has_its_answer(fixtures: KnowledgeGraph, answer: dict[str, Any]) -> None:
    query = answer.get("query") or QUERIES[answer["to"]]
    result = fixtures.query(expand_services(fixtures, query), all_graphs=True).result
    assert isinstance(result, Rows)
    given = Counter(tuple(getattr(row.get(column), "value", "") for column in answer["columns"]) for row in result)
    assert given == Counter(map(tuple, answer["rows"]))
    assert answer["rows"]


def test_every_question_about_climate_its_codes_and_concepts_has_an_answer() -> None:
    asked = {name for name in QUERIES if name.startswith(("climate/", "codes/", "concepts/"))}
    assert asked - {answer["to"] for answer in ANSWERS} == set(NO_ONE_ANSWER)
