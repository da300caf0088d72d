"""Search over all domains (``/search?q=``) with facets, and a citation of a passage to copy (``/cite?id=``).

The address holds the whole state: the words ``q``, the filters by the names of the facets (each may be repeated), the
filters ``within`` which relevance is judged, the order ``sort``, whether each document is listed ``once``, the ``page``
and its size ``limit``. Without words, all passages that pass the filters are listed.
``format=csv`` and ``format=json`` give the results of the page as data.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.languages import find_primary, name_language
from kg.retrieval.citation_formats import NAMES, CitationFormat, cite, count_page, format_citation
from kg.retrieval.excerpts import EXCERPT_CHARACTERS, find_words, trim_to_words, window
from kg.retrieval.facets import MOST_COUNTED
from kg.retrieval.notes import select_for_people, word_for_people
from kg.retrieval.places import Places, load_places
from kg.retrieval.reader import Reader
from kg.retrieval.results import (
    FACETS,
    MOST_RESULTS,
    MOST_SKIPPED,
    QUERY_CHARACTERS,
    Evidence,
    FacetCounts,
    FacetName,
    SearchHit,
    SearchResult,
    Statement,
)
from kg.server.html import href_of, page
from kg.server.negotiation import negotiate
from kg.server.pages.reading import passage_href
from kg.server.pages.site import Site, ask, get_number, list_queries
from kg.server.problem_details import PROBLEM
from kg.server.resources import HTML
from kg.text import quoted
from kg.tools.answers import content_of
from kg.tools.search.passages import fetch, search
from kg.vocabulary import BASE, iri_prefix

PER_PAGE: Final = 20
PAGE_SIZES: Final = (20, 50, 200)
VALUES_SHOWN: Final = 8
"""Values of a facet that are shown at once; the others follow on demand."""
_SECTIONS: Final = iri_prefix("section")
_IRI: Final = re.compile(r"(?:https?|cpr)://\S+|urn:\S+")
"""An IRI, which is looked up instead of searched."""
PARAMETERS: Final = ("q", *FACETS, "within", "sort", "once", "page", "limit", "format")
FORMATS: Final = ("html", "csv", "json")
QUERY_SHOWN: Final = 500
"""Characters of a refused query that the page repeats."""
FILTERS_SHOWN: Final = 10
"""Values of each filter that the page shows, each with an address that has all others."""

TITLES: Final[Mapping[FacetName, str]] = {
    "domain": "Domain",
    "place": "Place",
    "language": "Language",
    "corpus_type": "Type",
    "year": "Year",
    "party": "Party",
    "chamber": "Chamber",
    "district": "Zoning district",
    "concept": "Concept",
}
SORTS: Final = {"relevance": "Best match", "newest": "Newest first", "oldest": "Oldest first", "title": "By title"}
_MEDIA_TYPES: Final[Mapping[CitationFormat, str]] = {
    "text": "text/plain",
    "markdown": "text/markdown",
    "bibtex": "application/x-bibtex",
    "csl": "application/vnd.citationstyles.csl+json",
    "ttl": "text/turtle",
}


def routes(site: Site) -> list[Route]:
    """Build the routes of the search and of citations."""
    return [
        site.route("/search", lambda request: _search(site.kg, request), PARAMETERS),
        site.route("/cite", lambda request: _cite(site.kg, request), ("id", "span", "format")),
    ]


@dataclass(frozen=True, slots=True)
class State:
    """The parameters of an address of the search."""

    words: str
    filters: Mapping[FacetName, Sequence[str]]
    sort: str
    page: int
    once: bool = False
    """Whether each document is listed once, with its first passage among the results."""
    limit: int = PER_PAGE
    within: Sequence[FacetName] = ()
    """The filters within which the words are searched. The others limit the results after they were judged."""

    @property
    def order(self) -> str:
        """The order of the results: without words no passage is a better match than others."""
        return "newest" if self.sort == "relevance" and not self.words else self.sort

    @property
    def last_page(self) -> int:
        """The number of the last page that can be requested."""
        return MOST_SKIPPED // self.limit + 1

    @property
    def href(self) -> str:
        """The address of this state."""
        return self.address()

    def address(self, **extra: str) -> str:
        """Build the address of this state with further parameters."""
        pairs = [("q", self.words)] if self.words else []
        pairs += self.kept
        pairs += [("page", str(self.page))] if self.page > 1 else []
        return "/search?" + urlencode([*pairs, *extra.items()])

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The parameters that stay when other words are searched."""
        pairs: list[tuple[str, str]] = [(name, value) for name, values in self.filters.items() for value in values]
        pairs += [("within", name) for name in self.within]
        pairs += [("sort", self.sort)] if self.sort != "relevance" else []
        pairs += [("once", "1")] if self.once else []
        return pairs + ([("limit", str(self.limit))] if self.limit != PER_PAGE else [])

    def toggle(self, facet: FacetName, value: str) -> State:
        """Add a value to a filter, or remove it, and go to the first page."""
        chosen = list(self.filters.get(facet, ()))
        chosen = [each for each in chosen if each != value] if value in chosen else [*chosen, value]
        filters = {name: values for name, values in {**self.filters, facet: chosen}.items() if values}
        return replace(self, filters=filters, within=[name for name in self.within if name in filters], page=1)


