"""`kg summaries`: build the summaries of municipal codes, and see which are missing or stale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from kg.cli import output
from kg.cli.output import AsJson
from kg.settings import settings_for

app = typer.Typer(help="Build and count the summaries of municipal codes.", no_args_is_help=True)

SHOWN: Final = 10
"""Sections without a summary that the text for people names; JSON has all."""

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Data directory; else QUADCITE_DATA_DIR, else ./kg-data."),
]


@app.command("build")
@output.reported
def build(
    municipality: Annotated[str, typer.Argument(metavar="MUNICIPALITY", help="Its name or key.")],
    state: Annotated[str, typer.Argument(metavar="STATE", help="Its state: two letters or the name.")],
    root: Annotated[
        str | None, typer.Option("--root", metavar="SECTION", help="Only this section, by number, and those below it.")
    ] = None,
    mode: Annotated[
        Literal["extractive", "chat"],
        typer.Option(
            "--mode",
            metavar="extractive|chat",
            help="Sentences of the law itself (the default), or what the endpoint at QUADCITE_CHAT_URL writes.",
        ),
    ] = "extractive",
    anew: Annotated[bool, typer.Option("--anew", help="Write those again, too, that are current.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Build the summaries of a code that are missing or stale. One that was stopped goes on where it was."""
    from kg.cli import connection

    with connection.connect(settings_for(data_dir)) as graph, output.progress("summarizing") as advance:
        wanted = {"municipality": municipality, "state": state, "root": root, "mode": mode, "anew": anew}
        done = graph.call("summaries_build", wanted, advance)
    if as_json:
        output.put_json(done)
    else:
        shown = {name: value for name, value in done.items() if name not in ("failed", "circular")}
        output.show(shown | {"failed": len(done["failed"]), "circular": done["circular"]})
        for each in done["failed"][:SHOWN]:
            output.say(f"no summary of {each['section_id']}: {each['reason']}")
        if len(done["failed"]) > SHOWN:
            output.say(f"and of {output.counted(len(done['failed']) - SHOWN, 'section')} more; --json has them all")
        if done["waiting"]:
            output.say("kg: what waits is built by the same command, once what it waits for can be")
    if done["failed"] or done["waiting"]:
        raise typer.Exit(output.SOME_REJECTED)


@app.command("status")
@output.reported
def status(
    municipality: Annotated[
        str | None, typer.Argument(metavar="MUNICIPALITY", help="Its name or key; without one, all codes.")
    ] = None,
    state: Annotated[str | None, typer.Argument(metavar="STATE", help="Its state: two letters or the name.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Count the summaries of codes. How many are current, stale and missing, and what wrote them."""
    from kg.cli import connection

    if (municipality is None) != (state is None):
        raise typer.BadParameter("give a municipality with its state, or neither", param_hint="STATE")
    with connection.connect(settings_for(data_dir)) as graph, output.progress("counting") as advance:
        done = graph.call("summaries_status", {"municipality": municipality, "state": state}, advance)
    if as_json:
        output.put_json(done)
        return
    head = ("municipality", "sections", "current", "stale", "missing", "empty", "circular", "written by")
    output.columns(
        head,
        (
            (code["municipality"], *(f"{code[name]:,}" for name in head[1:-1]), ", ".join(code["models"]) or "-")
            for code in done["codes"]
        ),
    )
    for code in done["codes"]:
        if stale := code["stale_sections"]:
            more = f" and {len(stale) - SHOWN:,} more" if len(stale) > SHOWN else ""
            output.put(f"stale in {code['municipality']}: {', '.join(stale[:SHOWN])}{more}")
    if done["orphans"]:
        count = output.counted(len(done["orphans"]), "section")
        output.say(f"kg: {count} that are gone still have summaries; the next kg summaries build removes them")
