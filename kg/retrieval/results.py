"""Argument types (filters, limits) and result models that several tools share, and estimates of the tokens of a result.

A passage names its graph, file and row. Descriptions of fields are part of the tool schemas that agents read. Without a
tokenizer, a token is four bytes of compact JSON.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic.json_schema import SkipJsonSchema

from kg.retrieval.notes import NoteText

BYTES_PER_TOKEN: Final = 4
LIST_TOKENS: Final = 2_000
"""Default size of a list."""
READING_TOKENS: Final = 4_000
"""Default size of a text or of the result of a query."""
FEWEST_TOKENS: Final = 200
MOST_TOKENS: Final = 50_000

MaxTokens = Annotated[int, Field(ge=FEWEST_TOKENS, le=MOST_TOKENS)]
"""Maximum size of a result. Without a description, since every tool has this argument."""
Completeness = Literal["complete", "approximate", "truncated"]
"""`complete`: everything in the scope of the request was considered. `approximate`: the index proposed the candidates,
and a passage that it did not propose may rank higher; or sentences of a code were not understood, or a reference not
followed. `truncated`: the result was cut at a limit."""

Domain = Literal["climate", "parliament", "zoning", "files"]

MOST_RESULTS: Final = 200
"""Maximum page size."""
MOST_SKIPPED: Final = 100_000
"""Maximum offset."""

QUERY_CHARACTERS: Final = 2_000

Limit = Annotated[int, Field(ge=1, le=MOST_RESULTS)]
Offset = Annotated[int, Field(ge=0, le=MOST_SKIPPED, description="next_offset of the previous page")]
Query = Annotated[str, Field(min_length=1, max_length=QUERY_CHARACTERS, description="What to look for, in words")]
Must = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]],
    Field(max_length=20, description="Words that each result must contain, in any form"),
]
MinScore = Annotated[float, Field(ge=0, le=1, description="Least score; 0 also lists results that are not relevant")]
Explain = Annotated[bool, Field(description="Also return the SPARQL that ran, and lists what it counted")]
PlaceName = Annotated[
    str, Field(min_length=1, max_length=2_000, description="Code or name of a place: BRA, US-UT, Utah, Sandy, UT")
]
"""A country, state or municipality. All places inside it count."""
Language = Annotated[
    str, Field(min_length=1, max_length=64, description="Code or name: de, deu, pt-BR, German; de covers de-AT too")
]
Name = Annotated[str, Field(min_length=1, max_length=300)]
Year = Annotated[int, Field(ge=1, le=9999)]
Identifier = Annotated[str, Field(min_length=1, max_length=2_000)]


class Lean(BaseModel):
    """Part of a result that omits unknown fields, except those in `stated`, which are null then."""

    stated: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None or name in self.stated}


def encode_json(content: Any) -> bytes:
    """Write `content` as compact JSON in UTF-8, as it is sent, without absent fields of models.

    Numbers that JSON does not have are strings.
    """
    try:
        # A third of the time of the module json.
        return pydantic_core.to_json(content, exclude_none=True, inf_nan_mode="strings", fallback=str)
    except pydantic_core.PydanticSerializationError:  # half of a surrogate pair
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str).encode(errors="replace")


def to_json(content: Any) -> str:
    """Write `content` as `encode_json` does, as a string."""
    return encode_json(content).decode()


def size_of(content: Any) -> int:
    """Count the bytes of `content` as compact JSON."""
    return len(encode_json(content))


def tokens_of(content: Any) -> int:
    """Estimate the number of tokens of `content` as compact JSON, rounded up."""
    return -(-size_of(content) // BYTES_PER_TOKEN)


def clipped(text: str, longest: int) -> str:
    """Put `text` on one line, truncated with an ellipsis to `longest` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


class Statement(BaseModel):
    """A SPARQL query that the result was read with. It runs unchanged on the SPARQL endpoint."""

    purpose: str
    sparql: str


