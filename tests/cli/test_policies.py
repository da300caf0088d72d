"""`kg policy`: exit codes and documents."""

from __future__ import annotations

from pathlib import Path

import cedarpy

from kg.cli import output
from tests.cli.running import ROOT, answer, run

EXAMPLES = ROOT / "kg" / "access" / "cedar" / "examples"


def test_valid_policies_are_listed_and_an_invalid_one_is_named(tmp_path: Path) -> None:
    assert "press-limit" in answer("policy", "check", "--policies", EXAMPLES)["policies"]
    assert "press-limit" not in answer("policy", "check")["policies"]
    (tmp_path / "mine.cedar").write_text("permit(principal")
    refused = run("policy", "check", "--policies", tmp_path)
    assert refused.exit_code == output.USAGE
    assert "mine.cedar" in refused.output


def test_cases_that_are_decided_otherwise_fail(tmp_path: Path) -> None:
    assert answer("policy", "test", EXAMPLES / "cases.toml", "--policies", EXAMPLES)["failed"] == 0
    refused = run("policy", "test", EXAMPLES / "cases.toml")
    assert refused.exit_code == output.FAILURE
    assert "Case 2, anna sparql" in refused.output
    (tmp_path / "cases.toml").write_text('[[cases]]\nprincipal = "x"\naction = "serch"\ndecision = "deny"\n')
    unknown = run("policy", "test", tmp_path / "cases.toml")
    assert unknown.exit_code == output.USAGE
    assert "search" in unknown.output
    (tmp_path / "cases.toml").write_text('[[cases]]\nprincipal = "x"\n')
    assert run("policy", "test", tmp_path / "cases.toml").exit_code == output.USAGE


def test_a_decision_is_explained() -> None:
    given = ("policy", "explain", "anna", "search", "query=solar", "place=Ghana", "limit=30")
    found = answer(*given, "--group", "press", "--policies", EXAMPLES)
    assert (found["decision"], found["policies"]) == ("deny", ["press-limit", "press-places"])
    assert found["arguments"]["places"] == ["GHA"]
    assert answer(*given)["decision"] == "allow"
    assert answer(*given, "--scope", "read")["decision"] == "deny"
    trial = ("--claim", "tier=trial", "--policies", EXAMPLES)
    assert answer("policy", "explain", "x", "sparql.query", *trial)["errors"] == []
    assert run("policy", "explain", "anna", "search", "query").exit_code == output.USAGE


def test_the_schema_is_one_of_cedar() -> None:
    assert cedarpy.Schema.from_str(run("policy", "schema").stdout)
