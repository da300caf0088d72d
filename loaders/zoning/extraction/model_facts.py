"""Facts that a chat model proposes, checked against the text, and combined with those that the rules find. Pure.

A model never decides alone. A proposal counts only if the text around its quotes, read by the same rules for levels,
measures and dimensions, states the same; else it has no effect. A proposal that agrees with a rule raises the
confidence of the rule's fact, one that contradicts it lowers that and is dropped, and one about which the rules are
silent is a fact of low confidence. So the inventions of a model, or of a text that addresses it, have no effect.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kg.text import find_sentence_ends
from loaders.zoning.extraction.definitions import Definition, find_definitions
from loaders.zoning.extraction.dimension_names import (
    Bound,
    allows_percent,
    allows_unit,
    bound_of,
    default_bound,
    find_dimensions,
    type_in_unit,
)
from loaders.zoning.extraction.district_scope import find_scope, names_unknown
from loaders.zoning.extraction.districts import District, codes_of_section
from loaders.zoning.extraction.leads import has_verb
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.model_answers import (
    Proposals,
    ProposedDefinition,
    ProposedStandard,
    ProposedUse,
    Span,
    split_segments,
)
from loaders.zoning.extraction.outline import find_label_end
from loaders.zoning.extraction.permission_levels import BOARD, UsePermission, level_of
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.regulated_subjects import name_subject
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.sentence_standards import Standard, find_subject
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.extraction.use_lists import INHERITED

F = TypeVar("F", UsePermission, Standard, Definition)

ALONE: Final = 0.3
"""Confidence of a fact that only a model states: a proposal for review."""
_AGREED: Final = 0.5
"""Share of the remaining doubt that the agreement of a model removes."""
_DISPUTED: Final = 0.5
"""Share of the confidence that remains where a model contradicts a rule."""

_EXCEPTS: Final = re.compile(
    r"\b(?:unless|except\w*|excluding|exclusive|exempt\w*|other than|but|notwithstanding|however)\b", re.IGNORECASE
)
_NEGATES: Final = re.compile(r"\b(?:no|not|nor|none|neither|never|nothing|without|prohibit\w*|cannot)\b", re.IGNORECASE)
_GIVES_LEVEL: Final = re.compile(r"\b(?:permit\w*|allow\w*|right|prohibit\w*|condition\w*|special)\b", re.IGNORECASE)
_CONDITIONED: Final = re.compile(
    r"\b(?:provided|if|only|when|where|while|limit\w*|subject|with|within|under|up to|see|accordance|pursuant"
    r"|conditions?|as (?:regulated|provided|described|accessory)|not (?:more|less|over|exceeding)|(?:more|less) than"
    r"|(?:min|max)imum|accessory|approv\w+|on (?:an? )?(?:lots?|parcels?|tracts?|farms?))\b|\(",
    re.IGNORECASE,
)
"""Words that limit a use, which then is not simply permitted or prohibited."""
_CONDITIONAL: Final = re.compile(
    rf"\b(?:if|when|where|provided|only|reduc\w+|increas\w+|minus|plus|waive\w*|varianc\w+|in lieu|additional|deduct\w*"
    rf"|extend|project|encroach|may be (?:less|more)|nothing|whichever|average|existing|nonconforming|respectively"
    rf"|{BOARD})\b",
    re.IGNORECASE,
)
"""Words of sentences whose limits do not always apply."""
_DEFINES: Final = re.compile(r"[\s\"”’'.,:—–-]*+(?:(?:shall |will )?means?|(?:is|are) defined as)?[\s\"“‘':,—–-]*+")
_VERB: Final = re.compile(r"\b(?:means?|defined)\b")
_GLOSSARY: Final = re.compile(r"\b(?:definitions?|defined|glossary|terms)\b", re.IGNORECASE)
_MAY_DEFINE: Final = re.compile(r"[\"“][^\"”\n]{1,100}[\"”]|\b(?:means|shall mean|is defined as)\b")
_NO_NAME: Final = re.compile(r"[<>{}|=\\]|https?:")
_HEDGED: Final = re.compile(
    r"\b(?:were|was|formerly|hardly|rarely|seldom|false|whether|until|upon|repealed|existing)\b|\?",
    re.IGNORECASE,
)
"""Words of sentences that report or limit a level, and do not give it."""
_IS_OBJECT: Final = re.compile(r"\b(?:of|from|with|for|to|at|by|near|in|on|that) (?:the |an? |any )?\Z", re.IGNORECASE)
"""Words before a noun that belongs to another: ``noise from taverns``."""
_GENERIC: Final = re.compile(
    r"\b(?:uses?|activit(?:y|ies)|following|all|any|others?|this|that|these|those|it|they|sections?|districts?|code)\b",
    re.IGNORECASE,
)
"""Words that the name of one use does not contain."""
_LONGEST_NAME: Final = 120
_LONGEST_LINE: Final = 10_000
"""Maximum code points of a line before and after a quote."""
_FARTHEST: Final = 4_000
"""Maximum code points between words that give a level and the use that they apply to."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The definitions, permissions and standards of a section."""

    permissions: Sequence[UsePermission] = ()
    standards: Sequence[Standard] = ()
    definitions: Sequence[Definition] = ()

    def __len__(self) -> int:
        return len(self.permissions) + len(self.standards) + len(self.definitions)

    def spans(self) -> Iterator[tuple[int, int, float]]:
        """Yield the offsets that each fact rests on, and its confidence."""
        for permission in self.permissions:
            yield permission.start, permission.end, permission.confidence
        for standard in self.standards:
            yield standard.start, standard.end, standard.confidence
        for definition in self.definitions:
            yield definition.term_start, max(definition.term_end, definition.end), definition.confidence


