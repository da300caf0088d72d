"""Is our order better than words alone, meaning alone, and the usual way to join them?

Data: 13,012 passages of 40 financial rulebooks and the dev questions of ObliQA, in the folder of real data beside the
project. The weights of the fusion are chosen on the even questions, everything is scored on the odd ones. The first run
embeds all passages (minutes); the index stays in the user's cache, so later runs take a few minutes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from platformdirs import user_cache_path
from rich.progress import track

from kg.search.index_client import EdgeIndex
from kg.search.protocol import Candidate, GraphUnits, IndexedUnit
from kg.search.ranking import BM25_WEIGHT, COSINE_WEIGHT, Fusion
from kg.settings import Settings
from kg.vocabulary import sha256
from tests.benchmarks.comparison import Comparison

ROOT = Path(__file__).parent.parent.parent
PAGE = 10
POOL = 1_000
"""Candidates per question by our score; of these the first 100 by it, by words and by meaning are ordered again."""

LIST = 100
"""What each side proposes where nothing is scored again."""

RRF_K = 60

Order = Callable[[Sequence[Candidate]], list[str]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the IRIs of the passages that answer it, and what the index proposes, best first."""

    relevant: frozenset[str]
    candidates: Sequence[Candidate]


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Compare the orders; the argument is the share of questions to take (2: every second one, the default)."""
    stride = int(arguments[0]) if arguments else 2
    folder = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "retrieval" / "obliqa"
    if not folder.is_dir():
        print(f"ranking is not measured: there is no {folder}")
        return
    questions = list(_ask(folder, stride))
    even, odd = questions[::2], questions[1::2]

    weights = [step / 20 for step in range(21)]
    ours = {weight: _ndcg(even, _fused(weight)) for weight in weights}
    bare = {weight: _ndcg(even, _without_rerank(weight)) for weight in weights}
    print(f"nDCG@10 by BM25's weight, on the {len(even):,} even questions: with rerank, without")
    for weight in weights:
        print(f"  {weight:.2f}  {ours[weight]:.4f}  {bare[weight]:.4f}")
    best, best_bare = max(weights, key=lambda weight: ours[weight]), max(weights, key=lambda weight: bare[weight])

    orders: dict[str, Order] = {
        "BM25 alone": _by_words,
        "embeddings alone": _by_meaning,
        f"reciprocal ranks, k = {RRF_K}": _reciprocal_ranks,
        f"ours without rerank, its best weight {best_bare:.2f}": _without_rerank(best_bare),
    }
    title = "BM25's weight: the program's, beside the best on the even questions"
    yield Comparison(title, BM25_WEIGHT, best, "", "equal", math.isclose(BM25_WEIGHT, best))
    gain, recall = _ndcg(odd, _fused(BM25_WEIGHT)), _recall(odd, _fused(BM25_WEIGHT))
    yield Comparison(f"nDCG@10 on the {len(odd):,} odd questions, ours", gain, None, "", ">= 0.70", gain >= 0.70)
    for name, order in orders.items():
        theirs = _ndcg(odd, order)
        yield Comparison(f"nDCG@10, over {name}", gain, theirs, "", "above", gain > theirs)
    yield Comparison("Recall@10, ours", recall, None, "")
    for name, order in orders.items():
        yield Comparison(f"Recall@10, over {name}", recall, _recall(odd, order), "")


def _ask(folder: Path, stride: int) -> Iterator[Question]:
    index = EdgeIndex(user_cache_path("quadcite") / "benchmarks" / "obliqa", Settings())
    try:
        graphs = _passages(folder)
        held = index.state()
        index.replace({graph: new for graph, new in graphs.items() if held.get(graph) != new.content_sha256})
        index.remove(held.keys() - graphs.keys())
        print(f"{index.status().pending_vectors} of {index.status().units} passages to embed")
        index.wait()
        questions = json.loads((folder / "ObliQA_dev.json").read_text("utf-8"))[::stride]
        for question in track(questions, "asking", transient=True):
            relevant = frozenset(_iri(passage["DocumentID"], passage["PassageID"]) for passage in question["Passages"])
            found = index.rank(question["Question"], limit=POOL).candidates
            kept = {*(c.iri for c in found[:LIST]), *_by_words(found)[:LIST], *_by_meaning(found)[:LIST]}
            yield Question(relevant, [candidate for candidate in found if candidate.iri in kept])
    finally:
        index.close()


def _passages(folder: Path) -> Mapping[str, GraphUnits]:
    graphs: dict[str, GraphUnits] = {}
    for path in sorted((folder / "StructuredRegulatoryDocuments").glob("*.json")):
        graph = f"urn:obliqa:graph:{path.stem}"
        # a few ids occur twice in a document; the dataset means the first
        units: dict[str, IndexedUnit] = {}
        for passage in json.loads(path.read_text("utf-8")):
            iri = _iri(passage["DocumentID"], passage["PassageID"])
            if passage["Passage"].strip() and iri not in units:
                units[iri] = IndexedUnit(iri, graph, f"urn:obliqa:{passage['DocumentID']}", passage["Passage"])
        graphs[graph] = GraphUnits(sha256(path.read_bytes()), list(units.values()))
    return graphs


def _iri(document: int, passage: str) -> str:
    return f"urn:obliqa:{document}:{quote(passage, safe='')}"


def _ndcg(questions: Sequence[Question], order: Order) -> float:
    total = 0.0
    for question in questions:
        page = order(question.candidates)[:PAGE]
        gain = sum(1 / math.log2(rank + 2) for rank, iri in enumerate(page) if iri in question.relevant)
        total += gain / sum(1 / math.log2(rank + 2) for rank in range(min(PAGE, len(question.relevant))))
    return total / len(questions)


def _recall(questions: Sequence[Question], order: Order) -> float:
    found = (len(question.relevant & set(order(question.candidates)[:PAGE])) for question in questions)
    return sum(hits / len(question.relevant) for hits, question in zip(found, questions, strict=True)) / len(questions)


def _fused(weight: float) -> Order:
    def order(candidates: Sequence[Candidate]) -> list[str]:
        return _refuse(candidates, weight, {c.iri: c.bm25 for c in candidates}, _cosines(candidates))

    return order


def _without_rerank(weight: float) -> Order:
    """Fuse only the scores that each side gave to what it proposed itself: a unit of one list has 0 in the other."""

    def order(candidates: Sequence[Candidate]) -> list[str]:
        words, cosines = set(_by_words(candidates)[:LIST]), _cosines(candidates)
        meaning = set(_by_meaning(candidates)[:LIST])
        return _refuse(
            [c for c in candidates if c.iri in words | meaning],
            weight,
            {c.iri: c.bm25 for c in candidates if c.iri in words},
            {c.iri: cosines[c.iri] if c.iri in meaning else 0.0 for c in candidates},
        )

    return order


def _refuse(
    candidates: Sequence[Candidate], weight: float, bm25: Mapping[str, float], cosine: Mapping[str, float]
) -> list[str]:
    share = weight / (BM25_WEIGHT + COSINE_WEIGHT)
    fusion = Fusion(max(bm25.values(), default=0.0), max(cosine.values(), default=0.0), share, 1 - share)
    return [candidate.iri for candidate in fusion.rank((c.iri for c in candidates), bm25, cosine)]


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
