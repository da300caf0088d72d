"""The violations that the last check of the dataset found, by node, as they are kept between starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pyoxigraph import NamedNode, RdfFormat, Store, parse

from kg.derivations.aggregates import CHECK, Aggregate
from kg.derivations.engine import choose
from kg.knowledge_graph import KnowledgeGraph
from kg.shacl.report import Violation
from kg.store.protocol import Term
from kg.vocabulary import curie

_REMEMBERED: Final = 10_000
"""Maximum nodes whose first message is kept. The violations of other nodes are only counted."""
_MOST_SAVED: Final = 20_000
"""Maximum nodes with violations that are kept. With more, the next start validates everything."""


@dataclass(slots=True)
class Violations:
    """Violations by target node: their number, that of each shape, and the first message."""

    counts: Counter[Term] = field(default_factory=Counter)
    shapes: dict[Term, Counter[str]] = field(default_factory=dict)
    messages: dict[Term, str] = field(default_factory=dict)
    caused: set[Term] = field(default_factory=set)
    """Nodes whose violations a user graph may have caused, among those with a message."""

    def replace(self, nodes: Iterable[Term] | None, found: Iterable[tuple[Term, Violation]]) -> None:
        """Remove the violations of `nodes`, or of all nodes, and add those of `found`."""
        if nodes is None:
            self.counts.clear()
            self.shapes.clear()
            self.messages.clear()
            self.caused.clear()
        for node in nodes or ():
            self.counts.pop(node, None)
            self.shapes.pop(node, None)
            self.messages.pop(node, None)
            self.caused.discard(node)
        for node, violation in found:
            if violation.blocks:
                self.counts[node] += 1
                self.shapes.setdefault(node, Counter())[_name_shape(violation)] += 1
                if len(self.messages) < _REMEMBERED:
                    self.messages.setdefault(node, f"{violation.focus}: {violation.message}")

    def to_rows(self) -> list[tuple[str, dict[str, int], str | None, bool]]:
        """Build a row for each node: N-Triples term, violations by shape, message, whether users may be the cause."""
        return [
            (str(node), dict(self.shapes[node]), self.messages.get(node), node in self.caused) for node in self.counts
        ]

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> Violations:
        """Read the rows of `to_rows`. Raises SyntaxError, ValueError, TypeError or AttributeError."""
        found = cls()
        for text, shapes, message, caused in rows:
            [quad] = parse(f"<urn:s> <urn:p> {text} .", format=RdfFormat.N_TRIPLES)
            found.shapes[quad.object] = Counter({str(name): int(count) for name, count in shapes.items()})
            found.counts[quad.object] = found.shapes[quad.object].total()
            if message is not None:
                found.messages[quad.object] = str(message)
            if caused:
                found.caused.add(quad.object)
        return found


class LastCheck(Aggregate[tuple[Violations, Violations]]):
    """The violations of nodes and those of user graphs, as a derivation, which imports its computation."""

    _kg: KnowledgeGraph

    def __init__(self, kg: KnowledgeGraph) -> None:
        super().__init__(kg, CHECK)

    def write(self, value: tuple[Violations, Violations]) -> Any:
        """Convert violations to JSON; None, so that the next start validates everything, if they are too many."""
        return [each.to_rows() for each in value] if sum(len(each.counts) for each in value) <= _MOST_SAVED else None

    def read(self, content: Any) -> tuple[Violations, Violations]:
        """Read violations from JSON."""
        nodes, graphs = map(Violations.from_rows, content)
        return nodes, graphs

    def renew(self, full: bool) -> None:
        """Validate what commits since the last check can affect, or everything."""
        from kg.tools.shacl.background_validation import DatasetChecks

        DatasetChecks(self._kg).check(full=full)

    def find_differing(self, most: int) -> list[NamedNode]:
        """Validate up to `most` nodes with violations again, chosen by chance, and find those that have others."""
        from kg.shacl.data_graph import DataGraph
        from kg.tools.shacl.background_validation import load_dataset_shapes

        found, generation = self.load(), self._kg.store.statistics().generation
        if found is None or found[0] != generation:
            return []
        shapes = found[1][0].shapes
        sample = choose((node for node in shapes if isinstance(node, NamedNode)), most)
        again = Violations()
        with self._kg.store.snapshot(generation) as snapshot:
            data = DataGraph.from_store(Store.read_only(str(snapshot.path)))
            again.replace(None, load_dataset_shapes().results_by_target(data, frozenset(sample), details=False))
        return [node for node in sample if again.shapes.get(node) != shapes[node]]


def _name_shape(violation: Violation) -> str:
    """Name the shape of a violation; an unnamed one by its component."""
    if isinstance(violation.shape, NamedNode):
        return curie(violation.shape.value)
    return "unnamed shape" if violation.component is None else curie(violation.component.value)
