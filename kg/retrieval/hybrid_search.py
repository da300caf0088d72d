"""Hybrid search of text units in a scope: SPARQL filters, BM25 and embeddings. Every tool that takes free text uses it.

In a narrow scope, SPARQL lists all units and each is scored by BM25 and embedding, so the order is exact. In a wide
scope, the index proposes units, SPARQL drops those outside the scope, and the rest is rescored as one set. Deeper
proposals follow until the page is full. Blocks of proposals have fixed sizes and are sorted one by one, so that no
page repeats or omits a unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice
from math import ceil
from typing import Final

from pyoxigraph import NamedNode

from kg.languages import find_primary
from kg.retrieval.asked import Asked
from kg.retrieval.filters import Scope, build_conditions
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.reranking import Reranking
from kg.retrieval.results import Completeness, Degraded
from kg.search.protocol import Candidate, Codes, Ranking, get_original
from kg.search.ranking import PAIR_WEIGHT, Fusion
from kg.search.relevance import (
    FEW,
    NOTHING,
    UNJUDGED,
    Relevance,
    drop_unscored,
    estimate_answers,
    estimate_relevance,
)
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import to_number

NARROW: Final = 1_000
"""Maximum number of units in a narrow scope. Listing, sending and sorting take about 20 microseconds per unit."""
MANY_DOCUMENTS: Final = 5_000
"""Maximum number of documents that proposals are limited to (20,000 documents would take 32 ms more)."""
FEW_DOCUMENTS: Final = 2_000
"""Maximum number of documents for which limited proposals are faster than deep ones from all documents (50,000 chunks
of speeches; 64 proposals from 1,000 documents: 22 ms, 2,000: 44, 4,000: 68, all: 34; 256 from all: 119)."""
FIRST_BLOCK: Final = 64
"""Number of proposals in the first block, enough for a page of 50. Each later block is four times as deep."""
_NO_RANKING: Final = Ranking((), exhaustive=True)
DEEPEST: Final = 16_384
"""Maximum number of proposals. Truncation is reported."""
NEAREST: Final = 3
"""Units that a refused answer lists as the nearest."""
OWN: Final = ("unit", "document")
"""Nodes that people may declare: text units in documents of their own are found, in documents of sources not."""

_UNITS: Final = """{
  {
    #DOCUMENTS
    ?unit dcterms:isPartOf ?document .
    #BEGIN
    FILTER EXISTS { ?unit schema:text ?words }
  } UNION {
    #WHOLE
  }
}"""
UNITS_IN_SCOPE: Final = f"""
SELECT DISTINCT ?unit ?document WHERE {_UNITS} LIMIT $most"""
UNITS_BY_DOCUMENT: Final = f"""
SELECT ?document (COUNT(DISTINCT ?unit) AS ?units) WHERE {_UNITS} GROUP BY ?document"""

# Of their own, so that the engine does not start at the parts of all documents, or at all texts.
_DOCUMENTS: Final = """{ SELECT DISTINCT ?document WHERE {
      #DOCUMENT
    } }"""

# Texts that are part of nothing are their own documents: articles of a code with a text of their own.
WHOLE_DOCUMENTS: Final = """{ SELECT DISTINCT ?document WHERE {
      #DOCUMENT
      FILTER EXISTS { ?document schema:text ?words }
      FILTER NOT EXISTS { ?document dcterms:isPartOf ?whole }
    } }
    BIND(?document AS ?unit)
    #UNIT"""

WHOLE_UNITS: Final = """{ SELECT DISTINCT ?unit WHERE {
      #BEGIN
      ?unit schema:text ?words FILTER NOT EXISTS { ?unit dcterms:isPartOf ?whole }
    } }
    BIND(?unit AS ?document)"""

# For patterns that bind ?unit: their texts are looked up once, and the documents of those on the list alone.
_UNITS_BOUND: Final = """{
  { SELECT DISTINCT ?unit WHERE {
    #BEGIN
    FILTER EXISTS { ?unit schema:text ?words }
  } #LIMIT }
  OPTIONAL { ?unit dcterms:isPartOf ?whole } BIND(COALESCE(?whole, ?unit) AS ?document)
}"""
UNITS_BOUND: Final = f"""
SELECT ?unit ?document WHERE {_UNITS_BOUND.replace("#LIMIT", "LIMIT $most")}"""
UNITS_BOUND_BY_DOCUMENT: Final = f"""
SELECT ?document (COUNT(DISTINCT ?unit) AS ?units) WHERE {_UNITS_BOUND.replace("#LIMIT", "")} GROUP BY ?document"""

