"""One Qdrant Edge shard on disk: its schema, opening, writing, and replacement by an optimized copy.

Every call into Qdrant Edge holds the GIL (`optimize` for seconds). So a shard is used in the index process, written to
in small updates, and optimized as a copy in a third process.

In an optimized segment words, vectors and payloads are files, which the system caches. Its vectors are quantized to a
byte a dimension, next to the original ones in half precision, by which the first units of a search are scored.

A segment has a row for each point in each of its vectors, also for the points that lack it. So a vector is created when
the first point has it, and an optimized segment has its points by language: those that have the same vectors, which a
search then reads one after the other.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Condition, RLock
from typing import Any, Final

import numpy as np
import qdrant_edge as qe

from kg.data_directory import DataDirectory
from kg.files import copy_with_holes, is_unwritable, measure_disk, write_file
from kg.processes import child
from kg.search import analyzers, word_counts
from kg.search.conditions import Prepared, build_filter, prepare
from kg.search.points import (
    LANGUAGE,
    NO_HITS,
    UPDATE_POINTS,
    Filter,
    Hits,
    Point,
    Precision,
    VectorSpace,
    get_names,
    unpack,
)
from kg.search.protocol import CODES, Conditions
from kg.search.word_counts import WordCounts, Words
from kg.store.protocol import batched

log = logging.getLogger(__name__)

_VERSION = DataDirectory.index.version
_LOAD_ATTEMPTS = 2
_ROOM_BYTES = 16 << 20
"""Free space on the disk below which no shard is opened or written."""
_FLUSH_UPDATES = 300
"""Updates that may be only in the write-ahead log: the next start has to apply them one by one."""

_MAX_REPLAY = 20_000
_MIN_DEAD_POINTS = 20_000
_MIN_GROWING = 130_000
"""Texts and vectors in the growing segment, which has its indexes in memory: 2 KiB for a text, 1 KiB for a vector.

