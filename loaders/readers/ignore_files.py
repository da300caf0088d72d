"""Files that a folder excludes: patterns as in ``.gitignore``, in files of that name or ``.kgignore``.

Each file applies to its own folder and those below it; deeper ones come later, and ``.kgignore`` after ``.gitignore``.
The last pattern that matches decides, and ``!`` includes files again that an earlier one excludes, as in git. A file in
an excluded folder cannot be included again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

NAMES: Final = (".gitignore", ".kgignore")
_MOST_BYTES: Final = 1_000_000
"""Maximum size of such a file. A larger one is not read."""


class IgnoreFiles:
    """The patterns of the folders below `root`, read when they are first needed."""

    def __init__(self, root: Path) -> None:
        self._root: Final = os.fspath(root)
        self._specs: Final[dict[str, GitIgnoreSpec | None]] = {}

    def is_excluded(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path, relative to the root, is excluded. The folders that it is in must not be."""
        parts = path.split("/")
        excluded = False
        for depth in range(len(parts)):
            spec = self._get_spec("/".join(parts[:depth]))
            if spec is not None:
                inner = "/".join(parts[depth:]) + ("/" if is_folder else "")
                found = spec.check_file(inner).include
                excluded = found if found is not None else excluded
        return excluded

    def _get_spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            lines = [line for name in NAMES for line in _read_lines(os.path.join(self._root, folder, name))]
            self._specs[folder] = GitIgnoreSpec.from_lines(lines) if lines else None
        return self._specs[folder]


def _read_lines(path: str) -> list[str]:
    """Read the lines of such a file; none of a link, which could lead out of the folder, and of an unreadable one."""
    try:
        if os.path.islink(path) or os.stat(path).st_size > _MOST_BYTES:
            return []
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []
