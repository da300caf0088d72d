"""Health of the server: counts, pending embeddings and problems."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from kg import __version__
from kg.connectors.client import ConnectorState
from kg.integrity.backup_schedule import BackupState
from kg.integrity.replication import ReplicaState
from kg.knowledge_graph import KnowledgeGraph
from kg.remote.outcomes import last_outcome
from kg.retrieval.concept_index import get_loaded_concepts
from kg.retrieval.notes import NoteText
from kg.retrieval.results import DatasetCheck, Lean, Result
from kg.search.protocol import IndexStatus
from kg.settings import Settings
from kg.store.write_ahead_log import describe_loss
from kg.tools.catalog.resources import HubDataset, hub_datasets
from kg.tools.schema.schema_measurement import get_measured_generation

COUNTED: Final = 5_000
"""Maximum number of cached responses whose age is looked up."""


class Service(Lean):
    """A remote service of the settings. It is not contacted for this report."""

    name: str
    url: str
    state: Literal["ok", "failed", "unknown"] = Field(description="Last outcome; unknown: not contacted yet")
    age_s: float | None = Field(None, description="Seconds since that outcome")
    problem: NoteText | None = None
    drift: list[str] = Field(default_factory=list, description="Declared tools that a connector's server lacks")


class CacheState(Lean):
    """A cache, and how old its contents are."""

    name: str
    generation: int | None = Field(None, description="Generation of the store that it was made from")
    behind: int | None = Field(None, description="Generations since")
    entries: int | None = None
    newest_age_s: float | None = None
    oldest_age_s: float | None = None


class Backups(Lean):
    """The backups that the server writes by itself."""

    point: int | None = Field(None, description="Number of the newest point")
    generation: int | None = Field(None, description="Generation of that point")
    age_s: float | None = Field(None, description="Seconds since the data was last compared with it")
    next_in_s: float | None = Field(None, description="Seconds until the next backup")
    running: bool = False
    failures: int = Field(0, description="Failures in a row")


class Replica(Lean):
    """How a replica follows its primary."""

    primary: str = Field(description="Address of the server that takes writes, or the folder of its backups")
    point: int = Field(description="Number of the point that is served")
    primary_generation: int | None = Field(None, description="Newest known generation of the primary")
    lag_s: float = Field(description="Seconds for which the primary may have had newer data")
    contact_age_s: float | None = Field(None, description="Seconds since the primary answered")
    failures: int = Field(0, description="Failures in a row")


class Health(Result):
    """Health of the server, and size of the graph."""

    status: Literal["ok", "degraded"]
    version: str
    generation: int
    quads: int
    graphs: int
    bytes_on_disk: int
    indexed_passages: int
    pending_vectors: int
    model: str
    datasets: list[HubDataset] = Field(default_factory=list, description="Loaded from the model hub")
    concepts: str
    dataset_shapes: DatasetCheck | None = None
    problems: list[NoteText] = Field(default_factory=list)
    services: list[Service] = Field(default_factory=list)
    caches: list[CacheState] = Field(default_factory=list)
    backups: Backups | None = None
    replica: Replica | None = None


def health(kg: KnowledgeGraph) -> Health:
    """Report the health of the server, the size of the graph, and the number of passages without an embedding.

    Use when results look incomplete or a call failed. Returns status (ok | degraded), counts, generation, problems,
    services (last outcome and age), caches (ages).
    Example: health().
    Next: `list_resources` for the contents.
    """
    counted = kg.store.statistics()
    index = kg.search.status()
    check = kg.dataset_check and kg.dataset_check()
    problems = find_problems(kg, index, check)
    result = Health(
        status="degraded" if problems else "ok",
        version=__version__,
        generation=counted.generation,
        quads=counted.quads,
        graphs=counted.graphs,
        bytes_on_disk=counted.bytes_on_disk,
        indexed_passages=index.units,
        pending_vectors=index.pending_vectors,
        model=index.model,
        datasets=hub_datasets(kg.store),
        concepts=_state_of_concepts(kg),
        dataset_shapes=check,
        problems=problems,
        services=[*_load_services(kg.settings, index.embedder_error), *map(_load_connector, kg.connectors.states())],
        caches=_load_caches(kg, counted.generation),
        backups=_describe_backups(kg.backup_state and kg.backup_state()),
        replica=_describe_replica(kg.replica_state and kg.replica_state()),
    )
    if check is None and kg.dataset_check is not None:
        result.notes.append("The dataset shapes were not checked yet. They are checked after each commit.")
    result.meta.snapshot = counted.generation
    return result


def find_problems(kg: KnowledgeGraph, index: IndexStatus, check: DatasetCheck | None) -> list[str]:
    """List the problems, given the state of the search index and the last check of the dataset shapes."""
    problems = []
    if kg.store.problem is not None:
        problems.append(f"Writes are refused, reads go on: {kg.store.problem}. No restart is needed.")
    problems += map(describe_loss, kg.store.damaged_logs)
    if index.problem is not None:
        problems.append(
            f"The search index does not answer; search reads the texts in the store, and the counts are old: "
            f"{index.problem}"
        )
    if index.incomplete is not None:
        problems.append(f"Searches are approximate: {index.incomplete}")
    if kg.unindexed.is_set():
        problems.append("The search index lacks recent changes. It is updated as soon as it answers.")
    problems += kg.ingestion.find_problems()
    if kg.policies is not None and (invalid := kg.policies.problem) is not None:
        problems.append(f"The changed policies do not count, those of before do: {invalid}")
    if kg.backup_state is not None and (failed := kg.backup_state().describe_problem()) is not None:
        problems.append(failed)
    if kg.replica_state is not None and (failed := kg.replica_state().describe_problem()) is not None:
        problems.append(failed)
    if check is not None and check.own:
        counts = ", ".join(f"{shape}: {count:,}" for shape, count in check.own.items())
        problems.append(f"The data violates the dataset shapes ({counts}). `kg validate --suite dataset` lists where.")
    if index.embedder_error is not None:
        problems.append(f"No embeddings are computed; ranking uses keywords only: {index.embedder_error}")
    problems += [
        f"The server of the connector {state.id} lacks declared tools: {', '.join(state.drift)}. Correct its manifest."
        for state in kg.connectors.states()
        if state.enabled and state.drift
    ]
    return problems


def _describe_backups(state: BackupState | None) -> Backups | None:
    if state is None:
        return None
    now = datetime.now(UTC)
    return Backups(
        point=state.point,
        generation=state.generation,
        age_s=None if state.confirmed is None else max(0.0, round((now - state.confirmed).total_seconds(), 1)),
        next_in_s=None if state.next is None else max(0.0, round((state.next - now).total_seconds(), 1)),
        running=state.running,
        failures=state.failures,
    )


def _describe_replica(state: ReplicaState | None) -> Replica | None:
    if state is None:
        return None
    age = None if state.contacted is None else (datetime.now(UTC) - state.contacted).total_seconds()
    return Replica(
        primary=state.primary,
        point=state.point,
        primary_generation=state.primary_generation,
        lag_s=round(state.lag_s, 1),
        contact_age_s=None if age is None else max(0.0, round(age, 1)),
        failures=state.failures,
    )


def _state_of_concepts(kg: KnowledgeGraph) -> str:
    concepts = get_loaded_concepts(kg)
    if concepts is None:
        return "not loaded yet: the first call of a concept tool loads them"
    return f"{len(concepts):,} concepts, as of generation {concepts.generation}" if len(concepts) else "none"


def _load_services(settings: Settings, embedder_error: str | None) -> list[Service]:
    """List the configured services with the last outcome of each."""
    urls = {
        "embedding": settings.embedding_url,
        "chat": settings.chat_url,
        "reranker": settings.reranker_url,
        "concept_store": settings.concept_store_url,
        "municode": settings.municode_url,
    }
    named = [(name, str(url)) for name, url in urls.items() if url is not None]
    named += [("service_endpoint", str(url)) for url in settings.service_endpoints]
    return [_load_service(name, url, embedder_error if name == "embedding" else None) for name, url in named]


def _load_connector(state: ConnectorState) -> Service:
    service = _load_service(f"connector {state.id}", state.url, None)
    if not state.enabled:
        service.problem = "not enabled"
    service.drift = list(state.drift)
    if state.breaker == "open":
        service.problem = f"{service.problem} (not called for a while after failures in a row)"
    return service


def _load_service(name: str, url: str, problem: str | None) -> Service:
    parts = urlsplit(url)
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    outcome = last_outcome(url)
    if outcome is None:
        return Service(name=name, url=shown, state="failed" if problem else "unknown", problem=problem)
    problem = problem or outcome.problem
    state: Literal["ok", "failed"] = "failed" if problem else "ok"
    return Service(name=name, url=shown, state=state, age_s=round(outcome.age_s, 1), problem=problem)


def _load_caches(kg: KnowledgeGraph, generation: int) -> list[CacheState]:
    concepts = get_loaded_concepts(kg)
    made = {"concepts": None if concepts is None else concepts.generation, "schema": get_measured_generation(kg)}
    states = [
        CacheState(name=name, generation=of, behind=None if of is None else max(0, generation - of))
        for name, of in made.items()
    ]
    times = _load_times(kg.settings)
    now = time.time()
    ages = [max(0.0, round(now - at, 1)) for at in times]
    responses = CacheState(name="responses", entries=len(times))
    if ages:
        responses.newest_age_s, responses.oldest_age_s = min(ages), max(ages)
    return [*states, responses]


def _load_times(settings: Settings) -> list[float]:
    """Load the times of the cached responses of live services."""
    times: list[float] = []
    try:
        with os.scandir(settings.answers_dir) as entries:
            for entry in entries:
                if len(times) == COUNTED:
                    break
                if entry.is_file(follow_symlinks=False):
                    times.append(entry.stat(follow_symlinks=False).st_mtime)
    except OSError:  # no response was cached, or the folder cannot be read
        return times
    return times
