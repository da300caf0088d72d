"""Mentions of concepts, kept up to date with the texts and concepts in the store."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from kg.derivations.engine import AfterCommit, Engine, Whole, WholeEngine
from kg.derivations.protocol import Definition
from kg.derivations.state import State
from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import DERIVED, EXTRACTED, mint

READS: Final = tuple(f"{mint('graph', family).value}/" for family in ("src", "user", "cur"))
"""How the names of the graphs begin that may contain text units."""
MENTIONS: Final = Definition(
    "mentions", "the concepts that texts mention", "after the commit", "4", READS, f"{EXTRACTED}mentions/"
)
ALIGNMENTS: Final = Definition(
    "alignments",
    "the concepts whose names land uses, topics and definitions have",
    "after the commit",
    "2",
    (*READS, f"{DERIVED}skos/", f"{mint('graph', 'ref').value}/", f"{EXTRACTED}zoning/"),
    f"{EXTRACTED}alignment/",
)


def _build_mentions(kg: KnowledgeGraph) -> AfterCommit[Any, Any]:
    from loaders.mentions.graph.refresh import Mentions

    return Mentions(kg.store)


def open_mentions(kg: KnowledgeGraph, state: State) -> Engine[Any, Any]:
    """Open the derivation of mentions."""
    return Engine(kg.store, state, MENTIONS, partial(_build_mentions, kg))


def _build_alignments(kg: KnowledgeGraph) -> Whole:
    from loaders.mentions.graph.alignments import Alignments
    from loaders.mentions.graph.concept_names import Table

    return Alignments(kg.store, Table.load(kg.store))


def open_alignments(kg: KnowledgeGraph, state: State) -> WholeEngine:
    """Open the derivation of alignments."""
    return WholeEngine(kg.store, state, ALIGNMENTS, partial(_build_alignments, kg))
