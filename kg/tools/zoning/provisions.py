"""Tools for permissions, dimensional standards and definitions of a code, each with its evidence."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import Field
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, page_of
from kg.retrieval.results import Layout, Lean, Result
from kg.text import natural_key
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
    find_by_meaning,
    find_by_words,
    find_named,
    find_nearest,
    find_place,
    find_standard_types,
    load_vocabulary,
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

    district: str = Field(description="District code")
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
    words, notes, districts = asked.words, asked.notes, asked.districts
    uses = words.uses if use is None else _find_uses(asked, use)
    asked.reader.start_selection()
    rules = find_rules(asked.reader, "permission", words)
    reported, unsure = ([each for each in several if each.about in uses] for several in rules)
    found, is_complete = list[Found](), True
    if use is not None:
        stated = {each.district for each in reported}
        followed = follow_references(words, districts, rules.reported, stated, use)
        found, is_complete = followed.found, not followed.found
        notes += followed.notes
        extra = {each.district for each in found}.union(*followed.led.values())
        districts = {**districts, **{iri: known for iri, known in words.districts.items() if iri in extra}}
    found += [each for each in reported if each.district in districts]
    if use is not None and (similar := _find_similar_uses(asked, uses, rules.reported)):
        where = "in the code" if district is None else "for the district"
        notes.append(f"Also recorded {where}, with words like these: {shorten(similar)}. Ask for them by name.")
        is_complete = is_complete and bool(found)
    if not found:
        if use is not None and district is not None and is_complete:
            # The rules that prohibit the uses that are not listed in the districts, whose lists were read whole.
            unlisted = {iri for iri, known in words.uses.items() if fold(known.name) == _UNLISTED}
            found = [each for each in rules.reported if each.district in districts and each.about in unlisted]
        notes.append(_NOT_LISTED if found else _note_nothing(asked.place, "permission", bool(words.uses)))
    order, ranks = [*districts], {iri: rank for rank, iri in enumerate(uses)}
    found.sort(
        key=lambda each: (
            order.index(each.district or ""),
            ranks.get(each.about, len(ranks)),
            not each.is_stated,
            each.iri,
        )
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

    kinds = {iri: parse_use_kinds(words.uses[iri].name) for iri in {each.about for each in found}}
    unsure = [each for each in unsure if each.district in districts]
    is_complete = is_complete and not unsure
    return asked.answer(PermissionResult, found, unsure, to_permission, kinds.get, is_complete=is_complete)


_Ruled = TypeVar("_Ruled", bound=Result)


@dataclass(slots=True)
class _Asked(Question):
    """A question about rules, with the districts and uses of the code."""

    words: Vocabulary
    notes: list[str]
    has_text: bool
    districts: Mapping[str, Named]
    """Those asked for, or all."""
    limit: int
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
        asked = cls(reader, kind, place, about, district, None, words, notes, has_law, words.districts, limit, offset)
        if district is not None:
            try:
                asked.districts = asked.scope = find_named("district", district, words.districts, place, notes)
            except NotFoundError as error:
                whole = describe_whole_list(reader, place)
                if not has_law or whole is not None:
                    raise NotFoundError(f"{error} {whole or ''}".strip()) from None
                asked.districts = {}
                notes.append(f"{error} The code may have districts that were not read.")
        return asked

    def is_governed(self) -> bool:
        """Whether passages can govern the use or type of standard: those of the district, or any with a word of it."""
        return self.has_text and (self.scope is not None or has_words(self.reader.kg, self.place.iri, self.about or ""))

    def answer(
        self,
        result: type[_Ruled],
        found: Sequence[Found],
        unsure: Sequence[Found],
        convert: Callable[[Found, Rule, RuleEvidence], Lean],
        to_subject: Callable[[str], object] = str,
        *,
        is_complete: bool = True,
    ) -> _Ruled:
        """Answer with a page of the rules of `found` and, on the first page, unsure ones and the passages that govern.

        `to_subject` is that of `find_overruled`.
        """
        reader, notes, is_first = self.reader, self.notes, not self.offset
        page = found[self.offset : self.offset + self.limit]
        both = [*page, *(unsure[:SHOWN_UNSURE] if is_first else ())]
        overruled = find_overruled(reader, page, found, to_subject)
        rules = load_rules(reader, {each.iri: each.graph for each in both})
        shown: list[Lean] = []
        withheld: list[Lean] = []
        for each, evidence in zip(both, load_evidence(reader, [rules[each.iri] for each in both]), strict=True):
            evidence.yields_to = overruled.get(each.iri)
            is_law = len(shown) + len(withheld) < len(page) and evidence.yields_to is None
            (shown if is_law else withheld).append(convert(each, rules[each.iri], evidence))
        if overruled:
            notes.append(
                f"{len(overruled)} found in the text differ from a rule of the source, and are not reported as law: "
                "see yields_to in their evidence."
            )
        if unsure and is_first:
            least = reader.kg.settings.rule_confidence
            notes.append(
                f"Found in the text, but unsure (confidence below {least:g}) and not reported as law: {len(unsure)}. "
                f"Listed: {len(both) - len(page)}. Read their words. list_claims lists all."
            )
        fields: dict[str, Any] = {result.layout.paged[0]: shown}
        if self.has_text and is_first and self.kind != "definition":
            told = {rules[each.iri].one(KG.definedIn) or "" for each in page} if self.kind == "standard" else ()
            law = find_law(self, FEW_TOKENS if found else MOST_TOKENS, told)
            count = f"{len(law.passages)} of {law.in_scope} sections in scope"
            fields |= {"law": law.passages, "coverage": f"Read: tables, lists, label lines. Quoted: {count}."}
        built = result(
            municipality=self.place.name, state=self.place.short_state, unsure=withheld, notes=notes, **fields
        )
        built.places = [place for place, each in enumerate(page) if each.iri not in overruled]
        return reader.finish(
            built,
            total=len(found),
            next_offset=page_of(found, self.offset, self.limit),
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
    words, districts = asked.words, asked.districts
    asked.reader.start_selection()
    rules = find_rules(asked.reader, "standard", words)
    reported, unsure = rules if standard_type is None else _select_types(asked, standard_type, rules)
    found, unsure = ([each for each in several if each.district in districts] for several in (reported, unsure))
    order = [*districts]
    found.sort(key=lambda each: (order.index(each.district or ""), each.about, not each.is_stated, each.iri))
    if not found:
        asked.notes.append(_note_nothing(asked.place, "standard", bool(words.districts)))

    def to_standard(each: Found, rule: Rule, evidence: RuleEvidence) -> Standard:
        number, unit = rule.quantity() or (None, None)
        return Standard(
            district=words.districts[each.district or ""].code,
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

    return asked.answer(StandardResult, found, unsure, to_standard, is_complete=not unsure)


def _select_types(asked: _Asked, standard_type: str, rules: Candidates) -> Candidates:
    """Select the standards of the types that `standard_type` means, and note what it means.

    Without a type, an error with similar ones where no passage governs it.
    """
    # Cells without a dimension, but with a header that has all words of the type, or two: "Setbacks" and "Front".
    wanted, _ = parse_standard(standard_type)
    cells = {each.iri: each.graph for each in rules.reported if wanted and code_of(each.about) == _UNNAMED}
    headers = {
        iri: [parse_standard(each)[0] for each in (rule.one(KG.recordedIn) or "").split(" | ")]
        for iri, rule in load_rules(asked.reader, cells).items()
    }
    headed = set[str]()
    for iri, several in headers.items():
        rest = wanted.difference(*(each for each in several if each <= wanted))
        if any(rest <= each for each in several):
            headed.add(iri)
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


def _find_similar_uses(asked: _Asked, uses: Container[str], reported: Iterable[Found]) -> list[str]:
    """Find uses of the districts with a name that has the words asked for, or like it, and that were not meant."""
    recorded = {each.about for each in reported if each.district in asked.districts}
    known = [each for iri, each in asked.words.uses.items() if iri in recorded and not is_reference(each.name)]
    others, text = [each for each in known if each.term.value not in uses], asked.about or ""
    names = [each.label for each in find_by_words(text, others)]
    if not names and len(others) == len(known):
        names = [each.label for each in find_by_meaning(text, others)]
        names = names or find_nearest(text, [each.label for each in others])
    return list(dict.fromkeys(names))


def _note_nothing(place: Place, kind: str, any_known: bool) -> str:
    if not any_known:
        return f"No {kind} of {place.quoted} is recorded: none was loaded, and none was read in the text of its code."
    meaning = " That is not a prohibition." if kind == "permission" else ""
    return f"No {kind} is recorded for this. The code may still contain one.{meaning}"


class TermDefinition(Lean):
    """The definition of a term in a code."""

    term: str
    definition_text: str
    section_ref: str | None = None
    evidence: RuleEvidence


class DefinitionResult(Result):
    """Definitions of a term, one for each section that defines it."""

    layout: ClassVar[Layout] = Layout(paged=("definitions",))

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
    asked = _Asked.parse(kg, "definition", municipality, state, None, term, limit, offset)
    asked.reader.start_selection()
    rules = find_rules(asked.reader, "definition", asked.words)
    in_order = sorted((*rules.reported, *rules.unsure), key=lambda each: (natural_key(each.about), each.iri))
    terms = {each.iri: Named(NamedNode(each.iri), each.about, (each.about,)) for each in in_order}
    chosen = [*find_named("term", term, terms, asked.place, asked.notes)]
    found, unsure = ([each for each in several if each.iri in chosen] for several in rules)
    found.sort(key=lambda each: chosen.index(each.iri))

    def to_definition(each: Found, rule: Rule, evidence: RuleEvidence) -> TermDefinition:
        return TermDefinition(
            term=each.about,
            definition_text=rule.one(SKOS.definition) or "",
            section_ref=rule.section(KG.definedIn),
            evidence=evidence,
        )

    return asked.answer(DefinitionResult, found, unsure, to_definition, fold)
