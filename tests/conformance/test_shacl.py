"""SHACL Core and SHACL-SPARQL: every test of the W3C's suite, by the queries that the shapes are compiled to."""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, NamedNode

from kg.errors import InvalidInputError
from kg.shacl.property_paths import InversePath, SequencePath
from kg.shacl.report import Violation, build_report_triples
from kg.shacl.shapes import Shapes
from kg.vocabulary import KG, SH
from tests.conformance.shacl import EXPECTED, ShaclTest, all_tests, same_report

ABSENT = pytest.param(None, id="absent", marks=pytest.mark.skip(reason="needs the W3C's suites"))


def passes(test: ShaclTest) -> bool:
    """Whether the report of a test is the expected one, with nothing left to another validator."""
    try:
        shapes = Shapes(test.shapes)
    except InvalidInputError:
        return test.report is None
    assert not shapes.uncompiled, shapes.uncompiled
    return test.report is not None and same_report(build_report_triples(shapes.check(test.data)), test.report)


@pytest.mark.parametrize("test", [pytest.param(test, id=test.id) for test in all_tests()] or [ABSENT])
def test_a_report_is_the_one_that_the_standard_gives(test: ShaclTest) -> None:
    passed = passes(test)
    if test.id in EXPECTED:
        assert not passed, f"{test.id} passes: take it out of expected_failures_shacl.toml"
        pytest.xfail(EXPECTED[test.id])
    assert passed


def test_what_is_expected_to_fail_is_a_test() -> None:
    known = {test.id for test in all_tests()}
    assert not known or EXPECTED.keys() <= known


PATH = SequencePath((InversePath(KG.slug), KG.page))
RESULT = Violation(KG.Place, "Odd.", path=PATH, value=BlankNode("a"), component=SH.InConstraintComponent)
"""A result whose value is a blank node of the data."""


@pytest.mark.parametrize(
    ("others", "same"),
    [
        ([RESULT], True),
        ([Violation(KG.Place, "Odder.", path=PATH, value=BlankNode("a"), component=SH.InConstraintComponent)], True),
        ([RESULT, RESULT], False),
        ([], False),
        ([Violation(KG.Place, "Odd.", path=PATH, value=BlankNode("b"), component=SH.InConstraintComponent)], False),
        ([Violation(KG.Place, "Odd.", path=KG.page, value=BlankNode("a"), component=SH.InConstraintComponent)], False),
        ([Violation(KG.Place, "Odd.", "Info", PATH, BlankNode("a"), component=SH.InConstraintComponent)], False),
    ],
)
def test_reports_are_the_same_if_they_have_the_same_results_as_often(others: list[Violation], same: bool) -> None:
    wanted = [triple for triple in build_report_triples([RESULT]) if triple.predicate != SH.resultMessage]
    assert same_report(build_report_triples(others), wanted) is same


def test_a_message_counts_where_one_is_expected() -> None:
    wanted = list(build_report_triples([Violation(NamedNode("urn:x"), "Odd.")]))
    assert same_report(build_report_triples([Violation(NamedNode("urn:x"), "Odd.")]), wanted)
    assert not same_report(build_report_triples([Violation(NamedNode("urn:x"), "Odder.")]), wanted)
