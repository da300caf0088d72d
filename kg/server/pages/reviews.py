"""``POST /claims/review``: a form by which a person accepts or rejects a claim, as the tool `review_claim` does.

The form has ``claim``, ``verdict`` (accept or reject), the CSRF token, and ``to``, the page to go back to.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from kg.errors import InvalidInputError
from kg.knowledge_graph import SENDER
from kg.server.pages.sign_in import find_local_path, form_route
from kg.server.pages.site import Site
from kg.server.sessions import Form
from kg.tools import registry
from kg.tools.calls import Command
from kg.tools.claims.review import review_claim
from kg.tools.decisions import decide, find_callable, name_action

PATH: Final = "/claims/review"


def routes(site: Site) -> list[Route]:
    """Build the route of the form."""

    def review(request: Request, form: Form) -> Response:
        if missing := [name for name in ("claim", "verdict", "to") if name not in form]:
            raise InvalidInputError(f"The form has no {', '.join(missing)}.")
        tool = _tool()
        permit = partial(decide, site.kg, SENDER.get())
        tool.call(site.kg, {"claim": form["claim"], "verdict": form["verdict"]}, permit=permit)
        return RedirectResponse(find_local_path(form["to"]), 303, headers={"Cache-Control": "no-store"})

    return [form_route(site, PATH, review)]


def get_csrf(site: Site, request: Request) -> str | None:
    """Get the CSRF token for forms of reviews; None for a browser whose user may not review."""
    session = site.sessions.find(request)
    if session is None or name_action(_tool()) not in find_callable(site.kg, session.actor):
        return None
    return session.csrf


def _tool() -> Command:
    return registry.get(review_claim.__name__, None)
