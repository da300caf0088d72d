"""Immutable checkpoints of the store by generation: created on demand, counted while in use, two kept."""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg.errors import GoneError, InvalidInputError
from kg.store.protocol import Snapshot, State, Visibility

_KEPT: Final = 2

Made = Callable[[int, Visibility], None]
"""Receives the generation of a checkpoint that was written, and its visibility."""


@dataclass(slots=True, eq=False)
class _Checkpoint:
    generation: int
    path: Path
    taken: float
    visibility: Visibility
    users: int = 0
    is_live: bool = False


class Snapshots:
    """The checkpoints in `folder`, which this object owns: it removes any previous content.

    `checkpoint(folder, wait, made)` writes one to ``folder/{generation}`` and calls `made` before the next commit;
    without `wait` it may write none during a commit. `live` returns the folder of the store, and the visibility, while
    nothing can be written: it serves as a checkpoint then. `current` returns the newest generation. At most one
    checkpoint is written per `min_interval_s` seconds, unless a caller requests a generation newer than all
    checkpoints.
    """

    def __init__(
        self,
        folder: Path,
        checkpoint: Callable[[Path, bool, Made], None],
        current: Callable[[], int],
        min_interval_s: float = 0.5,
        live: Callable[[], tuple[Path, Visibility] | None] = lambda: None,
    ) -> None:
        self._folder: Final = folder
        self._checkpoint: Final = checkpoint
        self._current: Final = current
        self._min_interval_s: Final = min_interval_s
        self._live: Final = live
        self._kept = _KEPT
        self._made: list[_Checkpoint] = []  # oldest first
        self._pins: Counter[int] = Counter()
        """The number of users of each generation that had no checkpoint when they pinned it."""
        self._is_changing = False
        """Whether a commit is being written, which keeps no checkpoint of the generation before it."""
        self._state = threading.Condition(threading.Lock())  # guards these; held only briefly
        self._making = threading.Lock()  # held while a checkpoint is written
        _renew(folder)

    def take(self, at_least: int = 0, exactly: int | None = None) -> Snapshot:
        """Get a checkpoint of generation `at_least` or later, or the existing one of `exactly`, in use until released.

        Raises InvalidInputError for a generation that does not exist, and GoneError for one without a checkpoint.
        """
        if exactly is not None:
            return self._take_exactly(exactly)
        current = self._current()
        if at_least > current:
            raise InvalidInputError(f"Unknown generation {at_least}. Newest: {current}.")
        if (snapshot := self._reuse(at_least)) is not None:
            return snapshot
        with self._making:
            if (snapshot := self._reuse(at_least)) is not None:
                return snapshot
            if (live := self._live()) is not None:
                with self._state:
                    self._drop_live()
                    self._made.append(_Checkpoint(current, live[0], time.monotonic(), live[1], is_live=True))
                    return self._use(self._made[-1])
            demanded = not self._made or self._made[-1].generation < at_least
            self._checkpoint(self._folder, demanded, self._add)
            with self._state:
                # Old checkpoints are deleted on a release and not here, since callers are waiting for this one.
                return self._use(self._made[-1])

    def pin(self, exactly: int | None, get_visibility: Callable[[], Visibility]) -> State:
        """Get the newest generation, or that of `exactly`. Its checkpoint is written when a query takes it, or before
        the next commit (`changing`). Raises the errors of `take`.

        During a commit it waits for the end of that, unless there is a checkpoint.
        """
        with self._state:
            while True:
                generation = self._current() if exactly is None else exactly
                if (made := self._find(generation)) is not None:
                    return self._use(made)
                if not self._is_changing:
                    break
                self._state.wait()
            if is_newest := generation == self._current():
                self._pins[generation] += 1
        if not is_newest:
            return self._take_exactly(generation)
        try:
            visibility = get_visibility()
        except BaseException:
            self._unpin(generation)
            raise
        with self._state:
            if (made := self._find(generation)) is not None:  # there was perhaps a commit since
                visibility = made.visibility
        return State(generation, release=once(lambda: self._unpin(generation)), visibility=visibility)

    def _unpin(self, generation: int) -> None:
        with self._state:
            self._pins[generation] -= 1
            if not self._pins[generation]:
                del self._pins[generation]
            unused = self._pop_unused()
        _delete(unused)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Write a commit in the block, by the only thread that may write; first a checkpoint if one is pinned."""
        try:
            with self._state:
                self._is_changing = self._current() not in self._pins or self._find(self._current()) is not None
            if not self._is_changing:
                self._checkpoint(self._folder, True, self._add)
                self._is_changing = True  # a reader that asks now finds the checkpoint
            yield
        finally:
            with self._state:
                self._is_changing = False
                self._state.notify_all()

    def _find(self, generation: int) -> _Checkpoint | None:
        """Find the checkpoint of a generation, which is not the store itself."""
        return next((made for made in self._made if made.generation == generation and not made.is_live), None)

    def _add(self, generation: int, visibility: Visibility) -> None:
        with self._state:
            path = self._folder / str(generation)
            self._made.append(_Checkpoint(generation, path, time.monotonic(), visibility))

    def _take_exactly(self, generation: int) -> Snapshot:
        with self._state:
            if (made := self._find(generation)) is not None:
                return self._use(made)
        current = self._current()
        if generation == current:
            snapshot = self.take(generation)
            if snapshot.generation == generation:
                return snapshot
            snapshot.release()  # a commit happened in between
        with self._state:
            if (made := self._find(generation)) is not None:
                return self._use(made)
            kept = ", ".join(str(made.generation) for made in self._made) or "none"
        if 0 <= generation <= current:
            raise GoneError(f"The snapshot of generation {generation} has been superseded. Available: {kept}.")
        raise InvalidInputError(f"Unknown generation {generation}. Newest: {current}. Available snapshots: {kept}.")

    def _reuse(self, at_least: int) -> Snapshot | None:
        """Return the newest checkpoint if it is recent enough."""
        is_live = self._live() is not None
        with self._state:
            if not is_live:
                self._drop_live()
            if not self._made or self._made[-1].generation < at_least:
                return None
            newest = self._made[-1]
            recent = time.monotonic() - newest.taken < self._min_interval_s
            return self._use(newest) if recent or newest.generation == self._current() else None

    def _drop_live(self) -> None:
        """Forget the store itself as a checkpoint."""
        self._made = [made for made in self._made if not made.is_live]

    def _use(self, checkpoint: _Checkpoint) -> Snapshot:
        checkpoint.users += 1
        release = once(lambda: self._release(checkpoint))
        return Snapshot(
            checkpoint.generation,
            checkpoint.path,
            checkpoint.is_live,
            release=release,
            visibility=checkpoint.visibility,
        )

    def _release(self, checkpoint: _Checkpoint) -> None:
        with self._state:
            checkpoint.users -= 1
            unused = self._pop_unused()
        _delete(unused)

    def _pop_unused(self) -> list[_Checkpoint]:
        """Remove all unused checkpoints except the newest two from the list; the caller deletes them."""
        old = self._made[: max(0, len(self._made) - self._kept)]
        unused = [made for made in old if not made.users and made.generation not in self._pins]
        self._made = [made for made in self._made if made not in unused]
        return unused

    def close(self) -> None:
        """Delete the unused checkpoints; the others are deleted when they are released."""
        with self._state:
            self._kept = 0
            unused = self._pop_unused()
        _delete(unused)


def once(action: Callable[[], None]) -> Callable[[], None]:
    """Return a callable that runs `action` on its first call only, from any thread."""
    pending = [action]

    def run() -> None:
        try:
            first = pending.pop()  # atomic, so only one of two threads gets it
        except IndexError:
            return
        first()

    return run


def _delete(checkpoints: list[_Checkpoint]) -> None:
    """Delete folders. On failure, they are removed the next time the data directory is opened."""
    for checkpoint in checkpoints:
        if checkpoint.is_live:
            continue
        shutil.rmtree(checkpoint.path, ignore_errors=True)


def _renew(folder: Path) -> None:
    """Make `folder` empty, if the disk allows it."""
    # By renaming, since child processes of a killed server may outlive it for a moment and still write there.
    with suppress(OSError):
        folder.rename(folder.with_name(f"{folder.name}-{uuid.uuid4().hex}"))
    for old in folder.parent.glob(f"{folder.name}-*"):
        shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):  # full, or read-only
        folder.mkdir(exist_ok=True)
