"""The derivations of the loaders, in the order in which they are computed: some read what others write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        several = (engine(kg, state, definition) for definition, engine in DEFINITIONS.items())
        return call_methods((each for each in several if each.is_used()), method, name, **given)


def follow_load(kg: KnowledgeGraph, domain: str, on_progress: Progress | None = None) -> None:
    """Compute the due graphs of the derivations that follow a load of this domain.

    The load itself computes the others: citations, with its families, and mentions and alignments from one table.
    """
    with State(kg.settings.data_dir) as state:
        for definition, engine in DEFINITIONS.items():
            is_left = definition.kind == "after the commit" and definition not in (CITATIONS, MENTIONS, ALIGNMENTS)
            if is_left and domain in (definition.after or [domain]):
                opened = engine(kg, state, definition)
                if opened.is_used():
                    opened.derive(on_progress=on_progress)


def call_methods(several: Iterable[Derivation], method: Method, name: str | None, **given: Any) -> dict[str, Any]:
    """Call a method of those of the derivations that have a name, None: of all. Returns the results by name."""
    chosen = (each for each in several if name in (None, each.definition.name))
    return {each.definition.name: getattr(each, method)(**given) for each in chosen}
