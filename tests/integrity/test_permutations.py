"""Tests of reading each order of a store."""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from kg.integrity import permutations

ORDERS = ("GSPO", "SPOG", "POSG", "OSPG", "GPOS", "GOSP")


def node(name: object) -> NamedNode:
    return NamedNode(f"https://example.org/{name}")


@pytest.fixture(scope="module")
def store() -> Store:
    """Return a store with every kind of term; some triples are in two graphs."""
    store = Store()
    for number in range(300):
        subject = BlankNode(f"b{number}") if number % 7 == 0 else node(number % 40)
        value = [Literal(number), Literal(f"text {number % 50}", language="en"), node(number % 30), BlankNode("o")]
        for graph in {number % 3, number % 5}:
            store.add(Quad(subject, node(f"p{number % 4}"), value[number % 4], node(f"graph/{graph}")))
    return store


@pytest.mark.parametrize("slices", [1, 2, 3, 16, 256])
@pytest.mark.parametrize("order", ORDERS)
def test_slices_have_each_quad_once(store: Store, order: str, slices: int) -> None:
    assert permutations.count_quads(store, order, slices=slices) == len(store)


def test_no_order_of_an_empty_store_has_quads() -> None:
    assert dict(permutations.read_all_orders(Store())) == dict.fromkeys(ORDERS, 0)


@pytest.mark.parametrize("most", [1, 100, 10_000])
def test_all_orders_are_equally_long(store: Store, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permutations, "MOST_AT_ONCE", most)
    assert dict(permutations.read_all_orders(store)) == dict.fromkeys(ORDERS, len(store))
