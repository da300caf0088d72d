"""Tests of reading each order of a store."""

from __future__ import annotations

from pathlib import Path

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
@pytest.mark.parametrize("order", ["SPOG", "OSPG", "GPOS", "GOSP"])
def test_slices_have_each_quad_once(store: Store, order: str, slices: int) -> None:
    assert permutations.count_quads(store, order, slices=slices) == len(store)


def test_no_order_of_an_empty_store_has_quads() -> None:
    assert dict(permutations.read_all_orders(Store())) == dict.fromkeys(ORDERS, 0)


@pytest.mark.parametrize("most", [1, 100, 10_000])
def test_all_orders_are_equally_long(store: Store, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permutations, "MOST_AT_ONCE", most)
    assert dict(permutations.read_all_orders(store)) == dict.fromkeys(ORDERS, len(store))


@pytest.mark.long
def test_slices_find_the_same_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Store(tmp_path)
    graphs = [node(f"graph/{number}") for number in range(20)]
    written.bulk_extend(Quad(node(n), node(f"p{n % 9}"), Literal(f"{n} " * 30), graphs[n % 20]) for n in range(4_000))
    written.flush()
    del written
    damaged_orders = set()
    for file in sorted(file for file in tmp_path.glob("*.sst") if file.stat().st_size > 10_000):
        whole = file.read_bytes()
        file.write_bytes(whole[:200] + bytes(byte ^ 255 for byte in whole[200:240]) + whole[240:])
        found = {}
        for most in (2_000, 1_000_000):
            monkeypatch.setattr(permutations, "MOST_AT_ONCE", most)
            orders = permutations.read_all_orders(Store.read_only(str(tmp_path)))
            found[most] = {order: read for order, read in orders if isinstance(read, str)}
        assert found[2_000].keys() >= found[1_000_000].keys()  # slices also read the terms
        damaged_orders |= found[1_000_000].keys()
        file.write_bytes(whole)
    assert damaged_orders == {*ORDERS}
