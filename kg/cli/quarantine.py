"""`kg quarantine`: the records that a load has kept out. What is wrong with each, a second chance, or away with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kg.cli import output
from kg.cli.output import AsJson
from kg.settings import settings_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loaders.quarantine import Entry, Quarantine

app = typer.Typer(help="See, retry and drop the records that a load has kept out.", no_args_is_help=True)

SHOWN_ROWS: Final = 5
SHOWN_CHARACTERS: Final = 200
"""How much of a record's rows and their cells the text for people shows; JSON has all."""

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Data directory; else QUADCITE_DATA_DIR, else ./kg-data."),
]
Ids = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Ids that `kg quarantine list` shows, or their beginnings.")
]


def _quarantine(data_dir: Path | None) -> Quarantine:
    """Return what is read without the store, so that whoever holds that is not asked."""
    from kg.errors import StoreError
    from loaders.quarantine import Quarantine

    folder = settings_for(data_dir).data_dir
    if not (folder / "format.json").is_file():
        raise StoreError(f"there is no knowledge graph in {folder}; `kg load climate PATH` makes one there")
    return Quarantine(folder)


def _say_damaged(damaged: Mapping[str, str]) -> None:
    for file, fault in damaged.items():
        output.say(f"kg: quarantine/{file} is left out: {fault}")


