"""A process that searches and writes some shards of an index for the index process: Qdrant Edge holds the GIL.

It answers the operations of `kg.search.shard_group`, and dies with the index process. If it dies alone, it is started
again, and the request that it had is sent once more.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kg.errors import IndexUnavailableError
from kg.processes import child, confine, rpc
from kg.processes.child import ChildGoneError
from kg.processes.garbage_collection import exempt_present_objects
from kg.processes.memory import keep_few_arenas
from kg.search.shard_group import ShardGroup

log = logging.getLogger(__name__)

_READS: Final = frozenset(
    ("count", "count_texts", "count_values", "count_words", "retrieve", "scroll", "search_vectors",
     "search_words")
)  # fmt: skip
_WRITES: Final = frozenset(
    ("open", "put", "delete", "set_vectors", "add_field", "use_space", "flush", "find_grown", "copy", "close")
)
_READING_S: Final = 4.0
"""Maximum seconds for an answer to a search, and for a restart before it: less than a search may take."""
_FIRST_READING_S: Final = 30.0
"""The same for the first read of a kind, which may read the files from the disk."""
_TIMEOUTS: Final = {"copy": 600.0, "optimize": 3_600.0}
_READERS: Final = 4


class ShardProcess(rpc.RestartedProcess):
    """The process of the shards with these names in a folder. It has the open files `inherited` until it ends.

    `on_lost` is called with the names of shards that were readable, and are not after the process died.
    """

    timeouts = _TIMEOUTS
    reads = _READS

    def __init__(
        self, folder: Path, names: Sequence[str], inherited: Sequence[int], on_lost: Callable[[Sequence[str]], object]
    ) -> None:
        super().__init__()
        self.name = f"process of shards in {folder}"
        self._folder, self._inherited, self._on_lost = folder, inherited, on_lost
        self.names = (*names,)
        self._answered: set[str] = set()
        """The operations that it has answered."""
        self._known: dict[str, Any] = {}
        """The shards that were opened, as they were then."""

    def start(self) -> None:
        """Start the process, without waiting until it has opened the shards."""
        with suppress(IndexUnavailableError):
            self._connect(0.0)

    def load(self) -> dict[str, Any]:
        """Wait until the shards are open, and describe each as `ShardGroup.open` does."""
        self._retry(lambda connection: connection.call("count_texts", rpc.OPENING_S))
        return dict(self._known)

    def open(self, name: str) -> dict[str, Any]:
        """Open a further shard, or make one, and describe it."""
        self.names = (*self.names, name)
        found: dict[str, Any] = self._retry(lambda connection: connection.call("open", name=name))
        self._known[name] = found
        return found

    def begin(self, operation: str, hurried: bool = False, **arguments: Any) -> Callable[[], Any]:
        """Send a request, and return the function that waits for its answer, which has to be called.

        A `hurried` read gives up in time for a search; a write, and a read for it, may wait for others. If the process
        dies, that function sends the request once more to a new one. Raises IndexUnavailableError.
        """
        wait_s, limit_s = rpc.OPENING_S, None
        if hurried:
            self._require_rest()
            wait_s = _READING_S
            limit_s = _READING_S if operation in self._answered else _FIRST_READING_S
        connection = self._connect(wait_s)

        def repeat() -> Any:
            self._discard(connection)
            log.warning("The %s has died (%s). Restarting it.", self.name, connection.ended)
            try:
                return self._retry(lambda again: again.call(operation, limit_s, **arguments), wait_s, attempts=1)
            except IndexUnavailableError as error:
                self._failed = time.monotonic(), str(error)
                raise

        try:
            call = connection.begin(operation, limit_s, **arguments)
        except ChildGoneError:
            return repeat

        def finish() -> Any:
            try:
                found = connection.wait(call)
            except ChildGoneError:
                return repeat()
            self._answered.add(operation)
            return found

        return finish

    def close(self) -> None:
        """Flush and close the files, and end the process."""
        self._end()

    def _build_command(self) -> Sequence[str]:
        return child.command(__name__)

    def _open(self, connection: rpc.Connection) -> None:
        found = connection.call("open", rpc.OPENING_S, folder=str(self._folder), names=self.names)
        lost = [name for name, each in found.items() if each["is_new"] and name in self._known]
        self._known |= {name: each for name, each in found.items() if name not in self._known}
        if lost:
            self._on_lost(lost)


def main() -> None:
    """Answer the index process on standard input and output. The first request names the shards."""
    keep_few_arenas()
    confine.ignore_interrupts()
    confine.die_with_parent_thread()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    requests, descriptor = confine.take_pipes()
    answers = rpc.Answers(descriptor)
    if (hello := rpc.read(requests)) is None:
        return
    opened: list[ShardGroup] = []

    def open_shards(folder: str, names: Sequence[str]) -> dict[str, Any]:
        group = ShardGroup(Path(folder))
        found = {name: group.open(name) for name in names}
        opened.append(group)
        return found

    answers.send(hello, open_shards)
    for group in opened:
        operations = {name: getattr(group, name) for name in (*_READS, *_WRITES, "optimize")}
        exempt_present_objects()
        with (
            ThreadPoolExecutor(_READERS, "reads") as reads,
            ThreadPoolExecutor(1, "writes") as writes,
            ThreadPoolExecutor(1, "optimizing") as optimizing,
        ):
            pools = dict.fromkeys(_READS, reads) | {"optimize": optimizing}
            rpc.serve(requests, answers, operations, pools, writes)
    os._exit(0)  # every acknowledged write is in the write-ahead log
