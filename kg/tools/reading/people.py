"""A person to be read about: names, memberships over time, speeches by year, votes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Statement
from kg.retrieval.speech_records import Speech, labels_of, load_spans, load_speeches, load_texts
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import quoted
from kg.tools.parliament.speakers import Counted, speech_stats
from kg.tools.parliament.votes import HowVoted, how_voted
from kg.tools.reading.facts import list_texts, load_facts
from kg.vocabulary import DCTERMS, DERIVED, FOAF, KG, ORG, OWL, SCHEMA, SKOS

SPEECHES: Final = 30
"""Speeches on a page."""
OPENING: Final = 90
"""Characters of the first words of a speech."""
VOTES: Final = 30
"""Divisions on a page."""
COUNTED: Final = 10_000
"""Maximum number of speeches that are counted and sorted. Truncation is reported."""

NAMES: Final = (FOAF.name, SKOS.altLabel, DCTERMS.identifier, KG.identityStatus, OWL.sameAs, SKOS.exactMatch)

MEMBERSHIPS: Final = """
SELECT DISTINCT ?membership ?graph ?property ?value WHERE {
  ?membership org:member $person
  GRAPH ?graph { ?membership ?property ?value }
  FILTER(?property IN (org:organization, org:role, kg:represents, kg:representedState, kg:affiliationAsRecorded,
                       schema:startDate, schema:endDate, kg:firstSeen, kg:lastSeen))
}"""

SPEECHES_OF: Final = """
SELECT ?speech ?date ?position WHERE {
  ?speech kg:speaker $person ; a kg:Speech . ?speech dcterms:date ?date OPTIONAL { ?speech schema:position ?position }
} LIMIT $most"""


@dataclass(frozen=True, slots=True)
class Membership:
    """Membership of a chamber, party or other organization, in the words of its source or as speeches show it."""

    iri: str
    graph: str
    organization: str
    name: str
    kind: str
    """``chamber``, ``party`` or ``organization``."""
    role: str | None
    represents: str | None
    represents_name: str | None
    first: str | None
    """First day, as recorded: a year, a month or a day."""
    last: str | None
    """Last day; None of a current one, and where none is recorded."""
    derived: bool
    """Whether the days are only those of its first and last speech."""
    party: str | None = None
    """The party as recorded with a seat."""


@dataclass(frozen=True, slots=True)
class PersonPage:
    """A person."""

    iri: str
    name: str
    names: Sequence[str]
    """Other names, as recorded."""
    facts: Mapping[NamedNode, Sequence[Term]]
    memberships: Sequence[Membership]
    years: Sequence[Counted]
    speeches: Sequence[Speech]
    openings: Mapping[str, str]
    """The first words of those without a title, by IRI."""
    speeches_total: int
    speeches_cut: bool
    page: int
    votes: HowVoted
    votes_total: int
    votes_page: int
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)

    @property
    def most(self) -> int:
        """The largest number of speeches in a year, for bars."""
        return max((year.speeches for year in self.years), default=0)


def read_person(kg: KnowledgeGraph, iri: str, page: int = 1, votes_page: int = 1) -> PersonPage:
    """Load a person by IRI. Raises NotFoundError for others and for a page that does not exist."""
    reader, node = Reader(kg), NamedNode(iri)
    facts = load_facts(reader, iri, NAMES, "names of the person")
    if not facts:
        raise NotFoundError(f"{quoted(iri)} is not a person with a name.")
    names = list_texts(facts, FOAF.name, SKOS.altLabel)

    def read(rows: list[dict[str, Term]]) -> list[tuple[str, int, str]]:
        found = {}
        for row in rows:
            position = int(term_text(row["position"])) if "position" in row else 0
            found[iri_of(row["speech"])] = (term_text(row["date"]), position)
        return sorted(((date, position, each) for each, (date, position) in found.items()), reverse=True)

    found = reader.kept("speeches of the person", bind(SPEECHES_OF, person=node, most=COUNTED + 1), read)
    start = (page - 1) * SPEECHES
    if page < 1 or (page > 1 and start >= len(found)):
        raise NotFoundError(f"Page {page} of the speeches does not exist.")
    shown = [each for _, _, each in found[start : start + SPEECHES]]
    loaded = load_speeches(reader, shown)
    untitled = [each for each in shown if each in loaded and not loaded[each].one(DCTERMS.title)]
    # A speaker whom no list of the source names has only the names that the record uses.
    names = names or sorted({text for each in loaded.values() for text in each.all(KG.speakerAsRecorded)})
    name = min((term_text(term) for term in facts.get(FOAF.name, ())), default=names[0] if names else code_of(iri))
    years = list(speech_stats(kg, group_by="year", speaker=iri, limit=200).groups) if found else []
    votes = how_voted(kg, person=iri, limit=VOTES, offset=(votes_page - 1) * VOTES)
    return PersonPage(
        iri=iri,
        name=name,
        names=[each for each in names if each != name],
        facts=facts,
        memberships=_load_memberships(reader, node),
        years=years,
        speeches=[loaded[each] for each in shown if each in loaded],
        openings=_load_openings(reader, untitled),
        speeches_total=min(len(found), COUNTED),
        speeches_cut=len(found) > COUNTED,
        page=page,
        votes=votes,
        votes_total=votes.meta.total or 0,
        votes_page=votes_page,
        generation=reader.kg.generation,
        queries=[*reader.ran, *votes.meta.sparql],
    )


def _load_openings(reader: Reader, speeches: Sequence[str]) -> dict[str, str]:
    """Load the first words of speeches."""
    first = {iri: spans[0].iri for iri, spans in load_spans(reader, speeches).items() if spans} if speeches else {}
    texts = load_texts(reader, list(first.values())) if first else {}
    return {
        iri: textwrap.shorten(texts[unit], OPENING, placeholder=" …") for iri, unit in first.items() if unit in texts
    }


def _load_memberships(reader: Reader, person: NamedNode) -> list[Membership]:
    """Load the memberships of a person, the latest first."""
    said: dict[str, dict[NamedNode, Term]] = {}
    graphs: dict[str, str] = {}
    for row in reader.rows("memberships", bind(MEMBERSHIPS, person=person)):
        iri = iri_of(row["membership"])
        graphs[iri] = iri_of(row["graph"])
        said.setdefault(iri, {})[NamedNode(iri_of(row["property"]))] = row["value"]
    linked = {term.value for values in said.values() for term in values.values() if isinstance(term, NamedNode)}
    labels = labels_of(reader, linked)

    def name_of(term: Term | None) -> str | None:
        if term is None:
            return None
        return labels.get(term_text(term), {}).get(SKOS.prefLabel) or code_of(term_text(term))

    def text_of(values: Mapping[NamedNode, Term], *properties: NamedNode) -> str | None:
        return next((term_text(values[name]) for name in properties if name in values), None)

    found = []
    for iri, values in said.items():
        organization = values.get(ORG.organization)
        if organization is None:
            continue
        path = term_text(organization).partition("/id/")[2].partition("/")[0]
        place = values.get(KG.represents) or values.get(KG.representedState)
        found.append(
            Membership(
                iri=iri,
                graph=graphs[iri],
                organization=term_text(organization),
                name=name_of(organization) or "",
                kind=path if path in ("chamber", "party") else "organization",
                role=name_of(values.get(ORG.role)),
                represents=None if place is None else term_text(place),
                represents_name=name_of(place),
                first=text_of(values, SCHEMA.startDate, KG.firstSeen),
                last=text_of(values, SCHEMA.endDate, KG.lastSeen),
                derived=graphs[iri].startswith(DERIVED),
                party=text_of(values, KG.affiliationAsRecorded),
            )
        )
    found.sort(key=lambda each: (each.kind, each.derived, _reverse(each.first), each.name))
    return found


def _reverse(date: str | None) -> tuple[int, ...]:
    """Build a key that sorts later days first."""
    return tuple(-ord(character) for character in date or "")
