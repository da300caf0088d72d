"""Output of the command line: tables and bars on a terminal, plain lines in a pipe, one JSON document with --json.

Results go to standard output; messages go to standard error.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import logging
import os
import pwd
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, ParamSpec, get_type_hints

import typer
from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError
from typer.models import OptionInfo

from kg.access.actors import Actor
from kg.errors import InvalidInputError, QuadciteError
from kg.text import escape_controls
from loaders.load_options import Option

FAILURE: Final = 1
USAGE: Final = 2
SOME_REJECTED: Final = 3

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Data directory. Default: QUADCITE_DATA_DIR, else ./kg-data."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

P = ParamSpec("P")
Advance = Callable[[int, int | None, str], None]
"""Receives progress: the number done, the total (None: unknown), and a short label of the current step."""

_COMMAND: Final[ContextVar[tuple[Callable[..., None], Mapping[str, object]] | None]] = ContextVar(
    "_COMMAND", default=None
)
"""The function of the current command, and its arguments."""

_LOCATIONS: Final = frozenset({"paths", "files", "file", "mapping", "target"})
"""The arguments of commands that are paths."""


def examples(*commands: str) -> str:
    """Build the end of the help of a command: lines to copy, which are not wrapped."""
    return "\b\nExamples:\n" + "".join(f"  {command}\n" for command in commands)


def report_errors(exit_code: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate a command so that a QuadciteError ends it with a message and `exit_code`, or 2 for invalid input.

    With ``--json`` the error is also printed on standard output, as ``{"error": {"code", "message", "retryable"}}``.
    """

    def decorated(command: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            token = _COMMAND.set((command, kwargs))
            try:
                command(*args, **kwargs)
            except QuadciteError as error:
                fail(error, as_json=bool(kwargs.get("as_json")))
                raise typer.Exit(USAGE if isinstance(error, InvalidInputError) else exit_code) from None
            except ValidationError as error:
                if error.title != "Settings":
                    raise
                fail(InvalidInputError(_settings_message(error)), as_json=bool(kwargs.get("as_json")))
                raise typer.Exit(USAGE) from None
            except SettingsError as error:  # a setting that is not valid JSON
                unread = InvalidInputError(f"Invalid setting: {error}: {error.__cause__}.")
                fail(unread, as_json=bool(kwargs.get("as_json")))
                raise typer.Exit(USAGE) from None
            finally:
                _COMMAND.reset(token)

        return run

    return decorated


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Decorate a command so that a QuadciteError ends it with a message and exit code 1, or 2 for invalid input."""
    return report_errors(FAILURE)(command)


def with_options(options: Mapping[str, Option]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate a command that takes keywords, so that each of `options` is one, a text or None."""

    def decorate(command: Callable[P, None]) -> Callable[P, None]:
        signature = inspect.signature(command, eval_str=True)
        own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[
                    str | None, typer.Option(f"--{name}", metavar=option.metavar, help=option.description)
                ],
            )
            for name, option in options.items()
        ]
        setattr(command, "__signature__", signature.replace(parameters=[*own, *added]))  # noqa: B010 -- mypy knows none
        return command

    return decorate


def _settings_message(error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_url=False, include_context=False):
        name = "QUADCITE_" + "_".join(str(part) for part in problem["loc"]).upper()
        problems.append(f"Invalid setting {name}={problem['input']}: {problem['msg']}.")
    return "\n".join(problems)


def fail(error: QuadciteError, *, as_json: bool) -> None:
    """Print an error on standard error, and with `as_json` on standard output too."""
    message = write_paths(name_options(str(error)))
    say(f"kg: {message}")
    if as_json:
        put_json({"error": {"code": error.code, "message": message, "retryable": error.retryable}})


_ARGUMENTS: Final = re.compile(
    r"""
      (?<!\w)(?:'[^']*'|"[^"]*")                                # a quotation names none
    | (?<![\w.?-])(?P<given>\w+)=                               # offset=20
    | (?:^\w+:[ ]|^|(?<=;[ ]))(?:filters\.)?(?P<first>\w+)(?:\.\d+)?:[ ]   # place: Unknown place
    | (?P<list>(?<=filters[ ]\()[\w, ]+(?=\)))                 # Widen the filters (place, language)
    | (?P<all>[ ]\((?:arguments|filters):[\w, ]+\)$)
    """,
    re.VERBOSE,
)
"""Where a message of a tool names its arguments."""