DOCUMENTS_IN_SCOPE: Final = """
SELECT DISTINCT ?document WHERE {
  #LIST
  #DOCUMENT
} LIMIT $most"""

PROPOSALS_IN_SCOPE: Final = """
SELECT DISTINCT ?unit ?document WHERE {
  { SELECT DISTINCT ?unit ?document WHERE {
    VALUES ?unit { $units } OPTIONAL { ?unit dcterms:isPartOf ?whole }
    FILTER(BOUND(?whole) || EXISTS { ?unit schema:text ?words })
    BIND(COALESCE(?whole, ?unit) AS ?document)
  } }
  #DOCUMENT
  #UNIT
}"""

# Flat, for patterns of constants, which are looked up per proposal (256 proposals: 9 ms, or 28 with a nested SELECT).
PROPOSALS_ALLOWED: Final = """
SELECT DISTINCT ?unit ?document WHERE {
  VALUES ?unit { $units } ?unit dcterms:isPartOf ?document .
  #DOCUMENT
  #UNIT
}"""

MENTIONS_IN_SCOPE: Final = """
SELECT DISTINCT ?unit ?document WHERE {
  { SELECT DISTINCT ?unit ?document WHERE {
    VALUES ?concept { $concepts } ?unit kg:mentions ?concept OPTIONAL { ?unit dcterms:isPartOf ?whole }
    BIND(COALESCE(?whole, ?unit) AS ?document)
  } }
  #DOCUMENT
  #UNIT
} LIMIT $most"""

MENTIONING: Final = """
SELECT DISTINCT ?unit WHERE { VALUES ?unit { $units } VALUES ?concept { $concepts } ?unit kg:mentions ?concept }"""

TIE_BREAKERS: Final = """
SELECT DISTINCT ?unit ?key ?value WHERE {
  {
    VALUES ?unit { $units } ?unit schema:position ?value BIND("position" AS ?key)
  } UNION {
    VALUES ?unit { $units }
    ?unit dcterms:isPartOf ?document . ?document dcterms:title ?value BIND("title" AS ?key)
  } UNION {
    VALUES ?unit { $units }
    ?unit dcterms:isPartOf ?document . ?document eli:date_document ?value BIND("date" AS ?key)
  } UNION {
    VALUES ?unit { $units }
    ?unit dcterms:isPartOf ?document . ?document dcterms:date ?value BIND("date" AS ?key)
  } UNION {
    VALUES ?unit { $units }
    ?unit dcterms:isPartOf ?document . ?document eli:is_member_of ?family . ?family dcterms:title ?value
    BIND("family" AS ?key)
  }
}"""


@dataclass(frozen=True, slots=True)
class Found:
    """A ranked text unit with its document."""

    iri: str
    document: str
    score: float
    scored: Candidate | None = None
    """The scores that `score` was fused from, if they are known."""

    @property
    def span(self) -> tuple[int, int] | None:
        """The offsets of the part that has them, if its text has several."""
        return None if self.scored is None else self.scored.span


@dataclass(frozen=True, slots=True)
class Counted:
    """Results of a query with their codes in the index, at most the number that was asked for."""

    units: Mapping[str, Codes] = field(default_factory=dict)
    more: bool = False
    """Whether there are more."""
    relevance: Relevance = UNJUDGED
    """By which they are results."""
    incomplete: str | None = None
    """Why the index may lack texts of the store, or None."""

    @classmethod
    def cut(
        cls,
        units: Iterable[tuple[str, Codes]],
        most: int,
        relevance: Relevance,
        incomplete: str | None = None,
        *,
        more: bool = False,
    ) -> Counted:
        """Keep the first `most` units."""
        found = list(islice(units, most + 1))
        return cls(dict(found[:most]), more or len(found) > most, relevance, incomplete)

    def narrow(self, reader: Reader, scope: Scope) -> Counted:
        """Keep the results in `scope`."""
        conditions, whole = build_conditions(scope)
        kept = {iri: codes for iri, codes in self.units.items() if all(_meets(codes, each) for each in conditions)}
        if not whole and kept:
            allowed = find_allowed(reader, scope, list(kept))
            kept = {iri: codes for iri, codes in kept.items() if iri in allowed}
        return replace(self, units=kept)


