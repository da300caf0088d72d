"""A page for every IRI, as HTML or RDF (``/resolve?iri=``, ``/id/...``, ``/graph/...``, ``/vocab/...``, ``/ns``), and
the start page.

IRIs below our base are served at their own paths, so that dereferencing needs only a redirect from the base to a
server. The pages work without JavaScript, load nothing, and have a Content-Security-Policy that blocks any script in
the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from pyoxigraph import Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kg import __version__
from kg.errors import InvalidInputError, NotFoundError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import load_declared_terms, load_ontology
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Provenance
from kg.server.html import formats, href_of, html
from kg.server.negotiation import GRAPH_TYPES, negotiate
from kg.server.problem_details import PROBLEM, HttpError, problem
from kg.server.resources import HTML, choose_media_type, rdf_response, resource
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.tools.entities.dereference import (
    COUNTED,
    QUADS,
    Dereferenced,
    dereference,
    graph_of,
    names_of,
    parse_iri,
    short_name,
    suggestions,
    worded_name,
)
from kg.tools.schema.schema_measurement import get_schema
from kg.tools.zoning.section_tables import Table
from kg.vocabulary import BASE, DCTERMS, KG, OA, RDF, RDFS, SCHEMA, SKOS, XSD, curie

CLASSES: Final = 12
"""Classes on the start page."""


def terms(request: Request) -> Response:
    """Answer with the ontology: all of it as RDF, its terms as HTML."""
    media_type = choose_media_type(request, (*GRAPH_TYPES, HTML))
    if media_type != HTML:
        return rdf_response(
            (quad for quads in load_ontology().values() for quad in quads), media_type, {"Content-Location": "/ns"}
        )
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for term in sorted(load_declared_terms().values(), key=lambda term: term.iri):
        titles = {"class": "Classes", "property": "Properties", "individual": "Codes and other individuals"}
        groups.setdefault((titles[term.kind], term.domain or ""), []).append(
            {
                "anchor": term.iri.removeprefix(KG.iri) if term.iri.startswith(KG.iri) else term.iri.removeprefix(BASE),
                "href": href_of(term.iri),
                "short": short_name(term.iri),
                "label": term.label,
                "definition": term.definition or "",
            }
        )
    shown = [{"title": f"{title}: {part}", "terms": terms} for (title, part), terms in sorted(groups.items())]
    context = {"groups": shown, "iri": BASE + "ns", "formats": formats(lambda form: "/ns?format=" + form)}
    return html("terms.html", context)


EXAMPLE_CHARACTERS: Final = 70
"""Maximum characters of an identifier on the start page."""

EXAMPLE: Final = """SELECT ?country (COUNT(DISTINCT ?document) AS ?documents) WHERE {
  ?document a kg:PolicyDocument ; kg:jurisdiction/skos:notation ?country
} GROUP BY ?country ORDER BY DESC(?documents)"""
"""The query in the form of the start page if there are documents."""

EXAMPLES: Final = (
    (KG.PolicyDocument.value, EXAMPLE),
    (
        KG.CodeSection.value,
        """SELECT ?town (COUNT(DISTINCT ?section) AS ?sections) WHERE {
  ?section a kg:CodeSection ; kg:jurisdiction/skos:prefLabel ?town
} GROUP BY ?town ORDER BY DESC(?sections)""",
    ),
    (
        KG.UsePermission.value,
        """SELECT ?town (COUNT(DISTINCT ?district) AS ?districts) WHERE {
  ?permission a kg:UsePermission ; kg:district ?district . ?district kg:jurisdiction/skos:prefLabel ?town
} GROUP BY ?town ORDER BY DESC(?districts)""",
    ),
    (
        KG.Speech.value,
        """SELECT ?speaker (COUNT(DISTINCT ?speech) AS ?speeches) WHERE {
  ?speech a kg:Speech ; kg:speakerAsRecorded ?speaker
} GROUP BY ?speaker ORDER BY DESC(?speeches) LIMIT 50""",
    ),
)
"""A query per class. The form contains the first one that has results."""

THERE: Final = "SELECT ?class WHERE { VALUES ?class { $classes } FILTER EXISTS { ?thing a ?class } }"

_ADDRESSES: Final = (
    ("/docs", "The documentation", True),
    ("/mcp", "MCP, for agents: tools that search, read and cite", False),
    ("/sparql", "SPARQL 1.1; without a query, the service description", True),
    ("/sparql/check?query=", "Likely mistakes in a query, without running it", False),
    ("/sparql/queries", "The running and waiting queries", True),
    ("/graphs", "The named graphs, for reading and writing (Graph Store Protocol)", True),
    ("/shacl", "SHACL validation of stored data, or of data sent by POST", False),
    ("/tools", "The tools of MCP over plain HTTP", True),
    ("/resolve?iri=", "All statements about one IRI, as a page or as RDF", False),
    ("/.well-known/void", "Description of the data: VoID and DCAT", True),
    ("/ns", "The terms of the ontology with their definitions", True),
    ("/prefixes", "The predeclared prefixes", True),
    ("/health", "The state of this server", True),
)


def start(kg: KnowledgeGraph, request: Request) -> Response:
    """Answer with the start page, as HTML or JSON."""
    counted = kg.store.statistics()
    if negotiate(request.headers.getlist("accept"), (HTML, "application/json")) == "application/json":
        content = {
            "name": "Quadcite",
            "version": __version__,
            "generation": counted.generation,
            "quads": counted.quads,
            "graphs": counted.graphs,
            "links": {path: what for path, what, _ in _ADDRESSES},
        }
        return JSONResponse(content, headers={"Vary": "Accept", "Cache-Control": "no-cache"})
    schema = get_schema(kg, wait_s=1.0)
    rows = []
    shown = list(schema.classes.values())[:CLASSES]
    names = names_of(kg, [use.example for use in shown if use.example])
    for use in shown:
        term = schema.terms.get(use.iri)
        name = names.get(use.example) or short_name(use.example) if use.example else ""
        example = {"href": href_of(use.example), "text": _shortened(name)} if use.example else None
        label = term.label if term else short_name(use.iri)
        rows.append({"href": href_of(use.iri), "label": label, "count": f"{use.entities:,}", "example": example})
    context = {
        "example": _find_example(kg),
        "version": __version__,
        "quads": f"{counted.quads:,}",
        "graphs": f"{counted.graphs:,}",
        "passages": f"{kg.search.status().units:,}",
        "addresses": [{"path": path, "what": what, "href": path if page else None} for path, what, page in _ADDRESSES],
        "classes": rows,
        "generation": schema.generation,
        "unmeasured": counted.quads > 0,
    }
    return html("start.html", context)


def _find_example(kg: KnowledgeGraph) -> str:
    """Find the first of `EXAMPLES` that has results."""
    classes = [NamedNode(name) for name, _ in EXAMPLES]
    there = {iri_of(row["class"]) for row in Reader(kg).rows("classes", bind(THERE, classes=classes))}
    return next((query for name, query in EXAMPLES if name in there), EXAMPLE)


def _shortened(text: str) -> str:
    return text if len(text) <= EXAMPLE_CHARACTERS else text[:EXAMPLE_CHARACTERS] + "…"


TEXT_CHARACTERS: Final = 50_000
"""Maximum characters of a text on a page."""
VALUE_CHARACTERS: Final = 2_000
"""Maximum characters of any other literal on a page."""
INPUTS_SHOWN: Final = 10
"""Maximum graphs listed that a graph was computed from."""
BRIEF_CHARACTERS: Final = 160
"""Maximum characters of a text used as a label."""

_HASH: Final = re.compile("[0-9a-f]{64}")
_HEADED: Final = frozenset((KG.Debate.value, KG.Speech.value, KG.Division.value, KG.CodeSection.value))
"""Classes of parts that are shown by their heading, not their text."""
_FIRST: Final = (RDFS.label, SKOS.prefLabel, DCTERMS.title, SKOS.definition, DCTERMS.description, DCTERMS.isPartOf)


@dataclass(frozen=True, slots=True)
class Shown:
    """A term on a page. Without `href` it is text."""

    text: str
    href: str | None = None
    outside: bool = False
    note: str = ""
    language: str | None = None
    graphs: tuple[int, ...] = ()
    """Numbers of the graphs that contain the statement; for a single one the graph itself, as `graph`."""
    graph: Shown | None = None
    title: str = ""
    code: bool = False
    lead: str = ""
    voice: Shown | None = None
    """The speaker."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text as pieces: plain text and tables."""

    pieces: Sequence[str | Table]
    language: str | None
    note: str


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    note: str
    entries: Sequence[Shown]


