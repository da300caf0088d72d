"""Derivations by difference of quads: graphs that each commit changes in its transaction (`kg.provenance.shipped`).

Their versions are those of the rules that ``graph/prov`` records, so that a graph and its version cannot differ. The
first opening of a store by another version computes the graphs as a whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from kg.derivations.protocol import Definition, Outcome, Progress
from kg.provenance.shipped import INFERENCES, Inference, find_due_reason, write_shipped_graphs
from kg.store.oxigraph import OxigraphStore


@dataclass(frozen=True, slots=True)
class ByDifference:
    """One of these graphs in a store."""

    definition: Definition
    inference: Inference
    store: OxigraphStore

    def count_due(self) -> Counter[str]:
        """Count it, unless it was last computed as a whole by this version. Its changes are never due."""
        reason = find_due_reason(self.store, self.inference.rule)
        return Counter() if reason is None else Counter({reason: 1})

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Compute all of it, and commit the difference. If it is due, so are all that ship with this version."""
        if write_shipped_graphs(self.store):
            return Outcome(graphs=1)
        added, removed = self.store.infer_again(self.inference.compare) if full else (0, 0)
        return Outcome(graphs=int(full), added=added, removed=removed)

    def find_differing(self, most: int) -> list[NamedNode]:
        """Compare nothing: `kg.integrity.inspection` compares all of it."""
        return []


DEFINITIONS: Final = [
    Definition(each.rule.name, each.rule.label, "by difference", each.rule.version, writes=each.graph.value)
    for each in INFERENCES.values()
]


def open_inferred(store: object) -> list[ByDifference]:
    """Open the graphs of a store. There are none where this process cannot compute in a transaction of it."""
    if not isinstance(store, OxigraphStore):
        return []
    return [ByDifference(*each, store) for each in zip(DEFINITIONS, INFERENCES.values(), strict=True)]
