"""`kg upgrade`: a data directory of an earlier version is written in the formats of this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kg.cli import output
from kg.cli.connection import connect, find_graph
from kg.cli.output import AsJson, DataDir
from kg.settings import settings_for


@output.reported
def upgrade(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written. Change nothing.")] = False,
    backup_to: Annotated[
        Path | None,
        typer.Option(
            "--backup-to",
            metavar="FOLDER",
            help="Folder of backups: a point is added first. Default: QUADCITE_BACKUP_TO.",
        ),
    ] = None,
    no_backup: Annotated[bool, typer.Option("--no-backup", help="Write no backup.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a data directory in the formats of this version, after a backup. No server may be running on it.

    If it is killed, run it again.
    """
    from kg.integrity import upgrade as upgrades

    directory = find_graph(data_dir)
    if dry_run:
        _show(upgrades.plan_upgrade(directory).to_dict(), as_json)
        return
    folder = backup_to or settings_for(data_dir).backup_to
    if folder is None and not no_backup:
        raise typer.BadParameter(
            "Name a folder of backups, or give --no-backup: an upgrade cannot be undone.", param_hint="--backup-to"
        )

    def finish() -> None:
        with connect(directory.path) as graph:
            graph.call("reindex", {"wait": False}, advance)
            graph.call("derive", {}, advance)

    with output.progress("upgrading") as advance:
        advance(0, None, "reading the formats")
        done = upgrades.upgrade(directory, None if no_backup or folder is None else folder.absolute(), finish)
    _show(done, as_json)


def _show(plan: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.put_json(plan)
        return
    columns = ("part", "found", "this version", "action", "seconds at most", "MB needed")
    rows = (
        [
            part["name"], part["found"], part["current"], part["action"], str(part["seconds"] or "-"),
            f"{part['bytes'] / 1e6:,.1f}" if part["bytes"] else "-",
        ]
        for part in plan["parts"]
    )  # fmt: skip
    output.columns(columns, rows)
    if not plan["due"]:
        output.say("kg: All parts have the formats of this version. Nothing is to be done.")
    elif "backup" not in plan:
        output.say(f"kg: Nothing was changed. A first backup needs up to {plan['backup_bytes'] / 1e6:,.1f} MB.")
    elif plan["backup"] is not None:
        output.say(f"kg: Upgraded. The former state is point {plan['backup']['point']} of {plan['backup']['folder']}.")
    else:
        output.say("kg: Upgraded, without a backup.")
