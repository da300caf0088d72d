"""The countries and states to which words near a citation assign a law, as ``the UK``, ``(Vic)``, ``New Zealand's``.

A jurisdiction is a place code in lower case (ISO 3166-1 alpha-3, ``gbr``, or ISO 3166-2, ``au-vic``), except for the
United States, whose laws are keyed ``us`` and ``us-ut`` (`loaders.citations.statutes`). ``eu`` is the law of the
European Union, ``int`` that of treaties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from kg.iso3166 import load_areas
from loaders.citations.patterns import build_alternatives

EU: Final = "eu"
TREATIES: Final = "int"

_COUNTRIES: Final = {
    "arg": "Argentina|Argentine", "aus": "Australia|Australian|Commonwealth of Australia", "aut": "Austria|Austrian",
    "bel": "Belgium|Belgian", "bgd": "Bangladesh|Bangladeshi", "bra": "Brazil|Brazilian",
    "can": "Canada|Canadian", "che": "Switzerland|Swiss", "chl": "Chile|Chilean", "chn": "China|Chinese",
    "col": "Colombia|Colombian", "deu": "Germany|German", "dnk": "Denmark|Danish", "egy": "Egypt|Egyptian",
    "esp": "Spain|Spanish", "eth": "Ethiopia|Ethiopian", "eu": "European Union|EU|European Community",
    "fin": "Finland|Finnish", "fji": "Fiji|Fijian", "fra": "France|French",
    "gbr": "United Kingdom|UK|U.K.|Great Britain|Britain|British|England|English|Scotland|Scottish|Wales|Welsh"
           "|Northern Ireland",
    "gha": "Ghana|Ghanaian", "grc": "Greece|Greek", "idn": "Indonesia|Indonesian", "ind": "India|Indian",
    "irl": "Ireland|Irish", "isr": "Israel|Israeli", "ita": "Italy|Italian", "jpn": "Japan|Japanese",
    "ken": "Kenya|Kenyan", "kor": "Korea|Korean", "lka": "Sri Lanka|Sri Lankan", "mex": "Mexico|Mexican",
    "mys": "Malaysia|Malaysian", "nga": "Nigeria|Nigerian", "nld": "Netherlands|Dutch",
    "nor": "Norway|Norwegian", "nzl": "New Zealand|NZ", "pak": "Pakistan|Pakistani", "per": "Peru|Peruvian",
    "phl": "Philippines|Philippine", "png": "Papua New Guinea", "pol": "Poland|Polish", "prt": "Portugal|Portuguese",
    "rus": "Russia|Russian", "sgp": "Singapore|Singaporean", "swe": "Sweden|Swedish", "tha": "Thailand|Thai",
    "tur": "Turkey|Turkish", "tza": "Tanzania|Tanzanian", "uga": "Uganda|Ugandan", "ukr": "Ukraine|Ukrainian",
    "us": "United States of America|United States|USA|U.S.A.|U.S.|US|America|American",
    "vnm": "Vietnam|Vietnamese|Viet Nam", "zaf": "South Africa|South African", "zmb": "Zambia|Zambian",
    "zwe": "Zimbabwe|Zimbabwean",
}  # fmt: skip
"""Names and adjectives of countries, as far as English texts often cite their laws."""

_STATES: Final = {
    "au-act": "Australian Capital Territory", "au-nsw": "New South Wales|NSW", "au-nt": "Northern Territory",
    "au-qld": "Queensland|Qld", "au-sa": "South Australia|South Australian", "au-tas": "Tasmania|Tasmanian",
    "au-vic": "Victoria|Victorian", "au-wa": "Western Australia|Western Australian",
}  # fmt: skip
"""Names of states within a country, as its own texts use them."""

_MARKS: Final = {
    "aus": {"Cth": "aus", "Cwlth": "aus", "Commonwealth": "aus", "ACT": "au-act", "NSW": "au-nsw", "NT": "au-nt",
            "Qld": "au-qld", "QLD": "au-qld", "SA": "au-sa", "Tas": "au-tas", "TAS": "au-tas", "Vic": "au-vic",
            "VIC": "au-vic", "WA": "au-wa"},
}  # fmt: skip
"""Marks in brackets after a title, by the country of the text."""

_BY_NAME: Final = {
    name: code for table in (_COUNTRIES, _STATES) for code, names in table.items() for name in names.split("|")
}
_NAMES: Final = [re.escape(name) for name in sorted(_BY_NAME, key=len, reverse=True)]
_ALL: Final = "|".join(_NAMES)
_ANYWHERE: Final = re.compile(rf"({build_alternatives(_NAMES)})(?!\w)")
_OWNER: Final = re.compile(rf"({_ALL})['’]s?$")
_AFTER: Final = re.compile(
    rf"\s?\(\s?(?P<mark>[A-Z][A-Za-z.]{{1,9}}|{_ALL})\s?\)|,? (?:of|in) (?:the )?(?P<name>{_ALL})(?!\w)"
)
_ABBREVIATIONS: Final = frozenset({"UK", "U.K.", "US", "U.S.", "USA", "U.S.A.", "EU", "NZ", "NSW"})


def key_of(place: str) -> str | None:
    """Build the key of a jurisdiction from a place code: ``AUS``, ``US-UT``. None for codes that name no place."""
    code = place.casefold()
    if code == "usa":
        return "us"
    if code in ("eur", "eu", "eue"):
        return EU
    return code if re.fullmatch(r"[a-z]{3}|[a-z]{2}-[a-z0-9]{1,3}", code) and not code.startswith("xa") else None


def place_of(key: str) -> str | None:
    """Get the place code of a jurisdiction. None for treaties."""
    return None if key == TREATIES else {"us": "USA", EU: "EUR"}.get(key, key.upper())


def country_of(key: str) -> str:
    """Get the country of a jurisdiction or municipality: ``aus`` for ``au-vic``, ``us`` for ``us-ut-quarry-bend``."""
    country, part, _ = key.partition("-")
    return _load_countries().get(country, country) if part else key


@cache
def _load_countries() -> Mapping[str, str]:
    """Load the keys of countries by their two letters in lower case."""
    countries = (area for area in load_areas().values() if area.within is None)
    return {area.short.casefold(): key for area in countries if (key := key_of(area.code)) is not None}


def find_after(text: str, at: int, own: str | None) -> tuple[str, int] | None:
    """Find the jurisdiction stated directly after a title, and its end: ``(UK)``, ``of New Zealand``."""
    found = _AFTER.match(text, at)
    if found is None:
        return None
    if (mark := found["mark"]) is not None:
        bare = mark.rstrip(".")
        key = _MARKS.get(country_of(own) if own else "", {}).get(bare) or _BY_NAME.get(mark) or _BY_NAME.get(bare)
    else:
        key = _BY_NAME[found["name"]]
    return None if key is None else (key, found.end())


def find_owner(word: str, before: str = "") -> str | None:
    """Get the jurisdiction that a possessive names: ``Australia's``; `before` is the word before it."""
    found = _OWNER.search(f"{before} {word}") or _OWNER.search(word)
    return _BY_NAME[found[1]] if found else None


def find_abbreviation(word: str) -> str | None:
    """Get the jurisdiction of an abbreviation, which is never part of a title: ``UK``."""
    return _BY_NAME[word] if word in _ABBREVIATIONS else None


def find_named(text: str, start: int, end: int) -> list[str]:
    """Find the jurisdictions that are named in [start, end) of a text, in text order."""
    return [_BY_NAME[found[1]] for found in _ANYWHERE.finditer(text, start, end)]
