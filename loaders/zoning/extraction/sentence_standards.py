"""Standards in one sentence: the dimension of each of its measures, what it is for, and where it applies.

A sentence is parsed first: its clauses, their subjects and verbs, its measures. Then each measure is decided: its
bound, its dimension, what it is for, and its districts. A measure of which one of these is not known, or which is in a
condition, an exception, a permission to exceed, or a reduction, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.clauses import BREAK, LABEL, PLACE, Clause, drop_subject, parse_clauses
from loaders.zoning.extraction.dimension_names import (
    Bound,
    Dimension,
    allows_percent,
    allows_unit,
    bound_of,
    default_bound,
    find_dimensions,
    find_heads,
    find_kind_behind,
    find_line_behind,
    find_sides_behind,
    type_in_unit,
)
from loaders.zoning.extraction.district_scope import find_scope, names_unknown
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.governors import find_bound, find_item, split_governor
from loaders.zoning.extraction.leads import LONGEST, Lead
from loaders.zoning.extraction.measures import NUMBER, Measure, find_addition, find_all_measures, find_sum
from loaders.zoning.extraction.regulated_subjects import (
    AREAS,
    BESIDE,
    BUILDING,
    DWELLING,
    LENGTHS,
    LOT,
    UNIT,
    find_enclosed,
    find_types,
    has_content,
    is_clear,
    is_placed,
    is_pronoun,
    name_subject,
    split_near,
    strip_phrase,
)
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.standard_confidence import UNSURE, find_confidence


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard. Its value, with its unit, is at the offsets [start, end) of the section's text."""

    districts: Sequence[str]
    """Codes of its districts. Empty if neither the sentence nor its section is about a district."""
    type: str
    """One of the types of the ontology: lot-area, front-setback, building-height."""
    raw_type: str
    """The words for the type, as recorded."""
    bound: Bound
    raw: str
    """The value, verbatim: ``thirty-five (35) feet``, ``10% of lot depth``."""
    value: Decimal | None
    """None if the value is not one number in one unit."""
    unit: str | None
    """See `measures`. None without a value."""
    applies_to: str | None
    """The use or kind of building that it is for, verbatim, if stated."""
    conditions: Sequence[str]
    """Verbatim: notes, and text after "except", "if", "when"."""
    start: int
    end: int
    confidence: float
    method: str
    """sentence, list, table."""


