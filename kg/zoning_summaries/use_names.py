"""Names of land uses: what planners call the same use, and the words of a text with these names replaced by one.

The list contains everyday words, not those of any code, and equates only what differs in wording, never what differs in
law, such as a duplex and an accessory dwelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kg.fuzzy_names import fold
from kg.words import singular

_ALIKE: Final = {
    "dwelling": "dwelling unit, residence, residential dwelling, house, home, housing, housing unit, residential unit",
    "one-family": "single family, one family, 1 family, single unit, one unit, single household, detached house, "
    "single family detached, single family home, single family residence, single residence, one residence, "
    "single dwelling, single house",
    "two-family": "two family, 2 family, two unit, 2 unit, duplex, twin home, two residence, double residence",
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
    "religious assembly, religious worship, worship",
    "retail": "retail, retail store, retail shop, retail sale, store, shop",
    "restaurant": "restaurant, cafe, eatery, eating place, eating establishment, eating and drinking establishment",
    "fuel-station": "gas station, gasoline station, filling station, service station, fuel station, petrol station",
    "lodging": "hotel, motel, inn, lodging, lodging house",
    "storage-rental": "self storage, mini storage, self service storage, mini warehouse, storage unit",
    "bank": "bank, financial institution, credit union, savings bank",
    "clinic": "clinic, medical clinic, medical office, doctor s office, dental office",
}
"""Wordings, case-folded and in the singular, by the name that replaces them."""

_WORDINGS: Final = {
    tuple(wording.split()): name for name, wordings in _ALIKE.items() for wording in wordings.split(", ")
}
_QUANTIFIERS: Final = re.compile(r"^\s*\w+ \(\d+\) |\b(?:per|on (?:each|any one)) (?:lot|parcel)\b", re.IGNORECASE)
"""How many of a use there may be: ``One (1) single residence dwelling per lot``."""
_MORE: Final = re.compile(r"(\d)\s*\+")
_LONGEST: Final = max(map(len, _WORDINGS))
_FAMILIES: Final = frozenset({"one-family", "two-family", "three-family", "four-family", "multifamily"})
_HOUSES: Final = frozenset({("house",), ("home",)})
_FIRST: Final = frozenset(wording[0] for wording in _WORDINGS)


def parse_use_kinds(text: str) -> frozenset[str]:
    """Parse the name of a use into words, with the wordings of `_ALIKE` replaced by their names. Order is lost."""
    plain = _MORE.sub(r"\1 or more ", _QUANTIFIERS.sub("", text))
    words = tuple(singular(word) for word in fold(plain).split())
    if words in _HOUSES:
        return frozenset({"one-family", "dwelling"})
    found = {name or words[start] for start, _, name in find_wordings(words)}
    return frozenset(found | {"dwelling"} if found & _FAMILIES else found)


def find_wordings(words: Sequence[str]) -> Iterator[tuple[int, int, str | None]]:
    """Split folded words in the singular at the wordings of `_ALIKE`, the longest first.

    Yields start, end and name of each wording; a word of none is yielded alone, without a name.
    """
    start = 0
    while start < len(words):
        end, name = start + 1, None
        if words[start] in _FIRST:
            for length in range(min(_LONGEST, len(words) - start), 0, -1):
                if (name := _WORDINGS.get(tuple(words[start : start + length]))) is not None:
                    end = start + length
                    break
        yield start, end, name
        start = end
