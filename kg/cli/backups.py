"""`kg backup`, `kg restore`, `kg doctor` and `kg compact`: backups and their restoration, damage, erasure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kg.cli import output
from kg.cli.connection import connect, find_graph, find_server
from kg.cli.output import AsJson, DataDir
from kg.settings import Settings, parse_period, settings_for

SHOWN: Final = 20
"""Maximum problems named in the text output. --json has up to 50 of each kind."""

REPAIRABLE: Final = frozenset({"changed", "derived", "index", "missing", "text"})
"""The kinds of problems that `--repair` can remove while the store is open."""


app = typer.Typer(help="Add, list and verify the points of a folder of backups.", no_args_is_help=True)

Folder = Annotated[
    Path | None, typer.Argument(metavar="FOLDER", help="Folder of backups. Default: QUADCITE_BACKUP_TO.")
]
Number = Annotated[
    int | None, typer.Option("--point", metavar="N", min=1, help="Number of a point, from `kg backup list`.")
]


def _find_folder(folder: Path | None, data_dir: Path | None = None) -> Path:
    chosen = folder or settings_for(data_dir).backup_to
    if chosen is None:
        raise typer.BadParameter("Name a folder, or set QUADCITE_BACKUP_TO.", param_hint="FOLDER")
    return chosen.absolute()


def with_options(settings: Settings, given: Mapping[str, object]) -> Settings:
    """Replace settings of backups by the options that were given."""
    changed = {name: value for name, value in given.items() if value is not None}
    check_period(changed.get("backup_every"), "--backup-every")
    return settings.model_copy(update=changed)


def check_period(text: object, option: str) -> None:
    """Raise BadParameter for the value of an option that is not a time with its unit."""
    try:
        if text is not None:
            parse_period(str(text))
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint=option) from None


@app.command("create", epilog=output.examples("kg backup create /mnt/backups --keep 7 --keep-weekly 8"))
@output.reported
def create(
    folder: Folder = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", metavar="N", min=0, help="Keep the newest N points. If all three numbers are 0, all points stay."
        ),
    ] = None,
    daily: Annotated[
        int | None, typer.Option("--keep-daily", metavar="N", min=0, help="Keep the last point of N days, too.")
    ] = None,
    weekly: Annotated[
        int | None, typer.Option("--keep-weekly", metavar="N", min=0, help="Keep the last point of N weeks, too.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Do not read the store of the point through.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add a point to a folder of backups: files that it has are not copied again. A server may be running.

    Each number of points that is not given is that of the settings (QUADCITE_BACKUP_KEEP and others).
    """
    target = _find_folder(folder, data_dir)
    given = {"newest": keep, "daily": daily, "weekly": weekly}
    with connect(data_dir) as graph, output.progress("copying") as advance:
        arguments = {"folder": str(target), "read": not quick, **given}
        done = graph.call("backup", arguments, advance)
    if as_json:
        output.put_json(done)
        return
    output.put(_describe_created(done))
    if not done["index"]:
        output.say("kg: The search index was not available and is not in the backup. It is rebuilt from the store.")


def _describe_created(done: dict[str, Any]) -> str:
    what = f"generation {done['generation']} with {done['quads']:,} quads"
    removed = f" Removed {output.counted(len(done['removed']), 'point')}." if done["removed"] else ""
    if not done["new"]:
        return f"Nothing has changed since point {done['number']} ({what}).{removed}"
    return (
        f"Added point {done['number']} to {done['folder']}: {what}, {done['added'] / 1e6:,.1f} MB of new files in "
        f"{done['seconds']:g} s.{removed}"
    )


@app.command("list", epilog=output.examples("kg backup list /mnt/backups"))
@output.reported
def list_points(folder: Folder = None, as_json: AsJson = False) -> None:
    """List the points of a folder of backups, the newest first."""
    from kg.integrity.backups import list_backups

    found = list_backups(_find_folder(folder))
    if as_json:
        output.put_json(found)
    else:
        names = ("number", "written", "confirmed", "generation", "quads", "bytes", "added", "index", "read")
        rows = (["" if point.get(name) is None else str(point[name]) for name in names] for point in found["points"])
        output.columns(("point", *names[1:]), rows)
    for problem in found["problems"]:
        output.say(f"kg: {problem}")
    if found["problems"]:
        raise typer.Exit(output.FAILURE)


@app.command("verify", epilog=output.examples("kg backup verify /mnt/backups"))
@output.reported
def verify(folder: Folder = None, point: Number = None, as_json: AsJson = False) -> None:
    """Read all files of all points, or of one, and the store of the newest, or of that one.

    Exit code 1: problems were found.
    """
    from kg.integrity.backups import verify_backups
    from kg.integrity.doctor import report

    with output.progress("verifying") as advance:
        advance(0, None, "reading the files")
        inspection = verify_backups(_find_folder(folder), point)
    found = report(inspection.problems, dict(inspection.counts))
    if as_json:
        output.put_json(found)
    else:
        _show(found, "Keep the folder as it is, and restore a point without problems.")
    if not found["ok"]:
        raise typer.Exit(output.FAILURE)


