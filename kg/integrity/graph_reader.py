"""The graphs of a store that may be damaged, read by whichever index has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.store.difference import Statements, key_by_statement, statements_sha256
from kg.vocabulary import KG, PROV_GRAPH, PROVENANCE_PROPERTIES


class GraphReader:
    """Reads graphs by their own order, or where that is damaged by the order of their properties."""

    def __init__(self, store: Store) -> None:
        self.store: Final = store
        self.hashes: Final[dict[NamedNode, set[str]]] = defaultdict(set)
        """The recorded hashes of the graphs."""
        self.problem: str | None = None
        self._properties: Final[set[NamedNode]] = {KG.contentSha256, *PROVENANCE_PROPERTIES}
        try:
            for quad in store.quads_for_pattern(None, KG.contentSha256, None, PROV_GRAPH):
                if isinstance(quad.subject, NamedNode) and isinstance(quad.object, Literal):
                    self.hashes[quad.subject].add(quad.object.value)
        except (OSError, RuntimeError) as error:
            self.problem = str(error)

    def read(self, graph: NamedNode) -> Iterator[Quad]:
        """Yield the quads of a graph, by its own order. Raises OSError or RuntimeError for damage."""
        for quad in self.store.quads_for_pattern(None, None, None, graph):
            self._properties.add(quad.predicate)
            yield quad

    def load(self, graph: NamedNode) -> Statements:
        """Load the statements of a graph, by its own order. Raises OSError or RuntimeError for damage."""
        return key_by_statement(graph, self.read(graph))

    def rescue(self, graph: NamedNode) -> Statements | None:
        """Load a graph by the properties read so far; None if it cannot be read so, or is not as recorded.

        Call it after the readable graphs were read. For a graph without a recorded hash, the caller has to compare the
        counters of the store.
        """
        held: Statements = {}
        try:
            for name in self._properties:
                held |= key_by_statement(graph, self.store.quads_for_pattern(None, name, None, graph))
        except (OSError, RuntimeError):
            return None
        if graph in self.hashes:
            return held if {statements_sha256(graph, held)} == self.hashes[graph] else None
        return held or None