@dataclass(frozen=True, slots=True)
class Combined:
    """The facts of the rules and of a model together, with the number of those that the model changed."""

    facts: Facts
    confirmed: int = 0
    """Facts of the model that the text confirms."""
    agreed: int = 0
    """Facts of the rules that the model states too."""
    disputed: int = 0
    """Facts of the rules that the model contradicts."""
    added: int = 0
    """Facts that only the model states."""


def find_facts(
    section: Section,
    known: Mapping[str, District],
    above: Sequence[Section] = (),
    legends: Sequence[Section] = (),
) -> Facts:
    """Find the facts of a section by the rules.

    `above` are its ancestors, innermost first. `legends` are other sections that explain the letters of its matrices.
    """
    return Facts(
        find_permissions(section, known, above, legends),
        find_standards(section, known, above),
        find_definitions(section),
    )


def find_unsure(section: Section, facts: Facts, least: float) -> Sequence[Span]:
    """Find the segments of a section that the rules are unsure of, or silent on though they may state a fact.

    These are segments with a measure, words that give a level, or the form of a definition. Facts with a confidence
    below `least` are unsure.
    """
    text = section.text
    sure = [(start, end) for start, end, confidence in facts.spans() if confidence >= least]
    unsure = [(start, end) for start, end, confidence in facts.spans() if confidence < least]
    segments = split_segments(text)
    known, doubtful = _find_segments(segments, sure), _find_segments(segments, unsure)
    found = []
    for place, (start, end) in enumerate(segments):
        words = text[start:end]
        # A line that announces sure facts is understood.
        is_known = place in known or (words.endswith(":") and place + 1 in known)
        if place in doubtful or (not is_known and _may_state(words)):
            found.append((start, end))
    return found


def _may_state(words: str) -> bool:
    """Whether some words may state a fact."""
    return (
        level_of(words) is not None or bool(_MAY_DEFINE.search(words)) or next(find_measures(words), None) is not None
    )


def _find_segments(segments: Sequence[Span], spans: Sequence[Span]) -> Set[int]:
    """Find the places of the segments that contain any part of these spans."""
    starts = [start for start, _ in segments]
    found: set[int] = set()
    for start, end in spans:
        first = max(bisect_right(starts, start) - 1, 0)
        found.update(place for place in range(first, bisect_left(starts, end)) if segments[place][1] > start)
    return found


