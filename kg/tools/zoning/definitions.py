"""What a term means in a code, with what that rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.tools.budget import Lean
from kg.tools.model import Result
from kg.tools.names import Choice
from kg.tools.reading import Reader, bounded_page, clean_text, iri_of, page_of, text_of
from kg.tools.zoning.names import matching, missing, natural, taken_for
from kg.tools.zoning.places import MunicipalityName, PageSize, Skipped, StateName, place_named
from kg.tools.zoning.provisions import Found, read_all
from kg.tools.zoning.rules import RuleEvidence
from kg.vocabulary import KG, SKOS

DEFINITIONS: Final = """
SELECT ?definition ?graph ?term WHERE {
  ?definition kg:jurisdiction $municipality ; a kg:Definition GRAPH ?graph { ?definition skos:prefLabel ?term }
}"""


class TermDefinition(Lean):
    """What a code says that a term means in it."""

    term: str
    definition_text: str
    section_ref: str | None = None
    evidence: RuleEvidence


class DefinitionResult(Result):
    """Definitions of a term, one for each place that has one."""

    municipality: str
    state: str
    definitions: list[TermDefinition]


def kg_query_definition(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    term: Annotated[str, Field(max_length=300)],
    limit: PageSize = 20,
    offset: Skipped = 0,
) -> DefinitionResult:
    """Look up what a term means in a code.

    Use before reading a rule closely. Returns definitions: term, definition_text, section_ref, evidence; several
    sections may define it differently.
    Example: kg_query_definition(municipality="Quarry Bend", state="UT", term="building height").
    Next: `kg_query_section` with the section_ref.
    """
    bounded_page(limit, offset)
    reader, notes = Reader(kg), list[str]()
    place = place_named(reader, municipality, state)
    wanted = clean_text("term", term, 300)

    def read(rows: Sequence[Mapping[str, Term]]) -> list[tuple[str, str, str]]:
        return [(iri_of(row["definition"]), iri_of(row["graph"]), text_of(row["term"])) for row in rows]

    reader.ran.clear()
    known = reader.kept("terms that are defined", bind(DEFINITIONS, municipality=NamedNode(place.iri)), read)
    choices = [Choice(NamedNode(iri), name, (name,)) for iri, _, name in known]
    chosen = matching(wanted, choices)
    if not chosen:
        raise NotFoundError(missing("term", wanted, [name for _, _, name in known], place.shown))
    chosen.sort(key=lambda choice: (natural(choice.label), choice.term.value))
    if (note := taken_for("term", wanted, chosen)) is not None:
        notes.append(note)
    graphs = {iri: graph for iri, graph, _ in known}
    found = [Found(choice.term.value, graphs[choice.term.value], None, choice.label) for choice in chosen]
    definitions = [
        TermDefinition(
            term=each.about,
            definition_text=rule.one(SKOS.definition) or "",
            section_ref=rule.section(KG.definedIn),
            evidence=evidence,
        )
        for each, rule, evidence in read_all(reader, found[offset : offset + limit])
    ]
    if len({each.definition_text for each in definitions}) > 1 and len({each.term for each in definitions}) == 1:
        notes.append("The code defines this term in several ways; each holds where its section says.")
    return reader.finish(
        DefinitionResult(municipality=place.name, state=place.short_state, definitions=definitions, notes=notes),
        total=len(found),
        next_offset=page_of(found, offset, limit),
    )
