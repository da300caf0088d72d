"""Pages for reading: which page shows an IRI, ``/passage/{id}?span=a-b``, and what these pages share.

The page of an IRI is at ``/resolve?iri=``; with ``view=data`` that address shows all its properties instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from pyoxigraph import Literal, NamedNode
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kg.errors import NotFoundError
from kg.retrieval.reader import Reader
from kg.retrieval.results import Statement
from kg.server.html import formats, href_of, page
from kg.server.pages.marked_text import verbatim
from kg.server.pages.site import Site, list_queries, suggestion_page
from kg.sparql.terms import is_iri
from kg.text import quoted
from kg.tools.entities.dereference import parse_iri, short_name, worded_name
from kg.tools.reading.documents import CitedBy
from kg.tools.reading.marks import Cited
from kg.tools.reading.targets import PageKind, Target, find_target
from kg.tools.search.identifiers import complete_ids
from kg.vocabulary import KG, XSD

DATA: Final = "data"
"""The value of ``view`` for the table of properties."""

Show = Callable[[Site, Request, Target], Response]


def why_href(iri: str) -> str:
    """Build the address of the explanation of an IRI: a claim, a mention, a passage."""
    return "/why?" + urlencode({"iri": iri})


def why_triple_href(subject: str, predicate: str, value: str | NamedNode | Literal) -> str:
    """Build the address of the explanation of a triple. A `value` that is a text is an IRI."""
    if not isinstance(value, Literal):
        named = {"o": value.value if isinstance(value, NamedNode) else value}
    elif value.language:
        named = {"value": value.value, "lang": value.language}
    else:
        datatype = {} if value.datatype == XSD.string else {"datatype": value.datatype.value}
        named = {"value": value.value, **datatype}
    return "/why?" + urlencode({"s": subject, "p": predicate, **named})


def passage_href(iri: str, span: tuple[int, int] | None = None) -> str:
    """Build the address of a passage in its document, with the words of `span` highlighted."""
    words = "" if span is None else f"?span={span[0]}-{span[1]}"
    return f"/passage/{quote(iri, safe='')}{words}#marked"


def page_href(iri: str, **query: Any) -> str:
    """Build the address of the page of an IRI; parameters that are None, empty or 1 are left out."""
    kept = {name: value for name, value in query.items() if value not in (None, "", 1)}
    return href_of(iri) + ("&" + urlencode(kept) if kept else "")


def reading_page(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    *,
    iri: str,
    generation: int,
    queries: Sequence[Statement],
) -> Response:
    """Render a page for reading about `iri`, with the links to its data and the queries behind it."""
    common = {
        "iri": iri,
        "data_href": page_href(iri, view=DATA),
        "why": why_href(iri),
        "formats": formats(lambda form: page_href(iri, format=form)),
        "queries": list_queries(queries),
        "generation": generation,
        "why_href": why_href,
        "why_triple_href": why_triple_href,
        "passage_href": passage_href,
        "page_href": page_href,
        "verbatim": verbatim,
        "short_name": short_name,
    }
    headers = {"Quadcite-Snapshot": str(generation), "Content-Location": href_of(iri)}
    return page(request, template, {**common, **context}, headers=headers)


PARAMETERS: Final = ("page", "span", "cited", "rules", "votes")
"""The parameters of pages for reading: the page, marked words, and the pages of the lists next to the text."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The pages for reading, by kind."""

    shows: Mapping[PageKind, Show]

    def find(self, site: Site, iri: str) -> Target | None:
        """Find the page of an IRI; None if it has only a table of properties."""
        if not is_iri(iri):
            return None
        target = find_target(Reader(site.kg), iri)
        return target if target is not None and target.kind in self.shows else None

    def show(self, site: Site, request: Request, target: Target) -> Response:
        """Answer with a page for reading."""
        return self.shows[target.kind](site, request, target)

    def routes(self, site: Site) -> list[Route]:
        """Build the route ``/passage/{id}``. An id is an IRI, percent-encoded, or the slug of a document or passage."""

        def passage(request: Request) -> Response:
            given: str = request.path_params["id"]
            [name] = complete_ids(Reader(site.kg), [given])
            if name.strip() and ":" not in name:
                raise NotFoundError(f"Unknown id {quoted(name)}. Give the IRI of a passage, or the slug of a document.")
            iri = parse_iri(name).value
            target = self.find(site, iri)
            if target is None:
                error = NotFoundError(f"{quoted(iri)} is not a passage, nor a part of a text that can be read here.")
                return suggestion_page(site, request, error, iri)
            return self.show(site, request, target)

        return [site.route("/passage/{id:path}", passage, PARAMETERS)]


def list_cited(citations: Sequence[Cited]) -> list[dict[str, Any]]:
    """List the citations of a text: each target and relation once, with its words.

    The same words may cite a law by its title and the policy family of it. They are listed once, with the family, whose
    documents can be read here; ``also`` has the law.
    """
    found: dict[tuple[str | None, str, str], dict[str, Any]] = {}
    families = {
        (each.unit, span.start, span.end, each.relation, each.name): each
        for each in citations
        if each.kind == "policy family"
        for span in each.spans
    }
    laws: dict[tuple[str | None, str], dict[str, str]] = defaultdict(dict)
    for each in citations:
        if each.kind == "law" and each.target and each.spans:
            same = families.get((each.unit, each.spans[0].start, each.spans[0].end, each.relation, each.name))
            if same is not None:
                laws[same.target, same.relation][href_of(each.target)] = each.claim
                continue
        key = each.target, each.relation, "" if each.target else each.words
        entry = found.setdefault(
            key,
            {
                "relation": each.relation,
                "name": each.name or each.words,
                "words": each.words,
                "href": href_of(each.target) if each.target else None,
                "kind": each.kind or "",
                "claim": each.claim,
                "asserted": each.asserted,
                "confidence": each.confidence,
                "unit": each.unit,
                "span": (each.spans[0].start, each.spans[0].end) if each.spans else None,
                "count": 0,
            },
        )
        entry["count"] += 1
    for (target, relation, _), entry in found.items():
        entry["also"] = [{"href": href, "claim": claim} for href, claim in laws[target, relation].items()]
    return list(found.values())


def list_citing(cited_by: CitedBy) -> list[dict[str, Any]]:
    """List the texts that cite something, each with the address of its words."""
    return [
        {
            "title": each.title,
            "href": passage_href(each.citing, each.offsets[0] if each.offsets else None),
            "words": each.words,
            "relation": worded_name(KG[each.relation].value),
            "claim": each.id,
            "asserted": each.asserted,
            "confidence": each.confidence,
            "cited": each.cited,
            "cited_name": each.cited_name,
        }
        for each in cited_by.citations
    ]
