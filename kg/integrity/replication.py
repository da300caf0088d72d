"""A replica: follows the points of a primary, and gives each new one to the store that is served.

The store of a point is in a folder of its own in the data directory, made of links to the files of the point before
and of the files that are fetched. The file ``replica.json`` names the point that is served. It is written last, so a
kill or a primary that vanishes leaves the former point. The search index is copied once, and then follows the store as
in any server.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kg.data_directory import DataDirectory
from kg.errors import InvalidInputError, NotFoundError, QuadciteError, ReplicaError, StoreDamagedError, StoreError
from kg.files import write_file
from kg.integrity.backup_folder import Point, compute, encode_point, parse_point
from kg.integrity.point_sources import Offer, PointSource, open_source
from kg.settings import Settings, parse_period
from kg.store.lock import DirectoryLock, require_known_version, sync_folder
from kg.store.replica import ReplicaStore, link_file

log: Final = logging.getLogger(__name__)

_MOST_PAUSE_S: Final = 300.0
_PARTIAL: Final = ".partial"


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The state of a replica, and of its primary as it is known."""

    primary: str
    point: int
    generation: int
    confirmed: datetime
    """The last time at which the primary is known to have had this generation."""
    primary_generation: int | None = None
    contacted: datetime | None = None
    """The last time at which the primary answered."""
    failures: int = 0
    problem: str | None = None

    @property
    def lag_s(self) -> float:
        """Seconds for which the primary may have had newer data."""
        return max(0.0, (datetime.now(UTC) - self.confirmed).total_seconds())

    def describe_problem(self) -> str | None:
        """Describe why the primary is not followed now, None: it is."""
        if self.problem is None:
            return None
        since = f" The primary answered last at {self.contacted:%Y-%m-%d %H:%M:%S} UTC." if self.contacted else ""
        return (
            f"This replica does not follow its primary: {self.problem} It serves generation {self.generation}, "
            f"which is {self.lag_s:.0f} s old, and tries again.{since}"
        )


