"""Queries leave out the graphs that a condition excludes, and find the same as before in the others."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Set

import pytest
from pyoxigraph import NamedNode, Quad, QuerySolutions, RdfFormat, Store, parse

import kg.retrieval
import kg.tools
import kg.zoning_summaries
from kg.sparql.graph_exclusion import exclude_graphs, find_reads, type_key
from kg.vocabulary import PREFIXES, RDF, SKOS

DATA = """
@prefix : <urn:> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:g1 { :a skos:prefLabel "a" ; skos:broader :b ; :n 1 . }
:g2 { :b skos:prefLabel "b" ; skos:broader :c ; :n 2, 3 . }
:g3 { :c skos:prefLabel "c" ; :n 4 . }
:forged { :a skos:prefLabel "forged a" ; skos:broader :x ; :n 9 . :x skos:prefLabel "x" ; :n 8 . :c skos:broader :a . }
"""
QUERIES = (
    "SELECT ?s ?o { ?s skos:prefLabel ?o }",
    "SELECT ?s ?o { ?s skos:prefLabel ?o ; <urn:n> ?n , ?m . FILTER(?n < ?m) }",
    "SELECT ?s ?o { ?s skos:broader/skos:prefLabel ?o . }",
    "SELECT ?s ?o { ?s skos:broader|skos:prefLabel ?o ; skos:prefLabel ?l . ?s <urn:n> 1 }",
    "SELECT ?s ?o { ?s ^skos:broader ?o }",
    "SELECT ?s ?o { ?s skos:broader/^skos:broader ?o }",
    "SELECT ?s ?p ?o { ?s ?p ?o }",
    "SELECT ?g ?s { GRAPH ?g { ?s skos:prefLabel ?o ; ?p ?q } }",
    "SELECT ?s ?o { GRAPH <urn:g1> { ?s ?p ?o } }",
    "SELECT ?g { GRAPH ?g { { SELECT DISTINCT ?s { ?s skos:prefLabel ?o } } ?s skos:broader ?o } }",
    "SELECT ?s ?l { ?s <urn:n> ?n OPTIONAL { ?s skos:broader ?o . ?o skos:prefLabel ?l } }",
    "SELECT ?s { { ?s <urn:n> 9 } UNION { ?s <urn:n> 1 } UNION { ?s skos:broader <urn:c> } }",
    "SELECT ?s { ?s <urn:n> ?n FILTER NOT EXISTS { ?s skos:broader ?o } }",
    "SELECT ?s { ?s <urn:n> ?n FILTER(?n > 0 && EXISTS { ?s skos:prefLabel ?o }) }",
    "SELECT ?s { ?s <urn:n> ?n MINUS { ?s skos:broader ?o } }",
    "SELECT ?s (COUNT(*) AS ?c) { ?s <urn:n> ?n } GROUP BY ?s HAVING (COUNT(?n) > 0)",
    "SELECT ?s ?c { { SELECT ?s (COUNT(DISTINCT ?n) AS ?c) WHERE { ?s <urn:n> ?n } GROUP BY ?s } ?s a|<urn:p> ?o }",
    """SELECT ?s ?o { VALUES (?s ?t) { (<urn:a> "}") (<urn:b> '"{') (<urn:c> UNDEF) } ?s skos:prefLabel ?o }""",
    "SELECT ?s ?o { VALUES ?o { 'a'@en \"a\" 9 1 } ?s <urn:n>|skos:prefLabel ?o }",
    "SELECT ?s ?p ?o { ?s ?p ?o FILTER(?p IN (skos:prefLabel, skos:broader)) BIND(STR(?o) AS ?t) }",
    "PREFIX x: <urn:> SELECT ?s { ?s x:n ?n . ?s x:n -1 } # } comment",
    "SELECT ?s ?o { VALUES ?p { skos:prefLabel <urn:n> } ?s ?p ?o }",
    "SELECT ?s ?o { { ?s ?p ?o } UNION { ?o ?p ?s } FILTER(?p IN (skos:broader)) }",
)


def rows(store: Store, query: str) -> list[str]:
    found = store.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
    assert isinstance(found, QuerySolutions)
    names = [variable.value for variable in found.variables]
    return sorted(str([str(row[name]) for name in names]) for row in found)


def store_of(quads: list[Quad]) -> Store:
    store = Store()
    store.extend(quads)
    return store


def not_forged(properties: Set[str] | None, variable: str) -> str:
    return f"{variable} NOT IN (<urn:forged>)"


@pytest.mark.parametrize("query", QUERIES)
def test_query_without_a_graph_finds_what_it_finds_where_the_graph_is_absent(query: str) -> None:
    quads = list(parse(DATA, format=RdfFormat.TRIG))
    rest = [quad for quad in quads if quad.graph_name != NamedNode("urn:forged")]
    if "|<" in query or ">|" in query:
        with pytest.raises(TypeError, match="path"):
            exclude_graphs(query, not_forged)
        return
    assert rows(store_of(quads), exclude_graphs(query, not_forged)) == rows(store_of(rest), query)


@pytest.mark.parametrize("query", QUERIES)
def test_query_without_a_condition_stays_as_it_is(query: str) -> None:
    assert exclude_graphs(query, lambda properties, variable: None) == query


def test_only_patterns_with_a_condition_are_rewritten() -> None:
    def condition(properties: Set[str] | None, variable: str) -> str | None:
        return f"{variable} != <urn:g>" if properties is None or "urn:p" in properties else None

    assert exclude_graphs("SELECT ?s { ?s <urn:q> ?o . ?s <urn:p> ?o }", condition) == (
        "SELECT ?s { ?s <urn:q> ?o . GRAPH ?_g2 { ?s <urn:p> ?o } FILTER(?_g2 != <urn:g>) }"
    )


def test_negated_property_counts_as_any_property() -> None:
    def condition(properties: Set[str] | None, variable: str) -> str | None:
        return f"{variable} != <urn:g>" if properties is None or "urn:q" in properties else None

    with pytest.raises(TypeError, match="path"):
        exclude_graphs("SELECT ?s { ?s !<urn:p> ?o }", condition)
    assert "!= <urn:g>" in exclude_graphs("SELECT ?s { GRAPH ?g { ?s !<urn:p> ?o } }", condition)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?s ?p ?o }",
        "SELECT ?s { SERVICE <urn:x> { ?s ?p ?o } }",
        "SELECT ?s { ?s <urn:p>* ?o }",
        "SELECT ?s { ?s <urn:p> [ <urn:q> ?o ] }",
        "SELECT ?s { ?s <urn:p> _:b }",
        "SELECT ?s { ?s <urn:p> (1 2) }",
        "SELECT ?s { <<( ?s <urn:p> ?o )>> <urn:q> ?r }",
        "SELECT ?s FROM <urn:g> { ?s <urn:p> ?o }",
        "SELECT ?s { ?s <urn:p> ?o",
    ],
)
def test_unsupported_query_is_refused(query: str) -> None:
    with pytest.raises(TypeError):
        exclude_graphs(query, not_forged)


READ = {
    "SELECT ?s { ?s <urn:p> ?o ; <urn:q>/^<urn:r> 1 }": {"urn:p", "urn:q", "urn:r"},
    "SELECT ?s { ?s a <urn:C> . ?s a skos:Concept }": {type_key("urn:C"), type_key(SKOS.Concept.value)},
    "SELECT ?s { VALUES ?c { <urn:C> skos:Concept } ?s a ?c }": {type_key("urn:C"), type_key(SKOS.Concept.value)},
    "SELECT ?s { { ?s a ?c } UNION { ?s <urn:p> ?c } FILTER(?c IN (<urn:C>)) }": {type_key("urn:C"), "urn:p"},
    "SELECT ?s { VALUES ?p { <urn:p> } GRAPH ?g { ?s ?p ?o } }": {"urn:p"},
    "SELECT ?s { VALUES ?p { $p } ?s ?p ?o }": None,
    "SELECT ?s { VALUES ?c { <urn:C> UNDEF } ?s a ?c }": {RDF.type.value},
    "SELECT ?s { VALUES (?c ?p) { (<urn:C> <urn:p>) } ?s a ?c ; ?p 1 }": None,
    "SELECT ?s { VALUES ?c { <urn:C> } OPTIONAL { ?s a ?c } }": {RDF.type.value},
    "SELECT ?s { { SELECT ?s { ?s a ?c } } FILTER(?c IN (<urn:C>)) }": {RDF.type.value},
    "SELECT ?s { ?s a ?c }": {RDF.type.value},
    "SELECT ?s { ?s a/<urn:p> ?o }": {RDF.type.value, "urn:p"},
    "SELECT ?s { ?o ^a <urn:C> }": {RDF.type.value},
    "SELECT ?s { GRAPH <urn:g> { ?s <urn:p> ?o } GRAPH ?g { ?s <urn:q> ?o } }": {"urn:p", "urn:q"},
    "SELECT ?s { { SELECT ?s { ?s <urn:p> ?o } } MINUS { ?s <urn:q> ?o } FILTER NOT EXISTS { ?s <urn:r> 1 } }": {
        "urn:p", "urn:q", "urn:r",
    },
    "SELECT ?s { ?s <urn:p>|<urn:q> ?o } VALUES ?s { <urn:s> }": {"urn:p", "urn:q"},
    "SELECT ?s { ?s ?p ?o FILTER(?p IN (<urn:p>, skos:note)) }": {"urn:p", SKOS.note.value},
    "SELECT ?s { GRAPH ?g { ?s ?p ?o } { ?s ?p 1 } UNION { ?s <urn:r> 1 } FILTER(?p IN (<urn:p>)) }": {
        "urn:p", "urn:r",
    },
    "SELECT ?s { ?s <urn:r> ?o FILTER NOT EXISTS { ?s ?p 1 FILTER(?p IN (<urn:p>)) } }": {"urn:p", "urn:r"},
    "SELECT ?s { ?s ?p ?o }": None,
    "SELECT ?s { ?s ?p ?o FILTER(?p IN (<urn:p>) || true) }": None,
    "SELECT ?s { ?s ?p ?o FILTER(?p NOT IN (<urn:p>)) }": None,
    "SELECT ?s { ?s ?p ?o ; ?q 1 FILTER(?p IN (<urn:p>)) }": None,
    "SELECT ?s { { SELECT ?s { ?s ?p ?o } } FILTER(?p IN (<urn:p>)) }": None,
    "SELECT ?s { ?s <urn:r> ?o MINUS { ?s ?p 1 } FILTER(?p IN (<urn:p>)) }": None,
    "SELECT ?s { ?s <urn:r> ?o FILTER NOT EXISTS { ?s ?p 1 } FILTER(?p IN (<urn:p>)) }": None,
    "SELECT ?s { ?s !<urn:p> ?o }": None,
    "SELECT ?s { ?s <urn:p>* ?o }": None,
    "SELECT ?s { ?s <urn:p>? ?o }": None,
    "SELECT ?g { GRAPH ?g {} }": None,
    "SELECT ?s { SERVICE <urn:x> { ?s <urn:p> ?o } }": None,
    "SELECT (COUNT(?s) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s HAVING (EXISTS { ?s <urn:q> 1 })": None,
}  # fmt: skip


@pytest.mark.parametrize("query", READ)
def test_what_a_query_reads_are_its_properties_and_classes(query: str) -> None:
    assert find_reads(query) == READ[query]


@pytest.mark.parametrize("query", QUERIES)
def test_statements_that_a_query_does_not_read_leave_its_result(query: str) -> None:
    reads = find_reads(query)
    if reads is None:
        assert "?p" in query or "?q" in query
        return
    quads = list(parse(DATA, format=RdfFormat.TRIG))
    read = [quad for quad in quads if quad.predicate.value in reads]
    assert rows(store_of(read), query) == rows(store_of(quads), query)


def templates() -> Iterator[tuple[str, str]]:
    for package in (kg.tools, kg.retrieval, kg.zoning_summaries):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if module.name.endswith("schema_measurement"):  # it measures all graphs
                continue
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, str) and re.match(r"\s*(SELECT|ASK)\b", value):
                    yield f"{module.name}.{name}", value


def test_every_query_of_a_tool_can_exclude_graphs() -> None:
    found = dict(templates())
    assert len(found) > 100
    for query in found.values():
        exclude_graphs(re.sub(r"\$(limit|most|offset|block|before|preview)\b", "5", query), not_forged)
