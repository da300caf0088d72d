"""Folders that are watched, and graphs that are derived from the stored texts of files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kg.derivations.engine import AfterCommit, Engine, Whole, WholeEngine
from kg.derivations.protocol import Definition
from kg.derivations.state import State
from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import CITATIONS, DERIVED, EXTRACTED, SOURCED, mint
from kg.vocabulary import ENTITIES as ROOT
from loaders.files.extraction.language_pipeline import describe_pipeline

ENTITIES: Final = Definition(
    "entities",
    "the entities and relations that files name",
    "after the commit",
    "7",
    (f"{SOURCED}files/",),
    f"{ROOT}files/",
)
LINKS: Final = Definition(
    "links",
    "the entities, concepts, people, places and laws that an entity may be",
    "after the commit",
    "2",
    (
        SOURCED,
        f"{DERIVED}skos/",
        f"{mint('graph', 'ref').value}/",
        f"{ROOT}files/",
        f"{EXTRACTED}mentions/files/",
        f"{CITATIONS}files/",
    ),
    f"{ROOT}links/",
)

ANY: Final = "ASK { ?entity a kg:Entity }"
ANY_FILE: Final = "ASK { ?file a kg:File }"


def _build_entities(kg: KnowledgeGraph) -> AfterCommit[Any, Any]:
    from loaders.files.graph.entities import Entities

    return Entities(kg)


def open_entities(
    kg: KnowledgeGraph, state: State, build: Callable[[], AfterCommit[Any, Any]] | None = None
) -> Engine[Any, Any] | None:
    """Open the derivation of entities; None without files, for which no pipeline is needed.

    Its methods raise ModelError if the pipeline of the settings is not installed.
    """
    if not kg.store.query(ANY_FILE):
        return None
    others = partial(describe_pipeline, kg.settings.spacy_pipeline)
    return Engine(kg.store, state, ENTITIES, build or partial(_build_entities, kg), others)


def _build_links(kg: KnowledgeGraph) -> Whole:
    from loaders.files.graph.entity_links import Links

    return Links(kg)


def open_links(kg: KnowledgeGraph, state: State) -> WholeEngine | None:
    """Open the derivation of links; None if there are no entities and have not been any."""
    if state.load(LINKS.name) is None and not kg.store.query(ANY):
        return None
    return WholeEngine(kg.store, state, LINKS, partial(_build_links, kg))