@dataclass(slots=True)
class _Graphs:
    """The graphs on a page, numbered in order of appearance."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, quad: Quad) -> int:
        return self.numbers.setdefault(graph_of(quad), len(self.numbers) + 1)


def routes(kg: KnowledgeGraph) -> list[Route]:
    """Build the routes of the pages: ``/``, ``/resolve``, ``/ns``, and the paths below our base."""

    def resolve(request: Request) -> Response:
        given = request.query_params.getlist("iri")
        if len(given) != 1 or not given[0].strip():
            raise InvalidInputError("Missing IRI. Give one, percent-encoded: /resolve?iri=cpr://doc/...")
        return _thing(kg, request, given[0].strip())

    def own(request: Request) -> Response:
        path: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
        return _thing(kg, request, BASE + path.decode("ascii", "replace").lstrip("/"))

    pages: dict[str, Callable[[Request], Response]] = {
        "/": lambda request: start(kg, request),
        "/resolve": resolve,
        "/ns": terms,
        **dict.fromkeys(("/id/{path:path}", "/graph/{path:path}", "/vocab/{path:path}", "/ns/{path:path}"), own),
    }
    return [resource(path, _explained(kg, page)) for path, page in pages.items()]


def _thing(kg: KnowledgeGraph, request: Request, iri: str) -> Response:
    media_type = choose_media_type(request, (*GRAPH_TYPES, HTML))
    page = _page_number(request)
    found = dereference(kg, iri, page)
    headers = {
        "Quadcite-Snapshot": str(found.generation),
        "Quadcite-Truncated": "true" if found.cut or found.more else "false",
        "Content-Location": _address(iri, page, None),
    }
    if media_type != HTML:
        if found.more:
            headers["Link"] = f'<{_address(iri, page + 1, None)}>; rel="next"'
        return rdf_response((*found.quads, *found.parts, *found.references, *found.uses), media_type, headers)
    return html("thing.html", {"thing": _shown(found), "asked": iri}, headers=headers)


def _page_number(request: Request) -> int:
    text = request.query_params.get("page", "1")
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise InvalidInputError(f"Invalid page {text[:40]!r}. Valid: a number from 1.")
    return int(text)


def _address(iri: str, page: int, form: str | None) -> str:
    extra = {**({"page": page} if page > 1 else {}), **({"format": form} if form else {})}
    return href_of(iri) + ("&" + urlencode(extra) if extra else "")


# The page of one IRI.


def _shown(found: Dereferenced) -> dict[str, Any]:
    graphs = _Graphs()
    heading = _heading(found)
    languages = found.values(SCHEMA.inLanguage)
    language = languages[0].value if len(languages) == 1 else None
    texts = [
        _Text(
            _pieces(literal.value[:TEXT_CHARACTERS], found.tables),
            literal.language or language,
            _cut_note(literal.value, TEXT_CHARACTERS),
        )
        for literal in found.values(SCHEMA.text)
    ]
    facts = _facts(found, graphs)
    parts = _parts(found, graphs)
    origins = {origin.graph: origin for origin in found.origins}
    notice = f"Truncated to {QUADS:,} statements. The SPARQL below returns all." if found.cut else ""
    return {
        "iri": found.iri,
        "heading": heading,
        "kinds": [_named(found, kind) for kind in _kinds(found)],
        "texts": texts,
        "notice": notice,
        "facts": facts,
        "parts": parts,
        "sections": _sections(found),
        "page": found.page,
        "previous": _address(found.iri, found.page - 1, None) if found.page > 1 else None,
        "next": _address(found.iri, found.page + 1, None) if found.more else None,
        "graphs": [_graph(found, graph, origins) for graph in graphs.numbers],
        "formats": formats(lambda form: _address(found.iri, found.page, form)),
        "queries": [
            {"purpose": ran.purpose, "sparql": ran.sparql, "href": "/sparql?" + urlencode({"query": ran.sparql})}
            for ran in found.queries
        ],
        "generation": found.generation,
    }


def _kinds(found: Dereferenced) -> list[str]:
    return list(
        dict.fromkeys(
            q.object.value for q in found.stated if q.predicate == RDF.type and isinstance(q.object, NamedNode)
        )
    )


def _heading(found: Dereferenced) -> str:
    """Build the heading: a name, or for a part without a name its position in the whole."""
    if found.label and (found.values(DCTERMS.title) or not _HEADED.isdisjoint(_kinds(found))):
        return found.label
    texts, positions = found.values(SCHEMA.text), found.values(SCHEMA.position)
    wholes = [
        q.object.value for q in found.stated if q.predicate == DCTERMS.isPartOf and isinstance(q.object, NamedNode)
    ]
    if texts and positions and wholes:
        kind = next((found.labels[kind] for kind in _kinds(found) if kind in found.labels), "part")
        whole = found.labels.get(wholes[0]) or short_name(wholes[0])
        return f"{kind.capitalize()} {positions[0].value} of {whole}"
    return found.label or short_name(found.iri)


def _pieces(text: str, tables: Sequence[Table]) -> list[str | Table]:
    """Split `text` into plain text and tables."""
    pieces: list[str | Table] = []
    done = 0
    for table in tables:
        if table.end <= len(text):
            pieces += [text[done : table.start].rstrip("\n"), table]
            done = table.end + (text[table.end : table.end + 1] == "\n")
    return [piece for piece in (*pieces, text[done:]) if piece]


def _facts(found: Dereferenced, graphs: _Graphs) -> list[dict[str, Any]]:
    values: dict[NamedNode, dict[Term, list[int]]] = {}
    for quad in found.quads:
        number = graphs.number(quad)
        if quad.predicate not in (RDF.type, SCHEMA.text):
            values.setdefault(quad.predicate, {}).setdefault(quad.object, []).append(number)
    order = {name: position for position, name in enumerate(_FIRST)}
    named = sorted(
        values, key=lambda name: (order.get(name, len(order)), found.labels.get(name.value) or short_name(name.value))
    )
    return [
        {
            "property": _named(found, name.value),
            "terms": [_term(found, value, tuple(numbers)) for value, numbers in values[name].items()],
        }
        for name in named
    ]


def _parts(found: Dereferenced, graphs: _Graphs) -> list[_Section]:
    """Build the sections of parts, one per class."""
    by_kind: dict[str, list[Shown]] = {}
    for quad in found.parts:
        if not isinstance(quad.subject, NamedNode):
            continue
        part = quad.subject.value
        name, utterance = found.voices.get(part, ("", part))
        entry = Shown(
            found.labels.get(part, short_name(part)).removeprefix(found.positions[part] + " "),
            href_of(part),
            graphs=(graphs.number(quad),),
            title=part,
            lead=found.positions[part],
            voice=Shown(name, href_of(utterance), title=utterance) if name else None,
        )
        by_kind.setdefault(found.kinds.get(part, ""), []).append(entry)
    note = _of(found, len(found.parts), found.many)
    if len(by_kind) == 1 and not by_kind.keys() & _HEADED:
        return [_Section("Text by parts", note, *by_kind.values())]
    here = " on this page" if found.more or found.page > 1 else ""
    return [
        _Section(
            f"Parts of the kind “{found.labels.get(kind) or worded_name(kind)}”" if kind else "Other parts",
            f"{len(entries):,}{here}",
            entries,
        )
        for kind, entries in by_kind.items()
    ]


def _sections(found: Dereferenced) -> list[_Section]:
    by_property: dict[str, list[Shown]] = {}
    for quad in found.references:
        by_property.setdefault(quad.predicate.value, []).append(_subject(found, quad))
    sections = [
        _Section(
            f"Referring by “{found.labels.get(name) or worded_name(name)}”",
            _of(found, len(entries), found.counts.get(name, 0)),
            sorted(entries, key=lambda entry: entry.text.casefold()),
        )
        for name, entries in sorted(by_property.items(), key=lambda item: (item[0] == OA.hasSource.value, item[0]))
    ]
    if found.tops:
        sections.insert(0, _Section("Code", "", [_iri(found, iri, internal=True) for iri in found.tops]))
    if found.uses:
        entries = [
            replace(_subject(found, quad), note=_brief(_term(found, quad.object, ()).text)) for quad in found.uses
        ]
        sections.append(_Section("Uses", "", entries))
    if found.held:
        sections.append(_Section("Entities in this graph", "", [_iri(found, iri, internal=True) for iri in found.held]))
    return sections


def _subject(found: Dereferenced, quad: Quad) -> Shown:
    """Build the entry of a statement's subject, with a link to its graph."""
    graph = graph_of(quad)
    subject = quad.subject.value if isinstance(quad.subject, NamedNode) else str(quad.subject)
    return replace(_iri(found, subject, internal=True), graph=Shown("graph", href_of(graph), title=graph))


