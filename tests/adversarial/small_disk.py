"""A small disk that a test can fill and free, as a mounted file system. It needs the right to mount."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOUNT = shutil.which("mount") or "/bin/mount"
UMOUNT = shutil.which("umount") or "/bin/umount"


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Leave no free byte."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (65_536, 4_096, 1):
                with suppress(OSError):
                    while file.write(b"\0" * size):
                        pass

    def free(self) -> None:
        """Free what `fill` took."""
        self._filler.unlink()

    def remount(self, option: str) -> None:
        """Mount it again with `option`: ro or rw."""
        subprocess.run([MOUNT, "-o", f"remount,{option}", str(self.folder)], check=True, capture_output=True)


@contextmanager
def mount_small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk | None]:
    """Mount a disk of some megabytes at `folder`; None without the right to."""
    folder.mkdir()
    command = [MOUNT, "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True)
    except FileNotFoundError:
        yield None
        return
    if done.returncode:
        yield None
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run([UMOUNT, "-l", str(folder)], check=True, capture_output=True)