def check(
    section: Section, known: Mapping[str, District], above: Sequence[Section], proposals: Proposals, method: str
) -> Facts:
    """Return the proposals that the text of the section confirms, as facts with the given method."""
    around = codes_of_section(section, known, above)

    def is_prose(*spans: Span) -> bool:
        """Whether the quotes are in lines of the text, and not in a table, whose cells no sentence confirms."""
        return all(
            end <= len(section.text)
            and _is_in_short_line(section.text, start, end)
            and not any(start < table.end and table.start < end for table in section.tables)
            for start, end in spans
        )

    return Facts(
        [
            _to_permission(section, each, method)
            for each in proposals.uses
            if is_prose(each.use, each.words) and _confirms_use(section, known, around, each)
        ],
        [
            found
            for each in proposals.standards
            if is_prose(each.dimension, each.value)
            and (found := _confirm_standard(section, known, around, each, method)) is not None
        ],
        [
            _to_definition(section, each, method)
            for each in proposals.definitions
            if is_prose(each.term, each.meaning) and _confirms_definition(section, each)
        ],
    )


def combine(rules: Facts, model: Facts, method: str) -> Combined:
    """Combine the facts of the rules with the confirmed ones of a model."""
    tally = _Tally(method)
    permissions = [
        tally.judge(
            each,
            [
                other.level == each.level
                for other in model.permissions
                if other.district == each.district and _is_same_use(each, other)
            ],
        )
        for each in rules.permissions
    ]
    standards = [
        tally.judge(
            each,
            [
                (other.type, other.bound, other.value) == (each.type, each.bound, each.value)
                for other in model.standards
                if _overlap(each, other) and set(other.districts) <= set(each.districts)
            ],
        )
        for each in rules.standards
    ]
    definitions = [
        tally.judge(
            each,
            [
                other.start < each.end and each.start < other.end
                for other in model.definitions
                if other.term.casefold() == each.term.casefold()
            ],
        )
        for each in rules.definitions
    ]
    new = Facts(
        [
            each
            for each in model.permissions
            if not any(each.district == other.district and _is_same_use(other, each) for other in rules.permissions)
        ],
        [
            each
            for each in model.standards
            if each.districts  # of one district, as its shape demands
            and not any(_overlap(rule, each) and set(each.districts) <= set(rule.districts) for rule in rules.standards)
        ],
        [
            each
            for each in model.definitions
            if not any(other.term.casefold() == each.term.casefold() for other in rules.definitions)
        ],
    )
    facts = Facts([*permissions, *new.permissions], [*standards, *new.standards], [*definitions, *new.definitions])
    return Combined(facts, len(model), tally.agreed, tally.disputed, len(new))


@dataclass(slots=True)
class _Tally:
    """Changes the confidence of the facts of the rules by the statements of a model, and counts them."""

    method: str
    agreed: int = 0
    disputed: int = 0

    def judge(self, fact: F, agrees: Sequence[bool]) -> F:
        """Return a fact with its new confidence and method. `agrees` has an entry for each statement about it."""
        if not agrees:
            return fact
        if all(agrees):
            self.agreed += 1
            confidence = 1 - (1 - fact.confidence) * (1 - _AGREED)
            return replace(fact, confidence=confidence, method=f"{fact.method}, {self.method} agrees")
        self.disputed += 1
        return replace(fact, confidence=fact.confidence * _DISPUTED, method=f"{fact.method}, {self.method} disagrees")


def _is_same_use(rule: UsePermission, other: UsePermission) -> bool:
    """Whether two permissions are about the same words of a section."""
    one, two = rule.use.casefold(), other.use.casefold()
    return _overlap(rule, other) and (one in two or two in one)


def _overlap(one: UsePermission | Standard, other: UsePermission | Standard) -> bool:
    return one.start < other.end and other.start < one.end


