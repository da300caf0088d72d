"""Countries and their subdivisions by ISO 3166: codes, parents, and names, also those in general use (`UK`).

A country is known by its alpha-3 code (USA), a subdivision by its ISO 3166-2 code (US-UT).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pycountry

from kg.fuzzy_names import fold

ABBREVIATED: Final = frozenset({"AUS", "CAN", "USA"})
"""Countries whose subdivisions are generally called by the last part of their codes: NSW, BC, UT."""
_SHORT: Final = {
    "CIV": ("Ivory Coast",), "COD": ("Democratic Republic of the Congo", "DR Congo"), "COG": ("Republic of the Congo",),
    "CPV": ("Cape Verde",), "GBR": ("UK", "Great Britain", "Britain"), "PRK": ("North Korea",), "RUS": ("Russia",),
    "SWZ": ("Swaziland",), "TUR": ("Turkey",), "USA": ("U.S.", "U.S.A."), "VAT": ("Vatican",),
    "US-VI": ("United States Virgin Islands",), "US-DC": ("Washington, D.C.",),
}  # fmt: skip
"""Names in general use that ISO 3166 does not list."""
_BRACKETS: Final = re.compile(r"(?P<name>[^\[]*[^\[\s])\s*+\[(?P<other>[^\]]+)\]")
_CODE: Final = re.compile(r"(?:(?<!\s)\s++)?\b[A-Z]{2}-[A-Z0-9]{1,3}$")
"""ISO 3166-2 has a name in another language, the code of the subdivision, or both in brackets behind some names."""
_SAME: Final = {"US-AS": "ASM", "US-GU": "GUM", "US-MP": "MNP", "US-PR": "PRI", "US-UM": "UMI", "US-VI": "VIR"}
"""Territories of the United States that ISO 3166 lists both as countries and as subdivisions."""


@dataclass(frozen=True, slots=True)
class Area:
    """A country or a subdivision."""

    code: str
    name: str
    names: Sequence[str]
    """All names, the first being `name`."""
    short: str
    """The two letters of a country, or the last part of the code of a subdivision in a country of `ABBREVIATED`."""
    within: str | None
    """Code of the area that contains it, None for a country."""


@cache
def load_areas() -> Mapping[str, Area]:
    """Load all areas by code."""
    return {**_load_countries(), **{area.code: area for area in _subdivisions()}}


def find_area(code: str) -> Area | None:
    """Find an area by its code in any case: alpha-3 of a country, ISO 3166-2 of a subdivision."""
    wanted = code.strip().upper()
    # Reading the 5,000 subdivisions takes 0.3 s, and most loads name countries only.
    return (load_areas() if "-" in wanted else _load_countries()).get(wanted)


def find_areas(text: str) -> Sequence[Area]:
    """Find the areas with a code or, without one, all areas with a name or abbreviation, in any case."""
    known = find_area(text)
    return [known] if known is not None else _by_name().get(fold(text), ())


def is_same_area(code: str, other: str) -> bool:
    """Whether two codes denote one area, which ISO 3166 lists as a country and as a subdivision."""
    return code == other or _SAME.get(code) == other or _SAME.get(other) == code


def split_names(name: str) -> Sequence[str]:
    """Split a name of a subdivision and its name in another language: ``Catalunya [Cataluña]``."""
    parts = _BRACKETS.fullmatch(name)
    return (name,) if parts is None else tuple(filter(None, (parts["name"], _CODE.sub("", parts["other"]))))


@cache
def _load_countries() -> Mapping[str, Area]:
    return {area.code: area for area in _countries()}


def _countries() -> Iterator[Area]:
    for each in pycountry.countries:
        said = dict(each)  # reading a field that a country lacks would raise AttributeError
        name = said.get("common_name") or said["name"]
        names = dict.fromkeys((name, said["name"], said.get("official_name", name), *_SHORT.get(said["alpha_3"], ())))
        yield Area(said["alpha_3"], name, tuple(names), said["alpha_2"], None)


def _subdivisions() -> Iterator[Area]:
    countries = {area.short: area.code for area in _load_countries().values()}
    # The table itself: pycountry takes six times as long to build its objects and indexes.
    table = json.loads((Path(pycountry.DATABASE_DIR) / "iso3166-2.json").read_text(encoding="utf-8"))
    for each in table["3166-2"]:
        code, name, parent = each["code"], each["name"], each.get("parent")
        letters, _, last = code.partition("-")
        country = countries[letters]
        if parent is not None and not parent.startswith(f"{letters}-"):
            parent = f"{letters}-{parent}"  # some have the last part only
        names = tuple(dict.fromkeys((*split_names(name), *_SHORT.get(code, ()))))
        yield Area(code, names[0], names, last if country in ABBREVIATED else "", parent or country)


@cache
def _by_name() -> Mapping[str, Sequence[Area]]:
    found: dict[str, dict[str, Area]] = defaultdict(dict)
    for area in load_areas().values():
        for name in (*area.names, area.short):
            if key := fold(name):
                found[key][area.code] = area
    return {key: tuple(areas.values()) for key, areas in found.items()}
