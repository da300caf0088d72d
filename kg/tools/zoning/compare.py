"""Tool that compares municipalities: the districts that permit a use, and the range of each standard.

Standards are converted to one unit per row by the QUDT factors in ``ontology/reference/units.ttl``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, RdfFormat, parse

from kg import bundle
from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import NEAREST, shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.notes import Note
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import Layout, Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import natural_key, quoted
from kg.tools.zoning.governing_passages import has_text
from kg.tools.zoning.municipalities import PageSize, Place, Skipped, find_place
from kg.tools.zoning.rule_search import RuleKind, count_rules, find_unsure, follow_references
from kg.tools.zoning.term_lookup import (
    UNRECORDED,
    StandardType,
    UseName,
    Vocabulary,
    find_matching,
    find_spelled,
    find_standard_types,
    list_labels,
    load_vocabulary,
    no_match_message,
)
from kg.vocabulary import QUDT, UNIT
from kg.zoning_summaries.use_names import parse_use_kinds

MOST_PLACES: Final = 10
SHOWN_DISTRICTS: Final = 60

USES: Final = """
SELECT ?rule ?district ?use ?level ?raw ?conditional ?confidence ?review WHERE {
  VALUES ?district { $districts } ?rule kg:district ?district ; kg:landUse ?use
  BIND(EXISTS { ?rule kg:condition ?condition } AS ?conditional)
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
  FILTER(!BOUND(?confidence) || ?confidence >= $least || BOUND(?review))
  OPTIONAL { ?rule kg:permissionLevel ?level }
  OPTIONAL { ?rule kg:rawLevel ?raw }
}"""

STANDARDS: Final = """
SELECT ?rule ?district ?type ?bound ?number ?unit ?raw ?applies ?conditional ?confidence ?review WHERE {
  VALUES ?district { $districts } ?rule kg:district ?district ; kg:standardType ?type ; kg:rawValue ?raw
  BIND(EXISTS { ?rule kg:condition ?condition } AS ?conditional)
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
  FILTER(!BOUND(?confidence) || ?confidence >= $least || BOUND(?review))
  OPTIONAL { ?rule kg:bound ?bound }
  OPTIONAL { ?rule kg:appliesTo ?applies }
  OPTIONAL { ?rule kg:quantity ?quantity . ?quantity qudt:numericValue ?number ; qudt:hasUnit ?unit }
}"""

Kind = Literal["use", "standard"]

MunicipalityNames = Annotated[
    list[str],
    Field(min_length=2, max_length=MOST_PLACES, description="Each as Name, State"),
]


class UseCell(Lean):
    """A use in one municipality: district codes by level of permission, or by the source's word for it."""

    municipality: str
    districts: dict[str, list[str]] = Field(description="Empty: not recorded")
    with_conditions: list[str] | None = Field(None, description="Those of the districts where conditions apply")
    by_reference: dict[str, list[str]] | None = Field(
        None, description="Districts that refer to the uses of districts in which it is recorded, with these"
    )
    rules: list[str]


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
    places = [_parse_place(reader, given) for given in municipalities]
    if len({place.iri for place in places}) < len(places):
        raise InvalidInputError("municipalities: A municipality is named twice. Name each once.")
    if not 2 <= len(places) <= MOST_PLACES:
        raise InvalidInputError(f"municipalities: {len(places)} are named. Name 2 to {MOST_PLACES}.")
    known = [load_vocabulary(reader, place) for place in places]
    reader.start_selection()
    uses = [] if use is None and standard_type is not None else _compare_uses(reader, places, known, use, notes)
    standards = (
        []
        if standard_type is None and use is not None
        else _compare_standards(reader, places, known, standard_type, use, notes)
    )
    for place, words in zip(places, known, strict=True):
        if not words.districts:
            notes.append(f"{place.quoted} has no recorded districts.")
    kinds: list[tuple[Kind, RuleKind]] = []
    if use is not None or standard_type is None:
        kinds.append(("use", "permission"))
    if standard_type is not None or use is None:
        kinds.append(("standard", "standard"))
    coverage = [
        found
        for place, words in zip(places, known, strict=True)
        for name, kind in kinds
        if (found := _check_place(reader, place, words, name, kind)) is not None
    ]
    longest: Sequence[object] = uses if len(uses) > len(standards) else standards
    return reader.finish(
        ZoningComparison(
            municipalities=[place.shown for place in places],
            uses=uses[offset : offset + limit],
            standards=standards[offset : offset + limit],
            coverage=coverage,
            notes=notes,
        ),
        total=len(longest),
        next_offset=page_of(longest, offset, limit),
        completeness="approximate" if coverage else "complete",
    )