@app.command("list")
@output.reported
def list_records(
    domain: Annotated[str | None, typer.Option("--domain", metavar="NAME", help="Only those of one source.")] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="TEXT", help="Only those of files whose path has this in it.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the records that loads have kept out. Each with its id, where it stands, since when, and why."""
    from loaders.quarantine import short_ids

    entries, damaged = _quarantine(data_dir).entries()
    ids = short_ids([entry.name for entry in entries])
    wanted = [
        entry
        for entry in entries
        if (domain is None or entry.domain == domain)
        and (source is None or any(source in place.file for place in entry.places))
    ]
    if as_json:
        records = [_summary(entry, ids[entry.name]) for entry in wanted]
        output.put_json({"quarantined": len(entries), "shown": len(wanted), "records": records, "damaged": damaged})
        return
    _say_damaged(damaged)
    others = f", {len(entries)} with those that were not asked for" if len(wanted) < len(entries) else ""
    output.put(f"{output.counted(len(wanted), 'record')} in quarantine{others}")
    if not wanted:
        return
    head = ("id", "record", "graph", "source", "since", "violations", "reason")
    rows = (
        (
            ids[each.name],
            each.record,
            each.graph or "-",
            _where(each),
            each.rejected_at,
            str(each.violations),
            _first(each),
        )
        for each in wanted
    )
    if sys.stdout.isatty():
        output.table(head, rows)
    else:
        output.columns(head, rows)


def _summary(entry: Entry, short: str) -> dict[str, Any]:
    return {
        "id": short,
        "name": entry.name,
        "domain": entry.domain,
        "record": entry.record,
        "graph": entry.graph,
        "reason": entry.reason,
        "violations": entry.violations,
        "rejected_at": entry.rejected_at,
        "run": entry.run,
        "agent": entry.agent,
        "places": [
            {"file": each.file, "sha256": each.sha256, "revision": each.revision, "rows": each.rows}
            for each in entry.places
        ],
    }


def _where(entry: Entry) -> str:
    return "; ".join(f"{each.file} row {each.rows}" if each.rows else each.file for each in entry.places) or "-"


def _first(entry: Entry) -> str:
    reason = entry.reason.split("; ")[0].replace("\n", " ")
    return reason if len(reason) <= SHOWN_CHARACTERS else reason[:SHOWN_CHARACTERS] + "..."


@app.command("show")
@output.reported
def show(
    record: Annotated[str, typer.Argument(metavar="ID", help="An id that `kg quarantine list` shows.")],
    form: Annotated[
        Literal["text", "ttl", "json"],
        typer.Option("--format", metavar="text|ttl|json", help="ttl: the report of the shapes, as a graph."),
    ] = "text",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show one record: its rows as they were read, what is wrong with them, and what can be done."""
    from kg.errors import NotFoundError
    from loaders.quarantine import resolve_ids, short_ids

    quarantine = _quarantine(data_dir)
    entries, damaged = quarantine.entries()
    if not as_json and form != "json":
        _say_damaged(damaged)
    [name] = resolve_ids([record], {entry.name: entry.record for entry in entries})
    entry = next(entry for entry in entries if entry.name == name)
    short = short_ids([entry.name for entry in entries])[name]
    if form == "ttl":
        turtle = quarantine.report_turtle(entry)
        if turtle is None:
            raise NotFoundError(f"{short}: no shape was asked, since no record could be made: {entry.reason}")
        output.put(turtle.rstrip())
        return
    rows, fault = _rows(quarantine, entry)
    if as_json or form == "json":
        nquads, not_mapped = _mapped(quarantine, entry)
        output.put_json(
            _summary(entry, short)
            | {"report": entry.report, "results": entry.results, "rows": rows, "rows_problem": fault}
            | {"mapped": nquads, "mapped_problem": not_mapped}
        )
        return
    _show_text(quarantine, entry, short, rows, fault)


def _rows(quarantine: Quarantine, entry: Entry) -> tuple[list[dict[str, Any]], str | None]:
    """The rows with their places, and why they are not there when they are not."""
    from kg.errors import RecordError, SourceError
    from loaders.readers.excerpts import rows_in

    try:
        return [
            {"file": file.snapshot.source, "row": number, "cells": cells}
            for file in quarantine.files(entry)
            for number, cells in rows_in(file.path, file.rows or ())
        ], None
    except (RecordError, SourceError) as error:
        return [], str(error)


def _mapped(quarantine: Quarantine, entry: Entry) -> tuple[str | None, str | None]:
    """The record as N-Quads, or why it cannot be mapped."""
    from pyoxigraph import RdfFormat, serialize

    from kg.errors import RecordError, SourceError
    from loaders.quarantine_retry import map_record

    try:
        return (serialize(map_record(quarantine, entry), format=RdfFormat.N_QUADS) or b"").decode(), None
    except (RecordError, SourceError) as error:
        return None, str(error)


def _show_text(
    quarantine: Quarantine, entry: Entry, short: str, rows: Sequence[Mapping[str, Any]], fault: str | None
) -> None:
    said: dict[str, Any] = {
        "id": short,
        "record": entry.record,
        "graph": entry.graph,
        "since": entry.rejected_at,
        "run": f"{entry.run} ({entry.agent})",
        "violations": entry.violations,
    }
    output.show(said)
    for place in entry.places:
        output.put("")
        output.show({"source": place.file, "rows": place.rows or None, "sha256": place.sha256, "read": place.read_at})
    output.put("")
    output.put(entry.report or entry.reason)
    output.put("")
    for row in rows[:SHOWN_ROWS]:
        output.put(f"row {row['row']} of {row['file']}")
        cells = row["cells"] if isinstance(row["cells"], dict) else {"text": row["cells"]}
        for column, cell in cells.items():
            if cell is not None:
                cut = (
                    cell if len(cell) <= SHOWN_CHARACTERS else f"{cell[:SHOWN_CHARACTERS]}... ({len(cell)} characters)"
                )
                output.put(f"  {column}: {cut}")
    if len(rows) > SHOWN_ROWS:
        output.put(f"and {output.counted(len(rows) - SHOWN_ROWS, 'row')} more; --json has them all")
    if fault is not None:
        output.put(f"its rows cannot be shown: {fault}")
    output.put("")
    copies = ", ".join(str(file.path) for file in quarantine.files(entry)) if fault is None else ""
    corrected = f"FILE: a corrected copy of its rows ({copies})" if copies else "FILE: the record, corrected, whole"
    ways = [
        (f"kg quarantine retry {short}", "once the shapes or the loader are mended"),
        (f"kg quarantine retry {short} --file FILE", corrected),
        (f"kg load {entry.domain} PATH", "once the source is mended"),
        (f"kg quarantine drop {short}", "to forget it; a load that finds it again puts it here again"),
    ]
    output.columns(("What can be done", ""), iter(ways if copies else ways[1:]))


@app.command("retry")
@output.reported
def retry(
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="All that are in quarantine.")] = False,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", metavar="FILE", help="The whole record, corrected, with the columns that its source has."
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Map and check records again. Those that pass are committed as by a load; the others stay, with what is wrong."""
    from kg.cli import connection
    from kg.cli.connection import resolve_for_server
    from loaders.quarantine_retry import QUARANTINE, QUARANTINED
    from loaders.sources import load

    _chosen(ids, every)
    with (
        connection.connect(settings_for(data_dir), load=load, quarantine=QUARANTINE) as graph,
        output.progress("retrying") as advance,
    ):
        place = file if file is None or graph.local else resolve_for_server(file)
        wanted = {"ids": None if every else ids, "file": place, "by": output.user()}
        done = graph.call("quarantine_retry", wanted, advance)
    if as_json:
        output.put_json(done)
    else:
        _say_damaged(done["damaged"])
        output.show({name: done[name] for name in ("retried", "loaded", "quarantined", "runs")})
        for each in done["records"]:
            if each["outcome"] == QUARANTINED:
                output.say(f"still in quarantine: {each['id']} {each['record']}: {each['reason']}")
    if done["quarantined"]:
        raise typer.Exit(output.SOME_REJECTED)


@app.command("drop")
@output.reported
def drop(
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="All that are in quarantine.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask. Needed where there is no terminal to ask on.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Forget records. The store has never had them, and a load that finds them again puts them here again."""
    from kg.cli import connection
    from loaders.quarantine import resolve_ids, short_ids
    from loaders.quarantine_retry import QUARANTINE

    _chosen(ids, every)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise typer.BadParameter("without a terminal to ask on, drop needs --yes", param_hint="--yes")
        entries, damaged = _quarantine(data_dir).entries()
        records = {entry.name: entry.record for entry in entries}
        known = records | {file.removesuffix(".json"): "damaged" for file in damaged}
        shorts = short_ids(known)
        names = list(records) if every else resolve_ids(ids or (), known)
        for name in names:
            output.say(f"{shorts[name]} {known[name]}")
        if not names or not typer.confirm(f"Forget {output.counted(len(names), 'record')}?", err=True):
            output.say("kg: nothing was dropped")
            return
    with (
        connection.connect(settings_for(data_dir), quarantine=QUARANTINE) as graph,
        output.progress("dropping") as advance,
    ):
        done = graph.call("quarantine_drop", {"ids": None if every else ids}, advance)
    if as_json:
        output.put_json(done)
        return
    _say_damaged(done["damaged"])
    output.put(f"{output.counted(len(done['dropped']), 'record')} dropped")
    for each in done["dropped"]:
        output.put(f"{each['id']}  {each['record'] or 'damaged'}")


def _chosen(ids: Sequence[str] | None, every: bool) -> None:
    if bool(ids) == every:
        raise typer.BadParameter("name the records by their ids, or give --all", param_hint="ID")