def _meets(codes: Codes, condition: Codes) -> bool:
    return any(not set(values).isdisjoint(codes.get(name, ())) for name, values in condition.items())


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A page of ranked units. `total` is known if all units in scope were scored."""

    units: Sequence[Found]
    completeness: Completeness
    total: int | None
    next_offset: int | None
    pending: int = 0
    """Number of considered units without an embedding, which are scored by keywords only."""
    relevance: Relevance = UNJUDGED
    reranked: bool | None = None
    """Whether the reranker ordered the first units; None without one."""
    problem: str | None = None
    """Why the reranker did not."""
    degraded: Degraded | None = None
    """What alone ranked the units, if not both words and meaning."""
    language: str | None = None
    """The language of the query, if it is known."""
    searched: int | None = None
    """Units that the ranking allows, if they were counted."""
    uncompared: Mapping[str, int] = field(default_factory=dict)
    """Those of them, by language, that were not compared with the query by meaning."""
    incomplete: str | None = None
    """Why the index may lack texts of the store, or None. The answer is then not complete."""
    answers: Mapping[str, float] = field(default_factory=dict)
    """The probability that a unit answers the query, by IRI, where it was estimated."""
    nearest: Sequence[Found] = ()
    """The nearest units of an answer that was refused; none is a result."""
    counted: Counted | None = None
    """The results, if it was asked to count them and the rankings of the page have them."""
    by_words: bool = False
    """Whether the query was compared with no unit by meaning."""
    stop_words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Required words that are stop words, by language; see `Ranking.stop_words`."""


def retrieve(
    reader: Reader,
    asked: Asked,
    scope: Scope,
    *,
    limit: int,
    offset: int = 0,
    per_document: int | None = None,
    concepts: Sequence[NamedNode] = (),
    counted: int = 0,
    judged: Counted | None = None,
) -> Retrieved:
    """Rank the units in `scope` by `asked` and return a page, with at most `per_document` units of one document.

    The order is by fused score, then date (newest first), family title, document title, and position. Units that share
    no word with the query and have no embedding yet are dropped. Units that mention one of `concepts` rank first, and
    are relevant with any score. With `counted`, so many results come with their codes, if one ranking has both.

    `judged` are the results in a wider scope where the relevance was judged, narrowed to `scope`: then these are the
    results, and if there are more than were counted, also the others in `scope` that are near the query.
    """
    page = slice(offset, offset + limit)
    reranking = Reranking(reader, asked.own_words)
    favoured = _Favoured(reader, scope, concepts) if concepts else None
    if judged is None or judged.more:
        units = list_narrow(reader, scope)
    else:
        units = {iri: codes["parent"][0] for iri, codes in judged.units.items()}
    if units is not None:
        counting = len(units) if counted else 0
        ranking = (
            asked.rank_all(reader, units=list(units), limit=len(units), counted=counting) if units else _NO_RANKING
        )
        if judged is not None and not units:
            ranking = replace(ranking, incomplete=judged.incomplete)
        scored = ranking.candidates
        if judged is not None:
            relevance = judged.relevance
        else:
            relevance = estimate_relevance(scored, ranking) if units else NOTHING
        candidates = _select(asked, scored, ranking, relevance, favoured, judged)
        total = _count(Counter(get_original(units[candidate.iri]) for candidate in candidates), per_document)
        ordered = reranking.apply(_ordered(reader, candidates, units, page.stop + 1), _is_first(favoured))
        found = list(islice(_capped(ordered, per_document, Counter()), page.stop + 1))
        relevance = _with_mentions(relevance, asked, candidates)
        results = None
        if counted and not ranking.from_store:
            known = {**ranking.counted, **(judged.units if judged is not None else {})}
            kept = {each.iri for each in candidates}
            codes = ((iri, known[iri]) for iri in known if iri in kept)  # in the order of `count_units`
            results = Counted.cut(codes, counted, relevance, ranking.incomplete)
        part = Retrieved(found, "complete", total, None, relevance=relevance, counted=results)
        return _finish(reader, asked, part, page, ranking, reranking, scored, scored, units)
    return _propose(reader, asked, reranking, scope, page, per_document, favoured, counted, judged)


