"""What sources state about an entity: the values of some of its properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import quoted
from kg.vocabulary import KG, SCHEMA, SKOS, iri_prefix

STATED: Final = """
SELECT DISTINCT ?property ?value WHERE { VALUES ?property { $properties } $thing ?property ?value }"""

Facts = Mapping[NamedNode, Sequence[Term]]

_DISTRICT: Final = iri_prefix("district")
_MUNICIPALITY: Final = iri_prefix("municipality")


def load_facts(reader: Reader, iri: str, properties: Sequence[NamedNode], purpose: str) -> Facts:
    """Load the values of some properties of an entity; `purpose` describes them."""
    found: dict[NamedNode, list[Term]] = {}
    for row in reader.rows(purpose, bind(STATED, thing=NamedNode(iri), properties=properties)):
        found.setdefault(NamedNode(iri_of(row["property"])), []).append(row["value"])
    return found


def list_texts(facts: Facts, *properties: NamedNode) -> list[str]:
    """List the values of some properties as texts, sorted."""
    return sorted({term_text(term) for name in properties for term in facts.get(name, ())})


@dataclass(frozen=True, slots=True)
class DistrictFacts:
    """A zoning district, without its rules."""

    municipality: str
    """The IRI of the municipality."""
    state: str
    """The code of its state, as in the key of the municipality: ut."""
    code: str
    name: str
    category: str
    facts: Sequence[str]
    """Statements of a table of districts about it, as ``column: value``."""


def read_district(reader: Reader, iri: str) -> DistrictFacts:
    """Load a district by IRI. Raises NotFoundError for one without a municipality."""
    names = (KG.jurisdiction, SKOS.notation, SKOS.prefLabel, KG.category, KG.districtFact)
    facts = load_facts(reader, iri, names, "the district")
    towns = [town for town in list_texts(facts, KG.jurisdiction) if town.startswith(_MUNICIPALITY)]
    key = iri.removeprefix(_DISTRICT).partition("/")[0]
    if not facts or not iri.startswith(_DISTRICT):
        raise NotFoundError(f"{quoted(iri)} is not a district that is known.")
    return DistrictFacts(
        municipality=towns[0] if towns else _MUNICIPALITY + key,
        state=key.split("-")[1] if key.count("-") > 1 else "",
        code=next(iter(list_texts(facts, SKOS.notation)), code_of(iri)),
        name=next(iter(list_texts(facts, SKOS.prefLabel)), ""),
        category=", ".join(list_texts(facts, KG.category)),
        facts=list_texts(facts, KG.districtFact),
    )


@dataclass(frozen=True, slots=True)
class PartyFacts:
    """The names of a party, and the year in which it was founded."""

    name: str
    names: Sequence[str]
    founded: str


def read_party(reader: Reader, iri: str) -> PartyFacts:
    """Load a party by IRI. Raises NotFoundError for one without a name."""
    facts = load_facts(reader, iri, (SKOS.prefLabel, SKOS.altLabel, SKOS.notation, SCHEMA.foundingDate), "the party")
    english = [term for term in facts.get(SKOS.prefLabel, ()) if getattr(term, "language", None) in (None, "en")]
    name = min(map(term_text, english or facts.get(SKOS.prefLabel, ())), default="")
    if not name:
        raise NotFoundError(f"{quoted(iri)} is not a party with a name.")
    others = list_texts(facts, SKOS.notation, SKOS.prefLabel, SKOS.altLabel)
    founded = next(iter(list_texts(facts, SCHEMA.foundingDate)), "")
    return PartyFacts(name, [each for each in others if each != name], founded)
