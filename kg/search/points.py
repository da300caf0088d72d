"""Points of a shard, and conditions on them, as plain data that can be sent to another process as JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NotRequired, TypedDict, TypeVar

import numpy as np

from kg.search.protocol import Codes
from kg.search.vector_cache import Rows

UPDATE_POINTS: Final = 200
"""Points per update: 3,000 hold the GIL for 132 ms, 200 for some 10 ms."""

DENSE: Final = "dense"
"""The name of the vector of the meaning of a text that has one."""

DENSE_ROWS: Final = "dense_rows"
"""The name of the vectors of a text that has several, of which the best one is its score.

The engine compares a vector by this name in twice the time of one by the other.
"""

MEANINGS: Final = (DENSE, DENSE_ROWS)
"""A text has at most one of these."""

_MOST_PLACES: Final = 100_000
"""Points whose places are kept, some 150 bytes each."""


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The model and dimensions of the stored vectors. Vectors of different spaces cannot be compared."""

    model: str
    dimensions: int


class Filter(TypedDict):
    """A point meets all of these conditions. Without any, every point does."""

    fields: NotRequired[Sequence[Codes]]
    """For each, it has one of the values of one of the fields. Without a value, no point does."""
    ids: NotRequired[Sequence[str]]
    """It is one of these."""
    has_vector: NotRequired[bool]
    """It has a vector of its meaning, or none."""


class Point(TypedDict):
    """A text unit, or the marker of a graph."""

    id: str
    payload: Mapping[str, Any]
    field: NotRequired[str]
    """The field of the payload that is searched by words (`kg.search.analyzers`)."""
    vectors: NotRequired[str]
    """Its vectors, as `pack` encodes them."""


UNIT: Final[Codes] = {"kind": ["unit"]}
"""The condition that a point is a text unit."""


T = TypeVar("T")


class Places(Generic[T]):
    """Where points were found, until the next update: to look up a point costs as much in a shard that lacks it."""

    def __init__(self) -> None:
        self._known: tuple[int, dict[str, T]] = -1, {}

    def note(self, written: int, place: T, ids: Iterable[str]) -> None:
        """Note where points were found after `written` updates."""
        known = self._known
        if known[0] != written or len(known[1]) > _MOST_PLACES:
            self._known = known = written, {}
        known[1].update(dict.fromkeys(ids, place))

    def divide(self, written: int, ids: Sequence[str], places: Iterable[T]) -> dict[T, Sequence[str]]:
        """Divide points among the places where they are. Those that were not found since are looked for in each."""
        noted, known = self._known
        if noted != written:
            known = {}
        own: dict[T | None, list[str]] = {}
        for id_ in ids:
            own.setdefault(known.get(id_), []).append(id_)
        lost = own.pop(None, [])
        return {place: found for place in places if (found := [*own.get(place, ()), *lost])}


def pack(rows: Rows) -> str:
    """Encode vectors as a string."""
    return base64.b64encode(rows.astype("<f2").tobytes()).decode("ascii")


def unpack(text: str, dimensions: int) -> list[list[float]]:
    """Decode vectors to the lists that a shard takes."""
    rows: list[list[float]] = (
        np.frombuffer(base64.b64decode(text), "<f2").reshape(-1, dimensions).astype(np.float32).tolist()
    )
    return rows
