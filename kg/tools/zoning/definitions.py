"""What a term means in a code, with what that rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.fuzzy_names import NEAREST, Choice
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of, text_of
from kg.retrieval.results import Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.tools.zoning.municipalities import MunicipalityName, PageSize, Place, Skipped, StateName, place_named
from kg.tools.zoning.provisions import Found, read_all
from kg.tools.zoning.rule_rows import RuleEvidence
from kg.tools.zoning.term_lookup import having_words, headed, in_line, missing, natural, nearest, spelt, taken_for
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
    in_order = sorted(known, key=lambda each: (natural(each[2]), each[0]))
    choices = [Choice(NamedNode(iri), name, (name,)) for iri, _, name in in_order]
    chosen = spelt(wanted, choices)
    if not chosen and (chosen := headed(wanted, choices) or having_words(wanted, choices)):
        notes.append(_not_defined(wanted, choices, chosen, place))
    elif not chosen:
        raise NotFoundError(missing("term", wanted, _labels(choices), place.shown))
    elif (note := taken_for("term", wanted, chosen)) is not None:
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


def _not_defined(wanted: str, choices: Sequence[Choice], chosen: Sequence[Choice], place: Place) -> str:
    """Return what to tell where the code defines only other terms than the one that is wanted."""
    taken = list(dict.fromkeys(choice.label for choice in chosen))
    others = [name for name in nearest(wanted, _labels(choices)) if name not in taken]
    rest = f" and {len(taken) - NEAREST} more" if len(taken) > NEAREST else ""
    near = f"; near are also: {in_line(others)}" if others else ""
    return f"term: {place.shown} defines no {wanted[:100]!r}; it was taken for {in_line(taken[:NEAREST])}{rest}{near}."


def _labels(choices: Sequence[Choice]) -> list[str]:
    return list(dict.fromkeys(choice.label for choice in choices))
