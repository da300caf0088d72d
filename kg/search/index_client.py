"""The embedded search index: Qdrant Edge in a process of its own, which this client starts, fills and restarts."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import SecretStr

from kg.errors import IndexUnavailableError, InvalidInputError, ModelError
from kg.processes import child, memory
from kg.processes.child import ChildGoneError
from kg.processes.rpc import LONG_S, OPENING_S, Call, Connection, RestartedProcess
from kg.search.protocol import (
    Candidate,
    Codes,
    Conditions,
    Counts,
    GraphUnits,
    IndexedUnit,
    IndexStatus,
    Mode,
    Ranking,
    UnitKind,
)
from kg.settings import Settings
from kg.store.protocol import batched

log = logging.getLogger(__name__)

_UNITS_PER_MESSAGE = 200
_CHARACTERS_PER_MESSAGE = 1_000_000
_MESSAGES_AHEAD = 3
_UNITS_PER_REPLACEMENT = 4_000
_GRAPHS_PER_REPLACEMENT = 200
_POLL_S = 0.1

TIMEOUT_S: Final = {
    "status": 2.0, "rank": 5.0, "rerank": 1.0, "count": 5.0, "load_codes": 5.0, "embed": 30.0, "state": 60.0,
    "await_embedder": 70.0,
}  # fmt: skip
"""Maximum seconds for an answer of the process by operation; `rerank` adds its own limit."""

COPY_TIMEOUT_S: Final = 600.0
"""Maximum seconds of a copy of the index."""

FIRST_WAIT_S: Final = 30.0
"""Maximum seconds that a read waits for the first start, and the first search for the embedding model.

