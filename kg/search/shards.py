"""Several shards of bounded size as one index: texts are written to one of them, and searched in all.

Memory and time of optimizing a shard grow with it, so a shard that is full gets no more graphs. All units of a graph
are in one shard, with its marker: if a shard is lost, its graphs are missing, and are indexed again from the store.

A score is the same in one shard and in several: weights of words depend on their text alone (`kg.search.analyzers`),
and the rarity of a word on the texts of all shards.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, Final

from kg.files import copy_with_holes, measure_disk, write_file
from kg.search.analyzers import ENGLISH, get_analyzer
from kg.search.points import UPDATE_POINTS, Filter, Point, VectorSpace
from kg.search.protocol import Conditions
from kg.search.shard import REST_S, compact_folder
from kg.search.shard_group import ShardGroup

log = logging.getLogger(__name__)

MOST_TEXTS: Final = 125_000
"""Texts of a shard that gets no more graphs: with vectors, optimizing it takes 1.2 GB."""
_MOST_BYTES: Final = 1 << 30
EXACT_VECTORS: Final = 100_000
"""Up to this many vectors, dense search compares all of them unquantized: 14 ms for 100,000 of 384 dimensions."""
_RESCORED: Final = 200
"""The first units by quantized vectors whose scores are computed again by the original ones."""
_RECORD: Final = "index.json"
_PAGE: Final = 1_000


class Shards:
    """The shards in `folder`. Any thread may read, without waiting for writes, which are serialized by `writing`."""

    def __init__(self, folder: Path, *, exact_vectors: int = EXACT_VECTORS, most_texts: int = MOST_TEXTS) -> None:
        self.folder: Final = folder
        self.writing: Final = RLock()
        self._exact_vectors: Final = exact_vectors
        self._most_texts: Final = most_texts
        folder.mkdir(parents=True, exist_ok=True)
        recorded, lost = self._read_record()
        names = {*recorded, *(path.name for path in folder.glob("shard-*") if path.is_dir())}
        self.names: tuple[str, ...] = ()
        """The shards, in the order in which they were made."""
        self.fields: tuple[str, ...] = (ENGLISH,)
        """The fields of texts (`kg.search.analyzers`)."""
        self.space: VectorSpace | None = None
        """The space of the vectors."""
        self.written = 0
        """Updates since the index was opened."""
        self._written_s = -math.inf
        """When the last one was made."""
        self._stored: tuple[int, tuple[int, int]] = -1, (0, 0)
        """Number of updates when units were counted, and their numbers."""
        self._group: Final = ShardGroup(folder)
        for name in sorted(names, key=_get_number):
            if self._open(name) and (name in recorded or not recorded):  # else its making was interrupted
                lost.add(name)
        self._lost = lost
        self._large: set[str] = set()
        """Names of the shards with large files, as of the last flush."""
        if not self.names:
            self._add()
        for name in self.fields:
            self._group.add_field(name)
        self._write_record()

    # Reading

    @property
    def lost(self) -> int:
        """The number of shards that were missing or unreadable, whose graphs are not all there yet."""
        return len(self._lost)

    def count(self, where: Filter | None = None) -> int:
        """Count the points that meet some conditions."""
        return self._group.count(where)

    def count_stored(self) -> tuple[int, int]:
        """Count the units, and those with a vector. Kept until the next update."""
        written = self.written
        if self._stored[0] != written:
            self._stored = written, self._group.count_stored()
        return self._stored[1]

    def count_texts(self) -> dict[str, int]:
        """Count the texts of each shard."""
        return self._group.count_texts()

    def count_values(self, field: str, where: Filter, limit: int) -> dict[str, int]:
        """Count the points that meet some conditions, by value of a field; exact below `limit` values."""
        return self._group.count_values(field, where, limit)

    def scroll(
        self, where: Filter, fields: Sequence[str], *, limit: int | None = None
    ) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield shard, id and fields of the points that meet some conditions, in pages; at most `limit` of a shard."""
        for name in self.names:
            start: str | None = None
            while True:
                page, start = self._group.scroll(name, where, fields, start, limit or _PAGE)
                for id_, payload in page.items():
                    yield name, id_, payload
                if start is None or limit is not None:
                    break

    def retrieve(self, ids: Sequence[str], fields: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Load fields of those points that are there, by id."""
        return self._group.retrieve(ids, fields)

    def search_words(self, text: str, where: Filter | None, limit: int) -> dict[str, float]:
        """Score the best `limit` units by the words of a text, by BM25."""
        asked = {name: get_analyzer(name).embed_query(text) for name in self.fields}
        counted = self._group.count_words({name: [*each.indices] for name, each in asked.items()})
        weighed = {
            name: found
            for name, each in asked.items()
            if (found := _weigh(each.indices, each.values, *counted[name]))[0]
        }
        return self._search_words(weighed, where, limit)

    def search_word(self, field: str, word: int, where: Filter | None, limit: int) -> set[str]:
        """Find up to `limit` units that contain a word, given as the dimension of a field."""
        return {*self._search_words({field: ([word], [1.0])}, where, limit)}

    def _search_words(
        self, words: Mapping[str, tuple[Sequence[int], Sequence[float]]], where: Filter | None, limit: int
    ) -> dict[str, float]:
        return _cut(self._group.search_words(words, where, limit), limit) if words and limit else {}

    def search_vectors(
        self, vector: Sequence[float], where: Filter | None, limit: int, *, exact: bool = False
    ) -> dict[str, float]:
        """Score the best `limit` units by their cosines with a vector: exactly, or the first `_RESCORED` only."""
        if not limit:
            return {}
        quantized = not exact and self.count_stored()[1] > self._exact_vectors
        found = _cut(self._group.search_vectors(vector, where, limit, quantized), limit)
        if quantized:
            first = nlargest(_RESCORED, found, key=found.__getitem__)
            found |= self._group.search_vectors(vector, {"ids": first}, len(first), False)
        return found

    # Writing

    def choose(self) -> str:
        """Choose the shard of a new graph: the first that is not full, else a new one."""
        with self.writing:
            texts = self.count_texts()
            for name in self.names:
                if texts[name] < self._most_texts and name not in self._large:
                    return name
            return self._add()

    def put(self, home: str, points: Sequence[Point]) -> None:
        """Write at most UPDATE_POINTS points into a shard, each in place of the one in any shard."""
        with self._update():
            self._group.delete([point["id"] for point in points], excluded=home)
            self._group.put(home, points)

    def delete(self, ids: Sequence[str], also: Conditions = ()) -> None:
        """Delete those of some points that meet further conditions."""
        for start in range(0, len(ids), UPDATE_POINTS):
            with self._update():
                self._group.delete(ids[start : start + UPDATE_POINTS], also)

    def set_vectors(self, vectors: Mapping[str, tuple[str, str]]) -> None:
        """Write the packed vectors of at most UPDATE_POINTS texts (id -> hash, vectors) that have that hash still."""
        with self._update():
            self._group.set_vectors(vectors)

    def add_field(self, field: str) -> None:
        """Add a field of texts, unless the shards have it."""
        if field not in self.fields:
            with self._update():
                self._group.add_field(field)
                self.fields = tuple(sorted((*self.fields, field)))

    def use_space(self, space: VectorSpace) -> None:
        """Store vectors of `space` from now on, and drop vectors of another space."""
        with self._update():
            self._group.use_space(space.model, space.dimensions)
            self.space = space

    @contextmanager
    def _update(self) -> Iterator[None]:
        """Serialize an update, and count it, also if it fails: a part of it may have been made."""
        with self.writing:
            try:
                yield
            finally:
                self.written += 1
                self._written_s = time.monotonic()

    def note_complete(self) -> None:
        """Note that the graphs of lost shards are all there again."""
        with self.writing:
            if self._lost:
                self._lost = set()
                self._write_record()

    def flush(self) -> None:
        """Flush the write-ahead logs, so that the next start does not replay them."""
        self._group.flush()
        self._large = {name for name in self.names if measure_disk(self.folder / name) > _MOST_BYTES}

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing has been written for some seconds."""
        return time.monotonic() > self._written_s + REST_S

    def find_grown(self) -> str | None:
        """Find a shard that is to be optimized."""
        return self._group.find_grown()

    def optimize(self, name: str) -> bool:
        """Optimize a shard while it is searched and written; see `Shard.optimize`."""
        return self._group.optimize(name)

    def copy(self, target: Path) -> dict[str, str]:
        """Copy the files, flushed, into a new folder; return the SHA-256 of the bytes read, by path in the folder."""
        with self.writing:
            read: dict[str, str] = {}
            for name in self.names:
                copied = self._group.copy(name, str(target / name))
                read |= {f"{name}/{path}": digest for path, digest in copied.items()}
            read[_RECORD] = copy_with_holes(self.folder / _RECORD, target / _RECORD)
            return read

    def close(self) -> None:
        """Flush and close the files."""
        with self.writing:
            self._group.close()

    def _add(self) -> str:
        name = next(name for number in count(1) if (name := f"shard-{number}") not in self.names)
        self._open(name)
        for field in self.fields:
            self._group.add_field(field)
        if self.space is not None:
            self._group.use_space(self.space.model, self.space.dimensions)
        self._write_record()
        return name

    def _open(self, name: str) -> bool:
        """Open a shard; return whether it is new."""
        found = self._group.open(name)
        if found["space"] is not None:
            self.space = VectorSpace(*found["space"])
        self.fields = tuple(sorted({*self.fields, *found["fields"]}))
        self.names = (*self.names, name)
        return bool(found["is_new"])

    def _read_record(self) -> tuple[list[str], set[str]]:
        """Read the names of the shards, and of those that were lost."""
        try:
            record = json.loads((self.folder / _RECORD).read_text("utf-8"))
            return [str(name) for name in record["shards"]], {str(name) for name in record["lost"]}
        except FileNotFoundError:
            return [], set()
        except (OSError, ValueError, KeyError, TypeError):
            log.error("Cannot read %s. The shards in the folder are used.", self.folder / _RECORD)
            return [], {_RECORD}

    def _write_record(self) -> None:
        record = {"shards": [*self.names], "lost": sorted(self._lost)}
        write_file(self.folder / _RECORD, json.dumps(record), sync=True)


def compact_folders(folder: Path) -> None:
    """Write the shards in `folder` again, without deleted points. They must not be open elsewhere."""
    for each in sorted(folder.glob("shard-*")):
        if (each / _RECORD).is_file():
            compact_folder(each)


def _weigh(
    words: Sequence[int], values: Sequence[float], texts: int, having: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Weigh the words of a query by their rarity in all shards. Words that no text contains are left out."""
    weighed = {
        word: value * math.log1p((texts - number + 0.5) / (number + 0.5))
        for word, value, number in zip(words, values, having, strict=True)
        if number
    }
    return [*weighed], [*weighed.values()]


def _get_number(name: str) -> tuple[int, str]:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0, name


def _cut(found: dict[str, float], limit: int) -> dict[str, float]:
    return found if len(found) <= limit else dict(nlargest(limit, found.items(), key=lambda item: item[1]))
