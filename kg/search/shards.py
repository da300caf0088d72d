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
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from sys import intern
from threading import Lock, RLock, local
from typing import Any, Final

from kg.errors import IndexUnavailableError
from kg.files import copy_with_holes, measure_disk, write_file
from kg.search.analyzers import ENGLISH, get_analyzer
from kg.search.points import (
    LANGUAGE,
    NO_HITS,
    UPDATE_POINTS,
    Filter,
    Hits,
    Ids,
    Places,
    Point,
    Precision,
    VectorSpace,
    compute_id,
)
from kg.search.protocol import Conditions
from kg.search.shard import REST_S, compact_folder, is_outdated
from kg.search.shard_group import ShardGroup
from kg.search.shard_process import ShardProcess
from kg.search.word_rarity import Words, weigh
from kg.store.protocol import batched

log = logging.getLogger(__name__)

MOST_TEXTS: Final = 125_000
"""Texts of a shard that gets no more graphs: with vectors, optimizing it takes 1.2 GB."""
_MOST_OVER: Final = 1.2
"""As a multiple of the texts of a full shard: with more, its graphs move to another one when they are written again."""
_MOST_BYTES: Final = 1 << 30
EXACT_VECTORS: Final = 10_000
"""Up to this many vectors of a space, a search compares all original ones: 0.6 ms of processor time for 10,000."""
RESCORED_VECTORS: Final = 100_000
"""Up to this many, it scores all units that it returns by the original vectors, which are in memory then."""
_RESCORED: Final = 200
"""The first units by quantized vectors whose scores are computed again by the original ones."""
_RECORD: Final = "index.json"
_KEY: Final = "ids.key"
_KEY_BYTES: Final = 16
_PAGE: Final = 1_000
_MOST_COUNTED: Final = 64
"""Counts that are kept."""

_MOST_LANGUAGES: Final = 100_000
"""Points whose languages are kept, some 100 bytes each."""

_Holder = ShardGroup | ShardProcess


