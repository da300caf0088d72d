"""A law or policy family to be read about: its documents, and the texts of all domains that cite it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.retrieval.results import Statement
from kg.text import quoted
from kg.tools.climate.families import LineageResult, policy_lineage
from kg.tools.entities.dereference import names_of, short_name
from kg.tools.reading.documents import CitedBy, load_cited_by
from kg.tools.reading.facts import list_texts, load_facts
from kg.vocabulary import DCTERMS, KG, iri_prefix

DOCUMENTS: Final = 50
"""Documents of a family on a page."""

FACTS: Final = (DCTERMS.title, DCTERMS.identifier, KG.jurisdiction, KG.lawType, KG.isLaw)

_FAMILIES: Final = iri_prefix("family")


@dataclass(frozen=True, slots=True)
class Linked:
    """A node that a law is linked to, with its name."""

    iri: str
    name: str


@dataclass(frozen=True, slots=True)
class LawPage:
    """A law or a policy family."""

    iri: str
    title: str
    identifiers: Sequence[str]
    places: Sequence[Linked]
    kinds: Sequence[Linked]
    laws: Sequence[Linked]
    """The law that a family is."""
    lineage: LineageResult | None
    """The documents of a family, and how they amend each other."""
    page: int
    cited_by: CitedBy
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)


def read_law(kg: KnowledgeGraph, iri: str, page: int = 1, citing_page: int = 1) -> LawPage:
    """Load a law or policy family by IRI. Raises NotFoundError for others."""
    reader, node = Reader(kg), NamedNode(iri)
    facts = load_facts(reader, iri, FACTS, "properties of the law")
    lineage = None
    if iri.startswith(_FAMILIES):
        lineage = policy_lineage(kg, family_slug=iri, limit=DOCUMENTS, offset=(page - 1) * DOCUMENTS)
    elif not facts:
        raise NotFoundError(f"{quoted(iri)} is not a law that is known.")
    names = names_of(kg, [each.value for some in facts.values() for each in some if isinstance(each, NamedNode)])

    def links(name: NamedNode) -> list[Linked]:
        nodes = [term.value for term in facts.get(name, ()) if isinstance(term, NamedNode)]
        return [Linked(each, names.get(each) or short_name(each)) for each in sorted(nodes)]

    titles, identifiers = list_texts(facts, DCTERMS.title), list_texts(facts, DCTERMS.identifier)
    title = lineage.family_title if lineage is not None else next(iter([*titles, *identifiers]), short_name(iri))
    return LawPage(
        iri=iri,
        title=title,
        identifiers=[each for each in identifiers if each != title],
        places=links(KG.jurisdiction),
        kinds=links(KG.lawType),
        laws=links(KG.isLaw),
        lineage=lineage,
        page=page,
        cited_by=load_cited_by(reader, node, citing_page),
        generation=reader.kg.generation,
        queries=[*(lineage.meta.sparql if lineage is not None else ()), *reader.ran],
    )
