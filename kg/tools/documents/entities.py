"""The tools `entity_lookup` and `explain_entity`: entities of files by name, and the statements of files about one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Final

from pydantic import Field
from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import MOST_SIMILAR, Match
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import describe, origin_of
from kg.retrieval.reader import Reader, bounded, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import Identifier, Layout, Lean, Limit, Offset, Provenance, Result, clipped
from kg.sparql.terms import bind, is_iri
from kg.store.protocol import term_text
from kg.text import name_or_quote, quoted
from kg.tools.documents.claims import Stated, load_claims
from kg.tools.documents.entity_meanings import find_meanings
from kg.tools.documents.entity_names import Entity, EntityNames, load_entity_names
from kg.tools.documents.nodes import FILES, Node, get_path, list_types, load_nodes
from kg.tools.documents.relations import MOST_NODES, PROPERTIES, Edge, Relation, load_edges
from kg.tools.documents.same_entities import MENTIONS_COUNTED, count_mentions, group_entities, load_same
from kg.vocabulary import SKOS, SOURCED

WORDS: Final = 400
SUPPORT: Final = 5
"""Maximum number of claims that are listed for a relation."""
SHOWN_SOURCES: Final = 10
MEANINGS: Final = 5
"""Maximum number of entities that are found by their definitions."""

ABOUT: Final = """
SELECT ?property ?value WHERE {
  $entity ?property ?value FILTER(?property IN (rdf:type, skos:altLabel, skos:definition, kg:norm))
}"""

MENTIONS: Final = """
SELECT ?file ?unit ?count WHERE {
  { SELECT ?unit (COUNT(DISTINCT ?mention) AS ?count) WHERE {
    { SELECT ?mention ?unit WHERE {
      VALUES ?entity { $entities } ?mention kg:object ?entity ; oa:hasSource ?unit
    } LIMIT $most }
    FILTER(STRSTARTS(STR(?unit), $files))
  } GROUP BY ?unit }
  ?unit dcterms:isPartOf ?file
}"""


class SameEntity(Lean):
    """Another entity that a link asserts to be the same: mostly the same name, understood as one of another type."""

    id: str
    name: str
    type: str
    confidence: float | None = None
    claim: str | None = Field(None, description="The link, for `review_claim`")


class ListedEntity(Lean):
    """An entity with a name that is similar."""

    id: str
    name: str
    type: str
    aliases: list[str]
    score: float = Field(description="Similarity of the nearest name, or of the definition")
    same_as: list[SameEntity] = Field(default_factory=list)
    definition: str | None = Field(
        None, description="The definition that means about the same; null: its name is similar"
    )


class LookupResult(Result):
    """Entities, the most similar first."""

    entities: list[ListedEntity]


class Support(Lean):
    """Words that state something, and where they are."""

    words: str | None = None
    confidence: float
    chunk: str | None = Field(None, description="For `fetch`")
    path: str | None = Field(None, description="Collection and path of the file")
    claim: str = Field(description="For `review_claim`")


class EntityRelation(Lean):
    """A relation of the entity, or of one that it relates to."""

    src: str
    src_name: str
    rel: Relation
    dst: str
    dst_name: str
    hops: int
    confidence: float | None = Field(None, description="Of the surest claim; absent: a source states it as data")
    claims: int = Field(0, description="Number of claims, at most 5")
    support: list[Support] = Field(default_factory=list)


class SourceFile(Lean):
    """A file that mentions the entity."""

    doc_id: str
    path: str
    mentions: int
    chunk: str = Field(description="The text with most of them, for `fetch`")
    provenance: Provenance


class ExplainedEntity(Result):
    """The statements of the files about an entity."""

    shown: ClassVar[frozenset[str]] = frozenset({"definition"})
    layout: ClassVar[Layout] = Layout(paged=("relations",))

    id: str
    name: str
    type: str
    aliases: list[str]
    definition: str | None = Field(description="The words that define it in a file; null: no file defines it")
    definition_source: Support | None = Field(description="Where the file has the definition")
    defined_by: list[Support] = Field(description="All definitions, the surest first")
    same_as: list[SameEntity] = Field(description="Linked as the same; their relations and files are included")
    relations: list[EntityRelation]
    files: list[SourceFile] = Field(description="Files that mention it, those with most mentions first")


def entity_lookup(
    kg: KnowledgeGraph,
    q: Annotated[str, Field(min_length=1, max_length=300, description="A name, misspelled or in part")],
    type: Annotated[str | None, Field(max_length=40, description="Type of entity, e.g. Regulation")] = None,
    limit: Limit = 10,
    offset: Offset = 0,
) -> LookupResult:
    """Find entities that the loaded files mention, by name or alias, or by the definition that a file has.

    Use to get the id for `explain_entity`. Entities with a similar name come first. Returns entities: id, name, type,
    aliases, score, same_as (linked as the same, of other types), definition.
    Example: entity_lookup(q="strainer").
    Next: `explain_entity`. `concept_find` finds concepts, `citations` what cites a law.
    """
    text = clean_text("q", q, 300)
    bounded_page(limit, offset)
    wanted = None if type is None else _find_type(type)
    reader = Reader(kg)
    names = load_entity_names(kg)
    by_name = names.find(text, wanted, MOST_SIMILAR)
    found = [(round(match.score, 3), each, None) for match, each in by_name] + _find_by_meaning(
        kg, names, text, wanted, by_name
    )
    cut: set[str] = set()
    merged = _merge(reader, found, cut)
    page = merged[offset : offset + limit]
    notes = sorted(cut)
    if not names.entities:
        notes.append("No entities are stored. `ingest_docs` loads files, `extract_and_link` finds their entities.")
    elif not found:
        notes.append(
            f"No {wanted or 'entity'} has a name like {quoted(clipped(text, 100))}. `hybrid_query` searches texts."
        )
    if names.truncated:
        notes.append(f"Only the first {len(names.entities):,} entities were searched.")
    result = LookupResult(
        entities=[
            ListedEntity(
                id=each.iri,
                name=each.name,
                type=each.type,
                aliases=sorted({name for one in (each, *others) for name in (one.name, *one.aliases)} - {each.name}),
                score=score,
                same_as=[SameEntity(id=other.iri, name=other.name, type=other.type) for other in others],
                definition=None if definition is None else clipped(definition, WORDS),
            )
            for score, each, definition, others in page
        ],
        notes=notes,
    )
    return reader.finish(result, next_offset=page_of(merged, offset, limit))


def _merge(
    reader: Reader, found: Sequence[tuple[float, Entity, str | None]], notes: set[str]
) -> list[tuple[float, Entity, str | None, list[Entity]]]:
    """Merge the entities that links assert to be the same: each group by the one that is mentioned most often."""
    by_iri = {each.iri: (score, each, definition) for score, each, definition in found}
    groups = group_entities(by_iri, load_same(reader, list(by_iri), notes))
    counts = count_mentions(reader, [iri for group in groups if len(group) > 1 for iri in group])
    merged = []
    for group in groups:
        first, *others = sorted(group, key=lambda iri: (-counts.get(iri, 0), by_iri[iri][1].type == "Term", iri))
        score = max(by_iri[iri][0] for iri in group)
        definition = next((text for iri in group if (text := by_iri[iri][2]) is not None), None)
        merged.append((score, by_iri[first][1], definition, [by_iri[iri][1] for iri in others]))
    return merged


def _find_by_meaning(
    kg: KnowledgeGraph, names: EntityNames, text: str, type_: str | None, by_name: Sequence[tuple[Match, Entity]]
) -> list[tuple[float, Entity, str | None]]:
    """Find the entities whose definition means about the same as a text, without those found by their names."""
    if any(match.score >= 1.0 for match, _ in by_name):
        return []
    entities = {each.iri: each for each in names.entities}
    known = {each.iri for _, each in by_name}
    return [
        (round(meaning.score, 3), entity, meaning.definition)
        for meaning in find_meanings(kg, text, MEANINGS)
        if meaning.iri not in known
        and (entity := entities.get(meaning.iri)) is not None
        and type_ in (None, entity.type)
    ]


def _find_type(text: str) -> str:
    """Find a type of entities by its name in any case. Raises InvalidInputError with the valid ones."""
    types = sorted(list_types().values())
    found = [name for name in types if name.casefold() == text.strip().casefold()]
    if not found:
        raise InvalidInputError(f"type: Unknown type {quoted(text)}. Available: {', '.join(types)}.")
    return found[0]


def explain_entity(
    kg: KnowledgeGraph,
    entity_id: Annotated[Identifier, Field(description="Id or exact name of an entity")],
    hops: Annotated[int, Field(ge=1, le=2)] = 2,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ExplainedEntity:
    """Explain an entity by the statements of the loaded files: definition, aliases, relations with confidence, files.

    Use with an id from `entity_lookup` or `hybrid_query`. Each statement has the words of the file that make it, and
    their confidence. Returns definition, defined_by, aliases, same_as (included), relations (src, rel, dst, confidence,
    support), files.
    Example: explain_entity(entity_id="strainer").
    Next: `fetch` the chunks; `review_claim` rejects a wrong statement.
    """
    bounded("hops", hops, 1, 2)
    bounded_page(limit, offset)
    reader = Reader(kg)
    entity = _find_entity(reader, entity_id)
    notes: set[str] = set()
    same = [entity, *load_same(reader, [entity], notes).get(entity, ())][:MOST_NODES]
    edges = _load_relations(reader, same, hops, notes)
    claims = load_claims(reader, list(edges), notes=notes)
    links = [edge for edge in edges if edge.rel == "same_as" and {edge.src, edge.dst} <= {*same}]
    for edge in links:
        del edges[edge]
    defining = {edge for edge in edges if edge.rel == "defines" and edge.src.startswith(FILES)}
    definitions = sorted(
        (each for edge in defining if edge.dst in same for each in claims.get(edge, ())),
        key=lambda each: (-each.confidence, each.claim),
    )
    ranked = sorted(edges.keys() - defining, key=lambda edge: (edges[edge], -_sure(claims.get(edge)), edge))
    things = load_nodes(reader, {*same, *(node for edge in ranked for node in (edge.src, edge.dst))})
    said = reader.rows("names and definitions", bind(ABOUT, entity=NamedNode(entity)))
    said += [
        row
        for other in same[1:]
        for row in reader.rows("names of the same", bind(ABOUT, entity=NamedNode(other)))
        if row["property"] == SKOS.altLabel
    ]
    aliases = {things[each].name for each in same} | {
        term_text(row["value"]) for row in said if row["property"] == SKOS.altLabel
    }
    stated = sorted(term_text(row["value"]) for row in said if row["property"] == SKOS.definition)
    source = next((each for each in definitions if each.words), None)
    words = source.words.replace("**", "") if source is not None and source.words else None
    result = ExplainedEntity(
        id=entity,
        name=things[entity].name,
        type=things[entity].type,
        aliases=sorted(aliases - {things[entity].name}),
        definition=words or (stated[0] if stated else None),
        definition_source=None if source is None else _build_support(source),
        defined_by=[_build_support(each) for each in definitions[:SUPPORT]],
        same_as=[_build_same(entity, other, things, links, claims) for other in same[1:]],
        relations=[
            _build_relation(edge, edges[edge], claims.get(edge, ()), things) for edge in ranked[offset : offset + limit]
        ],
        files=_load_files(reader, same, notes),
        notes=sorted(notes),
    )
    if not (result.definition or ranked or result.files):
        result.notes.append("No file mentions it.")
    return reader.finish(
        result,
        total=None if notes else len(ranked),
        next_offset=page_of(ranked, offset, limit),
        completeness="truncated" if notes else "complete",
    )


def _find_entity(reader: Reader, text: str) -> str:
    """Find an entity by its IRI, or by a name that no other has. Raises NotFoundError with similar ones."""
    wanted = clean_text("entity_id", text, 2_000).removeprefix("<").removesuffix(">")
    if "://" in wanted and is_iri(wanted):
        query = bind("SELECT ?kind WHERE { $thing a ?kind }", thing=NamedNode(wanted))
        if reader.rows("class of the entity", query):
            return wanted
    names = load_entity_names(reader.kg)
    found = names.find(wanted.rpartition("/")[2] if "://" in wanted else wanted, None, 5)
    exact = [each for match, each in found if match.score >= 1.0]
    if exact and "://" not in wanted:
        merged = _merge(reader, [(1.0, each, None) for each in exact], set())
        chosen = [each for _, each, _, _ in merged if len(merged) == 1 or each.name == wanted]
        if len(chosen) == 1:
            return chosen[0].iri
    near = [each for _, each in found] + [
        each for _, each, _ in _find_by_meaning(reader.kg, names, wanted, None, found)
    ]
    listed = ", ".join(f"{name_or_quote(each.iri)} ({name_or_quote(each.name)}, {each.type})" for each in near)
    if len(exact) > 1:
        raise InvalidInputError(f"entity_id: Several entities are called {quoted(wanted)}: {listed}. Pass an id.")
    raise NotFoundError(
        f"entity_id: Unknown entity {quoted(wanted)}. "
        + (f"Similar: {listed}." if listed else "hybrid_query searches texts for it.")
    )


def _build_same(
    entity: str, other: str, things: Mapping[str, Node], links: Iterable[Edge], claims: Mapping[Edge, Sequence[Stated]]
) -> SameEntity:
    surest = max(
        (claim for edge in links if {edge.src, edge.dst} == {entity, other} for claim in claims.get(edge, ())),
        key=lambda claim: (claim.confidence, claim.claim),
        default=None,
    )
    return SameEntity(
        id=other,
        name=things[other].name,
        type=things[other].type,
        confidence=None if surest is None else surest.confidence,
        claim=None if surest is None else surest.claim,
    )


def _load_relations(reader: Reader, same: Sequence[str], hops: int, notes: set[str]) -> dict[Edge, int]:
    """Load the relations of an entity and of those that are the same, with the hops.

    With two hops, those of the entities that it relates to are loaded as well.
    """
    found: dict[Edge, int] = {}
    frontier, seen = list(same), set(same)
    for hop in range(1, hops + 1):
        edges = load_edges(reader, frontier, list(PROPERTIES), notes)
        following: dict[str, None] = {}
        for node in frontier:
            for edge in edges.get(node, ()):
                found.setdefault(edge, hop)
                other = edge.other(node)
                if other not in seen and not other.startswith(FILES):
                    following[other] = None
        seen |= following.keys()
        frontier = list(following)
    return found


def _sure(claims: Sequence[Stated] | None) -> float:
    return claims[0].confidence if claims else 1.0


def _build_support(stated: Stated) -> Support:
    return Support(
        words=None if stated.words is None else clipped(stated.words, WORDS),
        confidence=stated.confidence,
        chunk=stated.unit,
        path=get_path(stated.unit) if stated.unit is not None and stated.unit.startswith(FILES) else None,
        claim=stated.claim,
    )


def _build_relation(edge: Edge, hops: int, claims: Sequence[Stated], things: Mapping[str, Node]) -> EntityRelation:
    return EntityRelation(
        src=edge.src,
        src_name=things[edge.src].name,
        rel=edge.rel,
        dst=edge.dst,
        dst_name=things[edge.dst].name,
        hops=hops,
        confidence=claims[0].confidence if claims else None,
        claims=len(claims),
        support=[_build_support(each) for each in claims[:SUPPORT]],
    )


def _load_files(reader: Reader, same: Sequence[str], notes: set[str]) -> list[SourceFile]:
    """Load the files that mention one of some entities, those with most mentions first."""
    query = bind(MENTIONS, entities=[NamedNode(each) for each in same], files=Literal(FILES), most=MENTIONS_COUNTED)
    counts: dict[str, dict[str, int]] = {}
    for row in reader.rows("texts that mention it", query):
        if "unit" in row:
            counts.setdefault(iri_of(row["file"]), {})[iri_of(row["unit"])] = int(term_text(row["count"]))
    totals = {file: sum(units.values()) for file, units in counts.items()}
    if sum(totals.values()) >= MENTIONS_COUNTED:
        notes.add(f"It is mentioned very often; {MENTIONS_COUNTED:,} mentions were counted.")
    first = sorted(totals, key=lambda file: (-totals[file], file))[:SHOWN_SOURCES]
    graphs = {file: SOURCED + "files/" + file.removeprefix(FILES) for file in first}
    descriptions = describe(reader, first, graphs.values())
    return [
        SourceFile(
            doc_id=file,
            path=get_path(file),
            mentions=totals[file],
            chunk=min(counts[file], key=lambda unit: (-counts[file][unit], unit)),
            provenance=origin_of(reader, descriptions, graphs[file]),
        )
        for file in first
    ]
