"""The work of the loaders on an open graph, by name: done in this process, or in the one to which a server confines it.

Modules are imported when their work is called, so that a command that loads nothing imports none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from kg.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True, slots=True)
class Work:
    """A kind of work: its function, which takes the graph first, and how a server confines it."""

    function: str
    is_sent: bool = False
    """A client sends the texts and waits: they must be stored soon."""
    asks_model: bool = False
    """It has a process of its own: loads run while a chat model is asked."""


WORK: Final = {
    "load": Work("loaders.sources.load"),
    "load_changed": Work("loaders.sources.load_changed"),
    "align": Work("loaders.mentions.graph.proposals.propose_alignments"),
    "receive": Work("loaders.zoning.graph.ingest.ingest", is_sent=True),
    "derivations": Work("loaders.derivations.call_each"),
    "find_entities": Work("loaders.files.graph.entities.refresh"),
    "mention": Work("loaders.mentions.graph.refresh.refresh"),
    "retry": Work("loaders.quarantine_retry.retry"),
    "store_remote": Work("loaders.wikibase.graph.remote_entities.store_entities", is_sent=True),
    "extract": Work("loaders.zoning.graph.chat_extraction.extract", asks_model=True),
}


def call(kg: KnowledgeGraph, name: str, *given: Any, **options: Any) -> Any:
    """Do one of `WORK`: where `kg.confined` runs it, if that is set."""
    if kg.confined is not None:
        return kg.confined(kg, name, *given, **options)
    return call_here(kg, name, *given, **options)


def call_here(kg: KnowledgeGraph, name: str, *given: Any, **options: Any) -> Any:
    """Do one of `WORK` in this process."""
    module, _, function = WORK[name].function.rpartition(".")
    return getattr(import_module(module), function)(kg, *given, **options)
