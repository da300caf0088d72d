"""Citations as claims, kept up to date with the texts and policy families in the store."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from pyoxigraph import Literal, NamedNode

from kg.derivations.engine import Opened, load_hashes
from kg.derivations.protocol import Definition, Outcome, Progress
from kg.derivations.state import State
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select
from kg.vocabulary import CITATIONS as ROOT
from kg.vocabulary import PROV_GRAPH, SOURCED, mint

FAMILY_GRAPHS: Final = mint("graph", "ref", "family").value + "/"
CITATIONS: Final = Definition(
    "citations",
    "the laws and policies that texts cite",
    "with the record",
    "4",
    (SOURCED, FAMILY_GRAPHS),
    ROOT,
)

MEMBERS: Final = """
SELECT DISTINCT ?graph WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?document eli:is_member_of ?family } }"""

HAS_TEXT: Final = """{
  GRAPH $prov { ?graph kg:contentSha256 ?hash } FILTER(STRSTARTS(STR(?graph), $sources))
  FILTER EXISTS { GRAPH ?graph { ?unit schema:text ?text } }
}"""

_AT_ONCE: Final = 500


class Computation(Protocol):
    """The citations of a store."""

    def refresh(self, on_progress: Progress | None = None) -> Outcome:
        """Redo the records whose citations may differ with the current families."""

    def find_differing(self, most: int) -> list[NamedNode]:
        """Find the citations of up to `most` records again; return the graphs that the store has in another state."""


class CitationEngine(Opened[Callable[[bool], Computation]]):
    """The citations of stored texts. Those of a record are in its commit; changes of families concern the others."""

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Redo the records whose citations may differ with the current families, or all."""
        return self._derivation(full).refresh(on_progress)

    def find_differing(self, most: int) -> list[NamedNode]:
        """Find the citations of up to `most` records again; return the graphs that the store has in another state.

        Nothing is compared if families have changed since the last run.
        """
        known, _ = self.load_known()
        return (
            [] if known is None or self.find_touched(known) != set() else self._derivation(False).find_differing(most)
        )

    def select_inputs(self, graphs: Collection[NamedNode] | None) -> set[NamedNode] | None:
        """Select the graphs that may have added, changed or removed a family."""
        touched = super().select_inputs(graphs)
        if not touched:
            return touched
        found = {graph for graph in touched if graph.value.startswith(FAMILY_GRAPHS)}
        found |= touched - load_hashes(self._store, self.definition.reads, touched).keys()
        named = sorted(touched, key=str)
        for start in range(0, len(named), _AT_ONCE):
            rows = select(self._store.query, bind(MEMBERS, graphs=named[start : start + _AT_ONCE]))
            found |= {named_node(row["graph"]) for row in rows}
        return found


def has_texts(store: Store) -> bool:
    """Whether a store has records with texts."""
    return bool(store.query(bind(f"ASK {HAS_TEXT}", prov=PROV_GRAPH, sources=Literal(SOURCED))))


def open_citations(store: Store, state: State, data_dir: Path) -> CitationEngine:
    """Open the derivation of citations."""

    def build() -> Callable[[bool], Computation]:
        from loaders.citations.graph.refresh import Citations

        return partial(Citations, data_dir, store)

    return CitationEngine(store, state, CITATIONS, build)
