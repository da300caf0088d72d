"""The SPARQL Protocol: requests as the manifest describes them."""

from __future__ import annotations

import pytest

from tests.conformance import http
from tests.conformance.endpoint import NotAnsweredError, Served
from tests.conformance.expectations import cases, judge
from tests.conformance.manifest import UT, Test


@pytest.mark.parametrize("test", cases("SPARQL 1.1 Protocol"))
def test_a_request_is_answered_as_the_protocol_has_it(served: Served, test: Test) -> None:
    judge_http(served, test)


def judge_http(served: Served, test: Test) -> None:
    """Send the requests of a test to the endpoint over the data that it lists, or none."""

    def ours() -> bool:
        served.load(test.named(test.node, UT), test.base)
        served.loaded = None
        try:
            http.run(served.client, test)
        except AssertionError as error:
            raise NotAnsweredError("not_as_expected", str(error)) from None
        return True

    judge(test, ours)
