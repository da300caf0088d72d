"""Citations as claims, kept up to date with the texts and policy families in the store."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, NamedNode

from kg.derivations.engine import Opened, load_hashes
from kg.derivations.protocol import Definition, Outcome, Progress
from kg.sparql.terms import bind
from kg.store.protocol import named_node, select_each
from kg.vocabulary import CITATIONS as ROOT
from kg.vocabulary import PROV_GRAPH, SOURCED, mint

if TYPE_CHECKING:
    from loaders.citations.graph.refresh import Citations  # noqa: F401 -- the type of CitationEngine

WITH_TEXT: Final = bind(
    """{
  GRAPH $prov { ?graph kg:contentSha256 ?hash } FILTER(STRSTARTS(STR(?graph), $sources))
  FILTER EXISTS { GRAPH ?graph { ?unit schema:text ?text } }
}""",
    prov=PROV_GRAPH,
    sources=Literal(SOURCED),
)
FAMILY_GRAPHS: Final = mint("graph", "ref", "family").value + "/"
CITATIONS: Final = Definition(
    "citations",
    "the laws and policies that texts cite",
    "with the record",
    "4",
    (SOURCED, FAMILY_GRAPHS),
    ROOT,
    "loaders.citations.graph.refresh.Citations",
    f"ASK {WITH_TEXT}",
    agent="loaders.citations",
)

MEMBERS: Final = """
SELECT DISTINCT ?graph WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?document eli:is_member_of ?family } }"""


class CitationEngine(Opened["Citations"]):
    """The citations of stored texts. Those of a record are in its commit; changes of families concern the others."""

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Redo the records whose citations may differ with the current families, or all."""
        return self._derivation.refresh(on_progress, full=full)

    def find_differing(self, most: int) -> list[NamedNode]:
        """Find the citations of up to `most` records again; return the graphs that the store has in another state.

        Nothing is compared if families have changed since the last run.
        """
        return self._derivation.find_differing(most) if self.is_current() else []

    def select_inputs(self, graphs: Collection[NamedNode] | None) -> set[NamedNode] | None:
        """Select the graphs that may have added, changed or removed a family."""
        touched = super().select_inputs(graphs)
        if not touched:
            return touched
        found = {graph for graph in touched if graph.value.startswith(FAMILY_GRAPHS)}
        found |= touched - load_hashes(self._store, self.definition.reads, touched).keys()
        rows = select_each(self._store.query, MEMBERS, "graphs", sorted(touched, key=str))
        return found | {named_node(row["graph"]) for row in rows}
