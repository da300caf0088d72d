"""The tool `ingest_speech`: load speeches from a file on the server and wait for their embeddings."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, get_args
from typing import Literal as OneOf

from pydantic import Field
from pyoxigraph import Literal, NamedNode

from kg import loading
from kg.allowed_files import find_allowed, resolve_folders
from kg.errors import InvalidInputError, ModelError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.retrieval.results import Result
from kg.search.protocol import IndexStatus
from kg.sparql.terms import bind
from kg.store.protocol import Rows, batched
from kg.text import list_first, name_or_quote, quoted
from kg.vocabulary import KG, PROV_GRAPH
from loaders.file_formats import SPEECHES

SHOWN_ERRORS: Final = 100
MOST_BYTES: Final = 1 << 29
"""Maximum size of a file. JSON and XML are read whole and take several times their size in memory."""
_AT_ONCE: Final = 1_000
_MANY: Final = 10_000_000

Format = OneOf["json", "csv", "jsonl", "parquet", "xml"]

WRITTEN: Final = """
SELECT DISTINCT ?thing WHERE { GRAPH $prov { ?graph prov:wasGeneratedBy $run } GRAPH ?graph { ?thing a $kind } }"""

OF_FILE: Final = """
SELECT DISTINCT ?thing WHERE {
  GRAPH $prov { ?graph prov:wasDerivedFrom/kg:sha256 $sha256 } GRAPH ?graph { ?thing a $kind }
}"""


class IngestionResult(Result):
    """The outcome of loading a file."""

    speeches_processed: int = Field(description="Speeches stored, and those stored before")
    chunks_created: int
    vectors_stored: int = Field(description="Number of these chunks with an embedding")
    duplicates_skipped: int = Field(description="Speeches stored before and unchanged")
    errors: list[NoteText] = Field(description="Rejected records with reasons, and other errors")
    processing_time_seconds: float


class _StoredError(Exception):
    """Ends the wait: all embeddings of the file are stored."""


def ingest_speech(
    kg: KnowledgeGraph,
    file_path: Annotated[str, Field(min_length=1, max_length=4_000, description="File on the server's machine")],
    format: Annotated[Format, Field(description="Format of the file")] = "json",
    jurisdiction: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=100,
            description="Country or region of the parliament, where the file names none: AUS, NZL, GB-SCT",
        ),
    ] = None,
) -> IngestionResult:
    """Load speeches from a file in a folder that the server allows, and wait for their embeddings.

    Use to add speeches. A table that names no parliament needs `jurisdiction`. Unchanged speeches are skipped. Needs
    the scope write and the server's setting QUADCITE_INGEST_FOLDERS. Returns speeches_processed, chunks_created,
    vectors_stored, duplicates_skipped, errors, processing_time_seconds.
    Example: ingest_speech(file_path="speeches.csv", format="csv").
    Next: `search_speeches`.
    """
    began = time.monotonic()
    path = allowed(kg.settings.ingest_folders, clean_text("file_path", file_path, 4_000), format)
    try:
        place = None if jurisdiction is None else clean_text("jurisdiction", jurisdiction, 100)
        done = loading.load(
            kg, _unheard, source="parliament", paths=[str(path)], prune=False, wait=False, jurisdiction=place
        )
    except QuadciteError as error:
        raise type(error)(_without_folder(str(error), path)) from None
    report = done["report"]
    reader = Reader(kg)
    run = None if report["run"] is None else NamedNode(report["run"])
    speeches, chunks = _written(reader, run, KG.Speech), _written(reader, run, KG.SpeechChunk)
    errors = list_first(
        [f"{name_or_quote(each['record'])}: {each['reason']}" for each in report["rejections"]],
        SHOWN_ERRORS,
        "rejections. kg quarantine lists them all.",
    )
    try:
        _await_vectors(kg, chunks)
    except ModelError as error:  # the speeches are stored and found by keywords
        errors.append(str(error))
    duplicates = report["skipped"]
    if duplicates and format == "xml":  # a record is a day
        duplicates = _duplicates(reader, path, speeches)
    result = IngestionResult(
        speeches_processed=len(speeches) + duplicates,
        chunks_created=len(chunks),
        vectors_stored=sum(_stored(kg, chunks)),
        duplicates_skipped=duplicates,
        errors=[_without_folder(each, path) for each in errors],
        processing_time_seconds=round(time.monotonic() - began, 3),
        notes=[_without_folder(each, path) for each in list_first(done["warnings"], SHOWN_ERRORS, "warnings")],
    )
    return reader.finish(result)


def _without_folder(text: str, path: Path) -> str:
    """Remove the path of the folder on the server from a message about a file in it."""
    return text.replace(f"{path.parent}{os.sep}", "")


def allowed(folders: Sequence[Path], text: str, format: Format) -> Path:
    """Resolve a path, with all links followed, to a readable file in one of `folders`.

    Raises what `find_allowed` raises, and InvalidInputError for one that is not a file of this format.
    """
    _, path = find_allowed(resolve_folders(folders, "kg load parliament FILE"), "file_path", text)
    if not os.path.isfile(path):
        raise InvalidInputError(f"file_path: {quoted(text)} is not a file. Pass one file of speeches.")
    if not path.name.lower().endswith(SPEECHES[format]):
        formats = get_args(Format)
        meant = next((name for name in formats if path.name.lower().endswith(SPEECHES[name])), None)
        valid = f"Pass format={quoted(meant)}." if meant else f"Formats: {', '.join(formats)}."
        raise InvalidInputError(f"file_path: {quoted(path.name)} does not have the file extension of {format}. {valid}")
    if (size := path.stat().st_size) > MOST_BYTES:
        raise InvalidInputError(
            f"file_path: {quoted(path.name)} has {size:,} bytes. The maximum is {MOST_BYTES:,}. Split the file, or "
            "load it with `kg load parliament FILE`."
        )
    return path


def _unheard(done: int, total: int | None, doing: str) -> None:
    """Ignore the progress."""


def _written(reader: Reader, run: NamedNode | None, kind: NamedNode) -> list[str]:
    """Load the IRIs of a class in the graphs that a run wrote."""
    if run is None:
        return []
    answer = reader.kg.query(bind(WRITTEN, prov=PROV_GRAPH, run=run, kind=kind), limit=_MANY)
    return sorted(iri_of(row["thing"]) for row in answer.result) if isinstance(answer.result, Rows) else []


def _duplicates(reader: Reader, path: Path, written: Sequence[str]) -> int:
    """Count the speeches of a file that were stored before. A record of such a file is a day."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    query = bind(OF_FILE, prov=PROV_GRAPH, sha256=Literal(digest), kind=KG.Speech)
    answer = reader.kg.query(query, limit=_MANY)
    found = {iri_of(row["thing"]) for row in answer.result} if isinstance(answer.result, Rows) else set()
    return len(found - set(written))


def _await_vectors(kg: KnowledgeGraph, units: Sequence[str]) -> None:
    """Wait until each of `units` has an embedding, even if others are pending. Raises ModelError on failure."""
    if not units:
        return
    left = list(units)

    def look(status: IndexStatus) -> None:
        while left and all(_stored(kg, left[:_AT_ONCE])):
            del left[:_AT_ONCE]
        if not left:
            raise _StoredError

    with contextlib.suppress(_StoredError):
        kg.search.wait(look)


def _stored(kg: KnowledgeGraph, units: Sequence[str]) -> list[bool]:
    """Look up which of `units` have an embedding."""
    found: dict[str, bool] = {}
    for some in batched(units, _AT_ONCE):
        ranking = kg.search.rank("speech", units=some, limit=len(some), mode="dense")
        found |= {candidate.iri: candidate.cosine is not None for candidate in ranking.candidates}
    return [found.get(iri, False) for iri in units]
