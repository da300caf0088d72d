"""What a section of a code cites and is cited by: claims with the words of the citation and what it is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.terms import bind
from kg.summaries import hierarchy
from kg.summaries.hierarchy import Hierarchy
from kg.tools.budget import Lean
from kg.tools.hydration import code_of
from kg.tools.model import Result
from kg.tools.reading import Reader, bounded, iri_of, page_of, text_of
from kg.tools.zoning.places import (
    MunicipalityName,
    PageSize,
    SectionId,
    Skipped,
    StateName,
    key_of,
    place_named,
    subsection,
)
from kg.tools.zoning.rules import Rule, Span, origins, read_rules
from kg.vocabulary import BASE, KG, RDF

CLAIMS: Final = """
SELECT ?claim ?graph WHERE {
  VALUES ?place { $place } GRAPH ?graph { ?claim $end ?place . ?claim kg:rawCitation ?words }
}"""

MARKED: Final = """
SELECT ?citing ?cited ?graph WHERE {
  { BIND($section AS ?citing) GRAPH ?graph { $section eli:cites ?cited } }
  UNION { BIND($section AS ?cited) GRAPH ?graph { ?citing eli:cites $section } }
  FILTER(STRSTARTS(STR(?graph), $asserted))
}"""

ASSERTED: Final = """
SELECT DISTINCT ?citing ?predicate ?cited WHERE {
  VALUES (?citing ?predicate ?cited) { $triples } ?citing ?predicate ?cited
}"""

LAWS: Final = """
SELECT ?law ?name WHERE { VALUES ?law { $laws } ?law dcterms:identifier ?name }"""

TYPES: Final = (
    "defines", "constrains", "requires", "excepts", "supersedes", "authorizes", "delegates", "supplements",
    "incorporates", "references", "unknown",
)  # fmt: skip
"""What a citation is for."""

_SECTIONS: Final = BASE + "id/section/"
_ASSERTED: Final = BASE + "graph/src/"

Direction = Literal["outgoing", "incoming", "both"]


class Related(Lean):
    """A citation. It is read from the citing side: `reads` says how the one that cites stands to the one cited."""

    citing: str
    cited: str | None = Field(None, description="Absent: not known")
    cited_id: str | None = None
    cited_title: str | None = None
    citing_title: str | None = None
    relationship_type: str
    reads: str = Field(description="E.g. subjectTo: citing is subject to cited")
    raw_citation: str | None = None
    context: str | None = None
    asserted: bool = Field(description="Whether it counts as an edge")
    confidence: float | None = None
    method: str
    spans: list[Span] | None = None
    id: str | None = None
    graph: str
    source: str | None = None


class RelatedResult(Result):
    """Citations, those of the section itself first, in the order of the text."""

    section_id: str
    title: str
    related: list[Related]


@dataclass(slots=True)
class _Names:
    tree: Hierarchy
    laws: Mapping[str, str] = field(default_factory=dict)

    def of(self, iri: str) -> tuple[str, str | None]:
        """Return what to call a section or a law, and the heading of a section."""
        if iri.startswith(_SECTIONS):
            known = self.tree.sections.get(iri)
            return key_of(iri), None if known is None else known.title
        return self.laws.get(iri, code_of(iri)), None


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
    """Find what a section cites and what cites it, sections and laws, and what each citation is for.

    Use before relying on a section. Returns related: citing, cited (absent: not known), relationship_type, reads,
    raw_citation, context, spans, confidence. Types name what the cited one does: what constrains is cited.
    Example: kg_find_related(municipality="Quarry Bend", state="UT", section_id="17.12.040", direction="outgoing").
    Next: `kg_query_section` with cited.
    """
    bounded("limit", limit, 1, 200)
    bounded("offset", offset, 0, 100_000)
    wanted = None if relationship_type is None else _type(relationship_type)
    reader = Reader(kg)
    place = place_named(reader, municipality, state)
    tree = hierarchy.kept(kg, place.iri)
    iri, _ = subsection(tree, section_id)
    reader.ran.clear()
    graphs: dict[str, str] = {}
    for name, end in (("outgoing", RDF.subject), ("incoming", RDF.object)):
        if direction in (name, "both"):
            query = bind(CLAIMS, place=NamedNode(iri), end=end)
            rows = reader.rows(f"{name} citations", query)
            graphs |= {iri_of(row["claim"]): iri_of(row["graph"]) for row in rows}
    claims = read_rules(reader, graphs)
    marked = _marked(reader, iri, direction, claims)
    known = origins(reader, {*graphs.values(), *(graph for _, _, graph in marked)})
    names = _Names(tree, _laws(reader, claims.values()))
    promoted = _promoted(reader, claims.values())
    found = [_related(claim, names, known.of(claim.graph)[0], promoted) for claim in claims.values()]
    found += [_link(names, citing, cited, graph, known.of(graph)[0]) for citing, cited, graph in marked]
    found = [each for each in found if wanted is None or each.relationship_type == wanted]
    own = key_of(iri)
    found.sort(
        key=lambda each: (each.citing != own, each.citing, each.spans[0].start if each.spans else 0, each.id or "")
    )
    result = RelatedResult(section_id=own, title=tree.sections[iri].title, related=found[offset : offset + limit])
    if not found:
        parts = len(tree.children.get(iri, ()))
        result.notes.append(
            "No such citation is known."
            + (f" It has {parts} parts, which may cite: kg_traverse_hierarchy lists them." if parts else "")
        )
    return reader.finish(result, total=len(found), next_offset=page_of(found, offset, limit))


def _type(text: str) -> str:
    wanted = text.strip().casefold()
    found = [name for name in TYPES if wanted in (name, name.rstrip("s"))]
    if not found:
        raise InvalidInputError(f"relationship_type: {text[:40]!r} is none of {', '.join(TYPES)}")
    return found[0]


def _related(claim: Rule, names: _Names, source: str | None, promoted: set[tuple[str, str, str]]) -> Related:
    citing, cited = claim.one(RDF.subject) or "", claim.one(RDF.object)
    predicate, confidence = claim.one(RDF.predicate) or "", claim.one(KG.confidence)
    called, heading = (None, None) if cited is None else names.of(cited)
    own, title = names.of(citing)
    return Related(
        citing=own,
        citing_title=title,
        cited=called,
        cited_id=cited,
        cited_title=heading,
        relationship_type=claim.code(KG.relationshipType) or "unknown",
        reads=_local(predicate),
        raw_citation=claim.one(KG.rawCitation),
        context=claim.one(KG.contextSentence),
        asserted=cited is not None and (citing, predicate, cited) in promoted,
        confidence=None if confidence is None else float(confidence),
        method=claim.one(KG.method) or "",
        spans=claim.spans() or None,
        id=claim.iri,
        graph=claim.graph,
        source=source,
    )


def _link(names: _Names, citing: str, cited: str, graph: str, source: str | None) -> Related:
    """Return a citation that the source's markup makes, of which no words are known."""
    called, heading = names.of(cited)
    own, title = names.of(citing)
    return Related(
        citing=own,
        citing_title=title,
        cited=called,
        cited_id=cited,
        cited_title=heading,
        relationship_type="unknown",
        reads="cites",
        asserted=True,
        method="markup of the source",
        graph=graph,
        source=source,
    )


