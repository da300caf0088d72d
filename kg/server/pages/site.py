"""What pages are made with: routes that run in the threads of the tools, and calls of tools without token budgets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, request_response

from kg.errors import InvalidInputError, NotFoundError, QuadciteError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.retrieval.reader import recording
from kg.retrieval.results import Result, Statement
from kg.server.authentication import Accounts
from kg.server.authorization import find_action
from kg.server.compression import PAGE_LEVEL, Compression
from kg.server.html import href_of, page
from kg.server.mcp import CancelOnDisconnect, ToolThreads
from kg.server.negotiation import negotiate
from kg.server.problem_details import PROBLEM, HttpError, answering, method_not_allowed, problem
from kg.server.resources import HTML
from kg.server.sessions import Sessions
from kg.text import quoted
from kg.tools.calls import Tool
from kg.tools.decisions import decide, require_endpoint
from kg.tools.entities.dereference import names_of, suggestions
from kg.tools.registry import TOOLS

R = TypeVar("R", bound=Result)

Answer = Callable[[Request], Response]

READS: Final = ("GET", "HEAD")
_SAME_NAMES: Final[Mapping[str, str]] = {}
_WAIT: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
"""Errors that the same request may not get later."""
MOST_NUMBER: Final = 999_999
"""Greatest number in an address, where nothing else bounds it."""


@dataclass(frozen=True, slots=True)
class Site:
    """The graph that the pages show, and the threads that make them."""

    kg: KnowledgeGraph
    threads: ToolThreads
    sessions: Sessions = field(default_factory=lambda: Sessions(Accounts()))
    """The browsers that are signed in. `kg.server.pages.sign_in` builds the routes of their forms."""

    def route(
        self, path: str, answer: Answer, parameters: Sequence[str] = (), *, methods: Sequence[str] = READS
    ) -> Route:
        """Build the route of a page. `parameters` are those of its address; the page reports any other one.

        `answer` runs in a thread of the tools, may block, and is left at the deadline of a call or when its client
        disconnects; its queries are stopped then. QuadciteError and HttpError become a page for browsers, and problem
        details for other clients.
        """
        allowed = ", ".join((*methods, "OPTIONS"))
        # Also where `Authorization` leaves the decision to others, as for the page of /sparql.
        action = find_action(path, "GET") or "pages.sparql"

        async def handle(request: Request) -> Response:
            request.state.parameters = parameters
            if request.method == "OPTIONS":
                return Response(status_code=204, headers={"Allow": allowed})
            if request.method not in methods:
                return problem_page(request, method_not_allowed(request, allowed))
            try:
                require_endpoint(self.kg, SENDER.get(), action)
                return await self.threads.run(partial(answer, request))
            except (HttpError, QuadciteError) as error:
                return problem_page(request, error)

        app = Compression(request_response(answering(handle)), PAGE_LEVEL)
        return Route(path, CancelOnDisconnect(app), name=path)


def get_number(request: Request, name: str, default: int = 1, most: int = MOST_NUMBER) -> int:
    """Read a number from 1 to `most` in the address; `default` if it is absent. Raises InvalidInputError for others."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 1 <= int(text) <= most):
        raise InvalidInputError(f"Invalid {name} {quoted(text)}. Valid: a number from 1 to {most:,}.")
    return int(text)


@dataclass(frozen=True, slots=True)
class Asked(Generic[R]):
    """The whole result of a tool, and the queries that it ran."""

    result: R
    queries: Sequence[Statement]


def ask(
    kg: KnowledgeGraph, function: Callable[..., R], fields: Mapping[str, str] = _SAME_NAMES, /, **arguments: Any
) -> Asked[R]:
    """Call the function of a tool as an agent would, by the names of its arguments, without a budget of tokens.

    Arguments are validated as for an agent. An error names the parameter of the page: `fields` has those whose name
    differs from the argument or filter. Only for tools that read.
    """
    tool = _tools()[function]
    if not tool.reads:
        raise ValueError(f"{tool.name} writes")
    with recording() as ran:
        try:
            permit = partial(decide, kg, SENDER.get())
            result: R = tool.call(kg, arguments, partial(_describe_invalid, fields), permit)
        except (InvalidInputError, NotFoundError) as error:
            message = str(error)
            for name, shown in fields.items():
                message = re.sub(rf"(?<![\w.]){name}(?=: )", shown, message)
            error.args = (message, *error.args[1:])
            raise
    return Asked(result, ran)


def _describe_invalid(fields: Mapping[str, str], error: ValidationError) -> str:
    """Build a sentence that names each invalid parameter of the page and the problem."""
    said: dict[str, None] = {}
    for each in error.errors(include_url=False)[:5]:
        name = [str(step) for step in each["loc"] if isinstance(step, str)][-1]
        given = each["input"] if isinstance(each["input"], str | int) else ""
        said[f"{fields.get(name, name)}: {each['msg']}{f', not {quoted(str(given))}' if given != '' else ''}."] = None
    return " ".join(said).encode(errors="replace").decode()


@cache
def _tools() -> dict[Callable[..., Any], Tool]:
    return {tool.function: tool for tool in TOOLS}


def list_queries(queries: Iterable[Statement]) -> list[dict[str, str]]:
    """List the queries behind a page, each with its address in the editor. The same one is listed once."""
    return [
        {"purpose": purpose, "sparql": sparql, "href": "/sparql?" + urlencode({"query": sparql})}
        for sparql, purpose in {query.sparql: query.purpose for query in queries}.items()
    ]


def suggestion_page(site: Site, request: Request, error: NotFoundError, iri: str) -> Response:
    """Answer that nothing is known of `iri`, with similar IRIs and their labels."""
    near = suggestions(site.kg, iri)
    labels = names_of(site.kg, near) if near else {}
    return problem_page(request, error, {each: labels.get(each, each) for each in near})


def _address_of(request: Request) -> str:
    """Build the address of a request on this server."""
    path = quote("/" + request.url.path.lstrip("/"))
    return f"{path}?{request.url.query}" if request.url.query else path


def problem_page(
    request: Request, error: HttpError | QuadciteError, near: Mapping[str, str] = MappingProxyType({})
) -> Response:
    """Answer with an error: a page for browsers, problem details for others. `near` has labels of similar IRIs."""
    if negotiate(request.headers.getlist("accept"), (PROBLEM, "text/plain", HTML)) != HTML:
        listed = ", ".join(f"<{iri}>" for iri in near)
        return problem(request, NotFoundError(f"{error} Did you mean {listed}?") if near else error)
    plain = problem(request, error)
    context = {
        "title": HTTPStatus(plain.status_code).phrase,
        "message": str(error).encode(errors="replace").decode(),
        "status": plain.status_code,
        "code": error.code,
        "near": [{"href": href_of(iri), "text": label, "iri": iri} for iri, label in near.items()],
        "asked": request.query_params.get("iri"),
        "searched": request.query_params.get("q") if request.url.path == "/search" else None,
        "again": _address_of(request) if plain.status_code in _WAIT and request.method in READS else None,
    }
    kept = {name: plain.headers[name] for name in ("allow", "retry-after", "www-authenticate") if name in plain.headers}
    return page(
        request, "problem.html", context, status=plain.status_code, headers={**kept, "Cache-Control": "no-store"}
    )
