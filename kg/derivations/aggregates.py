"""Derivations of the kind aggregate: a value that is counted in one state of the store, and updated to a later one.

The last value is in the state of the data directory, so that a start counts only what has changed since. It may quote
texts, so a compaction removes it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, TypeVar

from kg import __version__, bundle
from kg.derivations.engine import Opened
from kg.derivations.protocol import Definition, Graph, Outcome, Progress
from kg.derivations.state import State
from kg.errors import StoreError

log = logging.getLogger(__name__)


@cache
def _identify_suite() -> str:
    """Return a hash of the version and of the shapes that ship with it."""
    files = sorted(bundle.folder("shapes").glob("*.ttl"))
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256("".join([__version__, *hashes]).encode()).hexdigest()


SCHEMA: Final = Definition("schema", "the use of classes and properties", "aggregate", "3")
CHECK: Final = Definition(
    "dataset-check",
    "the violations of the dataset shapes",
    "aggregate",
    "3",
    find_others=lambda settings: _identify_suite(),
)
DEFINITIONS: Final = (SCHEMA, CHECK)

Value = TypeVar("Value")


class Aggregate(Generic[Value]):
    """The last value of an aggregate, as JSON in the state.

    It is a cache: where the state cannot be read or written, a warning is logged, and everything is counted again.
    """

    write: Callable[[Value], Any]
    """Converts a value to JSON; None if it is too large to be kept."""
    read: Callable[[Any], Value]
    """Converts what `write` returned. May raise any error of invalid content."""
    renew: Callable[[bool], object]
    """Counts and saves the value: after the last one or, if true, as a whole."""

    def __init__(self, kg: Graph, definition: Definition) -> None:
        self.definition: Final = definition
        self._kg = kg

    def _use(self, work: Callable[[State, Opened[None]], Any]) -> Any:
        """Call `work` with the open state; None if that cannot be used."""
        try:
            with State(self._kg.settings.data_dir) as state:
                return work(state, Opened(self._kg, state, self.definition))
        except (StoreError, sqlite3.Error) as error:
            log.warning("The last %s of %s cannot be used: %s", self.definition.name, self._kg.settings.data_dir, error)
            return None

    def load(self) -> tuple[int, Value] | None:
        """Load the last value of this version, with its generation; None if there is none of this store."""
        if not self._kg.settings.directory.derivations.exists():
            return None
        found = self._use(lambda _, opened: opened.load_known())
        if found is None or found[0] is None or not found[0].committed:
            return None
        try:
            return found[0].generation, self.read(json.loads(found[0].compared))
        except (SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("The last %s of %s is not valid: %s", self.definition.name, self._kg.settings.data_dir, error)
            return None

    def save(self, generation: int, value: Value) -> None:
        """Record the value of a generation."""
        if (content := self.write(value)) is None:
            self._use(lambda state, _: state.forget([self.definition.name]))
            return
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        self._use(lambda _, opened: opened.save(text.encode(), generation))

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Count the value if commits have changed the store since, or as a whole.

        Raises StoreError if the state is found damaged: that of the other derivations is removed with it.
        """
        path = self._kg.settings.directory.derivations
        was_stored = path.exists()
        is_due = full or bool(self.count_due())
        if is_due:
            self.renew(full)
        if was_stored and not path.exists():
            raise StoreError(f"{path} was damaged and is removed. Run the command again.")
        return Outcome(graphs=int(is_due))

    def count_due(self) -> Counter[str]:
        """Count the value, unless it is that of the last commit."""

        def explain(_: State, opened: Opened[None]) -> str:
            known, reason = opened.load_known()
            is_old = known is not None and known.generation < self._kg.store.statistics().generation
            return "changed" if is_old else reason

        reason = self._use(explain) or ""
        return Counter({reason: 1}) if reason else Counter()
