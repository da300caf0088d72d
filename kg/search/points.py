"""Points of a shard, conditions on them and hits, as plain data that can be sent to another process as JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Generic, Literal, NotRequired, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from kg.search.protocol import Codes
from kg.search.vector_cache import Rows

UPDATE_POINTS: Final = 200
"""Points per update: 3,000 hold the GIL for 132 ms, 200 for some 10 ms."""

DENSE: Final = "dense"
"""Vectors by the first model, of texts in a language that it knows and of texts of unknown language."""
OTHER: Final = "other"
"""Vectors by the second model, of texts in a language that it knows and the first one does not."""
ALSO: Final = "also"
"""Vectors by the second model, of texts that have one by the first: for queries in a language that it does not know."""

SLOTS: Final = {DENSE: 0, OTHER: 1, ALSO: 1}
"""The spaces of vectors, by name, with the number of the model of each. A text may have several vectors in one."""


def get_names(space: str) -> tuple[str, str]:
    """Get the names of the vector of a text that has one in a space, and of those of a text that has several.

    Of several, the best one is the score. The engine takes twice the time to compare a vector by that name.
    """
    return space, f"{space}_rows"


Precision = Literal["original", "rescored", "quantized"]
"""The vectors that are compared: the original ones, the quantized ones and then the original ones of the best units, or
the quantized ones alone."""

_MOST_PLACES: Final = 100_000
"""Points whose places are kept, of 8 bytes each."""
_MOST_PARTS: Final = 64
"""Searches whose points they are."""
_ID_BITS: Final = 63
_PART_BITS: Final = 10
"""Bits of the id of a point that have the number of a part of a text (`kg.search.parts`)."""

Ids = NDArray[np.int64]
"""Ids of points."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The model and dimensions of the stored vectors. Vectors of different spaces cannot be compared."""

    model: str
    dimensions: int


class Filter(TypedDict):
    """A point meets all of these conditions. Without any, every point does."""

    fields: NotRequired[Sequence[Codes]]
    """For each, it has one of the values of one of the fields. Without a value, no point does."""
    ids: NotRequired[Sequence[int]]
    """It is one of these."""
    having: NotRequired[Sequence[str]]
    """It has vectors in all of these spaces."""
    lacking: NotRequired[Sequence[str]]
    """It lacks vectors in at least one of these spaces."""


class Point(TypedDict):
    """A text unit, or the marker of a graph."""

    id: int
    payload: Mapping[str, Any]
    field: NotRequired[str]
    """The field of the payload that is searched by words (`kg.search.analyzers`)."""
    vectors: NotRequired[Mapping[str, str]]
    """Its vectors by space, as `pack` encodes them."""


LANGUAGE: Final = "primary_language"
"""The field of the payload with the language of a unit: a primary subtag (BCP 47), `UNKNOWN` or `WORDLESS`."""

UNIT: Final[Codes] = {"kind": ["unit"]}
"""The condition that a point is a text unit, or the first part of one."""
PART: Final[Codes] = {"kind": ["part"]}
"""The condition that a point is a further part of a text unit."""
TEXT: Final[Codes] = {"kind": ["unit", "part"]}


def compute_id(iri: str, key: bytes) -> int:
    """Compute the id of the first point of an IRI: a hash of 53 bits. Those of further parts of its text follow it.

    Without the secret key of the index, nobody can make an IRI that has the id of another one, and so takes its place.
    By chance, two of a million have the same id in one of 18,000 indexes.
    """
    hashed = int.from_bytes(blake2b(iri.encode(), digest_size=8, key=key).digest(), "big")
    return hashed >> (64 - _ID_BITS + _PART_BITS) << _PART_BITS


def get_first(id_: int) -> int:
    """Get the id of the first point of the unit of a point."""
    return id_ >> _PART_BITS << _PART_BITS


