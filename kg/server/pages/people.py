"""The page of a person: memberships over time, speeches by year, speeches and votes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kg.retrieval.notes import select_for_people
from kg.server.pages.reading import page_href, reading_page
from kg.server.pages.site import Site, get_number
from kg.server.pages.speeches import part_anchor
from kg.store.protocol import term_text
from kg.tools.reading.people import SPEECHES, VOTES, read_person
from kg.tools.reading.targets import Target
from kg.vocabulary import KG


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a person."""
    person = read_person(site.kg, target.iri, get_number(request, "page"), get_number(request, "votes"))
    codes = [term_text(term).rpartition("/")[2] for term in person.facts.get(KG.identityStatus, ())]
    statuses = [code for code in codes if code != "identified"]  # the normal case is not reported
    pages = max(1, -(-person.speeches_total // SPEECHES))
    context = {
        "person": person,
        "heading": person.name,
        "statuses": statuses,
        "kinds": [
            (title, [each for each in person.memberships if each.kind == kind])
            for kind, title in (("chamber", "Seats"), ("party", "Parties"), ("organization", "Other memberships"))
        ],
        "pages": pages,
        "part_anchor": part_anchor,
        "vote_notes": select_for_people(person.votes.notes),
        "by_name": any(vote.derived_by for each in person.votes.divisions for vote in each.votes),
        "votes_previous": page_href(target.iri, votes=person.votes_page - 1) + "#votes"
        if person.votes_page > 1
        else None,
        "votes_next": page_href(target.iri, votes=person.votes_page + 1) + "#votes"
        if person.votes_total > person.votes_page * VOTES
        else None,
    }
    return reading_page(
        request, "person.html", context, iri=target.iri, generation=person.generation, queries=person.queries
    )
