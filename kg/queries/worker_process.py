"""One worker process as its parent sees it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from kg.queries import worker as worker_script
from kg.queries.worker import HEADER
from kg.settings import Settings
from kg.store.protocol import Snapshot

_ACKNOWLEDGE_S: Final = 5.0
_PIPE_BYTES: Final = 1_048_576


class WorkerGoneError(Exception):
    """The worker's pipes closed before its answer was complete."""


class Worker:
    """One child process, as its parent sees it. Used by one thread at a time, but for `stop`."""

    def __init__(self, settings: Settings, prologue: Mapping[str, Any]) -> None:
        options = json.dumps({"memory_bytes": settings.query_memory_mb << 20, **prologue})
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
        self.answers: Final = self.process.stdout.fileno()
        os.set_blocking(self._requests, False)
        os.set_blocking(self.answers, False)
        with contextlib.suppress(AttributeError, OSError):  # Linux has it, and bounds what a user's pipes hold
            fcntl.fcntl(self.answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._buffer = bytearray()
        self.snapshot: Snapshot | None = None

    def send(self, kind: bytes, payload: bytes) -> None:
        """Write one frame; blocks while the pipe is full, as it is for a moment after 64 KiB."""
        rest = memoryview(HEADER.pack(kind, len(payload)) + payload)
        while rest:
            try:
                rest = rest[os.write(self._requests, rest) :]
            except BlockingIOError:
                _wait(self._requests, select.POLLOUT)
            except BrokenPipeError:
                raise WorkerGoneError from None

    def frame(self) -> tuple[bytes, bytes] | None:
        """Return the next frame, or None as long as it has not come whole. Raises WorkerGoneError at the end."""
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
                piece = os.read(self.answers, 1 << 18)
            except BlockingIOError:
                return None
            if not piece:
                raise WorkerGoneError
            buffer += piece

    def receive(self, timeout_s: float | None = None) -> tuple[bytes, bytes]:
        """Return the next frame once it has come. Raises WorkerGoneError at the end, and when nothing comes in time."""
        while (frame := self.frame()) is None:
            if not _wait(self.answers, select.POLLIN, timeout_s):
                raise WorkerGoneError
        return frame

    def open_snapshot(self, snapshot: Snapshot) -> Snapshot | None:
        """Have `snapshot` opened with the next query; return what the caller is to release.

        That is the one before: the process lets go of it first thing, and reads nothing of it until then.
        """
        if self.snapshot is not None and self.snapshot.path == snapshot.path:
            return snapshot
        before, self.snapshot = self.snapshot, snapshot
        return before

    def close_snapshot(self) -> bool:
        """Let go of the snapshot that is open; return False if the worker does not answer."""
        try:
            self.send(b"C", b"")
            kind, _ = self.receive(_ACKNOWLEDGE_S)
        except WorkerGoneError:
            return False
        self._release()
        return kind == b"C"

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


def _wait(descriptor: int, event: int, timeout_s: float | None = None) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
