"""`kg models`: download and verify the embedding model."""

from __future__ import annotations

import typer

from kg.cli import output
from kg.cli.output import AsJson
from kg.settings import settings

app = typer.Typer(help="Download and verify the embedding model.", no_args_is_help=True)


@app.command("list")
@output.reported
def models_list(as_json: AsJson = False) -> None:
    """List the models that QUADCITE_MODEL can name. Each with its state: selected, installed."""
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
                ("not pulled" if not model.installed else "installed" if model.verified else "damaged")
                + (", selected" if model.selected else ""),
            )
            for model in known
        ),
    )


@app.command("pull")
@output.reported
def models_pull(as_json: AsJson = False) -> None:
    """Download the configured model and verify its hashes. Afterwards no network is used."""
    from kg.search import models

    chosen = settings()
    folder = models.pull(chosen, progress=output.say)
    if as_json:
        output.put_json({"model": chosen.model, "path": folder})
    else:
        output.put(f"Pulled {chosen.model} to {folder}.")


@app.command("verify")
@output.reported
def models_verify(as_json: AsJson = False) -> None:
    """Verify the pulled model. Its files by their hashes, its embeddings by known ones."""
    from kg.search import models

    report = models.verify(settings())
    if as_json:
        output.put_json(output.to_json_types(report) | {"ok": report.ok})
    else:
        output.show(report)
    if not report.ok:
        raise typer.Exit(output.FAILURE)
