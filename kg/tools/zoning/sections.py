"""Tools for sections of a code: text and tables of one section, and the hierarchy around it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded, bounded_page, iri_of, page_of
from kg.retrieval.results import Layout, Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.tools.zoning.municipalities import (
    MunicipalityName,
    PageSize,
    SectionId,
    Skipped,
    StateName,
    find_place,
    find_section,
    find_subsection,
    get_section_key,
    load_statuses,
)
from kg.tools.zoning.rule_rows import load_origins
from kg.vocabulary import DCTERMS, ELI, KG, PROV_GRAPH, SCHEMA
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree

SHOWN_PARTS: Final = 20
"""Available subsections that an error message lists."""

SECTION: Final = """
SELECT ?of ?property ?value WHERE {
  { $section ?property ?value BIND($section AS ?of) }
  UNION { ?of dcterms:isPartOf $section . ?of a ?kind ; ?property ?value
          FILTER(?kind IN (kg:Subsection, kg:CodeTable, kg:CodeNote)) }
}"""

BUILT: Final = """
SELECT ?time WHERE { GRAPH $prov { $graph prov:generatedAtTime ?time } }"""

Characters = Annotated[int, Field(ge=0, description="Character offset to start at")]


class SectionLine(Lean):
    """A section in a list."""

    section_id: str
    iri: str
    title: str
    level: int
    order: int
    status: str | None = None
    depth: int | None = None
    parent_id: str | None = None
    children: int | None = None
    summary: str | None = None
    summary_level: int | None = None
    summary_stale: bool | None = None


class Part(Lean):
    """A labelled subsection, such as (a)(1), at characters start to end."""

    label: str
    start: int
    end: int
    title: str | None = None


class SectionTable(Lean):
    """A table at characters start to end. A cell is its text, or an object with text and spans."""

    start: int
    end: int
    title: str | None = None
    header_rows: int
    cells: list[list[Any]]


class Note(Lean):
    """An editorial note of the source."""

    kind: str
    text: str


class SectionEvidence(Lean):
    """The source of a section."""

    id: str
    graph: str
    source: str | None = None
    sha256: str | None = None
    source_lines: str | None = None
    source_pages: str | None = Field(None, description="First and last page in a PDF, from 1")
    text_sha256: str | None = None
    sent_by: str | None = None


class SectionResult(Result):
    """A section of a code with its full text."""

    layout: ClassVar[Layout] = Layout(paged=("children",), text="raw_content", reads=True)

    section_id: str
    iri: str
    title: str
    level: int
    kind: str | None = None
    status: str | None = Field(None, description="E.g. repealed")
    parent_id: str | None = None
    order: int
    fetched_at: str | None = None
    raw_content: str
    text_from: int = 0
    text_length: int = 0
    summary: str | None = None
    summary_level: int | None = None
    summary_built_at: str | None = None
    summary_state: str | None = None
    subsection: Part | None = Field(None, description="The one in section_id")
    subsections: list[Part] | None = None
    tables: list[SectionTable] | None = None
    history: list[str] | None = None
    annotations: list[Note] | None = None
    children: list[SectionLine] | None = None
    evidence: SectionEvidence


class HierarchyResult(Result):
    """Sections in document order, each with its depth from the start."""

    municipality: str
    direction: str
    sections: list[SectionLine]


def kg_query_section(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    section_id: SectionId,
    include_children: Annotated[bool, Field()] = False,
    text_from: Characters = 0,
    limit: PageSize = 50,
    offset: Skipped = 0,
) -> SectionResult:
    """Get the full text of a section of a code, or of a level above it.

    Use to quote the law. Returns raw_content, title, level, parent_id, summary, summary_level, summary_built_at,
    subsections, tables, history, fetched_at, evidence. limit and offset page children.
    Example: kg_query_section(municipality="Quarry Bend", state="UT", section_id="17.12.010(b)(2)").
    Next: `kg_find_related` for what it cites.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    place = find_place(reader, municipality, state)
    tree = code_tree.cached_tree(kg, place.iri)
    iri, labels = find_subsection(tree, section_id)
    reader.start_selection()
    said = _by_subject(reader.rows("the section", bind(SECTION, section=NamedNode(iri))))
    text = _one(said.get(iri, {}), SCHEMA.text) or ""
    if text_from > len(text):
        name = tree.sections[iri].name
        raise InvalidInputError(f"text_from is {text_from:,}. The text of {name} has {len(text):,} characters.")
    result = _describe_section(reader, tree, iri, said, labels, text_from)
    children = tree.children.get(iri, [])
    if include_children:
        shown = children[offset : offset + limit]
        result.children = load_section_lines(reader, tree, [(None, each) for each in shown])
    result.notes = _note_status(tree, iri, result.status)
    if children and not include_children and not text:
        grouped = f"{len(children)} sections" if len(children) > 1 else "one section"
        result.notes.append(f"It has no text and contains {grouped}. include_children=true lists them.")
    following = page_of(children, offset, limit) if include_children else None
    return reader.finish(result, total=len(children) if include_children else 1, next_offset=following)


