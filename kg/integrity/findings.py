"""Findings of the processes that read a store: problems and counts, written to a file as they are found.

Each line is a JSON object: `kind`, `where` and `message` of a problem, or the counts of the data read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyoxigraph import NamedNode, Store

from kg.integrity.origins import find_origins
from kg.integrity.permutations import name_file

FINDINGS: Final = "findings"
MOST: Final = 50
"""Maximum problems of one kind that are named; `more` counts the others."""

Finding = dict[str, Any]


class Findings:
    """Writes findings to a file as they are found, at most `MOST` of each kind."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._found: dict[str, int] = defaultdict(int)

    def add(self, kind: str, where: str, message: str, **more: Any) -> None:
        """Write a problem."""
        self._found[kind] += 1
        if self._found[kind] <= MOST:
            self._write({"kind": kind, "where": where, "message": message, **more})

    def add_unreadable(self, where: object, message: str, **more: Any) -> None:
        """Write a problem of a file that `where` names, such as an error of the engine."""
        self.add("unreadable", name_file(str(where)) or "store", message, **more)

    def add_graph(self, kind: str, store: Store, graph: NamedNode, message: str, where: str = "") -> None:
        """Write a problem of a graph, with the records and files from which it can be loaded again."""
        records, files = find_origins(store, graph)
        self.add(kind, where or graph.value, message, records=records, files=files)

    def finish(self, **counts: Any) -> None:
        """Write the counts of the data read."""
        more = {kind: number - MOST for kind, number in self._found.items() if number > MOST}
        self._write({"kind": "counts", "more": more, "memory_mb": _get_memory_mb(), **counts})
        self._file.close()

    def _write(self, finding: Finding) -> None:
        self._file.write(json.dumps(finding) + "\n")
        self._file.flush()


def _get_memory_mb() -> int | None:
    """Get the most memory that this process has held, in MiB; None where the system does not report it."""
    # Not from getrusage, which counts the parent before it started this program.
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM:")), None)


def read_store(settings: dict[str, Any], read: Callable[[Store, Findings], None]) -> dict[str, Any]:
    """Open the store of `settings`, call `read` with it, and return the reply of the process."""
    findings = Findings(Path(settings["folder"]) / FINDINGS)
    try:
        store = Store.read_only(settings["store"])
    except (OSError, RuntimeError) as error:
        findings.add_unreadable(error, f"The store cannot be opened: {error}", part="store")
        findings.finish(stored_quads=0, stored_graphs=0)
        return {}
    try:
        read(store, findings)
    except (OSError, RuntimeError, ValueError) as error:
        findings.add_unreadable(error, f"The reading ended early: {error}")
        findings.finish()
    return {}
