"""SPARQL 1.1 and 1.2 Update: what each operation leaves of a dataset."""

from __future__ import annotations

import pytest

from tests.conformance import results
from tests.conformance.endpoint import Engine, Served, check, dataset, with_base
from tests.conformance.expectations import VERSIONS, cases, judge
from tests.conformance.manifest import UT, Test


@pytest.mark.parametrize("test", cases(*(f"{version} Update" for version in VERSIONS.values())))
def test_an_update_leaves_the_dataset_that_the_standard_gives(served: Served, test: Test) -> None:
    request = test.value(UT + "request")
    assert request is not None
    before, after = test.data(UT), dataset(test.data(UT, "result"), test.base)
    update = with_base(request, test.base)

    def ours() -> bool:
        served.load(before, test.base)
        check(served.update(update))
        return results.same_quads(served.quads(), after)

    def engine() -> bool:
        alone = Engine(before, test.base)
        alone.update(update)
        return results.same_quads(alone.store, after)

    judge(test, ours, engine)
