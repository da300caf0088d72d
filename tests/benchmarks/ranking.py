"""Is our order better than words alone, meaning alone, and the usual way to join them?

Data: the corpora of `tests.benchmarks.corpora`. BM25's weight is chosen on the even questions, everything is scored
on the odd ones. A change of the order has to gain on both English corpora. In the one of several languages, a question
has one answer: in its own or another language, among the passages of that language or of 12,000 English ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.progress import track

from kg.search.index_client import EdgeIndex
from kg.search.protocol import Candidate
from kg.search.ranking import BM25_WEIGHT, COSINE_WEIGHT, PAIR_WEIGHT, Fusion
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.corpora import LANGUAGES, Corpus, Question, find_corpora, find_languages, load_xquad_questions

PAGE = 10
POOL = 1_000
"""Candidates per question by our score; of these the first 100 by it, by words and by meaning are ordered again."""

LIST = 100
"""What each side proposes where nothing is scored again."""

RRF_K = 60

Order = Callable[[Sequence[Candidate]], list[str]]


DEEP = 50
DEEP_GOAL = 0.95
FOREIGN_GOALS = {"es": (0.97, 0.90), "de": (0.97, 0.88), "ru": (0.96, 0.88), "zh": (0.94, 0.86)}
"""hit@10 of a passage in another language than the question's: among those of its language, and among English ones."""
GOALS = {"obliqa": 0.70, "climate_fever": 0.40}


@dataclass(frozen=True, slots=True)
class Answered:
    """The IRIs of the passages that answer a question, and what the index proposes, best first."""

    relevant: frozenset[str]
    candidates: Sequence[Candidate]


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Compare the orders.

    Arguments: the share of questions to take (2: every second one, the default), and names of corpora, to take these
    alone: obliqa, climate_fever, languages.
    """
    stride = next((int(each) for each in arguments if each.isdecimal()), 2)
    names = [each for each in arguments if not each.isdecimal()]
    corpora = find_corpora()
    if not corpora:
        print("ranking is not measured: the corpora are not there")
    for corpus in corpora:
        if not names or corpus.name in names:
            yield from _compare(corpus, list(_ask(corpus, stride)))
    if not names or "languages" in names:
        yield from _compare_languages()


def _compare(corpus: Corpus, questions: Sequence[Answered]) -> Iterable[Comparison]:
    even, odd = questions[::2], questions[1::2]
    weights = [step / 20 for step in range(21)]
    ours = {weight: _ndcg(even, _fused(weight)) for weight in weights}
    bare = {weight: _ndcg(even, _without_rerank(weight)) for weight in weights}
    print(f"{corpus.name}: nDCG@10 by BM25's weight, on the {len(even):,} even questions: with rerank, without")
    for weight in weights:
        print(f"  {weight:.2f}  {ours[weight]:.4f}  {bare[weight]:.4f}")
    print(f"{corpus.name}: nDCG@10 by the weight of pairs of words, on all questions")
    for step in range(7):
        print(f"  {step / 20:.2f}  {_ndcg(questions, _fused(BM25_WEIGHT, step / 20)):.4f}")
    best, best_bare = max(weights, key=lambda weight: ours[weight]), max(weights, key=lambda weight: bare[weight])

    orders: dict[str, Order] = {
        "the fusion without pairs of words": _fused(BM25_WEIGHT, 0.0),
        "BM25 alone": _by_words,
        "embeddings alone": _by_meaning,
        f"reciprocal ranks, k = {RRF_K}": _reciprocal_ranks,
        f"ours without rerank, its best weight {best_bare:.2f}": _without_rerank(best_bare),
    }
    title = f"{corpus.name}: BM25's weight, next to the best on the even questions"
    yield Comparison(title, BM25_WEIGHT, best, "")
    program = _fused(BM25_WEIGHT, PAIR_WEIGHT)
    gain, recall, goal = _ndcg(odd, program), _recall(odd, program), GOALS[corpus.name]
    title = f"{corpus.name}: nDCG@10 on the {len(odd):,} odd questions, ours"
    yield Comparison(title, gain, None, "", f">= {goal}", gain >= goal)
    for name, order in orders.items():
        theirs = _ndcg(odd, order)
        yield Comparison(f"{corpus.name}: nDCG@10, over {name}", gain, theirs, "", "above", gain > theirs)
    yield Comparison(f"{corpus.name}: Recall@10, ours", recall, None, "")
    for name, order in orders.items():
        yield Comparison(f"{corpus.name}: Recall@10, over {name}", recall, _recall(odd, order), "")


def _compare_languages() -> Iterable[Comparison]:
    """Ask for passages in another language than the question's, and for the only answer among English passages."""
    corpus = find_languages()
    if corpus is None:
        return
    with corpus.open_index() as index:
        for language in LANGUAGES:
            questions = {each: load_xquad_questions(each) for each in ("en", language)}
            goal = FOREIGN_GOALS.get(language)
            asked: list[tuple[str, str, tuple[str, ...]]] = [
                ("en", language, (language,)),
                (language, language, (language,)),
            ]
            if language != "en":
                asked += [(language, "en", ("en",)), ("en", language, (language, "obliqa"))]
            for own, other, types in asked:
                ranks = [*_find_ranks(index, questions[own], other, types)]
                least = None if goal is None or own == other else goal[len(types) - 1]
                title = f"{own} question, {other} passage{' among 12,000 English ones' if len(types) > 1 else ''}"
                yield _share(f"{title}: hit@10", ranks, PAGE, least)
                yield _share(f"{title}: hit@50", ranks, DEEP, DEEP_GOAL if len(types) > 1 else None)
                yield _share(f"{title}: hit@1", ranks, 1, None)


