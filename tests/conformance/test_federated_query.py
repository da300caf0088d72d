"""Federated Query: SERVICE, asked of stand-ins that the endpoint's setting allows."""

from __future__ import annotations

import pytest
from pyoxigraph import Quad

from tests.conformance import results
from tests.conformance.endpoint import Served, check, outcome_of, parsed, with_base
from tests.conformance.expectations import cases, judge
from tests.conformance.manifest import MF, QT, Test
from tests.conformance.stand_ins import StandIns
from tests.conformance.test_syntax import judge_syntax


@pytest.mark.parametrize("test", cases("SPARQL 1.1 (2013) Federated Query", "SPARQL 1.1 Federated Query"))
def test_a_federated_query_has_the_result_that_the_standard_gives(served: Served, remote: StandIns, test: Test) -> None:
    if "Syntax" in test.kind:
        remote.load({})
        judge_syntax(served, test, remote.base)
        return
    query, wanted = test.value(QT + "query"), test.result
    assert query is not None
    assert wanted is not None
    expected = results.expected(wanted, test.base)

    def ours() -> bool:
        remote.load(endpoints(test))
        served.load(test.data(), test.base)
        response = served.query(remote.here(with_base(query, test.base)), "application/sparql-results+xml")
        check(response)
        return results.same(outcome_of(response, test.base), expected)

    judge(test, ours)


def endpoints(test: Test) -> dict[str, list[Quad]]:
    """The quads of each remote endpoint that a test lists."""
    description = test.description
    found = {}
    for remote in description.all(description.one(test.node, MF + "action"), QT + "serviceData"):
        path = test.path(description.one(remote, QT + "data"))
        found[description.one(remote, QT + "endpoint").value] = list(parsed(path, test.base + path.name))
    return found
