"""What the command line asks of an open graph, here or through the server that holds it: JSON in, JSON out.

Every operation takes its arguments by name, reports progress and returns a document of JSON types, so that
`kg.server.commands` can carry it over HTTP and the answer is the same on either way.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple

from kg import __version__
from kg.actors import WRITE, Actor
from kg.errors import InvalidInputError, QuadciteError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.loading import exclusive_load, load, wait_for_embeddings
from kg.provenance.explanation import explain_iri, explain_triple
from kg.retrieval.results import DatasetCheck, SearchFilters
from kg.search.index_sync import Healed, Progress, count_text_units, heal
from kg.tools.catalog.overview import health
from kg.tools.claims.review import Verdict, review_claim
from kg.tools.entities.dereference import node_of
from kg.tools.search.passages import search as search_passages
from kg.tools.sparql.query import sparql
from kg.tools.zoning.summary_commands import summaries_build, summaries_status

Operation = Callable[..., dict[str, Any]]


def search(
    kg: KnowledgeGraph,
    on_progress: Progress,
    *,
    text: str,
    filters: Mapping[str, Sequence[str]],
    limit: int,
    offset: int,
) -> dict[str, Any]:
    """Return what the tool `search` finds, as ``found``, and the state of the index, as ``index``."""
    found = search_passages(kg, text, SearchFilters.model_validate(filters), limit=limit, offset=offset)
    return {"found": found.model_dump(mode="json"), "index": asdict(kg.search.status())}


def status(kg: KnowledgeGraph, on_progress: Progress) -> dict[str, Any]:
    """Count what is in the data directory, and what its index lacks."""
    counted, indexed = kg.store.statistics(), kg.search.status()
    quarantine = kg.settings.data_dir / "quarantine"
    state = health(kg)
    return {
        "version": __version__,
        "data_dir": str(kg.settings.data_dir.resolve()),
        "generation": counted.generation,
        "quads": counted.quads,
        "graphs": counted.graphs,
        "bytes_on_disk": counted.bytes_on_disk,
        "text_units": count_text_units(kg.store),
        "indexed_text_units": indexed.units,
        "indexed_graphs": indexed.graphs,
        "pending_vectors": indexed.pending_vectors,
        "model": indexed.model,
        "model_problem": indexed.embedder_error,
        "quarantined": sum(1 for _ in quarantine.glob("*.json")) if quarantine.is_dir() else 0,
        "dataset_shapes": None if state.dataset_shapes is None else _checked(state.dataset_shapes),
        "problems": [problem for problem in state.problems if problem != indexed.embedder_error],
    }


def _checked(last: DatasetCheck) -> str:
    """Return what the last check in the background found, in a few words."""
    if last.problem is not None:
        return f"not checked: {last.problem}"
    found = "conforms" if last.conforms else f"{last.violations} violation{'s' * (last.violations != 1)}"
    newer = "; a newer one is being checked" if last.pending else ""
    first = "" if last.conforms else f"; the first: {last.messages[0]}" if last.messages else ""
    return f"generation {last.generation}: {found}{newer}{first}"


def why(
    kg: KnowledgeGraph, on_progress: Progress, *, iri: str | None = None, triple: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the explanations of an IRI, or of a triple given as three N-Triples terms, and the same as ``text``."""

    def ask(query: str) -> Any:
        return kg.query(query).result

    if triple is not None:
        subject, predicate, value = _terms(triple)
        found = explain_triple(ask, subject, predicate, value)
    elif iri is not None:
        found = explain_iri(ask, node_of(iri))
    else:
        raise InvalidInputError("why takes an iri or a triple")
    return {"explanations": [each.to_dict() for each in found], "text": "\n\n".join(map(str, found))}


def explain(kg: KnowledgeGraph, on_progress: Progress, *, query: str) -> dict[str, Any]:
    """Say why a query may have no rows: which of its patterns have none, and what would be right, as lines ``said``."""
    result = sparql(kg, query, max_rows=1)
    return {"said": [*result.notes, *(hint.message for hint in result.hints or ())]}


