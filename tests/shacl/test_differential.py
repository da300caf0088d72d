"""The compiled shapes find what pySHACL finds: with our own shapes over damaged records, and with generated ones.

So they do over a candidate in memory, over a graph of a store and over several graphs as one.

Not compared, since pySHACL departs from the standard there: how many results there are for one node and value that are
alike (a set is compared), and the source shape where it has no name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store, Triple

from kg import bundle
from kg.shacl import pyshacl_engine
from kg.shacl.data_graph import DataGraph
from kg.shacl.property_paths import to_text
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.vocabulary import DCTERMS, KG, PROV, RDF, RDFS, SCHEMA, SH, SKOS, XSD
from tests.examples import dear, spread
from tests.shacl.made_up import place, record

pytestmark = pytest.mark.long

EX = "https://example.org/"
GRAPHS = [NamedNode(EX + "g"), NamedNode(EX + "h")]
CONFIG = settings(max_examples=dear(200), suppress_health_check=[HealthCheck.too_slow])


def compared(results: Sequence[Violation]) -> set[Any]:
    """What two validators have to agree on."""
    return {
        (
            str(each.focus),
            None if each.path is None else to_text(each.path),
            None if each.value is None else str(each.value),
            each.component,
            each.severity,
            each.shape if isinstance(each.shape, NamedNode) else None,
        )
        for each in results
    }


def assert_agreed(shapes: Sequence[Triple], data: Sequence[Triple]) -> None:
    suite = Shapes(shapes)
    assert not suite.uncompiled
    found = compared(suite.check(data))
    assert found == compared(pyshacl_engine.validate(shapes, data))
    assert_focused(suite, data)
    kept = Store()
    kept.extend([Quad(*triple) for triple in data])
    if {quad.triple for quad in kept} == set(data):  # the store keeps every literal as it is written
        assert compared(suite.validate(DataGraph.from_store(kept, DefaultGraph()))) == found
        parted = Store()
        for at, triple in enumerate(data):
            graphs = GRAPHS if at % 5 == 0 else GRAPHS[at % 2 :][:1]
            parted.extend([Quad(*triple, graph) for graph in graphs])
        assert compared(suite.validate(DataGraph.from_store(parted))) == found


def assert_focused(suite: Shapes, data: Sequence[Triple]) -> None:
    """A run about some focus nodes finds what the run about all of them finds of these."""
    nodes = {term for triple in data for term in (triple.subject, triple.object)}
    chosen = sorted((node for node in nodes if not isinstance(node, BlankNode)), key=str)[::2]
    found = suite.results_by_target(DataGraph.from_quads(data))
    wanted = [result for target, result in found if target in chosen]
    assert compared(list(suite.results(DataGraph.from_quads(data), chosen))) == compared(wanted)


OURS = {path.name: Shapes.load(path).triples for path in sorted(bundle.folder("shapes").glob("*.ttl"))}
ODD_VALUES = [
    Literal(""), Literal("x"), Literal("x", language="de"), Literal("01", datatype=XSD.integer), Literal(-1),
    Literal("2020-02-30", datatype=XSD.date), NamedNode("cpr://doc/other"), NamedNode(EX + "a"), Literal("é" * 70),
]  # fmt: skip
PREDICATES = [
    DCTERMS.title, DCTERMS.isPartOf, KG.slug, KG.jurisdiction, KG.blockType, KG.textSha256, KG.pageNumber,
    SCHEMA.text, SCHEMA.position, SCHEMA.inLanguage, SKOS.notation, SKOS.prefLabel, SKOS.inScheme,
    PROV.wasDerivedFrom, PROV.wasGeneratedBy, RDFS.label,
]  # fmt: skip
CLASSES = [KG.PolicyDocument, KG.Passage, KG.Place, KG.PolicyFamily, KG.AssertedGraph, KG.Snapshot, PROV.SoftwareAgent]


ASKING = {
    name for name, said in OURS.items() if any(t.predicate == SH.select and "GRAPH" in str(t.object) for t in said)
}
"""Suites with queries of named graphs, which pySHACL does not have."""


@pytest.mark.parametrize("name", spread(sorted(OURS.keys() - ASKING), 4))
@settings(max_examples=dear(12), suppress_health_check=[HealthCheck.too_slow])
@given(
    passages=st.integers(0, 3),
    removed=st.lists(st.integers(0, 99), max_size=4),
    added=st.lists(st.tuples(st.integers(0, 99), st.sampled_from(PREDICATES), st.sampled_from(ODD_VALUES)), max_size=5),
    typed=st.lists(st.tuples(st.integers(0, 99), st.sampled_from(CLASSES)), max_size=2),
)
def test_our_shapes_find_what_pyshacl_finds(
    name: str,
    passages: int,
    removed: list[int],
    added: list[tuple[int, NamedNode, Literal | NamedNode]],
    typed: list[tuple[int, NamedNode]],
) -> None:
    data = [quad.triple for quad in (*record("act", passages)[1], *place("NMK")[1])]
    for at in removed:
        data.pop(at % len(data))
    subjects = list(dict.fromkeys(triple.subject for triple in data))
    data += [Triple(subjects[at % len(subjects)], predicate, value) for at, predicate, value in added]
    data += [Triple(subjects[at % len(subjects)], RDF.type, kind) for at, kind in typed]
    assert_agreed(OURS[name], data)


# -- generated shapes

NODES = [NamedNode(EX + name) for name in "abc"]
PROPERTIES = [NamedNode(EX + name) for name in "pqr"]
KINDS = [NamedNode(EX + name) for name in ("C", "D")]
BLANK = [BlankNode("one"), BlankNode("two")]
VALUES: list[NamedNode | Literal] = [
    *NODES, Literal("x"), Literal("xy"), Literal("x", language="en"), Literal("y", language="en"),
    Literal("x", language="de-at"), Literal(1), Literal(2), Literal("03", datatype=XSD.integer), Literal(1.5),
    Literal("a", datatype=XSD.integer), Literal(True), Literal("2020-01-01", datatype=XSD.date),
]  # fmt: skip

triples = st.one_of(
    st.builds(Triple, st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from(VALUES)),
    st.builds(lambda node, kind: Triple(node, RDF.type, kind), st.sampled_from(NODES), st.sampled_from(KINDS)),
    st.just(Triple(KINDS[1], RDFS.subClassOf, KINDS[0])),
)


def listed(members: Sequence[NamedNode | BlankNode | Literal]) -> tuple[NamedNode | BlankNode, list[Triple]]:
    head: NamedNode | BlankNode = RDF.nil
    said: list[Triple] = []
    for member in reversed(members):
        cell = BlankNode()
        said += [Triple(cell, RDF.first, member), Triple(cell, RDF.rest, head)]
        head = cell
    return head, said


def plain(predicate: NamedNode, values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return values.map(lambda value: [(predicate, (value, []))])


def with_list(
    predicate: NamedNode, members: st.SearchStrategy[Any], least: int = 1
) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return st.lists(members, min_size=least, max_size=3, unique=True).map(lambda found: [(predicate, listed(found))])


numbers = st.integers(0, 3).map(Literal)
of_values = st.one_of(
    plain(SH["class"], st.sampled_from(KINDS)),
    plain(SH.datatype, st.sampled_from([XSD.string, XSD.integer, XSD.date, XSD.boolean, RDF.langString])),
    plain(SH.nodeKind, st.sampled_from([SH.IRI, SH.Literal, SH.BlankNodeOrLiteral, SH.IRIOrLiteral])),
    plain(SH.minLength, st.integers(1, 3).map(Literal)),  # of 0: a blank node has no length, but pySHACL lets it pass
    plain(SH.maxLength, numbers),
    plain(SH.pattern, st.sampled_from(["^x", "y$", "[a-c]", "1"]).map(Literal)),
    with_list(SH.languageIn, st.sampled_from(["en", "de", "de-at"]).map(Literal)),
    with_list(SH["in"], st.sampled_from(VALUES)),
    plain(SH.hasValue, st.sampled_from(VALUES)),
    plain(SH.disjoint, st.sampled_from(PROPERTIES)),
    plain(SH.equals, st.sampled_from(PROPERTIES)),
)
of_properties = st.one_of(
    of_values,
    plain(SH.minCount, numbers),
    plain(SH.maxCount, numbers),
    plain(SH.uniqueLang, st.just(Literal(True))),
)


more_triples = st.one_of(
    triples,
    st.builds(Triple, st.sampled_from(BLANK), st.sampled_from(PROPERTIES), st.sampled_from([*BLANK, *VALUES])),
    st.builds(Triple, st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from(BLANK)),
    st.builds(lambda node, kind: Triple(node, RDF.type, kind), st.sampled_from(BLANK), st.sampled_from(KINDS)),
)


@st.composite
def paths(draw: st.DrawFn) -> tuple[NamedNode | BlankNode, list[Triple]]:
    predicate, other = draw(st.sampled_from(PROPERTIES)), draw(st.sampled_from(PROPERTIES))
    kind = draw(st.sampled_from(["plain", "plain", "plain", "inverse", "sequence", "alternative", "more"]))
    node = BlankNode()
    if kind == "inverse":
        return node, [Triple(node, SH.inversePath, predicate)]
    if kind == "sequence":
        return listed([predicate, other])
    if kind == "alternative":
        head, said = listed([predicate, other])
        return node, [Triple(node, SH.alternativePath, head), *said]
    if kind == "more":
        return node, [Triple(node, SH.oneOrMorePath, predicate)]
    return predicate, []


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2, is_property: bool = False) -> tuple[BlankNode, list[Triple]]:
    """A shape without a name: a node shape, or a property shape; others may stand in it, `depth` deep."""
    node = BlankNode()
    said = [Triple(node, RDF.type, SH.PropertyShape if is_property else SH.NodeShape)]
    if is_property:
        path, described = draw(paths())
        said += [Triple(node, SH.path, path), *described]
    constraints = draw(st.lists(of_properties if is_property else of_values, max_size=2))
    for predicate, (value, described) in (pair for pairs in constraints for pair in pairs):
        if predicate == SH["class"] or all(triple.predicate != predicate for triple in said):
            said += [Triple(node, predicate, value), *described]
    for _ in range(draw(st.integers(0, 2)) if depth else 0):
        term = draw(st.sampled_from(["property", "property", "node", "not", "and", "or", "xone", "qualified"]))
        below = [draw(shapes(depth=depth - 1, is_property=term == "property"))]
        if term == "qualified":
            if is_property and all(triple.predicate != SH.qualifiedValueShape for triple in said):
                said += draw(qualified(node, below[0][0]))
        elif term in ("and", "or", "xone"):
            below.append(draw(shapes(depth=depth - 1)))
            head, described = listed([each[0] for each in below])
            said += [Triple(node, SH[term], head), *described]
        else:
            said.append(Triple(node, SH[term], below[0][0]))
        said += [triple for each in below for triple in each[1]]
    shared = {triple.object for triple in said if triple.predicate == SH.property}
    if depth == 2 and shared and draw(st.booleans()):
        said.append(Triple(node, SH.property, draw(st.sampled_from(sorted(shared, key=str)))))
    return node, said


@st.composite
def qualified(draw: st.DrawFn, node: BlankNode, shape: BlankNode) -> list[Triple]:
    """What has the values of the property shape `node` counted that are of `shape`, and perhaps of no sibling."""
    said = [Triple(node, SH.qualifiedValueShape, shape)]
    counts = draw(
        st.sampled_from(
            [(SH.qualifiedMinCount,), (SH.qualifiedMaxCount,), (SH.qualifiedMinCount, SH.qualifiedMaxCount)]
        )
    )
    said += [Triple(node, term, draw(numbers)) for term in counts]
    if draw(st.booleans()):
        said.append(Triple(node, SH.qualifiedValueShapesDisjoint, Literal(True)))
    return said


targets = st.one_of(
    st.tuples(st.just(SH.targetClass), st.sampled_from(KINDS)),
    st.tuples(st.just(SH.targetNode), st.sampled_from([*NODES, NamedNode(EX + "absent"), Literal("x"), Literal(1)])),
    st.tuples(st.sampled_from([SH.targetSubjectsOf, SH.targetObjectsOf]), st.sampled_from(PROPERTIES)),
)


@CONFIG
@given(
    data=st.lists(more_triples, min_size=3, max_size=14, unique=True),
    shape=shapes(),
    aims=st.lists(targets, min_size=1, max_size=2),
    severity=st.sampled_from([SH.Violation, SH.Warning, NamedNode(EX + "grave")]),
)
def test_generated_shapes_find_what_pyshacl_finds(
    data: list[Triple],
    shape: tuple[BlankNode, list[Triple]],
    aims: list[tuple[NamedNode, NamedNode | Literal]],
    severity: NamedNode,
) -> None:
    node, said = shape
    said = [*said, Triple(node, SH.severity, severity), *(Triple(node, term, aim) for term, aim in aims)]
    assert_agreed(said, data)
