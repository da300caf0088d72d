"""Inspection of a store: read whole in a confined process, and the problems found."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kg.data_directory import DataDirectory
from kg.errors import QueryMemoryError, QueryTimeoutError
from kg.files import get_folder_bytes
from kg.integrity import copy_child, inspection_child
from kg.integrity.findings import FINDINGS
from kg.processes.child import Limits, run_task
from kg.provenance.source_paths import SourcePaths
from kg.store.write_ahead_log import describe_loss, list_damage

MEMORY_BYTES: Final = 2 << 30
"""Memory limit of the process that reads a store."""

_LEAST_S: Final = 300.0
_BYTES_PER_S: Final = 100_000
"""Bytes of the store's files that are read in a second at least: some 3,000 quads."""

DAMAGE: Final = frozenset({"unreadable", "lost", "file", "log"})
"""The kinds of problems of files; the others are of their content."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong. `where` is a file, a graph or another IRI.

    `records` are the graphs of the records to load again, `files` where they were loaded from.
    """

    kind: str
    where: str
    message: str
    records: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The commands that load the lost data again."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types, without the records."""
        fields: dict[str, Any] = {"kind": self.kind, "where": self.where, "message": self.message}
        return fields | {name: list(found) for name in ("files", "commands") if (found := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The problems that were found, and the counts of the data read."""

    problems: Sequence[Problem]
    counts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_damaged(self) -> bool:
        """Whether files of the store are damaged, so that no query of this process may read it."""
        return any(problem.kind in DAMAGE for problem in self.problems)


def inspect_store(directory: DataDirectory, checkpoint: Path | None = None, *, content: bool = True) -> Inspection:
    """Read all indexes, terms, graphs and texts of a store or of a checkpoint of it, and compare hashes.

    With `content`, also check the dataset shapes, such as those of provenance.
    """
    folder, paths = checkpoint or directory.store, SourcePaths(directory.path)
    problems: list[Problem] = []
    for checked in (True, False) if content else (False,):
        settings = {"store": str(folder), "content": checked}
        try:
            with run_task(
                "inspect",
                b"",
                settings,
                _limits(folder),
                what="the inspection",
                folder=checkpoint and directory.snapshots,
                module=inspection_child.__name__,
            ) as results:
                found, counts = read_findings(results, paths)
                return Inspection([*problems, *found], counts)
        except (QueryMemoryError, QueryTimeoutError) as error:
            problems.append(Problem("not checked", folder.name, str(error)))
    return Inspection(problems)


def _limits(folder: Path) -> Limits:
    return Limits(timeout_s=_LEAST_S + get_folder_bytes(folder) / _BYTES_PER_S, memory_bytes=MEMORY_BYTES)


def copy_store(directory: DataDirectory, *, whole: bool = False) -> Inspection:
    """Copy the readable graphs of a store into a new one, the partial store. The problems are the lost graphs.

    With `whole`, all quads are copied as they are, and compared; any problem means that the copy is not complete.
    """
    settings = {"store": str(directory.store), "target": str(directory.partial_store), "whole": whole}
    with run_task("copy", b"", settings, _limits(directory.store), what="the copy", module=copy_child.__name__) as done:
        problems, counts = read_findings(done, SourcePaths(directory.path))
    return Inspection(problems, counts)


def read_findings(results: Path, paths: SourcePaths) -> tuple[list[Problem], dict[str, Any]]:
    """Read the output of the process."""
    problems, counts = [], {}
    for line in (results / FINDINGS).read_text(encoding="utf-8").splitlines():
        finding = json.loads(line)
        kind = finding.pop("kind")
        if kind == "counts":
            counts = finding
            continue
        files = tuple(sorted({paths.get(source) or name for name, source in finding.get("files", ())}))
        records = tuple(finding.get("records", ()))
        commands = tuple(_name_commands(records, files))
        problems.append(Problem(kind, finding["where"], finding["message"], records, files, commands))
    for kind, number in counts.pop("more", {}).items():
        problems.append(Problem(kind, "store", f"There are {number:,} more problems of this kind."))
    return problems, counts


def _name_commands(records: Sequence[str], files: Sequence[str]) -> Iterator[str]:
    sources = sorted({record.partition("/graph/src/")[2].partition("/")[0] for record in records})
    for source in sources:
        if files:
            yield shlex.join(["kg", "load", source, *files])


def inspect_logs(folder: Path, generation: int | None) -> list[Problem]:
    """Check the write-ahead logs of a store that no process has open: the engine skips damage in them silently.

    `generation` is that of the store as it is read, or None if it is unknown.
    """
    advice = (
        "If the engine still needs it, the commits from there on are lost when the store is opened, without an error. "
        "Load the latest sources again, or restore a backup."
    )
    return [Problem("log", log.name, f"{damage} {advice}") for log, damage in list_damage(folder, generation)]


def name_kept_logs(logs: Sequence[Path]) -> list[Problem]:
    """Name the logs that were damaged when the store was opened."""
    return [Problem("commits", log.name, describe_loss(log)) for log in logs]