def name_options(message: str) -> str:
    """Replace the arguments that a message of a tool names by the options of the current command with their names."""
    current = _COMMAND.get()
    hints = get_type_hints(current[0], include_extras=True) if current is not None else {}
    options = {
        name: written
        for name, hint in hints.items()
        for each in getattr(hint, "__metadata__", ())
        if isinstance(each, OptionInfo)
        # In an annotation the first argument of typer.Option is the name of the option, not its default.
        for written in (each.default, *(each.param_decls or ()))
        if isinstance(written, str) and written.startswith("--")
    }

    def write(found: re.Match[str]) -> str:
        if found["all"]:
            return ""
        if found["list"]:
            return ", ".join(options.get(name, name) for name in found["list"].split(", "))
        if option := options.get(found["given"] or ""):
            return f"{option} "
        if option := options.get(found["first"] or ""):
            return f"{option}: "
        return found[0]

    return _ARGUMENTS.sub(write, message) if options else message


def write_paths(message: str) -> str:
    """Write the paths in a message as the caller of the command did, if those are relative.

    Loads, which a server with another working directory can run, name files by absolute paths.
    """
    current = _COMMAND.get()
    given = [
        str(path)
        for name, value in (current[1].items() if current is not None else ())
        if name in _LOCATIONS
        for path in (value if isinstance(value, list) else [value])
        if path is not None and not os.path.isabs(str(path))
    ]
    starts: dict[str, str] = {}
    for path in given:
        absolute, written = os.path.abspath(path).split("/"), os.path.normpath(path).split("/")
        while written and written[-1] == absolute[-1]:
            absolute, written = absolute[:-1], written[:-1]
        starts["/".join((*absolute, ""))] = "/".join((*written, "")) if written not in ([], ["."]) else ""
    for start in sorted(starts, key=len, reverse=True):
        pattern = rf"(?<![^\s\"'(\[,:;=@]){re.escape(start)}"
        message = re.sub(pattern, starts[start].replace("\\", r"\\"), message)
    return message


def say(text: str) -> None:
    """Write one line to standard error. It is never part of the result."""
    sys.stderr.write(escape_controls(write_paths(text)) + "\n")
    sys.stderr.flush()


