"""The index process: Qdrant Edge and the embedder, which hold the GIL for long, away from the server.

Run as ``python -m kg.search.index_process``; speaks `frames` on stdin and stdout with one client (`edge.EdgeIndex`) and
dies with it. Logs go to stderr. ``... edge_process optimize FOLDER KB`` optimizes one shard that nothing has open.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from kg.errors import IndexUnavailableError, QuadciteError
from kg.processes import frames
from kg.search import embedding
from kg.search.protocol import IndexedUnit, IndexStatus, Mode
from kg.search.shard import Shard, optimize_folder
from kg.search.units import Units
from kg.search.vector_worker import Vectors
from kg.settings import Settings

log = logging.getLogger("kg.search.index_process")

_SEARCHES = 8
_LOCK_WAIT_S = 2.0
_PR_SET_PDEATHSIG = 1


class Server:
    """Answers one client's requests: searches beside each other, writes one after the other."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._lock = _lock(folder)
        self._vectors = vectors
        self._units = Units(Shard(folder), vectors.embed_query, vectors.wake)
        vectors.start(self._units)
        self.operations: dict[str, Callable[..., Any]] = {
            "rank": self._rank,
            "embed": vectors.embed,
            "state": self._units.state,
            "status": self._status,
            "await_embedder": vectors.await_embedder,
            "begin": self._units.begin,
            "put": self._put,
            "finish": self._units.finish,
            "remove": self._units.remove,
            "close": self._close,
        }

    def _rank(
        self, query: str, units: list[str] | None, parents: list[str] | None, limit: int, mode: Mode
    ) -> dict[str, Any]:
        with self._vectors.search():
            ranking = self._units.rank(query, units, parents, limit, mode)
        return {
            "candidates": [(c.iri, c.score, c.bm25, c.cosine) for c in ranking.candidates],
            "exhaustive": ranking.exhaustive,
        }

    def _status(self) -> dict[str, Any]:
        units, pending, graphs = self._units.counts()
        return asdict(IndexStatus(units, pending, graphs, self._vectors.model, self._vectors.error))

    def _close(self) -> None:
        self._vectors.stop()
        self._units.shard.close()

    def _put(self, units: list[list[Any]]) -> None:
        self._units.put([IndexedUnit(*fields) for fields in units])


def serve(requests: BinaryIO, replies: BinaryIO, open_embedder: Callable[[Settings], embedding.Embedder]) -> None:
    """Answer requests until the client closes or is gone. The first one carries the folder and the settings."""
    hello = frames.receive(requests)
    if hello is None:
        return
    sending = threading.Lock()

    def answer(request: dict[str, Any], run: Callable[..., Any]) -> None:
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            reply["result"] = run(**request["arguments"])
        except QuadciteError as error:
            reply["error"] = [type(error).__name__, str(error)]
        except Exception as error:  # Qdrant Edge raises plain Exception; the client gets it, the process lives on
            log.exception("the search index failed at %r", request["operation"])
            reply["error"] = [IndexUnavailableError.__name__, f"the search index failed: {error}"]
        with sending:
            replies.write(frames.encode(reply))
            replies.flush()

    server: list[Server] = []

    def open_folder(folder: str, settings: dict[str, Any]) -> None:
        configured = Settings(**settings)
        vectors = Vectors(lambda: open_embedder(configured), configured.model)
        try:
            server.append(Server(Path(folder), vectors))
        except OSError as error:
            raise IndexUnavailableError(f"the search index in {folder} cannot be opened: {error}") from error

    answer(hello, open_folder)
    if not server:
        return
    operations = server[0].operations
    with (
        ThreadPoolExecutor(1, "writes") as writes,
        ThreadPoolExecutor(_SEARCHES, "searches") as searches,
        ThreadPoolExecutor(2, "states") as states,
    ):
        pools = {"rank": searches, "embed": searches, "await_embedder": searches, "state": states, "status": states}
        while (request := frames.receive(requests)) is not None:
            name = request["operation"]
            pools.get(name, writes).submit(answer, request, operations[name])
            if name == "close":
                break


def _lock(folder: Path) -> int:
    """Hold the lock of the index folder: Qdrant Edge breaks a live shard when another opener tries."""
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(file, 32, 0).decode("ascii", "replace").strip()
                os.close(file)
                raise IndexUnavailableError(
                    f"the search index in {folder} is open in another process (pid {holder}); stop that one first"
                ) from None
            time.sleep(0.05)
        else:
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode("ascii"), 0)
            return file


def _die_with_parent() -> None:
    """Be killed when the thread that started this process ends, however that happens (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # the terminal's Ctrl-C is for the parent, which closes us in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(
    arguments: list[str], open_embedder: Callable[[Settings], embedding.Embedder] = embedding.open_embedder
) -> None:
    """Serve one client on stdin and stdout, or optimize a shard."""
    _die_with_parent()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if arguments[:1] == ["optimize"]:
        os.nice(10)
        optimize_folder(Path(arguments[1]), int(arguments[2]))
        return
    # frames go to a private copy of stdout: what a library prints must not land between them
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies, open_embedder)
    replies.flush()
    # the daemon thread may be in the middle of a batch; all that was acknowledged is in the write-ahead log
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
