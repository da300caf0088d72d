"""The checks and repairs of `kg doctor` for a data directory."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.data_directory import DataDirectory
from kg.errors import IndexUnavailableError, StoreError
from kg.integrity.inspection import (
    DAMAGE,
    Inspection,
    Problem,
    copy_store,
    inspect_logs,
    inspect_store,
    name_kept_logs,
)
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.shipped import INFERENCES, build_shipped_graphs
from kg.search.index_sync import find_differences, repair_index
from kg.sparql.terms import bind
from kg.store.engine import exchange_store, finish_rebuild
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch, named_node, select, term_text
from kg.store.write_ahead_log import judge_logs, keep_logs
from kg.vocabulary import KG, PROV_GRAPH, SHIPPED_GRAPHS

_SHIPPED: Final = frozenset(graph.value for graph in SHIPPED_GRAPHS if graph not in INFERENCES)
_OF_RECORDS: Final = frozenset({"missing", "changed", "text"})
"""The kinds of problems of graphs that a load can repair."""

SOURCE_HASHES: Final = """
SELECT ?graph ?hash WHERE { VALUES ?graph { $graphs } GRAPH $prov { ?graph kg:sourceSha256 ?hash } }"""


def report(problems: Sequence[Problem], counts: dict[str, Any], repaired: Sequence[str] = ()) -> dict[str, Any]:
    """Build the document of `kg doctor`."""
    return {
        "ok": not problems,
        "problems": [problem.to_dict() for problem in problems],
        "repaired": list(repaired),
        "checked": counts,
    }


def inspect_closed(data_dir: Path) -> Inspection:
    """Inspect the store of a data directory that no process has open, as it is on the disk.

    The caller has its lock. A repair that was killed is finished first.
    """
    directory = DataDirectory(data_dir)
    store = directory.store
    with suppress(OSError):  # a disk that cannot be written now
        finish_rebuild(directory)
    if not store.is_dir():
        kept = max(directory.find(DataDirectory.damaged_stores), default=None)
        advice = "" if kept is None else f" or rename {kept} to it and run `kg doctor --repair`"
        return Inspection([Problem("unreadable", store.name, f"{store} is missing. Restore a backup{advice}.")])
    found = inspect_store(directory)
    logs = inspect_logs(store, found.counts.get("generation"))
    logs += name_kept_logs(directory.find(DataDirectory.damaged_logs))
    return Inspection([*logs, *found.problems], found.counts)


def inspect_open(kg: KnowledgeGraph) -> Inspection:
    """Inspect a checkpoint of an open store."""
    with kg.store.snapshot(kg.store.statistics().generation) as snapshot:
        return inspect_store(kg.settings.directory, snapshot.path)


def compare_index(kg: KnowledgeGraph) -> list[Problem]:
    """Compare the search index with the store, by the content hash of each graph."""
    try:
        missing, superfluous = find_differences(kg.store, kg.search)
        status = kg.search.status()
    except IndexUnavailableError as error:
        return [Problem("index", "index", str(error), commands=("kg reindex --full",))]
    if not missing and not superfluous and status.problem is None:
        return []
    message = (
        f"The search index lacks {len(missing):,} graphs with text or has them in another state, and has "
        f"{len(superfluous):,} that are not in the store."
    )
    return [Problem("index", "index", status.problem or message, commands=("kg reindex",))]


def repair_files(data_dir: Path, found: Inspection) -> tuple[list[str], Inspection]:
    """Rebuild a store if some of its files cannot be read; return the repairs, and the problems that remain.

    Damage of the log remains, since the lost commits are unknown. The conditions of `rebuild_store` apply.
    """
    if not any(problem.kind in DAMAGE and problem.kind != "log" for problem in found.problems):
        return [], found
    done, lost = rebuild_store(DataDirectory(data_dir))
    logs = [problem for problem in found.problems if problem.kind == "log"]
    return done, Inspection([*logs, *lost], found.counts)


def rebuild_store(directory: DataDirectory) -> tuple[list[str], list[Problem]]:
    """Rebuild the indexes of a store from those that can be read; the old files are kept next to it.

    Returns the repairs, and the graphs that are lost. Call it while no process has the data directory open but this
    one has its lock. After a kill, the next start has the old store or the complete new one (`finish_rebuild`).
    """
    fresh, store = directory.partial_store, directory.store
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        copied = copy_store(directory)
        if not copied.counts.get("stored_quads"):
            raise StoreError(
                f"Nothing of {store} can be read. Restore a backup, or load the sources into a new folder."
            )
        if any(problem.where == PROV_GRAPH.value for problem in copied.problems):
            raise StoreError(
                f"{PROV_GRAPH.value} in {store} cannot be read, so nothing explains the other graphs. Restore a "
                "backup, or load the sources into a new folder."
            )
        keep_logs(directory)
        judge_logs(directory, None)
        kept = directory.name_now(DataDirectory.damaged_stores)
        exchange_store(directory, kept)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    quads = copied.counts["stored_quads"]
    done = f"All indexes of the store were rebuilt, with {quads:,} quads. The old files are {kept}."
    return [done], list(copied.problems)


def repair_derived(kg: KnowledgeGraph, problems: Sequence[Problem]) -> list[str]:
    """Repair derived graphs and the index, and let the next load replace damaged records; return the repairs."""
    store = kg.store
    done: list[str] = []
    if isinstance(store, OxigraphStore):
        kinds = {problem.where: problem.kind for problem in problems}
        for graph, inference in INFERENCES.items():
            if kinds.get(graph.value) in ("derived", "missing"):
                changed = sum(store.infer_again(inference.compare))
                done.append(f"{changed:,} quads of {graph.value} were inferred again or removed.")
        if shipped := [graph for graph in kinds if graph in _SHIPPED]:
            store.commit({NamedNode(graph): build_shipped_graphs()[NamedNode(graph)] for graph in shipped})
            done += [f"{graph} was written again from the files that ship." for graph in shipped]
        if forgotten := _forget_hashes(store, problems):
            done.append(f"The next load of their source replaces {forgotten:,} records.")
    if any(problem.kind == "index" for problem in problems):
        index = repair_index(kg.store, kg.search)
        done.append(f"{index.replaced:,} graphs were indexed again, and {index.removed:,} removed from the index.")
    return done


def _forget_hashes(store: OxigraphStore, problems: Sequence[Problem]) -> int:
    """Remove the hashes by which a load would skip damaged records as unchanged; return the number of records."""
    records = {record for problem in problems if problem.kind in _OF_RECORDS for record in problem.records}
    if not records:
        return 0
    query = bind(SOURCE_HASHES, graphs=[NamedNode(record) for record in sorted(records)], prov=PROV_GRAPH)
    stale = frozenset(
        Quad(named_node(row["graph"]), KG.sourceSha256, Literal(term_text(row["hash"])), PROV_GRAPH)
        for row in select(store.query, query)
    )
    if stale:
        store.commit_provenance(Patch(remove=stale))
    return len(stale)


def inspect_and_repair(kg: KnowledgeGraph, *, read: bool, repair: bool) -> dict[str, Any]:
    """Inspect the index of an open data directory and, with `read`, its store; with `repair`, repair both."""
    logs = name_kept_logs(kg.store.damaged_logs)
    found = inspect_open(kg) if read else Inspection([])
    if found.is_damaged:
        return report([*logs, *found.problems], dict(found.counts))
    problems = [*found.problems, *compare_index(kg)]
    counts = {**found.counts, "index": "compared"}
    if not repair or not problems:
        return report([*logs, *problems], counts)
    done = repair_derived(kg, problems)
    again = inspect_open(kg)
    return report([*logs, *again.problems, *compare_index(kg)], {**again.counts, "index": "compared"}, done)
