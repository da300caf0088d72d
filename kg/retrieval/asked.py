"""A query for text units: its ranking by the index, the relevance of the answer, and the units that are listed."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from kg.errors import IndexUnavailableError, QueryLimitError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of, start
from kg.retrieval.word_ranking import rank_by_store
from kg.search.protocol import Candidate, Codes, Conditions, Mode, Ranking, SearchIndex
from kg.search.ranking import POOL
from kg.search.relevance import (
    Relevance,
    assess_relevance,
    drop_unrelated,
    find_names,
    has_words,
    is_beyond,
    is_english,
    is_english_only,
    is_related,
)
from kg.search.word_overlap import parse_question
from kg.vocabulary import SCHEMA, SOURCED

_TEXTS: Final = frozenset({SCHEMA.text.value})
NAMES_CHECKED: Final = 4
"""Maximum number of names of a query that are looked up."""
UNKNOWN_SHARE: Final = 0.2
"""Share of the words of a query from which names that no text has refuse a weak answer. It refuses 0 of 2,788 questions
of ObliQA, 0.004 of 531 claims of CLIMATE-FEVER (with any unknown name 0.001 and 0.04), and two of four unanswerable
questions of tests/benchmarks/questions.py that the cosines alone do not refuse, and none of 76 with an answer."""

DISPUTED: Final = f"""
SELECT ?unit WHERE {{
  GRAPH ?graph {{ ?unit kg:disputedOrder true }} FILTER(STRSTARTS(STR(?graph), "{SOURCED}"))
}}"""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to search: a query, words that each unit must contain, and the minimum score of a unit.

    Without a minimum score, an answer that is not relevant has no units, and units far from the query are dropped.
    """

    query: str
    must: Sequence[str] = ()
    min_score: float | None = None
    typed: str | None = None
    """The query as the caller wrote it, if `query` adds names of concepts to it."""
    refuses: bool = True
    """Whether an answer can be refused by its cosines alone. False for texts on which the thresholds were not measured:
    then it is refused only if no candidate has a word of the query either."""
    _begun: dict[str, Future[Ranking]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The rankings that `begin` began, by their arguments."""

    @property
    def own_words(self) -> str:
        """The words of the caller, without names of concepts."""
        return self.typed or self.query

    def rank(
        self,
        search: SearchIndex,
        *,
        limit: int,
        units: Sequence[str] | None = None,
        parents: Sequence[str] | None = None,
        mode: Mode = "hybrid",
        codes: Conditions = (),
        counted: int = 0,
    ) -> Ranking:
        """Rank units by it; see `SearchIndex.rank`."""
        asked: dict[str, Any] = {"codes": codes} if codes else {}
        asked |= {"counted": counted} if counted else {}
        if units is None and parents is None and mode == "hybrid":
            begun = self._begun.pop(_key_of(limit, codes, counted), None)
            if begun is not None:
                return begun.result()
        return search.rank(self.query, units=units, parents=parents, limit=limit, mode=mode, must=self.must, **asked)

    def begin(self, search: SearchIndex, *, limit: int, codes: Conditions, counted: int) -> None:
        """Begin a ranking in a thread, which ends within the time limit of a search. `rank` waits for its result."""
        rank = partial(self.rank, search, limit=limit, codes=codes, counted=counted)
        self._begun[_key_of(limit, codes, counted)] = start("ranking", rank)

    def rank_all(
        self,
        reader: Reader,
        *,
        limit: int,
        units: Sequence[str] | None = None,
        parents: Sequence[str] | None = None,
        codes: Conditions = (),
        counted: int = 0,
    ) -> Ranking:
        """Rank units by it: by words alone if their meaning takes too long, by the store if the index does not answer.

        The store ranks without `codes`, and counts nothing. `incomplete` reports that the index may have another state
        than the call reads. Raises IndexUnavailableError if the store has too many texts to read them in time.
        """
        rank = partial(
            self.rank, reader.kg.search, limit=limit, units=units, parents=parents, codes=codes, counted=counted
        )
        with reader.kg.reading() as lease:
            lease.get()  # before the index is asked, so that later changes of it are noticed
        try:
            return _with_lag(rank(), reader.kg)
        except IndexUnavailableError as error:
            problem = str(error)
        try:
            return _with_lag(rank(mode="bm25"), reader.kg)
        except IndexUnavailableError:
            try:
                return rank_by_store(reader, self.query, self.must, limit=limit, units=units, parents=parents)
            except QueryLimitError as error:
                raise IndexUnavailableError(f"{problem} Reading the texts in the store failed: {error}") from None

    def assess(self, candidates: Sequence[Candidate], ranking: Ranking) -> Relevance:
        """Assess an answer by its candidates; see `assess_relevance`.

        Texts that the index lacks may be relevant, so an answer without them is never `none`.
        """
        found = assess_relevance(self.own_words, candidates, ranking.model, ranking.pending, ranking.units)
        if found == "none" and ranking.incomplete is not None:
            return "unknown"
        has_any = any(candidate.words for candidate in candidates)
        return "unknown" if found == "none" and has_any and not self.refuses else found

    def weaken(self, reader: Reader, found: Relevance, candidates: Sequence[Candidate], ranking: Ranking) -> Relevance:
        """Return `found`, or weak where it is strong by passages alone whose order is disputed."""
        if found != "strong":
            return found
        disputed = reader.kept(
            "passages whose order is disputed", DISPUTED, lambda rows: {iri_of(row["unit"]) for row in rows}
        )
        kept = [each for each in candidates if each.iri not in disputed]
        return found if len(kept) == len(candidates) or self.assess(kept, ranking) == "strong" else "weak"

    def judge(self, search: SearchIndex, candidates: Sequence[Candidate], ranking: Ranking) -> Relevance:
        """Assess an answer. One that is weak by its cosines alone is refused if no text has the names in the query."""
        found = self.assess(candidates, ranking)
        if found != "weak" or not self.refuses or self.min_score is not None or ranking.incomplete is not None:
            return found
        if has_words(candidates, ranking.model):
            return found
        return "none" if has_unknown_name(search, self.own_words) else found

    def is_foreign_to(self, model: str | None) -> bool:
        """Whether it is in another language than English, which is all that `model` knows."""
        return model is not None and is_english_only(model) and not is_english(self.own_words)

    def select(self, candidates: Sequence[Candidate], ranking: Ranking, relevance: Relevance) -> list[Candidate]:
        """Drop the candidates below the minimum score, or without one those that are not relevant."""
        if self.min_score is not None:
            return [candidate for candidate in candidates if candidate.score >= self.min_score]
        if relevance == "none":
            return []
        return list(candidates) if self._keeps_all(relevance) else drop_unrelated(candidates, ranking.model)

    def select_further(
        self, candidates: Sequence[Candidate], ranking: Ranking, relevance: Relevance, results: Container[str]
    ) -> list[Candidate]:
        """Drop the candidates that are no results of a query whose relevance was judged without a filter.

        `results` are the first of its results. Others are results if they are near the query: words are compared in the
        first units of a ranking, which with a filter are also others.
        """
        if relevance == "none":
            return []
        if self._keeps_all(relevance):
            return list(candidates)
        return [each for each in candidates if each.iri in results or is_related(each, ranking.model)]

    def is_ended(self, ranking: Ranking, relevance: Relevance) -> bool:
        """Whether `select` would drop every unit after the last one of a ranking, so that no deeper one is needed.

        The words of a query are compared in the first POOL units alone, so those after them are near it or dropped.
        """
        if self.min_score is not None or ranking.pending or self._keeps_all(relevance):
            return False
        if relevance == "none":
            return True
        candidates = ranking.candidates
        return len(candidates) > POOL and is_beyond(candidates[-1].score, ranking.model)

    def select_counted(self, ranking: Ranking, relevance: Relevance) -> Mapping[str, Codes]:
        """Drop the counted units that `select` would drop. With a minimum score, the ranking must have all of them."""
        if self.min_score is not None:
            kept = {each.iri for each in ranking.candidates if each.score >= self.min_score}
            return {iri: codes for iri, codes in ranking.counted.items() if iri in kept}
        if relevance == "none":
            return {}
        near = len(ranking.counted) if self._keeps_all(relevance) else ranking.near
        return dict(islice(ranking.counted.items(), near))

    def select_further_counted(
        self, ranking: Ranking, relevance: Relevance, results: Mapping[str, Codes]
    ) -> Mapping[str, Codes]:
        """Drop the counted units that `select_further` would drop, and add the first results."""
        if relevance == "none":
            return {}
        near = len(ranking.counted) if self._keeps_all(relevance) else ranking.near
        return {**dict(islice(ranking.counted.items(), near)), **results}

    def _keeps_all(self, relevance: Relevance) -> bool:
        return relevance == "unknown" or not self.refuses


def _with_lag(ranking: Ranking, kg: KnowledgeGraph) -> Ranking:
    """Add to `ranking` why the index may lack texts of the state that the call reads, or have others.

    Texts that it proposes and the state lacks are dropped by the lookup of their documents.
    """
    lag = None
    if kg.store.find_last_change(_TEXTS, users=True) > kg.generation:
        lag = "Texts have changed since the generation that was read, and the search index follows the newest one."
    elif kg.unindexed.is_set() or kg.loads.list_running():
        lag = "The search index follows a load that is running, and may lack texts of it."
    return ranking if lag is None or ranking.incomplete is not None else replace(ranking, incomplete=lag)


def has_unknown_name(search: SearchIndex, query: str) -> bool:
    """Whether names that are in no text of the index are a fifth of the words that carry the topic of a query."""
    least = UNKNOWN_SHARE * len(parse_question(query).words)
    unknown = 0
    try:
        for name in find_names(query)[:NAMES_CHECKED]:
            found = search.rank(name, limit=1, mode="bm25")
            unknown += found.incomplete is None and not any(each.bm25 > 0 for each in found.candidates)
            if unknown and unknown >= least:
                return True
    except IndexUnavailableError:
        pass
    return False


def _key_of(limit: int, codes: Conditions, counted: int) -> str:
    return repr((limit, [*codes], counted))
