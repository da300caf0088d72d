"""The embedded search index: Qdrant Edge in a process of its own, which this client starts, fills and restarts."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import SecretStr

from kg import errors
from kg.errors import IndexUnavailableError, InvalidInputError, ModelError
from kg.processes import child
from kg.processes.child import Child, ChildGoneError
from kg.search.protocol import Candidate, GraphUnits, IndexedUnit, IndexStatus, Mode, Ranking
from kg.settings import Settings

log = logging.getLogger(__name__)

_ATTEMPTS = 4
_UNITS_PER_MESSAGE = 200
_CHARACTERS_PER_MESSAGE = 1_000_000
_UNITS_PER_REPLACEMENT = 2_000
_GRAPHS_PER_REPLACEMENT = 200
_POLL_S = 0.1
_CLOSING_S = 60.0


_T = TypeVar("_T")


class EdgeIndex:
    """A SearchIndex in `path`. The process starts at the first call and is restarted when it has died.

    Calls block and are safe from any thread. IndexUnavailableError means that the process cannot be started (another
    one has locked the folder, or it cannot be written) or keeps dying.
    """

    command: ClassVar[Sequence[str]] = child.command("kg.search.index_process")

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._settings = settings
        self._starting = threading.Lock()
        self._writing = threading.Lock()
        self._connection: _Connection | None = None
        self._closed = False

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        """Replace the units of these graphs; the new ones are searchable by text on return."""
        with self._writing:
            for part in _split_replacement(graphs):
                self._retry(partial(_replace, part=part))

    def remove(self, graphs: Iterable[str]) -> None:
        """Delete all units of these graphs."""
        with self._writing:
            for part in _split_list(list(graphs), _GRAPHS_PER_REPLACEMENT):
                self._retry(partial(_remove, graphs=part))

    def state(self) -> dict[str, str]:
        """Return the content hash of each graph in the index; a graph with an interrupted replacement has none."""
        state: dict[str, str] = self._retry(lambda connection: connection.call("state"))
        return state

    def rank(
        self,
        query: str,
        *,
        units: Sequence[str] | None = None,
        parents: Sequence[str] | None = None,
        limit: int,
        mode: Mode = "hybrid",
        must: Sequence[str] = (),
    ) -> Ranking:
        """Return the best `limit` units for `query` by fused score (or by `mode`), equal scores by IRI.

        With `units`, each of these is scored (0 if it is not in the index) and the ranking is exhaustive. Otherwise the
        index searches as deep as needed for the first `limit` to be exact, so a shorter page is the beginning of a
        longer one; the ranking is exhaustive if nothing is left beyond `limit`.

        With `must`, only units with all of these words are ranked, in their text, title or names; words match as in
        a query: in any form (`tariff` matches `Tariffs`), without accents. A stop word matches nothing.
        """
        if limit < 1:
            raise InvalidInputError(f"Invalid limit {limit}. It must be at least 1.")
        if units is not None and parents is not None:
            raise InvalidInputError("Give units or parents, not both.")
        found = self._retry(
            lambda connection: connection.call(
                "rank",
                query=query,
                units=None if units is None else list(units),
                parents=None if parents is None else list(parents),
                limit=limit,
                mode=mode,
                must=list(must),
            )
        )
        candidates = tuple(Candidate(*fields) for fields in found["candidates"])
        return Ranking(candidates, found["exhaustive"], found["model"], found["pending"], found["units"])

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        """Return a unit vector for each of a few hundred short texts, or None if no vectors are being computed."""
        vectors: list[list[float]] | None = self._retry(lambda connection: connection.call("embed", texts=list(texts)))
        return vectors

    def rerank(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Score texts by the cross-encoder in `Settings.reranker_path`. Raises ModelError if that takes longer."""
        until = time.monotonic() + seconds  # the clock of all processes
        scores: list[float] = self._retry(
            lambda connection: connection.call("rerank", query=query, texts=list(texts), until=until)
        )
        return scores

    def status(self) -> IndexStatus:
        """Return counts; never waits for work in progress."""
        return IndexStatus(**self._retry(lambda connection: connection.call("status")))

    def wait(self, progress: Callable[[IndexStatus], None] | None = None) -> None:
        """Block until no vector is pending, or raise ModelError when none can be made."""
        # Until the embedder is open, it is unknown whether the stored vectors are of its model.
        self._retry(lambda connection: connection.call("await_embedder"))
        while True:
            status = self.status()
            if progress is not None:
                progress(status)
            if not status.pending_vectors:
                return
            if status.embedder_error is not None:
                raise ModelError(status.embedder_error)
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Stop the index process after its acknowledged writes are safe."""
        with self._writing, self._starting:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _retry(self, work: Callable[[_Connection], _T]) -> _T:
        """Run `work`, which must be safe to run twice, on a live process."""
        for _ in range(_ATTEMPTS):
            connection = self._connect()
            try:
                return work(connection)
            except ChildGoneError:
                self._discard(connection)
                if not self._closed:
                    log.warning("The index process of %s has died. Restarting it.", self._path)
        raise IndexUnavailableError(
            f"The index process of {self._path} died {_ATTEMPTS} times in a row. Its messages are on standard error. "
            "The index is derived data: stop the program, delete that folder and run `kg reindex` to rebuild it."
        )

    def _connect(self) -> _Connection:
        with self._starting:
            if self._closed:
                raise IndexUnavailableError(f"The search index in {self._path} is closed.")
            if self._connection is None:
                connection = _Connection(self.command)
                try:
                    connection.call("open", folder=str(self._path), settings=self._model_settings())
                except IndexUnavailableError:
                    connection.stop()
                    raise
                except ChildGoneError:
                    # Damage can end the process instead of raising: the next start counts that, and builds a new index.
                    log.warning("The index process of %s died while it opened the folder.", self._path)
                self._connection = connection
            return self._connection

    def _discard(self, connection: _Connection) -> None:
        with self._starting:
            if self._connection is connection:
                connection.stop()
                self._connection = None

    def _model_settings(self) -> dict[str, Any]:
        """Collect the settings of the process, with secrets: it inherits the environment, but not arguments."""
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else _to_json(value)
            for name, value in self._settings
            if name.startswith(("model", "embedding", "reranker_path")) and value is not None
        }


class _Connection:
    """A running index process: any thread sends requests, one thread hands out the replies."""

    def __init__(self, command: Sequence[str]) -> None:
        self._alive = True
        self._ids = itertools.count()
        self._sending = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        started: Future[Child] = Future()
        # Linux kills the process when the thread that started it ends, so that thread must last as long: the reader.
        self._reader = threading.Thread(target=self._read, args=(command, started), name="index-replies", daemon=True)
        self._reader.start()
        self.child = started.result()

    def call(self, operation: str, **arguments: Any) -> Any:
        """Run one operation and return its result or raise its error; ChildGoneError if the process has ended."""
        answer: Future[Any] = Future()
        number = next(self._ids)
        request = {"id": number, "operation": operation, "arguments": arguments}
        try:
            message = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError as error:
            surrogate = f"U+{ord(error.object[error.start]):04X}"
            raise InvalidInputError(f"The text contains a lone surrogate ({surrogate}), not a character.") from None
        with self._sending:
            if not self._alive:
                raise ChildGoneError
            self._waiting[number] = answer
            try:
                self.child.send(b"Q", message)
            except ChildGoneError:
                self._waiting.pop(number, None)
                raise
        return answer.result()

    def close(self) -> None:
        """Have the process finish its writes, and wait for its end."""
        try:
            self.call("close")
        except ChildGoneError:
            log.warning("The index process ended before it was closed.")
        self._reader.join(_CLOSING_S)
        self.stop()

    def stop(self) -> None:
        """Kill the process if it still runs; every waiting call raises ChildGoneError."""
        self.child.kill()
        self._reader.join()

    def _read(self, command: Sequence[str], started: Future[Child]) -> None:
        try:
            process = Child(command, stderr=None)
        except OSError as error:
            started.set_exception(IndexUnavailableError(f"The index process cannot be started: {error}"))
            return
        started.set_result(process)
        with suppress(ChildGoneError):
            while True:
                reply = json.loads(process.receive()[1])
                answer = self._waiting.pop(reply["id"])
                if "error" in reply:
                    name, message = reply["error"]
                    answer.set_exception(getattr(errors, name)(message))
                else:
                    answer.set_result(reply["result"])
        process.kill()  # so that a sender that waits for room in its pipe gives up the lock
        with self._sending:
            self._alive = False
            waiting, self._waiting = self._waiting, {}
            process.end()
        for answer in waiting.values():
            answer.set_exception(ChildGoneError())


def _replace(connection: _Connection, part: Mapping[str, GraphUnits]) -> None:
    """Replace a few graphs, in messages so small that writing one does not block the other threads."""
    connection.call("begin", graphs=list(part))
    batch: list[list[Any]] = []
    characters = 0
    for graph, content in part.items():
        for unit in content.units:
            batch.append(_to_fields(unit, graph))
            characters += len(unit.text) + len(unit.prelude) + len(unit.names)
            if len(batch) == _UNITS_PER_MESSAGE or characters >= _CHARACTERS_PER_MESSAGE:
                connection.call("put", units=batch)
                batch, characters = [], 0
    if batch:
        connection.call("put", units=batch)
    connection.call("finish", hashes={graph: content.content_sha256 for graph, content in part.items()})


def _remove(connection: _Connection, graphs: Sequence[str]) -> None:
    connection.call("remove", graphs=list(graphs))


def _to_fields(unit: IndexedUnit, graph: str) -> list[Any]:
    if unit.graph != graph:
        raise InvalidInputError(f"The unit {unit.iri} is in graph {unit.graph}, but was given for {graph}.")
    return [unit.iri, unit.graph, unit.parent, unit.text, unit.prelude, unit.language, unit.in_context, unit.names]


def _split_replacement(graphs: Mapping[str, GraphUnits]) -> Iterator[dict[str, GraphUnits]]:
    """Split a replacement into parts, begun and finished one by one: few enough graphs to repeat after a crash."""
    part: dict[str, GraphUnits] = {}
    units = 0
    for graph, content in graphs.items():
        part[graph] = content
        units += len(content.units)
        if units >= _UNITS_PER_REPLACEMENT or len(part) == _GRAPHS_PER_REPLACEMENT:
            yield part
            part, units = {}, 0
    if part:
        yield part


def _split_list(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _to_json(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else str(value)
