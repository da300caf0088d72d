"""Old results with those of the affected focus nodes replaced are the results of the whole, whatever was edited."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Store, Triple, parse

from kg.errors import InvalidInputError
from kg.shacl import incremental
from kg.shacl.data_graph import DataGraph
from kg.shacl.incremental import Change, find_affected, load_change
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.store.commits import MAX_NODES, Removal, load_removal
from kg.store.difference import canonicalize
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch, Term
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, RDF, RDFS, SCHEMA, SH, SKOS, mint
from tests.examples import dear, spread
from tests.shacl.made_up import place, record
from tests.shacl.test_differential import KINDS, NODES, OURS, PROPERTIES, shapes, targets, triples

pytestmark = pytest.mark.long

EX = "https://example.org/"
GRAPHS = [NamedNode(EX + "graph/g"), NamedNode(EX + "graph/h")]
CONFIG = settings(max_examples=dear(100), suppress_health_check=[HealthCheck.too_slow])

PREFIXES = f"""
@prefix ex: <{EX}> .
@prefix sh: <{SH.iri}> .
@prefix rdf: <{RDF.iri}> .
@prefix rdfs: <{RDFS.iri}> .
ex:prefixes sh:declare [ sh:prefix "ex" ; sh:namespace "{EX}" ] , [ sh:prefix "rdfs" ; sh:namespace "{RDFS.iri}" ] .
"""

MADE_UP = """
ex:Every a sh:NodeShape ; sh:targetClass ex:C ; sh:targetSubjectsOf ex:p ;
  sh:property [ sh:path ( ex:p [ sh:inversePath ex:q ] ) ; sh:maxCount 1 ] ;
  sh:property [ sh:path [ sh:alternativePath ( ex:q [ sh:inversePath ex:r ] ) ] ; sh:minCount 1 ] ;
  sh:property [ sh:path [ sh:zeroOrMorePath ex:p ] ; sh:class ex:D ] ;
  sh:property [ sh:path [ sh:oneOrMorePath [ sh:inversePath ( ex:p ex:q ) ] ] ; sh:nodeKind sh:IRI ] ;
  sh:property [ sh:path [ sh:zeroOrOnePath ex:r ] ; sh:hasValue ex:a ] ;
  sh:property [ sh:path [ sh:inversePath ex:p ] ; sh:property [ sh:path ex:r ; sh:property ex:Inner ] ] .
ex:Inner a sh:PropertyShape ; sh:path ex:q ; sh:minCount 1 ; sh:disjoint ex:p .

ex:Nested a sh:NodeShape ; sh:targetObjectsOf ex:q ; sh:targetNode ex:a , "x" ;
  sh:not [ sh:property [ sh:path ex:p ; sh:node ex:Closed ; sh:minCount 1 ] ] ;
  sh:or ( [ sh:property [ sh:path ex:q ; sh:lessThan ex:r ] ] [ sh:property [ sh:path ex:r ; sh:equals ex:q ] ] ) ;
  sh:property [
    sh:path [ sh:alternativePath ( ex:p ex:q ) ] ;
    sh:qualifiedValueShape [ sh:class ex:C ] ; sh:qualifiedMinCount 1 ; sh:qualifiedMaxCount 1 ] .
ex:Closed a sh:NodeShape ; sh:closed true ; sh:ignoredProperties ( rdf:type ) ; sh:property [ sh:path ex:p ] .

