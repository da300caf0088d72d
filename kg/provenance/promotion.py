"""Claims that are taken for true: the triple that a claim states is asserted once a claim of it is sure enough.

A claim stands in ``graph/ext/...``. It is promoted from a confidence on, which the rule states, or when a person
accepted it (``kg:accepts`` in a graph below ``graph/cur/``), and never when one rejected it (``kg:rejects``). The edges
of a graph of claims stand in the graph of the same name below ``graph/der/promote/``, which is made anew in every
commit that changes the claims or what people say of them; so an edge goes with its last live claim. What is said of a
claim in any other graph, and claims that people write themselves, count for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule, Run
from kg.sparql.terms import bind
from kg.store.difference import content_sha256
from kg.store.ownership import CURATED
from kg.store.protocol import GraphChange, Patch, Store, Term, named_node, select
from kg.vocabulary import DERIVED, EXTRACTED, KG, RDF, SOURCED

THRESHOLD: Final = Decimal("0.7")
"""The confidence from which a claim is promoted."""

PROMOTION: Final = Rule("promote", "1", "a claim's triple, when it is sure enough or accepted", str(THRESHOLD))

JUDGED: Final = """
SELECT ?g ?review ?claim WHERE { GRAPH ?g { ?review $verdict ?claim } FILTER(STRSTARTS(STR(?g), $prefix)) }"""

CLAIMED_IN: Final = """
SELECT DISTINCT ?g WHERE {
  VALUES ?claim { $claims } GRAPH ?g { ?claim rdf:subject ?s } FILTER(STRSTARTS(STR(?g), $prefix))
}"""

_PROMOTED: Final = DERIVED + "promote/"
_PARTS: Final = {RDF.subject: 0, RDF.predicate: 1, RDF.object: 2, KG.confidence: 3}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What people decided, by claim: the graphs in which it is accepted, and those in which it is rejected."""

    accepted: Mapping[Term, Collection[NamedNode]] = field(default_factory=dict)
    rejected: Mapping[Term, Collection[NamedNode]] = field(default_factory=dict)

    @classmethod
    def read(cls, store: Store, changes: Sequence[GraphChange] = ()) -> Verdicts:
        """Return what the curated graphs of `store` say once `changes` are made."""
        return cls(_judged(store, KG.accepts, changes), _judged(store, KG.rejects, changes))

    def on(self, claims: Iterable[Term]) -> list[NamedNode]:
        """Return the graphs in which any of `claims` is accepted or rejected."""
        known = set(claims)
        found = {
            graph
            for verdicts in (self.accepted, self.rejected)
            for claim in verdicts.keys() & known
            for graph in verdicts[claim]
        }
        return sorted(found, key=str)


def _judged(store: Store, verdict: NamedNode, changes: Sequence[GraphChange]) -> dict[Term, set[NamedNode]]:
    rows = select(store.query, bind(JUDGED, verdict=verdict, prefix=Literal(CURATED)))
    reviews = {(named_node(row["g"]), row["review"], row["claim"]) for row in rows}
    for change in changes:
        graph = change.graph
        reviews -= {(graph, quad.subject, quad.object) for quad in _reviews(graph, change.removed, verdict)}
        reviews |= {(graph, quad.subject, quad.object) for quad in _reviews(graph, change.added, verdict)}
    found: dict[Term, set[NamedNode]] = defaultdict(set)
    for graph, _, claim in reviews:
        found[claim].add(graph)
    return found


def _reviews(graph: NamedNode, quads: Iterable[Quad], *verdicts: NamedNode) -> Iterator[Quad]:
    if graph.value.startswith(CURATED):
        yield from (quad for quad in quads if quad.predicate in verdicts)


