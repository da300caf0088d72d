"""The derivations of the loaders, in the order in which they are computed: some read what others write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from kg.derivations.protocol import Definition, Derivation, Outcome
from kg.derivations.state import State
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_sync import Progress
from loaders.citations.graph import CITATIONS, has_texts, open_citations
from loaders.files.graph import ENTITIES, LINKS, open_entities, open_links
from loaders.mentions.graph import ALIGNMENTS, MENTIONS, open_alignments, open_mentions


def _open_citations(kg: KnowledgeGraph, state: State) -> Derivation | None:
    if state.load(CITATIONS.name) is None and not has_texts(kg.store):
        return None
    return open_citations(kg.store, state, kg.settings.data_dir)


_OPENERS: Final[Mapping[str, tuple[Definition, Callable[[KnowledgeGraph, State], Derivation | None]]]] = {
    definition.name: (definition, opener)
    for definition, opener in (
        (CITATIONS, _open_citations),
        (MENTIONS, open_mentions),
        (ALIGNMENTS, open_alignments),
        (ENTITIES, open_entities),
        (LINKS, open_links),
    )
}
DEFINITIONS: Final = [definition for definition, _ in _OPENERS.values()]


@contextmanager
def open_derivations(kg: KnowledgeGraph) -> Iterator[list[Derivation]]:
    """Open the derivations that may have graphs in a store."""
    with State(kg.settings.data_dir) as state:
        yield [found for _, opener in _OPENERS.values() if (found := opener(kg, state)) is not None]


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
