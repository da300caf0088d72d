"""Query evaluation and result formats: SPARQL 1.1 Query, its results in XML, JSON, CSV and TSV, and SPARQL 1.2."""

from __future__ import annotations

import pytest
from pyoxigraph import NamedNode

from tests.conformance import results
from tests.conformance.endpoint import Engine, Served, with_base
from tests.conformance.expectations import VERSIONS, cases, judge
from tests.conformance.manifest import MF, QT, Test, text_of


@pytest.mark.parametrize(
    "test",
    cases(
        *(f"{version} Query" for version in VERSIONS.values()),
        *(f"{version} Query Results" for version in VERSIONS.values()),
    ),
)
def test_a_query_has_the_result_that_the_standard_gives(served: Served, test: Test) -> None:
    query, wanted = test.value(QT + "query"), test.result
    assert query is not None
    assert wanted is not None
    expected = results.expected(wanted, test.base)
    lexical = NamedNode(MF + "NoCanonicalizationOfNumerics") in test.description.all(test.node, MF + "requires")
    ordered = "ORDER BY" in text_of(query).upper().rpartition("}")[2]

    def ours() -> bool:
        served.load(test.data(), test.base)
        return results.same(served.answer(test, query, wanted), expected, ordered=ordered, lexical=lexical)

    def engines() -> bool:
        found = Engine(test.data(), test.base).answer(with_base(query, test.base), wanted)
        return results.same(found, expected, ordered=ordered, lexical=lexical)

    judge(test, ours, engines)
