"""SERVICE clauses are found where the parser sees them, and replaced without moving anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from kg.errors import InvalidInputError, QueryForbiddenError, QuerySyntaxError
from kg.sparql.service import MAX_CLAUSES, find_clauses, parse_prologue, replace_clauses
from tests.sparql.test_guard import HARMLESS

KG_SEARCH = "https://w3id.org/quadcite/ns#search"


@pytest.mark.parametrize(
    ("query", "endpoint", "silent", "inner"),
    [
        ("SELECT * { SERVICE <http://e/s> { ?a ?b ?c } }", "http://e/s", False, " ?a ?b ?c "),
        ("SELECT * { SERVICE kg:search { ?a ?b ?c } }", KG_SEARCH, False, " ?a ?b ?c "),
        ("PREFIX e:<http://e/> SELECT*{service silent e:s{?a ?b '}'}}", "http://e/s", True, "?a ?b '}'"),
        ("BASE <http://e/a/> PREFIX x: <../> SELECT*{SERVICE x:s{}}", "http://e/s", False, ""),
        ("BASE <http://e/a/> SELECT * { SERVICE <s> {} }", "http://e/a/s", False, ""),
        (r"PREFIX e: <http://e/> SELECT * { SERVICE e:a\-b%20c {} }", "http://e/a-b%20c", False, ""),
        ("PREFIX kg: <http://e/> SELECT * { SERVICE kg:search {} }", "http://e/search", False, ""),
        ("SELECT * { SERVICE ?where {} }", None, False, ""),
        ("SELECT * { OPTIONAL { ?s ?p ?o SERVICE <a:b> { { ?a ?b ?c } UNION {} } } }", "a:b", False,
         " { ?a ?b ?c } UNION {} "),
        ("SELECT * { # SERVICE <x:x> {}\n SERVICE # { \n <a:b> # }\n { ?a ?b 1 # }\n } }", "a:b", False,
         " ?a ?b 1 # }\n "),
        ("SELECT * { ?s <http://e/#p> ?o SERVICE <a:b> { ?s <http://e/#p> ?o } }", "a:b", False,
         " ?s <http://e/#p> ?o "),
        ("SELECT * { FILTER(?x <?y) SERVICE <a:b> { FILTER(?x <?y && ?z> 1) } }", "a:b", False,
         " FILTER(?x <?y && ?z> 1) "),
        ("SELECT * { SERVICE <a:b> { ?s ?p ?o {| ?x ?y |} } }", "a:b", False, " ?s ?p ?o {| ?x ?y |} "),
    ],
)  # fmt: skip
def test_a_clause_is_found_with_what_it_says(query: str, endpoint: str | None, silent: bool, inner: str) -> None:
    [clause] = find_clauses(query)
    assert (clause.endpoint, clause.silent, clause.inner) == (endpoint, silent, inner)
    assert query[clause.start : clause.start + 7].upper() == "SERVICE"
    assert query[clause.end - 1] == "}"


@pytest.mark.parametrize("query", HARMLESS)
def test_what_only_speaks_of_services_has_no_clauses(query: str) -> None:
    assert find_clauses(query) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * {\n SERVICE <a:b> { SERVICE <a:c> {} } }", "line 2, column 18.*line 2, column 2"),
        ("SELECT * { ?s ?p trueSERVICE<a:b>{} }", "with a space before"),
        ("SELECT * { SERVICESILENT<a:b>{} }", "Write it as SERVICE <endpoint>"),
        ("PREFIX : <a:b> SELECT * { SERVICE:x{} }", "Write it as SERVICE <endpoint>"),
        ("PREFIX x: <a:b> SELECT * { SERVICE SILENTx:x{} }", "Write it as SERVICE <endpoint>"),
        ("SELECT * { SERVICE x:x {} }", "x:x is not an absolute IRI"),
        ("SELECT * { SERVICE <x> {} }", "<x> is not an absolute IRI"),
        ('SELECT * { BIND(1 AS ?a) FILTER(?a <2)#>"""\n SERVICE <a:b> {} #"""\n}', "ambiguous"),
        ("SELECT * { SERVICE <a:b> { FILTER(?a <2)#>\n } }", "ambiguous"),
        ("SELECT * { SERVICE <a:b> { ?s ?p '''\\uD800''' } }", "ambiguous"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused_and_says_how_to_write_it(query: str, message: str) -> None:
    with pytest.raises(QueryForbiddenError, match=f"(?s){message}"):
        find_clauses(query)


def test_the_number_of_clauses_is_bounded() -> None:
    query = "SELECT * { " + "SERVICE <a:b> {} " * MAX_CLAUSES
    assert len(find_clauses(query + "}")) == MAX_CLAUSES
    with pytest.raises(InvalidInputError, match=f"Maximum: {MAX_CLAUSES}"):
        find_clauses(query + "SERVICE <a:b> {} }")


def test_a_clause_that_never_closes_is_an_error() -> None:
    with pytest.raises(QuerySyntaxError, match="line 1, column 12"):
        find_clauses("SELECT * { SERVICE <a:b> { ?s ?p ?o ")


FILLERS = st.sampled_from(
    ["?s ?p ?o . ", "# SERVICE <a:b> {\n", "'SERVICE <a:b> {' ", "{ ?a ?b ?c } ", "\n", "  ", "FILTER(?a <?b) ",
     "OPTIONAL { ?s ?p '''}''' } ", "?s <http://e/#SERVICE> \"}\" . "]
)  # fmt: skip


@given(st.lists(st.tuples(FILLERS, FILLERS), min_size=1, max_size=4))
def test_a_replacement_leaves_every_other_character_where_it_was(parts: list[tuple[str, str]]) -> None:
    """Each line keeps its number, and what follows a clause of several lines its column too."""
    query = "SELECT * {" + "".join(f"{a}SERVICE <a:b> {{{b}}}" for a, b in parts) + "\n?the ?end 1 }"
    found = find_clauses(query)
    assert [clause.inner for clause in found] == [inner for _, inner in parts]
    replaced = replace_clauses(query, [(clause, "{}") for clause in found])
    assert replaced.count("\n") == query.count("\n")
    assert find_clauses(replaced) == []
    assert replaced.split("\n")[-1] == query.split("\n")[-1]


def test_the_rest_of_a_line_keeps_its_column() -> None:
    query = "SELECT * { SERVICE <a:b> {\n  ?s ?p ?o\n    } BIND(1 AS ?x) }"
    [clause] = find_clauses(query)
    replaced = replace_clauses(query, [(clause, "VALUES (?s) { (1) }")])
    assert replaced.split("\n")[2] == "      BIND(1 AS ?x) }"
    assert [str(row["x"].value) for row in Store().query(replaced)] == ["1"]  # type: ignore[union-attr]


def test_the_prologue_is_what_stands_before_the_form() -> None:
    query = "# c\nPREFIX a: <http://a/> BASE <http://b/> prefix : <x#> SELECT ?PREFIX { ?s ?p a:b }"
    prologue = parse_prologue(query)
    assert query[len(prologue.text) :].startswith(" SELECT")
    assert prologue.prefixes == {"a": "http://a/", "": "http://b/x#"}
    assert parse_prologue("SELECT * {}").text == ""
    assert parse_prologue("PREFIX a: ").prefixes == {}
