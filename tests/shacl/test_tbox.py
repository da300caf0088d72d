"""The shapes of the ontology find in a damaged module what pySHACL finds."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Triple, parse

from kg import bundle
from kg.shacl import pyshacl_engine
from kg.shacl.report import Violation
from kg.shacl.self_check import load_tbox_shapes
from kg.vocabulary import DCTERMS, KG, OWL, PROV, RDF, RDFS, SCHEMA, SKOS
from tests.examples import dear

TIDES = bundle.folder("fixtures") / "shapes" / "tbox" / "passing" / "tides.ttl"
MODULE = [quad.triple for quad in parse(path=TIDES)]
SUBJECTS = sorted({triple.subject for triple in MODULE}, key=str)
STATUS = next(triple.predicate for triple in MODULE if triple.object == Literal("stable"))
TBOX = load_tbox_shapes()

PREDICATES = [
    RDF.type, RDFS.label, RDFS.subClassOf, RDFS.subPropertyOf, RDFS.range, RDFS.isDefinedBy, SKOS.definition,
    SKOS.example, SKOS.notation, SKOS.inScheme, SKOS.prefLabel, SCHEMA.domainIncludes, SCHEMA.rangeIncludes,
    OWL.deprecated, OWL.versionInfo, DCTERMS.isReplacedBy, STATUS,
]  # fmt: skip
VALUES = [
    *SUBJECTS, PROV.Entity, OWL.Class, SKOS.Concept, KG.Unknown, NamedNode("urn:x"), Literal(""), Literal("x"),
    Literal("x", language="en"), Literal("x", language="de"), Literal(True), Literal("archaic"), Literal("neap tide"),
]  # fmt: skip


def compared(results: list[Violation]) -> set[tuple[str, ...]]:
    return {(str(each.focus), str(each.value), str(each.component), each.severity, str(each.shape)) for each in results}


@settings(max_examples=dear(40), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(MODULE), max_size=4),
    st.lists(
        st.builds(Triple, st.sampled_from(SUBJECTS), st.sampled_from(PREDICATES), st.sampled_from(VALUES)), max_size=4
    ),
)
@example([], [Triple(KG.Measurement, RDFS.subClassOf, KG.Tide)])
def test_a_damaged_module_is_judged_as_pyshacl_judges_it(removed: list[Triple], added: list[Triple]) -> None:
    module = [*(set(MODULE) - set(removed)), *added]
    assert compared(TBOX.check(module)) == compared(pyshacl_engine.validate(TBOX.triples, module))
