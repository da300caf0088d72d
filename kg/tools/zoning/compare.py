"""Tool that compares municipalities: the districts that permit a use, and the range of each standard.

Standards are converted to one unit per row by the QUDT factors in ``ontology/reference/units.ttl``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from fractions import Fraction
from functools import cache
from statistics import median
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, RdfFormat, parse

from kg import bundle
from kg.errors import InvalidInputError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import NEAREST, shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, clean_text, page_of
from kg.retrieval.results import Layout, Lean, Result
from kg.text import natural_key, quoted
from kg.tools.zoning.governing_passages import has_text
from kg.tools.zoning.name_lookup import (
    PageSize,
    Place,
    Skipped,
    StandardType,
    UseName,
    Vocabulary,
    build_no_match,
    find_alike,
    find_place,
    find_spelled,
    find_standard_types,
    load_vocabulary,
)
from kg.tools.zoning.rules import Found, RuleKind, find_overruled, find_rules, follow_references, load_rules
from kg.vocabulary import KG, QUDT, UNIT
from kg.zoning_summaries.use_names import parse_use_kinds

MOST_PLACES: Final = 10
SHOWN_DISTRICTS: Final = 60

Kind = Literal["use", "standard"]

MunicipalityNames = Annotated[list[str], Field(min_length=2, max_length=MOST_PLACES, description="Each as Name, State")]


class UseCell(Lean):
    """A use in one municipality: district codes by level of permission, or by the source's word for it."""

    municipality: str
    districts: dict[str, list[str]] = Field(description="Empty: not recorded")
    with_conditions: list[str] | None = Field(None, description="Those of the districts where conditions apply")
    by_reference: dict[str, list[str]] | None = Field(
        None, description="Districts that refer to the uses of districts in which it is recorded, with these"
    )
    rules: list[str] = Field(description="At most 3 of the rules")


class UseRow(Lean):
    """A use in all municipalities."""

    use: str
    places: list[UseCell]


class StandardCell(Lean):
    """A standard in one municipality: lowest and highest value of its districts, in the unit of the row."""

    municipality: str
    lowest: float | None = None
    lowest_recorded: str | None = Field(None, description="Number and unit as recorded, if converted")
    lowest_in: str | None = None
    lowest_for: str | None = Field(None, description="What it applies to, if not to all")
    lowest_in_case: Literal[True] | None = Field(None, description="Applies in a case only: see its conditions")
    median: float | None = None
    highest: float | None = None
    highest_recorded: str | None = None
    highest_in: str | None = None
    highest_for: str | None = None
    highest_in_case: Literal[True] | None = None
    districts: int
    not_numbers: list[str] | None = None
    only_for: list[str] | None = Field(None, description="No value answers: those recorded are for these subjects")
    rules: list[str]


class StandardRow(Lean):
    """A standard in all municipalities, in the most common unit of its values."""

    standard_type: str
    bound: str | None = None
    unit: str | None = None
    places: list[StandardCell]


class PlaceCoverage(Lean):
    """Gaps of the comparison in the districts of one municipality: its sentences are not read."""

    municipality: str
    kind: Kind
    without_rule: list[str] | None = Field(None, description="Districts of which nothing was read")
    unsure: dict[str, int] | None = Field(None, description="Unsure rules, which are not compared, by district")


class ZoningComparison(Result):
    """Uses and standards of municipalities side by side, the most common first."""

    layout: ClassVar[Layout] = Layout(paged=("uses", "standards"))

    municipalities: list[str]
    uses: list[UseRow]
    standards: list[StandardRow]
    coverage: list[PlaceCoverage] = Field(description="Of codes with text")


