"""Subjects of clauses: a lot or building in general, or something else, such as a sign or a fence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from loaders.zoning.extraction.clauses import LABEL, PLACE, Clause
from loaders.zoning.extraction.dimension_names import allows_unit, find_dimensions

BESIDE: Final = re.compile(
    r"\b(?:abut\w*|adjoin\w*|adjacent to|next to|contiguous|border\w*|along the boundary|that boundary)\b",
    re.IGNORECASE,
)
"""Words for places next to something else: a limit that applies only there."""
_ARTICLE: Final = re.compile(
    r"(?:(?:and|or|but|nor|then|otherwise|elsewhere|also|that|for|in|on|by|with)\b,? ?|(?:no|an?|the|any|all|each"
    r"|every|such"
    r"|said|both|neither|not|one(?!-)|two(?!-)|new|its|other|their|single(?= (?:retail|store|tenant))|proposed"
    r"|required|permitted"
    r"|individual)\b ?)+",
    re.IGNORECASE,
)
_GENERIC: Final = re.compile(
    r"(?:there|(?:(?:principal|main|primary|new|other|front|rear|side|street|minimum|least|residential|individual) )*"
    r"(?:(?:lots?|parcels?|buildings?|structures?|sites?|tracts?|premises|propert(?:y|ies)|land|yards?|districts?"
    r"|zones?|areas?|uses?|development|setbacks?|parts?|portions?|maximum|minimum)(?: thereof)?"
    r"(?: (?:or|and) (?=\w))?)+(?: of (?:the|a|any|such|each) (?:lot|building|structure|site))?"
    r"(?: (?:up)?on (?:the|a|any|each) (?:same )?lots?)?(?: together)?|)",
    re.IGNORECASE,
)
_WITH: Final = re.compile(r",? (?:including|together with|hereafter|whether)\b")
_PRONOUN: Final = re.compile(
    r"(?:it|they|none|these|those|each|one|ones|(?:(?:no|any) )?such (?:building|structure|use|lot)s?|(?:its"
    r"|their) .*)",
    re.IGNORECASE,
)
_MEASURED: Final = re.compile(
    r"\b(?:height|width|depth|length|area|size|frontage|density|ratio|coverage|edge|base|panel|footprint|top"
    r"|right-of-way|number)s? (?:of|for) ",
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"(?:(?:all|any|every|each|no) )?other (?:building|structure|use|lot|district)", re.IGNORECASE
)
LOT: Final = re.compile(r"(?:(?<![\w-])[\w-]++ )?(?:lots?|parcels?)\b(?! lines?)", re.IGNORECASE)
BUILDING: Final = re.compile(
    r"\b(?:buildings?|structures?|dwellings?|houses?|homes?|residences?|townhouses?|duplex(?:es)?|apartments?"
    r"|garages?|sheds?|barns?|cottages?|cabins?)\b",
    re.IGNORECASE,
)


def name_subject(words: str) -> str | None:
    """Get the use or structure that a noun phrase names. None for a lot or building in general, and for a pronoun."""
    name = strip_phrase(words)
    if measured := _MEASURED.search(name):
        name = name[measured.end() :]
        name = name[article.end() :] if (article := _ARTICLE.match(name)) else name
    if _GENERIC.fullmatch(name) and _OTHER.match(words):
        return f"other {name}"
    if re.match(r"(?:lots?|parcels?) (?:which|that)\b", name, re.IGNORECASE):
        return None
    return None if _GENERIC.fullmatch(name) or is_pronoun(name) or _is_dimension(name) else name


_NEAR: Final = re.compile(r" (?:(?:which|that) (?:is|are) )?(?:located )?within (?=\d|[a-z-]+ (?:\(|feet))")


def split_near(name: str | None) -> tuple[str | None, Sequence[str]]:
    """Split the name of a subject from where a limit applies to it: ``barn within 50 feet of a pond``."""
    near = _NEAR.search(name) if name else None
    return (name_subject(name[: near.start()]), [name[near.start() :].strip()]) if name and near else (name, ())


def _is_dimension(name: str) -> bool:
    """Whether a name is that of a dimension, and not of what has it: ``minimum side yard``."""
    rest = name
    for each in reversed([one for one in find_dimensions(name) if one.type != "parking"]):
        rest = rest[: each.start] + rest[each.end :]
    rest = re.sub(r"\b(?:minimum|maximum|total|least)\b", "", rest, flags=re.IGNORECASE).strip()
    return (
        rest != name
        and re.match(rf"$|(?:of|for|in|along|per|on|at)\b|{BESIDE.pattern}", rest, re.IGNORECASE) is not None
    )


def strip_phrase(words: str) -> str:
    """Strip articles and the names of districts from a noun phrase."""
    name = _WITH.split(PLACE.sub("", LABEL.sub("", words)), maxsplit=1)[0].strip(" ,;:.")
    while (match := _ARTICLE.match(name)) and match[0]:
        name = name[match.end() :]
    return name


def is_pronoun(words: str) -> bool:
    """Check whether a subject only refers to the one before it."""
    return _PRONOUN.fullmatch(words.strip()) is not None


_FILLER: Final = re.compile(
    r"(?:an?|the|any|all|each|every|both|either|its|their|such|said|this|that|those|these|no|not|one|two|of|in|on"
    r"|to|at|by|with|from|for|and"
    r"|or|nor|as|be|is|are|it|have|has|having|shall|must|than|less|more|only|also|back|so|least|minimum|maximum"
    r"|required"
    r"|lots?|parcels?|premises|buildings?|structures?|yards?|setbacks?|distance|space|stand|there|which|\w{3,}ed"
    r"|\w+ly|sq|ft|m|or more|or less"
    r"|kept|built|set|but|if|then|respectively|per|including|herein|hereafter|upon|between|otherwise)",
    re.IGNORECASE,
)
"""Words that neither name an object nor limit a standard."""
_IN_BRACKETS: Final = re.compile(r"\([^()]*\)")
_WORD: Final = re.compile(r"[A-Za-z][\w’'-]*")
_UNCLEAR: Final = re.compile(
    r"[();]|\b(?:shall|must|may|(?<!that )(?<!which )(?:is|are|was|were)|will|minimum|maximum|at least|example|when)\b"
    r"|^(?:only|also|generally|normally|typically|usually|preferably|approximately|respectively|thereof)$"
    r"|^(?:if|from|by|of|to|at|as|taken|back|record|none|distance|when|less|more|fewer|greater|larger|over)\b"
    r"|\b(?:hundred|thousand|limits?|limitations?|provisions|requirements|regulations|restrictions)\b",
    re.IGNORECASE,
)
"""What no name of a subject contains, so that its parse is wrong."""


def has_content(words: str) -> bool:
    """Check whether some words name an object or a case, and are not only those that join others."""
    return any(_FILLER.fullmatch(word) is None for word in _WORD.findall(words))


def is_clear(name: str | None) -> bool:
    """Check whether a standard is for lots and buildings in general, or for one use or structure that is named."""
    return name is None or (len(name.split()) <= 20 and not _UNCLEAR.search(_IN_BRACKETS.sub("", name)))


_ENCLOSED: Final = re.compile(r"\b(?:enclosed|surrounded|screened|fenced)(?= (?:[^.,;]{0,200} )?by\b)", re.IGNORECASE)


def find_enclosed(text: str, start: int, clause: Clause, end: int) -> Sequence[str]:
    """Find the words for the object within a measured enclosure: ``A pond shall be enclosed`` before ``by a fence
    five feet high``. The sentence starts at `start`, the measure at `end`."""
    match = _ENCLOSED.search(text, clause.verb, end)
    if match is None:
        return []
    first = clause.start if clause.subject and clause.subject in text[clause.start : match.end()] else start
    return [LABEL.sub("", text[first : match.end()].strip(" ,"))]


_PLACED: Final = re.compile(
    r"\b(?:on|in|into) (?P<what>[a-z -]{1,200}?) (?:less|more|smaller|narrower) than (?:an? )?$", re.IGNORECASE
)
"""Words for where something is forbidden: ``shall not be planted on slopes less than``."""


def is_placed(words: str) -> bool:
    """Check whether the words before a measure are those of a place other than a lot: ``planted on slopes less
    than``."""
    match = _PLACED.search(words)
    return match is not None and not (
        LOT.search(match["what"]) or BUILDING.search(match["what"]) or any(find_dimensions(match["what"]))
    )


_SIGN: Final = re.compile(
    r"\b(?:signs?|plates?|boards?|banners?|faces?|billboards?|windows?|letters?)\b", re.IGNORECASE
)
_PLANT: Final = re.compile(r"\b(?:trees?|shrubs?|plants?|clumps?|evergreens?|screening)\b", re.IGNORECASE)
_TRACT: Final = re.compile(
    r"\b(?:sites?|tracts?|parks?|camps?|campgrounds?|communit(?:y|ies)|(?:sub)?developments?|subdivisions?|projects?"
    r"|districts?)\b",
    re.IGNORECASE,
)
UNIT: Final = re.compile(
    r"\b(?:(?<!accessory )apartments?|(?<!accessory )dwelling units?|studios?|(?<!dwelling )units?)\b", re.IGNORECASE
)
DWELLING: Final = re.compile(r"\b(?:dwellings?|apartments?|lofts?|studios?)\b", re.IGNORECASE)
LENGTHS: Final = ("FT", "M", "IN")
AREAS: Final = ("FT2", "AC", "M2")


def find_types(kind: str, unit: str, about: str) -> Sequence[str]:
    """Get the types of a dimension of something: the width of a lot is lot-width, that of a yard its setback."""
    name = strip_phrase(about)
    lot = LOT.match(name) is not None and "parking" not in name
    if kind in ("lot-width", "lot-depth"):
        if yards := [one.type for one in find_dimensions(about) if one.type.endswith("setback")]:
            return yards[-1:]
        return [kind] if lot else ["width"] if about and kind == "lot-width" else []
    if kind == "building-separation":
        return [kind] if name_subject(about) is None or BUILDING.search(about) else []
    if kind in ("lot-area", "floor-area"):
        if unit not in AREAS or _SIGN.search(about):
            return []
        if kind == "lot-area" and (lot or _TRACT.search(name)):
            return [kind if lot else "project-area"]
        return ["unit-size"] if UNIT.search(about) else ["floor-area"] if kind != "lot-area" else []
    if kind in ("building-height", "length"):
        return [kind] if about and not _PLANT.search(about) and unit in (*LENGTHS, "storey") else []
    return [kind] if allows_unit(kind, unit) else []
