"""The SPARQL workbench for browsers (``/sparql``), and the requests of its editor.

A browser, which accepts HTML, gets the page; programs get the SPARQL Protocol (`sparql_protocol`). The
page shows ``query`` in a form; with ``run`` the server runs it and renders a table, or the errors at their lines. In a
browser with scripts the form becomes an editor, which sends its queries itself and asks:

- ``GET /sparql/terms?text=&kind=``: classes, properties or individuals for a name that is being typed;
- ``POST /sparql/labels`` with ``{"iris": [...]}``: their labels;
- ``POST /sparql/why`` with ``{"query", "row", "snapshot"}``: the statements behind a row, given in SPARQL JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from typing import Any, Final, get_args
from urllib.parse import urlencode

import pycountry
from pyoxigraph import BlankNode, Literal, NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route, request_response
from starlette.types import Scope

from kg.errors import InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.server import request_bodies, sparql_check
from kg.server.html import href_of, page
from kg.server.mcp import CancelOnDisconnect
from kg.server.negotiation import GRAPH_TYPES, RESULT_TYPES, negotiate
from kg.server.pages.reading import why_triple_href
from kg.server.pages.site import Site
from kg.server.problem_details import answering, method_not_allowed
from kg.server.resources import HTML
from kg.sparql.lint import Hint
from kg.sparql.terms import is_iri
from kg.store.protocol import Rows, Term
from kg.text import quoted
from kg.tools.entities.dereference import names_of, short_name
from kg.tools.schema.examples import Example, load_examples
from kg.tools.schema.find_terms import complete_terms
from kg.tools.schema.term_index import Kind
from kg.tools.sparql.query import QUERY_CHARACTERS, run_query
from kg.tools.sparql.row_evidence import find_evidence, parse_row
from kg.vocabulary import BASE, PREFIXES, curie

ROWS: Final = 1_000
"""Maximum rows of a table that the server renders. Downloads have all."""
CELL_CHARACTERS: Final = 600
LABELS: Final = 500
"""Maximum IRIs of one request for labels."""
SCRIPT: Final = "built/workbench.js"
STYLE: Final = "built/workbench.css"

START: Final = """# The classes of this store, with the number of instances of each
SELECT ?class (COUNT(?thing) AS ?instances) WHERE {
  ?thing a ?class
} GROUP BY ?class ORDER BY DESC(?instances) LIMIT 25"""

_FORMATS: Final = {
    "table": (("csv", "CSV"), ("tsv", "TSV"), ("json", "JSON"), ("xml", "XML")),
    "graph": (("ttl", "Turtle"), ("nt", "N-Triples"), ("jsonld", "JSON-LD"), ("rdf", "RDF/XML")),
}
_TOPICS: Final = {
    "climate": "Laws and policies",
    "parliament": "Parliament",
    "zoning": "Zoning codes",
    "concepts": "Concepts",
    "joined": "Across domains",
    "search": "Text search in SPARQL",
    "provenance": "Sources and provenance",
    "schema": "Schema and contents",
    "codes": "Code lists",
    "wikidata": "Wikibase",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A term in a table of the page."""

    text: str
    href: str | None = None
    title: str = ""
    note: str = ""
    language: str | None = None
    numeric: bool = False


@dataclass(slots=True)
class Outcome:
    """What running or checking a query gave: a table, a yes or no, or an error; and hints at their lines."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    boolean: bool | None = None
    error: str = ""
    code: str = ""
    status: int = 200
    checked: bool = False
    cut: str = ""
    count: str = ""
    snapshot: int | None = None
    hints: Sequence[Hint] = ()
    lines: Sequence[tuple[int, str, bool]] = ()
    """The lines of the query, each with its number and whether a hint is at it."""
    formats: Sequence[Mapping[str, str]] = field(default=())


class _BrowserRoute(Route):
    """The route of the page: for GET by a client that accepts HTML and names no format."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, inner = super().matches(scope)
        if match != Match.NONE and not _wants_page(Request(scope)):
            return Match.NONE, {}
        return match, inner


def _wants_page(request: Request) -> bool:
    if request.method not in ("GET", "HEAD"):
        return False
    accepted = request.headers.getlist("accept")
    if not any(HTML in each.lower() for each in accepted):
        return False
    if not request.query_params.keys().isdisjoint(("format", "output", "update")):
        return False
    return negotiate(accepted, (*RESULT_TYPES, *GRAPH_TYPES, HTML)) == HTML


