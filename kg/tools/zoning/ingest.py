"""Tools by which agents store parts of codes: sections, permissions, standards and definitions, one record each."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, Literal
from urllib.parse import unquote

from pydantic import Field, WithJsonSchema
from pyoxigraph import NamedNode

from kg import loading
from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import fold
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.provenance import permissions
from kg.retrieval.notes import NoteText
from kg.retrieval.reader import Reader, clean_text
from kg.retrieval.results import Lean, Result
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.text import list_first, quoted
from kg.tools.zoning.name_lookup import MunicipalityName, StateName, find_place, find_section, get_section_key
from kg.vocabulary import EXTRACTED, SOURCED
from kg.zoning_summaries import code_tree

MOST_ENTRIES: Final = 5_000
SHOWN_NOTES: Final = 50
SHOWN_ENTRIES: Final = 200

FOUND: Final = """
SELECT ?name (COUNT(DISTINCT ?thing) AS ?count) WHERE {
  VALUES (?kind ?name) {
    (kg:CrossReference "cross_references") (kg:Definition "definitions") (kg:UsePermission "permissions")
    (kg:DimensionalStandard "standards")
  }
  OPTIONAL { GRAPH $graph { ?thing a ?kind } }
} GROUP BY ?name"""

Kind = Literal["section", "permission", "standard", "definition"]


_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "conditions": _TEXTS, "quotations": _TEXTS, "value": {"anyOf": [_TEXT, {"type": "number"}]},
}  # fmt: skip
"""Schemas of the fields that are not text."""


def _schema(required: str, optional: str) -> WithJsonSchema:
    """Build the JSON schema of a list of entries with these fields.

    It documents the fields only: each entry is validated on its own, so that an invalid one does not reject all.
    """
    fields = {name: _SCHEMAS.get(name, _TEXT) for name in required.split()}
    fields |= {name: {"anyOf": [_SCHEMAS.get(name, _TEXT), {"type": "null"}]} for name in optional.split()}
    entry = {"type": "object", "properties": fields, "required": required.split()}
    return WithJsonSchema({"type": "array", "items": entry})


_MANY: Final = Field(min_length=1, max_length=MOST_ENTRIES)

Permissions = Annotated[
    list[Any], _MANY, _schema("district use permission", "conditions review_section section_ref quotations")
]
Standards = Annotated[list[Any], _MANY, _schema("district standard_type value unit", "section_ref quotations")]
Definitions = Annotated[list[Any], _MANY, _schema("term definition_text", "section_ref quotations")]


class EntryOutcome(Lean):
    """The outcome of one entry."""

    entry: int
    outcome: str = Field(description="stored, unchanged or rejected")
    reason: NoteText | None = None
    graph: str | None = None


class Ingested(Result):
    """The outcome of a call."""

    municipality: str
    state: str
    municipality_iri: str
    fetched_at: str
    sent_by: str
    stored: int
    unchanged: int
    rejected: int
    run: str | None = None
    entries: list[EntryOutcome]


class IngestedSection(Ingested):
    """The outcome of storing a section, and the number of rules extracted from its text."""

    section_id: str | None = None
    iri: str | None = None
    found: dict[str, int] = Field(
        default_factory=dict, description="Number of cross_references, definitions, permissions, standards in its text"
    )


def kg_ingest_code_section(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    section_id: Annotated[str, Field(min_length=1, max_length=500)],
    title: Annotated[str, Field(max_length=2_000)],
    level: Annotated[int | str, Field(description="1 is the top level; or title, chapter, ...")],
    raw_content: Annotated[str, Field(max_length=20_000_000, description="Text or HTML")],
    parent_id: Annotated[str | None, Field(max_length=500)] = None,
    order: Annotated[int | None, Field(ge=0)] = None,
) -> IngestedSection:
    """Store a section and extract cross-references, definitions, permissions and standards from its text.

    Use for law that you fetched, parents first. An existing section is replaced. Needs the scope write. Returns the
    outcome, found (number of each), fetched_at, sent_by.
    Example: kg_ingest_code_section(municipality="Quarry Bend", state="UT", section_id="17.70.010", title="Kilns",
    level="section", raw_content="(a) A kiln is subject to section 17.12.010.", parent_id="17.70").
    Next: `kg_build_summaries`.
    """
    entry = {
        "section_id": section_id, "title": title, "raw_content": raw_content, "parent_id": parent_id, "order": order,
        "level": int(level) if isinstance(level, str) and level.strip().isdecimal() else level,
    }  # fmt: skip
    reader = Reader(kg)
    fields, sections = _receive(reader, "kg_ingest_code_section", municipality, state, "section", [entry])
    [sent] = fields["entries"]
    if sent.outcome == "rejected":
        raise InvalidInputError(f"section_id: {quoted(section_id)} was rejected. {sent.reason}")
    iri = next(iter(sections.values()), None)
    key = None if iri is None else get_section_key(iri)
    result = IngestedSection(**fields, section_id=key, iri=iri, found=_count_extracted(reader, sent.graph))
    return reader.finish(result, total=1)


def kg_ingest_use_permissions(
    kg: KnowledgeGraph, municipality: MunicipalityName, state: StateName, permissions: Permissions
) -> Ingested:
    """Store which uses are permitted in which districts.

    Use for a table of uses. permission is permitted, conditional, prohibited, or the source's own word. An earlier
    entry for the same use, district and section is replaced. Invalid entries only are rejected. Needs the scope write.
    Example: kg_ingest_use_permissions(municipality="Quarry Bend", state="UT", permissions=[{"district": "M-1",
    "use": "Kiln", "permission": "conditional"}]).
    Next: `kg_query_permissions`.
    """
    return _ingest(kg, "kg_ingest_use_permissions", municipality, state, "permission", permissions)


def kg_ingest_dimensional_standards(
    kg: KnowledgeGraph, municipality: MunicipalityName, state: StateName, standards: Standards
) -> Ingested:
    """Store dimensional standards of districts.

    Use for a table of standards. standard_type as in minimum lot area, maximum height. An earlier entry for the same
    type, district and section is replaced. Invalid entries only are rejected. Needs the scope write.
    Example: kg_ingest_dimensional_standards(municipality="Quarry Bend", state="UT", standards=[{"district": "M-1",
    "standard_type": "maximum height", "value": 35, "unit": "feet"}]).
    Next: `kg_query_standards`.
    """
    return _ingest(kg, "kg_ingest_dimensional_standards", municipality, state, "standard", standards)


def kg_ingest_definitions(
    kg: KnowledgeGraph, municipality: MunicipalityName, state: StateName, definitions: Definitions
) -> Ingested:
    """Store definitions of terms in a code.

    Use for a list of definitions. An earlier entry for the same term and section is replaced. Invalid entries only are
    rejected. Needs the scope write.
    Example: kg_ingest_definitions(municipality="Quarry Bend", state="UT", definitions=[{"term": "Chimney",
    "definition_text": "A flue of brick.", "section_ref": "17.08.020"}]).
    Next: `kg_query_definition`.
    """
    return _ingest(kg, "kg_ingest_definitions", municipality, state, "definition", definitions)


def _ingest(
    kg: KnowledgeGraph, tool: str, municipality: str, state: str, kind: Kind, entries: Sequence[Any]
) -> Ingested:
    reader = Reader(kg)
    fields, _ = _receive(reader, tool, municipality, state, kind, entries)
    return reader.finish(Ingested(**fields), total=len(entries))


def _receive(
    reader: Reader, tool: str, municipality: str, state: str, kind: Kind, entries: Sequence[Any]
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Store entries. Returns the fields of the result, and the IRI of each section by its key."""
    name, letters = clean_text("municipality", municipality, 200), state.strip()
    unknown: str | None = None
    try:
        place = find_place(reader, name, state)
        name, letters = place.name, place.short_state or letters
        if kind == "section":
            _refuse_alike(reader.kg, place.iri, entries[0]["section_id"])
        if not place.key.startswith("us-"):
            state = "-".join(place.key.split("-")[:2]).upper()
    except NotFoundError as error:
        unknown = f"A new municipality is created. {error}"
    sent_by = SENDER.get().name
    done = loading.receive(
        reader.kg, tool=tool, municipality=name, state=state, kind=kind, entries=list(entries), sent_by=sent_by
    )
    outcomes = sorted(done["entries"], key=lambda each: (each["outcome"] != "rejected", each["entry"]))
    notes, sections = done.pop("warnings"), done.pop("sections")
    if done.pop("is_new") and unknown is not None:
        notes = [unknown, *notes]
    fields = {
        **done,
        **{name: sum(each["outcome"] == name for each in outcomes) for name in ("stored", "unchanged", "rejected")},
        "state": letters,
        "sent_by": sent_by,
        "entries": [EntryOutcome(**each) for each in outcomes[:SHOWN_ENTRIES]],
        "notes": list_first([str(note)[:500] for note in notes], SHOWN_NOTES, "notes"),
    }
    return fields, sections


def _refuse_alike(kg: KnowledgeGraph, municipality: str, section_id: str) -> None:
    """Raise ForbiddenError if a number is that of a section of the operator in other letters: § 9.2, 9.2., ９.２.

    Readers who write it so would get the text of the caller.
    """
    author = permissions.get_author()
    if author is None:
        return
    tree = code_tree.cached_tree(kg, municipality)
    number = unicodedata.normalize("NFKC", unquote(section_id)).strip().rstrip(".")
    with suppress(NotFoundError, InvalidInputError):
        found = tree.sections[find_section(tree, number)]
        graph = NamedNode(found.graph)
        is_other = get_section_key(found.iri) != section_id.strip() and fold(found.title) != fold(number)
        if is_other and not permissions.find_attributed(kg.store, [graph]):
            permissions.refuse_foreign([graph], author)


def _count_extracted(reader: Reader, graph: str) -> dict[str, int]:
    """Count the rules extracted from the text of a section, by kind."""
    extracted = NamedNode(EXTRACTED + graph.removeprefix(SOURCED))
    rows = reader.rows("rules extracted from its text", bind(FOUND, graph=extracted))
    return {term_text(row["name"]): int(term_text(row["count"])) for row in rows}
