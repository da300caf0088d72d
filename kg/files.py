"""Files that are replaced as a whole, so that readers and a crash meet the old or the new content."""

from __future__ import annotations

import os
from pathlib import Path


def write_file(path: Path, content: str | bytes, *, sync: bool = False) -> None:
    """Write `content` in place of the file at `path`; with `sync` it is on the disk before it gets its name.

    Only one process may write the file at a time. Raises OSError.
    """
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    partial.replace(path)
