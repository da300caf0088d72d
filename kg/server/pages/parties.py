"""The page of a party: its names, its speeches by year, and the people who spoke for it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from kg.errors import NotFoundError
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader
from kg.retrieval.results import Statement
from kg.server.pages.reading import page_href, reading_page
from kg.server.pages.site import Site, ask, get_number
from kg.tools.parliament.speakers import Counted, Speaker, list_speakers, speech_stats
from kg.tools.reading.facts import read_party
from kg.tools.reading.targets import Target

PEOPLE: Final = 50
YEARS: Final = 200


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a party."""
    reader = Reader(site.kg)
    party = read_party(reader, target.iri)
    number = get_number(request, "page")
    years: list[Counted] = []
    people: list[Speaker] = []
    queries: list[Statement] = [*reader.ran]
    speeches, more = 0, False
    try:  # by its IRI: other parties have the same words in their names
        counted = ask(site.kg, speech_stats, group_by="year", party=target.iri, limit=YEARS)
        found = ask(site.kg, list_speakers, party=target.iri, limit=PEOPLE, offset=(number - 1) * PEOPLE)
        years, speeches, people = counted.result.groups, counted.result.totals.speeches, found.result.speakers
        more = found.result.next_offset is not None
        queries += [*counted.queries, *found.queries]
    except NotFoundError:  # a party of the register, of which no speech is loaded
        pass
    context = {
        "party": party,
        "heading": party.name,
        "years": years,
        "most": max((each.speeches for each in years), default=0),
        "speeches": speeches,
        "people": people,
        "has_seats": any(each.electorates for each in people),
        "passages": "/search?" + urlencode({"party": code_of(target.iri)}),
        "previous": page_href(target.iri, page=number - 1) + "#people" if number > 1 else None,
        "next": page_href(target.iri, page=number + 1) + "#people" if more else None,
        "number": number,
    }
    generation = site.kg.generation
    return reading_page(request, "party.html", context, iri=target.iri, generation=generation, queries=queries)
