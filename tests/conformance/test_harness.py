"""The harness itself: what it takes for the same, and that it lets no failure, and no unexpected success, pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QueryResultsFormat

from tests.conformance import expectations, figures, results
from tests.conformance.endpoint import NotAnsweredError
from tests.conformance.expectations import EXPECTED, OUT_OF_SCOPE, Failure, judge, suite_of
from tests.conformance.manifest import Description, Test, all_tests, has_relative_iri
from tests.conformance.results import CsvTable, Table, same

A, B, C = BlankNode("a"), BlankNode("b"), BlankNode("c")
XSD = "http://www.w3.org/2001/XMLSchema#"


def number(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def table(*rows: dict[str, object]) -> Table:
    return Table(frozenset({"x", "y"}), list(rows))


def test_rows_are_the_same_in_any_order_unless_the_query_orders_them() -> None:
    one, two = table({"x": Literal("1")}, {"x": Literal("2")}), table({"x": Literal("2")}, {"x": Literal("1")})
    assert same(one, two)
    assert not same(one, two, ordered=True)
    assert not same(one, table({"x": Literal("1")}, {"x": Literal("1")}))
    assert not same(one, Table(frozenset({"x"}), one.rows))


def test_blank_nodes_are_mapped_one_to_one() -> None:
    assert same(table({"x": A, "y": B}, {"x": B, "y": A}), table({"x": B, "y": C}, {"x": C, "y": B}))
    assert not same(table({"x": A, "y": B}, {"x": B, "y": A}), table({"x": A, "y": A}, {"x": B, "y": B}))
    assert not same(table({"x": A, "y": A}), table({"x": A, "y": B}))
    assert not same(table({"x": A}), table({"x": Literal("a")}))


def test_numbers_are_compared_by_value_within_their_datatype() -> None:
    assert same(table({"x": number("01", "integer")}), table({"x": number("1", "integer")}))
    assert not same(table({"x": number("01", "integer")}), table({"x": number("1", "integer")}), lexical=True)
    assert same(table({"x": number("1.0E6", "double")}), table({"x": number("1000000", "double")}))
    assert same(table({"x": number("NaN", "double")}), table({"x": number("NaN", "float")})) is False
    assert same(table({"x": number("2.50", "decimal")}), table({"x": number("2.5", "decimal")}))
    assert not same(table({"x": number("1", "integer")}), table({"x": number("1", "decimal")}))
    assert not same(table({"x": number("-3", "negativeInteger")}), table({"x": number("-3", "integer")}))
    assert same(table({"x": Literal("a", language="en-GB")}), table({"x": Literal("a", language="en-gb")}))


def test_booleans_and_kinds_of_results_differ() -> None:
    assert same(True, True)
    assert not same(True, False)
    assert not same(True, table())
    assert not same([], table())


def test_graphs_are_compared_up_to_isomorphism() -> None:
    p = NamedNode("http://e/p")
    assert same([Quad(A, p, B), Quad(B, p, A)], [Quad(C, p, A), Quad(A, p, C)])
    assert not same([Quad(A, p, B), Quad(B, p, A)], [Quad(C, p, C), Quad(A, p, A)])
    assert same([Quad(A, p, number("1.0", "decimal"))], [Quad(B, p, number("1", "decimal"))])


def test_csv_is_compared_by_column() -> None:
    found = results.parse_csv(b"s,o\r\n_:x,1\r\n")
    assert found == CsvTable(frozenset({"s", "o"}), [{"s": "_:x", "o": "1"}])
    assert same(found, results.parse_csv(b"o,s\r\n1,_:y\r\n"))
    assert not same(found, results.parse_csv(b"s,o\r\n_:x,2\r\n"))


def test_a_result_described_in_rdf_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.ttl"
    path.write_text(
        "@prefix rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> . [] a rs:ResultSet ; rs:resultVariable "
        '"x" ; rs:solution [ rs:binding [ rs:variable "x" ; rs:value <a> ] ] .'
    )
    assert results.expected(path, "http://e/") == Table(frozenset({"x"}), [{"x": NamedNode("http://e/a")}])
    path.write_text("<a> <b> <c> .")
    assert results.expected(path, "http://e/") == [Quad(*(NamedNode(f"http://e/{name}") for name in "abc"))]
    assert results.parse_results(b'{"head":{},"boolean":true}', QueryResultsFormat.JSON) is True


@pytest.mark.parametrize(
    ("text", "relative"),
    [("ASK { <a> ?p 1 }", True), ("ASK { <> ?p 1 }", True), ("ASK { <http://e/> ?p ?o FILTER(?o<1) }", False)],
)
def test_a_relative_iri_is_seen(text: str, relative: bool) -> None:
    assert has_relative_iri(text) is relative


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: expectations.Cause | None) -> Test:
    """A test of our own, expected to fail for a cause, or not expected to."""
    manifest = tmp_path / "manifest.ttl"
    manifest.write_text("")
    iri = "http://e/manifest#t"
    test = Test(iri, "made up", "ProtocolTest", Description(manifest, "http://e/"), NamedNode(iri), tmp_path, "")
    monkeypatch.setattr(expectations, "EXPECTED", {test.id: Failure(cause, "because")} if cause else {})
    return test


def refused() -> bool:
    raise NotAnsweredError("query_forbidden", "never")


def broken() -> bool:
    raise NotAnsweredError("query_limit", "too slow")


def test_a_failure_fails_unless_it_is_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = made(tmp_path, monkeypatch, None)
    judge(test, lambda: True)
    with pytest.raises(AssertionError, match="pyoxigraph alone passes it"):
        judge(test, lambda: False, lambda: True)
    with pytest.raises(AssertionError, match="too slow"):
        judge(test, broken)


def test_an_expected_failure_that_passes_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="take it out"):
        judge(made(tmp_path, monkeypatch, "engine"), lambda: True, lambda: False)


def test_an_expected_failure_has_to_have_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = made(tmp_path, monkeypatch, "engine")
    with pytest.raises(AssertionError, match="the fault is ours"):
        judge(test, lambda: False, lambda: True)
    with pytest.raises(pytest.xfail.Exception, match="because"):
        judge(test, lambda: False, lambda: False)
    test = made(tmp_path, monkeypatch, "refused")
    for answer in (broken, lambda: False):
        with pytest.raises(AssertionError, match="not refused"):
            judge(test, answer)
    with pytest.raises(pytest.xfail.Exception, match="because"):
        judge(test, refused)


needs_suites = pytest.mark.skipif(not all_tests(), reason="needs the W3C's suites: python -m tests.conformance.suites")


@needs_suites
def test_every_expected_failure_is_a_test_that_is_run() -> None:
    run = {test.id for test in all_tests() if suite_of(test) not in OUT_OF_SCOPE}
    present = {test.folder.parent.name for test in all_tests()}
    assert [name for name in EXPECTED if name not in run and name.partition("/")[0] in present] == []


@needs_suites
def test_what_is_out_of_scope_asks_for_more_than_simple_entailment_or_is_deprecated() -> None:
    simple = NamedNode("http://www.w3.org/ns/entailment/Simple")
    regime = "http://www.w3.org/ns/sparql-service-description#entailmentRegime"
    for test in all_tests():
        if test.folder.name == "entailment":
            [value] = test.description.all(test.action, regime)
            assert simple not in (value, *test.description.items(value))
        elif suite_of(test) == "SPARQL 1.1 (2013) Protocol":
            assert test.action is None
        elif suite_of(test) in OUT_OF_SCOPE:
            assert expectations.DEPRECATED in test.description.all(test.node, expectations.APPROVAL)


@needs_suites
def test_the_figures_are_those_of_the_suites() -> None:
    counted = {suite.name: suite for suite in figures.counted()}
    assert counted
    assert {suite.name: suite for suite in figures.kept() if suite.name in counted} == counted, "run `make docs`"


def test_the_figures_add_up() -> None:
    for suite in figures.kept():
        assert suite.passed + sum(suite.failures.values()) == (0 if suite.skipped else suite.tests)
        assert suite.tests > 0
