"""Read-only resources: GET and HEAD, the representation chosen by Accept or ``format=``, errors as everywhere here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import anyio.to_thread
from anyio import CapacityLimiter
from pyoxigraph import Quad, RdfFormat, Triple, serialize
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, request_response

from kg.errors import InvalidInputError
from kg.server.compression import Compression
from kg.server.negotiation import GRAPH_TYPES, SHORTHANDS, negotiate, shorthand
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.vocabulary import PREFIXES

HTML: Final = "text/html"
ALLOWED: Final = "GET, HEAD, OPTIONS"
THREADS: Final = 8
"""Requests of one resource that are answered at a time; each may wait for a query."""

Answer = Callable[[Request], Response]


def resource(path: str, answer: Answer) -> Route:
    """Return the route of a resource; `answer` may block, and may raise what is a QuadciteError or an HttpError."""
    limiter = CapacityLimiter(THREADS)

    async def handle(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": ALLOWED})
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed(request, ALLOWED)
        return await anyio.to_thread.run_sync(partial(answer, request), limiter=limiter)

    return Route(path, Compression(request_response(answering(handle))), name=path)


def representation(request: Request, offered: Sequence[str] = GRAPH_TYPES) -> str:
    """Return the media type of `offered` that the request asks for, by ``format=`` if it has one, else by Accept.

    Raises InvalidInputError for a format that means nothing here, and HttpError (406) where none of them will do.
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
                f"format is a media type or one of {', '.join(SHORTHANDS)}, not {wanted[:80]!r}"
            ) from None
    if found is None:
        raise HttpError(406, "not_acceptable", f"this is answered in {', '.join(offered)}, and the request takes none")
    return found


def shown_to(request: Request, media_type: str) -> dict[str, str]:
    """Return the header under which a browser shows Turtle and its like in place of saving them to a file.

    A browser is who names HTML in Accept and gets what it did not name; nothing is changed for anyone else.
    """
    readable = media_type in ("text/turtle", "application/n-triples", "application/n-quads", "application/trig")
    if not readable or not _is_browser(request, media_type):
        return {}
    return {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


def _is_browser(request: Request, given: str) -> bool:
    accepted = ",".join(request.headers.getlist("accept")).lower()
    return HTML in accepted and given not in accepted


def rdf(statements: Iterable[Triple] | Iterable[Quad], media_type: str, headers: Mapping[str, str]) -> Response:
    """Return RDF in one of `GRAPH_TYPES`, with the prefixes that it uses declared where the format has any.

    Raises HttpError (406) for what the format has no way to say, as JSON-LD has none for triples of triples.
    """
    form = RdfFormat.from_media_type(media_type)
    if form is None:
        raise ValueError(f"{media_type} is no RDF format")
    said: list[Triple] | list[Quad] = list(statements)  # type: ignore[assignment]
    if not form.supports_datasets:
        said = list(dict.fromkeys(one.triple if isinstance(one, Quad) else one for one in said))
    blocks: dict[tuple[object, object], int] = {}  # what is said of one thing stands together

    def block(one: Triple | Quad) -> int:
        return blocks.setdefault((one.graph_name if isinstance(one, Quad) else None, one.subject), len(blocks))

    said.sort(key=block)
    text = "\n".join(map(str, said))
    prefixes = {name: start for name, start in PREFIXES.items() if "<" + start in text}
    try:
        body = serialize(said, format=form, prefixes=prefixes) or b""
    except (OSError, ValueError, RuntimeError) as error:
        raise HttpError(406, "not_acceptable", f"this cannot be said in {form.name}: {error}") from None
    charset = "; charset=utf-8" if media_type.startswith("text/") else ""
    return Response(
        body,
        headers={"Content-Type": media_type + charset, "Vary": "Accept", "Cache-Control": "no-cache", **headers},
    )
