"""Clauses of a sentence: their subjects, verbs, negations and roles.

``Inns are permitted in the C-2 District, if they front on a highway, and kennels are prohibited.`` has three clauses.
The subject of the first is ``Inns``; the second is a condition of the first; the third is a statement of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from loaders.zoning.extraction.dimension_names import find_dimensions
from loaders.zoning.extraction.measures import find_measures

Role = Literal["main", "item", "condition", "exception", "relative"]
"""An item is one of a list, with a proviso: ``Churches, provided that each is ten feet from a lot line``."""

_VERB: Final = re.compile(
    r"(?<!-)(?<!\bto )\b(?!May \d)(?:(?:shall|must|may|can|will|cannot|should)(?P<aside>, [^,;:]{3,80},(?= [a-z])"
    r"| by [^,;:]{3,40}? (?:permit|exception)(?: under [^,;:]{3,30}?)?(?= (?:allow|permit|authorize|approve)\b))?"
    r"(?P<not> in no (?:case|event)|(?: also| only)? (?:not|never)"
    r"|,? in any (?:case|event),? not)?(?: also| only| either| each)?(?: [a-z]+)?"
    r"|is|are|was|were|has|have|had|do|does|needs?|exceeds?|contains?|requires?|occup(?:y|ies))\b(?!-)",
    re.IGNORECASE,
)
_DONE: Final = re.compile(
    r"(?: (?:also|only|either|each|hereby|further|be|been|[a-z]+ly)\b)*+(?P<not> not)?(?: (?:also|be|[a-z]+ly)\b)*+ "
    r"(?P<done>[a-z]+ed|kept|built|forbidden|set|made|dug|held|laid|put|hung|drawn|grown|sold|done|taken)\b",
    re.IGNORECASE,
)
"""A participle after an auxiliary verb: ``shall be [permitted]``."""
_OPENS: Final = re.compile(
    r"\b(?:(?P<condition>(?:so|as) long as|if|where|when|whenever|unless|until|while|although|because|so that"
    r"|in (?:the )?case|(?<!ed )as(?! an? | accessory)"
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
_FINITE: Final = re.compile(
    r"\b(?:is|are|was|were|be|has|have|shall|must|may|will|can|does|do|means?|includes?|applies|apply)\b", re.IGNORECASE
)
_THEN: Final = re.compile(r"^.*, (?=(?:an?|the|no|each|all|any|every|such|its|their)\b)", re.IGNORECASE)
"""A case before a subject, whose verb is none of these."""
_WITHIN: Final = re.compile(r"\b(?:of|in|on|for|to|from|by|with) $", re.IGNORECASE)
_NO: Final = re.compile(r"(?:no|not|neither|none|nothing)\b", re.IGNORECASE)
_ZONES: Final = (
    r"(?:districts?|zones?|overlay)\b"
    r"(?:,? (?:and|or) (?:(?:in )?(?:the|an?|any) )?(?:[\w./&-]+ ){1,3}?(?:districts?|zones?)\b)*"
)
_LEADING: Final = (
    re.compile(
        r"(?:In|Within|For) (?:(?:the|an?|any|all|each|every|both) )?(?:[\w./&-]+,? ){0,12}?"
        rf"{_ZONES},?(?= )",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:In|On|At|For|Along|Within|Of|With|Notwithstanding|Beyond|Behind|From|To|By)\b (?:[^,]|,(?=\d))*?,(?!\d)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:In|On|At|For|Within) (?:an?|the|any|all|each|every) [^,]*?"
        r" (?=(?:the|an?|any|all|each|every|no|density) [^,]*$|(?:there|it|they)$)",
        re.IGNORECASE,
    ),
)
"""Phrases before a subject: a place, one with a comma, one before the next article."""
PLACE: Final = re.compile(
    r",? ?\b(?:in|within|of|on|for) (?:(?:the|an?|any|all|each|every|both|this|such|said) )?(?:[\w./&-]+,? ){0,9}?"
    rf"{_ZONES}",
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
    done: str = ""
    """The main verb, or the participle of a passive one: ``permitted`` in ``shall not be permitted``."""
    rest: int = 0
    """End of the main verb."""
    aside: str = ""
    """Words within the verb: ``after review`` in ``may, after review, be permitted``."""

    @property
    def modal(self) -> str:
        """The first word of the verb."""
        return self.verb_words.split(",")[0].partition(" ")[0]

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


def has_verb(words: str) -> bool:
    """Check whether some words are a statement. A heading is not."""
    return _FINITE.search(words) is not None


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


def _parse_clause(text: str, begin: int, stop: int, verb: re.Match[str], before: Clause | None) -> Sequence[Clause]:
    """Parse a clause by its verb. A label before it is a clause of its own: ``Height: 35 feet, except that``."""
    said = _AND.sub("", text[begin : verb.start()].rpartition(":")[2].lstrip(" ,;•"))
    words = said.strip(" ,;•")
    opens = list(_OPENS.finditer(words))
    inside = False
    if opens and opens[0].start():
        first, opened = words[: opens[0].start()], opens[0]["relative"]
        if opened and opened.casefold() != "whose" and words[opens[-1].end() :].strip() and not _WITHIN.search(first):
            opens = []  # "A garage that faces the street" is a subject
        elif not opened and first.endswith(", ") and said.rstrip().endswith(","):
            words, opens, inside = first.strip(" ,"), [], True  # "Schools, but not colleges, may be"
    role: Role = "main"
    label: list[Clause] = []
    other: str | None = None
    if opens and opens[0]["condition"] and not opens[0].start() and (then := _THEN.search(words)):
        opens, inside, words = [], True, words[then.end() :]  # "Where a lot abuts an alley, the yard shall be"
    if opens:
        role = "condition" if opens[0]["condition"] else "exception" if opens[0]["exception"] else "relative"
        first = words[: opens[0].start()].strip(" ,")
        if before is None and first:
            if any(find_measures(first)):
                cut = text.find(opens[0][0], begin)
                label, begin = [Clause(begin, cut, begin, begin)], cut
            elif (
                len(opens) == 1
                and (role == "exception" or words[: opens[0].start()].endswith(", "))
                and not any(find_dimensions(first))
            ):
                other, role = LABEL.sub("", first).strip(" ,") or None, "item"
        words = words[opens[0 if role == "exception" else -1].end() :].strip(" ,")
    elif before is not None and before.role == "relative" and not text[begin : verb.start()].strip(" ,"):
        words = text[before.start : verb.start()].strip(" ,")  # "Houses that are empty shall be"
    elif before is not None and before.role in ("condition", "relative") and not words:
        role = before.role
    within = ""
    while match := next((match for each in _LEADING if (match := each.match(words))), None):
        if not (rest := words[match.end() :].strip(" ,")):
            break
        within, words = within + ("" if _is_place(match[0]) else match[0]), rest
    if within[:4].casefold() == "for " or re.match(r"(?:on|for|in) (?:an?|any|each|all) corner lots?", within, re.I):
        named, within = re.sub(r"^\w+ (?:(?:an?|any|all|each|every|the) )?", "", within).strip(" ,"), ""
        other = None if re.fullmatch(r"(?:lots?|buildings?|uses?)", PLACE.sub("", named)) else named
    if not words and before is not None and role == before.role:
        words, other = before.subject, before.other
    done = _DONE.match(text, verb.end())
    denied = (
        verb["not"]
        or text.startswith(" neither ", verb.end())
        or (done is not None and done["not"])
        or verb[0].casefold() == "cannot"
    )
    negated = bool(_NO.match(words) or denied or _NOR.match(text, begin))
    conditional = (before is not None and before.conditional) or (role == "condition" and before is None)
    conditional = conditional or inside or bool(within and not within.casefold().startswith("notwithstanding"))
    told = verb[0].casefold()
    main, ended = (done["done"].casefold(), done.end()) if done else (told.rpartition(" ")[2], verb.end())
    aside = (verb["aside"] or "").strip(" ,")
    return [
        *label,
        Clause(
            begin, stop, verb.start(), verb.end(), role, words, told, negated, conditional, other, main, ended, aside
        ),
    ]


def _begin(text: str, at: int, verb: int) -> int:
    """Find where the clause of a verb begins, after the verb that ends at `at`."""
    breaks = list(BREAK.finditer(text, at, verb))
    if breaks and not text[breaks[-1].end() : verb].strip() and breaks[-1][0][0] == " ":
        return breaks[-1].start()
    strong = [match for match in breaks if match[0][0] in ",;"]
    joins = [match for match in strong if match[0][0] == ";" or match[0] != ", "]
    if opens := list(_OPENS.finditer(text, at, verb)):
        begin = opens[-1 if opens[-1]["relative"] else 0]
        # "are permitted if they front on a road, and kennels are prohibited"
        ended = [match for match in joins if match.start() > begin.start() and _ends(match, begin)]
        return (ended[0] if ended else begin).start()
    if len(joins) > 1:
        taken = [match.span() for match in PLACE.finditer(text, at, verb)]
        taken += [(each.start, each.end) for each in find_measures(text, at, verb)]
        joins = [match for match in joins if all(match.start() >= end for _, end in taken)]
    return ((joins[:1] or strong[-1:]) or breaks[-1:])[0].start() if breaks else verb


def _ends(join: re.Match[str], begin: re.Match[str]) -> bool:
    """Whether a conjunction ends the clause that a word begins. What follows an exception may be part of it."""
    return join[0][0] == ";" or begin["condition"] is not None


def split_statements(text: str, start: int, end: int) -> Iterator[Sequence[Clause]]:
    """Split the sentence [start, end) of a text into statements: a clause with those that depend on it."""
    made: list[Clause] = []
    for clause in parse_clauses(text, start, end):
        own = text[clause.start] == ";" or clause.subject.partition(" ")[0].casefold() not in ("", "it", "they", "so")
        if clause.role == "main" and own and any(one.role == "main" and one.has_verb for one in made):
            yield made
            made = [replace(clause, start=match.end())] if (match := BREAK.match(text, clause.start)) else [clause]
        else:
            made.append(clause)
    if made:
        yield made


def _is_place(words: str) -> bool:
    return bool(PLACE.search(words)) and not re.search(r"\b(?:lots?|abut\w*|adjoin\w*|boundar\w+)\b", words)


def drop_subject(clause: Clause) -> Clause:
    """Return a clause without its subject, for a measure within the subject: ``A yard of ten feet shall be kept``."""
    return replace(clause, subject="")
