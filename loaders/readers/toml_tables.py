"""TOML files that a user writes: tables whose unknown keys and wrong types are errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kg.errors import InvalidInputError
from kg.text import to_single_line

_SHOWN: Final = 80
"""Characters of a value in a message."""


@dataclass(slots=True)
class TomlTable:
    """A TOML table. Each key read is removed; a key that is left is an error."""

    place: str
    entries: dict[str, Any]
    known: dict[str, None] = field(default_factory=dict)
    """Keys that were looked up, which are the valid ones."""

    def text(self, name: str) -> str | None:
        """Take a string; None if the key is missing."""
        value = self._take(name, None)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise InvalidInputError(f"{self.place}: {name} is {_show(value)}, not a string.")
        return value

    def column(self, name: str) -> str | None:
        """Get the name of a column, stripped of white space as in tables."""
        value = self.text(name)
        return value.strip() if value is not None else None

    def needed(self, name: str) -> str:
        """Take a string that must be there."""
        if (value := self.text(name)) is None:
            raise InvalidInputError(f"{self.place}: Missing {name}.")
        return value

    def texts(self, name: str) -> Sequence[str]:
        """Take a list of strings, each stripped of white space."""
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) and each.strip() for each in value):
            raise InvalidInputError(f"{self.place}: {name} is {_show(value)}, not a list of strings.")
        return [each.strip() for each in value]

    def table(self, name: str) -> TomlTable:
        """Take a table; an empty one if the key is missing."""
        value = self._take(name, {})
        if not isinstance(value, dict):
            raise InvalidInputError(f"{self.place}: {name} is {_show(value)}, not a table [{name}].")
        return TomlTable(f"{self.place}, [{name}]", value)

    def tables(self, name: str) -> Iterator[TomlTable]:
        """Take a list of tables, and check each for keys that are left."""
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise InvalidInputError(f"{self.place}: {name} is not a list of tables [[{name}]].")
        for number, each in enumerate(value, 1):
            table = TomlTable(f"{self.place}, [[{name}]] number {number}", each)
            yield table
            table.end()

    def _take(self, name: str, default: object) -> Any:
        self.known[name] = None
        return self.entries.pop(name, default)

    def end(self, hint: str = "") -> None:
        """Raise InvalidInputError if keys are left; `hint` is appended to the message."""
        if self.entries:
            left = ", ".join(map(repr, self.entries))
            valid = ", ".join(self.known)
            raise InvalidInputError(f"{self.place}: Unknown {left}. Available: {valid}.{hint}")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises InvalidInputError if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{path}: Cannot read the mapping ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise InvalidInputError(f"{path}: The mapping is not TOML ({error}).") from error


def _show(value: object) -> str:
    return to_single_line(repr(value), _SHOWN)
