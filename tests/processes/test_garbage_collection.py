"""A process that is ready exempts its objects from the garbage collector."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, weakref
from kg.processes.garbage_collection import THRESHOLDS, exempt_present_objects
class Node: pass
before = [Node() for _ in range(1000)]
exempt_present_objects()
assert gc.get_freeze_count() > 1000
assert gc.get_threshold()[:2] == THRESHOLDS[:2]
node = Node(); node.self = node; gone = weakref.ref(node); del node
assert gone() is not None
gc.collect()
assert gone() is None
"""


def test_present_objects_are_exempt_and_later_cycles_are_freed() -> None:
    assert subprocess.run([sys.executable, "-c", SCRIPT], check=False).returncode == 0
