"""A result says the same to programs and to SHACL tools."""

from __future__ import annotations

import json

import pyoxigraph as ox
import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat

from kg.shacl.property_paths import AlternativePath, InversePath, RepeatedPath, SequencePath, parse_path
from kg.shacl.report import Severity, Violation, build_report_triples
from kg.shacl.report_writers import to_text
from kg.vocabulary import KG, KGS, RDF, SCHEMA, SH, mint

VIOLATION = Violation(
    focus=mint("passage", "act", "1"),
    message="A passage has exactly one text.",
    path=SCHEMA.text,
    value=Literal("x" * 5000),
    shape=KGS["Passage-text"],
    component=SH.MaxCountConstraintComponent,
    graph=mint("graph", "src", "climate", "act"),
    source="act.ttl",
)


def test_the_dictionary_is_json_and_whole() -> None:
    result = json.loads(json.dumps(VIOLATION.to_dict()))
    assert result["value"] == '"' + "x" * 5000 + '"'
    assert (result["focus"], result["path"], result["shape"]) == (
        "<cpr://doc/act#p=1>",
        SCHEMA.text.value,
        KGS["Passage-text"].value,
    )


@pytest.mark.parametrize(("severity", "conforms"), [("Violation", False), ("Warning", True), ("Info", True)])
def test_only_violations_make_data_unfit(severity: Severity, conforms: bool) -> None:
    violation = Violation(None, "It lacks something.", severity)
    assert violation.blocks != conforms
    assert (": conforms" in to_text([violation], "text", checked="a file")) == conforms


def test_the_turtle_is_a_shacl_validation_report() -> None:
    store = ox.Store()
    store.load(to_text([VIOLATION], "ttl", checked="a file"), RdfFormat.TURTLE)
    [result] = [quad.object for quad in store.quads_for_pattern(None, SH.result, None)]
    assert not isinstance(result, Literal | ox.Triple)
    said = {quad.predicate: quad.object for quad in store.quads_for_pattern(result, None, None)}
    assert said == {
        RDF.type: SH.ValidationResult,
        SH.resultSeverity: SH.Violation,
        SH.resultMessage: Literal(VIOLATION.message),
        SH.focusNode: VIOLATION.focus,
        SH.resultPath: SCHEMA.text,
        SH.value: VIOLATION.value,
        SH.sourceShape: KGS["Passage-text"],
        SH.sourceConstraintComponent: SH.MaxCountConstraintComponent,
    }
    [conforms] = [quad.object for quad in store.quads_for_pattern(None, SH.conforms, None)]
    assert isinstance(conforms, Literal)
    assert conforms.value == "false"


def test_an_empty_report_conforms() -> None:
    assert to_text([], "text", checked="no file") == "no file: conforms (no results)\n"
    assert "conforms true" in to_text([], "ttl", checked="no file")


def test_a_path_is_described_as_a_shape_describes_it() -> None:
    path = SequencePath(
        (InversePath(SCHEMA.text), AlternativePath((KG.slug, RepeatedPath(KG.page, "*"))), RepeatedPath(KG.slug, "?"))
    )
    triples = list(build_report_triples([Violation(KG.Passage, "Odd.", path=path)]))
    graph: dict[ox.NamedNode | ox.BlankNode, dict[NamedNode, list[NamedNode | ox.BlankNode | Literal]]] = {}
    for triple in triples:
        graph.setdefault(triple.subject, {}).setdefault(triple.predicate, []).append(triple.object)  # type: ignore
    [head] = [triple.object for triple in triples if triple.predicate == SH.resultPath]
    assert parse_path(head, graph) == path


def test_a_report_has_every_message_with_its_language_and_what_a_nested_shape_found() -> None:
    inner = Violation(KG.Place, "Inner.", "Info", component=SH.NodeKindConstraintComponent)
    messages = (Literal("Odd.", language="en"), Literal("Seltsam.", language="de"))
    outer = Violation(
        KG.Passage,
        "Odd.",
        "https://example.org/grave",
        messages=messages,
        details=(inner,),
        source_constraint=KGS.constraint,
    )
    triples = list(build_report_triples([outer]))
    assert {triple.object for triple in triples if triple.predicate == SH.resultMessage} == {
        *messages,
        Literal("Inner."),
    }
    [detail] = [triple for triple in triples if triple.predicate == SH.detail]
    assert ox.Triple(detail.object, SH.focusNode, KG.Place) in triples  # type: ignore[arg-type]
    assert ox.Triple(detail.subject, SH.resultSeverity, NamedNode("https://example.org/grave")) in triples
    assert ox.Triple(detail.subject, SH.sourceConstraint, KGS.constraint) in triples
    assert outer.to_dict()["details"] == [inner.to_dict()]
    assert outer.to_dict()["messages"][1] == {"text": "Seltsam.", "language": "de"}


def test_by_the_standard_data_with_a_warning_do_not_conform() -> None:
    assert "conforms false" in to_text([Violation(KG.Passage, "Odd.", "Warning")], "ttl", checked="a file")
