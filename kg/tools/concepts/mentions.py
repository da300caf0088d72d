"""The tool `concept_mentions`: passages that mention concepts, as found in their text when it was loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import resolve_concepts
from kg.retrieval.evidence import build_evidence, load_units
from kg.retrieval.filters import Scope, compile_scope
from kg.retrieval.hybrid_search import OWN, newest_first
from kg.retrieval.listing import DocumentKey, load_document_keys
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of
from kg.retrieval.results import (
    Evidence,
    Identifier,
    Language,
    Limit,
    Name,
    Offset,
    PlaceName,
    Result,
    SearchFilters,
    find_places,
)
from kg.sparql.terms import bind
from kg.store.protocol import Term, batched, term_text

CONSIDERED: Final = 10_000
"""Maximum number of passages that are ranked, those with most mentions. Truncation is reported."""
_AT_ONCE: Final = 5_000

# Mentions are counted before their documents are looked up: in one pattern, Oxigraph takes four times as long.
MENTIONING: Final = """
SELECT ?unit ?document ?root ?count WHERE {
  { SELECT ?unit ?root (COUNT(DISTINCT ?mention) AS ?count) WHERE {
    VALUES (?root ?concept) { $families } ?mention kg:object ?concept ; oa:hasSource ?unit
    #NESTED
  } GROUP BY ?unit ?root #CUT
  }
  ?unit schema:text ?words OPTIONAL { ?unit dcterms:isPartOf ?whole } BIND(COALESCE(?whole, ?unit) AS ?document)
  #DOCUMENT
  #UNIT
} ORDER BY DESC(?count) LIMIT $most"""

LONGEST: Final = "OPTIONAL { ?mention kg:nestedIn ?longer } FILTER(!BOUND(?longer))"

# Without filters, passages beyond the limit need no lookup of their documents.
CUT: Final = "ORDER BY DESC(?count) LIMIT $most"

POSITIONS: Final = """
SELECT ?unit ?position WHERE { VALUES ?unit { $units } ?unit schema:position ?position }"""

# One level at a time: a path with * would read the graphs of users too (`kg.sparql.graph_exclusion`).
NARROWER: Final = """
SELECT DISTINCT ?broader ?concept WHERE {
  VALUES ?broader { $broader } { ?concept skos:broader ?broader } UNION { ?broader skos:narrower ?concept }
} LIMIT $most"""

NARROWER_READ: Final = 500
"""Maximum number of narrower concepts. Truncation is reported."""

Qids = Annotated[list[Identifier], Field(min_length=1, max_length=50, description="QIDs from concept_find, or IRIs")]


class MentionResult(Result):
    """Passages with the mentioned concepts, best first."""

    evidence: list[Evidence]


@dataclass(frozen=True, slots=True)
class Mentioning:
    """A passage that mentions some of the concepts, with its score."""

    iri: str
    document: str
    score: float


@dataclass(frozen=True, slots=True)
class Counted:
    """The passages, best first, at most `CONSIDERED`; `cut` if there are more."""

    passages: Sequence[Mentioning]
    cut: bool


def concept_mentions(
    kg: KnowledgeGraph,
    qids: Qids,
    iso3: Annotated[list[PlaceName] | None, Field(max_length=300)] = None,
    place: Annotated[list[PlaceName] | None, Field(max_length=300)] = None,
    language: Annotated[list[Language] | None, Field(max_length=100)] = None,
    corpus_type: Annotated[list[Name] | None, Field(max_length=100)] = None,
    narrower: Annotated[bool, Field(description="Also count mentions of narrower concepts")] = False,
    nested: Annotated[
        bool, Field(description="Also count names within a longer one of another concept: energy in solar energy")
    ] = True,
    limit: Limit = 20,
    offset: Offset = 0,
) -> MentionResult:
    """List the passages that mention concepts by label or alias, with the offsets of each mention.

    Use for citable evidence on a topic. Returns evidence: id, document, passage, score, provenance,
    concept_matches{qid, label, match_type, offsets, words}.
    Example: concept_mentions(qids=["Q1012"], limit=5).
    Next: `fetch` the document id for the text around it.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    asked = [concept.iri for concept in resolve_concepts(reader, "qids", qids)]
    scope, notes = compile_scope(
        reader,
        SearchFilters(iso3=iso3 or [], place=place or [], language=language or [], corpus_type=corpus_type or []),
    )
    reader.start_selection()
    families = {iri: {iri} for iri in asked}
    wide = False
    if narrower:
        families, wide = narrower_of(reader, asked)
        if wide:
            notes.append(f"Only {NARROWER_READ} narrower concepts were counted; there are more. Name one of them.")
    counting = count_mentions(reader, families, scope, nested=nested)
    counted, cut = counting.passages, counting.cut
    if cut:
        notes.append(
            f"More than {CONSIDERED} passages mention them. Only those with most mentions were ranked. Add filters."
        )
    page = [each.iri for each in ordered(reader, counted, offset, limit)]
    units = load_units(reader, page)
    members = {iri for family in families.values() for iri in family}
    found = build_evidence(
        reader,
        [units[iri] for iri in page if iri in units],
        {each.iri: each.score for each in counted},
        mentioned=members,
        nested=nested,
    )
    if not counted:
        more = "" if narrower else " narrower=true also counts narrower concepts."
        notes.append(f"No passage mentions them by label or alias.{more} `search` finds passages by meaning.")
    return reader.finish(
        MentionResult(evidence=found, notes=notes, places=find_places(page, units)),
        total=None if cut or wide else len(counted),
        next_offset=page_of(counted, offset, limit),
        completeness="truncated" if cut or wide else "complete",
    )