def _find_sentence(text: str, span: Span) -> Span:
    """Find the sentence of a line that a span begins in."""
    line = text.rfind("\n", 0, span[0]) + 1
    last = text.find("\n", span[0])
    last = len(text) if last < 0 else last
    start = line
    for end in find_sentence_ends(text[line:last]):
        stop = min(line + end, last)
        if stop > span[0]:
            return start, stop
        if " " in text[start:stop].strip():  # a label alone is not a sentence
            start = stop
    return start, last


def _confirms_use(section: Section, known: Mapping[str, District], around: Sequence[str], each: ProposedUse) -> bool:
    """Whether the words for a level apply to a use, and mean that level.

    The level is given by the sentence of the use, or by an earlier one with no other level since then.
    """
    text = section.text
    name = text[slice(*each.use)]
    said, here = _find_sentence(text, each.words), _find_sentence(text, each.use)
    told = text[slice(*said)]
    if (
        not _is_name(name)
        or _GENERIC.search(name)
        or level_of(name) is not None
        or each.words[1] > said[1]
        or each.use[1] > here[1]
        or level_of(text[slice(*each.words)]) is None
        or level_of(told) != each.level
        or not _GIVES_LEVEL.search(text[slice(*each.words)])
        or level_of(section.title) not in (None, each.level)
    ):
        return False
    if said != here:
        if not each.words[1] <= each.use[0] <= each.words[1] + _FARTHEST:
            return False
        at = said[1]
        while at < here[1]:
            sentence = _find_sentence(text, (at, at + 1))
            if level_of(text[slice(*sentence)]) not in (None, each.level):
                return False
            at = max(sentence[1], at) + 1
    words = f"{told} {text[slice(*here)]}"
    if INHERITED.search(words):  # the district that it names is another one
        return False
    if _EXCEPTS.search(words) or (each.level != "notPermitted" and _NEGATES.search(words)):
        return False
    if _HEDGED.search(words) or _IS_OBJECT.search(text, max(here[0], each.use[0] - _LONGEST_NAME), each.use[0]):
        return False
    own = text[find_label_end(text, *here) : here[1]]
    if each.level in ("byRight", "notPermitted") and _CONDITIONED.search(own):
        return False
    return _is_in(each.district, text, (here, said), known, around)


def _to_permission(section: Section, each: ProposedUse, method: str) -> UsePermission:
    text = section.text
    start, end = min(each.use[0], each.words[0]), max(each.use[1], each.words[1])
    if _find_sentence(text, each.use) != _find_sentence(text, each.words):
        start, end = each.use
    return UsePermission(
        each.district, text[slice(*each.use)], each.level, text[slice(*each.words)], (), None, start, end, ALONE, method
    )


def _confirm_standard(
    section: Section, known: Mapping[str, District], around: Sequence[str], each: ProposedStandard, method: str
) -> Standard | None:
    """Build the standard that a value is by the dimension, bound and districts that the text gives it, if the same."""
    text = section.text
    sentence = _find_sentence(text, each.value)
    words = text[slice(*sentence)]
    measures = list(find_measures(text, *sentence))
    measure = measures[0] if len(measures) == 1 and (measures[0].start, measures[0].end) == each.value else None
    base = "building-height" if each.type == "building-storeys" else each.type
    if (
        measure is None
        or measure.value is None
        or measure.high is not None
        or _EXCEPTS.search(words)
        or _CONDITIONAL.search(words)
        or find_subject(text, *sentence) is not None  # another structure may have other dimensions
        or (not has_verb(words) and not _opens(text, sentence, min(each.dimension[0], each.value[0])))
        or not _names(text, each.dimension, each.value, sentence, base)
        or not allows_unit(base, measure.unit)
        or (measure.unit == "PERCENT" and not allows_percent(base))
        or type_in_unit(base, measure.unit) != each.type
        or not _is_bound(text, sentence, each.value, base, each.bound)
    ):
        return None
    if each.district is None:
        if around or find_scope(text, *sentence, known) is not None:
            return None
    elif not _is_in(each.district, text, (sentence,), known, around):
        return None
    return Standard(
        () if each.district is None else (each.district,),
        each.type,
        text[slice(*each.dimension)],
        each.bound,
        measure.raw,
        measure.value,
        measure.unit,
        None,
        (),
        measure.start,
        measure.end,
        ALONE,
        method,
    )