def _share(title: str, ranks: Sequence[int], most: int, least: float | None) -> Comparison:
    share = sum(rank < most for rank in ranks) / len(ranks)
    return Comparison(title, share, None, "", "" if least is None else f">= {least}", least is None or share >= least)


def _find_ranks(index: EdgeIndex, questions: Sequence[Question], language: str, types: Sequence[str]) -> Iterator[int]:
    for question in track(questions, "asking", transient=True):
        found = index.rank(question.text, limit=DEEP, codes=[{"type": types}]).candidates
        [answer] = (f"urn:{language}:{each}" for each in question.relevant)
        yield next((rank for rank, each in enumerate(found) if each.iri == answer), DEEP)


def _ask(corpus: Corpus, stride: int) -> Iterator[Answered]:
    with corpus.open_index() as index:
        for question in track(corpus.load_questions()[::stride], "asking", transient=True):
            found = index.rank(question.text, limit=POOL).candidates
            kept = {*(c.iri for c in found[:LIST]), *_by_words(found)[:LIST], *_by_meaning(found)[:LIST]}
            yield Answered(question.relevant, [candidate for candidate in found if candidate.iri in kept])


def _ndcg(questions: Sequence[Answered], order: Order) -> float:
    total = 0.0
    for question in questions:
        page = order(question.candidates)[:PAGE]
        gain = sum(1 / math.log2(rank + 2) for rank, iri in enumerate(page) if iri in question.relevant)
        total += gain / sum(1 / math.log2(rank + 2) for rank in range(min(PAGE, len(question.relevant))))
    return total / len(questions)


def _recall(questions: Sequence[Answered], order: Order) -> float:
    found = (len(question.relevant & set(order(question.candidates)[:PAGE])) for question in questions)
    return sum(hits / len(question.relevant) for hits, question in zip(found, questions, strict=True)) / len(questions)


def _fused(weight: float, pairs: float = 0.0) -> Order:
    def order(candidates: Sequence[Candidate]) -> list[str]:
        bm25, cosine = {c.iri: c.bm25 for c in candidates}, _cosines(candidates)
        fused = {c.iri: c.score for c in _refuse(candidates, weight, bm25, cosine)}
        shares = {c.iri: c.pairs or 0.0 for c in candidates}
        return sorted(fused, key=lambda iri: (-(1 - pairs) * fused[iri] - pairs * shares[iri], iri))

    return order


def _without_rerank(weight: float) -> Order:
    """Fuse only the scores that each side gave to what it proposed itself: a unit of one list has 0 in the other."""

    def order(candidates: Sequence[Candidate]) -> list[str]:
        words, cosines = set(_by_words(candidates)[:LIST]), _cosines(candidates)
        meaning = set(_by_meaning(candidates)[:LIST])
        ranked = _refuse(
            [c for c in candidates if c.iri in words | meaning],
            weight,
            {c.iri: c.bm25 for c in candidates if c.iri in words},
            {c.iri: cosines[c.iri] if c.iri in meaning else 0.0 for c in candidates},
        )
        return [candidate.iri for candidate in ranked]

    return order


def _refuse(
    candidates: Sequence[Candidate], weight: float, bm25: Mapping[str, float], cosine: Mapping[str, float]
) -> list[Candidate]:
    share = weight / (BM25_WEIGHT + COSINE_WEIGHT)
    fusion = Fusion(max(bm25.values(), default=0.0), max(cosine.values(), default=0.0), share, 1 - share)
    scored = [replace(c, score=fusion.score(bm25.get(c.iri, 0.0), cosine.get(c.iri))) for c in candidates]
    return sorted(scored, key=lambda c: (-c.score, c.iri))


def _by_words(candidates: Sequence[Candidate]) -> list[str]:
    return [c.iri for c in sorted(candidates, key=lambda c: (-c.bm25, c.iri)) if c.bm25 > 0]


def _by_meaning(candidates: Sequence[Candidate]) -> list[str]:
    cosines = _cosines(candidates)
    return sorted(cosines, key=lambda iri: (-cosines[iri], iri))


def _cosines(candidates: Sequence[Candidate]) -> dict[str, float]:
    return {c.iri: c.cosine for c in candidates if c.cosine is not None}


def _reciprocal_ranks(candidates: Sequence[Candidate]) -> list[str]:
    scores: dict[str, float] = {}
    for ranking in (_by_words(candidates)[:LIST], _by_meaning(candidates)[:LIST]):
        for rank, iri in enumerate(ranking, start=1):
            scores[iri] = scores.get(iri, 0.0) + 1 / (RRF_K + rank)
    return sorted(scores, key=lambda iri: (-scores[iri], iri))
