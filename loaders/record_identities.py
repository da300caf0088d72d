"""Identity and origin of records: the resources that one describes, other records that describe them, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.provenance import load_records
from kg.provenance.load_records import RecordOrigin, RowsOf, SourceFile, format_rows
from kg.provenance.source_paths import SourcePaths
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Store, named_node, select
from kg.vocabulary import BASE, KG, SCHEMA, SUPERCLASS_GRAPH
from loaders.model import Rejection, Snapshot, SourceDocument, SourceGraph, graph_name

HOMES: Final = """
SELECT DISTINCT ?thing ?graph WHERE {
  VALUES ?thing { $things } GRAPH ?graph { ?thing a ?class } FILTER(?graph != $inferred)
}"""


WITH_TEXT: Final = (
    "SELECT ?graph WHERE { VALUES ?graph { $graphs } FILTER EXISTS { GRAPH ?graph { ?unit $text ?words } } }"
)


class Identities:
    """Finds the records, of the store or of this load, that already describe the resources of a record."""

    def __init__(self, store: Store, known: Mapping[NamedNode, tuple[str, str]], paths: SourcePaths) -> None:
        self.store: Final = store
        self.paths: Final = paths
        self.known: Final = known
        self.described: dict[NamedNode, tuple[NamedNode, str]] = {}
        """For each resource of this load, the graph of its record and the location of that record."""
        self.stored: dict[NamedNode, list[NamedNode]] = {}
        """For each resource of the next records, the stored graphs that describe it."""

    def read_ahead(self, documents: Iterable[SourceDocument | SourceGraph]) -> None:
        """Find the stored graphs of the resources of several records: a query for each would take a tenth of a load."""
        things = {thing for document in documents for thing in _find_resources(document)}
        self.stored = {thing: [] for thing in things}
        if things:
            query = bind(HOMES, things=sorted(things, key=str), inferred=SUPERCLASS_GRAPH)
            for thing, graph in select(self.store.query, query).rows:
                # User graphs are left out: a statement there could otherwise keep a load from replacing the record.
                if isinstance(thing, NamedNode) and isinstance(graph, NamedNode) and not is_user_graph(graph):
                    self.stored[thing].append(graph)

    def find_conflict(self, document: SourceDocument | SourceGraph) -> str | None:
        """Find the reason to reject a new or changed record: another record or source has its identifiers."""
        graph = graph_name(document)
        if (other := self._other_source(graph, document)) is not None:
            return (
                f"Identifier {document.iri.value} belongs to a different record, from {other}. "
                f"To replace it, remove that record from its source, load that source with --prune, and load this one."
            )
        things = _find_resources(document)
        if not self.stored.keys() >= things.keys():
            self.read_ahead([document])
        for thing in things:
            home, place = self.described.get(thing, (graph, ""))
            if home != graph:
                return f"{thing.value} already belongs to another record, {home.value}, from {place}."
        for thing in things:
            for home in self.stored[thing]:
                if home != graph:
                    place = self._find_place(home)
                    return f"{thing.value} already belongs to another record, {home.value}, from {place}."
        where = location_text(document)
        self.described |= dict.fromkeys(things, (graph, where))
        return None

    def _other_source(self, graph: NamedNode, document: SourceDocument | SourceGraph) -> str | None:
        if graph not in self.known or self.known[graph][0] == document.source_sha256:
            return None
        ours = {origin.snapshot.source for origin in document.origins}
        theirs = load_records.load_sources(self.store, [graph]).get(graph, {})
        if any(load_records.mint_source(place).value in theirs for place in ours):
            return None
        # The source replaces a person's correction once the source is correct.
        known = {source: self.paths.get(source) or name for source, name in theirs.items()}
        if any(f"{load_records.CORRECTION}{place} rows" in each for each in known.values() for place in ours):
            return None
        return ", ".join(sorted(theirs.values())) or "an earlier load"

    def find_texts(self, documents: Sequence[SourceDocument]) -> dict[NamedNode, str]:
        """Find the stored records with texts, from more files than these without any; return why each is kept."""
        if not documents:
            return {}
        by_graph = {graph_name(document): document for document in documents}
        query = bind(WITH_TEXT, graphs=[*by_graph], text=SCHEMA.text)
        graphs = [named_node(row["graph"]) for row in select(self.store.query, query)]
        found = {}
        for graph, theirs in load_records.load_sources(self.store, graphs).items():
            ours = {load_records.mint_source(origin.snapshot.source).value for origin in by_graph[graph].origins}
            if not ours >= theirs.keys():
                found[graph] = (
                    f"The stored record has texts, from {', '.join(sorted(theirs.values()))}; this one has none."
                )
        return found

    def _find_place(self, home: NamedNode) -> str:
        places = load_records.load_sources(self.store, [home]).get(home, {}) if home in self.known else {}
        return ", ".join(sorted(places.values())) or "an unknown location"


def _find_resources(document: SourceDocument | SourceGraph) -> dict[NamedNode, None]:
    """Find the resources that a record describes: itself and the documents of its text units, in order."""
    return dict.fromkeys([document.iri, *(unit.parent for unit in document.units if unit.parent is not None)])


def display_name(document: SourceDocument | SourceGraph) -> str:
    """Return the short name of a record for messages."""
    return document.iri.value.removeprefix("cpr://doc/").removeprefix(BASE + "id/")


def location_text(document: SourceDocument | SourceGraph | Rejection) -> str:
    """Return the files and rows of a record for messages."""
    places = [
        (f"row {format_rows(sorted(set(origin.rows)))} of " if origin.rows else "") + origin.snapshot.source
        for origin in document.origins
    ]
    return " and ".join(places) or "an unknown location"


def build_origin(document: SourceDocument | SourceGraph, author: str | None, *, rows: bool = True) -> RecordOrigin:
    """Build the origin of a record in provenance, with `rows` of its sources."""
    return RecordOrigin(
        document.source_sha256,
        [RowsOf(build_source_file(origin.snapshot), origin.rows if rows else ()) for origin in document.origins],
        said=_describe_document(document) if rows and isinstance(document, SourceDocument) else (),
        author=author,
    )


def _describe_document(document: SourceDocument) -> list[tuple[NamedNode, Literal]]:
    counts = [f"{kind}: {count}" for kind, count in sorted(document.redacted.items())]
    counts = ["off"] if document.keeps_secrets else counts
    return [*document.said, *((KG.redacted, Literal(count)) for count in counts)]


@lru_cache(maxsize=1_024)
def build_source_file(snapshot: Snapshot) -> SourceFile:
    """Build the description of a file in provenance."""
    return SourceFile(
        snapshot.sha256, snapshot.source, snapshot.revision, snapshot.read_at, snapshot.sent_by, snapshot.left
    )
