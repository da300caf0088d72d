"""The tool `concept_neighbors`: direct statements between items, one or two hops away, in either direction."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field
from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import Concepts, load_concepts, one
from kg.retrieval.reader import Reader, bounded, bounded_page, iri_of, page_of
from kg.retrieval.results import Identifier, Lean, Limit, Offset, Result
from kg.sparql.terms import Bindable, bind, quote
from kg.store.protocol import term_text
from kg.tools.concepts.statement_properties import (
    HIERARCHY,
    direct_start,
    pid_of,
    predicate_of,
    property_labels,
    wikibase_of,
)

EDGES_READ: Final = 10_000
"""Maximum number of edges per hop. Truncation is reported."""
FOLLOWED: Final = 1_000
"""Maximum number of concepts that the second hop starts from. Truncation is reported."""

# The nodes are looked up one by one; the FILTER then drops links to other than entities.
OUT: Final = """VALUES ?subject { $nodes } ?subject ?predicate ?object
  FILTER(STRSTARTS(STR(?predicate), $start) && isIRI(?object) && STRSTARTS(STR(?object), $entities))"""
IN: Final = "VALUES ?object { $nodes } ?subject ?predicate ?object FILTER(STRSTARTS(STR(?predicate), $start))"

# One pattern per predicate: with a second VALUES, Oxigraph would scan all statements of the predicates.
OUT_BY: Final = """VALUES ?subject { $nodes } ?subject $predicate ?object FILTER(isIRI(?object))
  BIND($predicate AS ?predicate)"""
IN_BY: Final = "VALUES ?object { $nodes } ?subject $predicate ?object BIND($predicate AS ?predicate)"

LINKS: Final = """
SELECT DISTINCT ?subject ?predicate ?object WHERE {
  #WAYS
} LIMIT $most"""

MENTIONED: Final = """
SELECT ?concept (COUNT(DISTINCT ?unit) AS ?count) WHERE {
  VALUES ?concept { $concepts } ?unit kg:mentions ?concept
} GROUP BY ?concept"""

Direction = Literal["both", "out", "in"]


class EdgeLabels(Lean):
    """The labels of the parts of an edge, if the graph has them."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = None


class EdgeCounts(Lean):
    """The numbers of passages that mention the ends of an edge."""

    subject: int
    object: int


class ConceptEdge(Lean):
    """A statement that links two items."""

    subject_qid: str
    predicate_pid: str
    object_qid: str
    labels: EdgeLabels
    hop: int = Field(description="Distance in hops: 1 or 2")
    counts: EdgeCounts | None = None


class PropertyCount(Lean):
    """The number of edges with a property."""

    pid: str
    label: str | None = None
    count: int


class NeighborResult(Result):
    """Edges, nearest first."""

    edges: list[ConceptEdge]
    by_predicate: list[PropertyCount] = Field(description="Number of edges per property, over all pages")
    entity_base: str | None = Field(None, description="Outside the climate concept store: the IRI is entity_base + QID")


@dataclass(frozen=True, slots=True)
class _Edge:
    subject: str
    predicate: str
    object: str
    hop: int


def concept_neighbors(
    kg: KnowledgeGraph,
    qid: Annotated[Identifier, Field(description="QID, or IRI for other Wikibases")],
    direction: Annotated[Direction, Field(description="Statements of the concept (out), about it (in)")] = "both",
    predicates: Annotated[list[Identifier] | None, Field(max_length=50, description='Only these, e.g. ["P2"]')] = None,
    hops: Annotated[int, Field(ge=1, le=2)] = 1,
    counts: Annotated[bool, Field(description="Also count the passages that mention each end")] = False,
    limit: Limit = 100,
    offset: Offset = 0,
) -> NeighborResult:
    """List the concepts linked to one by direct Wikibase statements, one or two hops away.

    Use to widen or narrow a topic. Returns edges: subject_qid, predicate_pid, object_qid, labels, hop, counts; and
    by_predicate, the number of edges per property.
    Example: concept_neighbors(qid="Q1012", hops=2).
    Next: `concept_mentions` with relevant qids; `concept_properties` for the predicates.
    """
    bounded("hops", hops, 1, 2)
    bounded_page(limit, offset)
    reader = Reader(kg)
    concept = one(reader, "qid", qid)
    concepts = load_concepts(kg)
    wikibase = wikibase_of(concept.entity)
    chosen = [predicate_of(wikibase, text) for text in predicates or ()]
    if not chosen and wikibase is None:
        chosen = list(HIERARCHY)
    reader.start_selection()
    notes: list[str] = []
    steps = _Steps(reader, wikibase, chosen, direction, notes)
    edges = steps.walk(concept.entity, hops)
    labels = property_labels(reader, {edge.predicate for edge in edges})
    used = Counter(edge.predicate for edge in edges)
    page = _page(edges, concepts, used, offset, limit)
    mentioned = _mentioned(reader, concepts, page) if counts else None
    if not edges:
        notes.append(
            f"No such links to {concept.shown}."
            + (' direction="both" also follows the other direction.' if direction != "both" else "")
            + " concept_properties lists the properties of its statements."
        )
    result = NeighborResult(
        edges=[_shown(edge, concepts, labels, mentioned) for edge in page],
        by_predicate=[
            PropertyCount(pid=pid_of(iri), label=labels.get(iri), count=count)
            for iri, count in sorted(used.items(), key=lambda item: (-item[1], item[0]))
        ],
        entity_base=f"{wikibase}entity/" if wikibase and concept.entity == concept.iri else None,
        notes=notes,
    )
    return reader.finish(
        result,
        total=len(edges),
        next_offset=page_of(edges, offset, limit),
        completeness="truncated" if steps.cut else "complete",
    )


