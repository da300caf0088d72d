"""The index process: Qdrant Edge and the embedder, which hold the GIL for long, outside the server.

It exchanges frames of JSON with one client (`kg.search.index_client.EdgeIndex`) and dies with it; logs go to standard
error. With the arguments ``optimize FOLDER JSON`` it optimizes one shard that no process has open, and with ``compact
FOLDER`` it writes the files of an index again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from kg.errors import IndexUnavailableError, ModelError
from kg.files import find_links
from kg.processes import confine, rpc
from kg.processes.cores import count_cores
from kg.processes.garbage_collection import exempt_present_objects
from kg.processes.memory import keep_few_arenas
from kg.search import embedding
from kg.search.cross_encoder import CrossEncoder, CrossEncoderWorker
from kg.search.protocol import Conditions, IndexedUnit, IndexStatus, Mode, UnitKind, get_kind
from kg.search.registry import get_languages
from kg.search.reranker import AT_ONCE
from kg.search.shard import optimize_folder
from kg.search.shards import Shards, compact_folders
from kg.search.spaces import Spaces
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from kg.search.vector_worker import ModelSlot, VectorWorker
from kg.settings import Settings

log = logging.getLogger("kg.search.index_process")

ENTITIES = "entities"
"""Folder of the shard of entities, in that of the shard of texts: neither changes the order of the other."""

_SEARCHES = 8
_LOCK_WAIT_S = 5.0
_LINK_DEPTH = 4
"""Levels of the folder in which links are looked for: down to the files of a shard of entities."""


class Server:
    """Answers one client's requests: searches in parallel, writes one after the other."""

    def __init__(
        self, folder: Path, vectors: VectorWorker, reranker: CrossEncoderWorker | None = None, processes: int = 1
    ) -> None:
        self._lock = _lock(folder)
        self._vectors = vectors
        self._reranker = reranker
        self._cache = VectorCache(folder)
        self._indexes: dict[UnitKind, UnitIndex] = {
            kind: UnitIndex(
                # The processes have the lock too: an index is not opened again while one of them still writes.
                Shards(place, processes=processes, inherited=[self._lock], on_lost=_give_up),
                self._cache,
                vectors.embed_query,
                on_pending=vectors.wake,
                spaces=Spaces(
                    languages={number: get_languages(slot.model) for number, slot in enumerate(vectors.slots)}
                ),
            )
            for kind, place in _find_places(folder).items()
        }
        vectors.start([*self._indexes.values()], self._cache)
        self.operations: dict[str, Callable[..., Any]] = {
            "rank": self._rank,
            "embed": vectors.embed,
            "rerank": self._rerank,
            "count": self._count,
            "load_codes": self._indexes["text"].load_codes,
            "state": self._state,
            "status": self._status,
            "await_embedder": vectors.await_embedder,
            "begin": self._begin,
            "put": self._put,
            "finish": self._finish,
            "remove": self._remove,
            "note_complete": self._note_complete,
            "copy": self._copy,
            "close": self._close,
        }

    def _rank(
        self,
        query: str,
        units: list[str] | None,
        parents: list[str] | None,
        limit: int,
        mode: Mode,
        must: list[str],
        codes: Conditions,
        until: float,
        counted: int = 0,
        kind: UnitKind = "text",
    ) -> dict[str, Any]:
        index = self._indexes[kind]
        with self._vectors.pause():
            if mode != "bm25":
                self._vectors.await_embedder(until)
            with index.shards.tolerating() as silent:
                ranking = index.rank(query, units, parents, limit, mode, must, codes, counted)
        # Units of a document share their codes, which are sent once.
        distinct = {id(codes): codes for codes in ranking.counted.values()}
        numbers = {key: number for number, key in enumerate(distinct)}
        return {
            "candidates": [asdict(candidate) for candidate in ranking.candidates],
            "exhaustive": ranking.exhaustive,
            "model": ranking.model,
            "pending": ranking.pending,
            "units": ranking.units,
            "lost": self._count_lost(),
            "silent": len(silent),
            "counted": [(iri, numbers[id(codes)]) for iri, codes in ranking.counted.items()],
            "codes": [*distinct.values()],
            "near": ranking.near,
            "language": ranking.language,
            "is_latin": ranking.is_latin,
            "uncompared": ranking.uncompared,
            "stop_words": ranking.stop_words,
            "is_void": ranking.is_void,
            "models": ranking.models,
        }

    def _count(self, fields: list[str], codes: Conditions) -> dict[str, Any]:
        with self._vectors.pause():
            return asdict(self._indexes["text"].count(fields, codes))

    def _rerank(self, query: str, texts: list[str], until: float) -> list[float]:
        if self._reranker is None:
            raise ModelError("No reranker is configured.")
        with self._vectors.pause():
            return self._reranker.score(query, texts, until)

    def _status(self) -> dict[str, Any]:
        counted = {kind: index.counts() for kind, index in self._indexes.items()}
        units, pending, graphs = counted["text"]
        entities, without, more = counted["entity"]
        parts = sum(index.count_parts() for index in self._indexes.values())
        status = IndexStatus(units, pending + without, graphs + more, self._vectors.model, self._vectors.error)
        known = asdict(replace(status, entities=entities, parts=parts, vectors_per_s=self._vectors.rate))
        del known["incomplete"]
        return {"status": known, "lost": self._count_lost(), "stuck": self._vectors.is_stuck}

    def _count_lost(self) -> int:
        return sum(index.shards.lost for index in self._indexes.values())

    def _note_complete(self) -> None:
        for index in self._indexes.values():
            index.shards.note_complete()

    def _state(self) -> dict[str, str]:
        return {graph: state for index in self._indexes.values() for graph, state in index.state().items()}

    def _copy(self, target: str, known: list[str]) -> dict[str, str]:
        stored = frozenset(known)
        read = self._indexes["text"].shards.copy(Path(target), stored)
        entities = self._indexes["entity"].shards.copy(Path(target) / ENTITIES, stored)
        read |= self._cache.copy(Path(target), stored)
        return read | {f"{ENTITIES}/{path}": digest for path, digest in entities.items()}

    def _close(self) -> None:
        self._vectors.stop()
        for index in self._indexes.values():
            index.shards.close()
        self._cache.close()

    def _begin(self, graphs: list[str]) -> None:
        for kind, index in self._indexes.items():
            index.begin([graph for graph in graphs if get_kind(graph) == kind])

    def _put(self, units: list[list[Any]]) -> None:
        put = [IndexedUnit(*fields) for fields in units]
        for kind, index in self._indexes.items():
            if own := [unit for unit in put if get_kind(unit.graph) == kind]:
                index.put(own)

    def _finish(self, hashes: dict[str, str]) -> None:
        for kind, index in self._indexes.items():
            if own := {graph: state for graph, state in hashes.items() if get_kind(graph) == kind}:
                index.finish(own)

    def _remove(self, graphs: list[str]) -> None:
        for kind, index in self._indexes.items():
            if own := [graph for graph in graphs if get_kind(graph) == kind]:
                index.remove(own)


