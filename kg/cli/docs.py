"""`kg docs`: the chapters of the documentation, printed."""

from __future__ import annotations

from typing import Annotated

import typer

from kg import bundle
from kg.cli import output
from kg.errors import InvalidInputError


def _complete(start: str) -> list[str]:
    return [name for name in bundle.CHAPTERS if name.startswith(start)]


Topic = Annotated[
    str | None,
    typer.Argument(autocompletion=_complete, help="The chapter to print. Without it, the chapters are listed."),
]


@output.reported
def docs(topic: Topic = None) -> None:
    """Print a chapter of the documentation, or list the chapters."""
    if topic is None:
        output.columns(("topic", "title"), ((name, bundle.chapter_title(name)) for name in bundle.CHAPTERS))
        return
    try:
        output.put(bundle.chapter(topic).rstrip("\n"))
    except KeyError:
        raise InvalidInputError(f"Unknown topic {topic!r}. Available: {', '.join(bundle.CHAPTERS)}.") from None
