"""The gate keeps out what breaks its shapes, names the record at fault, and no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from kg.shacl import gate as gate_module
from kg.shacl.gate import RecordGate
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.vocabulary import DCTERMS, KG, PROV, RDF, RDFS, SCHEMA, SH, SKOS, XSD, mint
from tests.examples import dear
from tests.shacl.made_up import graph_of, place, record, without

Candidates = Mapping[NamedNode, Sequence[Quad]]


def summary(found: Mapping[NamedNode, list[Violation]]) -> dict[NamedNode, list[tuple[str, str]]]:
    return {graph: [(str(each.focus), each.message) for each in violations] for graph, violations in found.items()}


def messages(found: Mapping[NamedNode, list[Violation]], graph: NamedNode) -> list[str]:
    return [violation.message for violation in found[graph]]


def test_a_record_as_the_loader_writes_it_passes(gate: RecordGate) -> None:
    assert gate.check(dict([record("act"), place("NMK")])) == {}


def test_a_violating_record_does_not_taint_the_others(gate: RecordGate) -> None:
    graph, quads = record("bad")
    found = gate.check(dict([record("good"), (graph, without(quads, KG.slug)), record("fine")]))
    assert list(found) == [graph]
    assert messages(found, graph) == ["A policy document has exactly one slug (kg:slug), a string that is not empty."]


def test_a_record_that_speaks_of_another_ones_document_does_not_taint_it(gate: RecordGate) -> None:
    graph, quads = record("intruder")
    other = mint("document", "good")
    intrusion = [
        Quad(other, RDF.type, KG.PolicyDocument, graph),
        Quad(other, DCTERMS.title, Literal("Another title of it"), graph),
    ]
    found = gate.check(dict([record("good"), (graph, [*quads, *intrusion])]))
    assert list(found) == [graph]


def test_another_record_does_not_lend_what_one_lacks(gate: RecordGate) -> None:
    graph, quads = record("bad", passages=1)
    borrowed = [
        Quad(quad.subject, quad.predicate, mint("document", "good"), graph)
        if quad.predicate == DCTERMS.isPartOf
        else quad
        for quad in quads
    ]
    found = gate.check(dict([record("good"), (graph, borrowed)]))
    assert messages(found, graph) == [
        "A passage belongs to exactly one policy document (dcterms:isPartOf), which stands in the same graph."
    ]


def test_what_the_source_lacks_is_a_warning_that_does_not_block(gate: RecordGate) -> None:
    graph, quads = record("act")
    [violation] = gate.check({graph: without(quads, KG.jurisdiction)})[graph]
    assert (violation.severity, violation.blocks) == ("Warning", False)


def test_a_node_that_no_shape_looks_at_does_not_slip_through(gate: RecordGate) -> None:
    graph, quads = record("act")
    stray = Quad(mint("place", "NMK"), RDFS.label, Literal("a place without a type"), graph)
    [violation] = gate.check({graph: [*quads, stray]})[graph]
    assert (violation.focus, violation.path, violation.blocks) == (stray.subject, RDF.type, True)


def test_blank_nodes_do_not_enter(gate: RecordGate) -> None:
    graph, quads = record("act")
    found = gate.check({graph: [*quads, Quad(mint("passage", "act", "0"), PROV.wasDerivedFrom, BlankNode("b"), graph)]})
    assert "NodeKindConstraintComponent" in {each.component.value.rpartition("#")[2] for each in found[graph]}


def test_datatypes_are_judged_by_what_is_written_and_nothing_is_logged(
    gate: RecordGate, caplog: pytest.LogCaptureFixture
) -> None:
    graph, quads = record("act")
    passage = mint("passage", "act", "0")
    page = Quad(passage, KG.pageNumber, Literal("twelve", datatype=XSD.integer), graph)
    found = gate.check({graph: [*quads, page]})
    assert {(violation.path, violation.value) for violation in found[graph]} == {(KG.pageNumber, page.object)}
    assert caplog.records == []


def test_text_with_a_language_tag_is_not_a_plain_string(gate: RecordGate) -> None:
    graph, quads = record("act", passages=1)
    tagged = [
        Quad(quad.subject, quad.predicate, Literal("Gezeiten", language="de"), graph)
        if quad.predicate == SCHEMA.text
        else quad
        for quad in quads
    ]
    [violation] = gate.check({graph: tagged})[graph]
    assert violation.value == Literal("Gezeiten", language="de")


def test_a_result_about_a_node_that_no_graph_describes_is_not_lost() -> None:
    absent = NamedNode("https://example.org/absent")
    shape, constraint = NamedNode("https://example.org/shape"), BlankNode("c")
    gate = RecordGate(
        Shapes(
            [
                Triple(shape, RDF.type, SH.NodeShape),
                Triple(shape, SH.targetObjectsOf, KG.jurisdiction),
                Triple(shape, SH.targetClass, KG.PolicyDocument),
                Triple(shape, SH.targetClass, KG.Passage),
                Triple(shape, SH["not"], constraint),
                Triple(constraint, SH.hasValue, absent),
            ]
        )
    )
    graph, quads = record("act")
    elsewhere = [
        Quad(q.subject, q.predicate, absent if q.predicate == KG.jurisdiction else q.object, graph) for q in quads
    ]
    found = gate.check({**dict([record("good")]), graph: elsewhere})
    assert {name: [each.focus for each in violations] for name, violations in found.items()} == {graph: [absent]}


def test_a_graph_larger_than_a_batch_is_checked_whole(gate: RecordGate) -> None:
    graph, quads = record("long", passages=gate_module.BATCH_QUADS // 100)
    found = gate.check(dict([record("short"), (graph, without(quads, SCHEMA.text))]))
    assert (list(found), len(found[graph])) == ([graph], gate_module.BATCH_QUADS // 100)


DAMAGE = st.sampled_from([DCTERMS.title, KG.slug, DCTERMS.isPartOf, SCHEMA.text, KG.blockType, SKOS.notation, RDF.type])


@settings(max_examples=dear(15))
@given(
    records=st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2)), min_size=1, max_size=4),
    damage=st.lists(st.tuples(st.integers(0, 9), DAMAGE), max_size=3),
    overlap=st.booleans(),
)
def test_checking_many_graphs_finds_what_checking_each_alone_finds(
    gate: RecordGate, records: list[tuple[str, int]], damage: list[tuple[int, NamedNode]], overlap: bool
) -> None:
    candidates: dict[NamedNode, list[Quad]] = dict([record(slug, passages) for slug, passages in records])
    candidates |= dict([place("NMK")])
    names = list(candidates)
    for position, predicate in damage:
        name = names[position % len(names)]
        candidates[name] = without(candidates[name], predicate)
    if overlap:  # two graphs that speak of the same subjects
        first = candidates[names[0]]
        candidates[graph_of("copy")] = [Quad(q.subject, q.predicate, q.object, graph_of("copy")) for q in first]
    alone: dict[NamedNode, list[Violation]] = {}
    for name, quads in candidates.items():
        alone |= gate.check({name: quads})
    assert summary(gate.check(candidates)) == summary(alone)
