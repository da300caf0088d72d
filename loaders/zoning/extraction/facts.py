"""The facts that the built-in reader finds in a section: uses, standards and definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loaders.zoning.extraction.definitions import Definition, find_definitions
from loaders.zoning.extraction.districts import District, codes_in_title
from loaders.zoning.extraction.measures import Standard
from loaders.zoning.extraction.permission_levels import UsePermission
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers.code_model import Section

_DEVELOPMENT: Final = re.compile(
    r"(?i)\b(?:planned|clustere?d?|conservation|in-?fill|mixed[ -]use|multi-?family|multiple[ -]family|hillside"
    r"|open[ -]space|cottage|townhouses?|townhomes?|condominium|attached|compact|transit[ -]oriented"
    r"|zero[ -]lot[ -]line|traditional[ -]neighbou?rhood)[ -]"
    r"(?:[\w-]{1,40} ){0,2}?(?:developments?|subdivisions?|communit(?:y|ies)|projects?)\b|\boverlays?\b|\bP[UR]Ds?\b",
)
"""Kinds of development that districts allow on conditions, which are in no table, list or label line."""


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
    """Find the facts of a section in its tables, lists and label lines, with the arguments of `find_permissions`.

    Of a section about a kind of development, and not about a district, only its definitions are facts.
    """
    definitions = find_definitions(section, above)
    titles = (each.title for each in (section, *above))
    about = next((each for each in titles if _DEVELOPMENT.search(each) or codes_in_title(each, known)), "")
    if about and not codes_in_title(about, known):
        return Facts(definitions=definitions)
    return Facts(
        find_permissions(section, known, above, legends, scopes),
        find_standards(section, known, above, scopes),
        definitions,
    )