def _brief(text: str) -> str:
    return text if len(text) <= BRIEF_CHARACTERS else text[:BRIEF_CHARACTERS].rstrip() + "…"


def _of(found: Dereferenced, here: int, total: int) -> str:
    if total <= here and found.page == 1:
        return f"{total:,}" if total else ""
    counted = sum(found.counts.values()) >= COUNTED
    return f"{here:,} of {total:,}{' or more' if counted else ''} on this page"


def _term(found: Dereferenced, value: Term, graphs: tuple[int, ...]) -> Shown:
    if isinstance(value, NamedNode):
        return _iri(found, value.value, graphs=graphs)
    if not isinstance(value, Literal):
        return Shown(str(value), graphs=graphs)
    if value.language:
        note = value.language
    else:
        note = "" if value.datatype in (XSD.string, XSD.integer, XSD.date) else curie(value.datatype.value)
    cut = _cut_note(value.value, VALUE_CHARACTERS)
    return Shown(
        value.value[:VALUE_CHARACTERS],
        note=", ".join(part for part in (note, cut) if part),
        language=value.language,
        graphs=graphs,
        code=_HASH.fullmatch(value.value) is not None,
    )


def _named(found: Dereferenced, term: str) -> Shown:
    """Build a link to the page of a class or property."""
    return Shown(found.labels.get(term) or worded_name(term), href_of(term), title=term)


