"""The facts that the built-in reader finds in a section: uses, standards and definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loaders.zoning.extraction.definitions import Definition, find_definitions
from loaders.zoning.extraction.dimensions import Standard
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permission_levels import UsePermission
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers.code_model import Section


@dataclass(frozen=True, slots=True)
class Facts:
    """The permissions, standards and definitions of a section."""

    permissions: Sequence[UsePermission] = ()
    standards: Sequence[Standard] = ()
    definitions: Sequence[Definition] = ()


def find_facts(
    section: Section,
    known: Mapping[str, District],
    above: Sequence[Section] = (),
    legends: Sequence[Section] = (),
    scopes: Sequence[Scope] | None = None,
) -> Facts:
    """Find the facts of a section in its tables, lists and label lines, with the arguments of `find_permissions`."""
    return Facts(
        find_permissions(section, known, above, legends, scopes),
        find_standards(section, known, above, scopes),
        find_definitions(section, above),
    )
