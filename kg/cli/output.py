"""What the command line shows: tables and bars for people, plain lines in a pipe, one JSON document for machines.

Results go to standard output; everything said about them goes to standard error.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
import os
import pwd
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final, NoReturn, ParamSpec

import typer
from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from kg.errors import InvalidInputError, QuadciteError
from kg.text import escape_controls

FAILURE: Final = 1
USAGE: Final = 2
SOME_REJECTED: Final = 3

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]

P = ParamSpec("P")
Advance = Callable[[int, int | None, str], None]
"""Takes what is done, out of how many (None: not known), and a word on what is being done."""


def reporting(exit_code: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Turn the errors that Quadcite raises on purpose into one message and `exit_code`.

    With ``--json`` the error also stands on standard output, as ``{"error": {"code", "message", "retryable"}}``.
    """

    def decorated(command: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                command(*args, **kwargs)
            except QuadciteError as error:
                fail(error, as_json=bool(kwargs.get("as_json")))
                raise typer.Exit(exit_code) from None
            except ValidationError as error:
                if error.title != "Settings":
                    raise
                fail(InvalidInputError(_settings_message(error)), as_json=bool(kwargs.get("as_json")))
                raise typer.Exit(USAGE) from None
            except SettingsError as error:  # what should be JSON and is none
                unread = InvalidInputError(f"a setting cannot be used: {error}: {error.__cause__}")
                fail(unread, as_json=bool(kwargs.get("as_json")))
                raise typer.Exit(USAGE) from None

        return run

    return decorated


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the errors that Quadcite raises on purpose into one message and exit code 1."""
    return reporting(FAILURE)(command)


def _settings_message(error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_url=False, include_context=False):
        name = "QUADCITE_" + "_".join(str(part) for part in problem["loc"]).upper()
        problems.append(f"the setting {name}={problem['input']} cannot be used: {problem['msg']}")
    return "\n".join(problems)


def fail(error: QuadciteError, *, as_json: bool) -> None:
    """Say what went wrong on standard error, and with `as_json` on standard output too."""
    say(f"kg: {error}")
    if as_json:
        put_json({"error": {"code": error.code, "message": str(error), "retryable": error.retryable}})


def say(text: str) -> None:
    """Write one line to standard error: for people, never part of the result."""
    sys.stderr.write(escape_controls(text) + "\n")
    sys.stderr.flush()


class Lines(logging.Handler):
    """Writes log records with `say`, which knows standard error as it is now: above a progress bar, not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        say(self.format(record))


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural where it has to be: ``1 row``, ``2,100 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def user() -> str:
    """Return who gives a command, as this machine knows them."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def put(text: str) -> None:
    """Write one line to standard output; on a terminal, as what is safe to print there."""
    sys.stdout.write((escape_controls(text) if sys.stdout.isatty() else text) + "\n")


def put_json(value: object) -> None:
    """Write `value` as one JSON document to standard output."""
    put(json.dumps(plain(value), ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def plain(value: object) -> Any:
    """Return `value` in JSON's own types: dataclasses, models and what has ``to_dict`` become objects, paths text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
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


def answer(value: object, as_json: bool) -> None:
    """Write the result of a command: as JSON, or for people."""
    (put_json if as_json else show)(value)


def show(value: object) -> None:
    """Write one thing as aligned ``name  value`` lines, or a list of things as a block of such lines each."""
    content = plain(value)
    if isinstance(content, list):
        for number, item in enumerate(content):
            if number:
                put("")
            show(item)
    elif isinstance(content, dict):
        width = max((len(name) for name in content), default=0)
        for name, item in content.items():
            put(f"{name.replace('_', ' '):<{width}}  {_one_line(item)}")
    else:
        put(_one_line(content))


def _one_line(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "-"
    return json.dumps(value, ensure_ascii=False)


def columns(head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """Write rows as columns padded with spaces, one line a row: readable, and easy to cut up in a pipe."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        put("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def table(columns: Sequence[str], rows: Iterator[Sequence[str]], width: int | None = None) -> None:
    """Draw a table as wide as the terminal, or `width` characters; long cells are folded, never cut."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        drawn.add_column(Text(column), overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    Console(file=sys.stdout, width=width, soft_wrap=False).print(drawn)


@contextmanager
def progress(label: str) -> Iterator[Advance]:
    """Give a function that reports progress: a bar when standard error is a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _Milestones(label)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr, soft_wrap=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def advance(done: int, total: int | None, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing or label)

        yield advance


class _Milestones:
    """Progress in a pipe or a log file: one line each time the count has doubled."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.next = 1_000

    def __call__(self, done: int, total: int | None, doing: str) -> None:
        if done >= self.next:
            of = f" of {total:,}" if total else ""
            say(f"{doing or self.label}: {done:,}{of}")
            while self.next <= done:
                self.next *= 2


def close_output() -> None:
    """Flush standard output, quietly when whoever read it has gone (``kg query ... | head``).

    Raises SystemExit with 2 when it cannot be written, on a full disk for instance, and no failure is told of already.
    """
    ending = sys.exc_info()[1]
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError) or (isinstance(ending, SystemExit) and ending.code):
            return
        unwritable(error)


def unwritable(error: OSError) -> NoReturn:
    """Say that standard output cannot be written, and exit with 2."""
    say(f"kg: standard output cannot be written: {error.strerror or error}")
    raise SystemExit(2) from error
