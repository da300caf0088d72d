"""The dimensions that a code limits, as named in its texts and the headers of its tables, and kinds of limits.

The columns of a file of districts are named by its mapping (`loaders.zoning.graph.table_mapping`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal

from loaders.zoning.extraction.measures import find_unit

Bound = Literal["min", "max"]

STOREY: Final = "storey"
"""The unit of heights given as a number of storeys."""

_LENGTH: Final = frozenset({"FT", "M"})
_AREA: Final = frozenset({"FT2", "AC", "M2"})


@dataclass(frozen=True, slots=True)
class _Kind:
    pattern: str
    units: Set[str]
    bound: Bound
    """Default bound: a setback is a minimum, a height is a maximum."""
    percent: bool = False
    """Whether a percentage refers to the lot itself, so that it is a value with a unit."""


_KINDS: Final[dict[str, _Kind]] = {
    "front-setback": _Kind(
        r"front(?:[ -](?:yards?|lot line|property line))?(?: (?:building )?setbacks?)?(?= |$"
        r"|[,.:;)])|setbacks? (?:from |on )?(?:the )?front",
        _LENGTH,
        "min",
    ),
    "street-side-setback": _Kind(
        r"(?:street[ -]side|side[ -]street|corner(?:[ -](?:side|lot))?)(?: yards?| setbacks?)+"
        r"|street[ -]side|corner side|yards? along (?:the |a |any )?(?:side )?(?:street|road)|corner(?= ?[,:–—-])",
        _LENGTH,
        "min",
    ),
    "side-setback": _Kind(
        r"(?:interior )?side(?:[ -](?:yards?|lot line|property lines?))?(?: setbacks?)?(?= |$"
        r"|[,.:;)])",
        _LENGTH,
        "min",
    ),
    "rear-setback": _Kind(
        r"rear(?:[ -](?:yards?|lot line|property line))?(?: setbacks?)?(?= |$|[,.:;)])", _LENGTH, "min"
    ),
    "setback": _Kind(
        r"(?:building |yard )?setbacks?|set back|(?:minimum|required) yards?|yards? (?:requirements?|regulations"
        r"|dimensions?|areas?)|(?:size of|minimum) yards?|yards(?=[.:])",
        _LENGTH,
        "min",
    ),
    "lot-area-per-unit": _Kind(
        r"(?:minimum )?(?:lot |site )?area (?:per|for each) (?:family|dwelling|unit)(?: unit)?", _AREA, "min"
    ),
    "lot-area": _Kind(
        r"(?:lot|parcel|site|building site) (?:area|size)s?|area of (?:a |the |each |any )?lots?"
        r"|(?:lot |site )?area (?:per|for each) lot"
        r"|(?:minimum|min\.?) (?:area|lot(?! (?:width|depth|frontage|line)))(?= |$)"
        r"|(?<!parking )lots?(?! (?:width|depth|frontage))",
        _AREA,
        "min",
    ),
    "lot-width": _Kind(r"(?:lot )?widths?(?: of (?:a |the |each |any )?lots?)?", _LENGTH, "min"),
    "width": _Kind(r"(?!)", _LENGTH, "min"),
    "length": _Kind(r"(?!)", _LENGTH, "min"),
    "building-separation": _Kind(
        r"(?:building separation|(?:distance|space|separation) between buildings)", _LENGTH, "min"
    ),
    "unit-size": _Kind(r"(?!)", _AREA, "min"),
    "lot-depth": _Kind(r"(?:lot )?depths?(?: of (?:a |the |each |any )?lots?)?", _LENGTH, "min"),
    "lot-frontage": _Kind(r"(?:lot |street |road )?frontages?(?: requirement)?", _LENGTH, "min"),
    "impervious-coverage": _Kind(
        r"impervious(?: (?:surfaces?|coverage|cover|materials?|area))*", _AREA | {"PERCENT", "UNITLESS"}, "max", True
    ),
    "lot-coverage": _Kind(
        r"(?:maximum |max\.? )?(?:lot|building|site|maximum|max\.?)(?: area)? cover(?:age|ed)|coverage",
        _AREA | {"PERCENT"},
        "max",
        True,
    ),
    "open-space": _Kind(r"(?:usable |common )?open space", _AREA | {"PERCENT"}, "min", True),
    "building-height": _Kind(
        r"(?:building |structure )?heights?(?: of (?:a |the |any |all |each )?(?:principal "
        r"|main )?(?:buildings?|structures?))?",
        _LENGTH | {STOREY},
        "max",
    ),
    "density": _Kind(
        r"(?:(?:residential|dwelling|gross|net|base|housing) ){0,4}densit(?:y|ies)"
        r"|(?:dwelling |housing )?units (?:per|/) ?(?:gross |net )?acre",
        frozenset({"dwelling-per-acre", "dwelling"}),
        "max",
    ),
    "floor-area-ratio": _Kind(r"floor[ -]area ratio|f\.?a\.?r\.?(?![a-z])", {"UNITLESS", "PERCENT"}, "max", True),
    "floor-area": _Kind(
        r"(?:(?:finished|gross|habitable|livable|net|total) ){0,4}(?:living space|living area"
        r"|floor (?:area|space)|finished area)|(?:unit|home|dwelling(?: unit)?|house|apartment"
        r"|building) sizes?",
        _AREA,
        "min",
    ),
    "dwelling-units": _Kind(r"(?!)", frozenset({"dwelling"}), "max"),
    "parking": _Kind(r"(?:off-street |guest |required )?parking(?: spaces?)?", {"space"}, "min"),
    "project-area": _Kind(
        r"(?:project|development|district|zone|site|tract) (?:size|area)|size of (?:a |the "
        r"|any )?(?:development|project|district)",
        _AREA,
        "min",
    ),
}
_ANY: Final = re.compile(
    "|".join(rf"(?P<k{place}>\b(?:{kind.pattern}))" for place, kind in enumerate(_KINDS.values())), re.IGNORECASE
)
_NAMES: Final = tuple(_KINDS)
_LEAST: Final = re.compile(
    r"\bminimum|\bmin\b|\bat least|\bno(?:t)? less than|\bnot be (?:less|smaller|closer"
    r"|lower) than|\bor (?:more|larger|greater)\b"
    r"|\bno (?:closer|smaller|less|fewer) than|\bmore than\b(?!.{0,30}\bprohibited)"
    r"|\b(?:no|not|nor|neither)\b[^.;]{0,120}\b(?:less|smaller|narrower|fewer|lower|closer|nearer|shorter) than",
    re.IGNORECASE,
)
_MOST: Final = re.compile(
    r"\bmaximum|\bmax\b|\bexceed|\bno(?:t)? (?:be )?(?:more|greater|higher|taller|larger"
    r"|farther) than|\bat most|\bup to"
    r"|\b(?:no|not|nor|neither)\b[^.;]{0,120}\b(?:more|greater|larger|higher|taller|wider|in excess) (?:than|of)"
    r"|\bor (?:less|fewer|smaller)\b|\blimited to|\bno (?:more|greater|higher|taller|larger) than|\blesser of",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension named at the offsets [start, end) of a text."""

    start: int
    end: int
    type: str


