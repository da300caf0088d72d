"""The dimensions that a code limits, as named in its texts and the headers of its tables, and kinds of limits.

The columns of a file of districts are named by its mapping (`loaders.zoning.graph.table_mapping`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final, Literal

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
