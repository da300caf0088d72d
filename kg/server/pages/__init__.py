"""The web pages, complete without JavaScript. One module for each kind of page.

How to add a page:

1. Write a module with ``routes(site)``, and list it in `routes` below. Routes are tried in order.
2. ``site.route(path, answer)`` runs ``answer(request)`` in a thread of the tools, with their deadline, and turns errors
   into pages. ``answer`` returns a Starlette response.
3. ``ask(site.kg, function, **arguments)`` calls the function of a tool (`kg.tools.registry`) with the validation that
   agents get and without a budget of tokens. It returns ``result``, the model that the tool returns, and ``queries``,
   the SPARQL that ran, which `list_queries` prepares for the macro ``queries`` of ``macros.html``.
4. `kg.server.html.page` renders a template that extends ``base.html``, with the headers of all pages. Name scripts in
   ``scripts``: they are files below ``kg/server/static``, and a page without scripts allows none.
5. A form is sent by POST to a route of `kg.server.pages.sign_in.form_route`, which admits only a browser that is signed
   in. It needs the field ``csrf`` with the token of ``site.sessions.find(request)``, None if nobody is.
6. Add a link to `kg.server.html.NAVIGATION` if every page should lead there.

All values are escaped by the templates. Link IRIs of the data only by `kg.server.html.href_of`; other addresses out of
the data only if they begin with ``http://`` or ``https://``.
"""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from kg.server.pages import (
    charts,
    concepts,
    districts,
    docs,
    documents,
    entities,
    home,
    laws,
    lists,
    oauth_sign_in,
    parties,
    people,
    places,
    reviews,
    search,
    sections,
    sign_in,
    speeches,
    status,
    terms,
    thing,
    why,
)
from kg.server.pages.reading import Readers
from kg.server.pages.site import Asked, Site, ask, list_queries, problem_page

__all__: Final = ["Asked", "Site", "ask", "list_queries", "problem_page", "routes"]


READERS: Final = Readers(
    {
        "concept": concepts.show,
        "district": districts.show,
        "document": documents.show,
        "entity": entities.show,
        "family": laws.show,
        "law": laws.show,
        "party": parties.show,
        "person": people.show,
        "place": places.show,
        "section": sections.show,
        "sitting": speeches.show_sitting,
        "speech": speeches.show_speech,
    }
)
"""The pages made for reading."""


def routes(site: Site) -> list[Route]:
    """Build the routes of all pages."""
    return [
        *home.routes(site),
        *search.routes(site),
        *lists.routes(site),
        *docs.routes(site),
        *sign_in.routes(site),
        *oauth_sign_in.routes(site),
        *status.routes(site),
        *charts.routes(site),
        *terms.routes(site),
        *why.routes(site),
        *reviews.routes(site),
        *READERS.routes(site),
        *thing.routes(site, READERS),
    ]
