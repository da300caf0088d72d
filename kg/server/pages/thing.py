"""A page for every IRI, as HTML or RDF (``/resolve?iri=``, ``/id/...``, ``/graph/...``, ``/vocab/...``, ``/ns/...``).

IRIs below our base are served at their own paths, so that dereferencing needs only a redirect from the base to a
server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from pyoxigraph import Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import Provenance
from kg.server.html import formats, href_of, page
from kg.server.negotiation import GRAPH_TYPES
from kg.server.pages.reading import DATA, Readers, page_href
from kg.server.pages.reading import PARAMETERS as READING
from kg.server.pages.site import Site, get_number, list_queries, suggestion_page
from kg.server.resources import HTML, choose_media_type, rdf_response
from kg.store.protocol import Term
from kg.tools.entities.dereference import (
    COUNTED,
    QUADS,
    Dereferenced,
    dereference,
    graph_of,
    parse_iri,
    short_name,
    worded_name,
)
from kg.tools.zoning.sections import Table
from kg.vocabulary import BASE, DCTERMS, KG, OA, RDF, RDFS, SCHEMA, SKOS, XSD, curie, prefixed_name

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


def routes(site: Site, readers: Readers) -> list[Route]:
    """Build the routes of ``/resolve`` and of the paths below our base."""

    def resolve(request: Request) -> Response:
        given = request.query_params.getlist("iri")
        if len(given) != 1 or not given[0].strip():
            raise InvalidInputError("Missing IRI. Give one, percent-encoded: /resolve?iri=cpr://doc/...")
        return _answer(site, readers, request, given[0].strip())

    def own(request: Request) -> Response:
        path: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
        return _answer(site, readers, request, BASE + path.decode("ascii", "replace").lstrip("/"))

    own_paths = ("/id/{path:path}", "/graph/{path:path}", "/vocab/{path:path}", "/ns/{path:path}")
    parameters = ("view", "format", *READING)
    return [
        site.route("/resolve", resolve, ("iri", *parameters)),
        *(site.route(path, own, parameters) for path in own_paths),
    ]


def _answer(site: Site, readers: Readers, request: Request, iri: str) -> Response:
    """Answer with the page of `iri` for reading, else with that of its properties, else with similar IRIs."""
    readable = False
    try:
        if choose_media_type(request, (*GRAPH_TYPES, HTML)) == HTML:
            target = readers.find(site, iri)
            readable = target is not None and target.span is None
            if target is not None and readable and request.query_params.get("view") != DATA:
                return readers.show(site, request, target)
        return _thing(site.kg, request, iri, readable=readable)
    except NotFoundError as error:
        return suggestion_page(site, request, error, parse_iri(iri).value)


def _thing(kg: KnowledgeGraph, request: Request, iri: str, *, readable: bool) -> Response:
    """Answer with the properties of `iri`, and a link to its page for reading if it has one."""
    media_type = choose_media_type(request, (*GRAPH_TYPES, HTML))
    number = get_number(request, "page")
    found = dereference(kg, iri, number)
    headers = {
        "Quadcite-Snapshot": str(found.generation),
        "Quadcite-Truncated": "true" if found.cut or found.more else "false",
        "Content-Location": _address(iri, number, None),
    }
    if media_type != HTML:
        if found.more:
            headers["Link"] = f'<{_address(iri, number + 1, None)}>; rel="next"'
        return rdf_response((*found.quads, *found.parts, *found.references, *found.uses), media_type, headers)
    return page(
        request,
        "thing.html",
        {"thing": _shown(found), "asked": iri, "reading": href_of(iri) if readable else None},
        headers=headers,
    )


def _address(iri: str, number: int, form: str | None) -> str:
    extra = {**({"page": number} if number > 1 else {}), **({"format": form} if form else {})}
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
        "previous": page_href(found.iri, page=found.page - 1, view=DATA) if found.page > 1 else None,
        "next": page_href(found.iri, page=found.page + 1, view=DATA) if found.more else None,
        "graphs": [_graph(found, graph, origins) for graph in graphs.numbers],
        "formats": formats(lambda form: _address(found.iri, found.page, form)),
        "queries": list_queries(found.queries),
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
        return Shown(label or prefixed_name(iri) or iri, iri, outside=True, graphs=graphs, title=iri)
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
