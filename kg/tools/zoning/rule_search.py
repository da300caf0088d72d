"""Finds the rules of districts: which are reported as law, which are unsure, and which others they refer to.

A rule is reported as law if its source states it, if a person accepted it, or if it and its district were found in text
with a confidence of at least the setting ``rule_confidence``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.fuzzy_names import fold
from kg.retrieval.choices import shorten
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.tools.zoning.municipalities import Place
from kg.tools.zoning.term_lookup import MEMBERS, Vocabulary
from kg.vocabulary import KG, SOURCED, iri_prefix
from kg.zoning_summaries.use_names import parse_use_kinds

PERMISSIONS: Final = """
SELECT ?rule ?graph ?district ?about ?confidence ?review WHERE {
  VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; kg:landUse ?about }
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
}"""

STANDARDS: Final = """
SELECT ?rule ?graph ?district ?about ?confidence ?review WHERE {
  VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; kg:standardType ?about }
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
}"""

# Some standards in the text of a code name no district.
ELSEWHERE: Final = """
SELECT ?rule ?graph ?about ?confidence ?review WHERE {
  ?section kg:jurisdiction $municipality . ?rule kg:definedIn ?section
  GRAPH ?graph { ?rule kg:standardType ?about }
  FILTER NOT EXISTS { ?rule kg:district ?district }
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
}"""

COUNTED: Final = """
SELECT ?district (COUNT(?rule) AS ?count) WHERE {
  { VALUES ?district { $districts } ?rule kg:district ?district }
  UNION { ?section kg:jurisdiction $municipality . ?rule kg:definedIn ?section
          FILTER NOT EXISTS { ?rule kg:district ?any } }
  FILTER(STRSTARTS(STR(?rule), $kind))
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
  FILTER(!BOUND(?confidence) || ?confidence >= $least || BOUND(?review))
} GROUP BY ?district"""

UNSURE: Final = """
SELECT ?rule ?graph ?district ?about ?confidence WHERE {
  VALUES (?district ?least) { $districts } GRAPH ?graph { ?rule kg:district ?district ; $about ?about }
  ?rule kg:confidence ?confidence FILTER(?confidence < ?least)
  MINUS { ?rule kg:reviewStatus ?review }
}"""

_ANY_CONFIDENCE: Final = 2.0
"""More than any confidence: the rules that were found in an unsure district are all unsure."""


class Found(NamedTuple):
    """A rule that was found and is not loaded yet."""

    iri: str
    graph: str
    district: str | None
    about: str
    confidence: float | None = None
    """None for a rule that a source states."""
    is_accepted: bool = False

    @property
    def is_stated(self) -> bool:
        """Whether a source states it."""
        return self.graph.startswith(SOURCED)


class Selection(NamedTuple):
    """The rules that match a call, or those of them in the districts of its page."""

    found: list[Found]
    total: int
    skipped: int = 0
    """Number of matching rules before the first of `found`."""
    elsewhere: int = 0
    """Number of matching rules without a district, which are not in `total`."""


class Candidates(NamedTuple):
    """Rules that match a call: those reported as law, and the unsure ones, the surest first."""

    reported: list[Found]
    unsure: list[Found]


RuleKind = Literal["permission", "standard"]
_QUERIES: Final[Mapping[RuleKind, str]] = {"permission": PERMISSIONS, "standard": STANDARDS}
_ABOUT: Final[Mapping[RuleKind, NamedNode]] = {"permission": KG.landUse, "standard": KG.standardType}


def find_rules(reader: Reader, kind: RuleKind, words: Vocabulary, districts: Iterable[str]) -> Candidates:
    """Find all rules of a kind in `districts`."""
    nodes = [NamedNode(iri) for iri in districts]
    rows = reader.kept(f"{kind}s", bind(_QUERIES[kind], districts=nodes), _to_found) if nodes else []
    return separate(reader, words, rows)


def find_without_district(reader: Reader, words: Vocabulary, place: Place) -> Candidates:
    """Find the standards of a code that name no district."""
    query = bind(ELSEWHERE, municipality=NamedNode(place.iri))
    return separate(reader, words, reader.kept("standards without district", query, _to_found))


def find_unsure(reader: Reader, kind: RuleKind, words: Vocabulary, districts: Iterable[str]) -> list[Found]:
    """Find the unsure rules of a kind in `districts`, the surest first."""
    least = reader.kg.settings.rule_confidence
    rows = [(NamedNode(iri), Text(_ANY_CONFIDENCE if iri in words.unsure else least)) for iri in districts]
    if not rows:
        return []
    query = bind(UNSURE, districts=rows, about=_ABOUT[kind])
    return sort_by_confidence(reader.kept(f"unsure {kind}s", query, _to_found))


def sort_by_confidence(found: Iterable[Found]) -> list[Found]:
    """Sort rules, the surest first."""
    return sorted(found, key=lambda each: (-(each.confidence or 0), each.iri))


def separate(reader: Reader, words: Vocabulary, found: Iterable[Found]) -> Candidates:
    """Separate the rules that are reported as law from the unsure ones."""
    least = reader.kg.settings.rule_confidence
    reported: list[Found] = []
    unsure: list[Found] = []
    for each in found:
        is_unsure = each.confidence is not None and (each.confidence < least or each.district in words.unsure)
        (unsure if is_unsure and not each.is_accepted else reported).append(each)
    return Candidates(reported, sort_by_confidence(unsure))


def _to_found(rows: Sequence[Mapping[str, Term]]) -> list[Found]:
    return [
        Found(
            iri_of(row["rule"]),
            iri_of(row["graph"]),
            iri_of(row["district"]) if "district" in row else None,
            iri_of(row["about"]),
            float(term_text(row["confidence"])) if "confidence" in row else None,
            "review" in row,
        )
        for row in rows
    ]


def count_rules(reader: Reader, kind: RuleKind, place: Place, words: Vocabulary) -> Mapping[str, int]:
    """Count the reported rules of a kind by district IRI. Those without a district count under the empty string."""

    def read(rows: Sequence[Mapping[str, Term]]) -> dict[str, int]:
        return {iri_of(row["district"]) if "district" in row else "": int(term_text(row["count"])) for row in rows}

    query = bind(
        COUNTED,
        districts=[NamedNode(iri) for iri in words.districts],
        municipality=NamedNode(place.iri),
        kind=Text(iri_prefix(kind)),
        least=reader.kg.settings.rule_confidence,
    )
    counts = reader.kept(f"{kind}s by district", query, read)
    if words.unsure.isdisjoint(counts):
        return counts
    reported = find_rules(reader, kind, words, words.unsure & counts.keys()).reported
    return {
        iri: sum(each.district == iri for each in reported) if iri in words.unsure else n for iri, n in counts.items()
    }


def select_page(
    reader: Reader, kind: RuleKind, place: Place, words: Vocabulary, districts: Iterable[str], offset: int, limit: int
) -> Selection:
    """Select the rules of the districts that have rules on a page.

    The counts say which districts these are. The subjects of their rules only are read, since that is slow.
    """
    counts = count_rules(reader, kind, place, words)
    shown: list[str] = []
    start, skipped = 0, offset
    for iri in districts:
        end = start + counts.get(iri, 0)
        if start < offset + limit and end > offset and end > start:
            skipped = skipped if shown else start
            shown.append(iri)
        start = end
    return Selection(find_rules(reader, kind, words, shown).reported, start, skipped, counts.get("", 0))


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
    """References of districts to the uses of others, and the districts with a permission that they lead to."""

    found: list[Found]
    districts: set[str]
    led: dict[str, set[str]]
    """The same, by the district that refers."""
    notes: list[str]
    unresolved: bool


def follow_references(
    reader: Reader, words: Vocabulary, districts: Iterable[str], stated: set[str], use: str | None = None
) -> References:
    """Follow the references of `districts` to the districts in `stated`, which have a permission for the use asked for.

    A reference that names no known district may lead to a permission: it is always part of the result. One that excepts
    the `use` is noted and not followed.
    """
    followed = References([], set(), {}, [], False)
    named = {iri: match["of"] for iri, use in words.uses.items() if (match := _REFERENCE.match(use.name))}
    by_district: dict[str, list[Found]] = defaultdict(list)
    wanted = set(districts)
    for each in find_rules(reader, "permission", words, words.districts).reported if named else ():
        if each.about not in named or each.district is None:
            continue
        if use is not None and _is_excepted(use, words.uses[each.about].name):
            if each.district in wanted:
                code = words.districts[each.district].code
                followed.notes.append(
                    f"{name_or_quote(code)} excepts this use from a reference: {quoted(words.uses[each.about].name)}."
                )
        else:
            by_district[each.district].append(each)
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
        # Of all districts, a reference that could lead anywhere does not answer a use.
        lost = [each for each in way if not targets[each.about] and wanted != words.districts.keys()]
        used |= {each.iri: each for each in (way if reached else lost)}
        followed.districts.update(reached)
        followed.notes.extend(_note_lost(words.districts[iri].code, words.uses[each.about].name) for each in lost)
        if reached:
            followed.led[iri] = reached
            codes = shorten([words.districts[other].code for other in words.districts if other in reached])
            followed.notes.append(
                f"{name_or_quote(words.districts[iri].code)} refers to uses of {codes}. Read the words of the "
                "reference: they may except this use, and need not include uses that are conditional or prohibited "
                "there."
            )
    return followed._replace(
        found=list(used.values()), unresolved=any(not targets[each.about] for each in used.values())
    )


def _is_excepted(use: str, reference: str) -> bool:
    """Whether a reference excepts a use: ``Any use permitted in C-1, except theaters``."""
    match = _EXCEPTED.search(reference)
    kinds = parse_use_kinds(use)
    return match is not None and any(kinds == parse_use_kinds(part) for part in MEMBERS.split(match["what"]))


def _note_lost(code: str, use: str) -> str:
    if _UNDERLYING.search(use):
        return (
            f"{name_or_quote(code)} also has uses of the underlying zone, which differs from lot to lot: "
            f"{quoted(use)}. Ask for that zone."
        )
    known = "which could not be identified"
    return (
        f"{name_or_quote(code)} also refers to the uses of another district, {known}: {quoted(use)}. Read that section."
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
