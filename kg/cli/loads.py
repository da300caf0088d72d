"""`kg loads`: list, follow and cancel the loads in the queue of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kg.cli import output
from kg.cli.connection import connect
from kg.cli.output import AsJson, DataDir

if TYPE_CHECKING:
    from collections.abc import Mapping

app = typer.Typer(help="List, follow and cancel the loads in the queue of a server.", no_args_is_help=True)

_WAIT_S: Final = 20

Number = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="Number of a load, from `kg loads list`.")]


def show(load: Mapping[str, Any]) -> None:
    """Print the fields of a load that it has."""
    output.show({name: value for name, value in load.items() if value is not None})


def _describe(load: Mapping[str, Any]) -> tuple[str, str]:
    """Describe the locations of a load, and its outcome or the step in progress."""
    counts = [f"{number:,} {name}" for name, number in load.get("counts", {}).items() if number]
    doing = f"{load['doing']} {load['done']:,}" if "doing" in load else ""
    return " ".join(load.get("locations", ())), str(load.get("error", ", ".join(counts) or doing))


@app.command("list")
@output.reported
def list_loads(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=200, help="Maximum loads.")] = 20,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the loads, the newest first. Each with its number, state, source and outcome."""
    with connect(data_dir) as graph:
        loads = graph.call("load_status", {"limit": limit})["loads"]
    if as_json:
        output.put_json(loads)
        return
    names = ("number", "state", "source", "locations", "outcome")
    output.columns(names, ([*(str(load[name]) for name in names[:3]), *_describe(load)] for load in loads))
    if not loads:
        output.say("kg: No loads. Add one with `kg load SOURCE PATH --queue`.")


@app.command("follow")
@output.reported
def follow(number: Number, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Follow a load until it has ended. Exits with 1 unless it is done."""
    from kg.load_queue import ENDED

    with connect(data_dir) as graph, output.progress(f"load {number}") as advance:
        while True:
            [load] = graph.call("load_status", {"number": number, "wait_s": _WAIT_S}, advance)["loads"]
            if load["state"] in ENDED:
                break
    if as_json:
        output.put_json(load)
    else:
        show(load)
    if load["state"] != "done":
        raise typer.Exit(output.FAILURE)


@app.command("cancel")
@output.reported
def cancel(number: Number, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Cancel a load that waits or runs. Stored records remain."""
    with connect(data_dir) as graph:
        [load] = graph.call("cancel_load", {"number": number})["loads"]
    if as_json:
        output.put_json(load)
    else:
        show(load)
