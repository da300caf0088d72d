"""Passages that mention concepts, by the mentions that were found in their text when it was loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.tools.concept_names import chosen
from kg.tools.filters import Scope, scope_of
from kg.tools.hydration import evidence_of, read_units
from kg.tools.matches import NARROWER_READ, narrower_of
from kg.tools.model import Evidence, Identifier, Iso3, Language, Limit, Name, Offset, Result, SearchFilters
from kg.tools.passages import Explain
from kg.tools.reading import Reader, bounded, iri_of, page_of, text_of

CONSIDERED: Final = 10_000
"""Passages that are put in order at most, those with most mentions; the cut is announced."""

# The mentions first, in a SELECT of their own: else Oxigraph begins with all passages of a country (37 ms, not 1,200).
MENTIONING: Final = """
SELECT ?unit ?document ?position ?concept (COUNT(DISTINCT ?mention) AS ?count) WHERE {
  { SELECT DISTINCT ?unit ?document ?position ?concept ?mention WHERE {
    VALUES ?concept { $concepts } ?mention kg:object ?concept ; oa:hasSource ?unit .
    ?unit dcterms:isPartOf ?document ; schema:position ?position
  } }
  #DOCUMENT
  #UNIT
} GROUP BY ?unit ?document ?position ?concept ORDER BY DESC(?count) LIMIT $most"""

ORDER_KEYS: Final = """
SELECT DISTINCT ?document ?key ?value WHERE {
  { VALUES ?document { $documents } ?document dcterms:title ?value BIND("title" AS ?key) }
  UNION { VALUES ?document { $documents } ?document eli:date_document ?value BIND("date" AS ?key) }
  UNION { VALUES ?document { $documents } ?document dcterms:date ?value BIND("date" AS ?key) }
  UNION {
    VALUES ?document { $documents } ?document eli:is_member_of ?family . ?family dcterms:title ?value
    BIND("family" AS ?key)
  }
}"""

Qids = Annotated[
    list[Identifier], Field(min_length=1, max_length=50, description="QIDs, as concept_find gives them; or IRIs")
]


class MentionResult(Result):
    """Passages with the concepts that they mention, best first."""

    evidence: list[Evidence]


@dataclass(frozen=True, slots=True)
class Mentioning:
    """A passage that mentions some of the concepts, how well it does, and where it stands."""

    iri: str
    document: str
    position: int
    score: float


def concept_mentions(
    kg: KnowledgeGraph,
    qids: Qids,
    iso3: Annotated[list[Iso3] | None, Field(max_length=300)] = None,
    language: Annotated[list[Language] | None, Field(max_length=100)] = None,
    corpus_type: Annotated[list[Name] | None, Field(max_length=100)] = None,
    narrower: Annotated[bool, Field(description="Narrower concepts count as the one they are under")] = False,
    limit: Limit = 20,
    offset: Offset = 0,
    explain: Explain = False,
) -> MentionResult:
    """List the passages that name concepts by label or alias, with the offsets of each mention.

    Use for citable evidence on a topic. Returns evidence: id, document, passage, score, provenance,
    concept_matches{qid, label, match_type, offsets, words}.
    Example: concept_mentions(qids=["Q1012"], limit=5).
    Next: `fetch` the document id for what stands around it.
    """
    bounded("limit", limit, 1, 200)
    bounded("offset", offset, 0, 100_000)
    reader = Reader(kg)
    asked = [concept.iri for concept in chosen(reader, "qids", qids)]
    scope, notes = scope_of(
        reader, SearchFilters(iso3=iso3 or [], language=language or [], corpus_type=corpus_type or [])
    )
    reader.ran.clear()
    families = {iri: {iri} for iri in asked}
    wide = False
    if narrower:
        families, wide = narrower_of(reader, asked)
        if wide:
            notes.append(f"There are more than {NARROWER_READ} narrower concepts; only some count: name one of them.")
    counted = count_mentions(reader, families, scope)
    cut = len(counted) > CONSIDERED
    if cut:
        notes.append(f"More than {CONSIDERED} passages mention them: these are the ones that do so most; narrow it.")
    page = [each.iri for each in ordered(reader, counted[:CONSIDERED], offset, limit)]
    units = read_units(reader, page)
    members = {iri for family in families.values() for iri in family}
    found = evidence_of(
        reader,
        [units[iri] for iri in page if iri in units],
        {each.iri: each.score for each in counted},
        mentioned=members,
    )
    if not counted:
        more = "" if narrower else "; narrower=true also counts narrower concepts"
        notes.append(f"No passage mentions them by label or alias{more}; `search` finds passages by meaning.")
    return reader.finish(
        MentionResult(evidence=found, notes=notes),
        total=None if cut or wide else len(counted),
        next_offset=page_of(counted[:CONSIDERED], offset, limit),
        completeness="truncated" if cut or wide else "complete",
        explain=explain,
    )


def count_mentions(reader: Reader, families: Mapping[str, set[str]], scope: Scope) -> list[Mentioning]:
    """Return the passages in `scope` that mention one of the concepts, at most one more than `CONSIDERED`, best first.

    `families` are the concepts asked for, each with those that count as it. Each adds half of its share of the score
    at its first mention, half of the rest at the second, and so on.
    """
    wanted = sorted({iri for family in families.values() for iri in family})
    query = scope.compile(MENTIONING, concepts=[NamedNode(iri) for iri in wanted], most=CONSIDERED + 1)

    def read(rows: list[dict[str, Term]]) -> list[Mentioning]:
        counts: dict[tuple[str, str, int], dict[str, int]] = defaultdict(dict)
        for row in rows:
            place = iri_of(row["unit"]), iri_of(row["document"]), int(text_of(row["position"]))
            counts[place][iri_of(row["concept"])] = int(text_of(row["count"]))
        found = [
            Mentioning(unit, document, position, _score(families, said))
            for (unit, document, position), said in counts.items()
        ]
        return sorted(found, key=lambda each: (-each.score, each.iri))

    return reader.kept("passages that mention the concepts", query, read)


def _score(families: Mapping[str, set[str]], counts: Mapping[str, int]) -> float:
    total = 0.0
    for family in families.values():
        times = sum(count for iri, count in counts.items() if iri in family)
        total += 1 - 0.5**times
    return round(total / len(families), 4)


def ordered(reader: Reader, found: Sequence[Mentioning], offset: int, limit: int) -> list[Mentioning]:
    """Return one page: by score, then the newest first, then family title, document title and position."""
    page: list[Mentioning] = []
    at = 0
    for _, group in groupby(found, key=lambda each: each.score):
        tied = list(group)
        start, end = max(offset - at, 0), offset + limit - at
        at += len(tied)
        if start < len(tied) and end > 0:
            page.extend(_by_document(reader, tied)[start:end] if len(tied) > 1 else tied)
        if at >= offset + limit:
            break
    return page


def _by_document(reader: Reader, tied: Sequence[Mentioning]) -> list[Mentioning]:
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for row in _order_keys(reader, sorted({each.document for each in tied})):
        values, key, value = said[iri_of(row["document"])], text_of(row["key"]), text_of(row["value"])
        values[key] = min(value, values.get(key, value))

    def place(each: Mentioning) -> tuple[object, ...]:
        values = said[each.document]
        # ISO 8601 dates, reversed by negating each character; a missing one sorts after all of them.
        newest = tuple(-ord(character) for character in values["date"]) if "date" in values else (1,)
        return newest, values.get("family", ""), values.get("title", ""), each.position, each.iri

    return sorted(tied, key=place)


def _order_keys(reader: Reader, documents: Sequence[str]) -> Iterator[dict[str, Term]]:
    for start in range(0, len(documents), 5_000):
        some = [NamedNode(iri) for iri in documents[start : start + 5_000]]
        yield from reader.rows("dates and titles", bind(ORDER_KEYS, documents=some))
