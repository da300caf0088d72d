"""A report as SARIF: each result names its rule, its document and where in it."""

from __future__ import annotations

import json

import pytest
from pyoxigraph import Literal, NamedNode

from kg.validation.report import Report, Violation
from kg.validation.sarif import Location, sarif
from kg.vocabulary import KG, KGS, SCHEMA, SH, mint

TITLE = Violation(
    mint("document", "act"), "It has a title.", "Warning", SCHEMA.text, Literal(""), KGS.title,
    SH.MinLengthConstraintComponent, source="data/my act.ttl",
)  # fmt: skip


def test_each_shape_is_a_rule_and_each_result_says_which_one_it_broke() -> None:
    [run] = sarif(Report("a file", [TITLE, TITLE, Violation(None, "Not Turtle.", source="b.ttl")]))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["kgs:title", "syntax"]
    assert [(each["ruleId"], each["ruleIndex"], each["level"]) for each in run["results"]] == [
        ("kgs:title", 0, "warning"),
        ("kgs:title", 0, "warning"),
        ("syntax", 1, "error"),
    ]


def test_a_result_stands_at_its_file_or_where_it_is_said_to_come_from() -> None:
    [result] = sarif(Report("a file", [TITLE]))["runs"][0]["results"]
    [place] = result["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "data/my%20act.ttl"}}
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "<cpr://doc/act>"
    [result] = sarif(Report("a file", [TITLE]), lambda _: Location("acts.csv", line=7))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}


def test_a_rule_without_a_name_is_named_by_what_it_is_about() -> None:
    nameless = Violation(KG.Place, "Odd.", path=SCHEMA.text, component=SH.MinCountConstraintComponent)
    [run] = sarif(Report("a file", [nameless]))["runs"]
    assert run["results"][0]["ruleId"] == "MinCount of schema:text"


@pytest.mark.parametrize("path", ["/tmp/a b.ttl", "a.ttl"])
def test_it_is_json_with_the_parts_that_the_standard_requires(path: str) -> None:
    log = json.loads(json.dumps(sarif(Report("a file", [Violation(NamedNode("urn:x"), "Odd.", source=path)]))))
    assert log["version"] == "2.1.0"
    assert log["runs"][0]["tool"]["driver"]["name"] == "Quadcite"
    for result in log["runs"][0]["results"]:
        assert result["message"]["text"]
        assert " " not in result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
