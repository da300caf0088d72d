"""Freed memory of this process, by the allocator of the GNU C library; elsewhere, these functions do nothing."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Final

_ARENAS: Final = 2
"""The C library keeps a pool of freed memory for each thread otherwise: a fifth of the memory of the index at rest."""

_M_ARENA_MAX: Final = -8
"""The parameter of mallopt(3) for it."""


def keep_few_arenas() -> None:
    """Have the C library make no further pools of freed memory for threads of this process, once there are two.

    Call it before threads that allocate much are started.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def release_memory() -> None:
    """Return freed memory to the system.

    After a large write the allocator would keep it for the thread that wrote, and the next one is by another.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
