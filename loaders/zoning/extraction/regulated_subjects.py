"""Clauses of a sentence, and their subjects: a lot or building, or something else, such as a sign or a fence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from loaders.zoning.extraction.dimension_names import find_dimensions
from loaders.zoning.extraction.measures import find_measures

Role = Literal["main", "item", "condition", "exception", "relative"]
"""An item is one of a list, with a proviso: ``Churches, provided that each is ten feet from a lot line``."""

_VERB: Final = re.compile(
    r"(?<!-)(?<!\bto )\b(?!May \d)(?:(?:shall|must|may|can|will|cannot|should)"
    r"(?P<not> in no (?:case|event)|(?: also| only)? (?:not|never)"
    r"|,? in any (?:case|event),? not)?(?: also| only| either| each)?(?: [a-z]+)?"
    r"|is|are|was|were|has|have|had|do|does|needs?|exceeds?|contains?|requires?|occup(?:y|ies))\b(?!-)",
    re.IGNORECASE,
)
_OPENS: Final = re.compile(
    r"\b(?:(?P<condition>if|where|when|whenever|unless|until|while|although|because|so that|in (?:the )?case|as"
    r"|on condition)|(?P<exception>except(?:ing)?(?: that)?|provided(?:,? however)?,?(?: that)?|but)"
    r"|(?P<relative>which|who|whose|that))\b",
    re.IGNORECASE,
)
"""Words that begin a clause that is not the main one."""
BREAK: Final = re.compile(
    r"; ?(?:and |or |but )?|, (?:and|or|but|nor) |, |\b(?<!side )(?<!front )(?<!rear )(?:and|or|nor|but) ",
    re.IGNORECASE,
)
"""Words between parts of a sentence. ``side and rear`` is one part."""
LABEL: Final = re.compile(r"^(?:• ?)?[(\[]?\w{1,3}[.)\]] ")
_AND: Final = re.compile(r"^(?:and|or|but|nor)\b[ ,]*", re.IGNORECASE)
_NOR: Final = re.compile(r",? ?nor\b", re.IGNORECASE)
_NO: Final = re.compile(r"(?:no|not|neither|none|nothing)\b", re.IGNORECASE)
_LEADING: Final = (
    re.compile(
        r"(?:In|Within|For) (?:(?:the|an?|any|all|each|every|both) )?(?:[\w./&-]+,? ){0,12}?"
        r"(?:districts?|zones?|overlay)\b,?(?= )",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:In|On|At|For|Along|Within|Of|With|Notwithstanding|Beyond|Behind|From|To|By)\b (?:[^,]|,(?=\d))*?,(?!\d)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:In|On|At|For|Within) (?:an?|the|any|all|each|every) [^,]*?"
        r" (?=(?:the|an?|any|all|each|every|no|density) [^,]*$)",
        re.IGNORECASE,
    ),
)
"""Phrases before a subject: a place, one with a comma, one before the next article."""
_ARTICLE: Final = re.compile(
    r"(?:(?:and|or|but|nor|then|otherwise|elsewhere|also|that|for|in|on)\b,? ?|(?:no|an?|the|any|all|each|every|such"
    r"|said|both|neither|not|one|two|new|its|other|their|single(?= (?:retail|store|tenant))|proposed|required|permitted"
    r"|individual)\b ?)+",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r",? ?\b(?:in|within|of|on|for) (?:(?:the|an?|any|all|each|every|both|this|such|said) )?(?:[\w./&-]+,? ){0,9}?"
    r"(?:districts?|zones?|overlay)\b",
    re.IGNORECASE,
)
_GENERIC: Final = re.compile(
    r"(?:there|(?:(?:principal|main|primary|new|other|front|rear|side|street|minimum|least|residential|individual) )*"
    r"(?:(?:lots?|parcels?|buildings?|structures?|sites?|tracts?|premises|propert(?:y|ies)|land|yards?|districts?"
    r"|zones?|areas?|uses?|development|setbacks?|parts?|portions?|maximum|minimum)(?: thereof)?"
    r"(?: (?:or|and) (?=\w))?)+(?: of (?:the|a|any|such|each) (?:lot|building|structure|site))?"
    r"(?: (?:up)?on (?:the|a|any|each) (?:same )?lots?)?(?: together)?|)",
    re.IGNORECASE,
)
_PRONOUN: Final = re.compile(r"(?:it|they|these|those|each|one|ones|(?:its|their) .*)", re.IGNORECASE)
_MEASURED: Final = re.compile(
    r"\b(?:height|width|depth|length|area|size|frontage|density|ratio|coverage|edge|base|panel|footprint|top"
    r"|right-of-way|number)s? (?:of|for) ",
    re.IGNORECASE,
)
_LOT_FOR: Final = re.compile(r"\b(?:lots?|parcels?) for (?:an? |each |the )?(?P<use>[^,]+)", re.IGNORECASE)
LOT: Final = re.compile(r"(?:[\w-]+ )?(?:lots?|parcels?)\b(?! lines?)", re.IGNORECASE)
BUILDING: Final = re.compile(
    r"\b(?:buildings?|structures?|dwellings?|houses?|homes?|residences?|townhouses?|duplex(?:es)?|apartments?"
    r"|garages?|sheds?|barns?|cottages?|cabins?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause [start, end) of a text."""

    start: int
    end: int
    verb: int
    """Start of its verb. Equal to `after` if it has none."""
    after: int
    """End of its verb."""
    role: Role = "main"
    subject: str = ""
    verb_words: str = ""
    negated: bool = False
    """Whether subject or verb are negated: ``No building shall``, ``shall not``."""
    conditional: bool = False
    """Whether it applies only in a case that words before its subject name."""
    other: str | None = None
    """What it is for, if words before its subject name it: ``For any other building``."""

    @property
    def has_verb(self) -> bool:
        """Whether it is a statement, and not a label."""
        return self.verb != self.after

    @property
    def permits(self) -> bool:
        """Whether it permits something, so that only a negation makes it a limit: ``may be 50 feet high``."""
        return self.verb_words.startswith(("may", "can")) and not self.negated

    @property
    def obliges(self) -> bool:
        """Whether it prescribes something, so that a measure without words of a bound is a limit."""
        return self.verb_words.startswith(("shall", "must", "should", "need", "require"))


