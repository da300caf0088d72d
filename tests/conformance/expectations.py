"""Which tests belong to which suite, and which are expected to fail: strictly, each for a reason that is checked."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pyoxigraph import NamedNode

from tests.conformance.endpoint import ENGINE_ERRORS, NotAnsweredError
from tests.conformance.manifest import Test, all_tests

FOLDER = Path(__file__).parent
APPROVAL = "http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#approval"
DEPRECATED = NamedNode("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#Deprecated")
RESULTS_FORMATS = ("csv-tsv-res", "json-res")
FEDERATION = ("service", "syntax-fed")

VERSIONS = {"sparql11-2013": "SPARQL 1.1 (2013)", "sparql11": "SPARQL 1.1", "sparql12": "SPARQL 1.2"}

OUT_OF_SCOPE = {
    "SPARQL 1.1 (2013) Protocol": "the manifest lists the names of the tests alone; the current suite describes them",
    "SPARQL 1.1 (2013) Entailment Regimes": "answers follow from the stored data alone (simple entailment)",
    "SPARQL 1.1 Entailment Regimes": "answers follow from the stored data alone (simple entailment)",
    "Graph Store Protocol, first suite": "deprecated by the Working Group in favour of the suite above",
}
"""The suites that are not run, each with its reason."""

Cause = Literal["engine", "refused"]
"""`engine`: pyoxigraph alone fails it too. `refused`: the endpoint never runs such a thing."""


@dataclass(frozen=True)
class Failure:
    """Why some tests are expected to fail."""

    cause: Cause
    reason: str


def suite_of(test: Test) -> str:
    """The suite that a test is counted in."""
    version = VERSIONS[test.folder.parent.name]
    match test.kind:
        case "ProtocolTest":
            return f"{version} Protocol"
        case "GraphStoreProtocolTest" if test.description.one(test.node, APPROVAL) == DEPRECATED:
            return "Graph Store Protocol, first suite"
        case "GraphStoreProtocolTest":
            return "Graph Store Protocol"
        case "ServiceDescriptionTest":
            return f"{version} Service Description"
        case "UpdateEvaluationTest":
            return f"{version} Update"
    if test.folder.name == "entailment":
        return f"{version} Entailment Regimes"
    if test.folder.name in FEDERATION:
        return f"{version} Federated Query"
    if test.folder.name in RESULTS_FORMATS:
        return f"{version} Query Results"
    if test.kind == "QueryEvaluationTest":
        return f"{version} Query"
    assert "Syntax" in test.kind, test.kind
    return f"{version} syntax of " + ("updates" if is_update(test) else "queries")


def is_update(test: Test) -> bool:
    """Whether a syntax test is about an update; some are listed as if they were about queries."""
    return "Update" in test.kind or test.path(test.action).suffix == ".ru"


def cases(*suites: str) -> list[Any]:
    """The tests of some suites as parameters; where the suites are absent, one that is skipped."""
    found = [pytest.param(test, id=test.id) for test in all_tests() if suite_of(test) in suites]
    if not found:
        reason = f"needs the suite {suites[0]}: see tests/conformance/suites.py"
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=reason))]
    return found


def _expected() -> Iterator[tuple[str, Failure]]:
    for entry in tomllib.loads((FOLDER / "expected_failures.toml").read_text())["failure"]:
        for name in entry["tests"]:
            yield name, Failure(entry["cause"], entry["reason"])


EXPECTED = dict(_expected())
"""Each expected failure by the test's id."""


def judge(test: Test, ours: Callable[[], bool], engine: Callable[[], bool] | None = None) -> None:
    """Pass when `ours` does; where a failure is expected, see that it fails, and for the reason that is given.

    `engine` says whether pyoxigraph alone passes the test.
    """
    failure: NotAnsweredError | None = None
    try:
        passed = ours()
    except NotAnsweredError as error:
        passed, failure = False, error
    expected = EXPECTED.get(test.id)
    if expected is None:
        assert passed, f"{test.iri} ({test.name}): {failure or 'it is not what the test expects'}{_also(engine)}"
        return
    assert not passed, f"{test.id} passes: take it out of expected_failures.toml"
    if expected.cause == "engine":
        assert engine is not None
        assert not _passes(engine), f"{test.id}: pyoxigraph alone passes it, so the fault is ours"
    if expected.cause == "refused":
        assert failure is not None, f"{test.id}: it is not refused"
        assert failure.code == "query_forbidden", f"{test.id}: it is not refused but {failure}"
    pytest.xfail(expected.reason)


def _also(engine: Callable[[], bool] | None) -> str:
    if engine is None:
        return ""
    return "; pyoxigraph alone passes it" if _passes(engine) else "; pyoxigraph alone fails it too"


def _passes(engine: Callable[[], bool]) -> bool:
    try:
        return engine()
    except ENGINE_ERRORS:
        return False
