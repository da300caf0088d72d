"""A cache of responses on disk: a bounded folder that any number of processes may share.

Each file has a line of JSON with endpoint, query and time, followed by the body. A damaged file, or one of another
query, counts as missing. A failed write is logged, and is not an error.
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
"""Maximum total size; the oldest responses are removed first."""
MAX_FILES: Final = 4_096

_VERSION: Final = 1
_ABANDONED_S: Final = 3_600
_LATEST_S: Final = 2.5e11  # the year 9892: datetime supports no times much later
_LARGEST_SHARE: Final = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response received at `time` (seconds since 1970)."""

    body: bytes
    time: float


class ResponseCache:
    """The responses in `folder`, which is created with the first one."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder: Final = folder
        self._max_bytes = max_bytes

    def get(self, endpoint: str, query: str) -> CachedResponse | None:
        """Get the last response to `query`, of any age, or None."""
        try:
            head, _, body = self._path(endpoint, query).read_bytes().partition(b"\n")
            entry = json.loads(head)
            expected = {"version": _VERSION, "endpoint": endpoint, "query": query}
            whole = entry["sha256"] == hashlib.sha256(body).hexdigest()
            if not whole or any(entry[name] != value for name, value in expected.items()):
                return None
            received_at = float(entry["time"])
            return CachedResponse(body, received_at) if 0 <= received_at < _LATEST_S else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, endpoint: str, query: str, answer: CachedResponse) -> None:
        """Store a response in place of the previous one, unless it is too large a share of the folder."""
        if len(answer.body) > self._max_bytes // _LARGEST_SHARE:
            return
        entry = {"version": _VERSION, "endpoint": endpoint, "query": query, "time": answer.time}
        head = json.dumps(entry | {"sha256": hashlib.sha256(answer.body).hexdigest()})
        partial = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(suffix=".partial", dir=self.folder)
            with open(handle, "wb") as stream:
                stream.write(head.encode() + b"\n" + answer.body)
            os.replace(partial, self._path(endpoint, query))
            partial = None
            self._remove_excess()
        except OSError as error:
            _log.warning("Cannot write a response to the cache %s: %s", self.folder, error.strerror)
        finally:
            if partial is not None:
                with contextlib.suppress(OSError):
                    os.unlink(partial)

    def _path(self, endpoint: str, query: str) -> Path:
        return self.folder / f"{sha256(json.dumps([endpoint, query]))}.answer"

    def _remove_excess(self) -> None:
        """Remove the oldest responses beyond the limits. Other processes may do the same concurrently."""
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