def find_dimensions(text: str, start: int = 0, end: int | None = None) -> Iterator[Dimension]:
    """Yield the dimensions named in `text`."""
    for match in _ANY.finditer(text, start, len(text) if end is None else end):
        if match.end() > match.start() and match.lastgroup is not None:
            yield Dimension(match.start(), match.end(), _NAMES[int(match.lastgroup[1:])])


def dimension_of_header(words: str) -> str | None:
    """Find the dimension of a column by its header: the front setback for ``Minimum Setback Front``."""
    words = re.sub(r"\bcorner$", "corner side", words, flags=re.IGNORECASE)
    found = [each.type for each in find_dimensions(words)]
    if not found:
        return "building-height" if find_unit(words) == STOREY else None
    side = [each for each in found if each.endswith("-setback")]
    if side and ("setback" in found or found[-1] in ("lot-width", "lot-depth")):
        return side[-1]
    if found[-1] in ("lot-area", "floor-area") and len(found) > 1 and words[-3:].casefold() in ("lot", "ots"):
        return found[-2]
    return found[-1]


def allows_unit(type_: str, unit: str) -> bool:
    """Check whether a dimension can have a unit: a width is a length, not an area. Each may be a percentage of
    something."""
    return unit in _KINDS[type_].units or (unit == "PERCENT" and bool(_KINDS[type_].units & (_LENGTH | _AREA)))


def type_in_unit(type_: str, unit: str | None) -> str:
    """Get the type of a dimension in a unit: a height in storeys is the number of storeys."""
    return "building-storeys" if type_ == "building-height" and unit == STOREY else type_


def allows_percent(type_: str) -> bool:
    """Check whether a percentage alone is a value: it is for coverage, but not in ``10% of lot depth``."""
    return _KINDS[type_].percent


def bound_of(words: str) -> Bound | None:
    """Parse the words before or after a measure into its bound. The last such word decides; None if there is none."""
    least = max((match.end() for match in _LEAST.finditer(words)), default=-1)
    most = max((match.end() for match in _MOST.finditer(words)), default=-1)
    if least == most:
        return None
    return "min" if least > most else "max"


def default_bound(type_: str) -> Bound:
    """Get the bound of a dimension where no word states it."""
    return _KINDS[type_].bound


