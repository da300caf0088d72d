"""The shards that one process has open, answering as one. Arguments and results are plain data, as JSON can carry."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from kg.search.conditions import Prepared, prepare
from kg.search.points import NO_HITS, Filter, Floats, Hits, Places, Point, Precision, VectorSpace
from kg.search.protocol import Conditions
from kg.search.shard import Shard

_DECIMALS: Final = 4
"""Scores are single precision, summed in any order: further digits are noise that would reorder equal scores."""


_AHEAD: Final = 2
"""How many times the hits that are asked for a list has: it is asked again for so many, and a scan takes longest."""
_MOST_AHEAD: Final = 4_096
"""Hits of a list from which on no more are asked for: each takes a microsecond."""
_UNEVEN: Final = 1.5
"""How many times its share of the best hits a shard is asked for. One that has more of them is asked again."""
_MOST_HITS: Final = 200_000
"""Hits of all lists that are kept, of 16 bytes each. The last list is always kept."""
_MOST_LISTS: Final = 64
"""Lists that are kept. A query has one for each group of languages, and they are counted at each search."""


@dataclass(slots=True)
class _List:
    """The best hits of a search in each shard, so far as they were asked for."""

    written: int
    """Number of updates of the shards before it was begun."""
    asked: dict[str, int] = field(default_factory=dict)
    hits: dict[str, Hits] = field(default_factory=dict)
    """By shard; fewer than were asked for if there are no more."""

    def may_lack(self, name: str, number: int) -> bool:
        """Return whether the first `number` hits of a shard are not all there."""
        asked = self.asked.get(name, 0)
        return asked < number and (not asked or len(self.hits[name]) >= asked)

    def count(self) -> int:
        """Count the hits."""
        return sum(map(len, self.hits.values()))


class ShardGroup:
    """Shards in `folder`. Any thread may read, without waiting for writes, of which the caller makes one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self.parts: dict[str, Shard] = {}
        """The shards by name."""
        self._reading: Final = ThreadPoolExecutor(1, "read-ahead")
        self._places: Final = Places[str]()
        self._lists: Final[OrderedDict[object, _List]] = OrderedDict()
        """The last lists, which a ranking asks for more hits than before."""
        self._listing: Final = Lock()

    def open(self, name: str) -> dict[str, Any]:
        """Open a shard unless it is open, or make one, and describe it."""
        part = self.parts.get(name)
        if part is None:
            part = Shard(self._folder / name)
            self.parts = {**self.parts, name: part}
            self._reading.submit(part.read_vectors)
        spaces = {each: [space.model, space.dimensions] for each, space in part.spaces.items()}
        return {"is_new": part.is_new, "fields": part.fields, "spaces": spaces}

    def begin(self, operation: str, hurried: bool = False, **arguments: Any) -> Callable[[], Any]:
        """Return the function that runs an operation, `hurried` or not."""
        return partial(getattr(self, operation), **arguments)

    # Reading

    def count(self, where: Filter | None) -> int:
        """Count the points that meet some conditions."""
        return sum(part.count(where) for part in self.parts.values())

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
        for name, asked in words.items():
            counted = [part.counts.find(name, asked) for part in self.parts.values()]
            having = np.add.reduce([each for _, each in counted]) if counted else np.zeros(len(asked), np.int64)
            found[name] = sum(texts for texts, _ in counted), [*map(int, having)]
        return found

    def scroll(
        self, name: str, where: Filter, fields: Sequence[str], start: int | None, limit: int
    ) -> tuple[list[tuple[int, Mapping[str, Any]]], int | None]:
        """Load a page of the points of a shard that meet some conditions, and the id at which the next one starts."""
        page, following = self.parts[name].scroll(where, fields, start, limit)
        return [*page.items()], following

    def retrieve(self, ids: Sequence[int], fields: Sequence[str]) -> list[tuple[int, Mapping[str, Any]]]:
        """Load fields of those points that are there, with their ids."""
        found: dict[int, Mapping[str, Any]] = {}
        for name, own in self._places.divide(self._written, ids, self.parts).items():
            if rest := [id_ for id_ in own if id_ not in found]:
                found |= self.parts[name].retrieve(rest, fields)
        return [*found.items()]

    def search_words(
        self, words: Mapping[str, tuple[Sequence[int], Sequence[float]]], where: Filter | None, limit: int
    ) -> dict[str, str]:
        """Score the best `limit` texts by the weighed words of each field. Returns encoded hits."""

        def search(part: Shard, prepared: Prepared, most: int) -> Hits:
            found = [part.search_words(name, *weighed, prepared, most) for name, weighed in words.items()]
            return found[0] if len(found) == 1 else Hits.join(found).cut(most)

        return self._search(("words", repr(words), repr(where)), search, where, limit)

    def search_vectors(
        self, space: str, vector: Sequence[float], where: Filter | None, limit: int, precision: Precision
    ) -> dict[str, str]:
        """Score the best `limit` texts by their cosines with a vector of a space. Returns encoded hits."""

        def search(part: Shard, prepared: Prepared, most: int) -> Hits:
            return part.search_vectors(space, vector, prepared, most, precision=precision)

        # To compare quantized vectors again takes less time than to score as many units more by the original ones.
        ahead = 1 if precision == "rescored" else _AHEAD
        return self._search((space, (*vector,), precision, repr(where)), search, where, limit, ahead)

    def _search(
        self,
        key: object,
        search: Callable[[Shard, Prepared, int], Hits],
        where: Filter | None,
        limit: int,
        ahead: int = _AHEAD,
    ) -> dict[str, str]:
        """Merge the best `limit` hits of all shards. `key` is the same for the same search with another limit."""
        parts = self.parts
        if where is not None and "ids" in where:  # of which all are asked for
            own = self._divide(where)
            return _join(search(parts[name], each, limit) for name, each in own.items()).cut(limit).encode()
        prepared = prepare(where)
        written = self._written
        with self._listing:
            found = self._lists.pop(key, None)  # so no other search uses it at the same time
        if found is None or found.written != written:
            found = _List(written)
        least = math.ceil(limit * min(1.0, _UNEVEN / len(parts)))
        ahead = ahead if limit <= _MOST_AHEAD else 1
        short = [name for name in parts if found.may_lack(name, least)]
        while True:
            for name in short:
                found.asked[name] = ahead * least
                found.hits[name] = search(parts[name], prepared, ahead * least)
            # A list that ends above the last one of the best hits may lack some. Asked again, it can raise that one.
            least, cut = limit, _find_least((found.hits[name].scores for name in parts), limit)
            ends = {name: found.hits[name].least for name in parts if found.may_lack(name, limit)}
            highest = max(ends.values(), default=-math.inf)
            if not ends or highest < cut:
                break
            short = [name for name, end in ends.items() if end == highest]
        with self._listing:
            self._lists[key] = found
            kept = sum(each.count() for each in self._lists.values())
            while (kept > _MOST_HITS or len(self._lists) > _MOST_LISTS) and len(self._lists) > 1:
                kept -= self._lists.popitem(last=False)[1].count()
        best = {name: _drop_below(cut, found.hits[name]) for name in parts}
        for name, hits in best.items():
            self._places.note(written, name, hits.ids)
        return _join(best.values()).cut(limit).encode()

    @property
    def _written(self) -> int:
        """The number of updates."""
        return sum(part.written for part in self.parts.values())

    def _divide(self, where: Filter) -> dict[str, Prepared]:
        """Prepare conditions with ids for each shard that may have some of these."""
        own = self._places.divide(self._written, where["ids"], self.parts)
        return {name: prepare({**where, "ids": ids}) for name, ids in own.items()}

    # Writing

    def put(self, name: str, points: Sequence[Point]) -> None:
        """Write at most UPDATE_POINTS points into a shard, each in place of the one there."""
        self.parts[name].put(points)

    def delete(self, ids: Sequence[int], also: Conditions = (), excluded: str | None = None) -> None:
        """Delete those of at most UPDATE_POINTS points that meet further conditions, in all shards except one."""
        for name, part in self.parts.items():
            if name != excluded and (there := part.find(ids)):
                part.delete(there, also)

    def set_vectors(self, space: str, vectors: Sequence[tuple[int, str, str]]) -> None:
        """Write the packed vectors of at most UPDATE_POINTS texts (id, hash, vectors) that have that hash still."""
        by_id = {id_: (text_hash, packed) for id_, text_hash, packed in vectors}
        for part in self.parts.values():
            part.set_vectors(space, by_id)

    def add_field(self, field: str) -> None:
        """Add a field of texts, unless the shards have it."""
        for part in self.parts.values():
            part.add_field(field)

    def use_space(self, name: str, model: str, dimensions: int) -> None:
        """Store vectors of a model by the name of a space from now on, and drop others by that name."""
        for part in self.parts.values():
            part.use_space(name, VectorSpace(model, dimensions))

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

    def copy(self, name: str, target: str, known: Sequence[str] = ()) -> dict[str, str]:
        """Copy the files of a shard; see `Shard.copy`."""
        return self.parts[name].copy(Path(target), frozenset(known))

    def close(self) -> None:
        """Flush and close the files."""
        self._reading.shutdown(cancel_futures=True)
        for part in self.parts.values():
            part.close()


def _find_least(lists: Iterable[Floats], limit: int) -> float:
    """Find the score at place `limit` of all lists; minus infinity if there are not more."""
    scores = np.concatenate([NO_HITS.scores, *lists])
    return float(np.partition(scores, -limit)[-limit]) if len(scores) > limit else -math.inf


def _drop_below(least: float, hits: Hits) -> Hits:
    return hits.cut(int(np.count_nonzero(hits.scores >= least)))  # best first, so these are the first ones


def _join(parts: Iterable[Hits]) -> Hits:
    return Hits.join(Hits(each.ids, np.round(each.scores, _DECIMALS)) for each in parts)
