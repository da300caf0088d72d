"""Loads in a confined process of their own, so that no foreign text is parsed or matched in the process of a server.

The process reads, extracts and checks; the server, which alone writes, runs its requests to the store and the index. It
is started by the first load, serves one after another, and is started again after one that was stopped. It has a limit
of memory, and opens no sockets, except for a load that downloads and for questions to a chat model.
"""

from __future__ import annotations

import logging
import math
import pickle
import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kg import errors
from kg.errors import QuadciteError, QueryLimitError, QueryMemoryError, QueryTimeoutError
from kg.ingestion import Ingestion
from kg.knowledge_graph import KnowledgeGraph
from kg.processes import objects
from kg.processes.child import Child, ChildGoneError, ChildLateError, command
from kg.processes.confine import is_out_of_memory
from kg.provenance import permissions
from kg.search.protocol import SearchIndex
from kg.store.protocol import Commit, Patch, Store
from loaders.dispatch import WORK

MEMORY_BYTES: Final = 4 << 30
SENT_S: Final = 120.0
"""Seconds in which entries that a client sends must be stored."""
SILENT_S: Final = 600.0
"""Seconds in which another call must report progress, or ask something of the store or the index."""
_CLOSE_S: Final = 0.05
"""Seconds after which `ConfinedLoads.close` ends the process of a call that goes on."""
_MODULE: Final = "loaders.confined_process"
_METHODS: Final[Mapping[str, frozenset[str]]] = {
    "store": frozenset(name for name in dir(Store) if not name.startswith("_")) - {"close", "dump", "snapshot"},
    "search": frozenset(name for name in dir(SearchIndex) if not name.startswith("_")) - {"close", "copy", "calls"},
    "ingestion": frozenset(name for name in dir(Ingestion) if name.startswith("record_")),
}
"""The methods that the process may ask for."""
_OTHER_WRITES: Final = frozenset({"commit_provenance", "extend", "update", "write_payload"})
"""The other methods of the store that write."""
_NEXT: Final = "Parts of it may be stored. Shorten or split it."
_REMOTE: Final = re.compile(r"[a-z][a-z0-9+.-]+[:@]")


