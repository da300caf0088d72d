"""`kg models`: download and verify the embedding models."""

from __future__ import annotations

import typer

from kg.cli import output
from kg.cli.output import AsJson
from kg.settings import settings

app = typer.Typer(help="Download and verify the embedding models.", no_args_is_help=True)


@app.command("list")
@output.reported
def models_list(as_json: AsJson = False) -> None:
    """List the models that QUADCITE_MODEL can name. Each with its languages and its state: selected, installed."""
    from kg.search import models

    known = models.list_models(settings())
    if as_json:
        output.put_json({"models": known})
        return
    output.columns(
        ("model", "languages", "dimensions", "download MB", "state"),
        (
            (
                model.name,
                "any or unknown" if model.languages is None else " ".join(model.languages),
                str(model.dimensions),
                f"{model.download_mb:,}",
                ("not pulled" if not model.installed else "installed" if model.verified else "damaged")
                + (", selected" if model.selected else ""),
            )
            for model in known
        ),
    )
    for model in known:
        if model.origin:
            output.put(f"{model.name}: {model.origin}.")


@app.command("pull")
@output.reported
def models_pull(as_json: AsJson = False) -> None:
    """Download the configured models and verify their hashes. Afterwards no network is used."""
    from kg.search import models

    chosen = settings()
    pulled = [{"model": name, "path": models.pull(chosen, output.say, name)} for name in chosen.models]
    if as_json:
        output.put_json({"models": pulled})
        return
    for each in pulled:
        output.put(f"{each['model']} is in {each['path']}.")


@app.command("verify")
@output.reported
def models_verify(as_json: AsJson = False) -> None:
    """Verify the configured models. Their files by hashes, their embeddings by known ones."""
    from kg.search import models

    chosen = settings()
    reports = [models.verify(chosen, name) for name in chosen.models]
    is_ok = all(report.ok for report in reports)
    if as_json:
        shown = [output.to_json_types(report) | {"ok": report.ok} for report in reports]
        output.put_json({"models": shown, "ok": is_ok})
    else:
        for report in reports:
            output.show(report)
    if not is_ok:
        raise typer.Exit(output.FAILURE)
