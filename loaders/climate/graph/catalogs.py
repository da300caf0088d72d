"""The files of earlier loads that describe documents: passages loaded later refer to these documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyoxigraph import Literal

from kg.errors import SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import load_sources
from kg.provenance.source_paths import SourcePaths
from kg.sparql.terms import bind
from kg.store.protocol import named_node, select
from kg.vocabulary import DCTERMS, KG
from loaders.model import Snapshot
from loaders.readers.locations import File, file_sha256

DESCRIBED: Final = """
SELECT DISTINCT ?graph WHERE {
  VALUES ?id { $ids } GRAPH ?graph { ?document $identifier ?id ; a $kind }
}"""


class Catalogs:
    """Finds the files of the stored records of documents."""

    def __init__(self) -> None:
        self._kg: KnowledgeGraph | None = None

    def open(self, kg: KnowledgeGraph) -> None:
        """Set the graph with the stored records."""
        self._kg = kg

    def find(self, identifiers: Sequence[str]) -> list[File]:
        """Find the files on this machine from which documents with these identifiers were loaded."""
        if self._kg is None or not identifiers:
            return []
        store, paths = self._kg.store, SourcePaths(self._kg.settings.data_dir)
        query = bind(DESCRIBED, ids=[*map(Literal, identifiers)], identifier=DCTERMS.identifier, kind=KG.PolicyDocument)
        graphs = [named_node(row["graph"]) for row in select(store.query, query)]
        sources = {source for found in load_sources(store, graphs).values() for source in found}
        files = []
        for path in sorted(path for source in sources if (path := paths.get(source)) is not None):
            try:
                files.append(File(Path(path), Snapshot(file_sha256(Path(path)), path), named=False))
            except SourceError:  # it is gone, and the passages are rejected
                continue
        return files
