"""A query is read into its patterns with exact positions, and what cannot be read gives None, never an error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.sparql.algebra import Query
from kg.sparql.parser import MAX_CHARS, parse
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, XSD


def read(query: str) -> Query:
    parsed = parse(query)
    assert parsed is not None
    return parsed


def triples(query: str) -> list[tuple[str, str, str]]:
    return [(p.subject.value, p.iri or p.path, p.object.value) for p in read(query).patterns]


def test_lists_of_predicates_and_objects_become_one_pattern_each() -> None:
    assert triples('SELECT * { ?d a kg:Passage ; schema:text "a" , ?t . ?t ?p 5 }') == [
        ("d", RDF.type.value, KG.Passage.value),
        ("d", SCHEMA.text.value, "a"),
        ("d", SCHEMA.text.value, "t"),
        ("t", "?p", "5"),
    ]


def test_every_node_stands_where_it_says() -> None:
    query = 'PREFIX x: <http://x/>\nSELECT * {\n  ?d x:p "a\\n"@en ; <http://x/q> x:r .\n}'
    for pattern in read(query).patterns:
        for node in (pattern.subject, *pattern.atoms, pattern.object):
            assert query[node.start : node.end] == node.text


def test_a_sequence_path_is_taken_apart_and_inverse_steps_are_turned() -> None:
    first, second = read("SELECT * { ?d ^dcterms:isPartOf/schema:text ?t }").patterns
    assert first.object.value == "d"
    assert first.iri == DCTERMS.isPartOf.value
    assert first.subject == second.subject
    assert second.object.value == "t"


def test_other_paths_give_their_properties_alone() -> None:
    (pattern,) = read("SELECT * { ?d (kg:a|^kg:b)*/kg:c+ ?t }").patterns
    assert pattern.predicate is None
    assert [atom.text for atom in pattern.atoms] == ["kg:a", "kg:b", "kg:c"]
    assert pattern.path == "(kg:a|^kg:b)*/kg:c+"


def test_what_may_stay_without_solutions_has_a_scope_of_its_own() -> None:
    query = """SELECT * { ?a kg:p ?b OPTIONAL { ?a kg:q ?c } { ?a kg:r 1 } UNION { ?a kg:s 2 }
      MINUS { ?a kg:t 3 } FILTER NOT EXISTS { ?a kg:u 4 } GRAPH ?g { ?a kg:v 5 } }"""
    scopes = {pattern.path: pattern.scope for pattern in read(query).patterns}
    assert [path for path, scope in scopes.items() if not scope] == ["kg:p", "kg:v"]
    assert len({scope for scope in scopes.values() if scope}) == 5


def test_the_graph_of_a_pattern_is_known() -> None:
    parsed = read("SELECT * { GRAPH <http://g/1> { ?a kg:p ?b } ?a kg:q ?c }")
    assert [pattern.graph and pattern.graph.value for pattern in parsed.patterns] == ["http://g/1", None]
    assert [graph.value for graph in parsed.graphs] == ["http://g/1"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('?x = "a"', ("x", "", "=", "a", XSD.string.value)),
        ('"a" = ?x', ("x", "", "=", "a", XSD.string.value)),
        ('LANG(?x) = "en"', ("x", "LANG", "=", "en", XSD.string.value)),
        ('LANGMATCHES(LANG(?x), "en")', ("x", "LANG", "LANGMATCHES", "en", XSD.string.value)),
        ('?x >= "2020-01-01"^^xsd:date', ("x", "", ">=", "2020-01-01", XSD.date.value)),
        ('?x >= xsd:date("2020-01-01")', ("x", "", ">=", "2020-01-01", XSD.date.value)),
        ("?x IN (-1)", ("x", "", "IN", "-1", XSD.integer.value)),
        ("?x NOT IN (1.5)", ("x", "", "NOT IN", "1.5", XSD.decimal.value)),
        ("!(?x = true) || BOUND(?y)", ("x", "", "=", "true", XSD.boolean.value)),
    ],
)
def test_comparisons_with_constants_are_found(expression: str, expected: tuple[str, ...]) -> None:
    (found,) = read(f"SELECT * {{ ?s ?p ?x FILTER({expression}) }}").comparisons
    constant = found.constant
    assert (found.variable.value, found.function, found.operator, constant.value, constant.datatype) == expected


@pytest.mark.parametrize("expression", ["?x + 1 = 2", "2 = ?x * 3", "STRLEN(STR(?x)) > 3", "?x = ?y"])
def test_a_part_of_a_calculation_is_no_comparison(expression: str) -> None:
    assert read(f"SELECT * {{ ?s ?p ?x FILTER({expression}) }}").comparisons == []


def test_variables_that_a_sub_select_does_not_project_are_its_own() -> None:
    outer, inner = read("SELECT * { ?d kg:p ?x { SELECT ?d WHERE { ?d kg:q ?x } } }").patterns
    assert outer.subject.value == inner.subject.value
    assert outer.object.value != inner.object.value


def test_prefixes_are_told_apart() -> None:
    parsed = read("PREFIX ex: <http://e/> SELECT * { ?a ex:p skos:q . ?a foo:r 1 }")
    assert parsed.declared["ex"].value == "http://e/"
    assert [token.text for token in parsed.undeclared] == ["foo:r"]
    assert set(parsed.used) == {"ex", "skos", "foo"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { << ?a ?b ?c >> kg:p ?d . ?a kg:q <<( ?x ?y ?z )>> }",
        "SELECT * { ?a kg:p ?b {| kg:q ?c |} ; kg:r ?d ~ ?e }",
        "SELECT * { ?a kg:p (1 ?x [ kg:q () ]) . [] kg:r [] . [ kg:s 3 ] }",
        "SELECT * { ?a kg:p ?b LATERAL { SELECT ?c { ?b kg:q ?c } LIMIT 1 } }",
        "SELECT ?a (COUNT(*) AS ?n) { ?a kg:p ?b } GROUP BY ?a HAVING (COUNT(*) > 2) VALUES ?a { kg:x }",
        "CONSTRUCT { ?a kg:p ?b } WHERE { ?b kg:q ?a }",
        "CONSTRUCT WHERE { ?b kg:q ?a }",
        "ASK FROM <http://g> FROM NAMED <http://h> { ?a kg:p 'x'@en-GB , -2.5e3 , true }",
        "DESCRIBE kg:Passage",
        "BASE <http://b/> SELECT (?a AS ?b) { <x> <y> ?a BIND(IF(EXISTS { ?a kg:p ?c }, 1, 2) AS ?d) }",
        "SELECT * { SERVICE SILENT <http://x> { ?a foo:b ?c } ?a kg:p ?d }",
    ],
)
def test_all_of_the_grammar_can_be_read(query: str) -> None:
    assert parse(query) is not None


@pytest.mark.measures_processor_time
def test_what_is_too_large_or_too_deep_is_not_read_and_takes_no_time() -> None:
    start = time.thread_time()
    assert parse("SELECT * {" + "{" * 5_000 + "}" * 5_000 + "}") is None
    assert parse("SELECT * { ?a kg:p " + "[ kg:p " * 5_000 + "1" + "]" * 5_000 + "}") is None
    assert parse("SELECT * { ?a kg:p " + "(" * 5_000 + ")" * 5_000 + "}") is None
    assert parse("SELECT * { FILTER" + "(" * 9_000 + ")" * 9_000 + "}") is not None
    assert parse("x" * (MAX_CHARS + 1)) is None
    assert time.thread_time() - start < 10


PIECES = [
    "SELECT", "*", "{", "}", "(", ")", "[", "]", "?a", "kg:p", "<http://x>", '"s"', "@en", "^^", ".", ";", ",",
    "FILTER", "OPTIONAL", "UNION", "GRAPH", "VALUES", "UNDEF", "BIND", "AS", "EXISTS", "NOT", "IN", "=", "<", "^",
    "/", "|", "a", "1", "-", "<<", ">>", "<<(", ")>>", "{|", "|}", "~", "PREFIX", "x:", "LANGMATCHES", "MINUS",
    "SERVICE",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_no_text_makes_it_fail(pieces: list[str]) -> None:
    parse("SELECT * { " + " ".join(pieces))
    parse(" ".join(pieces))


def test_a_service_without_a_group_is_not_read() -> None:
    assert parse("SELECT * { SERVICE ?a }") is None


@given(st.text(max_size=60))
def test_nor_does_any_other_text(text: str) -> None:
    parse(text)
    parse(f"SELECT * {{ ?a kg:p {text} }}")
