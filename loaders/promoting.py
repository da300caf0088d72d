"""Claims that are taken for true: the triple that a claim states is asserted once a claim of it is sure enough.

A claim is promoted from a confidence on, which the rule states, or when a person accepted it (``kg:accepts`` in a graph
below ``graph/cur/``), and never when one rejected it (``kg:rejects``). An edge goes with its last live claim, for the
graph of promoted edges is made anew with the graph of claims that it is made from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance import Rule
from kg.sparql.terms import bind
from kg.store.protocol import Store, Term, select
from kg.vocabulary import BASE, KG, RDF

THRESHOLD: Final = Decimal("0.7")
"""The confidence from which a claim is promoted."""

PROMOTION: Final = Rule("promote", "1", "a claim's triple, when it is sure enough or accepted", str(THRESHOLD))

JUDGED: Final = """
SELECT ?claim WHERE { GRAPH ?g { ?review $verdict ?claim } FILTER(STRSTARTS(STR(?g), $prefix)) }"""

_CURATED: Final = Literal(BASE + "graph/cur/")
_PARTS: Final = {RDF.subject: 0, RDF.predicate: 1, RDF.object: 2, KG.confidence: 3}


class Verdicts:
    """The claims that people accepted, and those that they rejected."""

    def __init__(self, accepted: Collection[Term] = (), rejected: Collection[Term] = ()) -> None:
        self.accepted: Final = frozenset(accepted)
        self.rejected: Final = frozenset(rejected)

    @classmethod
    def read(cls, store: Store) -> Verdicts:
        """Return what the curated graphs of `store` say."""
        return cls(_judged(store, KG.accepts), _judged(store, KG.rejects))


def _judged(store: Store, verdict: NamedNode) -> list[Term]:
    found = select(store.query, bind(JUDGED, verdict=verdict, prefix=_CURATED))
    return [row[0] for row in found.rows if row[0] is not None]


def promoted(claims: Sequence[Quad], graph: NamedNode, verdicts: Verdicts, asserted: Collection[Quad]) -> list[Quad]:
    """Return what `graph` is to say of the claims in these quads; `asserted` are quads that say a triple already."""
    parts: Mapping[Term, list[Term | None]] = defaultdict(lambda: [None] * 4)
    for quad in claims:
        if (place := _PARTS.get(quad.predicate)) is not None:
            parts[quad.subject][place] = quad.object
    said = {(quad.subject, quad.predicate, quad.object) for quad in asserted}
    edges: dict[Quad, None] = {}
    for claim, (subject, predicate, value, confidence) in parts.items():
        if (
            isinstance(subject, NamedNode)
            and isinstance(predicate, NamedNode)
            and isinstance(value, NamedNode | Literal)
            and claim not in verdicts.rejected
            and (claim in verdicts.accepted or _number(confidence) >= THRESHOLD)
            and (subject, predicate, value) not in said
        ):
            edges[Quad(subject, predicate, value, graph)] = None
    return list(edges)


def _number(term: Term | None) -> Decimal:
    try:
        return Decimal(term.value) if isinstance(term, Literal) else Decimal(0)
    except InvalidOperation:
        return Decimal(0)
