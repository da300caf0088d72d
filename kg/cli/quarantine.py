"""`kg quarantine`: list, show, retry and drop the records that a load rejected."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kg.cli import output
from kg.cli.connection import connect, find_graph, resolve_for_server
from kg.cli.output import AsJson, DataDir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loaders.quarantine import Entry, Quarantine

app = typer.Typer(help="List, show, retry and drop the records that a load rejected.", no_args_is_help=True)

SHOWN_ROWS: Final = 5
SHOWN_CHARACTERS: Final = 200
"""Maximum rows of a record, and characters of a cell, in the text output. --json has all."""

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Ids from `kg quarantine list`, or prefixes of them.")
]


def _open_quarantine(data_dir: Path | None) -> Quarantine:
    """Open the quarantine folder. It is read without the store, which another process may hold."""
    from loaders.quarantine import Quarantine

    return Quarantine(find_graph(data_dir).quarantine)


def _report_damaged(damaged: Mapping[str, str]) -> None:
    for file, problem in damaged.items():
        output.say(f"kg: Skipped quarantine/{file}: {problem}")


@app.command("list")
@output.reported
def list_records(
    domain: Annotated[str | None, typer.Option("--domain", metavar="NAME", help="Only records of this source.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="TEXT", help="Only records of files whose path contains this text."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the rejected records. Each with its id, source, time and reason."""
    from loaders.quarantine import name_sources, short_ids

    entries, damaged = _open_quarantine(data_dir).entries()
    ids = short_ids([entry.name for entry in entries])
    wanted = [
        name_sources(entry)
        for entry in entries
        if (domain is None or entry.domain == domain)
        and (source is None or any(source in file for file in entry.files))
    ]
    if as_json:
        records = [_summary(entry, ids[entry.name]) for entry in wanted]
        output.put_json({"quarantined": len(entries), "shown": len(wanted), "records": records, "damaged": damaged})
        return
    _report_damaged(damaged)
    others = f" of {len(entries)}" if len(wanted) < len(entries) else ""
    output.put(f"{output.counted(len(wanted), 'record')}{others} in quarantine")
    if not wanted:
        return
    head = ("id", "record", "graph", "source", "since", "violations", "reason")
    rows = (
        (
            ids[each.name],
            each.record,
            each.graph or "-",
            _format_places(each),
            each.rejected_at,
            str(each.violations) if each.violations else "-",  # rejected before its shapes were checked
            _format_reason(each),
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


def _format_places(entry: Entry) -> str:
    places = [f"{each.file} row {each.rows}" if each.rows else each.file for each in entry.places]
    return "; ".join(places or entry.files) or "-"


def _format_reason(entry: Entry) -> str:
    reason = entry.reason.split("; ")[0].replace("\n", " ")
    return reason if len(reason) <= SHOWN_CHARACTERS else reason[:SHOWN_CHARACTERS] + "..."


@app.command("show")
@output.reported
def show(
    record: Annotated[str, typer.Argument(metavar="ID", help="Id from `kg quarantine list`.")],
    form: Annotated[
        Literal["text", "ttl", "json"],
        typer.Option("--format", metavar="text|ttl|json", help="Output format. ttl: the validation report as RDF."),
    ] = "text",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show one record. Its rows as read, the violations, and possible fixes."""
    from kg.errors import NotFoundError
    from loaders.quarantine import name_sources, resolve_ids, short_ids

    quarantine = _open_quarantine(data_dir)
    entries, damaged = quarantine.entries()
    if not as_json and form != "json":
        _report_damaged(damaged)
    [name] = resolve_ids([record], {entry.name: entry.record for entry in entries})
    entry = next(entry for entry in entries if entry.name == name)
    short = short_ids([entry.name for entry in entries])[name]
    if form == "ttl":
        turtle = quarantine.report_turtle(entry)
        if turtle is None:
            raise NotFoundError(f"{short} has no validation report, since its rows could not be mapped: {entry.reason}")
        output.put(turtle.rstrip())
        return
    rows, fault = _load_rows(quarantine, entry)
    if as_json or form == "json":
        nquads, not_mapped = _map_to_nquads(quarantine, entry)
        output.put_json(
            _summary(name_sources(entry), short)
            | {"report": entry.report, "results": entry.results, "rows": rows, "rows_problem": fault}
            | {"mapped": nquads, "mapped_problem": not_mapped}
        )
        return
    copies = [str(file.path) for file in quarantine.files(entry)] if fault is None else []
    _show_text(name_sources(entry), short, rows, fault, copies)


def _load_rows(quarantine: Quarantine, entry: Entry) -> tuple[list[dict[str, Any]], str | None]:
    """Load the rows with their places; the second value is the problem if they cannot be read."""
    from kg.errors import RecordError, SourceError
    from kg.provenance.load_records import name_source
    from loaders.readers.excerpts import rows_in

    try:
        return [
            {"file": name_source(file.snapshot.source), "row": number, "cells": cells}
            for file in quarantine.files(entry)
            for number, cells in rows_in(file.path, file.rows or ())
        ], None
    except (RecordError, SourceError) as error:
        return [], str(error)


def _map_to_nquads(quarantine: Quarantine, entry: Entry) -> tuple[str | None, str | None]:
    """Map the record to N-Quads; the second value is the problem if it cannot be mapped."""
    from pyoxigraph import RdfFormat, serialize

    from kg.errors import RecordError, SourceError
    from loaders.quarantine_retry import map_record

    try:
        return (serialize(map_record(quarantine, entry), format=RdfFormat.N_QUADS) or b"").decode(), None
    except (RecordError, SourceError) as error:
        return None, str(error)


def _show_text(
    entry: Entry, short: str, rows: Sequence[Mapping[str, Any]], fault: str | None, copies: Sequence[str]
) -> None:
    summary: dict[str, Any] = {
        "id": short,
        "record": entry.record,
        "graph": entry.graph,
        "since": entry.rejected_at,
        "run": f"{entry.run} ({entry.agent})",
        "violations": entry.violations,
    }
    output.show(summary)
    for place in entry.places:
        output.put("")
        output.show({"source": place.file, "rows": place.rows or None, "sha256": place.sha256, "read": place.read_at})
    if entry.unopened is not None:
        output.put("")
        output.show({"source": entry.unopened})
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
        output.put(f"and {output.counted(len(rows) - SHOWN_ROWS, 'row')} more. --json lists all.")
    if fault is not None:
        output.put(f"The rows cannot be read: {fault}")
    output.put("")
    corrected = (
        f"FILE: a corrected copy of its rows ({', '.join(copies)})" if copies else "FILE: the whole record, corrected"
    )
    ways = [
        (f"kg quarantine retry {short}", "after a fix of the shapes or the loader"),
        (f"kg quarantine retry {short} --file FILE", corrected),
        (f"kg load {entry.domain} PATH", "after a fix of the source"),
        (f"kg quarantine drop {short}", "to delete it; a load that rejects it again adds it again"),
    ]
    output.columns(("Possible fixes", ""), iter(ways if copies else ways[1:]))


@app.command("retry")
@output.reported
def retry(
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="All records in quarantine.")] = False,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="The whole record, corrected, with the columns of its source."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Map and validate records again. Valid records are committed as by a load; the others stay, with the reason."""
    from loaders.quarantine_retry import QUARANTINED

    _require_choice(ids, every)
    with (
        connect(data_dir) as graph,
        output.progress("retrying") as advance,
    ):
        place = file if file is None or graph.local else resolve_for_server(file)
        arguments = {"ids": None if every else ids, "file": place, "by": output.user_name()}
        done = graph.call("quarantine_retry", arguments, advance)
    if as_json:
        output.put_json(done)
    else:
        _report_damaged(done["damaged"])
        output.show({name: done[name] for name in ("retried", "loaded", "quarantined", "runs")})
        for each in done["records"]:
            if each["outcome"] == QUARANTINED:
                output.say(f"Still in quarantine: {each['id']} {each['record']}: {each['reason']}")
    if done["quarantined"]:
        raise typer.Exit(output.SOME_REJECTED)


@app.command("drop")
@output.reported
def drop(
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="All records in quarantine.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation. Required without a terminal.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete records from quarantine. A load that rejects them again adds them again."""
    from loaders.quarantine import resolve_ids, short_ids

    _require_choice(ids, every)
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise typer.BadParameter("Cannot ask for confirmation without a terminal. Add --yes.", param_hint="--yes")
        entries, damaged = _open_quarantine(data_dir).entries()
        records = {entry.name: entry.record for entry in entries}
        known = records | {file.removesuffix(".json"): "damaged" for file in damaged}
        shorts = short_ids(known)
        names = list(records) if every else resolve_ids(ids or (), known)
        for name in names:
            output.say(f"{shorts[name]} {known[name]}")
        if not names or not typer.confirm(f"Delete {output.counted(len(names), 'record')}?", err=True):
            output.say("kg: No record was dropped.")
            return
    with (
        connect(data_dir) as graph,
        output.progress("dropping") as advance,
    ):
        done = graph.call("quarantine_drop", {"ids": None if every else ids}, advance)
    if as_json:
        output.put_json(done)
        return
    _report_damaged(done["damaged"])
    output.put(f"{output.counted(len(done['dropped']), 'record')} dropped")
    for each in done["dropped"]:
        output.put(f"{each['id']}  {each['record'] or 'damaged'}")


def _require_choice(ids: Sequence[str] | None, every: bool) -> None:
    if bool(ids) == every:
        raise typer.BadParameter("Give the ids of records, or --all.", param_hint="ID")
