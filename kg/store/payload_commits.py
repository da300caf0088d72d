"""Commits of large payloads: compared with their graph, and written, by confined processes.

The server would need 0.8 GB for 100,000 quads of 160 bytes that replace as many: it has their statements as files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.processes.child import Limits, run_task
from kg.store import payload_commit_child
from kg.store.difference import Delta
from kg.store.payloads import Payload
from kg.store.protocol import Content
from kg.store.statement_files import StatementFile
from kg.vocabulary import PROV_GRAPH

_LIMITS: Final = Limits(timeout_s=60.0, memory_bytes=1 << 30)
"""Limits of the processes, whose input is parsed and bounded: they take 400 MB for the largest default payload."""
_UPDATE: Final = "update"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A payload compared with `graph`: the difference (None: there is none), with its files in `folder`."""

    graph: NamedNode
    content: Content
    delta: Delta | None
    folder: Path


@contextmanager
def compare_payload(payload: Payload, snapshot: Path, folder: Path, *, keep: bool) -> Iterator[Comparison]:
    """Compare a payload with its graph in a checkpoint, to replace its content, or to add to it (`keep`).

    The files of the comparison are in `folder` until the end of the block.
    """
    graph = payload.graph
    if graph == PROV_GRAPH:
        raise InvalidInputError(f"{PROV_GRAPH} cannot be replaced. Use `describe` to change it.")
    with payload.to_file(folder) as triples:
        settings = {"snapshot": str(snapshot), "graph": graph.value, "triples": str(triples), "keep": keep}
        with run_task(
            "difference",
            b"",
            settings,
            _LIMITS,
            what="the comparison",
            folder=folder,
            module=payload_commit_child.__name__,
        ) as results:
            found = json.loads((results / payload_commit_child.SUMMARY).read_text())
            removed = StatementFile(results / payload_commit_child.REMOVED, graph, found["removed"])
            added = StatementFile(results / payload_commit_child.ADDED, graph, found["added"])
            delta = Delta(graph, removed, added, found["sha256"], is_repeated=found["repeated"])
            files = (triples, results / payload_commit_child.HELD) if keep else (triples,)
            content = Content(found["held"], found["content"], found["characters"], files)
            yield Comparison(graph, content, delta if added or removed else None, results)


def write_commit(update: Iterator[str], store: Path, folder: Path) -> None:
    """Run an update in a process of its own on the store in `store`, which no other process has open.

    Files are in `folder`. Raises StoreError, QueryTimeoutError and QueryMemoryError, also after the update has been
    written.
    """
    path = folder / _UPDATE
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(update)
    settings = {"store": str(store), "update": str(path)}
    with run_task(
        "commit", b"", settings, _LIMITS, what="the commit", folder=folder, module=payload_commit_child.__name__
    ):
        pass
