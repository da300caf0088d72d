"""Shared graphs exist only while a record refers to them, directly or through other shared graphs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import GraphChange, Patch
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, mint
from tests.examples import dear
from tests.store.conftest import counters, recount, titles

P = KG.relatesTo


def content(store: OxigraphStore) -> set[Quad]:
    """Everything but graph/prov."""
    return {quad for graph in store.graphs() if graph != PROV_GRAPH for quad in store.graph(graph)}


def shared(name: str, *refers_to: str) -> tuple[NamedNode, list[Quad]]:
    graph = mint("graph", "ref", "place", name)
    place = mint("place", name)
    return graph, [
        Quad(place, DCTERMS.title, Literal(name), graph),
        *(Quad(place, P, mint("place", other), graph) for other in refers_to),
    ]


def record(name: str, *places: str) -> tuple[NamedNode, list[Quad]]:
    graph, quads = titles(name, name)
    return graph, [*quads, *(Quad(mint("document", name), P, mint("place", place), graph) for place in places)]


def shared_left(store: OxigraphStore) -> set[str]:
    return {graph.value.rpartition("/")[2] for graph in store.graphs() if "/graph/ref/" in graph.value}


def test_a_shared_graph_goes_with_its_last_reference_and_takes_its_provenance_along(store: OxigraphStore) -> None:
    place = shared("X")[0]
    node = mint("run", "derivation")

    def describe(_: Sequence[GraphChange]) -> Patch:
        return Patch(
            add=frozenset({
                Quad(place, PROV.wasGeneratedBy, KG.run, PROV_GRAPH),
                Quad(place, PROV.qualifiedDerivation, node, PROV_GRAPH),
                Quad(node, KG.sourceRows, Literal("1-3"), PROV_GRAPH),
                Quad(titles("a")[0], PROV.wasGeneratedBy, KG.run, PROV_GRAPH),
            })
        )  # fmt: skip

    store.commit(dict([shared("X"), record("a", "X"), record("b", "X")]), describe)
    store.commit(dict([record("a")]))
    assert shared_left(store) == {"X"}, "b still refers to it"
    result = store.commit({record("b")[0]: ()})
    assert shared_left(store) == set()
    assert {change.graph for change in result.changes} == {record("b")[0], place}
    assert [change.removed for change in result.changes if change.graph == place] == [frozenset(shared("X")[1])]
    about = {quad.subject for quad in store.graph(PROV_GRAPH) if quad.predicate != KG.touched}
    assert place not in about
    assert node not in about
    assert titles("a")[0] in about
    assert counters(store) == recount(store)


def test_a_reference_that_the_same_commit_puts_elsewhere_keeps_the_shared_graph(store: OxigraphStore) -> None:
    store.commit(dict([shared("X"), record("a", "X")]))
    store.commit(dict([record("a"), record("b", "X")]))
    assert shared_left(store) == {"X"}


def test_shared_graphs_go_in_chains_and_in_circles(store: OxigraphStore) -> None:
    store.commit(
        dict([shared("X", "Y"), shared("Y", "Z"), shared("Z", "Y"), shared("W"), record("a", "X"), record("b", "W")])
    )
    store.commit(dict([record("a", "Y")]))
    assert shared_left(store) == {"Y", "Z", "W"}, "only X lost its last reference"
    store.commit({record("a")[0]: ()})
    assert shared_left(store) == {"W"}, "Y and Z refer to each other alone"


def test_a_shared_graph_that_lives_keeps_alive_what_it_refers_to(store: OxigraphStore) -> None:
    links = [shared("X", "Y"), shared("Y", "Z"), shared("Z")]
    store.commit(dict([*links, record("a", "Y"), record("b", "X")]))
    store.commit(dict([record("a")]))
    assert shared_left(store) == {"X", "Y", "Z"}, "b refers to X, X to Y, Y to Z"


def test_what_only_a_derived_graph_refers_to_goes_with_it_and_takes_along_what_only_it_refers_to(
    store: OxigraphStore,
) -> None:
    derived, quads = mint("graph", "der", "a"), [shared("X", "Y"), shared("Y"), shared("Z", "Y"), shared("W")]
    edge = Quad(mint("document", "a"), P, mint("place", "X"), derived)
    store.commit(dict([*quads, record("a", "Y", "Z"), record("b", "W"), (derived, [edge])]))
    store.commit(dict([record("a")]))
    assert shared_left(store) == {"X", "Y", "W"}, "the derived graph refers to X, X to Y"
    store.commit({record("b")[0]: ()}, lambda _: Patch(graphs={derived: ()}))
    assert shared_left(store) == set()
    assert counters(store) == recount(store)


def test_what_graph_prov_says_keeps_no_shared_graph_alive(store: OxigraphStore) -> None:
    def describe(_: Sequence[GraphChange]) -> Patch:
        return Patch(add=frozenset({Quad(KG.run, PROV.used, mint("place", "X"), PROV_GRAPH)}))

    store.commit(dict([shared("X"), record("a", "X")]), describe)
    store.commit({record("a")[0]: ()})
    assert shared_left(store) == set()


def test_what_a_commit_says_of_a_shared_graph_itself_stands(store: OxigraphStore) -> None:
    store.commit(dict([shared("X"), shared("Y"), record("a", "X", "Y"), record("b", "Y")]))
    store.commit(dict([record("a"), shared("X"), (shared("Y")[0], [])]))
    assert shared_left(store) == {"X"}


def test_an_update_collects_what_it_orphans(store: OxigraphStore) -> None:
    store.commit(dict([shared("X"), record("a", "X")]))
    result = store.update(f"DROP GRAPH {record('a')[0]}")
    assert shared_left(store) == set()
    assert {change.graph for change in result.changes} == {record("a")[0], shared("X")[0]}


NAMES = st.sampled_from("abc")
PLACES = st.lists(st.sampled_from("VWXYZ"), max_size=3, unique=True)
STEPS = st.lists(
    st.one_of(
        st.dictionaries(NAMES, st.one_of(st.none(), PLACES), min_size=1).map(lambda step: ("records", step)),
        st.tuples(NAMES, st.integers(0, 3)).map(lambda step: ("update", step)),
    ),
    max_size=6,
)


@pytest.mark.long
@settings(max_examples=dear(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(links=st.dictionaries(st.sampled_from("VWXYZ"), PLACES), steps=STEPS)
def test_counters_and_shared_graphs_are_right_after_any_steps(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, list[str]], steps: list[tuple[str, object]]
) -> None:
    """Against a model: a shared graph lives if a record that ever stood here refers to it, directly or not, today."""
    with OxigraphStore(tmp_path_factory.mktemp("any")) as store:
        records: dict[str, list[str]] = {}
        for kind, step in steps:
            if kind == "update":
                name, number = step  # type: ignore[misc]
                store.update(f"INSERT DATA {{ GRAPH <urn:g{name}> {{ <urn:s> <urn:p> {number} }} }}")
                continue
            wanted = dict(step)  # type: ignore[call-overload]
            replace = {}
            for name, places in wanted.items():
                graph, quads = record(name, *(places or ()))
                replace[graph] = [] if places is None else quads
            reached = reachable([place for places in wanted.values() for place in places or ()], links)
            replace |= dict(shared(place, *links.get(place, ())) for place in reached)
            store.commit(replace)
            for name, places in wanted.items():
                records.pop(name, None)
                if places is not None:
                    records[name] = places
            assert shared_left(store) == reachable([place for places in records.values() for place in places], links)
        assert counters(store) == recount(store)
        before = store.statistics(), content(store)
        folder = store.directory.path
    with OxigraphStore(folder) as store:
        assert (store.statistics().generation, content(store)) == (before[0].generation, before[1])
        assert counters(store) == recount(store)


def reachable(places: list[str], links: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    while places:
        place = places.pop()
        if place not in found:
            found.add(place)
            places.extend(links.get(place, ()))
    return found
