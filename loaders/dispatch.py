"""The work of the loaders on an open graph, by name: done in this process, or in the one to which a server confines it.

Modules are imported when their work is called, so that a command that loads nothing imports none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from kg.knowledge_graph import KnowledgeGraph

FUNCTIONS: Final = {
    "load": "loaders.sources.load",
    "load_changed": "loaders.sources.load_changed",
    "align": "loaders.mentions.graph.proposals.propose_alignments",
    "receive": "loaders.zoning.graph.ingest.ingest",
    "derive": "loaders.derivations.derive",
    "find_differing": "loaders.derivations.find_differing",
    "count_due": "loaders.derivations.count_due",
    "find_entities": "loaders.files.graph.entities.refresh",
    "mention": "loaders.mentions.graph.refresh.refresh",
    "retry": "loaders.quarantine_retry.retry",
    "store_remote": "loaders.wikibase.graph.remote_entities.store_entities",
    "extract": "loaders.zoning.graph.chat_extraction.extract",
}
"""The functions, each with the graph as its first argument."""


def call(kg: KnowledgeGraph, name: str, *given: Any, **options: Any) -> Any:
    """Call one of `FUNCTIONS`: where `kg.confined` runs it, if that is set."""
    if kg.confined is not None:
        return kg.confined(kg, name, *given, **options)
    return call_here(kg, name, *given, **options)


def call_here(kg: KnowledgeGraph, name: str, *given: Any, **options: Any) -> Any:
    """Call one of `FUNCTIONS` in this process."""
    module, _, function = FUNCTIONS[name].rpartition(".")
    return getattr(import_module(module), function)(kg, *given, **options)
