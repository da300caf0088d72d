"""``kg audit``: list the entries of the audit log, and verify that none is missing."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import typer

from kg.cli import output
from kg.cli.connection import find_graph
from kg.cli.output import AsJson, DataDir
from kg.errors import InvalidInputError
from kg.settings import parse_period
from kg.text import to_single_line


@output.reported
def audit(
    task: Annotated[
        Literal["list", "verify"],
        typer.Argument(
            metavar="verify", help="verify: check that no entry was removed or changed. Default: list the entries."
        ),
    ] = "list",
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Only entries since a time (ISO 8601, UTC) or an age: 30m, 2h, 7d."
        ),
    ] = None,
    who: Annotated[str | None, typer.Option("--who", metavar="NAME", help="Only entries of this sender.")] = None,
    action: Annotated[
        str | None, typer.Option("--action", metavar="NAME", help="Only entries whose action begins with this.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", metavar="CODE", help="Only entries with this outcome: ok, forbidden, ...")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Maximum entries, the newest ones.")] = 100,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="SHA256", help="For verify: a hash from an earlier verification, to be found."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the audit log: who did what, by which decision, with which outcome. `kg audit verify` checks its chain."""
    from kg.access.audit import read_entries, verify

    directory = find_graph(data_dir)
    if task == "verify":
        result = verify(directory, head)
        if as_json:
            output.put_json(result)
        else:
            output.put(f"Entries: {result.entries:,}. Last hash: {result.head}")
            for problem in result.problems:
                output.say(f"kg: {problem}")
        if result.problems:
            raise typer.Exit(output.FAILURE)
        return
    start = None if since is None else parse_since(since, datetime.now(UTC))
    found: deque[dict[str, Any]] = deque(maxlen=limit)
    for entry in read_entries(directory):
        if start is not None and datetime.fromisoformat(entry["time"]) < start:
            continue
        if who not in (None, entry["who"]) or outcome not in (None, entry["outcome"]):
            continue
        if action is None or entry["action"].startswith(action):
            found.append(entry)
    if as_json:
        output.put_json({"entries": list(found)})
        return
    names = ("time", "who", "peer", "action", "outcome", "ms", "arguments")
    output.columns(names, ([_show(entry.get(name)) for name in names] for entry in found))


def parse_since(text: str, now: datetime) -> datetime:
    """Parse a time in ISO 8601, in UTC unless it names an offset, or an age before `now`."""
    with suppress(ValueError):
        return now - timedelta(seconds=parse_period(text))
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            f"Invalid --since {text!r}. Give a time, as 2026-05-01T08:00, or an age: 30m, 2h, 7d."
        ) from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _show(value: object) -> str:
    return "" if value is None else to_single_line(str(value), 200)
