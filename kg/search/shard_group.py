"""The shards that one process has open, answering as one. Arguments and results are plain data, as JSON can carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from kg.search.points import Filter, Point, VectorSpace
from kg.search.protocol import Conditions
from kg.search.shard import Hits, Shard, prepare

_DECIMALS: Final = 4
"""Scores are single precision, summed in any order: further digits are noise that would reorder equal scores."""


class ShardGroup:
    """Shards in `folder`. Any thread may read, without waiting for writes, of which the caller makes one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self.parts: dict[str, Shard] = {}
        """The shards by name."""
        self._reading: Final = ThreadPoolExecutor(1, "read-ahead")

    def open(self, name: str) -> dict[str, Any]:
        """Open a shard unless it is open, or make one, and describe it."""
        part = self.parts.get(name)
        if part is None:
            part = Shard(self._folder / name)
            self.parts = {**self.parts, name: part}
            self._reading.submit(part.read_vectors)
        space = None if part.space is None else [part.space.model, part.space.dimensions]
        return {"is_new": part.is_new, "fields": part.fields, "space": space}

    def begin(self, operation: str, hurried: bool = False, **arguments: Any) -> Callable[[], Any]:
        """Return the function that runs an operation, `hurried` or not."""
        return partial(getattr(self, operation), **arguments)

    # Reading

    def count(self, where: Filter | None) -> int:
        """Count the points that meet some conditions."""
        return sum(part.count(where) for part in self.parts.values())

    def count_stored(self) -> tuple[int, int]:
        """Count the units, and those with a vector."""
        parts = self.parts.values()
        return sum(part.count_units() for part in parts), sum(part.count_vectors() for part in parts)

    def count_texts(self) -> dict[str, int]:
        """Count the texts of each shard."""
        return {name: part.count_texts() for name, part in self.parts.items()}

    def count_values(self, field: str, where: Filter, limit: int) -> dict[str, int]:
        """Count the points that meet some conditions, by value of a field; exact below `limit` values."""
        found: dict[str, int] = {}
        for part in self.parts.values():
            for value, number in part.count_values(field, where, limit).items():
                found[value] = found.get(value, 0) + number
        return found

    def count_words(self, words: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, list[int]]]:
        """Count the texts of some fields, and those with each of some words."""
        found = {}
        for field, asked in words.items():
            counted = [part.counts.find(field, asked) for part in self.parts.values()]
            having = np.add.reduce([each for _, each in counted]) if counted else np.zeros(len(asked), np.int64)
            found[field] = sum(texts for texts, _ in counted), [*map(int, having)]
        return found

    def scroll(
        self, name: str, where: Filter, fields: Sequence[str], start: str | None, limit: int
    ) -> tuple[dict[str, Mapping[str, Any]], str | None]:
        """Load a page of the points of a shard that meet some conditions, and the id at which the next one starts."""
        return self.parts[name].scroll(where, fields, start, limit)

    def retrieve(self, ids: Sequence[str], fields: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Load fields of those points that are there, by id."""
        found: dict[str, Mapping[str, Any]] = {}
        for part in self.parts.values():
            if rest := [id_ for id_ in ids if id_ not in found]:
                found |= part.retrieve(rest, fields)
        return found

    def search_words(
        self, words: Mapping[str, tuple[Sequence[int], Sequence[float]]], where: Filter | None, limit: int
    ) -> dict[str, float]:
        """Score the best `limit` texts by the weighed words of each field."""
        prepared = prepare(where)
        return _merge(
            [
                part.search_words(field, *weighed, prepared, limit)
                for part in self.parts.values()
                for field, weighed in words.items()
            ],
            limit,
        )

    def search_vectors(
        self, vector: Sequence[float], where: Filter | None, limit: int, quantized: bool
    ) -> dict[str, float]:
        """Score the best `limit` texts by their cosines with a vector."""
        prepared, parts = prepare(where), self.parts.values()
        return _merge([part.search_vectors(vector, prepared, limit, quantized=quantized) for part in parts], limit)

    # Writing

    def put(self, name: str, points: Sequence[Point]) -> None:
        """Write at most UPDATE_POINTS points into a shard, each in place of the one there."""
        self.parts[name].put(points)

    def delete(self, ids: Sequence[str], also: Conditions = (), excluded: str | None = None) -> None:
        """Delete those of at most UPDATE_POINTS points that meet further conditions, in all shards except one."""
        for name, part in self.parts.items():
            if name != excluded and (there := part.find(ids)):
                part.delete(there, also)

    def set_vectors(self, vectors: Mapping[str, tuple[str, str]]) -> None:
        """Write the packed vectors of at most UPDATE_POINTS texts (id -> hash, vectors) that have that hash still."""
        for part in self.parts.values():
            part.set_vectors(vectors)

    def add_field(self, field: str) -> None:
        """Add a field of texts, unless the shards have it."""
        for part in self.parts.values():
            part.add_field(field)

    def use_space(self, model: str, dimensions: int) -> None:
        """Store vectors of a space from now on, and drop vectors of another one."""
        for part in self.parts.values():
            part.use_space(VectorSpace(model, dimensions))

    # Files

    def flush(self) -> None:
        """Flush the write-ahead logs, so that the next start does not replay them."""
        for part in self.parts.values():
            part.flush()

    def find_grown(self) -> str | None:
        """Find a shard that is to be optimized."""
        return next((name for name, part in self.parts.items() if part.needs_optimizing()), None)

    def optimize(self, name: str) -> bool:
        """Optimize a shard; see `Shard.optimize`."""
        return self.parts[name].optimize()

    def copy(self, name: str, target: str) -> dict[str, str]:
        """Copy the files of a shard; see `Shard.copy`."""
        return self.parts[name].copy(Path(target))

    def close(self) -> None:
        """Flush and close the files."""
        self._reading.shutdown(cancel_futures=True)
        for part in self.parts.values():
            part.close()


def _merge(found: Iterable[Hits], limit: int) -> dict[str, float]:
    """Read the best `limit` of all hits, or a few more that are as good as the last of these."""
    lists = [(each, np.asarray(each.scores)) for each in found if each.scores]
    scores = np.concatenate([each for _, each in lists]) if lists else np.empty(0)
    least = np.partition(scores, -limit)[-limit] if len(scores) > limit else -np.inf
    merged: dict[str, float] = {}
    for hits, each in lists:
        merged |= hits.read(int(np.count_nonzero(each >= least)))  # best first, so these are the first ones
    return dict(zip(merged, np.round([*merged.values()], _DECIMALS).tolist(), strict=True))
