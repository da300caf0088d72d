"""Finds the rules of a code: which are reported as law, unsure or overruled, and which districts they refer to.

A rule is reported as law if its source states it, if a person accepted it, or if it and its district were found in text
with a confidence of at least the setting ``rule_confidence``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from pyoxigraph import NamedNode

from kg.fuzzy_names import fold
from kg.retrieval.choices import shorten
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.tools.zoning.municipalities import Place
from kg.tools.zoning.rule_rows import Rule, load_rules
from kg.tools.zoning.term_lookup import MEMBERS, Vocabulary
from kg.vocabulary import KG, SKOS, SOURCED
from kg.zoning_summaries.use_names import parse_use_kinds

RULES: Final = """
SELECT ?rule ?graph ?district ?about ?confidence ?review WHERE {
  { VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; $about ?about } }
  UNION { ?section kg:jurisdiction $municipality . ?rule kg:definedIn ?section GRAPH ?graph { ?rule $about ?about }
          FILTER NOT EXISTS { ?rule kg:district ?any } }
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
}"""


class Found(NamedTuple):
    """A rule that was found and is not loaded yet."""

    iri: str
    graph: str
    district: str | None
    """None for a standard that names no district, and for a definition."""
    about: str
    """Its use or type of standard, or the term that it defines."""
    confidence: float | None
    """None for a rule that a source states."""
    is_accepted: bool

    @property
    def is_stated(self) -> bool:
        """Whether a source states it."""
        return self.graph.startswith(SOURCED)


class Candidates(NamedTuple):
    """Rules that match a call: those reported as law, and the unsure ones, the surest first."""

    reported: list[Found]
    unsure: list[Found]


RuleKind = Literal["permission", "standard"]
_ABOUT: Final[Mapping[RuleKind, NamedNode]] = {"permission": KG.landUse, "standard": KG.standardType}


def find_rules(reader: Reader, kind: RuleKind, place: Place, words: Vocabulary) -> Candidates:
    """Find all rules of a kind in a code."""
    query = bind(
        RULES,
        districts=[NamedNode(iri) for iri in words.districts],
        municipality=NamedNode(place.iri),
        about=_ABOUT[kind],
    )
    return separate(reader, reader.kept(f"{kind}s", query, to_found), words.unsure)


def separate(reader: Reader, found: Iterable[Found], unsure_districts: Container[str | None] = ()) -> Candidates:
    """Separate the rules that are reported as law from the unsure ones."""
    least = reader.kg.settings.rule_confidence
    reported: list[Found] = []
    unsure: list[Found] = []
    for each in found:
        is_unsure = each.confidence is not None and (each.confidence < least or each.district in unsure_districts)
        (unsure if is_unsure and not each.is_accepted else reported).append(each)
    return Candidates(reported, sorted(unsure, key=lambda each: (-(each.confidence or 0), each.iri)))


def to_found(rows: Sequence[Mapping[str, Term]]) -> list[Found]:
    """Read the rows of a query for rules."""
    return [
        Found(
            iri_of(row["rule"]),
            iri_of(row["graph"]),
            iri_of(row["district"]) if "district" in row else None,
            term_text(row["about"]),
            float(term_text(row["confidence"])) if "confidence" in row else None,
            "review" in row,
        )
        for row in rows
    ]


def find_overruled(
    reader: Reader, rules: Iterable[Found], among: Iterable[Found], to_subject: Callable[[str], object]
) -> dict[str, str]:
    """Find those of `rules` found in text from which all rules differ that sources state about the same in `among`.

    Returns one of the latter for each, by IRI. `to_subject` builds the key by which uses, types or terms are compared.
    """
    stated: dict[object, list[Found]] = defaultdict(list)
    for each in among:
        if each.is_stated:
            stated[each.district, to_subject(each.about)].append(each)
    pairs = [
        (each, stated[scope])
        for each in rules
        if not each.is_stated and (scope := (each.district, to_subject(each.about))) in stated
    ]
    loaded = load_rules(reader, {each.iri: each.graph for one, others in pairs for each in (one, *others)})
    overruled: dict[str, str] = {}
    for each, others in pairs:
        case, value = _read_provision(loaded[each.iri])
        same = {iri: of for iri in (other.iri for other in others) if (of := _read_provision(loaded[iri]))[0] == case}
        if same and all(other != value for _, other in same.values()):
            overruled[each.iri] = next(iter(same))
    return overruled


def _read_provision(rule: Rule) -> tuple[object, object]:
    """Read in which case and unit a rule applies, and its value."""
    number, unit = rule.quantity() or (None, "")
    case = rule.code(KG.bound), fold(rule.one(KG.appliesTo) or ""), tuple(rule.all(KG.condition)), unit
    words = next(filter(None, map(rule.one, (KG.rawLevel, KG.rawValue, SKOS.definition))), "")
    return case, rule.code(KG.permissionLevel) or (fold(words) if number is None else number)


_REFERENCE: Final = re.compile(
    r"(?:(?:any|all|the|those|every) )?(?:[a-z]+ )?(?:of the )?uses? (?:that (?:is|are) )?(?:permitted|allowed|listed)"
    r"(?: (?:by right|outright|as of right))? (?:in|within) "
    r"(?P<of>(?:(?:the )?(?-i:[A-Z])[\w-]{0,8}(?:, (?:and |or )?| and | or )){0,20}[^.;:,]{1,80})",
    re.IGNORECASE,
)
"""A use that refers to another district: ``Any use permitted in the C-1 District, except theaters``."""
_EXCEPTED: Final = re.compile(r"\b(?:except(?:ing)?(?: for)?|excluding|other than|but not) (?P<what>.+)", re.IGNORECASE)
_UNDERLYING: Final = re.compile(r"\b(?:underlying|base|existing) (?:zoning )?(?:zone|district)s?\b", re.IGNORECASE)


class References(NamedTuple):
    """References of districts to the uses of others."""

    found: list[Found]
    led: dict[str, set[str]]
    """The districts with a permission that they lead to, by the district that refers."""
    notes: list[str]
    unresolved: bool


def follow_references(
    words: Vocabulary,
    districts: Collection[str],
    reported: Iterable[Found],
    stated: Container[str | None],
    use: str | None = None,
) -> References:
    """Follow the references of `districts` to the districts in `stated`, which have a permission for the use asked for.

    A reference that names no known district may lead to a permission: it is always part of the result. One that excepts
    the `use` is noted and not followed.
    """
    targets = {
        iri: _find_districts_in(match["of"], words)
        for iri, each in words.uses.items()
        if (match := _REFERENCE.match(each.name))
    }
    by_district: dict[str, list[Found]] = defaultdict(list)
    led: dict[str, set[str]] = {}
    notes: list[str] = []
    for each in reported:
        if each.about in targets and each.district is not None:
            named = words.uses[each.about].name
            if use is None or not _is_excepted(use, named):
                by_district[each.district].append(each)
            elif each.district in districts:
                code = name_or_quote(words.districts[each.district].code)
                notes.append(f"{code} excepts this use from a reference: {quoted(named)}.")
    used: dict[str, Found] = {}
    for iri in districts if by_district else ():
        seen, pending, way = {iri}, [iri], list[Found]()
        while pending:
            for each in by_district[pending.pop()]:
                way.append(each)
                new = [other for other in targets[each.about] if other not in seen]
                seen.update(new)
                pending += new
        reached = {other for other in seen - {iri} if other in stated}
        # Of all districts, a reference that could lead anywhere does not answer a use.
        lost = [each for each in way if not targets[each.about] and len(districts) < len(words.districts)]
        used |= {each.iri: each for each in (way if reached else lost)}
        code = name_or_quote(words.districts[iri].code)
        notes += [_note_lost(code, words.uses[each.about].name) for each in lost]
        if reached:
            led[iri] = reached
            codes = shorten([words.districts[other].code for other in words.districts if other in reached])
            notes.append(
                f"{code} refers to uses of {codes}. Read the words of the reference: they may except this use, and "
                "need not include uses that are conditional or prohibited there."
            )
    return References([*used.values()], led, notes, any(not targets[each.about] for each in used.values()))


def _is_excepted(use: str, reference: str) -> bool:
    """Whether a reference excepts a use: ``Any use permitted in C-1, except theaters``."""
    match = _EXCEPTED.search(reference)
    kinds = parse_use_kinds(use)
    return match is not None and any(kinds == parse_use_kinds(part) for part in MEMBERS.split(match["what"]))


def _note_lost(code: str, use: str) -> str:
    if _UNDERLYING.search(use):
        return (
            f"{code} also has uses of the underlying zone, which differs from lot to lot: {quoted(use)}. Ask for that "
            "zone."
        )
    return (
        f"{code} also refers to the uses of another district, which could not be identified: {quoted(use)}. Read that "
        "section."
    )


def is_reference(use: str) -> bool:
    """Whether the name of a use refers to the uses of another district."""
    return _REFERENCE.match(use) is not None


def _find_districts_in(text: str, words: Vocabulary) -> list[str]:
    """Find the districts that some words name, by code or name."""
    plain = f" {fold(text)} "
    return [
        iri
        for iri, each in words.districts.items()
        if re.search(rf"(?<![\w-]){re.escape(each.code)}(?![\w-])", text)
        or (each.name != each.code and f" {fold(each.name)} " in plain)
    ]