class Replica:
    """Follows the primary `replica_of` of the settings, in the data directory of the settings."""

    def __init__(self, settings: Settings, *, source: PointSource | None = None) -> None:
        if settings.replica_of is None:
            raise InvalidInputError("No primary is set: QUADCITE_REPLICA_OF.")
        token = settings.replica_token and settings.replica_token.get_secret_value()
        self._source: Final = source or open_source(settings.replica_of, token or None)
        self._directory: Final = settings.directory
        self._every_s: Final = parse_period(settings.replica_every)
        self._closing: Final = threading.Event()
        self._point = self._load_served()
        self._state: ReplicaState | None = None
        self.restarts = False
        """Whether the primary has another history, so that the store has to be opened again."""

    def prepare(self) -> None:
        """Have a point to serve: the one that is there, or else the newest of the primary, with its index.

        Raises the errors of `PointSource` if there is none, and StoreError for a data directory that is not a replica.
        """
        if self._point is not None:
            return
        directory = self._directory
        with DirectoryLock(directory.path):
            if directory.store.exists():
                raise StoreError(f"{directory.path} has a store of its own. Name an empty folder for a replica.")
            self._install(self._source.find_newest(), with_index=True)

    def open_store(self) -> ReplicaStore:
        """Open the store of the point that is served."""
        return ReplicaStore(self._directory.path, self._find_store(self._served), self._name_primary)

    @property
    def _served(self) -> Point:
        if self._point is None:
            raise StoreError(f"{self._directory.path} has no point yet.")
        return self._point

    @property
    def state(self) -> ReplicaState:
        """The state, from memory."""
        point = self._served
        return self._state or ReplicaState(self._name_primary(), point.number, point.generation, point.confirmed)

    def _name_primary(self) -> str:
        address = self._source.address
        server = None if self._point is None else self._point.server
        return address if server is None or "://" in address else f"{server} (its backups: {address})"

    @contextmanager
    def following(
        self, store: ReplicaStore, on_switch: Callable[[], None], on_restart: Callable[[], None]
    ) -> Iterator[None]:
        """Follow the primary in the background until the block ends.

        `on_switch` is called after each new point, and `on_restart` if the store has to be opened again.
        """

        def work() -> None:
            while not self._closing.is_set():
                self.follow(store, on_switch)
                if self.restarts:
                    on_restart()
                    return
                pause_s = self._every_s * 2.0 ** min(self.state.failures, 10)
                self._closing.wait(min(pause_s, max(_MOST_PAUSE_S, self._every_s)))

        worker = threading.Thread(target=work, name="replica", daemon=True)
        worker.start()
        try:
            yield
        finally:
            self._closing.set()
            worker.join()

    def follow(self, store: ReplicaStore, on_switch: Callable[[], None]) -> None:
        """Ask the primary once, and serve its newest point. A failure is noted."""
        before = self.state
        try:
            offer = self._source.find_newest()
            now = datetime.now(UTC)
            if offer.number != self._served.number:
                self._install(offer, with_index=False)
                store.switch(self._find_store(self._served))
                self._write_served()
                self._remove_old()
                on_switch()
        except ReplicaError as error:
            log.warning("%s The store is opened again.", error)
            self._write_served()
            self.restarts = True
        except Exception as error:  # any, since no other thread follows the primary
            log.warning(
                "Cannot follow %s: %s", before.primary, error, exc_info=not isinstance(error, QuadciteError | OSError)
            )
            self._point = self._load_served()
            self._state = replace(before, failures=before.failures + 1, problem=str(error))
        else:
            point = self._served
            is_current = offer.generation == point.generation
            self._state = ReplicaState(
                self._name_primary(),
                point.number,
                point.generation,
                now if is_current else max(point.confirmed, offer.confirmed),
                point.generation if offer.generation is None else offer.generation,
                now,
            )

    def _install(self, offer: Offer, *, with_index: bool) -> None:
        """Fetch a point, and make it the one that is served next; at the first one, also write that down."""
        with self._source.reading():
            point = self._source.load(offer.number)
            folder, directory = self._find_folder(point), self._directory
            partial = folder.with_name(folder.name + _PARTIAL)
            for other in directory.points.glob(f"*{_PARTIAL}"):
                if other != partial:
                    shutil.rmtree(other, ignore_errors=True)
            self._fetch(point, partial, with_index=with_index)
        require_known_version(partial, exactly=True)
        if with_index:
            shutil.rmtree(directory.index, ignore_errors=True)
            with suppress(FileNotFoundError):
                DataDirectory(partial).index.rename(directory.index)
        with suppress(FileNotFoundError):
            DataDirectory(partial).source_paths.replace(directory.source_paths)
        shutil.rmtree(folder, ignore_errors=True)
        sync_folder(partial)
        partial.rename(folder)
        sync_folder(directory.points)
        first = self._point is None
        self._point = point
        if first:
            self._write_served()

    def _fetch(self, point: Point, partial: Path, *, with_index: bool) -> None:
        """Fetch the files of a point, except those that are there or in the point before."""
        wanted = [DataDirectory.store.name, DataDirectory.format.name, DataDirectory.source_paths.name]
        wanted += [DataDirectory.index.name] if with_index else []
        present = self._list_present()
        for name, file in point.files.items():
            if name.partition("/")[0] not in wanted:
                continue
            target = partial / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():  # fetched before a kill
                if compute(target).has_equal_content(file):
                    continue
                target.unlink()
            if (there := present.get((file.sha256, file.bytes))) is not None:
                link_file(there, target)
            else:
                self._source.fetch(file, target)

    def _list_present(self) -> dict[tuple[str, int], Path]:
        """List the files of the store that is served, by content."""
        if self._point is None:
            return {}
        folder = self._find_folder(self._point)
        return {
            (file.sha256, file.bytes): folder / name
            for name, file in self._point.files.items()
            if (folder / name).is_file() and name.startswith(f"{DataDirectory.store.name}/")
        }

    def _find_folder(self, point: Point) -> Path:
        return self._directory.points / str(point.number)

    def _find_store(self, point: Point) -> Path:
        return DataDirectory(self._find_folder(point)).store

    def _write_served(self) -> None:
        fields = {"primary": self._source.address, "point": json.loads(encode_point(self._served))}
        write_file(self._directory.replica, json.dumps(fields), sync=True)
        sync_folder(self._directory.path)

    def _load_served(self) -> Point | None:
        """Load the point that is served, None: there is none, or its files are not there."""
        found = load_replica(self._directory)
        return found[1] if found is not None and self._find_store(found[1]).is_dir() else None

    def _remove_old(self) -> None:
        """Remove the points but the one that is served: what reads them has links to their files."""
        for path in self._directory.points.iterdir():
            if path != self._find_folder(self._served):
                shutil.rmtree(path, ignore_errors=True)


def load_replica(directory: DataDirectory) -> tuple[str, Point] | None:
    """Load the primary of a replica, and the point that it serves. None for a data directory that is not a replica.

    Raises StoreDamagedError.
    """
    try:
        fields: dict[str, Any] = json.loads(directory.replica.read_bytes())
        return str(fields["primary"]), parse_point(json.dumps(fields["point"]).encode(), str(directory.replica))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreDamagedError(
            f"{directory.replica} is damaged: {error}. Remove it: the replica fetches the newest point again."
        ) from None


def promote(data_dir: Path) -> dict[str, Any]:
    """Make a replica a data directory that takes writes, with the point that it serves.

    Raises NotFoundError for a data directory that is not a replica, StoreLockedError while it is served.
    """
    directory = DataDirectory(data_dir)
    if not directory.replica.exists():
        raise NotFoundError(f"{data_dir} is not the data directory of a replica.")
    with DirectoryLock(data_dir, bare=True):
        found = load_replica(directory)
        if found is None:
            raise NotFoundError(f"{data_dir} is not the data directory of a replica.")
        primary, point = found
        store = DataDirectory(directory.points / str(point.number)).store
        if store.is_dir():  # else a promotion was killed after this step
            shutil.rmtree(directory.store, ignore_errors=True)
            own = directory.partial_store
            shutil.rmtree(own, ignore_errors=True)
            shutil.copytree(store, own)  # no links: the engine writes to its files
            own.rename(directory.store)
        directory.replica.unlink()
        sync_folder(data_dir)
        shutil.rmtree(directory.points, ignore_errors=True)
    return {"data_dir": str(data_dir), "point": point.number, "generation": point.generation, "primary": primary}
