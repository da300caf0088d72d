"""Sections about a kind of development, or an overlay, whose rules hold in a district only for what is built so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.sentence_standards import Standard

_DEVELOPMENT: Final = re.compile(
    r"\b(?:planned|clustere?d?|conservation|in-?fill|mixed[ -]use|multi-?family|multiple[ -]family|hillside"
    r"|open[ -]space|cottage|townhouses?|townhomes?|condominium|attached|compact|transit[ -]oriented"
    r"|zero[ -]lot[ -]line|traditional[ -]neighbou?rhood)[ -]"
    r"(?:[\w-]+ ){0,2}?(?:developments?|subdivisions?|communit(?:y|ies)|projects?)\b"
    r"|\boverlays?\b|\bP[UR]Ds?\b",
    re.IGNORECASE,
)


def condition_of(section: Section, known: Mapping[str, District], above: Sequence[Section]) -> str | None:
    """Return the heading of the kind of development that a section is about: ``Planned unit developments``.

    It is its own, or that of a section above it where none between them is of a district.
    """
    for each in (section, *above):
        if _DEVELOPMENT.search(each.title):
            return each.title
        if naming.of_title(each.title, known):
            return None
    return None


def conditional(conditions: Sequence[str], kind: str | None, code: str, known: Mapping[str, District]) -> Sequence[str]:
    """Return the conditions of a rule for the district `code` with that of the section's `kind` of development.

    A district that is itself one of planned developments, or an overlay, has none of it.
    """
    district = known.get(code)
    if kind is None or kind in conditions or f"({code})" in kind:
        return conditions
    return conditions if district is not None and _DEVELOPMENT.search(district.name) else [*conditions, kind]


def of_kind(
    found: Sequence[Standard], section: Section, known: Mapping[str, District], above: Sequence[Section]
) -> Sequence[Standard]:
    """Return the standards of a section, with the condition of the kind of development that it is about, if it is."""
    kind = condition_of(section, known, above) if found else None
    return found if kind is None else [each for standard in found for each in _of_kind(standard, kind, known)]


def _of_kind(standard: Standard, kind: str, known: Mapping[str, District]) -> Iterator[Standard]:
    """A standard once for the districts that are of such developments themselves, and once for the others."""
    own = [code for code in standard.districts if not conditional((), kind, code, known)]
    others = [code for code in standard.districts if code not in own]
    if own or not others:
        yield replace(standard, districts=tuple(own))
    if others:
        yield replace(standard, districts=tuple(others), conditions=[*standard.conditions, kind])
