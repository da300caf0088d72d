"""Dimensional standards in sentences: how large, high, dense or far from a line a code lets things be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.development_types import of_kind
from loaders.zoning.extraction.dimension_names import Dimension
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.list_introductions import Lead, clauses, has_verb, head, lead
from loaders.zoning.extraction.measures import measures
from loaders.zoning.extraction.parking_schedules import Schedule, is_about
from loaders.zoning.extraction.permissions import follows, label_end
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.sentence_standards import Standard, limits

_DEFINES: Final = re.compile(r"\b(?:definitions?|terms defined|defined terms|words and phrases)\b", re.IGNORECASE)
_GOES_ON: Final = re.compile(r" ?(?:(?:or|and) )?(?:\w+ )?(?:\w+ )?\(?\d|" r" ?(?:[a-z]+[ -]){0,3}\(\d", re.IGNORECASE)
_BRIEF: Final = 16
"""Words at most of a line that is what the heading of its section says."""
_SHORT: Final = 8
"""Words at most of a heading within a text."""


def standards(section: Section, known: Mapping[str, District], above: Sequence[Section] = ()) -> Sequence[Standard]:
    """Return the standards that the sentences of a section set, in its order; those of tables are in `schedules`.

    `known` are the districts of the code, and `above` the sections that this one is part of, from the inside.
    """
    if _DEFINES.search(section.title):
        return []
    text = section.text
    around = tuple(naming.of_section(section, known, above))
    tables = [(table.start, table.end) for table in section.tables]
    own = {start: [code for code in codes if code in known] for start, _, codes in naming.starts(text)}
    found: list[Standard] = []
    listed: Lead | None = None
    titled = lead(f"{section.title}:", 0, len(section.title) + 1, "", "")
    place, place_label = None, ""
    parking = Schedule(section, known) if is_about(section) else None
    for line in re.finditer(r"[^\n]+", text):
        start, end = line.span()
        if any(first <= start < last for first, last in tables):
            continue
        body = label_end(text, start, end)
        label, words = text[start:body].strip(), text[body:end].rstrip()
        if place is not None and follows(label, place_label):
            place = None
        if listed is not None and follows(label, listed.label):
            listed = None
        if headed := naming.headed(words, known):
            place, place_label = tuple(headed), label
        codes = tuple(own.get(start, ()))
        if not codes and not headed:
            first, stop = naming.leading(words, known)
            if words[stop : stop + 1] in (":", ",", ".", " ") and any(len(code) > 1 for code in first):
                codes = tuple(first)
        codes = codes or place or around
        if parking is not None and (row := parking.line(start, end, codes)) is not None:
            found.append(row)
            continue
        heads = words.endswith(":") or (
            len(words.split()) <= _SHORT and not has_verb(words) and not any(measures(text, start, end))
        )
        headed_by = None if heads else head(text, body, end, listed.about if listed else section.title)
        brief = len(words.split()) <= _BRIEF and not has_verb(words)
        holds = None if heads else headed_by or listed or (titled if brief else None)
        read: list[Standard] = []
        for sentence in clauses(text, body, end):
            goes_on = read and text[sentence[0] - 1 : sentence[0]] == ";" and _GOES_ON.match(text, *sentence)
            kept = _goes_on(read[-1], about=words) if goes_on else holds
            read += limits(section, *sentence, kept, codes, known)
        if heads:
            listed = lead(text, start, end, label, section.title)
        elif not read:
            listed = None
        if parking is not None and parking.is_other(words):
            read = [each for each in read if each.type != "parking"]
        found += read
    return of_kind(found, section, known, above)


def _goes_on(last: Standard, about: str) -> Lead:
    """What holds for the measure after a semicolon: ``Maximum height: two stories; 35 feet``."""
    type_ = "building-height" if last.type == "building-storeys" else last.type
    return Lead(Dimension(last.start, last.end, type_), last.raw_type, last.bound, last.applies_to, about=about)
