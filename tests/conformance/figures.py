"""How many tests of each suite pass, kept in a file: the README's table needs it where the suites are not.

`python -m tests.generated_docs` renews the file where they are; a test compares it with the suites and the expected
failures, which the run holds to be strict.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conformance import shacl
from tests.conformance.expectations import EXPECTED, OUT_OF_SCOPE, suite_of
from tests.conformance.manifest import all_tests

FIGURES = Path(__file__).parent / "figures.toml"
SPECIFICATIONS = {
    "SPARQL 1.1 Query": "https://www.w3.org/TR/sparql11-query/",
    "SPARQL 1.1 syntax of queries": "https://www.w3.org/TR/sparql11-query/#sparqlGrammar",
    "SPARQL 1.1 Query Results": "https://www.w3.org/TR/sparql11-results-json/",
    "SPARQL 1.1 Federated Query": "https://www.w3.org/TR/sparql11-federated-query/",
    "SPARQL 1.1 Update": "https://www.w3.org/TR/sparql11-update/",
    "SPARQL 1.1 syntax of updates": "https://www.w3.org/TR/sparql11-query/#sparqlGrammar",
    "SPARQL 1.1 Protocol": "https://www.w3.org/TR/sparql11-protocol/",
    "Graph Store Protocol": "https://www.w3.org/TR/sparql11-http-rdf-update/",
    "SPARQL 1.1 Service Description": "https://www.w3.org/TR/sparql11-service-description/",
    "SPARQL 1.2 Query": "https://www.w3.org/TR/sparql12-query/",
    "SPARQL 1.2 syntax of queries": "https://www.w3.org/TR/sparql12-query/#sparqlGrammar",
    "SPARQL 1.2 Update": "https://www.w3.org/TR/sparql12-update/",
    "SPARQL 1.2 syntax of updates": "https://www.w3.org/TR/sparql12-query/#sparqlGrammar",
    "SPARQL 1.1 Entailment Regimes": "https://www.w3.org/TR/sparql11-entailment/",
    "Graph Store Protocol, first suite": "https://www.w3.org/TR/sparql11-http-rdf-update/",
    "SPARQL 1.1 (2013) Query": "https://www.w3.org/TR/2013/REC-sparql11-query-20130321/",
    "SPARQL 1.1 (2013) syntax of queries": "https://www.w3.org/TR/2013/REC-sparql11-query-20130321/#sparqlGrammar",
    "SPARQL 1.1 (2013) Query Results": "https://www.w3.org/TR/2013/REC-sparql11-results-json-20130321/",
    "SPARQL 1.1 (2013) Federated Query": "https://www.w3.org/TR/2013/REC-sparql11-federated-query-20130321/",
    "SPARQL 1.1 (2013) Update": "https://www.w3.org/TR/2013/REC-sparql11-update-20130321/",
    "SPARQL 1.1 (2013) syntax of updates": "https://www.w3.org/TR/2013/REC-sparql11-query-20130321/#sparqlGrammar",
    "SPARQL 1.1 (2013) Protocol": "https://www.w3.org/TR/2013/REC-sparql11-protocol-20130321/",
    "SPARQL 1.1 (2013) Service Description": "https://www.w3.org/TR/2013/REC-sparql11-service-description-20130321/",
    "SPARQL 1.1 (2013) Entailment Regimes": "https://www.w3.org/TR/2013/REC-sparql11-entailment-20130321/",
    "SHACL Core": "https://www.w3.org/TR/shacl/#part1",
    "SHACL-SPARQL": "https://www.w3.org/TR/shacl/#part2",
}
"""Each suite, in the order of the table, with what it tests."""


@dataclass(frozen=True)
class Suite:
    """The figures of one suite. `failures`: how many tests fail for each reason; `skipped`: why none is run."""

    name: str
    tests: int
    failures: dict[str, int]
    skipped: str = ""

    @property
    def passed(self) -> int:
        return 0 if self.skipped else self.tests - sum(self.failures.values())


def counted() -> list[Suite]:
    """Count the suites that are present, with their expected failures."""
    tests = Counter(suite_of(test) for test in all_tests())
    failures: dict[str, Counter[str]] = {name: Counter() for name in tests}
    for test in all_tests():
        if (expected := EXPECTED.get(test.id)) is not None:
            said = f"pyoxigraph itself: {expected.reason}" if expected.cause == "engine" else expected.reason
            failures[suite_of(test)][said] += 1
    for shacl_test in shacl.all_tests():
        name = "SHACL Core" if shacl_test.id.startswith("shacl/core/") else "SHACL-SPARQL"
        tests[name] += 1
        failures.setdefault(name, Counter())
        if (reason := shacl.EXPECTED.get(shacl_test.id)) is not None:
            failures[name][reason] += 1
    assert tests.keys() <= SPECIFICATIONS.keys()
    return [
        Suite(name, tests[name], dict(failures[name]), OUT_OF_SCOPE.get(name, ""))
        for name in SPECIFICATIONS
        if name in tests
    ]


def kept() -> list[Suite]:
    """The figures in the file."""
    return [Suite(**entry) for entry in tomllib.loads(FIGURES.read_text())["suite"]]


def renew() -> None:
    """Write the figures of the suites that are present, and keep those of the others."""
    figures = {suite.name: suite for suite in (*kept(), *counted())}
    FIGURES.write_text("".join(_written([figures[name] for name in SPECIFICATIONS])))


def _written(suites: list[Suite]) -> Iterator[str]:
    yield "# Written by `python -m tests.generated_docs` from the W3C's suites and expected_failures.toml.\n"
    for suite in suites:
        failures = ", ".join(f"{json.dumps(reason)} = {count}" for reason, count in suite.failures.items())
        yield f"\n[[suite]]\nname = {json.dumps(suite.name)}\ntests = {suite.tests}\nfailures = {{{failures}}}\n"
        if suite.skipped:
            yield f"skipped = {json.dumps(suite.skipped)}\n"


def rows() -> Iterator[tuple[str, str, str, str]]:
    """The README's table: each suite, its tests, how many pass, and why the others do not."""
    for suite in kept():
        reasons = "; ".join(f"{reason} ({count})" for reason, count in suite.failures.items())
        passed = "not run" if suite.skipped else str(suite.passed)
        yield f"[{suite.name}]({SPECIFICATIONS[suite.name]})", str(suite.tests), passed, reasons or suite.skipped
