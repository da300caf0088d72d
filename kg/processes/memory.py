"""The allocator of processes: jemalloc for the index, where the system has it, else that of the GNU C library."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Final

_ARENAS: Final = 2
"""Otherwise there is a pool of freed memory for each thread: a fifth of the memory of the index at rest."""

_M_ARENA_MAX: Final = -8
"""The parameter of mallopt(3) for it."""

_JEMALLOC: Final = "libjemalloc.so.2"
"""The name of the library, which all its releases since 2015 have."""

_OPTIONS: Final = f"narenas:{_ARENAS},background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0"
"""Freed memory returns to the system after a second, also if nothing is allocated meanwhile."""


def prefer_jemalloc(command: Sequence[str]) -> list[str]:
    """Extend the command of a process, and so of those that it starts, to use jemalloc if the system has it.

    For a process whose memory is freed piece by piece and used again, as segments of an index are: the C library leaves
    it in small pieces, searches these at each allocation and returns few of them to the system.
    """
    return [*_find_jemalloc(), *command]


@cache
def _find_jemalloc() -> Sequence[str]:
    """Find the start of a command that runs with jemalloc and its options; empty if the system does not have it.

    A library for pages of another size than those of the system ends each process.
    """
    options = ("env", f"MALLOC_CONF={_OPTIONS}")
    if _has_jemalloc():  # then its children do, too
        return options
    start = (*options, f"LD_PRELOAD={_JEMALLOC}")
    with contextlib.suppress(OSError):
        tried = subprocess.run([*start, "true"], capture_output=True, check=False)
        if tried.returncode == 0 and not tried.stderr:  # where it would say that there is no such library
            return start
    return ()


def _has_jemalloc() -> bool:
    return hasattr(ctypes.CDLL(None), "mallctl")


def keep_few_arenas() -> None:
    """Have the GNU C library make no further pools of freed memory for threads of this process, once there are two.

    With another allocator it does nothing. Call it before threads that allocate much are started.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def release_memory() -> None:
    """Return freed memory to the system, if it is that of the GNU C library.

    After a large write its allocator would keep it for the thread that wrote, and the next one is by another.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