def build_edges(claims: Iterable[Quad], graph: NamedNode, verdicts: Verdicts, asserted: Iterable[Quad]) -> list[Quad]:
    """Return what `graph` is to say of the claims in these quads; `asserted` are quads that say a triple already."""
    found: dict[Quad, None] = {}
    for claim, (subject, predicate, value, confidence) in _claims(claims).items():
        if (
            isinstance(subject, NamedNode)
            and isinstance(predicate, NamedNode)
            and isinstance(value, NamedNode | Literal)
            and claim not in verdicts.rejected
            and (claim in verdicts.accepted or _confidence(confidence) >= THRESHOLD)
        ):
            found[Quad(subject, predicate, value, graph)] = None
    if not found:
        return []
    subjects = {edge.subject for edge in found}
    said = {quad.triple for quad in asserted if quad.subject in subjects}
    return [edge for edge in found if edge.triple not in said]


def build_reviewed_edges(store: Store, changes: Sequence[GraphChange]) -> Derived:
    """Return the graphs of edges that become others when people make `changes`: what they accept is there, what they
    reject is not. To be asked while nobody else can write.
    """
    claims = {
        quad.object
        for change in changes
        for quad in _reviews(change.graph, change.added | change.removed, KG.accepts, KG.rejects)
        if isinstance(quad.object, NamedNode)
    }
    if not claims:
        return {}
    rows = select(store.query, bind(CLAIMED_IN, claims=sorted(claims, key=str), prefix=Literal(EXTRACTED)))
    held = {graph: store.graph(graph) for row in rows for graph in [named_node(row["g"])]}
    return _promoted(store, held, Verdicts.read(store, changes))


def build_load_patch(
    run: Run, store: Store, replace: Mapping[NamedNode, Sequence[Quad]], records: Mapping[NamedNode, RecordOrigin]
) -> Callable[[Sequence[GraphChange]], Patch]:
    """Return what `Store.commit` asks for when a load makes graphs hold `replace`: what `run` says of them, and the
    graphs of edges that follow from the claims in them, by what people have decided until that moment.
    """

    def patch(changes: Sequence[GraphChange]) -> Patch:
        claims = {graph: quads for graph, quads in replace.items() if graph.value.startswith(EXTRACTED)}
        made = _promoted(store, claims, Verdicts.read(store), replace) if claims else {}
        origins = {**records, **{graph: origin for graph, (_, origin) in made.items()}}
        following = [
            GraphChange(graph, frozenset(), frozenset(), content_sha256(quads) if quads else None)
            for graph, (quads, _) in made.items()
        ]
        found = run.describe(store, origins)([*changes, *following])
        return Patch(found.remove, found.add, {graph: quads for graph, (quads, _) in made.items()})

    return patch


def _promoted(
    store: Store,
    claims: Mapping[NamedNode, Sequence[Quad]],
    verdicts: Verdicts,
    replace: Mapping[NamedNode, Sequence[Quad]] | None = None,
) -> Derived:
    """Return the graphs of edges that do not hold yet what follows from these graphs of claims."""
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for graph, quads in claims.items():
        unit = graph.value.removeprefix(EXTRACTED)
        source, own = NamedNode(SOURCED + unit), NamedNode(_PROMOTED + unit)
        asserted = (replace or {}).get(source)
        found = build_edges(quads, own, verdicts, store.graph(source) if asserted is None else asserted)
        if set(found) != set(store.graph(own)):
            origin = RecordOrigin("", (), (graph, *verdicts.on(_claims(quads))), PROMOTION)
            made[own] = found, origin
    return made


def _claims(quads: Iterable[Quad]) -> dict[Term, list[Term | None]]:
    """Return subject, predicate, object and confidence of each claim."""
    parts: dict[Term, list[Term | None]] = defaultdict(lambda: [None] * len(_PARTS))
    for quad in quads:
        if (place := _PARTS.get(quad.predicate)) is not None:
            parts[quad.subject][place] = quad.object
    return parts


def _confidence(term: Term | None) -> Decimal:
    """Return a confidence from 0 to 1; what is no such number is none at all."""
    try:
        number = Decimal(term.value) if isinstance(term, Literal) else Decimal(0)
    except InvalidOperation:
        return Decimal(0)
    return number if number.is_finite() and number <= 1 else Decimal(0)
