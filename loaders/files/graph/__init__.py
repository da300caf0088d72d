"""Folders that are watched, and graphs that are derived from the stored texts of files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kg.derivations.engine import AfterCommit, Engine
from kg.derivations.protocol import Definition
from kg.derivations.state import State
from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import ENTITIES as ROOT
from kg.vocabulary import SOURCED
from loaders.files.extraction.language_pipeline import describe_pipeline

ENTITIES: Final = Definition(
    "entities",
    "the entities and relations that files name",
    "after the commit",
    "7",
    (f"{SOURCED}files/",),
    f"{ROOT}files/",
)

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
