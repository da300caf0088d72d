"""The child process of `kg.store.payload_commits`: a task (`kg.processes.task`) that compares a graph or commits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

from kg.errors import InvalidInputError
from kg.processes import task
from kg.store.difference import canonical_statements, hash_statements
from kg.store.engine import open_engine
from kg.store.ownership import is_repeated
from kg.store.protocol import batched
from kg.store.statement_files import StatementFile, write_statements

ADDED: Final = "added"
REMOVED: Final = "removed"
HELD: Final = "held"
SUMMARY: Final = "summary"

_PORTION: Final = 5_000
_NICENESS: Final = 5
"""Queries do not wait for a comparison, which holds no lock."""


def work(settings: dict[str, Any], _: bytes) -> dict[str, Any]:
    """Do the task that `settings` names and return the reply."""
    try:
        if settings["task"] == "commit":
            _write(Path(settings["store"]), Path(settings["update"]))
        else:
            _compare(settings, NamedNode(settings["graph"]), Path(settings["folder"]))
    except InvalidInputError as error:
        return {"kind": "raised", "code": error.code, "message": str(error)}
    except (OSError, RuntimeError, SyntaxError, ValueError) as error:
        return {"kind": "store", "message": str(error)}
    return {}


def _compare(settings: dict[str, Any], graph: NamedNode, folder: Path) -> None:
    """Compare the triples of a file with a graph of a checkpoint, and write the difference to `folder`.

    With ``keep`` the triples are added to the graph, otherwise they replace its content.
    """
    os.nice(_NICENESS)
    store = Store.read_only(settings["snapshot"])
    held = set(_load(store, graph))
    wanted = set(_canonicalize(graph, Path(settings["triples"])))
    if settings["keep"]:
        write_statements(folder / HELD, sorted(held))
    added = sorted(wanted - held)
    removed = [] if settings["keep"] else sorted(held - wanted)
    content = sorted(held | wanted if settings["keep"] else wanted)
    write_statements(folder / ADDED, added)
    write_statements(folder / REMOVED, removed)
    summary = {
        "held": len(held),
        "content": len(content),
        "characters": sum(map(len, content)) + len(content) * len(graph.value),
        "added": len(added),
        "removed": len(removed),
        "sha256": hash_statements(graph, content) if content else None,
        "repeated": is_repeated(store, StatementFile(folder / ADDED, graph, len(added)).values(), graph),
    }
    (folder / SUMMARY).write_text(json.dumps(summary))


def _load(store: Store, graph: NamedNode) -> Iterator[str]:
    if store.contains_named_graph(graph):
        tail = len(f" {graph}")
        yield from (str(quad)[:-tail] for quad in store.quads_for_pattern(None, None, None, graph))


def _canonicalize(graph: NamedNode, path: Path) -> Iterator[str]:
    """Yield the statements of a file in the form in which the store has them."""
    quads = (
        Quad(quad.subject, quad.predicate, quad.object, graph)
        for quad in parse(path=path, format=RdfFormat.N_TRIPLES, rename_blank_nodes=True)
    )
    for portion in batched(quads, _PORTION):
        yield from canonical_statements(graph, portion)


def _write(folder: Path, update: Path) -> None:
    """Run an update that was written by the parent as one transaction, which is on disk at the end."""
    store = open_engine(folder)
    store.update(update.read_text(encoding="utf-8"))
    store.flush()


main = partial(task.main, work)
