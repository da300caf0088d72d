"""Lists by kind: ``/places``, ``/people``, ``/concepts``, ``/documents`` and ``/codes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.notes import select_for_people
from kg.retrieval.places import Places, load_places
from kg.retrieval.reader import Reader
from kg.retrieval.results import FacetName, FacetValue, Result, Statement
from kg.server.html import href_of, page
from kg.server.pages.site import Site, ask, get_number, list_queries
from kg.tools.climate.families import family_overview
from kg.tools.concepts.find import concept_find
from kg.tools.parliament.speakers import list_speakers
from kg.tools.search.passages import search
from kg.tools.zoning.name_lookup import load_places as load_municipalities
from kg.vocabulary import mint

PER_PAGE: Final = 50
LAST_PAGE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list: its columns, its rows of cells, and the queries that it was read with."""

    columns: Sequence[str]
    rows: Sequence[Sequence[dict[str, Any]]] = ()
    queries: Sequence[Statement] = ()
    more: bool = False
    notes: Sequence[str] = ()


def routes(site: Site) -> list[Route]:
    """Build the routes of the lists."""
    kg = site.kg
    return [
        site.route("/places", lambda request: _places(kg, request)),
        site.route("/people", lambda request: _people(kg, request), ("q", "page")),
        site.route("/concepts", lambda request: _concepts(kg, request), ("q", "page")),
        site.route("/documents", lambda request: _documents(kg, request), ("q", "page")),
        site.route("/codes", lambda request: _codes(kg, request), ("q", "page")),
    ]


def _cell(
    text: str, href: str | None = None, *, number: bool = False, whole: bool = False, label: str | None = None
) -> dict[str, Any]:
    """Build a cell: a `number`, or a `whole` text on one line. `label` names a link whose text others have too."""
    style = "number" if number else "day" if whole else None
    return {"text": text, "href": href, "number": number, "style": style, "label": label}


def _search_href(**filters: str) -> str:
    return "/search?" + urlencode(filters)


def _places(kg: KnowledgeGraph, request: Request) -> Response:
    """Answer with the places that have texts, each below the places that contain it."""
    counted = ask(kg, search, facets=["place"])
    facets = counted.result.facets
    reader = Reader(kg)
    places = load_places(reader)
    values = {each.value: each for each in (facets.values["place"] if facets is not None else ())}
    below: dict[str | None, list[FacetValue]] = {}
    for each in values.values():
        below.setdefault(_find_outer(places, each.value, values), []).append(each)

    def show(each: FacetValue) -> dict[str, Any]:
        parts = sorted(below.get(each.value, ()), key=lambda part: part.label)
        place = places.find_by_code(each.value)
        return {
            "label": each.label,
            "href": href_of(place.iri) if place is not None else _search_href(place=each.value),
            "count": f"{each.passages:,}",
            "search": _search_href(place=each.value),
            "parts": [show(part) for part in parts],
        }

    tree = [show(each) for each in sorted(below.get(None, ()), key=lambda each: each.label)]
    context = {"tree": tree, "queries": list_queries([*counted.queries, *reader.ran])}
    return page(request, "places.html", context)


def _find_outer(places: Places, code: str, listed: dict[str, FacetValue]) -> str | None:
    """Find the code of the smallest listed place that contains a place."""
    place = places.find_by_code(code)
    chain = places.get_chain(place) if place is not None else ()
    return next((outer.code for outer in chain if outer.code in listed), None)


def _people(kg: KnowledgeGraph, request: Request) -> Response:
    words, number = _read(request)
    columns = ("Name", "Parties", "Chambers", "Years", "Speeches")
    about = "Speakers in parliament, most speeches first."
    try:
        found = ask(
            kg,
            list_speakers,
            {"query": "q", "offset": "page"},
            query=words or None,
            limit=PER_PAGE,
            offset=(number - 1) * PER_PAGE,
        )
    except NotFoundError:
        return _answer(request, "People", about, "Name", Listed(columns))
    rows = [
        [
            _cell(each.name, href_of(each.id) if each.id else None),
            _cell(", ".join(each.parties)),
            _cell(", ".join(each.chambers)),
            _cell(
                f"{each.first[:4]}–{each.last[:4]}" if each.first[:4] != each.last[:4] else each.first[:4], whole=True
            ),
            _cell(f"{each.speeches:,}", number=True),
        ]
        for each in found.result.speakers
    ]
    return _answer(request, "People", about, "Name", _list(found, columns, rows))


