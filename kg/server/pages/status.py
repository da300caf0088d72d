"""The state of the server (``/status``): loads, quarantine, dataset check, index, queries, storage, services.

A user who is signed in, and may do ``sparql.cancel``, may also cancel queries, by a form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from kg.access.actors import Actor
from kg.errors import NotFoundError
from kg.knowledge_graph import SENDER
from kg.load_log import LoadState
from kg.server.html import page
from kg.server.pages.sign_in import form_route
from kg.server.pages.site import Site
from kg.server.sessions import Form
from kg.text import quoted
from kg.tools.catalog.server_state import describe_server, list_pools
from kg.tools.decisions import get_policies, require_endpoint

_FOLDERS: Final = re.compile(r"(?<!\S)/(?:[^\s/]+/)+")
_CANCEL: Final = "sparql.cancel"
_REPORTED: Final = (
    "loaded",
    "skipped",
    "rejected",
    "removed",
    "text_units",
    "mentions",
    "quads_added",
    "quads_removed",
)


def routes(site: Site) -> list[Route]:
    """Build the routes of the page and of its form."""

    def show(request: Request) -> Response:
        state, session = describe_server(site.kg), site.sessions.find(request)
        context = {
            "state": state,
            "session": session,
            "csrf": session.csrf if session is not None and _may_cancel(site, session.actor) else None,
            "running": [_describe_load(load) for load in state.running],
            "ended": [_describe_load(load) for load in state.ended],
            "hide_paths": hide_paths,
            "now": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return page(request, "status.html", context, headers={"Cache-Control": "no-store"})

    def cancel(request: Request, form: Form) -> Response:
        require_endpoint(site.kg, SENDER.get(), _CANCEL)
        number, pool = form.get("query", ""), list_pools(site.kg).get(form.get("pool", ""))
        known = number.isascii() and number.isdigit() and len(number) < 20
        if pool is None or not known or not pool.cancel(int(number)):
            raise NotFoundError(f"Unknown query {quoted(number)}: it has ended, or never ran.")
        return RedirectResponse("/status#queries", 303)

    return [site.route("/status", show), form_route(site, "/status/cancel", cancel)]


def _may_cancel(site: Site, actor: Actor) -> bool:
    return _CANCEL in get_policies(site.kg).find_callable(actor, "Endpoint")


def _describe_load(load: LoadState) -> dict[str, Any]:
    report: Mapping[str, Any] = load.report or {}
    until = load.ended or datetime.now(UTC)
    return {
        "source": load.source,
        "locations": [_shorten(location) for location in load.locations[:3]],
        "more": max(0, len(load.locations) - 3),
        "began": load.began.isoformat(timespec="seconds"),
        "seconds": (until - load.began).total_seconds(),
        "done": load.done,
        "total": load.total,
        "doing": load.doing,
        "error": None if load.error is None else _hide_folders(load.error, load.locations),
        "counts": [(name.replace("_", " "), report[name]) for name in _REPORTED if report.get(name)],
        "rejected": report.get("rejected") or 0,
        "rejections": [
            {
                "record": _hide_folders(each["record"], load.locations),
                "reason": _hide_folders(each["reason"], load.locations),
            }
            for each in (report.get("rejections") or [])[:10]
        ],
        "run": report.get("run"),
    }


def _shorten(location: str) -> str:
    """Shorten a path to its last two parts, since the folders of the server are not of interest to all its clients."""
    parts = [part for part in location.split("/") if part]
    return location if "://" in location or len(parts) < 3 else "…/" + "/".join(parts[-2:])


def hide_paths(text: str) -> str:
    """Remove the folders of absolute paths from a text: ``row 1 of /srv/in/a.json`` is ``row 1 of …/a.json``."""
    return _FOLDERS.sub("…/", text)


def _hide_folders(text: str, locations: Sequence[str]) -> str:
    """Remove the folders of `locations` from a text."""
    for location in sorted(locations, key=len, reverse=True):
        folder = location.rpartition("/")[0]
        if folder.startswith("/"):
            text = text.replace(folder + "/", "")
    return text
