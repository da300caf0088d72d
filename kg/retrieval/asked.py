"""A query for text units: its ranking by the index, the relevance of the answer, and the units that are listed."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from kg.errors import IndexUnavailableError, InvalidInputError, QueryLimitError
from kg.knowledge_graph import KnowledgeGraph
from kg.observability import observe_search
from kg.retrieval.reader import Reader, start
from kg.retrieval.word_ranking import rank_by_store
from kg.search.protocol import Candidate, Codes, Conditions, Mode, Ranking, SearchIndex
from kg.search.ranking import POOL
from kg.search.relevance import FEW, Relevance, drop_unrelated, is_beyond, is_related
from kg.text import quoted
from kg.vocabulary import SCHEMA

_TEXTS: Final = frozenset({SCHEMA.text.value})
_FIRST: Final = 3


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
        """Rank units by it; see `SearchIndex.rank`. Raises InvalidInputError if no required word can be searched."""
        asked: dict[str, Any] = {"codes": codes} if codes else {}
        asked |= {"counted": counted} if counted else {}
        if units is None and parents is None and mode == "hybrid":
            begun = self._begun.pop(_key_of(limit, codes, counted), None)
            if begun is not None:
                return begun.result()
        with observe_search(mode):
            found = search.rank(
                self.query, units=units, parents=parents, limit=limit, mode=mode, must=self.must, **asked
            )
        if found.is_void:
            raise InvalidInputError(
                f"must: {' and '.join(map(quoted, self.must))} cannot be required: the search index has no stop words, "
                "which nearly every text contains. Require other words, or leave must out."
            )
        return found

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
            found = _with_lag(rank(mode="bm25"), reader.kg)
            return found if found.incomplete is not None else replace(found, incomplete=f"{problem} Ranked by words.")
        except IndexUnavailableError:
            try:
                return rank_by_store(reader, self.query, self.must, limit=limit, units=units, parents=parents)
            except QueryLimitError as error:
                raise IndexUnavailableError(f"{problem} Reading the texts in the store failed: {error}") from None

    def select(self, candidates: Sequence[Candidate], ranking: Ranking, relevance: Relevance) -> list[Candidate]:
        """Drop the candidates below the minimum score, or without one those that are not relevant."""
        if self.min_score is not None:
            return [candidate for candidate in candidates if candidate.score >= self.min_score]
        if relevance.refused:
            return []
        kept = list(candidates) if _keeps_all(ranking, relevance) else drop_unrelated(candidates, ranking.model)
        if kept or relevance.covers is None or ranking.units is None or ranking.units > FEW:
            return kept
        return list(candidates[:_FIRST])  # of few units, the first ones are results, however far they are

    def select_further(
        self, candidates: Sequence[Candidate], ranking: Ranking, relevance: Relevance, results: Container[str]
    ) -> list[Candidate]:
        """Drop the candidates that are no results of a query whose relevance was judged without a filter.

        `results` are the first of its results. Others are results if they are near the query: words are compared in the
        first units of a ranking, which with a filter are also others.
        """
        if relevance.refused:
            return []
        if _keeps_all(ranking, relevance):
            return list(candidates)
        return [each for each in candidates if each.iri in results or is_related(each, ranking.model)]

    def is_ended(self, ranking: Ranking, relevance: Relevance) -> bool:
        """Whether `select` would drop every unit after the last one of a ranking, so that no deeper one is needed.

        The words of a query are compared in the first POOL units alone, so those after them are near it or dropped.
        """
        if self.min_score is not None or ranking.pending or relevance.covers is None:
            return False
        if relevance.refused:
            return True
        candidates = ranking.candidates
        return len(candidates) > POOL and is_beyond(candidates[-1].score, ranking.model)

    def select_counted(self, ranking: Ranking, relevance: Relevance) -> Mapping[str, Codes]:
        """Drop the counted units that `select` would drop. With a minimum score, the ranking must have all of them."""
        if self.min_score is not None:
            kept = {each.iri for each in ranking.candidates if each.score >= self.min_score}
            return {iri: codes for iri, codes in ranking.counted.items() if iri in kept}
        if relevance.refused:
            return {}
        near = len(ranking.counted) if _keeps_all(ranking, relevance) else ranking.near
        return dict(islice(ranking.counted.items(), near))

    def select_further_counted(
        self, ranking: Ranking, relevance: Relevance, results: Mapping[str, Codes]
    ) -> Mapping[str, Codes]:
        """Drop the counted units that `select_further` would drop, and add the first results."""
        if relevance.refused:
            return {}
        near = len(ranking.counted) if _keeps_all(ranking, relevance) else ranking.near
        return {**dict(islice(ranking.counted.items(), near)), **results}


def _keeps_all(ranking: Ranking, relevance: Relevance) -> bool:
    """Whether no unit is dropped, since whether it is far from the query is not known."""
    return relevance.covers is None and not ranking.uncompared and not ranking.pending


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


def _key_of(limit: int, codes: Conditions, counted: int) -> str:
    return repr((limit, [*codes], counted))