class Shards:
    """The shards in `folder`, in at most `processes` processes of which this one is the first.

    Any thread may read, without waiting for writes, which are serialized by `writing`. A process has the open files
    `inherited` until it ends. `on_lost` is called when a process died and a shard of it cannot be read any more: the
    index lacks graphs that it is known to have, and has to be opened again.
    """

    def __init__(
        self,
        folder: Path,
        *,
        exact_vectors: int = EXACT_VECTORS,
        rescored_vectors: int = RESCORED_VECTORS,
        most_texts: int = MOST_TEXTS,
        processes: int = 1,
        inherited: Sequence[int] = (),
        on_lost: Callable[[], object] = lambda: None,
    ) -> None:
        self.folder: Final = folder
        self.writing: Final = RLock()
        self._exact_vectors: Final = exact_vectors
        self._rescored_vectors: Final = rescored_vectors
        self._most_texts: Final = most_texts
        self._most_processes: Final = processes
        self._inherited: Final = inherited
        self._on_lost: Final = on_lost
        folder.mkdir(parents=True, exist_ok=True)
        self._key, unreadable = self._read_key()
        recorded, lost = self._read_record()
        lost |= unreadable
        names = {*recorded, *_list_folders(folder)}
        self.names: tuple[str, ...] = ()
        """The shards, in the order in which they were made."""
        self.fields: tuple[str, ...] = (ENGLISH,)
        """The fields of texts (`kg.search.analyzers`)."""
        self.spaces: dict[str, VectorSpace] = {}
        """The model and dimensions of each space of vectors."""
        self._texts: dict[str, int] = {}
        """At most how many texts each shard has, if known: some of those added may have replaced others."""
        self._updates = 0
        self._updates_of_vectors = 0
        self._written_s = -math.inf
        """When the last update was made."""
        self._failures = 0
        """How often an answer lacked those of a process."""
        self._failing: Final = Lock()
        self._tolerated: Final = local()
        self._weighed: tuple[int, object, Words] = -1, None, {}
        """Number of updates, the last query by words with its language, and its words."""
        self._counted: tuple[int, dict[str, int]] = -1, {}
        """Number of updates when units were counted, and their numbers by condition."""
        self._languages: tuple[int, dict[int, str]] = -1, {}
        """Number of updates of texts when languages of points were loaded, and these by id."""
        self._places: Final = Places[_Holder]()
        self._group: Final = ShardGroup(folder)
        self._processes: tuple[ShardProcess, ...] = ()
        self._holders: dict[str, _Holder] = {}
        """What has each shard open."""
        self._lost = lost
        self._large: set[str] = set()
        """Names of the shards with large files, as of the last flush."""
        for name, found in self._open(sorted(names, key=_get_number)).items():
            self._add_opened(name, found)
            if found["is_new"] and (name in recorded or not recorded):  # else its making was interrupted
                lost.add(name)
        if not self.names:
            self._add()
        for name in self.fields:
            self._ask("add_field", field=name)
        self._write_record()

    def _open(self, names: Sequence[str]) -> dict[str, Any]:
        """Open the shards, divided among the processes by size: in each of them at once."""
        number = min(self._most_processes, len(names))
        divided: list[list[str]] = [[] for _ in range(max(1, number))]
        sizes = {name: measure_disk(self.folder / name) for name in names}
        for name in sorted(names, key=lambda name: -sizes[name]):
            min(divided, key=lambda part: sum(sizes[each] for each in part)).append(name)
        self._processes = tuple(self._make_process(part) for part in divided[1:])
        for process in self._processes:
            process.start()
        found = {name: self._group.open(name) for name in divided[0]}
        self._holders = dict.fromkeys(divided[0], self._group)
        for process in self._processes:
            found |= process.load()
            self._holders |= dict.fromkeys(process.names, process)
        return {name: found[name] for name in names}

    def _make_process(self, names: Sequence[str]) -> ShardProcess:
        return ShardProcess(self.folder, names, self._inherited, self._note_lost)

    def _add_opened(self, name: str, found: Mapping[str, Any]) -> None:
        self.spaces |= {space: VectorSpace(*each) for space, each in found["spaces"].items()}
        self.fields = tuple(sorted({*self.fields, *found["fields"]}))
        self.names = (*self.names, name)

    # Processes

    @contextmanager
    def tolerating(self) -> Iterator[set[str]]:
        """Read without the shards of a process that fails, in this thread; yields the names of these.

        Outside of this block, reads raise IndexUnavailableError then.
        """
        names: set[str] = set()
        self._tolerated.names = names
        try:
            yield names
        finally:
            del self._tolerated.names

    def _gather(self, operation: str, asked: Mapping[_Holder, Mapping[str, Any]]) -> dict[_Holder, Any]:
        """Ask several processes at once; return the answer of each."""
        silent: set[str] | None = getattr(self._tolerated, "names", None)
        error: Exception | None = None

        def note(holder: _Holder, raised: Exception) -> None:
            nonlocal error
            if silent is None or not isinstance(holder, ShardProcess) or not isinstance(raised, IndexUnavailableError):
                error = error or raised
                return
            log.warning("A search leaves out %s: %s", ", ".join(holder.names), raised)
            silent.update(holder.names)
            self._count_failure()

        sent: dict[_Holder, Callable[[], Any]] = {}
        for holder, arguments in asked.items():
            if silent is not None and isinstance(holder, ShardProcess) and not silent.isdisjoint(holder.names):
                self._count_failure()  # so that this answer is not kept either
                continue
            try:
                sent[holder] = holder.begin(operation, silent is not None, **arguments)
            except IndexUnavailableError as raised:
                note(holder, raised)
        found: dict[_Holder, Any] = {}
        for holder, finish in sent.items():  # this process first: the others work meanwhile
            try:
                found[holder] = finish()
            except Exception as raised:  # noqa: BLE001 -- raised below, once no answer is awaited
                note(holder, raised)
        if error is not None:
            raise error
        return found

    def _count_failure(self) -> None:
        with self._failing:
            self._failures += 1

    def _ask(self, operation: str, **arguments: Any) -> list[Any]:
        """Ask all processes at once."""
        return [*self._gather(operation, dict.fromkeys((self._group, *self._processes), arguments)).values()]

    def _ask_holder(self, shard: str, operation: str, **arguments: Any) -> Any:
        """Ask the process of a shard. Returns None if it fails and that is tolerated."""
        holder = self._holders[shard]
        return self._gather(operation, {holder: arguments}).get(holder)

    def _note_lost(self, names: Sequence[str]) -> None:
        log.error("%s cannot be read any more. The index has to be opened again.", ", ".join(names))
        self._lost |= {*names}
        self._write_record()
        self._on_lost()

    # Reading

    @property
    def lost(self) -> int:
        """The number of shards that were missing or unreadable, whose graphs are not all there yet."""
        return len(self._lost)

    @property
    def written(self) -> int:
        """A number that is higher after each update, and after each answer without the shards of a process."""
        return self._updates + self._failures

    @property
    def texts_written(self) -> int:
        """The same number, for updates of more than vectors alone."""
        return self.written - self._updates_of_vectors

    def compute_id(self, iri: str) -> int:
        """Compute the id of the point of an IRI (a unit, or the marker of a graph)."""
        return compute_id(iri, self._key)

    def count(self, where: Filter | None = None) -> int:
        """Count the points that meet some conditions."""
        return sum(self._ask("count", where=where))

    def count_kept(self, where: Filter) -> int:
        """Count the points that meet some conditions. Kept until the next update."""
        written, key = self.written, repr(where)
        if self._counted[0] != written or len(self._counted[1]) > _MOST_COUNTED:
            self._counted = written, {}
        counted = self._counted[1]
        if (known := counted.get(key)) is None:
            counted[key] = known = self.count(where)
        return known

    def count_texts(self) -> dict[str, int]:
        """Count the texts of each shard."""
        return {name: texts for counted in self._ask("count_texts") for name, texts in counted.items()}

    def count_values(self, field: str, where: Filter, limit: int) -> dict[str, int]:
        """Count the points that meet some conditions, by value of a field; exact below `limit` values."""
        found: Counter[str] = Counter()
        for counted in self._ask("count_values", field=field, where=where, limit=limit):
            found.update(counted)
        return dict(found)

    def scroll(
        self, where: Filter, fields: Sequence[str], *, limit: int | None = None
    ) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
        """Yield shard, id and fields of the points that meet some conditions, in pages; at most `limit` of a shard."""
        for name in self.names:
            start: int | None = None
            while True:
                arguments = {"name": name, "where": where, "fields": fields, "start": start, "limit": limit or _PAGE}
                page, start = self._ask_holder(name, "scroll", **arguments) or ((), None)
                for id_, payload in page:
                    yield name, id_, payload
                if start is None or limit is not None:
                    break

    def retrieve(self, ids: Sequence[int], fields: Sequence[str]) -> dict[int, Mapping[str, Any]]:
        """Load fields of those points that are there, by id."""
        found: dict[int, Mapping[str, Any]] = {}
        own = self._places.divide(self.written, ids, (self._group, *self._processes))
        asked = {holder: {"ids": some, "fields": fields} for holder, some in own.items()}
        for part in self._gather("retrieve", asked).values():
            found.update(part)
        return found

    def load_languages(self, ids: Ids) -> Sequence[str]:
        """Load the language of each of some points, "" for one that was deleted. Kept until texts are updated."""
        texts, wanted = self.texts_written, ids.tolist()
        if self._languages[0] != texts or len(self._languages[1]) > _MOST_LANGUAGES:
            self._languages = texts, {}
        kept = self._languages[1]
        if unknown := [id_ for id_ in wanted if id_ not in kept]:
            loaded = self.retrieve(unknown, [LANGUAGE])
            kept.update((id_, intern(str(payload[LANGUAGE]))) for id_, payload in loaded.items())
        return [kept.get(id_, "") for id_ in wanted]

    def search_words(self, text: str, language: str | None, where: Filter | None, limit: int) -> Hits:
        """Score the best `limit` units by the words of a text in a language (None: unsure), by BM25."""
        # A ranking asks several times: for the best units, and for those of other lists.
        written, (*known, words) = self.written, self._weighed
        if known != [written, (text, language)]:
            words = self._weigh(text, language)
            self._weighed = written, (text, language), words
        return self._search_words(words, where, limit)

    def _weigh(self, text: str, language: str | None) -> Words:
        """Weigh the words of a query in each field by their rarity."""
        analyzed = {name: get_analyzer(name).embed_query(text) for name in self.fields}
        asked = {name: (each.indices, each.values) for name, each in analyzed.items()}
        counted = self._count_words({name: [*words] for name, (words, _) in asked.items()})
        return weigh(text, language, asked, counted)

    def count_each(self, words: Sequence[str]) -> dict[str, tuple[int, list[int]]]:
        """Count the texts of each field, and those with each of some words; none have a stop word."""
        found = {name: [get_analyzer(name).list_dimensions(word)[:1] for word in words] for name in self.fields}
        counted = self._count_words({name: [*chain.from_iterable(each)] for name, each in found.items()})
        numbers = {name: iter(having) for name, (_, having) in counted.items()}
        return {
            name: (counted[name][0], [next(numbers[name]) if dimension else 0 for dimension in each])
            for name, each in found.items()
        }

    def _count_words(self, words: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, list[int]]]:
        """Count the texts of some fields in all shards, and those with each of some words."""
        counted = self._ask("count_words", words=words)
        return {
            name: (
                sum(part[name][0] for part in counted),
                [sum(numbers) for numbers in zip(*(part[name][1] for part in counted), strict=True)],
            )
            for name in words
        }

    def search_word(self, field: str, word: int, where: Filter | None, limit: int) -> set[int]:
        """Find up to `limit` units that contain a word, given as the dimension of a field."""
        return {*self._search_words({field: ([word], [1.0])}, where, limit).ids.tolist()}

    def _search_words(self, words: Words, where: Filter | None, limit: int) -> Hits:
        found = self._search("search_words", where, words=words, limit=limit) if words and limit else {}
        return Hits.join(found.values()).cut(limit)

    def _search(self, operation: str, where: Filter | None, **arguments: Any) -> dict[_Holder, Hits]:
        """Ask the processes that may have units that meet some conditions; return the hits of each."""
        holders: tuple[_Holder, ...] = (self._group, *self._processes)
        written = self.written
        if where is not None and "ids" in where:
            own = self._places.divide(written, where["ids"], holders)
            return self._gather_hits(
                operation, {holder: {"where": {**where, "ids": ids}, **arguments} for holder, ids in own.items()}
            )
        found = self._gather_hits(operation, {holder: {"where": where, **arguments} for holder in holders})
        for holder, hits in found.items():
            self._places.note(written, holder, hits.ids)
        return found

    def _gather_hits(self, operation: str, asked: Mapping[_Holder, Mapping[str, Any]]) -> dict[_Holder, Hits]:
        return {holder: Hits.decode(each) for holder, each in self._gather(operation, asked).items()}

    def search_vectors(
        self, space: str, vector: Sequence[float], where: Filter | None, limit: int, *, exact: bool = False
    ) -> Hits:
        """Score the best `limit` units by their cosines with a vector, of many vectors only the first `_RESCORED`."""
        if not limit or space not in self.spaces:
            return NO_HITS
        arguments = {"space": space, "vector": vector}
        precision = "original" if exact else self._choose_precision(space)
        by_holder = self._search("search_vectors", where, limit=limit, precision=precision, **arguments)
        found = Hits.join(by_holder.values()).cut(limit)
        if precision != "quantized":
            return found
        first = found.cut(_RESCORED)
        again = {}
        for holder, hits in by_holder.items():
            if own := hits.keep(first.ids).ids.tolist():
                again[holder] = {**arguments, "where": {"ids": own}, "limit": len(own), "precision": "original"}
        exactly = Hits.join(self._gather_hits("search_vectors", again).values())
        # Points that were deleted meanwhile stay: a shorter list would say that no other unit has a vector.
        return Hits.join((exactly, found.drop(exactly.ids)))

    def _choose_precision(self, space: str) -> Precision:
        vectors = self.count_kept({"having": [space]})
        if vectors <= self._exact_vectors:
            return "original"
        return "rescored" if vectors <= self._rescored_vectors else "quantized"

    # Writing

    def choose(self) -> str:
        """Choose the shard of a new graph: the first that is not full, else a new one."""
        with self.writing:
            if self._texts.keys() != {*self.names}:
                self._texts = self.count_texts()
            for name in self.names:
                if self._texts[name] < self._most_texts and name not in self._large:
                    return name
            return self._add()

    def is_overfull(self, name: str) -> bool:
        """Whether a shard has so many texts that its graphs should move, such as after the limit was lowered."""
        most = self._most_texts * _MOST_OVER
        with self.writing:
            if self._texts.get(name, most + 1) > most:  # counts are only known not to be lower
                self._texts = self.count_texts()
            return self._texts.get(name, 0) > most

    def put(self, home: str, points: Sequence[Point]) -> None:
        """Write at most UPDATE_POINTS points into a shard, each in place of the one in any shard."""
        with self._update():
            texts, self._texts = self._texts, {}  # if this fails, they are counted again
            self._ask("delete", ids=[point["id"] for point in points], excluded=home)
            self._ask_holder(home, "put", name=home, points=points)
            if home in texts:
                before, after = texts[home], texts[home] + sum("field" in point for point in points)
                if not before < self._most_texts <= after:
                    self._texts = {**texts, home: after}

    def delete(self, ids: Sequence[int], also: Conditions = ()) -> None:
        """Delete those of some points that meet further conditions."""
        for portion in batched(ids, UPDATE_POINTS):
            with self._update():
                self._texts = {}
                self._ask("delete", ids=portion, also=also)

    def set_vectors(self, space: str, vectors: Sequence[tuple[int, str, str]]) -> None:
        """Write the packed vectors of at most UPDATE_POINTS texts (id, hash, vectors) that have that hash still."""
        with self._update():
            self._updates_of_vectors += 1
            self._ask("set_vectors", space=space, vectors=vectors)

    def add_field(self, field: str) -> None:
        """Add a field of texts, unless the shards have it."""
        if field not in self.fields:
            with self._update():
                self._ask("add_field", field=field)
                self.fields = tuple(sorted((*self.fields, field)))

    def use_space(self, name: str, space: VectorSpace) -> None:
        """Store vectors of `space` by a name from now on, and drop others by that name."""
        with self._update():
            self._ask("use_space", name=name, model=space.model, dimensions=space.dimensions)
            self.spaces = {**self.spaces, name: space}

    @contextmanager
    def _update(self) -> Iterator[None]:
        """Serialize an update, and count it, also if it fails: a part of it may have been made."""
        with self.writing:
            try:
                yield
            finally:
                self._updates += 1
                self._written_s = time.monotonic()

    def distrust(self, names: Iterable[str]) -> None:
        """Note that shards have graphs which another shard has too, or are of another index: they are copies."""
        with self.writing:
            self._lost |= (copies := {*names})
            log.error(
                "%s: graphs that other shards have too, or from another index. They are indexed again.",
                ", ".join(sorted(copies)),
            )
            self._write_record()

    def note_complete(self) -> None:
        """Note that the graphs of lost shards are all there again."""
        with self.writing:
            if self._lost:
                self._lost = set()
                self._write_record()

    def flush(self) -> None:
        """Flush the write-ahead logs, so that the next start does not replay them."""
        self._ask("flush")
        self._large = {name for name in self.names if measure_disk(self.folder / name) > _MOST_BYTES}

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing has been written for some seconds."""
        return time.monotonic() > self._written_s + REST_S

    def find_grown(self) -> str | None:
        """Find a shard that is to be optimized."""
        return next((name for name in self._ask("find_grown") if name is not None), None)

    def optimize(self, name: str) -> bool:
        """Optimize a shard while it is searched and written; see `Shard.optimize`."""
        return bool(self._ask_holder(name, "optimize", name=name))

    def copy(self, target: Path, known: Collection[str] = ()) -> dict[str, str]:
        """Copy the files, flushed, into a new folder; return the SHA-256 of the bytes read, by path in the folder.

        Files whose SHA-256 is `known` are only read.
        """
        with self.writing:
            read: dict[str, str] = {}
            for name in self.names:
                copied = self._ask_holder(name, "copy", name=name, target=str(target / name), known=[*known])
                read |= {f"{name}/{path}": digest for path, digest in copied.items()}
            for file in (_RECORD, _KEY):
                read[file] = copy_with_holes(self.folder / file, target / file, known)
            return read

    def close(self) -> None:
        """Flush and close the files."""
        with self.writing:
            for process in self._processes:
                process.close()
            self._group.close()

    def _add(self) -> str:
        name = next(name for number in count(1) if (name := f"shard-{number}") not in self.names)
        texts = self.count_texts()
        holder: _Holder = self._group
        if self.names and 1 + len(self._processes) < self._most_processes:
            holder = self._make_process([])
            self._processes = (*self._processes, holder)
        elif self.names:
            of_holders: Counter[_Holder] = Counter()
            for each, other in self._holders.items():
                of_holders[other] += texts[each]
            holder = min(of_holders, key=of_holders.__getitem__)
        found = holder.open(name)
        self._holders = {**self._holders, name: holder}
        self._add_opened(name, found)
        for field in self.fields:
            self._ask("add_field", field=field)
        for each, space in self.spaces.items():
            self._ask("use_space", name=each, model=space.model, dimensions=space.dimensions)
        self._write_record()
        return name

    def _read_key(self) -> tuple[bytes, set[str]]:
        """Read the key of the ids of points, or make one. Without their key the shards cannot be used: they are lost.

        Returns the key and the names of these shards, which are removed.
        """
        path = self.folder / _KEY
        try:
            key = bytes.fromhex(path.read_text("ascii"))
            if len(key) == _KEY_BYTES:
                return key, set()
            problem = f"it has {len(key)} bytes instead of {_KEY_BYTES}"
        except (FileNotFoundError, ValueError) as error:
            problem = str(error)
        if names := _list_folders(self.folder):
            if not is_outdated(self.folder / names[0]):
                log.error("Cannot read %s: %s. The search index will be rebuilt from the store.", path, problem)
            else:  # its ids needed no key
                log.warning(
                    "The search index in %s was written by an earlier version. It will be rebuilt from the store, with "
                    "the vectors that are there.",
                    self.folder,
                )
            for name in names:
                shutil.rmtree(self.folder / name)
        key = secrets.token_bytes(_KEY_BYTES)
        write_file(path, key.hex(), sync=True)
        return key, {*names}

    def _read_record(self) -> tuple[list[str], set[str]]:
        """Read the names of the shards, and of those that were lost."""
        try:
            record = json.loads((self.folder / _RECORD).read_text("utf-8"))
            return [str(name) for name in record["shards"]], {str(name) for name in record["lost"]}
        except FileNotFoundError:
            return [], {_RECORD} if _list_folders(self.folder) else set()
        except (OSError, ValueError, KeyError, TypeError):
            log.error("Cannot read %s. The shards in the folder are used.", self.folder / _RECORD)
            return [], {_RECORD}

    def _write_record(self) -> None:
        record = {"shards": [*self.names], "lost": sorted(self._lost)}
        write_file(self.folder / _RECORD, json.dumps(record), sync=True)


def compact_folders(folder: Path) -> None:
    """Write the shards in `folder` again, without deleted points. They must not be open elsewhere."""
    for name in sorted(_list_folders(folder)):
        if (folder / name / _RECORD).is_file():
            compact_folder(folder / name)


def _list_folders(folder: Path) -> list[str]:
    """List the folders of shards; others, such as a copy with a longer name, are left alone."""
    return [path.name for path in folder.glob("shard-*") if path.is_dir() and path.name[len("shard-") :].isdigit()]


def _get_number(name: str) -> tuple[int, str]:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0, name
