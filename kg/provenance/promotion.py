"""Promotion of claims: the triple of a claim becomes an asserted edge at a confidence of `THRESHOLD` or more.

Claims are in ``graph/ext/...``. A claim is promoted at the confidence of the rule, or if a person accepted it
(``kg:accepts`` in a graph below ``graph/cur/``), but never if a person rejected it (``kg:rejects``). The edges of a
graph of claims are in the graph of the same name below ``graph/der/promote/``. Several files may state a relation of an
entity, so its edges are in ``graph/der/promote/entity/{type}/{norm}``. Every commit that changes the claims or
their reviews rebuilds these graphs, so an edge disappears with its last valid claim. Statements about a claim in any
other graph, and claims written by people, are ignored.
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
from kg.store.protocol import GraphChange, Patch, Query, Store, Term, named_node, select, select_each
from kg.vocabulary import CITATIONS, DERIVED, ENTITIES, EXTRACTED, KG, RDF, SOURCED, get_named_district, iri_prefix

THRESHOLD: Final = Decimal("0.7")
"""Minimum confidence for promotion."""

PROMOTION: Final = Rule("promote", "1", "a claim's triple, when it is sure enough or accepted", str(THRESHOLD))

JUDGED: Final = """
SELECT ?g ?review ?claim WHERE { GRAPH ?g { ?review $verdict ?claim } FILTER(STRSTARTS(STR(?g), $prefix)) }"""

CLAIMED_IN: Final = """
SELECT DISTINCT ?g WHERE {
  VALUES ?claim { $claims } GRAPH ?g { ?claim rdf:subject ?s } FILTER(STRSTARTS(STR(?g), $prefix))
}"""

SUBJECTS: Final = """
SELECT DISTINCT ?subject WHERE { VALUES ?graph { $graphs } GRAPH ?graph { ?claim rdf:subject ?subject } }"""

STATED_OF: Final = """
SELECT ?graph ?claim ?subject ?predicate ?object ?confidence WHERE {
  VALUES ?subject { $subjects }
  GRAPH ?graph {
    ?claim rdf:subject ?subject ; rdf:predicate ?predicate ; rdf:object ?object ; kg:confidence ?confidence
  }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

_ENTITY: Final = iri_prefix("entity")
PROMOTED: Final = DERIVED + "promote/"
"""IRI prefix of the graphs of edges, followed by the path of the graph of their claims."""
_PARTS: Final = {RDF.subject: 0, RDF.predicate: 1, RDF.object: 2, KG.confidence: 3}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Reviews by claim: the graphs in which it is accepted, and those in which it is rejected."""

    accepted: Mapping[Term, Collection[NamedNode]] = field(default_factory=dict)
    rejected: Mapping[Term, Collection[NamedNode]] = field(default_factory=dict)
    by_review: Mapping[Term, Collection[Term]] = field(default_factory=dict)
    """Claims by their review (`kg.provenance.findings`)."""
    namings: Mapping[str, Collection[NamedNode]] = field(default_factory=dict)
    """Claims that name a district, by its IRI."""

    @classmethod
    def load(cls, query: Query, changes: Sequence[GraphChange] = ()) -> Verdicts:
        """Load the reviews in the curated graphs as they will be after `changes`."""
        accepted, rejected = (_load_verdicts(query, verdict, changes) for verdict in (KG.accepts, KG.rejects))
        claims: dict[Term, dict[Term, set[NamedNode]]] = {KG.accepts: defaultdict(set), KG.rejects: defaultdict(set)}
        by_review: dict[Term, set[Term]] = defaultdict(set)
        namings: dict[str, set[NamedNode]] = defaultdict(set)
        for verdict, reviews in ((KG.accepts, accepted), (KG.rejects, rejected)):
            for graph, review, claim in reviews:
                claims[verdict][claim].add(graph)
                by_review[review].add(claim)
                if isinstance(claim, NamedNode) and (district := get_named_district(claim)) is not None:
                    namings[district.value].add(claim)
        return cls(claims[KG.accepts], claims[KG.rejects], by_review, namings)

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


def _load_verdicts(
    query: Query, verdict: NamedNode, changes: Sequence[GraphChange]
) -> set[tuple[NamedNode, Term, Term]]:
    """Load graph, review and claim of each verdict of one kind."""
    rows = select(query, bind(JUDGED, verdict=verdict, prefix=Literal(CURATED)))
    reviews: set[tuple[NamedNode, Term, Term]] = {(named_node(row["g"]), row["review"], row["claim"]) for row in rows}
    for change in changes:
        graph = change.graph
        reviews -= {(graph, quad.subject, quad.object) for quad in _reviews(graph, change.removed, verdict)}
        reviews |= {(graph, quad.subject, quad.object) for quad in _reviews(graph, change.added, verdict)}
    return reviews


def _reviews(graph: NamedNode, quads: Iterable[Quad], *verdicts: NamedNode) -> Iterator[Quad]:
    if graph.value.startswith(CURATED):
        yield from (quad for quad in quads if quad.predicate in verdicts)


def build_edges(claims: Iterable[Quad], graph: NamedNode, verdicts: Verdicts, asserted: Iterable[Quad]) -> list[Quad]:
    """Build the edges in `graph` for the claims in these quads, except triples that `asserted` already contains."""
    found: dict[Quad, None] = {}
    for claim, (subject, predicate, value, confidence) in _claims(claims).items():
        if (
            isinstance(subject, NamedNode)
            and isinstance(predicate, NamedNode)
            and isinstance(value, NamedNode | Literal)
            and is_promoted(confidence, accepted=claim in verdicts.accepted, rejected=claim in verdicts.rejected)
        ):
            found[Quad(subject, predicate, value, graph)] = None
    if not found:
        return []
    subjects, predicates = {edge.subject for edge in found}, {edge.predicate for edge in found}
    known = {quad.triple for quad in asserted if quad.predicate in predicates and quad.subject in subjects}
    return [edge for edge in found if edge.triple not in known]


def find_reviews(changes: Sequence[GraphChange]) -> tuple[set[NamedNode], set[NamedNode]]:
    """Find the claims that `changes` review, and those of which they retract a review."""
    added, removed = set[NamedNode](), set[NamedNode]()
    for change in changes:
        for quads, claims in ((change.added, added), (change.removed, removed)):
            reviews = _reviews(change.graph, quads, KG.accepts, KG.rejects)
            claims.update(quad.object for quad in reviews if isinstance(quad.object, NamedNode))
    return added, removed


def build_reviewed_edges(store: Store, changes: Sequence[GraphChange]) -> Derived:
    """Build the graphs of edges that change with the reviews in `changes`. Call it under the write lock."""
    claims = set[NamedNode]().union(*find_reviews(changes))
    if not claims:
        return {}
    rows = select(store.query, bind(CLAIMED_IN, claims=sorted(claims, key=str), prefix=Literal(EXTRACTED)))
    held = {graph: store.graph(graph) for row in rows for graph in [named_node(row["g"])]}
    return _promote(store, held, Verdicts.load(store.query, changes))


def build_load_patch(
    run: Run,
    store: Store,
    replace: Mapping[NamedNode, Sequence[Quad]],
    records: Mapping[NamedNode, RecordOrigin],
    invalidated: Collection[NamedNode] = (),
) -> Callable[[Sequence[GraphChange]], Patch]:
    """Return the `describe` of `Store.commit` for a load of `replace`: provenance by `run`, and promoted edges.

    The edges follow from the claims in `replace` and the reviews at the time of the commit. Those of claims in
    `invalidated` graphs go with it.
    """

    def patch(changes: Sequence[GraphChange]) -> Patch:
        given = {**replace, **dict.fromkeys(invalidated, ())}
        claims = {graph: quads for graph, quads in given.items() if graph.value.startswith(EXTRACTED)}
        made = _promote(store, claims, Verdicts.load(store.query), replace) if claims else {}
        origins = {**records, **{graph: origin for graph, (_, origin) in made.items()}}
        following = [
            GraphChange(graph, frozenset(), frozenset(), content_sha256(quads) if quads else None)
            for graph, (quads, _) in made.items()
        ]
        found = run.describe(store, origins)([*changes, *following])
        return Patch(found.remove, found.add, {graph: quads for graph, (quads, _) in made.items()}, invalidated)

    return patch


def _promote(
    store: Store,
    claims: Mapping[NamedNode, Sequence[Quad]],
    verdicts: Verdicts,
    replace: Mapping[NamedNode, Sequence[Quad]] | None = None,
) -> Derived:
    """Build the graphs of edges that differ from the stored ones, for these graphs of claims."""
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    of_entities = {graph: quads for graph, quads in claims.items() if graph.value.startswith(ENTITIES)}
    if of_entities:
        made |= _promote_relations(store, of_entities, verdicts)
    for graph, quads in claims.items():
        unit = graph.value.removeprefix(EXTRACTED)
        # Both families of claims continue with the path of their record.
        record = graph.value.removeprefix(CITATIONS).removeprefix(ENTITIES).removeprefix(EXTRACTED)
        source, own = NamedNode(SOURCED + record), NamedNode(PROMOTED + unit)
        asserted = (replace or {}).get(source)
        if graph in of_entities:
            quads = _without_entities(quads)
        found = build_edges(quads, own, verdicts, store.graph(source) if asserted is None else asserted)
        if set(found) != set(store.graph(own)):
            origin = RecordOrigin("", (), (graph, *verdicts.on(_claims(quads))), PROMOTION)
            made[own] = found, origin
    return made


def _without_entities(quads: Iterable[Quad]) -> list[Quad]:
    """Return the quads of the claims whose subject is not an entity."""
    about = {quad.subject for quad in quads if quad.predicate == RDF.subject and _is_entity(quad.object)}
    return [quad for quad in quads if quad.predicate in _PARTS and quad.subject not in about]


def _is_entity(term: Term) -> bool:
    return isinstance(term, NamedNode) and term.value.startswith(_ENTITY)


def _promote_relations(store: Store, claims: Mapping[NamedNode, Sequence[Quad]], verdicts: Verdicts) -> Derived:
    """Build the edges of the entities that these graphs state relations of, or stated before, where they differ."""
    stated: dict[NamedNode, list[tuple[NamedNode, Term, Quad]]] = {}
    now = (quad.object for quads in claims.values() for quad in quads if quad.predicate == RDF.subject)
    before = (row["subject"] for row in select(store.query, bind(SUBJECTS, graphs=list(claims))))
    for term in (*now, *before):
        if isinstance(term, NamedNode) and _is_entity(term):
            stated.setdefault(term, [])
    subjects, prefix = sorted(stated, key=str), Literal(ENTITIES)
    for row in select_each(store.query_sources, STATED_OF, "subjects", subjects, prefix=prefix):
        graph, subject = named_node(row["graph"]), named_node(row["subject"])
        if graph not in claims and isinstance(row["object"], NamedNode):
            edge = Quad(subject, named_node(row["predicate"]), row["object"], _get_entity_edges(subject))
            _add_edge(stated[subject], graph, row["claim"], row["confidence"], verdicts, edge)
    for graph, quads in claims.items():
        for claim, (subject_, predicate, value, confidence) in _claims(quads).items():
            if not (isinstance(subject_, NamedNode) and subject_ in stated):
                continue
            if isinstance(predicate, NamedNode) and isinstance(value, NamedNode):
                edge = Quad(subject_, predicate, value, _get_entity_edges(subject_))
                _add_edge(stated[subject_], graph, claim, confidence, verdicts, edge)
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for subject, edges in stated.items():
        own = _get_entity_edges(subject)
        wanted = list(dict.fromkeys(edge for _, _, edge in edges))
        if set(wanted) != set(store.graph(own)):
            graphs = sorted({graph for graph, _, _ in edges}, key=str)
            origin = RecordOrigin("", (), (*graphs, *verdicts.on(claim for _, claim, _ in edges)), PROMOTION)
            made[own] = wanted, origin
    return made


def _get_entity_edges(entity: NamedNode) -> NamedNode:
    """Return the name of the graph of the edges of an entity."""
    return NamedNode(f"{PROMOTED}entity/{entity.value.removeprefix(_ENTITY)}")


def _add_edge(
    edges: list[tuple[NamedNode, Term, Quad]],
    graph: NamedNode,
    claim: Term,
    confidence: Term | None,
    verdicts: Verdicts,
    edge: Quad,
) -> None:
    if is_promoted(confidence, accepted=claim in verdicts.accepted, rejected=claim in verdicts.rejected):
        edges.append((graph, claim, edge))


def _claims(quads: Iterable[Quad]) -> dict[Term, list[Term | None]]:
    """Return subject, predicate, object and confidence of each claim."""
    parts: dict[Term, list[Term | None]] = defaultdict(lambda: [None] * len(_PARTS))
    for quad in quads:
        if (place := _PARTS.get(quad.predicate)) is not None:
            parts[quad.subject][place] = quad.object
    return parts


def is_promoted(confidence: Term | None, *, accepted: bool, rejected: bool) -> bool:
    """Whether the rule makes the triple of a claim with this confidence and these reviews an edge."""
    return not rejected and (accepted or parse_confidence(confidence) >= THRESHOLD)


def parse_confidence(term: Term | None) -> Decimal:
    """Return a confidence from 0 to 1; invalid values count as 0."""
    try:
        number = Decimal(term.value) if isinstance(term, Literal) else Decimal(0)
    except InvalidOperation:
        return Decimal(0)
    return number if number.is_finite() and number <= 1 else Decimal(0)
