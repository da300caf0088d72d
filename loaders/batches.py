"""Batches of records: how many are checked and committed together, and the parts in which the index gets them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode, Quad

from loaders.model import SourceDocument, SourceGraph

BATCH_QUADS: Final = 50_000
"""Quads of the first records of a load that are checked and committed together; a larger record goes alone."""

MOST_BATCH_QUADS: Final = 200_000
"""Maximum quads of later batches. A commit of passages of 40 words takes 1.6 KB of memory a quad, half of it for the
table files. With the quads that follow from them, it has at most `kg.store.bulk_commits.MOST`."""

BATCH_SHARE: Final = 4
"""Between these limits a batch has a fourth of the quads that the load has read before. Each commit adds table files,
and each merge of some writes whole indexes again, so a large load must make few."""

MOST_BATCH_CHARACTERS: Final = 20_000_000
"""Maximum characters of the texts of a batch with more than `BATCH_QUADS`."""

UNITS_AT_ONCE: Final = 4_000
"""Text units that are built and handed to the index at once."""

YOUNG_OBJECTS: Final = 100_000
"""New containers during a load between two passes of Python's garbage collector."""

SWITCH_S: Final = 0.001
"""Seconds after which a thread that waits for the interpreter gets it, during a load: a fifth of Python's default."""


@dataclass(slots=True)
class Batch:
    """The records that are checked and committed together, each with the quads of its graph."""

    documents: dict[NamedNode, SourceDocument | SourceGraph] = field(default_factory=dict)
    candidates: dict[NamedNode, list[Quad]] = field(default_factory=dict)
    size: int = 0
    """Their quads."""
    characters: int = 0
    """Those of their texts."""

    def accepts(self, candidate: Sequence[Quad], before: int) -> bool:
        """Whether another record may be added, after batches with `before` quads. The first one always may."""
        most = BATCH_QUADS
        if self.characters < MOST_BATCH_CHARACTERS:
            most = max(most, min(before // BATCH_SHARE, MOST_BATCH_QUADS))
        return not self.documents or self.size + len(candidate) <= most

    def add(self, graph: NamedNode, document: SourceDocument | SourceGraph, candidate: list[Quad]) -> None:
        """Add a record."""
        self.documents[graph] = document
        self.candidates[graph] = candidate
        self.size += len(candidate)
        self.characters += sum(len(unit.text) for unit in document.units)


def split(
    documents: Mapping[str, SourceDocument | SourceGraph],
) -> Iterator[Mapping[str, SourceDocument | SourceGraph]]:
    """Split the records of a batch into parts of about `UNITS_AT_ONCE`, each of which one thread indexes."""
    part: dict[str, SourceDocument | SourceGraph] = {}
    units = 0
    for graph, document in documents.items():
        part[graph] = document
        units += len(document.units)
        if units >= UNITS_AT_ONCE:
            yield part
            part, units = {}, 0
    if part:
        yield part


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Let the garbage collector run once per `YOUNG_OBJECTS`.

    Its passes traverse the batch of a load again and again, a tenth of the time of a load, and few of the objects are
    in cycles.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], YOUNG_OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def switch_often() -> Iterator[None]:
    """Let other threads run after `SWITCH_S`: the index would wait for its units while a batch is read and checked."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_S))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
