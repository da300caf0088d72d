"""Shapes of people whom nobody knows: they reach nothing outside, and break no process, served or not."""

from __future__ import annotations

import time

import pytest
from pyoxigraph import Literal, RdfFormat, parse

from kg.errors import InvalidInputError, QueryForbiddenError
from kg.shacl.data_graph import DataGraph, Lexicon
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.vocabulary import XSD

HEAD = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <http://example.org/> . "
BOAT = "ex:S sh:targetClass ex:Boat ; "
TARGET = "ex:S sh:nodeKind sh:IRI ; sh:target [ a sh:SPARQLTarget ; "


def check(shapes: str, data: str = "ex:a a ex:Boat . ex:b a ex:Boat ; ex:mast 1 .") -> list[Violation]:
    triples = [quad.triple for quad in parse(HEAD + shapes, format=RdfFormat.TURTLE)]
    return Shapes(triples).validate(DataGraph.from_quads(parse(HEAD + data, format=RdfFormat.TURTLE)))


@pytest.mark.parametrize(
    "shapes",
    [
        TARGET + "sh:select 'SELECT ?this { SERVICE <http://127.0.0.1:9/> { ?this ?p ?o } }' ] .",
        TARGET + "sh:select 'SELECT ?this { ?this a ?p . SERVICE SILENT ?p { ?this ?p ?o } }' ] .",
        TARGET + "sh:prefixes ex:o ; sh:select 'SELECT ?this { ?this a ?p }' ] . ex:o sh:declare "
        "[ sh:prefix 'q: <urn:x> SELECT * { SERVICE <http://127.0.0.1:9/> {} } #' ; sh:namespace 'urn:x' ] .",
        TARGET + "sh:prefixes ex:o ; sh:select 'SELECT ?this { ?this a ?p }' ] . ex:o sh:declare "
        "[ sh:prefix 'q' ; sh:namespace 'urn:x> SELECT * { SERVICE <http://127.0.0.1:9/> {} } #' ] .",
        BOAT
        + "sh:rule [ a sh:SPARQLRule ; sh:construct 'CONSTRUCT { $this a ex:X } { SERVICE <urn:x> { ?s ?p ?o } }' ] .",
        "ex:f a sh:SPARQLFunction ; sh:ask 'ASK { SERVICE <urn:x> {} }' . " + BOAT + "sh:nodeKind sh:IRI .",
        BOAT + "sh:rule [ sh:update 'LOAD <http://127.0.0.1:9/>' ] .",
    ],
)
def test_no_query_asks_another_server_nor_hides_that_it_does(shapes: str) -> None:
    with pytest.raises(QueryForbiddenError):
        check(shapes)


def test_javascript_is_refused_not_skipped() -> None:
    with pytest.raises(InvalidInputError, match="sh:js: JavaScript"):
        check(BOAT + "sh:js [ a sh:JSConstraint ; sh:jsFunctionName 'f' ] .")


@pytest.mark.parametrize(
    "shapes",
    [
        BOAT + "sh:not " + "[ sh:not " * 3_000 + "[ sh:nodeKind sh:IRI ]" + " ]" * 3_000 + " .",
        BOAT
        + "sh:node ex:n0 . "
        + "".join(f"ex:n{n} sh:node ex:n{n + 1} . " for n in range(400))
        + "ex:n400 sh:in () .",
        BOAT + "sh:property [ sh:path " + "[ sh:inversePath " * 3_000 + "ex:p" + " ]" * 3_000 + " ] .",
        BOAT + "sh:property [ sh:path ex:t ; sh:pattern '" + "(" * 50_000 + ")" * 50_000 + "' ] .",
        BOAT + "sh:sparql [ sh:select 'SELECT $this { " + "{" * 5_000 + "$this a ?x" + "}" * 5_000 + " }' ] .",
    ],
    ids=["not", "chain", "path", "pattern", "query"],
)
def test_what_is_nested_too_deeply_is_refused(shapes: str) -> None:
    with pytest.raises(InvalidInputError):
        check(shapes, "ex:b a ex:Boat ; ex:t 'x' .")


@pytest.mark.parametrize("path", ["( " + "ex:p " * 2_000 + ")", "( " + ("( " + "ex:p " * 100 + ") ") * 100 + ")"])
def test_a_path_that_no_engine_can_plan_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match="128 consecutive steps"):
        check(BOAT + f"sh:property [ sh:minCount 1 ; sh:path {path} ] .")


def test_what_pyshacl_cannot_run_is_said_with_the_shape() -> None:
    query = "SELECT $this { $this a ?x GRAPH ?g { ?a ?b ?c } } LIMIT 3"
    with pytest.raises(InvalidInputError, match=r"http://example.org/S"):
        check(BOAT + f"sh:sparql [ sh:select '{query}' ] .")


@pytest.mark.parametrize("name", ["this", "value", "shapesGraph", "currentShape", "path", "PATH", "a-b", ""])
def test_a_parameter_has_a_name_that_a_variable_may_have(name: str) -> None:
    """https://www.w3.org/TR/shacl/#sparql-constraint-components-parameters"""
    validator = "sh:validator [ a sh:SPARQLAskValidator ; sh:ask 'ASK { FILTER(true) }' ]"
    component = f"ex:C a sh:ConstraintComponent ; sh:parameter [ sh:path <urn:x/{name}> ] ; {validator} . "
    with pytest.raises(InvalidInputError, match="sh:parameter"):
        check(component + BOAT + f"<urn:x/{name}> 1 .")


@pytest.mark.measures_processor_time
def test_many_different_values_are_looked_at_once_each() -> None:
    """What is asked of each literal does not depend on how many there were."""
    lexicon = Lexicon()
    started = time.thread_time()
    for number in range(40_000):
        lexicon.encode(Literal(str(number), datatype=XSD.integer))
    assert time.thread_time() - started < 5
    assert lexicon.encode(Literal("007", datatype=XSD.integer)).datatype != XSD.integer
    assert lexicon.encode(Literal("7", datatype=XSD.integer)) == Literal("7", datatype=XSD.integer)


@pytest.mark.measures_processor_time
@pytest.mark.parametrize(
    "shapes",
    [
        "ex:S sh:nodeKind sh:Literal ; sh:targetNode " + ", ".join(f"ex:n{n}" for n in range(20_000)) + " .",
        BOAT + "sh:property [ sh:path ex:mast ; sh:in ( " + " ".join(map(str, range(20_000))) + " ) ] .",
    ],
    ids=["targets", "list"],
)
def test_shapes_are_read_in_time_that_grows_with_their_length(shapes: str) -> None:
    triples = [quad.triple for quad in parse(HEAD + shapes, format=RdfFormat.TURTLE)]
    started = time.thread_time()
    Shapes([*triples, *triples])
    assert time.thread_time() - started < 5
