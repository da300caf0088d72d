"""``/why``: why a statement is in the graph, as text, as a list and as a drawing with the same content.

``/why?iri=`` explains an IRI; ``/why?s=&p=&o=`` a triple whose object is an IRI, and ``/why?s=&p=&value=`` one whose
object is a literal, with ``lang=`` or ``datatype=`` if it has one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyoxigraph import Literal, NamedNode
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kg.errors import InvalidInputError, NotFoundError
from kg.provenance.explanation import Explanation
from kg.server.html import href_of, page
from kg.server.pages.reading import DATA, page_href, passage_href
from kg.server.pages.site import Site, suggestion_page
from kg.text import quoted
from kg.tools.entities.dereference import names_of, parse_iri, short_name, worded_name
from kg.tools.reading.why import Chain, ChainNode, Triple, build_chain, explain, load_statement
from kg.vocabulary import BASE

SCRIPT: Final = "built/graphs.js"
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 186, 66, 34, 14
_LINE: Final = 26
"""Characters of a line in a box."""
SHOWN: Final = 110
"""Maximum characters of a name in the heading."""
DRAWN: Final = 80
"""Maximum number of steps in a drawing. The list has all."""

_KINDS: Final = {
    "statement": "Statement", "graph": "Graph", "person": "Person", "rule": "Rule", "claim": "Claim",
    "review": "Review", "words": "Words", "text": "Text", "file": "File", "run": "Run",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Box:
    """A step in a drawing, with its place."""

    node: ChainNode
    kind: str
    href: str | None
    x: int
    y: int
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line between two boxes."""

    path: str
    label: str


def routes(site: Site) -> list[Route]:
    """Build the route ``/why``."""

    def why(request: Request) -> Response:
        about = _parse(request)
        try:
            found = explain(site.kg, about)
        except NotFoundError as error:
            node = about if isinstance(about, NamedNode) else about[0]
            return suggestion_page(site, request, error, node.value)
        return _show(site, request, about, found)

    return [site.route("/why", why, ("iri", "s", "p", "o", "value", "lang", "datatype"))]


def _parse(request: Request) -> NamedNode | Triple:
    """Parse the address. Raises InvalidInputError with the valid forms."""
    given = request.query_params
    if "iri" in given:
        return parse_iri(given["iri"].strip())
    if "s" not in given or "p" not in given or ("o" in given) == ("value" in given):
        raise InvalidInputError(
            "Nothing to explain. Give iri=, or s=, p= and one of o= (an IRI) and value= (a literal)."
        )
    subject, predicate = parse_iri(given["s"].strip()), parse_iri(given["p"].strip())
    if "o" in given:
        return subject, predicate, parse_iri(given["o"].strip())
    try:
        if given.get("lang"):
            return subject, predicate, Literal(given["value"], language=given["lang"])
        datatype = parse_iri(given["datatype"]) if given.get("datatype") else None
        return subject, predicate, Literal(given["value"], datatype=datatype)
    except ValueError as error:
        raise InvalidInputError(f"Invalid language {quoted(given.get('lang', ''))}: {error}.") from None


def _show(site: Site, request: Request, about: NamedNode | Triple, found: Sequence[Explanation]) -> Response:
    stated = load_statement(site.kg, about) if isinstance(about, NamedNode) else about
    terms = [term for term in stated or (about,) if isinstance(term, NamedNode)]
    names = names_of(site.kg, [term.value for term in terms])

    def name_of(term: NamedNode | Literal) -> str:
        return term.value if isinstance(term, Literal) else names.get(term.value) or short_name(term.value)

    parts = []
    if stated is None:
        iri = str(terms[0].value)
        title = name_of(terms[0])
    else:
        iri = stated[0].value
        words = (name_of(stated[0]), worded_name(stated[1].value), name_of(stated[2]))
        title = " ".join(words)
        parts = [
            {"text": word if len(word) <= SHOWN else word[:SHOWN].rstrip() + "…", "href": _page_of(term)}
            for word, term in zip(words, stated, strict=True)
        ]
    chain = build_chain(found, title, iri)
    hrefs = {node.id: _href(node) for node in chain.nodes.values()}
    context = {
        "title": title,
        "parts": parts,
        "iri": iri,
        "about": str(about) if isinstance(about, NamedNode) else " ".join(map(str, about)),
        "subject_href": href_of(iri),
        "explanations": found,
        "steps": _list_steps(chain, hrefs),
        "texts": [str(each) for each in found],
        "href_of": href_of,
        "passage_href": passage_href,
        "base": BASE,
        "drawn": len(chain.nodes) <= DRAWN,
        "graph": json.dumps(
            {
                "nodes": [
                    {
                        "id": node.id,
                        "kind": node.kind,
                        "label": node.label,
                        "detail": node.detail,
                        "href": hrefs[node.id],
                    }
                    for node in chain.nodes.values()
                ],
                "edges": [
                    {"source": edge.source, "target": edge.target, "label": edge.label} for edge in chain.edges.values()
                ],
            },
            ensure_ascii=False,
        ),
        **_draw(chain, hrefs),
    }
    return page(request, "why.html", context, scripts=[SCRIPT])


