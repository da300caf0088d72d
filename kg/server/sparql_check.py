"""``/sparql/check``: likely mistakes in a query, without running it.

``GET /sparql/check?query=``, or POST of a form or of the query itself (``application/sparql-query``). The response is
one JSON object: ``form`` (null if it is not a query), ``read`` (false: too large or not parsed, so not checked),
``generation`` of the measured schema that it was checked against, ``hints``, and ``prefixes`` that the query uses (null
for an undeclared one). A syntax error is a hint with the code ``syntax``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, request_response

from kg.errors import InvalidInputError, QueryLimitError, QuerySyntaxError
from kg.knowledge_graph import CALLER, KnowledgeGraph
from kg.queries import text_check
from kg.server import request_bodies
from kg.server.mcp import CancelOnDisconnect, ToolThreads
from kg.server.negotiation import media_type_of
from kg.server.problem_details import HttpError, answering, method_not_allowed
from kg.sparql.lint import Hint
from kg.sparql.parser import parse
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.sparql.empty_results import find_hints
from kg.tools.sparql.local_services import blank_services
from kg.vocabulary import BASE, PREFIXES

PATH: Final = "/sparql/check"

_FORM: Final = "application/x-www-form-urlencoded"
_QUERY: Final = "application/sparql-query"
_SCHEMA_WAIT_S: Final = 2.0
_PARSING_S: Final = 2.0
_NOTHING: Final = NamedNode(BASE + "graph/none")
"""A graph that never exists. Over it a worker does little more than parse the query."""
_JSON: Final = "application/sparql-results+json"
_MEDIA_TYPES: Final = {"CONSTRUCT": "application/n-triples", "DESCRIBE": "application/n-triples"}
_PLACED: Final = re.compile(r"Invalid SPARQL: (line (\d+), column (\d+): .*)", re.DOTALL)


def routes(kg: KnowledgeGraph, threads: ToolThreads) -> list[Route]:
    """Build the route. Queries are checked against the last measured schema of `kg`."""

    async def answer(request: Request) -> Response:
        query = await _parse_query(request, kg.settings.max_body_bytes)
        content = await threads.run(partial(report, kg, query), kind="raw")
        return JSONResponse(content, headers={"Cache-Control": "no-store"})

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return [Route(PATH, CancelOnDisconnect(request_response(answering(answer))), methods=methods, name="check")]


def report(kg: KnowledgeGraph, query: str) -> dict[str, Any]:
    """Check `query` and return the report as JSON types.

    Raises QueryForbiddenError and InvalidInputError like running it, and QuerySyntaxError for text that is not parsed.
    """
    runnable = blank_services(kg, query)
    form = text_check.check(runnable).form
    parsed = parse(query)
    schema = get_schema(kg, _SCHEMA_WAIT_S, newest=True)
    hints = find_hints(kg, query, schema)
    hints = [*_find_syntax_error(kg, query, runnable, hints), *hints]
    declared = {} if parsed is None else {name: node.value for name, node in parsed.declared.items()}
    used = () if parsed is None else parsed.used
    return {
        "form": form,
        "read": parsed is not None,
        "generation": schema.generation,
        "hints": [asdict(hint) for hint in hints],
        "prefixes": {name: declared.get(name, PREFIXES.get(name)) for name in used},
    }


def _find_syntax_error(kg: KnowledgeGraph, query: str, runnable: str, hints: Sequence[Hint]) -> list[Hint]:
    """Parse `query` in a query worker and return a syntax error as a hint, unless `hints` explain it better."""
    try:
        with kg.raw_pool.stream(
            runnable, client=CALLER.get(),
            media_type=_MEDIA_TYPES.get(text_check.find_form(runnable) or "", _JSON), limit=1, timeout_s=_PARSING_S,
            default_graphs=[_NOTHING],
        ) as answer:  # fmt: skip
            for _ in answer:
                pass
    except QuerySyntaxError as error:
        placed = _PLACED.fullmatch(str(error))
        message, line, column = (placed[1], int(placed[2]), int(placed[3])) if placed else (str(error), 1, 1)
        if any(hint.code == "undeclared_prefix" for hint in hints):
            return []
        return [Hint("syntax", message, line, column, query.split("\n")[line - 1][column - 1 :][:40], ())]
    except QueryLimitError:
        pass  # it was parsed, or the pool is busy; limits are not checked here
    return []


async def _parse_query(request: Request, most: int) -> str:
    """Get the query of a request, sent as the SPARQL Protocol defines."""
    if request.method in ("GET", "HEAD"):
        return _single(request.query_params.getlist("query"))
    if request.method != "POST":
        raise method_not_allowed(request, "GET, HEAD, POST")
    body = await request_bodies.read(request, most)
    media_type, _ = media_type_of(request.headers.get("content-type", ""))
    try:
        text = body.decode()
        if media_type == _FORM:
            return _single(parse_qs(text, keep_blank_values=True, errors="strict").get("query", []))
    except ValueError as error:
        raise InvalidInputError(f"The body is not UTF-8: {error}.") from None
    if media_type != _QUERY:
        raise HttpError(
            415,
            "unsupported_media_type",
            f"Unsupported Content-Type {media_type or '(none)'}. Send {_QUERY} or {_FORM}.",
        )
    return text


def _single(given: list[str]) -> str:
    if len(given) != 1:
        raise InvalidInputError(f"{len(given)} parameters `query`. Send exactly one.")
    return given[0]
