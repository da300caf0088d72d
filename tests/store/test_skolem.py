"""Blank nodes get names from what is said of them: the same for the same, others for others, and never for ever."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, CanonicalizationAlgorithm, Dataset, Literal, NamedNode, Quad, Triple

from kg.errors import InvalidInputError
from kg.store.skolem import GENID, skolemize
from tests.examples import dear

GRAPH, OTHER = NamedNode("urn:g/a"), NamedNode("urn:g/b")
P, Q = NamedNode("urn:p"), NamedNode("urn:q")
S = NamedNode("urn:s")

NODES = st.integers(0, 4).map(lambda n: BlankNode(f"n{n}"))
TRIPLES = st.lists(
    st.builds(Triple, st.one_of(NODES, st.just(S)), st.sampled_from([P, Q]), st.one_of(NODES, st.just(Literal("x")))),
    max_size=7,
)


def names(triples: list[Triple]) -> set[NamedNode]:
    found = {term for triple in triples for term in (triple.subject, triple.object) if isinstance(term, NamedNode)}
    return {name for name in found if name.value.startswith(GENID)}


def relabelled(triples: list[Triple], by: dict[BlankNode, BlankNode]) -> list[Triple]:
    def of(term: object) -> object:
        return by.get(term, term) if isinstance(term, BlankNode) else term

    return [Triple(of(t.subject), t.predicate, of(t.object)) for t in triples]  # type: ignore[arg-type]


def unnamed(triples: list[Triple]) -> Dataset:
    """The triples with a blank node again for each name, in canonical form."""
    nodes = {name: BlankNode() for name in names(triples)}
    quads = (
        Quad(nodes.get(t.subject, t.subject), t.predicate, nodes.get(t.object, t.object))  # type: ignore[arg-type]
        for t in triples
    )
    return canonical(Dataset(quads))


def canonical(dataset: Dataset) -> Dataset:
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return dataset


@settings(max_examples=dear(200))
@given(TRIPLES, st.permutations(range(5)), st.randoms(use_true_random=False))
def test_names_depend_on_what_is_said_not_on_labels_or_order(
    triples: list[Triple], order: list[int], chance: object
) -> None:
    shuffled = relabelled(triples, {BlankNode(f"n{n}"): BlankNode(f"m{order[n]}") for n in range(5)})
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert set(skolemize(GRAPH, triples)) == set(skolemize(GRAPH, shuffled))


@settings(max_examples=dear(200))
@given(TRIPLES)
def test_naming_loses_and_adds_nothing(triples: list[Triple]) -> None:
    named = skolemize(GRAPH, triples)
    assert not any(isinstance(term, BlankNode) for triple in named for term in (triple.subject, triple.object))
    expected = canonical(Dataset(Quad(t.subject, t.predicate, t.object) for t in triples))
    assert unnamed(named) == expected


def test_the_same_in_another_graph_is_another_node() -> None:
    triples = [Triple(BlankNode("a"), P, Literal(1))]
    assert not names(skolemize(GRAPH, triples)) & names(skolemize(OTHER, triples))


def test_a_change_beside_a_node_leaves_its_name() -> None:
    stays = Triple(BlankNode("a"), P, Literal(1))
    one = skolemize(GRAPH, [stays, Triple(BlankNode("b"), P, Literal(2))])
    two = skolemize(GRAPH, [stays, Triple(BlankNode("b"), P, Literal(3))])
    assert len(set(one) & set(two)) == 1


def test_equal_nodes_stay_as_many_as_they_are() -> None:
    assert len(skolemize(GRAPH, [Triple(BlankNode(f"a{n}"), P, Literal("same")) for n in range(50)])) == 50


def test_nodes_within_triple_terms_are_named_too() -> None:
    node = BlankNode("a")
    [triple] = skolemize(GRAPH, [Triple(S, P, Triple(node, Q, node))])
    assert str(triple).count(GENID) == 2
    assert "_:" not in str(triple)


@pytest.mark.measures_processor_time
@pytest.mark.parametrize("nodes", [8, 40])
def test_a_graph_made_to_take_for_ever_is_refused_at_once(nodes: int) -> None:
    clique = [Triple(BlankNode(f"n{a}"), P, BlankNode(f"n{b}")) for a, b in itertools.permutations(range(nodes), 2)]
    begun = time.thread_time()
    with pytest.raises(InvalidInputError, match=f"blank nodes: {nodes}"):
        skolemize(GRAPH, clique)
    assert time.thread_time() - begun < 2


def test_a_long_chain_of_equal_nodes_takes_no_recursion_and_bounded_work() -> None:
    def chain(length: int) -> list[Triple]:
        return [Triple(BlankNode(f"n{n}"), P, BlankNode(f"n{n + 1}")) for n in range(length)]

    assert len(names(skolemize(GRAPH, chain(200)))) == 201
    with pytest.raises(InvalidInputError, match="too complex"):
        skolemize(GRAPH, chain(5_000))
