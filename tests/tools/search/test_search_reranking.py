"""A reranker orders the first passages of an answer again; without its scores the fused order stays, and is noted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kg.errors import UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval import hybrid_search
from kg.retrieval.results import SearchFilters
from kg.search.reranker import CHARACTERS, Reranker, open_reranker
from kg.settings import Settings
from kg.tools.parliament.search import search_speeches
from kg.tools.search import research
from kg.tools.search.passages import search
from tests.tools.made_up import Passages
from tests.tools.made_up_speeches import Speeches, open_speeches, table

DEPTH = 8


class StandIn:
    """Scores by the last characters of a text: an order that has nothing to do with words."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Sequence[str]]] = []
        self.fails = False

    def score(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        self.asked.append((query, texts))
        if self.fails:
            raise UpstreamError("The stand-in is down.")
        return [float(value(text)) for text in texts]


def value(text: str) -> int:
    return sum(map(ord, text[:CHARACTERS][-7:]))


@pytest.fixture
def stand_in(kg: KnowledgeGraph) -> StandIn:
    made = StandIn()
    kg.reranker = Reranker("stand-in", made.score, depth=DEPTH, timeout_s=5)
    return made


@pytest.fixture(params=["narrow", "wide"])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "wide":
        monkeypatch.setattr(hybrid_search, "NARROW", 3)


@pytest.mark.usefixtures("width")
def test_the_first_passages_are_ordered_by_the_reranker(kg: KnowledgeGraph, stand_in: StandIn, made: Passages) -> None:
    reranker, kg.reranker = kg.reranker, None
    fused = [hit.id for hit in search(kg, "solar tariff", limit=20).results]
    kg.reranker = reranker
    found = search(kg, "solar tariff", limit=20)
    ids = [hit.id for hit in found.results]
    text = {passage.iri: passage.text for passage in made}
    assert ids[:DEPTH] == sorted(fused[:DEPTH], key=lambda iri: -value(text[iri]))
    assert ids[DEPTH:] == fused[DEPTH:]
    assert ids != fused
    assert found.reranked is True
    assert {query for query, _ in stand_in.asked} == {"solar tariff"}
    assert all(len(each) <= CHARACTERS for _, texts in stand_in.asked for each in texts)


@pytest.mark.usefixtures("width")
def test_pages_are_parts_of_one_order_that_is_asked_for_once(kg: KnowledgeGraph, stand_in: StandIn) -> None:
    whole = [hit.id for hit in search(kg, "solar tariff", limit=21).results]
    parts = [hit.id for offset in range(0, 21, 3) for hit in search(kg, "solar tariff", limit=3, offset=offset).results]
    assert parts == whole
    assert len(stand_in.asked) == 1


@pytest.mark.usefixtures("width")
def test_a_reranker_that_fails_leaves_the_fused_order_and_says_so(kg: KnowledgeGraph, stand_in: StandIn) -> None:
    reranker, kg.reranker = kg.reranker, None
    fused = search(kg, "solar tariff", limit=20)
    kg.reranker, stand_in.fails = reranker, True
    found = search(kg, "solar tariff", limit=20)
    assert found.results == fused.results
    assert (fused.reranked, found.reranked) == (None, False)
    assert any("The stand-in is down." in note for note in found.notes)
    assert research.search(kg, "solar tariff").reranked is False


@pytest.mark.usefixtures("width")
def test_passages_that_mention_a_concept_stay_before_all_others(kg: KnowledgeGraph, stand_in: StandIn) -> None:
    reranker, kg.reranker = kg.reranker, None
    filters = SearchFilters(concept_qids=["Q1012"])
    fused = [hit.id for hit in search(kg, "tariff", filters, limit=50).results]
    mentions = [hit.id for hit in search(kg, "tariff", filters, limit=50).results if hit.score >= 0.5]
    kg.reranker = reranker
    found = [hit.id for hit in search(kg, "tariff", filters, limit=50).results]
    assert sorted(found) == sorted(fused)
    assert set(found[: len(mentions)]) == set(mentions)


def test_speeches_are_ordered_by_their_best_passage() -> None:
    speeches: Speeches = open_speeches(table(10, seed=5))
    made = StandIn()
    speeches.kg.reranker = Reranker("stand-in", made.score, depth=64, timeout_s=5)
    found = search_speeches(speeches.kg, "solar ferry harbour", top_k=50)
    assert found.reranked is True
    [(_, texts)] = made.asked
    best = [value(speeches[each.speech_id].text[slice(*speeches[each.speech_id].chunks()[each.chunk_index])])
            for each in found.results]  # fmt: skip
    assert best == sorted(best, reverse=True)
    assert best[0] == max(map(value, texts))


def test_no_reranker_is_open_unless_the_settings_name_one() -> None:
    def local(query: str, texts: Sequence[str], seconds: float) -> list[float]:
        return [0.0 for _ in texts]

    def settings(**given: object) -> Settings:
        return Settings(_env_file=None, **given)  # type: ignore[arg-type]

    assert open_reranker(settings(), local) is None
    at_path = open_reranker(settings(reranker_path="/models/tiny"), local)
    assert at_path is not None
    assert (at_path.name, at_path.score("q", ["a", "b"])) == ("tiny", [0.0, 0.0])
    at_url = open_reranker(settings(reranker_url="http://127.0.0.1:9/v1"), local)
    assert at_url is not None
    assert at_url.name == "http://127.0.0.1:9/v1/rerank"
