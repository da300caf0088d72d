"""The interface of a search index. It is derived from the store and can always be rebuilt from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Mode = Literal["bm25", "dense", "hybrid"]
"""Ranking by words (BM25), by meaning (embeddings), or by both. Units without vectors have no rank by meaning."""


@dataclass(frozen=True, slots=True)
class IndexedUnit:
    """A text unit in the index.

    `prelude` (document title and heading) is searched with `text` but is not part of it. `parent` is the IRI of the
    document, `graph` the named graph of the unit. If `in_context`, the embedding includes the prelude too: for a piece
    cut out of running text, which may not mention its subject.
    """

    iri: str
    graph: str
    parent: str
    text: str
    prelude: str = ""
    language: str | None = None
    in_context: bool = False


@dataclass(frozen=True, slots=True)
class GraphUnits:
    """All units of one graph, with the content hash of the graph in the store."""

    content_sha256: str
    units: Sequence[IndexedUnit]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with its scores for one query.

    `bm25` is 0 if no term matches; `cosine` (-1 to 1) is None while the unit has no vector; `score` is their fusion.
    """

    iri: str
    score: float
    bm25: float
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first. `exhaustive`: every unit that the request allows was scored and is included."""

    candidates: Sequence[Candidate]
    exhaustive: bool


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of the index: units searchable by text, and the number of them without a vector."""

    units: int
    pending_vectors: int
    graphs: int
    model: str
    embedder_error: str | None = None
    """Why no vectors are being computed, such as a missing model, or None."""


class SearchIndex(Protocol):
    """Text search over units. Calls block, are safe from any thread, and are durable when they return."""

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        """Replace all units of these graphs by these; the new ones are searchable by text on return."""
        ...

    def remove(self, graphs: Iterable[str]) -> None:
        """Remove all units of these graphs."""
        ...

    def state(self) -> dict[str, str]:
        """Return the content hash of each graph in the index."""
        ...

    def rank(
        self,
        query: str,
        *,
        units: Sequence[str] | None = None,
        parents: Sequence[str] | None = None,
        limit: int,
        mode: Mode = "hybrid",
    ) -> Ranking:
        """Return the best `limit` units for `query` by fused score, or by words or meaning only.

        With `units`, each of these is scored, without approximation. With `parents`, candidates are searched among the
        units of these documents, without both among all units.
        """
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        """Return a unit vector for each of a few hundred short texts, or None if no vectors are being computed."""
        ...

    def status(self) -> IndexStatus:
        """Return counts; never waits for work in progress."""
        ...

    def wait(self, progress: Callable[[IndexStatus], None] | None = None) -> None:
        """Block until no vector is pending. Raises ModelError if vectors cannot be computed."""
        ...

    def close(self) -> None:
        """Stop the index process after its acknowledged writes are safe."""
        ...
