"""The derivations of the loaders, in the order in which they are computed: some read what others write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from kg.derivations.engine import Engine, WholeEngine
from kg.derivations.protocol import Definition, Derivation, Progress
from kg.derivations.state import State
from kg.derivations.with_record import Recorded
from kg.knowledge_graph import KnowledgeGraph
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


Method = Literal["count_due", "derive", "find_differing"]


def call_each(kg: KnowledgeGraph, method: Method, name: str | None = None, **given: Any) -> dict[str, Any]:
    """Call a method of a derivation that the store has input for, None: of each. Returns the results by name.

    Each is looked up in its turn: some read only what others write.
    """
    with State(kg.settings.data_dir) as state:
        chosen = [each for each in DEFINITIONS if name in (None, each.name)]
        return call_methods(_open(kg, state, chosen), method, None, **given)


def follow_load(kg: KnowledgeGraph, domain: str, on_progress: Progress | None = None) -> None:
    """Compute the due graphs of the derivations that follow a load of this domain.

    The load itself computes the others: citations, with its families, and mentions and alignments from one table.
    """
    left = [
        each
        for each in DEFINITIONS
        if each.kind == "after the commit" and each not in (MENTIONS, ALIGNMENTS) and domain in (each.after or [domain])
    ]
    with State(kg.settings.data_dir) as state:
        for opened in _open(kg, state, left):
            opened.derive(on_progress=on_progress)


def _open(kg: KnowledgeGraph, state: State, definitions: Iterable[Definition]) -> Iterator[Derivation]:
    """Open those of the derivations that the store has input for."""
    for definition in definitions:
        opened = DEFINITIONS[definition](kg, state, definition)
        if opened.is_used():
            yield opened


def call_methods(several: Iterable[Derivation], method: Method, name: str | None, **given: Any) -> dict[str, Any]:
    """Call a method of those of the derivations that have a name, None: of all. Returns the results by name."""
    chosen = (each for each in several if name in (None, each.definition.name))
    return {each.definition.name: getattr(each, method)(**given) for each in chosen}