After a restart a read waits as long as for an answer, and a search half as long for the model."""

_FIRST_STATUS_S: Final = 10.0


class EdgeIndex(RestartedProcess):
    """A SearchIndex in `path`. The process starts at the first call, and is restarted when it has died or is stopped.

    Calls block, each up to its deadline, and are safe from any thread. IndexUnavailableError means that the process
    cannot be started (another one has locked the folder, or it cannot be written), keeps dying, or did not answer in
    time. A process that answers nothing, not even a ping, is killed: after `SILENT_S` if it takes no processor time,
    after `BUSY_S` if it does.
    """

    command: ClassVar[Sequence[str]] = child.command("kg.search.index_process")

    timeouts = TIMEOUT_S
    reads = frozenset(("status", "rank", "rerank", "embed", "count", "load_codes"))

    def __init__(self, path: Path, settings: Settings) -> None:
        super().__init__()
        self.name = f"index process of {path}"
        self._path = path
        self._settings = settings
        self._writing = threading.Lock()
        self._has_ranked = False
        self._known = IndexStatus(0, 0, 0, settings.model)
        """The counts as last read."""
        self._changes = 0
        """Starts of the process, and replacements and removals that began or ended."""
        self._units, self._counted_at = 0, -1
        """The number of units, and of the changes before it was read."""
        self._missing = 0
        """Graphs of the store that the index lacks, as noted last."""

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        """Replace the units of these graphs; the new ones are searchable by text on return."""
        with self._changing():
            for part in _split_replacement(graphs):
                self._retry(partial(_replace, part=part))

    def remove(self, graphs: Iterable[str]) -> None:
        """Delete all units of these graphs."""
        with self._changing():
            for part in batched(graphs, _GRAPHS_PER_REPLACEMENT):
                self._retry(partial(_remove, graphs=part))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Write in the block, alone."""
        with self._writing:
            self._changes += 1
            try:
                yield
            finally:
                self._changes += 1

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
        codes: Conditions = (),
        counted: int = 0,
        kind: UnitKind = "text",
    ) -> Ranking:
        """Return the best `limit` units of a kind for `query` by fused score (or by `mode`), equal scores by IRI.

        With `units`, each of these is scored (0 if it is not in the index) and the ranking is exhaustive. Otherwise the
        index searches as deep as needed for the first `limit` to be exact, so a shorter page is the beginning of a
        longer one; the ranking is exhaustive if nothing is left beyond `limit`.

        With `must`, only units with all of these words are ranked, in their text, title or names; words match as in
        a query: in any form (`tariff` matches `Tariffs`), without accents. A stop word of the language of a text is not
        required; a text of which none is left is not ranked. With `codes`, only units that meet these conditions. With
        `counted`, so many of the units that match come with their codes.
        """
        if limit < 1:
            raise InvalidInputError(f"Invalid limit {limit}. It must be at least 1.")
        if units is not None and parents is not None:
            raise InvalidInputError("Give units or parents, not both.")
        return self._rank(
            query=query,
            units=None if units is None else list(units),
            parents=None if parents is None else list(parents),
            limit=limit,
            mode=mode,
            must=list(must),
            codes=_to_lists(codes),
            counted=counted,
            kind=kind,
        )

    def _rank(self, **arguments: Any) -> Ranking:
        # The first one waits for the embedding model, but not as long as this side waits for the answer.
        limit_s = TIMEOUT_S["rank"] if self._has_ranked else FIRST_WAIT_S
        until = time.monotonic() + limit_s / 2
        found = self._ask("rank", limit_s, until=until, **arguments)
        self._has_ranked = True
        candidates = tuple(_to_candidate(fields) for fields in found["candidates"])
        incomplete = self._describe_missing(found["lost"], found["silent"])
        return Ranking(
            candidates,
            found["exhaustive"] and incomplete is None,
            found["model"],
            found["pending"],
            found["units"],
            incomplete=incomplete,
            counted={iri: found["codes"][number] for iri, number in found["counted"]},
            near=found["near"],
            language=found["language"],
            is_latin=found["is_latin"],
            uncompared=found["uncompared"],
            stop_words=found["stop_words"],
            is_void=found["is_void"],
            models=found["models"],
        )

    def _describe_missing(self, lost: int, silent: int = 0) -> str | None:
        """Describe the missing graphs and shards: `lost` ones could not be opened, `silent` ones did not answer."""
        if self._missing:
            return (
                f"the search index lacks {self._missing:,} graphs of the store, or has them in an older state. They "
                "are being indexed."
            )
        if silent:
            return f"{silent} shard(s) of the search index did not answer. Their process is restarted: ask again soon."
        if lost:
            return (
                f"{lost} shard(s) of the search index were missing or unreadable. Their texts are indexed again when "
                "the index is compared with the store: by a running server, or by `kg reindex`."
            )
        return None

    def note_missing(self, graphs: int) -> None:
        """Note how many graphs of the store the index lacks; see `SearchIndex.note_missing`."""
        self._missing = graphs
        if not graphs:
            with self._writing:
                self._retry(lambda connection: connection.call("note_complete"))

    def count(self, fields: Sequence[str], codes: Conditions = ()) -> Counts:
        """Count the units that meet `codes`, exactly, and by each value of `fields`."""
        found = self._ask("count", fields=list(fields), codes=_to_lists(codes))
        return Counts(**found)

    def load_codes(self, units: Sequence[str]) -> Mapping[str, Codes]:
        """Return the codes of those of `units` that are in the index, with their ``parent``."""
        found: dict[str, Codes] = self._ask("load_codes", units=list(units))
        return found

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        """Return a unit vector for each of a few hundred short texts, or None if no vectors are being computed."""
        vectors: list[list[float]] | None = self._ask("embed", texts=list(texts))
        return vectors

    def rerank(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Score texts by the cross-encoder in `Settings.reranker_path`. Raises ModelError if that takes longer."""
        until = time.monotonic() + seconds  # the clock of all processes
        timeout_s = seconds + TIMEOUT_S["rerank"]
        scores: list[float] = self._ask("rerank", timeout_s, query=query, texts=list(texts), until=until)
        return scores

    def status(self) -> IndexStatus:
        """Return counts, or without an answer those of the last one and the problem; never waits for work.

        A process that answers other calls meanwhile is busy and has no problem.
        """
        begun = time.monotonic()
        try:
            self._known = self._load_status()
        except IndexUnavailableError as error:
            connection = self._connection
            if connection is None or connection.heard < begun:
                return replace(self._known, problem=str(error))
        return self._known

    def count_units(self) -> int:
        """Return the number of units, as `status` does; asks the process only if there was a write since."""
        changes = self._changes
        if self._counted_at != changes:
            status = self.status()
            if status.problem is not None:
                return status.units
            self._units, self._counted_at = status.units, changes
        return self._units

    def wait(self, progress: Callable[[IndexStatus], None] | None = None) -> None:
        """Block until no vector is pending, or raise ModelError when none can be made."""
        # Until the embedder is open, it is unknown whether the stored vectors are of its model.
        self._retry(lambda connection: connection.call("await_embedder"))
        while True:
            # With the patience of a write: if the process was restarted, it first opens the shards.
            found = self._retry(lambda connection: connection.call("status", LONG_S))
            status = self._build_status(found)
            if progress is not None:
                progress(status)
            if not status.pending_vectors:
                return
            if found["stuck"] and status.embedder_error is not None:
                raise ModelError(status.embedder_error)
            time.sleep(_POLL_S)

    def copy(self, target: Path, known: Collection[str] = ()) -> dict[str, str]:
        """Copy the files of the index into a new folder, between two writes; return the SHA-256 of the bytes read.

        Files whose SHA-256 is `known` are only read. Raises IndexUnavailableError.
        """
        with self._writing:
            connection = self._connect()
            try:
                read: dict[str, str] = connection.call("copy", COPY_TIMEOUT_S, target=str(target), known=[*known])
            except ChildGoneError:
                self._discard(connection)
                raise IndexUnavailableError(f"The index process of {self._path} died while it copied.") from None
            return read

    def close(self) -> None:
        """Stop the index process after its acknowledged writes are safe."""
        with self._writing:
            self._end()

    def _load_status(self) -> IndexStatus:
        return self._build_status(self._ask("status", first_wait_s=_FIRST_STATUS_S))

    def _build_status(self, found: Mapping[str, Any]) -> IndexStatus:
        return IndexStatus(**found["status"], incomplete=self._describe_missing(found["lost"]))

    def _ask(
        self, operation: str, timeout_s: float | None = None, first_wait_s: float = FIRST_WAIT_S, **arguments: Any
    ) -> Any:
        """Run an operation that reads, within `timeout_s` and as long again for a restart of the process."""
        limit_s = TIMEOUT_S[operation] if timeout_s is None else timeout_s
        wait_s = limit_s if self._opened_once else max(limit_s, first_wait_s)
        self._require_rest()
        return self._retry(lambda connection: connection.call(operation, limit_s, **arguments), wait_s)

    def _build_command(self) -> Sequence[str]:
        return memory.prefer_jemalloc(self.command)

    def _open(self, connection: Connection) -> None:
        self._changes += 1
        connection.call("open", OPENING_S, folder=str(self._path), settings=self._model_settings())

    def _model_settings(self) -> dict[str, Any]:
        """Collect the settings of the process, with secrets: it inherits the environment, but not arguments."""
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else _to_json(value)
            for name, value in self._settings
            if name.startswith(("model", "embedding", "reranker_path", "index")) and value is not None
        }


def _replace(connection: Connection, part: Mapping[str, GraphUnits]) -> None:
    """Replace a few graphs, in messages so small that writing one does not block the other threads.

    While the process writes the units of a message, the next ones are built and sent.
    """
    sent: deque[Call] = deque([connection.begin("begin", graphs=list(part))])
    try:
        for batch in _build_messages(part):
            sent.append(connection.begin("put", units=batch))
            if len(sent) > _MESSAGES_AHEAD:
                connection.wait(sent.popleft())
        while sent:
            connection.wait(sent.popleft())
    finally:
        for call in sent:
            with suppress(Exception):  # the first error is raised
                connection.wait(call)
    connection.call("finish", hashes={graph: content.content_sha256 for graph, content in part.items()})


def _build_messages(part: Mapping[str, GraphUnits]) -> Iterator[list[list[Any]]]:
    """Build the units of each message."""
    batch: list[list[Any]] = []
    characters = 0
    for graph, content in part.items():
        for unit in content.units:
            batch.append(_to_fields(unit, graph))
            characters += len(unit.text) + len(unit.prelude) + len(unit.names)
            if len(batch) == _UNITS_PER_MESSAGE or characters >= _CHARACTERS_PER_MESSAGE:
                yield batch
                batch, characters = [], 0
    if batch:
        yield batch


def _remove(connection: Connection, graphs: Sequence[str]) -> None:
    connection.call("remove", graphs=list(graphs))


def _to_candidate(fields: Mapping[str, Any]) -> Candidate:
    span = fields["span"]
    return Candidate(**{**fields, "span": span and tuple(span)})


def _to_lists(conditions: Conditions) -> list[dict[str, list[str]]]:
    return [{name: list(values) for name, values in condition.items()} for condition in conditions]


def _to_fields(unit: IndexedUnit, graph: str) -> list[Any]:
    if unit.graph != graph:
        raise InvalidInputError(f"The unit {unit.iri} is in graph {unit.graph}, but was given for {graph}.")
    return [
        unit.iri,
        unit.graph,
        unit.parent,
        unit.text,
        unit.prelude,
        unit.language,
        unit.in_context,
        unit.names,
        {name: list(values) for name, values in unit.codes.items()},
    ]


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


def _to_json(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else str(value)