class ConfinedLoads:
    """The processes that load into one graph: one for what asks a chat model, one for all else. Thread-safe."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._loads, self._chats = _Process(kg), _Process(kg)

    def __call__(self, kg: KnowledgeGraph, name: str, *given: Any, **options: Any) -> Any:
        """Do one of `loaders.dispatch.WORK`. Entries that a client sends must be stored within `SENT_S`."""
        process = self._chats if WORK[name].asks_model else self._loads
        return process.call(name, given, options)

    def close(self) -> None:
        """End the processes, also during a call. Calls that wait, and later ones, raise QueryLimitError."""
        self._loads.close()
        self._chats.close()


class _Process:
    """A process that loads. Thread-safe; calls wait for each other."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg: Final = kg
        self._lock: Final = threading.Lock()
        self._child: Child | None = None
        self._is_closed = False

    def close(self) -> None:
        """End the process, also during a call."""
        self._is_closed = True
        while not self._lock.acquire(timeout=_CLOSE_S):
            if (child := self._child) is not None:
                child.kill()
        try:
            self._end()
        finally:
            self._lock.release()

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def _start(self, sockets: bool) -> Child:
        child = Child(command(_MODULE, "sockets" if sockets else "confined"), stderr=None)
        child.send(b"S", pickle.dumps((self._kg.settings, MEMORY_BYTES)))
        return child

    def call(self, name: str, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Do one of `loaders.dispatch.WORK`."""
        seconds = SENT_S if WORK[name].is_sent else None
        sockets = options.get("mode") == "chat" or (name == "load" and any(map(_REMOTE.match, given[1])))
        with self._lock:
            if self._is_closed:
                raise QueryLimitError("The server is stopping.")
            if sockets or (self._child is not None and self._child.process.poll() is not None):
                self._end()
            deadline = math.inf if seconds is None else time.monotonic() + seconds
            is_last = failed = True
            try:
                if self._child is None:
                    self._child = self._start(sockets)
                result, is_last = _Call(self._kg, self._child, deadline).run(name, given, options)
                failed = False
                return result
            except ChildLateError:
                limit = SILENT_S if seconds is None else seconds
                raise QueryTimeoutError(
                    f"The text was not read in {limit:g} s, and the process that read it was stopped. {_NEXT}"
                ) from None
            except ChildGoneError:
                how = self._child and self._child.describe_end()
                raise QueryMemoryError(
                    f"The process that read the text ended ({how or 'it does not answer'}). It may take "
                    f"{MEMORY_BYTES >> 20:,} MiB of memory. {_NEXT}"
                ) from None
            except QueryMemoryError:
                raise
            except QuadciteError:
                is_last = failed = False
                raise
            finally:
                if failed:
                    self._kg.unindexed.set()  # it may have ended between a commit and the indexing of it
                if is_last or sockets:
                    self._end()


class _Call:
    """One call in the process, which is served until its result arrives."""

    def __init__(self, kg: KnowledgeGraph, child: Child, deadline: float) -> None:
        self._kg: Final = kg
        self._child: Final = child
        self._deadline: Final = deadline
        self._functions: Final[objects.Functions] = []

    def run(self, name: str, given: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, bool]:
        """Return the result, and whether the process has ended with it. Raises the errors of the call."""
        self._send(b"C", (name, given, options, permissions.get_author()))
        return self._serve(b"DL")

    def _send(self, kind: bytes, value: Any) -> None:
        self._child.send(kind, objects.dump(value, self._functions), self._deadline)

    def _serve(self, wanted: bytes) -> tuple[Any, bool]:
        """Answer requests until a frame of a wanted kind."""
        while True:
            kind, data = self._child.receive(min(self._deadline, time.monotonic() + SILENT_S))
            value = objects.load(data, lambda number: partial(self._call_back, number))
            if kind in wanted:
                return value, kind == b"L"
            if kind == b"Q":
                self._answer(*value)
            else:
                raise build_error(*value)

    def _answer(self, target: str, method: str, given: tuple[Any, ...], options: dict[str, Any]) -> None:
        try:
            result = self._find(target, method)(*given, **options)
        except ChildGoneError:
            raise
        except Exception as error:  # noqa: BLE001 -- the process raises it
            self._send(b"E", describe_error(error))
        else:
            self._send(b"R", result)

    def _find(self, target: str, method: str) -> Callable[..., Any]:
        if target == "function":
            return self._functions[int(method)]
        if target == "log":
            return logging.getLogger(method).log
        if method not in _METHODS[target]:
            raise AttributeError(f"{target}.{method} is for the server alone")
        if target == "store" and permissions.get_author() is not None:
            if method == "commit":
                return self._commit
            if method in _OTHER_WRITES:
                raise AttributeError(f"store.{method} needs the scope 'admin'")
        found = getattr(getattr(self._kg, target), method)
        return found if callable(found) else lambda: found

    def _commit(self, replace: Mapping[Any, Any], describe: Callable[..., Patch] | None = None) -> Commit:
        """Commit for a caller without the scope ``admin``, whose rights the server checks itself."""
        store = self._kg.store
        return store.commit(replace, permissions.checked(store, describe or (lambda _: Patch()), permissions.RECORDS))

    def _call_back(self, number: int, *given: Any) -> Any:
        """Call a function of the process, while it waits for the answer to its request."""
        self._send(b"K", (number, given))
        return self._serve(b"V")[0]


def describe_error(error: BaseException) -> tuple[str, str]:
    """Describe an error for the other process: its class and its message."""
    if is_out_of_memory(error):
        error = MemoryError()
    return type(error).__name__, str(error)


def build_error(name: str, message: str) -> Exception:
    """Build an error of Quadcite by its class, a RuntimeError for any other."""
    if name == MemoryError.__name__:
        return QueryMemoryError(f"Reading the text takes more than {MEMORY_BYTES >> 20:,} MiB of memory. {_NEXT}")
    found = getattr(errors, name, None)
    if isinstance(found, type) and issubclass(found, QuadciteError):
        return found(message)
    if name == "SyntaxFaultError":
        return errors.InvalidInputError(message)
    return RuntimeError(f"{name}: {message}")
