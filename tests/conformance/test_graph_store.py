"""The Graph Store Protocol: whole graphs over HTTP, named by the request's own IRI or by ``?graph=``."""

from __future__ import annotations

import pytest

from tests.conformance.endpoint import Served
from tests.conformance.expectations import cases
from tests.conformance.manifest import Test
from tests.conformance.test_protocol import judge_http


@pytest.mark.parametrize("test", cases("Graph Store Protocol"))
def test_a_graph_is_read_and_written_as_the_protocol_has_it(served: Served, test: Test) -> None:
    judge_http(served, test)
