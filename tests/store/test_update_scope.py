"""The graphs that an update writes are always among those read off its text; where they cannot be, it is refused."""

from __future__ import annotations

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad

from kg.errors import InvalidInputError
from kg.store.update_scope import find_mentioned_graphs, reject_default_graph_patterns
from kg.vocabulary import PREFIXES

A, B, C = (NamedNode(f"urn:g/{name}") for name in "abc")
S = NamedNode("urn:s")

OPERATIONS = [
    "INSERT DATA { GRAPH <urn:g/a> { <urn:s> <urn:p> 7 } }",
    "INSERT DATA { GRAPH g:a { <urn:s> <urn:p> 8 } }",
    "INSERT DATA{GRAPH g:c{<urn:s><urn:p>9}}",
    "DELETE DATA { GRAPH :b { <urn:s> <urn:p> 2 } }",
    "DELETE DATA { GRAPH <b> { <urn:s> <urn:p> 1 } }",
    "DELETE WHERE { GRAPH <urn:g/a> { ?s ?p ?o } }",
    "WITH <urn:g/a> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "INSERT { GRAPH <urn:g/c> { ?s ?p ?g } } WHERE { GRAPH ?g { ?s ?p ?o } }",
    "INSERT { GRAPH <urn:g/c> { ?s ?p 'GRAPH ?g { }' } } # GRAPH ?g { CLEAR ALL\nWHERE { GRAPH ?g { ?s ?p ?o } }",
    "DELETE { GRAPH <urn:g/b> { ?s ?p ?o } } USING NAMED <urn:g/a> WHERE { GRAPH ?g { ?s ?p ?o } }",
    "COPY <urn:g/a> TO <urn:g/c>",
    "MOVE SILENT GRAPH <urn:g/a> TO GRAPH <urn:g/b>",
    "ADD <urn:g/b> TO <urn:g/a>",
    "CLEAR SILENT GRAPH <urn:g/a>",
    "drop silent graph <urn:g/b>",
    "CREATE SILENT GRAPH <urn:g/c>",
    r"INSERT DATA { GRAPH <urn:g/\u0061> { <urn:s> <urn:p> 6 } }",
]


PROLOGUE = "PREFIX g: <urn:none/> BASE <urn:g/> PREFIX : <urn:g/> PREFIX g: <urn:g/>\n"


def content(engine: pyoxigraph.Store, graph: object) -> set[Quad]:
    return {quad for quad in engine if quad.graph_name == graph}


@given(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4).map(lambda some: PROLOGUE + " ;\n".join(some)))
def test_every_graph_that_changes_is_within_reach(update: str) -> None:
    before, after = pyoxigraph.Store(), pyoxigraph.Store()
    for engine in (before, after):
        engine.update("INSERT DATA { GRAPH <urn:g/a> { <urn:s> <urn:p> 1 } GRAPH <urn:g/b> { <urn:s> <urn:p> 1, 2 } }")
    after.update(update, prefixes=PREFIXES)
    changed = {graph for graph in (A, B, C) if content(before, graph) != content(after, graph)}
    assert changed <= find_mentioned_graphs(update)


def test_what_an_update_does_not_mention_is_not_looked_at() -> None:
    assert find_mentioned_graphs("INSERT DATA { GRAPH <urn:g/a> { <urn:s> <urn:p> 'urn:g/b' } }") == {
        A,
        S,
        NamedNode("urn:p"),
    }


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { GRAPH <urn:g/a> { } } ; DELETE { GRAPH ?g { ?s ?p 1 } } WHERE { GRAPH ?g { ?s ?p ?o } }",
        "INSERT { ?s ?p trueGRAPH ?g { ?s ?p 1 } } WHERE { GRAPH ?g { ?s ?p ?o } }",
        "INSERT{GRAPH#\n?g{?s ?p 1}}WHERE{GRAPH ?g{?s ?p ?o}}",
        "MOVE DEFAULT TO <urn:g/a>",
        "DROP SILENTALL",
        "CLEAR NAMED",
    ],
)
def test_an_update_whose_graphs_only_the_data_know_is_refused(update: str) -> None:
    with pytest.raises(InvalidInputError, match="IRI of each graph"):
        find_mentioned_graphs(update)


USER = "<https://w3id.org/quadcite/graph/user/x>"


@pytest.mark.parametrize(
    ("update", "where"),
    [
        (f"INSERT {{ GRAPH {USER} {{ ?d a kg:Doc }} }} WHERE {{ ?d a kg:PolicyDocument }}", "column 83: '?d a kg:Pol"),
        ("DELETE WHERE { ?s ?p ?o }", "column 16: '?s ?p ?o'"),
        (f"PREFIX a: <urn:a>\nWITH {USER} INSERT {{ ?s a:p 1 }} WHERE {{ ?s a:q 2 }} ;\nDELETE WHERE {{ ?s a:r ?z }}",
         "Line 3, column 16: '?s a:r ?z'"),
        (f"DELETE {{ GRAPH {USER} {{ ?s ?p ?o }} }} WHERE {{ GRAPH ?g {{ ?s ?p ?o }} OPTIONAL {{ ?s skos:note ?z }} }}",
         "'?s skos:note ?z'"),
        (f"INSERT {{ GRAPH {USER} {{ ?d a kg:Doc }} }} WHERE {{ GRAPH ?g {{ ?d a ?c }} FILTER EXISTS {{ ?d ?p ?o }} }}",
         "'?d ?p ?o'"),
    ],
)  # fmt: skip
def test_a_pattern_that_an_update_can_never_match_is_refused(update: str, where: str) -> None:
    with pytest.raises(InvalidInputError, match="outside GRAPH") as refused:
        reject_default_graph_patterns(update)
    assert where in str(refused.value)


@pytest.mark.parametrize(
    "update",
    [
        f"INSERT DATA {{ GRAPH {USER} {{ <urn:a> <urn:b> 1 }} }}",
        f"WITH {USER} DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }}",
        f"DELETE WHERE {{ GRAPH {USER} {{ ?s ?p ?o }} }}",
        f"INSERT {{ GRAPH {USER} {{ ?d a kg:Doc }} }} USING <urn:g> WHERE {{ ?d a kg:PolicyDocument }}",
        f"INSERT {{ GRAPH {USER} {{ ?d a ?x }} }} WHERE {{ GRAPH ?g {{ ?d a ?c FILTER NOT EXISTS {{ ?d a kg:X }} }} }}",
        f"INSERT {{ GRAPH {USER} {{ <urn:a> <urn:b> ?x }} }} WHERE {{ BIND(1 AS ?x) }}",
        f"CLEAR GRAPH {USER}",
        f"INSERT {{ GRAPH {USER} {{ <urn:a> <urn:b> 1 }} }} WHERE {{}}",
    ],
)
def test_a_pattern_that_an_update_may_match_is_not(update: str) -> None:
    reject_default_graph_patterns(update)
