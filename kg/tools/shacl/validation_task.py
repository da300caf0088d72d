"""The process of a validation that tells where what is stored was read from: `kg.shacl.child` with a `Locator`.

Run as a script. It is here since `kg.shacl` knows nothing of provenance.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from pyoxigraph import Store

from kg.processes import task
from kg.shacl import child
from kg.shacl.report_writers import Locate
from kg.tools.shacl.source_locations import Locator


def locating(store: Store) -> Locate:
    """Return what finds the file and row of a result about `store`."""
    return Locator(store).locate


if __name__ == "__main__":
    task.main(partial(child.work, locating=locating))