def _describe_section(
    reader: Reader, tree: CodeTree, iri: str, said: Mapping[str, _Properties], labels: str | None, text_from: int
) -> SectionResult:
    """Build the result for a section, or for its subsection with these `labels`, without children and notes."""
    known, own = tree.sections[iri], said.get(iri, {})
    text = _one(own, SCHEMA.text) or ""
    parts = _parts(said)
    named = None if labels is None else _find_part(parts, labels, known.name)
    start, end = (text_from, len(text)) if named is None else (max(named.start, text_from), named.end)
    origin = load_origins(reader, [known.graph]).of(known.graph)
    summary = tree.summaries.get(iri)
    return SectionResult(
        section_id=get_section_key(iri),
        iri=iri,
        title=known.shown_title,
        level=known.level,
        kind=_code(own, ELI.type_subdivision),
        status=_one(own, KG.inForceStatus),
        parent_id=None if known.parent is None else get_section_key(known.parent),
        order=known.position,
        fetched_at=origin.fetched_at,
        raw_content=text[start:end],
        text_from=start,
        text_length=len(text),
        summary=None if summary is None else summary.text,
        summary_level=None if summary is None else summary.level,
        summary_built_at=None if summary is None else load_built_at(reader, summary.graph),
        summary_state=tree.states[iri],
        subsection=named,
        subsections=parts or None,
        tables=_tables(said, start, end) or None,
        history=sorted(term_text(term) for term in own.get(KG.historyNote.value, ())) or None,
        annotations=_annotations(said) or None,
        evidence=SectionEvidence(
            id=iri,
            graph=known.graph,
            source=origin.source,
            sha256=origin.sha256,
            source_lines=_one(own, KG.sourceLines),
            source_pages=_one(own, SCHEMA.pagination),
            text_sha256=known.text_sha256,
            sent_by=origin.sent_by,
        ),
    )


def load_section(reader: Reader, tree: CodeTree, iri: str) -> SectionResult:
    """Load a whole section of a code, by its IRI, without children."""
    said = _by_subject(reader.rows("the section", bind(SECTION, section=NamedNode(iri))))
    result = _describe_section(reader, tree, iri, said, None, 0)
    result.notes = _note_status(tree, iri, result.status)
    return result


def kg_traverse_hierarchy(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    section_id: SectionId | None = None,
    direction: Annotated[Literal["down", "up"], Field()] = "down",
    depth: Annotated[int, Field(ge=1, le=20)] = 1,
    limit: PageSize = 50,
    offset: Skipped = 0,
) -> HierarchyResult:
    """List the sections below or above a section of a code, or from the top of the code.

    Use for the context of a section. Returns sections in document order: section_id, title, level, order, depth,
    parent_id, children (number), summary, summary_level.
    Example: kg_traverse_hierarchy(municipality="Quarry Bend", state="UT", section_id="17.12", depth=2).
    Next: `kg_query_section`.
    """
    bounded_page(limit, offset)
    bounded("depth", depth, 1, 20)
    reader = Reader(kg)
    place = find_place(reader, municipality, state)
    tree = code_tree.cached_tree(kg, place.iri)
    start = None if section_id is None else find_section(tree, section_id)
    notes: list[str] = []
    if direction == "up":
        above = [] if start is None else tree.above(start)[:depth]
        walked = list(enumerate(above, 1))
        if start is None:
            notes.append("direction 'up' needs a section_id.")
    else:
        walked = _walk_down(tree, start, depth)
        if start is None and (hidden := [iri for iri in tree.sections if tree.states[iri] == "circular"]):
            named = ", ".join(name_or_quote(get_section_key(iri)) for iri in hidden[:5])
            notes.append(f"{len(hidden)} sections are not listed, since their parents form a cycle: {named}.")
    lines = load_section_lines(reader, tree, walked[offset : offset + limit])
    if not walked and start is not None:
        notes.append(f"{tree.sections[start].name} {'is at the top' if direction == 'up' else 'has no parts'}.")
    return reader.finish(
        HierarchyResult(municipality=place.name, direction=direction, sections=lines, notes=notes),
        total=len(walked),
        next_offset=page_of(walked, offset, limit),
    )


def load_section_lines(reader: Reader, tree: CodeTree, walked: Sequence[tuple[int | None, str]]) -> list[SectionLine]:
    """Load the lines of sections, each given with its depth."""
    known = load_statuses(reader, [iri for _, iri in walked])
    return [_line(tree, iri, steps, known.get(iri)) for steps, iri in walked]


