"""The process of `loaders.confined_loads`: it loads into a graph whose store and index are those of the server."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
import traceback
from typing import Any, Final, cast

from kg.access.actors import AUTHOR, WRITE, Actor
from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.processes import confine, frames, objects
from loaders.confined_loads import build_error, describe_error
from loaders.dispatch import call_here

log = logging.getLogger(__name__)

_MOST_HELD: Final = 768 << 20
"""Memory of the process after a call with which it does not wait for another."""


class _Channel:
    """The pipes to the server. A thread that asks has them to itself until its answer; the answer may call it back."""

    def __init__(self) -> None:
        self.requests, self._answers = confine.take_pipes()
        self._lock: Final = threading.RLock()
        self._functions: Final[objects.Functions] = []

    def read(self) -> frames.Frame:
        """Read a frame. Ends the process if the server is gone."""
        frame = frames.read(self.requests)
        if frame is None:
            os._exit(0)
        return frame

    def decode(self, data: bytes) -> Any:
        """Decode a value. Functions in it are those of the server."""
        return objects.load(data, lambda number: lambda *given: self.ask("function", str(number), given, {}))

    def send(self, kind: bytes, value: Any) -> None:
        """Send a frame."""
        confine.write_all(self._answers, frames.encode(kind, objects.dump(value, self._functions)))

    def ask(self, target: str, method: str, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Ask the server for the result of a method. Raises the error that it raises there."""
        with self._lock:
            first = len(self._functions)
            try:
                self.send(b"Q", (target, method, given, options))
                while True:
                    kind, data = self.read()
                    value = self.decode(data)
                    if kind == b"R":
                        return value
                    if kind == b"E":
                        raise build_error(*value)
                    number, arguments = value
                    try:
                        result = self._functions[number](*arguments)
                    except Exception as error:  # noqa: BLE001 -- it is raised in the server, and here by its answer
                        self.send(b"X", describe_error(error))
                    else:
                        self.send(b"V", result)
            finally:
                del self._functions[first:]


class _Remote:
    """An object of the server, whose methods are asked for there. `properties` are asked for when they are read."""

    def __init__(self, channel: _Channel, target: str, properties: frozenset[str] = frozenset()) -> None:
        self._channel: Final = channel
        self._target: Final = target
        self._properties: Final = properties

    def __getattr__(self, name: str) -> Any:
        if name in self._properties:
            return self._channel.ask(self._target, name, (), {})
        return lambda *given, **options: self._channel.ask(self._target, name, given, options)


class _Forwarding(logging.Handler):
    """Forwards messages to the log of the server."""

    def __init__(self, channel: _Channel) -> None:
        super().__init__(logging.INFO)
        self._channel: Final = channel

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a message."""
        self._channel.ask("log", record.name, (record.levelno, "%s", record.getMessage()), {})


def main() -> None:
    """Serve calls until the server is gone."""
    channel = _Channel()
    settings, memory_bytes = pickle.loads(channel.read()[1])  # noqa: S301
    confine.die_with_pipe(channel.requests.fileno())
    confine.confine(memory_bytes=memory_bytes, sockets="sockets" in sys.argv)
    logging.basicConfig(level=logging.INFO, handlers=[_Forwarding(channel)])
    kg = KnowledgeGraph(
        settings,
        cast("Any", _Remote(channel, "store", frozenset({"problem", "damaged_logs"}))),
        cast("Any", _Remote(channel, "search")),
        pool=cast("Any", None),
        ingestion=cast("Any", _Remote(channel, "ingestion")),
    )
    while True:
        name, given, options, author = channel.decode(channel.read()[1])
        AUTHOR.set(None if author is None else Actor(author, frozenset({WRITE})))
        try:
            result = call_here(kg, name, *given, **options)
        except Exception as error:  # noqa: BLE001 -- the server raises it
            if not isinstance(error, QuadciteError | MemoryError):
                log.error("%s", traceback.format_exc())
            channel.send(b"F", describe_error(error))
        else:
            is_last = confine.holds_more_than(_MOST_HELD)
            channel.send(b"L" if is_last else b"D", result)
            if is_last:
                return
