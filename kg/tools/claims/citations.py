"""Tool for citations across all domains: the laws and policy families that texts cite, and the texts that cite them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import describe, load_units, origin_of, place_of, speakers_of, title_of
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of
from kg.retrieval.results import Identifier, Lean, Limit, Offset, Provenance, Result
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import quoted
from kg.tools.search.identifiers import Resolved, complete_ids, explain_missing, parse_id
from kg.tools.zoning.rules import load_asserted, load_rules, load_targets
from kg.vocabulary import EXTRACTED, KG, RDF, iri_prefix

# The text units of an entity: itself, those of a document, of the documents of a family or law, of a code.
CITED_BY_UNITS: Final = """
SELECT ?claim ?graph ?unit ?cited ?position ?start WHERE {
  { BIND($iri AS ?unit) } UNION { ?unit dcterms:isPartOf $iri }
  UNION { ?document eli:is_member_of|kg:isLaw $iri . ?unit dcterms:isPartOf ?document }
  GRAPH ?graph { ?claim rdf:subject ?unit ; kg:rawCitation ?words }
  OPTIONAL { ?claim rdf:object ?cited }
  OPTIONAL { ?unit schema:position ?position }
  OPTIONAL { ?claim kg:evidence ?span . ?span kg:start ?start }
}"""

# As CITED_BY_UNITS, for text units.
CITED_BY_THESE: Final = """
SELECT ?claim ?graph ?unit ?cited ?start WHERE {
  VALUES ?unit { $units }
  GRAPH ?graph { ?claim rdf:subject ?unit ; kg:rawCitation ?words }
  OPTIONAL { ?claim rdf:object ?cited }
  OPTIONAL { ?claim kg:evidence ?span . ?span kg:start ?start }
}"""

CITING_UNITS: Final = """
SELECT ?claim ?graph ?unit ?cited ?position ?start ?end WHERE {
  VALUES ?cited { $targets }
  GRAPH ?graph { ?claim rdf:object ?cited ; rdf:subject ?unit ; kg:rawCitation ?words }
  OPTIONAL { ?unit schema:position ?position }
  OPTIONAL { ?claim kg:evidence ?span . ?span kg:start ?start ; kg:end ?end }
}"""

# The family of a document, the law that it or its family is, and the family that is a law.
CITED_AS: Final = """
SELECT DISTINCT ?other WHERE {
  { $iri eli:is_member_of|kg:isLaw ?other }
  UNION { $iri eli:is_member_of ?family . ?family kg:isLaw ?other }
  UNION { ?document eli:is_member_of $iri ; kg:isLaw ?other }
  UNION { ?other kg:isLaw $iri }
}"""

CLASSES: Final = """
SELECT DISTINCT ?kind WHERE { $iri a ?kind }"""

_LAWS: Final = iri_prefix("law")

Direction = Literal["cites", "cited_by", "both"]


class Citation(Lean):
    """One citation: the words of a text unit that cite something."""

    direction: Literal["cites", "cited_by"]
    citing: str = Field(description="Text unit, for `fetch`")
    title: str = Field(description="Title of its document")
    words: str
    offsets: list[tuple[int, int]] = Field(description="Of the words in the text unit")
    cited: str | None = Field(None, description="Absent: unknown")
    cited_name: str | None = None
    cited_kind: str | None = Field(None, description="law, policy family or section")
    law_type: str | None = None
    relation: str
    asserted: bool = Field(description="Whether it is an edge of the graph")
    confidence: float
    method: str
    id: str = Field(description="Claim, for `review_claim`")
    provenance: Provenance


class CitationsResult(Result):
    """Citations: those of the texts of `iri` first, then those of it."""

    iri: str
    citations: list[Citation]


@dataclass(frozen=True, slots=True)
class Found:
    """A citation before its claim is loaded."""

    claim: str
    graph: str
    unit: str
    cited: str | None
    position: int
    start: int
    outgoing: bool


def citations(
    kg: KnowledgeGraph,
    iri: Annotated[Identifier, Field(description="Id of a law, policy family, document, passage, section or speech")],
    direction: Annotated[Direction, Field()] = "both",
    limit: Limit = 20,
    offset: Offset = 0,
) -> CitationsResult:
    """List the laws and policies that a text cites, and the texts of all domains that cite a law or policy.

    Use to go from a law to the speeches, policies and code sections that cite it, and back.
    Example: citations(iri="cpr://family/fictional-rooftop-energy-act-2023-4386bac4", direction="cited_by").
    Next: `fetch` citing, or `citations` with cited.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    [iri] = complete_ids(reader, [iri])
    node = parse_id(iri)
    kinds = [] if node is None else reader.rows("what it is", bind(CLASSES, iri=node))
    if node is None or not kinds:
        raise NotFoundError(f"iri: Unknown id {quoted(iri)}. {explain_missing(reader, iri, Resolved())}")
    reader.start_selection()
    targets = [node] if direction == "cites" else find_targets(reader, node)
    found = [
        *([] if direction == "cited_by" else find_cited(reader, node)),
        *([] if direction == "cites" else find_citing(reader, targets)),
    ]
    page = found[offset : offset + limit]
    result = CitationsResult(iri=node.value, citations=load_citations(reader, page))
    if len(targets) > 1:
        result.notes.append("Citations of its family, and of the law that it is, are included: see cited.")
    if not found:
        result.notes.append("No such citation is recorded.")
    return reader.finish(result, total=len(found), next_offset=page_of(found, offset, limit))


