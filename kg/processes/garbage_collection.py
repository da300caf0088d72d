"""Settings of Python's garbage collector for a process that answers requests.

A collection of all objects stops the process: after the start of a server there are 300,000, which take 130 ms.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 20, 50)
"""New containers between two collections of the youngest, and numbers of collections before one of older objects."""


def exempt_present_objects() -> None:
    """Exempt the objects that are there now from all collections, since they are kept, and collect others less often.

    Call it once, when the process is ready. Objects that are not in a cycle are freed as before.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
