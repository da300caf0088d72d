"""What is permitted in a district, and which dimensions hold there, each with what it rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import Field
from pyoxigraph import Literal, NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import NEAREST, Choice, shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of, text_of
from kg.retrieval.results import Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.tools.zoning.municipalities import MunicipalityName, PageSize, Place, Skipped, StateName, find_place
from kg.tools.zoning.rule_rows import Rule, RuleEvidence, load_evidence, load_rules
from kg.tools.zoning.term_lookup import (
    DistrictName,
    StandardType,
    UseName,
    Vocabulary,
    find_by_head,
    find_by_words,
    find_named,
    find_nearest,
    find_spelled,
    find_standard_types,
    join_names,
    load_vocabulary,
    match_note,
    natural_key,
    no_match_message,
)
from kg.vocabulary import KG, SKOS, Kind, iri_prefix

SHOWN_ODDS: Final = 5

PERMISSIONS: Final = """
SELECT ?rule ?graph ?district ?about WHERE {
  VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; kg:landUse ?about }
}"""

STANDARDS: Final = """
SELECT ?rule ?graph ?district ?about WHERE {
  VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; kg:standardType ?about }
}"""

# Of the text of a code, some standards are for no district that is named.
ELSEWHERE: Final = """
SELECT ?rule ?graph ?about WHERE {
  ?section kg:jurisdiction $municipality . ?rule kg:definedIn ?section
  GRAPH ?graph { ?rule kg:standardType ?about }
  FILTER NOT EXISTS { ?rule kg:district ?district }
}"""

COUNTED: Final = """
SELECT ?district (COUNT(?rule) AS ?count) WHERE {
  { VALUES ?district { $districts } ?rule kg:district ?district }
  UNION { ?section kg:jurisdiction $municipality . ?rule kg:definedIn ?section
          FILTER NOT EXISTS { ?rule kg:district ?any } }
  FILTER(STRSTARTS(STR(?rule), $kind))
} GROUP BY ?district"""


class Permission(Lean):
    """Whether a use is permitted in a district."""

    district: str = Field(description="Its code")
    district_name: str | None = Field(None, description="Where it is another than the code")
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

    municipality: str
    state: str
    permissions: list[Permission]


class Standard(Lean):
    """A dimension that a code prescribes. `raw_value` is as recorded; `value` with `unit` only where it is a number."""

    district: str | None = Field(None, description="Its code; absent: not for one district")
    standard_type: str
    bound: str | None = Field(None, description="min or max")
    value: float | None = None
    unit: str | None = Field(None, description="Local name in QUDT, e.g. FT, AC, or of our list")
    raw_value: str
    raw_unit: str | None = None
    applies_to: str | None = None
    conditions: list[str] | None = None
    section_ref: str | None = None
    evidence: RuleEvidence


class StandardResult(Result):
    """Standards by district and type."""

    municipality: str
    state: str
    standards: list[Standard]


class Found(NamedTuple):
    """A rule that was found, before it is read."""

    iri: str
    graph: str
    district: str | None
    about: str


def kg_query_permissions(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    district: DistrictName = None,
    use: UseName = None,
    limit: PageSize = 25,
    offset: Skipped = 0,
) -> PermissionResult:
    """Tell which uses are permitted in which districts, on which conditions.

    Use for what may be built where. Returns permissions: district, use, permission (as_recorded: the source's word),
    conditions, review_section, section_ref, evidence. What is not listed is not recorded, and not thereby prohibited.
    Example: kg_query_permissions(municipality="Quarry Bend", state="UT", district="R-1", use="duplex").
    Next: `kg_query_section` with a section_ref.
    """
    bounded_page(limit, offset)
    reader, notes = Reader(kg), list[str]()
    place = find_place(reader, municipality, state)
    words = load_vocabulary(reader, place)
    districts = words.districts if district is None else find_named("district", district, words.districts, place, notes)
    uses = words.uses if use is None else find_named("use", use, words.uses, place, notes)
    reader.ran.clear()
    if use is None:
        counts = _count_rules(reader, "permission", place, words)
        total = sum(counts.get(iri, 0) for iri in districts)
        shown, passed = _districts_on_page(counts, districts, offset, limit)
        found = _find_rules(reader, "permissions", PERMISSIONS, shown)
    else:
        found = [each for each in _find_rules(reader, "permissions", PERMISSIONS, districts) if each.about in uses]
        total, passed = len(found), 0
    at, among = _ranks(districts), _ranks(uses)
    found.sort(key=lambda each: (at[each.district or ""], among.get(each.about, len(among)), each.iri))
    page = load_with_evidence(reader, found[offset - passed : offset - passed + limit])
    permissions = [
        Permission(
            district=districts[each.district or ""].code,
            district_name=_other_name(districts[each.district or ""].code, districts[each.district or ""].name),
            use=uses[each.about].name,
            permission=rule.code(KG.permissionLevel),
            as_recorded=rule.one(KG.rawLevel),
            conditions=rule.all(KG.condition),
            review_section=rule.section(KG.reviewSection),
            section_ref=rule.section(KG.definedIn),
            evidence=evidence,
        )
        for each, rule, evidence in page
    ]
    notes += _note_differences(
        ((each.use, "in", each.district, *each.conditions), each.permission or each.as_recorded or "", each.evidence)
        for each in permissions
    )
    if not total:
        if use is not None and district is not None:
            notes += _note_other_districts(reader, words, uses)
        notes.append(_note_nothing(place, "permission", bool(words.uses)))
    return reader.finish(
        PermissionResult(municipality=place.name, state=place.short_state, permissions=permissions, notes=notes),
        total=total,
        next_offset=page_of(range(total), offset, limit),
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
    """Tell the dimensions that districts prescribe: lot area, setbacks, height, coverage, density, parking.

    Use for how large, high or far. Returns standards: bound, value with unit where it is a number, raw_value,
    applies_to, conditions, section_ref, evidence.
    Example: kg_query_standards(municipality="Quarry Bend", state="UT", district="R-1", standard_type="setback").
    Next: `compare_zoning` for other places.
    """
    bounded_page(limit, offset)
    reader, notes = Reader(kg), list[str]()
    place = find_place(reader, municipality, state)
    words = load_vocabulary(reader, place)
    districts = words.districts if district is None else find_named("district", district, words.districts, place, notes)
    reader.ran.clear()
    if standard_type is None:
        counts = _count_rules(reader, "standard", place, words)
        elsewhere = counts.get("", 0)
        total = sum(counts.get(iri, 0) for iri in districts)
        shown, passed = _districts_on_page(counts, districts, offset, limit)
        found = _find_rules(reader, "standards", STANDARDS, shown)
        if district is None and elsewhere:
            found += _find_without_district(reader, place) if offset + limit > total else ()
            passed = min(passed, total)
            total, elsewhere = total + elsewhere, 0
    else:
        everything = _find_rules(reader, "standards", STANDARDS, words.districts) + _find_without_district(
            reader, place
        )
        types, bound = find_standard_types(
            standard_type, sorted({code_of(each.about) for each in everything}), place, notes
        )
        found = [each for each in everything if code_of(each.about) in types]
        if bound is not None:
            rules = load_rules(reader, {each.iri: each.graph for each in found})
            found = [each for each in found if rules[each.iri].code(KG.bound) in (bound, None)]
        elsewhere = 0 if district is None else sum(each.district is None for each in found)
        found = [each for each in found if each.district in districts or (district is None and each.district is None)]
        total, passed = len(found), 0
    at = _ranks(districts)
    found.sort(key=lambda each: (at.get(each.district or "", len(at)), each.about, each.iri))
    if elsewhere:
        notes.append(f"{elsewhere} more are for no district that is named with them: ask without district.")
    page = load_with_evidence(reader, found[offset - passed : offset - passed + limit])
    standards = [
        to_standard(rule, evidence, districts[each.district].code if each.district else None)
        for each, rule, evidence in page
    ]
    notes += _note_differences(
        (
            # By unit: 10 per cent and 800 square feet may hold together.
            (each.bound, each.standard_type, each.applies_to, "in", each.district, each.unit, *(each.conditions or ())),
            f"{each.value:g}" if each.value is not None else each.raw_value,
            each.evidence,
        )
        for each in standards
        if each.district is not None
    )
    if not total:
        notes.append(_note_nothing(place, "standard", bool(words.districts)))
    return reader.finish(
        StandardResult(municipality=place.name, state=place.short_state, standards=standards, notes=notes),
        total=total,
        next_offset=page_of(range(total), offset, limit),
    )


def to_standard(rule: Rule, evidence: RuleEvidence, district: str | None) -> Standard:
    """Return a standard as an answer has it."""
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


def _find_rules(reader: Reader, purpose: str, query: str, districts: Iterable[str]) -> list[Found]:
    nodes = [NamedNode(iri) for iri in districts]
    return [*reader.kept(purpose, bind(query, districts=nodes), _to_found)] if nodes else []


def _find_without_district(reader: Reader, place: Place) -> list[Found]:
    return [*reader.kept("standards for no district", bind(ELSEWHERE, municipality=NamedNode(place.iri)), _to_found)]


def _count_rules(reader: Reader, kind: Kind, place: Place, words: Vocabulary) -> Mapping[str, int]:
    """Return how many rules of a kind each district has; for none, those that are for no district."""

    def read(rows: Sequence[Mapping[str, Term]]) -> dict[str, int]:
        return {iri_of(row["district"]) if "district" in row else "": int(text_of(row["count"])) for row in rows}

    query = bind(
        COUNTED,
        districts=[NamedNode(iri) for iri in words.districts],
        municipality=NamedNode(place.iri),
        kind=Literal(iri_prefix(kind)),
    )
    return reader.kept(f"{kind}s by district", query, read)


def _districts_on_page(
    counts: Mapping[str, int], districts: Iterable[str], offset: int, limit: int
) -> tuple[list[str], int]:
    """Return which of `districts` have rules on a page, and how many rules those before them have.

    What rules are about is read of these districts alone, for it takes long.
    """
    shown: list[str] = []
    start, passed = 0, offset
    for iri in districts:
        end = start + counts.get(iri, 0)
        if start < offset + limit and end > offset and end > start:
            passed = passed if shown else start
            shown.append(iri)
        start = end
    return shown, passed


def _ranks(things: Mapping[str, object]) -> dict[str, int]:
    """Return the places of things that are in order."""
    return {iri: place for place, iri in enumerate(things)}


def _to_found(rows: Sequence[Mapping[str, Term]]) -> list[Found]:
    return [
        Found(
            iri_of(row["rule"]),
            iri_of(row["graph"]),
            iri_of(row["district"]) if "district" in row else None,
            iri_of(row["about"]),
        )
        for row in rows
    ]


def load_with_evidence(reader: Reader, found: Sequence[Found]) -> list[tuple[Found, Rule, RuleEvidence]]:
    """Return what `found` says, with what it rests on."""
    rules = load_rules(reader, {each.iri: each.graph for each in found})
    evidence = dict(zip(rules, load_evidence(reader, list(rules.values())), strict=True))
    return [(each, rules[each.iri], evidence[each.iri]) for each in found]


def _note_differences(said: Iterable[tuple[Sequence[str | None], str, RuleEvidence]]) -> list[str]:
    """Return what to tell where places say different things of the same: what it is of, what, and where that stands."""
    by_subject: dict[str, dict[str, str]] = defaultdict(dict)
    for about, what, evidence in said:
        by_subject[" ".join(filter(None, about))].setdefault(what, evidence.graph)
    odd = [
        f"{about}: {', '.join(sorted(ways))}"
        for about, ways in by_subject.items()
        if len(ways) > 1 and len(set(ways.values())) > 1
    ]
    more = f"; and {len(odd) - SHOWN_ODDS} more" if len(odd) > SHOWN_ODDS else ""
    return (
        [f"What is recorded differs by its source ({'; '.join(odd[:SHOWN_ODDS])}{more}); see evidence."] if odd else []
    )


def _note_other_districts(reader: Reader, words: Vocabulary, uses: Mapping[str, object]) -> list[str]:
    """Return what to tell of uses of which nothing is recorded in the districts that were asked for."""
    found = {
        each.district for each in _find_rules(reader, "permissions", PERMISSIONS, words.districts) if each.about in uses
    }
    codes = [known.code for iri, known in words.districts.items() if iri in found]
    return [f"In other districts something is recorded of it: {shorten(codes)}."] if codes else []


def _other_name(code: str, name: str) -> str | None:
    return name if name != code else None


def _note_nothing(place: Place, kind: str, any_known: bool) -> str:
    if not any_known:
        return (
            f"No {kind} of {place.shown} is recorded: none was loaded, and none was found in the text of its code, "
            "whose prose may still hold some; kg_search_by_topic finds the sections that speak of a topic."
        )
    forbidden = "; that is no prohibition" if kind == "permission" else ""
    return f"No {kind} is recorded for this, which does not say that there is none{forbidden}."


DEFINITIONS: Final = """
SELECT ?definition ?graph ?term WHERE {
  ?definition kg:jurisdiction $municipality ; a kg:Definition GRAPH ?graph { ?definition skos:prefLabel ?term }
}"""


class TermDefinition(Lean):
    """What a code says that a term means in it."""

    term: str
    definition_text: str
    section_ref: str | None = None
    evidence: RuleEvidence


class DefinitionResult(Result):
    """Definitions of a term, one for each place that has one."""

    municipality: str
    state: str
    definitions: list[TermDefinition]


def kg_query_definition(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    term: Annotated[str, Field(max_length=300)],
    limit: PageSize = 20,
    offset: Skipped = 0,
) -> DefinitionResult:
    """Look up what a term means in a code.

    Use before reading a rule closely. Returns definitions: term, definition_text, section_ref, evidence; several
    sections may define it differently.
    Example: kg_query_definition(municipality="Quarry Bend", state="UT", term="building height").
    Next: `kg_query_section` with the section_ref.
    """
    bounded_page(limit, offset)
    reader, notes = Reader(kg), list[str]()
    place = find_place(reader, municipality, state)
    wanted = clean_text("term", term, 300)

    def read(rows: Sequence[Mapping[str, Term]]) -> list[tuple[str, str, str]]:
        return [(iri_of(row["definition"]), iri_of(row["graph"]), text_of(row["term"])) for row in rows]

    reader.ran.clear()
    known = reader.kept("terms that are defined", bind(DEFINITIONS, municipality=NamedNode(place.iri)), read)
    in_order = sorted(known, key=lambda each: (natural_key(each[2]), each[0]))
    choices = [Choice(NamedNode(iri), name, (name,)) for iri, _, name in in_order]
    chosen = find_spelled(wanted, choices)
    if not chosen and (chosen := find_by_head(wanted, choices) or find_by_words(wanted, choices)):
        notes.append(_note_not_defined(wanted, choices, chosen, place))
    elif not chosen:
        raise NotFoundError(no_match_message("term", wanted, _labels(choices), place.shown))
    elif (note := match_note("term", wanted, chosen)) is not None:
        notes.append(note)
    graphs = {iri: graph for iri, graph, _ in known}
    found = [Found(choice.term.value, graphs[choice.term.value], None, choice.label) for choice in chosen]
    definitions = [
        TermDefinition(
            term=each.about,
            definition_text=rule.one(SKOS.definition) or "",
            section_ref=rule.section(KG.definedIn),
            evidence=evidence,
        )
        for each, rule, evidence in load_with_evidence(reader, found[offset : offset + limit])
    ]
    if len({each.definition_text for each in definitions}) > 1 and len({each.term for each in definitions}) == 1:
        notes.append("The code defines this term in several ways; each holds where its section says.")
    return reader.finish(
        DefinitionResult(municipality=place.name, state=place.short_state, definitions=definitions, notes=notes),
        total=len(found),
        next_offset=page_of(found, offset, limit),
    )


def _note_not_defined(wanted: str, choices: Sequence[Choice], chosen: Sequence[Choice], place: Place) -> str:
    """Return what to tell where the code defines only other terms than the one that is wanted."""
    taken = list(dict.fromkeys(choice.label for choice in chosen))
    others = [name for name in find_nearest(wanted, _labels(choices)) if name not in taken]
    rest = f" and {len(taken) - NEAREST} more" if len(taken) > NEAREST else ""
    near = f"; near are also: {join_names(others)}" if others else ""
    return (
        f"term: {place.shown} defines no {wanted[:100]!r}; it was taken for {join_names(taken[:NEAREST])}{rest}{near}."
    )


def _labels(choices: Sequence[Choice]) -> list[str]:
    return list(dict.fromkeys(choice.label for choice in choices))
