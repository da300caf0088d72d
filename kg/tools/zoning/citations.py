"""Tool for the citations of a section, outgoing and incoming: claims with the cited words and their type."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of
from kg.retrieval.results import Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.text import natural_key, quoted
from kg.tools.zoning.name_lookup import (
    MunicipalityName,
    PageSize,
    SectionId,
    Skipped,
    StateName,
    find_place,
    find_subsection,
    get_section_key,
    load_statuses,
)
from kg.tools.zoning.rules import Rule, Span, load_asserted, load_origins, load_rules, load_targets
from kg.vocabulary import KG, RDF, SOURCED, iri_prefix
from kg.zoning_summaries import code_tree

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

_SECTIONS: Final = iri_prefix("section")

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