def _concepts(kg: KnowledgeGraph, request: Request) -> Response:
    words, number = _read(request)
    if words:
        found = ask(kg, concept_find, q=words, limit=PER_PAGE, offset=(number - 1) * PER_PAGE)
        rows = [
            [
                _cell(each.preferred_label, href_of(_iri_of_concept(each.qid))),
                _cell(each.description or ", ".join(each.aliases[:4])),
                _cell("Passages", _search_href(concept=each.qid)),
            ]
            for each in found.result.concepts
        ]
        listed = _list(found, ("Concept", "Description", ""), rows)
    else:
        facet: FacetName = "concept"
        counted = ask(kg, search, facets=[facet])
        values = counted.result.facets.values[facet] if counted.result.facets is not None else []
        rows = [
            [
                _cell(each.label, href_of(_iri_of_concept(each.value))),
                _cell(f"{each.passages:,}", _search_href(concept=each.value), number=True),
            ]
            for each in values
        ]
        listed = Listed(("Concept", "Passages"), rows, counted.queries)
    return _answer(
        request, "Concepts", "The concepts that most passages mention. Find others by name.", "Label or alias", listed
    )


def _iri_of_concept(qid: str) -> str:
    return qid if ":" in qid else mint("concept", qid).value


def _documents(kg: KnowledgeGraph, request: Request) -> Response:
    words, number = _read(request)
    place = [words] if words else None
    columns = ("Family", "Text", "Documents")
    about = "Laws and policies: a law with its amendments, a plan with its annexes, is one family."
    hint = "Country, state or code"
    try:
        found = ask(
            kg,
            family_overview,
            {"place": "q", "offset": "page"},
            place=place,
            limit=PER_PAGE,
            offset=(number - 1) * PER_PAGE,
        )
    except NotFoundError:
        return _answer(request, "Documents", about, hint, Listed(columns))
    rows = [
        [
            _cell(each.family_title, href_of(each.id)),
            _cell(
                each.sample_doc.title if each.sample_doc.title != each.family_title else "Read",
                href_of(each.sample_doc.id),
                label=f"Read {each.sample_doc.title}",
            ),
            _cell(f"{each.doc_count:,}", number=True),
        ]
        for each in found.result.families
    ]
    return _answer(request, "Documents", about, hint, _list(found, columns, rows))


def _codes(kg: KnowledgeGraph, request: Request) -> Response:
    words, number = _read(request)
    reader = Reader(kg)
    wanted = words.casefold()
    counted = ask(kg, search, facets=["place"], filters={"domain": ["zoning"]})
    facets = counted.result.facets
    sections = {each.value: each.passages for each in (facets.values["place"] if facets is not None else ())}
    towns = [town for town in load_municipalities(reader) if not wanted or wanted in town.shown.casefold()]
    towns.sort(key=lambda town: town.key not in sections)
    start = (number - 1) * PER_PAGE
    rows = [
        [
            _cell(town.shown, href_of(town.iri)),
            _cell(f"{sections[town.key]:,}", _search_href(place=town.key, domain="zoning"), number=True)
            if town.key in sections
            else _cell("districts only", number=True),
        ]
        for town in towns[start : start + PER_PAGE]
    ]
    queries = [*reader.ran, *counted.queries]
    listed = Listed(("Municipality", "Sections"), rows, queries, more=len(towns) > start + PER_PAGE)
    about = "Municipalities with a code, then those with only a table of districts."
    return _answer(request, "Codes", about, "Name of a town or state", listed)


def _list(found: Any, columns: Sequence[str], rows: Sequence[Sequence[dict[str, Any]]]) -> Listed:
    result: Result = found.result
    return Listed(
        columns, rows, found.queries, more=result.next_offset is not None, notes=select_for_people(result.notes)
    )


def _read(request: Request) -> tuple[str, int]:
    """Read the words of the filter and the number of the page."""
    return request.query_params.get("q", "").strip(), get_number(request, "page", most=LAST_PAGE)


def _answer(request: Request, title: str, about: str, hint: str, listed: Listed) -> Response:
    words, number = _read(request)
    path = request.url.path

    def address(of: int) -> str:
        return f"{path}?" + urlencode({**({"q": words} if words else {}), **({"page": of} if of > 1 else {})})

    context = {
        "title": title,
        "about": about,
        "hint": hint,
        "path": path,
        "words": words,
        "number": number,
        "list": listed,
        "previous": address(number - 1) if number > 1 else None,
        "next": address(number + 1) if listed.more else None,
        "queries": list_queries(listed.queries),
    }
    return page(request, "list.html", context)
