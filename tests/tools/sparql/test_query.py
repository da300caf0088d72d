"""SPARQL as a tool: typed cells, every cut announced with its reason, and what to change when it went wrong."""

from __future__ import annotations

import dataclasses
import json
import threading
from contextlib import suppress

import pytest

from kg.errors import GoneError, NotFoundError, QueryForbiddenError, QuerySyntaxError, QueryTimeoutError
from kg.retrieval.results import tokens_of
from kg.server import sparql_check
from kg.tools.answers import content_of
from kg.tools.schema import schema_measurement
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.sparql import empty_results
from kg.tools.sparql import query as querying
from kg.tools.sparql.query import sparql
from kg.vocabulary import KG
from tests.tools.schema.waits import record_waits
from tests.waiting import LIMITS_S


def test_columns_have_types_and_rows_are_complete(fixtures):
    answer = sparql(fixtures, "SELECT ?d ?t ?n { ?d dcterms:title ?t . ?p dcterms:isPartOf ?d ; schema:position ?n }")
    assert [(column.name, column.type) for column in answer.columns or []] == [
        ("d", "iri"), ("t", "string"), ("n", "xsd:integer")]  # fmt: skip
    assert answer.truncated_by == "rows"
    assert len(answer.rows or []) == 100
    assert answer.snapshot == fixtures.store.statistics().generation
    whole = sparql(fixtures, "SELECT ?d { ?d a kg:PolicyDocument }")
    assert whole.complete
    assert whole.meta.total == len(whole.rows or []) == 13


def test_a_cut_by_rows_says_so_and_how_to_get_the_rest(fixtures):
    answer = sparql(fixtures, "SELECT ?p { ?p a kg:Passage }", max_rows=5)
    assert (len(answer.rows or []), answer.complete, answer.truncated_by) == (5, False, "rows")
    assert "OFFSET" in answer.notes[0]
    assert answer.meta.completeness == "truncated"
    exact = sparql(fixtures, "SELECT ?p { ?p a kg:Passage } LIMIT 5", max_rows=5)
    assert exact.complete


@pytest.mark.parametrize("max_tokens", [200, 400, 1_000, 3_000])
def test_an_answer_keeps_within_its_tokens(fixtures, max_tokens):
    for query in (
        "SELECT * { ?p a kg:Passage ; schema:text ?t }",
        "CONSTRUCT WHERE { ?p a kg:Passage ; schema:text ?t }",
    ):
        answer = sparql(fixtures, query, max_rows=1_000, max_tokens=max_tokens)
        assert tokens_of(content_of(answer)) <= max_tokens + 20
        assert answer.truncated_by in ("tokens", None)
        assert answer.complete == (answer.truncated_by is None)


def test_a_row_that_does_not_fit_alone_is_shown_cut_and_that_is_told(fixtures):
    answer = sparql(fixtures, "SELECT (GROUP_CONCAT(?t) AS ?all) { ?p schema:text ?t }", max_tokens=300)
    [[cell]] = answer.rows
    assert cell.endswith("…")
    assert answer.truncated_by == "tokens"
    assert any("ellipsis" in note for note in answer.notes)


def test_rows_that_were_there_at_the_deadline_are_given(fixtures):
    never = "SELECT (COUNT(*) AS ?n) { ?a ?p ?x . ?b ?q ?y . ?c ?r ?z . ?d ?s ?w }"
    # The first part has rows at once, the second never does.
    slow = f"SELECT ?t ?n {{ {{ ?p schema:text ?t . ?q a kg:PolicyDocument }} UNION {{ {never} }} }}"
    for timeout in LIMITS_S:
        with suppress(QueryTimeoutError):  # before the first rows, on a busy machine
            answer = sparql(fixtures, slow, timeout=timeout, max_rows=10_000, max_tokens=50_000)
            break
    assert (answer.complete, answer.truncated_by) == (False, "time")
    assert 10 < len(answer.rows or []) <= 103 * 13
    assert "deadline" in answer.notes[-1]
    with pytest.raises(QueryTimeoutError, match=r"0\.4 s"):
        sparql(fixtures, never, timeout=0.4)


def test_ask_and_construct(fixtures):
    assert sparql(fixtures, "ASK { ?p a kg:Passage }").boolean is True
    graph = sparql(fixtures, "CONSTRUCT { ?d a kg:PolicyDocument } WHERE { ?d a kg:PolicyDocument }")
    assert graph.turtle.count("a kg:PolicyDocument") == 13
    assert graph.columns is None


def test_search_joins_in(fixtures):
    answer = sparql(
        fixtures, 'SELECT ?u ?t { SERVICE kg:search { ?u kg:matches "solar panel" ; kg:limit 3 } ?u schema:text ?t }'
    )
    assert answer.rows
    assert "solar" in json.dumps(answer.rows).casefold()