def routes(site: Site) -> list[Route]:
    """Build the routes of the page and of its requests. They go before those of the protocol."""

    def send(path: str, answer: Callable[[Mapping[str, Any]], Any]) -> Route:
        """Build the route of a request by POST with a JSON object."""

        async def handle(request: Request) -> Response:
            if request.method != "POST":
                raise method_not_allowed(request, "POST")
            body = await request_bodies.read(request, site.kg.settings.max_body_bytes)
            given = request_bodies.parse_arguments(body)
            content = await site.threads.run(partial(answer, given), kind="raw")
            return JSONResponse(content, headers={"Cache-Control": "no-store"})

        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        app = CancelOnDisconnect(request_response(answering(handle)))
        return Route(path, app, methods=methods, name=path)

    shown = site.route("/sparql", lambda request: show(site.kg, request), ("query", "run", "view", "snapshot"))
    return [
        _BrowserRoute("/sparql", shown.app, name="workbench"),
        site.route("/sparql/terms", lambda request: _complete(site.kg, request)),
        send("/sparql/labels", partial(_load_labels, site.kg)),
        send("/sparql/why", partial(_explain_row, site.kg)),
    ]


def show(kg: KnowledgeGraph, request: Request) -> Response:
    """Answer with the page, and with the result of its query if it asks to run or check it."""
    parameters = request.query_params
    query, wanted = parameters.get("query", ""), parameters.get("run")
    outcome = _run(kg, query, parameters.get("snapshot", ""), checks=wanted == "check") if wanted and query else None
    context = {
        "query": query or START,
        "outcome": outcome,
        "snapshot": parameters.get("snapshot", ""),
        "generation": kg.store.statistics().generation,
        "topics": _list_examples(),
        "data": {
            "prefixes": PREFIXES,
            "example": START,
            "snapshot": kg.store.statistics().generation,
            "countries": _list_countries(),
        },
    }
    status = outcome.status if outcome is not None else 200
    return page(
        request, "workbench.html", context, status=status, scripts=[SCRIPT], styles=[STYLE],
        headers={"Cache-Control": "no-store"} if outcome else None,
    )  # fmt: skip


def _run(kg: KnowledgeGraph, query: str, snapshot: str, *, checks: bool) -> Outcome:
    outcome = Outcome(checked=checks)
    try:
        with kg.reading(_parse_snapshot(snapshot)):
            outcome.hints = [Hint(**hint) for hint in sparql_check.report(kg, query)["hints"]]
            if not checks:
                _fill(kg, query, _parse_snapshot(snapshot), outcome)
    except QuadciteError as error:
        outcome.error, outcome.code, outcome.status = str(error), error.code, error.http_status
    at = {hint.line for hint in outcome.hints}
    outcome.lines = [(number, text, number in at) for number, text in enumerate(query.splitlines(), 1)] if at else ()
    return outcome


def _parse_snapshot(text: str) -> int | None:
    if not text.strip():
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInputError(f"Invalid snapshot {quoted(text)}. Valid: a generation of the store.")
    return int(text)


def _fill(kg: KnowledgeGraph, query: str, snapshot: int | None, outcome: Outcome) -> None:
    if len(query) > QUERY_CHARACTERS:
        raise InvalidInputError(f"The query has more than {QUERY_CHARACTERS:,} characters. Send it to the endpoint.")
    form, answered = run_query(kg, query, ROWS, None)
    outcome.snapshot = answered.generation
    result = answered.result
    kind = "graph" if form in ("CONSTRUCT", "DESCRIBE") else "table"
    pinned = {"snapshot": str(snapshot)} if snapshot is not None else {}
    outcome.formats = [
        {"name": name, "href": "/sparql?" + urlencode({"query": query, **pinned, "format": short})}
        for short, name in _FORMATS[kind]
    ]
    if isinstance(result, bool):
        outcome.boolean = result
        return
    if isinstance(result, Rows):
        outcome.columns, terms = result.variables, [list(row) for row in result.rows]
    else:
        outcome.columns = ("subject", "predicate", "object")
        terms = [[triple.subject, triple.predicate, triple.object] for triple in result]
    iris = {term.value for row in terms for term in row if isinstance(term, NamedNode)}
    labels = names_of(kg, iris) if iris else {}
    outcome.rows = [[_cell(term, labels) for term in row] for row in terms]
    noun = "statement" if kind == "graph" else "row"
    outcome.count = f"{len(terms):,} {noun}{'s' * (len(terms) != 1)}"
    if answered.why is not None:
        reason = "the deadline was reached" if answered.why == "time" else f"this page shows {ROWS:,} at most"
        outcome.cut = f"Cut at {outcome.count}, since {reason}: more exist. A download has all that the server allows."


