"""Parts of the data: which graphs a principal sees, and that no query of a view reads another."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad

from kg.access.actors import SCOPES, Actor
from kg.errors import ForbiddenError, QueryForbiddenError
from kg.knowledge_graph import KnowledgeGraph
from kg.queries.pool import UNLIMITED
from kg.tools.audiences import Audience, find_audience, name_family, view
from kg.tools.decisions import build_policies
from kg.tools.schema.schema_measurement import get_schema
from kg.vocabulary import BASE, SOURCED

GROUPS: Final = ("a", "b", "ref", "none")


def see(folder: Path, condition: str) -> Any:
    folder.mkdir(exist_ok=True)
    rule = f'@id("see") forbid(principal in Group::"part", action == Action::"see", resource) unless {{ {condition} }};'
    (folder / "see.cedar").write_text(rule)
    return build_policies(folder)


def select(kg: KnowledgeGraph, query: str) -> Any:
    return kg.pool.run(query, limit=UNLIMITED).result


PART: Final = Actor("pat", frozenset(SCOPES), frozenset({"part"}))
OTHER: Final = Actor("root", frozenset(SCOPES))


@pytest.mark.parametrize(
    ("graph", "family"),
    [
        (f"{BASE}graph/ref/place/x", "graph/ref/"),
        (f"{BASE}graph/prov", "graph/prov"),
        (f"{SOURCED}climate/x", "graph/src/"),
        ("urn:x", "other"),
    ],
)
def test_a_graph_without_a_dataset_is_of_a_family(graph: str, family: str) -> None:
    assert name_family(graph) == family


def test_the_graphs_of_a_dataset_are_seen_with_it(joined: KnowledgeGraph, tmp_path: Path) -> None:
    """With the graphs that were computed from them, and without provenance."""
    whole = {graph.value for graph in joined.store.graphs()}
    assert find_audience(joined, see(tmp_path / "all", "true"), PART) is None
    policies = see(tmp_path / "climate", 'resource is Dataset && resource.loader == "climate"')
    assert find_audience(joined, policies, OTHER) is None
    found = find_audience(joined, policies, PART)
    assert found is not None
    sources = {graph for graph in whole if graph.startswith(f"{SOURCED}climate/")}
    assert sources
    assert sources <= found.graphs
    assert f"{BASE}graph/prov" not in found.graphs
    families = {name_family(graph) for graph in found.graphs}
    assert families <= {"graph/src/", "graph/ext/", "graph/der/", "graph/gen/", "graph/ref/"}
    none = find_audience(joined, see(tmp_path / "none", 'resource is Dataset && resource.loader == "nothing"'), PART)
    assert none is not None
    assert none.graphs == frozenset()


def test_no_visible_graph_describes_things_of_hidden_datasets(joined: KnowledgeGraph, tmp_path: Path) -> None:
    """Also those computed from graphs of no dataset: the languages of texts follow from their places."""
    shared = 'resource == Family::"graph/ref/" || (resource is Dataset && resource.loader == "climate")'
    found = find_audience(joined, see(tmp_path / "climate", shared), PART)
    assert found is not None
    described: dict[str, set[str]] = {}
    for row in select(joined, "SELECT DISTINCT ?s ?g { GRAPH ?g { ?s a ?kind } }"):
        described.setdefault(str(row["s"]), set()).add(row["g"].value)
    seen = {
        (row["g"].value, str(row["s"]))
        for row in select(joined, "SELECT DISTINCT ?s ?g { GRAPH ?g { ?s ?p ?o } }")
        if row["g"].value in found.graphs
    }
    assert any("/graph/src/climate/" in graph for graph, _ in seen)
    hidden = {graph for graph, thing in seen if thing in described and not described[thing] & found.graphs}
    assert hidden == set()


def test_each_graph_is_seen_by_one_of_two_complements(joined: KnowledgeGraph, tmp_path: Path) -> None:
    """Except for graphs computed from graphs of both."""
    title = 'resource is Dataset && resource.title like "*laws*"'
    one = find_audience(joined, see(tmp_path / "one", title), PART)
    other = find_audience(joined, see(tmp_path / "two", f"!({title})"), PART)
    assert one is not None
    assert other is not None
    assert not one.graphs & other.graphs
    whole = {graph.value for graph in joined.store.graphs()}
    assert one.graphs | other.graphs <= whole


def test_a_view_has_no_other_part_of_the_whole(joined: KnowledgeGraph) -> None:
    part = view(joined, Audience(frozenset({f"{SOURCED}climate/nothing"}), 1))
    assert part.store.statistics().quads == 0
    assert joined.store.statistics().quads > 0
    assert part.memory is not joined.memory
    assert get_schema(part).generation == 0
    for use in (
        lambda: part.search.rank("x"), lambda: part.search.count([]), lambda: part.store.query("ASK {}"),
        lambda: part.store.graphs(), lambda: part.store.snapshot(), lambda: part.pool.dispatcher,
        lambda: part.store.graph(NamedNode("urn:x")), lambda: part.pool.build_ticket("ASK {}"),
    ):  # fmt: skip
        with pytest.raises(ForbiddenError):
            use()
    assert view(joined, None) is joined
    with pytest.raises(QueryForbiddenError):
        part.query("SELECT * FROM <urn:x> { ?s ?p ?o }", raw=True)


NAMES: Final = tuple(f"{BASE}graph/user/{letter}" for letter in "abcd")
TERMS: Final = [NamedNode(f"urn:{letter}") for letter in "xyz"]
PATTERNS: Final = ("?s ?p ?o", "?s <urn:x> ?o", "?s ?p <urn:y>", "<urn:x> ?p ?o", "?o ?q ?z",
                   "?s (<urn:x>|<urn:y>)* ?o", "?s !<urn:z> ?o", "?s <urn:x>/<urn:y> ?o")  # fmt: skip


@cache
def groups() -> st.SearchStrategy[str]:
    """Groups of patterns of every form that can name a graph."""
    pattern = st.sampled_from(PATTERNS)
    graph = st.sampled_from(["?g", "?h", *(f"<{name}>" for name in NAMES), "<urn:none>"])

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(graph, inner).map(lambda each: f"GRAPH {each[0]} {{ {each[1]} }}"),
            st.tuples(inner, inner).map(lambda each: f"{{ {each[0]} }} UNION {{ {each[1]} }}"),
            st.tuples(inner, inner).map(lambda each: f"{each[0]} . OPTIONAL {{ {each[1]} }}"),
            st.tuples(inner, inner).map(lambda each: f"{each[0]} . MINUS {{ {each[1]} }}"),
            st.tuples(inner, inner).map(lambda each: f"{each[0]} . FILTER EXISTS {{ {each[1]} }}"),
            st.tuples(inner, inner).map(lambda each: f"{each[0]} . FILTER NOT EXISTS {{ {each[1]} }}"),
            st.tuples(inner, inner).map(lambda each: f"{each[0]} . BIND(EXISTS {{ {each[1]} }} AS ?e1)"),
            inner.map(lambda each: f"{{ SELECT DISTINCT ?s ?g {{ {each} }} }}"),
            inner.map(lambda each: f"{{ SELECT (COUNT(*) AS ?n) {{ {each} }} }}"),
            st.tuples(graph, inner).map(lambda each: f"VALUES ?g {{ <{NAMES[0]}> <{NAMES[1]}> }} {each[1]}"),
        )

    return st.recursive(st.one_of(pattern, graph.map(lambda each: f"GRAPH {each} {{}}")), extend, max_leaves=5)


def queries() -> st.SearchStrategy[str]:
    return st.one_of(
        groups().map(lambda group: f"SELECT DISTINCT * {{ {group} }}"),
        groups().map(lambda group: f"ASK {{ {group} }}"),
        groups().map(lambda group: f"SELECT (COUNT(DISTINCT ?s) AS ?n) {{ {group} }}"),
        groups().map(lambda group: f"CONSTRUCT {{ ?s ?p ?o . ?g a <urn:graph> }} {{ {group} }}"),
        groups().map(lambda group: f"DESCRIBE ?s ?o {{ {group} }}"),
    )


def quads() -> st.SearchStrategy[set[Quad]]:
    term = st.sampled_from(TERMS)
    made = st.builds(lambda s, p, o, g: Quad(s, p, o, NamedNode(g)), term, term, term, st.sampled_from(NAMES))
    return st.sets(made, min_size=1, max_size=14)


@given(data=quads(), seen=st.sets(st.sampled_from(NAMES)), query=queries())
@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
def test_the_dataset_of_an_audience_is_a_store_of_its_graphs(data: set[Quad], seen: set[str], query: str) -> None:
    """The engine, as the workers call it: both lists, also empty."""
    whole, alone = ox.Store(), ox.Store()
    whole.extend(data)
    alone.extend(quad for quad in data if quad.graph_name.value in seen)  # type: ignore[union-attr]
    graphs = [NamedNode(name) for name in sorted(seen) if any(quad.graph_name.value == name for quad in data)]  # type: ignore[union-attr]
    try:
        expected = alone.query(query, use_default_graph_as_union=True)
    except SyntaxError:
        return  # a variable in scope is bound again
    assert rows(whole.query(query, default_graph=graphs, named_graphs=graphs)) == rows(expected), query


def rows(result: Any) -> Any:
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    if isinstance(result, ox.QueryTriples):
        return sorted(map(str, set(result)))
    names = [variable.value for variable in result.variables]
    return sorted([str(row[name]) for name in names] for row in result)