def mentions(kg: KnowledgeGraph, on_progress: Progress, *, full: bool) -> dict[str, Any]:
    """Bring the mentions of concepts in line as ``kg mentions`` does; with `full`, search every text again."""
    if kg.mention is None:
        raise InvalidInputError("this process cannot find mentions: its composition root gave it nothing to do so")
    with exclusive_load(on_progress):
        report = kg.mention(kg, full=full, on_progress=on_progress)
    done: dict[str, Any] = report.to_dict()
    return done


def review(kg: KnowledgeGraph, on_progress: Progress, *, claim: str, verdict: Verdict, by: str) -> dict[str, Any]:
    """Accept or reject a claim as the tool `review_claim` does, in the name of `by`."""
    sender = SENDER.set(Actor(by, frozenset({WRITE})))
    try:
        return review_claim(kg, claim, verdict).model_dump(mode="json", exclude_none=True)
    finally:
        SENDER.reset(sender)


def quarantine_retry(
    kg: KnowledgeGraph, on_progress: Progress, *, ids: Sequence[str] | None, file: str | None, by: str
) -> dict[str, Any]:
    """Take records in quarantine through mapping and gate again, as ``kg quarantine retry`` does; None: all of them."""
    retry = _of_loaders(kg, "retry")
    with exclusive_load(on_progress):
        return retry(kg, ids, correction=file, by=by, on_progress=on_progress)


def quarantine_drop(kg: KnowledgeGraph, on_progress: Progress, *, ids: Sequence[str] | None) -> dict[str, Any]:
    """Forget records in quarantine, as ``kg quarantine drop`` does; None: all of them."""
    drop = _of_loaders(kg, "drop")
    with exclusive_load(on_progress):
        return drop(kg, ids)


def _of_loaders(kg: KnowledgeGraph, action: str) -> Operation:
    if action not in kg.quarantine:
        raise InvalidInputError(f"this process cannot {action} records: its composition root gave it no loaders")
    return kg.quarantine[action]


def reindex(kg: KnowledgeGraph, on_progress: Progress, *, full: bool, wait: bool = True) -> dict[str, Any]:
    """Bring the search index in line with the store, then, with `wait`, await the vectors that are missing."""
    healed: Healed = heal(kg.store, kg.search, full=full, on_progress=on_progress)
    if wait:
        wait_for_embeddings(kg, on_progress)
    now = kg.search.status()
    return {
        "reindexed_graphs": healed.replaced,
        "removed_graphs": healed.removed,
        "text_units": now.units,
        "pending_vectors": now.pending_vectors,
    }


def backup(kg: KnowledgeGraph, on_progress: Progress, *, target: str) -> dict[str, Any]:
    """Copy the store as it is into a new data directory, which is there whole or not at all."""
    folder = Path(target)
    if folder.exists():
        raise InvalidInputError(f"{folder} is there already; name a folder that is not")
    partial = folder.with_name(folder.name + ".partial")
    try:
        with kg.store.snapshot() as snapshot:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            shutil.copytree(snapshot.path, partial / "store")
            shutil.copy2(kg.settings.data_dir / "format.json", partial)
            os.sync()
            partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise QuadciteError(f"no backup could be written to {folder}: {error.strerror or error}") from error
    return {"generation": snapshot.generation, "target": str(folder)}


OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.__name__: operation
    for operation in (
        *(search, status, why, explain, load, mentions, review),
        *(quarantine_retry, quarantine_drop, summaries_build, summaries_status, reindex, backup),
    )
}


def _terms(texts: Sequence[str]) -> tuple[NamedNode, NamedNode, NamedNode | Literal]:
    try:
        (quad,) = pyoxigraph.parse(" ".join(texts) + " .", RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as error:
        raise InvalidInputError(f"{' '.join(texts)[:200]!r} is not one triple in N-Triples: {error}") from None
    subject, predicate, value = quad.subject, quad.predicate, quad.object
    if isinstance(subject, (BlankNode, Triple)) or isinstance(value, (BlankNode, Triple)):
        raise InvalidInputError("a triple that is asked about has no blank nodes and no triple terms")
    return subject, predicate, value