def serve(requests: BinaryIO, answers: int, open_embedder: Callable[[Settings, str], embedding.Embedder]) -> None:
    """Answer requests until the client closes or is gone. The first one contains the folder and the settings."""
    hello = rpc.read(requests)
    if hello is None:
        return
    sent = rpc.Answers(answers)
    server: list[Server] = []

    def open_folder(folder: str, settings: dict[str, Any]) -> None:
        configured = Settings(**settings)
        vectors = VectorWorker(
            [ModelSlot(model, partial(open_embedder, configured, model)) for model in configured.models]
        )
        try:
            processes = configured.index_processes or count_cores()
            server.append(Server(Path(folder), vectors, _open_reranker(configured), processes))
        except OSError as error:
            raise IndexUnavailableError(f"The search index in {folder} cannot be opened: {error}") from error

    sent.send(hello, open_folder)
    if not server:
        return
    operations = server[0].operations
    exempt_present_objects()
    with (
        ThreadPoolExecutor(1, "writes") as writes,
        ThreadPoolExecutor(_SEARCHES, "searches") as searches,
        ThreadPoolExecutor(2, "states") as states,
        ThreadPoolExecutor(AT_ONCE, "reranks") as reranks,
    ):
        pools = {"rank": searches, "embed": searches, "await_embedder": searches, "state": states, "status": states}
        pools |= {"rerank": reranks, "count": searches, "load_codes": searches}
        rpc.serve(requests, sent, operations, pools, writes)


def _find_places(folder: Path) -> dict[UnitKind, Path]:
    return {"text": folder, "entity": folder / ENTITIES}


def _give_up() -> None:
    """End this process at once: the client starts another one, which reads again which graphs are in the index."""
    os._exit(1)


def _open_reranker(settings: Settings) -> CrossEncoderWorker | None:
    folder = settings.reranker_path
    if folder is None:
        return None
    return CrossEncoderWorker(lambda: CrossEncoder(folder, settings.embedding_threads, settings.embedding_device))


def _lock(folder: Path) -> int:
    """Lock the index folder: a second process that opens it would corrupt the shard."""
    folder.mkdir(parents=True, exist_ok=True)
    links = [folder] if folder.is_symlink() else [*find_links(folder, _LINK_DEPTH)]
    if links:
        raise IndexUnavailableError(
            f"{min(links)} is a symbolic link. The folder of an index is cleared: remove the link."
        )
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(file, 32, 0).decode("ascii", "replace").strip()
                os.close(file)
                raise IndexUnavailableError(
                    f"The search index in {folder} is open in another process (pid {holder}). Stop that process first."
                ) from None
            time.sleep(0.05)
        else:
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode("ascii"), 0)
            return file


def _compact(folder: Path) -> None:
    """Write the files of an index again, without deleted texts and their vectors."""
    places = _find_places(folder).values()
    for each in places:
        compact_folders(each)
    cache = VectorCache(folder)
    indexes = [UnitIndex(Shards(each), cache, lambda text, slot: None) for each in places if each.is_dir()]
    cache.keep(chain.from_iterable(index.list_text_hashes() for index in indexes))
    for index in indexes:
        index.shards.close()
    cache.close()


def main(open_embedder: Callable[[Settings, str], embedding.Embedder] = embedding.open_embedder) -> None:
    """Serve one client on standard input and output, or optimize or compact a shard."""
    keep_few_arenas()
    confine.ignore_interrupts()
    confine.die_with_parent_thread()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if (job := sys.argv[1:2]) in (["compact"], ["optimize"]):
        folder = Path(sys.argv[2])
        try:
            if job == ["compact"]:
                _lock(folder)
                _compact(folder)
            else:
                os.nice(10)
                optimize_folder(folder, sys.argv[3])
        except Exception as error:  # noqa: BLE001 -- Qdrant Edge raises plain Exception, also for a disk without room
            sys.exit(f"Cannot {job[0]} {folder}: {error}")
        return
    requests, answers = confine.take_pipes()
    serve(requests, answers, open_embedder)
    # The daemon thread may be in the middle of a batch; every acknowledged write is in the write-ahead log.
    os._exit(0)
