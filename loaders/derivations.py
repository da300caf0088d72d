"""The derivations of the loaders, in the order in which they are computed: some read what others write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kg.derivations.engine import Engine, WholeEngine
from kg.derivations.protocol import Definition, Derivation, Outcome
from kg.derivations.state import State
from kg.derivations.with_record import Recorded
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_sync import Progress
from loaders.citations.graph import CITATIONS, CitationEngine
from loaders.files.graph import ENTITIES, LINKS
from loaders.mentions.graph import ALIGNMENTS, MENTIONS
from loaders.with_record import DEFINITIONS as WITH_RECORD

DEFINITIONS: Final[Mapping[Definition, type[Recorded | CitationEngine | Engine[Any, Any] | WholeEngine]]] = {
    **dict.fromkeys(WITH_RECORD, Recorded),
    CITATIONS: CitationEngine,
    MENTIONS: Engine,
    ALIGNMENTS: WholeEngine,
    ENTITIES: Engine,
    LINKS: WholeEngine,
}
"""The derivations, each with what opens it."""


@contextmanager
def open_derivations(kg: KnowledgeGraph) -> Iterator[Iterator[Derivation]]:
    """Open the derivations that the store has input for, each in its turn: some read only what others write."""
    with State(kg.settings.data_dir) as state:
        several = (engine(kg, state, definition) for definition, engine in DEFINITIONS.items())
        yield (each for each in several if each.is_used())


def count_due(kg: KnowledgeGraph) -> dict[str, Counter[str]]:
    """Count the due graphs of each derivation by reason."""
    with open_derivations(kg) as several:
        return {each.definition.name: each.count_due() for each in several}


def find_differing(kg: KnowledgeGraph, most: int) -> dict[str, list[str]]:
    """Compute up to `most` graphs of each derivation again, and find those that the store has in another state."""
    with open_derivations(kg) as several:
        return {each.definition.name: [graph.value for graph in each.find_differing(most)] for each in several}


def derive(
    kg: KnowledgeGraph, derivation: str | None = None, *, full: bool = False, on_progress: Progress | None = None
) -> dict[str, Outcome]:
    """Compute the due graphs of a derivation, None: of all; with `full`, all graphs."""
    with open_derivations(kg) as several:
        return {
            each.definition.name: each.derive(full=full, on_progress=on_progress)
            for each in several
            if derivation in (None, each.definition.name)
        }
