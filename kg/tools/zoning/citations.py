"""Tool for the citations of a section, outgoing and incoming: claims with the cited words and their type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
from kg.tools.zoning.municipalities import (
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
from kg.tools.zoning.rule_rows import Rule, Span, load_asserted, load_origins, load_rules
from kg.vocabulary import KG, RDF, SOURCED, iri_prefix
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree

CLAIMS: Final = """
SELECT ?claim ?graph ?citing ?cited ?type ?start WHERE {
  VALUES ?place { $place } GRAPH ?graph { ?claim $end ?place . ?claim kg:rawCitation ?words }
  ?claim rdf:subject ?citing
  OPTIONAL { ?claim rdf:object ?cited }
  OPTIONAL { ?claim kg:relationshipType ?type }
  OPTIONAL { ?claim kg:evidence ?span . ?span kg:start ?start }
}"""

MARKED: Final = """
SELECT ?citing ?cited ?graph WHERE {
  { BIND($section AS ?citing) GRAPH ?graph { $section eli:cites ?cited } }
  UNION { BIND($section AS ?cited) GRAPH ?graph { ?citing eli:cites $section } }
  FILTER(STRSTARTS(STR(?graph), $asserted))
}"""

LAWS: Final = """
SELECT ?law ?name ?type WHERE {
  VALUES ?law { $laws } ?law dcterms:identifier ?name OPTIONAL { ?law kg:lawType ?type }
}"""

# Texts cite a policy family by its title, and the law that it is.
CITED_ELSEWHERE: Final = """
SELECT ?law (COUNT(DISTINCT ?unit) AS ?units) WHERE {
  { VALUES (?law ?cited) { $themselves } }
  UNION { VALUES ?law { $laws } ?cited kg:isLaw ?law } UNION { VALUES ?law { $laws } ?law kg:isLaw ?cited }
  ?claim a kg:CrossReference ; rdf:object ?cited ; rdf:subject ?unit
  FILTER(!STRSTARTS(STR(?unit), $code))
} GROUP BY ?law"""

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
    cited_elsewhere: int | None = Field(None, description="Texts outside this code that cite the law; see citations")
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


@dataclass(slots=True)
class _Names:
    tree: CodeTree
    laws: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    """Name and type by IRI."""
    statuses: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Number of texts outside the code that cite a law, by its IRI."""

    def of(self, iri: str) -> tuple[str, str | None]:
        """Get the name of a section or law, and the heading of a section."""
        if iri.startswith(_SECTIONS):
            known = self.tree.sections.get(iri)
            return get_section_key(iri), None if known is None else known.shown_title
        return self.laws[iri][0] if iri in self.laws else code_of(iri), None


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
    Next: `kg_query_section` with cited.
    """
    bounded_page(limit, offset)
    wanted = None if relationship_type is None else _parse_type(relationship_type)
    reader = Reader(kg)
    place = find_place(reader, municipality, state)
    tree = code_tree.cached_tree(kg, place.iri)
    iri, _ = find_subsection(tree, section_id)
    reader.start_selection()
    found = [each for each in _load_citations(reader, iri, direction) if wanted is None or each.type == wanted]
    own = get_section_key(iri)
    found.sort(
        key=lambda each: (each.citing != iri, natural_key(get_section_key(each.citing)), each.start, each.claim or "")
    )
    page = found[offset : offset + limit]
    claims = load_rules(reader, {each.claim: each.graph for each in page if each.claim is not None})
    known = load_origins(reader, {each.graph for each in page})
    statuses = load_statuses(reader, [iri, *(end for each in page for end in (each.citing, each.cited))])
    laws = _load_laws(reader, page)
    names = _Names(tree, laws, statuses, _count_elsewhere(reader, laws, iri))
    promoted = load_asserted(reader, claims.values())
    result = RelatedResult(
        section_id=own,
        iri=iri,
        title=tree.sections[iri].shown_title,
        status=statuses.get(iri),
        related=[
            _to_related(each, claims[each.claim] if each.claim else None, names, known.of(each.graph).source, promoted)
            for each in page
        ],
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


def _to_related(
    found: _Citation, claim: Rule | None, names: _Names, source: str | None, promoted: set[tuple[str, str, str]]
) -> Related:
    """Convert a citation to its form in answers. One without a claim (from markup) has no recorded words."""
    citing, cited = found.citing, found.cited
    if claim is not None:  # the claim's own graph decides: other graphs may contradict it
        citing, cited = claim.one(RDF.subject) or "", claim.one(RDF.object)
    called, heading = (None, None) if cited is None else names.of(cited)
    own, title = names.of(citing)
    result = Related(
        citing=own,
        citing_iri=citing,
        citing_title=title,
        citing_status=names.statuses.get(citing),
        cited=called,
        cited_iri=cited,
        cited_title=heading,
        cited_status=names.statuses.get(cited or ""),
        law_type=names.laws.get(cited or "", (None, None))[1],
        cited_elsewhere=names.elsewhere.get(cited or ""),
        relationship_type="unknown",
        reads="cites",
        asserted=True,
        method="markup of the source",
        graph=found.graph if claim is None else claim.graph,
        source=source,
    )
    if claim is not None:
        predicate, confidence = claim.one(RDF.predicate) or "", claim.one(KG.confidence)
        result.relationship_type = claim.code(KG.relationshipType) or "unknown"
        result.reads = _local(predicate)
        result.raw_citation = claim.one(KG.rawCitation)
        result.context = claim.one(KG.contextSentence)
        result.asserted = cited is not None and (citing, predicate, cited) in promoted
        result.confidence = None if confidence is None else float(confidence)
        result.method = claim.one(KG.method) or ""
        result.spans = claim.spans() or None
        result.id = claim.iri
    return result


def _local(iri: str) -> str:
    return iri.rpartition("#")[2].rpartition("/")[2]


def _load_citations(reader: Reader, iri: str, direction: str) -> list[_Citation]:
    """Load the claims about a section, then the citations in the markup of the source that have no claim."""
    found: dict[str, _Citation] = {}
    for name, end in (("outgoing", RDF.subject), ("incoming", RDF.object)):
        if direction not in (name, "both"):
            continue
        # Cached for the following pages: a section may have thousands.
        for row in reader.kept(f"{name} citations", bind(CLAIMS, place=NamedNode(iri), end=end), list):
            claim = iri_of(row["claim"])
            start = int(term_text(row["start"])) if "start" in row else 0
            if claim not in found or start < found[claim].start:
                cited = iri_of(row["cited"]) if "cited" in row else None
                kind = code_of(iri_of(row["type"])) if "type" in row else "unknown"
                found[claim] = _Citation(iri_of(row["citing"]), cited, kind, start, iri_of(row["graph"]), claim)
    ends = {(each.citing, each.cited) for each in found.values()}
    rows = reader.rows("citations in the markup", bind(MARKED, section=NamedNode(iri), asserted=Text(SOURCED)))
    marked = {(iri_of(row["citing"]), iri_of(row["cited"]), iri_of(row["graph"])) for row in rows}
    return [
        *found.values(),
        *(
            _Citation(citing, cited, "unknown", 0, graph, None)
            for citing, cited, graph in sorted(marked)
            if (citing, cited) not in ends
            and (direction == "both" or (citing if direction == "outgoing" else cited) == iri)
        ),
    ]


def _count_elsewhere(reader: Reader, laws: Iterable[str], section: str) -> dict[str, int]:
    """Count the texts outside the code of a section that cite each of `laws`."""
    nodes = [NamedNode(law) for law in sorted(laws)]
    code = Text(section[: section.index("/", len(_SECTIONS)) + 1])
    if not nodes:
        return {}
    query = bind(CITED_ELSEWHERE, laws=nodes, themselves=[(node, node) for node in nodes], code=code)
    rows = reader.rows("other texts that cite the laws", query)
    return {iri_of(row["law"]): int(term_text(row["units"])) for row in rows}


def _load_laws(reader: Reader, citations: Iterable[_Citation]) -> dict[str, tuple[str, str | None]]:
    """Load name and type of the cited laws outside the code, by IRI."""
    cited = {each.cited for each in citations}
    laws = sorted(each for each in cited if each is not None and not each.startswith(_SECTIONS))
    if not laws:
        return {}
    rows = reader.rows("cited laws", bind(LAWS, laws=[NamedNode(law) for law in laws]))
    return {
        iri_of(row["law"]): (term_text(row["name"]), code_of(iri_of(row["type"])) if "type" in row else None)
        for row in rows
    }