def compare_zoning(
    kg: KnowledgeGraph,
    municipalities: MunicipalityNames,
    use: UseName = None,
    standard_type: StandardType = None,
    limit: PageSize = 20,
    offset: Skipped = 0,
) -> ZoningComparison:
    """Compare municipalities: where each permits a use, and the values of its standards.

    Use to compare places. Uses are matched by name. Returns uses with districts by level (with_conditions: those with
    conditions), standards with lowest, median and highest value in one unit, and the IRIs of rules. With `use`,
    standards for other uses are omitted.
    Example: compare_zoning(municipalities=["Quarry Bend, UT", "Lower Quill, CT"], use="duplex",
    standard_type="height").
    Next: `kg_query_permissions`, `kg_query_standards` for the evidence.
    """
    bounded_page(limit, offset)
    reader, notes = Reader(kg), list[str]()
    towns = [load_vocabulary(reader, _parse_place(reader, given)) for given in municipalities]
    if len({town.place.iri for town in towns}) < len(towns):
        raise InvalidInputError("municipalities: A municipality is named twice. Name each once.")
    if not 2 <= len(towns) <= MOST_PLACES:
        raise InvalidInputError(f"municipalities: {len(towns)} are named. Name 2 to {MOST_PLACES}.")
    reader.start_selection()
    kinds: list[RuleKind] = [] if use is None and standard_type is not None else ["permission"]
    if use is None or standard_type is not None:
        kinds.append("standard")
    wanted = None if use is None else _find_uses(clean_text("use", use, 300), towns)
    uses = _compare_uses(reader, towns, use, wanted, notes, offset, limit) if "permission" in kinds else []
    standards = _compare_standards(reader, towns, standard_type, use, wanted, notes) if "standard" in kinds else []
    notes += [f"{town.place.quoted} has no recorded districts." for town in towns if not town.districts]
    coverage = [found for town in towns for kind in kinds if (found := _check_town(reader, town, kind)) is not None]
    longest: Sequence[object] = uses if len(uses) > len(standards) else standards
    return reader.finish(
        ZoningComparison(
            municipalities=[town.place.shown for town in towns],
            uses=uses[offset : offset + limit],
            standards=standards[offset : offset + limit],
            coverage=coverage,
            notes=notes,
        ),
        total=len(longest),
        next_offset=page_of(longest, offset, limit),
        completeness="approximate" if coverage else "complete",
    )


def _select(reader: Reader, town: Vocabulary, kind: RuleKind) -> list[Found]:
    """Select the reported rules that no rule of a source overrules."""
    kinds = {iri: parse_use_kinds(each.name) for iri, each in town.uses.items()}
    found = [each for each in find_rules(reader, kind, town).reported if kind == "standard" or each.about in kinds]
    overruled = find_overruled(reader, found, found, lambda about: kinds.get(about, about))
    return [each for each in found if each.iri not in overruled]


def _check_town(reader: Reader, town: Vocabulary, kind: RuleKind) -> PlaceCoverage | None:
    """Check the rules of the districts of a place. None if no text is loaded and no rule is unsure."""
    reported, unsure = (Counter(each.district for each in several) for several in find_rules(reader, kind, town))
    districts = town.districts.items()
    counts = {each.code: count for iri, each in districts if (count := unsure[iri])}
    if not counts and not has_text(reader, town.place):
        return None
    return PlaceCoverage(
        municipality=town.place.shown,
        kind="use" if kind == "permission" else "standard",
        without_rule=[each.code for iri, each in districts if not reported[iri]] or None,
        unsure=counts or None,
    )


def _parse_place(reader: Reader, given: str) -> Place:
    name, comma, state = clean_text("municipalities", given, 260).rpartition(",")
    if not comma or not name.strip() or not state.strip():
        raise InvalidInputError(f'municipalities: {quoted(given)} is not "Name, State". Example: "Quarry Bend, UT".')
    return find_place(reader, name, state.strip(), "municipalities")


