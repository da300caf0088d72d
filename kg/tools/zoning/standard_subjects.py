"""Separates standards for districts as such, and for uses, from those for a subject or case that was not asked about.

The height of a fence is not the height of buildings, and the front yard of a corner lot is not that of a district.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from typing import Final, NamedTuple

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.retrieval.choices import Choice, shorten
from kg.retrieval.evidence import code_of
from kg.text import quoted
from kg.tools.zoning.municipalities import Place
from kg.tools.zoning.rule_rows import Rule
from kg.tools.zoning.rule_search import Found
from kg.tools.zoning.term_lookup import (
    STANDARD_BOUNDS,
    find_spelled,
    find_standard_types,
    parse_standard_words,
    parse_use_kinds,
)
from kg.vocabulary import KG
from kg.words import singular

_GENERAL: Final = re.compile(
    r"(?:(?:the|a|any|all|each|every|other) )*+(?:(?:principal|main|primary|other) )*+"
    r"(?:(?:(?:principal|main|primary) )?(?:buildings?|structures?|uses?|lots?|districts?|zones?|"
    r"developments?|projects?|sites?)"
    r"(?: (?:and|or) )?)*+",
)
"""Subjects that are those of the district: ``Principal Building``, ``all other uses``."""
_STRUCTURE: Final = re.compile(
    r"\b(?:accessory|corner|fenc\w+|walls?|signs?|porch\w*|decks?|pools?|driveways?|garages?|carports?|towers?|poles?|"
    r"antennas?|spires?|buffers?|sidewalks?|streets?|sheds?|docks?|piers?)\b"
)
"""Words of subjects that are parts of a lot and not its use, also where a use has their name."""
_CASE: Final = re.compile(
    r"(?:on(?! (?:each|both|every|all|either|one|any|the)\b)|where|when|if|for|within|abutting|adjacent|adjoining|"
    r"along|in (?:the )?case|corner)\b",
    re.IGNORECASE,
)
"""A condition that limits a standard to a case. Others are footnotes."""


def is_general(applies_to: str | None) -> bool:
    """Whether a standard is for the buildings or lots of its district as such."""
    return applies_to is None or _GENERAL.fullmatch(fold(applies_to)) is not None


def build_use_test(uses: Sequence[Choice]) -> Callable[[str | None], bool]:
    """Build a predicate on `applies_to`: whether it is a use, one of `uses` or a dwelling."""

    @cache
    def is_use(applies_to: str | None) -> bool:
        if applies_to is None or _STRUCTURE.search(fold(applies_to)):
            return False
        return bool("dwelling" in parse_use_kinds(applies_to) or find_spelled(applies_to, uses))

    return is_use


class Separated(NamedTuple):
    """Standards of a type that was asked for."""

    found: list[Found]
    only_for: list[Found]
    """Those for a subject or case of its own, where the district has no others of the type and bound."""


def separate_subjects(
    found: Sequence[Found],
    rules: Mapping[str, Rule],
    uses: Sequence[Choice],
    notes: list[str],
    codes: Mapping[str, str],
) -> Separated:
    """Separate the standards that do not answer a question about their districts; a note names their subjects.

    `codes` has the codes of the districts.
    """
    is_use = build_use_test(uses)

    def is_answer(each: Found) -> bool:
        rule = rules[each.iri]
        subject = rule.one(KG.appliesTo)
        limited = any(_CASE.match(condition) for condition in rule.all(KG.condition))
        return not limited and (is_general(subject) or is_use(subject))

    def key(each: Found) -> tuple[str | None, str, str | None]:
        return each.district, each.about, rules[each.iri].code(KG.bound)

    answered = {key(each) for each in found if is_answer(each)}
    separated = Separated([], [])
    subjects: dict[str, set[str]] = defaultdict(set)
    for each in found:
        if key(each) in answered or each.district is None:
            separated.found.append(each)
        else:
            separated.only_for.append(each)
            rule = rules[each.iri]
            named = rule.one(KG.appliesTo) or next(iter(rule.all(KG.condition)), "")
            of = " ".join(filter(None, (codes[each.district], rule.code(KG.bound), code_of(each.about))))
            subjects[of].add(named)
    if subjects:
        said = [f"{of} (only: {shorten(sorted(named))})" for of, named in subjects.items()]
        notes.append(
            f"No such standard for the district as such, or for a use, is recorded: {shorten(said)}. See only_for."
        )
    return separated


class Asked(NamedTuple):
    """The type of standard and the subject that some words name: the height of a fence."""

    types: Set[str]
    bound: str | None
    subject: Set[str] = frozenset()
    """Words of the subject."""


def find_types_and_subject(text: str, codes: Sequence[str], place: Place, notes: list[str]) -> Asked:
    """Find the codes of standard types that `text` names, its bound, and its subject if it names one: ``fence height``.

    Raises NotFoundError with similar types.
    """
    try:
        return Asked(*find_standard_types(text, codes, place, notes))
    except NotFoundError:
        if (asked := _find_subject(text, codes)) is None:
            raise
        types = ", ".join(sorted(asked.types))
        notes.append(
            f"standard_type: {quoted(text)} was interpreted as {types} for {quoted(' '.join(sorted(asked.subject)))}."
        )
        return asked


def _find_subject(text: str, codes: Iterable[str]) -> Asked | None:
    words = parse_standard_words([word for word in fold(text).split() if word not in STANDARD_BOUNDS])
    matched: dict[str, tuple[int, int]] = {}
    for code in codes:
        of_code = fold(code).split()
        own = parse_standard_words(of_code)
        if singular(of_code[-1]) in words:
            matched[code] = len(words & own), -len(own - words)
    best = {code for code, fit in matched.items() if fit == max(matched.values())}
    if not best:
        return None
    subject = words.difference(*(parse_standard_words(fold(code).split()) for code in best))
    bound = next((STANDARD_BOUNDS[word] for word in fold(text).split() if word in STANDARD_BOUNDS), None)
    return Asked(best, bound, subject) if subject else None


def is_about(rule: Rule, subject: Set[str]) -> bool:
    """Whether a standard is for this subject, or in this case."""
    said = " ".join((rule.one(KG.appliesTo) or "", *rule.all(KG.condition)))
    words = parse_standard_words(fold(said).split())
    return subject <= words or parse_use_kinds(" ".join(sorted(subject))) <= parse_use_kinds(said)


def list_subjects(rules: Iterable[Rule]) -> str:
    """List what some standards are for, for a message."""
    named = {rule.one(KG.appliesTo) or "all" for rule in rules}
    return shorten(sorted(named, key=lambda each: (each != "all", fold(each)))) or "nothing there"
