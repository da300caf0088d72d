"""Whether a record may have the identifiers that it has, where records of one source never replace those of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyoxigraph import NamedNode

from kg import provenance
from kg.provenance import format_rows
from kg.sparql.terms import bind
from kg.store.protocol import Store, select
from kg.vocabulary import BASE
from loaders.model import SourceDocument, SourceGraph
from loaders.quarantine import CORRECTION
from loaders.rdf import graph_of

HOMES: Final = """
SELECT DISTINCT ?thing ?graph WHERE { VALUES ?thing { $things } GRAPH ?graph { ?thing a ?class } }"""


class Identities:
    """Knows where the things are described that a load would describe: in the store, or in a record of this load."""

    def __init__(self, store: Store, known: Mapping[NamedNode, tuple[str, str]]) -> None:
        self.store: Final = store
        self.known: Final = known
        self.described: dict[NamedNode, tuple[NamedNode, str]] = {}
        """Of the documents of this load, the graph of each and where it was read."""

    def refusal(self, document: SourceDocument | SourceGraph) -> str | None:
        """Return why a record that says something new is kept out, None where it is not."""
        graph = graph_of(document)
        if (other := self._other_source(graph, document)) is not None:
            return (
                f"{other} has a record with the same identifier {document.iri.value} that says something else, and it "
                f"stays; to have this one instead, remove that from there and load it with --prune"
            )
        parents = [unit.parent for unit in document.units if unit.parent is not None]
        things = dict.fromkeys([document.iri, *parents])
        for thing, home, place in self._homes([*things]):
            if home != graph:
                return f"{thing.value} is part of another record already, {home.value}, read from {place}"
        where = standing(document)
        self.described |= dict.fromkeys(things, (graph, where))
        return None

    def _other_source(self, graph: NamedNode, document: SourceDocument | SourceGraph) -> str | None:
        if graph not in self.known or self.known[graph][0] == document.source_sha256:
            return None
        ours = {origin.snapshot.source for origin in document.origins}
        theirs = provenance.locations(self.store, [graph]).get(graph, set())
        # A person's correction of a record gives way to the source, once that has it right.
        corrected = any(f"{CORRECTION}{place} rows" in each for each in theirs for place in ours)
        return None if ours & theirs or corrected else ", ".join(sorted(theirs)) or "what was loaded before"

    def _homes(self, things: list[NamedNode]) -> list[tuple[NamedNode, NamedNode, str]]:
        found = [(thing, *self.described[thing]) for thing in things if thing in self.described]
        for thing, graph in select(self.store.query, bind(HOMES, things=things)).rows:
            if isinstance(thing, NamedNode) and isinstance(graph, NamedNode):
                places = provenance.locations(self.store, [graph]).get(graph, set()) if graph in self.known else set()
                found.append((thing, graph, ", ".join(sorted(places)) or "elsewhere"))
        return found


def named(document: SourceDocument | SourceGraph) -> str:
    """Return what a record is called where it is spoken of."""
    return document.iri.value.removeprefix("cpr://doc/").removeprefix(BASE + "id/")


def standing(document: SourceDocument | SourceGraph) -> str:
    """Return where a record stands, in words."""
    places = [
        (f"row {format_rows(sorted(set(origin.rows)))} of " if origin.rows else "") + origin.snapshot.source
        for origin in document.origins
    ]
    return " and ".join(places)
