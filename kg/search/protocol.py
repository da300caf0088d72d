"""What a search index offers. It is derived from the store and can always be rebuilt from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Mode = Literal["bm25", "dense", "hybrid"]
"""What a ranking goes by: the words, the meaning, or both. Without vectors there is nothing to rank by meaning."""


@dataclass(frozen=True, slots=True)
class IndexedUnit:
    """One text unit as the index keeps it.

    `prelude` (document title and heading) is searched with `text` but is not part of it; `parent` is the IRI of the
    document, `graph` the named graph that holds the unit. `in_context` says that the meaning of the unit, too, is that
    of both: of a piece that was cut out of running text, which need not say what it is about.
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
    """All units of one graph, with the content hash of that graph in the store."""

    content_sha256: str
    units: Sequence[IndexedUnit]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with its scores for one query.

    `bm25` is 0 when no term matches; `cosine` (-1 to 1) is None while the unit has no vector yet; `score` is the
    fusion.
    """

    iri: str
    score: float
    bm25: float
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first. `exhaustive`: all units that the request allows were scored, none was cut off."""

    candidates: Sequence[Candidate]
    exhaustive: bool


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How far the index is: units searchable by text, and how many of them still wait for their vector."""

    units: int
    pending_vectors: int
    graphs: int
    model: str
    embedder_error: str | None = None
    """Why no vectors are being made (say, the model is absent), or None."""


class SearchIndex(Protocol):
    """Text search over units. Calls block, are safe from any thread, and are durable when they return."""

    def replace(self, graphs: Mapping[str, GraphUnits]) -> None:
        """Make the index hold exactly these units for these graphs; searchable by text on return."""
        ...

    def remove(self, graphs: Iterable[str]) -> None:
        """Forget all units of these graphs."""
        ...

    def state(self) -> dict[str, str]:
        """Return the content hash that the index has for each graph."""
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
        """Return the best `limit` units for `query` by fused score, or by their words or their meaning alone.

        With `units`, exactly these are scored, each of them (no approximation). With `parents`, the index proposes
        among the units of these documents; with neither, among all.
        """
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        """Return a unit vector for each of a few hundred short texts, or None where no vectors are being made."""
        ...

    def status(self) -> IndexStatus:
        """Return counts; never waits for work in progress."""
        ...

    def wait(self, progress: Callable[[IndexStatus], None] | None = None) -> None:
        """Block until no vector is pending, or raise ModelError when none can be made."""
        ...

    def close(self) -> None:
        """Stop the index process after its acknowledged writes are safe."""
        ...
