"""The command line: `kg`. A composition root: with `kg/server/app.py` the only place that knows the loaders.

Imports of the heavy parts stand inside the commands, so that `kg --help` starts in a moment.
"""

from __future__ import annotations

from typing import Annotated

import typer

from kg import __version__, console
from kg.settings import settings

app = typer.Typer(
    name="kg",
    help="A knowledge graph of civic text whose every answer cites its sources.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
models_app = typer.Typer(help="The embedding model: list, pull, verify.", no_args_is_help=True)
app.add_typer(models_app, name="models")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kg {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@models_app.command("list")
@console.reported
def models_list(as_json: AsJson = False) -> None:
    """List the models that can be pulled."""
    from kg.search import models

    _answer(models.known(), as_json)


@models_app.command("pull")
@console.reported
def models_pull(as_json: AsJson = False) -> None:
    """Fetch the configured model, check its hash and its vectors; afterwards no network is used."""
    from kg.search import models

    _answer(models.pull(settings()), as_json)


@models_app.command("verify")
@console.reported
def models_verify(as_json: AsJson = False) -> None:
    """Check the pulled model's files against their hashes and its vectors against known ones."""
    from kg.search import models

    _answer(models.verify(settings()), as_json)


def _answer(value: object, as_json: bool) -> None:
    (console.put_json if as_json else console.show)(value)


def main() -> None:
    """Run the command line and exit: 0 all well, 1 failure, 2 usage, 3 loaded but some records rejected."""
    try:
        app()
    finally:
        console.close_output()
