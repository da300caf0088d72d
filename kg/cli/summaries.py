"""`kg summaries`: build the summaries of municipal codes, and list the missing and stale ones."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import typer

from kg.cli import output
from kg.cli.connection import connect
from kg.cli.output import AsJson, DataDir

app = typer.Typer(help="Build and count the summaries of municipal codes.", no_args_is_help=True)

SHOWN: Final = 10
"""Maximum sections named in the text output. --json has all."""


@app.command("build")
@output.reported
def build(
    municipality: Annotated[str, typer.Argument(metavar="MUNICIPALITY", help="Name or key of the municipality.")],
    state: Annotated[str, typer.Argument(metavar="STATE", help="State of the municipality: two letters or the name.")],
    root: Annotated[
        str | None,
        typer.Option("--root", metavar="SECTION", help="Number of a section: build only it and those below it."),
    ] = None,
    mode: Annotated[
        Literal["extractive", "chat"],
        typer.Option(
            "--mode",
            metavar="extractive|chat",
            help="extractive: sentences of the law (default). chat: text by the model at QUADCITE_CHAT_URL.",
        ),
    ] = "extractive",
    again: Annotated[bool, typer.Option("--again", help="Build current summaries again, too.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Build missing and stale summaries of a code. An interrupted build can be resumed."""

    with connect(data_dir) as graph, output.progress("summarizing") as advance:
        arguments = {"municipality": municipality, "state": state, "root": root, "mode": mode, "again": again}
        done = graph.call("summaries_build", arguments, advance)
    if as_json:
        output.put_json(done)
    else:
        shown = {name: value for name, value in done.items() if name not in ("failed", "circular")}
        output.show(shown | {"failed": len(done["failed"]), "circular": done["circular"]})
        for each in done["failed"][:SHOWN]:
            output.say(f"No summary of {each['section_id']}: {each['reason']}")
        if len(done["failed"]) > SHOWN:
            output.say(f"And {output.counted(len(done['failed']) - SHOWN, 'section')} more. --json lists all.")
        if done["waiting"]:
            output.say("kg: Waiting sections depend on failed ones. Run the same command again to build them.")
    if done["failed"] or done["waiting"]:
        raise typer.Exit(output.SOME_REJECTED)


@app.command("status")
@output.reported
def status(
    municipality: Annotated[
        str | None, typer.Argument(metavar="MUNICIPALITY", help="Name or key of the municipality. Default: all codes.")
    ] = None,
    state: Annotated[
        str | None, typer.Argument(metavar="STATE", help="State of the municipality: two letters or the name.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Count the summaries of codes by state and by model. States: current, stale, missing, empty, circular."""

    if (municipality is None) != (state is None):
        raise typer.BadParameter("Give a municipality with its state, or no argument.", param_hint="STATE")
    with connect(data_dir) as graph, output.progress("counting") as advance:
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
        output.say(f"kg: {count} no longer in a code still have summaries. The next kg summaries build removes them.")