_BEHIND: Final = tuple(
    (kind, re.compile(rf"\)?,? ?(?:{pattern})\b", re.IGNORECASE))
    for kind, pattern in (
        ("building-height", r"(?:each )?(?:or less )?(?:in (?:\w+ )?height|high|tall|"
            r"above (?:(?:the|its|finished|average) )*(?:ground|grade|curb|deck|sidewalk|street|base flood))"),
        ("lot-width", r"wide|in width|of width"),
        ("length", r"long|in length"),
        ("lot-depth", r"deep|in depth"),
        ("building-separation", r"apart|between (?:buildings|structures|them|dwellings)"),
        ("lot-area-per-unit", r"(?:of )?(?:lot |site )?area (?:per|for each|for every) (?:dwelling|family|unit)"),
        ("floor-area", r"(?:of|in) (?:(?:gross|net|usable|habitable) )*(?:floor (?:area|space)|living (?:area|space))"),
        ("open-space", r"of (?:[\w-]+ ){0,4}?(?:open|outdoor) space"),
        ("lot-frontage", r"of (?:\w+ )?frontage"),
        ("lot-area", r"in (?:total )?area|of area|in size"),
    )
)  # fmt: skip
_LINES: Final = tuple(
    (types, re.compile(pattern, re.IGNORECASE))
    for types, pattern in (
        (("street-side-setback",), r"\bside street|street[ -]side|corner side"),
        (("side-setback", "rear-setback"), r"\bside (?:and|or) (?:an? |the )?rear\b"
            r"|\brear (?:and|or) (?:an? |the )?side\b"
            r"|\bside lot lines? (?:and|or) [^,]{0,120}\brear lot line"),
        (("front-setback",), r"\bfront (?:lot |property )?line|\bstreet (?:lot )?lines?\b"
            r"|^(?:street|road|highway)s?\b(?! (?:curb|light|tree|lamp|sign|furniture|corner)s?\b)"
            r"|edge of the (?:road|street)|\b(?:street|road|right[- ]of[- ]way)(?: right[- ]of[- ]way)?(?: lines?)?"
            r"(?: of (?:the|any|a) (?:street|road|highway))?$"),
        (("side-setback",), r"\bside (?:lot |property )?lines?\b"),
        (("rear-setback",), r"\brear (?:lot |property )?lines?\b"),
        (("building-separation",), r"^(?:it$|(?:(?:other|next|principal|main|another) )*"
            r"(?:building|structure|cottage|one)s?\b"
            r"(?! on another| on (?:an )?adjoin))"),
        (("setback",), r"\b(?:lot|property|boundary|district|control) lines?\b|\bboundar(?:y|ies)|limits of|\bmean high"
            r"|\btop of (?:the )?bank|residence district|residential district|\bschool|dwelling\b"),
    )
)  # fmt: skip
_FROM: Final = re.compile(
    r"\)?(?: wide| away| or more)?,? (?P<preposition>from|of|to) "
    r"(?:(?:an?|the|any|each|every|either|both|all|its|extended|said|another) )*(?P<what>[^.,;:()]{2,80})",
    re.IGNORECASE,
)
_OF_LINE: Final = re.compile(r"(?:[ -]right[- ]of[- ]way)?(?: (?:lot |property )?lines?)?")
_GOES_ON: Final = re.compile(r" (?:and|but|or|nor) (?=(?:at|not?|up|shall|must|may|is)\b|$|\d)")
_NAMED: Final = re.compile(
    r"(?:^|\b(?!(?:The|Any|Each|All|Front|Rear|Side|Street|Lot|Property|Public|Private|Right)\b)[A-Z][\w.]{1,40} )"
    r"(?:Streets?|Roads?|Avenues?|Highways?|Boulevards?|Drives?|Lanes?|Interstate|Routes?|Parkways?|River|Lake|Creek)\b"
    r"(?! (?:(?:right-of-way|lot|property) )?lines?\b)(?<!^Street)(?<!^Road)(?<!^Streets)(?<!^Roads)"
)
"""The name of one place. A distance from it does not set a line of the lot back."""
_SIDES: Final = re.compile(
    r"\)?,?(?: each)? (?:in|on|at|along|for) (?:(?:the|each|any|all|both) )*(front|rear|side)s?"
    r"(?: and (?:the )?(front|rear|side)s?)?\b(?: (?:lot|property) lines?\b)?",
    re.IGNORECASE,
)


def find_kind_behind(words: str) -> tuple[str | None, str]:
    """Find the dimension that the words after a measure state, as that of a lot: lot-width for ``feet wide``."""
    return next(((kind, match[0].strip(" )")) for kind, each in _BEHIND if (match := each.match(words))), (None, ""))


