"""The page of a concept, in the manner of Wikidata: names by language, statements, mentions by place and year."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kg.server.html import href_of
from kg.server.pages.marked_text import Span, split_text
from kg.server.pages.reading import page_href, passage_href, reading_page
from kg.server.pages.site import Site, get_number
from kg.tools.reading.concepts import read_concept
from kg.tools.reading.targets import Target
from kg.vocabulary import iri_prefix

AROUND: Final = 160
"""Characters around a mention in the list of mentions."""


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a concept."""
    concept = read_concept(site.kg, target.iri, get_number(request, "page"))
    mentions = []
    for each in concept.evidence:
        text = each.passage.text
        offsets = [place for match in each.concept_matches for place in match.offsets]
        first = min(offsets, default=(0, 0))
        start, end = max(0, first[0] - AROUND), min(len(text), first[1] + AROUND)
        mentions.append(
            {
                "evidence": each,
                "href": passage_href(each.id, first if first[1] else None),
                "runs": split_text(text, (), Span(*first) if first[1] else None, start=start, end=end),
                "before": start > 0,
                "after": end < len(text),
                "count": len(offsets),
            }
        )
    context = {
        "concept": concept,
        "heading": concept.found.preferred_label,
        "mentions": mentions,
        "most_place": max((each.count for each in concept.places), default=0),
        "most_year": max((each.count for each in concept.years), default=0),
        "previous": page_href(concept.iri, page=concept.page - 1) + "#mentions" if concept.page > 1 else None,
        "next": page_href(concept.iri, page=concept.page + 1) + "#mentions" if concept.more else None,
        "link_href": lambda qid: href_of(qid if ":" in qid else iri_prefix("concept") + qid),
    }
    return reading_page(
        request, "concept.html", context, iri=concept.iri, generation=concept.generation, queries=concept.queries
    )
