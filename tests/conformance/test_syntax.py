"""What is SPARQL and what is not: the syntax tests for queries and updates, 1.1 and 1.2."""

from __future__ import annotations

import pyoxigraph
import pytest

from tests.conformance.endpoint import BASE_IRI, ENGINE_ERRORS, NotAnsweredError, Served, check, with_base
from tests.conformance.expectations import cases, is_update, judge
from tests.conformance.manifest import Test


@pytest.mark.parametrize(
    "test",
    cases(
        "SPARQL 1.1 (2013) syntax of queries",
        "SPARQL 1.1 (2013) syntax of updates",
        "SPARQL 1.1 syntax of queries",
        "SPARQL 1.1 syntax of updates",
        "SPARQL 1.2 syntax of queries",
        "SPARQL 1.2 syntax of updates",
    ),
)
def test_the_endpoint_takes_what_is_sparql_and_refuses_what_is_not(served: Served, test: Test) -> None:
    judge_syntax(served, test, test.base)


def judge_syntax(served: Served, test: Test, base: str) -> None:
    """Put a text, whose relative IRIs are below `base`, to the endpoint over an empty dataset."""
    text = with_base(test.path(test.action), base)
    valid = test.kind.startswith("Positive")

    def ours() -> bool:
        served.load((), test.base)
        try:
            check(served.update(text) if is_update(test) else served.query(text, "*/*"))
        except NotAnsweredError as error:
            if error.code == "query_syntax":
                return not valid
            if not error.is_of_evaluation:
                raise
        return valid

    def engine() -> bool:
        store = pyoxigraph.Store()
        try:
            (store.update if is_update(test) else store.query)(text, base_iri=BASE_IRI)
        except SyntaxError:
            return not valid
        except ENGINE_ERRORS:  # it is well formed, and fails over an empty dataset
            return valid
        return valid

    judge(test, ours, engine)
