"""Loads by schedule: a TOML file names sources, and how often the server loads each of them again.

Each table is a schedule::

    [streams]
    source = "climate"
    locations = ["/data/acts/*.csv"]
    every = "6h"
    prune = true
    options = {mapping = "/data/acts.toml"}

A schedule whose last load has not ended waits for it. One that was due while no server ran is loaded at the start.
"""

from __future__ import annotations

import logging
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from kg.errors import InvalidInputError, QuadciteError
from kg.load_queue import ENDED, LoadQueue
from kg.settings import parse_period

log = logging.getLogger(__name__)

MOST: Final = 200
"""Maximum schedules of a file."""
LOOK_S: Final = 15.0
"""Seconds between two searches for due loads."""


def _parse_every(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError('Give a number and a unit: "30m", "6h", "1d" or "1w".')
    return timedelta(seconds=parse_period(value))


class Schedule(BaseModel):
    """A source that is loaded again each time `every` has passed since its last load was submitted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-zA-Z0-9_.-]{1,60}$")
    source: str
    locations: tuple[str, ...] = Field(min_length=1)
    every: Annotated[timedelta, BeforeValidator(_parse_every)]
    prune: bool = False
    options: dict[str, str] = {}


_SCHEDULES: Final = TypeAdapter(list[Schedule])


def read_schedules(file: Path, check: Callable[[str, dict[str, str]], tuple[str, dict[str, str]]]) -> list[Schedule]:
    """Read the schedules of a file. `check` returns the name of a source and its options, or raises.

    Raises InvalidInputError with the table and the field that is wrong.
    """
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{file}: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file}: It is not valid TOML: {error}.") from None
    if len(tables) > MOST:
        raise InvalidInputError(f"{file}: It has {len(tables)} schedules. {MOST} are possible.")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise InvalidInputError(f"{file}: {name} is outside of a table. Write each schedule below [NAME].")
    found = []
    for name, table in tables.items():
        try:
            [schedule] = _SCHEDULES.validate_python([{**table, "name": name}])
            source, options = check(schedule.source, schedule.options)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"][1:]))
            raise InvalidInputError(f"{file}: [{name}] {where}: {first['msg'].removeprefix('Value error, ')}") from None
        except InvalidInputError as error:
            raise InvalidInputError(f"{file}: [{name}] {error}") from None
        found.append(schedule.model_copy(update={"source": source, "options": options}))
    return found


@contextmanager
def scheduling(queue: LoadQueue, schedules: Sequence[Schedule], look_s: float = LOOK_S) -> Iterator[None]:
    """Submit the loads that are due, until the block ends."""
    stop = threading.Event()

    def work() -> None:
        while True:
            for schedule in schedules:
                try:
                    submit_due(queue, schedule)
                except QuadciteError as error:
                    log.warning("Cannot load %s by schedule: %s", schedule.name, error)
            if stop.wait(look_s):
                return

    worker = threading.Thread(target=work, name="schedule", daemon=True)
    if schedules:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        if schedules:
            worker.join()


def submit_due(queue: LoadQueue, schedule: Schedule) -> bool:
    """Submit the load of a schedule if it is due. Returns whether it was."""
    last = queue.find_last(schedule.name)
    if last is not None and (last.state not in ENDED or datetime.now(UTC) - last.submitted < schedule.every):
        return False
    queue.submit(
        schedule.source,
        schedule.locations,
        client="schedule",
        prune=schedule.prune,
        options=schedule.options,
        label=schedule.name,
    )
    return True