def find_cited(reader: Reader, node: NamedNode) -> Sequence[Found]:
    """Find the citations in the texts of `node`, in the order of the texts. Cached until the next commit."""

    def read(rows: Sequence[Mapping[str, Term]]) -> list[Found]:
        found = _read(rows, outgoing=True)
        return sorted(found, key=lambda each: (each.position, each.unit, each.start, each.claim))

    return reader.kept("what it cites", bind(CITED_BY_UNITS, iri=node), read)


def find_cited_by_units(reader: Reader, units: Iterable[str]) -> list[Found]:
    """Find the citations in text units."""
    nodes = [NamedNode(iri) for iri in sorted(units)]
    rows = reader.rows("what these texts cite", bind(CITED_BY_THESE, units=nodes)) if nodes else []
    return sorted(_read(rows, outgoing=True), key=lambda each: (each.unit, each.start, each.claim))


def find_targets(reader: Reader, node: NamedNode) -> list[NamedNode]:
    """Find what texts cite that cite `node`: itself, the family of a document, the law that a document or family is."""
    rows = reader.rows("what else it is cited as", bind(CITED_AS, iri=node))
    others = {NamedNode(iri_of(row["other"])) for row in rows}
    return [node, *sorted(others - {node}, key=str)]


def find_citing(reader: Reader, targets: Sequence[NamedNode]) -> Sequence[Found]:
    """Find the citations of any of `targets`, in the order of the texts. Cached until the next commit.

    Words that cite both a law and, by its title, the family that is this law count once.
    """

    def read(rows: Sequence[Mapping[str, Term]]) -> list[Found]:
        again = _find_repeated(rows)
        found = [each for each in _read(rows, outgoing=False) if each.claim not in again]
        return sorted(found, key=lambda each: (each.graph, each.position, each.start, each.claim))

    return reader.kept("what cites it", bind(CITING_UNITS, targets=targets), read)


def _find_repeated(rows: Sequence[Mapping[str, Term]]) -> set[str]:
    """Find the claims about families all of whose words are words of claims about laws."""
    of_laws: dict[str, list[tuple[int, int]]] = defaultdict(list)
    of_families: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        if "start" not in row or not iri_of(row["graph"]).startswith(EXTRACTED):
            continue
        unit, span = iri_of(row["unit"]), (int(term_text(row["start"])), int(term_text(row["end"])))
        if iri_of(row["cited"]).startswith(_LAWS):
            of_laws[unit].append(span)
        else:
            of_families[unit, iri_of(row["claim"])].append(span)
    return {
        claim
        for (unit, claim), spans in of_families.items()
        if all(any(start < other[1] and other[0] < end for other in of_laws.get(unit, ())) for start, end in spans)
    }


def _read(rows: Sequence[Mapping[str, Term]], *, outgoing: bool) -> list[Found]:
    """Convert rows to citations: each claim once, at its first words."""
    found: dict[str, Found] = {}
    for row in rows:
        claim, graph = iri_of(row["claim"]), iri_of(row["graph"])
        if not graph.startswith(EXTRACTED):  # only loaders write there: a user's claim counts for nothing
            continue
        start = int(term_text(row["start"])) if "start" in row else 0
        if claim not in found or start < found[claim].start:
            cited = iri_of(row["cited"]) if "cited" in row else None
            position = int(term_text(row["position"])) if "position" in row else 0
            found[claim] = Found(claim, graph, iri_of(row["unit"]), cited, position, start, outgoing)
    return list(found.values())


def load_citations(reader: Reader, page: Sequence[Found]) -> list[Citation]:
    """Load the words, documents and origins of citations."""
    if not page:
        return []
    claims = load_rules(reader, {each.claim: each.graph for each in page})
    units = load_units(reader, sorted({each.unit for each in page}))
    page = [each for each in page if each.unit in units]
    documents = {units[each.unit].cited for each in page}
    descriptions = describe(reader, documents, {units[each.unit].graph for each in page})
    voices = speakers_of(reader, units.values())
    targets = load_targets(reader, {each.cited for each in page if each.cited is not None})
    asserted = load_asserted(reader, claims.values())
    result = []
    for each in page:
        claim, unit = claims[each.claim], units[each.unit]
        predicate, cited = claim.one(RDF.predicate) or "", claim.one(RDF.object)
        name, kind, law_type = targets.get(cited or "", (None, None, None))
        result.append(
            Citation(
                direction="cites" if each.outgoing else "cited_by",
                citing=each.unit,
                title=title_of(descriptions, unit.cited, voices.get(each.unit)),
                words=claim.one(KG.rawCitation) or "",
                offsets=[(span.start, span.end) for span in claim.spans()],
                cited=cited,
                cited_name=name,
                cited_kind=kind,
                law_type=law_type,
                relation=predicate.rpartition("#")[2],
                asserted=cited is not None and (each.unit, predicate, cited) in asserted,
                confidence=float(claim.one(KG.confidence) or 0),
                method=claim.one(KG.method) or "",
                id=each.claim,
                provenance=origin_of(reader, descriptions, unit.graph, unit.position, *place_of(descriptions, unit)),
            )
        )
    return result
