"""The subject of a sentence with a measure: a lot, a building, or something else, such as a sign or a fence."""

from __future__ import annotations

import re
from typing import Final

from loaders.zoning.extraction.dimension_names import bound_of

_THING: Final = re.compile(
    r"\b(?:signs?|signage|fenc(?:es?|ing)|walls?|hedges?|trees?|shrubs?|plantings?|plants?|berms?|poles?"
    r"|antennas?|towers?"
    r"|masts?|turbines?|driveways?|sidewalks?|walkways?|trails?|curbs?|aisles?|stalls?|canop(?:y|ies)"
    r"|awnings?|lights?"
    r"|lighting|luminaires?|lamps?|fixtures?|lett(?:er|ers|ering)|windows?|doors?|openings?|pipes?|manholes?|gates?"
    r"|chimneys?|parapets?|screens?|screening|planters?|islands?|pedestals?|receptacles?|grass|weeds"
    r"|vegetation|vehicles?|trailers?|trucks?|flags?"
    r"|banners?|steps?"
    r"|ramps?|pools?|tanks?|containers?|dumpsters?|maps?|plats?|plans?|drawings?|sheets?|margins?|copies|ditch(?:es)?"
    r"|channels?|trench(?:es)?|excavations?|slopes?|berms?|landscap(?:e|ing)|buffers?|strips?|medians?"
    r"|streets?|roads?"
    r"|alleys?|lanes?|easements?|rights?-of-way|cul-de-sacs?|bridges?|cables?|wires?|conduits?|stealth|equipment"
    r"|numbers?|numerals?|logos?|monuments?|parking (?:spaces?|stalls?|lots?|areas?)|loading|docks?|cabinets?"
    r"|standpipes?|hydrants?|hoses?|stairs?|stairways?|corridors?|rooms?|hallways?|porch(?:es)?|overhangs?|eaves?)\b",
    re.IGNORECASE,
)
"""Objects with a height, width or area of their own, unlike that of a building or lot."""
_STRUCTURE: Final = re.compile(
    r"\b(?:signs?|fences?|walls?|hedges?|poles?|antennas?|towers?|masts?|turbines?|canop(?:y|ies)|gates?)\b",
    re.IGNORECASE,
)
"""Objects whose height a code limits like that of buildings."""
_BUILDING: Final = re.compile(
    r"\b(?:buildings?|structures?|dwellings?|houses?|homes?|residences?|garages?|lots?|parcels?|sites?|tracts?"
    r"|developments?|projects?|townhouses?|duplexes|apartments?|sheds?|barns?|storeys?|stories|story"
    r"|districts?|zones?)\b",
    re.IGNORECASE,
)
_VERB: Final = re.compile(r"\b(?:shall|must|may|is|are|has|have|will|can|cannot|exceeds?|with|not)\b", re.IGNORECASE)
_PREPOSITION: Final = re.compile(
    r"\b(?:in|on|of|for|from|within|adjacent|abutting|along|which|that|located|used|at|to|between|fronting)\b",
    re.IGNORECASE,
)
_OF: Final = re.compile(
    r"\W*(?:of|for) (?:an? |any |the |all |each |every |such )?(?P<what>[A-Za-z -]{2,50})", re.IGNORECASE
)
_LOT: Final = re.compile(r"\b(?:lots?|parcels?|sites?|tracts?)\b", re.IGNORECASE)
_YARD: Final = re.compile(r"\b(?:yards?|set ?backs?|set back|(?:property|lot) lines?)\b", re.IGNORECASE)
_PRINCIPAL: Final = re.compile(
    r"\b(?:accessory|principal|main|primary|detached|attached|residential|non-?residential)[ -]"
    r"(?:buildings?|structures?|uses?|garages?|dwellings?)\b",
    re.IGNORECASE,
)
_ON_LOTS: Final = re.compile(
    r"\b(?:(?:on|for|by) (?:an? |the |any |all )?(?P<what>(?:corner|interior|through|flag|main|accessory) "
    r"(?:lots?|buildings?|structures?))|of (?:an? |the )?(?P<of>corner lot))\b",
    re.IGNORECASE,
)
_BESIDE: Final = re.compile(
    r"(?:(?!\bf[eo][eo]t)[^.;,]){0,40}?\b(?:foot|ft\.?|story|inch)[ -](?:high|tall|wide|deep|long"
    r"|thick)(?P<what>(?: [\w-]+){1,4})",
    re.IGNORECASE,
)
"""A measure that qualifies the noun after it: ``six-foot high wall``."""
_THING_BEHIND: Final = re.compile(
    rf"[^.;,(]{{0,40}}?\b(?:feet|foot|ft\.?|percent|%)(?: of)?(?: (?!shall|must|may|is|are"
    rf"|from)[\w-]+){{0,2}}? (?:{_THING.pattern})",
    re.IGNORECASE,
)
_WAY: Final = re.compile(
    r"\b(?:streets?|roads?|alleys?|lanes?|rights?-of-way|easements?|parking lots?)\b", re.IGNORECASE
)
"""Objects that a distance is measured from."""
_PAUSE: Final = re.compile(r"[,;.(]")
_TRIGGER: Final = re.compile(
    r"\b(?:exceed(?:s|ing)?|(?:if|when|where|that|which|who) [^.;,]{0,60}\bexceed|(?:more|greater|larger"
    r"|less|fewer|smaller"
    r"|higher|taller|wider|longer|closer|nearer|shorter|narrower) than|over|under|in excess of"
    r"|with (?:an? )?(?:(?:total|gross|net) )*(?:[a-z]+ ){0,2}(?:area|height|width|frontage|size) of)"
    r"(?: (?:a|an|the|one|total|height|width|area|of|either))* ?$",
    re.IGNORECASE,
)
_NOT: Final = re.compile(r"\b(?:no|not|nor|neither|never|cannot|none|minimum|maximum|prohibited)\b", re.IGNORECASE)
_BARE: Final = frozenset(("width", "widths", "depth", "depths", "frontage", "frontages"))
_SIZES: Final = frozenset(
    ("building-height", "lot-width", "lot-depth", "lot-area", "lot-frontage", "floor-area", "lot-coverage",
     "impervious-coverage", "density")
)  # fmt: skip


