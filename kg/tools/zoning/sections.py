"""Tools for sections of a code: the text and tables of a section, the hierarchy around it, and its citations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded, bounded_page, iri_of, page_of
from kg.retrieval.results import Layout, Lean, Result
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.text import name_or_quote, natural_key, quoted
from kg.tools.zoning.name_lookup import (
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
from kg.tools.zoning.rules import Node, Rule, Span, load_asserted, load_origins, load_rules, load_targets
from kg.vocabulary import DCTERMS, ELI, KG, PROV_GRAPH, RDF, SCHEMA, SOURCED, iri_prefix
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree

_SECTIONS: Final = iri_prefix("section")
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
    result = load_section(reader, tree, iri, labels, text_from)
    children = tree.children.get(iri, [])
    if include_children:
        shown = children[offset : offset + limit]
        result.children = load_section_lines(reader, tree, [(None, each) for each in shown])
    if children and not include_children and not result.text_length:
        grouped = f"{len(children)} sections" if len(children) > 1 else "one section"
        result.notes.append(f"It has no text and contains {grouped}. include_children=true lists them.")
    following = page_of(children, offset, limit) if include_children else None
    return reader.finish(result, total=len(children) if include_children else 1, next_offset=following)


def load_section(
    reader: Reader, tree: CodeTree, iri: str, labels: str | None = None, text_from: int = 0
) -> SectionResult:
    """Load a section of a code by its IRI, or its subsection with these `labels`, without children.

    Raises NotFoundError for unknown labels, and InvalidInputError for a text that is shorter than `text_from`.
    """
    nodes: dict[str, Node] = defaultdict(Node)
    for row in reader.rows("the section", bind(SECTION, section=NamedNode(iri))):
        nodes[iri_of(row["of"])].said.setdefault(iri_of(row["property"]), []).append(term_text(row["value"]))
    known, own = tree.sections[iri], nodes[iri]
    text = own.one(SCHEMA.text) or ""
    if text_from > len(text):
        raise InvalidInputError(f"text_from is {text_from:,}. The text of {known.name} has {len(text):,} characters.")
    inside = sorted(nodes.values(), key=lambda node: (node.place[0], -node.place[1]))
    parts = [
        Part(label=label, start=node.place[0], end=node.place[1], title=node.one(DCTERMS.title))
        for node in inside
        if (label := node.one(KG.label)) is not None
    ]
    part = None if labels is None else next((each for each in parts if each.label == labels), None)
    if labels is not None and part is None:
        shown = ", ".join(name_or_quote(each.label) for each in parts[:SHOWN_PARTS]) or "none"
        raise NotFoundError(
            f"section_id: Unknown subsection {name_or_quote(labels)} of {quoted(known.name)}. Available: {shown}."
        )
    start, end = (text_from, len(text)) if part is None else (max(part.start, text_from), part.end)
    tables = [
        SectionTable(
            start=node.place[0],
            end=node.place[1],
            title=node.one(DCTERMS.title),
            header_rows=int(node.one(KG.headerRows) or 0),
            cells=json.loads(cells),
        )
        for node in inside
        if (cells := node.one(KG.cells)) is not None and start <= node.place[0] < max(end, start + 1)
    ]
    remarks = [
        Note(kind=node.one(KG.noteKind) or "", text=said)
        for _, node in sorted(nodes.items(), key=lambda each: (len(each[0]), each[0]))
        if (said := node.one(KG.noteText)) is not None
    ]
    origin = load_origins(reader, [known.graph])[known.graph]
    summary, status = tree.summaries.get(iri), own.one(KG.inForceStatus)
    notes = [] if status is None else [f"Status of this section in the source: {name_or_quote(status)}."]
    if tree.states[iri] == "stale":
        notes.append(f"The summary is stale: {', '.join(tree.why_stale(iri))}.")
    return SectionResult(
        **_describe(tree, iri),
        kind=own.code(ELI.type_subdivision),
        status=status,
        fetched_at=origin.fetched_at,
        raw_content=text[start:end],
        text_from=start,
        text_length=len(text),
        summary_built_at=None if summary is None else load_built_at(reader, summary.graph),
        summary_state=tree.states[iri],
        subsection=part,
        subsections=parts or None,
        tables=tables or None,
        history=own.all(KG.historyNote) or None,
        annotations=remarks or None,
        evidence=SectionEvidence(
            id=iri,
            graph=known.graph,
            source=origin.source,
            sha256=origin.sha256,
            source_lines=own.one(KG.sourceLines),
            source_pages=own.one(SCHEMA.pagination),
            text_sha256=known.text_sha256,
            sent_by=origin.sent_by,
        ),
        notes=notes,
    )


def _describe(tree: CodeTree, iri: str) -> dict[str, Any]:
    """Describe a section by the tree of its code."""
    known, summary = tree.sections[iri], tree.summaries.get(iri)
    return {
        "section_id": get_section_key(iri),
        "iri": iri,
        "title": known.shown_title,
        "level": known.level,
        "order": known.position,
        "parent_id": None if known.parent is None else get_section_key(known.parent),
        "summary": None if summary is None else summary.text,
        "summary_level": None if summary is None else summary.level,
    }


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
        walked = [*enumerate([] if start is None else tree.above(start)[:depth], 1)]
        if start is None:
            notes.append("direction 'up' needs a section_id.")
    else:
        depths = {start or "": 0}
        for iri in tree.below(start):
            depths.setdefault(iri, depths.get(tree.sections[iri].parent or "", 0) + 1)
        walked = [(steps, iri) for iri, steps in depths.items() if 0 < steps <= depth]
        if start is None and (hidden := [iri for iri in tree.sections if tree.states[iri] == "circular"]):
            named = shorten([get_section_key(iri) for iri in hidden])
            notes.append(f"{len(hidden)} sections are not listed, since their parents form a cycle: {named}.")
    lines = load_section_lines(reader, tree, walked[offset : offset + limit])
    if not walked and start is not None:
        notes.append(f"The section {'is at the top' if direction == 'up' else 'has no parts'}.")
    return reader.finish(
        HierarchyResult(municipality=place.name, direction=direction, sections=lines, notes=notes),
        total=len(walked),
        next_offset=page_of(walked, offset, limit),
    )


def load_section_lines(reader: Reader, tree: CodeTree, walked: Sequence[tuple[int | None, str]]) -> list[SectionLine]:
    """Load the lines of sections, each given with its depth."""
    statuses = load_statuses(reader, [iri for _, iri in walked])
    return [
        SectionLine(
            **_describe(tree, iri),
            status=statuses.get(iri),
            depth=steps,
            children=len(tree.children.get(iri, ())) or None,
            summary_stale=tree.states[iri] == "stale" or None,
        )
        for steps, iri in walked
    ]


def load_built_at(reader: Reader, graph: str) -> str | None:
    """Load the time at which the summary in a graph was written."""
    query = bind(BUILT, graph=NamedNode(graph), prov=PROV_GRAPH)
    return next((term_text(row["time"]) for row in reader.rows("time of the summary", query)), None)


TABLES: Final = """
SELECT DISTINCT ?section ?table ?start ?end ?cells ?rows WHERE {
  VALUES ?section { $section }
  ?table dcterms:isPartOf ?section ; kg:cells ?cells ; kg:start ?start ; kg:end ?end
  OPTIONAL { ?table kg:headerRows ?rows }
} ORDER BY ?start DESC(?end)"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    words: list[tuple[str, bool]]
    """Its text in pieces, each with whether it is superscript (a footnote mark)."""
    header: bool
    colspan: int
    rowspan: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the text of a section, at characters `start` to `end`."""

    start: int
    end: int
    rows: list[list[Cell]]


def load_section_tables(reader: Reader, section: NamedNode) -> list[Table]:
    """Load the tables in the text of `section`, in their order. Nested tables are skipped."""
    tables: list[Table] = []
    for row in reader.rows("tables of the section", bind(TABLES, section=section), declared=("section", "table")):
        start, end = int(term_text(row["start"])), int(term_text(row["end"]))
        if tables and start < tables[-1].end:
            continue
        headed = int(term_text(row["rows"])) if "rows" in row else 0
        cells = json.loads(term_text(row["cells"]))
        tables.append(Table(start, end, [[_to_cell(of, n < headed) for of in line] for n, line in enumerate(cells)]))
    return tables


def _to_cell(cell: str | dict[str, Any], headed: bool) -> Cell:
    said: dict[str, Any] = {"text": cell} if isinstance(cell, str) else cell
    text, words, done = said.get("text", ""), [], 0
    for start, end in [*said.get("raised", ()), (len(text), len(text))]:
        words += [(text[done:start], False), (text[start:end], True)]
        done = end
    kept = [piece for piece in words if piece[0]]
    return Cell(kept, said.get("header", headed), said.get("colspan", 1), said.get("rowspan", 1))


CLAIMS: Final = """
SELECT ?claim ?graph ?citing ?cited ?type (MIN(?at) AS ?start) WHERE {
  { GRAPH ?graph { ?claim rdf:subject $section . ?claim kg:rawCitation ?words } }
  UNION { GRAPH ?graph { ?claim rdf:object $section . ?claim kg:rawCitation ?words } }
  ?claim rdf:subject ?citing
  OPTIONAL { ?claim rdf:object ?cited }
  OPTIONAL { ?claim kg:relationshipType ?type }
  OPTIONAL { ?claim kg:evidence ?span . ?span kg:start ?at }
} GROUP BY ?claim ?graph ?citing ?cited ?type"""

MARKED: Final = """
SELECT ?citing ?cited ?graph WHERE {
  { BIND($section AS ?citing) GRAPH ?graph { $section eli:cites ?cited } }
  UNION { BIND($section AS ?cited) GRAPH ?graph { ?citing eli:cites $section } }
  FILTER(STRSTARTS(STR(?graph), $asserted))
}"""

TYPES: Final = (
    "defines", "constrains", "requires", "excepts", "supersedes", "authorizes", "delegates", "supplements",
    "incorporates", "references", "unknown",
)  # fmt: skip
"""Types of citations, in the wording of the data."""

Direction = Literal["outgoing", "incoming", "both"]


class Related(Lean):
    """A citation. `reads` is the relation of the citing side to the cited side."""

    citing: str
    citing_iri: str
    citing_title: str | None = None
    citing_status: str | None = None
    cited: str | None = Field(None, description="Section or law; absent: unknown")
    cited_iri: str | None = None
    cited_title: str | None = None
    cited_status: str | None = None
    law_type: str | None = None
    relationship_type: str
    reads: str = Field(description="E.g. subjectTo: citing is subject to cited")
    raw_citation: str | None = None
    context: str | None = None
    asserted: bool = Field(description="Whether it is an edge of the graph")
    confidence: float | None = None
    method: str
    spans: list[Span] | None = None
    id: str | None = None
    graph: str
    source: str | None = None


class RelatedResult(Result):
    """Citations, outgoing ones first, in the order of the text."""

    section_id: str
    iri: str
    title: str
    status: str | None = None
    related: list[Related]


class _Citation(NamedTuple):
    """A citation before its claim is loaded. Without a claim it is a link in the markup of the source."""

    citing: str
    cited: str | None
    type: str
    start: int
    graph: str
    claim: str | None


def kg_find_related(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    section_id: SectionId,
    relationship_type: Annotated[str | None, Field(max_length=40, description="E.g. constrains")] = None,
    direction: Annotated[Direction, Field()] = "both",
    limit: PageSize = 50,
    offset: Skipped = 0,
) -> RelatedResult:
    """Find the sections and laws that a section cites or that cite it, with the type of each citation.

    Use before relying on a section. Returns related: citing, cited (absent: unknown), relationship_type, reads,
    raw_citation, context, spans, confidence. The type is the role of the cited one: constrains means it constrains.
    Example: kg_find_related(municipality="Quarry Bend", state="UT", section_id="17.12.040", direction="outgoing").
    Next: `kg_query_section` with cited, `citations` with a law.
    """
    bounded_page(limit, offset)
    wanted = None if relationship_type is None else _parse_type(relationship_type)
    reader = Reader(kg)
    place = find_place(reader, municipality, state)
    tree = code_tree.cached_tree(kg, place.iri)
    iri, _ = find_subsection(tree, section_id)
    reader.start_selection()
    found = [
        each
        for each in _load_citations(reader, iri)
        if wanted in (None, each.type)
        and (direction == "both" or iri == (each.citing if direction == "outgoing" else each.cited))
    ]
    found.sort(
        key=lambda each: (each.citing != iri, natural_key(get_section_key(each.citing)), each.start, each.claim or "")
    )
    page = found[offset : offset + limit]
    claims = load_rules(reader, {each.claim: each.graph for each in page if each.claim is not None})
    origins = load_origins(reader, {each.graph for each in page})
    statuses = load_statuses(reader, [iri, *(end for each in page for end in (each.citing, each.cited))])
    cited = {each.cited for each in page if each.cited and not each.cited.startswith(_SECTIONS)}
    laws = load_targets(reader, cited)

    def get_name(iri: str) -> str:
        own = get_section_key(iri) if iri.startswith(_SECTIONS) else None
        return own or (laws[iri][0] if iri in laws else None) or code_of(iri)

    def get_heading(iri: str) -> str | None:
        return tree.sections[iri].shown_title if iri in tree.sections else None

    promoted = load_asserted(reader, claims.values())
    result = RelatedResult(
        section_id=get_section_key(iri),
        iri=iri,
        title=tree.sections[iri].shown_title,
        status=statuses.get(iri),
        related=[],
    )
    for each in page:
        # The claim's own graph decides: other graphs may contradict it. A link in the markup has no claim.
        claim = claims.get(each.claim or "") or Rule("", each.graph)
        subject, predicate, _ = claim.edge
        citing, target = (each.citing, each.cited) if each.claim is None else (subject, claim.one(RDF.object))
        result.related.append(
            Related(
                citing=get_name(citing),
                citing_iri=citing,
                citing_title=get_heading(citing),
                citing_status=statuses.get(citing),
                cited=None if target is None else get_name(target),
                cited_iri=target,
                cited_title=get_heading(target or ""),
                cited_status=statuses.get(target or ""),
                law_type=laws[target][2] if target in laws else None,
                relationship_type=claim.code(KG.relationshipType) or "unknown",
                reads=predicate.replace("#", "/").rpartition("/")[2] or "cites",
                raw_citation=claim.one(KG.rawCitation),
                context=claim.one(KG.contextSentence),
                asserted=each.claim is None or claim.edge in promoted,
                confidence=claim.confidence,
                method=claim.one(KG.method) or ("markup of the source" if each.claim is None else ""),
                spans=claim.spans() or None,
                id=each.claim,
                graph=claim.graph,
                source=origins[each.graph].source,
            )
        )
    if not found:
        parts = len(tree.children.get(iri, ()))
        result.notes.append(
            "No such citation is recorded."
            + (f" Its {parts} parts may have citations. kg_traverse_hierarchy lists them." if parts else "")
        )
    return reader.finish(result, total=len(found), next_offset=page_of(found, offset, limit))


def _parse_type(text: str) -> str:
    wanted = text.strip().casefold()
    found = [name for name in TYPES if wanted in (name, name.rstrip("s"))]
    if not found:
        raise NotFoundError(f"relationship_type: Unknown type {quoted(text)}. Available: {', '.join(TYPES)}.")
    return found[0]


def _load_citations(reader: Reader, iri: str) -> list[_Citation]:
    """Load the claims about a section, then the citations in the markup of the source that have no claim."""
    found: dict[str, _Citation] = {}
    # Cached for the following pages: a section may have thousands.
    for row in reader.kept("citations", bind(CLAIMS, section=NamedNode(iri)), list):
        said = {name: term_text(term) for name, term in row.items()}
        kind, start = code_of(said.get("type", "unknown")), int(said.get("start", 0))
        found[said["claim"]] = _Citation(said["citing"], said.get("cited"), kind, start, said["graph"], said["claim"])
    ends = {(each.citing, each.cited) for each in found.values()}
    rows = reader.rows("citations in the markup", bind(MARKED, section=NamedNode(iri), asserted=Text(SOURCED)))
    marked = sorted({(iri_of(row["citing"]), iri_of(row["cited"]), iri_of(row["graph"])) for row in rows})
    return [
        *found.values(),
        *(
            _Citation(citing, cited, "unknown", 0, graph, None)
            for citing, cited, graph in marked
            if (citing, cited) not in ends
        ),
    ]