def _finish(
    reader: Reader,
    asked: Asked,
    part: Retrieved,
    page: slice,
    ranking: Ranking,
    reranking: Reranking,
    considered: Sequence[Candidate],
    nearest: Sequence[Candidate],
    documents: Mapping[str, str],
) -> Retrieved:
    """Cut the page out of the first units, and add what follows from the last ranking.

    `considered` are the candidates in scope, of which `nearest`, with their `documents`, are those of the first block.
    """
    found = part.units
    pending = _pending(ranking, considered)
    is_exact = part.completeness == "complete" and not pending and ranking.incomplete is None
    reranked, problem = reranking.outcome
    return replace(
        part,
        units=found[page],
        completeness="approximate" if part.completeness == "complete" and not is_exact else part.completeness,
        total=part.total if is_exact else None,
        next_offset=page.stop if len(found) > page.stop else None,
        pending=pending,
        reranked=reranked,
        problem=problem,
        degraded=_find_degraded(ranking, considered),
        answers=estimate_answers(asked.own_words, considered, ranking),
        nearest=() if found or page.start else _list_nearest(reader, asked, nearest, documents, part.relevance),
        language=ranking.language,
        searched=ranking.units,
        uncompared=ranking.uncompared,
        incomplete=ranking.incomplete,
        by_words=ranking.model is None,
        stop_words=ranking.stop_words,
    )


def _count_scope(reader: Reader, ranking: Ranking, scope: Scope) -> Ranking:
    """Count the units in scope that a wider ranking searched, if codes in the index alone decide it."""
    conditions, suffice = build_conditions(scope)
    if not conditions or not suffice or ranking.units is None:
        return ranking
    counts = reader.kg.search.count(["languages"], conditions)
    numbers: Counter[str] = Counter()
    for tag, number in counts.by_field["languages"].items():
        numbers[find_primary(tag)] += number
    uncompared = {name: numbers[name] for name in ranking.uncompared if numbers[name]}
    return replace(ranking, units=counts.units, uncompared=uncompared)


def begin_ranking(reader: Reader, asked: Asked, scope: Scope, counted: int) -> None:
    """Have the index begin the ranking of `retrieve` in `scope` while others work, if codes alone decide the scope."""
    conditions, suffice = build_conditions(scope)
    if not suffice or asked.min_score is not None:
        return
    if list_narrow(reader, scope) is None:
        asked.begin(reader.kg.search, limit=FIRST_BLOCK, codes=conditions, counted=counted + 1)
    else:
        reader.ran.pop()  # `retrieve` reads it again


def _find_degraded(ranking: Ranking, candidates: Iterable[Candidate]) -> Degraded | None:
    if ranking.from_store:
        return "store"
    scored = [candidate.cosine for candidate in candidates]
    without = ranking.model is None and not ranking.uncompared and all(cosine is None for cosine in scored)
    return "words" if scored and without else None


def _select(
    asked: Asked,
    scored: Sequence[Candidate],
    ranking: Ranking,
    relevance: Relevance,
    favoured: _Favoured | None,
    judged: Counted | None,
) -> list[Candidate]:
    """Drop candidates that are not to be listed. Those that mention a favoured concept stay and are first."""
    if judged is not None:
        if not judged.more:
            return [each for each in scored if each.iri in judged.units]
        return asked.select_further(drop_unscored(scored), ranking, judged.relevance, judged.units)
    selected = asked.select(drop_unscored(scored), ranking, relevance)
    if favoured is None:
        return selected
    return favoured.first(scored, {candidate.iri for candidate in selected})


def _with_mentions(relevance: Relevance, asked: Asked, listed: Sequence[object]) -> Relevance:
    """Leave open whether texts treat the subject that are listed only because they mention a favoured concept."""
    if relevance.refused and listed and asked.min_score is None:
        return Relevance(reason="The results mention the concepts of the filter.")
    return relevance


@dataclass(frozen=True, slots=True)
class Known:
    """A superset of the documents in a scope, and its share of all documents of their kind (0 to 1)."""

    documents: Sequence[str]
    share: float


