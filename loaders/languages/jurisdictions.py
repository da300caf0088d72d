"""The languages of jurisdictions: that in which a place publishes its law and the record of its parliament."""

from __future__ import annotations

from typing import Final

from pyoxigraph import NamedNode

from kg.vocabulary import iri_prefix

LANGUAGES: Final = {"AU": "en", "AUS": "en", "US": "en", "USA": "en"}
"""By the code of the country (ISO 3166-1). Only countries that publish their law in one language."""
_EXCEPT: Final = frozenset({"US-PR", "US-AS", "US-GU", "US-MP"})
"""Parts of these countries (ISO 3166-2) that publish law in other languages too."""
_PLACES: Final = (iri_prefix("place"), iri_prefix("municipality"))


def find_language(place: NamedNode) -> str | None:
    """Return the language (BCP 47) of the law of a place, by its identifier; None if it is unknown.

    The identifier is that of a country (``AUS``), of a part (``US-UT``), or of a municipality (``us-ut-example``).
    """
    for prefix in _PLACES:
        if place.value.startswith(prefix):
            country, _, rest = place.value.removeprefix(prefix).upper().partition("-")
            part = f"{country}-{rest.partition('-')[0]}"
            return None if part in _EXCEPT else LANGUAGES.get(country)
    return None
