"""Dimensional standards: how large, high, dense or far from a line a code allows something to be.

They are in tables (`table_standards`) and in label lines (`label_lines`). Sentences are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from loaders.zoning.extraction.districts import District, add_condition, development_of
from loaders.zoning.extraction.label_lines import find_in_lines
from loaders.zoning.extraction.places import Places
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.extraction.standard import Standard
from loaders.zoning.extraction.table_standards import find_in_tables


def find_standards(
    section: Section,
    known: Mapping[str, District],
    above: Sequence[Section] = (),
    scopes: Sequence[Scope] | None = None,
) -> Sequence[Standard]:
    """Find the standards that a section sets: in label lines, then in tables.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first.
    `scopes` are those of the section.
    """
    places = Places(section, known, above, scopes)
    found = [*find_in_lines(section, known, above, places), *find_in_tables(section, known, places)]
    kind = development_of(section, known, above) if found else None
    return found if kind is None else [each for standard in found for each in _of_kind(standard, kind, known)]


def _of_kind(standard: Standard, kind: str, known: Mapping[str, District]) -> Iterator[Standard]:
    """Split a standard: the districts that are for such developments themselves do not get the condition."""
    own = [code for code in standard.districts if not add_condition((), kind, code, known)]
    others = [code for code in standard.districts if code not in own]
    if own or not others:
        yield replace(standard, districts=tuple(own))
    if others:
        yield replace(standard, districts=tuple(others), conditions=[*standard.conditions, kind])