def best_of_each(
    reader: Reader,
    asked: Asked,
    scope: Scope,
    *,
    limit: int,
    offset: int = 0,
    wide: bool,
    known: Known | None = None,
) -> Retrieved:
    """Rank documents in `scope` by `asked` and return the best unit of each of `limit` documents from `offset` on.

    In a `wide` scope, the index proposes and SPARQL drops units outside the scope. In any other scope, or if too few
    proposals remain, SPARQL lists the documents and the index ranks only their units. If the documents are `known`,
    their number decides which way is faster. Patterns of `scope` on ?document have constants if it is wide or its
    documents are known. The scores of the first page are computed over one set. That set and the way do not depend
    on `offset`, so pages of one `limit` repeat or omit no document.
    """
    page = slice(offset, offset + limit)
    first = max(FIRST_BLOCK, 4 * limit)
    parents: Sequence[str] | None = None
    if known is not None:
        enough = ceil(2 * limit / known.share)
        number = len(known.documents)
        # Of few texts, nothing with a word of the query is refused, so these have to be counted.
        if number <= FEW or (enough > first and number <= FEW_DOCUMENTS):
            wide, parents = False, known.documents
        else:
            first, wide = min(max(first, enough), 4 * first), True
    if wide:
        found = _best_proposals(reader, asked, scope, page, None, first, max(first, 4 * FIRST_BLOCK))
        if found.completeness != "truncated":
            return found
        if known is not None and len(known.documents) <= MANY_DOCUMENTS:
            parents = known.documents
    if parents is not None:
        found = _best_proposals(reader, asked, scope, page, parents, first, DEEPEST)
        if found.units or found.relevance.refused or found.completeness != "truncated":
            return found
    too_many = known is not None and len(known.documents) > MANY_DOCUMENTS
    listed = None if too_many else _parents(reader, scope)
    if listed is None:
        reader.start_selection()  # an abandoned list selected nothing
        return _best_proposals(reader, asked, scope, page, None, first, DEEPEST)
    # proposals are limited to their units
    return _best_proposals(reader, asked, replace(scope, on_document=(), lists=()), page, listed, first, DEEPEST)


def _best_proposals(
    reader: Reader, asked: Asked, scope: Scope, page: slice, parents: Sequence[str] | None, depth: int, deepest: int
) -> Retrieved:
    """Rank proposals of the index, `depth` at first; `truncated` if `deepest` proposals are too few for a first page.

    The proposals for a first page are sorted as one block, those for later pages block by block.
    """
    limit = page.stop - page.start
    documents: dict[str, str] = {}
    seen: set[str] = set()
    blocks: list[list[Candidate]] = [[]]
    while True:
        ranking = asked.rank_all(reader, parents=parents, limit=depth)
        fresh = [candidate for candidate in ranking.candidates if candidate.iri not in seen]
        seen.update(candidate.iri for candidate in fresh)
        units = [NamedNode(candidate.iri) for candidate in fresh]
        rows = (
            reader.rows("proposals that the filters leave", scope.compile(PROPOSALS_ALLOWED, units=units), declared=OWN)
            if units
            else []
        )
        documents |= {iri_of(row["unit"]): iri_of(row["document"]) for row in rows}
        blocks[-1] += [candidate for candidate in fresh if candidate.iri in documents]
        done = ranking.exhaustive or len(ranking.candidates) < depth
        count = len(set(documents.values()))
        if len(blocks) == 1 and count >= limit:
            deepest = DEEPEST
        if done or depth >= deepest or count > page.stop:
            break
        if count >= limit:
            blocks.append([])
        depth = min(deepest, 4 * depth)
    ranking = _count_scope(reader, ranking, scope)
    first = rescore(blocks[0])
    kept = [drop_unscored(block) for block in (first, *(rescore(block, blocks[0]) for block in blocks[1:]))]
    relevance = estimate_relevance(first, ranking) if kept[0] or done else UNJUDGED
    selected = [asked.select(block, ranking, relevance) for block in kept]
    reranking = Reranking(reader, asked.own_words)
    ordered = chain.from_iterable(
        reranking.apply(_ordered(reader, block, documents, page.stop + 1)) for block in selected
    )
    found = list(islice(_capped(ordered, 1, Counter()), page.stop + 1))
    total: int | None = None
    completeness: Completeness = "truncated"
    if done and ranking.exhaustive:
        completeness, total = "complete", len({documents[each.iri] for block in selected for each in block})
    elif done or len({documents[each.iri] for block in kept for each in block}) >= limit:
        completeness = "approximate"
    part = Retrieved(found, completeness, total, None, relevance=relevance)
    considered = [*chain.from_iterable(blocks)]
    return _finish(reader, asked, part, page, ranking, reranking, considered, first, documents)