def find_sides_behind(words: str) -> tuple[Sequence[str], str]:
    """Find the setbacks that the words after a measure name: ``on the side``, ``on the front and rear``."""
    match = _SIDES.match(words)
    sides = [f"{side.casefold()}-setback" for side in match.groups() if side] if match else []
    return sides, match[0].strip(" )") if match else ""


def find_line_behind(words: str, *, near: bool = False) -> tuple[Sequence[str], str]:
    """Find the setbacks that a distance from a line is: ``from the side lot line``. With `near`, also ``of a lot
    line``."""
    match = _FROM.match(words)
    if match is None or (match["preposition"] != "from" and not near):
        return (), ""
    what = _GOES_ON.split(match["what"])[0].strip()
    if _NAMED.search(what):
        return (), ""
    for types, each in _LINES:
        if line := each.search(what):
            end = match.start("what") + line.end()
            more = _OF_LINE.match(words, end)
            return types, words[: more.end() if more else end].strip(" )")
    return (), match[0].strip(" )")


_QUALIFIERS: Final = re.compile(
    r"(?:(?:and|an?|the|no|not|any|each|every|all|its|their|such|both|one|two|minimum|maximum|min\.?|max\.?|required|total"
    r"|least|permitted|combined|gross|interior|net|average|main|principal|building|new|yard"
    r"|(?:width|depth|percentage) of)"
    r"(?= |$) ?)*",
    re.IGNORECASE,
)
_AT: Final = re.compile(r"\bat\b")
_APART: Final = re.compile(r"\b(?:at|within|in|on|along|behind|into)\b")
"""Words between a dimension and where it applies: ``the height of a fence within the front yard``."""


def find_heads(words: str, *, label: bool) -> Sequence[Dimension]:
    """Find the dimensions that a phrase is about, not the lot that is only where something is. Those of a label or
    subject are at its start: ``a fence in a front yard`` is about none."""
    found = list(find_dimensions(words))
    if found:
        first = words[found[0].start : found[0].end].casefold()
        owned = found[0].type.startswith(("lot-", "building-", "floor-")) and not first.endswith(("lot", "lots"))
        apart = _APART if owned else _AT
        found = [one for one in found if not apart.search(words, found[0].end, one.start)]
    if found and words[found[-1].start : found[-1].end].casefold() in ("lot", "lots"):
        before, after = words[: found[-1].start], words[found[-1].end :]
        where = re.search(r"\b(?:on|of|in|for|from|upon|per) (?:\w+ ){0,2}$", before)
        if where or not re.match(r"$| (?:in|for|shall|with)\b", after):
            found.pop()
    return found if found and (not label or _QUALIFIERS.fullmatch(words[: found[0].start])) else ()


_COMPARED: Final = re.compile(
    r"(?:^|(?<=[ (]))(?P<no>(?:no|not|nor|neither)(?: be| to)? )?(?:(?P<least>(?:a )?minimum(?: of)?|at least)"
    r"|(?P<most>(?:a )?maximum(?: of)?|at most|up to|limited to)"
    r"|(?P<less>(?:(?P<near>closer|nearer)|less|fewer|smaller|narrower|lower|shorter)"
    r"(?: in (?:area|width|height|depth))?(?: than| to [^,;]{3,40} than)|below|(?P<within>within))"
    r"|(?P<more>(?:set back )?(?:more|greater|(?P<high>higher|taller)|larger|(?P<wide>wider)|(?P<long>longer)|farther)"
    r"(?: in (?:area|width|height|depth))? than|exceed(?:s|ing)?|in excess of|over)"
    r"|(?P<bare>above|under|by|every|per|beyond|between|after|as (?:close|near) as|plus|minus|of every|for each|to))"
    r"(?: (?:either|an?|the|one of))? ?$",
    re.IGNORECASE,
)
"""The words of a bound directly before a measure."""
_FREE_WORDS: Final = re.compile(
    r"(?:^|\b)(?:an average|of|with|to|by|at|in|for|on|not|also|be|have|stand|set|is|are"
    r"|a distance|back|(?:set )?back|situated"
    r"|standing|built|kept|(?!shed|bed)\w+ed)$",
    re.IGNORECASE,
)
"""Words before a bound that govern no measure: ``placed at least``."""


def split_bound(words: str) -> tuple[str, re.Match[str] | None]:
    """Split words before a measure into the noun phrase that governs it and the words of its bound."""
    compared = _COMPARED.search(words)
    governor = (words[: compared.start()] if compared else words).strip(" ,:–—-.(•")
    if compared is None and (of := re.search(r"\b(?:of|to)$", governor)):
        return split_bound(governor[: of.start()]) if governor[: of.start()].strip() else ("", None)
    while free := _FREE_WORDS.search(governor):
        governor = governor[: free.start()].strip(" ,")
    return governor, compared