def test_an_old_snapshot_is_refused_and_the_newest_can_be_named(fixtures):
    generation = fixtures.store.statistics().generation
    assert sparql(fixtures, "ASK {}", snapshot=generation).snapshot == generation
    with pytest.raises((GoneError, NotFoundError)):
        sparql(fixtures, "ASK {}", snapshot=0)


def test_what_looks_wrong_is_said_beside_the_rows(fixtures):
    answer = sparql(fixtures, "SELECT ?p ?x { ?p a kg:Passage OPTIONAL { ?p kg:pageNumbr ?x } } LIMIT 2")
    assert answer.rows
    assert [(hint.suggestions or [""])[0] for hint in answer.hints or []] == ["kg:pageNumber"]


def measured_before(schema, *unused):
    """The schema as it was one generation earlier, when nothing had these classes and properties."""
    return dataclasses.replace(
        schema,
        generation=schema.generation - 1,
        classes={iri: use for iri, use in schema.classes.items() if iri not in unused},
        properties={iri: use for iri, use in schema.properties.items() if iri not in unused},
    )


def test_no_hint_of_absence_comes_from_an_older_measurement(fixtures, monkeypatch):
    older = measured_before(get_schema(fixtures), KG.Passage.value, KG.slug.value)
    for module in (querying, empty_results, sparql_check):
        monkeypatch.setattr(module, "get_schema", lambda *_, **__: older)
    query = 'SELECT ?x { ?x a kg:Passage ; kg:slug ?y . ?z kg:slug "atlantis" ; a kg:Vote ; kg:pageNumbr ?n }'
    hints = sparql(fixtures, query).hints or []
    assert {hint.code for hint in hints} >= {"unused_class", "unknown_property"}
    assert not [hint for hint in hints if hint.code.startswith("unused") and "kg:Vote" not in hint.message]
    checked = sparql_check.report(fixtures, query)["hints"]
    assert [hint["found"] for hint in checked] == ["kg:Vote", "kg:pageNumbr"]


def test_hints_about_the_data_are_those_of_the_snapshot(fixtures, monkeypatch):
    older = measured_before(get_schema(fixtures))
    monkeypatch.setattr(querying, "get_schema", lambda *_, **__: older)
    generation = fixtures.store.statistics().generation
    answer = sparql(
        fixtures, "SELECT ?x ?y { ?x a kg:Passage OPTIONAL { ?x kg:pageNumbr ?n } } LIMIT 1", snapshot=generation
    )
    assert [hint.code for hint in answer.hints or []] == ["unbound_variable", "unknown_property"]


def test_no_rows_come_with_the_patterns_that_have_none(fixtures):
    answer = sparql(fixtures, 'SELECT ?d { ?d a kg:PolicyDocument ; kg:jurisdiction ?j . ?j skos:notation "ATLANTIS" }')
    assert answer.rows == []
    assert any("ATLANTIS" in pattern for pattern in answer.empty_because or [])
    assert answer.notes


def test_errors_carry_the_hints(fixtures):
    with pytest.raises(QuerySyntaxError, match="undeclared prefix ex:") as caught:
        sparql(fixtures, "SELECT ?u { ?u a kg:Passage ; ex:foo 3 }")
    assert str(caught.value).count("ex:") < 4
    with pytest.raises(QueryForbiddenError):
        sparql(fixtures, "DELETE WHERE { ?s ?p ?o }")


def test_the_query_stands_in_the_meta_as_it_was_asked(fixtures):
    query = "SELECT ?d { ?d a kg:PolicyDocument }"
    assert [statement.sparql for statement in sparql(fixtures, query).meta.sparql] == [query]


def test_first_query_does_not_wait_for_the_measurement(receiving, monkeypatch):
    measured = threading.Event()

    def measure(kg):
        measured.wait(90)
        raise QueryTimeoutError("stopped")

    monkeypatch.setattr(schema_measurement, "measure_schema", measure)
    receiving.store.update('INSERT DATA { GRAPH <http://x.org/g> { <http://x.org/s> a kg:Passage ; schema:text "a" } }')
    monkeypatch.setattr(querying, "REPAIR_WAIT_S", 0.1)
    waits = record_waits(monkeypatch)
    found = sparql(receiving, "SELECT ?p { ?p a kg:Passage ; schema:text ?t OPTIONAL { ?p kg:pageNumbr ?n } }")
    empty = sparql(receiving, "SELECT ?p { ?p a kg:Passage ; kg:slug ?s }")
    measured.set()
    assert set(waits) <= {0, 0.1}
    assert len(found.rows) == 1
    assert [hint.code for hint in found.hints or []] == ["unknown_property"]
    assert [hint.code for hint in empty.hints or []] == ["unused_property"]
    assert empty.empty_because == ["?p kg:slug ?s"]