def _line(tree: CodeTree, iri: str, depth: int | None, status: str | None) -> SectionLine:
    known, summary = tree.sections[iri], tree.summaries.get(iri)
    return SectionLine(
        section_id=get_section_key(iri),
        iri=iri,
        title=known.shown_title,
        level=known.level,
        order=known.position,
        status=status,
        depth=depth,
        parent_id=None if known.parent is None else get_section_key(known.parent),
        children=len(tree.children.get(iri, ())) or None,
        summary=None if summary is None else summary.text,
        summary_level=None if summary is None else summary.level,
        summary_stale=True if tree.states[iri] == "stale" else None,
    )


def _walk_down(tree: CodeTree, start: str | None, depth: int) -> list[tuple[int, str]]:
    """List the sections below `start`, or all from the top, with their depth, in document order."""
    first = tree.roots if start is None else tree.children.get(start, [])
    stack = [(1, iri) for iri in reversed(first)]
    found: list[tuple[int, str]] = []
    seen = {start}
    while stack:
        steps, iri = stack.pop()
        if iri in seen:  # circular parents
            continue
        seen.add(iri)
        found.append((steps, iri))
        if steps < depth:
            stack += [(steps + 1, each) for each in reversed(tree.children.get(iri, []))]
    return found


_Properties = Mapping[str, Sequence[Term]]


def _by_subject(rows: Sequence[Mapping[str, Term]]) -> dict[str, _Properties]:
    found: dict[str, dict[str, list[Term]]] = {}
    for row in rows:
        about = found.setdefault(iri_of(row["of"]), {})
        about.setdefault(iri_of(row["property"]), []).append(row["value"])
    return dict(found)


def _one(said: _Properties, name: NamedNode) -> str | None:
    return min((term_text(term) for term in said.get(name.value, ())), default=None)


def _code(said: _Properties, name: NamedNode) -> str | None:
    value = _one(said, name)
    return None if value is None else code_of(value)


def _span(said: _Properties) -> tuple[int, int]:
    return int(_one(said, KG.start) or 0), int(_one(said, KG.end) or 0)


def _parts(said: Mapping[str, _Properties]) -> list[Part]:
    found = []
    for about in said.values():
        if (label := _one(about, KG.label)) is not None:
            start, end = _span(about)
            found.append(Part(label=label, start=start, end=end, title=_one(about, DCTERMS.title)))
    return sorted(found, key=lambda part: (part.start, -part.end))


def _find_part(parts: Sequence[Part], labels: str, name: str) -> Part:
    """Find the subsection of the section `name` with these labels. Raises NotFoundError with the available ones."""
    found = next((part for part in parts if part.label == labels), None)
    if found is None:
        shown = ", ".join(part.label for part in parts[:SHOWN_PARTS]) or "none"
        raise NotFoundError(
            f"section_id: Unknown subsection {name_or_quote(labels)} of {quoted(name)}. Available: {shown}."
        )
    return found


def _note_status(tree: CodeTree, iri: str, status: str | None) -> list[str]:
    """Note the status of a section (repealed, ...) and why its summary is stale."""
    notes = [] if status is None else [f"Status of this section in the source: {name_or_quote(status)}."]
    if tree.states[iri] == "stale":
        notes.append(f"The summary is stale: {', '.join(tree.why_stale(iri))}.")
    return notes


def _tables(said: Mapping[str, _Properties], start: int, end: int) -> list[SectionTable]:
    """List the tables that start in this range of characters."""
    found = []
    for about in said.values():
        if (cells := _one(about, KG.cells)) is not None and start <= _span(about)[0] < max(end, start + 1):
            first, last = _span(about)
            rows = int(_one(about, KG.headerRows) or 0)
            title = _one(about, DCTERMS.title)
            found.append(SectionTable(start=first, end=last, title=title, header_rows=rows, cells=json.loads(cells)))
    return sorted(found, key=lambda table: (table.start, -table.end))


def _annotations(said: Mapping[str, _Properties]) -> list[Note]:
    found = [
        (iri, Note(kind=_one(about, KG.noteKind) or "", text=text))
        for iri, about in said.items()
        if (text := _one(about, KG.noteText)) is not None
    ]
    return [note for _, note in sorted(found, key=lambda item: (len(item[0]), item[0]))]


def load_built_at(reader: Reader, graph: str) -> str | None:
    """Load the time at which the summary in a graph was written."""
    query = bind(BUILT, graph=NamedNode(graph), prov=PROV_GRAPH)
    return next((term_text(row["time"]) for row in reader.rows("time of the summary", query)), None)
