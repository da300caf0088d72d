"""A query that fails does not make the next ones wait, and batches are as large as the embedder takes at once."""

from __future__ import annotations

import time
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from kg.errors import UpstreamError
from kg.search import vector_worker
from kg.search.shards import Shards
from kg.search.vector_worker import ModelSlot, VectorWorker, _batches
from tests.search.word_embedder import WordEmbedder


class Failing(WordEmbedder):
    """Fails for the first queries; counts all."""

    def __init__(self, failures: int) -> None:
        super().__init__("words", 8)
        self.failures, self.asked = failures, 0

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.asked += 1
        if self.asked <= self.failures:
            raise UpstreamError("no answer within 2 s")
        return super().embed_query(text)


def test_after_a_failure_queries_are_not_sent_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    embedder = Failing(failures=1)
    worker = VectorWorker([ModelSlot("words", lambda: embedder, embedder)])
    assert [worker.embed_query(text) for text in ("levy", "levy", "tariff")] == [None] * 3
    assert (embedder.asked, worker.error) == (1, "no answer within 2 s")
    now += vector_worker._QUERY_PAUSE_S
    vector = worker.embed_query("levy")
    assert vector is not None
    assert embedder.asked == 2
    assert worker.embed_query("levy") == vector
    assert embedder.asked == 2


@pytest.mark.parametrize(("at_once", "sizes"), [(32, [32, 32, 6]), (256, [70]), (1, [1] * 70)])
def test_batches_have_as_many_texts_as_the_embedder_takes_at_once(at_once: int, sizes: list[int]) -> None:
    texts = {f"{number:032x}": "a text" for number in range(70)}
    assert [len(batch) for batch in _batches([*texts], texts, at_once)] == sizes


def test_long_texts_fill_a_batch_earlier() -> None:
    texts = {f"{number:032x}": "x" * 60_000 for number in range(4)}
    assert [len(batch) for batch in _batches([*texts], texts, 32)] == [2, 2]


@pytest.mark.parametrize(("works", "optimized"), [(True, ["a", "b", "c"]), (False, ["a"])])
def test_shards_that_grew_while_one_was_optimized_follow(works: bool, optimized: list[str]) -> None:
    grown, done = ["b", "c"], list[str]()

    class Grown:
        def find_grown(self) -> str | None:
            return grown.pop(0) if grown else None

        def optimize(self, name: str) -> bool:
            done.append(name)
            return works

    VectorWorker([])._optimize(cast(Shards, Grown()), "a")
    assert done == optimized
