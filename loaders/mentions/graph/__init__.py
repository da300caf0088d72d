"""Mentions of concepts, kept up to date with the texts and concepts in the store."""

from typing import Final

from kg.derivations.protocol import Definition
from kg.vocabulary import DERIVED, EXTRACTED, mint

READS: Final = tuple(f"{mint('graph', family).value}/" for family in ("src", "user", "cur"))
"""How the names of the graphs begin that may contain text units."""
MENTIONS: Final = Definition(
    "mentions",
    "the concepts that texts mention",
    "after the commit",
    "7",
    READS,
    f"{EXTRACTED}mentions/",
    "loaders.mentions.graph.refresh.Mentions",
    agent="loaders.mentions",
)
ALIGNMENTS: Final = Definition(
    "alignments",
    "the concepts whose names land uses, topics and definitions have",
    "after the commit",
    "4",
    (*READS, f"{DERIVED}skos/", f"{mint('graph', 'ref', 'landuse').value}/", f"{EXTRACTED}zoning/"),
    f"{EXTRACTED}alignment/",
    "loaders.mentions.graph.alignments.Alignments",
    agent="loaders.alignments",
)
