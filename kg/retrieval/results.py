"""The typed results of the tools. Every passage names its graph, source file, hash and row."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

Completeness = Literal["complete", "approximate", "truncated"]
"""`complete`: everything that the request allows was considered. `approximate`: the index proposed the candidates, and
something it did not propose may rank higher. `truncated`: a cap cut the answer off."""

MOST_RESULTS: Final = 200
"""Results on one page."""
MOST_SKIPPED: Final = 100_000
"""Results before a page."""

QUERY_CHARACTERS: Final = 2_000

Limit = Annotated[int, Field(ge=1, le=MOST_RESULTS, description="Results on one page")]
Offset = Annotated[
    int, Field(ge=0, le=MOST_SKIPPED, description="Results to skip; pass next_offset of the page before")
]
Query = Annotated[str, Field(min_length=1, max_length=QUERY_CHARACTERS, description="What to look for, in words")]
Explain = Annotated[bool, Field(description="Also return the SPARQL that ran")]
Iso3 = Annotated[str, Field(min_length=1, max_length=32, description="Country code as in the data, e.g. BRA")]
Language = Annotated[str, Field(min_length=1, max_length=64, description="BCP 47 tag, e.g. en; covers en-GB too")]
Name = Annotated[str, Field(min_length=1, max_length=300)]
Identifier = Annotated[str, Field(min_length=1, max_length=2_000)]


class Statement(BaseModel):
    """One SPARQL query that an answer rests on, ready to be pasted into the SPARQL endpoint."""

    purpose: str
    sparql: str


class Meta(BaseModel):
    """What there is to know about an answer beside its content; on the wire it travels as ``_meta``."""

    snapshot: int = Field(description="Generation of the store that was read")
    completeness: Completeness = "complete"
    total: int | None = Field(None, description="How many there are in all, where that is known")
    next_offset: int | None = None
    sparql: list[Statement] = Field(default_factory=list, description="The query that selected the answer")


class Result(BaseModel):
    """The common part of all results: an object with a list inside, and notes where there is something to know."""

    shown: ClassVar[frozenset[str]] = frozenset()
    """Fields of the whole that are shown even where they are null."""

    notes: list[str] = Field(default_factory=list, description="What the caller should know about this answer")
    next_offset: int | None = Field(None, description="Offset of the next page; absent on the last one")
    explain: list[Statement] = Field(default_factory=list, description="With explain=true: every query that ran")
    meta: SkipJsonSchema[Meta] = Field(default_factory=lambda: Meta(snapshot=0), exclude=True)


class Provenance(BaseModel):
    """Where a passage comes from, down to the row of the file."""

    graph: str = Field(description="Named graph that holds its quads")
    source: str | None = Field(None, description="Source file or URL")
    sha256: str | None = Field(None, description="SHA-256 of that file")
    row: int | None = Field(None, description="Data row in that file, from 1")
    lines: str | None = Field(
        None, description="Lines of that file, where it has no rows", exclude_if=lambda value: value is None
    )
    revision: str | None = Field(None, description="Revision of the dataset, where it has one")


class SearchFilters(BaseModel):
    """What a passage must satisfy. Values of one filter are alternatives; different filters must all hold."""

    model_config = ConfigDict(extra="forbid")

    iso3: list[Iso3] = Field(default_factory=list, max_length=300)
    language: list[Language] = Field(
        default_factory=list, max_length=100, description="Of the passage; where it has none, of its document"
    )
    corpus_type: list[Name] = Field(default_factory=list, max_length=100)
    family_slug: list[Name] = Field(default_factory=list, max_length=300)
    concept_qids: list[Name] = Field(
        default_factory=list, max_length=50, description="QIDs of concept_find: what mentions them comes first"
    )
    max_passages_per_doc: Annotated[int, Field(ge=1, le=1_000)] | None = None


class SearchHit(BaseModel):
    """A passage that matches, as a line to choose from."""

    id: str
    title: str
    url: str
    snippet: str
    score: float
    provenance: Provenance


class SearchResult(Result):
    """Passages, best first."""

    results: list[SearchHit]


class Document(BaseModel):
    """The document that a passage stands in."""

    slug: str
    document_id: str | None = None
    title: str
    family_title: str | None = None
    geographies: list[str] = Field(default_factory=list)
    languages: list[str] = Field(default_factory=list)
    url: str
    citation: str | None = Field(
        None, description="Of a speech: who, when, Hansard reference", exclude_if=lambda value: value is None
    )


class Passage(BaseModel):
    """The passage itself, word for word."""

    index: int
    page_number: int | None = None
    type: str | None = None
    text: str


class ConceptMatch(BaseModel):
    """A concept that a passage mentions, with where."""

    qid: str = Field(description="QID of a climate concept; IRI of any other")
    label: str
    match_type: str = Field(description="By its label or an alias")
    offsets: list[tuple[int, int]] = Field(
        default_factory=list, description="Characters of the text, from 0, end excluded"
    )
    words: list[str] = Field(default_factory=list, description="The words at each of the offsets")


class TopConcept(BaseModel):
    """A concept and how much mentions it."""

    qid: str = Field(description="QID of a climate concept; IRI of any other")
    label: str
    passages: int = Field(description="A passage and its translation are two")
    documents: int = Field(description="A document and its translation are one")


class Evidence(BaseModel):
    """A passage with everything that is needed to cite it."""

    id: str
    document: Document
    passage: Passage
    concept_matches: list[ConceptMatch] = Field(default_factory=list)
    score: float | None = None
    provenance: Provenance


class DatasetCheck(BaseModel):
    """What the last check by the dataset shapes found; it keeps nothing out."""

    generation: int = Field(description="The state that was checked")
    checked: str
    conforms: bool | None = None
    violations: int = 0
    messages: list[str] = Field(default_factory=list, description="The first violations")
    seconds: float = 0.0
    pending: bool = Field(False, description="Whether a newer state is being checked")
    problem: str | None = None
