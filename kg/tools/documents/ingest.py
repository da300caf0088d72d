"""The tools `ingest_docs` and `extract_and_link`: load files of allowed folders, and find their entities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg import loading
from kg.allowed_files import list_allowed, resolve_folders
from kg.errors import InvalidInputError, NotFoundError, QuadciteError
from kg.knowledge_graph import PROGRESS, KnowledgeGraph
from kg.loading import exclusive_load
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.retrieval.results import Identifier, Layout, Result
from kg.sparql.terms import bind, is_iri
from kg.text import describe_unread, list_first, name_or_quote, quoted, to_single_line
from kg.tools.documents.nodes import FILES
from kg.vocabulary import SOURCED
from loaders.dispatch import call
from loaders.file_formats import DOCUMENTS

MOST_PATHS: Final = 1_000
MOST_FILES: Final = 10_000
"""Maximum number of files of one call."""
SHOWN: Final = 100
"""Maximum number of errors, and of notes, that are listed."""

STORED: Final = """
SELECT DISTINCT ?file WHERE { VALUES (?graph ?file) { $files } GRAPH ?graph { ?file a kg:File } }"""

PathText = Annotated[str, Field(min_length=1, max_length=4_000)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]


class IngestedDocs(Result):
    """The outcome of loading files."""

    layout: ClassVar[Layout] = Layout(paged=("errors",))

    ingested: int = Field(description="Files stored, new or changed")
    skipped: int = Field(description="Files stored before and unchanged, and near-duplicates")
    errors: list[NoteText] = Field(description="Files and paths that were not read, with the reasons")
    pending_vectors: int = Field(description="Texts of all domains without an embedding; they are found by words")


class Extracted(Result):
    """The outcome of an extraction. Counts are of the files that were read."""

    docs: int = Field(description="Files that were read; not those read before and unchanged")
    mentions: int
    entities_new: int
    relations: int = Field(description="Claims that relate two entities, of any confidence")


def ingest_docs(
    kg: KnowledgeGraph,
    paths: Annotated[
        list[PathText], Field(min_length=1, max_length=MOST_PATHS, description="Files, folders, or patterns: **/*.md")
    ],
    tags: Annotated[
        list[Tag] | None, Field(max_length=50, description="Tags for these files; absent: they keep theirs; []: none")
    ] = None,
    skip_if_seen: Annotated[bool, Field(description="Files are always compared; only changes are stored")] = True,
) -> IngestedDocs:
    """Load files of folders that the server allows, as `kg load files` does: Markdown, text, HTML, PDF, Word, slides,
    workbooks.

    Use to add files or update changed ones. A path begins in an allowed folder, or is absolute. Files whose content is
    stored are not stored again. Needs the scope write and the server's setting QUADCITE_INGEST_FOLDERS. Returns
    ingested, skipped, errors.
    Example: ingest_docs(paths=["pumps/*.md"]).
    Next: `hybrid_query`, `status`.
    """
    roots = resolve_folders(kg.settings.ingest_folders, "kg load files DIR")
    texts = [clean_text("paths", text, 4_000) for text in paths]
    found = list_allowed(roots, "paths", texts, DOCUMENTS)
    if (count := found.count()) > MOST_FILES:
        raise InvalidInputError(f"paths name {count:,} files. The maximum is {MOST_FILES:,}. Name fewer at a time.")
    named = None if tags is None else ",".join(_clean_tags(tags))
    errors, notes = list(found.problems), list[str]()
    ingested = skipped = pending = 0
    for root, files in found.files.items():
        try:
            done = loading.load(
                kg,
                PROGRESS.get(),
                source="files",
                paths=[str(path) for path in files],
                prune=False,
                wait=False,
                root=str(root),
                tags=named,
            )
        except QuadciteError as error:
            raise type(error)(_without_folder(str(error), root)) from None
        report = done["report"]
        ingested += report["loaded"]
        skipped += report["skipped"]
        pending = report["pending_vectors"]
        if (left := len(files) - report["loaded"] - report["skipped"] - report["rejected"]) > 0:
            notes.append(f"{left} files in {root.name} were left out: .gitignore and .kgignore files exclude them.")
        errors += [
            _without_folder(f"{name_or_quote(each['record'])}: {each['reason']}", root) for each in report["rejections"]
        ]
        notes += [_without_folder(each, root) for each in done["warnings"]]
    if found.unread:
        notes.append(describe_unread(found.unread, DOCUMENTS))
    if skipped and not skip_if_seen:
        notes.append("Unchanged files were read and compared. They are not stored again: nothing would differ.")
    reader = Reader(kg)
    result = IngestedDocs(
        ingested=ingested,
        skipped=skipped,
        errors=list_first([to_single_line(each, 500) for each in errors], SHOWN, "errors"),
        pending_vectors=pending,
        notes=list_first([to_single_line(each, 500) for each in notes], SHOWN, "notes"),
    )
    return reader.finish(result, total=count)


def extract_and_link(
    kg: KnowledgeGraph,
    doc_ids: Annotated[
        list[Identifier] | None, Field(max_length=MOST_PATHS, description="Ids of files; absent: all that changed")
    ] = None,
) -> Extracted:
    """Find the entities and relations in loaded files that changed since the last extraction.

    Use after `ingest_docs` if a load was interrupted; loads do it otherwise. Each relation is a claim with its sentence
    and confidence. Needs the scope write. Returns docs, mentions, entities_new, relations.
    Example: extract_and_link().
    Next: `explain_entity`, `list_claims`.
    """
    reader = Reader(kg)
    files = None if doc_ids is None else _find_files(reader, doc_ids)
    with exclusive_load(PROGRESS.get()):
        report = call(kg, "find_entities", files, on_progress=PROGRESS.get())
    notes = [] if report.files else ["These files were read before and have not changed."]
    return reader.finish(
        Extracted(
            docs=report.files,
            mentions=report.mentions,
            entities_new=report.entities_new,
            relations=report.relations,
            notes=notes,
        )
    )


def _find_files(reader: Reader, ids: Sequence[str]) -> list[NamedNode]:
    """Find the files with these ids, those of their texts too. Raises NotFoundError for unknown ones."""
    wanted = {text: text.strip().removeprefix("<").removesuffix(">").partition("#")[0] for text in ids}
    nodes = {iri: NamedNode(iri) for iri in wanted.values() if iri.startswith(FILES) and is_iri(iri)}
    pairs = [(NamedNode(SOURCED + "files/" + iri.removeprefix(FILES)), node) for iri, node in nodes.items()]
    rows = reader.rows("files with these ids", bind(STORED, files=pairs)) if pairs else []
    known = {iri_of(row["file"]) for row in rows}
    unknown = [text for text, iri in wanted.items() if iri not in known]
    if unknown:
        shown = ", ".join(quoted(text) for text in unknown[:5])
        raise NotFoundError(f"doc_ids: Unknown files: {shown}. hybrid_query and search return valid ids.")
    return [nodes[iri] for iri in sorted(known)]


def _clean_tags(tags: Sequence[str]) -> list[str]:
    cleaned = [clean_text("tags", tag, 100) for tag in tags]
    for tag in cleaned:
        if "," in tag or "\n" in tag:
            raise InvalidInputError(f"tags: Invalid tag {quoted(tag)}. A tag has no comma and no line break.")
    return cleaned


def _without_folder(text: str, root: Path) -> str:
    """Remove the path of a folder on the server from a message about files in it; its name stays."""
    return text.replace(f"{root}{os.sep}", f"{root.name}{os.sep}").replace(str(root), root.name)