def _iri(found: Dereferenced, iri: str, *, graphs: tuple[int, ...] = (), internal: bool = False) -> Shown:
    """Build a link to the page of `iri` if this server has one, else to the web; other schemes are not linked."""
    label = _brief(found.labels.get(iri, ""))
    if internal or iri in found.known or iri.startswith((BASE, "cpr://")):
        return Shown(label or short_name(iri), href_of(iri), graphs=graphs, title=iri)
    if iri.startswith(("http://", "https://")):
        return Shown(label or iri, iri, outside=True, graphs=graphs)
    return Shown(iri, graphs=graphs)


def _graph(found: Dereferenced, graph: str, origins: Mapping[str, Provenance]) -> dict[str, Any]:
    """Describe a graph: its file, or the graphs that it was computed from with the file behind them."""
    node, origin = _graph_node(graph), origins.get(graph)
    if origin is None:
        details = "the ontology that ships with Quadcite" if graph.startswith(BASE + "ns") else ""
        return {"node": node, "inputs": [], "details": details, "sha256": None}
    inputs, behind = found.inputs.get(graph, ()), graph
    while origin.source is None and (steps := found.inputs.get(behind, ())):
        behind = next((each for each in steps if each in origins), "")
        origin = origins.get(behind, origin)
    parts = [
        f"read from {origin.source}" if origin.source else "",
        f"row {origin.row:,}" if origin.row is not None else "",
        f"pages {origin.pages}" if origin.pages else "",
        f"revision {origin.revision}" if origin.revision else "",
    ]
    details = ", ".join(part for part in parts if part)
    return {
        "node": node,
        "inputs": [_graph_node(each) for each in inputs[:INPUTS_SHOWN]],
        "details": details,
        "sha256": origin.sha256,
    }


