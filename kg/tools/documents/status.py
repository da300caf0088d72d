"""The tool `status`: the state of the ingestion of files, and how much was loaded from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Final

from pydantic import BaseModel, Field
from pyoxigraph import Literal

from kg.ingestion import FolderState
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader
from kg.retrieval.results import Lean, Result
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.vocabulary import BASE, SOURCED

# Files and chunks in their own graphs, so that what users describe is not counted.
COUNTS: Final = """
SELECT ?table ?count ?named WHERE {
  { SELECT ("docs" AS ?table) (COUNT(*) AS ?count) WHERE {
    GRAPH ?graph { ?thing a kg:File } FILTER(STRSTARTS(STR(?graph), $records)) } }
  UNION { SELECT ("chunks" AS ?table) (COUNT(*) AS ?count) WHERE {
    GRAPH ?graph { ?thing a kg:Chunk } FILTER(STRSTARTS(STR(?graph), $records)) } }
  UNION { SELECT ("entities" AS ?table) (COUNT(*) AS ?count) WHERE { ?thing a kg:Entity } }
  UNION { SELECT ("relations" AS ?table) (COUNT(*) AS ?count) WHERE { ?claim a kg:EntityRelation } }
  UNION { SELECT ("mentions" AS ?table) (COUNT(*) AS ?count) (COUNT(DISTINCT ?thing) AS ?named) WHERE {
    ?mention kg:object ?thing FILTER(STRSTARTS(STR(?thing), $entities)) } }
}"""


class Counts(BaseModel):
    """How much the store has of files."""

    docs: int = 0
    chunks: int = 0
    mentions: int = Field(0, description="Mentions of entities in chunks")
    entities: int = 0
    relations: int = Field(0, description="Claims that one entity relates to another, of any confidence")
    vectors: int = Field(0, description="Embeddings of texts of all domains")


class WatchedFolder(Lean):
    """A folder that is watched."""

    collection: str
    state: FolderState
    files: int
    pending: int
    problem: NoteText | None = None


class Status(Result):
    """The state of the ingestion of files. Rates and outcomes are since the server began."""

    shown: ClassVar[frozenset[str]] = frozenset({"last_file", "last_error", "ingest_rate", "mean_commit_ms"})

    queue_depth: int = Field(description="Files that changed and wait to be read")
    last_file: str | None = Field(description="File that was loaded last: collection and path")
    last_file_at: datetime | None = None
    counts: Counts
    last_error: NoteText | None
    last_error_at: datetime | None = None
    ingest_rate: float | None = Field(description="Files per second, of the last loads")
    mean_commit_ms: float | None = Field(description="Of the last commits")
    pending_vectors: int = Field(description="Texts of all domains without an embedding")
    orphans: int = Field(description="Entities that no text mentions")
    outcomes: dict[str, int] = Field(description="Files by outcome: loaded, unchanged, duplicate, rejected, removed")
    folders: list[WatchedFolder]


def status(kg: KnowledgeGraph) -> Status:
    """Report the ingestion of files: queue depth, last file, counts, last error, rates, orphaned entities.

    Use to see whether the files are loaded and current. Returns queue_depth, last_file, counts (docs, chunks, mentions,
    entities, relations, vectors), last_error, ingest_rate, mean_commit_ms, pending_vectors, orphans, folders.
    Example: status().
    Next: `hybrid_query`; `health` for the server itself.
    """
    reader = Reader(kg)
    now, index = kg.ingestion.get_status(), kg.search.status()
    query = bind(COUNTS, records=Literal(SOURCED + "files/"), entities=Literal(BASE + "id/entity/"))
    counts, named = reader.kept("counts of files", query, _read_counts)
    notes = []
    if now.counts is None or not any(now.counts.values()):
        notes.append("No file was loaded since this server began. counts are of the store.")
    if not now.folders:
        notes.append("No folder is watched. `kg watch DIR` watches one.")
    result = Status(
        queue_depth=now.queue_depth,
        last_file=now.last_file,
        last_file_at=now.last_file_at,
        counts=counts.model_copy(update={"vectors": index.vectors}),
        last_error=now.last_error,
        last_error_at=now.last_error_at,
        ingest_rate=None if now.files_per_s is None else round(now.files_per_s, 2),
        mean_commit_ms=None if now.mean_commit_ms is None else round(now.mean_commit_ms, 2),
        pending_vectors=index.pending_vectors,
        orphans=max(0, counts.entities - named),
        outcomes=dict(now.counts or {}),
        folders=[
            WatchedFolder(
                collection=each.collection,
                state=each.state,
                files=each.files,
                pending=each.pending,
                problem=each.problem,
            )
            for each in now.folders
        ],
        notes=notes,
    )
    return reader.finish(result)


def _read_counts(rows: Sequence[dict[str, Term]]) -> tuple[Counts, int]:
    """Read the counts by table, and the number of entities that are mentioned."""
    found = {term_text(row["table"]): int(term_text(row["count"])) for row in rows if "table" in row}
    named = next((int(term_text(row["named"])) for row in rows if "named" in row), 0)
    return Counts(**found), named