def _page_of(term: NamedNode | Literal) -> str | None:
    return href_of(term.value) if isinstance(term, NamedNode) else None


def _href(node: ChainNode) -> str | None:
    """Build the address of the page of a step."""
    if node.iri is None:
        return None
    if node.kind == "words":
        return passage_href(node.iri, node.span)
    return page_href(node.iri, view=DATA) if node.kind in ("claim", "rule", "review") else href_of(node.iri)


def _list_steps(chain: Chain, hrefs: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """List the steps depth first, each with the relation to the step above it. A step met again is only named."""
    below: dict[str, list[tuple[str, str]]] = {}
    for edge in chain.edges.values():
        below.setdefault(edge.source, []).append((edge.target, edge.label))
    listed: list[dict[str, Any]] = []
    seen: set[str] = set()
    stack = [("about", "", 0)]
    while stack:
        step, label, depth = stack.pop()
        node = chain.nodes[step]
        listed.append(
            {
                "node": node,
                "kind": _KINDS[node.kind],
                "label": label,
                "depth": depth,
                "href": hrefs[step],
                "again": step in seen,
            }
        )
        if step not in seen:
            seen.add(step)
            stack += [(target, name, depth + 1) for target, name in reversed(below.get(step, []))]
    return listed


def _draw(chain: Chain, hrefs: Mapping[str, str | None]) -> dict[str, Any]:
    """Place the steps in columns, from the statement to its sources, and connect them."""
    if len(chain.nodes) > DRAWN:
        return {"boxes": [], "arrows": [], "width": 0, "height": 0}
    depth = {"about": 0}
    for _ in range(len(chain.nodes)):  # the longest way to each; chains have no circles, but a forged one must end
        changed = False
        for edge in chain.edges.values():
            if depth.get(edge.source, -1) + 1 > depth.get(edge.target, -1) and depth.get(edge.source, -1) < 12:
                depth[edge.target] = depth[edge.source] + 1
                changed = True
        if not changed:
            break
    columns: dict[int, list[str]] = {}
    for step in chain.nodes:
        columns.setdefault(depth.get(step, 0), []).append(step)
    places: dict[str, tuple[int, int]] = {}
    tallest = max(len(steps) for steps in columns.values())
    height = tallest * (_HEIGHT + _GAP_Y) - _GAP_Y
    for column, steps in columns.items():
        own = len(steps) * (_HEIGHT + _GAP_Y) - _GAP_Y
        for number, step in enumerate(steps):
            places[step] = column * (_WIDTH + _GAP_X), (height - own) // 2 + number * (_HEIGHT + _GAP_Y)
    boxes = [
        Box(node, _KINDS[node.kind], hrefs[step], *places[step], _wrap(node.label))
        for step, node in chain.nodes.items()
    ]
    arrows = []
    for edge in chain.edges.values():
        left, right = places[edge.source], places[edge.target]
        x1, y1, x2, y2 = left[0] + _WIDTH, left[1] + _HEIGHT // 2, right[0], right[1] + _HEIGHT // 2
        middle = x2 - _GAP_X // 2
        arrows.append(Arrow(f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}", edge.label))
    return {
        "boxes": boxes,
        "arrows": arrows,
        "width": (max(columns) + 1) * (_WIDTH + _GAP_X) - _GAP_X,
        "height": height,
        "box_width": _WIDTH,
        "box_height": _HEIGHT,
    }


def _wrap(text: str) -> list[str]:
    """Break a label into at most two lines of a box."""
    lines: list[str] = []
    left = text
    while left and len(lines) < 2:
        cut = len(left)
        if cut > _LINE:
            cut = next((at for at in range(_LINE, _LINE // 2, -1) if left[at - 1] in " /-_,"), _LINE)
        lines.append(left[:cut].strip())
        left = left[cut:].strip()
    if left:
        lines[-1] = lines[-1][: _LINE - 1].rstrip() + "…"
    return lines