def is_trigger(text: str, start: int, at: int) -> bool:
    """Check whether the words before a measure make it a condition, not a limit: ``buildings exceeding 35 feet``."""
    words = text[start:at]
    return _TRIGGER.search(words) is not None and _NOT.search(words) is None


def is_unrelated(type_: str, raw_type: str, before: str, after: str, about: str, placed: bool) -> bool:
    """Check whether a measure does not belong to a lot or building, but to a sign, a plan, or nothing that is named.

    `before` and `after` are the sentence up to the measure and from it. `about` is the heading above. `placed`: the
    sentence is about a district, where lots and buildings need not be named.
    """
    words = raw_type.casefold()
    if beside := _BESIDE.match(after):
        return not _BUILDING.search(beside["what"])
    if _THING_BEHIND.match(after) and type_ in _SIZES:
        return True
    sentence = f"{before} {after}"
    if type_.endswith("setback") and not _YARD.search(words):
        return not _YARD.search(f"{sentence} {about}")
    if type_ not in _SIZES:
        return False
    if words in ("lot", "lots") and bound_of(before) != "min":
        return True
    subject = _find_subject(before, raw_type)
    if type_ == "building-height" and bound_of(before) == "min" and _THING.search(before):
        return True
    if subject is not None and _THING.search(subject):
        return type_ != "building-height" or not _STRUCTURE.search(subject)
    if subject is None and _THING.search(about) and not _BUILDING.search(sentence):
        return True
    if words in _BARE and not _LOT.search(f"{sentence} {about}"):
        return True
    return not placed and not _BUILDING.search(f"{sentence} {about} {raw_type}")


def find_structure(before: str, raw_type: str) -> str | None:
    """Find the structure, other than a building, whose height a sentence gives: ``fence``."""
    subject = _find_subject(before, raw_type)
    return subject if subject is not None and _STRUCTURE.search(subject) else None


def find_other_object(before: str, raw_type: str) -> str | None:
    """Find the object, other than a building, whose distance a sentence gives: ``fences``. None for a building."""
    subject = _find_subject(before, raw_type)
    ways = subject is not None and _WAY.search(subject)
    return subject if subject is not None and _THING.search(subject) and not ways else None


def find_building(before: str, raw_type: str) -> str | None:
    """Find the building whose own width a sentence gives. None if the width is that of a lot."""
    subject = _find_subject(before, raw_type) if raw_type.casefold() in _BARE else None
    return subject if subject is not None and not _LOT.search(subject) and _BUILDING.search(subject) else None


def _find_subject(before: str, raw_type: str) -> str | None:
    """Find the known noun that is the subject of a sentence, or that its dimension belongs to."""
    at = before.casefold().rfind(raw_type.casefold())
    if at >= 0:
        behind = _OF.match(before, at + len(raw_type))
        if behind and (told := _find_noun(behind["what"])) is not None:
            return told
        if (told := _find_noun(before[:at], last=True)) is not None:
            return told
        before = before[:at] + before[at + len(raw_type) :]
    verb = _VERB.search(before)
    phrase = before[: verb.start()] if verb else before
    stop = _PREPOSITION.search(phrase)
    told = _find_noun(phrase[: stop.start()] if stop else phrase)
    return _find_noun(phrase[stop.start() :]) if told is None and stop is not None and verb else told


def _find_noun(words: str, *, last: bool = False) -> str | None:
    """Find the last known noun in some words. With `last`, only if nothing follows it."""
    found = [match for pattern in (_BUILDING, _THING) for match in pattern.finditer(words)]
    noun = max(found, key=lambda match: match.end(), default=None)
    if noun is None or (last and words[noun.end() :].strip()):
        return None
    return noun[0]


def find_building_kind(text: str, start: int, at: int, stop: int, end: int) -> str | None:
    """Find the kind of building or lot that the measure [at, stop) in the sentence [start, end) is for."""
    stopping = _PAUSE.search(text, stop, end)
    after = _ON_LOTS.search(text, stop, min(stopping.start() if stopping else end, stop + 60))
    if after:
        return after["what"] or after["of"]
    on = _ON_LOTS.search(text, start, at)
    match = _PRINCIPAL.search(text, start, at)
    return match[0] if match else (on["what"] or on["of"]) if on else None