def read_state(request: Request, *, is_first: bool = False) -> State:
    """Read the state from the address, or that of its first page.

    Raises InvalidInputError for an invalid page or size, and for `within` that does not name a filter.
    """
    given = request.query_params
    limit, number = PER_PAGE, 1
    within = list(dict.fromkeys(given.getlist("within")))
    if not is_first:
        limit = get_number(request, "limit", PER_PAGE, MOST_RESULTS)
        number = get_number(request, "page", most=MOST_SKIPPED // limit + 1)
        if unknown := [name for name in within if name not in FACETS]:
            raise InvalidInputError(f"Invalid within {quoted(unknown[0])}. Valid: {', '.join(FACETS)}.")
    given_filters = {
        facet: list(dict.fromkeys(value.strip() for value in given.getlist(facet) if value.strip())) for facet in FACETS
    }
    filters = {facet: values for facet, values in given_filters.items() if values}
    return State(
        words=given.get("q", "").strip(),
        filters=filters,
        sort=given.get("sort", "relevance"),
        page=number,
        once=given.get("once", "") not in ("", "0"),
        limit=limit,
        within=[facet for facet in filters if facet in within],
    )


def _search(kg: KnowledgeGraph, request: Request) -> Response:
    form = request.query_params.get("format", "html")
    try:
        state = read_state(request)
        if form not in FORMATS:
            raise InvalidInputError(f"Unknown format {quoted(form)}. Available: {', '.join(FORMATS)}.")
    except InvalidInputError as error:
        # The words and filters are valid without the number of a page or the format.
        return _refuse(kg, request, read_state(request, is_first=True), error)
    if _IRI.fullmatch(state.words):
        return RedirectResponse(href_of(state.words), 303)
    try:
        found, queries = _find(kg, state)
    except (InvalidInputError, NotFoundError) as error:
        return _refuse(kg, request, state, error)
    if form == "json":
        return _write_json({**content_of(found), "total": found.meta.total})
    evidence: dict[str, Evidence] = {}
    if shown := [*found.results, *found.nearest]:
        read = ask(kg, fetch, ids=[hit.id for hit in shown], limit=MOST_RESULTS)
        evidence = {each.id: each for each in read.result.evidence}
        queries = [*queries, *read.queries]
    if form == "csv":
        return _write_csv(found.results, evidence)
    context = _context(kg, state, found, queries, evidence)
    return page(request, "search.html", context)


def _refuse(kg: KnowledgeGraph, request: Request, state: State, error: InvalidInputError | NotFoundError) -> Response:
    """Answer that a search is refused: browsers get a page with its words and filters, others problem details."""
    if negotiate(request.headers.getlist("accept"), (PROBLEM, "text/plain", HTML)) != HTML:
        raise error
    filters = {facet: values[:FILTERS_SHOWN] for facet, values in state.filters.items()}
    shown = replace(state, words=state.words[:QUERY_SHOWN], filters=filters)
    context = _context(kg, shown, SearchResult(results=[]), [], {}) | {"refused": word_for_people(str(error))}
    return page(request, "search.html", context, status=error.http_status)


def _write_json(content: Mapping[str, Any]) -> Response:
    """Answer with JSON in lines, which people read in browsers too."""
    text = json.dumps(content, ensure_ascii=False, indent=1)
    return Response(text.encode(errors="replace"), headers={"Cache-Control": "no-cache"}, media_type="application/json")


def _find(kg: KnowledgeGraph, state: State) -> tuple[SearchResult, Sequence[Statement]]:
    if len(state.words) > QUERY_CHARACTERS:
        raise InvalidInputError(
            f"The search has {len(state.words):,} characters. The maximum is {QUERY_CHARACTERS:,}: keep the most "
            "important words."
        )
    chosen: dict[str, object] = {name: list(values) for name, values in state.filters.items()}
    within: dict[str, object] = {name: values for name, values in chosen.items() if name in state.within}
    once: dict[str, object] = {"max_passages_per_doc": 1} if state.once else {}
    # Values are added to the post filter, without which results are judged: so the number of each is that of its list.
    filters: dict[str, object] = {"filters": once | chosen}
    if state.words:
        others = {name: values for name, values in chosen.items() if name not in within}
        filters = {"filters": once | within, "post_filter": others}
    asked = ask(
        kg,
        search,
        {"query": "q"},
        query=state.words,
        **filters,
        limit=state.limit,
        offset=(state.page - 1) * state.limit,
        facets=list(FACETS),
        sort=state.order,
        score_parts=bool(state.words),
    )
    return asked.result, asked.queries


def _context(
    kg: KnowledgeGraph,
    state: State,
    found: SearchResult,
    queries: Sequence[Statement],
    evidence: Mapping[str, Evidence],
) -> dict[str, Any]:
    """Build the context of the template."""
    is_warning = found.degraded is not None or not found.results
    notes = select_for_people(found.notes)
    places = load_places(Reader(kg))
    following = found.next_offset is not None and state.page < state.last_page
    return {
        "state": state,
        "searched": state.words,
        "kept": state.kept,
        "refused": None,
        "total": _describe_total(state, found),
        "pages": None if state.words or not found.meta.total else f"{ceil(found.meta.total / state.limit):,}",
        "covers": _describe_covers(found) if state.words else None,
        "warnings": notes if is_warning else [],
        "notes": [] if is_warning else notes,
        "hits": _show_all(found.results, evidence, state, places),
        "nearest": _show_all(found.nearest, evidence, state, places),
        "first": (state.page - 1) * state.limit + 1,
        "facets": _list_facets(state, found.facets),
        "chosen": _list_chosen(state, found.facets),
        "scope": _describe_scope(state),
        "sorts": [
            {"text": text, "href": replace(state, sort=name, page=1).href, "current": name == state.order}
            for name, text in SORTS.items()
            if state.words or name != "relevance"
        ],
        "lists": [
            {"text": text, "href": replace(state, once=once, page=1).href, "current": once == state.once}
            for once, text in ((False, "Passages"), (True, "Documents"))
        ],
        "sizes": [
            {"text": str(size), "href": replace(state, limit=size, page=1).href, "current": size == state.limit}
            for size in PAGE_SIZES
        ],
        "previous": replace(state, page=state.page - 1).href if state.page > 1 else None,
        "next": replace(state, page=state.page + 1).href if following else None,
        "clear": replace(state, filters={}, within=(), page=1).href,
        "downloads": [{"name": form.upper(), "href": state.address(format=form)} for form in ("csv", "json")],
        "queries": list_queries(queries),
        "generation": found.meta.snapshot or kg.store.statistics().generation,
    }


def _describe_covers(found: SearchResult) -> str:
    """Describe whether the texts searched treat the subject of the query."""
    if found.covers is None:
        return f"Whether the texts treat this subject is not known. {found.uncovered_reason or ''}".rstrip()
    return f"Probability that the texts treat this subject: {found.covers:.0%}"


def _describe_total(state: State, found: SearchResult) -> str:
    """Describe how many passages and documents there are."""
    counts = found.facets
    if counts is None:
        return ""
    number, plus = counts.passages, "+" if counts.more else ""
    if plus and not state.words and not state.once and found.meta.total is not None:
        return f"{found.meta.total:,} passages"
    if not number:
        return ""
    passages = count_of(number, "similar passage" if counts.by == "similar" else "passage", plus)
    if counts.by == "query_words":
        passages += " with a word of the query"
    if counts.documents is not None:
        passages += f" in {count_of(counts.documents, 'document', plus)}"
    if counts.with_words is not None:
        passages += f", {counts.with_words:,}{'+' * (counts.with_words >= MOST_COUNTED)} with all words"
    return passages


def count_of(number: int, noun: str, plus: str = "") -> str:
    """Write a number with its noun: ``1 passage``, ``1+ passages``, ``2,000 passages``."""
    return f"{number:,}{plus} {noun if number == 1 and not plus else noun + 's'}"


def _list_facets(state: State, counts: FacetCounts | None) -> list[dict[str, Any]]:
    """List the facets that have a value to choose, with the addresses that choose it or not."""
    groups = []
    for facet in FACETS:
        values = counts.values.get(facet, []) if counts is not None else []
        chosen = state.filters.get(facet, ())
        if facet in state.within:  # another value would widen the search, and its number is not known
            values = [each for each in values if each.value in chosen]
        if not values or (len(values) == 1 and not chosen and facet != "domain"):
            continue
        shown = [
            {
                "label": each.label,
                "count": f"{each.passages:,}{'+' if each.more else ''}",
                "title": count_of(each.documents, "document", "+" if each.more else "")
                if each.documents is not None
                else "",
                "href": state.toggle(facet, each.value).href,
                "chosen": each.value in chosen,
            }
            for each in values
        ]
        groups.append({"title": TITLES[facet], "values": shown[:VALUES_SHOWN], "others": shown[VALUES_SHOWN:]})
    return groups


def _describe_scope(state: State) -> dict[str, str | None] | None:
    """Describe whether relevance was judged within the filters, with the addresses of the other ways to search."""
    if not state.words or not state.filters:
        return None
    inner = " and ".join(TITLES[facet] for facet in state.within)
    within, first = list(state.filters), replace(state, page=1)
    if not inner:
        text = "All texts are searched; the results that pass the filters are listed."
    elif len(state.within) == len(within):
        text = "Only texts that pass the filters are searched."
    else:
        text = f"Only texts that pass the filters by {inner} are searched; the other filters limit the results."
    return {
        "text": text,
        "within": replace(first, within=within).href if len(state.within) < len(within) else None,
        "whole": replace(first, within=()).href if inner else None,
    }


def _list_chosen(state: State, counts: FacetCounts | None) -> list[dict[str, str]]:
    """List the filters that apply, with the addresses without each of them."""
    labels = {
        (facet, each.value): each.label
        for facet, values in (counts.values if counts is not None else {}).items()
        for each in values
    }
    return [
        {"facet": TITLES[facet], "label": labels.get((facet, value), value), "href": state.toggle(facet, value).href}
        for facet, values in state.filters.items()
        for value in values[:FILTERS_SHOWN]
    ]


def _show_all(
    hits: Sequence[SearchHit], evidence: Mapping[str, Evidence], state: State, places: Places
) -> list[dict[str, Any]]:
    """Build the results. Where a passage follows one of the same document, ``again`` is true."""
    shown = [_show(hit, evidence.get(hit.id), state, places) for hit in hits]
    for before, each in pairwise(shown):
        each["again"] = bool(each["where"]) and each["document"] is not None and each["document"] == before["document"]
    return shown


def _show(hit: SearchHit, evidence: Evidence | None, state: State, places: Places) -> dict[str, Any]:
    """Build a result: its text verbatim, with the words of the query marked, its document, and its place there.

    Without words, mentions of the concepts in the filter are marked.
    """
    text = evidence.passage.text if evidence is not None else hit.snippet
    low, high, marked = _mark(text, state, evidence, hit)
    where = _place_of(evidence) if evidence is not None else ""
    document = hit.id.partition("#")[0]
    span = (low + marked[0][0], low + marked[0][1]) if marked and evidence is not None else None
    return {
        "href": passage_href(hit.id, span),
        "title": hit.title,
        "again": False,
        "document": {"href": href_of(document), "iri": document} if document != hit.id else None,
        "outside": hit.url if hit.url.startswith(("http://", "https://")) and not hit.url.startswith(BASE) else None,
        "where": where,
        "said_by": hit.said_by,
        "lang": hit.language,
        "language": name_language(hit.language) if hit.language and find_primary(hit.language) != "en" else None,
        "places": [places.name_of(code) for code in evidence.document.geographies] if evidence is not None else [],
        "pieces": mark_pieces(text[low:high], marked),
        "before": low > 0,
        "after": high < len(text),
        "score": None if hit.score is None else f"{hit.score:.3f}",
        "parts": _list_parts(hit),
        "id": hit.id,
        "source": hit.provenance,
        "graph": href_of(hit.provenance.graph),
        "cite": "/cite?" + urlencode({"id": hit.id}),
    }


def _mark(text: str, state: State, evidence: Evidence | None, hit: SearchHit) -> tuple[int, int, list[tuple[int, int]]]:
    """Choose the part of a text to show, as offsets, and what to mark in it, as offsets in that part."""
    if state.words:
        low, high = _cut(text, hit.start, hit.end)
        return low, high, find_words(text[low:high], state.words)
    mentions = _find_mentions(evidence, state.filters.get("concept", ())) if evidence is not None else []
    low, high = _cut(text, *(mentions[0] if mentions else (0, 0)))
    return low, high, [(start - low, end - low) for start, end in mentions if low <= start and end <= high]


def _find_mentions(evidence: Evidence, concepts: Sequence[str]) -> list[tuple[int, int]]:
    """Find where a passage mentions one of some concepts, without overlaps."""
    found: list[tuple[int, int]] = []
    mentioned = {span for each in evidence.concept_matches if each.qid in concepts for span in each.offsets}
    for start, end in sorted(mentioned):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def _place_of(evidence: Evidence) -> str:
    passage = evidence.passage
    if evidence.id.startswith(_SECTIONS):  # its title has its number
        return ""
    page_number = f"page {count_page(evidence.id, passage.page_number)}, " if passage.page_number else ""
    return f"{page_number}passage {passage.index + 1}"


def mark_pieces(text: str, marked: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Split a text into pieces, each with whether it is marked."""
    pieces: list[tuple[str, bool]] = []
    done = 0
    for low, high in marked:
        pieces += [(text[done:low], False), (text[low:high], True)]
        done = high
    return [piece for piece in (*pieces, (text[done:], False)) if piece[0]]


def _cut(text: str, start: int, end: int) -> tuple[int, int]:
    """Choose the part of a text around some offsets, cut at words."""
    return trim_to_words(text, *window(0, len(text), start, end, EXCERPT_CHARACTERS))


def _list_parts(hit: SearchHit) -> list[tuple[str, str]]:
    parts = hit.score_parts
    if parts is None:
        return []
    listed = [
        ("words (BM25)", parts.words),
        ("meaning (cosine)", parts.meaning),
        ("share of the query's words", parts.share_of_words),
        ("share of its word pairs", parts.share_of_pairs),
        ("probability that it answers", hit.answers),
    ]
    return [(name, f"{value:.3f}") for name, value in listed if value is not None]


def _to_cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula: with an apostrophe before its sign.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _write_csv(hits: Sequence[SearchHit], evidence: Mapping[str, Evidence]) -> Response:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(["id", "title", "url", "said_by", "where", "score", "text", "graph", "source", "sha256", "row"])
    for hit in hits:
        found = evidence.get(hit.id)
        origin = hit.provenance
        writer.writerow(
            [
                hit.id,
                _to_cell(hit.title),
                hit.url,
                _to_cell(hit.said_by or ""),
                _to_cell(cite(found).place if found is not None else ""),
                "" if hit.score is None else hit.score,
                _to_cell(found.passage.text if found is not None else hit.snippet),
                origin.graph,
                _to_cell(origin.source or ""),
                origin.sha256 or "",
                "" if origin.row is None else origin.row,
            ]
        )
    headers = {"Content-Disposition": 'attachment; filename="results.csv"', "Cache-Control": "no-cache"}
    return Response(written.getvalue(), media_type="text/csv", headers=headers)


def _cite(kg: KnowledgeGraph, request: Request) -> Response:
    """Answer with the citation of the passage ``id``, or of its words ``span=start-end``, in each form or one."""
    given = request.query_params
    iri = given.get("id", "").strip()
    if not iri:
        raise InvalidInputError("Missing id. Give that of a passage: /cite?id=cpr://doc/{slug}%23p=3.")
    read = ask(kg, fetch, id=iri)
    evidence = next((each for each in read.result.evidence if each.id == read.result.id), None)
    if evidence is None:
        raise NotFoundError(f"{iri} is not a single passage. Cite one of its passages.")
    start, end = read_span(given.get("span"), len(evidence.passage.text))
    cited = cite(evidence, start, end)
    form = given.get("format", "html")
    if form in _MEDIA_TYPES:
        content = format_citation(cited, form)  # type: ignore[arg-type]
        return PlainTextResponse(content, media_type=_MEDIA_TYPES[form], headers={"Cache-Control": "no-cache"})  # type: ignore[index]
    if form != "html":
        raise InvalidInputError(f"Unknown format {quoted(form)}. Available: html, {', '.join(NAMES)}.")
    shown: dict[str, str] = {"id": iri, **({"span": given["span"]} if "span" in given else {})}
    forms = [
        {"name": name, "text": format_citation(cited, key), "href": "/cite?" + urlencode({**shown, "format": key})}
        for key, name in NAMES.items()
    ]
    context = {"cited": cited, "forms": forms, "href": passage_href(evidence.id), "queries": list_queries(read.queries)}
    return page(request, "cite.html", context)


def read_span(text: str | None, length: int) -> tuple[int, int | None]:
    """Read offsets ``start-end`` in a text, end-exclusive. Raises InvalidInputError for others."""
    if text is None:
        return 0, None
    start, _, end = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in (start, end)):
        raise InvalidInputError(f"Invalid span {quoted(text)}. Valid: start-end, as in 10-42.")
    if not 0 <= int(start) < int(end) <= length:
        raise InvalidInputError(f"The span {text} is not inside the text, which has {length:,} characters.")
    return int(start), int(end)
