"""All derivations: their due graphs, their computation, and its comparison with the store."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any, Final

from kg.derivations import aggregates, by_difference
from kg.derivations.protocol import Definition, Derivation
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_sync import Progress
from kg.text import quoted
from kg.tools.schema.schema_measurement import SchemaCounts
from kg.tools.shacl.validation_state import LastCheck
from loaders import derivations as of_loaders
from loaders.dispatch import call

DEFINITIONS: Final[dict[str, Definition]] = {
    each.name: each for each in (*of_loaders.DEFINITIONS, *by_difference.DEFINITIONS, *aggregates.DEFINITIONS)
}
"""All derivations, in the order in which they are computed."""


def _open_here(kg: KnowledgeGraph) -> list[Derivation]:
    """Open the derivations that are computed in this process, never in that of the loaders."""
    return [*by_difference.open_inferred(kg.store), SchemaCounts(kg), LastCheck(kg)]


def count_due(kg: KnowledgeGraph) -> dict[str, Counter[str]]:
    """Count the due graphs of each derivation by reason. Raises ModelError if a model that one needs is missing."""
    return of_loaders.call_each(kg, "count_due") | of_loaders.call_methods(_open_here(kg), "count_due", None)


def find_differing(kg: KnowledgeGraph, most: int) -> dict[str, list[str]]:
    """Compute up to `most` graphs of each derivation again, and find those that the store has in another state.

    Raises ModelError if a model that one needs is missing.
    """
    found = _call_each(kg, "find_differing", None, most=most)
    return {name: [graph.value for graph in graphs] for name, graphs in found.items()}


def derive(kg: KnowledgeGraph, name: str | None, *, full: bool, on_progress: Progress) -> dict[str, Any]:
    """Compute the due graphs of a derivation, None: of all; with `full`, all graphs. Returns the outcome of each.

    Raises InvalidInputError for an unknown name, ModelError if a model that it needs is missing.
    """
    if name is not None and name not in DEFINITIONS:
        raise InvalidInputError(f"Unknown derivation {quoted(name)}. Available: {', '.join(DEFINITIONS)}.")
    outcomes = _call_each(kg, "derive", name, full=full, on_progress=on_progress)
    return {each: asdict(outcome) for each, outcome in outcomes.items()}


def _call_each(kg: KnowledgeGraph, method: of_loaders.Method, name: str | None, **given: Any) -> dict[str, Any]:
    made: dict[str, Any] = call(kg, "derivations", method, name, **given)
    return made | of_loaders.call_methods(_open_here(kg), method, name, **given)