def _graph_node(graph: str) -> Shown:
    return Shown(graph.removeprefix(BASE) or "the default graph", href_of(graph) if graph else None)


def _cut_note(text: str, characters: int) -> str:
    return f"first {characters:,} of {len(text):,} characters" if len(text) > characters else ""


# As HTML.


def _explained(kg: KnowledgeGraph, page: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Wrap `page` so that its errors are pages for browsers, with similar IRIs for an unknown one."""

    def answer(request: Request) -> Response:
        try:
            return page(request)
        except (HttpError, QuadciteError) as error:
            near = _find_similar(kg, request) if isinstance(error, NotFoundError) else []
            if negotiate(request.headers.getlist("accept"), (PROBLEM, "text/plain", HTML)) == HTML:
                return _problem_page(request, error, near)
            if near:
                listed = ", ".join(f"<{iri}>" for iri in near)
                return problem(request, NotFoundError(f"{error} Did you mean {listed}?"))
            raise

    return answer


def _find_similar(kg: KnowledgeGraph, request: Request) -> list[str]:
    path: bytes = request.scope.get("raw_path") or b""
    iri = request.query_params.get("iri") or BASE + path.decode("ascii", "replace").lstrip("/")
    return suggestions(kg, parse_iri(iri.strip()).value)


def _problem_page(request: Request, error: HttpError | QuadciteError, near: Iterable[str]) -> Response:
    plain = problem(request, error)
    context = {
        "title": HTTPStatus(plain.status_code).phrase,
        "message": str(error),
        "status": plain.status_code,
        "code": error.code,
        "near": [{"href": href_of(iri), "text": iri} for iri in near],
        "asked": request.query_params.get("iri"),
    }
    kept = {name: plain.headers[name] for name in ("allow", "retry-after", "www-authenticate") if name in plain.headers}
    return html("problem.html", context, status=plain.status_code, headers={**kept, "Cache-Control": "no-store"})
