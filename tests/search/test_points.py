"""Points are looked for where they were found, until the next update."""

from __future__ import annotations

import pytest

from kg.search import points
from kg.search.points import Places

NAMES = ("a", "b", "c")


def test_points_are_looked_for_where_they_were_found_and_others_everywhere() -> None:
    places = Places[str]()
    places.note(1, "a", ["1", "2"])
    places.note(1, "b", ["3"])
    assert places.divide(1, ["1", "2", "3"], NAMES) == {"a": ["1", "2"], "b": ["3"]}
    assert places.divide(1, ["3", "4"], NAMES) == {"a": ["4"], "b": ["3", "4"], "c": ["4"]}
    assert places.divide(1, [], NAMES) == {}


def test_places_are_forgotten_at_an_update_and_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places[str]()
    places.note(1, "a", ["1"])
    assert places.divide(2, ["1"], NAMES) == {name: ["1"] for name in NAMES}
    places.note(2, "b", ["2"])
    assert places.divide(2, ["1", "2"], ["a", "b"]) == {"a": ["1"], "b": ["2", "1"]}
    monkeypatch.setattr(points, "_MOST_PLACES", 0)
    places.note(2, "b", ["3"])
    assert places.divide(2, ["2", "3"], ["a", "b"]) == {"a": ["2"], "b": ["3", "2"]}