def _cell(term: Term | None, labels: Mapping[str, str]) -> Cell:
    if term is None:
        return Cell("")
    if isinstance(term, NamedNode):
        short = curie(term.value)
        shown = labels.get(term.value) or (short_name(term.value) if short.startswith("<") else short)
        return Cell(shown, href_of(term.value), term.value)
    if isinstance(term, Literal):
        cut = len(term.value) > CELL_CHARACTERS
        text = term.value[:CELL_CHARACTERS] + "…" if cut else term.value
        kind = f"@{term.language}" if term.language else ""
        note = " ".join(part for part in (kind, f"{len(term.value):,} characters" if cut else "") if part)
        return Cell(text, note=note, language=term.language, numeric=term.datatype.value in _NUMERIC)
    return Cell(str(term))


_NUMERIC: Final = frozenset(
    f"http://www.w3.org/2001/XMLSchema#{name}" for name in ("integer", "decimal", "double", "float", "int", "long")
)


@cache
def _list_examples() -> list[dict[str, Any]]:
    """List the example queries by topic."""

    def topic(example: Example) -> str:
        return example.iri.removeprefix(f"{BASE}examples/").partition("/")[0]

    order = {name: position for position, name in enumerate(_TOPICS)}
    known = sorted(load_examples(), key=lambda example: order.get(topic(example), len(order)))
    return [
        {
            "title": _TOPICS.get(name, name),
            "examples": [
                {"question": each.question, "query": each.query, "href": "/sparql?" + urlencode({"query": each.query})}
                for each in examples
            ],
        }
        for name, examples in groupby(known, topic)
    ]


@cache
def _list_countries() -> dict[str, str]:
    """List the numeric code of each country, which maps name it by, by its alpha-3 code."""
    return {country.alpha_3: country.numeric for country in pycountry.countries}


# The requests of the editor.


def _complete(kg: KnowledgeGraph, request: Request) -> Response:
    kind = request.query_params.get("kind", "")
    if kind not in get_args(Kind):
        raise InvalidInputError(f"Invalid kind {quoted(kind)}. Valid: {', '.join(get_args(Kind))}.")
    found = complete_terms(kg, request.query_params.get("text", ""), kind)  # type: ignore[arg-type]  # checked
    return JSONResponse(
        {"terms": [term.model_dump(mode="json") for term in found]}, headers={"Cache-Control": "no-store"}
    )


def _load_labels(kg: KnowledgeGraph, given: Mapping[str, Any]) -> dict[str, Any]:
    iris = given.get("iris")
    if not isinstance(iris, list) or not all(isinstance(iri, str) for iri in iris) or len(iris) > LABELS:
        raise InvalidInputError(f"Invalid `iris`. Send a list of at most {LABELS} IRIs.")
    valid = [iri for iri in iris if is_iri(iri)]
    return {"labels": names_of(kg, valid) if valid else {}}


def _explain_row(kg: KnowledgeGraph, given: Mapping[str, Any]) -> dict[str, Any]:
    query, snapshot = given.get("query"), given.get("snapshot")
    if not isinstance(query, str):
        raise InvalidInputError("Missing `query`: the text of the query with the row.")
    if snapshot is not None and (not isinstance(snapshot, int) or isinstance(snapshot, bool) or snapshot < 0):
        raise InvalidInputError(f"Invalid snapshot {json.dumps(snapshot)[:40]}. Valid: a generation of the store.")
    found = find_evidence(kg, query, parse_row(given.get("row")), snapshot)
    return {
        "reason": found.reason,
        "traces": [trace.model_dump(mode="json") for trace in found.traces],
        "statements": [
            {
                "subject": _to_json(each.subject),
                "predicate": _to_json(each.predicate),
                "object": _to_json(each.object),
                "graph": each.graph,
                "graph_name": each.graph.removeprefix(BASE),
                "why": why_triple_href(each.subject.value, each.predicate.value, each.object),
            }
            for each in found.statements
        ],
    }


def _to_json(term: Term) -> dict[str, str]:
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, Literal):
        named = {"xml:lang": term.language} if term.language else {"datatype": term.datatype.value}
        return {"type": "literal", "value": term.value, **named}
    return {"type": "bnode" if isinstance(term, BlankNode) else "triple", "value": str(term)}
