"""Direct statements of Wikibase entities (``wdt:``): the IRIs and labels of their properties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.retrieval.property_names import find_property, load_property_labels
from kg.retrieval.reader import Reader
from kg.text import quoted
from kg.vocabulary import PREFIXES, SKOS, curie

HIERARCHY: Final = (SKOS.broader, SKOS.narrower, SKOS.related)
"""Links between concepts that are not from a Wikibase."""

_DIRECT: Final = "prop/direct/"
_ENTITY: Final = re.compile(r"(.+/)entity/[QPLM][1-9][0-9]*")
_PROPERTY: Final = re.compile(r"P[1-9][0-9]*")
_ITEM: Final = re.compile(r"[QLM][1-9][0-9]*")


def wikibase_of(entity: str) -> str | None:
    """Get the start of all IRIs of the Wikibase of an entity; None for another IRI."""
    found = _ENTITY.fullmatch(entity)
    return found[1] if found else None


def direct_start(wikibase: str) -> str:
    """Get the start of the IRIs of direct properties of a Wikibase."""
    return wikibase + _DIRECT


def pid_of(predicate: str) -> str:
    """Shorten a predicate: P and a number for a direct property, else a prefixed name."""
    return predicate.rpartition("/")[2] if f"/{_DIRECT}" in predicate else curie(predicate)


def predicate_of(wikibase: str | None, text: str) -> NamedNode:
    """Parse a property id of this Wikibase, a prefixed name, or an IRI.

    Raises InvalidInputError for an item and for an invalid property.
    """
    wanted = text.strip().removeprefix("<").removesuffix(">")
    last = wanted.rpartition("/")[2].rpartition(":")[2].upper()
    if _ITEM.fullmatch(last):
        raise InvalidInputError(
            f"predicates: {last} is an item, not a property. A property has the form P and a number, like P31."
        )
    if _PROPERTY.fullmatch(last) and (wikibase or "://" in wanted):
        base = wikibase_of(wanted) or (wanted.partition("prop/")[0] if "prop/" in wanted else wikibase)
        return NamedNode(direct_start(base or wikibase or "") + last)
    prefix, colon, local = wanted.partition(":")
    if colon and prefix in PREFIXES and re.fullmatch(r"\w+", local):
        return NamedNode(PREFIXES[prefix] + local)
    of = "P and a number, like P31" if wikibase else "one of " + ", ".join(curie(each.value) for each in HIERARCHY)
    raise InvalidInputError(f"predicates: {quoted(text)} is not a property. Pass {of}. concept_properties lists them.")


def property_labels(reader: Reader, predicates: Iterable[str]) -> Mapping[str, str]:
    """Load the labels of those of `predicates` that have one."""
    listed = list(predicates)
    others = {iri: iri.rpartition("#")[2] for iri in listed if find_property(iri) is None}
    return {**others, **load_property_labels(reader, listed)}
