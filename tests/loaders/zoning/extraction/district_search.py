"""The districts of a whole code, as the tests of extraction need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loaders.zoning.extraction.districts import District, find_in_section, pick_best
from loaders.zoning.readers.code_model import Section


def find_districts(sections: Iterable[Section]) -> Mapping[str, District]:
    """Find the districts that the sections of a code name, by code."""
    return pick_best(district for section in sections for district in find_in_section(section))
