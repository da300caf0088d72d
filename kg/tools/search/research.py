"""The tools `search` and `fetch` of deep-research clients, with one argument each."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import Identifier, Judged, Layout, Query, Result
from kg.tools.search import passages


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

    layout: ClassVar[Layout] = Layout(text="text", reads=True, rest="the ids of its passages, {id}#p=1 and so on")

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str] | None = None


def search(kg: KnowledgeGraph, query: Query) -> ResearchHits:
    """Find passages of laws, policies and speeches by meaning and words, best first.

    Use for evidence on a topic; name the country, law or speaker in the query. Each result: id, title, url.
    relevance is "none" if nothing found is relevant.
    Example: search(query="geothermal exploration licences in Djibouti").
    Next: `fetch` an id for the full text.
    """
    found = passages.search(kg, query, limit=20)
    hits = [ResearchHit(id=hit.id, title=hit.title, url=hit.url) for hit in found.results]
    return ResearchHits(
        results=hits,
        notes=found.notes,
        relevance=found.relevance,
        reranked=found.reranked,
        degraded=found.degraded,
        meta=found.meta,
    )


def fetch(kg: KnowledgeGraph, id: Annotated[Identifier, Field(description="An id from search")]) -> ResearchDocument:
    """Read one passage, document or family by its id, verbatim.

    Use with ids from `search`. Returns id, title, text, url to cite, metadata (page, source file, its hash, row).
    Example: fetch(id="cpr://doc/fictional-decree-on-geothermal-exploration_d0a1#p=3").
    Next: `search` for more.
    """
    one = passages.fetch(kg, id=id)
    return ResearchDocument(
        id=one.id or id,
        title=one.title or "",
        text=one.text or "",
        url=one.url or id,
        metadata=one.metadata,
        notes=one.notes,
        meta=one.meta,
    )
