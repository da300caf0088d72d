"""Tools for permissions, dimensional standards and definitions of a code, each with its evidence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import NEAREST, Choice, shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, bounded_page, clean_text, iri_of, page_of
from kg.retrieval.results import Completeness, Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
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
from kg.vocabulary import KG, SKOS, iri_prefix

SHOWN_ODDS: Final = 5

PERMISSIONS: Final = """
SELECT ?rule ?graph ?district ?about WHERE {
  VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; kg:landUse ?about }
}"""

STANDARDS: Final = """
SELECT ?rule ?graph ?district ?about WHERE {
  VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; kg:standardType ?about }
}"""

# Some standards in the text of a code name no district.
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

    municipality: str
    state: str
    permissions: list[Permission]


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

    municipality: str
    state: str
    standards: list[Standard]


class Found(NamedTuple):
    """A rule that was found and is not loaded yet."""

    iri: str
    graph: str
    district: str | None
    about: str


class _Selection(NamedTuple):
    """The rules that match a call, or those of them in the districts of its page."""

    found: list[Found]
    total: int
    skipped: int = 0
    """Number of matching rules before the first of `found`."""
    elsewhere: int = 0
    """Number of matching rules without a district, which are not in `total`."""


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

    Use to find out where a use is allowed. References to the uses of another district are followed. Returns
    permissions: district, use, permission (as_recorded: the source's word), conditions, review_section, section_ref,
    evidence. An unlisted use is unrecorded, not prohibited.
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
    completeness: Completeness = "complete"
    if use is None:
        selected = _select_page(reader, "permission", place, words, districts, offset, limit)
    else:
        found = [each for each in _find_rules(reader, "permission", words.districts) if each.about in uses]
        followed = _follow_references(reader, words, districts, {each.district or "" for each in found})
        found = [each for each in found if each.district in districts or each.district in followed.districts]
        selected = _Selection([*found, *followed.found], len(found) + len(followed.found))
        extra = {each.district or "" for each in followed.found} | followed.districts
        districts = {**districts, **{iri: known for iri, known in words.districts.items() if iri in extra}}
        notes += followed.notes
        completeness = "approximate" if followed.unresolved else "complete"
    at, among = _ranks(districts), _ranks(uses)
    selected.found.sort(key=lambda each: (at[each.district or ""], among.get(each.about, len(among)), each.iri))
    start, total = offset - selected.skipped, selected.total
    permissions = [
        Permission(
            district=districts[each.district or ""].code,
            district_name=districts[each.district or ""].other_name,
            use=words.uses[each.about].name,
            permission=rule.code(KG.permissionLevel),
            as_recorded=rule.one(KG.rawLevel),
            conditions=rule.all(KG.condition),
            review_section=rule.section(KG.reviewSection),
            section_ref=rule.section(KG.definedIn),
            evidence=evidence,
        )
        for each, rule, evidence in load_with_evidence(reader, selected.found[start : start + limit])
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
        completeness=completeness,
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
        selected = _select_page(reader, "standard", place, words, districts, offset, limit)
        if district is None and selected.elsewhere:
            if offset + limit > selected.total:
                selected.found.extend(_find_without_district(reader, place))
            skipped = min(selected.skipped, selected.total)
            selected = _Selection(selected.found, selected.total + selected.elsewhere, skipped)
    else:
        found = _find_rules(reader, "standard", words.districts) + _find_without_district(reader, place)
        codes = sorted({code_of(each.about) for each in found})
        types, bound = find_standard_types(standard_type, codes, place, notes)
        found = [each for each in found if code_of(each.about) in types]
        if bound is not None:
            rules = load_rules(reader, {each.iri: each.graph for each in found})
            found = [each for each in found if rules[each.iri].code(KG.bound) in (bound, None)]
        elsewhere = 0 if district is None else sum(each.district is None for each in found)
        found = [each for each in found if each.district in districts or (district is None and each.district is None)]
        selected = _Selection(found, len(found), elsewhere=elsewhere)
    at = _ranks(districts)
    selected.found.sort(key=lambda each: (at.get(each.district or "", len(at)), each.about, each.iri))
    start, total = offset - selected.skipped, selected.total
    if selected.elsewhere:
        notes.append(f"{selected.elsewhere} more standards name no district. Omit district to list them.")
    standards = [
        to_standard(rule, evidence, districts[each.district].code if each.district else None)
        for each, rule, evidence in load_with_evidence(reader, selected.found[start : start + limit])
    ]
    notes += _note_differences(
        (
            # Units are compared separately: 10 percent and 800 square feet may both apply.
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


_REFERENCE: Final = re.compile(
    r"(?:(?:any|all|the|those|every) )?(?:[a-z]+ )?(?:of the )?uses? (?:that (?:is|are) )?(?:permitted|allowed)"
    r"(?: (?:by right|outright|as of right))? (?:in|within) (?P<of>[^.;:,]{1,80})",
    re.IGNORECASE,
)
"""A use that refers to another district: ``Any use permitted in the C-1 District, except theaters``."""


class _References(NamedTuple):
    """References of districts to the uses of others, and the districts with a permission that they lead to."""

    found: list[Found]
    districts: set[str]
    notes: list[str]
    unresolved: bool


def _follow_references(reader: Reader, words: Vocabulary, districts: Iterable[str], stated: set[str]) -> _References:
    """Follow the references of `districts` to the districts in `stated`, which have a permission for the use asked for.

    A reference that names no known district may lead to a permission: it is always part of the result.
    """
    followed = _References([], set(), [], False)
    named = {iri: match["of"] for iri, use in words.uses.items() if (match := _REFERENCE.match(use.name))}
    by_district: dict[str, list[Found]] = defaultdict(list)
    for each in _find_rules(reader, "permission", words.districts) if named else ():
        if each.about in named:
            by_district[each.district or ""].append(each)
    targets = {iri: _find_districts_in(of, words) for iri, of in named.items()}
    used: dict[str, Found] = {}
    for iri in districts if by_district else ():
        seen, pending, way = {iri}, [iri], list[Found]()
        while pending:
            for each in by_district[pending.pop()]:
                way.append(each)
                new = [other for other in targets[each.about] if other not in seen]
                seen.update(new)
                pending += new
        reached = (seen - {iri}) & stated
        lost = [each for each in way if not targets[each.about]]
        used |= {each.iri: each for each in (way if reached else lost)}
        followed.districts.update(reached)
        followed.notes.extend(
            f"{words.districts[iri].code} also refers to the uses of another district, which could not be identified: "
            f"{words.uses[each.about].name!r}. Read that section."
            for each in lost
        )
        if reached:
            codes = shorten([words.districts[other].code for other in words.districts if other in reached])
            followed.notes.append(
                f"{words.districts[iri].code} refers to the uses of {codes}, at the level and with the exceptions that "
                "the reference gives."
            )
    return followed._replace(
        found=list(used.values()), unresolved=any(not targets[each.about] for each in used.values())
    )


def _find_districts_in(text: str, words: Vocabulary) -> list[str]:
    """Find the districts that some words name, by code or name."""
    plain = f" {fold(text)} "
    return [
        iri
        for iri, each in words.districts.items()
        if re.search(rf"(?<![\w-]){re.escape(each.code)}(?![\w-])", text)
        or (each.name != each.code and f" {fold(each.name)} " in plain)
    ]


_Kind = Literal["permission", "standard"]
_QUERIES: Final[Mapping[_Kind, str]] = {"permission": PERMISSIONS, "standard": STANDARDS}


def _find_rules(reader: Reader, kind: _Kind, districts: Iterable[str]) -> list[Found]:
    nodes = [NamedNode(iri) for iri in districts]
    return [*reader.kept(f"{kind}s", bind(_QUERIES[kind], districts=nodes), _to_found)] if nodes else []


def _find_without_district(reader: Reader, place: Place) -> list[Found]:
    return [*reader.kept("standards without district", bind(ELSEWHERE, municipality=NamedNode(place.iri)), _to_found)]


def _count_rules(reader: Reader, kind: _Kind, place: Place, words: Vocabulary) -> Mapping[str, int]:
    """Count the rules of a kind by district IRI. Rules without a district count under the empty string."""

    def read(rows: Sequence[Mapping[str, Term]]) -> dict[str, int]:
        return {iri_of(row["district"]) if "district" in row else "": int(term_text(row["count"])) for row in rows}

    query = bind(
        COUNTED,
        districts=[NamedNode(iri) for iri in words.districts],
        municipality=NamedNode(place.iri),
        kind=Text(iri_prefix(kind)),
    )
    return reader.kept(f"{kind}s by district", query, read)


def _select_page(
    reader: Reader, kind: _Kind, place: Place, words: Vocabulary, districts: Iterable[str], offset: int, limit: int
) -> _Selection:
    """Select the rules of the districts that have rules on a page.

    The counts say which districts these are. The subjects of their rules only are read, since that is slow.
    """
    counts = _count_rules(reader, kind, place, words)
    shown: list[str] = []
    start, skipped = 0, offset
    for iri in districts:
        end = start + counts.get(iri, 0)
        if start < offset + limit and end > offset and end > start:
            skipped = skipped if shown else start
            shown.append(iri)
        start = end
    return _Selection(_find_rules(reader, kind, shown), start, skipped, counts.get("", 0))


def _ranks(things: Mapping[str, object]) -> dict[str, int]:
    """Map each key to its position."""
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
    """Note the other districts that have a permission for these uses."""
    found = {each.district for each in _find_rules(reader, "permission", words.districts) if each.about in uses}
    codes = [known.code for iri, known in words.districts.items() if iri in found]
    return [f"Other districts have permissions for this use: {shorten(codes)}."] if codes else []


def _note_nothing(place: Place, kind: str, any_known: bool) -> str:
    if not any_known:
        return (
            f"No {kind} of {place.shown} is recorded: none was loaded, and none was extracted from the text of its "
            "code. Its prose may still contain some. kg_search_by_topic finds the sections about a topic."
        )
    forbidden = " That is not a prohibition." if kind == "permission" else ""
    return f"No {kind} is recorded for this. The code may still contain one.{forbidden}"


DEFINITIONS: Final = """
SELECT ?definition ?graph ?term WHERE {
  ?definition kg:jurisdiction $municipality ; a kg:Definition GRAPH ?graph { ?definition skos:prefLabel ?term }
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

    def read(rows: Sequence[Mapping[str, Term]]) -> list[tuple[str, str, str]]:
        return [(iri_of(row["definition"]), iri_of(row["graph"]), term_text(row["term"])) for row in rows]

    reader.ran.clear()
    known = reader.kept("defined terms", bind(DEFINITIONS, municipality=NamedNode(place.iri)), read)
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
        notes.append("The code has several definitions of this term. Each applies in the scope that its section names.")
    return reader.finish(
        DefinitionResult(municipality=place.name, state=place.short_state, definitions=definitions, notes=notes),
        total=len(found),
        next_offset=page_of(found, offset, limit),
    )


def _note_not_defined(wanted: str, choices: Sequence[Choice], chosen: Sequence[Choice], place: Place) -> str:
    """Build the note for a term that the code does not define itself, but that is part of defined terms."""
    taken = list(dict.fromkeys(choice.label for choice in chosen))
    others = [name for name in find_nearest(wanted, _labels(choices)) if name not in taken]
    rest = f" and {len(taken) - NEAREST} more" if len(taken) > NEAREST else ""
    near = f" Also similar: {join_names(others)}." if others else ""
    meant = f"{join_names(taken[:NEAREST])}{rest}"
    return f"term: {place.shown} does not define {wanted[:100]!r}. It was interpreted as {meant}.{near}"


def _labels(choices: Sequence[Choice]) -> list[str]:
    return list(dict.fromkeys(choice.label for choice in choices))
