"""`kg mentions` and `kg derive`: derived graphs that are due are computed."""

from __future__ import annotations

from typing import Annotated

import typer

from kg.cli import output
from kg.cli.connection import connect
from kg.cli.output import AsJson, DataDir


@output.reported
def find_mentions(
    data_dir: DataDir = None,
    full: Annotated[bool, typer.Option("--full", help="Search every text again, not only changed ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find mentions of concepts in texts. Every load does so; this command resumes an interrupted search."""
    with connect(data_dir) as graph, output.progress("finding mentions") as advance:
        document = graph.call("mentions", {"full": full}, advance)
    if as_json:
        output.put_json(document)
        return
    output.show(document)
    if not document["concepts"]:
        output.say("kg: No concepts are loaded. Load some with kg load wikibase.")
    elif not document["graphs"]:
        output.say("kg: No text or concept has changed since the last search. To search every text again, add --full.")


def list_names() -> list[str]:
    """List the names of derivations, which a shell completes."""
    from kg.tools.derivations import DEFINITIONS

    return list(DEFINITIONS)


@output.reported
def derive(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A derivation, such as mentions or links; all if omitted.", autocompletion=list_names
        ),
    ] = None,
    data_dir: DataDir = None,
    full: Annotated[bool, typer.Option("--full", help="Compute all of it again, not only due graphs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute derived graphs that are due. Every load does so; `kg status` lists them."""
    with connect(data_dir) as graph, output.progress("deriving") as advance:
        document = graph.call("derive", {"name": name, "full": full}, advance)
    if as_json:
        output.put_json(document)
    else:
        columns = ("graphs", "added", "removed", "run")
        rows = [
            [each, *(str(report[column] or 0) for column in columns[:3]), report["run"] or "-"]
            for each, report in document.items()
            if report["graphs"] or report["removed"]
        ]
        if rows:
            output.columns(("derivation", *columns), iter(rows))
        else:
            output.say("kg: No graph was due. To compute all again, add --full.")