def _list_nearest(
    reader: Reader,
    asked: Asked,
    candidates: Sequence[Candidate],
    documents: Mapping[str, str],
    relevance: Relevance,
) -> Sequence[Found]:
    """List the first units of an answer without results, each of another document.

    They are those near a query that is refused, else those that have the required words and none of the others.
    """
    shown = drop_unscored(candidates)
    if not (relevance.refused or (asked.must and not shown)):
        return ()
    if not shown and asked.must:
        shown = [*candidates]
    return list(islice(_capped(_ordered(reader, shown, documents, NEAREST), 1, Counter()), NEAREST))


class _Favoured:
    """The units in a scope that mention one of some concepts."""

    def __init__(self, reader: Reader, scope: Scope, concepts: Sequence[NamedNode]) -> None:
        self._reader = reader
        self._concepts = list(concepts)
        self._known: set[str] = set()
        query = scope.compile(MENTIONS_IN_SCOPE, concepts=self._concepts, most=NARROW + 1)
        self._units: Mapping[str, str] = reader.kept(
            "passages that mention the concepts",
            query,
            lambda rows: {iri_of(row["unit"]): iri_of(row["document"]) for row in rows},
            declared=OWN,
        )

    @property
    def units(self) -> Mapping[str, str] | None:
        """All of them with their documents, or None if there are more than `NARROW`."""
        return self._units if len(self._units) <= NARROW else None

    def first(self, candidates: Sequence[Candidate], others: Collection[str]) -> list[Candidate]:
        """Drop candidates without a mention except `others`, and map the scores of those with a mention to 0.5 to 1."""
        mentioning = self._mentioning([candidate.iri for candidate in candidates])
        self._known |= mentioning
        kept = [each for each in candidates if each.iri in mentioning or each.iri in others]
        return [replace(each, score=(each.score + (each.iri in mentioning)) / 2) for each in kept]

    def is_known(self, unit: Found) -> bool:
        """Return whether `unit`, which `first` returned, mentions one of the concepts."""
        return unit.iri in self._known

    def _mentioning(self, iris: Sequence[str]) -> set[str]:
        if self.units is not None:
            return {iri for iri in iris if iri in self._units}
        if not iris:
            return set()
        query = bind(MENTIONING, units=[NamedNode(iri) for iri in iris], concepts=self._concepts)
        rows = self._reader.rows("proposals that mention the concepts", query, declared=("unit",))
        return {iri_of(row["unit"]) for row in rows}


def _is_first(favoured: _Favoured | None) -> Callable[[Found], bool] | None:
    return None if favoured is None else favoured.is_known


def list_narrow(reader: Reader, scope: Scope) -> Mapping[str, str] | None:
    """List all units in scope with their documents, or None if there are more than `NARROW`."""
    if not scope.terms and reader.kg.search.count_units() > NARROW:
        return None

    listed = list_units(reader, scope, NARROW)
    if len(listed) > NARROW:
        reader.ran.pop()  # an abandoned list selected nothing
        return None
    return listed


def list_units(reader: Reader, scope: Scope, most: int) -> Mapping[str, str]:
    """List units in scope with their documents, up to one more than `most`."""
    query = scope.compile(build_units_query(scope), most=most + 1)
    return reader.kept("passages that the filters leave", query, _read_units, declared=OWN)


def build_units_query(scope: Scope, *, by_document: bool = False) -> str:
    """Build the query for the units in scope with their documents, or for the numbers of units by document."""
    if scope.alone and not scope.on_document:
        return UNITS_BOUND_BY_DOCUMENT if by_document else UNITS_BOUND
    whole, documents = (WHOLE_DOCUMENTS, _DOCUMENTS) if scope.on_document else (WHOLE_UNITS, "")
    query = UNITS_BY_DOCUMENT if by_document else UNITS_IN_SCOPE
    return query.replace("#WHOLE", whole).replace("#DOCUMENTS", documents)


def _read_units(rows: Sequence[Mapping[str, Term]]) -> Mapping[str, str]:
    return {iri_of(row["unit"]): iri_of(row["document"]) for row in rows}


