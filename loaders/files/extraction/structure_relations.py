"""Relations that the structure of a file shows: requirements, steps, see-also lists, headings, definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from loaders.files.extraction.entity_model import FoundRelation, Key, Relation
from loaders.files.extraction.plain_text import Outline, Snippet
from loaders.files.extraction.sentence_relations import Spot, is_possible

if TYPE_CHECKING:
    from spacy.tokens import Doc

_REQUIREMENTS: Final = re.compile(
    r"(?:system |software |hardware )?(?:requirements?|dependencies|prerequisites?|requires|depends on)", re.IGNORECASE
)
_SEE_ALSO: Final = re.compile(
    r"see also|references|related(?: pages| documents| reading)?|further reading|links", re.IGNORECASE
)
_STARTING: Final = re.compile(
    r"\b(?:getting started with|quick ?start(?: with| for)?|setting up|installing|introduction to)\b", re.IGNORECASE
)
_LEADING: Final = re.compile(
    r"(?P<what>requires?|requirements?|dependencies|depends on|prerequisites?|see also|owner|owned by|maintained by"
    r"|part of|location|located in)\s*:\s*",
    re.IGNORECASE,
)
_DEFINES: Final = re.compile(
    r"\s*+(?:\([^()]{1,40}\)\s*+)?(?:,\s*+)?(?:is|are|means|denotes|stands for|refers to)\s++"
    r"(?:an?|the|any|all|our|one|every|each|those|software|hardware)\b"
    r"(?!\s+(?:part|component|module|member|subsystem|division|unit|branch) of\b)",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(r"\s*(?:\([^()]{1,40}\)\s*)?(?::|\u2013|\u2014|\s-\s)\s*(?=\S)")
_LEAST_WORDS: Final = 4
_MOST_WORDS_OF_STEP: Final = 40
_THING: Final = re.compile(r"(?:the|an?|our)\s+", re.I)

REQUIRED: Final = 0.9
STEPS: Final = 0.6
"""The entities of two steps follow each other only as far as the steps are about them, so none of these is asserted."""
SEE_ALSO: Final = 0.9
STARTED: Final = 0.6
"""Mentions in a section about getting started with a product: they are probably used with it."""
LABELLED: Final = 0.95
DEFINED: Final = 0.9


def find_structural(outline: Outline, spots: Sequence[Sequence[Spot]]) -> Iterator[FoundRelation]:
    """Find the relations that headings, lists and labels show. `spots` are the mentions of each snippet."""
    heads = _find_heads(outline, spots)
    main = _find_main(outline, spots)
    step: tuple[int, int, Spot] | None = None
    for number, snippet in enumerate(outline.snippets):
        if snippet.kind == "heading":
            continue
        own = spots[number]
        topic = _find_topic(heads, outline, snippet.section) or main
        if topic is not None:
            yield from _find_in_section(outline, snippet, topic, own)
            if (labelled := _LEADING.match(snippet.plain.text)) is not None:
                yield from _find_labelled(snippet, labelled, topic, own)
        if snippet.kind == "step":
            first = next((spot for spot in own if spot.key[0] not in ("date", "version", "person")), None)
            follows = step is not None and step[:2] == (snippet.section, snippet.block)
            if step is not None and follows and first is not None and first.key != step[2].key and _is_step(snippet):
                yield _build(snippet, step[2], "precedes", first, STEPS, "numbered steps")
            step = (snippet.section, snippet.block, first) if first is not None else None
        elif snippet.kind != "item":
            step = None


def _is_step(snippet: Snippet) -> bool:
    """Whether a numbered item may be a step: not a paragraph, nor a point with a title of its own in bold."""
    has_title = any(mark.kind == "bold" and mark.start == 0 for mark in snippet.plain.marks)
    return not has_title and len(snippet.plain.text.split()) <= _MOST_WORDS_OF_STEP


def _find_in_section(outline: Outline, snippet: Snippet, topic: Spot, own: Sequence[Spot]) -> Iterator[FoundRelation]:
    """Find the relations that the heading of a section shows of the entities in it."""
    headings = outline.sections[snippet.section].headings
    name = headings[-1].strip(" :") if headings else ""
    for spot in own:
        if spot.key == topic.key:
            continue
        if _REQUIREMENTS.fullmatch(name):
            is_first = spot is own[0] or snippet.kind in ("cell", "paragraph")
            if is_first and is_possible(topic.key, "depends_on", spot.key):
                yield _build(snippet, topic, "depends_on", spot, REQUIRED, "requirements section")
        elif _SEE_ALSO.fullmatch(name):
            relation: Relation = "cites" if spot.key[0] == "regulation" else "refers_to"
            if spot.key[0] not in ("date", "version", "person"):
                yield _build(snippet, topic, relation, spot, SEE_ALSO, "see-also section")
        elif _STARTING.search(name) and spot.key[0] == topic.key[0] == "product":
            yield _build(snippet, topic, "uses", spot, STARTED, "getting-started section")


def _find_main(outline: Outline, spots: Sequence[Sequence[Spot]]) -> Spot | None:
    """Find the first entity in a heading of level 1."""
    for number, snippet in enumerate(outline.snippets):
        if snippet.kind == "heading" and outline.sections[snippet.section].level == 1 and spots[number]:
            return spots[number][0]
    return None


def _find_heads(outline: Outline, spots: Sequence[Sequence[Spot]]) -> dict[int, Spot]:
    """Find the first entity of each heading, by number of the section."""
    return {
        snippet.section: spots[number][0]
        for number, snippet in enumerate(outline.snippets)
        if snippet.kind == "heading" and spots[number]
    }


def _find_topic(heads: Mapping[int, Spot], outline: Outline, section: int) -> Spot | None:
    """Find the entity in the heading of a section, else in the nearest heading above it."""
    level = outline.sections[section].level
    if section in heads:
        return heads[section]
    for number in range(section - 1, 0, -1):
        if outline.sections[number].level < level:
            level = outline.sections[number].level
            if number in heads:
                return heads[number]
    return None


def _find_labelled(
    snippet: Snippet, labelled: re.Match[str], topic: Spot, own: Sequence[Spot]
) -> Iterator[FoundRelation]:
    """Find the relations of a line such as ``Owner: Harbour Council``."""
    what = labelled["what"].casefold()
    relation: Relation = "depends_on"
    if what.startswith(("own", "maintained")):
        relation = "owned_by"
    elif what == "part of":
        relation = "part_of"
    elif what.startswith("locat"):
        relation = "located_in"
    elif what == "see also":
        relation = "refers_to"
    for spot in own:
        if spot.start >= labelled.end() and spot.key != topic.key and is_possible(topic.key, relation, spot.key):
            yield _build(snippet, topic, relation, spot, LABELLED, "labelled line")


def find_definitions(
    outline: Outline, spots: Sequence[Sequence[Spot]], docs: Mapping[int, Doc]
) -> Iterator[FoundRelation]:
    """Find the sentences that define an entity: ``X is a ...``, and items such as ``**X**: ...``."""
    defined: set[Key] = set()
    for number, snippet in enumerate(outline.snippets):
        text, doc = snippet.plain.text, docs.get(number)
        sentences = (
            [(each.start_char, each.end_char) for each in doc.sents] if doc is not None and spots[number] else []
        )
        for spot in spots[number]:
            if spot.key[0] in ("date", "version", "person") or spot.key in defined:
                continue
            whole = 0, len(text)
            start, end = next((each for each in sentences if each[0] <= spot.start < each[1]), whole)
            before = _THING.sub("", text[start : spot.start])
            is_listed = (
                snippet.kind in ("item", "paragraph") and start == 0 and _LISTED.match(text, spot.end) is not None
            )
            if before.strip() or len(text[spot.end : end].split()) < _LEAST_WORDS:
                continue
            is_bold = any(mark.kind == "bold" and mark.start <= spot.start < mark.end for mark in snippet.plain.marks)
            if _DEFINES.match(text, spot.end) is not None or (is_listed and is_bold):
                defined.add(spot.key)
                first, last = snippet.plain.place(start, end)
                yield FoundRelation(
                    None, "defines", spot.key, first, last, round(DEFINED * spot.score, 4), "definition"
                )


def _build(snippet: Snippet, one: Spot, relation: Relation, other: Spot, weight: float, method: str) -> FoundRelation:
    start, end = snippet.plain.place(0, len(snippet.plain.text))
    confidence = round(weight * (one.score * other.score) ** 0.5, 4)
    return FoundRelation(one.key, relation, other.key, start, end, confidence, method)