def _local(iri: str) -> str:
    return iri.rpartition("#")[2].rpartition("/")[2]


def _marked(reader: Reader, iri: str, direction: Direction, claims: Mapping[str, Rule]) -> list[tuple[str, str, str]]:
    """Return the citations in the source's own markup that no claim is of."""
    ends = {(claim.one(RDF.subject), claim.one(RDF.object)) for claim in claims.values()}
    rows = reader.rows("citations in the markup", bind(MARKED, section=NamedNode(iri), asserted=Text(_ASSERTED)))
    found = {(iri_of(row["citing"]), iri_of(row["cited"]), iri_of(row["graph"])) for row in rows}
    return sorted(
        (citing, cited, graph)
        for citing, cited, graph in found
        if (citing, cited) not in ends
        and (direction == "both" or (citing if direction == "outgoing" else cited) == iri)
    )


def _laws(reader: Reader, claims: Iterable[Rule]) -> dict[str, str]:
    """Return how the laws beside the code that are cited are called."""
    cited = {claim.one(RDF.object) for claim in claims}
    laws = sorted(each for each in cited if each is not None and not each.startswith(_SECTIONS))
    if not laws:
        return {}
    rows = reader.rows("laws that are cited", bind(LAWS, laws=[NamedNode(law) for law in laws]))
    return {iri_of(row["law"]): text_of(row["name"]) for row in rows}


def _promoted(reader: Reader, claims: Iterable[Rule]) -> set[tuple[str, str, str]]:
    """Return the triples of claims that are asserted."""
    triples = {(claim.one(RDF.subject), claim.one(RDF.predicate), claim.one(RDF.object)) for claim in claims}
    whole = sorted((s, p, o) for s, p, o in triples if s is not None and p is not None and o is not None)
    if not whole:
        return set()
    query = bind(ASSERTED, triples=[(NamedNode(s), NamedNode(p), NamedNode(o)) for s, p, o in whole])
    rows = reader.rows("citations that are asserted", query)
    return {(iri_of(row["citing"]), iri_of(row["predicate"]), iri_of(row["cited"])) for row in rows}
