"""The state of the search for mentions, in files of the data directory, so that the next search is incremental.

``settled.json`` contains the table of names that all texts were searched for, and the content hash of each graph then.
During a search for a newer table, ``searching.log`` lists the finished graphs, one per line: written before the
commit of their mentions, and confirmed by an empty line after it. So a killed search is continued, and its unfinished
graphs are known. Without these files, or with those of another version, all texts are searched again, which commits
nothing that is already stored.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from pyoxigraph import NamedNode

from kg.files import write_file
from loaders.mentions.graph.concept_names import Table

_SETTLED: Final = "settled.json"
_LOG: Final = "searching.log"


@dataclass(frozen=True, slots=True)
class Known:
    """The results of earlier searches. `table` is None if there are none."""

    table: Table | None = None
    graphs: Mapping[NamedNode, str] = field(default_factory=dict)
    """Graphs that were searched for `table`, with their content hashes at that time."""
    newer: Mapping[NamedNode, str] = field(default_factory=dict)
    """Graphs that a killed search has already searched for the current table."""
    doubtful: frozenset[NamedNode] = frozenset()
    """Graphs in an unknown state."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The last completed search: its table, its graphs, and the generation of the store after it."""

    table: Table
    graphs: Mapping[NamedNode, str]
    generation: int


class SearchState:
    """The state of one version of the extractor, open for one search."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder: Final = folder
        self._version: Final = version
        self._log: IO[str] | None = None

    def load_settled(self, generation: int) -> Settled | None:
        """Load the last completed search of a store at `generation`, None if there is none."""
        try:
            said = json.loads((self._folder / _SETTLED).read_text(encoding="utf-8"))
            # A store with a lower generation was restored from a backup.
            if said["version"] != self._version or said["generation"] > generation:
                return None
            return Settled(
                Table(frozenset(zip(*said["table"], strict=True)), str(said["digest"])),
                {NamedNode(graph): str(digest) for graph, digest in said["graphs"].items()},
                int(said["generation"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def load_known(self, settled: Settled | None, table: Table) -> Known:
        """Load the results of earlier searches that a search for `table` can use."""
        searched = self._load_log()
        before, graphs = (settled.table, settled.graphs) if settled else (None, {})
        if searched is None:
            return Known(before, graphs)
        newer, announced, digest = searched
        if digest != table.digest:
            return Known(before, graphs, {}, frozenset({*newer, *announced}))
        return Known(before, graphs, newer, frozenset(announced))

    def _load_log(self) -> tuple[dict[NamedNode, str], set[NamedNode], str] | None:
        """Load the finished and the announced graphs of the log, and the digest of its table."""
        try:
            lines = (self._folder / _LOG).read_text(encoding="utf-8").split("\n")
            digest, version = lines[0].split(" ")
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return {}, set(), ""
        done: dict[NamedNode, str] = {}
        announced: dict[NamedNode, str] = {}
        for line in lines[1:-1]:
            if line:
                graph, _, content = line.partition(" ")
                with contextlib.suppress(ValueError):
                    announced[NamedNode(graph)] = content
            else:
                done |= announced
                announced = {}
        return done, set(announced), digest if version == self._version else ""

    def begin(self, table: Table, known: Known) -> None:
        """Start the log of a search for `table`, with the known results."""
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f"{_LOG}.partial"
        self._log = partial.open("w", encoding="utf-8")
        self._log.write(f"{table.digest} {self._version}\n")
        self.announce(known.newer)
        self.settle()
        self.announce(dict.fromkeys(known.doubtful, "?"))
        partial.replace(self._folder / _LOG)  # atomically, so that no unknown state is lost if the process is killed

    def announce(self, graphs: Mapping[NamedNode, str]) -> None:
        """Log that the mentions of `graphs` (with their content hashes) are about to be committed."""
        if self._log is None:
            raise RuntimeError("announce() before begin()")
        self._log.writelines(f"{graph.value} {digest}\n" for graph, digest in graphs.items())
        self._log.flush()

    def settle(self) -> None:
        """Log that the announced mentions are committed."""
        if self._log is None:
            raise RuntimeError("settle() before begin()")
        self._log.write("\n")
        self._log.flush()

    def close(self, table: Table, graphs: Mapping[NamedNode, str], generation: int) -> None:
        """Write the completed search for `table`, and delete the log."""
        self._folder.mkdir(parents=True, exist_ok=True)
        document = {
            "version": self._version,
            "generation": generation,
            "digest": table.digest,
            "table": list(zip(*table.rows, strict=True)) or [()] * 4,  # by columns, which load in half the time
            "graphs": {graph.value: digest for graph, digest in graphs.items()},
        }
        write_file(self._folder / _SETTLED, json.dumps(document, ensure_ascii=False), sync=True)
        self._end()
        (self._folder / _LOG).unlink(missing_ok=True)

    def _end(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