def parse_clauses(text: str, start: int, end: int) -> Sequence[Clause]:
    """Split the sentence [start, end) of a text into clauses, one for each of its verbs; one if there is none."""
    verbs = list(_VERB.finditer(text, start, end))
    if not verbs:
        return [Clause(start, end, start, start)]
    begins = [start] + [_begin(text, one.end(), two.start()) for one, two in pairwise(verbs)]
    made: list[Clause] = []
    for verb, begin, stop in zip(verbs, begins, [*begins[1:], end], strict=True):
        made += _parse_clause(text, begin, stop, verb, made[-1] if made else None)
    return made


def _parse_clause(
    text: str, begin: int, stop: int, verb: re.Match[str], before: Clause | None
) -> Sequence[Clause]:  # fmt: skip
    """Parse a clause by its verb. A label before it is a clause of its own: ``Height: 35 feet, except that``."""
    words = _AND.sub("", text[begin : verb.start()].rpartition(":")[2].strip(" ,;•"))
    opens = list(_OPENS.finditer(words))
    if opens and opens[0].start() and opens[0]["relative"] and words[opens[-1].end() :].strip():
        opens = []  # "A garage that faces the street" is a subject
    role: Role = "main"
    label: list[Clause] = []
    other: str | None = None
    if opens:
        role = "condition" if opens[0]["condition"] else "exception" if opens[0]["exception"] else "relative"
        first = words[: opens[0].start()].strip(" ,")
        if before is None and first:
            if any(find_measures(first)):
                cut = text.find(opens[0][0], begin)
                label, begin = [Clause(begin, cut, begin, begin)], cut
            elif len(opens) == 1 and role != "relative" and not any(find_dimensions(first)):
                other, role = LABEL.sub("", first).strip(" ,") or None, "item"
        words = words[opens[0 if role == "exception" else -1].end() :].strip(" ,")
    elif before is not None and before.role in ("condition", "relative") and not words:
        role = before.role
    within = ""
    while match := next((match for each in _LEADING if (match := each.match(words))), None):
        if not (rest := words[match.end() :].strip(" ,")):
            break
        within, words = within + ("" if _is_place(match[0]) else match[0]), rest
    if within[:4].casefold() == "for " or re.match(r"(?:on|for|in) (?:an?|any|each|all) corner lots?", within, re.I):
        named, within = re.sub(r"^\w+ (?:(?:an?|any|all|each|every|the) )?", "", within).strip(" ,"), ""
        other = None if re.fullmatch(r"(?:lots?|buildings?|uses?)", _PLACE.sub("", named)) else named
    if not words and before is not None and role == before.role:
        words, other = before.subject, before.other
    negated = bool(_NO.match(words) or verb["not"] or verb[0].casefold() == "cannot" or _NOR.match(text, begin))
    conditional = (before is not None and before.conditional) or (role == "condition" and before is None)
    conditional = conditional or bool(within and not within.casefold().startswith("notwithstanding"))
    told = verb[0].casefold()
    return [*label, Clause(begin, stop, verb.start(), verb.end(), role, words, told, negated, conditional, other)]