class Lines(logging.Handler):
    """Writes log records with `say`, which uses the current standard error: above a progress bar, not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        say(self.format(record))


def counted(number: int, noun: str) -> str:
    """Format a number with its noun in singular or plural: ``1 row``, ``2,100 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def user_name() -> str:
    """Get the name of the operating system's user."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def operator() -> Actor:
    """Get the sender of a command that runs in its own process, for the audit log."""
    return Actor(user_name(), frozenset())


def put(text: str) -> None:
    """Write one line to standard output, without control characters if it is a terminal."""
    sys.stdout.write((escape_controls(text) if sys.stdout.isatty() else text) + "\n")


def put_json(value: object) -> None:
    """Write `value` as one JSON document to standard output."""
    put(json.dumps(to_json_types(value), ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def to_json_types(value: object) -> Any:
    """Convert `value` to JSON types: dataclasses, models and classes with ``to_dict`` become objects, paths text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_json_types(to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json_types(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [to_json_types(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def answer(value: object, as_json: bool) -> None:
    """Write the result of a command as JSON or as text."""
    (put_json if as_json else show)(value)


def show(value: object) -> None:
    """Write an object as aligned ``name  value`` lines, or each object of a list as a block of such lines."""
    content = to_json_types(value)
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
    """Write rows as columns padded with spaces, one line per row."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        put("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def table(columns: Sequence[str], rows: Iterator[Sequence[str]], width: int | None = None) -> None:
    """Draw a table as wide as the terminal, or `width` characters. Long cells are folded, never cut."""
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


_FOLLOWS: Final = {
    "making vectors": "Keyword search works. kg serve or kg reindex makes the rest.",
    "indexing": "kg reindex indexes the rest.",
    "finding citations": "The next load finds the rest.",
    "finding mentions": "kg mentions finds the rest.",
    "comparing names": "No proposal was written. kg align compares them again.",
    "loading": "Committed records stay. The same command loads the rest.",
}
"""How an interrupted step is continued, by the start of its label."""

_LINE_EVERY_S: Final = 10.0
"""Seconds after which a step in a pipe gets another line, if its count has not doubled before."""


class _Step:
    """The current step of a command: its label, its count, and its rate since the step began."""

    def __init__(self, label: str) -> None:
        self.label = self.doing = label
        self.done = self._first = 0
        self.total: int | None = None
        self.began = time.monotonic()
        self._begun = False

    def advance(self, done: int, total: int | None, doing: str) -> bool:
        """Take a report of progress, and return whether another step has begun."""
        doing = doing or self.label
        # A step may add details after a comma, such as its tokens.
        changed = self._begun and doing.partition(",")[0] != self.doing.partition(",")[0]
        self._begun = True
        if changed:
            self.began, self._first = time.monotonic(), done
        self.done, self.total, self.doing = done, total, doing
        return changed

    def rate(self) -> float | None:
        """Compute the items per second; None in the first second and without any."""
        seconds = time.monotonic() - self.began
        return (self.done - self._first) / seconds if seconds >= 1 and self.done > self._first else None

    def speed(self) -> str:
        """Describe the rate and the time left: ``86/s, 0:01:33 left``. Empty while unknown."""
        rate = self.rate()
        if rate is None:
            return ""
        shown = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
        if not self.total or self.done >= self.total:
            return shown
        return f"{shown}, {timedelta(seconds=round((self.total - self.done) / rate))} left"

    def count(self) -> str:
        """Describe the count: ``2,000 of 10,000``."""
        return f"{self.done:,} of {self.total:,}" if self.total else f"{self.done:,}"


@contextmanager
def progress(label: str) -> Iterator[Advance]:
    """Yield a function that shows progress: a bar if standard error is a terminal, else occasional lines.

    If the block is interrupted, the step that was not completed is reported.
    """
    step = _Step(label)
    try:
        with _bar(step) if sys.stderr.isatty() else nullcontext(_Milestones(step)) as advance:
            yield advance
    except (KeyboardInterrupt, SystemExit):
        follows = next((text for start, text in _FOLLOWS.items() if step.doing.startswith(start)), "")
        say(f"kg: Interrupted while {step.doing}: {step.count()} done. {follows}".rstrip())
        raise


@contextmanager
def _bar(step: _Step) -> Iterator[Advance]:
    """Show a bar with the count, the time since the step began, its rate and the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[speed]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(file=sys.stderr, soft_wrap=True), transient=True) as bar:
        task = bar.add_task(step.label, total=None, speed="")

        def advance(done: int, total: int | None, doing: str) -> None:
            if step.advance(done, total, doing):
                bar.reset(task)  # a finished bar stops its clock
            bar.update(task, completed=done, total=total, description=step.doing, speed=step.speed())

        yield advance


class _Milestones:
    """Shows progress in a pipe or log file: a line each time the count has doubled, and every 10 seconds."""

    def __init__(self, step: _Step) -> None:
        self._step = step
        self._next = 1_000
        self._said = time.monotonic()

    def __call__(self, done: int, total: int | None, doing: str) -> None:
        step = self._step
        if step.advance(done, total, doing):
            self._next, self._said = 1_000, time.monotonic()
            while self._next <= done:
                self._next *= 2
        late = time.monotonic() - self._said >= _LINE_EVERY_S
        if done < self._next and not late:
            return
        speed = step.speed()
        say(f"{step.doing}: {step.count()}" + (f" ({speed})" if speed else ""))
        self._said = time.monotonic()
        while self._next <= done:
            self._next *= 2


def close_output() -> None:
    """Flush standard output, ignoring a closed pipe (``kg query ... | head``).

    Raises SystemExit with 2 if it cannot be written (a full disk, for instance) and no failure was reported yet.
    """
    ending = sys.exc_info()[1]
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError) or (isinstance(ending, SystemExit) and ending.code):
            return
        exit_unwritable(error)


def exit_unwritable(error: OSError) -> NoReturn:
    """Report that standard output cannot be written, and exit with 2."""
    say(f"kg: Cannot write to standard output: {error.strerror or error}.")
    raise SystemExit(2) from error
