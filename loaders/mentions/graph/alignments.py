"""Alignments of land uses, topics and definitions with the concepts whose names they have, as claims.

``graph/ext/alignment/{municipality}`` and ``graph/ext/alignment/topics`` have a ``kg:Alignment`` for each: a land use
or a topic is close to a concept (``skos:closeMatch``), a definition defines one (``kg:definesConcept``). The whole name
must be a name of the concept in the language of its place, in singular or plural. A claim by label or alias is
promoted; one by a name that several concepts of a Wikibase have is left to a person (``review_claim``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from hashlib import sha256 as hash_of
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.engine import Whole, load_hashes
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Derived, RecordOrigin
from kg.sparql.terms import bind
from kg.store.protocol import Store, select
from loaders.citations.graph.claims import build_alignment
from loaders.mentions.graph import ALIGNMENTS
from loaders.mentions.graph.concept_names import Table
from loaders.mentions.graph.names_to_align import Named, describe_topic, load_named
from loaders.mentions.graph.proposals import refresh_proposals
from loaders.mentions.matcher import Match, Matcher, filter_possible

CONFIDENCES: Final = {"label": "0.95", "alias": "0.85"}
"""Confidence of an alignment by the preferred or an alternative name of a concept."""
AMBIGUOUS: Final = "0.5"
"""Confidence if several concepts of a Wikibase have the name."""

ALIGNED: Final = """
SELECT ?claim WHERE { GRAPH ?graph { ?claim a kg:Alignment } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""


def count_alignments(store: Store) -> int:
    """Count the alignments by exact names in a store."""
    return len(select(store.query, bind(ALIGNED, prefix=Literal(ALIGNMENTS.writes))))


class Alignments(Whole):
    """The derivation of alignments from the names of concepts, land uses, topics and definitions."""

    def __init__(self, kg: KnowledgeGraph, table: Table | None = None) -> None:
        self.store: Final = kg.store
        self.table: Final = Table.load(kg.store) if table is None else table
        self.config = {"names": self.table.digest}

    @cached_property
    def several(self) -> Sequence[Named]:
        """The names to align."""
        return sorted(set(load_named(self.store)), key=str) if self.table.rows else []

    def compute(self, before: bytes | None, touched: Collection[NamedNode]) -> tuple[Derived, bytes]:
        """Align the names, unless neither these nor those of concepts have changed."""
        names = "\n".join([self.table.digest, *map(str, self.several)])
        digest = hash_of(names.encode(errors="surrogatepass")).digest()
        if digest == before:
            return {}, digest
        stored = load_hashes(self.store, [ALIGNMENTS.writes])
        made: Derived = {graph: ((), RecordOrigin("", ())) for graph in stored}
        return {**made, **build_alignments(self.several, self.table)}, digest

    def prepare(self, made: Derived) -> None:
        """Remove the proposals for names that are aligned."""
        alignments = (quad for quads, _ in made.values() for quad in quads)
        refresh_proposals(self.store, self.several, self.table, alignments)


def build_alignments(several: Iterable[Named], table: Table) -> Derived:
    """Build the graphs of alignments."""
    named = [each for each in several if each.plain]
    matcher = Matcher(filter_possible(table.labels(), {each.plain for each in named}), table.confusable())
    quads: dict[NamedNode, dict[Quad, None]] = defaultdict(dict)
    sources: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    for each in named:
        whole = [match for match in matcher.find(each.plain, [each.language]) if match[:2] == (0, len(each.plain))]
        graph = NamedNode(ALIGNMENTS.writes + each.unit)
        for match in whole:
            quads[graph].update(dict.fromkeys(describe_topic(each, graph)))
            quads[graph].update(dict.fromkeys(_to_quads(each, match, whole, graph)))
            sources[graph].add(each.graph)
    return {
        graph: (list(found), RecordOrigin("", (), sorted(sources[graph], key=str))) for graph, found in quads.items()
    }


def _to_quads(each: Named, match: Match, whole: Sequence[Match], graph: NamedNode) -> Sequence[Quad]:
    """Build the claim that a name is that of a concept."""
    base = match.concept.rpartition("/")[0]
    alike = sum(other.concept.rpartition("/")[0] == base for other in whole)
    confidence = CONFIDENCES[match.kind] if alike == 1 else AMBIGUOUS
    triple = each.node, each.predicate, NamedNode(match.concept)
    return build_alignment(graph, triple, confidence, f"{match.kind}-equality")[1]
