"""The label of a value as the name of a dimension: ``Minimum lot area (sq. ft.)``, and ``Front`` below ``Setbacks``.

A label names a dimension only if it is the name of one as a whole, without its bound, its unit, and the case that it is
for. ``To other lot line`` and ``2 1/2 story building`` name none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from loaders.zoning.extraction.dimension_names import STOREY, Bound, allows_unit, bound_of, default_bound
from loaders.zoning.extraction.measures import find_unit

_LOT: Final = r"(?:(?:zoning|building|individual) )?(?:lot|parcel|site|plot|building site)"
_MAIN: Final = r"(?:(?:all|any|the|principal|main|primary|and|or|a|an|of|permitted|new) )*"
_BUILDING: Final = (
    rf"{_MAIN}(?:buildings?|structures?|dwellings?|residences?)(?:(?: and|/| or) (?:buildings?|structures?))?"
)
_YARD: Final = (
    r"(?:(?: building| principal building)?(?: yards?| set ?backs?)+(?: (?:line|depth|width|distance|area"
    r"|requirements?|set ?backs?))?"
    r"|(?: lot| property) lines?(?: set ?backs?)?)"
)
_NAMES: Final = {
    "lot-area-per-unit": rf"(?:{_LOT} |land )?area (?:per|for each) (?:dwelling )?(?:unit|family|dwelling)(?: unit)?"
        rf"|{_LOT} (?:area|size) per (?:dwelling )?(?:unit|family)",
    "lot-area": rf"(?:net |gross )?{_LOT} (?:area|size)s?|(?:area|size) (?:of|per) (?:the |a |each )?(?:lot|parcel)s?"
        rf"|{_LOT} square footage",
    "lot-width": rf"{_LOT} width|width of (?:the |a |each )?lots?",
    "lot-depth": rf"{_LOT} depth|depth of (?:the |a |each )?lots?",
    "lot-frontage": rf"(?:(?:{_LOT}|street|road|public street|public road) )?frontage(?: (?:on|along) (?:a "
        rf"|the )?(?:public )?(?:street|road))?"
        r"|frontage of (?:the |a |each )?lots?|lot width and frontage",
    "street-side-setback": r"(?:street[ -]side|side[ -]street|corner[ -]side|exterior[ -]side|side[ -]corner"
        r"|side \(?(?:corner(?: lot)?|street|abutting (?:a )?street|adjacent to (?:a )?street|on (?:a )?street)\)?"
        rf"|flanking street|corner(?: lot)?)(?: side)?{_YARD}|side yards? (?:abutting|adjacent to|adjoining|along"
        rf"|facing|on)(?: a| the)? (?:side )?street",
    "front-setback": rf"front{_YARD}|(?:depth of )?front yards?|set ?backs?,? (?:from "
        rf"|of )?(?:the )?front(?: (?:lot|property) line)?",
    "side-setback": rf"(?:interior |inside )?(?:each )?sides?{_YARD}|set ?backs?,? (?:from "
        rf"|of )?(?:the )?(?:interior )?side(?: (?:lot|property) line)?"
        r"|width of side yards?",
    "rear-setback": rf"rear{_YARD}|depth of rear yards?|set ?backs?,? (?:from |of )?(?:the )?rear(?: (?:lot"
        rf"|property) line)?",
    "setback": r"(?:building |yard |lot line )?set ?backs?(?: (?:line|depth|distance|requirements?))?"
        r"|yards?(?: set ?backs?| requirements?)?",
    "building-height": rf"(?:{_BUILDING} )?heights?(?: limits?| limitations?| regulations?| requirements?)?"
        rf"|height (?:of|for) {_BUILDING}",
    "building-storeys": r"(?:number of )?stories|height in stories",
    "impervious-coverage": r"(?:lot )?impervious(?: surfaces?)?(?: lot)?(?: (?:coverage|cover|ratio|area))?"
        r"|impervious (?:lot )?coverage",
    "lot-coverage": rf"(?:{_LOT}|building|structure|lot building|ground|gross lot)? ?coverage(?: (?:by|of"
        rf"|for) {_BUILDING}| ratio| of (?:the )?lot)?"
        rf"|percentage of lot coverage|{_LOT} coverage by {_BUILDING}|lot (?:area )?covered by {_BUILDING}",
    "open-space": r"(?:common |usable )?open space(?: area| ratio)?",
    "density": r"(?:residential |dwelling |gross |net |base |housing )*densit(?:y|ies)(?: per (?:gross "
        r"|net )?acre)?|(?:dwelling )?units per (?:gross |net )?acre",
    "floor-area-ratio": r"floor[ -]area ratio(?: \(?f\.?a\.?r\.?\)?)?|f\.?a\.?r\.?",
    "unit-size": r"(?:dwelling )?unit (?:area|size|floor area)s?|dwelling (?:area|size)s?|(?:floor"
        r"|living) area per (?:dwelling )?(?:unit|family)"
        r"|(?:gross |livable |habitable )?(?:floor|living) area (?:of|for) (?:a |each )?dwelling(?: unit)?s?",
    "floor-area": r"(?:finished |gross |habitable |livable |net |total |ground |first )*(?:floor|living) (?:area"
        r"|space)s?|building (?:floor area|size)s?",
    "building-separation": r"(?:building|structure) separation|(?:distance|space|separation"
        r"|spacing) between (?:main |principal |adjacent )?(?:buildings|structures)",
    "project-area": r"(?:project|development|district|tract|zoning district) (?:area|size)",
    "parking": r"(?:off-street |required )?parking(?: spaces?)?",
}  # fmt: skip
_WHOLE: Final = {type_: re.compile(pattern, re.IGNORECASE) for type_, pattern in _NAMES.items()}
_BELOW: Final = (
    (
        re.compile(r"yards?|set ?backs?", re.I),
        re.compile(r"(?:interior |street |exterior |corner )?(?:front|sides?|rear|corner|street)\b", re.I),
        "setback",
    ),
    (
        re.compile(r"\b(?:lot|parcel|site)s?\b", re.I),
        re.compile(r"(?:area|size|width|depth|frontage|coverage)$", re.I),
        "lot",
    ),
    (re.compile(r"\bbuildings?\b", re.I), re.compile(r"(?:height|coverage)s?$", re.I), "building"),
    (re.compile(r"\bheights?\b", re.I), re.compile(r"(?:feet|ft\.?|stories|in feet|in stories)$", re.I), "height"),
)
"""Words that a group, and then a label below it, have in full names of dimensions."""
_BOUND: Final = re.compile(
    r"\b(?:min(?:imum)?s?|max(?:imum)?s?|required|requirements?|allowable|allowed|permitted|least|at least"
    r"|not less than"
    r"|no less than|not more than|standards?|regulations?)\b\.?",
    re.I,
)
_UNIT: Final = re.compile(
    r"[(\[]? ?\b(?:in |as )?(?:an? )?(?:sq(?:uare|\.)? ?(?:feet|foot|ft\b\.?|m(?:et(?:er|re)s)?\b\.?)|linear feet"
    r"|feet|foot|ft\b\.?|acres?"
    r"|percent(?:age)?(?: of lot(?: area)?)?|stories|storeys|met(?:er|re)s|units? ?(?:per|/) ?acre|du/ac(?:re)?"
    r"|s\.?f\b\.?)(?: ?[)\]]|(?=$|[ ,;/]))|\(%\)|%(?: of lot(?: area)?)?|\(m2?\)|\(['’′]\)",
    re.I,
)
_CASE: Final = re.compile(
    r"(?P<bracket>\((?P<inside>[^()]{2,80})\))|(?:[,;:] ?|[ ])(?P<case>(?:w/ ?|with |without |at |from |to |for "
    r"|on |in |by |if |when |where |abutting |adjacent |adjoining |along |facing |per |each |both |total |one "
    r"|combined |corner |interior |attached |detached |either |next to |between |all |any |principal|accessory|main"
    r"|measured |beyond ).*)$",
    re.I,
)
_JOINING: Final = frozenset(("of", "the", "a", "an", "is", "be", "not"))
_MARKS: Final = re.compile(r"(?:[*†‡]+|[¹²³⁴⁵⁶⁷⁸⁹]+)")
_LABEL: Final = re.compile(r"^(?:\([A-Za-z0-9]{1,3}\)|[A-Za-z0-9]{1,2}[.)]) (?=\S)")


@dataclass(frozen=True, slots=True)
class DimensionLabel:
    """The dimension that a label names."""

    type: str
    bound: Bound
    unit: str | None
    """The unit that it states for its values."""
    case: str | None
    """The rest of the label, verbatim: the use that the dimension is for, or where it is measured."""


def parse_label(words: str, group: str = "") -> DimensionLabel | None:
    """Parse a whole label as a dimension, with that of the `group` it is in. None for any other words."""
    own = _parse(words)
    if own is not None and (own[0] != "setback" or not group):
        return _make(own[0], words, group, own[1])
    outer = _parse(group) if group else None
    if own is not None:
        return _make(own[0], words, group, own[1])
    if group:
        core = _core(words)[0]
        for of, below, _ in _BELOW:
            if core and of.search(group) and below.match(core):
                full = _join(of, core)
                if (found := _parse(full)) is not None:
                    inner = _core(words)[1]
                    return _make(found[0], words, group, inner)
    if outer is not None and outer[0] not in ("setback", "parking"):
        case = words.strip(" .:,;")
        return (
            _make(outer[0], words, group, case or None)
            if not re.search(r"\bratio|height|area|width|depth|yard|setback|coverage|front|rear|side|lot\b", case, re.I)
            else None
        )
    return None


def _join(of: re.Pattern[str], core: str) -> str:
    if of.pattern.startswith("yards"):
        return f"{core} setback" if not re.search(r"yards?|set ?backs?", core, re.I) else core
    if of.pattern.startswith(r"\b(?:lot"):
        return f"lot {core}"
    return f"building {core}" if "building" in of.pattern else "stories" if "stor" in core else "height"


def _make(type_: str, words: str, group: str, case: str | None) -> DimensionLabel:
    sizes = "building-height" if type_ == "building-storeys" else type_
    units = [each for each in (find_unit(words), find_unit(group)) if each is not None and allows_unit(sizes, each)]
    if type_ == "density" and re.search(r"\bacre", f"{words} {group}", re.I):
        units = ["dwelling-per-acre"]
    bound = bound_of(words) or bound_of(group) or default_bound(sizes)
    return DimensionLabel(sizes, bound, STOREY if type_ == "building-storeys" else units[0] if units else None, case)


def _core(words: str) -> tuple[str, str | None]:
    """Strip bound, unit and case from a label. Returns its core and the case."""
    plain = _LABEL.sub("", _MARKS.sub("", words.strip()), count=1)
    if plain.count("(") != plain.count(")"):
        plain = plain.replace("(", " ").replace(")", " ")
    full = " ".join(_BOUND.sub(" ", plain).split()).strip(" ,:;.-–—/")
    if _match(full):
        return full, None
    plain = _UNIT.sub(" ", plain)
    cases: list[str] = []

    def take(match: re.Match[str]) -> str:
        cases.append((match["inside"] or match["case"] or "").strip())
        return " "

    plain = " ".join(_BOUND.sub(" ", plain).split()).strip(" ,:;.-–—/")
    while (word := plain.partition(" ")[0].casefold()) in _JOINING and word != plain.casefold():
        plain = plain.partition(" ")[2]
    while (word := plain.rpartition(" ")[2].casefold()) in _JOINING and word != plain.casefold():
        plain = plain.rpartition(" ")[0]
    if _match(plain):
        return plain, None
    plain = _CASE.sub(take, plain)
    plain = " ".join(plain.split()).strip(" ,:;.-–—/")
    case = " ".join(each for each in cases if each).strip(" ,:;")
    return plain, case or None


def _match(core: str) -> str | None:
    return next((type_ for type_, pattern in _WHOLE.items() if core and pattern.fullmatch(core)), None)


def _parse(words: str) -> tuple[str, str | None] | None:
    core, case = _core(words)
    type_ = _match(core)
    return None if type_ is None else (type_, case)
