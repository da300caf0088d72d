"""The tool `hybrid_query`: texts of files by words and meaning, and those that relations of entities lead to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from pydantic import Field
from pyoxigraph import Literal

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.asked import Asked
from kg.retrieval.evidence import Unit, describe, language_of, load_units, origin_of, place_of
from kg.retrieval.excerpts import LONG_SNIPPET_CHARACTERS, cut_excerpt
from kg.retrieval.filters import Scope
from kg.retrieval.hybrid_search import retrieve
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, bounded, clean_query
from kg.retrieval.results import MOST_RESULTS, QUERY_CHARACTERS, Judged, Layout, Lean, Provenance, Query, clipped
from kg.retrieval.search_notes import advise, describe_ranking
from kg.settings import Settings
from kg.text import quoted
from kg.tools.documents.claims import Stated, load_stated
from kg.tools.documents.expansion import Expansion, Path, expand
from kg.tools.documents.nodes import Node, get_path, load_nodes
from kg.tools.documents.relations import PROPERTIES, Edge, Relation
from kg.tools.search.passages import build_section
from kg.vocabulary import SOURCED

PREFILTER: Final = 50
"""Least number of texts that the search proposes before the expansion."""
OTHER_RELATIONS: Final = 0.5
"""Score of a relation that the settings do not name."""
SHOWN_ENTITIES: Final = 20
SHOWN_EDGES: Final = 24
WORDS: Final = 300

# In its graph, so that a file that a user describes is none.
FILES_OF_SOURCES: Final = "GRAPH ?record { ?document a kg:File } FILTER(STRSTARTS(STR(?record), $records))"
FILES_GRAPHS: Final = SOURCED + "files/"


class FoundChunk(Lean):
    """A text of a file."""

    id: str
    doc_id: str
    path: str = Field(description="Collection and path of the file")
    section: str | None = Field(None, description="Headings above the snippet")
    language: str | None = Field(None, description="Of the text, else of its file (BCP 47)")
    snippet: str
    disputed_order: bool | None = Field(None, description="True if the file has its words in another order")
    score: float
    hops: int = Field(description="0: a hit of the search")
    relation: Relation | None = None
    provenance: Provenance


class FoundEntity(Lean):
    """An entity, concept, law or place."""

    id: str
    name: str
    type: str


class FoundEdge(Lean):
    """A relation, with the words that state it."""

    src: str
    dst: str
    rel: Relation
    confidence: float | None = Field(None, description="Absent: a source states it as data")
    chunk: str | None = Field(None, description="Text that states it, if not src")
    words: str | None = None


class HybridResult(Judged):
    """Texts, best first, with an explanation of each."""

    layout: ClassVar[Layout] = Layout(paged=("chunks", "explanations"))

    chunks: list[FoundChunk]
    entities: list[FoundEntity]
    edges: list[FoundEdge]
    explanations: list[NoteText] = Field(description="Why each of the chunks was selected")
    nearest: list[FoundChunk] = Field(
        default_factory=list,
        description="Without chunks: the nearest ones, probably not an answer",
        exclude_if=lambda value: not value,
    )


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the final score, from the settings."""

    settings: Settings
    parts: dict[tuple[int, Relation | None], float] = field(default_factory=dict)
    """The parts of the score that were computed, by hops and relation."""

    def graph(self, hops: int, relation: Relation | None) -> float:
        """Compute the part of the score for hops and relation."""
        known = self.parts.get((hops, relation))
        if known is not None:
            return known
        given = self.settings
        # A hit needs no relation, so none makes a text better than an equal hit.
        related = 1.0 if relation is None else given.hybrid_relation_scores.get(relation, OTHER_RELATIONS)
        part = given.hybrid_hop_weight * given.hybrid_hop_scores[hops] + given.hybrid_relation_weight * related
        return self.parts.setdefault((hops, relation), part)

    @property
    def hits_lead(self) -> bool:
        """Whether no text that relations lead to can rank before a hit that is at least as similar."""
        given = self.settings
        relations: list[Relation | None] = [None, *PROPERTIES]
        reached = (self.graph(hops, each) for hops in range(1, len(given.hybrid_hop_scores)) for each in relations)
        return self.graph(0, None) >= max(reached, default=0.0)

    def score(self, semantic: float, hops: int, relation: Relation | None) -> float:
        """Compute the final score."""
        return round(self.settings.hybrid_semantic_weight * semantic + self.graph(hops, relation), 6)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A text with its parts of the score."""

    iri: str
    score: float
    semantic: float
    path: Path
    span: tuple[int, int] | None
    """The offsets of its best part, if it has several."""


Relations = Annotated[list[Relation], Field(max_length=len(PROPERTIES), description="Relations to follow")]


def hybrid_query(
    kg: KnowledgeGraph,
    q: Query,
    k: Annotated[int, Field(ge=1, le=MOST_RESULTS, description="Number of chunks")] = 40,
    hops: Annotated[int, Field(ge=0, le=3, description="Relations to follow from a hit")] = 2,
    rels: Relations | None = None,
) -> HybridResult:
    """Find texts of the loaded files by meaning, words, and relations between the entities that they mention.

    Use for questions to a team's documents. `rels` defaults to defines, depends_on, uses, cites. Returns chunks (id,
    doc_id, path, section, snippet, score, provenance), entities, edges (src, dst, rel, confidence, words), explanations
    (one per chunk). covers (0-1): whether they treat the subject.
    Example: hybrid_query(q="how is a tide pump started", k=5, rels=["uses", "depends_on"]).
    Next: `fetch` the ids; `explain_entity` for an entity.
    """
    words = clean_query("q", q, QUERY_CHARACTERS)
    bounded("k", k, 1, MOST_RESULTS)
    weights = Weights(kg.settings)
    most = len(kg.settings.hybrid_hop_scores) - 1
    if hops > most:
        raise InvalidInputError(f"hops is {hops}. It must be from 0 to {most}, since hybrid_hop_scores has no more.")
    relations: Sequence[Relation] = rels if rels is not None else ("defines", "depends_on", "uses", "cites")
    reader = Reader(kg)
    asked = Asked(words)
    scope = Scope((FILES_OF_SOURCES,), terms={"records": [Literal(FILES_GRAPHS)]})
    found = retrieve(reader, asked, scope, limit=max(k, PREFILTER))
    hits = {each.iri: (each.score, each.span) for each in found.units}
    # No other text is as similar as a hit, so those that relations lead to follow the hits.
    is_full = len(hits) >= k and weights.hits_lead
    scores = {iri: score for iri, (score, _) in hits.items()}
    expansion = expand(reader, words, scores, hops, relations, weights.graph, texts=not is_full)
    ranked = _rank(_score_all(reader, asked, hits, expansion), expansion, weights)[:k]
    result = _build(reader, words, ranked, expansion)
    result.covers, result.uncovered_reason = found.relevance.stated, found.relevance.reason
    result.degraded, result.reranked = found.degraded, found.reranked
    result.notes = [*sorted(expansion.notes), *describe_ranking(found, "texts")]
    if not result.chunks:
        result.notes += advise(kg, asked, found, scope, "texts")
        nearest = [_Ranked(each.iri, each.score, each.score, Path(), each.span) for each in found.nearest]
        result.nearest = _build(reader, words, nearest, expansion).chunks
    return reader.finish(result, completeness="truncated" if expansion.notes else "approximate")


_Scored = tuple[float, tuple[int, int] | None]
"""A score, and the span of the part that has it."""


def _score_all(
    reader: Reader, asked: Asked, hits: Mapping[str, _Scored], expansion: Expansion
) -> Mapping[str, _Scored]:
    """Score the hits and the texts that they lead to as one set."""
    if not expansion.paths:
        return hits
    units = [*hits, *sorted(expansion.paths)]
    ranking = asked.rank_all(reader, units=units, limit=len(units))
    scored = {each.iri: (max(0.0, each.score), each.span) for each in ranking.candidates}
    return {iri: scored.get(iri, hits.get(iri, (0.0, None))) for iri in units}


def _rank(scores: Mapping[str, _Scored], expansion: Expansion, weights: Weights) -> list[_Ranked]:
    """Rank all texts by the final score."""
    ranked = []
    for iri, (semantic, span) in scores.items():
        path = expansion.paths.get(iri, Path())
        score = weights.score(semantic, path.hops, path.relation)
        ranked.append(_Ranked(iri, score, round(semantic, 4), path, span))
    return sorted(ranked, key=lambda each: (-each.score, each.path.hops, each.iri))


def _build(reader: Reader, query: str, ranked: Sequence[_Ranked], expansion: Expansion) -> HybridResult:
    units = load_units(reader, [each.iri for each in ranked])
    kept = [each for each in ranked if each.iri in units and units[each.iri].graph.startswith(FILES_GRAPHS)]
    mentioned = Counter(thing for each in kept for thing in expansion.mentioned.get(each.iri, ()))
    # Those on the ways to the texts, and those between nodes that the texts mention.
    known = {*mentioned, *(each.iri for each in kept)}
    between = (edge for edge in expansion.edges if edge.src in known and edge.dst in known)
    edges = list(dict.fromkeys([*(edge for each in kept for edge in each.path.edges), *between]))[:SHOWN_EDGES]
    stated = load_stated(reader, edges, expansion.notes)
    nodes = dict.fromkeys(node for edge in edges for node in (edge.src, edge.dst))
    origins = [each.path.origin for each in kept if each.path.origin is not None]
    often = [thing for thing, _ in mentioned.most_common(SHOWN_ENTITIES)]
    listed = list(dict.fromkeys([*nodes, *often]))[: max(SHOWN_ENTITIES, len(nodes))]
    things = load_nodes(reader, [*listed, *origins])
    descriptions = describe(
        reader, {units[each.iri].document for each in kept}, {units[each.iri].graph for each in kept}
    )
    excerpts = {each.iri: cut_excerpt(units[each.iri].text, query, LONG_SNIPPET_CHARACTERS, each.span) for each in kept}
    shown = {iri: build_section(units[iri].section, excerpt.headings) for iri, excerpt in excerpts.items()}
    chunks, explanations = [], []
    for each in kept:
        unit = units[each.iri]
        chunks.append(
            FoundChunk(
                id=each.iri,
                doc_id=unit.document,
                path=get_path(unit.document),
                section=shown[each.iri],
                language=language_of(descriptions, unit),
                snippet=excerpts[each.iri].words,
                disputed_order=unit.is_disputed or None,
                score=round(each.score, 4),
                hops=each.path.hops,
                relation=each.path.relation,
                provenance=origin_of(reader, descriptions, unit.graph, unit.position, *place_of(descriptions, unit)),
            )
        )
        explanations.append(_explain(each, unit, shown[each.iri], things, stated))
    return HybridResult(
        chunks=chunks,
        entities=[
            FoundEntity(id=iri, name=things[iri].name, type=things[iri].type)
            for iri in listed
            if things[iri].type != "Text"
        ],
        edges=[_build_edge(edge, stated.get(edge)) for edge in edges],
        explanations=explanations,
    )


def _build_edge(edge: Edge, stated: Stated | None) -> FoundEdge:
    if stated is None:
        return FoundEdge(src=edge.src, dst=edge.dst, rel=edge.rel)
    return FoundEdge(
        src=edge.src,
        dst=edge.dst,
        rel=edge.rel,
        confidence=stated.confidence,
        chunk=None if stated.unit == edge.src else stated.unit,
        words=None if stated.words is None else clipped(stated.words.replace("**", ""), WORDS),
    )


def _explain(
    each: _Ranked, unit: Unit, section: str | None, things: Mapping[str, Node], stated: Mapping[Edge, Stated]
) -> str:
    """Explain in a line why a text was selected: its place, its similarity, the relations, and their confidence."""
    place = [get_path(unit.document)]
    if section:
        place.append(f"section {quoted(section)}")
    if unit.lines or unit.pages or unit.page:
        place.append(f"lines {unit.lines}" if unit.lines else f"page {unit.pages or unit.page}")
    reasons = []
    if not each.path.edges:
        reasons.append(f"semantic match {each.semantic:.2f}")
    else:
        count = each.path.hops
        way = "; ".join(_describe(edge, things, stated) for edge in each.path.edges)
        origin = each.path.origin or ""
        start = things[origin].name if origin in things else origin
        reasons.append(f"{count} hop{'s' * (count > 1)} from {start}: {way}")
        if each.path.thing is not None and each.path.thing in things:
            reasons.append(f"it mentions {things[each.path.thing].name}")
        reasons.append(f"semantic match {each.semantic:.2f}")
    return f"{', '.join(place)}: {'; '.join(reasons)}"


def _describe(edge: Edge, things: Mapping[str, Node], stated: Mapping[Edge, Stated]) -> str:
    names = [things[node].name if node in things else node for node in (edge.src, edge.dst)]
    found = stated.get(edge)
    sure = "" if found is None or found.confidence is None else f" (confidence {found.confidence:.2f})"
    return f"{names[0]} {edge.rel} {names[1]}{sure}"
