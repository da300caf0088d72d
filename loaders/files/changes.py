"""Paths of a folder that have changed and wait until they rest, with a bound and a deadline. Pure: no clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

MOST_PENDING: Final = 1_000
"""Maximum paths that wait. Beyond it the whole folder is searched for changes."""
DEADLINE_S: Final = 10.0
"""Seconds after which a path is due even if it never rests."""


@dataclass(slots=True)
class _Path:
    first: float
    due: float


@dataclass(slots=True)
class PendingChanges:
    """The paths that wait, each until it has not changed for `rest_s` seconds, at the latest for `DEADLINE_S`."""

    rest_s: float
    overflown_at: float | None = None
    """The time since when more paths have changed than are kept, so that the folder must be searched."""
    _paths: dict[str, _Path] = field(default_factory=dict)
    _moved: dict[str, str] = field(default_factory=dict)
    """The old path of each file that was moved, by the new one."""
    _last: float = -math.inf

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, path: str, now: float) -> None:
        """Note that the file or folder at a path has changed."""
        self._last = now
        if self.overflown_at is not None:
            return
        waiting = self._paths.setdefault(path, _Path(now, now))
        waiting.due = min(now + self.rest_s, waiting.first + DEADLINE_S)
        if len(self._paths) > MOST_PENDING:
            self.overflow(now)

    def add_move(self, old: str, new: str, now: float) -> None:
        """Note that a file was moved: both paths are due together."""
        self._moved[new] = self._moved.pop(old, old)
        self.add(old, now)
        self.add(new, now)

    def overflow(self, now: float) -> None:
        """Drop the paths: the folder must be searched for changes."""
        self._last = now
        self.overflown_at = now if self.overflown_at is None else self.overflown_at
        self._paths.clear()
        self._moved.clear()

    def find_due(self) -> float:
        """Find the time at which the next path is due, or a search after an overflow."""
        if self.overflown_at is not None:
            return min(self._last + self.rest_s, self.overflown_at + DEADLINE_S)
        return min((each.due for each in self._paths.values()), default=math.inf)

    def take(self, now: float) -> tuple[list[str], dict[str, str]]:
        """Remove and return the paths that are due, in order, and the old path of each that was moved."""
        late = {old for new, old in self._moved.items() if new in self._paths and self._paths[new].due > now}
        due = sorted(path for path, each in self._paths.items() if each.due <= now and path not in late)
        for path in due:
            del self._paths[path]
        moved = {path: self._moved.pop(path) for path in due if path in self._moved}
        return due, moved

    def clear(self) -> None:
        """Forget all paths: the folder is being searched for changes."""
        self.overflown_at = None
        self._paths.clear()
        self._moved.clear()