def narrower_of(reader: Reader, roots: Collection[str]) -> tuple[dict[str, set[str]], bool]:
    """Load each concept with all its narrower concepts, at any depth, and whether some were cut off."""
    found = {root: {root} for root in roots}
    left = NARROWER_READ
    level = {root: {root} for root in roots}  # the concepts of the last level, each with the roots that it is below
    while level:
        query = bind(NARROWER, broader=[NamedNode(iri) for iri in sorted(level)], most=NARROWER_READ + 1)
        rows = reader.rows("narrower concepts", query)
        below: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            concept = iri_of(row["concept"])
            for root in level[iri_of(row["broader"])]:
                if concept not in found[root]:
                    if not left:
                        return found, True
                    left -= 1
                    found[root].add(concept)
                    below[concept].add(root)
        if len(rows) > NARROWER_READ:
            return found, True
        level = below
    return found, False


def count_mentions(reader: Reader, families: Mapping[str, set[str]], scope: Scope, *, nested: bool = True) -> Counted:
    """Rank the passages in `scope` that mention one of the concepts.

    `families` maps each requested concept to itself and the narrower ones. Each family adds half of its share of the
    score at its first mention, half of the rest at the second, and so on. Beyond `CONSIDERED` passages, those with
    most mentions of one family are kept.
    """
    pairs = [(NamedNode(root), NamedNode(iri)) for root in sorted(families) for iri in sorted(families[root])]
    narrowed = scope.on_document or scope.on_unit
    query = MENTIONING.replace("#CUT", "" if narrowed else CUT).replace("#NESTED", "" if nested else LONGEST)
    most = CONSIDERED + 1

    def read(rows: list[dict[str, Term]]) -> Counted:
        documents: dict[str, str] = {}
        scores: dict[str, float] = defaultdict(float)
        for row in rows[:CONSIDERED]:
            unit = iri_of(row["unit"])
            documents[unit] = iri_of(row["document"])
            scores[unit] += 1 - 0.5 ** int(term_text(row["count"]))
        found = [Mentioning(unit, documents[unit], round(score / len(families), 4)) for unit, score in scores.items()]
        return Counted(sorted(found, key=lambda each: (-each.score, each.iri)), len(rows) > CONSIDERED)

    text = scope.compile(query, families=pairs, most=most)
    return reader.kept("passages that mention the concepts", text, read, declared=OWN)


def ordered(reader: Reader, found: Sequence[Mentioning], offset: int, limit: int) -> list[Mentioning]:
    """Sort by score, then newest date, family title, document title and position, and return one page."""
    page: list[Mentioning] = []
    at = 0
    for _, group in groupby(found, key=lambda each: each.score):
        tied = list(group)
        start, end = max(offset - at, 0), offset + limit - at
        at += len(tied)
        if start < len(tied) and end > 0:
            page.extend(_by_document(reader, tied, start, end) if len(tied) > 1 else tied)
        if at >= offset + limit:
            break
    return page


def _by_document(reader: Reader, tied: Sequence[Mentioning], start: int, end: int) -> list[Mentioning]:
    """Sort passages of equal score and return ``[start:end]``. Positions are loaded for documents on the page only."""
    keys = load_document_keys(reader, {each.document for each in tied})

    @cache
    def place(document: str) -> tuple[tuple[int, ...], str, str]:
        key = keys.get(document, DocumentKey())
        return newest_first(key.date), key.family, key.title

    shown: list[Mentioning] = []
    at = 0
    for _, group in groupby(sorted(tied, key=lambda each: place(each.document)), lambda each: place(each.document)):
        alike = list(group)
        first, last = max(start - at, 0), end - at
        if first < len(alike) and last > 0:
            positions = _positions(reader, alike)
            alike.sort(key=lambda each: (positions.get(each.iri, 0), each.iri))
            shown += alike[first:last]
        at += len(alike)
    return shown


def _positions(reader: Reader, passages: Sequence[Mentioning]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for portion in batched(passages, _AT_ONCE) if len(passages) > 1 else ():
        some = [NamedNode(each.iri) for each in portion]
        for row in reader.rows("places in documents", bind(POSITIONS, units=some)):
            found[iri_of(row["unit"])] = int(term_text(row["position"]))
    return found