ex:Asked a sh:NodeShape ; sh:targetClass ex:D ; sh:sparql [ sh:prefixes ex:prefixes ; sh:select \"\"\"
  SELECT $this ?value WHERE {
    $this ex:p/^ex:q ?value .
    OPTIONAL { ?value ex:r* ?end . ?end a ?kind }
    FILTER NOT EXISTS { ?value ex:p ?other . ?other ex:q|^ex:r ?this }
    FILTER(!BOUND(?kind) || EXISTS { ?kind rdfs:subClassOf ex:C })
  }\"\"\" ] , [ sh:prefixes ex:prefixes ; sh:select \"\"\"
  SELECT $this WHERE { { SELECT $this (COUNT(?x) AS ?n) WHERE { $this ?any ?x . ?y ex:r ?x } GROUP BY $this }
    FILTER(?n > 1) }\"\"\" ] , [ sh:prefixes ex:prefixes ; sh:select \"\"\"
  SELECT $this WHERE { GRAPH ?g { $this ex:p ?x } GRAPH ?h { $this ex:p ?x } FILTER(?g != ?h) }\"\"\" ] .
ex:Beside a sh:NodeShape ; sh:targetClass ex:C ; sh:sparql [ sh:prefixes ex:prefixes ; sh:select \"\"\"
  SELECT $this ?value WHERE { GRAPH ?g { $this a ex:C } GRAPH ?g { ?value a ex:D } FILTER(?value != $this) }\"\"\" ] ,
  [ sh:prefixes ex:prefixes ; sh:select \"\"\"
  SELECT $this ?value WHERE {
    GRAPH ?g { ?x ex:p $this . OPTIONAL { ?value ex:q ?y } } FILTER NOT EXISTS { GRAPH ?g { ?any ?property ex:a } }
  }\"\"\" ] .
ex:OfGraphs a sh:NodeShape ; sh:targetClass ex:Graph ; sh:sparql [ sh:prefixes ex:prefixes ; sh:select \"\"\"
  SELECT $this ?s WHERE { $this a ex:Graph . GRAPH ?this { ?s ex:p ?o } FILTER NOT EXISTS { ?o ex:r ?any } }\"\"\" ] .
"""

STRAYED = """
ex:Strayed a sh:NodeShape ; sh:targetClass ex:C ; sh:sparql [ sh:prefixes ex:prefixes ; sh:select \"\"\"
  SELECT $this WHERE { $this ex:p ?x . ?s ex:q ?y . FILTER(?x = ?y) }\"\"\" ] .
"""


def turtle(text: str) -> list[Triple]:
    return [quad.triple for quad in parse((PREFIXES + text).encode(), RdfFormat.TURTLE, rename_blank_nodes=True)]


FIXED, STRAYING = Shapes(turtle(MADE_UP)), Shapes(turtle(STRAYED))
GRAPH_TRIPLES = [Triple(graph, RDF.type, NamedNode(EX + "Graph")) for graph in GRAPHS]
quads = st.builds(
    lambda triple, graph: Quad(triple.subject, triple.predicate, triple.object, graph),
    st.one_of(
        triples,
        st.sampled_from(GRAPH_TRIPLES),
        st.builds(
            lambda s, o: Triple(s, RDFS.subClassOf, o), st.sampled_from([*KINDS, *NODES]), st.sampled_from(KINDS)
        ),
        st.builds(Triple, st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from(NODES)),
    ),
    st.sampled_from(GRAPHS),
)
edits = st.lists(
    st.tuples(st.lists(quads, max_size=3), st.lists(st.integers(0, 99), max_size=3)), min_size=1, max_size=3
)

Found = list[tuple[Term, Violation]]


def told(found: Iterable[tuple[Term, Violation]]) -> Counter[Any]:
    """Each result as what it says, with the target that led to it."""
    return Counter(
        (
            str(target),
            str(each.focus),
            str(each.path),
            str(each.value),
            str(each.shape),
            str(each.component),
            *sorted(str(text) for text in each.messages),
        )
        for target, each in found
    )


def replaced(old: Found, suite: Shapes, data: DataGraph, nodes: frozenset[Term] | None) -> Found:
    kept = [] if nodes is None else [found for found in old if found[0] not in nodes]
    return [*kept, *suite.results_by_target(data, nodes)]


def edited(store: Store, add: Sequence[Quad], remove: Sequence[int]) -> Change:
    """Edit `store` in place, in one commit."""
    held = sorted(store, key=str)
    gone = {held[at % len(held)] for at in remove} if held else set()
    new = {quad for quad in canonicalize(add) if quad not in store} - gone
    for quad in gone:
        store.remove(quad)
    store.extend(new)
    return Change(frozenset(new), frozenset(gone))


def assert_incremental(suite: Shapes, store: Store, changes: Iterable[tuple[Sequence[Quad], Sequence[int]]]) -> None:
    old = list(suite.results_by_target(DataGraph.from_store(store)))
    for add, remove in changes:
        change = edited(store, add, remove)
        data = DataGraph.from_store(store)
        found = find_affected(suite, data, change)
        assert found.nodes is not None
        old = replaced(old, suite, data, found.nodes)
        assert told(old) == told(suite.results_by_target(data))


@pytest.mark.long
@CONFIG
@given(begun=st.lists(quads, max_size=12), changes=edits)
def test_made_up_shapes_with_every_path_and_query(begun: list[Quad], changes: list[Any]) -> None:
    store = Store()
    store.extend(begun)
    assert_incremental(FIXED, store, changes)


@settings(CONFIG, max_examples=dear(30))
@given(begun=st.lists(quads, max_size=12), changes=edits)
def test_a_query_whose_patterns_are_not_joined_affects_all_targets(begun: list[Quad], changes: list[Any]) -> None:
    store = Store()
    store.extend(begun)
    assert_incremental(STRAYING, store, changes)
    change = Change(begun) if begun else Change(lost=frozenset(NODES))
    [(shape, why)] = find_affected(STRAYING, DataGraph.from_store(store), change).whole.items()
    assert shape == NamedNode(EX + "Strayed")
    assert "not connected to $this" in why


@CONFIG
@given(
    shape=shapes(), aims=st.lists(targets, min_size=1, max_size=2), begun=st.lists(quads, max_size=12), changes=edits
)
def test_generated_shapes(
    shape: tuple[BlankNode, list[Triple]],
    aims: list[tuple[NamedNode, NamedNode | Literal]],
    begun: list[Quad],
    changes: list[Any],
) -> None:
    node, said = shape
    suite = Shapes([*said, *(Triple(node, term, aim) for term, aim in aims)])
    store = Store()
    store.extend(begun)
    assert_incremental(suite, store, changes)


def records() -> Iterator[Quad]:
    """A small store: two records, a place, and what is said of their graphs."""
    for graph, held in (record("act", 2), record("rule", 1), place("NMK")):
        yield from held
        run, agent = NamedNode("urn:run"), NamedNode("urn:agent")
        yield from (
            Quad(subject, predicate, value, PROV_GRAPH)
            for subject, predicate, value in (
                (graph, RDF.type, KG.AssertedGraph),
                (graph, PROV.wasGeneratedBy, run),
                (run, PROV.wasAssociatedWith, agent),
                (agent, RDFS.label, Literal("A loader")),
                (agent, RDF.type, PROV.SoftwareAgent),
            )
        )


OUR_QUADS = st.builds(
    Quad,
    st.sampled_from(sorted({quad.subject for quad in records()}, key=str)),
    st.sampled_from(
        [DCTERMS.title, DCTERMS.isPartOf, KG.slug, SCHEMA.text, SKOS.notation, SKOS.inScheme, PROV.wasGeneratedBy,
         PROV.wasAssociatedWith, PROV.endedAtTime, RDFS.label, SCHEMA.translationOfWork, PROV.wasDerivedFrom]
    ),
    st.sampled_from([*sorted({quad.object for quad in records()}, key=str), mint("passage", "act", "7")]),
    st.sampled_from([PROV_GRAPH, *GRAPHS]),
)  # fmt: skip
SUITES = {name: Shapes(said) for name, said in OURS.items()}


@pytest.mark.parametrize("name", spread(sorted(SUITES), 4))
@settings(max_examples=dear(25), suppress_health_check=[HealthCheck.too_slow])
@given(
    changes=st.lists(
        st.tuples(st.lists(OUR_QUADS, max_size=3), st.lists(st.integers(0, 99), max_size=4)), min_size=1, max_size=3
    )
)
def test_our_shapes(name: str, changes: list[Any]) -> None:
    store = Store()
    store.extend(list(records()))
    assert_incremental(SUITES[name], store, changes)


@pytest.mark.parametrize(
    "path",
    [
        "( ex:p ex:p )", "[ sh:zeroOrMorePath ex:p ]", "[ sh:oneOrMorePath ex:p ]",
        "[ sh:inversePath ( [ sh:inversePath ex:p ] [ sh:inversePath ex:p ] ) ]",
        "( [ sh:alternativePath ( ex:q ex:p ) ] [ sh:zeroOrOnePath ex:p ] )",
        "[ sh:oneOrMorePath [ sh:alternativePath ( ex:p [ sh:inversePath ex:q ] ) ] ]",
    ],
)  # fmt: skip
def test_a_node_is_affected_by_what_is_two_steps_away(path: str) -> None:
    suite = Shapes(turtle(f"ex:S sh:targetNode ex:n0 ; sh:property [ sh:path {path} ; sh:class ex:D ] ."))
    nodes = [NamedNode(f"{EX}n{number}") for number in range(3)]
    p, typed = NamedNode(EX + "p"), [Quad(node, RDF.type, KINDS[1], GRAPHS[0]) for node in nodes]
    store = Store()
    store.extend([*typed, *(Quad(one, p, other, GRAPHS[0]) for one, other in pairwise(nodes))])
    assert not suite.validate(DataGraph.from_store(store))
    store.remove(typed[2])
    data = DataGraph.from_store(store)
    found = find_affected(suite, data, Change(removed=[typed[2]]))
    assert list(found.nodes or ()) == [nodes[0]]
    assert len(list(suite.results(data, found.nodes))) == 1
    unrelated = Quad(nodes[2], NamedNode(EX + "s"), nodes[0], GRAPHS[0])
    assert find_affected(suite, data, Change(added=[unrelated])).nodes == frozenset()


# -- by what a store keeps of its commits


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OxigraphStore]:
    with OxigraphStore(tmp_path) as opened:
        yield opened


def described(*triples: Triple) -> Patch:
    return Patch(add=frozenset(Quad(each.subject, each.predicate, each.object, PROV_GRAPH) for each in triples))


def opened(store: OxigraphStore) -> tuple[pyoxigraph.Store, Any]:
    snapshot = store.snapshot(store.statistics().generation)
    return pyoxigraph.Store.read_only(str(snapshot.path)), snapshot


SUITE = Shapes([*OURS["dataset-core.ttl"], *Shapes(OURS["record-climate.ttl"], opened=True).triples])


@settings(max_examples=dear(12), suppress_health_check=[HealthCheck.too_slow])
@given(
    commits=st.lists(
        st.tuples(
            st.sampled_from(["act", "rule"]),
            st.lists(OUR_QUADS, max_size=3),
            st.lists(st.integers(0, 30), max_size=3),
            st.booleans(),
            st.lists(OUR_QUADS, max_size=2),
        ),
        min_size=2,
        max_size=4,
    ),
    since=st.integers(1, 3),
)
def test_commits_say_what_a_later_validation_needs(
    tmp_path_factory: pytest.TempPathFactory, commits: list[Any], since: int
) -> None:
    with OxigraphStore(tmp_path_factory.mktemp("store")) as store:
        old: Found = []
        since = min(since, len(commits))
        for number, (slug, added, removed, gone, said) in enumerate(commits):
            if number == since - 1:
                before, _ = opened(store)
                old, then = list(SUITE.results_by_target(DataGraph.from_store(before))), store.statistics().generation
            graph, held = record(slug, 2)
            kept = [quad for at, quad in enumerate(held) if at not in removed]
            wanted = [] if gone else [*kept, *(Quad(q.subject, q.predicate, q.object, graph) for q in added)]
            patch = described(*(quad.triple for quad in said))
            store.commit({graph: wanted}, lambda changes, patch=patch: patch)  # type: ignore[misc]
        after, _ = opened(store)
        found = find_affected(SUITE, DataGraph.from_store(after), load_change(after, then))
        assert found.nodes is not None
        data = DataGraph.from_store(after)
        assert told(replaced(old, SUITE, data, found.nodes)) == told(SUITE.results_by_target(data))


def test_what_graph_prov_says_of_others_is_recorded(store: OxigraphStore) -> None:
    """The name of an agent goes: that breaks the shape of every graph that it made."""
    agent, run = NamedNode("urn:agent"), NamedNode("urn:run")
    graph, held = record("act")
    store.commit(
        {graph: held},
        lambda changes: described(
            Triple(graph, RDF.type, KG.AssertedGraph),
            Triple(graph, PROV.wasGeneratedBy, run),
            Triple(run, PROV.wasAssociatedWith, agent),
            Triple(agent, RDFS.label, Literal("A loader")),
        ),
    )
    other, quads_of_other = place("NMK")
    gone = Patch(remove=frozenset({Quad(agent, RDFS.label, Literal("A loader"), PROV_GRAPH)}))
    store.commit({other: quads_of_other}, lambda changes: gone)
    after, _ = opened(store)
    found = find_affected(Shapes.load_dataset(), DataGraph.from_store(after), load_change(after, 1))
    assert found.nodes is not None
    assert graph in found.nodes
    results = Shapes.load_dataset().results(DataGraph.from_store(after), found.nodes)
    shown = [each.shape for each in results if each.focus == graph]
    assert NamedNode("https://w3id.org/quadcite/shapes#ContentGraph-agentName") in shown


def test_without_a_record_everything_is_validated_and_that_is_said(store: OxigraphStore) -> None:
    graph, held = record("act", MAX_NODES // 4)
    more = [Quad(NamedNode(f"urn:{number}"), DCTERMS.title, Literal("x"), graph) for number in range(MAX_NODES + 1)]
    store.commit({graph: [*held, *more]})
    store.commit({graph: held})
    after, _ = opened(store)
    change = load_change(after, 1)
    assert change.unknown == "commit 2 has no record of its removed quads"
    assert find_affected(SUITE, DataGraph.from_store(after), change).why == change.unknown
    assert find_affected(SUITE, DataGraph.from_store(after), change).nodes is None
    assert load_change(after, 2) == Change()
    with pytest.raises(InvalidInputError, match=r"generation 3\b.* 0 to 2\b"):
        load_change(after, 3)


def test_with_too_many_quads_everything_is_validated(store: OxigraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental, "MAX_QUADS", 3)
    graph, held = record("act")
    store.commit({graph: held})
    after, _ = opened(store)
    assert load_change(after, 0).unknown == "more than 3 quads may have changed"


def test_literals_that_are_gone_are_not_known(store: OxigraphStore) -> None:
    suite = Shapes(
        turtle("ex:S sh:targetClass ex:C ; sh:property [ sh:path ( ex:p [ sh:inversePath ex:q ] ) ; sh:maxCount 1 ] .")
    )
    graph, node = mint("graph", "user", "x"), NamedNode(EX + "n")
    p, q = NamedNode(EX + "p"), NamedNode(EX + "q")
    store.commit({graph: [Quad(node, RDF.type, NamedNode(EX + "C"), graph), Quad(node, p, Literal("x"), graph)]})
    other = mint("graph", "user", "y")
    both = [Quad(NamedNode(EX + name), q, Literal("x"), other) for name in "ab"]
    store.commit({other: both})
    before, _ = opened(store)
    assert len(suite.validate(DataGraph.from_store(before))) == 1
    store.commit({other: both[:1]})
    after, _ = opened(store)
    found = find_affected(suite, DataGraph.from_store(after), load_change(after, 2))
    assert found.nodes is not None
    assert node in found.nodes
    assert "subjects of literals" in found.whole[NamedNode(EX + "S")]


def test_a_literal_that_is_gone_is_no_target_any_more(store: OxigraphStore) -> None:
    suite = Shapes(turtle("ex:S sh:targetObjectsOf ex:p ; sh:nodeKind sh:IRI ."))
    graph, p = mint("graph", "user", "x"), NamedNode(EX + "p")
    store.commit({graph: [Quad(NODES[0], p, Literal("gone"), graph), Quad(NODES[0], p, Literal("kept"), graph)]})
    before, _ = opened(store)
    old = list(suite.results_by_target(DataGraph.from_store(before)))
    assert len(old) == 2
    store.commit({graph: [Quad(NODES[0], p, Literal("kept"), graph)]})
    after, _ = opened(store)
    data = DataGraph.from_store(after)
    found = find_affected(suite, data, load_change(after, 1))
    assert found.nodes is not None
    outdated = found.find_outdated(target for target, _ in old)
    kept = [each for each in old if outdated is not None and each[0] not in outdated]
    assert [str(target) for target, _ in (*kept, *suite.results_by_target(data, found.nodes))] == ['"kept"']
    other = find_affected(suite, data, Change(lost=frozenset(NODES), by=frozenset({NamedNode(EX + "q")})))
    assert other.find_outdated(target for target, _ in old) == frozenset()


def test_what_pyshacl_runs_is_validated_whole() -> None:
    suite = Shapes(turtle('ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:pattern "(?=a)b" ] .'))
    assert suite.uncompiled
    found = find_affected(suite, DataGraph.from_quads([]), Change())
    assert (found.nodes, found.why) == (None, f"pySHACL runs {EX}S")


def test_focus_nodes_of_a_candidate_may_be_blank() -> None:
    suite = Shapes(turtle("ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:minCount 1 ] ."))
    nodes: list[NamedNode | BlankNode] = [BlankNode(), BlankNode(), NamedNode(EX + "n")]
    data = [Quad(node, RDF.type, NamedNode(EX + "C"), DefaultGraph()) for node in nodes]
    absent: list[NamedNode | BlankNode] = [NamedNode(EX + "absent")]
    for chosen in ([nodes[0]], nodes[1:], nodes[2:], [], absent):
        found = {each.focus for each in suite.results(DataGraph.from_quads(data), chosen)}
        assert found == {node for node in chosen if node in nodes}


def test_a_run_with_many_results_keeps_none_of_them() -> None:
    suite = Shapes(
        turtle("ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:nodeKind sh:IRI ; sh:minCount 2 ] .")
    )
    store = Store()
    nodes = [NamedNode(f"{EX}n{number}") for number in range(10_000)]
    store.extend([Quad(node, RDF.type, NamedNode(EX + "C"), GRAPHS[0]) for node in nodes])
    store.extend([Quad(node, NamedNode(EX + "p"), Literal(node.value), GRAPHS[0]) for node in nodes])
    del nodes
    for graph in (GRAPHS[0], None):
        tracemalloc.start()
        try:
            count = sum(1 for _ in suite.results(DataGraph.from_store(store, graph)))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert count == 20_000
        assert peak < 1_000_000, "of 20 MB that the results would take"


def test_focus_nodes_are_looked_up_and_not_looked_for() -> None:
    """No query goes through all that has a class or a property, so the time depends on the focus nodes alone."""
    for name, said in OURS.items():
        engine_queries: list[str] = []
        store = Store()
        store.extend(list(records()))
        data = DataGraph.from_store(store)
        asked = data.select

        def rows(
            query: str, *, plain: bool = False, once: bool = False, asked: Any = asked, kept: list[str] = engine_queries
        ) -> Any:
            kept.append(query)
            return asked(query, plain=plain, once=once)

        data.select = rows  # type: ignore[method-assign]
        chosen = {quad.subject for quad in record("act")[1]}
        list(Shapes(said).results(data, chosen))
        assert engine_queries, name
        for query in engine_queries:
            assert "{ VALUES ?" in query or "rdfs:subClassOf+" in query, (name, query)


def test_commits_of_an_older_version_say_nothing(store: OxigraphStore) -> None:
    graph, held = record("act")
    store.commit({graph: held})
    after, _ = opened(store)
    bare = Store()
    bare.extend(quad for quad in after if quad.predicate != KG.removedCount)
    assert load_change(bare, 0).unknown == "commit 1 has no record of its removed quads"
    assert load_change(after, 0).unknown == ""


def test_a_commit_names_what_it_removed_and_links_to_nothing(store: OxigraphStore) -> None:
    graph, held = record("act", 1)
    store.commit({graph: held}, lambda changes: described(Triple(graph, RDF.type, KG.AssertedGraph)))
    [gone] = [quad for quad in held if quad.predicate == KG.jurisdiction]
    run = Triple(NamedNode("urn:run"), RDF.type, PROV.Activity)
    store.commit({graph: [quad for quad in held if quad != gone]}, lambda changes: described(run))
    after, _ = opened(store)
    assert load_removal(after, 1) == Removal()
    assert load_removal(after, 2) == Removal(
        frozenset({mint("document", "act"), mint("place", "NMK")}),
        frozenset({KG.jurisdiction}),
        frozenset({NamedNode("urn:run")}),
    )
    assert not list(after.quads_for_pattern(None, None, mint("place", "NMK"), None))