class Meta(BaseModel):
    """Metadata of a result, sent as ``_meta``."""

    snapshot: int = Field(description="Generation of the store")
    completeness: Completeness = "complete"
    total: int | None = Field(None, description="Total number of results, if known")
    next_offset: int | None = None
    sparql: list[Statement] = Field(default_factory=list, description="The query that selected the results")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a result is shown in a limited number of tokens."""

    paged: tuple[str, ...] = ()
    """The lists that offset pages through together. Empty: the first list."""
    text: str | None = None
    """The field with a text to be read. It is cut to the size of an answer and continues at text_from."""
    reads: bool = False
    """Whether its texts are to be read: then titles and passages are whole in a concise answer too."""
    repeated: frozenset[str] = frozenset()
    """Top-level fields that repeat others, and that a concise answer leaves out."""
    rest: str | None = None
    """How to get the elements that do not fit, of a tool without offset, if not with max_tokens."""
    continue_id: Callable[[str, int], str] | None = None
    """Builds the id that continues the text of an id at a character, for a tool that takes an id alone."""


class Result(BaseModel):
    """Fields that all results have."""

    shown: ClassVar[frozenset[str]] = frozenset()
    """Top-level fields that are sent even if they are null."""
    layout: ClassVar[Layout] = Layout()

    notes: list[NoteText] = Field(default_factory=list, description="Remarks on this result")
    names: list[str] = Field(default_factory=list, description="The quotations [1], [2], ... in notes and hints")
    next_offset: int | None = Field(None, description="Offset of the next page; absent on the last page")
    explain: list[Statement] = Field(default_factory=list, description="With explain=true: every query that ran")
    places: SkipJsonSchema[list[int] | None] = Field(None, exclude=True)
    """Where each element of the first paged list is on the page, from 0, if some of the places have none."""
    meta: SkipJsonSchema[Meta] = Field(default_factory=lambda: Meta(snapshot=0), exclude=True)


def find_places(page: Iterable[object], shown: Iterable[object]) -> list[int]:
    """Find where the `shown` elements, in their order, are among those of a page."""
    present = set(shown)
    return [place for place, each in enumerate(page) if each in present]


class Provenance(BaseModel):
    """The source of a passage, down to the row of the file."""

    graph: str = Field(description="Named graph that contains it")
    source: str | None = Field(None, description="Source file or URL")
    sha256: str | None = Field(None, description="SHA-256 of that file")
    row: int | None = Field(None, description="Data row in that file, one-based")
    lines: str | None = Field(
        None, description="Lines of that file, if it has no rows", exclude_if=lambda value: value is None
    )
    pages: str | None = Field(
        None, description="Pages of that file, from 1, if it is a PDF", exclude_if=lambda value: value is None
    )
    revision: str | None = Field(None, description="Revision of the dataset, if any")
    sent_by: str | None = Field(
        None, description="Sender, if it was sent and not read from a file", exclude_if=lambda value: value is None
    )


class SearchFilters(BaseModel):
    """Filters of passages. Values of one filter are alternatives; a passage must pass all filters."""

    model_config = ConfigDict(extra="forbid")

    iso3: list[PlaceName] = Field(default_factory=list, max_length=300)
    place: list[PlaceName] = Field(default_factory=list, max_length=300)
    language: list[Language] = Field(
        default_factory=list, max_length=100, description="Of the passage, else of its document"
    )
    domain: list[Domain] = Field(default_factory=list, max_length=10)
    corpus_type: list[Name] = Field(default_factory=list, max_length=100)
    family_slug: list[Name] = Field(default_factory=list, max_length=300)
    topic: list[Name] = Field(default_factory=list, max_length=100, description="Sector, keyword or tag of a document")
    year: list[Year] = Field(default_factory=list, max_length=300, description="Of the document")
    party: list[Name] = Field(default_factory=list, max_length=100, description="Code or name, of the speaker")
    chamber: list[Name] = Field(default_factory=list, max_length=20)
    district: list[Name] = Field(default_factory=list, max_length=100, description="TOWN/CODE, of rules in a section")
    concept: list[Name] = Field(default_factory=list, max_length=50, description="QID that a passage must mention")
    concept_qids: list[Name] = Field(
        default_factory=list, max_length=50, description="QIDs from concept_find; passages that mention them rank first"
    )
    max_passages_per_doc: Annotated[int, Field(ge=1, le=1_000)] | None = None


class Neighbour(Lean):
    """A passage before or after a result, verbatim, cut at its far end."""

    id: str
    text: str
    start: int | None = Field(None, description="Offset of text in the passage, if it is a part of it")
    length: int | None = Field(None, description="Characters of the whole passage, if text is a part of it")
    said_by: str | None = Field(None, description="Who said these words, if not the speaker of the speech")
    provenance: Provenance


class ScoreParts(Lean):
    """The scores that the score of a passage was fused from."""

    words: float = Field(description="BM25")
    meaning: float | None = Field(None, description="Cosine of the vectors; absent without one")
    share_of_words: float = Field(description="Share of the query's words in it, rare ones weighing more")
    share_of_pairs: float | None = Field(None, description="Share of the query's pairs of adjacent words in it")


class SearchHit(BaseModel):
    """A matching passage, in short."""

    id: str
    title: str
    url: str
    section: str | None = Field(
        None, description="Headings above the snippet in the file", exclude_if=lambda value: value is None
    )
    language: str | None = Field(
        None, description="Of the passage, else of its document (BCP 47)", exclude_if=lambda value: value is None
    )
    snippet: str = Field(description="Of the best part of the passage")
    start: int = Field(description="Offset of the snippet in the text of the passage")
    end: int
    disputed_order: bool | None = Field(
        None,
        description="True if the file has these words in another order than the columns of its pages show",
        exclude_if=lambda value: not value,
    )
    said_by: str | None = Field(
        None, description="Who said these words, of a speech", exclude_if=lambda value: value is None
    )
    score: float | None = Field(None, exclude_if=lambda value: value is None)
    answers: float | None = Field(
        None,
        description="Probability that it answers the question. Judged of short English questions for a person, a time, "
        "a place or a number only; absent: not judged",
        exclude_if=lambda value: value is None,
    )
    score_parts: ScoreParts | None = Field(None, exclude_if=lambda value: value is None)
    provenance: Provenance
    before: list[Neighbour] = Field(default_factory=list, exclude_if=operator.not_)
    after: list[Neighbour] = Field(default_factory=list, exclude_if=operator.not_)


Degraded = Literal["words", "store"]
"""What alone ranked an answer: the words in the index, or those in the store because the index did not answer."""


class Judged(Result):
    """The results of a search, with the probability that the texts searched treat its subject."""

    covers: float | None = Field(
        None, description="Probability that the texts searched treat this subject; null: not known"
    )
    uncovered_reason: NoteText | None = Field(
        None, description="Why covers is null", exclude_if=lambda value: value is None
    )
    reranked: bool | None = Field(None, description="Whether a reranker ordered the first results, if there is one")
    degraded: Degraded | None = Field(None, description="Ranked by words only, or by the words of the store only")


FacetName = Literal["domain", "place", "language", "corpus_type", "year", "party", "chamber", "district", "concept"]

FACETS: Final[tuple[FacetName, ...]] = (
    "domain", "place", "language", "corpus_type", "year", "party", "chamber", "district", "concept",
)  # fmt: skip


CountedBy = Literal["filters", "words", "similar", "query_words"]


class FacetValue(BaseModel):
    """A value with the numbers of passages and documents that have it."""

    value: str = Field(description="Value of the filter")
    label: str
    passages: int
    documents: int | None = Field(None, description="Absent if they were not counted")
    more: bool = Field(
        False, description="Whether these are the least numbers: not all were counted", exclude_if=operator.not_
    )


class FacetCounts(BaseModel):
    """The counted passages and documents, in all and by facet."""

    passages: int
    documents: int | None = Field(None, description="Absent if they were not counted; translations count once")
    more: bool = Field(False, description="Whether there are more results than were counted")
    by: CountedBy = Field(
        "filters",
        description="Which passages are counted. filters: all that pass them; words: results with the words in must; "
        "similar: results near the query, which need not have its words; query_words: results with one of its words, "
        "since no model compares their meaning",
    )
    with_words: int | None = Field(
        None,
        description="How many passages have all words of the query, in any form; 1,000 means at least so many",
        exclude_if=lambda value: value is None,
    )
    values: dict[FacetName, list[FacetValue]] = Field(
        default_factory=dict,
        description="With a query, each number is that listed with this value in post_filter. The numbers of a facet "
        "leave its own post_filter out, without a query also its own filter",
    )


class SearchResult(Judged):
    """Passages, best first."""

    results: list[SearchHit]
    nearest: list[SearchHit] = Field(
        default_factory=list,
        description="Without results: the nearest passages, probably not an answer",
        exclude_if=operator.not_,
    )
    facets: FacetCounts | None = Field(None, description="Counts of the results, with the argument facets")


class Document(BaseModel):
    """The document of a passage."""

    slug: str
    document_id: str | None = None
    title: str
    family_title: str | None = None
    geographies: list[str] = Field(default_factory=list)
    languages: list[str] = Field(default_factory=list)
    url: str
    citation: str | None = Field(
        None,
        description="Of a speech: speaker, date, reference; of a section: town, number",
        exclude_if=lambda value: value is None,
    )


class Passage(BaseModel):
    """The passage, verbatim."""

    index: int
    page_number: int | None = None
    type: str | None = None
    text: str
    disputed_order: bool | None = Field(
        None,
        description="True if the file has these words in another order than the columns of its pages show",
        exclude_if=lambda value: not value,
    )


class ConceptMatch(BaseModel):
    """A concept that a passage mentions, with the offsets."""

    qid: str = Field(description="QID of a climate concept; IRI of any other")
    label: str
    match_type: str = Field(description="Whether the label or an alias matched")
    offsets: list[tuple[int, int]] = Field(
        default_factory=list, description="Character offsets, zero-based, end-exclusive"
    )
    words: list[str] = Field(default_factory=list, description="The text at each of the offsets")


class TopConcept(BaseModel):
    """A concept with the number of passages and documents that mention it."""

    qid: str = Field(description="QID of a climate concept; IRI of any other")
    label: str
    passages: int = Field(description="Number of passages; translations count separately")
    documents: int = Field(description="Number of documents, speeches and sections; translations do not count")


class Evidence(BaseModel):
    """A passage with its document and provenance, to be cited."""

    id: str
    document: Document
    passage: Passage
    said_by: str | None = Field(
        None, description="Who said these words, of a speech", exclude_if=lambda value: value is None
    )
    concept_matches: list[ConceptMatch] = Field(default_factory=list)
    score: float | None = None
    provenance: Provenance


class DatasetCheck(BaseModel):
    """The result of the last validation with the dataset shapes. It rejects nothing."""

    generation: int = Field(description="The generation that was validated")
    checked: str
    conforms: bool | None = None
    violations: int = 0
    messages: list[NoteText] = Field(default_factory=list, description="The first violations")
    by_shape: dict[str, int] = Field(
        default_factory=dict, description="Violations by shape", exclude_if=lambda counts: not counts
    )
    own: dict[str, int] = Field(
        default_factory=dict,
        description="Those that no user graph can have caused",
        exclude_if=lambda counts: not counts,
    )
    seconds: float = 0.0
    pending: bool = Field(False, description="Whether a newer generation is being validated")
    problem: NoteText | None = None
