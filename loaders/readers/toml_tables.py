"""TOML files that a user writes, as models: unknown keys and wrong types are errors."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator

from kg.errors import InvalidInputError
from kg.text import to_single_line

_SHOWN: Final = 80
"""Characters of a value in a message."""
_MOST_BYTES: Final = 1_000_000
"""Size of a file. A mapping has some thousands of bytes."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A name, or a column, without white space around it, as in tables."""


class TomlTable(BaseModel):
    """A TOML table. Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True)
    hint: ClassVar[str] = ""
    """Added to the error about an unknown key."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        known = [each.alias or name for name, each in cls.model_fields.items()]
        if isinstance(given, dict) and (unknown := [repr(name) for name in given if name not in known]):
            shown = to_single_line(", ".join(unknown), _SHOWN)
            raise ValueError(f"Unknown {shown}. Available: {', '.join(known)}.{cls.hint}")
        return given

    @classmethod
    def read(cls, path: Path, given: Mapping[str, Any]) -> Self:
        """Validate the content of a file. Raises InvalidInputError for the first fault."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            fault = error.errors()[0]
        place = [str(each + 1) if isinstance(each, int) else each for each in fault["loc"]]
        if fault["type"] == "missing":
            raise InvalidInputError(f"{path}: Missing {' in '.join(reversed(place))}.")
        shown = "" if isinstance(fault["input"], dict) else f" is {to_single_line(repr(fault['input']), _SHOWN)}."
        message = fault["msg"].removeprefix("Value error, ")
        raise InvalidInputError(f"{path}: {' '.join(place)}{shown} {message}")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises InvalidInputError if it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)  # a device has no end
        if len(content) > _MOST_BYTES:
            raise InvalidInputError(f"{path}: The mapping is too long. The maximum is {_MOST_BYTES:,} bytes.")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise InvalidInputError(f"{path}: Cannot read the mapping ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise InvalidInputError(f"{path}: The mapping is not TOML ({error}).") from error
