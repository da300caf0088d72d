"""The command `kg watch`: shows what becomes of the files of a folder until it is interrupted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from kg.cli import output
from kg.cli.connection import Connection
from kg.errors import SourceError, StoreLockedError, UpstreamError

_PAUSE_S: Final = 0.5
"""Seconds between two questions for events."""
_RESTART_S: Final = 5.0
"""Seconds in which a server that has ended may be started again, before this process takes over."""
_GONE_S: Final = 30.0
"""Seconds in which another process may take over the data directory of a server that has ended."""


def show_changes(
    connect: Callable[[], AbstractContextManager[Connection]], folder: str, collection: str | None, *, as_json: bool
) -> None:
    """Watch a folder through the server that holds the data directory, or in this process, and print each event.

    Raises SourceError for a folder that is missing at the start. If the server ends, the next holder goes on.
    """
    if not os.path.isdir(folder):
        raise SourceError(f"{folder}: No such folder.")
    asked = {"folder": os.path.abspath(folder), "collection": collection}
    after: int | None = None
    found: Mapping[str, Any] | None = None
    lost_at: float | None = None
    while True:
        try:
            with connect() as graph:
                after = None
                with output.progress("reading files") as advance:
                    while after is None or (found is not None and found["state"] == "scanning"):
                        after, found = _ask(graph, asked, after, as_json=as_json)
                        if found is not None:
                            advance(found["files"], found["files"] + found["pending"], "reading files")
                        time.sleep(_PAUSE_S / 5)
                lost_at = None
                output.say(f"kg: Watching {folder}. Press Ctrl-C to stop.")
                while True:
                    after, found = _ask(graph, asked, after, as_json=as_json)
                    time.sleep(_PAUSE_S)
        except KeyboardInterrupt:
            output.say("kg: Stopped. Changes from now on are found at the next start.")
            return
        except (UpstreamError, StoreLockedError) as error:
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            if now - lost_at > _GONE_S or after is None:
                raise
            output.say(f"kg: {error}")
            time.sleep(_RESTART_S if isinstance(error, UpstreamError) else _PAUSE_S)


def _ask(
    graph: Connection, asked: Mapping[str, Any], after: int | None, *, as_json: bool
) -> tuple[int, Mapping[str, Any] | None]:
    """Prolong the watch and print the events since the last call; return the last number and the folder's state."""
    said = graph.call("watch", {**asked, "after": after})
    for event in said["events"]:
        _show_event(event, as_json=as_json)
    return said["after"], said["folder"]


def _show_event(event: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.put(json.dumps(event, ensure_ascii=False))
        return
    text = f" -> {event['text']}" if event["outcome"] == "moved" else f": {event['text']}" if event["text"] else ""
    name = event["path"] if event["outcome"] == "folder" else f"{event['collection']}/{event['path']}"
    output.put(f"{event['outcome']} {name}{text}")
