"""A report in each form says the same, is whole or not there, and takes no more memory the more there is to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, CanonicalizationAlgorithm, Dataset, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kg.shacl.property_paths import AlternativePath, InversePath, RepeatedPath, SequencePath
from kg.shacl.property_paths import Path as ShaclPath
from kg.shacl.report import Location, Violation, build_report_triples
from kg.shacl.report_summary import CAUSES, EXAMPLES, KEPT, MESSAGES
from kg.shacl.report_writers import SORTED, Form, write_report
from kg.store.protocol import Term
from kg.vocabulary import KG, KGS, SCHEMA, SH
from tests.examples import dear, spread

FORMS: tuple[Form, ...] = ("text", "json", "ttl", "sarif")
ODD = Violation(NamedNode("urn:n:1"), "It is odd.", path=SCHEMA.text, shape=KGS.odd, source="a.ttl")
WARNING = Violation(NamedNode("urn:n:2"), "It is rare.", "Warning", shape=KGS.rare, source="a.ttl")


def report(results: list[Violation] | Iterator[Violation], form: Form, **options: object) -> str:
    output = BytesIO()
    write_report(results, form, output, checked="a file", **options)  # type: ignore[arg-type]
    return output.getvalue().decode()


def many(number: int) -> Iterator[Violation]:
    return (
        Violation(NamedNode(f"urn:n:{at % 97}-{at}"), f"{at} is odd.", path=SCHEMA.text, shape=KGS.odd, source="a.ttl")
        for at in range(number)
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_counts_are_by_severity(form: Form) -> None:
    output = BytesIO()
    own = Violation(KG.Place, "Grave.", "https://example.org/grave")
    assert write_report([ODD, WARNING, ODD, own], form, output, checked="a file") == Counter(
        {"Violation": 2, "Warning": 1, "https://example.org/grave": 1}
    )


@pytest.mark.parametrize(
    ("results", "conforms", "by_standard"), [([], True, True), ([WARNING], True, False), ([ODD, WARNING], False, False)]
)
def test_the_verdict_stands_at_the_top_whenever_it_is_known(
    results: list[Violation], conforms: bool, by_standard: bool
) -> None:
    told = json.loads(report(results, "json"))
    assert list(told) == ["conforms", "checked", "by_pyshacl", "results"]
    assert told["conforms"] is conforms
    assert told["results"] == [{**each.to_dict(), "line": None, "row": None} for each in results]
    [run] = json.loads(report(results, "sarif"))["runs"]
    assert run["properties"] == {"checked": "a file", "conforms": conforms}
    assert report(results, "text").splitlines()[-1].startswith(f"a file: {'conforms' if conforms else 'does not'}")
    said = {quad.object for quad in parse(report(results, "ttl"), RdfFormat.TURTLE) if quad.predicate == SH.conforms}
    assert [each.value for each in said] == [str(by_standard).lower()]  # type: ignore[union-attr]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [0, 3, SORTED + 1_000])
def test_a_validation_that_fails_midway_leaves_no_report(form: Form, number: int) -> None:
    def results() -> Iterator[Violation]:
        yield from many(number)
        raise ValueError("the shapes cannot be used")

    output = BytesIO()
    with pytest.raises(ValueError, match="the shapes"):
        write_report(results(), form, output, checked="a file")
    assert output.getvalue() == b""


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_the_same_results_make_the_same_report_in_whatever_order_they_are_found(form: Form) -> None:
    found = [*many(50), ODD, WARNING, Violation(BlankNode(), "No name."), Violation(Literal("é"), "A literal.")]
    again = [*found[2:-2], Violation(BlankNode(), "No name."), *found[:2], found[-1]]
    texts = [report(each, form) for each in (found, again)]
    names = [str(each.focus) for results in (found, again) for each in results if isinstance(each.focus, BlankNode)]
    for name in names:
        texts = [text.replace(name, "_:b") for text in texts]
    assert texts[0] == texts[1]


def test_json_names_the_place_of_each_result_as_far_as_it_is_known() -> None:
    def located(results: list[Violation], at: Location | None) -> tuple[object, ...]:
        [told] = json.loads(report(results, "json", locate=lambda each: at))["results"]
        return told["source"], told["line"], told["row"]

    stored = replace(ODD, source=None)
    assert located([ODD], Location("a.ttl", line=7)) == ("a.ttl", 7, None)
    assert located([stored], Location("hub:a/b.parquet", row=3)) == ("hub:a/b.parquet", None, 3)
    assert located([ODD], None) == ("a.ttl", None, None)
    assert located([stored], None) == (None, None, None)


def test_more_results_than_are_sorted_are_written_whole_and_in_the_order_found() -> None:
    number = SORTED + 100
    told = json.loads(report(many(number), "json"))
    assert [each["message"] for each in told["results"]] == [each.message for each in many(number)]
    assert report(many(number), "ttl").count("a sh:ValidationResult") == number
    assert len(json.loads(report(many(number), "sarif"))["runs"][0]["results"]) == number


def test_shapes_that_pyshacl_ran_are_named_in_every_form() -> None:
    for form in FORMS:
        text = report([], form, by_pyshacl={"https://example.org/S": "its query is\nnot one for sets"})
        assert "https://example.org/S" in text
        if form == "ttl":
            assert len(list(parse(text, RdfFormat.TURTLE))) == 2


def test_a_file_name_that_is_not_utf_8_is_written_all_the_same() -> None:
    odd = Violation(KG.Place, "Odd.", source="a\udcff b%.ttl")
    assert json.loads(report([odd], "json"))["results"][0]["source"] == "a\udcff b%.ttl"
    assert "a%FF%20b%25.ttl" in report([odd], "sarif")
    assert "a\\udcff b%.ttl" in report([odd], "text")


# Reports as Turtle ---------------------------------------------------------------------------------------------------

IRIS = st.sampled_from(["urn:a", "http://e.x/b#c", "cpr://doc/x#p=0", "http://e.x/%20'é", SH.Violation.value])
NODES = IRIS.map(NamedNode)
LITERALS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(Literal),
    st.text(max_size=5, alphabet='ab"\\\n').map(lambda text: Literal(text, language="de-at")),
    st.sampled_from(["1", "01", "x"]).map(lambda text: Literal(text, datatype=NamedNode("urn:made"))),
)
BLANKS = st.sampled_from(["b", "c"]).map(BlankNode)
TERMS: st.SearchStrategy[Term] = st.one_of(NODES, LITERALS, BLANKS)
PATHS: st.SearchStrategy[ShaclPath] = st.recursive(
    NODES,
    lambda inner: st.one_of(
        inner.map(InversePath),
        st.lists(inner, min_size=2, max_size=3).map(lambda steps: SequencePath(tuple(steps))),
        st.lists(inner, min_size=2, max_size=3).map(lambda choices: AlternativePath(tuple(choices))),
        st.tuples(inner, st.sampled_from(["*", "+", "?"])).map(lambda each: RepeatedPath(*each)),
    ),
    max_leaves=4,
)
LEAVES = st.builds(
    Violation,
    focus=TERMS,
    message=st.text("ab {}[]()\n", max_size=10),
    severity=st.sampled_from(["Violation", "Warning", "Info", "https://example.org/grave"]),
    path=st.none() | PATHS,
    value=st.none() | TERMS,
    shape=st.none() | NODES | BLANKS,
    component=st.none() | NODES,
    graph=st.none() | NODES,
    source=st.sampled_from([None, "a.ttl", "b c.ttl"]),
    messages=st.lists(LITERALS, max_size=2, unique=True).map(tuple),
    source_constraint=st.none() | NODES | BLANKS,
)
VIOLATIONS = st.tuples(LEAVES, st.lists(LEAVES, max_size=2)).map(
    lambda made: Violation(
        **{name: getattr(made[0], name) for name in Violation.__slots__[:-1]}, details=tuple(made[1])
    )
)


def canonical(triples: Iterable[Triple]) -> set[str]:
    dataset = Dataset(Quad(triple.subject, triple.predicate, triple.object) for triple in triples)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return {str(quad) for quad in dataset}


@settings(max_examples=dear(60))
@given(st.lists(VIOLATIONS, max_size=3))
def test_a_report_as_turtle_is_the_report_of_the_standard(results: list[Violation]) -> None:
    text = report(results, "ttl")
    assert canonical([quad.triple for quad in parse(text, RdfFormat.TURTLE)]) == canonical(
        build_report_triples(results)
    )


@settings(max_examples=dear(60))
@given(st.lists(VIOLATIONS, max_size=5))
def test_each_form_can_be_read_whatever_a_result_says(results: list[Violation]) -> None:
    assert len(json.loads(report(results, "json"))["results"]) == len(results)
    [run] = json.loads(report(results, "sarif"))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[each["ruleIndex"]] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert report(results, "text").rstrip().splitlines()[-1].startswith("a file: ")


# Text for people -----------------------------------------------------------------------------------------------------


def test_what_is_alike_is_counted_and_a_few_are_shown_each_with_its_place() -> None:
    alike = [
        Violation(NamedNode(f"urn:n:{at}"), "It lacks a name.", path=SCHEMA.name, source="a.ttl") for at in range(5)
    ]
    text = report([WARNING, *alike], "text", locate=lambda violation: Location("a.ttl", line=7))
    lines = text.splitlines()
    assert lines[0] == "5 x Violation: It lacks a name."
    assert lines[1] == "  path   schema:name"
    assert lines.count("  - a.ttl:7") == EXAMPLES + 1
    assert "  - and 2 more" in lines
    assert lines[-1] == "a file: does not conform (5 violations, 1 warning)"


def test_results_of_many_files_that_have_one_cause_are_one_group() -> None:
    results = [Violation(KG.Place, "Odd.", shape=KGS.odd, source=f"{at}.ttl") for at in range(40)]
    text = report(results, "text")
    assert text.startswith("40 x Violation: Odd.\n  shape  kgs:odd\n  - 0.ttl\n")


def test_messages_of_their_own_are_capped_for_each_shape_and_the_rest_counted() -> None:
    text = report(many(5_000), "text")
    assert text.count("is odd") == MESSAGES
    assert f"{5_000 - MESSAGES:,} more x Violation of kgs:odd, with many other messages or paths" in text
    few = report(many(MESSAGES + 2), "text")
    assert "2 more x Violation of kgs:odd, with 2 other messages or paths" in few
    assert KEPT > MESSAGES


def test_the_text_ends_however_many_shapes_there_are() -> None:
    results = [Violation(KG.Place, "Odd.", shape=NamedNode(f"urn:s:{at}")) for at in range(CAUSES + 50)]
    text = report(results, "text")
    assert text.count("Violation: Odd.") == CAUSES
    assert "50 more results of less frequent causes" in text


def test_a_long_message_or_value_is_cut_and_its_length_told() -> None:
    text = report([Violation(KG.Place, "m" * 10_000, value=Literal("v" * 10_000))], "text")
    assert len(text) < 2_000
    assert "(10,000 characters)" in text
    assert "(10,002 characters)" in text


def test_the_text_does_nothing_to_a_terminal() -> None:
    """Messages, paths and file names are of anybody: no colours, no bells, no words in another order."""
    evil = Violation(NamedNode("urn:n:\u202e1"), "a\x1b[2Jb\x07c\x9bd\re", shape=KGS.odd, source="\x1b]0;x\x07.ttl")
    text = report([evil], "text", locate=lambda each: None)
    assert "a\\u001b[2Jb\\u0007c\\u009bd\\u000de" in text
    assert all(character == "\n" or character.isprintable() for character in text)


def test_a_shape_without_a_name_is_named_by_what_it_constrains() -> None:
    nameless = [
        Violation(KG.Place, "Odd.", shape=BlankNode(), component=component)
        for component in (SH.MinCountConstraintComponent, SH.SPARQLConstraintComponent, NamedNode("urn:own"), None)
    ]
    lines = report(nameless, "text").splitlines()
    assert [line.partition("shape  ")[2] for line in lines if "shape  " in line] == [
        "one without a name",
        "unnamed, with sh:minCount",
        "unnamed, with sh:sparql",
        "unnamed, with <urn:own>",
    ]


def test_a_fault_of_syntax_that_names_its_place_names_it_once() -> None:
    fault = Violation(None, "a.ttl, line 3, column 4: not Turtle: odd", source="a.ttl")
    assert report([fault], "text").splitlines()[0] == "Violation: a.ttl, line 3, column 4: not Turtle: odd"
    assert report([fault], "text").count("a.ttl") == 1


# Memory --------------------------------------------------------------------------------------------------------------

MEASURED = """
import resource, sys
from tests.shacl.test_report_writers import many
from kg.shacl.report_writers import write_report
with open("/dev/null", "wb") as output:
    write_report(many(int(sys.argv[2])), sys.argv[1], output, checked="a file", locate=lambda violation: None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.long
@pytest.mark.parametrize("form", spread(FORMS, 2))
def test_memory_is_flat(form: Form) -> None:
    def peak(number: int) -> int:
        command = [sys.executable, "-c", MEASURED, form, str(number)]
        root = Path(__file__).parents[2]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        done = subprocess.run(command, check=True, capture_output=True, cwd=root, env=environment)
        return int(done.stdout) // 1024

    assert peak(60_000) < peak(12_000) + 15
