"""The evidence of a row: statements of the store that match the patterns of the query, and traces of counts."""

from __future__ import annotations

import json

import pytest
from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import Rows
from kg.tools.sparql.row_evidence import STATEMENTS, find_evidence, parse_row
from kg.vocabulary import DCTERMS, KG

TITLES = "SELECT ?d ?title WHERE { ?d kg:slug ?slug ; dcterms:title ?title } ORDER BY ?d"
COUNTS = (
    "SELECT ?place (COUNT(DISTINCT ?d) AS ?n) WHERE { ?d kg:jurisdiction ?place } GROUP BY ?place ORDER BY DESC(?n)"
)


def first_row(kg: KnowledgeGraph, query: str) -> dict:
    answer = kg.query(query, limit=1)
    assert isinstance(answer.result, Rows)
    return dict(next(iter(answer.result)))


def test_statements_match_the_patterns_and_name_their_graph(fixtures: KnowledgeGraph) -> None:
    row = first_row(fixtures, TITLES)
    found = find_evidence(fixtures, TITLES, row)
    assert found.reason is None
    assert {statement.predicate for statement in found.statements} == {KG.slug, DCTERMS.title}
    assert {statement.subject for statement in found.statements} == {row["d"]}
    for statement in found.statements:
        ask = f"ASK {{ GRAPH <{statement.graph}> {{ {statement.subject} {statement.predicate} {statement.object} }} }}"
        assert fixtures.query(ask).result is True


def test_a_group_has_traces_and_the_statements_of_its_first_solutions(fixtures: KnowledgeGraph) -> None:
    row = first_row(fixtures, COUNTS)
    found = find_evidence(fixtures, COUNTS, row)
    assert [trace.of.split()[0] for trace in found.traces] == ["?n"]
    assert 0 < len(found.statements) <= STATEMENTS
    assert all(statement.object == row["place"] for statement in found.statements)


def test_a_row_that_the_query_does_not_have_has_no_statements(fixtures: KnowledgeGraph) -> None:
    row = {**first_row(fixtures, TITLES), "title": Literal("A title that nobody gave", language="en")}
    found = find_evidence(fixtures, TITLES, row)
    assert not found.statements
    assert found.reason is not None


def test_what_cannot_be_traced_says_why(fixtures: KnowledgeGraph) -> None:
    assert find_evidence(fixtures, "ASK { ?s ?p ?o }", {}).reason is not None
    assert find_evidence(fixtures, "SELECT (RAND() AS ?x) WHERE { ?s kg:slug ?o }", {}).reason is not None
    computed = find_evidence(fixtures, "SELECT (1 + 1 AS ?x) WHERE {}", {"x": Literal(2)})
    assert not computed.statements
    assert computed.reason is not None


def test_rows_in_sparql_json_are_parsed() -> None:
    row = parse_row(
        {
            "a": {"type": "uri", "value": "http://example.org/x"},
            "b": {"type": "literal", "value": "fir", "xml:lang": "en"},
            "c": {"type": "literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#integer"},
            "d": {"type": "bnode", "value": "b0"},
        }
    )
    assert row["a"] == NamedNode("http://example.org/x")
    assert row["b"] == Literal("fir", language="en")
    assert row["c"] == Literal(1)
    assert "d" in row


@pytest.mark.parametrize(
    "row", [[], {"a": 1}, {"a": {"type": "uri", "value": "not an IRI"}}, {"a": {"type": "literal", "value": 3}}]
)
def test_other_rows_are_refused(row: object) -> None:
    with pytest.raises(InvalidInputError):
        parse_row(json.loads(json.dumps(row)))
