"""Ids of Wikidata entities as arguments: ``Q42``, ``wd:Q42``, an IRI. A bare id is Wikidata's."""

from __future__ import annotations

import re
from typing import Final

from kg.errors import InvalidInputError
from kg.sparql.terms import is_iri
from kg.text import quoted
from kg.vocabulary import PREFIXES, WD

_ID: Final = re.compile(r"[QPLM][1-9][0-9]{0,18}", re.IGNORECASE)
_BROKEN: Final = re.compile(r"([QPLM])[\s:_\-]*0*([1-9][0-9]{0,18})", re.IGNORECASE)
_ENTITY: Final = re.compile(r"https?://[^\s<>]+/entity/[QPLM][1-9][0-9]*")
_WIKIDATA_PAGE: Final = re.compile(
    r"https?://(?:www\.|m\.)?wikidata\.org/(?:wiki(?:/Property:|/Lexeme:|/Special:EntityData/|/)|entity/)"
    r"([QPLM][1-9][0-9]*)(?:\.[a-z]+)?/?",
    re.IGNORECASE,
)
_PROPERTY_PATHS: Final = re.compile(re.escape(WD.iri.removesuffix("entity/")) + r"prop/(?:[a-z-]+/)*(P[1-9][0-9]*)")


def parse_entity(argument: str, text: str) -> str:
    """Parse the id of an entity of Wikidata, or the IRI of one of any Wikibase; return its IRI.

    Lower case and blanks around it are accepted. Raises InvalidInputError that names valid forms.
    """
    wanted = _expand(text)
    if _ID.fullmatch(wanted):
        return WD.iri + wanted.upper()
    if page := _WIKIDATA_PAGE.fullmatch(wanted):
        return WD.iri + page[1].upper()
    if _ENTITY.fullmatch(wanted) and is_iri(wanted):
        return wanted
    if broken := _BROKEN.fullmatch(wanted):
        raise InvalidInputError(
            f"{argument}: {quoted(text)} is not an id. Write it without blanks and zeros: "
            f"{broken[1].upper()}{broken[2]}."
        )
    if wanted.startswith("cpr://concept/"):
        raise InvalidInputError(
            f"{argument}: {quoted(text)} is a concept of the concept store, not an entity of Wikidata. "
            "`concept_find` and `concept_neighbors` read it. Here a QID is Wikidata's; other Wikibases take the IRI "
            "of an entity, as in https://HOST/entity/Q42."
        )
    raise InvalidInputError(
        f"{argument}: {quoted(text)} is not the id of an entity. Pass Q and a number (Q42), P and a number for a "
        "property, or an IRI as in https://HOST/entity/Q42. `wikidata.vector_search_items` finds ids by name."
    )


def parse_property(argument: str, text: str) -> str:
    """Parse the id of a property, as `parse_entity` does. Returns its id. Raises InvalidInputError for an item."""
    if path := _PROPERTY_PATHS.fullmatch(_expand(text)):
        return path[1]
    found = parse_entity(argument, text).rpartition("/")[2]
    if not found.startswith("P"):
        raise InvalidInputError(
            f"{argument}: {found} is an item, not a property. A property has the form P and a number, like P31. "
            "`wikidata.vector_search_properties` finds them by name."
        )
    return found


def id_of(iri: str) -> str:
    """Get the short id of an entity: the last part of the IRI."""
    return iri.rpartition("/")[2]


def show(iri: str) -> str:
    """Get the id of an entity as tools show and accept it: short for Wikidata's, the IRI for any other Wikibase."""
    return iri.removeprefix(WD.iri)


def to_iri(shown: str) -> str:
    """Get the IRI of an entity that `show` has shortened."""
    return shown if "://" in shown else WD.iri + shown


def _expand(text: str) -> str:
    wanted = text.strip().removeprefix("<").removesuffix(">").strip()
    prefix, colon, local = wanted.partition(":")
    return PREFIXES[prefix] + local if colon and prefix in PREFIXES and not local.startswith("//") else wanted
