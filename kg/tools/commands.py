"""The commands of `kg` on an open graph, in this process or in the server that holds it.

Each takes typed arguments and returns a document of JSON types, so that the answer is the same either way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from kg import __version__, loading
from kg.access.actors import CURATE, WRITE, Actor
from kg.errors import InvalidInputError, ModelError, QueryLimitError, StoreError
from kg.integrity.backup_schedule import BackupState
from kg.integrity.backups import choose_retention, write_backup
from kg.integrity.doctor import inspect_and_repair
from kg.integrity.inspection import Problem
from kg.integrity.replication import ReplicaState
from kg.knowledge_graph import PROGRESS, SENDER, KnowledgeGraph
from kg.loading import exclusive_load, wait_for_embeddings
from kg.retrieval.results import DatasetCheck
from kg.search.index_sync import repair_index
from kg.store.protocol import select, term_text
from kg.tools import derivations
from kg.tools.calls import Command
from kg.tools.catalog.health import find_problems
from kg.tools.claims.review import Verdict, review_claim
from kg.tools.entities.dereference import parse_iri
from kg.tools.reading.why import explain, parse_triple
from kg.tools.schema.schema_measurement import updating
from kg.tools.zoning.reading_tasks import extract
from kg.tools.zoning.summaries import summaries_build, summaries_status
from loaders.dispatch import call

Document = dict[str, Any]

TEXT_UNITS: Final = """
SELECT (COUNT(DISTINCT ?unit) AS ?units) WHERE { ?unit schema:text ?text MINUS { ?unit a kg:Summary } }"""
"""Some may not be in the index yet."""
SUMMARIES: Final = "SELECT (COUNT(DISTINCT ?summary) AS ?summaries) WHERE { ?summary a kg:Summary }"
SAMPLE: Final = 20
"""Graphs of each derivation that `doctor` computes again."""
WATCH_S: Final = 30.0
"""Seconds that a folder is watched after the last call of a client that watches it."""


def store_status(kg: KnowledgeGraph) -> Document:
    """Count the contents of the data directory and of its search index."""
    counted, indexed = kg.store.statistics(), kg.search.status()
    quarantine = kg.settings.directory.quarantine
    check = kg.dataset_check and kg.dataset_check()
    problems = find_problems(kg, indexed, check)
    text_units: int | None = None
    due: list[str] = []
    others = [f"vectors: {indexed.pending_vectors:,} pending of {indexed.vectors + indexed.pending_vectors:,}"]
    try:
        # In a worker: to count over a damaged block, the engine takes memory without bound.
        [counts] = select(lambda query: kg.query(query, all_graphs=True).result, TEXT_UNITS)
        text_units = int(term_text(counts["units"]))
        [written] = select(kg.store.query, SUMMARIES)
        others += [
            f"search index: {indexed.units:,} of {text_units:,} texts",
            f"summaries: {int(term_text(written['summaries'])):,}, by agents and models",
        ]
    except (QueryLimitError, StoreError) as error:
        problems.append(f"The texts cannot be counted, perhaps because a file is damaged (see `kg doctor`): {error}")
    else:  # the queries of derivations run in this process, which a damaged block would fill
        try:
            due = [
                f"{name} ({derivations.DEFINITIONS[name].kind}): "
                + ", ".join(f"{number:,} {reason}" for reason, number in reasons.items())
                for name, reasons in derivations.count_due(kg).items()
                if reasons
            ]
        except (ModelError, StoreError) as error:
            problems.append(str(error))
    return {
        "version": __version__,
        "data_dir": str(kg.settings.data_dir.resolve()),
        "generation": counted.generation,
        "quads": counted.quads,
        "graphs": counted.graphs,
        "bytes_on_disk": counted.bytes_on_disk,
        "text_units": text_units,
        "indexed_text_units": indexed.units,
        "indexed_graphs": indexed.graphs,
        "pending_vectors": indexed.pending_vectors,
        "vectors_per_s": indexed.vectors_per_s and round(indexed.vectors_per_s, 1),
        "vectors_seconds_left": indexed.seconds_left and round(indexed.seconds_left),
        "model": indexed.model,
        "model_problem": indexed.embedder_error,
        "quarantined": sum(1 for _ in quarantine.glob("*.json")) if quarantine.is_dir() else 0,
        "due": due,
        "not_derived": others,
        "dataset_shapes": _checked(check),
        "backups": _describe_backups(kg),
        "replica": _describe_replica(kg),
        "problems": problems,
    }


def _describe_backups(kg: KnowledgeGraph) -> str:
    """Summarize the backups that the server writes by itself in a line."""
    state: BackupState | None = kg.backup_state and kg.backup_state()
    if state is None:
        return "none by itself: QUADCITE_BACKUP_TO names a folder, `kg serve` writes to it"
    newest = f"point {state.point}, generation {state.generation}" if state.point else "no point yet"
    doing = "being written" if state.running else f"next at {state.next:%Y-%m-%d %H:%M:%S} UTC"
    return f"{newest} in {state.folder}; {doing}"


def _describe_replica(kg: KnowledgeGraph) -> str | None:
    """Summarize how a replica follows its primary in a line, None: it is not a replica."""
    state: ReplicaState | None = kg.replica_state and kg.replica_state()
    if state is None:
        return None
    theirs = "unknown" if state.primary_generation is None else f"{state.primary_generation}"
    return (
        f"of {state.primary}; point {state.point}, generation {state.generation}, that of the primary {theirs}; "
        f"{state.lag_s:.0f} s behind at most"
    )


def _checked(last: DatasetCheck | None) -> str:
    """Summarize the last check of the dataset shapes in a line."""
    if last is None:
        return "not checked yet: a running server checks after each commit"
    if last.problem is not None:
        return f"not checked: {last.problem}"
    found = "conforms" if last.conforms else f"{last.violations} violation{'s' * (last.violations != 1)}"
    newer = "; checking a newer generation" if last.pending else ""
    first = "" if last.conforms else f"; first: {last.messages[0]}" if last.messages else ""
    return f"generation {last.generation}: {found}{newer}{first}"


def why(kg: KnowledgeGraph, iri: str | None = None, triple: list[str] | None = None) -> Document:
    """Explain the provenance of an IRI, or of a triple given as three N-Triples terms, as data and as ``text``."""

    if triple is not None:
        found = explain(kg, parse_triple(triple))
    elif iri is not None:
        found = explain(kg, parse_iri(iri))
    else:
        raise InvalidInputError("why: missing argument. Give `iri` or `triple`.")
    return {"explanations": [each.to_dict() for each in found], "text": "\n\n".join(map(str, found))}


def load(
    kg: KnowledgeGraph,
    source: str,
    paths: list[str],
    prune: bool = False,
    wait: bool = False,
    replace_newer: bool = False,
    options: dict[str, str] | None = None,
) -> Document:
    """Load a source (`kg.loading.load`); with `replace_newer` also records that are older than the stored ones.

    `options` are those of the source (`loaders.load_options.OPTIONS`).
    """
    with updating(kg):
        return loading.load(
            kg,
            PROGRESS.get(),
            source=source,
            paths=paths,
            prune=prune,
            wait=wait,
            replace_newer=replace_newer,
            **(options or {}),
        )


def watch(kg: KnowledgeGraph, folder: str, collection: str | None = None, after: int | None = None) -> Document:
    """Watch a folder for `WATCH_S` seconds; repeated calls prolong them.

    Returns what became of its files since the event `after`, None: since now, and the state of the folder.
    """
    if kg.watcher is None:
        from loaders.sources import build_watcher

        kg.watcher = build_watcher(kg, exclusive_load)
    root = os.path.abspath(folder)
    kg.watcher.watch(Path(root), collection, WATCH_S)
    state = next((each for each in kg.ingestion.get_status().folders if each.path == root), None)
    events = kg.ingestion.list_events(after or 0)
    mine = [] if after is None or state is None else [each for each in events if each.collection == state.collection]
    return {
        "folder": None if state is None else asdict(state),
        "events": [asdict(each) for each in mine],
        "after": events[-1].number if events else after or 0,
    }


def mentions(kg: KnowledgeGraph, full: bool = False) -> Document:
    """Find mentions of concepts in texts that have changed; with `full`, in every text."""
    return _run(kg, "find mentions", partial(call, kg, "mention", full=full))


def derive(kg: KnowledgeGraph, name: str | None = None, full: bool = False) -> Document:
    """Compute due derived graphs, of the derivation `name` or of all; with `full`, all of them."""
    return _run(kg, "derive", partial(derivations.derive, kg, name, full=full))


def align(kg: KnowledgeGraph, least: float | None = None) -> Document:
    """Propose alignments of names with concepts that have a similar name; `least` is the least similarity."""
    return _run(kg, "propose alignments", partial(call, kg, "align", least=least))


def _run(kg: KnowledgeGraph, purpose: str, work: Callable[..., Any]) -> Document:
    """Run work while no load runs, and return its report."""
    with (
        updating(kg),
        kg.loads.recording(purpose, (), PROGRESS.get()) as (progress, keep),
        exclusive_load(progress),
    ):
        report = work(on_progress=progress)
        document: Document = report if isinstance(report, dict) else report.to_dict()
        keep(document)
    return document


def review(kg: KnowledgeGraph, claim: str, verdict: Verdict, by: str) -> Document:
    """Accept or reject a claim with the tool `review_claim`, recorded under the name `by`."""
    sender = SENDER.set(Actor(by, frozenset({WRITE, CURATE})))
    try:
        return review_claim(kg, claim, verdict).model_dump(mode="json", exclude_none=True)
    finally:
        SENDER.reset(sender)


def quarantine_retry(kg: KnowledgeGraph, ids: list[str] | None, file: str | None, by: str) -> Document:
    """Map and validate records in quarantine again; None: all of them."""
    with exclusive_load(PROGRESS.get()):
        retried: Document = call(kg, "retry", ids, correction=file, by=by, on_progress=PROGRESS.get())
        return retried


def quarantine_drop(kg: KnowledgeGraph, ids: list[str] | None) -> Document:
    """Delete records from quarantine; None: all of them."""
    from loaders.quarantine_retry import drop

    with exclusive_load(PROGRESS.get()):
        return drop(kg, ids)


def reindex(kg: KnowledgeGraph, full: bool = False, wait: bool = True) -> Document:
    """Update the search index from the store and, with `wait`, wait for the missing embeddings."""
    changed = repair_index(kg.store, kg.search, full=full, on_progress=PROGRESS.get())
    if wait:
        wait_for_embeddings(kg, PROGRESS.get())
    now = kg.search.status()
    return {
        "reindexed_graphs": changed.replaced,
        "removed_graphs": changed.removed,
        "text_units": now.units,
        "pending_vectors": now.pending_vectors,
    }


def index_status(kg: KnowledgeGraph) -> Document:
    """Get the state of the search index (`kg.search.protocol.IndexStatus`)."""
    return asdict(kg.search.status())


def backup(
    kg: KnowledgeGraph,
    folder: str,
    read: bool = True,
    newest: int | None = None,
    daily: int | None = None,
    weekly: int | None = None,
) -> Document:
    """Add a point to a folder of backups and, with `read`, read its store through. Then remove points.

    The settings have each number of points that the arguments do not.
    """
    return write_backup(kg, Path(folder), read=read, retention=choose_retention(kg.settings, newest, daily, weekly))


def doctor(kg: KnowledgeGraph, read: bool = True, repair: bool = False) -> Document:
    """Inspect the index, a sample of each derivation and, with `read`, the store; with `repair`, repair them."""
    PROGRESS.get()(0, None, "reading the store")
    document = inspect_and_repair(kg, read=read, repair=repair)
    if "index" not in document["checked"]:  # a damaged store is not read any further
        return document
    try:
        differing = derivations.find_differing(kg, SAMPLE)
    except ModelError as error:
        return {**document, "checked": {**document["checked"], "derived": str(error)}}
    repaired = [name for name, graphs in differing.items() if graphs and repair]
    if repaired:
        done = document["repaired"] + [f"The graphs of {name} were computed again." for name in repaired]
        for name in repaired:
            derive(kg, name, full=True)
        document = {**inspect_and_repair(kg, read=read, repair=False), "repaired": done}
    for name, graphs in differing.items() if not repair else ():
        message = f"Its input and the names that it follows from have not changed, and give other {name}."
        commands = (f"kg derive {name} --full",)
        document["problems"] += [Problem("derived", graph, message, commands=commands).to_dict() for graph in graphs]
    return {**document, "ok": not document["problems"]}


COMMANDS: Final = (
    Command(store_status, logged=False, keeps_store=True),
    Command(why, logged=False, keeps_store=True),
    Command(load),
    Command(watch, kind="light", logged=False),
    Command(mentions),
    Command(derive),
    Command(align),
    Command(extract),
    Command(review),
    Command(quarantine_retry),
    Command(quarantine_drop),
    Command(summaries_build),
    Command(summaries_status, logged=False, keeps_store=True),
    Command(reindex, keeps_store=True),
    Command(index_status, kind="light", logged=False, keeps_store=True),
    Command(backup),
    Command(doctor, keeps_store=True),
)
