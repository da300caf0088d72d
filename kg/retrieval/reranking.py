"""The order of the first passages of an answer by the reranker of the settings, if there is one.

The passages that it orders do not depend on the page, and its scores are cached until the next commit, so pages are
consistent. Without scores in time the fused order stays, and the answer states it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from kg.retrieval.reader import Reader
from kg.retrieval.speech_records import load_texts


class HasIri(Protocol):
    """A ranked passage."""

    @property
    def iri(self) -> str:
        """Its IRI."""
        ...


P = TypeVar("P", bound=HasIri)


class Reranking:
    """The work of the reranker for one answer."""

    def __init__(self, reader: Reader, query: str) -> None:
        self._reader = reader
        self._query = query
        self.done: bool | None = None
        """Whether it ordered the first passages; None if there is no reranker or nothing to order."""
        self.problem: str | None = None
        """Why it did not."""

    @property
    def outcome(self) -> tuple[bool | None, str | None]:
        """`done` and `problem`."""
        return self.done, self.problem

    def apply(self, ordered: Iterable[P], is_first: Callable[[P], bool] | None = None) -> Iterator[P]:
        """Order the first passages of `ordered` again; those for which `is_first` holds stay before all others."""
        stream = iter(ordered)
        reranker = self._reader.kg.reranker
        if reranker is None or self.done is not None:
            yield from stream
            return
        first = list(islice(stream, reranker.depth))
        scores = self._score([each.iri for each in first]) if len(first) > 1 else None
        if scores is not None:
            by_iri = dict(zip((each.iri for each in first), scores, strict=True))
            # the sort is stable: equal scores keep the fused order
            first.sort(key=lambda each: (is_first is not None and not is_first(each), -by_iri[each.iri]))
        yield from first
        yield from stream

    def _score(self, iris: Sequence[str]) -> Sequence[float] | None:
        reader, reranker = self._reader, self._reader.kg.reranker
        assert reranker is not None  # noqa: S101 -- `apply` checked it
        texts = load_texts(reader, iris)
        key = ("reranked", reranker.name, self._query, tuple(iris), reader.kg.generation)
        known: Sequence[float] | None = reader.kg.memory.get(key)
        if known is None:
            found = reranker.score(self._query, [texts.get(iri, "") for iri in iris])
            if isinstance(found, str):
                self.done, self.problem = False, found
                return None
            known = reader.kg.memory.keep(key, found)
        self.done = True
        return known
