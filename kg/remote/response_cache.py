"""Answers that were given before, on disk: a bounded folder that any number of processes may share.

Each file has a line that says what was asked, where and when, and then the answer. A file that is not whole, or not of
what is asked, counts as none; that a file cannot be written is logged, and no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg.vocabulary import sha256

MAX_BYTES: Final = 256 << 20
"""Bytes of all answers together; the oldest go first."""
MAX_FILES: Final = 4_096

_VERSION: Final = 1
_ABANDONED_S: Final = 3_600
_LATEST_S: Final = 2.5e11  # the year 9892: later times are no dates
_LARGEST_SHARE: Final = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it was given at `time` (seconds since 1970)."""

    body: bytes
    time: float


class Answers:
    """The answers in `folder`, which is made when the first is kept."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder: Final = folder
        self._max_bytes = max_bytes

    def get(self, endpoint: str, query: str) -> Kept | None:
        """Return the last answer to `query`, however old, None where there is none."""
        try:
            head, _, body = self._path(endpoint, query).read_bytes().partition(b"\n")
            said = json.loads(head)
            asked = {"version": _VERSION, "endpoint": endpoint, "query": query}
            whole = said["sha256"] == hashlib.sha256(body).hexdigest()
            if not whole or any(said[name] != value for name, value in asked.items()):
                return None
            time_given = float(said["time"])
            return Kept(body, time_given) if 0 <= time_given < _LATEST_S else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, endpoint: str, query: str, answer: Kept) -> None:
        """Keep an answer in the place of the one before, unless it would take too much of the folder."""
        if len(answer.body) > self._max_bytes // _LARGEST_SHARE:
            return
        said = {"version": _VERSION, "endpoint": endpoint, "query": query, "time": answer.time}
        head = json.dumps(said | {"sha256": hashlib.sha256(answer.body).hexdigest()})
        partial = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(suffix=".partial", dir=self.folder)
            with open(handle, "wb") as stream:
                stream.write(head.encode() + b"\n" + answer.body)
            os.replace(partial, self._path(endpoint, query))
            partial = None
            self._bound()
        except OSError as error:
            _log.warning("%s: an answer cannot be kept (%s)", self.folder, error.strerror)
        finally:
            if partial is not None:
                with contextlib.suppress(OSError):
                    os.unlink(partial)

    def _path(self, endpoint: str, query: str) -> Path:
        return self.folder / f"{sha256(json.dumps([endpoint, query]))}.answer"

    def _bound(self) -> None:
        """Remove the oldest answers beyond what may be kept. Another process may do the same."""
        found: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(".answer"):
                        found.append((stat.st_mtime, stat.st_size, entry.path))
                    elif entry.name.endswith(".partial") and time.time() - stat.st_mtime > _ABANDONED_S:
                        os.unlink(entry.path)
        size, count = sum(each[1] for each in found), len(found)
        for _, length, path in sorted(found):
            if size <= self._max_bytes and count <= MAX_FILES:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            size, count = size - length, count - 1
