"""The worker thread that embeds units in the background and optimizes the shard, and the embedding of queries."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from kg.errors import QuadciteError, UpstreamError
from kg.files import is_unwritable
from kg.search.embedding import Embedder
from kg.search.points import SLOTS
from kg.search.query_language import detect_query_language
from kg.search.shards import Shards
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import Rows, VectorCache

log = logging.getLogger(__name__)

_FETCH = 2_048
"""Pending units fetched at once, or more; sorted by length, so that batches have little padding."""

_CHARACTERS_OF_TEXT = 2_000
"""Characters for each text of a batch. A batch is what runs between two checks for running searches."""

_PATIENCE_S = 0.5
"""Maximum time that a batch waits for searches, so that constant searches do not stop the embedding."""

_RETRY_S = (5.0, 300.0)
_OPENING_S = 60.0
_IDLE_S = 5.0
_QUERY_PAUSE_S = 5.0
"""Seconds after a failure in which queries are not embedded: each would wait for an endpoint that does not answer."""
_MAINTENANCE_S = 30.0
"""Seconds between two looks at the growth of the shards while they are written."""
_CACHED_QUERIES = 512
_RATE_WEIGHT = 0.02
"""Weight of a batch in the mean rate: of late means of some 50 batches."""


@dataclass(slots=True)
class ModelSlot:
    """One of the models of an index: opened in the background, with retries. Each fails on its own."""

    model: str
    """Name of the configured model; that of the embedder once it is open."""
    open_embedder: Callable[[], Embedder]
    embedder: Embedder | None = None
    error: str | None = None
    """Why no vectors are being computed, or None."""
    queries: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)
    next_query: float = 0.0
    """The time of the monotonic clock from which queries are embedded."""
    next_try: float = 0.0
    """The same for texts."""
    retry_s: float = _RETRY_S[0]
    opened: threading.Event = field(default_factory=threading.Event)
    """Set once the embedder is open or has failed to open."""

    def fail(self, error: Exception) -> None:
        """Note and log why no vectors are being computed."""
        if self.error != str(error):
            log.warning("%s computes no vectors: %s", self.model, error, exc_info=not isinstance(error, QuadciteError))
        self.error = str(error)


@dataclass(slots=True)
class VectorWorker:
    """The embedders of an index: of the first model, and of the second one if there is one."""

    slots: Sequence[ModelSlot]
    indexes: Sequence[UnitIndex] = field(init=False)
    cache: VectorCache = field(init=False)
    rate: float | None = None
    """Texts embedded a second, of late; None before the first batch."""
    _wake: threading.Event = field(default_factory=threading.Event)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _is_waiting: bool = False
    _searching: int = 0
    _quiet: threading.Condition = field(default_factory=threading.Condition)
    _optimizing: threading.Thread | None = None
    _maintained: float = field(default_factory=time.monotonic)

    @property
    def model(self) -> str:
        """Names of the models, separated by commas."""
        return ",".join(slot.model for slot in self.slots)

    @property
    def error(self) -> str | None:
        """Why a model computes no vectors, or None."""
        return "; ".join(slot.error for slot in self.slots if slot.error is not None) or None

    @property
    def is_stuck(self) -> bool:
        """Whether a model has failed, and nothing else is being computed."""
        return self.error is not None and self._is_waiting and not self._wake.is_set()

    def start(self, indexes: Sequence[UnitIndex], cache: VectorCache) -> None:
        """Start embedding the units of some indexes in a daemon thread."""
        self.indexes, self.cache = indexes, cache
        threading.Thread(target=self._work, name="vectors", daemon=True).start()

    def stop(self) -> None:
        """Stop writing vectors; the current batch is discarded."""
        self._stopping.set()
        self._wake.set()

    def wake(self) -> None:
        """Signal that there may be units without a vector."""
        self._wake.set()

    def await_embedder(self, until: float | None = None) -> None:
        """Wait until each embedder is open or has failed to open, or until a time of the monotonic clock."""
        until = time.monotonic() + _OPENING_S if until is None else min(until, time.monotonic() + _OPENING_S)
        for slot in self.slots:
            slot.opened.wait(max(0.0, until - time.monotonic()))

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Pause the embedding of documents while a search runs."""
        with self._quiet:
            self._searching += 1
        try:
            yield
        finally:
            with self._quiet:
                self._searching -= 1
                self._quiet.notify_all()

    def embed_query(self, text: str, number: int = 0) -> Sequence[float] | None:
        """Embed a query by the model of a number, or return None without its embedder."""
        slot = self.slots[number]
        embedder = slot.embedder
        if embedder is None:
            return None
        with self._quiet:
            if text in slot.queries:
                slot.queries.move_to_end(text)
                return slot.queries[text]
        if time.monotonic() < slot.next_query:
            return None
        try:
            vector: list[float] = embedder.embed_query(text).tolist()
        except UpstreamError as error:
            slot.fail(error)
            slot.next_query = time.monotonic() + _QUERY_PAUSE_S
            return None
        except QuadciteError as error:
            slot.fail(error)
            return None
        with self._quiet:
            slot.queries[text] = vector
            if len(slot.queries) > _CACHED_QUERIES:
                slot.queries.popitem(last=False)
        return vector

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        """Embed texts by the first model as one unit vector each, the mean of its windows; None without it."""
        self.await_embedder()
        first = self.slots[0]
        if first.embedder is None:
            return None
        try:
            with self.pause():
                means = [rows.mean(axis=0) for rows in first.embedder.embed_documents(texts)]
        except QuadciteError as error:
            first.fail(error)
            return None
        return [(mean / (np.linalg.norm(mean) or 1.0)).tolist() for mean in means]

    def _work(self) -> None:
        if len(self.slots) > 1:
            detect_query_language("the first query would wait until the detector is loaded")
        while not self._stopping.is_set():
            self._wake.clear()
            for number, slot in enumerate(self.slots):
                # A model that has failed is not tried again for new units: they do not repair it.
                if not self._stopping.is_set() and time.monotonic() >= slot.next_try:
                    self._run(number, slot)
            self._is_waiting = True
            if not self._wake.wait(_IDLE_S) or self.error is not None:
                self._maintain_safely()
            self._is_waiting = False

    def _run(self, number: int, slot: ModelSlot) -> None:
        """Open a model if it is not open, and compute the vectors that are due by it."""
        try:
            embedder = slot.embedder or self._open(number, slot)
            for space in (space for space, of in SLOTS.items() if of == number):
                for units in self.indexes:
                    self._embed_pending(embedder, space, units)
            slot.error, slot.retry_s = None, _RETRY_S[0]
        except Exception as error:  # noqa: BLE001 Qdrant Edge raises plain Exception; status() reports it
            if self._stopping.is_set():
                return
            slot.fail(error)
            if slot.embedder is None:
                for units in self.indexes:
                    units.spaces.lose(number)
            slot.opened.set()
            slot.next_try = time.monotonic() + slot.retry_s
            slot.retry_s = min(2 * slot.retry_s, _RETRY_S[1])

    def _open(self, number: int, slot: ModelSlot) -> Embedder:
        embedder = slot.open_embedder()
        self.cache.use(number, embedder.name, embedder.dimensions)
        for units in self.indexes:
            units.use_model(number, embedder.name, embedder.dimensions, embedder.languages)
        slot.embedder, slot.model = embedder, embedder.name
        slot.opened.set()
        return embedder

    def _embed_pending(self, embedder: Embedder, space: str, units: UnitIndex) -> None:
        while not self._stopping.is_set() and (pending := units.pending(space, max(_FETCH, 4 * embedder.at_once))):
            self._maintain()
            texts = dict(pending.values())
            known = self.cache.get(texts, embedder.name)
            self._store(units, space, pending, known)
            missing = sorted(texts.keys() - known.keys(), key=lambda text_hash: (len(texts[text_hash]), text_hash))
            for batch in _batches(missing, texts, embedder.at_once):
                if self._stopping.is_set():
                    return
                self._maintain()
                self._wait_for_searches()
                begun = time.monotonic()
                made = embedder.embed_documents([texts[text_hash] for text_hash in batch])
                vectors = {text_hash: rows.astype(np.float16) for text_hash, rows in zip(batch, made, strict=True)}
                self.cache.put(embedder.name, vectors)
                self._store(units, space, pending, vectors)
                self._measure(len(batch), time.monotonic() - begun)

    def _store(
        self,
        units: UnitIndex,
        space: str,
        pending: Mapping[int, tuple[str, str]],
        vectors: Mapping[str, Rows],
    ) -> None:
        if self._stopping.is_set():
            return
        units.set_vectors(
            space,
            {id_: (text_hash, vectors[text_hash]) for id_, (text_hash, _) in pending.items() if text_hash in vectors},
        )

    def _measure(self, texts: int, seconds: float) -> None:
        rate = texts / max(seconds, 1e-6)
        self.rate = rate if self.rate is None else self.rate + _RATE_WEIGHT * (rate - self.rate)

    def _wait_for_searches(self) -> None:
        with self._quiet:
            self._quiet.wait_for(lambda: self._searching == 0, _PATIENCE_S)

    def _maintain(self) -> None:
        """Flush the write-ahead logs, and start to optimize a shard that has grown. Seldom, while texts are written."""
        at_rest = all(units.shards.is_at_rest for units in self.indexes)
        if self._stopping.is_set() or not (at_rest or time.monotonic() > self._maintained + _MAINTENANCE_S):
            return
        self._maintained = time.monotonic()
        for units in self.indexes:
            units.shards.flush()
            if self._optimizing is None or not self._optimizing.is_alive():
                self._optimizing = None
                if (grown := units.shards.find_grown()) is not None:
                    self._optimizing = threading.Thread(
                        target=self._optimize, args=[units.shards, grown], name="optimizing", daemon=True
                    )
                    self._optimizing.start()

    def _maintain_safely(self) -> None:
        try:
            self._maintain()
        except Exception as error:  # noqa: BLE001 Qdrant Edge raises plain Exception; tried again
            _log_failure("The search index could not be flushed or optimized", error)

    def _optimize(self, shards: Shards, grown: str | None) -> None:
        """Optimize a shard, and then those that have grown meanwhile: in a long load the next one is full by then."""
        try:
            while grown is not None and shards.optimize(grown) and not self._stopping.is_set():
                grown = shards.find_grown()
        except Exception as error:  # noqa: BLE001 the same; the shard is as it was, and is optimized later
            _log_failure("The search index was not optimized", error)


def _log_failure(message: str, error: Exception) -> None:
    log.error("%s: %s", message, error, exc_info=not is_unwritable(error))


def _batches(hashes: Sequence[str], texts: Mapping[str, str], at_once: int) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for text_hash in hashes:
        batch.append(text_hash)
        characters += len(texts[text_hash])
        if len(batch) == at_once or characters >= at_once * _CHARACTERS_OF_TEXT:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
