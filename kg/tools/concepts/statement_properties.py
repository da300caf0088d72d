"""Direct statements of Wikibase entities (``wdt:``): the IRIs of their properties, and what these are called."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError
from kg.retrieval.concept_index import preference
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.vocabulary import PREFIXES, SKOS, curie

HIERARCHY: Final = (SKOS.broader, SKOS.narrower, SKOS.related)
"""What links concepts that come from no Wikibase."""

_DIRECT: Final = "prop/direct/"
_ENTITY: Final = re.compile(r"(.+/)entity/[QPLM][1-9][0-9]*")
_PROPERTY: Final = re.compile(r"P[1-9][0-9]*")
_ITEM: Final = re.compile(r"[QLM][1-9][0-9]*")

PROPERTY_LABELS: Final = """
SELECT DISTINCT ?property ?label WHERE { VALUES ?property { $properties } ?property rdfs:label ?label }"""


def wikibase_of(entity: str) -> str | None:
    """Return what all IRIs of the Wikibase of an entity start with; None for what is no entity."""
    found = _ENTITY.fullmatch(entity)
    return found[1] if found else None


def direct_start(wikibase: str) -> str:
    """Return what the direct properties of a Wikibase start with."""
    return wikibase + _DIRECT


def pid_of(predicate: str) -> str:
    """Return what a predicate is called by: P and a number of a direct property, a prefixed name of any other."""
    return predicate.rpartition("/")[2] if f"/{_DIRECT}" in predicate else curie(predicate)


def predicate_of(wikibase: str | None, text: str) -> NamedNode:
    """Return the predicate that `text` names: a property id of this Wikibase, a prefixed name, or an IRI.

    Raises InvalidInputError for an item, and for what is no property.
    """
    wanted = text.strip().removeprefix("<").removesuffix(">")
    last = wanted.rpartition("/")[2].rpartition(":")[2].upper()
    if _ITEM.fullmatch(last):
        raise InvalidInputError(
            f"predicates: {last} is an item, not a property; a property is P and a number, like P31"
        )
    if _PROPERTY.fullmatch(last) and (wikibase or "://" in wanted):
        base = wikibase_of(wanted) or (wanted.partition("prop/")[0] if "prop/" in wanted else wikibase)
        return NamedNode(direct_start(base or wikibase or "") + last)
    prefix, colon, local = wanted.partition(":")
    if colon and prefix in PREFIXES and re.fullmatch(r"\w+", local):
        return NamedNode(PREFIXES[prefix] + local)
    of = "P and a number, like P31" if wikibase else "one of " + ", ".join(curie(each.value) for each in HIERARCHY)
    raise InvalidInputError(f"predicates: {text[:100]!r} is no property; it is {of}; concept_properties lists them")


def property_labels(reader: Reader, predicates: Iterable[str]) -> Mapping[str, str]:
    """Return what those of `predicates` are called that have a name in the graph."""
    entities: dict[str, str] = {}
    labels: dict[str, str] = {}
    for predicate in predicates:
        base, direct, pid = predicate.partition(f"/{_DIRECT}")
        if direct:
            entities[f"{base}/entity/{pid}"] = predicate
        else:
            labels[predicate] = predicate.rpartition("#")[2]
    labels |= _names(reader, entities)
    return labels


def _names(reader: Reader, entities: Mapping[str, str]) -> Mapping[str, str]:
    """Return the names of properties, given as entities with their predicates; what is known since the last commit
    is not asked for again.
    """
    memory, generation = reader.kg.memory, reader.kg.store.statistics().generation
    known = {iri: memory.get(("name of a property", iri, generation)) for iri in entities}
    missing = sorted(iri for iri, name in known.items() if name is None)
    if missing:
        names: dict[str, list[Literal]] = defaultdict(list)
        query = bind(PROPERTY_LABELS, properties=[NamedNode(iri) for iri in missing])
        for row in reader.rows("names of properties", query):
            if isinstance(row["label"], Literal):
                names[iri_of(row["property"])].append(row["label"])
        settled = reader.kg.store.statistics().generation == generation
        for iri in missing:
            known[iri] = (min(names[iri], key=preference).value,) if iri in names else ()
            if settled:
                memory.keep(("name of a property", iri, generation), known[iri])
    return {entities[iri]: name[0] for iri, name in known.items() if name}
