"""`kg models`: get and check the embedding model."""

from __future__ import annotations

import typer

from kg.cli import output
from kg.cli.output import AsJson
from kg.settings import settings

app = typer.Typer(help="Get and check the embedding model.", no_args_is_help=True)


@app.command("list")
@output.reported
def models_list(as_json: AsJson = False) -> None:
    """List the models that QUADCITE_MODEL can name: which is selected, and which are here."""
    from kg.search import models

    known = models.list_models(settings())
    if as_json:
        output.put_json({"models": known})
        return
    output.columns(
        ("model", "dimensions", "download MB", "state"),
        (
            (
                model.name,
                str(model.dimensions),
                f"{model.download_mb:,}",
                ("not pulled" if not model.installed else "here" if model.verified else "damaged")
                + (", selected" if model.selected else ""),
            )
            for model in known
        ),
    )


@app.command("pull")
@output.reported
def models_pull(as_json: AsJson = False) -> None:
    """Fetch the configured model once and check its hashes; afterwards no network is used."""
    from kg.search import models

    chosen = settings()
    folder = models.pull(chosen, progress=output.say)
    if as_json:
        output.put_json({"model": chosen.model, "path": folder})
    else:
        output.put(f"{chosen.model} is in {folder}")


@app.command("verify")
@output.reported
def models_verify(as_json: AsJson = False) -> None:
    """Check the pulled model's files by their hashes, and its vectors by known ones."""
    from kg.search import models

    report = models.verify(settings())
    if as_json:
        output.put_json(output.plain(report) | {"ok": report.ok})
    else:
        output.show(report)
    if not report.ok:
        raise typer.Exit(output.FAILURE)
