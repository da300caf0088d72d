"""The tools `concept_find` (concepts by name or id) and `concept_properties` (properties of their statements)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError
from kg.fuzzy_names import MOST_SIMILAR
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import Concept, Concepts, load_concepts, one, plain_id
from kg.retrieval.notes import Note
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import Identifier, Lean, Limit, Offset, Result, clipped
from kg.sparql.terms import bind
from kg.store.protocol import Term, preference, term_text
from kg.tools.concepts.statement_properties import direct_start, pid_of, property_labels, wikibase_of

TEXT_CHARACTERS: Final = 300
ALIASES_SHOWN: Final = 12
LINKS_SHOWN: Final = 20
DESCRIPTION_CHARACTERS: Final = 400
INSTANCE_OF: Final = "instance of"
"""English label of the class property. Its number differs between Wikibases."""

DETAILS: Final = """
SELECT DISTINCT ?concept ?key ?value WHERE {
  { VALUES ?concept { $concepts } ?concept skos:definition ?value BIND("definition" AS ?key) }
  UNION { VALUES (?concept ?entity) { $entities } ?entity schema:description ?value BIND("description" AS ?key) }
  UNION { VALUES ?concept { $concepts } ?concept skos:broader ?value BIND("broader" AS ?key) }
  UNION { VALUES ?concept { $concepts } ?value skos:narrower ?concept BIND("broader" AS ?key) }
  UNION { VALUES ?concept { $concepts } ?concept skos:narrower ?value BIND("narrower" AS ?key) }
  UNION { VALUES ?concept { $concepts } ?value skos:broader ?concept BIND("narrower" AS ?key) }
  UNION { VALUES (?concept ?entity) { $entities } VALUES ?class { $classes } ?entity ?class ?value
    BIND("instance_of" AS ?key) }
}"""

CLASSIFYING: Final = """
SELECT DISTINCT ?property WHERE { ?property rdfs:label $name . ?property a wikibase:Property }"""

# The property is tested once per group, not once per statement.
ALL_PROPERTIES: Final = """
SELECT ?property ?count WHERE {
  { SELECT ?property (COUNT(*) AS ?count) WHERE {
    VALUES ?class { wikibase:Item wikibase:Property } ?entity a ?class . ?entity ?property ?value
  } GROUP BY ?property }
  FILTER(CONTAINS(STR(?property), "/prop/direct/"))
}"""

PROPERTIES_OF: Final = """
SELECT ?property (COUNT(*) AS ?count) WHERE {
  $entity ?property ?value FILTER(STRSTARTS(STR(?property), $start))
} GROUP BY ?property"""


class ConceptLink(Lean):
    """Another concept: its id and, if it is in the graph, its label."""

    qid: str
    label: str | None = None


class FoundConcept(Lean):
    """A concept with its names and relations."""

    qid: str = Field(description="QID of a climate concept; IRI of any other")
    preferred_label: str
    aliases: list[str]
    description: str | None = None
    instance_of: list[ConceptLink] | None = None
    broader: list[ConceptLink] | None = None
    narrower: list[ConceptLink] | None = None
    matched: str | None = Field(None, description="The matching name, if it is not the label")
    score: float | None = Field(None, description="Similarity of the name; 1 is identical")


class ConceptResult(Result):
    """Concepts, best first."""

    concepts: list[FoundConcept]


class UsedProperty(Lean):
    """A property of a Wikibase, with the number of statements that use it."""

    pid: str
    propLabel: str | None = None  # noqa: N815 -- the contract's name
    count: int
    iri: str = Field(description="IRI for SPARQL")


class PropertyResult(Result):
    """Properties, most used first."""

    properties: list[UsedProperty]


def concept_find(
    kg: KnowledgeGraph,
    q: Annotated[str | None, Field(min_length=1, max_length=TEXT_CHARACTERS, description="Label or alias")] = None,
    qid: Annotated[Identifier | None, Field(description="Or the QID (Q1167); the IRI for other Wikibases")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> ConceptResult:
    """Find concepts by label, alias or QID, misspelled ones too.

    Use to get the QID that concept tools and `search` filters.concept_qids take. Returns concepts: qid,
    preferred_label, aliases, description, instance_of, broader, narrower, score.
    Example: concept_find(q="solar energy").
    Next: `concept_mentions` for passages that mention it.
    """
    bounded_page(limit, offset)
    if (q is None) == (qid is None):
        raise InvalidInputError(
            'Pass either q (a label or alias, as in q="solar") or qid (as in qid="Q1167"), not both.'
        )
    if q is not None and load_concepts(kg).named(q):
        qid = q
    reader = Reader(kg)
    notes: list[str] = []
    if qid is not None:
        scored: list[_Scored] = [(one(reader, "qid", qid), None, None)]
        concepts = load_concepts(kg)
        if plain_id(qid) not in (scored[0][0].qid, scored[0][0].iri):
            notes.append(f"{qid.strip()} has the id {scored[0][0].qid} in this graph.")
    else:
        concepts, scored = _like(kg, clean_text("q", q or "", TEXT_CHARACTERS), MOST_SIMILAR)
        if not scored:
            notes.append(
                "No concepts are loaded. Load them with kg load wikibase."
                if not len(concepts)
                else Note(
                    "No similar name found. Try another word, the singular, or find_terms, which searches by meaning.",
                    "No similar name found. Try another word or the singular.",
                )
            )
        if concepts.truncated:
            notes.append("The graph has more names of concepts than this tool reads. Search the others with SPARQL.")
    page = scored[offset : offset + limit]
    found = _described(reader, concepts, [concept for concept, _, _ in page])
    for (concept, matched, score), shown in zip(page, found, strict=True):
        shown.matched = matched if matched != concept.label else None
        shown.score = score
    return reader.finish(ConceptResult(concepts=found, notes=notes), next_offset=page_of(scored, offset, limit))


_Scored = tuple[Concept, str | None, float | None]


def _like(kg: KnowledgeGraph, text: str, most: int) -> tuple[Concepts, list[_Scored]]:
    """Find concepts with a name similar to `text`, best first; labels come before aliases."""
    concepts = load_concepts(kg)
    found = concepts.like(text, most)
    if not found:
        concepts = load_concepts(kg, fresh=True)
        found = concepts.like(text, most)
    ranked = sorted(
        found, key=lambda item: (-round(item[0].score, 3), item[0].name != item[1].label, item[1].label, item[1].iri)
    )
    return concepts, [(concept, likeness.name, round(likeness.score, 3)) for likeness, concept in ranked]


def _described(reader: Reader, concepts: Concepts, page: Sequence[Concept]) -> list[FoundConcept]:
    if not page:
        return []
    query = bind(
        DETAILS,
        concepts=[NamedNode(concept.iri) for concept in page],
        entities=[(NamedNode(concept.iri), NamedNode(concept.entity)) for concept in page],
        classes=_classifying(reader, page),
    )
    said: dict[str, dict[str, list[Term]]] = defaultdict(lambda: defaultdict(list))
    for row in reader.rows("properties of concepts", query):
        said[iri_of(row["concept"])][term_text(row["key"])].append(row["value"])
    return [_shown(concepts, concept, said[concept.iri]) for concept in page]


def _classifying(reader: Reader, page: Sequence[Concept]) -> list[NamedNode]:
    """Load the class properties ("instance of") of all Wikibases."""

    def read(rows: list[dict[str, Term]]) -> list[NamedNode]:
        found = []
        for row in rows:
            base = wikibase_of(iri_of(row["property"]))
            if base is not None:
                found.append(NamedNode(direct_start(base) + iri_of(row["property"]).rpartition("/")[2]))
        return found

    named = reader.kept("class properties", bind(CLASSIFYING, name=Literal(INSTANCE_OF, language="en")), read)
    wikidata = {wikibase_of(concept.entity) for concept in page} & {"http://www.wikidata.org/"}
    return [*named, *(NamedNode(f"{direct_start(base or '')}P31") for base in wikidata)]


def _shown(concepts: Concepts, concept: Concept, said: Mapping[str, Sequence[Term]]) -> FoundConcept:
    texts = {
        key: sorted((each for each in said.get(key, ()) if isinstance(each, Literal)), key=preference)
        for key in ("definition", "description")
    }
    about = next((each[0].value for each in texts.values() if each), None)
    return FoundConcept(
        qid=concept.qid,
        preferred_label=concept.label,
        aliases=[name for name in concept.names if name != concept.label][:ALIASES_SHOWN],
        description=None if about is None else clipped(about, DESCRIPTION_CHARACTERS),
        **{key: links(concepts, said.get(key, ())) for key in ("instance_of", "broader", "narrower")},
    )


def links(concepts: Concepts, terms: Sequence[Term]) -> list[ConceptLink] | None:
    """Link to concepts, sorted by label, those without one last. None if there are none."""
    found: dict[str, ConceptLink] = {}
    for iri in {term.value for term in terms if isinstance(term, NamedNode)}:
        known = concepts.at(iri)
        qid = known.qid if known else iri.removeprefix("cpr://concept/")
        found[qid] = ConceptLink(qid=qid, label=known.label if known else None)
    ordered = sorted(found.values(), key=lambda link: (link.label is None, link.label or "", link.qid))
    return ordered[:LINKS_SHOWN] or None


def concept_properties(
    kg: KnowledgeGraph,
    qid: Annotated[Identifier | None, Field(description="Only this concept's; default: all")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> PropertyResult:
    """Count the direct (best-rank) statements of each Wikibase property, for one concept or for all.

    Use to see which predicates concept_neighbors can follow. Returns properties: pid, propLabel, count, iri (for
    SPARQL), most used first.
    Example: concept_properties(limit=10).
    Next: `concept_neighbors` with predicates=[pid], or `sparql` with the iri.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    notes = []

    def read(rows: list[dict[str, Term]]) -> list[tuple[str, int]]:
        return [(iri_of(row["property"]), int(term_text(row["count"]))) for row in rows if "property" in row]

    if qid is None:
        counted = reader.kept("properties in use", ALL_PROPERTIES, read)
    else:
        concept = one(reader, "qid", qid)
        reader.start_selection()
        start = direct_start(wikibase_of(concept.entity) or "")
        query = bind(PROPERTIES_OF, entity=NamedNode(concept.entity), start=Literal(start))
        counted = read(reader.rows("properties of the concept", query)) if start != direct_start("") else []
    ranked = sorted(counted, key=lambda item: (-item[1], item[0]))
    page = ranked[offset : offset + limit]
    labels = property_labels(reader, [iri for iri, _ in page])
    if not ranked:
        notes.append("The graph has no Wikibase statements." if qid is None else "It has no direct statements.")
    properties = [UsedProperty(pid=pid_of(iri), propLabel=labels.get(iri), count=count, iri=iri) for iri, count in page]
    return reader.finish(
        PropertyResult(properties=properties, notes=notes),
        total=len(ranked),
        next_offset=page_of(ranked, offset, limit),
    )
