"""Ids of points, hits of searches, and where points were found."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.search import points
from kg.search.points import Hits, Ids, Places, compute_id

NAMES = ("a", "b", "c")


def ids(*found: int) -> Ids:
    return np.array(found, np.int64)


def test_points_are_looked_for_where_they_were_found_and_others_everywhere() -> None:
    places = Places[str]()
    places.note(1, "a", ids(7, 1, 2))
    places.note(1, "b", ids(3))
    assert places.divide(1, [1, 2, 3], NAMES) == {"a": [1, 2], "b": [3]}
    assert places.divide(1, [3, 4], NAMES) == {"a": [4], "b": [3, 4], "c": [4]}
    assert places.divide(1, [], NAMES) == {}


def test_places_are_forgotten_at_an_update_and_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places[str]()
    places.note(1, "a", ids(1))
    assert places.divide(2, [1], NAMES) == {name: [1] for name in NAMES}
    places.note(2, "b", ids(2))
    assert places.divide(2, [1, 2], ["a", "b"]) == {"a": [1], "b": [2, 1]}
    monkeypatch.setattr(points, "_MOST_PLACES", 0)
    places.note(2, "b", ids(3))
    assert places.divide(2, [2, 3], ["a", "b"]) == {"a": [2], "b": [3, 2]}
    monkeypatch.setattr(points, "_MOST_PLACES", 10)
    monkeypatch.setattr(points, "_MOST_PARTS", 1)
    places.note(2, "a", ids(4))
    assert places.divide(2, [3, 4], ["a", "b"]) == {"a": [4, 3], "b": [3]}


HITS = st.lists(st.tuples(st.integers(0, 2**63 - 1), st.floats(-1, 50, width=32)), unique_by=lambda hit: hit[0])


@given(parts=st.lists(HITS, max_size=4), number=st.integers(0, 20))
def test_joined_hits_are_ordered_and_can_be_sent(parts: list[list[tuple[int, float]]], number: int) -> None:
    made = [Hits(ids(*(id_ for id_, _ in part)), np.array([score for _, score in part], np.float64)) for part in parts]
    joined = Hits.join(made)
    expected = sorted((hit for part in parts for hit in part), key=lambda hit: (-hit[1], hit[0]))
    assert [*zip(joined.ids.tolist(), joined.scores.tolist(), strict=True)] == expected
    sent = Hits.decode(json.loads(json.dumps(joined.encode())))
    assert (sent.ids == joined.ids).all()
    assert (sent.scores == joined.scores).all()
    assert joined.cut(number).ids.tolist() == [id_ for id_, _ in expected[:number]]
    some = {id_ for id_, _ in expected[::2]}
    assert joined.keep(ids(*some)).ids.tolist() == [id_ for id_, _ in expected if id_ in some]
    assert joined.drop(ids(*some)).ids.tolist() == [id_ for id_, _ in expected if id_ not in some]


@given(iri=st.text(), key=st.binary(min_size=16, max_size=16))
def test_the_id_of_an_iri_depends_on_the_key(iri: str, key: bytes) -> None:
    assert 0 <= compute_id(iri, key) < 2**63
    assert compute_id(iri, key) == compute_id(iri, key)
    other = bytes([key[0] ^ 1]) + key[1:]
    assert compute_id(iri, key) != compute_id(iri, other)