def _propose(
    reader: Reader,
    asked: Asked,
    reranking: Reranking,
    scope: Scope,
    page: slice,
    per_document: int | None,
    favoured: _Favoured | None,
    counted: int,
    judged: Counted | None,
) -> Retrieved:
    relevance = None if judged is None else judged.relevance
    conditions, suffice = build_conditions(scope) if counted else ((), False)
    # Results are counted by their codes. If these are the whole scope, the ranking that is counted is that of the page.
    coded = suffice and favoured is None and asked.min_score is None
    first: Ranking | None = None
    parents = None if coded else _parents(reader, scope)
    seen: set[str] = set()
    taken: Counter[str] = Counter()
    found: list[Found] = []
    wanted = page.stop + 1
    counts: Counter[str] = Counter()
    depth = FIRST_BLOCK
    considered: list[Candidate] = []
    nearest: Sequence[Candidate] = ()
    documents: dict[str, str] = {}
    if favoured is not None and favoured.units:
        # They form the first block, before the proposals of the index.
        ranking = asked.rank_all(reader, units=list(favoured.units), limit=len(favoured.units))
        scored = ranking.candidates
        seen.update(favoured.units)
        considered += scored
        block = favoured.first(scored, ())
        counts.update(get_original(favoured.units[candidate.iri]) for candidate in block)
        ordered = reranking.apply(_ordered(reader, block, favoured.units, wanted))
        found.extend(islice(_capped(ordered, per_document, taken), wanted))
    while True:
        ranking = asked.rank_all(
            reader,
            parents=parents,
            limit=depth,
            codes=conditions if coded else (),
            counted=counted + 1 if coded and first is None else 0,
        )
        if coded and ranking.from_store:  # which knows no codes
            coded, parents = False, _parents(reader, scope)
            continue
        if not coded:
            ranking = _count_scope(reader, ranking, scope)
        first = first or ranking
        fresh = [candidate for candidate in ranking.candidates if candidate.iri not in seen]
        seen.update(candidate.iri for candidate in fresh)
        allowed = find_allowed(reader, scope, [candidate.iri for candidate in fresh])
        proposed = [candidate for candidate in fresh if candidate.iri in allowed]
        considered += proposed
        rescored = rescore(proposed)
        if relevance is None and (rescored or not nearest):
            nearest, documents = rescored, allowed
            if drop_unscored(rescored):  # by the first block that has any, so that it is the same for all pages
                relevance = estimate_relevance(rescored, ranking)
        block = _select(asked, rescored, ranking, relevance or UNJUDGED, favoured, judged)
        counts.update(get_original(allowed[candidate.iri]) for candidate in block)
        left = wanted - len(found)
        ordered = reranking.apply(_ordered(reader, block, allowed, left), _is_first(favoured))
        found.extend(islice(_capped(ordered, per_document, taken), left))
        whole = ranking.exhaustive or (
            favoured is None and relevance is not None and asked.is_ended(ranking, relevance)
        )
        done = whole or len(ranking.candidates) < depth
        if done or len(found) == wanted or depth >= DEEPEST:
            break
        depth *= 4
    completeness: Completeness = "complete" if whole else "approximate" if done or len(found) == wanted else "truncated"
    if relevance is None:
        relevance = estimate_relevance(nearest, ranking) if done else UNJUDGED
    relevance = _with_mentions(relevance, asked, found)
    part = Retrieved(found, completeness, _count(counts, per_document), None, relevance=relevance)
    if coded and first is not None:
        if judged is None:
            results = asked.select_counted(first, relevance)
        else:
            results = asked.select_further_counted(first, judged.relevance, judged.units)
        part = replace(part, counted=Counted.cut(results.items(), counted, relevance, first.incomplete))
    return _finish(reader, asked, part, page, ranking, reranking, considered, nearest, documents)


def _parents(reader: Reader, scope: Scope) -> Sequence[str] | None:
    """List the documents in scope, or None if the scope has no document filter or too many documents."""
    if not (scope.on_document or scope.lists):
        return None

    def read(rows: Sequence[Mapping[str, Term]]) -> Sequence[str] | None:
        return None if len(rows) > MANY_DOCUMENTS else [iri_of(row["document"]) for row in rows]

    query = scope.compile(DOCUMENTS_IN_SCOPE, most=MANY_DOCUMENTS + 1)
    return reader.kept("documents that the filters leave", query, read, declared=("document",))


