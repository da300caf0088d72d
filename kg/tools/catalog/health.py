"""Health of the server: counts, pending embeddings and problems."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kg import __version__
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import get_loaded_concepts
from kg.retrieval.results import DatasetCheck, Result


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
    dataset: str
    dataset_revision: str | None = None
    concepts: str
    dataset_shapes: DatasetCheck | None = None
    problems: list[str] = Field(default_factory=list)


def health(kg: KnowledgeGraph) -> Health:
    """Report the health of the server, the size of the graph, and the number of passages without an embedding.

    Use when results look incomplete or a call failed. Returns status (ok | degraded), counts, generation, problems.
    Example: health().
    Next: `list_resources` for the contents.
    """
    counted = kg.store.statistics()
    index = kg.search.status()
    problems = []
    if index.embedder_error is not None:
        problems.append(f"No embeddings are computed; ranking uses keywords only: {index.embedder_error}")
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
        dataset=kg.settings.dataset_repo,
        dataset_revision=kg.settings.dataset_revision,
        concepts=_state_of_concepts(kg),
        dataset_shapes=None if kg.dataset_check is None else kg.dataset_check(),
        problems=problems,
    )
    result.meta.snapshot = counted.generation
    return result


def _state_of_concepts(kg: KnowledgeGraph) -> str:
    concepts = get_loaded_concepts(kg)
    if concepts is None:
        return "not loaded yet: the first call of a concept tool loads them"
    return f"{len(concepts):,} concepts, as of generation {concepts.generation}" if len(concepts) else "none"
