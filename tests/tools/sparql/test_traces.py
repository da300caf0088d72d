"""Counts and absences in the answers of the tool `sparql` come with the queries that list their evidence."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Triple

from kg.access.actors import EVERYONE
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.tracing import MOST_CHARACTERS, find_counts
from kg.store.protocol import Rows, term_text
from kg.tools import registry
from kg.tools.sparql.query import sparql
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


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("family_overview", {"iso3": "AUS", "top_concepts": 3}),
        ("jurisdiction_overview", {"iso3": "AUS"}),
        ("speech_stats", {"group_by": "party"}),
        ("list_speakers", {}),
        ("related", {"id": "cpr://concept/Q1009"}),
        ("list_resources", {"limit": 200}),
    ],
)
def test_tool_that_counts_lists_with_explain_what_it_counted(
    joined: KnowledgeGraph, name: str, arguments: dict[str, object]
) -> None:
    asked = {**arguments, "explain": True, "max_tokens": 50_000}
    explained = registry.get(name).content(joined, asked)["explain"]
    lists = {each["purpose"]: each["sparql"] for each in explained if each["purpose"].startswith("lists ?")}
    counted = [each for each in explained if each["purpose"] not in lists and find_counts(each["sparql"])]
    assert counted
    for each in counted:
        for count in find_counts(each["sparql"]):
            if not count.expression.startswith("COUNT") or "LIMIT" in each["sparql"]:
                continue
            listing = lists[f"lists ?{count.column} of: {each['purpose']}"]
            total = sum(int(term_text(row[count.column])) for row in list_rows(joined, each["sparql"]))
            assert len(list_rows(joined, listing)) == total


def test_statements_of_users_are_counted_and_listed_alike(receiving: KnowledgeGraph) -> None:
    kg = receiving
    query = "SELECT ?t (COUNT(?d) AS ?n) { ?d dcterms:title ?t } GROUP BY ?t"
    graph = mint("graph", "user", "counted")
    UserGraphs(kg).put(graph, [Triple(NamedNode("urn:x"), DCTERMS.title, Literal("a title of a user"))], EVERYONE)
    rows = sparql(kg, query + " HAVING (?t = 'a title of a user')")
    [trace] = rows.traces or []
    assert len(list_rows(kg, trace.sparql)) == 1