_KINDS: Final = {"high": "building-height", "wide": "lot-width", "long": "length"}  # by the words of a comparison
_LOOSENS: Final = re.compile(
    r"\b(?:extend|project|encroach|ris(?:e|ing)|reduc\w+|increas\w+|lessen\w*|var(?:y|ied)|waive\w*|adjust\w*|allow"
    r"|approved?|granted?|authoriz\w+|apply|exempt|require|required to|intrude|protrude|spaced|need|continue|expire)\b",
    re.IGNORECASE,
)
"""Verbs of clauses that loosen a limit or set none."""
_EXAMPLE: Final = re.compile(r"\b(?:for|of) example\b|\be\.g\.", re.IGNORECASE)
_CHOICE: Final = re.compile(r"\b(?:lesser|greater|larger|smaller) of\b")
_BUT: Final = re.compile(
    r"\b(?:except|unless|if\b|when\b|where\b|whenever|provided(?=,? (?:that|however|\d|\w+ \(\d))|so long as"
    r"|measured|whichever|within (?=\d|\w+ \()"
    r"|without (?=an?\b|the\b|[a-z]+ing\b)|but(?= (?:shall|may|only|no|not|in)\b)|(?:plus"
    r"|minus)(?= (?:an? )?(?:additional )?(?:\d|\w+ \()))\b[^;\n]*?"
    r"(?=\.(?: (?-i:[A-Z])|$)|[;\n]|$)",
    re.IGNORECASE,
)
_PROVISO: Final = re.compile(
    r" ?(?:and |but )?(?:provided|except|unless|however|applicable only)\b[^;\n]*?(?=\.(?: (?-i:[A-Z])|$)|[;\n]|$)",
    re.I,
)
"""A proviso after the semicolon that ends the sentence of a limit."""
_ON_LOT: Final = re.compile(r"\bon (?:an?|any|each) (?:lots?|parcels?|tracts?|sites?)\b[^.;]*$", re.IGNORECASE)
_OTHERWISE: Final = re.compile(r"\b(?:otherwise|elsewhere)\b(?! (?:provided|stated|required|specified|noted))", re.I)
_NOR_SHALL: Final = re.compile(r"\bnor (?:shall|may) (?!it\b|they\b|have\b|be\b|exceed\b)", re.IGNORECASE)
_ROAD: Final = re.compile(
    r"\b(?:county|state|federal|arterial|collector|major|minor|local|private|interior) (?:roads?|streets?|highways?)\b"
)
"""Streets of one kind: a distance from them is not from each street."""
_INSTEAD: Final = re.compile(r"[^.;]{0,40},? or (?:an?|the)? ?(?:minimum|at least|not less|no less)\b", re.IGNORECASE)
_PER_UNIT: Final = re.compile(
    r"\)?,? (?:of (?:lot |site )?area )?(?:per|for each|for every) (?:dwelling(?: unit)?|unit|family|apartment)\b",
    re.IGNORECASE,
)
_RATED: Final = re.compile(r"\)? (?:per|for each|for every)\b(?! lot)")
_ASIDE: Final = re.compile(r"(?: ?,)? ?\([^()\d]*\)")
_END_OF: Final = re.compile(r"(?:the )?(?:bottom|top|tip|lowest|highest|base|invert|edge|end)s?\b", re.IGNORECASE)
"""A part of a structure, whose height above the ground is not that of the structure."""
_OTHER_LAND: Final = re.compile(r"\b(?:schools?|dwellings?|districts?|zones?|church(?:es)?|bank|mean high)\b", re.I)
_ANY_HEIGHT: Final = re.compile(r"\b(?:buildings?|structures?)\b", re.I)
_SHARE: Final = re.compile(
    r"\)?(?: \(\d+%\))? of (?:(?:the|a|an|any|each|every|its|total|gross|net) )*(?P<what>[^.,;:()\n]{2,60}?)"
    r"(?=[.,;:()\n]|$| shall\b| must\b| may\b| in the\b| is\b| or | and )"
)
_OF_LOT: Final = re.compile(r"\b(?<!parking )(?:lots?|sites?|parcels?|tracts?|park)\b")
_OF_LENGTH: Final = re.compile(r"\b(?:depth|width|frontage|height|length|area)\b", re.IGNORECASE)
_SHARES: Final = {
    "impervious": "impervious-coverage", "open space": "open-space", "cover": "lot-coverage", "occup": "lot-coverage",
    "landscap": "open-space",
}  # fmt: skip
"""The dimension of a share of a lot, by the first of these words in its clause."""
_RATE: Final = re.compile(
    rf"\)?(?: (?:shall be|is|are|must be))?(?: (?:required|provided))? (?:per|for each|for every) (?P<count>{NUMBER} )?"
    r"(?P<each>[^.,;:()\n]{2,60}?)(?= shall\b| is\b| are\b| must\b| may\b| within\b| in\b| plus\b|[.,;:()\n]|$)",
    re.IGNORECASE,
)
_TOTAL: Final = re.compile(r"\b(?:total|combined|aggregate|both sides|sum of)\b", re.IGNORECASE)
_HOLDER: Final = re.compile(
    r"(?:^|\b(?:on|with|by|of|in|within|for) )(?:(?:an?|the|any|each) )?"
    r"(?P<what>(?!.{0,300}\byards?\b)(?:[\w-]{1,40} ){0,3}?[\w-]{1,40})"
    r" (?:having|with|containing|(?:which|that) (?:has|have)) (?:(?:an?|the|its) )?"
    r"(?=(?:\w+ ){0,2}?(?:area|width|depth|frontage|height)$)",
    re.IGNORECASE,
)
"""The owner of a dimension within the noun phrase of another: ``a school on a lot having an area``."""
_HELD: Final = {
    "area": "lot-area", "width": "lot-width", "depth": "lot-depth", "frontage": "lot-frontage",
    "height": "building-height",
}  # fmt: skip
_BARE: Final = re.compile(
    r"(?:having|with) .*|(?:(?:an?|the|having|with|minimum|average|maximum) )*(?:area|width|depth|frontage|height)",
    re.IGNORECASE,
)
"""A dimension of the same object as the one before it: ``and a width``."""
_AREA: Final = re.compile(r"(?:(?:an?|the|total|gross|minimum) )*(?:area|size)", re.IGNORECASE)
_HOLDS: Final = re.compile(r"\b(?:contain|have|exceed)")
_OWNED: Final = re.compile(r"(?:an?|the|each|every|any|all|no|its|their|lots?|parcels?)\b", re.IGNORECASE)
"""The first word of a noun phrase that is the measured object, and not an adverb or the end of a verb."""
_HAS: Final = re.compile(r"\b(?:have|has|contains?|provide|needs?|requires?|occup(?:y|ies)|stand|be|is|are)$")
_OF_NP: Final = re.compile(
    r"\b(?:of|for) (?:(?:an?|any|the|all|each|every|such) )?(?P<what>[a-z][\w -]{2,60}?)"
    r"(?= in the\b| shall\b|[,;:.]|$)",
    re.IGNORECASE,
)
_YARD: Final = re.compile(r"\b(?:in|within) (?:the|an?|any|each) [^.,;]{0,40}?\b(?:yards?|setbacks?)\b", re.IGNORECASE)
"""The yard that a structure is in."""
_FOR_BEHIND: Final = re.compile(
    r"\)?,?(?: m\w+imum)? (?:(?:for|on|by) (?:(?:an?|each|all|any|the|every) )?(?=corner|[^.,;]*"
    r"(?:dwellings?|buildings?|structures?|homes?|uses?|duplex(?:es)?|units?|townhouses?|garages?)\b)"
    r"|for (?!each|every|purposes)(?:(?:an?|all|any|the) )?)(?P<what>(?!lots?\b)[a-z][a-z -]{3,60}?)"
    r"(?= and \d| adjacent| in | or |[.,;)]|$)",
    re.IGNORECASE,
)
"""``for a two-family dwelling``, ``on corner lots`` after a measure."""
_ANYWHERE: Final = re.compile(
    r"\b(?:in|within|for|of|on) (?:(?:the|an?|any|all|each|every|this|such|said) )?(?:zoning )?(?:districts?|zones?)$",
    re.I,
)
"""A place that names all districts, or the one of the section."""
_ALSO: Final = re.compile(r"\)?(?:,? (?:or|and|nor)|,) ")
"""Words between two measures with the same words behind them."""
_SIDE_STREET: Final = re.compile(r"\b(?:abutting an?|side|along the(?: side)?) (?:street|road)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The meaning of a measure."""

    types: Sequence[str]
    raw_type: str
    bound: Bound | None
    what: str | None
    object: str = ""
    """The words for the measured object."""
    rule: str = "noun"
    """The rule that read it: a key of `standard_confidence.CONFIDENCE`. ``list``: the lead names the dimension."""
    stop: int | None = None
    """The end of a rate, which has no value: ``one space for every four seats``."""
    where: str | None = None
    """The place of a distance from it, unless it is a line of the lot: ``from a school``."""
    per: str | None = None
    """The unit that a rate is for each of: ``home`` of ``two spaces per home``."""
    used: int = 0
    """The end of the words behind the measure that are read."""
    doubt: bool = False
    """Whether it may be a measure of something else that its clause names."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a sentence in its section."""

    lead: Lead | None
    around: Sequence[str]
    """The districts of a sentence that names none."""
    known: Mapping[str, District]
    topic: str | None = None
    """What pronouns refer to: the subject of the sentence before it."""
    use: str | None = None
    """The use that lots and buildings in general belong to: that of the heading."""
    about: str = ""
    """The words of the headings above it."""
    item: str | None = None
    """The use that the list item of the sentence begins with, unless it is the item's first sentence."""
    cases: Sequence[str] = ()
    """The cases in which the lines above it apply: ``Where a lot abuts a park:``."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A measure of a sentence, with the words around it."""

    each: Measure
    clause: Clause
    governor: str
    """The noun phrase between the verb, or the measure before it, and its bound."""
    compared: re.Match[str] | None
    bound: Bound | None
    behind: str
    """The words up to the next measure, or the end of the clause."""
    before: _Reading | None
    """The meaning of the measure before it in its clause."""
    skipped: str = ""
    """The words between the verb and the noun phrase."""


def find_limits(section: Section, start: int, end: int, context: Context) -> Iterator[Standard]:
    """Yield the standards in the sentence, or line of a list, [start, end) of a section."""
    if end - start > LONGEST:
        return
    sentence = _Sentence(section.text, start, end, context)
    before: _Reading | None = None
    for place in range(len(sentence.measures)):
        before = sentence.read(place, before)
        if before is not None and before.types:
            yield from sentence.build(place, before)


def find_subject(text: str, start: int, end: int) -> str | None:
    """Find the subject of the first clause of a sentence, to which the pronouns of the next one refer."""
    clause = parse_clauses(text, start, min(end, start + LONGEST))[0]
    return name_subject(clause.subject) if clause.has_verb else None


class _Sentence:
    """A sentence [start, end) of a text, or a line of a list, with its clauses and measures."""

    def __init__(self, text: str, start: int, end: int, context: Context) -> None:
        self.text, self.start, self.end, self.context = text, start, end, context
        about_ratios = context.lead is not None and context.lead.type.type == "floor-area-ratio"
        self.measures = find_all_measures(text, start, end, ratios=about_ratios)
        self.clauses = parse_clauses(text, start, end) if self.measures else ()
        self.case = self._find_case()
        """The words before the subject that name a case: ``Where a lot abuts an alley,``."""

    def _find_case(self) -> str | None:
        """Find the words before the first subject that name a case, or an exception behind it: ``Lots, except``."""
        if not any(one.conditional for one in self.clauses):
            return None
        clause = next((one for one in self.clauses if one.has_verb and one.role in ("main", "item")), self.clauses[0])
        at = (
            max(self.text.rfind(clause.subject, self.start, clause.verb), self.start) if clause.subject else clause.verb
        )
        before = LABEL.sub("", self.text[self.start : at].strip(" ,•"))
        return before or self.text[at + len(clause.subject) : clause.verb].strip(" ,") or None

    def group(self, place: int) -> range:
        """Find the measures that share a unit with one: ``22 and 35 feet``."""
        first = last = place
        while first and self.measures[first - 1].shared:
            first -= 1
        while self.measures[last].shared:
            last += 1
        return range(first, last + 1)

    def read(self, place: int, before: _Reading | None) -> _Reading | None:
        """Decide the meaning of a measure. None if it is not known, or if the measure is not a limit."""
        text, each, clause = self.text, self.measures[place], self._clause(place)
        after = clause.rest if clause.after <= clause.rest <= each.start and clause.done != "limited" else clause.after
        edge = after if each.start >= after else clause.start
        if clause.has_verb and each.start < clause.verb:
            clause = drop_subject(clause)
        headless = clause.has_verb and not text[self.start : clause.verb].strip(" •") and clause.other is None
        joined = ";" in text[max(0, self.start - 2) : self.start]
        if headless and not joined and self.context.use is None and self.context.lead is None:
            return None  # Its subject is that of a line above it.
        last = self.measures[place - 1] if place and self.measures[place - 1].start >= edge else None
        behind = self._behind(place, clause)
        if self._is_open(clause, each):
            return None
        phrase = PLACE.sub("", _ASIDE.sub("", text[last.end if last else edge : each.start]))
        if re.search(r"\bprovided,? (?:(?:that|a|at least|not less than) ){0,2}$", phrase) or _INSTEAD.match(behind):
            return None
        if last is None and (not clause.has_verb or (self.context.lead is not None and each.end <= clause.verb)):
            clause = replace(clause, other=find_item(phrase))
        governor, compared = split_governor(phrase, label=not clause.has_verb, first=last is None)
        governor = governor if strip_phrase(governor) else ""
        if (compared is not None and compared["within"] and self._is_case(clause, each)) or (
            last is not None and _ON_LOT.search(phrase)
        ):
            return None
        follows = before if last is not None else None
        carried = follows.bound if follows is not None and follows.types and not governor else "none"
        bound = find_bound(clause, compared, behind, in_subject=each.start < clause.verb, carried=carried)
        if bound == "none":
            return _Reading([], "", None, None, governor) if governor else None
        skipped = phrase[: cuts[-1].end()] if last is None and (cuts := list(BREAK.finditer(phrase))) else ""
        part = _Part(each, clause, governor, compared, bound, behind, follows, skipped)
        reading = self._parking(part) if each.unit == "space" else self._dimension(part)
        if reading is None:
            return None
        street = list(reading.types) == ["street-side-setback"]
        if not street and (clause.role == "exception" or "corner lot" in (clause.other or "")):
            return None
        return reading

    def _behind(self, place: int, clause: Clause) -> str:
        """Get the words between a measure, or those that share its unit, and the next one."""
        last = self.group(place)[-1]
        at, after = self.measures[last].end, self.measures[last + 1 :]
        stop = min(after[0].start if after else clause.end, clause.end)
        return re.sub(r"^\)?,? respectively,?", "", self.text[at : max(at, stop)])

    def _is_open(self, clause: Clause, each: Measure) -> bool:
        """Whether a measure is in a condition, an alternative, or a permission to exceed a limit."""
        text, said = self.text, clause.verb_words
        return (
            clause.role in ("condition", "relative")
            or re.match(r"(?:need|do|does|did)\b", said) is not None
            or re.search(r"\bneeds?(?: not)? $", text[self.start : clause.verb]) is not None
            or (not clause.negated and re.match(r"(?:may|can) exceed", said) is not None)
            or _EXAMPLE.search(text, self.start, each.start) is not None
            or re.match(r"\W*nothing\b", text[clause.start : clause.verb], re.IGNORECASE) is not None
            or (clause.permits and each.end <= clause.verb and not self.case)
            or (clause.negated and is_placed(text[clause.after : each.start]))
            or _LOOSENS.search(text, clause.verb, max(each.start, clause.rest + 3)) is not None
            or _CHOICE.search(text, self.start, self.end) is not None
            or _NOR_SHALL.search(text, self.start, clause.after + 3) is not None
            or self._is_held(clause, each)
        )

    def _is_held(self, clause: Clause, each: Measure) -> bool:
        """Whether a measure is that of the lots of another limit: ``a lot of one acre shall be 150 feet wide``."""
        of_lot = re.search(r"\blots? of $", self.text[clause.start : each.start])
        return bool(of_lot) and each.end <= clause.verb and any(one.start > clause.verb for one in self.measures)

    def _is_case(self, clause: Clause, each: Measure) -> bool:
        """Whether a distance after "within" is where another limit applies: ``within 100 feet of a pond, 30 feet``."""
        others = [one for one in self.measures if one is not each and clause.start <= one.start < clause.end]
        return each.end <= clause.verb or any(not self.text.endswith("within ", 0, one.start) for one in others)

    def _dimension(self, part: _Part) -> _Reading | None:
        """Find the dimension of a measure and what it is for."""
        each, clause, governor = part.each, part.clause, part.governor
        joined = re.search(r"-(?:foot|feet|story|storey|acre)$", each.raw, re.IGNORECASE)
        if joined:
            return self._adjective(part)
        subject = clause.subject
        if holder := _HOLDER.search(governor):
            held, owner = _HELD[governor.rpartition(" ")[2].casefold()], holder["what"]
            use = self._use(part, subject) if LOT.search(owner) or BUILDING.search(owner) else name_subject(owner)
            if any(find_dimensions(owner)):
                use = self._use(part, subject)
            types = find_types(held, each.unit, owner)
            return _Reading(types, governor[holder.start() :], part.bound, use, owner)
        carried = part.before if not governor else None
        reading = self._measure(part, carried)
        if reading is None or reading.rule == "list":
            return reading
        named = find_heads(governor, label=False)
        before = governor[: named[0].start] if named else part.skipped
        return replace(
            reading, doubt=clause.has_verb and has_content(before) and reading.rule in ("noun", "behind", "area")
        )

    def _measure(self, part: _Part, carried: _Reading | None) -> _Reading | None:
        """Find the dimension of a measure by the nouns before it, by the words behind it, or by the lines above."""
        each, clause, governor, subject = part.each, part.clause, part.governor, part.clause.subject
        named = [one for one in find_heads(governor, label=not clause.has_verb) if allows_unit(one.type, each.unit)]
        kind, raw = find_kind_behind(part.behind)
        if kind is None and part.compared is not None:
            kind = next((_KINDS[name] for name in _KINDS if part.compared[name]), None)
            raw = part.compared[0].strip()
        if named and kind not in ("lot-area-per-unit", "floor-area") and not (kind and named[-1].type == "lot-area"):
            return self._of_noun(part, governor, named)
        about = governor if governor and not named else (carried.object if carried and carried.object else subject)
        states = clause.has_verb or clause.other is not None
        if each.unit in LENGTHS and (line := self._of_line(part, carried, about)):
            return line
        stated = part.bound or (clause.obliges and kind != "building-height") or (carried and carried.types)
        if kind is not None and states and stated:
            if raw.startswith("above") and (part.bound != "max" or _END_OF.match(strip_phrase(about))):
                return None
            types, use = find_types(kind, each.unit, about), self._use(part, about)
            return _Reading(types, raw, part.bound, use, about, rule="behind")
        if each.unit == "PERCENT":
            if share := self._share(part):
                return share
            of = _SHARE.match(self.text, each.end, self.end)
            if of is not None and not _OF_LOT.search(of["what"]) and not _OF_LENGTH.search(of["what"]):
                return None
        told = [one for one in find_heads(subject, label=True) if allows_unit(one.type, each.unit)]
        if told and not (governor and not LOT.search(governor)):
            return self._of_noun(part, subject, told)
        if carried is not None and carried.types and allows_unit(carried.types[0], each.unit):
            return replace(carried, bound=part.bound or carried.bound)
        if not clause.has_verb and (listed := self._of_lead(part)):
            return listed
        return (self._of_unit(part, about) if states else None) or self._of_lead(part)

    def _of_line(self, part: _Part, carried: _Reading | None, about: str) -> _Reading | None:
        """Read a distance from a line, or a yard by its side: ``from the side lot line``, ``on the front and rear``."""
        clause, governor, compared = part.clause, part.governor, part.compared
        sides, side = find_sides_behind(part.behind)
        if sides and (self._has_yards(f"{governor} {clause.subject}") or _is_yard(carried)):
            return _Reading(sides, side, part.bound, clause.other)
        near = bool(compared and (compared["near"] or compared["within"])) or bool(carried and carried.rule == "line")
        to = re.search(r"\A(?>.*? to )(.+) than", compared[0], re.DOTALL) if compared is not None else None
        source = f" from {to[1]}" if to else f" {governor}" if re.match("from (?!.* by )", governor) else part.behind
        types, line = find_line_behind(source, near=near)
        if not types and line and not governor and carried is not None and carried.rule == "line":
            return replace(carried, types=["setback"], raw_type=line, where=line)
        states = clause.other is not None or (clause.has_verb and (part.bound or clause.obliges))
        if not types or not states or not (part.bound or clause.obliges or clause.role == "item"):
            return None
        if clause.has_verb and not (_OWNED.match(governor) or clause.verb_words.endswith(("have", "has"))):
            about = clause.subject
        where = line if list(types) == ["setback"] and _OTHER_LAND.search(line) else None
        return _Reading(types, line, part.bound or "min", self._use(part, about), about, rule="line", where=where)

    def _of_unit(self, part: _Part, about: str) -> _Reading | None:
        """Read a measure by its unit alone: an area, dwellings per acre, storeys."""
        each, clause, bound, subject = part.each, part.clause, part.bound, part.clause.subject
        if each.unit in AREAS and bound:
            about = subject if _AREA.fullmatch(part.governor) else about
            use = self._use(part, about)
            about = "lot" if part.behind.startswith(" of land") else about
            return _Reading(find_types("lot-area", each.unit, about), each.raw, bound, use, about, rule="area")
        if each.unit == "dwelling" and bound == "max" and subject and _HOLDS.search(clause.verb_words):
            return _Reading(["dwelling-units"], each.raw, bound, self._use(part, subject), subject)
        if each.unit == "dwelling-per-acre":
            return _Reading(["density"], each.raw, bound, self._use(part, subject))
        height = each.unit == "storey" or (not part.governor and self._is_height_next(each))
        if height and bound == "max" and allows_unit("building-height", each.unit):
            return _Reading(["building-height"], each.raw, bound, self._use(part, about), about)
        return None

    def _has_yards(self, words: str) -> bool:
        lead = self.context.lead
        return re.search(r"\b(?:yards?|set ?backs?)\b", words, re.IGNORECASE) is not None or (
            lead is not None and lead.type.type.endswith("setback")
        )

    def _is_height_next(self, each: Measure) -> bool:
        """Whether the next measure is an alternative height: ``35 feet or 2 stories in height``."""
        after = next((one for one in self.measures if one.start > each.start), None)
        joined = after and re.fullmatch(r"\)?,? (?:or|and|nor) ", self.text[each.end : after.start])
        return bool(after and joined and find_kind_behind(self.text[after.end : self.end])[0] == "building-height")

    def _adjective(self, part: _Part) -> _Reading | None:
        """Read a measure before its noun: ``a 25-foot rear setback``. Only dimensions are understood so."""
        noun = re.match(r"(?: (?:minimum|maximum|required))*", part.behind)
        at = noun.end() if noun else 0
        named = [one for one in find_dimensions(part.behind, at) if one.start <= at + 1]
        if not named or not allows_unit(named[-1].type, part.each.unit) or part.clause.permits:
            return None
        stated = part.bound or bound_of(part.behind[:at])
        return _Reading([named[-1].type], part.behind[named[-1].start : named[-1].end], stated, self._use(part, ""))

    def _of_noun(self, part: _Part, words: str, named: Sequence[Dimension]) -> _Reading | None:
        """Read a measure of a dimension that a noun names: ``a front yard of``, ``the height of a building``."""
        clause, before = part.clause, part.before
        sides = [one.type for one in named if one.type.endswith("-setback")]
        type_, raw = named[-1].type, words[named[-1].start : named[-1].end]
        if words == clause.subject:
            clause = drop_subject(clause)
        of = _OF_NP.search(words, named[-1].start)
        about, what = "", clause.other
        if of and type_ != "lot-area-per-unit":
            about = of["what"]
            what = self._use(replace(part, clause=clause), about)
        elif before is not None and before.object and _BARE.fullmatch(words):
            about, what = before.object, before.what
        elif clause.subject and _HAS.search(clause.verb_words):
            about = clause.subject
            what = self._use(part, about)
        elif re.match(r"(?:its|their)\b", words.strip(), re.IGNORECASE):
            what = self._antecedent(clause)
        elif clause.subject and _BARE.fullmatch(words):
            what = self._use(part, clause.subject)
        elif not clause.has_verb and self.context.lead is not None:
            what = what or self.context.lead.what
        types: Sequence[str] = [type_]
        where: str | None = None
        if sides:
            types = list(dict.fromkeys(sides)) if re.search(r"\b(?:and|or)\b|,", words) else sides[-1:]
            if _SIDE_STREET.search(f"{words} {part.behind}"):
                types, what = ["street-side-setback"], None
        elif type_ == "setback":
            types = find_line_behind(part.behind)[0] or types
        elif type_ in ("lot-width", "lot-depth") and "lot" not in raw.casefold():
            types = find_types(type_, part.each.unit, about or "lot")
        elif type_ == "floor-area" and (UNIT.search(about) or re.search(r"\bper (?:dwelling )?unit\b", words)):
            types = ["unit-size"]
        elif type_ == "building-height" and about:
            types = find_types(type_, part.each.unit, about)
        if not types or not allows_unit(types[0], part.each.unit):
            return None
        if type_ == "setback" and (place := re.search(r"\b(?:from|to|along|on) (.+)", words[named[-1].end :])):
            types = find_line_behind(f" from {place[1]}")[0]
            types, where = (types, None) if types else ([type_], place[0])
        if types[0].endswith("setback") and _TOTAL.search(f"{words} {part.behind[:24]}"):
            return None
        bound = part.bound or bound_of(words) or bound_of(clause.subject)
        return _Reading(types, raw, bound, what or self.context.use, about, where=where)

    def _share(self, part: _Part) -> _Reading | None:
        """Read a share of a lot: ``40 percent of the lot may be covered by buildings``."""
        match = _SHARE.match(self.text, part.each.end, self.end)
        if match is None or not _OF_LOT.search(match["what"]):
            return None
        later = (one.start for one in self.measures if one.start > part.each.start)
        near = self.text[part.each.end : min(next(later, part.clause.end), part.clause.end)].casefold()
        words = self.text[part.clause.start : part.clause.end].casefold()
        type_ = next((type_ for said in (near, words) for stem, type_ in _SHARES.items() if stem in said), None)
        named = name_subject(part.clause.subject) if type_ == "lot-coverage" else None
        what = named if named and BUILDING.search(named) and "cover" not in named else self.context.use
        return None if type_ is None else _Reading([type_], part.each.raw, part.bound, what, rule="share")

    def _parking(self, part: _Part) -> _Reading | None:
        """Read a number of parking spaces: the use that must have them, and what they are counted by."""
        text, each, clause, context = self.text, part.each, part.clause, self.context
        about = f"{context.about} {text[self.start : self.end]}".casefold()
        fewer = part.behind.startswith((" or less", " or fewer"))
        if part.bound == "max" or fewer or "parking" not in about or clause.permits:
            return None
        rate = _RATE.match(text, each.end, self.end)
        if rate is None and clause.after > each.end:
            rate = _RATE.match(text, clause.after, self.end)
        named = name_subject(clause.subject) if _HAS.search(clause.verb_words) else None
        what = (
            clause.other or (None if named and re.match("parking\\b|spaces?\\b", named, re.I) else named) or context.use
        )
        plain = rate is None or (rate["count"] is None and not re.search(r"\d", rate["each"]))
        if plain and re.search(r"\b(?:additional|guest|visitor)\b", each.raw, re.IGNORECASE):
            return None  # A rate is recorded in its words, which say that the spaces are those of guests.
        per = rate["each"] if rate is not None and plain else None
        what = what or per
        stop = None if rate is None or plain else rate.end()
        used = rate.end() if rate is not None else 0
        return _Reading(["parking"], each.raw, part.bound or "min", what, rule="parking", stop=stop, per=per, used=used)

    def _of_lead(self, part: _Part) -> _Reading | None:
        """Read a measure without a dimension of its own by the line or heading above it."""
        lead, clause = self.context.lead, part.clause
        if lead is None or not allows_unit(lead.type.type, part.each.unit):
            return None
        if lead.type.type.endswith("setback") and (
            clause.verb_words.endswith("exceed") or _TOTAL.search(part.behind[:24])
        ):
            return None
        if clause.subject and name_subject(clause.subject):
            return None
        if re.search(r"\bplus\b", part.governor):
            return None
        item = name_subject(part.governor) if part.governor[:1].isalpha() else None
        if item is not None and naming.find_codes(item, self.context.known):
            item = None
        if clause.other and item and clause.other.endswith(item):
            item = None  # "For barns or sheds" is one item.
        place = self.measures.index(part.each)
        if item is None and place and not self.measures[place - 1].shared:
            return None  # The same in another unit, or an addition to it: "plus 500 square feet for each bedroom".
        if item and clause.other:  # "For camps: cabins and tents, one acre", "For inns, and camps: one acre"
            both = re.compile(rf"{re.escape(clause.other)}[:,]? .{{0,80}}?{re.escape(item)}")
            item = found[0] if (found := both.search(self.text, clause.start, part.each.start)) else item
        what = item or clause.other or self.context.item or lead.what or self.context.use
        return _Reading([lead.type.type], lead.raw, part.bound or lead.bound, what, rule="list")

    def _use(self, part: _Part, words: str) -> str | None:
        """Find the use or structure that a measure is for, from the words for the measured object."""
        clause = part.clause
        if of := re.match(r"(?:that|those) of (?:the |an? )?(.+)", part.governor):
            return name_subject(of[1])
        if not words and part.before is not None and not part.governor:
            return part.before.what
        if is_pronoun(words):
            return clause.other or self._antecedent(clause)
        if (named := name_subject(words)) is not None:
            return named
        if words != clause.subject and clause.subject and _HAS.search(clause.verb_words):
            return self._use(part, clause.subject)
        return clause.other or self.context.use

    def _antecedent(self, clause: Clause) -> str | None:
        """Find the antecedent of a pronoun: the subject of a clause before it, or of the sentence before."""
        earlier = [one.subject for one in self.clauses if one.start < clause.start and not is_pronoun(one.subject)]
        found = next((named for words in reversed(earlier) if (named := name_subject(words))), self.context.topic)
        return _YARD.sub("", found).strip() if found else None

    def districts(self, place: int) -> Sequence[str]:
        """Find the districts of a measure: those named with it, else with the measures before it, else anywhere."""
        text, measures, known = self.text, self.measures, self.context.known
        group = self.group(place)
        if len(group) > 1 or self._is_respective():
            group = group if len(group) > 1 else range(len(measures))
            for begin, end in ((self.start, measures[group[0]].start), (measures[group[-1]].end, self.end)):
                codes = find_scope(text, begin, end, known)
                if codes and len(codes) == len(group):
                    return [codes[place - group[0]]]
            place = group[-1]
        after = measures[place + 1].start if place + 1 < len(measures) else None
        if after is not None and _ALSO.fullmatch(text[measures[place].end : after]):
            return self.districts(place + 1)
        if codes := find_scope(text, measures[place].end, self._break(place), known):
            return codes
        for at in range(place, -1, -1):
            begin = self._break(at - 1) if at else self.start
            if (codes := find_scope(text, begin, measures[at].start, known)) is not None:
                return codes
        whole = find_scope(text, self.start, self.end, known)
        return self.context.around if whole is None else whole

    def _is_respective(self) -> bool:
        """Whether all measures are in the order of the districts: ``20 acres and 5 acres, respectively``."""
        return len(self.measures) > 1 and "respectively" in self.text[self.measures[-1].end : self.end]

    def _find_joined(self, place: int) -> int:
        """Find the last of the measures that share the words behind them: ``30 feet or two stories, except``."""
        measures = self.measures
        while place + 1 < len(measures) and _ALSO.fullmatch(self.text[measures[place].end : measures[place + 1].start]):
            if self._find_addition(place):
                break  # "75 feet, or 90 feet for a corner lot"
            place += 1
        return place

    def _find_addition(self, place: int) -> str | None:
        after = next((one for one in self.measures[place + 1 :] if self.text[one.start - 1] != "["), None)
        return None if self.measures[place].shared else find_addition(self.text, self.measures[place], after, self.end)

    def _break(self, place: int) -> int:
        """Find where the words that belong to a measure end, before those of the next one."""
        start = self.measures[place].end
        if place + 1 == len(self.measures):
            later = (one.start for one in self.clauses if one.start >= start and one.role == "main")
            return next(later, self.end)
        cuts = list(BREAK.finditer(self.text, start, self.measures[place + 1].start))
        cuts = [cut for cut in cuts if not re.match(r"[A-Z]", self.text[cut.end() :])]
        return cuts[-1].start() if cuts else start

    def build(self, place: int, reading: _Reading) -> Iterator[Standard]:
        """Yield the standards with a measure as their value."""
        text, each = self.text, self.measures[place]
        districts = self.districts(place)
        if districts is self.context.around and names_unknown(text, self.start, self.end):
            return
        for type_ in dict.fromkeys(reading.types):
            stop, value = (each.end, each.value) if reading.stop is None else (reading.stop, None)
            if each.unit == "PERCENT" and not allows_percent(type_):
                share = _SHARE.match(text, each.end, self.end)
                if share is None or not _OF_LENGTH.search(share["what"]):
                    continue
                stop, value = share.end(), None
            if not self._is_limit(type_, reading, each):
                continue
            per_unit = _PER_UNIT.match(text, stop, self.end) if type_ == "lot-area" else None
            type_, used = ("lot-area-per-unit", per_unit.end()) if per_unit else (type_, max(stop, reading.used))
            what, conditions = self._qualify(place, reading, used)
            if type_ == "floor-area" and reading.bound == "min" and DWELLING.search(what or ""):
                type_ = "unit-size"
            rated = place > 0 and type_ == "lot-area" and _RATED.match(text, stop, self.end)
            sure = is_clear(what) and not reading.doubt and not rated
            yield Standard(
                tuple(districts),
                type_in_unit(type_, each.unit),
                reading.raw_type,
                reading.bound or default_bound(type_),
                text[each.start : stop],
                value,
                each.unit if value is not None else None,
                what,
                conditions,
                each.start,
                stop,
                find_confidence(reading.rule, type_, districts, what, conditions) if sure else UNSURE,
                "list" if reading.rule == "list" else "sentence",
            )

    def _is_limit(self, type_: str, reading: _Reading, each: Measure) -> bool:
        """Whether a measure limits a dimension, and is not only named with it."""
        if type_ == "building-height" and reading.bound == "min" and reading.what is None:
            return (
                _ANY_HEIGHT.search(f"{reading.raw_type} {reading.object} {self.text[self.start : each.start]}")
                is not None
            )
        return reading.bound is not None or type_ not in ("floor-area", "unit-size", "open-space")

    def _qualify(self, place: int, reading: _Reading, used: int) -> tuple[str | None, Sequence[str]]:
        """Find the use of a measure, and the words that limit it: the cases of the lines above and of its sentence,
        the words behind it that no rule reads, an exception or proviso."""
        text, clause, last = self.text, self._clause(place), self._find_joined(place)
        at = self._skip_dimension(used if last == place else self.measures[last].end, reading)
        stop, (what, near) = self._break(last), split_near(reading.what)
        said = _FOR_BEHIND.match(text, at, stop) if what is None or reading.rule in ("noun", "list") else None
        said = None if "open-space" in reading.types else said
        if said and not naming.find_codes(said["what"], self.context.known):
            what, at = said["what"].strip(), said.end()
        after = self.measures[last + 1].start if last + 1 < len(self.measures) else self.end
        but = _BUT.search(text, at, self.end)
        but = but if but and but.start() <= after else None
        rests = list(self._find_rests(clause, at, max(at, but.start() if but else stop)))
        found = [*self.context.cases, *near]
        found += [self.case] if self.case and clause.conditional else []
        found += [f"per {reading.per}"] if reading.per and reading.per not in (what or "") else []
        found += [reading.where] if reading.where else []
        found += [kind[0]] if _is_yard(reading) and (kind := _ROAD.search(text, self.measures[place].end, stop)) else []
        held = any(self._is_held(clause, one) for one in self.measures if one.start >= clause.start)
        found += [clause.subject] if held else []
        found += [other[0]] if (other := _OTHERWISE.search(text, clause.start, self.measures[place].start)) else []
        if what is None and (beside := BESIDE.search(clause.subject)):
            found.append(clause.subject[beside.start() :])
        zone = PLACE.search(text, self.start, clause.verb)
        if zone and re.search(r"[A-Z0-9]", zone[0][1:]) and self.districts(last) is self.context.around:
            found.append(zone[0].strip(" ,"))  # a district that is not known
        found += find_enclosed(text, self.start, clause, self.measures[place].start)
        owner = name_subject(clause.subject) if clause.verb_words.endswith(("have", "has")) else None
        found += [clause.subject] if what and owner and owner.split()[-1] not in what else []
        found += [yard[0]] if (yard := _YARD.search(what or "")) else []
        found += rests
        added = self._find_addition(place)
        if added is None and list(reading.types) == ["side-setback"]:
            added = find_sum(text, self.measures[place], self.end)
        if added and not any(added in each or each in added for each in (*rests, but[0] if but else "-")):
            found.append(added)
        if but:
            found.append(but[0].strip(" .,("))
        elif text[self.end - 1 : self.end] == ";" and (later := _PROVISO.match(text, self.end)):
            found.append(later[0].strip(" .,("))
        return what, found

    def _clause(self, place: int) -> Clause:
        """Find the clause of a measure."""
        at = self.measures[place].start
        return next((one for one in reversed(self.clauses) if one.start <= at), self.clauses[0])

    def _find_rests(self, clause: Clause, at: int, end: int) -> Iterator[str]:
        """Yield the words in [at, end) behind a measure, without the verb and the districts."""
        parts = [(at, min(clause.verb, end)), (clause.rest, end)] if at <= clause.verb < end else [(at, end)]
        for first, until in parts:
            rest = PLACE.sub(self._drop_known, self.text[first:until]).strip(" .,;:()–-")
            if has_content(rest):
                yield rest
            elif rest.isdecimal() and (note := re.search(rf"^{rest} [A-Z].*", self.text[self.end :], re.MULTILINE)):
                yield note[0][:LONGEST]

    def _drop_known(self, place: re.Match[str]) -> str:
        """Drop a place that is a known district, or all of them."""
        named = find_scope(place[0], 0, len(place[0]), self.context.known)
        return place[0] if named is None and not _ANYWHERE.search(place[0]) else ""

    def _skip_dimension(self, at: int, reading: _Reading) -> int:
        """Skip the words behind a measure that name its dimension: ``in height``, ``from the side lot line``."""
        words = self.text[at : self.end]
        line = (
            find_line_behind(words, near=reading.rule == "line")[1] if _is_yard(reading) and not reading.where else ""
        )
        for named in (line, reading.raw_type, find_kind_behind(words)[1], reading.where or ""):
            if named and (found := words.find(named, 0, len(named) + 4)) >= 0:
                return at + found + len(named)
        return at


def _is_yard(reading: _Reading | None) -> bool:
    return reading is not None and any(each.endswith("setback") for each in reading.types)