def get_firsts(ids: Ids) -> Ids:
    """Get the id of the first point of the unit of each point."""
    firsts: Ids = ids >> _PART_BITS << _PART_BITS
    return firsts


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """The points that a search found, with their scores, best first."""

    ids: Ids
    scores: Floats

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def least(self) -> float:
        """The score of the last one."""
        return float(self.scores[-1])

    def cut(self, number: int) -> Hits:
        """Return the first ones."""
        return self if number >= len(self) else Hits(self.ids[:number], self.scores[:number])

    def by_unit(self) -> Hits:
        """Return the best point of each unit, as its first point."""
        firsts = get_firsts(self.ids)
        if not (firsts != self.ids).any():
            return self
        units, places = np.unique(firsts, return_index=True)
        order = np.argsort(places)
        return Hits(units[order], self.scores[places[order]])

    def keep(self, among: Ids) -> Hits:
        """Return those that are among some points."""
        return self.select(np.isin(self.ids, among))

    def drop(self, among: Ids) -> Hits:
        """Return those that are not among some points."""
        return self.select(np.isin(self.ids, among, invert=True))

    def select(self, kept: NDArray[np.bool_]) -> Hits:
        """Return those that are marked."""
        return Hits(self.ids[kept], self.scores[kept])

    def encode(self) -> dict[str, str]:
        """Encode the hits for another process."""
        return {name: base64.b64encode(getattr(self, name).tobytes()).decode("ascii") for name in ("ids", "scores")}

    @staticmethod
    def decode(encoded: Mapping[str, str]) -> Hits:
        """Decode what `encode` returned."""
        ids, scores = (base64.b64decode(encoded[name]) for name in ("ids", "scores"))
        return Hits(np.frombuffer(ids, np.int64), np.frombuffer(scores, np.float64))

    @staticmethod
    def join(parts: Iterable[Hits]) -> Hits:
        """Join the hits of several searches, equal scores by id."""
        joined = [part for part in parts if len(part)] or [NO_HITS]
        ids, scores = np.concatenate([each.ids for each in joined]), np.concatenate([each.scores for each in joined])
        order = np.lexsort((ids, -scores))
        return Hits(ids[order], scores[order])


NO_HITS: Final = Hits(np.empty(0, np.int64), np.empty(0, np.float64))

T = TypeVar("T")


class Places(Generic[T]):
    """Where points were found, until the next update: to look up a point costs as much in a shard that lacks it."""

    def __init__(self) -> None:
        self._known: tuple[int, tuple[tuple[T, Ids], ...]] = -1, ()

    def note(self, written: int, place: T, ids: Ids) -> None:
        """Note where points were found after `written` updates."""
        noted, known = self._known
        if not len(ids):
            return
        if noted != written or len(known) >= _MOST_PARTS or sum(len(each) for _, each in known) > _MOST_PLACES:
            known = ()
        self._known = written, ((place, np.sort(ids)), *known)

    def divide(self, written: int, ids: Sequence[int], places: Iterable[T]) -> dict[T, Sequence[int]]:
        """Divide points among the places where they are. Those that were not found since are looked for in each."""
        noted, known = self._known
        lost = np.unique(np.asarray(ids, np.int64))
        own: dict[T, list[int]] = {}
        for place, found in known if noted == written else ():
            if not len(lost):
                break
            there = found[np.minimum(np.searchsorted(found, lost), len(found) - 1)] == lost
            own.setdefault(place, []).extend(lost[there].tolist())
            lost = lost[~there]
        rest = lost.tolist()
        return {place: asked for place in places if (asked := [*own.get(place, ()), *rest])}


def pack(rows: Rows) -> str:
    """Encode vectors as a string."""
    return base64.b64encode(rows.astype("<f2").tobytes()).decode("ascii")


def unpack(text: str, dimensions: int) -> list[list[float]]:
    """Decode vectors to the lists that a shard takes."""
    rows: list[list[float]] = (
        np.frombuffer(base64.b64decode(text), "<f2").reshape(-1, dimensions).astype(np.float32).tolist()
    )
    return rows
