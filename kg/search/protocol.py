"""The interface of a search index. It is derived from the store and can always be rebuilt from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from kg.processes.leases import Leases
from kg.vocabulary import SOURCED

Mode = Literal["bm25", "dense", "hybrid"]
"""Ranking by words (BM25), by meaning (embeddings), or by both. Units without vectors have no rank by meaning."""


Codes = Mapping[str, Sequence[str]]
"""Values by the name of a field of `CODES`."""

Conditions = Sequence[Codes]
"""A unit meets each condition: it has one of the values of one of its fields."""

CODES: Final = ("domain", "place", "state", "languages", "type", "year", "party", "chamber")
"""The fields of a unit by which results are counted and limited. Values are codes, tags of languages, years or IRIs."""


TRANSLATION: Final = "#lang="
"""What separates the IRI of a document from the language of its translation."""


def get_original(document: str) -> str:
    """Get the IRI of the original of a document: translations count as the same document."""
    return document.partition(TRANSLATION)[0]


UnitKind = Literal["text", "entity"]
"""The kinds of units: passages of texts, and items and properties of Wikibases, which are searched apart."""

_ENTITY_GRAPHS: Final = (f"{SOURCED}wikibase/", f"{SOURCED}wikibase-remote/")


def get_kind(graph: str) -> UnitKind:
    """Get the kind of all units of a graph."""
    return "entity" if graph.startswith(_ENTITY_GRAPHS) else "text"


@dataclass(frozen=True, slots=True)
class IndexedUnit:
    """A text unit in the index, or an entity with its names as the text.

    `prelude` (document title and heading) is searched with `text` but is not part of it. `parent` is the IRI of the
    document (of an entity the start of the IRIs of its kind), `graph` the named graph of the unit.
    If `in_context`, the embedding includes the prelude too: for a piece
    cut out of running text, which may not mention its subject. `names` (who spoke, the place) are searched by words
    only: an embedding of names would bring every unit of a person or town closer to every query that names one.
    `codes` are what it is counted by.
    """

    iri: str
    graph: str
    parent: str
    text: str
    prelude: str = ""
    language: str | None = None
    in_context: bool = False
    names: str = ""
    codes: Codes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphUnits:
    """All units of one graph, with the content hash of the graph in the store."""

    content_sha256: str
    units: Sequence[IndexedUnit]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with its scores for one query.

    `bm25` is 0 if no term matches; `cosine` (-1 to 1) is None while the unit has no vector; `score` is their fusion.
    Cosines by different models and of different languages are on one scale.
    `pairs` and `words` are the shares of the query's pairs of adjacent words and of its words in the unit, rare ones
    weighing more, 0 for a unit that is not among the first ones. `pairs` is None if the query has no pair.
    """

    iri: str
    score: float
    bm25: float
    cosine: float | None
    pairs: float | None = None
    words: float = 0.0
    language: str | None = None
    """The stated language of a unit among the first ones, if it has one."""
    space: str | None = None
    """The space of the vectors that the cosine is from (`kg.search.points`)."""
    span: tuple[int, int] | None = None
    """The offsets of its best part, if its text is long and so has several. The scores are those of this part."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first. `exhaustive`: every unit that the request allows was scored and is included."""

    candidates: Sequence[Candidate]
    exhaustive: bool
    model: str | None = None
    """The model that embedded the query, or None if it was ranked by words alone."""
    pending: int = 0
    """Units of the whole index without a vector."""
    units: int | None = None
    """Units that the request allows, if counted."""
    from_store: bool = False
    """Whether the index did not answer: these are units of the store whose texts contain words of the query."""
    incomplete: str | None = None
    """Why the index may lack texts of the store, or None."""
    counted: Mapping[str, Codes] = field(default_factory=dict)
    """Units that match, with their codes and ``parent``, if it was asked to count them: those near the query first."""
    near: int = 0
    """How many of these are near the query (`kg.search.relevance.drop_unrelated`)."""
    language: str | None = None
    """The language of the query (primary subtag of BCP 47), or None if that is unsure."""
    is_latin: bool = True
    """Whether all letters of the query are Latin, in which strings without meaning are typed."""
    models: Mapping[str, str] = field(default_factory=dict)
    """The models whose vectors were compared, by space."""
    uncompared: Mapping[str, int] = field(default_factory=dict)
    """Units that the request allows, by language, that no model compares with the query by meaning."""
    stop_words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Required words that texts need not contain, since they are stop words of their language, by that language.

    Texts in a language of which all required words are stop words are no candidates.
    """
    is_void: bool = False
    """Whether all required words are stop words in each language of the index, so that there are no candidates."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of the index: units of texts, and the number of vectors that are pending."""

    units: int
    pending_vectors: int
    """Of units and entities, one for each part of a long text."""
    graphs: int
    model: str
    """The names of the models, separated by a comma."""
    embedder_error: str | None = None
    """Why no vectors are being computed, such as a missing model, or None."""
    problem: str | None = None
    """Why the index does not answer, or None. The counts are then those of the last answer."""
    entities: int = 0
    """Items and properties of Wikibases, which are not among the units."""
    parts: int = 0
    """Further parts of long texts, which have vectors of their own."""
    incomplete: str | None = None
    """Why the index may lack texts of the store, or None."""
    vectors_per_s: float | None = field(default=None, compare=False)
    """Texts embedded a second, of late; None before the first."""

    @property
    def first_model(self) -> str:
        """The name of the first model, which embeds texts for callers."""
        return self.model.partition(",")[0]

    @property
    def vectors(self) -> int:
        """The number of units, entities and further parts of long texts that have all their vectors."""
        return max(0, self.units + self.entities + self.parts - self.pending_vectors)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until no vector is pending, at the rate of late."""
        return self.pending_vectors / self.vectors_per_s if self.vectors_per_s and self.pending_vectors else None


@dataclass(frozen=True, slots=True)
class Counts:
    """The units that meet some conditions, and by the values of fields, and the documents that they are in.

    Translations are the same document.
    """

    units: int
    documents: int
    by_field: Mapping[str, Mapping[str, int]]


class SearchIndex(Protocol):
    """Text search over units. Calls block, are safe from any thread, and are durable when they return."""

    @property
    def calls(self) -> Leases[Any]:
        """Calls that wait for an answer, each in a thread that gives it up at its deadline."""
        ...

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
        must: Sequence[str] = (),
        codes: Conditions = (),
        counted: int = 0,
        kind: UnitKind = "text",
    ) -> Ranking:
        """Return the best `limit` units of a kind for `query` by fused score, or by words or meaning only.

        With `units`, each of these is scored, without approximation. With `parents`, candidates are searched among the
        units of these documents, without both among all units. With `must`, only units that contain all of these
        words, apart from stop words, are candidates; with `codes`, only those that meet these conditions. With
        `counted`, so many of the units that match come with their codes; fewer come only if these are all.
        """
        ...

    def count(self, fields: Sequence[str], codes: Conditions = ()) -> Counts:
        """Count the units that meet `codes`, exactly, and by each value of `fields`: codes, or ``parent``."""
        ...

    def load_codes(self, units: Sequence[str]) -> Mapping[str, Codes]:
        """Return the codes of those of `units` that are in the index, with their ``parent``."""
        ...

    def note_missing(self, graphs: int) -> None:
        """Note how many graphs of the store the index lacks or has in an older state; 0 once all were compared.

        Until then answers state that they are incomplete.
        """
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        """Return a unit vector for each of a few hundred short texts, or None if no vectors are being computed."""
        ...

    def status(self) -> IndexStatus:
        """Return counts, with the problem if the index does not answer; never waits for work in progress."""
        ...

    def count_units(self) -> int:
        """Return the number of units, or without an answer the last one known."""
        ...

    def wait(self, progress: Callable[[IndexStatus], None] | None = None) -> None:
        """Block until no vector is pending. Raises ModelError if vectors cannot be computed."""
        ...

    def copy(self, target: Path, known: Collection[str] = ()) -> dict[str, str]:
        """Copy the files of the index into a new folder; return the SHA-256 of the bytes read, by path in it.

        Files whose SHA-256 is `known` are only read. Raises IndexUnavailableError.
        """
        ...

    def close(self) -> None:
        """Stop the index process after its acknowledged writes are safe."""
        ...
