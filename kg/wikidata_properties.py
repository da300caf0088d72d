"""The properties of Wikidata that have a name without being loaded: id, datatype, label, aliases and description.

They are in ``ontology/reference/wikidata-properties.tsv``. Entity files of Wikidata use hundreds of properties and
describe few of them, so their statements would show numbers only. Nothing here is about other Wikibases, whose numbers
mean other properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg import bundle
from kg.vocabulary import PREFIXES, RDF, RDFS, SCHEMA, SKOS, WD, WIKIBASE

FILE: Final = "reference/wikidata-properties.tsv"
"""Path of the table in the folder of the ontology."""

OBJECTS: Final = frozenset(
    {
        "wikibase-item", "wikibase-property", "wikibase-lexeme", "wikibase-form", "wikibase-sense", "entity-schema",
        "url", "commonsMedia", "geo-shape", "tabular-data",
    }
)  # fmt: skip
"""Datatypes of Wikibase whose values are IRIs."""
DATATYPES: Final = OBJECTS | {
    "string", "external-id", "time", "quantity", "globe-coordinate", "monolingualtext", "math", "musical-notation",
}  # fmt: skip
"""The datatypes of Wikibase."""

LINKS: Final[Mapping[str, str]] = {
    "directClaim": "wdt", "claim": "p", "statementProperty": "ps", "statementValue": "psv", "qualifier": "pq",
    "qualifierValue": "pqv", "reference": "pr", "referenceValue": "prv", "novalue": "wdno",
}  # fmt: skip
"""The links of the vocabulary of Wikibase from a property to its predicates, with the prefixes of these."""
NORMALIZED: Final[Mapping[str, str]] = {
    "directClaimNormalized": "wdtn", "statementValueNormalized": "psn", "qualifierValueNormalized": "pqn",
    "referenceValueNormalized": "prn",
}  # fmt: skip
"""More links of properties whose values have a normalized form."""
_LANGUAGE: Final = "en"


@dataclass(frozen=True, slots=True)
class WikidataProperty:
    """A property of Wikidata. `label` is its name there, `aliases` are other words for it, all in English."""

    id: str
    datatype: str
    label: str
    aliases: Sequence[str]
    description: str

    @property
    def node(self) -> NamedNode:
        """Its entity."""
        return NamedNode(WD.iri + self.id)

    def describe(self) -> Iterator[tuple[NamedNode, NamedNode | Literal]]:
        """Yield its names and its predicates as the model of Wikibase states them, each as predicate and object."""
        yield RDF.type, WIKIBASE.Property
        yield WIKIBASE.propertyType, get_property_type(self.datatype)
        yield RDFS.label, Literal(self.label, language=_LANGUAGE)
        yield SCHEMA.description, Literal(self.description, language=_LANGUAGE)
        for alias in self.aliases:
            yield SKOS.altLabel, Literal(alias, language=_LANGUAGE)
        for link, prefix in get_links(self.datatype).items():
            yield WIKIBASE[link], NamedNode(PREFIXES[prefix] + self.id)


@cache
def load_properties() -> Mapping[str, WikidataProperty]:
    """Load the properties by id, sorted by number."""
    found = {}
    lines = (bundle.folder("ontology") / FILE).read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.startswith("#"):
            name, datatype, label, aliases, description = line.split("\t")
            listed = tuple(aliases.split(" | ")) if aliases else ()
            found[name] = WikidataProperty(name, datatype, label, listed, description)
    return found


def get_links(datatype: str) -> Mapping[str, str]:
    """Get the links of a property with this datatype to its predicates, with the prefixes of these."""
    return {**LINKS, **NORMALIZED} if datatype in ("quantity", "external-id") else LINKS


def get_property_type(datatype: str) -> NamedNode:
    """Get the term for a datatype in the vocabulary of Wikibase: ``wikibase:WikibaseItem`` for wikibase-item."""
    return WIKIBASE[re.sub(r"\W+", "", re.sub(r"(?:^|[ -])(.)", lambda m: m[0].upper(), datatype))]
