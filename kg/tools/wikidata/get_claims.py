"""The tool `wikidata.get_claims`: claims of one or several entities, with rank, qualifiers, references and GUID."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kg.connectors.wikidata_texts import RemoteClaims
from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, bounded_page, page_of
from kg.retrieval.results import Identifier, Layout, Lean, Limit, Offset, Result
from kg.text import quoted
from kg.tools.wikidata.claims import ENTITIES_AT_ONCE, Claim, Entity, Origin, load_claims, load_entities
from kg.tools.wikidata.entity_ids import id_of, parse_entity, parse_property, show
from kg.tools.wikidata.remote import Remote, to_claims


class ClaimedEntity(Lean):
    """An entity whose claims were asked for."""

    qid: str
    label: str | None = None
    description: str | None = None
    redirected_from: str | None = Field(None, description="The id that was asked for, which was merged into this one")
    claims: int = Field(description="Number of its claims, of the properties that were asked for")
    source: Origin = Field(description="local: loaded from a file; remote: stored from the answer of another server")
    retrieved: str | None = Field(None, description="When its record was read")
    graph: str | None = Field(None, description="Named graph that states the claims; absent if none does")


class UnknownEntity(Lean):
    """An id of which the graph has no claims, with a hint."""

    id: str
    hint: NoteText


class ClaimResult(Result):
    """Claims, in the order of the ids, then by property and rank."""

    layout: ClassVar[Layout] = Layout(paged=("claims",))

    entities: list[ClaimedEntity]
    claims: list[Claim]
    not_found: list[UnknownEntity] = Field(default_factory=list)
    degraded: Literal["local"] | None = Field(None, description="local: a remote source did not answer")


def get_claims(
    kg: KnowledgeGraph,
    qids: Annotated[
        list[Identifier], Field(min_length=1, max_length=ENTITIES_AT_ONCE, description="QIDs of Wikidata, or IRIs")
    ],
    properties: Annotated[list[Identifier] | None, Field(max_length=50, description='Only these, e.g. ["P19"]')] = None,
    best: Annotated[bool, Field(description="Only those of the best rank of each property")] = False,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ClaimResult:
    """Get the claims of Wikidata entities, each with its GUID, rank, qualifiers and references.

    Use to cite a fact. Returns claims: qid, guid, property, property_label, value{type, value, label, unit, precision},
    rank, best, qualifiers, references; entities: qid, label, claims, source (local, remote), retrieved. A claim of rank
    deprecated is known to be wrong. Value type somevalue: there is one, unknown; novalue: there is none.
    Example: wikidata.get_claims(qids=["Q900000001"], properties=["P19", "P569"]).
    Next: `wikidata.sparql` to join claims; `verify_fact` to check a sentence.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    wanted = list(dict.fromkeys(parse_entity("qids", qid) for qid in qids))
    pids = None if properties is None else {parse_property("properties", each) for each in properties}
    found = load_entities(reader, wanted, pids)
    remote = Remote(kg)
    if remote.store([iri for iri in wanted if iri not in found]):
        found = load_entities(reader, wanted, pids)
    texts = {iri: text for iri in wanted if iri not in found and (text := remote.read(iri, pids)) is not None}
    stated = [claim for text in texts.values() for claim in to_claims(text) if claim.best or not best]
    missing = [UnknownEntity(id=show(iri), hint=_hint(kg, iri)) for iri in wanted if iri not in {*found, *texts}]
    if not found and not texts:
        raise NotFoundError("qids: " + " ".join([*(each.hint for each in missing[:5]), *remote.notes]))
    entities = list({found[iri].iri: found[iri] for iri in wanted if iri in found}.values())
    statements = [each for entity in entities for each in entity.statements if each.best or not best]
    counts = Counter(each.entity for each in statements)
    claims = load_claims(reader, statements[offset : offset + limit])
    claims += stated[max(0, offset - len(statements)) : max(0, offset + limit - len(statements))]
    result = ClaimResult(
        entities=[
            *(_shown(entity, counts[entity.iri]) for entity in entities),
            *(_shown_text(iri, text) for iri, text in texts.items()),
        ],
        claims=claims,
        not_found=missing,
        degraded="local" if remote.has_failed else None,
        notes=[*_list_notes(entities, [*statements, *texts], pids), *remote.notes],
    )
    listed = [*statements, *stated]
    return reader.finish(result, total=len(listed), next_offset=page_of(listed, offset, limit))


def _shown_text(iri: str, found: RemoteClaims) -> ClaimedEntity:
    """Describe an entity whose claims a server stated in a text that is not stored."""
    return ClaimedEntity(
        qid=show(iri),
        label=found.claims[0].entity_label or None,
        claims=len(found.claims),
        source="remote",
        retrieved=found.retrieved,
    )


def _shown(entity: Entity, claims: int) -> ClaimedEntity:
    return ClaimedEntity(
        qid=show(entity.iri),
        label=entity.label,
        description=entity.description,
        redirected_from=show(entity.asked) if entity.redirected else None,
        claims=claims,
        source=entity.origin,
        retrieved=entity.retrieved,
        graph=entity.graph,
    )


def _list_notes(entities: Sequence[Entity], statements: Sequence[object], properties: set[str] | None) -> list[str]:
    notes = [
        f"{show(entity.asked)} was merged into {show(entity.iri)}: these are the claims of {show(entity.iri)}."
        for entity in entities
        if entity.redirected
    ]
    if not statements:
        of = "" if properties is None else f" of {', '.join(sorted(properties))}"
        notes.append(f"No claims{of} are recorded here. Without properties, all claims are listed.")
    return notes


def _hint(kg: KnowledgeGraph, iri: str) -> str:
    name = id_of(iri)
    if "://" in show(iri):
        return "No graph describes it. Load that Wikibase with kg load wikibase FILE --base URL."
    near = "`wikidata.vector_search_items` finds the items that are here by name."
    if name.startswith("P"):
        near = "`wikidata.vector_search_properties` finds the properties that are here by name."
    return f"Wikidata's {quoted(name)} is not in this graph. {near} A file of it is loaded with kg load wikibase FILE."