class _Steps:
    """A walk from one node that returns every edge once, at its first hop."""

    def __init__(
        self,
        reader: Reader,
        wikibase: str | None,
        predicates: Sequence[NamedNode],
        direction: Direction,
        notes: list[str],
    ) -> None:
        self._reader = reader
        self._wikibase = wikibase
        self._predicates = predicates
        self._direction = direction
        self._notes = notes
        self.cut = False

    def walk(self, start: str, hops: int) -> list[_Edge]:
        found: dict[tuple[str, str, str], _Edge] = {}
        visited, frontier = {start}, [start]
        for hop in range(1, hops + 1):
            for triple in self._step(frontier):
                found.setdefault(triple, _Edge(*triple, hop))
            ends = {end for subject, _, target in found for end in (subject, target)}
            frontier = sorted(ends - visited)
            visited |= ends
            if hop < hops and len(frontier) > FOLLOWED:
                self._say(f"Only {FOLLOWED} of the {len(frontier)} neighbours were followed. Name predicates.")
                frontier = frontier[:FOLLOWED]
            if not frontier:
                break
        return list(found.values())

    def _step(self, nodes: Sequence[str]) -> Iterable[tuple[str, str, str]]:
        ways = {"out": OUT_BY, "in": IN_BY} if self._predicates else {"out": OUT, "in": IN}
        taken = [pattern for way, pattern in ways.items() if self._direction in ("both", way)]
        if self._predicates:
            taken = [
                pattern.replace("$predicate ", f"{quote(each)} ") for pattern in taken for each in self._predicates
            ]
        query = LINKS.replace("#WAYS", "\n  UNION ".join(f"{{ {pattern} }}" for pattern in taken))
        terms: dict[str, Bindable | Sequence[Bindable]] = {
            "nodes": [NamedNode(iri) for iri in nodes],
            "start": RdfLiteral(direct_start(self._wikibase or "")),
            "entities": RdfLiteral(f"{self._wikibase}entity/Q"),
            "most": EDGES_READ + 1,
        }
        given = {name: value for name, value in terms.items() if f"${name}" in query}
        rows = self._reader.tuples("links", bind(query, **given))
        if len(rows) > EDGES_READ:
            self._say(f"Only {EDGES_READ} links were read; there are more. Name predicates.")
        items = f"{self._wikibase}entity/Q" if self._wikibase else ""
        for subject, predicate, target in rows[:EDGES_READ]:
            if isinstance(subject, NamedNode) and isinstance(predicate, NamedNode) and isinstance(target, NamedNode):
                triple = subject.value, predicate.value, target.value
                if triple[0].startswith(items) and triple[2].startswith(items):
                    yield triple

    def _say(self, note: str) -> None:
        self.cut = True
        self._notes.append(note)


def _page(edges: Sequence[_Edge], concepts: Concepts, used: Mapping[str, int], offset: int, limit: int) -> list[_Edge]:
    """Sort by hop, then most frequent predicate, then labels of the ends, and return one page."""

    def by_name(edge: _Edge) -> tuple[object, ...]:
        names = [concepts.label_of(iri) for iri in (edge.subject, edge.object)]
        return [(name is None, name or "") for name in names], edge.subject, edge.object

    groups: dict[tuple[int, int, str], list[_Edge]] = defaultdict(list)
    for edge in edges:
        groups[edge.hop, -used[edge.predicate], edge.predicate].append(edge)
    found: list[_Edge] = []
    at = 0
    for key in sorted(groups):
        group = groups[key]
        start, end = max(offset - at, 0), offset + limit - at
        if start < len(group) and end > 0:
            found.extend(sorted(group, key=by_name)[start:end])
        at += len(group)
    return found


def _shown(
    edge: _Edge, concepts: Concepts, labels: Mapping[str, str], mentioned: Mapping[str, int] | None
) -> ConceptEdge:
    ends = [concepts.at(iri) for iri in (edge.subject, edge.object)]
    subject, target = ends
    counted = None
    if mentioned is not None:
        found = [mentioned.get(end.iri, 0) if end else 0 for end in ends]
        counted = EdgeCounts(subject=found[0], object=found[1])
    return ConceptEdge(
        subject_qid=_id(edge.subject),
        predicate_pid=pid_of(edge.predicate),
        object_qid=_id(edge.object),
        labels=EdgeLabels(
            subject=subject.label if subject else None,
            predicate=labels.get(edge.predicate),
            object=target.label if target else None,
        ),
        hop=edge.hop,
        counts=counted,
    )


def _id(iri: str) -> str:
    return iri.rpartition("/")[2] if wikibase_of(iri) else iri.removeprefix("cpr://concept/")


def _mentioned(reader: Reader, concepts: Concepts, page: Sequence[_Edge]) -> Mapping[str, int]:
    """Count the passages that mention each concept at the ends of these edges."""
    ends = {concepts.at(iri) for edge in page for iri in (edge.subject, edge.object)}
    nodes = [NamedNode(end.iri) for end in ends if end is not None]
    if not nodes:
        return {}
    rows = reader.rows("passages that mention them", bind(MENTIONED, concepts=sorted(nodes, key=str)))
    return {iri_of(row["concept"]): int(term_text(row["count"])) for row in rows if "concept" in row}