def find_allowed(reader: Reader, scope: Scope, proposals: Sequence[str]) -> dict[str, str]:
    """Look up the proposals that are in the scope, with their documents."""
    if not proposals:
        return {}
    units = [NamedNode(iri) for iri in proposals]
    rows = reader.rows("proposals that the filters leave", scope.compile(PROPOSALS_IN_SCOPE, units=units), declared=OWN)
    return {iri_of(row["unit"]): iri_of(row["document"]) for row in rows}


def _pending(ranking: Ranking, candidates: Iterable[Candidate]) -> int:
    """Count the candidates without a vector, if vectors are pending: those that no model compares never have one."""
    return sum(candidate.cosine is None for candidate in candidates) if ranking.pending else 0


def rescore(candidates: Sequence[Candidate], among: Sequence[Candidate] | None = None) -> list[Candidate]:
    """Fuse the scores again, relative to the best BM25 and cosine score among these candidates, or `among` others."""
    among = candidates if among is None else among
    fusion = Fusion(
        max((candidate.bm25 for candidate in among), default=0.0),
        max((candidate.cosine for candidate in among if candidate.cosine is not None), default=0.0),
        pair_weight=PAIR_WEIGHT if any(candidate.pairs is not None for candidate in among) else 0.0,
    )
    rescored = [replace(each, score=fusion.score(each.bm25, each.cosine, each.pairs or 0.0)) for each in candidates]
    return sorted(rescored, key=lambda candidate: (-candidate.score, candidate.iri))


def _count(by_document: Mapping[str, int], per_document: int | None) -> int:
    return sum(min(count, per_document or count) for count in by_document.values())


def _ordered(
    reader: Reader, candidates: Sequence[Candidate], documents: Mapping[str, str], first: int
) -> Iterator[Found]:
    """Yield units by score, then by tie breakers, which are loaded as needed, for the `first` units first."""
    ranked = sorted(candidates, key=lambda candidate: (-round(candidate.score, 6), candidate.iri))
    start, size = 0, first
    while start < len(ranked):
        end = min(start + size, len(ranked))
        while end < len(ranked) and round(ranked[end].score, 6) == round(ranked[end - 1].score, 6):
            end += 1
        chunk = [Found(unit.iri, documents[unit.iri], round(unit.score, 6), unit) for unit in ranked[start:end]]
        groups = [list(group) for _, group in groupby(chunk, key=lambda unit: unit.score)]
        tied = [unit.iri for group in groups if len(group) > 1 for unit in group]
        keys = _tie_breakers(reader, tied)
        for group in groups:
            yield from sorted(group, key=lambda unit: keys[unit.iri]) if len(group) > 1 else group
        start, size = end, 4 * size


TieKey = tuple[tuple[int, ...], str, str, int, str]


def _tie_breakers(reader: Reader, units: Sequence[str]) -> dict[str, TieKey]:
    """Load sort keys: newest date first (none last), family title, document title, position, IRI."""
    if not units:
        return {}
    said: dict[str, dict[str, str]] = {iri: {} for iri in units}
    query = bind(TIE_BREAKERS, units=[NamedNode(iri) for iri in units])
    for row in reader.rows("order of equal scores", query, declared=("unit",)):
        values, key, value = said[iri_of(row["unit"])], term_text(row["key"]), term_text(row["value"])
        values[key] = min(value, values.get(key, value))
    keys: dict[str, TieKey] = {}
    for iri, values in said.items():
        position = to_number(values.get("position", "")) or 0
        keys[iri] = (newest_first(values.get("date")), values.get("family", ""), values.get("title", ""), position, iri)
    return keys


def newest_first(date: str | None) -> tuple[int, ...]:
    """Sort key of ISO 8601 dates in descending order, by negated characters. A missing date sorts last."""
    return (1,) if date is None else tuple(-ord(character) for character in date)


def _capped(units: Iterator[Found], per_document: int | None, taken: Counter[str]) -> Iterator[Found]:
    """Yield at most `per_document` units of each document, including those counted in `taken`."""
    for unit in units:
        work = get_original(unit.document)
        if per_document is None or taken[work] < per_document:
            taken[work] += 1
            yield unit