def _compare_uses(
    reader: Reader,
    towns: Sequence[Vocabulary],
    use: str | None,
    wanted: Set[str] | None,
    notes: list[str],
    offset: int,
    limit: int,
) -> list[UseRow]:
    """Build the rows of uses. Those that are not on the page have no places."""
    names: dict[str, str] = {}
    cells: dict[str, dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for town in towns:
        for each in _select(reader, town, "permission"):
            name = town.uses[each.about].name
            if wanted is None or fold(name) in wanted:
                names.setdefault(fold(name), name)
                cells[fold(name)][town.place.iri].append(each)
    order = sorted(cells, key=lambda name: (-len(cells[name]), natural_key(name)))
    if use is not None:
        if len(order) > 1:
            called = shorten([names[name] for name in order])
            notes.append(
                f"use: {quoted(use)} was interpreted as {called}. Each name has a row, though they may be synonyms."
            )
        notes += [
            f"{town.place.quoted}: No permission is recorded for this use. That is not a prohibition."
            for town in towns
            if town.districts and not any(town.place.iri in each for each in cells.values())
        ]
    page = order[offset : offset + limit]
    rules = load_rules(
        reader, {each.iri: each.graph for name in page for found in cells[name].values() for each in found}
    )

    def to_cell(town: Vocabulary, name: str) -> UseCell:
        found = cells[name].get(town.place.iri, ())
        districts: dict[str, list[str]] = defaultdict(list)
        conditional: list[str] = []
        for each in found:
            rule, code = rules[each.iri], town.districts[each.district or ""].code
            districts[rule.code(KG.permissionLevel) or rule.one(KG.rawLevel) or "not recorded"].append(code)
            if rule.all(KG.condition):  # of its own: "Duplexes (R-3 zone only)" among the permitted uses
                conditional.append(code)
        return UseCell(
            municipality=town.place.shown,
            districts={level: _sort(codes)[:SHOWN_DISTRICTS] for level, codes in sorted(districts.items())},
            with_conditions=_sort(conditional)[:SHOWN_DISTRICTS] or None,
            by_reference=_find_referring(reader, town, found, names[name], notes) if use and found else None,
            rules=sorted(each.iri for each in found)[:3],
        )

    return [UseRow(use=names[name], places=[to_cell(town, name) for town in towns if name in page]) for name in order]


def _find_referring(
    reader: Reader, town: Vocabulary, found: Sequence[Found], use: str, notes: list[str]
) -> Mapping[str, list[str]] | None:
    """Find the districts that refer to the uses of those with these rules, each with the codes that it refers to."""
    districts, stated = town.districts, {each.district for each in found}
    followed = follow_references(town, districts, find_rules(reader, "permission", town).reported, stated, use)
    said = [f"{town.place.quoted}: {note}" for note in followed.notes]
    notes += [note for note in said if note not in notes]
    return {
        districts[iri].code: [each.code for other, each in districts.items() if other in led]
        for iri, led in followed.led.items()
    } or None


def _sort(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts), key=natural_key)


def _find_uses(text: str, towns: Sequence[Vocabulary]) -> set[str]:
    """Find the case-folded names of uses that `text` names in any of the municipalities."""
    found = {fold(choice.label) for town in towns for choice in find_alike(text, [*town.uses.values()])}
    if not found:
        names = [each.label for town in towns for each in town.uses.values()]
        raise build_no_match("use", text, names, " and ".join(town.place.quoted for town in towns))
    return found


class _Value(NamedTuple):
    """A value of a standard in a municipality."""

    number: float | None
    """In the unit of its row."""
    recorded: str
    """The value as recorded; empty for a number that was recorded in the unit of the row."""
    district: str
    rule: str
    applies_to: str
    is_subject: bool
    """Whether it applies to the use asked for, or to any use if none is."""
    conditional: bool
    """Whether it applies in a case only: on lots that abut a park."""


def _compare_standards(
    reader: Reader,
    towns: Sequence[Vocabulary],
    asked: str | None,
    use: str | None,
    wanted: Set[str] | None,
    notes: list[str],
) -> list[StandardRow]:
    found = [(town, each) for town in towns for each in _select(reader, town, "standard")]
    types, bound = {code_of(each.about) for _, each in found}, None
    if asked is not None:
        where = quoted(" and ".join(town.place.shown for town in towns))
        types, bound = find_standard_types(asked, sorted(types), where, notes)
        found = [(town, each) for town, each in found if code_of(each.about) in types]
    rules = load_rules(reader, {each.iri: each.graph for _, each in found})
    if bound is not None:
        found = [(town, each) for town, each in found if rules[each.iri].code(KG.bound) in (bound, None)]
    uses = [each for town in towns for each in town.uses.values()]
    texts = {rules[each.iri].one(KG.appliesTo) or "" for _, each in found}
    subjects = {text: {fold(choice.label) for choice in find_spelled(text, uses)} for text in texts}
    others = {text for text, named in subjects.items() if wanted is not None and named and not named & wanted}
    said = [
        (town, each, rule, (code_of(each.about), rule.code(KG.bound) or ""), rule.quantity() or (None, ""))
        for town, each in found
        if (rule := rules[each.iri]).one(KG.appliesTo) not in others
    ]
    counts = Counter((key, unit) for _, _, _, key, (_, unit) in said if unit)
    rows: dict[tuple[str, str, str], dict[str, list[_Value]]] = defaultdict(lambda: defaultdict(list))
    meant = parse_use_kinds(use or "dwelling")
    for town, each, rule, key, (number, unit) in said:
        # The most common unit of its quantity kind; of all kinds for a value in words.
        units = [
            other
            for of, other in counts
            if of == key and (not unit or get_quantity_kind(other) == get_quantity_kind(unit))
        ]
        common = min(units, key=lambda other: (-counts[key, other], other), default="")
        recorded, applies_to = rule.one(KG.rawValue) or "", rule.one(KG.appliesTo) or ""
        if number is not None:
            recorded = "" if unit == common else f"{number:.15g} {unit}"
            number = convert(number, unit, common)
        is_subject = bool(applies_to) and (bool(subjects[applies_to]) or meant <= parse_use_kinds(applies_to))
        code, conditional = town.districts[each.district or ""].code, bool(rule.all(KG.condition))
        value = _Value(number, recorded, code, each.iri, applies_to, is_subject, conditional)
        rows[*key, common][town.place.iri].append(value)
    if others:
        notes.append(f"Standards for other uses are omitted: {shorten(_sort(others))}.")
    return [
        StandardRow(
            standard_type=key[0],
            bound=key[1] or None,
            unit=key[2] or None,
            places=[_standard_cell(town.place, rows[key].get(town.place.iri, []), use) for town in towns],
        )
        for key in sorted(rows, key=lambda key: (-len(rows[key]), key))
    ]


