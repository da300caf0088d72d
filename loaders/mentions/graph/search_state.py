"""What was searched for which names: files in the data directory, from which the next time only changes are searched.

``settled.json`` says of which table all texts have been searched, and the content hash of each graph then. While texts
are searched for a newer table, ``searching.log`` names the graphs that are done, a line each: announced before the
commit that brings their mentions, and settled by an empty line after it. So a search that was killed is continued, and
what it left half done is known. Without these files, or with those of another version, everything is searched anew,
which commits nothing that is there already.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from pyoxigraph import NamedNode

from loaders.mentions.graph.concept_names import Table

_SETTLED: Final = "settled.json"
_LOG: Final = "searching.log"


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier searches left. `table` is None where nothing is known."""

    table: Table | None = None
    graphs: Mapping[NamedNode, str] = field(default_factory=dict)
    """Graphs searched for `table`, with their content hashes then."""
    newer: Mapping[NamedNode, str] = field(default_factory=dict)
    """Graphs searched already for the table that is wanted now, which a killed search left."""
    doubtful: frozenset[NamedNode] = frozenset()
    """Graphs of which it is not known what they were searched for."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The last search that came to its end: for what, in which graphs, and the generation that it left."""

    table: Table
    graphs: Mapping[NamedNode, str]
    generation: int


class Ledger:
    """The ledger of one version of the extractor, open for one search."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder: Final = folder
        self._version: Final = version
        self._log: IO[str] | None = None

    def settled(self, generation: int) -> Settled | None:
        """Return what was settled last of a store that stands at `generation`, if anything is known of it."""
        try:
            said = json.loads((self._folder / _SETTLED).read_text(encoding="utf-8"))
            # A store that is older than what was written of it is another one, restored from a copy.
            if said["version"] != self._version or said["generation"] > generation:
                return None
            return Settled(
                Table(frozenset(zip(*said["table"], strict=True)), str(said["digest"])),
                {NamedNode(graph): str(digest) for graph, digest in said["graphs"].items()},
                int(said["generation"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def known(self, settled: Settled | None, table: Table) -> Known:
        """Return what is known where text is to be searched for `table`."""
        searched = self._searched()
        before, graphs = (settled.table, settled.graphs) if settled else (None, {})
        if searched is None:
            return Known(before, graphs)
        newer, announced, digest = searched
        if digest != table.digest:
            return Known(before, graphs, {}, frozenset({*newer, *announced}))
        return Known(before, graphs, newer, frozenset(announced))

    def _searched(self) -> tuple[dict[NamedNode, str], set[NamedNode], str] | None:
        """Return the graphs that the log has as done, those only announced, and the digest of its table."""
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
        """Open the log of a search for `table`, with what it may build on."""
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f"{_LOG}.partial"
        self._log = partial.open("w", encoding="utf-8")
        self._log.write(f"{table.digest} {self._version}\n")
        self.announce(known.newer)
        self.settle()
        self.announce(dict.fromkeys(known.doubtful, "?"))
        partial.replace(self._folder / _LOG)  # at once, so that no doubt is lost if this process is killed now

    def announce(self, graphs: Mapping[NamedNode, str]) -> None:
        """Note that the mentions of `graphs`, given with their content hashes, are about to be committed."""
        if self._log is None:
            raise RuntimeError("announced before the search began")
        self._log.writelines(f"{graph.value} {digest}\n" for graph, digest in graphs.items())
        self._log.flush()

    def settle(self) -> None:
        """Note that what was announced is committed."""
        if self._log is None:
            raise RuntimeError("settled before the search began")
        self._log.write("\n")
        self._log.flush()

    def close(self, table: Table, graphs: Mapping[NamedNode, str], generation: int) -> None:
        """Note that all is in line with `table`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        document = {
            "version": self._version,
            "generation": generation,
            "digest": table.digest,
            "table": list(zip(*table.rows, strict=True)) or [()] * 4,  # by columns, which are read in half the time
            "graphs": {graph.value: digest for graph, digest in graphs.items()},
        }
        partial = self._folder / f"{_SETTLED}.partial"
        with partial.open("w", encoding="utf-8") as file:
            file.write(json.dumps(document, ensure_ascii=False))  # at once: `dump` is ten times as slow
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._folder / _SETTLED)
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
