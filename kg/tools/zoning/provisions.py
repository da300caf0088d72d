"""Tools for permissions, dimensional standards and definitions of a code, each with its evidence."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, NamedTuple, TypeVar

from pydantic import Field
from pyoxigraph import NamedNode
from rapidfuzz import fuzz

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import NEAREST, Choice, shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import Layout, Result, find_places
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import natural_key, quoted
from kg.tools.zoning.governing_passages import FEW_TOKENS, MOST_TOKENS, Passage, describe_whole_list, find_law, has_text
from kg.tools.zoning.municipalities import MunicipalityName, PageSize, Place, Skipped, StateName, find_place
from kg.tools.zoning.rule_rows import Rule, RuleEvidence, load_evidence, load_rules
from kg.tools.zoning.rule_search import (
    Found,
    RuleKind,
    Selection,
    find_rules,
    find_unsure,
    find_without_district,
    follow_references,
    is_reference,
    select_page,
    separate,
    sort_by_confidence,
)
from kg.tools.zoning.term_lookup import (
    STANDARD_BOUNDS,
    UNRECORDED,
    DistrictName,
    Named,
    StandardType,
    UseName,
    Vocabulary,
    find_by_head,
    find_by_meaning,
    find_by_words,
    find_named,
    find_nearest,
    find_spelled,
    find_standard_types,
    join_names,
    list_labels,
    load_vocabulary,
    match_note,
    no_match_message,
    parse_standard_words,
)
from kg.vocabulary import KG, SKOS
from kg.zoning_summaries.section_ranking import has_words
from kg.zoning_summaries.use_names import parse_use_kinds

_UNLISTED: Final = "uses that are not listed"
"""The use of a rule that a closed list has, where extraction read all of the list."""
_NOT_LISTED: Final = (
    "No use of this name is in the list of the district, which was read whole, and the quoted sentence prohibits the "
    "rest. It may be listed under another name, or permitted by another section: see law."
)
_UNNAMED: Final = "unnamed"
"""The type of a cell that is not one number of a known dimension."""
SHOWN_ODDS: Final = 5
ALIKE: Final = 80
"""Least similarity, of 100, of two words in names of uses that are suggested."""
SHOWN_UNSURE: Final = 10
"""Maximum number of unsure rules in an answer."""


class Permission(Lean):
    """Whether a use is permitted in a district."""

    district: str = Field(description="District code")
    district_name: str | None = Field(None, description="If other than the code")
    use: str
    permission: str | None = Field(
        None,
        description="byRight, conditional, byRightWithConditions, byRightOrConditional, notPermitted; else as_recorded",
    )
    as_recorded: str | None = Field(None, description="The level in the words of the source")
    conditions: list[str]
    review_section: str | None = None
    section_ref: str | None = None
    evidence: RuleEvidence


class PermissionResult(Result):
    """Permissions by district and use."""

    layout: ClassVar[Layout] = Layout(paged=("permissions",))

    municipality: str
    state: str
    permissions: list[Permission]
    law: list[Passage] = Field(
        default_factory=list,
        description="Passages in the scope of the districts, verbatim, best first",
        exclude_if=operator.not_,
    )
    coverage: str | None = Field(None, description="The extent of the answer")
    unsure: list[Permission] = Field(
        default_factory=list, description="Found in the text, but not reported as law", exclude_if=operator.not_
    )


class Standard(Lean):
    """A prescribed dimension. `raw_value` is as recorded; `value` and `unit` are set for numbers only."""

    district: str | None = Field(None, description="District code; absent: not for one district")
    standard_type: str
    bound: str | None = Field(None, description="min or max")
    value: float | None = None
    unit: str | None = Field(None, description="QUDT local name, e.g. FT, AC, or one of our list")
    raw_value: str
    raw_unit: str | None = None
    applies_to: str | None = None
    conditions: list[str] | None = None
    section_ref: str | None = None
    evidence: RuleEvidence


class StandardResult(Result):
    """Standards by district and type."""

    layout: ClassVar[Layout] = Layout(paged=("standards",))

    municipality: str
    state: str
    standards: list[Standard]
    law: list[Passage] = Field(
        default_factory=list,
        description="Passages in the scope of the districts, verbatim, best first",
        exclude_if=operator.not_,
    )
    coverage: str | None = Field(None, description="The extent of the answer")
    unsure: list[Standard] = Field(
        default_factory=list, description="Found in the text, but not reported as law", exclude_if=operator.not_
    )


def kg_query_permissions(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    district: DistrictName = None,
    use: UseName = None,
    limit: PageSize = 25,
    offset: Skipped = 0,
) -> PermissionResult:
    """Look up which uses are permitted in which districts, and on which conditions.

    Use to find out where a use is allowed. Returns permissions: district, use, permission (as_recorded: the source's
    word), conditions, review_section, section_ref, evidence; then law: the passages that govern, verbatim. An unlisted
    use is unrecorded, not prohibited.
    Example: kg_query_permissions(municipality="Quarry Bend", state="UT", district="R-1", use="duplex").
    Next: `kg_query_section` with a section_ref.
    """
    bounded_page(limit, offset)
    asked = _Asked.parse(kg, "permission", municipality, state, district, use)
    reader, words, notes, districts = asked.reader, asked.words, asked.notes, asked.districts
    uses = words.uses if use is None else _find_uses(asked, use)
    reader.start_selection()
    is_complete = True
    if use is None:
        selected = select_page(reader, "permission", asked.place, words, districts, offset, limit)
        unsure = find_unsure(reader, "permission", words, districts)
    else:
        selected, unsure, districts, is_complete = _select_permissions_of_use(
            reader, words, districts, uses, use, notes
        )
    at, among = _ranks(districts), _ranks(uses)
    selected.found.sort(
        key=lambda each: (
            at[each.district or ""], among.get(each.about, len(among)), not each.is_stated, each.iri,
        )
    )  # fmt: skip
    start, total = offset - selected.skipped, selected.total

    def to_permissions(loaded: Iterable[tuple[Found, Rule, RuleEvidence]]) -> list[Permission]:
        return [
            to_permission(rule, evidence, words.uses[each.about].name, words.districts[each.district or ""])
            for each, rule, evidence in loaded
        ]

    page = load_with_evidence(reader, selected.found[start : start + limit])
    reported_page, overruled = _separate_overruled(reader, page, selected.found, _Key.of_use(words))
    permissions = to_permissions(reported_page)
    result = PermissionResult(
        municipality=asked.place.name, state=asked.place.short_state, permissions=permissions, notes=notes
    )
    result.places = _find_places(page, reported_page)
    _add_unsure(reader, result.unsure, unsure, overruled, notes, to_permissions, is_first=not offset)
    notes += _note_differences(
        ((each.use, "in", each.district, *each.conditions), each.permission or each.as_recorded or "", each.evidence)
        for each in [*permissions, *to_permissions(overruled)]
    )
    if use is not None:
        if not total and district is not None and uses:
            notes += _note_other_districts(reader, words, uses)
        similar = _find_similar_uses(reader, words, asked.districts, use, uses)
        notes += similar
        is_complete = is_complete and (total > 0 or not similar)
    if not total:
        closed = [] if use is None or district is None or not is_complete else _find_closed_lists(asked)
        result.permissions, result.places = to_permissions(load_with_evidence(reader, closed)), None
        notes.append(_NOT_LISTED if closed else _note_nothing(asked.place, "permission", bool(words.uses)))
        total = len(closed)
    asked.add_law(result, total, offset)
    result.notes = notes
    return reader.finish(
        result,
        total=total,
        next_offset=page_of(range(total), offset, limit),
        completeness="complete" if is_complete and not asked.has_text and not unsure else "approximate",
    )


@dataclass(slots=True)
class _Asked:
    """The place and the districts of a question, and the passages that govern it."""

    reader: Reader
    kind: RuleKind
    place: Place
    words: Vocabulary
    notes: list[str]
    has_text: bool
    districts: Mapping[str, Named]
    """Those asked for, or all."""
    district: str | None
    """The words for the district."""
    about: str | None
    """The use or the type of standard, in the words of the question."""
    is_known: bool = True
    """Whether the district is known, if one was asked for."""

    @classmethod
    def parse(
        cls, kg: KnowledgeGraph, kind: RuleKind, municipality: str, state: str, district: str | None, about: str | None
    ) -> _Asked:
        """Find the place and the districts. Raises NotFoundError for an unknown place.

        An unknown district is an error only where the list of districts is known to be whole, or no text is loaded.
        """
        reader, notes = Reader(kg), list[str]()
        place = find_place(reader, municipality, state)
        words = load_vocabulary(reader, place)
        asked = cls(reader, kind, place, words, notes, has_text(reader, place), words.districts, district, about)
        if district is not None:
            try:
                asked.districts = find_named("district", district, words.districts, place, notes)
            except NotFoundError as error:
                if not asked.has_text:
                    raise
                if (whole := describe_whole_list(reader, place)) is not None:
                    raise NotFoundError(f"{error} {whole}") from None
                asked.districts, asked.is_known = {}, False
                notes.append(f"{error} The code may have districts that were not read.")
        return asked

    def is_governed(self) -> bool:
        """Whether passages can govern the use or type of standard: those of the district, or any with a word of it."""
        in_district = self.district is not None and self.is_known
        return self.has_text and (in_district or has_words(self.reader.kg, self.place.iri, self.about or ""))

    def add_law(self, result: PermissionResult | StandardResult, total: int, offset: int) -> None:
        """Add the passages that govern the question, on the first page, and the line on the extent of the answer."""
        if not self.has_text:
            return
        if not offset:
            districts = self.districts if self.district is not None and self.is_known else None
            law = find_law(
                self.reader, self.kind, self.place, districts, self.about, self.district,
                FEW_TOKENS if total else MOST_TOKENS,
            )  # fmt: skip
            result.law = [*law.passages]
            result.coverage = (
                f"Read: tables, lists and label lines; sentences are quoted. {len(law.passages)} of {law.in_scope} "
                "sections in scope are quoted, best first."
            )


def _find_closed_lists(asked: _Asked) -> list[Found]:
    """Find the rules that prohibit the uses that are not listed in the districts, whose lists were read whole."""
    reported = find_rules(asked.reader, "permission", asked.words, asked.districts).reported
    return [each for each in reported if fold(asked.words.uses[each.about].name) == _UNLISTED]


def _find_uses(asked: _Asked, use: str) -> Mapping[str, Named]:
    """Find the uses that `use` names. Without any, an error with similar names where no passage governs it."""
    try:
        plain = {
            iri: each
            for iri, each in asked.words.uses.items()
            if not is_reference(each.name) or use.strip().strip("<>") in (each.iri, *each.choice.names)
        }
        return find_named("use", use, plain, asked.place, asked.notes)
    except NotFoundError as error:
        if not asked.is_governed():
            raise
        asked.notes.append(str(error).removesuffix(UNRECORDED))
        return {}


def _select_permissions_of_use(
    reader: Reader, words: Vocabulary, districts: Mapping[str, Named], uses: Container[str], use: str, notes: list[str]
) -> tuple[Selection, list[Found], Mapping[str, Named], bool]:
    """Select the permissions of `uses` in `districts` and in those that they refer to; references become notes.

    Returns also the unsure ones, all these districts, and whether all references were resolved.
    """
    reported, unsure = (
        [each for each in several if each.about in uses]
        for several in find_rules(reader, "permission", words, words.districts)
    )
    followed = follow_references(reader, words, districts, {each.district or "" for each in reported}, use)
    reported, unsure = (
        [each for each in several if each.district in districts or each.district in followed.districts]
        for several in (reported, unsure)
    )
    found = [*reported, *followed.found]
    extra = {each.district or "" for each in followed.found} | followed.districts
    notes += followed.notes
    all_districts = {**districts, **{iri: known for iri, known in words.districts.items() if iri in extra}}
    return Selection(found, len(found)), unsure, all_districts, not followed.unresolved


def to_permission(rule: Rule, evidence: RuleEvidence, use: str, district: Named) -> Permission:
    """Convert a rule to a permission of an answer."""
    return Permission(
        district=district.code,
        district_name=district.other_name,
        use=use,
        permission=rule.code(KG.permissionLevel),
        as_recorded=rule.one(KG.rawLevel),
        conditions=rule.all(KG.condition),
        review_section=rule.section(KG.reviewSection),
        section_ref=rule.section(KG.definedIn),
        evidence=evidence,
    )


def kg_query_standards(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    district: DistrictName = None,
    standard_type: StandardType = None,
    limit: PageSize = 25,
    offset: Skipped = 0,
) -> StandardResult:
    """Look up dimensional standards of districts: lot area, setbacks, height, coverage, density, parking.

    Use for sizes, heights and distances. Returns standards: bound, value with unit if it is a number, raw_value,
    applies_to, conditions, section_ref, evidence; then law: the passages that govern, verbatim.
    Example: kg_query_standards(municipality="Quarry Bend", state="UT", district="R-1", standard_type="setback").
    Next: `compare_zoning` for other places.
    """
    bounded_page(limit, offset)
    asked = _Asked.parse(kg, "standard", municipality, state, district, standard_type)
    reader, words, notes, districts = asked.reader, asked.words, asked.notes, asked.districts
    reader.start_selection()
    if standard_type is None:
        selected, unsure = _select_standards(
            reader, asked.place, words, districts, offset, limit, is_general=district is None
        )
    else:
        selected, unsure = _select_standards_of_type(asked, standard_type, is_general=district is None)
    at = _ranks(districts)
    selected.found.sort(
        key=lambda each: (at.get(each.district or "", len(at)), each.about, not each.is_stated, each.iri)
    )
    start, total = offset - selected.skipped, selected.total
    if selected.elsewhere:
        notes.append(f"{selected.elsewhere} more standards name no district. Omit district to list them.")

    def to_standards(loaded: Iterable[tuple[Found, Rule, RuleEvidence]]) -> list[Standard]:
        return [
            to_standard(rule, evidence, words.districts[each.district].code if each.district else None)
            for each, rule, evidence in loaded
        ]

    page = load_with_evidence(reader, selected.found[start : start + limit])
    reported_page, overruled = _separate_overruled(reader, page, selected.found, _Key.of_standard())
    standards = to_standards(reported_page)
    result = StandardResult(
        municipality=asked.place.name, state=asked.place.short_state, standards=standards, notes=notes
    )
    result.places = _find_places(page, reported_page)
    _add_unsure(reader, result.unsure, unsure, overruled, notes, to_standards, is_first=not offset)
    notes += _note_differences(
        (
            # Units are compared separately: 10 percent and 800 square feet may both apply.
            (each.bound, each.standard_type, each.applies_to, "in", each.district, each.unit, *(each.conditions or ())),
            f"{each.value:g}" if each.value is not None else each.raw_value,
            each.evidence,
        )
        for each in [*standards, *to_standards(overruled)]
        if each.district is not None
    )
    if not total:
        notes.append(_note_nothing(asked.place, "standard", bool(words.districts)))
    asked.add_law(result, total, offset)
    result.notes = notes
    return reader.finish(
        result,
        total=total,
        next_offset=page_of(range(total), offset, limit),
        completeness="approximate" if asked.has_text or unsure else "complete",
    )


def _select_standards(
    reader: Reader,
    place: Place,
    words: Vocabulary,
    districts: Mapping[str, Named],
    offset: int,
    limit: int,
    *,
    is_general: bool,
) -> tuple[Selection, Sequence[Found]]:
    """Select a page of the standards of all types, and find the unsure ones.

    `is_general` includes the standards that name no district, after the others.
    """
    selected = select_page(reader, "standard", place, words, districts, offset, limit)
    unsure = find_unsure(reader, "standard", words, districts)
    if is_general and (selected.elsewhere or not offset):
        general = find_without_district(reader, words, place)
        unsure = sort_by_confidence([*unsure, *general.unsure])
        if offset + limit > selected.total:
            selected.found.extend(general.reported)
        skipped = min(selected.skipped, selected.total)
        selected = Selection(selected.found, selected.total + selected.elsewhere, skipped)
    return selected, unsure


def _select_standards_of_type(
    asked: _Asked, standard_type: str, *, is_general: bool
) -> tuple[Selection, Sequence[Found]]:
    """Select all standards of the types that `standard_type` means, and find the unsure ones. Matches become notes.

    `is_general` includes the standards that name no district; else they are counted. Without a type, an error with
    similar ones where no passage governs it.
    """
    reader, words, districts = asked.reader, asked.words, asked.districts
    reported, unsure = (
        [*of_districts, *general]
        for of_districts, general in zip(
            find_rules(reader, "standard", words, words.districts),
            find_without_district(reader, words, asked.place),
            strict=True,
        )
    )
    codes = sorted({code_of(each.about) for each in (*reported, *unsure)} - {_UNNAMED})
    headed = _find_headed_so(reader, reported, standard_type)
    try:
        types, bound = find_standard_types(standard_type, codes, asked.place, asked.notes)
    except NotFoundError as error:
        if not headed and not asked.is_governed():
            raise
        types, bound = set(), None
        asked.notes += [] if headed else [str(error)]
    found = [each for each in reported if code_of(each.about) in types or each.iri in headed]
    unsure = [each for each in unsure if code_of(each.about) in types]
    if bound is not None:
        rules = load_rules(reader, {each.iri: each.graph for each in (*found, *unsure)})
        found, unsure = (
            [each for each in several if rules[each.iri].code(KG.bound) in (bound, None)] for several in (found, unsure)
        )
    elsewhere = 0 if is_general else sum(each.district is None for each in found)
    found, unsure = (
        [each for each in several if each.district in districts or (is_general and each.district is None)]
        for several in (found, unsure)
    )
    return Selection(found, len(found), elsewhere=elsewhere), unsure


def _find_headed_so(reader: Reader, found: Iterable[Found], standard_type: str) -> set[str]:
    """Find the cells without a dimension whose headers have all words of `standard_type`."""
    rules = load_rules(reader, {each.iri: each.graph for each in found if code_of(each.about) == _UNNAMED})
    wanted = parse_standard_words([word for word in fold(standard_type).split() if word not in STANDARD_BOUNDS])
    return {
        iri
        for iri, rule in rules.items()
        if wanted and wanted <= parse_standard_words(fold(rule.one(KG.recordedIn) or "").split())
    }


def to_standard(rule: Rule, evidence: RuleEvidence, district: str | None) -> Standard:
    """Convert a rule to a standard of an answer."""
    number, unit = rule.quantity() or (None, None)
    return Standard(
        district=district,
        standard_type=rule.code(KG.standardType) or "",
        bound=rule.code(KG.bound),
        value=number,
        unit=unit,
        raw_value=rule.one(KG.rawValue) or "",
        raw_unit=rule.one(KG.rawUnit),
        applies_to=rule.one(KG.appliesTo),
        conditions=rule.all(KG.condition) or None,
        section_ref=rule.section(KG.definedIn),
        evidence=evidence,
    )


def _ranks(things: Mapping[str, object]) -> dict[str, int]:
    """Map each key to its position."""
    return {iri: place for place, iri in enumerate(things)}


class _Key(NamedTuple):
    """The properties by which two rules are about the same, and the one by which they differ."""

    scope: Callable[[Found], object]
    """Known before a rule is loaded."""
    about: Callable[[Rule], object]
    value: Callable[[Rule], object]

    @classmethod
    def of_use(cls, words: Vocabulary) -> _Key:
        """Compare permissions: of a use by any of its names, in a district."""
        return cls(
            lambda found: (found.district, parse_use_kinds(words.uses[found.about].name)),
            lambda rule: tuple(rule.all(KG.condition)),
            lambda rule: rule.code(KG.permissionLevel) or fold(rule.one(KG.rawLevel) or ""),
        )

    @classmethod
    def of_standard(cls) -> _Key:
        """Compare standards: of a type in a district, with their bounds, conditions and units."""
        return cls(
            lambda found: (found.district, found.about),
            lambda rule: (
                rule.code(KG.bound), fold(rule.one(KG.appliesTo) or ""), tuple(rule.all(KG.condition)),
                (rule.quantity() or (0, ""))[1],
            ),
            lambda rule: (rule.quantity() or (rule.one(KG.rawValue), ""))[0],
        )  # fmt: skip

    @classmethod
    def of_definition(cls) -> _Key:
        """Compare definitions: of a term, in a section or, where the source names none, in the code."""
        return cls(
            lambda found: fold(found.about),
            lambda rule: None,
            lambda rule: fold(rule.one(SKOS.definition) or ""),
        )


_Shown = TypeVar("_Shown", Permission, Standard, "TermDefinition")
_Loaded = tuple[Found, Rule, RuleEvidence]


def _separate_overruled(
    reader: Reader, page: Sequence[_Loaded], among: Sequence[Found], key: _Key
) -> tuple[list[_Loaded], list[_Loaded]]:
    """Separate the rules found in text from which all rules differ that sources state about the same in `among`."""
    scopes = {key.scope(found) for found, _, _ in page if not found.is_stated}
    stated: dict[object, list[str]] = defaultdict(list)
    for found in among:
        if found.is_stated and (scope := key.scope(found)) in scopes:
            stated[scope].append(found.iri)
    if not stated:
        return [*page], []
    rules = load_rules(reader, {each.iri: each.graph for each in among if each.is_stated and key.scope(each) in stated})
    reported: list[_Loaded] = []
    overruled: list[_Loaded] = []
    for found, rule, evidence in page:
        others = [] if found.is_stated else [rules[iri] for iri in stated.get(key.scope(found), ())]
        others = [other for other in others if key.about(other) == key.about(rule)]
        if others and all(key.value(other) != key.value(rule) for other in others):
            overruled.append((found, rule, evidence.model_copy(update={"yields_to": others[0].iri})))
        else:
            reported.append((found, rule, evidence))
    return reported, overruled


def _find_places(page: Iterable[_Loaded], reported: Iterable[_Loaded]) -> list[int]:
    """Find where the reported rules are on a page of rules."""
    return find_places((found.iri for found, _, _ in page), (found.iri for found, _, _ in reported))


def _add_unsure(
    reader: Reader,
    shown: list[_Shown],
    unsure: Sequence[Found],
    overruled: Sequence[_Loaded],
    notes: list[str],
    convert: Callable[[Iterable[_Loaded]], list[_Shown]],
    *,
    is_first: bool,
) -> None:
    """Add the rules that are not reported as law to `shown`, and note their number."""
    shown += convert(overruled)
    if overruled:
        notes.append(
            f"{len(overruled)} found in the text differ from a rule of the source, and are not reported as law: see "
            "yields_to in their evidence."
        )
    if unsure and is_first:
        least = reader.kg.settings.rule_confidence
        some = unsure[:SHOWN_UNSURE]
        more = f" {len(some)} are listed." if len(some) < len(unsure) else ""
        shown += convert(load_with_evidence(reader, some))
        notes.append(
            f"{len(unsure)} found in the text are unsure (confidence below {least:g}) and not reported as law.{more} "
            "Read their words. list_claims lists all."
        )


def load_with_evidence(reader: Reader, found: Sequence[Found]) -> list[tuple[Found, Rule, RuleEvidence]]:
    """Load the rules of `found`, each with its evidence."""
    rules = load_rules(reader, {each.iri: each.graph for each in found})
    evidence = dict(zip(rules, load_evidence(reader, list(rules.values())), strict=True))
    return [(each, rules[each.iri], evidence[each.iri]) for each in found]


def _note_differences(said: Iterable[tuple[Sequence[str | None], str, RuleEvidence]]) -> list[str]:
    """Note values that differ between graphs for the same subject. `said` yields subject, value and evidence."""
    by_subject: dict[str, dict[str, str]] = defaultdict(dict)
    for about, what, evidence in said:
        by_subject[" ".join(filter(None, about))].setdefault(what, evidence.graph)
    odd = [
        f"{about}: {', '.join(sorted(ways))}"
        for about, ways in by_subject.items()
        if len(ways) > 1 and len(set(ways.values())) > 1
    ]
    more = f"; and {len(odd) - SHOWN_ODDS} more" if len(odd) > SHOWN_ODDS else ""
    return [f"Recorded values differ by source ({'; '.join(odd[:SHOWN_ODDS])}{more}). See evidence."] if odd else []


def _note_other_districts(reader: Reader, words: Vocabulary, uses: Mapping[str, object]) -> list[str]:
    """Note the other districts that permit these uses: a prohibition is none."""
    reported = find_rules(reader, "permission", words, words.districts).reported
    rules = {each.iri: each for each in reported if each.about in uses}
    loaded = load_rules(reader, {iri: each.graph for iri, each in rules.items()})
    found = {rules[iri].district for iri, rule in loaded.items() if rule.code(KG.permissionLevel) != "notPermitted"}
    codes = [known.code for iri, known in words.districts.items() if iri in found]
    return [f"Other districts have permissions for this use: {shorten(codes)}."] if codes else []


def _find_similar_uses(
    reader: Reader, words: Vocabulary, districts: Mapping[str, object], asked: str, uses: Mapping[str, object]
) -> list[str]:
    """Note the uses of `districts` with a name that has the words asked for, or like it, and that were not meant."""
    reported = find_rules(reader, "permission", words, words.districts).reported
    recorded = {each.about for each in reported if each.district in districts}
    choices = [
        words.uses[iri].choice for iri in words.uses if iri in recorded and not is_reference(words.uses[iri].name)
    ]
    found = find_by_words(asked, choices)
    if recorded.isdisjoint(uses):
        found += find_by_meaning(asked, choices)
    found = [each for each in found if each.term.value not in uses]
    names = list(dict.fromkeys(each.label for each in found))
    if names:
        return [f"Also recorded there, with these words: {join_names(names[:NEAREST])}. Ask for them by name."]
    if recorded & uses.keys():
        return []
    near = [name for name in find_nearest(asked, [choice.label for choice in choices]) if _is_alike(asked, name)]
    return [f"Uses with similar names there: {join_names(near)}."] if near else []


def _is_alike(asked: str, name: str) -> bool:
    """Whether two names have a word in common, or nearly."""
    return any(fuzz.ratio(one, other) >= ALIKE for one in fold(asked).split() for other in fold(name).split())


def _note_nothing(place: Place, kind: str, any_known: bool) -> str:
    if not any_known:
        return f"No {kind} of {place.quoted} is recorded: none was loaded, and none was read in the text of its code."
    meaning = " That is not a prohibition." if kind == "permission" else ""
    return f"No {kind} is recorded for this. The code may still contain one.{meaning}"


DEFINITIONS: Final = """
SELECT ?definition ?graph ?term ?confidence ?review WHERE {
  ?definition kg:jurisdiction $municipality ; a kg:Definition GRAPH ?graph { ?definition skos:prefLabel ?term }
  OPTIONAL { ?definition kg:confidence ?confidence } OPTIONAL { ?definition kg:reviewStatus ?review }
}"""


class TermDefinition(Lean):
    """The definition of a term in a code."""

    term: str
    definition_text: str
    section_ref: str | None = None
    evidence: RuleEvidence


class DefinitionResult(Result):
    """Definitions of a term, one for each section that defines it."""

    municipality: str
    state: str
    definitions: list[TermDefinition]
    unsure: list[TermDefinition] = Field(
        default_factory=list, description="Found in the text, but not reported as law", exclude_if=operator.not_
    )


def kg_query_definition(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    term: Annotated[str, Field(max_length=300)],
    limit: PageSize = 20,
    offset: Skipped = 0,
) -> DefinitionResult:
    """Look up the definition of a term in a code.

    Use before reading a rule closely. Returns definitions: term, definition_text, section_ref, evidence. Several
    sections may define a term differently.
    Example: kg_query_definition(municipality="Quarry Bend", state="UT", term="building height").
    Next: `kg_query_section` with the section_ref.
    """
    bounded_page(limit, offset)
    reader, notes = Reader(kg), list[str]()
    place = find_place(reader, municipality, state)
    wanted = clean_text("term", term, 300)

    def read(rows: Sequence[Mapping[str, Term]]) -> list[Found]:
        return [
            Found(
                iri_of(row["definition"]),
                iri_of(row["graph"]),
                None,
                term_text(row["term"]),
                float(term_text(row["confidence"])) if "confidence" in row else None,
                "review" in row,
            )
            for row in rows
        ]

    reader.start_selection()
    query = bind(DEFINITIONS, municipality=NamedNode(place.iri))
    reported, unsure = separate(reader, Vocabulary({}, {}), reader.kept("defined terms", query, read))
    in_order = sorted((*reported, *unsure), key=lambda each: (natural_key(each.about), each.iri))
    choices = [Choice(NamedNode(each.iri), each.about, (each.about,)) for each in in_order]
    chosen = find_spelled(wanted, choices)
    if not chosen and (chosen := find_by_head(wanted, choices) or find_by_words(wanted, choices)):
        notes.append(_note_not_defined(wanted, choices, chosen, place))
    elif not chosen:
        raise NotFoundError(no_match_message("term", wanted, list_labels(choices), place.quoted))
    elif (note := match_note("term", wanted, chosen)) is not None:
        notes.append(note)
    wanted_iris = [choice.term.value for choice in chosen]
    found = sorted((each for each in reported if each.iri in wanted_iris), key=lambda each: wanted_iris.index(each.iri))
    unsure = [each for each in unsure if each.iri in wanted_iris]

    def to_definitions(loaded: Iterable[_Loaded]) -> list[TermDefinition]:
        return [
            TermDefinition(
                term=each.about,
                definition_text=rule.one(SKOS.definition) or "",
                section_ref=rule.section(KG.definedIn),
                evidence=evidence,
            )
            for each, rule, evidence in loaded
        ]

    page = load_with_evidence(reader, found[offset : offset + limit])
    reported_page, overruled = _separate_overruled(reader, page, found, _Key.of_definition())
    definitions = to_definitions(reported_page)
    result = DefinitionResult(municipality=place.name, state=place.short_state, definitions=definitions)
    result.places = _find_places(page, reported_page)
    _add_unsure(reader, result.unsure, unsure, overruled, notes, to_definitions, is_first=not offset)
    if len({each.definition_text for each in definitions}) > 1 and len({each.term for each in definitions}) == 1:
        notes.append("The code has several definitions of this term. Each applies in the scope that its section names.")
    result.notes = notes
    return reader.finish(result, total=len(found), next_offset=page_of(found, offset, limit))


def _note_not_defined(wanted: str, choices: Sequence[Choice], chosen: Sequence[Choice], place: Place) -> str:
    """Build the note for a term that the code does not define itself, but that is part of defined terms."""
    taken = list(dict.fromkeys(choice.label for choice in chosen))
    others = [name for name in find_nearest(wanted, list_labels(choices)) if name not in taken]
    rest = f" and {len(taken) - NEAREST} more" if len(taken) > NEAREST else ""
    near = f" Also similar: {join_names(others)}." if others else ""
    meant = f"{join_names(taken[:NEAREST])}{rest}"
    return f"term: {place.quoted} does not define {quoted(wanted)}. It was interpreted as {meant}.{near}"