def _begin(text: str, at: int, verb: int) -> int:
    """Find where the clause of a verb begins, after the verb that ends at `at`."""
    if opens := list(_OPENS.finditer(text, at, verb)):
        return opens[-1 if opens[-1]["relative"] else 0].start()
    breaks = list(BREAK.finditer(text, at, verb))
    strong = [match for match in breaks if match[0][0] in ",;"]
    return (strong or breaks)[-1].start() if breaks else verb


def _is_place(words: str) -> bool:
    return bool(_PLACE.search(words)) and not re.search(r"\b(?:lots?|abut\w*|adjoin\w*|boundar\w+)\b", words)


def name_subject(words: str) -> str | None:
    """Get the use or structure that a noun phrase names. None for a lot or building in general, and for a pronoun."""
    name = strip_phrase(words)
    if measured := _MEASURED.search(name):
        name = name[measured.end() :]
        name = name[article.end() :] if (article := _ARTICLE.match(name)) else name
    if lot := _LOT_FOR.search(name):
        name = lot["use"]
    return None if _GENERIC.fullmatch(name) or is_pronoun(name) or _is_dimension(name) else name


def _is_dimension(name: str) -> bool:
    """Whether a name is that of a dimension, and not of what has it: ``minimum side yard``."""
    rest = name
    for each in reversed([one for one in find_dimensions(name) if one.type != "parking"]):
        rest = rest[: each.start] + rest[each.end :]
    rest = re.sub(r"\b(?:minimum|maximum|total|least)\b", "", rest, flags=re.IGNORECASE).strip()
    return rest != name and re.match(r"$|(?:of|for|in|along|per|on|at)\b", rest) is not None


def strip_phrase(words: str) -> str:
    """Strip articles and the names of districts from a noun phrase."""
    name = _PLACE.sub("", LABEL.sub("", words)).strip(" ,;:.")
    while (match := _ARTICLE.match(name)) and match[0]:
        name = name[match.end() :]
    return name


def is_pronoun(words: str) -> bool:
    """Check whether a subject only refers to the one before it."""
    return _PRONOUN.fullmatch(words.strip()) is not None


def drop_subject(clause: Clause) -> Clause:
    """Return a clause without its subject, for a measure within the subject: ``A yard of ten feet shall be kept``."""
    return replace(clause, subject="")
