"""Counts and absences in the answers of the tool `sparql` come with the queries that list their evidence."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Triple

from kg.actors import EVERYONE
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import Rows
from kg.tools.sparql.query import sparql
from kg.tools.sparql.traces import MOST_CHARACTERS
from kg.user_graphs import UserGraphs
from kg.vocabulary import BASE, DCTERMS, mint

PLACES = """SELECT ?place (COUNT(DISTINCT ?d) AS ?n) { ?d a kg:PolicyDocument ; kg:jurisdiction ?place }
GROUP BY ?place ORDER BY ?place"""


def list_rows(kg: KnowledgeGraph, query: str | None) -> Rows:
    assert query is not None
    found = kg.query(query, raw=True).result
    assert isinstance(found, Rows)
    return found


def test_count_of_each_row_has_the_query_that_lists_it(fixtures: KnowledgeGraph) -> None:
    rows = sparql(fixtures, PLACES).rows or []
    assert len(rows) > 1
    for number, (place, count) in enumerate(rows, start=1):
        [trace] = sparql(fixtures, PLACES, trace=number).traces or []
        assert trace.of == "?n COUNT(DISTINCT ?d)"
        assert f"<{place}>" in str(trace.sparql)
        assert len(list_rows(fixtures, trace.sparql)) == count


@pytest.mark.parametrize(
    ("trace", "query"), [(0, PLACES), (10_000, PLACES), (1, PLACES + " #" + "x" * MOST_CHARACTERS)]
)
def test_row_that_is_not_traced_has_no_traces(fixtures: KnowledgeGraph, trace: int, query: str) -> None:
    assert sparql(fixtures, query, trace=trace).traces is None


def test_count_whose_group_is_not_selected_says_so(fixtures: KnowledgeGraph) -> None:
    [trace] = sparql(fixtures, PLACES.replace("SELECT ?place", "SELECT")).traces or []
    assert (trace.sparql, "?place" in str(trace.reason)) == (None, True)


def test_traces_leave_most_of_the_answer_to_its_rows(fixtures: KnowledgeGraph) -> None:
    many = " ".join(f"(COUNT(DISTINCT ?d) AS ?n{number})" for number in range(30))
    answer = sparql(fixtures, PLACES.replace("(COUNT(DISTINCT ?d) AS ?n)", many), max_tokens=1_000)
    assert 0 < len(answer.traces or ()) < 30
    assert answer.rows
    assert any("traces" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("query", "searched"),
    [
        ("ASK { ?d a kg:PolicyDocument ; schema:inLanguage 'xx' }", "src/climate"),
        ("SELECT ?d { ?d a kg:PolicyDocument ; schema:inLanguage 'xx' }", "src/climate"),
        ("SELECT (COUNT(*) AS ?n) { ?d a kg:PolicyDocument ; schema:inLanguage 'xx' }", "src/climate"),
        (f"SELECT ?d {{ GRAPH <{BASE}graph/none> {{ ?d a ?c }} }}", f"{BASE}graph/none"),
        (f"ASK FROM <{BASE}graph/none> {{ ?d a ?c }}", f"{BASE}graph/none"),
    ],
)
def test_absence_has_its_query_and_the_searched_graphs(fixtures: KnowledgeGraph, query: str, searched: str) -> None:
    sparql(fixtures, "ASK {}")  # the schema is measured before the graphs are counted
    answer = sparql(fixtures, query)
    absent = [trace for trace in answer.traces or () if trace.of == "not found"]
    assert absent
    assert [len(list_rows(fixtures, trace.sparql)) for trace in absent] == [0] * len(absent)
    assert (answer.searched or {}).keys() & {searched, "all graphs"}
    assert (answer.searched or {}).get(f"{BASE}graph/none", 0) == 0


def test_row_that_exists_by_an_absence_has_the_query_for_it(fixtures: KnowledgeGraph) -> None:
    query = "SELECT ?d { ?d a kg:PolicyDocument FILTER NOT EXISTS { ?d schema:inLanguage 'xx' } }"
    [trace] = sparql(fixtures, query).traces or []
    assert trace.of.startswith("FILTER NOT EXISTS")
    assert len(list_rows(fixtures, trace.sparql)) == 0
    assert len(list_rows(fixtures, str(trace.sparql).replace("?d schema:inLanguage 'xx'\n}", "?d a ?c }"))) > 0


def test_statements_of_users_are_counted_and_listed_alike(receiving: KnowledgeGraph) -> None:
    kg = receiving
    query = "SELECT ?t (COUNT(?d) AS ?n) { ?d dcterms:title ?t } GROUP BY ?t"
    graph = mint("graph", "user", "counted")
    UserGraphs(kg).put(graph, [Triple(NamedNode("urn:x"), DCTERMS.title, Literal("a title of a user"))], EVERYONE)
    rows = sparql(kg, query + " HAVING (?t = 'a title of a user')")
    [trace] = rows.traces or []
    assert len(list_rows(kg, trace.sparql)) == 1
