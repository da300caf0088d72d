"""The tools `search` and `fetch` of deep-research clients, with one argument each."""

from __future__ import annotations

import operator
import re
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, Field

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.retrieval.results import BYTES_PER_TOKEN, READING_TOKENS, Identifier, Judged, Layout, Query, Result, SearchHit
from kg.tools.search import passages

_PART: Final = re.compile(r"[#&]from=(?P<start>[0-9]{1,9})\s*\Z")
"""The end of an id that continues a text at a character."""
_READ: Final = READING_TOKENS * BYTES_PER_TOKEN // 2
"""Characters of a text that an answer of the default size has surely."""


class ResearchHit(BaseModel):
    """A result in the form of the deep-research contract."""

    id: str
    title: str
    url: str


class ResearchHits(Judged):
    """Results in the form of the deep-research contract."""

    results: list[ResearchHit]


class ResearchDocument(Result):
    """A text in the form of the deep-research contract."""

    layout: ClassVar[Layout] = Layout(text="text", reads=True, continue_id=lambda id, start: build_part_id(id, start))

    id: str
    title: str
    text: str
    text_from: int = Field(0, description="Its first character in the whole text", exclude_if=operator.not_)
    url: str
    metadata: dict[str, str] | None = None


def search(kg: KnowledgeGraph, query: Query) -> ResearchHits:
    """Find passages of climate laws, speeches in parliament, municipal codes and files, by meaning and words.

    Use for evidence on a topic; name the country, law or speaker in the query. Each result: id, title, url.
    covers (0-1): whether the texts treat the subject.
    Example: search(query="geothermal exploration licences in Djibouti").
    Next: `fetch` an id for the full text.
    """
    found = passages.search(kg, query, limit=20)
    hits = [ResearchHit(id=_locate(hit), title=hit.title, url=hit.url) for hit in found.results]
    return ResearchHits(
        results=hits,
        notes=found.notes,
        covers=found.covers,
        uncovered_reason=found.uncovered_reason,
        reranked=found.reranked,
        degraded=found.degraded,
        meta=found.meta,
    )


def _locate(hit: SearchHit) -> str:
    """Return the id of a hit; for a long text that of the part from the words on, which `fetch` cuts off otherwise."""
    return build_part_id(hit.id, hit.start) if hit.start and hit.end > _READ else hit.id


def build_part_id(id: str, start: int) -> str:
    """Build the id of the part of a text that begins at the character `start`, from its id or that of a part."""
    whole = _PART.sub("", id)
    return f"{whole}{'&' if '#' in whole else '#'}from={start}"


def fetch(kg: KnowledgeGraph, id: Annotated[Identifier, Field(description="An id from search")]) -> ResearchDocument:
    """Read one passage, document or family by its id, verbatim.

    Use with ids from `search`. Returns id, title, text, url to cite, metadata (page, source file, its hash, row). A
    long text comes in parts: metadata.next_id is the id of the next one.
    Example: fetch(id="cpr://doc/fictional-decree-on-geothermal-exploration_d0a1#p=3").
    Next: `search` for more.
    """
    part = _PART.search(id)
    whole, start = (id, 0) if part is None else (id[: part.start()], int(part["start"]))
    one = passages.fetch(kg, id=whole, limit=1)
    text = passages.load_whole_text(Reader(kg), whole)
    if start > len(text):
        raise NotFoundError(f"id: It continues at character {start:,}, and the text has {len(text):,}.")
    named = one.id or whole
    return ResearchDocument(
        id=build_part_id(named, start) if start else named,
        title=one.title or "",
        text=text[start:],
        text_from=start,
        url=one.url or whole,
        metadata=one.metadata,
        notes=one.notes,
        meta=one.meta.model_copy(update={"total": None, "next_offset": None}),
    )
