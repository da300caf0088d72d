"""`kg doctor`, `kg backup` and `kg restore`: detection of damage, verified backups, restoration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kg.cli import output
from kg.cli.connection import connect, find_graph, find_server
from kg.cli.output import AsJson, DataDir
from kg.settings import settings_for

SHOWN: Final = 20
"""Maximum problems named in the text output. --json has up to 50 of each kind."""

REPAIRABLE: Final = frozenset({"changed", "derived", "index", "missing", "text"})
"""The kinds of problems that `--repair` can remove while the store is open."""


@output.reported
def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to create. It must not exist.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Copy the data directory into a new folder, with checksums, and read the copy through. A server may be running."""

    with connect(data_dir) as graph, output.progress("copying") as advance:
        done = graph.call("backup", {"target": str(target.absolute())}, advance)
    if as_json:
        output.put_json(done)
        return
    output.put(f"Copied generation {done['generation']} to {target}, and read the copy: {done['quads']:,} quads.")
    if not done["index"]:
        output.say("kg: The search index was not available and is not in the copy. It is rebuilt from the store.")


@output.reported
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="Folder that kg backup wrote.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace all that the data directory contains by the backup.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Copy a backup into the data directory, after verifying it. No server may be running on it."""
    from kg.integrity.backups import restore_backup

    with output.progress("restoring") as advance:
        advance(0, None, "verifying and copying")
        done = restore_backup(source, settings_for(data_dir).data_dir, replace=replace)
    if as_json:
        output.put_json(done)
    else:
        output.put(f"Restored {source} to {done['data_dir']}.")


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
        output.put(f"Backup of {each['written']}, with the old text: {each['target']}")
    output.put("Replace earlier backups, copies of them, and copies of the source files yourself: kg backup DIR.")


@output.reported
def doctor(
    source: Annotated[
        Path | None, typer.Argument(metavar="BACKUP", help="Folder that kg backup wrote. Default: the data directory.")
    ] = None,
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
    if source is not None and (repair or data_dir is not None):
        raise typer.BadParameter("--repair and --data-dir cannot be used with a backup.")
    with output.progress("inspecting") as advance:
        advance(0, None, "reading the store")
        found = _inspect_backup(source) if source is not None else _inspect(data_dir, repair)
    if as_json:
        output.put_json(found)
    else:
        _show(found, is_backup=source is not None, repaired=repair)
    if not found["ok"]:
        raise typer.Exit(output.FAILURE)


def _inspect_backup(source: Path) -> dict[str, Any]:
    from kg.integrity.backups import inspect_backup
    from kg.integrity.doctor import report

    found = inspect_backup(source)
    return report(found.problems, dict(found.counts))


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


def _show(found: dict[str, Any], *, is_backup: bool, repaired: bool) -> None:
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
        parts += [f"{name} {checked[name]}" for name in ("index", "checksums") if name in checked]
        output.put(f"Read {', '.join(parts)}.")
    if found["ok"]:
        output.put("No damage was found.")
        return
    output.put(f"{output.counted(len(found['problems']), 'problem')} found.")
    if (advice := _advise({problem["kind"] for problem in found["problems"]}, is_backup, repaired)) is not None:
        output.put(advice)


def _advise(kinds: set[str], is_backup: bool, repaired: bool) -> str | None:
    """Name what to do about problems of `kinds`, in addition to the commands of the problems."""
    if is_backup:
        return "Keep this backup as it is, and use another one."
    if kinds & {"unreadable", "file"}:
        return (
            "Stop the server of this data directory if there is one, and run `kg doctor --repair`. It rebuilds the "
            "store from what can be read. Or restore a backup: `kg restore BACKUP --replace`."
        )
    if repaired or not kinds & REPAIRABLE:
        return None
    return "Run `kg doctor --repair`. It repairs derived data, and lets the next loads replace damaged records."
