"""Alignments of land uses, topics and definitions with the concepts whose names they have, as claims.

``graph/ext/alignment/{municipality}`` and ``graph/ext/alignment/topics`` have a ``kg:Alignment`` for each: a land use
or a topic is close to a concept (``skos:closeMatch``), a definition defines one (``kg:definesConcept``). The whole name
must be a name of the concept in the language of its place, in singular or plural. A claim by label or alias is
promoted; one by a name that several concepts of a Wikibase have is left to a person (``review_claim``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256 as hash_of
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.engine import finish, load_hashes, load_known
from kg.derivations.state import State
from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.provenance.promotion import build_load_patch
from kg.sparql.terms import bind
from kg.store.protocol import Store, select
from kg.vocabulary import RDF
from loaders.citations.graph.claims import build_alignment
from loaders.mentions.graph.concept_names import Table
from loaders.mentions.graph.names_to_align import ALIGNMENTS, Named, describe_topic, load_named
from loaders.mentions.graph.proposals import refresh_proposals
from loaders.mentions.matcher import Match, Matcher, filter_possible

NAME: Final = "alignments"
VERSION: Final = "2"
"""A new version aligns everything again."""
CONFIDENCES: Final = {"label": "0.95", "alias": "0.85"}
"""Confidence of an alignment by the preferred or an alternative name of a concept."""
AMBIGUOUS: Final = "0.5"
"""Confidence if several concepts of a Wikibase have the name."""

ALIGNED: Final = """
SELECT ?claim WHERE { GRAPH ?graph { ?claim a kg:Alignment } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""

_PREFIX: Final = Literal(ALIGNMENTS)


def refresh_alignments(store: Store, table: Table, state: State, *, full: bool = False) -> int:
    """Align the land uses, topics and definitions in the store with the concepts of `table`.

    Commits what has changed and returns the number of alignments. If neither names nor concepts have changed since the
    last time, nothing is searched, unless `full`.
    """
    several = sorted(set(load_named(store)), key=str) if table.rows else []
    compared = "\n".join([table.digest, *map(str, several)]).encode(errors="surrogatepass")
    digest = hash_of(compared).digest()
    known = load_known(store, state, NAME, VERSION)
    if not full and known is not None and known.compared == digest:
        return len(select(store.query, bind(ALIGNED, prefix=_PREFIX)))
    stored = load_hashes(store, [ALIGNMENTS])
    made = build_alignments(several, table)
    replace: dict[NamedNode, Sequence[Quad]] = {graph: quads for graph, (quads, _) in made.items()}
    origins = {graph: RecordOrigin("", (), sources) for graph, (_, sources) in made.items()}
    replace |= {graph: () for graph in stored if graph not in made}
    refresh_proposals(store, several, table, (quad for quads in replace.values() for quad in quads))
    if replace:
        run = Run(Agent("loaders.alignments", VERSION), {"names": table.digest})
        store.commit(replace, build_load_patch(run, store, replace, origins))
    finish(store, state, NAME, VERSION, digest)
    return sum(quad.predicate == RDF.predicate for quads in replace.values() for quad in quads)


def build_alignments(
    several: Iterable[Named], table: Table
) -> Mapping[NamedNode, tuple[Sequence[Quad], Sequence[NamedNode]]]:
    """Build the graphs of alignments, each with the graphs that it was derived from."""
    named = [each for each in several if each.plain]
    matcher = Matcher(filter_possible(table.labels(), {each.plain for each in named}), table.confusable())
    quads: dict[NamedNode, dict[Quad, None]] = defaultdict(dict)
    sources: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    for each in named:
        whole = [match for match in matcher.find(each.plain, [each.language]) if match[:2] == (0, len(each.plain))]
        graph = NamedNode(ALIGNMENTS + each.unit)
        for match in whole:
            quads[graph].update(dict.fromkeys(describe_topic(each, graph)))
            quads[graph].update(dict.fromkeys(_to_quads(each, match, whole, graph)))
            sources[graph].add(each.graph)
    return {graph: (list(found), sorted(sources[graph], key=str)) for graph, found in quads.items()}


def _to_quads(each: Named, match: Match, whole: Sequence[Match], graph: NamedNode) -> Sequence[Quad]:
    """Build the claim that a name is that of a concept."""
    base = match.concept.rpartition("/")[0]
    alike = sum(other.concept.rpartition("/")[0] == base for other in whole)
    confidence = CONFIDENCES[match.kind] if alike == 1 else AMBIGUOUS
    triple = each.node, each.predicate, NamedNode(match.concept)
    return build_alignment(graph, triple, confidence, f"{match.kind}-equality")[1]