def _names(text: str, dimension: Span, value: Span, sentence: Span, type_: str) -> bool:
    """Whether the words of a dimension name the one of a value: no other dimension or value is between them."""
    if {found.type for found in find_dimensions(text, *dimension)} != {type_}:
        return False
    first, last = min(dimension[0], value[0]), max(dimension[1], value[1])
    if dimension[0] > value[0]:
        if dimension[1] > sentence[1]:
            return False
        first = sentence[0]
    elif value[0] - dimension[1] > _FARTHEST:
        return False
    if len(list(find_measures(text, dimension[1], value[1]))) > 1 and dimension[0] < value[0]:
        return False
    return {found.type for found in find_dimensions(text, first, last)} == {type_}


def _opens(text: str, sentence: Span, start: int) -> bool:
    """Whether a sentence without a verb begins with a limit, and not with the name of something else."""
    return name_subject(text[find_label_end(text, *sentence) : start]) in (None, "")


def _is_bound(text: str, sentence: Span, value: Span, type_: str, bound: Bound) -> bool:
    """Whether the words before and after a value give it this bound and no other."""
    said = {bound_of(text[sentence[0] : value[0]]), bound_of(text[value[1] : sentence[1]])} - {None}
    return said == {bound} if said else bound == default_bound(type_)


def _confirms_definition(section: Section, each: ProposedDefinition) -> bool:
    """Whether a meaning follows its term by a verb, or in a list of definitions, and goes to the end of a sentence."""
    text = section.text
    term, meaning = text[slice(*each.term)], text[slice(*each.meaning)]
    between = text[each.term[1] : each.meaning[0]]
    if each.term[1] > each.meaning[0] or not _is_name(term) or len(meaning.split()) < 2:
        return False
    if not _DEFINES.fullmatch(between) or between.count("\n") > 1:
        return False
    if not _VERB.search(between) and not (_GLOSSARY.search(section.title) and between.strip(" \"”’'")):
        return False
    after = text[each.meaning[1] : each.meaning[1] + 2]
    return not after.strip(" ") or after[0] == "\n" or (meaning[-1] == "." and not after.strip(" ")[:1].islower())


def _to_definition(section: Section, each: ProposedDefinition, method: str) -> Definition:
    text = section.text
    return Definition(text[slice(*each.term)], *each.term, text[slice(*each.meaning)], *each.meaning, ALONE, method)


def _is_in_short_line(text: str, start: int, end: int) -> bool:
    """Whether the line around a span is not so long that to read it for each of many proposals takes seconds."""
    first, last = max(0, start - _LONGEST_LINE), end + _LONGEST_LINE
    return (first == 0 or text.find("\n", first, start) >= 0) and (last >= len(text) or text.find("\n", end, last) >= 0)


def _is_name(words: str) -> bool:
    """Whether some words may be a name: short, with letters, without markup."""
    return (
        len(words) <= _LONGEST_NAME
        and sum(map(str.isalpha, words)) >= 3
        and words.isprintable()
        and not _NO_NAME.search(words)
    )


def _is_in(
    code: str, text: str, sentences: Sequence[Span], known: Mapping[str, District], around: Sequence[str]
) -> bool:
    """Whether statements apply in a district: they name it or all districts, or they name none and the section is about
    it."""
    if code not in known:
        return False
    for sentence in sentences:
        place = find_scope(text, *sentence, known)
        if place is not None:
            return code in place or not place
        if names_unknown(text, *sentence):
            return False
    return code in around
