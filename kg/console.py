"""What the command line shows: tables and bars for people, plain lines in a pipe, one JSON document for machines."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec

import typer
from pydantic import ValidationError

from kg.errors import QuadciteError

FAILURE: Final = 1
USAGE: Final = 2
SOME_REJECTED: Final = 3

P = ParamSpec("P")


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the errors that Quadcite raises on purpose into one message and an exit code.

    With ``--json`` the error also stands on standard output, as ``{"error": {"code", "message", "retryable"}}``.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except QuadciteError as error:
            fail(error, as_json=bool(kwargs.get("as_json")))
            raise typer.Exit(FAILURE) from None
        except ValidationError as error:
            if error.title != "Settings":
                raise
            for problem in error.errors(include_url=False, include_context=False):
                name = "QUADCITE_" + "_".join(str(part) for part in problem["loc"]).upper()
                say(f"kg: the setting {name}={problem['input']} cannot be used: {problem['msg']}")
            raise typer.Exit(USAGE) from None

    return run


def fail(error: QuadciteError, *, as_json: bool) -> None:
    """Say what went wrong on standard error, and with `as_json` on standard output too."""
    say(f"kg: {error}")
    if as_json:
        document = {"code": error.code, "message": str(error), "retryable": error.retryable}
        put(json.dumps({"error": document}, ensure_ascii=False))


def say(text: str) -> None:
    """Write one line to standard error: for people, never part of the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def put(text: str) -> None:
    """Write one line to standard output."""
    sys.stdout.write(text + "\n")


def put_json(value: object) -> None:
    """Write `value` as one JSON document to standard output."""
    put(json.dumps(plain(value), ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def plain(value: object) -> Any:
    """Return `value` in JSON's own types: dataclasses and objects with ``to_dict`` become objects, paths text."""
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return plain(to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def show(value: object) -> None:
    """Write one thing as aligned ``name: value`` lines, or a list of things as a block of lines each."""
    content = plain(value)
    if isinstance(content, list):
        for number, item in enumerate(content):
            if number:
                put("")
            show(item)
    elif isinstance(content, dict):
        width = max((len(name) for name in content), default=0)
        for name, item in content.items():
            put(f"{name:<{width}}  {_one_line(item)}")
    else:
        put(_one_line(content))


def _one_line(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return json.dumps(value, ensure_ascii=False)


def close_output() -> None:
    """Flush standard output, quietly when whoever read it has gone (``kg query ... | head``)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
