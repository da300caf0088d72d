"""Read-only resources: GET and HEAD, with content negotiation by Accept or ``format=``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from pyoxigraph import Quad, RdfFormat, Triple, serialize
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, request_response

from kg.errors import InvalidInputError
from kg.server.auth import get_peer
from kg.server.compression import Compression
from kg.server.fair_limiter import FairLimiter
from kg.server.negotiation import GRAPH_TYPES, SHORTHANDS, negotiate, shorthand
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.text import quoted
from kg.vocabulary import PREFIXES

HTML: Final = "text/html"
ALLOWED: Final = "GET, HEAD, OPTIONS"
PAGES: Final = FairLimiter(16, 12, 64, kind="pages")
"""Threads for the resources of this server process; each may wait for queries."""

Answer = Callable[[Request], Response]


def resource(path: str, answer: Answer) -> Route:
    """Build the route of a resource. `answer` may block and may raise QuadciteError or HttpError."""

    async def handle(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": ALLOWED})
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed(request, ALLOWED)
        return await PAGES.run(get_peer(request.scope), partial(answer, request), abandon=True)

    return Route(path, Compression(request_response(answering(handle))), name=path)


def choose_media_type(request: Request, offered: Sequence[str] = GRAPH_TYPES) -> str:
    """Choose the media type of `offered` that the request prefers, by ``format=`` if present, else by Accept.

    Raises InvalidInputError for an unknown format, and HttpError (406) if none is acceptable.
    """
    wanted = request.query_params.get("format")
    if wanted is None:
        found = negotiate(request.headers.getlist("accept"), offered)
        if found is not None and HTML not in offered and _is_browser(request, found):
            found = offered[0]
    elif wanted.strip().lower() in ("html", HTML) and HTML in offered:
        found = HTML
    else:
        try:
            found = shorthand(wanted, offered)
        except KeyError:
            raise InvalidInputError(
                f"Unknown format {quoted(wanted)}. Available: a media type, or {', '.join(SHORTHANDS)}."
            ) from None
    if found is None:
        raise HttpError(406, "not_acceptable", f"Not acceptable by the request. Available: {', '.join(offered)}.")
    return found


def browser_headers(request: Request, media_type: str) -> dict[str, str]:
    """Build headers with which a browser shows Turtle and similar formats instead of saving them to a file.

    A browser is a client that accepts HTML and receives a type that it did not name. Empty for other clients.
    """
    readable = media_type in ("text/turtle", "application/n-triples", "application/n-quads", "application/trig")
    if not readable or not _is_browser(request, media_type):
        return {}
    return {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


def _is_browser(request: Request, given: str) -> bool:
    accepted = ",".join(request.headers.getlist("accept")).lower()
    return HTML in accepted and given not in accepted


def rdf_response(
    statements: Iterable[Triple] | Iterable[Quad], media_type: str, headers: Mapping[str, str]
) -> Response:
    """Serialize RDF in one of `GRAPH_TYPES`, declaring the prefixes in use where the format has prefixes.

    Raises HttpError (406) for statements that the format cannot express, such as triple terms in JSON-LD.
    """
    form = RdfFormat.from_media_type(media_type)
    if form is None:
        raise ValueError(f"{media_type} is not an RDF format")
    written: list[Triple] | list[Quad] = list(statements)  # type: ignore[assignment]
    if not form.supports_datasets:
        written = list(dict.fromkeys(one.triple if isinstance(one, Quad) else one for one in written))
    blocks: dict[tuple[object, object], int] = {}  # keeps the statements about a subject together

    def block(one: Triple | Quad) -> int:
        return blocks.setdefault((one.graph_name if isinstance(one, Quad) else None, one.subject), len(blocks))

    written.sort(key=block)
    text = "\n".join(map(str, written))
    prefixes = {name: start for name, start in PREFIXES.items() if "<" + start in text}
    try:
        body = serialize(written, format=form, prefixes=prefixes) or b""
    except (OSError, ValueError, RuntimeError) as error:
        raise HttpError(
            406, "not_acceptable", f"These statements cannot be expressed in {form.name}: {error}."
        ) from None
    charset = "; charset=utf-8" if media_type.startswith("text/") else ""
    return Response(
        body,
        headers={"Content-Type": media_type + charset, "Vary": "Accept", "Cache-Control": "no-cache", **headers},
    )
