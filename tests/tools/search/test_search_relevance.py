"""Search says that nothing is relevant, in every way of asking, instead of listing the nearest passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval import hybrid_search
from kg.retrieval.asked import Asked
from kg.retrieval.results import SearchFilters
from kg.search.protocol import Candidate, Mode, Ranking
from kg.search.ranking import COSINE_WEIGHT, PAIR_WEIGHT, POOL
from kg.search.relevance import CALIBRATIONS, NOTHING, UNJUDGED, Relevance
from kg.store.protocol import Rows
from kg.tools.search import research
from kg.tools.search.passages import search
from kg.tools.sparql.local_services import expand_services
from tests.tools.made_up import Passages, WordIndex

MODEL, LIMITS = next(iter(CALIBRATIONS.items()))
NONSENSE = "qwxyz asdfgh zzzz"
FOUND = Relevance(0.9)


def is_small(covers: float | None) -> bool:
    return covers is not None and covers < LIMITS.same.floor


class Calibrated(WordIndex):
    """An index whose cosine is high for passages with a word of the query, as a calibrated model would have it."""

    cosines = (LIMITS.cut - 0.1, 0.8)
    pending = 0
    incomplete: str | None = None

    def rank(
        self,
        query: str,
        *,
        units: Sequence[str] | None = None,
        parents: Sequence[str] | None = None,
        limit: int,
        mode: Mode = "hybrid",
        must: Sequence[str] = (),
    ) -> Ranking:
        found = super().rank(query, units=units, parents=parents, limit=limit)
        kept = [
            replace(each, cosine=self.cosines[each.bm25 > 0])
            for each in found.candidates
            if all(self.score(word, each.iri) for word in must)
        ]
        return Ranking(kept, found.exhaustive, MODEL, self.pending, incomplete=self.incomplete)


@pytest.fixture(params=[True, False], ids=["narrow", "wide"])
def calibrated(kg: KnowledgeGraph, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> KnowledgeGraph:
    if not request.param:
        monkeypatch.setattr(hybrid_search, "NARROW", 3)
    assert isinstance(kg.search, WordIndex)
    kg.search = Calibrated(kg.search.units)
    return kg


def rows(kg: KnowledgeGraph, clause: str) -> list[dict[str, str]]:
    result = kg.pool.run(expand_services(kg, f"SELECT * {{ SERVICE kg:search {{ {clause} }} }}")).result
    assert isinstance(result, Rows)
    return [{name: term.value for name, term in row.items()} for row in result]


def test_nonsense_finds_nothing_and_says_so(calibrated: KnowledgeGraph) -> None:
    found = search(calibrated, NONSENSE, limit=50)
    assert (found.results, found.next_offset, len(found.nearest)) == ([], None, 3)
    assert is_small(found.covers)
    assert found.notes
    assert is_small(research.search(calibrated, NONSENSE).covers)
    assert search(calibrated, NONSENSE, SearchFilters(iso3=["DJI"])).results == []
    assert search(calibrated, NONSENSE, offset=3).nearest == []


def test_no_more_is_ranked_than_can_be_a_result(monkeypatch: pytest.MonkeyPatch, calibrated: KnowledgeGraph) -> None:
    monkeypatch.setattr(hybrid_search, "FIRST_BLOCK", 2)
    monkeypatch.setattr(hybrid_search, "NARROW", 3)
    limits: list[int] = []
    rank = Calibrated.rank

    def note(self: Calibrated, query: str, *, limit: int, **given: Any) -> Ranking:
        limits.append(limit)
        return rank(self, query, limit=limit, **given)

    monkeypatch.setattr(Calibrated, "rank", note)
    found = search(calibrated, NONSENSE)
    assert (found.results, found.meta.completeness, found.meta.total) == ([], "complete", 0)
    assert max(limits) == 2


def test_a_ranking_ends_where_scores_are_too_low_to_be_near() -> None:
    asked = Asked("solar")
    least = LIMITS.cut * COSINE_WEIGHT * (1 - PAIR_WEIGHT)
    near, far = (
        Ranking([Candidate(f"urn:{n}", score, 0.0, LIMITS.cut) for n in range(POOL + 1)], False, MODEL)
        for score in (least, least - 0.001)
    )
    assert not asked.is_ended(near, FOUND)
    assert asked.is_ended(far, FOUND)
    assert not asked.is_ended(replace(far, candidates=far.candidates[:POOL]), FOUND)
    assert not asked.is_ended(replace(far, pending=1), FOUND)
    assert not asked.is_ended(replace(far, model=None), FOUND)
    assert not asked.is_ended(far, UNJUDGED)
    assert not replace(asked, min_score=0.0).is_ended(far, NOTHING)


def test_a_question_with_an_answer_is_answered(calibrated: KnowledgeGraph) -> None:
    found = search(calibrated, "solar", limit=5)
    second = search(calibrated, "solar", limit=5, offset=5)
    assert (len(found.results), found.nearest, second.covers) == (5, [], found.covers)
    assert (found.covers or 0) > 0.9


def test_a_minimum_score_lists_what_is_not_relevant_too(calibrated: KnowledgeGraph) -> None:
    found = search(calibrated, NONSENSE, limit=5, min_score=0)
    assert (len(found.results), found.nearest) == (5, [])
    assert is_small(found.covers)
    assert search(calibrated, NONSENSE, limit=5, min_score=0.9).results == []
    scores = [hit.score for hit in search(calibrated, "solar tariff", limit=100, min_score=0.5).results]
    assert scores
    assert min(scores) >= 0.5


def test_required_words_are_in_every_result(calibrated: KnowledgeGraph, made: Passages) -> None:
    text = {passage.iri: passage.text.casefold() for passage in made}
    found = search(calibrated, "solar", limit=50, must=["tariff"])
    assert found.results
    assert all("tariff" in text[hit.id] for hit in found.results)
    nothing = search(calibrated, "solar", must=["zeppelin"])
    assert (nothing.results, nothing.covers) == ([], 0)
    with pytest.raises(InvalidInputError):
        search(calibrated, "solar", must=[" "])


def test_while_vectors_are_pending_nothing_is_judged_but_what_was_compared_and_is_far(
    calibrated: KnowledgeGraph,
) -> None:
    assert isinstance(calibrated.search, Calibrated)
    calibrated.search.pending = 1
    found = search(calibrated, NONSENSE, limit=5)
    assert (found.results, found.nearest, found.covers) == ([], [], None)
    assert found.uncovered_reason
    assert len(search(calibrated, "solar", limit=5).results) == 5


def test_an_answer_that_lacks_texts_is_never_without_relevant_ones(calibrated: KnowledgeGraph) -> None:
    assert isinstance(calibrated.search, Calibrated)
    assert search(calibrated, NONSENSE, limit=5).results == []
    calibrated.search.incomplete = "2 shard(s) did not answer."
    found = search(calibrated, NONSENSE, limit=5)
    assert (found.covers, len(found.results), found.meta.completeness) == (None, 5, "approximate")
    assert any("2 shard(s) did not answer." in note for note in found.notes)


def test_a_clause_finds_nothing_for_nonsense(calibrated: KnowledgeGraph) -> None:
    assert rows(calibrated, f'?unit kg:matches "{NONSENSE}" ; kg:limit 500') == []
    forced = rows(calibrated, f'?unit kg:matches "{NONSENSE}" ; kg:limit 20 ; kg:minScore 0 ; kg:covers ?how')
    assert all(is_small(float(row["how"])) for row in forced)
    assert len(forced) == 20


def test_a_clause_takes_required_words_and_states_what_is_covered(calibrated: KnowledgeGraph, made: Passages) -> None:
    text = {passage.iri: passage.text.casefold() for passage in made}
    found = rows(calibrated, '?unit kg:matches "solar" ; kg:must "tariff" ; kg:covers ?how ; kg:limit 50')
    assert found
    assert all("tariff" in text[row["unit"]] and float(row["how"]) > 0.9 for row in found)
    both = rows(calibrated, '?unit kg:matches "solar" ; kg:must "tariff" ; kg:must "zeppelin"')
    assert both == []


@pytest.mark.parametrize(
    "part", ["kg:must ?word", 'kg:must " "', 'kg:minScore "high"', "kg:minScore -1", "kg:covers 0.5"]
)
def test_an_invalid_part_of_a_clause_is_an_error(kg: KnowledgeGraph, part: str) -> None:
    with pytest.raises(InvalidInputError):
        rows(kg, f'?unit kg:matches "solar" ; {part}')
