"""`kg docs` and `kg deploy`: chapters of the documentation and files for deployments, printed."""

from __future__ import annotations

from typing import Annotated

import typer

from kg import bundle
from kg.cli import output
from kg.errors import InvalidInputError
from kg.text import quoted


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


def _complete_deployment(start: str) -> list[str]:
    return [name for name in bundle.DEPLOYMENTS if name.startswith(start)]


Deployment = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", autocompletion=_complete_deployment, help="The file to print. Without it, the files are listed."
    ),
]


@output.reported
def deploy(name: Deployment = None) -> None:
    """Print a file for a deployment, such as a unit of systemd or manifests of Kubernetes, or list the files."""
    if name is None:
        rows = ((key, file, purpose) for key, (file, purpose) in bundle.DEPLOYMENTS.items())
        output.columns(("name", "file", "purpose"), rows)
        return
    try:
        output.put(bundle.deployment(name).rstrip("\n"))
    except KeyError:
        raise InvalidInputError(
            f"Unknown deployment {quoted(name)}. Available: {', '.join(bundle.DEPLOYMENTS)}."
        ) from None
