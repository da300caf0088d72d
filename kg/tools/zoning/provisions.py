"""Tools for permissions, dimensional standards and definitions of a code, each with its evidence."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from pydantic import Field
from pyoxigraph import NamedNode
from rapidfuzz import fuzz

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import Choice, shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, clean_text, page_of
from kg.retrieval.results import Layout, Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.text import join_first, natural_key, quoted
from kg.tools.zoning.governing_passages import (
    FEW_TOKENS,
    MOST_TOKENS,
    Passage,
    Question,
    describe_whole_list,
    find_law,
    has_text,
)
from kg.tools.zoning.name_lookup import (
    UNRECORDED,
    DistrictName,
    MunicipalityName,
    Named,
    PageSize,
    Place,
    Skipped,
    StandardType,
    StateName,
    UseName,
    Vocabulary,
    find_by_head,
    find_by_meaning,
    find_by_words,
    find_named,
    find_nearest,
    find_place,
    find_spelled,
    find_standard_types,
    list_labels,
    load_vocabulary,
    match_note,
    no_match_message,
    parse_standard,
)
from kg.tools.zoning.rules import (
    Candidates,
    Found,
    Rule,
    RuleEvidence,
    RuleKind,
    find_overruled,
    find_rules,
    follow_references,
    is_reference,
    load_evidence,
    load_rules,
    separate,
    to_found,
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
_CLOSED: Final = (
    " Lists of some districts, which were read whole, prohibit the uses that are not in them: ask with a district."
)
_UNNAMED: Final = "unnamed"
"""The type of a cell that is not one number of a known dimension."""
SHOWN_ODDS: Final = 5
ALIKE: Final = 80
"""Least similarity, of 100, of two words in names of uses that are suggested."""
SHOWN_UNSURE: Final = 10
"""Maximum number of unsure rules in an answer."""


_LAW: Final[Any] = Field(
    default_factory=list,
    description="Passages in the scope of the districts, verbatim, best first",
    exclude_if=operator.not_,
)
_UNSURE: Final[Any] = Field(
    default_factory=list, description="Found in the text, but not reported as law", exclude_if=operator.not_
)


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
    law: list[Passage] = _LAW
    coverage: str | None = Field(None, description="The extent of the answer")
    unsure: list[Permission] = _UNSURE


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
    law: list[Passage] = _LAW
    coverage: str | None = Field(None, description="The extent of the answer")
    unsure: list[Standard] = _UNSURE


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
    asked = _Asked.parse(kg, "permission", municipality, state, district, use, limit, offset)
    reader, words, notes, districts = asked.reader, asked.words, asked.notes, asked.districts
    uses = words.uses if use is None else _find_uses(asked, use)
    reader.start_selection()
    rules = find_rules(reader, "permission", words)
    reported, unsure = ([each for each in several if each.about in uses] for several in rules)
    found, is_complete = list[Found](), True
    if use is not None:
        stated = {each.district for each in reported}
        followed = follow_references(words, districts, rules.reported, stated, use)
        found, is_complete = followed.found, not followed.unresolved
        extra = {each.district for each in found}.union(*followed.led.values())
        districts = {**districts, **{iri: known for iri, known in words.districts.items() if iri in extra}}
        notes += followed.notes
    found += [each for each in reported if each.district in districts]
    more: list[str] = []
    if use is not None:
        if not found and district is not None and uses:
            more = _note_other_districts(reader, words, reported)
        similar = _find_similar_uses(words, asked.districts, use, uses, rules.reported)
        more += similar
        is_complete = is_complete and (bool(found) or not similar)
    if not found:
        if use is not None and district is not None and is_complete:
            # The rules that prohibit the uses that are not listed in the districts, whose lists were read whole.
            unlisted = {iri for iri, known in words.uses.items() if fold(known.name) == _UNLISTED}
            found = [each for each in rules.reported if each.district in districts and each.about in unlisted]
        more.append(_NOT_LISTED if found else _note_nothing(asked.place, "permission", bool(words.uses)))
    order, ranks = [*districts, None], {iri: rank for rank, iri in enumerate(uses)}
    found.sort(
        key=lambda each: (order.index(each.district), ranks.get(each.about, len(ranks)), not each.is_stated, each.iri)
    )

    def to_permission(each: Found, rule: Rule, evidence: RuleEvidence) -> Permission:
        known = words.districts[each.district or ""]
        return Permission(
            district=known.code,
            district_name=known.name if known.name != known.code else None,
            use=words.uses[each.about].name,
            permission=rule.code(KG.permissionLevel),
            as_recorded=rule.one(KG.rawLevel),
            conditions=rule.all(KG.condition),
            review_section=rule.section(KG.reviewSection),
            section_ref=rule.section(KG.definedIn),
            evidence=evidence,
        )

    unsure = [each for each in unsure if each.district in districts]
    kinds = {iri: parse_use_kinds(words.uses[iri].name) for iri in {each.about for each in found}}
    page = _load_page(reader, found, unsure, kinds.get, to_permission, limit, offset, notes)
    notes += _note_differences(
        ((each.use, "in", each.district, *each.conditions), each.permission or each.as_recorded or "", each.evidence)
        for each in (*page.shown, *page.overruled)
    )
    notes += more
    result = PermissionResult(
        municipality=asked.place.name, state=asked.place.short_state, permissions=page.shown, unsure=page.unsure
    )
    return asked.finish(result, page, is_complete=is_complete and not unsure)


_Shown = TypeVar("_Shown", bound=Lean)
_Ruled = TypeVar("_Ruled", bound=PermissionResult | StandardResult)


class _Page(NamedTuple, Generic[_Shown]):
    """The rules on a page of an answer."""

    shown: list[_Shown]
    places: list[int]
    """Where they are on the page: the overruled ones have places too."""
    overruled: list[_Shown]
    unsure: list[_Shown]
    """Those that are not reported as law, the overruled first."""
    total: int
    next_offset: int | None


@dataclass(slots=True)
class _Asked(Question):
    """A question about rules, with the districts and uses of the code."""

    words: Vocabulary
    notes: list[str]
    has_text: bool
    districts: Mapping[str, Named]
    """Those asked for, or all."""
    offset: int

    @classmethod
    def parse(
        cls, kg: KnowledgeGraph, kind: RuleKind, municipality: str, state: str, district: str | None, about: str | None,
        limit: int, offset: int,
    ) -> _Asked:  # fmt: skip
        """Find the place and the districts. Raises NotFoundError for an unknown place.

        An unknown district is an error only where the list of districts is known to be whole, or no text is loaded.
        """
        bounded_page(limit, offset)
        reader, notes = Reader(kg), list[str]()
        place = find_place(reader, municipality, state)
        words, has_law = load_vocabulary(reader, place), has_text(reader, place)
        asked = cls(reader, kind, place, about, district, None, words, notes, has_law, words.districts, offset)
        if district is not None:
            try:
                asked.districts = asked.scope = find_named("district", district, words.districts, place, notes)
            except NotFoundError as error:
                if not has_law:
                    raise
                if (whole := describe_whole_list(reader, place)) is not None:
                    raise NotFoundError(f"{error} {whole}") from None
                asked.districts = {}
                notes.append(f"{error} The code may have districts that were not read.")
        return asked

    def is_governed(self) -> bool:
        """Whether passages can govern the use or type of standard: those of the district, or any with a word of it."""
        return self.has_text and (self.scope is not None or has_words(self.reader.kg, self.place.iri, self.about or ""))

    def finish(self, result: _Ruled, page: _Page[Any], *, is_complete: bool) -> _Ruled:
        """Add the passages that govern the question, on the first page, and the line on the extent of the answer."""
        if self.has_text and not self.offset:
            told = {each.evidence.section_iri for each in page.shown} if self.kind == "standard" else ()
            law = find_law(self, FEW_TOKENS if page.total else MOST_TOKENS, told)
            result.law = [*law.passages]
            result.coverage = (
                f"Read: tables, lists, label lines. Quoted: {len(law.passages)} of {law.in_scope} sections in scope."
            )
        result.notes, result.places = self.notes, page.places
        return self.reader.finish(
            result,
            total=page.total,
            next_offset=page.next_offset,
            completeness="complete" if is_complete and not self.has_text else "approximate",
        )


def _find_uses(asked: _Asked, use: str) -> Mapping[str, Named]:
    """Find the uses that `use` names. Without any, an error with similar names where no passage governs it."""
    try:
        plain = {
            iri: each
            for iri, each in asked.words.uses.items()
            if not is_reference(each.name) or use.strip().strip("<>") in (iri, *each.names)
        }
        return find_named("use", use, plain, asked.place, asked.notes)
    except NotFoundError as error:
        plain_error = str(error).removesuffix(UNRECORDED)
        if not asked.is_governed():
            if any(fold(each.name) == _UNLISTED for each in asked.words.uses.values()):
                raise NotFoundError(f"{plain_error}{_CLOSED}") from None
            raise
        asked.notes.append(plain_error)
        return {}


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
    asked = _Asked.parse(kg, "standard", municipality, state, district, standard_type, limit, offset)
    reader, words, notes, districts = asked.reader, asked.words, asked.notes, asked.districts
    reader.start_selection()
    rules = find_rules(reader, "standard", words)
    reported, unsure = rules if standard_type is None else _select_types(asked, standard_type, rules)
    in_scope = {*districts, *([None] if district is None else [])}
    found, unsure = ([each for each in several if each.district in in_scope] for several in (reported, unsure))
    order = [*districts, None]
    found.sort(key=lambda each: (order.index(each.district), each.about, not each.is_stated, each.iri))
    if elsewhere := sum(each.district is None for each in reported if None not in in_scope):
        notes.append(f"{elsewhere} more standards name no district. Omit district to list them.")

    def to_standard(each: Found, rule: Rule, evidence: RuleEvidence) -> Standard:
        number, unit = rule.quantity() or (None, None)
        return Standard(
            district=words.districts[each.district].code if each.district else None,
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

    page = _load_page(reader, found, unsure, str, to_standard, limit, offset, notes)
    notes += _note_differences(
        (
            # Units are compared separately: 10 percent and 800 square feet may both apply.
            (each.bound, each.standard_type, each.applies_to, "in", each.district, each.unit, *(each.conditions or ())),
            f"{each.value:g}" if each.value is not None else each.raw_value,
            each.evidence,
        )
        for each in (*page.shown, *page.overruled)
        if each.district is not None
    )
    if not found:
        notes.append(_note_nothing(asked.place, "standard", bool(words.districts)))
    result = StandardResult(
        municipality=asked.place.name, state=asked.place.short_state, standards=page.shown, unsure=page.unsure
    )
    return asked.finish(result, page, is_complete=not unsure)


def _select_types(asked: _Asked, standard_type: str, rules: Candidates) -> Candidates:
    """Select the standards of the types that `standard_type` means, and note what it means.

    Without a type, an error with similar ones where no passage governs it.
    """
    # Cells without a dimension whose headers have all words of the type.
    wanted, _ = parse_standard(standard_type)
    cells = {each.iri: each.graph for each in rules.reported if wanted and code_of(each.about) == _UNNAMED}
    headed = {
        iri
        for iri, rule in load_rules(asked.reader, cells).items()
        if wanted <= parse_standard(rule.one(KG.recordedIn) or "")[0]
    }
    codes = sorted({code_of(each.about) for several in rules for each in several} - {_UNNAMED})
    try:
        types, bound = find_standard_types(standard_type, codes, asked.place.quoted, asked.notes)
    except NotFoundError as error:
        if not headed and not asked.is_governed():
            raise
        types, bound = set(), None
        asked.notes += [] if headed else [str(error)]
    found = Candidates(
        [each for each in rules.reported if code_of(each.about) in types or each.iri in headed],
        [each for each in rules.unsure if code_of(each.about) in types],
    )
    if bound is None:
        return found
    loaded = load_rules(asked.reader, {each.iri: each.graph for several in found for each in several})
    return Candidates(
        *([each for each in several if loaded[each.iri].code(KG.bound) in (bound, None)] for several in found)
    )


def _load_page(
    reader: Reader,
    found: Sequence[Found],
    unsure: Sequence[Found],
    to_subject: Callable[[str], object],
    convert: Callable[[Found, Rule, RuleEvidence], _Shown],
    limit: int,
    offset: int,
    notes: list[str],
) -> _Page[_Shown]:
    """Load a page of the rules of `found`, and note how many are not reported as law. See `find_overruled`."""
    page = found[offset : offset + limit]
    some = [] if offset else unsure[:SHOWN_UNSURE]
    overruled = find_overruled(reader, page, found, to_subject)
    both = (*page, *some)
    rules = load_rules(reader, {each.iri: each.graph for each in both})
    converted: list[_Shown] = []
    for each, evidence in zip(both, load_evidence(reader, [rules[each.iri] for each in both]), strict=True):
        evidence.yields_to = overruled.get(each.iri)
        converted.append(convert(each, rules[each.iri], evidence))
    places = [place for place, each in enumerate(page) if each.iri not in overruled]
    differing = [converted[place] for place, each in enumerate(page) if each.iri in overruled]
    if differing:
        notes.append(
            f"{len(differing)} found in the text differ from a rule of the source, and are not reported as law: see "
            "yields_to in their evidence."
        )
    if unsure and not offset:
        notes.append(
            f"{len(unsure)} found in the text are unsure (confidence below {reader.kg.settings.rule_confidence:g}) and "
            f"not reported as law: {len(some)} are listed. Read their words. list_claims lists all."
        )
    shown = [converted[place] for place in places]
    following = page_of(found, offset, limit)
    return _Page(shown, places, differing, [*differing, *converted[len(page) :]], len(found), following)


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
    return [f"Recorded values differ by source ({join_first(odd, SHOWN_ODDS, '; ')}). See evidence."] if odd else []


def _note_other_districts(reader: Reader, words: Vocabulary, reported: Iterable[Found]) -> list[str]:
    """Note the other districts that permit these uses: a prohibition is none."""
    rules = load_rules(reader, {each.iri: each.graph for each in reported})
    found = {each.district for each in reported if rules[each.iri].code(KG.permissionLevel) != "notPermitted"}
    codes = [known.code for iri, known in words.districts.items() if iri in found]
    return [f"Other districts have permissions for this use: {shorten(codes)}."] if codes else []


def _find_similar_uses(
    words: Vocabulary, districts: Container[str | None], asked: str, uses: Container[str], reported: Iterable[Found]
) -> list[str]:
    """Note the uses of `districts` with a name that has the words asked for, or like it, and that were not meant."""
    recorded = {each.about for each in reported if each.district in districts}
    choices = [known for iri, known in words.uses.items() if iri in recorded and not is_reference(known.name)]
    is_recorded = any(each in uses for each in recorded)
    found = find_by_words(asked, choices) + ([] if is_recorded else find_by_meaning(asked, choices))
    names = list(dict.fromkeys(each.label for each in found if each.term.value not in uses))
    if names:
        return [f"Also recorded there, with these words: {shorten(names)}. Ask for them by name."]
    near = [name for name in find_nearest(asked, list_labels(choices)) if _is_alike(asked, name)]
    return [f"Uses with similar names there: {shorten(near)}."] if near and not is_recorded else []


def _is_alike(asked: str, name: str) -> bool:
    """Whether two names have a word in common, or nearly."""
    return any(fuzz.ratio(one, other) >= ALIKE for one in fold(asked).split() for other in fold(name).split())


def _note_nothing(place: Place, kind: str, any_known: bool) -> str:
    if not any_known:
        return f"No {kind} of {place.quoted} is recorded: none was loaded, and none was read in the text of its code."
    meaning = " That is not a prohibition." if kind == "permission" else ""
    return f"No {kind} is recorded for this. The code may still contain one.{meaning}"


DEFINITIONS: Final = """
SELECT ?rule ?graph ?about ?confidence ?review WHERE {
  ?rule kg:jurisdiction $municipality ; a kg:Definition GRAPH ?graph { ?rule skos:prefLabel ?about }
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
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
    unsure: list[TermDefinition] = _UNSURE


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

    reader.start_selection()
    query = bind(DEFINITIONS, municipality=NamedNode(place.iri))
    reported, unsure = separate(reader, reader.kept("defined terms", query, to_found))
    in_order = sorted((*reported, *unsure), key=lambda each: (natural_key(each.about), each.iri))
    choices = [Choice(NamedNode(each.iri), each.about, (each.about,)) for each in in_order]
    chosen = find_spelled(wanted, choices)
    if not chosen and (chosen := find_by_head(wanted, choices) or find_by_words(wanted, choices)):
        taken = shorten(list_labels(chosen))
        notes.append(f"term: {place.quoted} does not define {quoted(wanted)}. It was interpreted as {taken}.")
    elif not chosen:
        raise NotFoundError(no_match_message("term", wanted, list_labels(choices), place.quoted))
    elif (note := match_note("term", wanted, chosen)) is not None:
        notes.append(note)
    ranks = {choice.term.value: rank for rank, choice in enumerate(chosen)}
    found = sorted((each for each in reported if each.iri in ranks), key=lambda each: ranks[each.iri])
    unsure = [each for each in unsure if each.iri in ranks]

    def to_definition(each: Found, rule: Rule, evidence: RuleEvidence) -> TermDefinition:
        return TermDefinition(
            term=each.about,
            definition_text=rule.one(SKOS.definition) or "",
            section_ref=rule.section(KG.definedIn),
            evidence=evidence,
        )

    page = _load_page(reader, found, unsure, fold, to_definition, limit, offset, notes)
    if len({each.definition_text for each in page.shown}) > 1 and len({each.term for each in page.shown}) == 1:
        notes.append("The code has several definitions of this term. Each applies in the scope that its section names.")
    result = DefinitionResult(
        municipality=place.name, state=place.short_state, definitions=page.shown, unsure=page.unsure, notes=notes
    )
    result.places = page.places
    return reader.finish(result, total=page.total, next_offset=page.next_offset)