def _standard_cell(place: Place, found: Sequence[_Value], use: str | None) -> StandardCell:
    """Build the cell of the standards of districts as such, and of the use asked for or, if there are no others, any.

    Those of a case are left out where the district has others. If nothing is left, the subjects of all are listed.
    """
    general = [each for each in found if not each.applies_to]
    of_uses = [each for each in found if each.is_subject]
    kept = [*general, *of_uses] if use is not None else general or of_uses
    always = {each.district for each in kept if not each.conditional}
    values = [each for each in kept if not each.conditional or each.district not in always]
    numbers = sorted(
        (each.number, natural_key(each.district), each.recorded, each.rule, each)
        for each in values
        if each.number is not None
    )
    words = _sort(f"{each.district}: {each.recorded}"[:120] for each in values if each.number is None)
    rules, ends = sorted(each.rule for each in values)[:2], dict[str, Any]()
    if numbers:
        outer = {"lowest": numbers[0][-1], "highest": numbers[-1][-1]}
        for end, value in outer.items():
            ends |= {
                end: value.number,
                f"{end}_recorded": value.recorded or None,
                f"{end}_in": value.district,
                f"{end}_for": value.applies_to or None,
                f"{end}_in_case": value.conditional or None,
            }
        ends["median"] = median(number for number, *_ in numbers)
        rules = list(dict.fromkeys(value.rule for value in outer.values()))
    return StandardCell(
        municipality=place.shown,
        **ends,
        districts=len({each.district for each in values}),
        not_numbers=words[:5] or None,
        only_for=None if kept else _sort(each.applies_to for each in found)[:NEAREST] or None,
        rules=rules,
    )


@cache
def _load_factors() -> Mapping[str, tuple[str, Fraction]]:
    """Load quantity kind and factor to the SI unit of each unit, by local name."""
    kinds: dict[str, str] = {}
    factors: dict[str, Fraction] = {}
    for quad in parse((bundle.folder("ontology") / "reference" / "units.ttl").read_bytes(), format=RdfFormat.TURTLE):
        code = quad.subject.value.removeprefix(UNIT.iri) if isinstance(quad.subject, NamedNode) else ""
        if quad.predicate == QUDT.hasQuantityKind and isinstance(quad.object, NamedNode):
            kinds[code] = quad.object.value
        elif quad.predicate == QUDT.conversionMultiplier and isinstance(quad.object, Text):
            factors[code] = Fraction(quad.object.value)
    return {code: (kind, factors[code]) for code, kind in kinds.items()}


def get_quantity_kind(unit: str) -> str:
    """Get the quantity kind of a unit: units of one kind convert into each other. An unknown unit is its own kind."""
    known = _load_factors().get(unit)
    return unit if known is None else known[0]


def convert(number: float, unit: str, into: str) -> float:
    """Convert a number from `unit` into `into`, a unit of the same kind. Exact but for the final rounding."""
    if unit == into or not math.isfinite(number):
        return number
    # repr() gives the digits that were recorded: 0.23 acres are 10,018.8 square feet.
    return float(Fraction(repr(number)) * _load_factors()[unit][1] / _load_factors()[into][1])