@output.reported
def restore(
    folder: Folder = None,
    point: Number = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace all that the data directory contains by the point.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Copy a point of a folder of backups into the data directory, after verifying it. Default: the newest.

    No server may be running on the data directory.
    """
    from kg.integrity.backups import restore_backup

    source = _find_folder(folder, data_dir)
    with output.progress("restoring") as advance:
        advance(0, None, "verifying and copying")
        done = restore_backup(source, settings_for(data_dir).data_dir, number=point, replace=replace)
    if as_json:
        output.put_json(done)
    else:
        output.put(
            f"Restored point {done['point']} of {source}, generation {done['generation']}, to {done['data_dir']}."
        )
        if done["problems"]:
            many = output.counted(len(done["problems"]), "problem")
            output.say(f"kg: Its content has {many}, perhaps since another version wrote it. Run kg doctor.")


@output.reported
def compact(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Write all files again, without removed text, and remove caches. No server may be running on the data directory.

    Exit code 1: files remain that may contain removed text.
    """
    from kg.integrity.compaction import compact as compact_folder

    folder = find_graph(data_dir).path
    with output.progress("compacting") as advance:
        advance(0, None, "copying the store and the index")
        done = compact_folder(folder)
    if as_json:
        output.put_json(done)
    else:
        _show_compacted(done)
    if done["remains"]:
        raise typer.Exit(output.FAILURE)


def _show_compacted(done: dict[str, Any]) -> None:
    output.put(
        f"Copied {done['quads']:,} quads in {done['seconds']:g} s: {done['bytes_before'] / 1e6:,.1f} MB before, "
        f"{done['bytes_after'] / 1e6:,.1f} MB now. Text that was removed, replaced or redacted is gone from "
        f"{done['data_dir']}."
    )
    if done["index"] == "removed":
        output.put("The search index could not be copied and was removed. The next command or server builds it again.")
    for name in done["remains"]:
        output.put(f"Not erased: {name}, which `kg doctor` explains. Remove it when you no longer need it.")
    if done["quarantined"]:
        output.put(
            f"{output.counted(done['quarantined'], 'record')} in quarantine keep their text: kg quarantine list."
        )
    for each in done["backups"]:
        output.put(f"Backups up to {each['written']}, with the old text: {each['target']}")
    output.put(
        "Replace earlier backups (`kg backup create FOLDER --keep 1 --keep-daily 0 --keep-weekly 0`), copies of them, "
        "and copies of the source files yourself."
    )


@output.reported
def doctor(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Repair derived data and, without a server, damaged indexes. Name the data to load again."
        ),
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find damage: read all indexes, texts, hashes and provenance. Exit code 1: problems were found."""
    with output.progress("inspecting") as advance:
        advance(0, None, "reading the store")
        found = _inspect(data_dir, repair)
    if as_json:
        output.put_json(found)
    else:
        kinds = {problem["kind"] for problem in found["problems"]}
        _show(found, _advise(kinds, repaired=repair))
    if not found["ok"]:
        raise typer.Exit(output.FAILURE)


def _inspect(data_dir: Path | None, repair: bool) -> dict[str, Any]:
    """Inspect a data directory: through its server, or as it is on the disk before it is opened."""
    from kg.errors import StoreReadOnlyError
    from kg.integrity.doctor import inspect_closed, repair_files, report
    from kg.store.lock import DirectoryLock

    folder = find_graph(data_dir).path
    if (server := find_server(folder)) is not None:
        with server:
            return server.call("doctor", {"repair": repair})
    with DirectoryLock(folder, bare=True, reads=True):
        found = inspect_closed(folder)
        repaired, left = repair_files(folder, found) if repair else ([], found)
    if left.is_damaged and not repaired:
        return report(left.problems, dict(left.counts))
    try:
        with connect(data_dir) as graph:
            document = graph.call("doctor", {"read": repair, "repair": repair})
    except StoreReadOnlyError:
        if repair:
            raise
        return report(left.problems, {**found.counts, "index": "not compared, since the disk is read-only"})
    if repair:
        # Lost graphs are missing now, which the second inspection has found.
        document["repaired"] = [*repaired, *document["repaired"]]
    else:
        # The open store names its damaged logs itself.
        closed = [problem.to_dict() for problem in left.problems if problem.kind != "commits"]
        document["problems"] = closed + document["problems"]
        document["checked"] = {**found.counts, **document["checked"]}
    document["ok"] = not document["problems"]
    return document


def _show(found: dict[str, Any], advice: str | None) -> None:
    checked = found["checked"]
    for done in found["repaired"]:
        output.put(f"Repaired: {done}")
    for problem in found["problems"][:SHOWN]:
        output.put(f"{problem['kind']}  {problem['where']}")
        output.put(f"  {problem['message']}")
        for command in problem.get("commands", ()):
            output.put(f"  To repair it: {command}")
    if len(found["problems"]) > SHOWN:
        output.put(f"And {len(found['problems']) - SHOWN} more. --json lists them.")
    if "stored_quads" in checked:
        parts = [f"{checked['stored_quads']:,} quads with provenance and ontology"]
        counts = {"stored_graphs": "graphs", "hashes": "hashes", "texts": "texts"}
        parts += [f"{checked[name]:,} {shown}" for name, shown in counts.items() if name in checked]
        parts += [f"{name} {checked[name]}" for name in ("index", "points", "files") if name in checked]
        output.put(f"Read {', '.join(parts)}.")
    if found["ok"]:
        output.put("No damage was found.")
        return
    output.put(f"{output.counted(len(found['problems']), 'problem')} found.")
    if advice is not None:
        output.put(advice)


def _advise(kinds: set[str], *, repaired: bool) -> str | None:
    """Name what to do about problems of `kinds`, in addition to the commands of the problems."""
    if kinds & {"unreadable", "file"}:
        return (
            "Stop the server of this data directory if there is one, and run `kg doctor --repair`. It rebuilds the "
            "store from what can be read. Or restore a backup: `kg restore FOLDER --replace`."
        )
    if repaired or not kinds & REPAIRABLE:
        return None
    return "Run `kg doctor --repair`. It repairs derived data, and lets the next loads replace damaged records."
