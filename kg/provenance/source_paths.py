"""The paths of loaded files on this machine. They are in a file of the data directory, not in the graph.

The graph names a source by its folder and name (`load_records.name_source`) and identifies it by a hash of its path, so
that no query shows the disk of the server. The paths are for the next load: to decide whether a stored record is from
a folder that is read again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kg.data_directory import DataDirectory
from kg.errors import StoreError
from kg.provenance.load_records import is_local, mint_source


class SourcePaths:
    """The paths by the identifier of their source. A source without a known path has only its name."""

    def __init__(self, data_dir: Path) -> None:
        self._file: Final = DataDirectory(data_dir).source_paths
        self._known: dict[str, str] | None = None

    def get(self, source: str) -> str | None:
        """Get the path of a source, or None."""
        return self._load().get(source)

    def add(self, locations: Iterable[str]) -> None:
        """Record those of `locations` that are on this machine. Raises StoreError if they cannot be written."""
        known = self._load()
        new = {mint_source(each).value: each for each in locations if is_local(each)}
        new = {source: path for source, path in new.items() if source not in known}
        if not new:
            return
        try:
            # A line that a crash has cut is not JSON, and is skipped.
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.writelines(f"\n{json.dumps(path)}" for path in new.values())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"Cannot write {self._file}: {error.strerror or error}.") from error
        known |= new

    def _load(self) -> dict[str, str]:
        if self._known is None:
            self._known = {}
            text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
            for line in text.splitlines():
                try:
                    path = json.loads(line)
                except ValueError:
                    continue
                if isinstance(path, str):
                    self._known[mint_source(path).value] = path
        return self._known
