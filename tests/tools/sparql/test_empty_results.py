"""A query without rows is told the smallest set of its parts that has none, and what would have some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.sparql.empty_results import MOST_PROBES, Diagnosis, diagnose, is_empty
from kg.vocabulary import BASE
from tests.benchmarks.repair import mistakes, told
from tests.conftest import load_once
from tests.folders import open_graph

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = load_once(tmp_path_factory, "climate")
    with open_graph(folder) as opened:
        yield opened


def diagnosed(kg: KnowledgeGraph, query: str) -> Diagnosis:
    assert is_empty(query, kg.query(query).result)
    found = diagnose(kg, query)
    assert found is not None
    assert found.probes <= MOST_PROBES
    return found


@pytest.mark.parametrize(
    ("body", "patterns"),
    [
        ("?d a kg:policydocument ; dcterms:title ?t", ("?d a kg:policydocument",)),
        ("?d a kg:PolicyDocument ; kg:slug ?s ; schema:text ?t", ("?d a kg:PolicyDocument", "?d schema:text ?t")),
        ('?d dcterms:title ?t ; schema:inLanguage "xx"', ('?d schema:inLanguage "xx"',)),
        (
            '?p schema:inLanguage "fr" ; schema:text ?x ; dcterms:isPartOf ?d . ?d kg:slug ?s ; '
            f"kg:jurisdiction <{BASE}id/place/KEN>",
            ('?p schema:inLanguage "fr"', "?p dcterms:isPartOf ?d", f"?d kg:jurisdiction <{BASE}id/place/KEN>"),
        ),
        (
            '?d kg:slug ?s ; eli:date_document ?x FILTER(?x > "2099-01-01"^^xsd:date)',
            ("?d eli:date_document ?x", 'FILTER(?x > "2099-01-01"^^xsd:date)'),
        ),
        (
            '?d a kg:PolicyDocument OPTIONAL { ?d schema:inLanguage ?l } FILTER(?l = "xx")',
            ("?d a kg:PolicyDocument", "OPTIONAL { ?d schema:inLanguage ?l }", 'FILTER(?l = "xx")'),
        ),
        (
            "?d kg:slug ?s BIND(STR(?d) AS ?x) FILTER(?x = 'y')",
            ("?d kg:slug ?s", "BIND(STR(?d) AS ?x)", "FILTER(?x = 'y')"),
        ),
        ('{ ?d kg:slug "x" } UNION { ?d kg:slug "y" } ?d a ?c', ('?d kg:slug "x"', '?d kg:slug "y"')),
        ('{ SELECT ?d { ?d kg:slug "x" ; dcterms:title ?t } } ?d a ?c', ('?d kg:slug "x"',)),
        (
            "?d kg:slug ?s ; dcterms:title ?t FILTER NOT EXISTS { ?d a kg:PolicyDocument }",
            ("?d kg:slug ?s", "FILTER NOT EXISTS { ?d a kg:PolicyDocument }"),
        ),
        ("?d kg:slug ?s ; a ?c MINUS { ?d dcterms:title ?t }", ("?d kg:slug ?s", "MINUS { ?d dcterms:title ?t }")),
        ('?d kg:slug ?s VALUES ?s { "x" "y" }', ("?d kg:slug ?s", 'VALUES ?s { "x" "y" }')),
        (
            f"?d a ?c GRAPH <{BASE}graph/prov> {{ ?d kg:slug ?s }}",
            (f"GRAPH <{BASE}graph/prov> {{ ?d kg:slug ?s }}",),
        ),
    ],
)  # fmt: skip
def test_the_smallest_set_without_solutions(body: str, patterns: tuple[str, ...], kg: KnowledgeGraph) -> None:
    found = diagnosed(kg, f"SELECT * WHERE {{ {body} }}")
    assert found.patterns == patterns
    assert found.complete
    for pattern in patterns:
        assert pattern in found.message


def test_a_set_is_named_only_if_each_smaller_one_has_solutions(kg: KnowledgeGraph) -> None:
    found = diagnosed(kg, "SELECT * { ?d a kg:PolicyDocument ; kg:slug ?s . ?d kg:pageNumber ?n ; dcterms:title ?t }")
    assert len(found.patterns) == 2
    assert kg.query(f"ASK {{ {' . '.join(found.patterns)} }}").result is False
    for pattern in found.patterns:
        assert kg.query(f"ASK {{ {pattern} }}").result is True


@pytest.mark.parametrize(
    "query",
    [
        "ASK { ?d kg:slug 'x' }",
        "CONSTRUCT { ?d a kg:X } WHERE { ?d kg:slug 'x' }",
        "SELECT (COUNT(?d) AS ?n) { ?d kg:slug 'x' }",
        "PREFIX k: <https://w3id.org/quadcite/ns#> SELECT ?d { ?d k:slug 'x' } ORDER BY ?d LIMIT 3",
    ],
)
def test_every_form_of_query_can_be_empty(query: str, kg: KnowledgeGraph) -> None:
    (pattern,) = diagnosed(kg, query).patterns
    assert pattern.endswith("slug 'x'")


def test_an_iri_that_is_nowhere_is_said_to_be_with_the_nearest(kg: KnowledgeGraph) -> None:
    found = diagnosed(kg, f"SELECT * {{ ?d kg:jurisdiction <{BASE}id/place/DJ> }}")
    (hint,) = found.hints
    assert "is not in the data" in hint.message
    assert hint.suggestions[0] == f"<{BASE}id/place/DJI>"


def test_a_pattern_that_is_turned_round_is_said_to_be(kg: KnowledgeGraph) -> None:
    slug = "roteiro-solar-ficticio_br02"
    found = diagnosed(kg, f"SELECT * {{ <cpr://doc/{slug}> dcterms:isPartOf ?p }}")
    assert ("wrong_direction", f"?p dcterms:isPartOf <cpr://doc/{slug}>") in [
        (hint.code, hint.suggestions[0]) for hint in found.hints
    ]


def test_the_values_that_there_are_are_named(kg: KnowledgeGraph) -> None:
    found = diagnosed(kg, 'SELECT * { ?d schema:inLanguage "English" }')
    assert found.hints[0].suggestions[0] == '"en"'
    found = diagnosed(kg, 'SELECT * { ?d eli:date_document ?x FILTER(?x > "2099-01-01"^^xsd:date) }')
    assert "are from" in found.hints[0].message


def test_what_takes_the_solutions_away_after_the_pattern_is_named(kg: KnowledgeGraph) -> None:
    found = diagnosed(kg, "SELECT * { ?d kg:slug ?s } OFFSET 1000")
    assert found.patterns == ()
    assert "OFFSET" in found.message


def test_only_aggregates_over_nothing_count_as_empty(kg: KnowledgeGraph) -> None:
    some = "SELECT (COUNT(?d) AS ?n) { ?d kg:slug ?s }"
    assert not is_empty(some, kg.query(some).result)
    zero = "SELECT ?n { ?p schema:position ?n } ORDER BY ?n LIMIT 1"
    assert not is_empty(zero, kg.query(zero).result)


@pytest.mark.parametrize(
    "query", ["", "not SPARQL", "SELECT * { SERVICE <http://x> { ?a ?b ?c } }", "DESCRIBE <http://x>"]
)
def test_what_cannot_be_asked_in_parts_has_no_diagnosis(query: str, kg: KnowledgeGraph) -> None:
    assert diagnose(kg, query) is None


def test_time_runs_out_without_an_error(kg: KnowledgeGraph) -> None:
    assert diagnose(kg, "SELECT * { ?d a kg:policydocument }", timeout_s=0.0) is None


def test_most_mistakes_as_people_make_them_are_told_the_right_repair(kg: KnowledgeGraph) -> None:
    schema = get_schema(kg)
    cases = mistakes()
    missed = [
        case["query"] for case in cases if not any(text in told(kg, schema, case["query"]) for text in case["repair"])
    ]
    assert len(cases) > 100
    assert len(missed) <= 0.1 * len(cases), missed
