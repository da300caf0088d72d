"""One worker process as its parent sees it, and one query's hold on it."""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import threading
import time
from typing import Final

from kg.settings import Settings
from kg.store import worker as worker_script
from kg.store.protocol import Snapshot
from kg.store.worker import HEADER
from kg.vocabulary import PREFIXES

_ACKNOWLEDGE_S: Final = 5.0


class WorkerGoneError(Exception):
    """The worker's pipes closed before its answer was complete."""


class OverdueError(Exception):
    """The deadline passed while waiting for the worker."""


class Worker:
    """One child process, as its parent sees it. Used by one thread at a time, but for `stop`."""

    def __init__(self, settings: Settings) -> None:
        options = json.dumps({"memory_bytes": settings.query_memory_mb << 20, "prefixes": PREFIXES})
        # By path and isolated (-I), not by -m: nothing in the working folder can shadow a module of the worker's.
        self.process: Final = subprocess.Popen(
            [sys.executable, "-I", worker_script.__file__, options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            process_group=0,
        )
        assert self.process.stdin is not None  # noqa: S101 -- PIPE above
        assert self.process.stdout is not None  # noqa: S101 -- PIPE above
        self._requests: Final = self.process.stdin.fileno()
        self._answers: Final = self.process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._buffer = bytearray()
        self.snapshot: Snapshot | None = None

    def send(self, kind: bytes, payload: bytes, deadline: float) -> None:
        """Write one frame."""
        rest = memoryview(HEADER.pack(kind, len(payload)) + payload)
        while rest:
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                self._wait(self._requests, select.POLLOUT, deadline)
            except BrokenPipeError:
                raise WorkerGoneError from None

    def receive(self, deadline: float) -> tuple[bytes, bytes]:
        """Read one frame."""
        buffer = self._buffer
        while True:
            if len(buffer) >= HEADER.size:
                kind, size = HEADER.unpack_from(buffer)
                end = HEADER.size + size
                if len(buffer) >= end:
                    payload = bytes(memoryview(buffer)[HEADER.size : end])
                    del buffer[:end]
                    return kind, payload
            try:
                piece = os.read(self._answers, 1 << 18)
            except BlockingIOError:
                self._wait(self._answers, select.POLLIN, deadline)
                continue
            if not piece:
                raise WorkerGoneError
            buffer += piece

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise OverdueError
        poll = select.poll()
        poll.register(descriptor, event)
        poll.poll(None if left == math.inf else min(left * 1000, 1e9))

    def open_snapshot(self, snapshot: Snapshot) -> None:
        """Have `snapshot` opened with the next query; the one before is let go of once that has begun."""
        if self.snapshot is not None and self.snapshot.path == snapshot.path:
            snapshot.release()
            return
        self._let_go()
        self.snapshot = snapshot

    def close_snapshot(self) -> bool:
        """Let go of the snapshot that is open; return False if the worker does not answer."""
        deadline = time.monotonic() + _ACKNOWLEDGE_S
        try:
            self.send(b"C", b"", deadline)
            kind, _ = self.receive(deadline)
        except (WorkerGoneError, OverdueError):
            return False
        self._release()
        return kind == b"C"

    def _let_go(self) -> None:
        if self.snapshot is not None and not self.close_snapshot():
            raise WorkerGoneError

    def _release(self) -> None:
        if self.snapshot is not None:
            self.snapshot.release()
            self.snapshot = None

    def stop(self) -> None:
        """Kill the process, from any thread."""
        self.process.kill()

    def bury(self) -> int:
        """Kill the process, wait for its end, give back all that it held; return its exit code."""
        self.process.kill()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self._release()
        return code


class Lease:
    """One query's hold on one worker: whoever stops it says why, and after its end nobody can stop it any more."""

    def __init__(self, worker: Worker, deadline: float) -> None:
        self.worker: Final = worker
        self.deadline: Final = deadline
        self.reason: str | None = None
        self._ended = False
        self._lock = threading.Lock()

    def stop(self, reason: str) -> None:
        """Kill the worker, unless the query has ended; `reason` says why, to whoever waits for it."""
        with self._lock:
            if not self._ended:
                self.reason = self.reason or reason
                self.worker.stop()

    def end(self) -> None:
        """Let nobody stop this query any more: its worker is about to be another's."""
        with self._lock:
            self._ended = True
