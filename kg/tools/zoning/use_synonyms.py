"""Words that codes use for the same kinds of uses: what people call a house is a single-family dwelling in one code
and ``1-Family`` in another. Pure.

The list is of planners' everyday words, not of any code's. It brings together only what differs in wording, never what
differs in law, such as a duplex and an accessory dwelling.
"""

from __future__ import annotations

import re
from typing import Final

from kg.retrieval.fuzzy_names import folded
from kg.sparql.schema_index import singular

_ALIKE: Final = {
    "dwelling": "dwelling unit, residence, residential dwelling, house, home, housing, housing unit, residential unit",
    "one-family": "single family, one family, 1 family, single unit, one unit, single household, detached house, "
    "single family detached, single family home, single family residence",
    "two-family": "two family, 2 family, two unit, 2 unit, duplex, twin home",
    "three-family": "three family, 3 family, three unit, 3 unit, triplex",
    "four-family": "four family, 4 family, four unit, 4 unit, fourplex, quadplex, quadruplex",
    "multifamily": "multi family, multiple family, multi unit, multiple unit, multifamily building, apartment, "
    "apartment building, apartment house, apartment complex, 4 family or more, 4 or more family, 5 family or more, "
    "5 or more family",
    "row-house": "townhouse, town house, townhome, town home, row house, rowhouse, row home, attached dwelling",
    "accessory-dwelling": "accessory dwelling unit, accessory dwelling, adu, accessory apartment, in law apartment, "
    "in law suite, mother in law apartment, mother in law unit, granny flat, secondary dwelling, second unit, "
    "secondary suite",
    "manufactured-home": "mobile home, manufactured home, manufactured housing, manufactured dwelling, trailer home",
    "home-occupation": "home occupation, home business, home based business, home office, cottage industry",
    "child-care": "day care, daycare, child care, childcare, day care center, daycare center, child care center, "
    "child day care, child day care center, nursery school, preschool",
    "worship": "church, place of worship, house of worship, religious institution, mosque, synagogue, temple, "
    "religious assembly",
    "retail": "retail, retail store, retail shop, retail sale, store, shop",
    "restaurant": "restaurant, cafe, eatery, eating place, eating establishment, eating and drinking establishment",
    "fuel-station": "gas station, gasoline station, filling station, service station, fuel station, petrol station",
    "lodging": "hotel, motel, inn, lodging, lodging house",
    "storage-rental": "self storage, mini storage, self service storage, mini warehouse, storage unit",
    "bank": "bank, financial institution, credit union, savings bank",
    "clinic": "clinic, medical clinic, medical office, doctor s office, dental office",
}
"""By the name used here, the folded wordings in the singular."""

_WORDINGS: Final = {
    tuple(wording.split()): name for name, wordings in _ALIKE.items() for wording in wordings.split(", ")
}
_MORE: Final = re.compile(r"(\d)\s*\+")
_LONGEST: Final = max(map(len, _WORDINGS))
_FAMILIES: Final = frozenset({"one-family", "two-family", "three-family", "four-family", "multifamily"})
_HOUSES: Final = frozenset({("house",), ("home",)})


def kinds(text: str) -> frozenset[str]:
    """Return what `text` is about: words, and names of this list where its wordings stand; their order is lost."""
    words = tuple(singular(word) for word in folded(_MORE.sub(r"\1 or more ", text)).split())
    if words in _HOUSES:
        return frozenset({"one-family", "dwelling"})
    found: set[str] = set()
    start = 0
    while start < len(words):
        for length in range(min(_LONGEST, len(words) - start), 0, -1):
            if (name := _WORDINGS.get(words[start : start + length])) is not None:
                found.add(name)
                start += length
                break
        else:
            found.add(words[start])
            start += 1
    return frozenset(found | {"dwelling"} if found & _FAMILIES else found)
