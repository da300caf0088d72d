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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, Final

import qdrant_edge as qe

from kg.files import copy_with_holes, measure_disk, write_file
from kg.search.analyzers import ENGLISH, get_analyzer
from kg.search.shard import DENSE, UPDATE_POINTS, Shard, VectorSpace, compact_folder
from kg.search.word_counts import Words

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
_DECIMALS: Final = 4
"""Scores are single precision, summed in any order: further digits are noise that would reorder equal scores."""


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
        self.parts: tuple[Shard, ...] = ()
        """The shards, in the order in which they were made."""
        for name in sorted(names, key=_get_number):
            part = Shard(folder / name)
            if part.is_new and (name in recorded or not recorded):  # else its making was interrupted
                lost.add(name)
            self.parts = (*self.parts, part)
        self._lost = lost
        self._large: set[str] = set()
        """Names of the shards with large files, as of the last flush."""
        if not self.parts:
            self._add()
        for name in self.fields:
            for part in self.parts:
                part.add_field(name)
        self._write_record()

    # Reading

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of texts (`kg.search.analyzers`)."""
        return tuple(sorted({name for part in self.parts for name in part.fields} | {ENGLISH}))

    @property
    def space(self) -> VectorSpace | None:
        """The space of the vectors."""
        return self.parts[-1].space

    @property
    def written(self) -> int:
        """Updates since the index was opened."""
        return sum(part.written for part in self.parts)

    @property
    def lost(self) -> int:
        """The number of shards that were missing or unreadable, whose graphs are not all there yet."""
        return len(self._lost)

    def count(self, where: qe.Filter | None = None) -> int:
        """Count the points that meet a condition."""
        return sum(part.count(where) for part in self.parts)

    def count_units(self) -> int:
        """Count the units."""
        return sum(part.count_units() for part in self.parts)

    def count_vectors(self) -> int:
        """Count the units with a vector."""
        return sum(part.count_vectors() for part in self.parts)

    def count_values(self, field: str, where: qe.Filter, limit: int) -> dict[str, int]:
        """Count the points that meet a condition, by value of a field; exact below `limit` values."""
        found: Counter[str] = Counter()
        for part in self.parts:
            with part.borrow() as shard:
                hits = shard.facet(qe.FacetRequest(field, limit, exact=True, filter=where)).hits
            found.update({str(hit.value): hit.count for hit in hits})
        return dict(found)

    def scroll(
        self, where: qe.Filter, fields: Sequence[str], *, vectors: bool = False, limit: int | None = None
    ) -> Iterator[tuple[Shard, qe.Record]]:
        """Yield the points that meet a condition, each with its shard, fetched in pages; at most `limit` of a shard."""
        for part in self.parts:
            offset: Any = None
            while True:
                request = qe.ScrollRequest(
                    limit=limit or _PAGE,
                    offset=offset,
                    filter=where,
                    with_payload=[*fields],
                    with_vector=[DENSE] if vectors else False,
                )
                with part.borrow() as shard:
                    records, offset = shard.scroll(request)
                for record in records:
                    yield part, record
                if offset is None or limit is not None:
                    break

    def retrieve(self, ids: Sequence[str], fields: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Load fields of those points that are there, by id."""
        found: dict[str, Mapping[str, Any]] = {}
        for part in self.parts:
            if rest := [id_ for id_ in ids if id_ not in found]:
                with part.borrow() as shard:
                    found |= {str(each.id): each.payload or {} for each in shard.retrieve([*rest], [*fields], False)}
        return found

    def search_words(self, text: str, where: qe.Filter | None, limit: int) -> dict[str, float]:
        """Score the best `limit` units by the words of a text, by BM25."""
        found: dict[str, float] = {}
        for name in self.fields:
            asked = get_analyzer(name).embed_query(text)
            if weighed := self._weigh(name, asked.indices, asked.values):
                found |= self._search(name, qe.SparseVector([*weighed], [*weighed.values()]), where, limit)
        return _cut(found, limit)

    def search_word(self, field: str, word: int, where: qe.Filter | None, limit: int) -> set[str]:
        """Find up to `limit` units that contain a word, given as the dimension of a field."""
        return {*self._search(field, qe.SparseVector([word], [1.0]), where, limit)}

    def search_vectors(
        self, vector: Sequence[float], where: qe.Filter | None, limit: int, *, exact: bool = False
    ) -> dict[str, float]:
        """Score the best `limit` units by their cosines with a vector: exactly, or the first `_RESCORED` only."""
        asked = [list(vector)]
        original = qe.SearchParams(quantization=qe.QuantizationSearchParams(ignore=True))
        if exact or self.count_vectors() <= self._exact_vectors:
            return self._search(DENSE, asked, where, limit, original)
        quantized = qe.SearchParams(quantization=qe.QuantizationSearchParams(rescore=False))
        found = self._search(DENSE, asked, where, limit, quantized)
        first = nlargest(_RESCORED, found, key=found.__getitem__)
        return found | self._search(DENSE, asked, qe.Filter(must=[qe.HasIdCondition({*first})]), len(first), original)

    def _search(
        self, field: str, query: Any, where: qe.Filter | None, limit: int, params: qe.SearchParams | None = None
    ) -> dict[str, float]:
        if not limit:
            return {}
        request = qe.QueryRequest(
            limit=limit, query=qe.Query.Nearest(query, using=field), filter=where, params=params, with_payload=False
        )
        found: dict[str, float] = {}
        for part in self.parts:
            if field in part.fields or (field == DENSE and part.space is not None):
                with part.borrow() as shard:
                    hits = shard.query(request)
                found |= {str(hit.id): round(float(hit.score), _DECIMALS) for hit in hits}
        return _cut(found, limit)

    def _weigh(self, field: str, words: Sequence[int], values: Sequence[float]) -> dict[int, float]:
        """Weigh the words of a query by their rarity in all shards. Words that no text contains are left out."""
        texts, having = 0, [0] * len(words)
        for part in self.parts:
            more, counts = part.counts.find(field, words)
            texts += more
            having = [one + int(other) for one, other in zip(having, counts, strict=True)]
        return {
            word: value * math.log1p((texts - number + 0.5) / (number + 0.5))
            for word, value, number in zip(words, values, having, strict=True)
            if number
        }

    # Writing

    def choose(self) -> Shard:
        """Choose the shard of a new graph: the first that is not full, else a new one."""
        with self.writing:
            for part in self.parts:
                if part.count_texts() < self._most_texts and part.folder.name not in self._large:
                    return part
            return self._add()

    def put(self, home: Shard, points: Mapping[str, qe.Point], words: Mapping[str, Words]) -> None:
        """Write at most UPDATE_POINTS points by id, each in place of the one in any shard, with the words of texts."""
        with self.writing:
            for part in self.parts:
                if part is not home and (there := part.find([*points])):
                    part.delete(there)
            home.put(points, words)

    def delete(self, ids: Sequence[str], also: Sequence[qe.FieldCondition] = ()) -> None:
        """Delete those of some points that meet further conditions."""
        with self.writing:
            for start in range(0, len(ids), UPDATE_POINTS):
                for part in self.parts:
                    part.delete(ids[start : start + UPDATE_POINTS], also)

    def set_vectors(self, vectors: Mapping[str, tuple[str, Sequence[Sequence[float]]]]) -> None:
        """Write the vectors of at most UPDATE_POINTS texts (id -> hash, vectors) that have the same hash still."""
        with self.writing:
            for part in self.parts:
                with part.borrow() as shard:
                    records = shard.retrieve([*vectors], ["text_hash"], False)
                points = [
                    qe.PointVectors(id_, {DENSE: [[*row] for row in vectors[id_][1]]})
                    for record in records
                    if vectors[id_ := str(record.id)][0] == (record.payload or {})["text_hash"]
                ]
                if points:
                    part.write(qe.UpdateOperation.update_vectors(points))

    def add_field(self, field: str) -> None:
        """Add a field of texts, unless the shards have it."""
        with self.writing:
            for part in self.parts:
                part.add_field(field)

    def use_space(self, space: VectorSpace) -> None:
        """Store vectors of `space` from now on, and drop vectors of another space."""
        with self.writing:
            for part in self.parts:
                part.use_space(space)

    def note_complete(self) -> None:
        """Note that the graphs of lost shards are all there again."""
        with self.writing:
            if self._lost:
                self._lost = set()
                self._write_record()

    def flush(self) -> None:
        """Flush the write-ahead logs, so that the next start does not replay them."""
        for part in self.parts:
            part.flush()
        self._large = {part.folder.name for part in self.parts if measure_disk(part.folder) > _MOST_BYTES}

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing has been written for some seconds."""
        return all(part.is_at_rest for part in self.parts)

    def find_grown(self) -> Shard | None:
        """Find a shard that is to be optimized."""
        return next((part for part in self.parts if part.needs_optimizing()), None)

    def copy(self, target: Path) -> dict[str, str]:
        """Copy the files, flushed, into a new folder; return the SHA-256 of the bytes read, by path in the folder."""
        with self.writing:
            read: dict[str, str] = {}
            for part in self.parts:
                copied = part.copy(target / part.folder.name)
                read |= {f"{part.folder.name}/{path}": digest for path, digest in copied.items()}
            read[_RECORD] = copy_with_holes(self.folder / _RECORD, target / _RECORD)
            return read

    def close(self) -> None:
        """Flush and close the files."""
        with self.writing:
            for part in self.parts:
                part.close()

    def _add(self) -> Shard:
        names = {part.folder.name for part in self.parts}
        name = next(name for number in count(1) if (name := f"shard-{number}") not in names)
        part = Shard(self.folder / name)
        if self.parts:
            for field in self.fields:
                part.add_field(field)
            if self.space is not None:
                part.use_space(self.space)
        self.parts = (*self.parts, part)
        self._write_record()
        return part

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
        record = {"shards": [part.folder.name for part in self.parts], "lost": sorted(self._lost)}
        write_file(self.folder / _RECORD, json.dumps(record), sync=True)


def compact_folders(folder: Path) -> None:
    """Write the shards in `folder` again, without deleted points. They must not be open elsewhere."""
    for each in sorted(folder.glob("shard-*")):
        if (each / _RECORD).is_file():
            compact_folder(each)


def _get_number(name: str) -> tuple[int, str]:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0, name


def _cut(found: dict[str, float], limit: int) -> dict[str, float]:
    return found if len(found) <= limit else dict(nlargest(limit, found.items(), key=lambda item: item[1]))
