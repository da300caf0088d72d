"""The parts of a section that the built-in reader leaves to a chat model."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set
from typing import Final

from loaders.zoning.extraction.facts import Facts
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.model_answers import Span, split_segments
from loaders.zoning.extraction.permission_levels import level_of
from loaders.zoning.extraction.section_protocol import Section

_MAY_DEFINE: Final = re.compile(r"[\"“][^\"”\n]{1,100}[\"”]|\b(?:means|shall mean|is defined as)\b")


def _spans(facts: Facts) -> Iterator[tuple[int, int, float]]:
    """Yield the offsets that each fact rests on, and its confidence."""
    for permission in facts.permissions:
        yield permission.start, permission.end, permission.confidence
    for standard in facts.standards:
        yield standard.start, standard.end, standard.confidence
    for definition in facts.definitions:
        yield definition.term_start, max(definition.term_end, definition.end), definition.confidence


def find_unsure(section: Section, facts: Facts, least: float) -> Sequence[Span]:
    """Find the segments of a section that the rules are unsure of, or silent on though they may state a fact.

    These are segments with a measure, words that give a level, or the form of a definition. Facts with a confidence
    below `least` are unsure.
    """
    text = section.text
    sure = [(start, end) for start, end, confidence in _spans(facts) if confidence >= least]
    unsure = [(start, end) for start, end, confidence in _spans(facts) if confidence < least]
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