def _check_place(reader: Reader, place: Place, words: Vocabulary, name: Kind, kind: RuleKind) -> PlaceCoverage | None:
    """Check the rules of the districts of a place. None without unsure rules and text."""
    unsure = Counter(each.district or "" for each in find_unsure(reader, kind, words, words.districts))
    if not unsure and not has_text(reader, place):
        return None
    counts = count_rules(reader, kind, place, words)
    return PlaceCoverage(
        municipality=place.shown,
        kind=name,
        without_rule=[each.code for iri, each in words.districts.items() if not counts.get(iri)] or None,
        unsure={each.code: unsure[iri] for iri, each in words.districts.items() if unsure.get(iri)} or None,
    )


def _parse_place(reader: Reader, given: str) -> Place:
    name, comma, state = clean_text("municipalities", given, 260).rpartition(",")
    if not comma or not name.strip() or not state.strip():
        raise InvalidInputError(f'municipalities: {quoted(given)} is not "Name, State". Example: "Quarry Bend, UT".')
    return find_place(reader, name, state.strip(), "municipalities")


def _compare_uses(
    reader: Reader, places: Sequence[Place], known: Sequence[Vocabulary], use: str | None, notes: list[str]
) -> list[UseRow]:
    wanted = None if use is None else _find_uses(clean_text("use", use, 300), places, known)
    names: dict[str, str] = {}
    cells: dict[str, dict[str, dict[str, list[_Permission]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for place, words in zip(places, known, strict=True):
        rows = _load_rows(reader, f"uses in {place.name}", USES, words)
        for row in _drop_overruled(rows, ("district", "use"), ("level",)):
            named = words.uses.get(iri_of(row["use"]))
            if named is None or (wanted is not None and fold(named.name) not in wanted):
                continue
            names.setdefault(fold(named.name), named.name)
            level = code_of(iri_of(row["level"])) if "level" in row else term_text(row.get("raw", _UNKNOWN))
            code = words.districts[iri_of(row["district"])].code
            conditional = term_text(row["conditional"]) == "true"
            cells[fold(named.name)][place.iri][level].append(_Permission(code, iri_of(row["rule"]), conditional))
    order = sorted(cells, key=lambda name: (-len(cells[name]), natural_key(name)))
    if wanted is not None and len(order) > 1:
        called = shorten([names[name] for name in order])
        notes.append(
            f"use: {quoted(use)} was interpreted as {called}. Each name has a row, though they may be synonyms."
        )
    referring: dict[tuple[str, str], Mapping[str, list[str]]] = {}
    for place, words in zip(places, known, strict=True) if wanted is not None else ():
        recorded = [name for name in order if cells[name].get(place.iri)]
        for name in recorded:
            codes = {each.district for several in cells[name][place.iri].values() for each in several}
            referring[name, place.iri] = _find_referring(reader, place, words, codes, names[name], notes)
        if words.districts and not recorded:
            _find_referring(reader, place, words, frozenset(), use, notes)
            notes.append(f"{place.quoted}: No permission is recorded for this use. That is not a prohibition.")
    return [
        UseRow(
            use=names[name],
            places=[
                _use_cell(place, cells[name].get(place.iri, {}), referring.get((name, place.iri), {}))
                for place in places
            ],
        )
        for name in order
    ]


def _find_referring(
    reader: Reader, place: Place, words: Vocabulary, codes: Collection[str], use: str | None, notes: list[str]
) -> Mapping[str, list[str]]:
    """Find the districts that refer to the uses of those with these codes, each with the codes that it refers to."""
    stated = {iri for iri, each in words.districts.items() if each.code in codes}
    followed = follow_references(reader, words, words.districts, stated, use)
    for note in followed.notes:
        if (said := f"{place.quoted}: {note}") not in notes:
            notes.append(said)
    return {
        words.districts[iri].code: sorted((words.districts[other].code for other in led), key=natural_key)
        for iri, led in followed.led.items()
    }


def _use_cell(place: Place, levels: Mapping[str, Sequence[_Permission]], referring: Mapping[str, list[str]]) -> UseCell:
    found = {
        level: sorted({each.district for each in said}, key=natural_key)[:SHOWN_DISTRICTS]
        for level, said in sorted(levels.items())
    }
    rules = sorted(each.rule for said in levels.values() for each in said)
    conditional = {each.district for said in levels.values() for each in said if each.conditional}
    return UseCell(
        municipality=place.shown,
        districts=found,
        with_conditions=sorted(conditional, key=natural_key)[:SHOWN_DISTRICTS] or None,
        by_reference=dict(sorted(referring.items(), key=lambda each: natural_key(each[0]))) or None,
        rules=rules[:3],
    )


def _find_uses(text: str, places: Sequence[Place], known: Sequence[Vocabulary]) -> set[str]:
    """Find the case-folded names of uses that `text` names in any of the places."""
    found: set[str] = set()
    for words in known:
        choices = [each.choice for each in words.uses.values()]
        found |= {fold(words.uses[choice.term.value].name) for choice in find_matching(text, choices)}
    if not found:
        choices = [each.choice for words in known for each in words.uses.values()]
        where = " and ".join(place.quoted for place in places)
        raise NotFoundError(no_match_message("use", text, list_labels(choices), where) + UNRECORDED)
    return found


class _Permission(NamedTuple):
    """A permission of a use in a district."""

    district: str
    rule: str
    conditional: bool
    """Whether it has conditions of its own: ``Duplexes (R-3 zone only)`` among the permitted uses."""


class _Value(NamedTuple):
    """A value of a standard. Its number is in the unit of its row."""

    number: float | None
    recorded: str
    """The value as recorded; empty for a number that was recorded in the unit of the row."""
    district: str
    rule: str
    applies_to: str | None
    conditional: bool
    """Whether it applies in a case only: on lots that abut a park."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A value with its place and what it is a value of."""

    place: Place
    key: tuple[str, str]
    """Type and bound."""
    unit: str
    """Empty without a number."""
    value: _Value


_Units = Mapping[tuple[str, str], Mapping[str, Counter[str]]]
"""How often each unit occurs, by type and bound, then by quantity kind."""
_Cells = Mapping[tuple[str, str, str], Mapping[str, list[_Value]]]
"""Values by type, bound and unit, then by place."""


def _other_uses(places: Sequence[Place], known: Sequence[Vocabulary], use: str | None) -> Callable[[str], bool]:
    """Build a predicate on `applies_to`: whether the standard is for another use than `use`."""
    if use is None:
        return lambda applies_to: False
    wanted = _find_uses(clean_text("use", use, 300), places, known)
    uses = [each.choice for words in known for each in words.uses.values()]

    @cache
    def other(applies_to: str) -> bool:
        named = {fold(choice.label) for choice in find_spelled(applies_to, uses)}
        return bool(named) and not named & wanted

    return other


def _compare_standards(
    reader: Reader,
    places: Sequence[Place],
    known: Sequence[Vocabulary],
    asked: str | None,
    use: str | None,
    notes: list[str],
) -> list[StandardRow]:
    left_out = set[str]()
    is_subject = _build_subject_test(places, known, use)
    found = list(_find_values(reader, places, known, _other_uses(places, known, use), left_out))
    units: dict[tuple[str, str], dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for each in found:
        if each.unit:
            units[each.key][get_quantity_kind(each.unit)][each.unit] += 1
    cells = _convert_values(found, units)
    if asked is not None:
        cells = _select_types(cells, asked, places, notes)
    order = sorted(cells, key=lambda key: (-len(cells[key]), key))
    notes.extend(_note_conversions(order, units))
    if left_out:
        notes.append(f"Standards for other uses are omitted: {shorten(sorted(left_out, key=natural_key))}.")
    return [
        StandardRow(
            standard_type=kind,
            bound=bound or None,
            unit=unit or None,
            places=[
                _standard_cell(place, *_select_general(cells[kind, bound, unit].get(place.iri, []), is_subject, use))
                for place in places
            ],
        )
        for kind, bound, unit in order
    ]


def _find_values(
    reader: Reader,
    places: Sequence[Place],
    known: Sequence[Vocabulary],
    for_another: Callable[[str], bool],
    left_out: set[str],
) -> Iterator[_Found]:
    """Yield the values of all places. What those for another use apply to is added to `left_out`."""
    for place, words in zip(places, known, strict=True):
        rows = _load_rows(reader, f"standards in {place.name}", STANDARDS, words)
        for row in _drop_overruled(rows, ("district", "type", "bound", "applies", "unit"), ("number",)):
            applies_to = term_text(row["applies"]) if "applies" in row else None
            if applies_to is not None and for_another(applies_to):
                left_out.add(applies_to)
                continue
            key = code_of(iri_of(row["type"])), code_of(iri_of(row["bound"])) if "bound" in row else ""
            code = words.districts[iri_of(row["district"])].code
            number = float(term_text(row["number"])) if "number" in row else None
            conditional = term_text(row["conditional"]) == "true"
            value = _Value(number, term_text(row["raw"]), code, iri_of(row["rule"]), applies_to, conditional)
            yield _Found(place, key, code_of(iri_of(row["unit"])) if number is not None else "", value)


def _convert_values(found: Iterable[_Found], units: _Units) -> _Cells:
    """Convert the values of each type and bound to its most common unit, where their units convert into it."""
    cells: dict[tuple[str, str, str], dict[str, list[_Value]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        of, value = units.get(each.key, {}), each.value
        alike = of[get_quantity_kind(each.unit)] if each.unit else sum(of.values(), Counter[str]())
        common = get_commonest(alike)
        if value.number is not None:
            said = "" if each.unit == common else f"{value.number:.15g} {each.unit}"
            value = value._replace(number=convert(value.number, each.unit, common), recorded=said)
        cells[*each.key, common][each.place.iri].append(value)
    return cells


def _select_types(cells: _Cells, asked: str, places: Sequence[Place], notes: list[str]) -> _Cells:
    """Select the rows of the type and bound asked for."""
    where = Place("", " and ".join(place.shown for place in places), ())
    types, bound = find_standard_types(asked, sorted({kind for kind, _, _ in cells}), where, notes)
    return {key: of for key, of in cells.items() if key[0] in types and (bound is None or key[1] in (bound, ""))}


def _note_conversions(order: Sequence[tuple[str, str, str]], units: _Units) -> Iterator[str]:
    """Note which units were converted, and which standards have a row per unit since theirs do not convert."""
    converted_into = {
        f"{unit} to {common}"
        for kind, bound, common in order
        if common
        for unit in units[kind, bound][get_quantity_kind(common)]
        if unit != common
    }
    if converted_into:
        converted = f"Converted to one unit: {shorten(sorted(converted_into))}."
        yield Note(f"{converted} *_recorded has the recorded values.", converted)
    apart: dict[str, list[str]] = defaultdict(list)
    for kind, bound, unit in order:
        if unit:
            apart[f"{bound} {kind}".strip()].append(unit)
    several = [f"{name} ({', '.join(sorted(found))})" for name, found in sorted(apart.items()) if len(found) > 1]
    if several:
        yield f"Standards with a row per unit, since their units do not convert into each other: {shorten(several)}."


def _build_subject_test(
    places: Sequence[Place], known: Sequence[Vocabulary], use: str | None
) -> Callable[[str | None], bool]:
    """Build a predicate on `applies_to`: whether it is the use asked for, or any use if none is."""
    uses = [each.choice for words in known for each in words.uses.values()]
    wanted = None if use is None else _find_uses(clean_text("use", use, 300), places, known)
    meant = parse_use_kinds("dwelling" if use is None else use)

    @cache
    def is_asked(applies_to: str | None) -> bool:
        if applies_to is None:
            return False
        named = {fold(choice.label) for choice in find_spelled(applies_to, uses)}
        return meant <= parse_use_kinds(applies_to) or bool(named if wanted is None else named & wanted)

    return is_asked


def _select_general(
    values: Sequence[_Value], is_subject: Callable[[str | None], bool], use: str | None
) -> tuple[Sequence[_Value], list[str]]:
    """Select the standards of districts as such, and those of the use asked for or, if there are no others, of any use.

    Those of a case are left out where the district has others. If nothing is left, the subjects of all are listed.
    """
    general = [each for each in values if not each.applies_to]
    of_uses = [each for each in values if is_subject(each.applies_to)]
    kept = [*general, *of_uses] if use is not None else general or of_uses
    always = {each.district for each in kept if not each.conditional}
    only_for = [] if kept else sorted({each.applies_to or "" for each in values}, key=natural_key)
    return [each for each in kept if not each.conditional or each.district not in always], only_for


def _standard_cell(place: Place, values: Sequence[_Value], only_for: Sequence[str]) -> StandardCell:
    numbers = sorted((each.number, natural_key(each.district), each) for each in values if each.number is not None)
    words = sorted(
        {f"{each.district}: {each.recorded}"[:120] for each in values if each.number is None}, key=natural_key
    )
    districts, subjects = len({each.district for each in values}), list(only_for[:NEAREST]) or None
    if not numbers:
        rules = sorted(each.rule for each in values)[:2]
        return StandardCell(
            municipality=place.shown,
            districts=districts,
            not_numbers=words[:5] or None,
            only_for=subjects,
            rules=rules,
        )
    low, high, middle = numbers[0][2], numbers[-1][2], len(numbers) // 2
    median = numbers[middle][0] if len(numbers) % 2 else (numbers[middle - 1][0] + numbers[middle][0]) / 2
    return StandardCell(
        municipality=place.shown,
        lowest=low.number,
        lowest_recorded=low.recorded or None,
        lowest_in=low.district,
        lowest_for=low.applies_to,
        lowest_in_case=True if low.conditional else None,
        median=median,
        highest=high.number,
        highest_recorded=high.recorded or None,
        highest_in=high.district,
        highest_for=high.applies_to,
        highest_in_case=True if high.conditional else None,
        districts=districts,
        not_numbers=words[:5] or None,
        rules=list(dict.fromkeys((low.rule, high.rule))),
    )


def _load_rows(reader: Reader, purpose: str, query: str, words: Vocabulary) -> list[dict[str, Term]]:
    if not words.districts:
        return []
    nodes, least = [NamedNode(iri) for iri in words.districts], reader.kg.settings.rule_confidence
    rows = reader.rows(purpose, bind(query, districts=nodes, least=least))
    return [
        row for row in rows if "confidence" not in row or "review" in row or iri_of(row["district"]) not in words.unsure
    ]


def _drop_overruled(
    rows: Sequence[dict[str, Term]], about: Sequence[str], value: Sequence[str]
) -> list[dict[str, Term]]:
    """Drop the rules found in text that differ from all rules that sources state `about` the same."""

    def get(row: Mapping[str, Term], names: Sequence[str]) -> tuple[Term | None, ...]:
        return tuple(row.get(name) for name in names)

    stated: dict[object, set[object]] = defaultdict(set)
    for row in rows:
        if "confidence" not in row:
            stated[get(row, about)].add(get(row, value))
    return [
        row
        for row in rows
        if "confidence" not in row or get(row, value) in stated.get(get(row, about), (get(row, value),))
    ]


_UNKNOWN: Final = Text("not recorded")


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


def get_commonest(units: Counter[str]) -> str:
    """Get the most common unit, the first by name of several. Returns an empty string if there is none."""
    return min(units, key=lambda unit: (-units[unit], unit), default="")