More than the texts of a shard, so that a load does not copy again and again the shard that it fills.
"""
_MIN_GROWING_AT_REST = 8_000
"""The same, while nothing is written."""
REST_S = 5.0
"""Seconds without an update after which a shard is at rest."""
_OVERSAMPLING = 1.5
"""How many times the units that are asked for are found by quantized vectors, to score these by the original ones."""
_QUANTILE = 0.99
"""Share of the components of vectors between the least and the most byte."""
_DRAFT = "edge-draft"
"""Folder of a copy of the points, which the next opening removes unless it is complete."""
_UNLIMITED_KB = 1 << 40
_REMOVALS = 50
_REMOVAL_PAUSE_S = 0.02

_ROWS = None, qe.MultiVectorConfig(qe.MultiVectorComparator.MaxSim)
"""How the vectors of the names of a space are compared: of several, one for each window, the best one is the score."""
_HALF = qe.VectorStorageDatatype.Float16
_PAGE = 1_000
_PARAMS: Final[Mapping[Precision, qe.SearchParams]] = {
    "original": qe.SearchParams(quantization=qe.QuantizationSearchParams(ignore=True)),
    "rescored": qe.SearchParams(quantization=qe.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)),
    "quantized": qe.SearchParams(quantization=qe.QuantizationSearchParams(rescore=False)),
}
_FEW_BYTES = 80 << 20
"""Maximum size of the original vectors of a shard that are read at its start: those of 100,000 texts."""
_KEYWORDS = ("kind", "graph", "parent", LANGUAGE)


@dataclass(slots=True)
class _Lease:
    shard: qe.EdgeShard
    readers: int = 0


@dataclass(slots=True, eq=False)
class Shard:
    """The shard in `folder`. Any thread may read, without waiting for writes, which are serialized."""

    folder: Path
    spaces: dict[str, VectorSpace] = field(default_factory=dict)
    """The model and dimensions of each space that has vectors."""
    counts: WordCounts = field(init=False)
    is_new: bool = False
    """Whether there was nothing to open: the folder is missing, or the shard in it cannot be read."""
    writing: RLock = field(default_factory=RLock)
    dead_points: int = 0
    """Points deleted or overwritten since the shard was opened or optimized; they still take space."""
    written: int = 0
    """Updates since the shard was opened."""
    vector_names: tuple[str, ...] = ()
    """The names of the vectors that were created."""
    _written_s: float = -math.inf
    """When the last update was made."""
    fields: tuple[str, ...] = (analyzers.ENGLISH,)
    """The fields of texts (`kg.search.analyzers`): one for each analyzer of a text that it has or had."""
    _name: str = "edge-1"
    _lease: _Lease = field(init=False)
    _leases: Condition = field(default_factory=Condition)
    _counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number of updates when they were counted, and the count."""
    _replay: list[qe.UpdateOperation] | None = None
    _unflushed: int = 0
    _optimized_at: int = 0
    """Texts and vectors when the shard was last optimized; the further ones are in the growing segment."""
    _had_names: tuple[str, ...] = ()
    """The names of vectors that may be stored."""
    _is_short: bool = False
    """Whether the disk had no room for the last attempt to optimize."""
    _failed_at: int = 0
    """Texts and vectors when the last attempt to optimize failed."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        shard = self._load()
        if shard is None or not self._use(shard):
            self.is_new = True
            self._clear()
            self._use(self._create())

    def _use(self, shard: qe.EdgeShard) -> bool:
        """Use a shard that was opened, unless it lacks texts, which Qdrant Edge does not notice."""
        self._lease = _Lease(shard)
        for other in self.folder.glob("edge-*"):
            if other.name != self._name:
                _remove_left(other)
        self.counts = WordCounts(self.folder)
        if gone := self.counts.open(self._read_words, self._count_texts(), self._scan_words()):
            self._log_unreadable(ValueError(f"{gone} of its texts are gone"))
            shard.close()
        return not gone

    @contextmanager
    def _borrow(self) -> Iterator[qe.EdgeShard]:
        """Borrow the current shard; it stays open until the block ends, even if an optimized copy replaces it."""
        with self._leases:
            lease = self._lease
            lease.readers += 1
        try:
            yield lease.shard
        finally:
            with self._leases:
                lease.readers -= 1
                self._leases.notify_all()

    def count(self, where: Filter | None = None) -> int:
        """Count the points that meet some conditions."""
        return self._count(prepare(where))

    def _count(self, where: qe.Filter | None) -> int:
        with self._borrow() as shard:
            return shard.count(qe.CountRequest(True, where))

    def count_values(self, name: str, where: Filter, limit: int) -> dict[str, int]:
        """Count the points that meet some conditions, by value of a field; exact below `limit` values."""
        with self._borrow() as shard:
            hits = shard.facet(qe.FacetRequest(name, limit, exact=True, filter=build_filter(where))).hits
        return {str(hit.value): hit.count for hit in hits}

    def find(self, ids: Sequence[int]) -> list[int]:
        """Find the points that are there."""
        with self._borrow() as shard:
            return [int(record.id) for record in shard.retrieve([*ids], False, False)]

    def retrieve(self, ids: Sequence[int], fields: Sequence[str]) -> dict[int, Mapping[str, Any]]:
        """Load fields of those points that are there, by id."""
        with self._borrow() as shard:
            return {int(each.id): each.payload or {} for each in shard.retrieve([*ids], [*fields], False)}

    def scroll(
        self, where: Filter, fields: Sequence[str], start: int | None, limit: int
    ) -> tuple[dict[int, Mapping[str, Any]], int | None]:
        """Load fields of `limit` of the points that meet some conditions, and the id at which the next page starts."""
        request = qe.ScrollRequest(
            limit=limit, offset=start, filter=build_filter(where), with_payload=[*fields], with_vector=False
        )
        with self._borrow() as shard:
            records, offset = shard.scroll(request)
        return {int(each.id): each.payload or {} for each in records}, None if offset is None else int(offset)

    def search_words(
        self, name: str, words: Sequence[int], weights: Sequence[float], where: Prepared, limit: int
    ) -> Hits:
        """Score the best `limit` texts of a field by weighed words."""
        if name not in self.fields:
            return NO_HITS
        return self._search(name, qe.SparseVector([*words], [*weights]), where, limit, None)

    def search_vectors(
        self, space: str, vector: Sequence[float], where: Prepared, limit: int, *, precision: Precision
    ) -> Hits:
        """Score the best `limit` texts by their cosines with a vector."""
        one, several = get_names(space)
        params = _PARAMS[precision]
        found = [
            self._search(name, query, where, limit, params)
            for name, query in ((one, [*vector]), (several, [[*vector]]))
            if name in self.vector_names and self._count_name(name)
        ]
        return found[0] if len(found) == 1 else Hits.join(found).cut(limit)

    def read_vectors(self) -> int:
        """Read the files of the vectors that searches compare, and return their size in bytes.

        The system caches them for the first search, which else reads them page by page, in ten times the time. They
        take no memory of this process. Originals are read only if they are few: with more, searches read a few.
        """
        size = 0
        with suppress(OSError):  # of a copy that is being replaced
            for pattern, most in (("quantized*data", math.inf), ("matrix.dat", _FEW_BYTES), ("vectors/*", _FEW_BYTES)):
                for space in self.spaces:
                    files = [*(self.folder / self._name).glob(f"segments/*/vector_storage-{space}*/{pattern}")]
                    if sum(file.stat().st_blocks * 512 for file in files) <= most:
                        size += sum(map(_read_through, files))
        return size

    def _search(self, name: str, query: Any, where: Prepared, limit: int, params: qe.SearchParams | None) -> Hits:
        request = qe.QueryRequest(
            limit=limit, query=qe.Query.Nearest(query, using=name), filter=where, params=params, with_payload=False
        )
        with self._borrow() as shard:
            found = shard.query(request)
        # Attributes are read one by one, without a list in between, since there are thousands of hits.
        ids = np.fromiter((each.id for each in found), np.int64, len(found))
        return Hits(ids, np.fromiter((each.score for each in found), np.float64, len(found)))

    def put(self, points: Sequence[Point]) -> None:
        """Write at most UPDATE_POINTS points, each in place of the one with its id."""
        built, words = [], {}
        with self.writing:
            for point in points:
                vectors: dict[str, Any] = {}
                if (name := point.get("field")) is not None:
                    vectors[name] = weights = analyzers.get_analyzer(name).embed_document(point["payload"][name])
                    words[point["id"]] = {name: weights.indices}
                for space, packed in point.get("vectors", {}).items():
                    if space in self.spaces:
                        vectors |= self._name_rows(space, packed)
                built.append(qe.Point(point["id"], vectors, dict(point["payload"])))
            self._put(built, words)

    def _put(self, points: Sequence[qe.Point], words: Mapping[int, Words]) -> None:
        with self.writing:
            old = self._read_words([int(point.id) for point in points])
            self.counts.note({id_: old.get(id_, {}) for id_ in words.keys() | old.keys()})
            self._write(qe.UpdateOperation.upsert_points([*points]))
            self.counts.replace(old.values(), words.values())
            self.dead_points += len(old)

    def delete(self, ids: Sequence[int], also: Conditions = ()) -> None:
        """Delete those of at most UPDATE_POINTS points that meet further conditions."""
        where = build_filter({"ids": ids, "fields": also})
        with self.writing:
            with self._borrow() as shard:
                records, _ = shard.scroll(
                    qe.ScrollRequest(limit=len(ids), filter=where, with_payload=False, with_vector=[*self.fields])
                )
            if not records:
                return
            old = {int(record.id): words for record in records if (words := _get_words(record))}
            self.counts.note(old)
            self._write(qe.UpdateOperation.delete_points_by_filter(where))
            self.counts.replace(old.values(), ())
            self.dead_points += len(records)

    def set_vectors(self, space: str, vectors: Mapping[int, tuple[str, str]]) -> None:
        """Write vectors of a space for at most UPDATE_POINTS texts (id -> hash, packed) that have the same hash still.

        They are dropped while the shard has no such space.
        """
        with self.writing:
            if space not in self.spaces:
                return
            points = [
                qe.PointVectors(id_, self._name_rows(space, vectors[id_][1]))
                for id_, payload in self.retrieve([*vectors], ["text_hash"]).items()
                if vectors[id_][0] == payload["text_hash"]
            ]
            if points:
                self._write(qe.UpdateOperation.update_vectors(points))

    def _name_rows(self, space: str, packed: str) -> dict[str, Any]:
        """Name the vectors of a text: a single one is stored as such, which the engine compares faster."""
        rows = unpack(packed, self.spaces[space].dimensions)
        has_several = len(rows) > 1
        name = get_names(space)[has_several]
        if name not in self.vector_names:
            self._create_vectors(name, self.spaces[space].dimensions, _ROWS[has_several])
        return {name: rows if has_several else rows[0]}

    def _read_words(self, ids: Sequence[int]) -> dict[int, Words]:
        """Read the words of those texts that are there."""
        found: dict[int, Words] = {}
        for portion in batched(ids, UPDATE_POINTS):
            with self._borrow() as shard:
                records = shard.retrieve([*portion], False, [*self.fields])
            found |= {int(record.id): words for record in records if (words := _get_words(record))}
        return found

    def _scan_words(self) -> Iterator[Words]:
        offset: Any = None
        while True:
            with self._borrow() as shard:
                records, offset = shard.scroll(
                    qe.ScrollRequest(limit=_PAGE, offset=offset, with_payload=False, with_vector=[*self.fields])
                )
            yield from filter(None, map(_get_words, records))
            if offset is None:
                return

    def _count_texts(self) -> dict[str, int]:
        """Count the texts of each field."""
        counted = {name: self._count(qe.Filter(must=[qe.HasVectorCondition(name)])) for name in self.fields}
        return {name: texts for name, texts in counted.items() if texts}

    def _write(self, operation: qe.UpdateOperation) -> None:
        """Apply an update of at most UPDATE_POINTS points; it is in the write-ahead log on return."""
        with self.writing:
            _require_room(self.folder)
            self._lease.shard.update(operation)
            self.written += 1
            self._written_s = time.monotonic()
            self._unflushed += 1
            if self._replay is not None:
                self._replay.append(operation)
            if self._unflushed >= _FLUSH_UPDATES:
                self.flush()

    def add_field(self, field: str) -> None:
        """Add a field of texts, unless the shard has it."""
        with self.writing:
            if field not in self.fields:
                self._write(qe.UpdateOperation.create_sparse_vector(field))
                self.flush()
                # Recorded last: after a crash in between, the field is created again, which changes nothing.
                self.fields = tuple(sorted((*self.fields, field)))
                self._write_record()

    def flush(self) -> None:
        """Flush the write-ahead log, so that the next start does not replay it, and save the counts of words."""
        with self.writing:
            if self._unflushed:
                self._lease.shard.flush()
                self.counts.save()
                self._unflushed = 0

    def copy(self, target: Path, known: Collection[str] = ()) -> dict[str, str]:
        """Copy the files, flushed, into a new folder, while no update is written. Holes stay holes.

        Files whose SHA-256 is `known` are only read. Returns the SHA-256 of the bytes read, by path in the folder.
        """
        read: dict[str, str] = {}

        def copy_file(source: str, copied: str) -> None:
            read[Path(copied).relative_to(target).as_posix()] = copy_with_holes(source, copied, known)

        with self.writing:
            self.flush()
            target.mkdir(parents=True)
            shutil.copytree(self.folder / self._name, target / self._name, copy_function=copy_file)
            for file in ("index.json", word_counts.FILE):
                if (self.folder / file).exists():
                    copy_file(str(self.folder / file), str(target / file))
        return read

    def close(self) -> None:
        """Flush and close the files."""
        with self.writing:
            self.flush()
            self._lease.shard.close()

    def use_space(self, name: str, space: VectorSpace) -> None:
        """Store vectors of `space` by a name from now on, and drop others by that name."""
        with self.writing:
            if self.spaces.get(name) == space:
                return
            if name in self.spaces:
                log.warning("Dropping the vectors of %s: the model is now %s.", self.spaces[name], space)
            # recorded first: a crash in between leaves vectors of no space, which the next call drops
            own = get_names(name)
            self.spaces = {each: known for each, known in self.spaces.items() if each != name}
            self.vector_names = tuple(each for each in self.vector_names if each not in own)
            self._write_record()
            # None that was never created: a kill while a deletion is replayed leaves a shard that cannot be opened.
            if dropped := [each for each in self._had_names if each in own]:
                for each in dropped:
                    self._write(qe.UpdateOperation.delete_vector_name(each))
                self.flush()
            self._had_names = tuple(each for each in self._had_names if each not in own)
            self.spaces = {**self.spaces, name: space}
            self._write_record()

    def _create_vectors(self, name: str, dimensions: int, rows: qe.MultiVectorConfig | None) -> None:
        """Create the vectors of a name."""
        with self.writing:
            self._had_names = tuple(sorted({*self._had_names, name}))
            self._write_record()
            self._write(qe.UpdateOperation.create_dense_vector(name, dimensions, qe.Distance.Cosine, rows, _HALF))
            self.flush()
            # Recorded last: after a crash in between, they are created again, which changes nothing.
            self.vector_names = tuple(sorted((*self.vector_names, name)))
            self._write_record()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing has been written for some seconds."""
        return time.monotonic() > self._written_s + REST_S

    def needs_optimizing(self) -> bool:
        """Return whether there are many texts and vectors in the growing segment, or a quarter of them is dead.

        The growing segment has its indexes in memory. Optimizing copies all files.
        """
        stored = self.count_stored()
        if self.dead_points > max(_MIN_DEAD_POINTS, stored // 4):
            return True
        least = _MIN_GROWING_AT_REST if self.is_at_rest else _MIN_GROWING
        # A text that is written again is in the growing segment, too. Not again for a few more after a failed attempt.
        growing = stored - self._optimized_at + self.dead_points
        return growing > least and stored > self._failed_at + least

    def count_stored(self) -> int:
        """Count the texts, and the vectors of all spaces."""
        return self.count_texts() + sum(map(self.count_vectors, self.spaces))

    def count_texts(self) -> int:
        """Count the texts."""
        return sum(self.counts.count_texts().values())

    def count_vectors(self, space: str) -> int:
        """Count the units with a vector in a space. Kept until the next update."""
        return self._count_kept(space, prepare({"having": [space]})) if space in self.spaces else 0

    def _count_name(self, name: str) -> int:
        """Count the units with vectors of a name. Kept until the next update."""
        return self._count_kept(f"name {name}", qe.Filter(must=[qe.HasVectorCondition(name)]))

    def _count_kept(self, name: str, where: Prepared) -> int:
        written = self.written
        if (known := self._counted.get(name)) is None or known[0] != written:
            self._counted[name] = known = written, self._count(where)
        return known[1]

    def optimize(self) -> bool:
        """Replace the shard by an optimized copy, without blocking searches and writes.

        Another process optimizes the copy; then the updates made in the meantime are replayed on it. Returns False, and
        leaves the shard unchanged, if the disk has no room, there were too many updates or the process failed.
        """
        if not self._has_room():
            return False
        name = f"edge-{int(self._name.partition('-')[2]) + 1}"
        copy = self.folder / name
        with self.writing:
            self.flush()
            self.dead_points = 0
            self._failed_at = self.count_stored()
            schema = json.dumps({"fields": self.fields, "spaces": self._describe_spaces(), "names": self.vector_names})
            shutil.copytree(self.folder / self._name, copy)
            self._replay = []
        try:
            command = child.command("kg.search.index_process", "optimize", str(copy), schema)
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
            if done.returncode != 0 or len(self._replay) > _MAX_REPLAY:
                log.warning("The search index was not optimized: the process ended with exit code %d.", done.returncode)
                return False
            fresh = qe.EdgeShard.load(str(copy))
            while len(self._replay) > 10:
                with self.writing:
                    operations, self._replay = self._replay, []
                for operation in operations:
                    fresh.update(operation)
            with self.writing:
                for operation in self._replay:
                    fresh.update(operation)
                fresh.flush()
                self._optimized_at, self._failed_at = self._failed_at, 0
                self._swap(fresh, name)
            return True
        finally:
            self._replay = None
            if self._name != name:
                shutil.rmtree(copy, ignore_errors=True)

    def _has_room(self) -> bool:
        """Return whether the disk has room for a copy of the files and an optimized one; say so once if it has not."""
        needed = 2 * measure_disk(self.folder / self._name)
        free = shutil.disk_usage(self.folder).free
        if free < needed and not self._is_short:
            log.error(
                "The search index was not optimized: the disk of %s has %d MB of free space, and %d MB are needed for "
                "a while. Free some. Until then searches work, and take more memory.",
                self.folder,
                free >> 20,
                -(-needed >> 20),
            )
        self._is_short = free < needed
        return not self._is_short

    def _swap(self, fresh: qe.EdgeShard, name: str) -> None:
        old_folder, self._name = self.folder / self._name, name
        self._write_record()
        with self._leases:
            old, self._lease = self._lease, _Lease(fresh)
            self._leases.wait_for(lambda: old.readers == 0)
        old.shard.close()
        shutil.rmtree(old_folder)

    def _load(self) -> qe.EdgeShard | None:
        """Open the stored shard. Return None if it is missing or unreadable; it is then rebuilt from the store."""
        opening = self.folder / "opening"
        record: dict[str, Any] = {}
        try:
            record = json.loads((self.folder / "index.json").read_text("utf-8"))
            if record["version"] != _VERSION:
                raise ValueError(f"format version {record['version']!r} instead of {_VERSION}")
            self._name = str(record["shard"])
            self.spaces = _read_spaces(record["spaces"])
            self.fields = tuple(record["fields"])
            self._optimized_at = record["optimized_at"]
            self.vector_names = tuple(record["names"])
            self._had_names = tuple(record["had_names"])
            _require_room(self.folder)
            # a damaged file can crash the process instead of raising: count the attempts that did not return
            attempts = int(opening.read_text("ascii") or 0) if opening.exists() else 0
            if attempts >= _LOAD_ATTEMPTS:
                raise ValueError(f"opening it crashed the process {attempts} times")
            opening.write_text(str(attempts + 1), "ascii")
            shard = qe.EdgeShard.load(str(self.folder / self._name))
            if {*_KEYWORDS, *CODES} - set(shard.info().payload_schema):
                raise ValueError("unexpected payload fields")
        except FileNotFoundError as error:
            if error.filename and Path(error.filename).name == "index.json" and not any(self.folder.iterdir()):
                return None
            self._log_unreadable(error)
            return None
        except Exception as error:  # Qdrant Edge raises plain Exception
            if is_unwritable(error):  # the index may be whole; the next attempt may find room
                raise
            self._log_unreadable(error)
            return None
        opening.unlink()
        return shard

    def _log_unreadable(self, error: Exception) -> None:
        log.error("Cannot read the search index in %s: %s. It will be rebuilt from the store.", self.folder, error)

    def _clear(self) -> None:
        self._name, self.spaces, self.fields, self._optimized_at = "edge-1", {}, (analyzers.ENGLISH,), 0
        self.vector_names = self._had_names = ()
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _create(self) -> qe.EdgeShard:
        _require_room(self.folder)
        path = self.folder / self._name
        path.mkdir()
        shard = qe.EdgeShard.create(str(path), build_config(self.fields))
        for name in (*_KEYWORDS, *CODES):
            params = qe.KeywordIndexParams(is_tenant=name == LANGUAGE, memory=qe.Memory.Cold)
            shard.update(qe.UpdateOperation.create_field_index(name, params))
        shard.flush()
        self._write_record()
        return shard

    def _describe_spaces(self) -> dict[str, Any]:
        return {name: asdict(space) for name, space in self.spaces.items()}

    def _write_record(self) -> None:
        """Record the folder of the shard, its fields and the spaces of its vectors, atomically."""
        record = {
            "version": _VERSION,
            "shard": self._name,
            "spaces": self._describe_spaces(),
            "names": self.vector_names,
            "had_names": self._had_names,
            "fields": self.fields,
            "optimized_at": self._optimized_at,
        }
        write_file(self.folder / "index.json", json.dumps(record), sync=True)


def _read_spaces(described: Mapping[str, Mapping[str, Any]]) -> dict[str, VectorSpace]:
    return {name: VectorSpace(**each) for name, each in described.items()}


def _require_room(folder: Path) -> None:
    """Raise OSError if the disk is full: Edge writes through memory maps, which ends the process on a full disk."""
    if shutil.disk_usage(folder).free < _ROOM_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def build_config(
    fields: Sequence[str],
    spaces: Mapping[str, VectorSpace] | None = None,
    names: Collection[str] = (),
    *,
    optimizers: bool = False,
) -> qe.EdgeConfig:
    """Build the configuration of a shard with the vectors of some names of its spaces.

    Its optimized segments are files, which the system caches.
    With `optimizers`, optimizing moves every segment out of memory. There is no graph of the vectors (HNSW): a search
    by meaning reads all of them, quantized.
    """
    vectors = {
        name: qe.EdgeVectorParams(
            space.dimensions,
            qe.Distance.Cosine,
            multivector_config=rows,
            datatype=_HALF,
            quantization_config=qe.ScalarQuantizationConfig(
                qe.ScalarType.Int8, quantile=_QUANTILE, memory=qe.Memory.Cold
            )
            if optimizers
            else None,
            hnsw_config=qe.HnswIndexConfig(0, 1, 0),
            memory=qe.Memory.Cold,
        )
        for key, space in (spaces or {}).items()
        for name, rows in zip(get_names(key), _ROWS, strict=True)
        if name in names
    }
    words = qe.EdgeSparseVectorParams(memory=qe.Memory.Cold)
    return qe.EdgeConfig(
        vectors=vectors or None,
        sparse_vectors=dict.fromkeys(fields, words),
        # A threshold of 1 KB: below it, the words of a segment stay in memory.
        optimizers=qe.EdgeOptimizersConfig(
            indexing_threshold=1, default_segment_number=1, max_segment_size=_UNLIMITED_KB
        )
        if optimizers
        else None,
        max_search_threads=1,  # of a shard, of which there may be many
        payload_memory=qe.Memory.Cold,
        id_tracker_memory=qe.Memory.Cold,
    )


def _remove_left(folder: Path) -> None:
    """Remove a folder that a killed process has left. One that optimizes dies with it, but a moment later."""
    for _ in range(_REMOVALS):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if not folder.exists():
                return
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise
            time.sleep(_REMOVAL_PAUSE_S)
        else:
            return
    shutil.rmtree(folder)


def is_outdated(folder: Path) -> bool:
    """Return whether the shard in `folder` was written by an earlier version of this module, in another format."""
    try:
        return int(json.loads((folder / "index.json").read_text("utf-8"))["version"]) < _VERSION
    except (OSError, ValueError, KeyError, TypeError):
        return False


def compact_folder(folder: Path) -> None:
    """Copy the points of the shard in `folder` into a new one, and remove the old files, which contain deleted points.

    The folder must not be open elsewhere. A killed copy is removed when the folder is opened.
    """
    old = Shard(folder)
    number = int(old._name.partition("-")[2]) + 1
    draft = Shard(folder / _DRAFT)
    for name in old.fields:
        draft.add_field(name)
    for name, space in old.spaces.items():
        draft.use_space(name, space)
        for each, rows in zip(get_names(name), _ROWS, strict=True):
            if each in old.vector_names:
                draft._create_vectors(each, space.dimensions, rows)
    offset: Any = None
    while True:
        with old._borrow() as shard:
            records, offset = shard.scroll(
                qe.ScrollRequest(limit=UPDATE_POINTS, offset=offset, with_payload=True, with_vector=True)
            )
        points = [qe.Point(each.id, _get_vectors(each), each.payload or {}) for each in records]
        if points:
            draft._put(points, {int(each.id): words for each in records if (words := _get_words(each))})
        if offset is None:
            break
    with old._borrow() as before, draft._borrow() as after:
        if before.info().points_count != after.info().points_count:
            raise RuntimeError("The copy of the search index is incomplete.")
    draft.close()
    old.close()
    (folder / _DRAFT / draft._name).rename(folder / f"edge-{number}")
    old_folder, old._name, old._optimized_at = folder / old._name, f"edge-{number}", 0
    old._write_record()
    shutil.rmtree(old_folder)
    shutil.rmtree(folder / _DRAFT)


def _get_words(record: qe.Record) -> Words:
    return {name: each.indices for name, each in _get_vectors(record).items() if isinstance(each, qe.SparseVector)}


def _get_vectors(record: qe.Record) -> dict[str, Any]:
    vectors: Any = record.vector
    return dict(vectors or {})


def optimize_folder(folder: Path, schema: str) -> None:
    """Optimize the shard in `folder`, which must not be open elsewhere. `schema` is JSON: fields, spaces, names."""
    given = json.loads(schema)
    config = build_config(given["fields"], _read_spaces(given["spaces"]), given["names"], optimizers=True)
    shard = qe.EdgeShard.load(str(folder), config)
    shard.optimize()
    shard.flush()
    shard.close()


def _read_through(file: Path) -> int:
    """Read a file without keeping its content, and return its size in bytes."""
    size, buffer = 0, bytearray(1 << 20)
    with file.open("rb", buffering=0) as opened:
        while read := opened.readinto(buffer):
            size += read
    return size
